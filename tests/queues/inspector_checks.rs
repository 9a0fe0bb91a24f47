//! What the inspector says of queues and servers that may be wrong.

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use redelay::inspector::{Cursor, LeftoverKind};
use redelay_fixture::Server;
use redelay_support::{HOUR, ORDERED_LIST, SELDOM, TIMEOUT_SET, soon, still_builder, still_text_queues};

use super::reads::fill;

/// Of the queue `q`.
fn key(what: &str) -> String {
    format!("redelay:{what}:{{q}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ordered_list_is_read_with_its_scores() {
    const COUNT: usize = 2_300;
    let server = Server::start();
    fill(&server, COUNT, 100);
    server.cmd(["ZREMRANGEBYRANK", TIMEOUT_SET, "7", "9"]);
    let client = still_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = soon(inspector.entries("q", after, 700)).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(Cursor::from(last).to_string().parse::<Cursor>().unwrap());
        all.extend(page);
    }
    let list = server.list(ORDERED_LIST);
    assert!(all.iter().map(|entry| &entry.entry[..]).eq(list.iter().map(|entry| &entry[..])));
    assert!(all.iter().enumerate().all(|(index, entry)| entry.index == index));
    let without = all.iter().filter(|entry| entry.score.is_none() && entry.due.is_none());
    assert_eq!(without.count(), 3);
    for (entry, score) in server.zset(TIMEOUT_SET) {
        let listed = all.iter().find(|listed| listed.entry == entry).unwrap();
        assert_eq!(listed.score.as_ref().unwrap().parse(), Ok(score));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_equal_payloads_has_an_end() {
    let server = Server::start();
    let words = ["RPUSH", "q"].into_iter().chain(std::iter::repeat_n("7", 2_500));
    server.cmd(words);
    let client = still_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    let (mut read, mut after) = (0, None);
    loop {
        let page = soon(inspector.ready("q", after, 300)).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(Cursor::from(last));
        read += page.len();
        assert!(read <= 2_500);
    }
    assert_eq!(read, 2_500);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_a_queue_have_types_and_ends() {
    let server = Server::start();
    fill(&server, 20, 100);
    server.cmd(["EXPIRE", TIMEOUT_SET, "3600"]);
    server.cmd(["DEL", &key("dead")]);
    server.cmd(["SET", &key("dead"), "text"]);
    server.cmd(["RPUSH", "{q}", "1"]);
    let client = still_builder(&server).connect().await.unwrap();
    let keys = soon(client.inspector().keys("q")).await.unwrap();
    let of = |what: &str| keys.iter().find(|key| key.what == what);
    let pending = of("timeout set").unwrap();
    assert_eq!((pending.kind.as_str(), pending.expected, pending.len), ("zset", "zset", Some(20)));
    assert!(pending.expires_in.is_some_and(|left| left > HOUR / 2 && left <= HOUR));
    assert_eq!(of("ordered list").unwrap().expires_in, None);
    let dead = of("dead").unwrap();
    assert_eq!((dead.kind.as_str(), dead.expected, dead.len), ("string", "zset", None));
    assert_eq!(of("other target").unwrap().key, "{q}");
    assert!(of("partitions").is_none() && of("inbox").is_none());
    assert!(keys.iter().all(|key| key.unknown.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_late_or_strange_is_counted() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    let sound = soon(inspector.details("q")).await.unwrap();
    assert_eq!(sound.unknown, []);
    assert_eq!((sound.late, sound.left_pops, sound.clock_went_back), (Some(0), Some(0), Some(false)));
    for (score, entry) in
        [("-5", "a"), ("1795615390", "b"), ("1600000000000", "c"), ("9999999999999", "d"), ("inf", "e")]
    {
        server.cmd(["ZADD", TIMEOUT_SET, score, entry]);
    }
    server.cmd(["ZADD", &key("leases"), "1000", "a"]);
    server.cmd(["ZADD", &key("retries"), "1000", "a", "1001", "b"]);
    server.cmd(["ZADD", &key("dead"), "-1000", "a"]);
    server.cmd(["ZADD", &key("schedules"), "1000", "a", "inf", "paused"]);
    server.cmd(["HSET", &key("popped"), "0160000000000000000000000000000a", "x", "junk", "x"]);
    server.cmd(["HSET", &key("control"), "back", "7"]);
    server.cmd(["SET", &key("partitions"), "16"]);
    let found = soon(inspector.details("q")).await.unwrap();
    assert_eq!((found.late, found.negative, found.in_seconds), (Some(3), Some(1), Some(1)));
    assert_eq!((found.distant, found.beyond), (Some(2), Some(1)));
    assert_eq!((found.ended_leases, found.late_retries), (Some(1), Some(2)));
    assert_eq!((found.unsent_letters, found.late_schedules), (Some(1), Some(1)));
    assert_eq!((found.left_pops, found.clock_went_back), (Some(1), Some(true)));
    assert_eq!(soon(inspector.partitions("q")).await.unwrap(), Some(16));
    assert_eq!(soon(inspector.partitions("other")).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_one_of_two_keys_has_is_found() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    for n in 0..40 {
        soon(ready.put(&n.to_string())).await.unwrap();
        let schedule = delayed.schedule(format!("{n}")).every(SELDOM);
        soon(schedule.upsert(&"run".to_owned())).await.unwrap();
        soon(delayed.offer(&"job".to_owned(), HOUR).id(format!("job-{n}")).into_future()).await.unwrap();
    }
    let receiver = ready.receiver();
    let mut held = Vec::new();
    for n in 0..40 {
        let message = soon(receiver.receive()).await.unwrap();
        match n % 3 {
            0 => soon(message.retry_after(HOUR)).await.unwrap(),
            1 => soon(message.reject("no")).await.unwrap(),
            _ => held.push(message),
        }
    }
    let inspector = client.inspector();
    let found = soon(inspector.orphans("q")).await.unwrap();
    assert!(found.is_complete);
    let all =
        [&found.claims, &found.messages, &found.dead, &found.dead_messages, &found.schedules, &found.records];
    assert!(all.iter().all(|ids| ids.is_empty()) && found.jobs.is_empty(), "{found:?}");
    // Some of each are deleted by hand.
    let script = "local function some(key, hash)
            local all = redis.call(hash and 'HKEYS' or 'ZRANGE', key, unpack(hash and {} or {0, -1}))
            for n = 1, 2 do redis.call(hash and 'HDEL' or 'ZREM', key, all[hash and #all - n or n]) end
        end
        for n, key in ipairs(KEYS) do some(key, n > 3) end";
    let keys = ["retries", "dead", "schedules"].map(key);
    let hashes = ["schedule-records"].map(key);
    let words = ["EVAL", script, "4"].map(str::to_owned).into_iter().chain(keys).chain(hashes);
    server.cmd(words);
    let found = soon(inspector.orphans("q")).await.unwrap();
    assert_eq!((found.messages.len(), found.dead_messages.len(), found.dead.len()), (2, 2, 0));
    assert_eq!((found.records.len(), found.claims.len()), (2, 0));
    assert_eq!(found.schedules.len(), 2, "{found:?}");
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_should_have_been_deleted_is_found() {
    let server = Server::start();
    for n in 0..30 {
        server.cmd(["SET", &format!("redelay:offered:{{q}}:01600000000000000000000000000{n:03}"), "1"]);
        server.cmd(["SET", &format!("redelay:throttle:{{q}}:id:{n}"), ""]);
    }
    server.cmd(["SET", "redelay:throttle:{q}:id:ends", "", "EX", "600"]);
    server.cmd(["SET", "redelay:scratch:{q}", ""]);
    server.cmd(["SET", "redelay:other:{q}", ""]);
    let client = still_builder(&server).connect().await.unwrap();
    let found = soon(client.inspector().leftovers()).await.unwrap();
    let rows: Vec<_> = found.iter().map(|left| (left.kind, left.count, left.keys.len())).collect();
    assert_eq!(
        rows,
        [(LeftoverKind::Receipt, 30, 10), (LeftoverKind::Throttle, 30, 10), (LeftoverKind::Scratch, 1, 1)]
    );
    assert!(found.iter().all(|left| left.queue == "q"));
    // The search for queues finds them, too.
    let scans = server.command_calls("scan");
    let mut queues = client.inspector().queues_and_leftovers("none");
    assert_eq!(soon((&mut queues).try_collect::<Vec<_>>()).await.unwrap(), Vec::<Bytes>::new());
    assert_eq!((queues.leftovers(), server.command_calls("scan") - scans), (found, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_asked_for_only_by_those_who_want_them() {
    let server = Server::start();
    server.cmd(["CONFIG", "SET", "timeout", "300"]);
    let client = still_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    let before = server.command_calls("config|get");
    let [told] = &soon(inspector.servers()).await.unwrap()[..] else { panic!("another number") };
    assert_eq!((told.unknown.len(), told.database, server.command_calls("config|get")), (0, 0, before));
    assert!(told.ahead_ms.is_some_and(|ahead| ahead.abs() < 60_000.0) && told.refused_commands.is_some());
    let [settings] = &soon(inspector.server_settings()).await.unwrap()[..] else { panic!("another number") };
    assert_eq!(settings.idle_timeout, Some(Duration::from_secs(300)));
    assert_eq!((settings.save.as_deref(), settings.min_replicas), (Some(""), Some(0)));
    assert_eq!(settings.cluster.is_some(), server.is_cluster());
    assert_eq!(settings.unknown, []);
}
