//! What redelay removes is no job any more: nothing that travelled with it reaches an equal payload that is
//! offered later, and its id is free.

use std::task::Poll;
use std::time::{Duration, SystemTime};

use redelay::delayed_queue::{Cancelled, Offered};
use redelay::{BlockingQueue, Client, DelayedQueue, Delivery, ErrorKind};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    HOUR, JOBS, MINUTE, MORE_NOTES, NOTES, ORDERED_LIST, TIMEOUT_SET, ms, soon, still_text_queues,
};

type Removal = for<'a> fn(&'a BlockingQueue<String>, &'a DelayedQueue<String>) -> Removed<'a>;
type Removed<'a> = std::pin::Pin<Box<dyn Future<Output = redelay::Result<bool>> + Send + 'a>>;

async fn receive(queue: &BlockingQueue<String>) -> Delivery<String> {
    soon(queue.receiver().receive()).await.unwrap()
}

/// What is left of jobs: their ids, and what would travel with them.
fn left(server: &Server) -> (usize, usize, usize) {
    (server.get(["HLEN", JOBS]), server.get(["HLEN", NOTES]), server.get(["ZCARD", MORE_NOTES]))
}

/// The ways to remove the payload "1", which is pending.
const OF_PENDING: &[(&str, Removal)] = &[
    ("remove", |_, delayed| Box::pin(delayed.remove("1"))),
    ("remove_all", |_, delayed| Box::pin(async { delayed.remove_all(&["1".to_owned()]).await })),
    ("retain_all", |_, delayed| Box::pin(async { delayed.retain_all(&["2".to_owned()]).await })),
    ("poll", |_, delayed| Box::pin(async { Ok(delayed.poll().await?.is_some()) })),
    ("poll_many", |_, delayed| Box::pin(async { Ok(delayed.poll_many(9).await?.len() == 1) })),
    ("poll_last_and_offer_first_to", |_, delayed| {
        Box::pin(async { Ok(delayed.poll_last_and_offer_first_to("{q}other").await?.is_some()) })
    }),
    ("clear", |_, delayed| Box::pin(delayed.clear())),
    ("delete", |_, delayed| Box::pin(delayed.delete())),
];

/// The same of a payload that is ready.
const OF_READY: &[(&str, Removal)] = &[
    ("remove", |ready, _| Box::pin(ready.remove("1"))),
    ("remove_all", |ready, _| Box::pin(async { ready.remove_all(&["1".to_owned()]).await })),
    ("retain_all", |ready, _| Box::pin(async { ready.retain_all(&["2".to_owned()]).await })),
    ("clear", |ready, _| Box::pin(ready.clear())),
    ("delete", |ready, _| Box::pin(ready.delete())),
];

/// Transfers due entries until so many payloads are ready.
async fn transfer(client: &Client, ready: &BlockingQueue<String>, count: usize) {
    until_async("all are ready", || async {
        client.pump("q").transfer().await.unwrap();
        ready.len().await.unwrap() == count
    })
    .await;
}

/// A job with this payload was removed: an equal payload that is offered after it has expired is delivered,
/// and is none.
async fn is_forgotten(
    server: &Server,
    ready: &BlockingQueue<String>,
    delayed: &DelayedQueue<String>,
    what: &str,
) {
    // After a poll, a task forgets it.
    until_async(what, || async { left(server) == (0, 0, 0) }).await;
    assert_eq!(delayed.job("a").state().await.unwrap(), None, "{what}");
    tokio::time::sleep(ms(20)).await;
    ready.put("1").await.unwrap();
    let delivery = receive(ready).await;
    assert_eq!((delivery.job_id(), delivery.headers().count()), (None, 0), "{what}");
    delivery.ack().await.unwrap();
    assert_eq!(ready.stats().await.unwrap().receiving.expired, 0, "{what}");
}

#[tokio::test]
async fn an_equal_payload_that_is_offered_later_is_no_job() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    for holds in [false, true] {
        for (what, removal) in OF_PENDING {
            let offer = delayed.offer("1", ms(5)).id("a").header("n", "v").expires_after(ms(10));
            let offer = offer.discard_if_expired();
            let offered = if holds { offer.until_done() } else { offer }.await.unwrap();
            assert!(matches!(offered, Offered::Stored(_)), "{what}");
            assert!(removal(&ready, &delayed).await.unwrap(), "{what}");
            is_forgotten(&server, &ready, &delayed, &format!("{what} of pending, {holds}")).await;
        }
        for (what, removal) in OF_READY {
            let offer = delayed.offer("1", Duration::ZERO).id("a").header("n", "v").expires_after(ms(10));
            let offer = offer.discard_if_expired();
            if holds { offer.until_done() } else { offer }.await.unwrap();
            transfer(&client, &ready, 1).await;
            assert!(removal(&ready, &delayed).await.unwrap(), "{what}");
            is_forgotten(&server, &ready, &delayed, &format!("{what} of ready, {holds}")).await;
        }
    }
    client.shutdown().await;
}

