//! Payloads that are long, and entries that are malformed: no call reads more than a bound of them.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use redelay::codec;
use redelay_fixture::{Server, until_async, until_async_within};
use redelay_support::{
    CLAIMS, CONTROL, DEAD_MESSAGES, HOUR, JOBS, LEASES, MESSAGES, MINUTE, NOTES, ORDERED_LIST, QUARANTINE,
    RETRIES, TIMEOUT_SET, ms, patient_builder, still_text_queues,
};

use super::reads::{Monitor, elements, fill, most, reads};

/// How many payloads they read: the members of other sorted sets are ids.
fn most_payloads(calls: &[Vec<String>]) -> usize {
    let is_of_ids = |command: &str| {
        let command = command.to_lowercase();
        command.starts_with("\"z") && !command.contains("redisson_delay_queue_timeout")
    };
    let of_call = |call: &Vec<String>| {
        call.iter().filter(|command| !is_of_ids(command)).map(|command| elements(command)).sum()
    };
    calls.iter().map(of_call).max().unwrap_or_default()
}

/// A call reads about 1 MB, or 4 MB if it only searches, whatever the length of the payloads.
#[tokio::test(flavor = "multi_thread")]
async fn no_read_of_long_payloads_has_a_call_without_a_bound() {
    const BYTES: usize = 100_000;
    let server = Server::start();
    fill(&server, 64, BYTES);
    let (_client, ready, delayed) = still_text_queues(&server).await;
    let absent = ["absent".to_owned(), "neither".to_owned()];
    for (name, read) in reads(&ready, &delayed, &absent) {
        let monitor = Monitor::start(&server);
        read().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let calls = monitor.end(&server);
        let most = most_payloads(&calls) * BYTES;
        println!("{name}: {} calls, {most} bytes at most", calls.len());
        let searches = name.contains("contains");
        assert!(most <= if searches { 4_194_304 } else { 1_048_576 } + 16 * BYTES, "{name}: {most}");
    }
}

/// A call that changes or removes many of them reads no more than 4 MB, either.
#[tokio::test(flavor = "multi_thread")]
async fn no_change_of_long_payloads_has_a_call_without_a_bound() {
    const BYTES: usize = 100_000;
    const COUNT: usize = 128;
    let server = Server::start();
    fill(&server, COUNT, BYTES);
    let (_client, ready, delayed) = still_text_queues(&server).await;
    let is_bounded = async |name: &str, key: &str, expected, change: BoxFuture<'_, _>| {
        let monitor = Monitor::start(&server);
        let changed: redelay::Result<usize> = change.await;
        assert_eq!(changed.unwrap_or_else(|error| panic!("{name}: {error}")), expected, "{name}");
        let calls = monitor.end(&server);
        let of_call = |call: &Vec<String>| {
            call.iter().filter(|command| command.contains(key)).map(|command| elements(command)).sum()
        };
        let most = calls.iter().map(of_call).max().unwrap_or(0_usize) * BYTES;
        println!("{name}: {} calls, {most} bytes at most", calls.len());
        assert!(most <= 4_194_304 + 16 * BYTES, "{name}: {most}");
    };
    // Half of the messages wait.
    let (unsettled, dead) = (ready.unsettled(), ready.dead_letters());
    let change = unsettled.requeue_all(usize::MAX).boxed();
    is_bounded("unsettled.requeue_all", MESSAGES, COUNT / 2, change).await;
    let change = unsettled.remove_all(usize::MAX).boxed();
    is_bounded("unsettled.remove_all", MESSAGES, COUNT / 2, change).await;
    server.cmd(["DEL", MESSAGES, LEASES, RETRIES]);
    let change = dead.remove_all(COUNT / 2).boxed();
    is_bounded("dead_letters.remove_all", DEAD_MESSAGES, COUNT / 2, change).await;
    let change = dead.requeue_all(usize::MAX).boxed();
    is_bounded("dead_letters.requeue_all", DEAD_MESSAGES, COUNT / 2, change).await;
    is_bounded("release_all", MESSAGES, COUNT / 2, ready.release_all().boxed()).await;

    // A call reads as much of the jobs as of the list. Ten of these jobs are short.
    server.cmd(["FLUSHALL"]);
    let text = |n: usize| if n < 10 { String::new() } else { "x".repeat(BYTES) };
    let jobs: Vec<_> = (0..80).map(|n| (format!("{n:03}"), text(n))).collect();
    let absent = (0..30).map(|n| (format!("absent {n}"), String::new()));
    let short: Vec<_> = jobs[..10].iter().cloned().chain(absent).collect();
    delayed.offer_jobs(jobs.iter().map(|(id, text)| (id, text, HOUR))).await.unwrap();
    let cancel = async |jobs: &[(String, String)]| {
        let cancelled = delayed.cancel_all(jobs.iter().map(|(id, _)| id)).await?;
        Ok(cancelled.into_iter().filter(|cancelled| cancelled.is_removed()).count())
    };
    is_bounded("cancel_all of short ones", ORDERED_LIST, 10, cancel(&short).boxed()).await;
    is_bounded("cancel_all of most", JOBS, 69, cancel(&jobs[11..]).boxed()).await;
    is_bounded("cancel_all of one", JOBS, 1, cancel(&jobs[10..11]).boxed()).await;
    assert_eq!(server.get::<usize, _>(["EXISTS", ORDERED_LIST, TIMEOUT_SET, JOBS]), 0);
}

