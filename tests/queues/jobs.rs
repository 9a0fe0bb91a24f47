//! Jobs by id: each policy, each call of a handle, and what the server keeps of them.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use futures::future::{BoxFuture, FutureExt, join_all};
use redelay::delayed_queue::{Cancelled, EntryFormat, Offered};
use redelay::{Client, DelayedQueue, ErrorKind, codec};
use redelay_fixture::{Proxy, Server, until_async, until_async_within};
use redelay_support::{
    CONTROL, HOUR, JOBS, MINUTE, ORDERED_LIST, Queues, TARGET, TIMEOUT_SET, keys, lasting, ms,
    patient_builder, soon, still_builder, still_text_queues, text_queues,
};
use tokio_test::assert_pending;
use tokio_test::task::Spawn;

use crate::refusals::Writes;

fn due(offered: &Offered) -> SystemTime {
    match offered {
        Offered::Stored(due) | Offered::Kept(due) | Offered::Replaced(due) => *due,
        other => panic!("{other:?}"),
    }
}

/// The ids of the hash of jobs.
fn ids(server: &Server) -> Vec<String> {
    let mut ids: Vec<String> = server.get(["HKEYS", JOBS]);
    ids.sort();
    ids
}

async fn still() -> (Server, Client, DelayedQueue<String>) {
    let server = Server::start();
    let (client, _ready, delayed) = still_text_queues(&server).await;
    (server, client, delayed)
}

/// Case 48.
#[tokio::test]
async fn an_id_is_taken_while_its_job_is_pending_and_free_once_it_is_due() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let first = delayed.offer("first", MINUTE).id("17").await.unwrap();
    assert!(matches!(first, Offered::Stored(_)));
    let second = delayed.offer("second", HOUR).id("17").await.unwrap();
    assert_eq!(second, Offered::Kept(due(&first)));
    assert_eq!(delayed.len().await.unwrap(), 1);
    assert!(delayed.job("17").run_now().await.unwrap());
    assert_eq!(soon(ready.take()).await.unwrap(), "first");
    until_async("the id is free", || async { ids(&server).is_empty() }).await;
    assert!(matches!(delayed.offer("third", MINUTE).id("17").await.unwrap(), Offered::Stored(_)));
    client.shutdown().await;
}

#[tokio::test]
async fn each_policy_does_what_its_name_says() {
    let (server, client, delayed) = still().await;
    let job = delayed.job("a");
    let pending = async || job.get().await.unwrap().map(|job| (job.value, job.due));
    let first = due(&delayed.offer("1", HOUR).id("a").await.unwrap());
    assert_eq!(pending().await, Some(("1".to_owned(), first)));

    let replaced = delayed.offer("2", 2 * HOUR).id("a").replace().await.unwrap();
    assert!(matches!(replaced, Offered::Replaced(_)));
    assert_eq!(pending().await, Some(("2".to_owned(), due(&replaced))));
    assert!(due(&replaced) > first);

    let later = delayed.offer("3", 3 * HOUR).id("a").keep_earliest().await.unwrap();
    assert_eq!(later, Offered::Kept(due(&replaced)));
    let earlier = delayed.offer("4", MINUTE).id("a").keep_earliest().await.unwrap();
    assert!(matches!(earlier, Offered::Replaced(_)));
    assert_eq!(pending().await, Some(("4".to_owned(), due(&earlier))));

    // The same payload is the same entry, so only its time changes.
    let list = server.list(ORDERED_LIST);
    delayed.offer("4", HOUR).id("a").replace().await.unwrap();
    assert_eq!(server.list(ORDERED_LIST), list);
    assert_eq!(delayed.read_all().await.unwrap(), ["4"]);
    client.shutdown().await;
}

/// Case 49.
#[tokio::test]
async fn a_burst_is_debounced_to_its_last_payload() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let taker = tokio::spawn(async move { (soon(ready.take()).await.unwrap(), ready) });
    for number in 0..100 {
        let offered = delayed.offer(&number.to_string(), MINUTE).id("page").debounce(HOUR).await.unwrap();
        assert!(number == 0 || matches!(offered, Offered::Replaced(_)), "{number}: {offered:?}");
    }
    assert_eq!(delayed.len().await.unwrap(), 1);
    assert!(delayed.job("page").run_now().await.unwrap());
    let (taken, ready) = taker.await.unwrap();
    assert_eq!(taken, "99");
    assert_eq!((delayed.len().await.unwrap(), ready.len().await.unwrap()), (0, 0));
    client.shutdown().await;
}

