//! The inspector sees what is there, sends nothing that writes, and reads no more at a time than it says.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use redelay::delayed_queue::EntryFormat;
use redelay::inspector::{Cursor, Happening, Happenings, Inspector, ReadyPayload, Role};
use redelay::{Client, ErrorKind, Result, codec};
use redelay_fixture::{Cluster, Proxy, Server, redis, until, until_async};
use redelay_support::{
    HOUR, ORDERED_LIST, TIMEOUT_SET, ms, patient_builder, soon, still_builder, still_text_queues,
};

use super::reads::{Monitor, fill, most};

/// What a user needs who looks and does nothing else.
const LOOKING: &str = "-@all +@read +scan +time +ping +info +type +pubsub|channels +pubsub|numsub +client";

/// A client of a user who may only look.
async fn looking(server: &Server) -> Client {
    let words =
        ["ACL", "SETUSER", "looks", "on", ">secret", "~*", "&*"].into_iter().chain(LOOKING.split(' '));
    server.cmd(words);
    if server.is_cluster() {
        server.cmd(["ACL", "SETUSER", "looks", "+cluster"]);
    }
    let url = server.url().replacen("://", "://looks:secret@", 1);
    patient_builder(&url).transfer(false).connect().await.unwrap()
}

async fn names(inspector: &Inspector, pattern: &str) -> BTreeSet<String> {
    let names: Vec<_> = soon(inspector.queues(pattern).try_collect::<Vec<_>>()).await.unwrap();
    let count = names.len();
    let names: BTreeSet<_> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    assert_eq!(names.len(), count, "each comes once");
    names
}

/// How often the server has executed each command.
fn executed(server: &Server) -> Vec<(String, u64)> {
    let stats = server.info("commandstats");
    let line = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    stats.lines().filter_map(line).collect()
}

/// Reads all pages of this many rows.
macro_rules! pages {
    ($inspector:expr, $read:ident, $limit:expr) => {{
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = soon($inspector.$read("q", after, $limit)).await.unwrap();
            let Some(last) = page.last() else { break all };
            // Through its text, as another process would.
            after = Some(Cursor::from(last).to_string().parse::<Cursor>().unwrap());
            all.extend(page);
        }
    }};
}

