//! Schedules: their runs, each call of a handle, and what the server keeps of them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::FutureExt;
use redelay::delayed_queue::{EntryFormat, Missed};
use redelay::inspector::Cursor;
use redelay::{Client, DelayedQueue, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    HOUR, JOBS, MINUTE, ORDERED_LIST, SCHEDULE_RECORDS, SCHEDULES, SELDOM, TIMEOUT_SET, lasting,
    patient_builder, soon, still_text_queues, text_queues,
};

use crate::refusals::Writes;

async fn still() -> (Server, Client, DelayedQueue<String>) {
    let server = Server::start();
    let (client, _ready, delayed) = still_text_queues(&server).await;
    (server, client, delayed)
}

fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// The ids of the entries that are stored.
fn ids(server: &Server) -> Vec<String> {
    let id = |entry: Vec<u8>| String::from_utf8(entry[1..=usize::from(entry[0])].to_vec()).expect("a text");
    let mut ids: Vec<String> = server.list(ORDERED_LIST).into_iter().map(id).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn each_run_is_delivered_once_and_the_next_one_is_stored_ahead() {
    let server = Server::start();
    let url = &server;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(text_queues(url).await);
    }
    let interval = Duration::from_millis(200);
    let begun = SystemTime::now();
    let mut runs = Vec::new();
    for (_, _, delayed) in &clients {
        let ping = delayed.schedule("ping").every(interval).missed(Missed::UpTo(1000));
        let next = ping.upsert("payload").await.unwrap().expect("a run");
        assert!(next > begun && millis(next).is_multiple_of(200));
        runs.push(millis(next));
    }
    let (_, ready, delayed) = &clients[0];
    for _ in 0..10 {
        assert_eq!(soon(ready.take()).await.unwrap(), "payload");
    }
    // Then the number of runs up to the last one that is over is that of the payloads.
    assert!(delayed.schedule("ping").pause().await.unwrap());
    let last = delayed.schedule("ping").get().await.unwrap().unwrap();
    let mut more = 0;
    let expected = (millis(last.last_run.expect("a run")) - runs[0]) / 200 + 1;
    until_async("the last run is moved", || async { delayed.is_empty().await.unwrap() }).await;
    while ready.poll().await.unwrap().is_some() {
        more += 1;
    }
    assert_eq!(10 + more, expected, "payloads, and runs");
    for (client, _, _) in clients {
        client.shutdown().await;
    }
}

#[tokio::test]
async fn what_a_schedule_keeps_on_the_server() {
    let (server, client, delayed) = still().await;
    let nightly = delayed.schedule("nightly").cron("0 3 * * *").zone("Europe/Berlin").missed(Missed::Once);
    let next = nightly.upsert("payload").await.unwrap().expect("a run");
    let id = format!("nightly@{}", millis(next));
    assert_eq!(ids(&server), [&*id]);
    assert_eq!(server.zset(SCHEDULES), [(b"nightly".to_vec(), millis(next) as f64)]);
    let record: String = server.get(["HGET", SCHEDULE_RECORDS, "nightly"]);
    assert_eq!(record, "cron 0 3 * * *\nzone Europe/Berlin\nmissed once\n\npayload");
    assert_eq!(delayed.job(&id).get().await.unwrap().unwrap().due, next);
    // Anybody may cancel or reschedule this one run.
    assert!(delayed.job(&id).cancel().await.unwrap().is_removed());
    assert_eq!(nightly.get().await.unwrap().unwrap().next_run, Some(next));
    client.shutdown().await;
}

/// Case 56.
#[tokio::test]
async fn an_equal_schedule_changes_nothing_and_another_one_replaces_the_pending_run() {
    let (server, client, delayed) = still().await;
    let rare = delayed.schedule("s").every(SELDOM);
    let next = rare.upsert("1").await.unwrap();
    let before = lasting(&server);
    assert_eq!(rare.upsert("1").await.unwrap(), next);
    assert!(lasting(&server) == before);
    let read = server.command_calls("hset");
    rare.upsert("1").await.unwrap();
    assert_eq!(server.command_calls("hset"), read);

    assert_eq!(rare.upsert("2").await.unwrap(), next);
    assert_eq!(delayed.read_all().await.unwrap(), ["2"]);
    let sooner = delayed.schedule("s").every(MINUTE).upsert("2").await.unwrap().unwrap();
    assert_eq!(ids(&server), [format!("s@{}", millis(sooner))]);
    assert_eq!(server.zset(TIMEOUT_SET).len(), 1);
    assert_eq!(server.get::<usize, _>(["HLEN", JOBS]), 1);
    client.shutdown().await;
}