#[tokio::test]
async fn a_debounced_job_waits_no_longer_than_its_maximum() {
    let (_server, client, delayed) = still().await;
    // So long that the job is not due meanwhile.
    let (delay, most) = (ms(20_000), ms(20_010));
    let first = due(&delayed.offer("1", delay).id("page").debounce(most).await.unwrap());
    for _ in 0..5 {
        tokio::time::sleep(ms(5)).await;
        let next = due(&delayed.offer("2", delay).id("page").debounce(most).await.unwrap());
        assert!(next <= first + ms(10), "{:?} after the first", next.duration_since(first));
    }
    client.shutdown().await;
}

/// Case 53.
#[tokio::test]
async fn a_throttle_covers_more_than_the_time_for_which_a_job_is_pending() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let offer = |text: &str| delayed.offer(text, Duration::ZERO);
    let window = HOUR;
    assert!(matches!(offer("1").id("a").throttle(window).await.unwrap(), Offered::Stored(_)));
    assert_eq!(soon(ready.take()).await.unwrap(), "1");
    let Offered::Throttled(until) = offer("2").id("a").throttle(window).await.unwrap() else {
        panic!("it is delivered, but the window is not over")
    };
    assert!(matches!(offer("3").id("b").throttle(window).await.unwrap(), Offered::Stored(_)), "another id");
    // By the payload.
    assert!(matches!(offer("4").throttle(window).await.unwrap(), Offered::Stored(_)));
    assert!(matches!(offer("4").throttle(window).await.unwrap(), Offered::Throttled(_)));
    assert!(matches!(offer("5").throttle(window).await.unwrap(), Offered::Stored(_)));
    let left = until.duration_since(SystemTime::now()).unwrap_or_default();
    assert!(left <= HOUR && left > HOUR / 2, "{left:?}");
    // A short one, whose end is certain.
    let short = ms(100);
    for text in ["6", "7"] {
        assert!(matches!(offer(text).id("c").throttle(short).await.unwrap(), Offered::Stored(_)), "{text}");
        while soon(ready.take()).await.unwrap() != text {}
        tokio::time::sleep(short + ms(20)).await;
    }
    client.shutdown().await;
}

#[tokio::test]
async fn a_throttle_holds_back_throttled_offers_only_and_nothing_ends_it_early() {
    let (_server, client, delayed) = still().await;
    let job = delayed.job("a");
    let throttled = async || delayed.offer("1", MINUTE).id("a").throttle(HOUR).await.unwrap();
    let other = async || delayed.offer("2", MINUTE).id("a").await.unwrap();
    assert!(matches!(other().await, Offered::Stored(_)));
    assert!(matches!(throttled().await, Offered::Kept(_)), "it begins no window");
    assert!(job.cancel().await.unwrap().is_removed());
    assert!(matches!(throttled().await, Offered::Stored(_)));
    assert!(matches!(other().await, Offered::Kept(_)));
    assert!(job.cancel().await.unwrap().is_removed());
    assert!(matches!(throttled().await, Offered::Throttled(_)), "after a cancellation");
    assert!(matches!(other().await, Offered::Stored(_)));
    assert!(delayed.clear().await.unwrap());
    assert!(matches!(throttled().await, Offered::Throttled(_)), "after a clear");
    client.shutdown().await;
}

/// The server has executed the first try of the offer, but nobody knows.
#[tokio::test]
async fn an_offer_after_an_unknown_outcome_finds_the_job_of_the_first_one() {
    let server = Server::start();
    let Queues { client, delayed, .. } = Queues::of_texts(still_builder(&server)).await;
    server.freeze();
    let unknown = soon(delayed.offer("1", HOUR).id("a").timeout(ms(200))).await.unwrap_err();
    assert!(unknown.is_outcome_unknown(), "{unknown}");
    server.thaw();
    let again = soon(delayed.offer("1", HOUR).id("a")).await.unwrap();
    assert!(matches!(again, Offered::Stored(_) | Offered::Kept(_)), "{again:?}");
    assert_eq!(delayed.read_all().await.unwrap(), ["1"]);
    client.shutdown().await;
}

