//! The commands that need no server.

use super::{offline, vectors};

#[test]
fn payloads_of_redisson_are_inspected() {
    for file in ["kryo5.tsv", "json-jackson.tsv", "lz4v2-kryo5.tsv"] {
        for (name, payload) in vectors(file).into_iter().step_by(9) {
            let [document] = &offline(&["inspect", "--json"], &payload).json()[..] else { panic!("{name}") };
            assert_eq!(document["bytes"], payload.len(), "{name}");
            assert!(!document["value"].is_null() || name.contains("null"), "{name}: {document}");
            assert!(!document["candidates"].as_array().unwrap().is_empty(), "{name}: {document}");
        }
    }
    let text = offline(&["inspect", "08106890aa3e21912506000000000000000368656c6cef"], b"").ok();
    assert!(
        text.contains("an entry, with the id 0x106890aa3e219125") && text.contains("\"hello\""),
        "{text}"
    );
    assert!(text.contains("kryo5 (round trip), bytes (weak)"), "{text}");
    assert_eq!(
        offline(&["inspect", "--digits"], b"03 68 65 6c\n6c ef").ok().lines().last().unwrap(),
        "PAYLOAD  \"hello\""
    );
    let chosen = offline(&["inspect", "--codec", "string", "37"], b"").ok();
    assert!(chosen.starts_with("CODEC    string\n"), "{chosen}");
    assert!(offline(&["inspect", "--codec", "kryo", "37"], b"").failed(2).contains("expected kryo5"));
}

#[test]
fn anything_may_be_inspected() {
    for payload in [&b""[..], b"\x1b[2J\x07", &[0xff; 1_000_000], b"\xc2\x9b31m"] {
        let text = offline(&["inspect"], payload).ok();
        assert!(text.chars().all(|char| char == '\n' || !char.is_control()));
        assert_eq!(offline(&["inspect", "--json"], payload).json().len(), 1);
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(offline(&["completions", shell], b"").ok().contains("inspect"), "{shell}");
    }
    assert!(offline(&["man"], b"").ok().contains(".TH redelay 1"));
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("new");
    offline(&["man", "--into", into.to_str().unwrap()], b"").ok();
    for page in ["redelay.1", "redelay-ls.1", "redelay-list.1"] {
        assert!(into.join(page).is_file(), "{page}");
    }
}

#[test]
fn it_explains_itself() {
    let help = offline(&["--help"], b"").ok();
    for command in ["ls", "show", "list", "due", "watch", "top", "inspect", "completions", "man"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
    assert!(offline(&["--version"], b"").ok().starts_with("redelay 0."));
}