#[tokio::test(flavor = "multi_thread")]
async fn it_sees_what_the_client_sees_and_executes_nothing_else_than_reads() {
    const COUNT: usize = 2_500;
    let server = Server::start();
    fill(&server, COUNT, 100);
    server.cmd(["HSET", "redelay:control:{q}", "paused", "1", "most", "7"]);
    let (client, ready, delayed) = still_text_queues(&server).await;
    let stats = ready.stats().await.unwrap();
    let expected = (
        ready.read_all().await.unwrap(),
        ready.dead_letters().read(None, usize::MAX).await.unwrap(),
        ready.unsettled().in_flight(None, usize::MAX).await.unwrap(),
        ready.unsettled().waiting(None, usize::MAX).await.unwrap(),
        delayed.quarantine().read(None, usize::MAX).await.unwrap(),
        ready.unconfirmed_pops(Duration::ZERO).read(None, usize::MAX).await.unwrap(),
    );
    client.shutdown().await;
    server.cmd(["CONFIG", "RESETSTAT"]);
    let client = looking(&server).await;
    let inspector = client.inspector();
    let monitor = Monitor::start(&server);
    assert_eq!(names(&inspector, "*").await, BTreeSet::from(["q".to_owned()]));
    let [overview] = &soon(inspector.overview(&["q"])).await.unwrap()[..] else { panic!("another number") };
    assert_eq!(overview.unknown, []);
    for (number, expected) in [
        (overview.pending, stats.pending),
        (overview.list_len, stats.list_len),
        (overview.ready, stats.ready),
        (overview.overdue, stats.overdue),
        (overview.in_flight, stats.receiving.in_flight),
        (overview.waiting, stats.receiving.waiting),
        (overview.dead_letters, stats.receiving.dead_letters),
        (overview.quarantined, stats.quarantined),
        (overview.unconfirmed_pops, stats.unconfirmed_pops),
        (overview.schedules, COUNT as u64),
        (overview.max_in_flight, 7),
        (overview.transferring_processes, 0),
    ] {
        assert_eq!(number, Some(expected), "{overview:?}");
    }
    assert_eq!(overview.is_paused, Some(true));
    for limit in [700, COUNT] {
        let payloads: Vec<_> = pages!(inspector, ready, limit);
        assert!(payloads.iter().map(|ready| &ready.payload[..]).eq(expected.0.iter().map(String::as_bytes)));
        let letters = pages!(inspector, dead_letters, limit);
        assert!(letters == expected.1, "{} {}", letters.len(), expected.1.len());
        let in_flight = pages!(inspector, in_flight, limit);
        assert!(in_flight.iter().map(|message| message.id).eq(expected.2.iter().map(|message| message.id)));
        assert!(in_flight.iter().zip(&expected.2).all(|(one, other)| one.payload == other.payload));
        let waiting = pages!(inspector, waiting, limit);
        assert!(waiting.iter().map(|message| message.id).eq(expected.3.iter().map(|message| message.id)));
        assert!(pages!(inspector, quarantine, limit) == expected.4);
        let pops = pages!(inspector, unconfirmed_pops, limit);
        assert_eq!(pops.len(), expected.5.len());
        assert!(pops.iter().map(|pop| &pop.id).eq(expected.5.iter().map(|pop| &pop.id)));
        assert!(pops.iter().zip(&expected.5).all(|(one, other)| one.payloads == other.payloads));
        assert!(pops.iter().zip(&expected.5).all(|(one, other)| one.age >= other.age));
        let pending = pages!(inspector, pending, limit);
        assert!(pending.is_sorted_by_key(|entry| entry.due) && pending.len() == COUNT);
        assert!(pending.iter().all(|entry| entry.format == Some(EntryFormat::Current)));
    }
    // Each page reads all names.
    let schedules = pages!(inspector, schedules, 700);
    assert!(schedules.len() == COUNT && schedules.iter().all(|(_, schedule)| schedule.is_ok()));
    assert!(schedules.is_sorted_by_key(|(name, _)| name));
    let due = soon(inspector.due("q", HOUR, 3)).await.unwrap();
    assert_eq!(due.iter().map(|span| span.count).collect::<Vec<_>>(), [0, 0, 0, 0, COUNT as u64]);
    let [told] = &soon(inspector.servers()).await.unwrap()[..] else { panic!("another number") };
    assert_eq!(told.role, Some(Role::Master));
    assert!(told.clock.is_some() && told.product.is_some() && told.eviction_policy.is_some());
    assert_eq!(told.unknown, []);
    let [settings] = &soon(inspector.server_settings()).await.unwrap()[..] else { panic!("another number") };
    let permissions: BTreeSet<_> =
        settings.unknown.iter().filter_map(|unknown| unknown.permission.as_deref()).collect();
    assert_eq!(permissions, BTreeSet::from(["+config|get"]));
    let calls = monitor.end(&server);
    assert!(most(&calls) <= 1_002, "{} elements in a command", most(&calls));
    client.shutdown().await;
    let by_this_test = ["config|resetstat", "acl|setuser", "monitor", "echo", "info", "acl"];
    let reads = [
        "zcard",
        "llen",
        "hlen",
        "zcount",
        "zrange",
        "zrangebyscore",
        "hmget",
        "hget",
        "hscan",
        "hstrlen",
        "lrange",
        "lindex",
        "scan",
        "time",
        "type",
        "pubsub|channels",
        "pubsub|numsub",
        "ping",
        "auth",
        "hello",
        "client|setname",
        "client|id",
        "client|info",
        "quit",
        "pubsub",
        "client",
        "select",
        "cluster",
        "cluster|slots",
        "cluster|nodes",
        "cluster|info",
    ];
    for (name, count) in executed(&server) {
        let is_expected = by_this_test.contains(&&*name) || reads.contains(&&*name) || count == 0;
        let is_expected = is_expected || name.starts_with("config");
        let who =
            || calls.iter().flatten().filter(|call| call.to_lowercase().contains(&name)).collect::<Vec<_>>();
        assert!(is_expected, "{name} was executed {count} times: {:?}", who());
    }
}