#[tokio::test]
async fn a_schedule_is_read_paused_resumed_triggered_and_removed() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let rare = delayed.schedule("rare").every(SELDOM);
    assert_eq!(rare.get().await.unwrap(), None);
    assert_eq!(rare.next_runs(3).await.unwrap(), []);
    for absent in [rare.pause().await, rare.resume().await, rare.remove().await, rare.trigger().await] {
        assert!(!absent.unwrap());
    }
    let next = rare.upsert("payload").await.unwrap().unwrap();
    let stored = rare.get().await.unwrap().unwrap();
    assert_eq!((&*stored.name, &*stored.value, &*stored.text), ("rare", "payload", "every 86400000000 ms"));
    assert_eq!((stored.next_run, stored.last_run, stored.is_paused), (Some(next), None, false));
    assert_eq!(rare.next_runs(3).await.unwrap(), [next, next + SELDOM, next + 2 * SELDOM]);
    assert!(rare.trigger().await.unwrap());
    assert_eq!(soon(ready.take()).await.unwrap(), "payload");
    assert_eq!(delayed.len().await.unwrap(), 1);

    assert!(rare.pause().await.unwrap());
    assert!(rare.pause().await.unwrap());
    assert_eq!(delayed.len().await.unwrap(), 0);
    assert!(rare.get().await.unwrap().unwrap().is_paused);
    assert_eq!(rare.next_runs(3).await.unwrap(), []);
    assert_eq!(rare.upsert("payload").await.unwrap(), None);
    assert!(rare.trigger().await.unwrap());
    assert_eq!(soon(ready.take()).await.unwrap(), "payload");

    assert!(rare.resume().await.unwrap());
    assert_eq!(rare.get().await.unwrap().unwrap().next_run, Some(next));
    assert_eq!(delayed.len().await.unwrap(), 1);
    assert!(rare.remove().await.unwrap());
    assert!(!rare.remove().await.unwrap());
    until_async("nothing is left", || async { lasting(&server).is_empty() }).await;
    client.shutdown().await;
}

#[tokio::test]
async fn schedules_are_listed_by_their_names() {
    let (server, client, delayed) = still().await;
    let schedules = delayed.schedules();
    assert!(schedules.is_empty().await.unwrap());
    for n in (1..=250).rev() {
        delayed.schedule(format!("s{n}")).every(HOUR * n).upsert("payload").await.unwrap();
    }
    delayed.schedule("s7").pause().await.unwrap();
    let list = async |after, max| -> Vec<_> {
        let read = schedules.read(after, max).await.unwrap();
        assert!(read.iter().all(|(name, read)| read.as_ref().is_ok_and(|read| read.name == *name)));
        read.into_iter().map(|(_, schedule)| schedule.unwrap()).collect()
    };
    let all = list(None, 1000).await;
    assert_eq!((all.len(), schedules.len().await.unwrap()), (250, 250));
    assert!(all.is_sorted_by_key(|schedule| schedule.name.clone()));
    let paused = all.iter().find(|schedule| schedule.name == "s7").unwrap();
    assert!(paused.is_paused && paused.next_run.is_none());
    assert_eq!(list(Some(&all[119].name), 110).await, all[120..230]);
    assert_eq!(list(Some(&all[249].name), 10).await, []);
    assert_eq!(list(None, 0).await, []);
    // A run of one changes no page; nor does a removal in front.
    delayed.schedule(&*all[3].name).every(HOUR).upsert("payload").await.unwrap();
    assert!(
        schedules.remove(&*all[9].name).await.unwrap() && !schedules.remove(&*all[9].name).await.unwrap()
    );
    assert_eq!(list(Some(&all[9].name), 1000).await, all[10..]);
    // A damaged record is named.
    server.cmd(["HSET", SCHEDULE_RECORDS, "s8", "junk"]);
    let error = delayed.schedule("s8").get().await.unwrap_err().to_string();
    assert!(error.contains("the schedule `s8`"), "{error}");
    let read = schedules.read(None, 1000).await.unwrap();
    let damaged: Vec<_> = read.iter().filter(|(_, schedule)| schedule.is_err()).collect();
    assert!(read.len() == 249 && damaged.len() == 1 && damaged[0].0 == "s8");
    // So is one in which a page of an inspector ends.
    let inspector = client.inspector();
    let page = inspector.schedules("q", None, read.len()).await.unwrap();
    assert!(page.iter().map(|(name, _)| name).eq(read.iter().map(|(name, _)| name)));
    let at = page.iter().position(|(_, schedule)| schedule.is_err()).unwrap();
    let behind = inspector.schedules("q", Some(Cursor::from(&page[at])), 1).await.unwrap();
    assert_eq!((&*page[at].0, &behind[0].0), ("s8", &page[at + 1].0));
    let left: Vec<_> = all.iter().filter(|left| !["s8", &*all[9].name].contains(&&*left.name)).collect();
    let behind: Vec<_> = left.iter().copied().filter(|left| *left.name > *"s8").collect();
    assert_eq!(list(Some("s8"), 1000).await.iter().collect::<Vec<_>>(), behind);
    assert!(schedules.remove("s8").await.unwrap());
    assert_eq!(schedules.remove_all(100).await.unwrap(), 100);
    assert_eq!(list(None, 1000).await.iter().collect::<Vec<_>>(), left[100..]);
    assert_eq!(schedules.remove_all(usize::MAX).await.unwrap(), 148);
    assert!(schedules.is_empty().await.unwrap());
    assert_eq!(delayed.len().await.unwrap(), 1, "the run of the one that could not be read");
    client.shutdown().await;
}

