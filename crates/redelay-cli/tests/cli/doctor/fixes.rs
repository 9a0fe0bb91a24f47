//! Every fix that a finding names is tried, and helps.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use redelay::inspector::Inspector;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_fixture::{Program, Server, until_async_within};
use serde_json::Value;

use super::damage::DAMAGES;
use super::{add, at, codes, doctor, entry, now, set, sound, subscribed, text};

/// The commands of findings.
fn commands(findings: &[Value]) -> Vec<String> {
    let of_finding = |finding: &Value| finding["commands"].as_array().unwrap().clone();
    findings.iter().flat_map(of_finding).map(|command| command.as_str().unwrap().to_owned()).collect()
}

/// The words of a command line, as a shell has them.
fn words(line: &str) -> Vec<Vec<u8>> {
    let script = format!("words=({line}); printf '%s\\0' \"${{words[@]}}\"");
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash");
    assert!(output.status.success(), "{line}");
    let mut words: Vec<Vec<u8>> = output.stdout.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    words.pop();
    words
}

/// Runs what is for `redis-cli` on a server. Returns how many commands there were.
pub(super) fn run(server: &Server, findings: &[Value]) -> usize {
    let lines: BTreeSet<_> =
        commands(findings).into_iter().filter(|line| line.starts_with("redis-cli ")).collect();
    for line in &lines {
        if line.starts_with("redis-cli <<< ") {
            let line = line.replacen("redis-cli", &format!("redis-cli -p {}", server.port()), 1);
            let output = Command::new("bash").args(["-c", &line]).output().expect("bash");
            assert!(output.status.success() && output.stderr.is_empty(), "{line}");
        } else {
            server.cmd(&words(line)[1..]);
        }
    }
    lines.len()
}

/// Runs what is for `redelay pump`: once, or as long as the pump is kept.
fn pump(server: &Server, findings: &[Value]) -> Program {
    let (once, always): (Vec<String>, Vec<String>) = commands(findings)
        .into_iter()
        .filter(|line| line.starts_with("redelay pump "))
        .partition(|line| line.contains(" --once "));
    assert!(once.len() > 3 && always.len() > 10, "{once:?} {always:?}");
    for line in once {
        let words = words(&line).into_iter().skip(1).map(|word| String::from_utf8(word).unwrap());
        let ran = at(&server.url(), words);
        assert_eq!(ran.code, 0, "{line}: {}{}", ran.out, ran.err);
    }
    let names = always.iter().flat_map(|line| words(line).into_iter().skip(2));
    let words: Vec<String> =
        ["pump".to_owned()].into_iter().chain(names.map(|name| String::from_utf8(name).unwrap())).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Program::start(
        env!("CARGO_BIN_EXE_redelay"),
        &words,
        &[("REDIS_URL", &server.url()), ("HOME", "/nonexistent")],
    )
}

/// Lets everything in a queue become due.
fn become_due(server: &Server, queue: &str) {
    for (entry, _) in server.zset(set(queue)) {
        server.cmd([b"ZADD", set(queue).as_bytes(), b"XX", (now() - 1).to_string().as_bytes(), &entry]);
    }
}

/// Ends all leases.
const END: &str = "for _, lease in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], 1, lease) end";

/// A queue, and what is pending in it.
type Handles = (BlockingQueue<Vec<u8>>, DelayedQueue<Vec<u8>>);

async fn by_a_method(
    code: &str,
    queue: &str,
    (ready, delayed): &Handles,
    inspector: &Inspector,
) -> redelay::Result<()> {
    match code {
        "Q15" => {
            for entry in inspector.pending(queue, None, 10).await? {
                delayed.reschedule(&entry.ticket().unwrap(), Duration::from_secs(3_600)).await?;
            }
        }
        "Q26" => drop(delayed.quarantine().remove_all(10).await?),
        "Q27" => ready.resume().await?,
        "Q28" => ready.set_max_in_flight(Some(10)).await?,
        "Q30" | "Q32" | "Q33" => drop(ready.release_all().await?),
        "Q34" => drop(ready.dead_letters().requeue_all(10).await?),
        "Q37" => drop(ready.unconfirmed_pops(Duration::from_secs(60)).requeue_all(10).await?),
        "Q44" => delayed.set_max_pending(Some(10)).await?,
        _ => {}
    }
    Ok(())
}