/// Of equal payloads, those that stay keep what travels with them.
#[tokio::test]
async fn of_equal_payloads_the_removed_one_is_forgotten() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    let past = SystemTime::now() - MINUTE;
    let offer = async |id: &str, at: SystemTime| {
        delayed.offer_at("1", at).id(id).header("id", id).until_done().await.unwrap();
    };
    offer("a", past + 2 * HOUR).await;
    offer("b", past + HOUR).await;
    offer("c", past).await;
    assert_eq!(left(&server), (3, 1, 2));
    assert!(delayed.remove("1").await.unwrap());
    assert_eq!(left(&server), (2, 1, 1), "the one that was offered first");
    assert!(delayed.job("b").exists().await.unwrap() && !delayed.job("a").exists().await.unwrap());
    // Now those that are ready: the one that is pending is not meant.
    transfer(&client, &ready, 1).await;
    assert!(ready.remove("1").await.unwrap());
    assert_eq!(left(&server), (1, 1, 0));
    assert!(delayed.job("b").run_now().await.unwrap());
    transfer(&client, &ready, 1).await;
    let delivery = receive(&ready).await;
    assert_eq!((delivery.job_id(), delivery.header("id")), (Some(&b"b"[..]), Some("b")));
    delivery.ack().await.unwrap();
    // Of two that are ready, the one that was due first.
    offer("a", past).await;
    offer("b", past + Duration::from_secs(1)).await;
    transfer(&client, &ready, 2).await;
    assert!(ready.remove("1").await.unwrap());
    assert_eq!(delayed.job("a").state().await.unwrap(), None);
    let delivery = receive(&ready).await;
    assert_eq!(delivery.job_id(), Some(&b"b"[..]));
    delivery.ack().await.unwrap();
    assert_eq!(left(&server), (0, 0, 0));
    client.shutdown().await;
}

/// The id of a removed job stands for nothing, so to cancel it removes no other payload.
#[tokio::test]
async fn a_cancel_of_a_removed_job_removes_no_equal_payload() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    for (what, removal) in OF_PENDING {
        delayed.offer("1", ms(5)).id("a").until_done().await.unwrap();
        assert!(removal(&ready, &delayed).await.unwrap(), "{what}");
        until_async("it is forgotten", || async { left(&server) == (0, 0, 0) }).await;
        ready.put("1").await.unwrap();
        assert_eq!(delayed.job("a").cancel().await.unwrap(), Cancelled::NotFound, "{what}");
        assert_eq!(ready.poll().await.unwrap().as_deref(), Some("1"), "{what}");
    }
    client.shutdown().await;
}

/// A poll whose caller is gone has taken nothing, wherever it was dropped: the entry comes back as the job
/// that it was.
#[tokio::test]
async fn a_poll_that_nobody_reads_leaves_the_job_as_it_is() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    let offer = async || {
        let offer = delayed.offer("1", HOUR).id("a").header("n", "v").until_done();
        assert!(matches!(offer.await.unwrap(), Offered::Stored(_)));
    };
    offer().await;
    // It is dropped after one poll of its future, after two, and so on until it is done.
    for polls in 1..1000 {
        let mut poll = Box::pin(delayed.poll());
        let mut taken = None;
        for _ in 0..polls {
            if let Poll::Ready(done) = futures::poll!(poll.as_mut()) {
                // What the last one has polled may be on its way back.
                taken = done.unwrap();
                break;
            }
            tokio::time::sleep(ms(1)).await;
        }
        drop(poll);
        if let Some(taken) = taken {
            assert!(polls > 1 && taken == "1", "{polls}");
            until_async("it is forgotten", || async { left(&server) == (0, 0, 0) }).await;
            offer().await;
            break;
        }
        until_async("it is pending again", || async { delayed.len().await.unwrap() == 1 }).await;
        assert_eq!(left(&server), (1, 1, 0), "{polls}");
    }
    assert!(delayed.job("a").run_now().await.unwrap());
    transfer(&client, &ready, 1).await;
    let delivery = receive(&ready).await;
    assert_eq!((delivery.job_id(), delivery.header("n")), (Some(&b"a"[..]), Some("v")));
    delivery.ack().await.unwrap();
    client.shutdown().await;
}

