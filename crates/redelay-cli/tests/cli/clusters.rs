//! A cluster of which a part does not answer: the rest is shown, and what is not known is never right.

use std::thread;
use std::time::SystemTime;

use redelay_fixture::{Cluster, Server, redis, until};
use serde_json::Value;

use super::schemas::are_as_documented;
use super::{LONG, Ran, program};

/// How long a server that does not answer is waited for. The others answer sooner, even on a busy machine.
const TIMEOUT: &str = "--timeout=20s";

/// The payload `7`.
const ENTRY: &str = concat!("\x01x\x01\0\0\0\0\0\0\0", "7");

fn run(url: &str, words: &[&str]) -> Ran {
    patiently(url, LONG, words)
}

fn patiently(url: &str, timeout: &str, words: &[&str]) -> Ran {
    Ran::new(&program().env("REDIS_URL", url).arg(timeout).args(words).output().unwrap())
}

fn documents(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// A cluster that serves what it can, with a queue on each server. An entry of each is due.
fn cluster() -> (Cluster, Vec<String>) {
    let cluster = Cluster::without_replicas(3);
    cluster.require_no_full_coverage();
    let due = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_millis() - 60_000;
    let mut names = Vec::new();
    for server in cluster.servers() {
        server.cmd(["CONFIG", "SET", "appendonly", "yes"]);
        let is_there = |name: &String| cluster.master_of(cluster.slot_of(name)).port() == server.port();
        let name = (0..).map(|n| format!("queue-{n}")).find(is_there).expect("a name");
        server.cmd(["ZADD", &format!("redisson_delay_queue_timeout:{{{name}}}"), &due.to_string(), ENTRY]);
        server.cmd(["RPUSH", &format!("redisson_delay_queue:{{{name}}}"), ENTRY]);
        names.push(name);
    }
    (cluster, names)
}

fn address(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}

fn of<'a>(documents: &'a [Value], name: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["queue"] == name).collect()
}

#[test]
fn a_server_that_does_not_answer_hides_nothing_of_the_others() {
    for is_killed in [false, true] {
        let (cluster, names) = cluster();
        let (url, silent) = (cluster.url(), &cluster.servers()[0]);
        if is_killed {
            silent.kill_9()
        } else {
            silent.freeze()
        }
        let (gone, there) = (&*names[0], &*names[1]);
        let commands: [&[&str]; 8] = [
            &["ls", "--json"],
            &["show", gone],
            &["show", there],
            &["list", there],
            &["due", there],
            &["due", gone],
            &["doctor", "--json"],
            &["doctor", "--json", there],
        ];
        // Each of them waits for the server, and not for the other commands.
        let [ls, show_gone, show, list, due, due_gone, doctor, doctor_there] = thread::scope(|scope| {
            let url = &url;
            commands
                .map(|words| scope.spawn(move || patiently(url, TIMEOUT, words)))
                .map(|ran| ran.join().expect("its output"))
        });
        let found = documents(&ls);
        assert_eq!((ls.code, found.len()), (0, 2), "{}{}", ls.out, ls.err);
        assert!(ls.err.contains("no answer: ") && ls.err.contains(&address(silent)), "{}", ls.err);
        assert!(of(&found, there)[0]["pending"] == 1 && found[0]["transferring_processes"].is_null());
        are_as_documented("ls", &found, &["queue_hex"]);
        for ran in [show, list, due] {
            assert!(ran.code == 0 && !ran.out.is_empty(), "{}{}", ran.out, ran.err);
        }
        for ran in [show_gone, due_gone] {
            assert_eq!((ran.code, &*ran.out), (3, ""), "{}", ran.err);
            assert!(ran.err.contains(&address(silent)), "{}", ran.err);
        }
        for ran in [doctor, doctor_there] {
            let findings = documents(&ran);
            assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
            let has = |about: &str, code: &str| {
                let is_about = |finding: &&Value| finding["queue"] == about || finding["server"] == about;
                findings.iter().filter(is_about).any(|finding| finding["code"] == code)
            };
            assert!(has(&address(silent), "S08"), "{}", ran.out);
            // Who is subscribed is unknown.
            assert!(has(there, "Q02"), "{}", ran.out);
            are_as_documented("doctor", &findings, &["queue_hex"]);
        }
        let pump = patiently(&url, TIMEOUT, &["pump", "--once", "--json"]);
        assert_eq!((pump.code, documents(&pump).len()), (3, 2), "{}{}", pump.out, pump.err);
        assert!(pump.err.contains(&address(silent)), "{}", pump.err);
        let moved: u64 = cluster.servers()[1].get(["LLEN", there]);
        assert_eq!(moved, 1);
    }
}

