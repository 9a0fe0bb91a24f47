//! What the user may not ask is unknown, and never right.

use redelay_fixture::Server;

use super::damage::DAMAGES;
use super::{codes, doctor, sound};
use crate::at;

fn looking(server: &Server, change: &[&str]) -> String {
    let words = ["ACL", "SETUSER", "looks", "reset", "on", ">secret", "~*"];
    let rights = crate::rights::LOOKING.split(' ');
    server.cmd(words.into_iter().chain(rights).chain(change.iter().copied()));
    server.url().replace("redis://", "redis://looks:secret@")
}

#[test]
fn a_user_who_may_only_look_gets_the_same_findings_and_executes_nothing_that_writes() {
    let server = Server::start();
    DAMAGES.iter().for_each(|(queue, _, damage)| damage(&server, queue));
    let expected = codes(&doctor(&server.url(), &[]));
    let url = looking(&server, &[]);
    let before = server.keys();
    server.cmd(["CONFIG", "RESETSTAT"]);
    let findings = doctor(&url, &[]);
    let executed = crate::rights::executed(&server);
    let mut found = codes(&findings);
    // Without a file, whether it saves snapshots is what matters, and that is refused.
    assert_eq!(
        (expected[""].clone(), found.remove("")),
        (vec!["S03".to_owned()], Some(vec!["S03".to_owned()]))
    );
    let unknown: Vec<_> = findings.iter().filter(|finding| finding["severity"] == "unknown").collect();
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    let text = unknown[0]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "no persistence: unknown, and with it S06: the user may not run CONFIG GET (+config|get)"
    );
    assert_eq!(found.len() + 1, expected.len());
    for (queue, codes) in found {
        assert_eq!(codes, expected[&queue], "{queue}");
    }
    assert_eq!(server.keys(), before);
    let reads =
        crate::rights::READS.iter().chain(&["hexists", "hrandfield", "zmscore", "pttl", "strlen", "get"]);
    let reads: Vec<&str> = reads.copied().collect();
    let others: Vec<_> =
        executed.iter().filter(|(name, calls)| **calls > 0 && !reads.contains(&&***name)).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn each_missing_right_is_named() {
    let server = sound();
    // Such as need one look.
    for (queue, code, damage) in DAMAGES {
        if ["Q13", "Q26", "Q27", "Q34", "Q37"].contains(code) && *queue != "paused" {
            damage(&server, queue);
        }
    }
    for (right, refuses) in [
        ("pubsub|numsub", "Q01"),
        ("zcard", "Q04"),
        ("zcount", "Q01"),
        ("zmscore", "Q05"),
        ("zrange", "Q01"),
        ("llen", "Q04"),
        ("hmget", "Q27"),
        ("pttl", "Q20"),
        ("hrandfield", "Q31"),
        ("hexists", "Q29"),
        ("pubsub|channels", "Q01"),
        ("info", "S01"),
    ] {
        if right.contains('|') && server.version().major < 7 {
            // Such a server takes away whole commands only.
            continue;
        }
        let url = looking(&server, &[&format!("-{right}")]);
        let findings = doctor(&url, &[]);
        let named = format!("(+{right})");
        let of_right = |finding: &&serde_json::Value| {
            finding["severity"] == "unknown" && finding["text"].as_str().unwrap().contains(&named)
        };
        let unknown: Vec<_> = findings.iter().filter(of_right).collect();
        assert!(!unknown.is_empty(), "{right}: {findings:#?}");
        assert!(unknown.iter().any(|finding| finding["code"] == refuses), "{right}: {unknown:#?}");
    }
    // Without these, no queue is found.
    for right in ["scan", "type"] {
        let ran = at(&looking(&server, &[&format!("-{right}")]), ["doctor"]);
        assert!(
            ran.code == 4 && ran.err.contains(&format!("the missing permission: +{right}")),
            "{right}: {}",
            ran.err
        );
    }
}

#[test]
fn a_healthy_queue_of_which_nothing_is_known_is_not_called_healthy() {
    let server = sound();
    super::add_sound(&server, "orders");
    let ran = at(&looking(&server, &["-zcard", "-zcount"]), ["doctor"]);
    assert_eq!(ran.code, 0, "unknown is not negative");
    assert!(ran.out.contains("(+zcount)") && ran.out.contains("unknown. It took"), "{}", ran.out);
    assert!(!ran.out.contains("nothing is wrong"), "{}", ran.out);
}

#[test]
fn a_queue_whose_keys_are_refused_has_one_unknown_finding() {
    let server = sound();
    super::add_sound(&server, "orders");
    let findings = doctor(&looking(&server, &["resetkeys", "~*mails*", "+config|get"]), &["orders"]);
    let texts: Vec<_> = findings.iter().map(|finding| finding["text"].as_str().unwrap()).collect();
    assert_eq!(texts.len(), 1, "{texts:#?}");
    assert!(texts[0].contains(": unknown, and with it Q") && texts[0].contains("NOPERM"), "{texts:#?}");
    assert!(texts[0].ends_with("; the missing permission: ~*, or a pattern of the keys"), "{texts:#?}");
}