/// Somebody else has put them there. They are at the end that a call looks at first.
#[tokio::test(flavor = "multi_thread")]
async fn many_malformed_entries_hold_no_call_up() {
    for (count, bytes) in [(25_000, 10), (64, 100_000)] {
        let server = Server::start();
        let (_client, ready, delayed) = still_text_queues(&server).await;
        let put = |command: &str| {
            for from in (0..count).step_by(1000) {
                let some = (from..count.min(from + 1000)).map(|n| format!("{n:05}{}", "m".repeat(bytes)));
                server.cmd([command, ORDERED_LIST].into_iter().map(str::to_owned).chain(some));
            }
        };
        delayed.offer("first", HOUR).await.unwrap();
        delayed.offer("last", HOUR).await.unwrap();
        put("LPUSH");
        let monitor = Monitor::start(&server);
        assert_eq!(delayed.peek().await.unwrap().as_deref(), Some("first"));
        let calls = monitor.end(&server);
        println!("peek: {} calls, {} elements at most", calls.len(), most(&calls));
        assert!(most(&calls) <= 2000 && most(&calls) * bytes <= 1_048_576 + 16 * bytes, "{}", most(&calls));
        assert!(calls.len() <= 40, "{} calls", calls.len());

        put("RPUSH");
        let monitor = Monitor::start(&server);
        assert_eq!(delayed.poll_last_and_offer_first_to("{q}other").await.unwrap().as_deref(), Some("last"));
        let calls = monitor.end(&server);
        println!("poll_last: {} calls, {} elements at most", calls.len(), most(&calls));
        assert!(most(&calls) <= 2000 && most(&calls) * bytes <= 1_048_576 + 16 * bytes, "{}", most(&calls));
        assert_eq!(server.list(QUARANTINE).len(), 2 * count, "each with its score");
        assert_eq!(server.list("{q}other"), [b"last"]);
        assert_eq!(delayed.poll_last_and_offer_first_to("{q}other").await.unwrap().as_deref(), Some("first"));
        assert_eq!(
            delayed.poll_last_and_offer_first_to("{q}other").await.unwrap(),
            None,
            "only malformed ones"
        );
        assert_eq!(server.list(QUARANTINE).len(), 4 * count);
        assert!(ready.is_empty().await.unwrap() && delayed.is_empty().await.unwrap());

        put("LPUSH");
        let monitor = Monitor::start(&server);
        assert_eq!(delayed.poll().await.unwrap(), None, "only malformed ones");
        let calls = monitor.end(&server);
        println!("poll: {} calls, {} elements at most", calls.len(), most(&calls));
        assert!(most(&calls) <= 2000 && most(&calls) * bytes <= 1_048_576 + 16 * bytes, "{}", most(&calls));
        assert_eq!(server.list(QUARANTINE).len(), 6 * count);
    }
}