/// Each kind of pop, and what no pop has written: the rows are those of the operators' handle.
#[tokio::test(flavor = "multi_thread")]
async fn pops_that_were_not_confirmed_are_read() {
    let server = Server::start();
    let (client, ready, _delayed) = still_text_queues(&server).await;
    let inspector = client.inspector();
    let leave = "local key, value = KEYS[1], nil
        local function leave(id, value) redis.call('HSET', key, id, value) end
        leave('3', cmsgpack.pack({'poll', 1000.5, {'entry', '4102444800000', '\\255', ''}}))
        leave('1', cmsgpack.pack({'LPOP', 1795249257299, {'a', 'b\\0\\255'}}))
        leave('2', cmsgpack.pack({'RPOP', 7, {string.rep('long', 100000)}}))
        leave('4', cmsgpack.pack({'poll', 7, {'entry'}}))
        leave('5', cmsgpack.pack({'poll', 7, {'entry', 'no score'}}))
        leave('6', cmsgpack.pack({'LPOP', 7, {7}}))
        leave('7', 'junk')
        leave('8', cmsgpack.pack({7, 7, {'a'}}))
        leave('\\255', cmsgpack.pack({'LPOP', 7, {'a'}}))
        leave('message', cmsgpack.pack({'LPOP', 7, {'a'}}))";
    server.cmd(["EVAL", leave, "1", "redelay:popped:{q}"]);
    let expected = ready.unconfirmed_pops(Duration::ZERO).read(None, 100).await.unwrap();
    assert_eq!(expected.iter().map(|pop| &*pop.id).collect::<Vec<_>>(), ["1", "2", "3", "message"]);
    for limit in 1..=5 {
        let pops = pages!(inspector, unconfirmed_pops, limit);
        assert_eq!(pops.len(), expected.len());
        for (pop, expected) in pops.iter().zip(&expected) {
            assert_eq!((&pop.id, pop.kind), (&expected.id, expected.kind));
            assert!(pop.payloads == expected.payloads && pop.age >= expected.age, "{pop:?} {expected:?}");
        }
    }
    assert_eq!(soon(inspector.unconfirmed_pops("q", None, 0)).await.unwrap(), []);
    assert_eq!(soon(inspector.unconfirmed_pops("other", None, 9)).await.unwrap(), []);
}

/// Long entries: a command reads few of them.
#[tokio::test(flavor = "multi_thread")]
async fn long_entries_are_read_a_few_at_a_time() {
    let server = Server::start();
    fill(&server, 60, 100_000);
    let client = still_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    let monitor = Monitor::start(&server);
    assert_eq!(pages!(inspector, pending, 100).len(), 60);
    assert_eq!(pages!(inspector, ready, 100).len(), 60);
    assert_eq!(pages!(inspector, dead_letters, 100).len(), 60);
    assert_eq!(pages!(inspector, waiting, 100).len(), 30);
    let calls = monitor.end(&server);
    let reads_content = |call: &&Vec<String>| {
        !call[0].to_lowercase().contains("retries") && !call[0].to_lowercase().contains("redelay:dead:")
    };
    let content: Vec<_> = calls.iter().filter(reads_content).cloned().collect();
    // The first ones show how long they are.
    assert!(most(&content) <= 17, "{}", most(&content));
}

/// Transfers take what is due first, and offers come: what stays is returned once.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_passed_over_while_the_head_moves() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    // Many are due at the same time.
    let all: Vec<i64> = (0..3_000).collect();
    let delay = |n: &i64| HOUR + ms(if (500..2_400).contains(n) { 500 } else { *n as u64 });
    soon(delayed.offer_all(all.iter().map(|n| (n, delay(n))))).await.unwrap();
    let payload = |entry: &redelay::inspector::PendingEntry| {
        std::str::from_utf8(entry.payload.as_ref().unwrap()).unwrap().parse::<i64>().unwrap()
    };
    let whole = soon(inspector.pending("q", None, usize::MAX)).await.unwrap();
    assert_eq!(whole.len(), all.len());
    let order: Vec<_> = whole.iter().map(payload).collect();
    let (mut after, mut seen, mut removed) = (None, Vec::new(), 0);
    loop {
        let page = soon(inspector.pending("q", after, 130)).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(Cursor::from(last).to_string().parse::<Cursor>().unwrap());
        seen.extend(page.iter().map(payload));
        // The last one that was read goes, too, and most of those in front of it.
        for entry in &page[10..] {
            assert!(soon(delayed.cancel(&entry.ticket().unwrap())).await.unwrap());
            removed += 1;
        }
    }
    assert_eq!(seen, order);
    assert_eq!(soon(delayed.len()).await.unwrap(), all.len() - removed);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_ready_is_passed_over_while_others_take() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let (inspector, ready) = (client.inspector(), client.blocking_queue("q", codec::Long));
    let all: Vec<i64> = (0..3_000).collect();
    soon(ready.offer_all(&all)).await.unwrap();
    let (mut after, mut seen, mut taken) = (None, Vec::new(), 0);
    for round in 0.. {
        let page = soon(inspector.ready("q", after, 100)).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(Cursor::from(last));
        seen.extend(page.iter().map(|ready| String::from_utf8_lossy(&ready.payload).parse::<i64>().unwrap()));
        // Sometimes more than were read.
        let most = if round % 4 == 3 { 350 } else { 40 };
        taken += soon(ready.poll_many(most)).await.unwrap().len();
        if round < 20 {
            soon(ready.put(&(10_000 + round))).await.unwrap();
        }
        assert!(round < 200, "it comes to an end");
    }
    let stayed: BTreeSet<_> = all.iter().copied().skip(taken).collect();
    assert!(stayed.iter().all(|n| seen.iter().filter(|seen| *seen == n).count() == 1), "once each");
}