#[tokio::test]
async fn an_entry_that_was_polled_and_goes_back_does_not_ask_for_its_id() {
    let (server, client, delayed) = still().await;
    delayed.offer("1", HOUR).id("a").await.unwrap();
    server.freeze();
    let mut poll = Box::pin(delayed.poll());
    assert!(tokio::time::timeout(ms(50), &mut poll).await.is_err());
    server.thaw();
    // Polled, but nobody has read it.
    until_async("it is polled", || async { server.list(ORDERED_LIST).is_empty() }).await;
    assert!(matches!(delayed.offer("2", HOUR).id("a").await.unwrap(), Offered::Stored(_)));
    drop(poll);
    until_async("it is back", || async { server.list(ORDERED_LIST).len() == 2 }).await;
    assert_eq!(delayed.job("a").get().await.unwrap().map(|job| job.value).as_deref(), Some("2"));
    client.shutdown().await;
}

#[tokio::test]
async fn a_handle_finds_reschedules_and_cancels_its_job() {
    let (server, client, delayed) = still().await;
    let job = delayed.job("order-17");
    assert!(!job.exists().await.unwrap() && job.get().await.unwrap().is_none());
    assert!(!job.cancel().await.unwrap().is_removed() && !job.reschedule(HOUR).await.unwrap());
    let first = due(&delayed.offer("17", HOUR).id("order-17").await.unwrap());
    let pending = job.get().await.unwrap().unwrap();
    assert_eq!((&*pending.value, pending.due), ("17", first));
    assert!(pending.first_offered <= first - HOUR + MINUTE && pending.first_offered >= first - HOUR - MINUTE);
    assert!(job.reschedule(2 * HOUR).await.unwrap());
    let second = job.get().await.unwrap().unwrap();
    assert!(second.due >= first + HOUR);
    assert_eq!(second.first_offered, pending.first_offered);
    let at = first - MINUTE;
    assert!(job.reschedule_at(at).await.unwrap());
    assert_eq!(job.get().await.unwrap().unwrap().due, at);
    assert!(job.exists().await.unwrap());
    assert!(job.cancel().await.unwrap().is_removed());
    assert!(!job.exists().await.unwrap() && !job.cancel().await.unwrap().is_removed());
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    client.shutdown().await;
}

/// Case 51.
#[tokio::test]
async fn an_id_is_free_at_once_when_somebody_else_removes_or_moves_the_job() {
    let (server, client, delayed) = still().await;
    let remove = |entry: &[u8]| {
        server.cmd([b"ZREM", TIMEOUT_SET.as_bytes(), entry]);
        server.cmd([b"LREM", ORDERED_LIST.as_bytes(), b"1", entry]);
    };
    delayed.offer("1", HOUR).id("a").await.unwrap();
    remove(&server.list(ORDERED_LIST)[0]);
    assert!(!delayed.job("a").exists().await.unwrap());
    assert!(!delayed.job("a").reschedule(MINUTE).await.unwrap());
    assert!(!delayed.job("a").cancel().await.unwrap().is_removed());
    assert!(ids(&server).is_empty(), "the field was found when it was touched");
    delayed.offer("1", HOUR).id("a").await.unwrap();
    remove(&server.list(ORDERED_LIST)[0]);
    assert!(matches!(delayed.offer("2", HOUR).id("a").await.unwrap(), Offered::Stored(_)));
    assert_eq!(delayed.read_all().await.unwrap(), ["2"]);
    client.shutdown().await;
}

#[tokio::test]
async fn a_transfer_forgets_the_ids_of_what_it_moves() {
    let (server, client, delayed) = still().await;
    let jobs: Vec<_> = (0..300).map(|number| (format!("job-{number}"), number.to_string())).collect();
    let soon_due = |(id, value): &(String, String)| (id.clone(), value.clone(), Duration::ZERO);
    let jobs: Vec<_> = jobs.iter().map(soon_due).collect();
    delayed.offer_jobs(jobs.iter().map(|(id, value, delay)| (id, value, *delay))).await.unwrap();
    delayed.offer("later", HOUR).id("later").await.unwrap();
    delayed.offer("no job", Duration::ZERO).await.unwrap();
    assert_eq!(ids(&server).len(), 301);
    let (other, _ready, _delayed) = text_queues(&server).await;
    until_async("all are moved", || async { server.list(TARGET).len() == 301 }).await;
    assert_eq!(ids(&server), ["later"]);
    other.shutdown().await;
    client.shutdown().await;
}

fn removed(answers: &[Cancelled]) -> usize {
    answers.iter().filter(|answer| answer.is_removed()).count()
}