#[test]
fn a_slot_that_is_being_moved_hides_one_queue() {
    let (cluster, names) = cluster();
    let (url, slot) = (cluster.url(), cluster.slot_of(&names[0]));
    cluster.begin_move(slot, &cluster.servers()[1]);
    let ls = patiently(&url, TIMEOUT, &["ls", "--json"]);
    let found = documents(&ls);
    assert_eq!((ls.code, found.len()), (0, 3), "{}{}", ls.out, ls.err);
    let moving = of(&found, &names[0])[0];
    assert!(moving["state"] == "unknown" && moving["pending"].is_null(), "{moving}");
    assert!(ls.err.contains("its slot is being moved"), "{}", ls.err);
    assert_eq!(of(&found, &names[2])[0]["state"], "stands_still");
    are_as_documented("ls", &found, &["queue_hex"]);
    let pump = patiently(&url, TIMEOUT, &["pump", "--once", "--json"]);
    assert_eq!((pump.code, documents(&pump).len()), (3, 2), "{}{}", pump.out, pump.err);
    cluster.migrate_keys(slot);
    cluster.end_move(slot);
    until("it is looked at on its new server", || {
        let found = documents(&patiently(&url, TIMEOUT, &["ls", "--json"]));
        of(&found, &names[0]).iter().any(|queue| queue["pending"] == 1)
    });
}

#[test]
fn a_right_that_one_server_does_not_grant_hides_nothing_of_the_others() {
    let (cluster, names) = cluster();
    let words = format!("ACL SETUSER looks on >secret ~* {} +cluster|slots +cluster", super::rights::LOOKING);
    for server in cluster.servers() {
        server.cmd(words.replace(" +cluster|slots", "").split(' '));
    }
    let url = cluster.url().replace("://", "://looks:secret@");
    let refusing = &cluster.servers()[0];
    refusing.cmd(["ACL", "SETUSER", "looks", "-scan"]);
    let pump = run(&url, &["pump", "--once"]);
    assert!(pump.code == 4 && pump.err.contains("+scan"), "{}", pump.err);
    refusing.cmd(["ACL", "SETUSER", "looks", "+scan"]);
    for (right, is_found) in [("scan", false), ("time", true), ("info", true), ("zcard", true)] {
        refusing.cmd(["ACL", "SETUSER", "looks", &format!("-{right}")]);
        let ls = run(&url, &["ls", "--json"]);
        let found = documents(&ls);
        assert_eq!(
            (ls.code, of(&found, &names[0]).len()),
            (0, is_found.into()),
            "{right}: {}{}",
            ls.out,
            ls.err
        );
        assert!(
            of(&found, &names[0]).iter().all(|queue| right == "info" || queue["pending"].is_null()),
            "{right}"
        );
        assert_eq!(of(&found, &names[1])[0]["pending"], 1, "{right}");
        assert!(ls.err.contains(&format!("(the missing permission: +{right})")), "{right}: {}", ls.err);
        refusing.cmd(["ACL", "SETUSER", "looks", &format!("+{right}")]);
    }
}