/// A page of 1,000 is read by several commands, and payloads are taken between them.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_ready_is_passed_over_within_a_page() {
    const COUNT: i64 = 10_000;
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let (inspector, queue) = (client.inspector(), client.blocking_queue("q", codec::Long));
    soon(queue.offer_all(&Vec::from_iter(0..COUNT))).await.unwrap();
    let number = |ready: &ReadyPayload| str::from_utf8(&ready.payload).unwrap().parse().unwrap();
    let monitor = Monitor::start(&server);
    let whole = soon(inspector.ready("q", None, usize::MAX)).await.unwrap();
    // Far from the head, so that nothing is read that is taken meanwhile.
    let mut after = Some(Cursor::from(&whole[4_999]));
    let taking = async {
        loop {
            soon(queue.poll_many(3)).await.unwrap();
        }
    };
    let reading = async {
        let mut read: Vec<i64> = Vec::new();
        for count in [2, 3, 5, 40, 1_000].into_iter().cycle() {
            let page = soon(inspector.ready("q", after.take(), count)).await.unwrap();
            let Some(last) = page.last() else { return read };
            after = Some(Cursor::from(last));
            read.extend(page.iter().map(number));
        }
        unreachable!("the list ends")
    };
    let read = tokio::select! {
        () = taking => unreachable!("it takes until all is read"),
        read = reading => read,
    };
    assert!(read.iter().copied().eq(5_000..COUNT), "{} were read", read.len());
    let first = soon(inspector.ready("q", None, 1)).await.unwrap();
    let taken: i64 = number(&first[0]);
    assert!((30..5_000).contains(&taken), "{taken} were taken");
    let calls = monitor.end(&server);
    let reads: Vec<_> = calls.into_iter().filter(|call| call[0].to_lowercase().contains("lrange")).collect();
    assert!(most(&reads) <= 1_000, "a command reads {}", most(&reads));
}

/// A short reply that begins with one of these words is a message to the client library.
const OF_MESSAGES: [&str; 9] = [
    "message",
    "pmessage",
    "smessage",
    "pubsub",
    "subscribe",
    "psubscribe",
    "unsubscribe",
    "punsubscribe",
    "sunsubscribe",
];