/// Moves the pending run of the schedule `s` into the past.
fn set_back(server: &Server, by: Duration) {
    let [(name, next)] = &server.zset(SCHEDULES)[..] else { panic!("not one schedule") };
    let due = (next - by.as_millis() as f64).to_string();
    server.cmd([b"ZADD", SCHEDULES.as_bytes(), due.as_bytes(), name]);
    let [(entry, _)] = &server.zset(TIMEOUT_SET)[..] else { panic!("not one entry") };
    server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), due.as_bytes(), entry]);
}

/// Case 57: the run that was stored is delivered, and of those after it as many as the policy says.
#[tokio::test]
async fn runs_that_were_missed_are_made_up_for_as_the_policy_says() {
    for (missed, expected) in
        [(Missed::Skip, 1), (Missed::Once, 2), (Missed::UpTo(2), 3), (Missed::UpTo(9), 4)]
    {
        let (server, still, delayed) = still().await;
        let next = delayed.schedule("s").every(SELDOM).missed(missed).upsert("payload").await.unwrap();
        set_back(&server, 4 * SELDOM);
        let (client, ready, delayed) = text_queues(&server).await;
        for _ in 0..expected {
            soon(ready.take()).await.unwrap();
        }
        until_async("the next run is stored", || async {
            delayed.schedule("s").get().await.unwrap().unwrap().next_run == next
        })
        .await;
        assert_eq!(ready.poll().await.unwrap(), None, "{missed:?}");
        assert_eq!(delayed.len().await.unwrap(), 1);
        client.shutdown().await;
        still.shutdown().await;
    }
}

/// One that cannot run does not hold up the others, and the client says so.
#[tokio::test]
async fn a_schedule_that_cannot_be_read_is_reported_and_left_to_others() {
    let (server, still, delayed) = still().await;
    for n in 0..120 {
        server.cmd(["HSET", SCHEDULE_RECORDS, &format!("junk{n}"), "from 3 to 4\n\npayload"]);
        server.cmd(["ZADD", SCHEDULES, "5", &format!("junk{n}")]);
    }
    server.cmd(["ZADD", SCHEDULES, "6", "nothing"]);
    server.cmd(["ZADD", SCHEDULES, "-inf", "before all"]);
    delayed.schedule("s").every(Duration::from_millis(100)).upsert("payload").await.unwrap();
    let (client, ready, _delayed) = text_queues(&server).await;
    for _ in 0..3 {
        soon(ready.take()).await.unwrap();
    }
    until_async("it is reported", || std::future::ready(client.stats().last_error.is_some())).await;
    let reported = client.stats().last_error.expect("a report").message;
    assert!(reported.contains("schedules of `q`: `junk0` does not run: "), "{reported}");
    assert_eq!(server.zset(SCHEDULES).len(), 121, "the name without a record is gone");
    client.shutdown().await;
    still.shutdown().await;
}

