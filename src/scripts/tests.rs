use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::conn::{Credentials, Options, Settings};
use sha1::{Digest, Sha1};

/// `REDELAY_BLESS=1` writes the digests into the table.
#[test]
fn digests_and_headers_are_true() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scripts");
    let mut wrong = Vec::new();
    for &(name, script, files) in ALL {
        let digest: String = Sha1::digest(script.text()).iter().map(|byte| format!("{byte:02x}")).collect();
        if digest != script.sha1 {
            wrong.push((name, script.sha1, digest));
        }
        let header = script.source.rsplit_once("-- KEYS").expect("a header").1;
        let keys = header.split("-- ARGV").next().and_then(|keys| keys.split("-- Reply").next());
        let keys = keys.expect("a piece");
        let named = (1..=16).take_while(|number| keys.contains(&format!("   {number} "))).count();
        // A file of several scripts names the keys of the one that has most.
        let has_fewer = header.contains("with parts/holder.lua") && script.keys.len() < named;
        assert!(
            named == script.keys.len() || has_fewer,
            "the header of {name} names other keys than it is given"
        );
        for (number, key) in (1..).zip(script.keys) {
            let key = format!("   {number} {}", key.replace('_', " "));
            assert!(keys.contains(&key), "the header of {name} has not {key:?}");
        }
        assert!(!script.text().contains("KEYS[0]"), "{name} names a key that it is not given");
        // The script itself is the last file, and may begin in others.
        let begins = |file: &str| file.ends_with("/begin") || file == "receive/many";
        for part in files.iter().rev().skip(1).filter(|file| !begins(file)) {
            let source = std::fs::read_to_string(folder.join(part).with_extension("lua")).expect("a file");
            assert!(!source.contains("ARGV"), "{part} of {name} uses ARGV: only the script itself does");
        }
        let cost = header.split_once("-- Reply").and_then(|(_, header)| header.split_once("-- Cost"));
        let cost = cost.unwrap_or_else(|| panic!("the header of {name} is incomplete")).1;
        let cost: String = cost.lines().take_while(|line| !line.starts_with("local")).collect();
        let bounds = ["O(1)", "O(log n)", "at most", "Up to", "budget", "native scan", "as LRANGE"];
        assert!(bounds.iter().any(|bound| cost.contains(bound)), "{name} names no bound of its cost");
        assert!(!cost.contains("O(n"), "{name} has a cost without a bound");
    }
    if std::env::var_os("REDELAY_BLESS").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scripts.rs");
        let mut table = std::fs::read_to_string(&file).expect("a file");
        for (name, old, new) in &wrong {
            let row = |digest: &str| format!("    {name}: \"{digest}\"");
            assert_eq!(table.matches(&row(old)).count(), 1, "the rows of {name}");
            table = table.replace(&row(old), &row(new));
        }
        std::fs::write(file, table).expect("a file");
        return;
    }
    let right: Vec<_> = wrong.iter().map(|(name, _, digest)| format!("{name}: {digest}")).collect();
    assert!(
        wrong.is_empty(),
        "wrong digests; the right ones, which REDELAY_BLESS=1 writes, are:\n{}",
        right.join("\n")
    );
}

/// Any reply of a script arrives as it is, whatever its shape.
#[tokio::test]
async fn replies_have_the_shape_that_the_script_gave_them() {
    let array = Reply::Array;
    let text = |text: &'static str| Reply::Bytes(text.into());
    let server = redelay_fixture::Server::start();
    let settings = Settings {
        url: &server.url(),
        credentials: Credentials::OfUrl,
        sentinel_credentials: None,
        #[cfg(feature = "tls")]
        tls: None,
        client_name: "scripts".into(),
        connect_timeout: Duration::from_secs(60),
        command_timeout: Duration::from_secs(60),
        replicas: None,
    };
    let conn = &Conn::connect(Options::new(settings).expect("options")).await.expect("a connection");
    macro_rules! reply {
        ($source:literal) => {{
            static SCRIPT: Script = Script { source: $source, sha1: "", keys: &[] };
            SCRIPT.on(&[]).run_once(conn).await.expect("a reply")
        }};
    }
    assert_eq!(reply!("return 7"), Reply::Int(7));
    assert_eq!(reply!("return 'a'"), text("a"));
    assert_eq!(reply!("return false"), Reply::Nil);
    assert_eq!(reply!("return {}"), array(vec![]));
    assert_eq!(reply!("return {'a'}"), array(vec![text("a")]));
    assert_eq!(reply!("return {false}"), array(vec![Reply::Nil]));
    assert_eq!(reply!("return {1, {'a'}}"), array(vec![Reply::Int(1), array(vec![text("a")])]));
    assert_eq!(reply!("return {{}}"), array(vec![array(vec![])]));
    assert_eq!(reply!("return {{1}}"), array(vec![array(vec![Reply::Int(1)])]));
    assert_eq!(reply!("return {{1, 2}}"), array(vec![array(vec![Reply::Int(1), Reply::Int(2)])]));
    assert_eq!(reply!("return {{{1}}}"), array(vec![array(vec![array(vec![Reply::Int(1)])])]));
    assert_eq!(
        reply!("return {{1}, {2}}"),
        array(vec![array(vec![Reply::Int(1)]), array(vec![Reply::Int(2)])])
    );
}

/// What [`Script::text`] relies on.
#[test]
fn strings_contain_no_comment_and_no_line_break() {
    for &(name, script, _) in ALL {
        assert!(!script.source.contains("[[") && !script.source.contains("[="), "{name}: a long bracket");
        for line in script.source.lines() {
            let code = line.split("--").next().expect("a first piece");
            for quote in ['\'', '"'] {
                assert!(code.matches(quote).count() % 2 == 0, "{name}: `--` within a string: {line}");
            }
            assert!(!code.ends_with('\\'), "{name}: a string of two lines: {line}");
        }
        let text = script.text();
        assert!(!text.contains("--") && !text.contains("\n\n") && !text.contains("\n "), "{name}: {text}");
    }
}