#[tokio::test(flavor = "multi_thread")]
async fn payloads_that_look_like_messages_of_a_channel_are_read() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    for first in OF_MESSAGES {
        for count in 1..=6 {
            server.cmd(["DEL", "q"]);
            server.cmd(["RPUSH", "q", first]);
            (1..count).for_each(|_| drop(server.cmd(["RPUSH", "q", "pmessage"])));
            let read = soon(inspector.ready("q", None, 100)).await.unwrap();
            assert_eq!(read.len(), count, "{count} with {first}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_look_like_messages_of_a_channel_are_read() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    let (schedules, records) = ("redelay:schedules:{q}", "redelay:schedule-records:{q}");
    // The first page has 16 members.
    for (word, count) in OF_MESSAGES.into_iter().flat_map(|word| [2, 3, 5, 17].map(|count| (word, count))) {
        server.cmd(["DEL", schedules, records, TIMEOUT_SET]);
        for n in 0..count {
            // It is the first one of the last two.
            let name = if n == count - 2 { word.to_owned() } else { format!("{n:02}") };
            for set in [schedules, TIMEOUT_SET] {
                server.cmd(["ZADD", set, &n.to_string(), &name]);
            }
            server.cmd(["HSET", records, &name, "every 3600000\n\npayload"]);
        }
        assert_eq!(
            soon(inspector.pending("q", None, 100)).await.unwrap().len(),
            count,
            "{count} with {word}"
        );
        assert_eq!(pages!(inspector, pending, 1).len(), count, "{count} with {word}");
        assert_eq!(soon(inspector.schedules("q", None, 100)).await.unwrap().len(), count);
        let orphans = soon(inspector.orphans("q")).await.unwrap();
        assert!(orphans.is_complete && orphans.schedules.is_empty() && orphans.records.is_empty());
    }
    // The fields of a hash.
    server.cmd(["DEL", schedules, records]);
    for name in ["pubsub", "pmessage", "a", "b", "c"] {
        server.cmd(["HSET", records, name, "every 3600000\n\npayload"]);
        let orphans = soon(inspector.orphans("q")).await.unwrap();
        assert!(orphans.records.iter().any(|record| record == name), "{orphans:?}");
    }
}

/// Others add while it reads, and would go on. Members of a sorted set may be read again after they have
/// moved.
#[tokio::test(flavor = "multi_thread")]
async fn not_many_more_are_read_than_there_were() {
    const COUNT: usize = 100;
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let client = still_builder(&proxy).connect().await.unwrap();
    let inspector = client.inspector();
    let calls =
        || ["llen", "zcard", "zrange"].map(|command| server.command_calls(command)).iter().sum::<u64>();
    macro_rules! reads {
        ($($read:ident: $count:expr),+) => {$(
            server.cmd(["FLUSHALL"]);
            fill(&server, COUNT, 100);
            let before = calls();
            proxy.hold_replies(true);
            let adding = async {
                until_async("it has asked", || async { calls() > before }).await;
                fill(&server, 4 * COUNT, 100);
                proxy.hold_replies(false);
            };
            let read = soon(inspector.$read("q", None, usize::MAX));
            let (read, ()) = futures::join!(read, adding);
            assert_eq!(read.unwrap().len(), $count, stringify!($read));
        )+};
    }
    reads! {
        ready: COUNT,
        entries: COUNT,
        quarantine: COUNT,
        pending: 2 * COUNT,
        schedules: 2 * COUNT,
        dead_letters: 2 * COUNT,
        waiting: COUNT,
        in_flight: COUNT
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_of_any_name_are_found() {
    let server = Server::start();
    if server.is_cluster() {
        // It has no queues of such names.
        return;
    }
    let client = patient_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    let odd = [
        "q",
        "{q}x",
        "a b",
        "line\nfeed",
        "a}b",
        "очередь",
        "shop:orders",
        "shop:mails",
        "[x]",
        "dead",
        "{live}",
    ];
    let mut handles = Vec::new();
    for name in odd {
        let ready = client.blocking_queue(name, codec::Long);
        let delayed = client.delayed_queue(&ready);
        if name == "dead" {
            // Only redelay's own keys are left of it.
            soon(ready.put(&1)).await.unwrap();
            let receiver = ready.receiver();
            soon(soon(receiver.receive()).await.unwrap().reject("no")).await.unwrap();
        } else if name == "{live}" {
            // Nothing but a client that listens.
            server.cmd(["RPUSH", "{live}", "1"]);
        } else {
            soon(delayed.offer(&1, HOUR)).await.unwrap();
        }
        handles.push(delayed);
    }
    server.cmd([&b"ZADD"[..], b"redisson_delay_queue_timeout:{\xff\x00}", b"7", b"junk"]);
    for n in 0..3_000 {
        server.cmd(["SET", &format!("redisson:other:{n}"), "1"]);
    }
    until("it listens", || server.subscribers("redisson_delay_queue_channel:{live}") > 0);
    let mut expected: BTreeSet<_> = odd.iter().map(ToString::to_string).collect();
    let all = names(&inspector, "*").await;
    expected.insert(String::from_utf8_lossy(b"\xff\x00").into_owned());
    assert_eq!(all, expected);
    assert_eq!(
        names(&inspector, "shop:*").await,
        BTreeSet::from(["shop:mails".into(), "shop:orders".into()])
    );
    assert_eq!(names(&inspector, "\\[x]").await, BTreeSet::from(["[x]".into()]));
    assert_eq!(names(&inspector, "nothing*").await, BTreeSet::new());
    // `q` and `{q}` share the pending keys.
    server.cmd(["RPUSH", "{q}", "1"]);
    assert_eq!(names(&inspector, "{q}").await, BTreeSet::from(["{q}".into()]));
    assert_eq!(names(&inspector, "q").await, BTreeSet::new(), "the keys are those of {{q}}");
    server.cmd(["RPUSH", "q", "1"]);
    assert_eq!(names(&inspector, "q").await, BTreeSet::from(["q".into()]));
    let bytes = soon(inspector.pending(b"\xff\x00", None, 5)).await.unwrap();
    assert_eq!((bytes.len(), bytes[0].format), (1, None));
    drop(handles);
}

/// What Java has offered is cancelled and rescheduled by the tickets that the inspector makes.
#[tokio::test(flavor = "multi_thread")]
async fn entries_of_others_have_tickets() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::String));
    let legacy = b"\x81\xed\x4b\xdc\x43\x9a\xc0\xc3\x05\0\0\0\0\0\0\0hello";
    let current = b"\x08\x10\x68\x90\xaa\x3e\x21\x91\x25\x05\0\0\0\0\0\0\0hello";
    for (due, entry) in [(&b"4102444800000"[..], &legacy[..]), (b"4102444800001", current)] {
        server.cmd([&b"ZADD"[..], TIMEOUT_SET.as_ref(), due, entry]);
        server.cmd([&b"RPUSH"[..], ORDERED_LIST.as_ref(), entry]);
    }
    let read = soon(client.inspector().pending("q", None, 10)).await.unwrap();
    assert_eq!(
        read.iter().map(|entry| entry.format).collect::<Vec<_>>(),
        [Some(EntryFormat::Legacy), Some(EntryFormat::Current)]
    );
    assert!(soon(delayed.reschedule(&read[0].ticket().unwrap(), HOUR)).await.unwrap());
    assert!(soon(delayed.cancel(&read[1].ticket().unwrap())).await.unwrap());
    let read = soon(client.inspector().pending("q", None, 10)).await.unwrap();
    assert_eq!(read.len(), 1);
    assert!(read[0].due < Some(SystemTime::now() + 2 * HOUR));
}

/// What the server refuses is not known: it is not zero, and not an error of the rest.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_unknown() {
    let server = Server::start();
    fill(&server, 10, 100);
    let client = looking(&server).await;
    let inspector = client.inspector();
    for (command, field) in [
        ("zcard", "pending"),
        ("llen", "ready"),
        ("hlen", "unconfirmed_pops"),
        ("zcount", "overdue"),
        ("zrange", "next_due_in"),
        ("hmget", "is_paused"),
        ("pubsub|numsub", "transferring_processes"),
    ] {
        let family = command.split('|').next().unwrap();
        server.cmd(["ACL", "SETUSER", "looks", &format!("-{family}")]);
        let [overview] = &soon(inspector.overview(&["q"])).await.unwrap()[..] else {
            panic!("another number")
        };
        let unknown = overview.unknown.iter().find(|unknown| unknown.what == field).expect(field);
        assert_eq!(unknown.permission.as_deref(), Some(&*format!("+{command}")), "{unknown:?}");
        assert!(unknown.why.starts_with("NOPERM"), "{unknown:?}");
        let json = serde_json::to_value(overview).unwrap();
        let name = if field == "next_due_in" { "next_due_in_ms" } else { field };
        assert_eq!(json[name], serde_json::Value::Null, "{json}");
        server.cmd(["ACL", "SETUSER", "looks", &format!("+{command}")]);
    }
    server.cmd(["ACL", "SETUSER", "looks", "-pubsub"]);
    let mut queues = inspector.queues("*");
    let found: Vec<_> = soon((&mut queues).try_collect::<Vec<_>>()).await.unwrap();
    assert_eq!(found, ["q"]);
    assert_eq!(queues.unknown()[0].permission.as_deref(), Some("+pubsub|channels"));
    server.cmd(["ACL", "SETUSER", "looks", "-scan"]);
    let refused = soon(inspector.queues("*").try_collect::<Vec<_>>()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(
        refused.to_string().contains("inspector().queues") && refused.to_string().contains("scan"),
        "{refused}"
    );
    // A key of another type hides nothing of the others.
    server.cmd(["DEL", "redelay:retries:{q}"]);
    server.cmd(["SET", "redelay:retries:{q}", "1"]);
    let [overview] = &soon(inspector.overview(&["q"])).await.unwrap()[..] else { panic!("another number") };
    assert_eq!((overview.waiting, overview.dead_letters), (None, Some(10)));
    assert!(overview.unknown[0].why.contains("redelay:retries:{q}"), "{:?}", overview.unknown);
    assert_eq!(overview.unknown[0].permission, None);
}

/// Valkey 9.1.2 counts hundreds of millions of listeners when there are 8, 15 or 16.
#[tokio::test(flavor = "multi_thread")]
async fn a_count_that_cannot_be_is_unknown() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let mut listeners = Vec::new();
    for count in 1..=20 {
        let mut listener = server.redis();
        redis::cmd("SUBSCRIBE").arg("redisson_delay_queue_channel:{q}").exec(&mut listener).unwrap();
        listeners.push(listener);
        let [q] = &soon(client.inspector().overview(&["q"])).await.unwrap()[..] else { panic!("one queue") };
        match q.transferring_processes {
            Some(counted) => assert_eq!(counted, count),
            None => assert!(q.unknown[0].what == "transferring_processes", "{:?}", q.unknown),
        }
    }
}

