//! The commands that need no server.

use std::io::Write;

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
    let behind = offline(&["inspect"], b"\x03hell\xef\n");
    assert!(behind.err.contains("the line feed at the end is not part of the payload"), "{}", behind.err);
    assert!(behind.ok().ends_with("BYTES    6\nPAYLOAD  \"hello\"\n"));
    let other = offline(&["inspect", "--codec", "kryo5", "37"], b"").ok();
    assert!(other.contains("ERROR    not the codec of --codec: expected "), "{other}");
    let other = offline(&["inspect", "--json", "--codec", "kryo5", "37"], b"").json();
    assert!(other[0]["codec_error"].as_str().unwrap().contains("Kryo 5"), "{}", other[0]);
    assert!(offline(&["inspect", "--codec", "kryo", "37"], b"").failed(2).contains("expected kryo5"));
}

/// A jar of these files.
fn jar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
    for (name, content) in files {
        let (mut entry, config) = archive.new_file(name).start().unwrap();
        let mut writer = config.wrap(Vec::new());
        writer.write_all(content).unwrap();
        let (content, descriptor) = writer.finish().unwrap();
        entry.write_all(&content).unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    bytes
}

/// With the class files of the codec's tests.
#[test]
fn objects_of_described_classes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../redisson-codec/tests/classes");
    let [cart, item] = ["Cart", "CartItem"].map(|name| format!("{folder}/com.example.shop.{name}.class"));
    let (_, payload) =
        vectors("shapes-kryo5.tsv").into_iter().find(|(name, _)| name == "21-nested-lists").unwrap();
    let documents = offline(&["inspect", "--json", "--classes", &cart, "--classes", &item], &payload).json();
    assert_eq!(documents[0]["value"]["items"][1]["sku"], "sku-2");
    assert_eq!(documents[0]["value"]["userId"], 77);
    let missing = offline(&["inspect", "--classes", &cart], &payload).ok();
    assert!(
        missing.contains("the class `com.example.shop.CartItem`, which a field declares, is not described")
    );
    let folder = tempfile::tempdir().unwrap();
    let jar = folder.path().join("app.jar");
    std::fs::write(&jar, jar_of(&[("Cart.class", &std::fs::read(&cart).unwrap()), ("lib/a.jar", b"PK")]))
        .unwrap();
    let partial = offline(&["inspect", "--classes", jar.to_str().unwrap(), "00"], b"");
    assert!(partial.err.contains("app.jar is not read in full: a.jar is a broken jar"), "{}", partial.err);
    let text = folder.path().join("line.txt");
    std::fs::write(&text, "class com.acme.Line { String sku; }\nclass com.other.Line { String sku; }")
        .unwrap();
    let text = text.to_str().unwrap();
    let read = offline(&["inspect", "--classes", text, "0100636f6d2e61636d652e4c696ee58261"], b"").ok();
    assert!(read.ends_with("PAYLOAD  {\"@class\":\"com.acme.Line\",\"sku\":\"a\"}\n"), "{read}");
    let rust = offline(&["java-struct", "Cart", "--classes", &cart, "--classes", &item], b"").ok();
    assert!(rust.starts_with("use redelay::codec::java;\nuse serde::{Deserialize, Serialize};\n"), "{rust}");
    assert!(rust.contains("    pub items: Option<Vec<CartItem>>,\n"), "{rust}");
    let failed = |arguments: &[&str], code| offline(arguments, b"").failed(code);
    assert!(failed(&["java-struct", "Line", "--classes", text], 2).contains("com.acme.Line, com.other.Line"));
    let unknown = failed(&["java-struct", "Lines", "--classes", text], 1);
    assert!(
        unknown.contains("not among the 2") && unknown.contains("as another --classes FILE"),
        "{unknown}"
    );
    assert!(failed(&["java-struct", "Cart", "--classes", &cart], 1).contains("CartItem"));
    assert!(failed(&["java-struct", "Cart"], 2).contains("--classes FILE"));
    assert!(failed(&["inspect", "--classes", "/no/such", "00"], 2).contains("/no/such cannot be read"));
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
    let page = into.join("redelay.1");
    let said = offline(&["man", "--into", page.to_str().unwrap()], b"").failed(5);
    assert!(said.contains("redelay.1 cannot be written: "), "{said}");
}

#[test]
fn it_explains_itself() {
    let help = offline(&["--help"], b"").ok();
    for command in
        ["ls", "show", "list", "due", "watch", "top", "inspect", "java-struct", "completions", "man"]
    {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
    assert!(offline(&["--version"], b"").ok().starts_with("redelay 0."));
}