/// The names that a file defines for all that comes behind it.
fn defined_in(source: &str) -> impl Iterator<Item = &str> {
    let definitions = source.lines().filter_map(|line| line.strip_prefix("local "));
    let names = definitions.filter_map(|line| {
        let function = line.strip_prefix("function ").and_then(|line| line.split('(').next());
        function.or_else(|| line.split("--").next()?.split('=').next())
    });
    names.flat_map(|names| names.split(',')).map(str::trim)
}

#[test]
fn every_file_is_used_and_every_part_says_what_it_provides() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scripts");
    let mut files = BTreeSet::new();
    for within in ["", "parts/", "transfer/", "receive/", "offer_jobs/"] {
        for file in std::fs::read_dir(folder.join(within)).expect("a folder") {
            let name = file.expect("a file").file_name().into_string().expect("UTF-8");
            files.extend(name.strip_suffix(".lua").map(|name| format!("{within}{name}")));
        }
    }
    let used = ALL.iter().flat_map(|&(_, _, files)| files.iter().map(|file| (*file).to_owned()));
    assert_eq!(used.collect::<BTreeSet<_>>(), files);
    for part in files.iter().filter(|file| file.contains('/')) {
        let source = std::fs::read_to_string(folder.join(part).with_extension("lua")).expect("a file");
        let provides = source.lines().find_map(|line| line.strip_prefix("-- Provides  "));
        let provides = provides.unwrap_or_else(|| panic!("{part} has no `-- Provides`"));
        let goes_on = source.lines().skip_while(|line| !line.starts_with("-- Provides  ")).skip(1);
        let goes_on = goes_on.map_while(|line| line.strip_prefix("--           "));
        let provides = [provides].into_iter().chain(goes_on).collect::<Vec<_>>().join(" ");
        for name in provides.split(", ").map(|name| name.trim_matches([' ', ','])) {
            let is_defined = defined_in(&source).any(|defined| defined == name);
            assert!(is_defined, "{part} says that it provides `{name}`");
        }
    }
}

/// What a part provides is for all that comes behind it: there, a second definition would take its place.
#[test]
fn no_name_is_defined_twice() {
    for &(script, _, files) in ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scripts");
        let mut defined = BTreeSet::new();
        for file in files {
            let source = std::fs::read_to_string(folder.join(file).with_extension("lua")).expect("a file");
            for name in defined_in(&source) {
                let is_new = name == "_" || defined.insert(name.to_owned());
                assert!(is_new, "{script}: `{name}` of {file} was defined before");
            }
        }
    }
}

/// A server that hands the slot of its keys over runs a script only if none of them is absent. A key that the
/// script empties is absent then, and the next command on it fails.
#[test]
fn no_script_that_removes_something_runs_while_its_slot_is_half_moved() {
    const REMOVE: [&str; 11] = [
        "DEL",
        "UNLINK",
        "HDEL",
        "LTRIM",
        "LREM",
        "LPOP",
        "RPOP",
        "RPOPLPUSH",
        "ZREM",
        "ZREMRANGEBYRANK",
        "ZREMRANGEBYSCORE",
    ];
    const ABSENT: [&str; 4] = ["scratch", "channel", "receipt", "receivers"];
    let removes =
        |script: &Script| REMOVE.iter().any(|name| script.source.contains(&format!("call('{name}'")));
    // These only read, with parts that can remove; the last one has the keys of several queues.
    const OTHERS: [&str; 5] = ["CONTAINS", "CONTAINS_READY", "JOB_STATES", "READ_QUARANTINE", "TAKE_ANY"];
    let runs = |script: &Script| !script.keys.iter().any(|key| ABSENT.contains(key));
    let found = ALL.iter().filter(|(_, script, _)| removes(script) && runs(script)).map(|(name, ..)| *name);
    assert_eq!(found.collect::<BTreeSet<_>>(), OTHERS.into());
}

/// Some proxies check the text of a script: the name of each command is a literal, each key is written
/// `KEYS[n]`, with a number, and there is one at least.
#[test]
fn names_of_commands_and_keys_are_literal() {
    let mut others = Vec::new();
    for &(name, script, _) in ALL {
        let text = script.text();
        let calls: Vec<&str> = text.match_indices("redis.").map(|(at, _)| &text[at..]).collect();
        let is_call = |call: &&&str| call.starts_with("redis.call") || call.starts_with("redis.pcall");
        let is_literal = |call: &str| {
            let (name, keys) = call.split_once("call('")?.1.split_once('\'')?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase());
            let number = keys.strip_prefix(", KEYS[").and_then(|key| key.split_once(']'));
            let is_key = |(number, rest): (&str, &str)| {
                number.parse::<usize>().is_ok_and(|number| (1..=script.keys.len()).contains(&number))
                    && rest.starts_with([',', ')'])
            };
            let begins = call.starts_with("redis.call('") || call.starts_with("redis.pcall('");
            (begins && is_name && (name == "TIME" || number.is_some_and(is_key))).then_some(())
        };
        if script.keys.is_empty() || calls.iter().filter(is_call).any(|call| is_literal(call).is_none()) {
            others.push(name);
        }
        assert!(name == "PERMISSIONS" || calls.iter().any(|call| call.starts_with("redis.call(")), "{name}");
    }
    // docs/design/scripts.md says why, and docs/deployment.md what happens without them.
    assert_eq!(others, ["OFFER_THROTTLED", "OFFER_HELD", "OVERDUE", "PERMISSIONS", "TAKE_ANY"]);
}