/// It has only some of the queues.
#[test]
fn one_server_of_a_cluster_is_not_the_cluster() {
    let (cluster, _) = cluster();
    let server = &cluster.servers()[0];
    let ls = run(&format!("redis://{}", address(server)), &["ls"]);
    assert!(ls.code == 0 && ls.out.contains("1 queue,"), "{}", ls.out);
    assert!(
        ls.err.contains("belongs to a cluster") && ls.err.contains("write redis-cluster://"),
        "{}",
        ls.err
    );
    let doctor = run(&format!("redis://{}", address(server)), &["doctor", "--json"]);
    let of_server: Vec<_> =
        documents(&doctor).into_iter().filter(|finding| finding["queue"].is_null()).collect();
    assert!(
        of_server.iter().any(|finding| finding["code"] == "S08" && finding["severity"] == "unknown"),
        "{}",
        doctor.out
    );
}

#[test]
fn a_sentinel_has_no_queues() {
    let sentinel = Server::builder().sentinel().start();
    let ran = run(&format!("redis://{}", address(&sentinel)), &["ls"]);
    assert_eq!((ran.code, &*ran.out), (2, ""), "{}", ran.err);
    assert!(ran.err.contains(&format!("write redis-sentinel://{}/", address(&sentinel))), "{}", ran.err);
}

#[test]
fn a_pump_and_an_exporter_go_on_with_the_servers_that_answer() {
    let (cluster, names) = cluster();
    let (url, silent) = (cluster.url(), &cluster.servers()[0]);
    silent.freeze();
    let environment = [("REDIS_URL", &*url), ("HOME", "/nonexistent")];
    let start = |words: &[&str]| {
        redelay_fixture::Program::start(
            env!("CARGO_BIN_EXE_redelay"),
            &[&[TIMEOUT], words].concat(),
            &environment,
        )
    };
    let pump = start(&["pump", "--health", "127.0.0.1:0"]);
    let moved = |name: &String| {
        let server = cluster.master_of(cluster.slot_of(name));
        let count: redis::RedisResult<redis::Value> = server.try_cmd(["LLEN", name]);
        count.is_ok_and(|count| count == redis::Value::Int(1))
    };
    until("it moves what it can", || names[1..].iter().all(moved));
    until("it is not well", || {
        super::page(&pump, "its health is at http://", "/health").is_some_and(|(status, _)| status == 503)
    });
    #[cfg(feature = "exporter")]
    {
        let exporter = start(&["exporter", "--listen", "127.0.0.1:0", "--interval", "1s"]);
        let mut text = String::new();
        until("it answers", || {
            let page = super::page(&exporter, "metrics at http://", "/metrics");
            text = page.map(|(_, text)| text).unwrap_or_default();
            text.contains("redelay_queue_ready{")
        });
        assert!(text.contains("redelay_up 0"), "{text}");
        assert!(
            names[1..]
                .iter()
                .all(|name| text.contains(&format!("redelay_queue_ready{{queue=\"{name}\"}} 1")))
        );
    }
    silent.thaw();
    until("it moves the rest", || moved(&names[0]));
    until("it is well again", || {
        super::page(&pump, "its health is at http://", "/health").is_some_and(|(status, _)| status == 200)
    });
}

#[test]
fn a_wrong_password_of_one_server_is_none_of_sentinels() {
    let (cluster, names) = cluster();
    for (server, password) in cluster.servers().iter().zip([">another", ">secret", ">secret"]) {
        server.cmd(["ACL", "SETUSER", "looks", "on", password, "~*", "+@all"]);
    }
    let url = cluster.url().replace("://", "://looks:secret@");
    let due = patiently(&url, TIMEOUT, &["due", &names[0]]);
    assert_eq!((due.code, &*due.out), (4, ""), "{}", due.err);
    assert!(due.err.contains("WRONGPASS") && !due.err.contains("sentinel"), "{}", due.err);
}