/// Those that no command and no method mends: producers, consumers and names must change.
const FOR_PEOPLE: [&str; 9] = ["Q10", "Q19", "Q21", "Q22", "Q23", "Q24", "Q29", "Q35", "Q42"];
/// What expires by itself.
const FOR_TIME: [&str; 1] = ["K01"];
/// A moment after the fix, its queue has this.
const AFTERWARDS: [(&str, &str); 11] = [
    // What a schedule offers is of another codec than the entries.
    ("Q39", "Q22"),
    ("Q40", "Q22"),
    ("Q16", "Q04"),
    ("Q34", "Q32"),
    ("Q36", "Q34"),
    ("Q05", "Q26"),
    ("Q09", "Q26"),
    ("Q12", "Q26"),
    ("Q27", "Q24"),
    ("Q28", "Q24"),
    ("Q01", "Q24"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_fix_helps() {
    let server = sound();
    let mut expected = Vec::new();
    for (queue, code, damage) in DAMAGES {
        damage(&server, queue);
        expected.push((*queue, *code));
    }
    let _subscription = subscribed(&server, "still");
    add(&server, "still", now() - 252_000, &entry("a", &text("hello")));
    expected.push(("still", "Q02"));
    let findings = doctor(&server.url(), &[]);
    // What `redis-cli` does.
    assert!(run(&server, &findings) > 20);
    // What a pump does, when its time has come.
    for (queue, code) in &expected {
        if ["Q07", "Q08", "Q09"].contains(code) {
            become_due(&server, queue);
        }
    }
    let long = Duration::from_secs(600);
    let builder = || Client::builder().url(server.url()).connect_timeout(long).command_timeout(long);
    let _pump = pump(&server, &findings);
    // A service, for what needs one. The other methods are those of a client that transfers nothing.
    let service = builder().connect().await.unwrap();
    let late = service.blocking_queue::<Vec<u8>>("a-late-schedule", codec::Bytes);
    let _late = service.delayed_queue(&late);
    let client = builder().transfer(false).connect().await.unwrap();
    let handles = |queue: &str| -> Handles {
        let ready = client.blocking_queue(queue, codec::Bytes);
        let delayed = client.delayed_queue(&ready);
        (ready, delayed)
    };
    let all: Vec<_> = expected.iter().map(|(queue, _)| handles(queue)).collect();
    let inspector = client.inspector();
    // Consumers, which acknowledge everything.
    let mut consumers = tokio::task::JoinSet::new();
    for ((queue, _), (ready, _)) in expected.iter().zip(&all).filter(|((_, code), _)| *code == "Q31") {
        server.cmd(["EVAL", END, "1", &super::key("leases", queue)]);
        let receiver = ready.receiver();
        consumers.spawn(async move {
            loop {
                receiver.receive().await.unwrap().ack().await.unwrap();
            }
        });
    }
    let left = |findings: &[Value]| {
        let found = codes(findings);
        let is_left = |(queue, code): &(&str, &str)| {
            let found = found.get(*queue).cloned().unwrap_or_default();
            found.contains(&(*code).to_owned()) && !FOR_PEOPLE.contains(code) && !FOR_TIME.contains(code)
        };
        expected.iter().copied().filter(is_left).collect::<Vec<_>>()
    };
    until_async_within(long, "what was found is gone", || async {
        let findings = tokio::task::block_in_place(|| doctor(&server.url(), &[]));
        let left = left(&findings);
        for ((queue, code), handles) in expected.iter().zip(&all).filter(|(one, _)| left.contains(one)) {
            by_a_method(code, queue, handles, &inspector)
                .await
                .unwrap_or_else(|error| panic!("{queue}: {error}"));
        }
        if !left.is_empty() {
            eprintln!("{left:?}");
        }
        left.is_empty()
    })
    .await;
    let found = codes(&doctor(&server.url(), &[]));
    // Nothing else has come.
    for (queue, code) in &expected {
        for other in found.get(*queue).into_iter().flatten().filter(|other| other != code) {
            let is_known = AFTERWARDS.iter().any(|after| after == &(*code, other.as_str()));
            assert!(is_known, "{queue}: {code} became {other}");
        }
    }
    consumers.shutdown().await;
    client.shutdown().await;
    service.shutdown().await;
}