#[tokio::test]
async fn what_is_no_schedule_is_refused() {
    let (server, client, delayed) = still().await;
    let now = SystemTime::now();
    let s = || delayed.schedule("s");
    let wrong = [
        (s(), "call every(), or cron()"),
        (s().every(Duration::ZERO), "an interval of 0 ms"),
        (s().every(SELDOM).zone("UTC"), "an interval has no time zone"),
        (s().every(SELDOM).start_at(now).end_at(now - SELDOM), "the end is before the start"),
        (s().every(SELDOM).missed(Missed::UpTo(1_000_000)), "1000000 missed runs"),
        (s().every(SELDOM).missed(Missed::UpTo(0)), "Missed::Skip"),
        (s().cron("0 25 * * *"), "field 2 of the cron expression `0 25 * * *`, `25` (hours)"),
        (s().cron("0 0 30 2 *"), "never comes"),
        (s().cron("0 0 0 1 1 * 2020"), "`0 0 0 1 1 * 2020 UTC` never runs again"),
        (s().cron("0 0 * * *\nlast 5"), "line break"),
        (s().cron("0 0 * * *").zone("Europe/Berln"), "there is no time zone `Europe/Berln`"),
        (delayed.schedule("").every(SELDOM), "a name of 0 bytes"),
        (delayed.schedule("s".repeat(240)).every(SELDOM), "a name of 240 bytes"),
        (delayed.clone().with_entry_format(EntryFormat::Legacy).schedule("s").every(SELDOM), "legacy format"),
    ];
    for (schedule, why) in wrong {
        let error = schedule.upsert("payload").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    assert!(lasting(&server).is_empty());
    // The longest name, and one that has ended.
    assert!(delayed.schedule("s".repeat(239)).every(SELDOM).upsert("payload").await.unwrap().is_some());
    assert_eq!(s().every(SELDOM).end_at(now - SELDOM).upsert("payload").await.unwrap(), None);
    client.shutdown().await;
}

/// Calls on a queue with the schedules `a` and, paused, `b`.
const WRITES: Writes = Writes {
    calls: &[
        ("upsert", |q| async move { q.schedule("c").every(SELDOM).upsert("1").await.map(drop) }.boxed()),
        ("replace", |q| async move { q.schedule("a").every(SELDOM).upsert("2").await.map(drop) }.boxed()),
        ("resume", |q| async move { q.schedule("b").resume().await.map(drop) }.boxed()),
        ("trigger", |q| async move { q.schedule("a").trigger().await.map(drop) }.boxed()),
        ("pause", |q| async move { q.schedule("a").pause().await.map(drop) }.boxed()),
        ("remove", |q| async move { q.schedule("a").remove().await.map(drop) }.boxed()),
    ],
    fill: |q| {
        async move {
            for name in ["a", "b"] {
                q.schedule(name).every(SELDOM).upsert("1").await.unwrap();
            }
            q.schedule("b").pause().await.unwrap();
            q.schedule("a").trigger().await.unwrap();
        }
        .boxed()
    },
    keys: 5,
};

#[tokio::test]
async fn a_call_without_a_permission_is_done_or_changes_nothing() {
    let commands = [
        "time", "set", "hget", "hset", "hdel", "hlen", "zadd", "zrem", "zscore", "zrange", "llen", "lrem",
        "rpush", "ltrim", "publish",
    ];
    WRITES.without_permissions(&commands).await;
}

#[tokio::test]
async fn keys_of_another_type_are_refused_and_stay() {
    for key in [SCHEDULES, SCHEDULE_RECORDS, JOBS, TIMEOUT_SET, ORDERED_LIST] {
        WRITES.with_a_text_as(key, &["trigger"]).await;
    }
}

/// A server that is full stores no schedule, and lets one be removed.
#[tokio::test]
async fn without_memory_nothing_is_stored() {
    let stores = ["upsert", "replace", "resume", "trigger"];
    let (_server, client, delayed) = WRITES.without_memory(&stores).await;
    for name in ["a", "b"] {
        assert!(delayed.schedule(name).remove().await.unwrap());
    }
    client.shutdown().await;
}

/// Redisson's clock decides what it moves, and may be fast. And anybody may cancel a run.
#[tokio::test]
async fn a_run_that_is_gone_before_its_time_does_not_come_again() {
    for pause in [false, true] {
        let (server, client, delayed) = still().await;
        let rare = delayed.schedule("s").every(SELDOM);
        let next = rare.upsert("1").await.unwrap().unwrap();
        let entry = &server.list(ORDERED_LIST)[0];
        server.cmd([b"ZREM", TIMEOUT_SET.as_bytes(), entry]);
        server.cmd([b"LREM", ORDERED_LIST.as_bytes(), b"1", entry]);
        if pause {
            assert!(rare.pause().await.unwrap());
            assert!(rare.resume().await.unwrap());
        } else {
            rare.upsert("2").await.unwrap();
        }
        assert_eq!(ids(&server), [format!("s@{}", millis(next + SELDOM))]);
        client.shutdown().await;
    }
}

/// A name has no record, and the user may not remove it. The other schedules run.
#[tokio::test]
async fn schedules_run_although_the_user_may_not_make_their_keys_agree() {
    let server = Server::start();
    let rights = ["+@all", "-hexists", "-hscan", "allkeys", "allchannels"];
    server.cmd(["ACL", "SETUSER", "worker", "on", ">secret"].into_iter().chain(rights));
    let (_client, _ready, other) = still_text_queues(&server).await;
    other.schedule("gone").every(SELDOM).upsert("payload").await.unwrap();
    server.cmd(["HDEL", SCHEDULE_RECORDS, "gone"]);
    let client = patient_builder(&server).credentials("worker", "secret").sweep_interval(HOUR);
    let client = client.connect().await.unwrap();
    let ready = client.blocking_queue::<String>("q", codec::String);
    let delayed = client.delayed_queue(&ready);
    delayed.schedule("s").every(Duration::from_millis(100)).upsert("payload").await.unwrap();
    let is_told = |error: redelay::stats::LastError| {
        error.message.starts_with("agreement of the keys of `q`, schedules")
    };
    until_async("the error is reported", || async { client.stats().last_error.is_some_and(is_told) }).await;
    for _ in 0..3 {
        soon(ready.take()).await.unwrap();
    }
}

/// What the server refuses is tried again, and reported.
#[tokio::test]
async fn a_server_that_is_full_for_a_time_does_not_end_the_runs() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let often = delayed.schedule("s").every(Duration::from_millis(100)).missed(Missed::UpTo(1000));
    let first = often.upsert("payload").await.unwrap().unwrap();
    soon(ready.take()).await.unwrap();
    server.cmd(["CONFIG", "SET", "maxmemory", "1"]);
    until_async("it is reported", || async {
        client.stats().last_error.is_some_and(|error| error.message.starts_with("schedules of `q`: `s`"))
    })
    .await;
    server.cmd(["CONFIG", "SET", "maxmemory", "0"]);
    let refused = SystemTime::now();
    let mut taken = 1;
    while first + Duration::from_millis(100) * taken < refused {
        soon(ready.take()).await.unwrap();
        taken += 1;
    }
    client.shutdown().await;
}

