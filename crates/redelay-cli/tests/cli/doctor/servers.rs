//! Servers that are damaged in one way each.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redelay_fixture::{Cluster, Server, redis, until};

use super::{add_sound, codes, doctor, of_server, sound};
use crate::{Ran, at, program};

/// The codes of a server, and what it is after the commands of its findings were run on it.
fn found(server: &Server) -> Vec<String> {
    of_server(&doctor(&server.url(), &[]))
}

#[test]
fn settings_that_lose_queues() {
    let server = sound();
    add_sound(&server, "orders");
    assert_eq!(found(&server), Vec::<String>::new());
    for (setting, wrong, code) in
        [("maxmemory-policy", "allkeys-lru", "S01"), ("timeout", "59", "S06"), ("appendonly", "no", "S03")]
    {
        server.cmd(["CONFIG", "SET", setting, wrong]);
        let findings = doctor(&server.url(), &[]);
        assert_eq!(of_server(&findings), [code], "{findings:?}");
        // The fix is one command, which helps.
        super::fixes::run(&server, &findings);
        until("the setting holds", || found(&server).is_empty());
    }
}

#[test]
fn memory_that_is_nearly_full() {
    let server = sound();
    let info = server.info("memory");
    let used: u64 =
        info.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok()).unwrap();
    server.cmd(["CONFIG", "SET", "maxmemory", &(used + used / 10).to_string()]);
    assert_eq!(found(&server), ["S02"]);
    server.cmd(["CONFIG", "SET", "maxmemory", &(used * 4).to_string()]);
    assert_eq!(found(&server), Vec::<String>::new());
}

#[test]
fn snapshots_that_fail() {
    // With its default settings, such a server refuses each connection.
    for refuses in ["yes", "no"] {
        let setting = format!("stop-writes-on-bgsave-error {refuses}");
        let server = Server::builder().config("save 3600 1").config(setting).start();
        assert_eq!(found(&server), Vec::<String>::new());
        let name = server.get::<Vec<String>, _>(["CONFIG", "GET", "dbfilename"]).remove(1);
        let folder = server.dir().join(name);
        let _ = fs::remove_file(&folder);
        // A folder of this name, with something in it, cannot be replaced.
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("something"), "").unwrap();
        server.cmd(["SET", "other", "1"]);
        server.cmd(["BGSAVE"]);
        until("it has failed", || server.info("persistence").contains("rdb_last_bgsave_status:err"));
        let words = ["--timeout=20s", "doctor", "--json"];
        let ran = Ran::new(&program().env("REDIS_URL", server.url()).args(words).output().unwrap());
        let findings = super::lines(&ran);
        assert_eq!((ran.code, of_server(&findings)), (1, vec!["S04".to_owned()]), "{}{}", ran.out, ran.err);
        fs::remove_dir_all(&folder).unwrap();
        super::fixes::run(&server, &findings);
        until("it is saved", || server.info("persistence").contains("rdb_last_bgsave_status:ok"));
        assert_eq!(found(&server), Vec::<String>::new());
    }
}

#[test]
fn a_server_that_is_too_old() {
    let version = redelay_fixture::Version::RedisOld;
    if !version.is_installed() {
        eprintln!("not tested: {} is not installed", version.name());
        return;
    }
    let server = Server::builder().version(version).start();
    assert_eq!(found(&server), ["S05"]);
    let ran = at(&server.url(), ["doctor"]);
    assert!(ran.code == 1 && ran.out.contains("E S05  the server is too old: "), "{}{}", ran.out, ran.err);
}