/// A job that is offered again, with the same id and payload, before its payload is removed is another one.
#[tokio::test]
async fn the_next_job_of_an_id_keeps_it() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    // The first one has expired, and would be discarded. The next one is pending; or it is ready, and holds
    // the id.
    for holds in [false, true] {
        let offer = delayed.offer("1", Duration::ZERO).id("a").header("n", "first");
        offer.expires_after(ms(1)).discard_if_expired().await.unwrap();
        transfer(&client, &ready, 1).await;
        let delay = if holds { Duration::ZERO } else { HOUR };
        let next = delayed.offer("1", delay).id("a").header("n", "next");
        let next = if holds { next.until_done() } else { next }.await.unwrap();
        assert!(matches!(next, Offered::Stored(_)), "{holds}");
        if holds {
            transfer(&client, &ready, 2).await;
        }
        assert!(ready.remove("1").await.unwrap());
        assert!(delayed.job("a").state().await.unwrap().is_some() || !holds);
        if !holds {
            assert!(delayed.job("a").run_now().await.unwrap());
            transfer(&client, &ready, 1).await;
        }
        let delivery = receive(&ready).await;
        assert_eq!((delivery.job_id(), delivery.header("n")), (Some(&b"a"[..]), Some("next")), "{holds}");
        delivery.ack().await.unwrap();
        assert_eq!(left(&server), (0, 0, 0), "{holds}");
    }
    client.shutdown().await;
}

/// So is one that is offered again after a poll, which forgets the first one a little later.
#[tokio::test]
async fn a_job_that_is_offered_again_after_a_poll_is_another_one() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    for _ in 0..20 {
        let offer = delayed.offer("1", ms(1)).id("a").header("n", "first");
        offer.expires_after(ms(2)).discard_if_expired().await.unwrap();
        assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("1"));
        let next = delayed.offer("1", ms(5)).id("a").header("n", "next").await.unwrap();
        assert!(matches!(next, Offered::Stored(_)));
        until_async("the first one is forgotten", || async { left(&server) == (1, 1, 0) }).await;
        transfer(&client, &ready, 1).await;
        let delivery = receive(&ready).await;
        assert_eq!(delivery.header("n"), Some("next"));
        delivery.ack().await.unwrap();
    }
    assert_eq!(left(&server), (0, 0, 0));
    client.shutdown().await;
}

/// They are forgotten in calls of about a megabyte.
#[tokio::test]
async fn long_jobs_that_are_polled_are_forgotten_in_parts() {
    let server = Server::start();
    let (client, _, delayed) = still_text_queues(&server).await;
    let payloads: Vec<String> = (0..5).map(|number| number.to_string().repeat(600_000)).collect();
    for payload in &payloads {
        delayed.offer(payload, HOUR).id(&payload[..1]).header("n", "v").until_done().await.unwrap();
    }
    let calls = || server.command_calls("evalsha") + server.command_calls("eval");
    let before = calls();
    assert_eq!(delayed.poll_many(9).await.unwrap().len(), payloads.len());
    until_async("they are forgotten", || async { left(&server) == (0, 0, 0) }).await;
    // Polls of two, two and one; as many calls forget them. The text of each script is sent once.
    assert!(calls() - before >= 3 + 3, "{}", calls() - before);
    client.shutdown().await;
}

/// A Redisson whose clock is hours ahead moves what is not due; or the server's clock was set back. The job
/// is what it was.
#[tokio::test]
async fn a_job_that_was_moved_hours_early_keeps_what_it_has() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    for _ in 0..2 {
        delayed.offer("1", HOUR).id("a").header("n", "v").until_done().await.unwrap();
        let entry: Vec<Vec<u8>> = server.get(["ZRANGE", TIMEOUT_SET, "0", "0"]);
        server.cmd([&b"ZREM"[..], TIMEOUT_SET.as_bytes(), &entry[0]]);
        server.cmd([&b"LREM"[..], ORDERED_LIST.as_bytes(), b"1", &entry[0]]);
        server.cmd(["RPUSH", "q", "1"]);
        let delivery = receive(&ready).await;
        assert_eq!((delivery.job_id(), delivery.header("n")), (Some(&b"a"[..]), Some("v")));
        assert!(delayed.job("a").state().await.unwrap().is_some());
        delivery.ack().await.unwrap();
        assert_eq!(left(&server), (0, 0, 0));
    }
    client.shutdown().await;
}

/// Many jobs that are not due have the payload of those that are removed: their notes are not looked at.
#[tokio::test]
async fn pending_jobs_of_an_equal_payload_cost_a_removal_nothing() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    let ids: Vec<String> = (0..2000).map(|number| number.to_string()).collect();
    let payloads = vec!["1".to_owned(); 1000];
    delayed.offer_jobs(ids.iter().map(|id| (id, &payloads[0], HOUR))).until_done().await.unwrap();
    for clears in [false, true] {
        ready.offer_all(&payloads).await.unwrap();
        let before = server.command_calls("zrange");
        assert!(if clears { ready.clear().await } else { ready.remove_all(&payloads[..1]).await }.unwrap());
        let ranges = server.command_calls("zrange") - before;
        assert!(ranges < 10, "{clears}: {ranges}");
        assert_eq!(ready.len().await.unwrap(), 0);
    }
    assert_eq!(left(&server), (2000, 1, 1999));
    client.shutdown().await;
}

