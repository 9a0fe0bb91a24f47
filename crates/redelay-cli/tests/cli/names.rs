//! Queues of any name, and payloads that try to drive the terminal.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use redelay_fixture::Server;

use super::redelay;

/// The name, and how it is printed.
const NAMES: [(&[u8], &str); 7] = [
    (b"q", "q"),
    (b"{tag}q", "{tag}q"),
    (b"with space", "with space"),
    (b"line\nfeed", "line\\nfeed"),
    (b"\x1b[2J", "\\x1b[2J"),
    ("очередь\u{202e}".as_bytes(), "очередь\\u{202e}"),
    (b"\xff\xfe", "\\xff\\xfe"),
];

#[test]
fn queues_of_any_name_are_shown() {
    let server = Server::start();
    let payload = "{\"a\":\"\u{202e}31m\"}".as_bytes();
    let entry = [b"\x08\x10\x68\x90\xaa\x3e\x21\x91\x25", &(payload.len() as u64).to_le_bytes()[..], payload]
        .concat();
    for (name, _) in NAMES {
        let tag = if name.contains(&b'{') { name.to_vec() } else { [b"{", name, b"}"].concat() };
        let key = |prefix: &[u8]| [prefix, &tag].concat();
        server.cmd([&b"ZADD"[..], &key(b"redisson_delay_queue_timeout:"), b"4102444800000", &entry]);
        server.cmd([&b"RPUSH"[..], &key(b"redisson_delay_queue:"), &entry]);
    }
    let ls = redelay(&server, ["ls"]).ok();
    for (name, shown) in NAMES {
        assert!(ls.lines().any(|line| line.starts_with(&format!("{shown}  "))), "{shown} in {ls}");
        for command in ["show", "list", "due"] {
            let words = [OsStr::new(command), OsStr::from_bytes(name)];
            let text = redelay(&server, words).ok();
            assert!(text.chars().all(|char| char == '\n' || !char.is_control()), "{text:?}");
            assert!(!text.contains('\u{202e}'), "{text:?}");
        }
        let json = redelay(&server, [OsStr::new("list"), OsStr::from_bytes(name), OsStr::new("--json")]);
        let line = json.out.clone();
        assert!(
            line.chars().all(|char| char == '\n' || !char.is_control()) && !line.contains('\u{202e}'),
            "{line:?}"
        );
        let [item] = &json.json()[..] else { panic!("{line}") };
        assert_eq!(item["value"]["a"], "\u{202e}31m");
        match std::str::from_utf8(name) {
            Ok(name) => assert_eq!(item["queue"], name),
            Err(_) => assert_eq!((&item["queue"], &item["queue_hex"]), (&shown.into(), &"fffe".into())),
        }
    }
}