/// Schedules of one queue do not disturb each other.
#[tokio::test]
async fn a_short_interval_runs_beside_a_distant_run_and_a_paused_schedule() {
    for beside in ["distant", "paused", "over"] {
        let server = Server::start();
        let (client, ready, delayed) = text_queues(&server).await;
        let other = delayed.schedule("other").every(SELDOM);
        match beside {
            "over" => drop(other.end_at(UNIX_EPOCH).upsert("payload").await.unwrap()),
            _ => drop(other.upsert("payload").await.unwrap()),
        }
        if beside == "paused" {
            delayed.schedule("other").pause().await.unwrap();
        }
        delayed.schedule("often").every(Duration::from_millis(100)).upsert("payload").await.unwrap();
        for _ in 0..5 {
            promptly(ready.take()).await.unwrap();
        }
        client.shutdown().await;
    }
}

/// Less than the time after which clients look for changes that nobody has announced.
async fn promptly<F: Future>(call: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), call).await.expect("it is not overlooked")
}

/// Other processes find out with the next run, and not when they look for changes.
#[tokio::test]
async fn what_a_process_changes_that_does_not_transfer_counts_from_the_next_run_on() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    let (_still, _, elsewhere) = still_text_queues(&server).await;
    let often = elsewhere.schedule("s").every(Duration::from_millis(100));
    often.upsert("1").await.unwrap();
    for _ in 0..3 {
        promptly(ready.take()).await.unwrap();
    }
    assert!(often.pause().await.unwrap());
    elsewhere.schedule("s").every(SELDOM).upsert("2").await.unwrap();
    assert!(often.resume().await.unwrap());
    elsewhere.schedule("s").every(Duration::from_millis(100)).upsert("3").await.unwrap();
    while promptly(ready.take()).await.unwrap() != "3" {}
    for _ in 0..3 {
        assert_eq!(promptly(ready.take()).await.unwrap(), "3");
    }
    client.shutdown().await;
}

/// A client learns of schedules when it opens a queue, and a queue without any costs next to nothing.
#[tokio::test]
async fn a_process_that_stores_a_schedule_need_not_stay() {
    let (server, still, delayed) = still().await;
    delayed.schedule("s").every(Duration::from_millis(100)).upsert("payload").await.unwrap();
    still.shutdown().await;
    let (client, ready, _delayed) = text_queues(&server).await;
    for _ in 0..5 {
        soon(ready.take()).await.unwrap();
    }
    client.shutdown().await;
}