#[tokio::test]
async fn many_jobs_are_offered_and_cancelled_at_once() {
    let (server, client, delayed) = still().await;
    let numbers: Vec<String> = (0..2500).map(|number| number.to_string()).collect();
    let jobs = || numbers.iter().map(|number| (number, number, HOUR));
    let offered = delayed.offer_jobs(jobs()).await.unwrap();
    assert_eq!(offered.len(), numbers.len());
    assert!(offered.iter().all(|offered| matches!(offered, Offered::Stored(_))));
    let again = delayed.offer_jobs(jobs()).await.unwrap();
    assert!(again.iter().zip(&offered).all(|(again, first)| *again == Offered::Kept(due(first))));
    assert_eq!(server.list(ORDERED_LIST).len(), numbers.len());
    // A few by themselves, many in passes, and some that are not there.
    use Cancelled::{NotFound, Removed};
    assert_eq!(
        delayed.cancel_all(["3", "2000", "none", "3"]).await.unwrap(),
        [Removed, Removed, NotFound, NotFound]
    );
    let even: Vec<_> = numbers.iter().step_by(2).cloned().collect();
    assert_eq!(removed(&delayed.cancel_all(even.iter().chain(&even)).await.unwrap()), even.len() - 1);
    let odd: Vec<_> = numbers.iter().skip(1).step_by(2).filter(|number| *number != "3").cloned().collect();
    assert_eq!(delayed.read_all().await.unwrap(), odd);
    assert_eq!(server.zset(TIMEOUT_SET).len(), odd.len());
    assert_eq!(ids(&server).len(), odd.len());
    client.shutdown().await;
}

/// An entry that is in one of the structures only must not be searched for ever.
#[tokio::test]
async fn jobs_that_are_not_in_the_list_are_cancelled() {
    let (server, client, delayed) = still().await;
    let numbers: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    delayed.offer_jobs(numbers.iter().map(|number| (number, number, HOUR))).await.unwrap();
    server.cmd(["DEL", ORDERED_LIST]);
    assert_eq!(removed(&soon(delayed.cancel_all(&numbers)).await.unwrap()), 40);
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    client.shutdown().await;
}

#[tokio::test]
async fn two_jobs_with_one_id_in_one_call_are_one() {
    let (_server, client, delayed) = still().await;
    let [one, other] = ["1", "2"].map(str::to_owned);
    let both = || delayed.offer_jobs([("a", &one, HOUR), ("a", &other, MINUTE)]);
    assert!(matches!(both().await.unwrap()[..], [Offered::Stored(_), Offered::Kept(_)]));
    assert_eq!(delayed.read_all().await.unwrap(), ["1"]);
    delayed.job("a").cancel().await.unwrap();
    assert!(matches!(both().replace().await.unwrap()[..], [Offered::Stored(_), Offered::Replaced(_)]));
    assert_eq!(delayed.read_all().await.unwrap(), ["2"]);
    delayed.job("a").cancel().await.unwrap();
    assert!(matches!(both().throttle(HOUR).await.unwrap()[..], [Offered::Stored(_), Offered::Throttled(_)]));
    client.shutdown().await;
}

/// What Redisson sees of a job is an ordinary entry.
#[tokio::test]
async fn an_id_is_the_id_of_the_entry() {
    let (server, client, delayed) = still().await;
    let id = [0xff; 255];
    delayed.offer("payload", HOUR).id(id).await.unwrap();
    let entry = &server.list(ORDERED_LIST)[0];
    assert_eq!(entry[0], 255);
    assert_eq!(entry[1..256], id);
    assert_eq!(entry[256..264], 7_u64.to_le_bytes());
    assert_eq!(&entry[264..], b"payload");
    assert!(delayed.job(id).cancel().await.unwrap().is_removed());
    client.shutdown().await;
}