/// The sweep of the ids of jobs reads their entries.
#[tokio::test(flavor = "multi_thread")]
async fn long_jobs_are_swept_a_few_at_a_time() {
    const BYTES: usize = 100_000;
    let server = Server::start();
    fill(&server, 64, BYTES);
    // Their entries are gone.
    server.cmd(["DEL", TIMEOUT_SET, ORDERED_LIST]);
    let monitor = Monitor::start(&server);
    let client = patient_builder(&server).sweep_interval(ms(1000)).connect().await.unwrap();
    let _delayed = client.delayed_queue(&client.blocking_queue("q", codec::String));
    // The next call comes after a hundred times as long as this one took.
    until_async("the first are gone", || async { server.get::<usize, _>(["HLEN", JOBS]) < 64 }).await;
    let mut calls = monitor.end(&server);
    calls.retain(|call| {
        call.iter().any(|command| command.to_lowercase().starts_with("\"hscan\" \"redelay:jobs"))
    });
    let most = most(&calls) * BYTES;
    println!("{} calls, {most} bytes at most", calls.len());
    assert!(!calls.is_empty() && most <= 1_048_576 + 16 * BYTES, "{most}");
}

/// The sweep of notes reads the entries of their jobs, and all of them in the end.
#[tokio::test(flavor = "multi_thread")]
async fn notes_of_long_jobs_are_swept_a_few_at_a_time() {
    const BYTES: usize = 200_000;
    const ALL: usize = 8;
    let server = Server::start();
    let (client, _, delayed) = still_text_queues(&server).await;
    for n in 0..ALL {
        let payload = format!("{n:02}{}", "x".repeat(BYTES));
        delayed.offer(&payload, HOUR).id(n.to_string()).header("n", "v").await.unwrap();
    }
    client.shutdown().await;
    let monitor = Monitor::start(&server);
    let sweeping = patient_builder(&server).sweep_interval(ms(1000)).connect().await.unwrap();
    let _delayed = sweeping.delayed_queue(&sweeping.blocking_queue("q", codec::String));
    let cursor = || server.get::<Option<String>, _>(["HGET", CONTROL, "notes-at"]);
    // It rests a hundred times as long as its own work takes, up to 30 s: on a busy machine, for each.
    until_async_within(10 * MINUTE, "all have been looked at", || async { cursor().as_deref() == Some("0") })
        .await;
    sweeping.shutdown().await;
    let calls = monitor.end(&server);
    let reads = calls.iter().map(|call| {
        call.iter().filter(|command| command.to_lowercase().starts_with("\"hget\" \"redelay:jobs")).count()
    });
    let reads: Vec<usize> = reads.filter(|reads| *reads > 0).collect();
    println!("reads of each call: {reads:?}");
    assert!(reads.iter().sum::<usize>() >= ALL && reads.iter().all(|reads| *reads <= 6), "{reads:?}");
    assert_eq!(server.get::<usize, _>(["HLEN", NOTES]), ALL);
}

/// Leaves a claim of a pop, whose payload has so many bytes.
const CLAIM: &str =
    "redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack({'LPOP', 1, {string.rep('x', tonumber(ARGV[2]))}}))";

/// A page has no more than about 1 MB.
#[tokio::test]
async fn long_payloads_are_read_a_few_at_a_time() {
    const BYTES: usize = 100_000;
    let server = Server::start();
    let (_client, ready, delayed) = still_text_queues(&server).await;
    let payloads: Vec<_> = (0..64).map(|n| format!("{n:02}{}", "x".repeat(BYTES))).collect();
    for (n, payload) in payloads.iter().enumerate() {
        ready.put(payload).await.unwrap();
        delayed.offer(payload, HOUR).await.unwrap();
        let (id, bytes) = (n.to_string(), BYTES.to_string());
        server.cmd(["EVAL", CLAIM, "1", CLAIMS, &*id, &*bytes]);
    }
    let monitor = Monitor::start(&server);
    assert_eq!(ready.unconfirmed_pops(Duration::ZERO).read(None, 100).await.unwrap().len(), payloads.len());
    assert!(ready.read_all().await.unwrap() == payloads);
    assert!(delayed.read_all().await.unwrap() == payloads);
    let mut taken = Vec::new();
    while let more @ [_, ..] = &ready.poll_many(7).await.unwrap()[..] {
        taken.extend(more.iter().map(|payload| payload.as_ref().unwrap().clone()));
    }
    assert!(taken == payloads, "{}", taken.len());
    let mut polled = Vec::new();
    while let more @ [_, ..] = &delayed.poll_many(20).await.unwrap()[..] {
        polled.extend(more.iter().map(|payload| payload.as_ref().unwrap().clone()));
    }
    assert!(polled == payloads, "{}", polled.len());
    let calls = monitor.end(&server);
    let most = most(&calls) * BYTES;
    println!("{} calls, {most} bytes at most", calls.len());
    assert!(most <= 1_048_576 + 16 * BYTES, "{most}");
}