/// While a list is rebuilt, entries are in the set alone.
#[tokio::test]
async fn a_clear_forgets_jobs_that_are_in_the_timeout_set_alone() {
    let server = Server::start();
    let (client, _, delayed) = still_text_queues(&server).await;
    delayed.offer("1", HOUR).id("a").until_done().await.unwrap();
    delayed.offer("2", HOUR).id("b").until_done().await.unwrap();
    for listed in [0, 1] {
        if listed == 0 {
            server.cmd(["DEL", ORDERED_LIST]);
        } else {
            server.cmd(["LTRIM", ORDERED_LIST, "1", "-1"]);
        }
        assert!(delayed.clear().await.unwrap(), "{listed}");
        assert_eq!(left(&server), (0, 0, 0), "{listed}");
        assert_eq!(server.get::<usize, _>(["EXISTS", TIMEOUT_SET, ORDERED_LIST]), 0, "{listed}");
        delayed.offer("1", HOUR).id("a").until_done().await.unwrap();
        delayed.offer("2", HOUR).id("b").until_done().await.unwrap();
    }
    client.shutdown().await;
}

/// If something travels with payloads, they are deleted in parts of a thousand. Otherwise, it is one.
#[tokio::test]
async fn thousands_of_jobs_are_cleared_in_parts() {
    const JOBS_IN_ALL: usize = 2500;
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    let payloads: Vec<String> = (0..JOBS_IN_ALL).map(|number| number.to_string()).collect();
    let offer = async |delay: Duration, header: bool| {
        let jobs = payloads.iter().map(|payload| (payload, payload, delay));
        let offer = delayed.offer_jobs(jobs);
        if header { offer.header("n", "v") } else { offer }.await.unwrap();
    };
    // Each part is cut off with one. For what is pending, two more try out permissions before.
    for (header, parts) in [(true, 3), (false, 0)] {
        offer(HOUR, header).await;
        let before = server.command_calls("ltrim");
        assert!(delayed.clear().await.unwrap());
        assert_eq!(server.command_calls("ltrim") - before, 3 * parts, "{header}");
        assert_eq!((delayed.len().await.unwrap(), delayed.read_all().await.unwrap()), (0, vec![]));
        assert!(!delayed.clear().await.unwrap());
        if header {
            assert_eq!(left(&server), (0, 0, 0));
        }
        offer(Duration::ZERO, header).await;
        transfer(&client, &ready, JOBS_IN_ALL).await;
        let before = server.command_calls("ltrim");
        assert!(ready.clear().await.unwrap());
        assert_eq!(server.command_calls("ltrim") - before, parts, "{header}");
        assert_eq!(ready.len().await.unwrap(), 0);
        assert!(!ready.clear().await.unwrap());
        if header {
            assert_eq!(left(&server), (0, 0, 0));
        }
    }
    client.shutdown().await;
}

/// Nobody delivers a job again that was cancelled in flight, whoever ends its delivery. An operator who
/// removes a message frees its id.
#[tokio::test]
async fn an_operator_ends_a_cancelled_job_and_frees_the_id_of_a_removed_one() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    for requeues in [true, false] {
        delayed.offer("1", Duration::ZERO).id("a").until_done().await.unwrap();
        transfer(&client, &ready, 1).await;
        let delivery = receive(&ready).await;
        let unsettled = ready.unsettled();
        if requeues {
            assert_eq!(delayed.job("a").cancel().await.unwrap(), Cancelled::Requested);
            assert!(unsettled.requeue(delivery.id()).await.unwrap());
        } else {
            assert!(unsettled.remove(delivery.id()).await.unwrap());
        }
        assert_eq!(left(&server), (0, 0, 0), "{requeues}");
        assert!(unsettled.is_empty().await.unwrap(), "{requeues}");
        assert!(delivery.ack().await.is_err(), "{requeues}");
    }
    client.shutdown().await;
}

#[tokio::test]
async fn a_job_that_expires_at_the_beginning_of_1970_expires() {
    let server = Server::start();
    let (client, _, delayed) = still_text_queues(&server).await;
    let offer = delayed.offer("1", HOUR).id("a").expires_at(SystemTime::UNIX_EPOCH);
    let error = offer.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("would expire when it is due, or before"), "{error}");
    client.shutdown().await;
}