#[tokio::test]
async fn what_is_no_id_is_refused() {
    let (server, client, delayed) = still().await;
    let kind = |result: redelay::Result<Offered>| result.unwrap_err().kind();
    for id in [&[][..], &[0; 256]] {
        assert_eq!(kind(delayed.offer("1", HOUR).id(id).await), ErrorKind::Invalid);
        assert_eq!(delayed.job(id).get().await.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(delayed.cancel_all([id]).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let none = delayed.offer("1", HOUR).id("").await.unwrap_err().to_string();
    assert!(none.ends_with("an id needs 1 to 255 bytes; this one has none"), "{none}");
    let impatient = delayed.offer("1", HOUR).id("a").debounce(MINUTE).await.unwrap_err();
    assert_eq!(impatient.kind(), ErrorKind::Invalid);
    assert!(impatient.to_string().ends_with("raise debounce(…), or lower the delay"), "{impatient}");
    assert_eq!(kind(delayed.offer("1", HOUR).id("a").throttle(Duration::MAX).await), ErrorKind::Invalid);
    assert_eq!(kind(delayed.offer("1", HOUR).id("a").throttle(Duration::ZERO).await), ErrorKind::Invalid);
    assert_eq!(kind(delayed.offer("1", HOUR).throttle(Duration::ZERO).await), ErrorKind::Invalid);
    let legacy = delayed.clone().with_entry_format(EntryFormat::Legacy);
    assert_eq!(kind(legacy.offer("1", HOUR).id("a").await), ErrorKind::Invalid);
    assert!(matches!(legacy.offer("1", HOUR).throttle(HOUR).await.unwrap(), Offered::Stored(_)));
    assert_eq!(delayed.offer_jobs(Vec::<(String, &String, Duration)>::new()).await.unwrap(), []);
    assert_eq!(server.list(ORDERED_LIST).len(), 1);
    client.shutdown().await;
}

/// Only an id can find a pending job.
#[tokio::test]
async fn an_option_about_a_pending_job_needs_an_id() {
    let (server, client, delayed) = still().await;
    let throttled = || delayed.offer("1", HOUR).throttle(HOUR);
    for (option, offer) in [
        ("replace()", throttled().replace()),
        ("keep_earliest()", throttled().keep_earliest()),
        ("debounce()", throttled().debounce(2 * HOUR)),
    ] {
        let error = offer.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(option) && error.to_string().contains("call id("), "{error}");
    }
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    assert!(matches!(throttled().keep().await.unwrap(), Offered::Stored(_)));
    let id = delayed.offer("2", HOUR).id("a").throttle(HOUR).debounce(2 * HOUR).await.unwrap();
    assert!(matches!(id, Offered::Stored(_)));
    client.shutdown().await;
}

/// The fields of jobs that Java has moved are found, with little of the server's time.
#[tokio::test]
async fn stale_ids_are_swept() {
    let (server, client, delayed) = still().await;
    offer_numbers(&delayed, 0..3000, HOUR).await;
    remove_as_java(&server, 1000);
    server.cmd(["HSET", JOBS, "junk", "x"]);
    let other = sweeping(&server).await;
    until_async_within(10 * MINUTE, "they are gone", || async { ids(&server).len() == 2000 }).await;
    other.client.shutdown().await;
    client.shutdown().await;
}

/// Among many, a pass finds the entries that were due; or all, if most are gone.
#[tokio::test]
async fn stale_ids_among_many_are_swept() {
    let (server, client, delayed) = still().await;
    offer_numbers(&delayed, 0..1000, Duration::ZERO).await;
    offer_numbers(&delayed, 1000..13_000, HOUR).await;
    remove_as_java(&server, 2000);
    let other = sweeping(&server).await;
    let is_due = |id: &String| id.parse::<u32>().unwrap() < 1000;
    // The calls take a hundredth of the time, and a busy machine makes each longer.
    until_async_within(10 * MINUTE, "those that were due are gone", || async {
        !ids(&server).iter().any(is_due)
    })
    .await;
    other.client.shutdown().await;
    assert_eq!(ids(&server).len(), 12_000, "of which 1,000 are stale");

    remove_as_java(&server, 8000);
    server.cmd(["HDEL", CONTROL, "jobs", "jobs-at"]);
    let other = sweeping(&server).await;
    until_async_within(10 * MINUTE, "they are gone", || async { ids(&server).len() == 3000 }).await;
    other.client.shutdown().await;
    client.shutdown().await;
}

async fn offer_numbers(delayed: &DelayedQueue<String>, numbers: Range<u32>, delay: Duration) {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    delayed.offer_jobs(numbers.iter().map(|number| (number, number, delay))).await.unwrap();
}

/// Removes the first entries of the list.
fn remove_as_java(server: &Server, count: usize) {
    for entries in server.list(ORDERED_LIST)[..count].chunks(1000) {
        let entries = entries.iter().map(Vec::as_slice);
        server.cmd([b"ZREM", TIMEOUT_SET.as_bytes()].into_iter().chain(entries));
    }
    server.cmd(["LTRIM", ORDERED_LIST, &count.to_string(), "-1"]);
}

async fn sweeping(server: &Server) -> Queues<i64> {
    Queues::of_numbers(patient_builder(server).sweep_interval(Duration::from_secs(1))).await
}

/// The list is scanned from the end that the job is nearer to. A second element like the entry shows from
/// which.
#[tokio::test]
async fn a_job_is_removed_from_the_nearer_end_of_a_long_list() {
    let (server, client, delayed) = still().await;
    offer_numbers(&delayed, 0..2500, HOUR).await;
    tokio::time::sleep(ms(5)).await;
    offer_numbers(&delayed, 2500..5000, HOUR).await;
    let entries = server.list(ORDERED_LIST);
    let is_first_left = |at: usize| server.list(ORDERED_LIST).first() == Some(&entries[at]);
    let is_last_left = |at: usize| server.list(ORDERED_LIST).last() == Some(&entries[at]);
    for (at, is_near_head) in [(10, true), (2400, true), (2600, false), (4990, false)] {
        for push in ["LPUSH", "RPUSH"] {
            server.cmd([push.as_bytes(), ORDERED_LIST.as_bytes(), &entries[at]]);
        }
        assert!(delayed.job(at.to_string()).cancel().await.unwrap().is_removed());
        // The one in between stays, too.
        assert_eq!((is_first_left(at), is_last_left(at)), (!is_near_head, is_near_head), "{at}");
        server.cmd([b"LREM", ORDERED_LIST.as_bytes(), b"0", &entries[at]]);
    }
    server.cmd([b"RPUSH", ORDERED_LIST.as_bytes(), &entries[20]]);
    delayed.offer("other", HOUR).id("20").replace().await.unwrap();
    let list = server.list(ORDERED_LIST);
    let copies: Vec<usize> = (0..list.len()).filter(|&at| list[at] == entries[20]).collect();
    assert_eq!(copies, [list.len() - 2], "the new entry is the last one");

    // One that was replaced lies near the tail, however old its first offer is.
    let replaced = server.list(ORDERED_LIST).pop().unwrap();
    server.cmd([b"LPUSH", ORDERED_LIST.as_bytes(), &replaced]);
    delayed.offer("another", HOUR).id("20").replace().await.unwrap();
    assert_eq!(server.list(ORDERED_LIST)[0], replaced);
    client.shutdown().await;
}

/// Calls on a queue with the jobs `a` and 0 to 39.
const WRITES: Writes = Writes {
    calls: &[
        ("debounce", |q| {
            async move { q.offer("payload", HOUR).id("a").debounce(HOUR).await.map(drop) }.boxed()
        }),
        ("offer", |q| async move { q.offer("1", HOUR).id("c").await.map(drop) }.boxed()),
        ("replace", |q| async move { q.offer("1", HOUR).id("a").replace().await.map(drop) }.boxed()),
        ("throttle", |q| async move { q.offer("1", HOUR).id("c").throttle(HOUR).await.map(drop) }.boxed()),
        ("offer_jobs", |q| {
            async move { q.offer_jobs([("c", &"1".to_owned(), HOUR)]).await.map(drop) }.boxed()
        }),
        ("cancel", |q| async move { q.job("a").cancel().await.map(drop) }.boxed()),
        ("cancel_all", |q| async move { q.cancel_all(numbers(40)).await.map(drop) }.boxed()),
        ("reschedule", |q| async move { q.job("a").reschedule(MINUTE).await.map(drop) }.boxed()),
        ("run_now", |q| async move { q.job("a").run_now().await.map(drop) }.boxed()),
    ],
    fill: |q| {
        async move {
            let numbers = numbers(40);
            q.offer_jobs(numbers.iter().map(|number| (number, number, HOUR))).await.unwrap();
            q.offer("payload", HOUR).id("a").await.unwrap();
        }
        .boxed()
    },
    keys: 3,
};

/// The texts of the first numbers.
fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn a_call_without_a_permission_is_done_or_changes_nothing() {
    let commands = [
        "time", "get", "set", "pttl", "hget", "hset", "hdel", "zadd", "zrem", "zscore", "zrange", "llen",
        "lrem", "lset", "lrange", "rpush", "ltrim", "publish",
    ];
    WRITES.without_permissions(&commands).await;
}

#[tokio::test]
async fn keys_of_another_type_are_refused_and_stay() {
    for key in [JOBS, TIMEOUT_SET] {
        WRITES.with_a_text_as(key, &[]).await;
    }
    WRITES.with_a_text_as(ORDERED_LIST, &["debounce", "reschedule", "run_now"]).await;
}

/// A server that is full stores no job, and lets those that are there be cancelled.
#[tokio::test]
async fn without_memory_no_job_is_stored() {
    let stores = ["offer", "replace", "throttle", "offer_jobs"];
    let (server, client, delayed) = WRITES.without_memory(&stores).await;
    assert!(delayed.job("a").cancel().await.unwrap().is_removed());
    assert_eq!(removed(&delayed.cancel_all(numbers(40)).await.unwrap()), 40);
    assert_eq!(lasting(&server).len(), 0);
    client.shutdown().await;
}

/// A call must not hold up others for long, on any server. How many jobs are too many for one call depends on
/// the machine.
#[tokio::test]
async fn many_jobs_among_many_are_cancelled_in_several_calls() {
    for pending in [100_000, 200_000, 400_000, 800_000, 1_600_000] {
        let (server, client, delayed) = still().await;
        with_numbers(&delayed, pending).await;
        let some = (0..pending).step_by(pending / 100).map(|number| number.to_string());
        let before = server.command_calls("evalsha");
        assert_eq!(removed(&delayed.cancel_all(some).await.unwrap()), 100);
        let calls = server.command_calls("evalsha") - before;
        assert_eq!(delayed.len().await.unwrap(), pending - 100);
        client.shutdown().await;
        if calls > 2 {
            return;
        }
    }
    panic!("one call looked at everything");
}

/// Offers this many jobs, whose ids are their numbers, and runs the script once.
async fn with_numbers(delayed: &DelayedQueue<String>, pending: usize) {
    for numbers in numbers(pending).chunks(10_000) {
        delayed.offer_jobs(numbers.iter().map(|number| (number, number, HOUR))).await.unwrap();
    }
    assert!(!delayed.job("none").cancel().await.unwrap().is_removed());
}

#[tokio::test]
async fn concurrent_cancels_share_calls() {
    let (server, client, delayed) = still().await;
    with_numbers(&delayed, 20_000).await;
    let cancel = |id: String| async { delayed.job(id).cancel().await.unwrap().is_removed() };
    let before = server.command_calls("evalsha");
    assert!(cancel("77".to_owned()).await);
    assert_eq!(server.command_calls("evalsha") - before, 1, "a lone cancel");
    let ids = (0..20_000).step_by(200).map(|number| number.to_string());
    let ids = ids.chain(["none", "77", "0", "5000", "5000"].map(str::to_owned));
    let cancelled = join_all(ids.map(cancel)).await;
    assert_eq!(cancelled.len(), 105);
    assert!(cancelled[..100].iter().all(|cancelled| *cancelled), "each is cancelled once");
    assert!(!cancelled[100..].iter().any(|cancelled| *cancelled), "they are unknown, or were cancelled");
    assert!(server.command_calls("evalsha") - before <= 25, "{}", server.command_calls("evalsha") - before);
    assert_eq!(delayed.len().await.unwrap(), 19_899);
    assert_eq!((server.list(ORDERED_LIST).len(), ids_of(&server)), (19_899, 19_899));
    client.shutdown().await;
}

fn ids_of(server: &Server) -> usize {
    server.get(["HLEN", JOBS])
}

/// A client behind a proxy that holds the replies, a queue with the jobs 0 to 9, and the cancel of 0, which
/// the server has executed.
async fn cancelling() -> (Server, Proxy, Queues<String>, Spawn<BoxFuture<'static, redelay::Result<bool>>>) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_texts(still_builder(&proxy)).await;
    with_numbers(&queues.delayed, 10).await;
    proxy.hold_replies(true);
    let mut first = cancel(&queues, "0");
    assert_pending!(first.poll());
    until_async("it is cancelled", || std::future::ready(ids_of(&server) == 9 && proxy.held() > 0)).await;
    (server, proxy, queues, first)
}

fn cancel(queues: &Queues<String>, id: &str) -> Spawn<BoxFuture<'static, redelay::Result<bool>>> {
    let job = queues.delayed.job(id);
    tokio_test::task::spawn(async move { job.cancel().await.map(|cancelled| cancelled.is_removed()) }.boxed())
}

#[tokio::test]
async fn a_dropped_cancel_disturbs_no_other() {
    let (server, proxy, queues, first) = cancelling().await;
    let [mut second, mut third, mut again, mut fourth] = ["1", "2", "2", "3"].map(|id| cancel(&queues, id));
    for cancel in [&mut second, &mut third, &mut again, &mut fourth] {
        assert_pending!(cancel.poll());
    }
    // Time for a task that would send them already.
    tokio::time::sleep(ms(50)).await;
    drop((first, second, third));
    let before = server.command_calls("evalsha");
    proxy.hold_replies(false);
    assert!(soon(again).await.unwrap(), "the other caller for this job was dropped");
    assert!(soon(fourth).await.unwrap());
    assert_eq!(server.command_calls("evalsha") - before, 1, "they went together");
    assert!(queues.delayed.job("1").exists().await.unwrap(), "it was dropped before it was sent");
    assert_eq!(queues.delayed.len().await.unwrap(), 7);
    queues.client.shutdown().await;
}

#[tokio::test]
async fn a_lost_reply_is_an_error_for_those_whom_it_concerns() {
    let (_server, proxy, queues, mut first) = cancelling().await;
    let mut second = cancel(&queues, "1");
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    proxy.cut();
    proxy.hold_replies(false);
    let error = soon(first).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(error.to_string().contains("`job().cancel` on the delayed queue"), "{error}");
    assert!(soon(second).await.unwrap());
    assert!(!queues.delayed.job("0").cancel().await.unwrap().is_removed());
    queues.client.shutdown().await;
}

#[tokio::test]
async fn a_refusal_is_an_error_for_each_caller() {
    let (server, client, delayed) = still().await;
    with_numbers(&delayed, 100).await;
    server.cmd(["DEL", ORDERED_LIST]);
    server.cmd(["SET", ORDERED_LIST, "text"]);
    let jobs: Vec<_> = (0..50).map(|number| delayed.job(number.to_string())).collect();
    let cancelled = join_all(jobs.iter().map(|job| job.cancel()));
    for result in soon(cancelled).await {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("`job().cancel` on the delayed queue"), "{error}");
    }
    assert_eq!(ids_of(&server), 100);
    client.shutdown().await;
}

