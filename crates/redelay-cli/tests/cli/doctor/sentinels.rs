//! Sentinels that are damaged in one way each.

use std::fs;

use redelay_fixture::{Sentinels, until};
use serde_json::Value;

use super::{add_sound, lines};
use crate::{Ran, program};

/// What is found at sentinels. One that does not answer is waited for as long, whatever the timeout.
fn found(url: &str) -> Vec<Value> {
    let ran = run(url);
    assert!(ran.err.is_empty(), "{}{}", ran.out, ran.err);
    of_sentinels(&ran)
}

fn run(url: &str) -> Ran {
    let words = ["--timeout=20s", "doctor", "--json"];
    Ran::new(&program().env("REDIS_URL", url).args(words).output().unwrap())
}

fn of_sentinels(ran: &Ran) -> Vec<Value> {
    let mut findings = lines(ran);
    findings.retain(|finding| finding["code"] != "S03");
    findings
}

fn texts(findings: &[Value]) -> Vec<&str> {
    assert!(findings.iter().all(|finding| finding["code"] == "S15"), "{findings:?}");
    findings.iter().map(|finding| finding["text"].as_str().unwrap()).collect()
}

#[test]
fn sentinels_that_are_too_few_or_disagree() {
    let all = Sentinels::start();
    add_sound(all.master(), "orders");
    // On a busy machine, they may not agree at once.
    until("nothing is found", || {
        let found = found(&all.url());
        println!("{found:?}");
        found.is_empty()
    });
    // It learns of the others by itself.
    let one = format!("redis-sentinel://127.0.0.1:{}/main", all.sentinel(0).port());
    assert_eq!(found(&one), Vec::<Value>::new());

    let address = |n: usize| format!("127.0.0.1:{}", all.sentinel(n).port());
    all.sentinel(2).kill_9();
    for url in [&all.url(), &one] {
        // On a busy machine, another one may not answer in time.
        until("the one that is gone is named", || {
            let findings = found(url);
            assert!(findings.iter().all(|finding| finding["severity"] == "warning"), "{findings:?}");
            let said = texts(&findings);
            said.len() == 1 && said[0].starts_with(&format!("{} does not answer", address(2)))
        });
    }
    all.sentinel(1).kill_9();
    until("the one that is left notices it", || {
        let findings = found(&all.url());
        texts(&findings)
            .contains(&&*format!("{} is not in touch with enough others to replace the master", address(0)))
    });
    // What its fix says.
    all.sentinel(1).start_again();
    all.sentinel(2).start_again();
    until("nothing is left of it", || found(&all.url()).is_empty());

    let replica = all.replicas()[0].port().to_string();
    all.sentinel(2).cmd(["SENTINEL", "REMOVE", "main"]);
    // On a busy machine, another one may not answer in time.
    until("one that knows nothing is named", || {
        texts(&found(&all.url())) == [format!("{} knows no master of this name", address(2))]
    });
    all.sentinel(2).cmd(["SENTINEL", "MONITOR", "main", "127.0.0.1", &replica, "2"]);
    let names = |n: usize, port: &str| format!("{} names 127.0.0.1:{port}", address(n));
    // The client may follow the one that is wrong, and then does not connect.
    until("it is said that they disagree", || {
        let findings = of_sentinels(&run(&all.url()));
        let said = texts(&findings);
        said.iter().any(|said| said.contains(&names(2, &replica)) && said.contains(&address(0)))
    });
}

#[test]
fn sentinels_have_passwords_of_their_own() {
    let all = Sentinels::builder().sentinel_password("of-sentinels").start();
    add_sound(all.master(), "orders");
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("redelay")).unwrap();
    let run = |password: Option<&str>, words: &[&str]| {
        let more = password.map(|word| format!("sentinel_password_command = ['echo', '{word}']"));
        let profile = format!("[prod]\nurl = '{}'\n{}", all.url(), more.unwrap_or_default());
        fs::write(folder.path().join("redelay/config.toml"), profile).unwrap();
        let mut command = program();
        command
            .env("XDG_CONFIG_HOME", folder.path())
            .args(["--profile", "prod", "--timeout=20s"])
            .args(words);
        Ran::new(&command.output().unwrap())
    };
    assert!(run(Some("of-sentinels"), &["ls"]).ok().contains("orders"));
    for wrong in [None, Some("not-theirs")] {
        let ran = run(wrong, &["ls"]);
        assert_eq!((ran.code, &*ran.out), (4, ""), "{}", ran.err);
        assert!(ran.err.contains("do they need credentials of their own"), "{}", ran.err);
        assert!(
            ran.err.contains("sentinel_password_command") && !ran.err.contains("not-theirs"),
            "{}",
            ran.err
        );
    }
    // One of them has another password.
    all.sentinel(1).cmd(["ACL", "SETUSER", "default", "resetpass", ">another"]);
    let doctor = run(Some("of-sentinels"), &["doctor", "--json"]);
    let findings = lines(&doctor);
    let refused: Vec<_> = findings.iter().filter(|finding| finding["code"] == "S15").collect();
    assert!(refused.iter().any(|finding| finding["severity"] == "unknown"), "{}{}", doctor.out, doctor.err);
}

#[test]
fn what_a_sentinel_refuses_is_unknown() {
    let all = Sentinels::start();
    if all.sentinel(0).version().major < 7 {
        // Such a server takes away whole commands only.
        return;
    }
    add_sound(all.master(), "orders");
    for right in ["ckquorum", "get-master-addr-by-name"] {
        all.sentinel(1).cmd(["ACL", "SETUSER", "default", &format!("-sentinel|{right}")]);
        let named = format!(
            "sentinels are missing, or disagree: unknown: the user may not run SENTINEL {} (+sentinel|{right})",
            right.to_uppercase()
        );
        // On a busy machine, another one may not answer in time.
        until("it is said", || {
            let findings = found(&all.url());
            let of_right = |finding: &Value| finding["severity"] == "unknown" && finding["text"] == *named;
            texts(&findings).len() == 1 && of_right(&findings[0])
        });
        all.sentinel(1).cmd(["ACL", "SETUSER", "default", &format!("+sentinel|{right}")]);
    }
}