#[test]
fn replicas() {
    let (master, replica) = (sound(), sound());
    add_sound(&master, "orders");
    replica.cmd(["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
    until("it follows", || replica.follows(&master) && !replica.keys().is_empty());
    // An entry that is due: who is subscribed to the master is not seen here.
    super::add(&master, "orders", super::now() - 60_000, &super::entry("a", &super::text("hello")));
    until("it follows", || replica.get::<u64, _>(["ZCARD", &super::set("orders")]) == 2);
    let findings = doctor(&replica.url(), &[]);
    assert_eq!(of_server(&findings), ["S07"]);
    assert_eq!(codes(&findings).len(), 1, "{findings:?}");
    // The master without enough of them.
    master.cmd(["CONFIG", "SET", "min-replicas-to-write", "2"]);
    let findings = doctor(&master.url(), &["orders"]);
    assert_eq!(of_server(&findings), ["S07"], "{findings:?}");
    assert!(findings.iter().any(|finding| finding["text"] == "1 replica of 2 that must follow"));
    master.stop();
    until("its link is down", || replica.info("replication").contains("master_link_status:down"));
    let findings = doctor(&replica.url(), &[]);
    assert_eq!(of_server(&findings), ["S07"]);
    assert!(findings[0]["text"].as_str().unwrap().contains("not connected to its master"), "{findings:?}");
}

#[test]
fn clusters() {
    let cluster = Cluster::without_replicas(3);
    for server in cluster.servers() {
        server.cmd(["CONFIG", "SET", "appendonly", "yes"]);
    }
    let findings = doctor(&cluster.url(), &[]);
    assert_eq!(of_server(&findings), ["S09"; 3]);
    for server in cluster.servers() {
        super::fixes::run(server, &findings[..1]);
    }
    assert_eq!(doctor(&cluster.url(), &[]).len(), 0);
    // A slot that is half moved: both of its servers say so.
    cluster.begin_move(7, &cluster.servers()[1]);
    assert_eq!(of_server(&doctor(&cluster.url(), &[])), ["S08"; 2]);
    cluster.end_move(7);
    assert_eq!(doctor(&cluster.url(), &[]).len(), 0);
    // A slot without a server.
    until("no server has it", || {
        for server in cluster.servers() {
            // The one that has it may tell another one again meanwhile.
            let _ = redis::cmd("CLUSTER").arg("DELSLOTS").arg("16000").exec(&mut server.redis());
        }
        let findings = doctor(&cluster.url(), &[]);
        of_server(&findings) == ["S08"; 3] && findings[0]["text"] == "1 slot without a server"
    });
}

#[test]
fn rights_that_somebody_lacks() {
    let server = sound();
    server.cmd(["ACL", "SETUSER", "service", "on", ">secret", "~*", "+@all", "-zadd"]);
    let is_over = AtomicBool::new(false);
    let findings = thread::scope(|scope| {
        let _ends = super::Ends(&is_over);
        scope.spawn(|| {
            let mut service = server.redis();
            let _: redelay_fixture::redis::Value =
                redelay_fixture::redis::cmd("AUTH").arg("service").arg("secret").query(&mut service).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                let add = redelay_fixture::redis::cmd("ZADD").arg("x").arg(1).arg("y").exec(&mut service);
                assert!(add.is_err());
                thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        until("something is refused", || server.errors("NOPERM") > 0);
        doctor(&server.url(), &[])
    });
    assert_eq!(of_server(&findings), ["S11"]);
    // What was refused before is over.
    assert_eq!(found(&server), Vec::<String>::new());
}

#[test]
fn clients_and_scripts_that_pile_up() {
    let server = Server::builder().appendonly(true).config("maxclients 40").start();
    let idle: Vec<_> = (0..36).map(|_| server.redis()).collect();
    assert_eq!(found(&server), ["S12"]);
    drop(idle);
    until("they are gone", || found(&server).is_empty());
    for n in 0..1_000 {
        server.cmd(["EVAL", &format!("return {n}"), "0"]);
    }
    assert_eq!(found(&server), ["S12"]);
    server.flush_scripts();
    assert_eq!(found(&server), Vec::<String>::new());
}

#[test]
fn queues_in_another_database() {
    let server = sound();
    add_sound(&server, "orders");
    let elsewhere = format!("{}/3", server.url().trim_end_matches('/'));
    let findings = doctor(&elsewhere, &[]);
    assert_eq!(of_server(&findings), ["S13"]);
    assert_eq!(findings[0]["text"], "2 in 0");
    assert_eq!(found(&server), Vec::<String>::new());
}

#[test]
fn a_server_without_config() {
    let server = Server::builder().appendonly(true).config("rename-command CONFIG \"\"").start();
    let findings = doctor(&server.url(), &[]);
    assert_eq!(of_server(&findings), ["S14"]);
    assert_eq!(findings[0]["severity"], "unknown");
}