/// An entry that is pending under the id of a job, with its payload, cannot be stored a second time. It is
/// that job, whether somebody has deleted what the server knew of it, or it is another offer's.
#[tokio::test]
async fn an_entry_with_the_id_of_a_job_is_that_job() {
    for other in ["a job without its field", "an entry with an id of 16 bytes"] {
        let (server, client, delayed) = still().await;
        let (id, first) = if other == "a job without its field" {
            let first = due(&delayed.offer("payload", HOUR).id("job").await.unwrap());
            server.cmd(["DEL", JOBS]);
            (b"job".to_vec(), first)
        } else {
            let first = delayed.offer("payload", HOUR).await.unwrap().due();
            (server.list(ORDERED_LIST)[0][1..=16].to_vec(), first)
        };
        let kept = delayed.offer("payload", MINUTE).id(&id).await.unwrap();
        assert_eq!(kept, Offered::Kept(first), "{other}");
        assert_eq!(delayed.job(&id).get().await.unwrap().unwrap().due, first, "{other}");
        server.cmd(["DEL", JOBS]);
        assert_eq!(
            delayed.offer("payload", 2 * HOUR).id(&id).keep_earliest().await.unwrap(),
            kept,
            "{other}"
        );
        server.cmd(["DEL", JOBS]);
        let replaced = delayed.offer("payload", MINUTE).id(&id).replace().await.unwrap();
        assert!(matches!(replaced, Offered::Replaced(at) if at < first), "{other}: {replaced:?}");
        assert_eq!(delayed.job(&id).get().await.unwrap().unwrap().due, due(&replaced), "{other}");
        server.cmd(["DEL", JOBS]);
        // With another payload, it is another entry. Nothing tells that the first one is a job.
        assert!(matches!(delayed.offer("other", MINUTE).id(&id).await.unwrap(), Offered::Stored(_)));
        assert_eq!(delayed.len().await.unwrap(), 2, "{other}");
        client.shutdown().await;
    }
}

/// A retry after a lost reply gets the corrected answer, too.
#[tokio::test]
async fn a_second_try_of_an_offer_that_kept_an_entry_says_so() {
    let (server, client, delayed) = still().await;
    // From now on, the server knows the script.
    let another = client.delayed_queue(&client.blocking_queue::<String>("another", codec::String));
    another.offer("payload", HOUR).id("job").throttle(HOUR).await.unwrap();
    let first = due(&delayed.offer("payload", HOUR).id("job").await.unwrap());
    server.cmd(["DEL", JOBS]);
    let proxy = Proxy::start(server.port());
    let other = Queues::of_texts(still_builder(&proxy)).await;
    other.delayed.len().await.unwrap();
    proxy.hold_replies(true);
    let offer = tokio::spawn(other.delayed.offer("payload", MINUTE).id("job").throttle(HOUR));
    until_async("it is executed", || async { ids(&server) == ["job"] }).await;
    proxy.cut();
    proxy.hold_replies(false);
    assert_eq!(soon(offer).await.unwrap().unwrap(), Offered::Kept(first));
    let throttled = delayed.offer("payload", MINUTE).id("job").throttle(HOUR).await.unwrap();
    assert_eq!(throttled, Offered::Kept(first), "no time has started");
}