/// There would be one more as long as others claim messages.
#[tokio::test]
async fn a_page_that_is_not_full_is_the_last_one() {
    let server = Server::start();
    fill(&server, 50, 100);
    let (_client, ready, _) = still_text_queues(&server).await;
    let client = looking(&server).await;
    server.cmd(["CONFIG", "RESETSTAT"]);
    assert_eq!(soon(client.inspector().in_flight("q", None, 99)).await.unwrap().len(), 25);
    assert_eq!(["zrange", "zrangebyscore"].map(|command| server.command_calls(command)), [1, 1]);
    assert_eq!(soon(ready.unsettled().in_flight(None, 99)).await.unwrap().len(), 25);
    assert_eq!(server.command_calls("evalsha"), 2, "of the leases, and of their messages");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_looked_at_and_named() {
    let (master, replica) = (Server::start(), Server::start());
    if master.is_cluster() {
        return;
    }
    fill(&master, 50, 100);
    replica.cmd(["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
    until("it follows", || replica.follows(&master) && !replica.list("q").is_empty());
    let client = looking(&replica).await;
    let inspector = client.inspector();
    let [told] = &soon(inspector.servers()).await.unwrap()[..] else { panic!("another number") };
    assert_eq!((told.role, told.is_linked), (Some(Role::Replica), Some(true)));
    assert_eq!(names(&inspector, "*").await, BTreeSet::from(["q".to_owned()]));
    assert_eq!(pages!(inspector, pending, 20).len(), 50);
    assert_eq!(pages!(inspector, in_flight, 20).len(), 25);
    let [q] = &soon(inspector.overview(&["q"])).await.unwrap()[..] else { panic!("another number") };
    assert_eq!((q.pending, q.transferring_processes), (Some(50), None));
    assert_eq!(q.unknown[0].what, "transferring_processes");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queues_of_a_cluster() {
    let cluster = Cluster::without_replicas(3);
    let client = patient_builder(&cluster).connect().await.unwrap();
    let mut handles = Vec::new();
    let all: BTreeSet<_> = (0..30).map(|n| format!("queue-{n}")).collect();
    for name in &all {
        let delayed = client.delayed_queue(&client.blocking_queue(name, codec::Long));
        soon(delayed.offer(&1, HOUR)).await.unwrap();
        handles.push(delayed);
    }
    let inspector = client.inspector();
    assert_eq!(names(&inspector, "*").await, all);
    until_async("all are listened to", || async {
        let overview = inspector.overview(&all.iter().collect::<Vec<_>>()).await.unwrap();
        overview.iter().all(|queue| queue.pending == Some(1) && queue.transferring_processes == Some(1))
    })
    .await;
    let overview = soon(inspector.overview(&all.iter().collect::<Vec<_>>())).await.unwrap();
    let servers: BTreeSet<_> = overview.iter().map(|queue| queue.server.clone()).collect();
    assert_eq!(servers.len(), 3);
    let told = soon(inspector.servers()).await.unwrap();
    assert_eq!(told.iter().map(|server| server.address.clone()).collect::<BTreeSet<_>>(), servers);
    assert!(told.iter().all(|server| server.is_in_cluster == Some(true)));
    drop(handles);
}

/// A name may be left alone, as a record was deleted by hand.
#[tokio::test]
async fn names_without_a_schedule_end_no_page() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    server.cmd(["ZADD", "redelay:schedules:{q}", "1", "a", "1", "b", "1", "c", "1", "d", "1", "e"]);
    for name in ["b", "d"] {
        server.cmd(["HSET", "redelay:schedule-records:{q}", name, "every 3600000\n\npayload"]);
    }
    let inspector = client.inspector();
    let read = soon(inspector.schedules("q", None, 2)).await.unwrap();
    assert_eq!(read.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "d"]);
    assert_eq!(pages!(inspector, schedules, 1).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_something_else_is_refused() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let inspector = client.inspector();
    let (index, name, score): (Cursor, Cursor, Cursor) =
        ("7:#00".parse().unwrap(), ":nightly".parse().unwrap(), "7:x".parse().unwrap());
    let invalid = |result: Result<usize>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Invalid);
    invalid(soon(inspector.pending("q", Some(index), 1)).await.map(|rows| rows.len()));
    invalid(soon(inspector.ready("q", Some(name), 1)).await.map(|rows| rows.len()));
    invalid(soon(inspector.schedules("q", Some(score.clone()), 1)).await.map(|rows| rows.len()));
    invalid(soon(inspector.unconfirmed_pops("q", Some(score), 1)).await.map(|rows| rows.len()));
    invalid(soon(inspector.due("q", Duration::ZERO, 1)).await.map(|rows| rows.len()));
}

async fn next(happenings: &mut Happenings) -> Happening {
    soon(happenings.try_next()).await.unwrap().expect("it goes on")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_heard() {
    let server = Server::start();
    let client = patient_builder(&server).connect().await.unwrap();
    let watching = still_builder(&server).client_name("watching").connect().await.unwrap();
    let mut happenings = watching.inspector().watch("sh*");
    let ready = client.blocking_queue("shop", codec::Long);
    let (delayed, other) =
        (client.delayed_queue(&ready), client.delayed_queue(&client.blocking_queue("other", codec::Long)));
    for _ in 0..2 {
        assert_eq!(next(&mut happenings).await, Happening::Listening);
        soon(other.offer(&7, ms(1))).await.unwrap();
        soon(delayed.offer(&7, ms(30))).await.unwrap();
        let announced = next(&mut happenings).await;
        let Happening::Announced { queue, due: Some(due), .. } = announced else { panic!("{announced:?}") };
        assert_eq!(queue, "shop");
        let transferred = next(&mut happenings).await;
        let Happening::Transferred { queue, at: Some(at), next, .. } = transferred else {
            panic!("{transferred:?}")
        };
        assert!(queue == "shop" && at >= due && next.is_none(), "{at:?} {due:?} {next:?}");
        // And again with another connection.
        server.kill_client_named("watching");
    }
    watching.shutdown().await;
    while soon(happenings.try_next()).await.unwrap().is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_in_a_cluster_is_heard_once() {
    let cluster = Cluster::without_replicas(3);
    let client = patient_builder(&cluster).transfer(false);
    let client = client.connect().await.unwrap();
    let mut happenings = client.inspector().watch("*");
    for _ in 0..3 {
        assert_eq!(next(&mut happenings).await, Happening::Listening);
    }
    let names: BTreeSet<_> = (0..20).map(|n| format!("queue-{n}")).collect();
    for name in &names {
        soon(client.delayed_queue(&client.blocking_queue(name, codec::Long)).offer(&1, HOUR)).await.unwrap();
    }
    let mut heard = Vec::new();
    while heard.len() < names.len() {
        if let Happening::Announced { queue, .. } = next(&mut happenings).await {
            heard.push(String::from_utf8_lossy(&queue).into_owned());
        }
    }
    assert_eq!(heard.iter().cloned().collect::<BTreeSet<_>>(), names);
    drop(client);
    while soon(happenings.try_next()).await.unwrap().is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_listen_is_told_so() {
    let server = Server::start();
    let client = looking(&server).await;
    let mut happenings = client.inspector().watch("*");
    let refused = soon(happenings.try_next()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("PSUBSCRIBE"), "{refused}");
    assert!(soon(happenings.try_next()).await.unwrap().is_none());
    // As `docs/operate.md` has it.
    let channels = ["&redisson_delay_queue_channel:*", "&redelay:moved:*"];
    server.cmd(["ACL", "SETUSER", "looks", "+psubscribe", "resetchannels"].into_iter().chain(channels));
    let mut happenings = client.inspector().watch("*");
    assert_eq!(next(&mut happenings).await, Happening::Listening);
}
