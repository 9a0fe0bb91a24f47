//! What travels with a job is found by its payload. So whoever takes the payload without a receiver leaves a
//! note behind: it holds no id, and what comes later does not get lost by it.

use std::time::{Duration, SystemTime};

use redelay::BlockingQueue;
use redelay::delayed_queue::{Cancelled, JobState, Offered};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    CONTROL, HOUR, JOBS, MINUTE, MORE_NOTES, NOTES, ORDERED_LIST, Queues, TARGET, TIMEOUT_SET, ms,
    patient_builder, soon, still_builder, text_queues,
};

fn notes(server: &Server) -> usize {
    server.get(["HLEN", NOTES])
}

async fn ready(server: &Server, count: usize) {
    until_async("it is ready", || async { server.list(TARGET).len() == count }).await;
}

async fn receive(queue: &BlockingQueue<String>) -> redelay::Delivery<String> {
    soon(queue.receiver().receive()).await.unwrap()
}

/// A sweep of another client, which has seen all ids and notes.
async fn sweep(server: &Server) {
    server.cmd(["HDEL", CONTROL, "jobs", "jobs-at", "notes-at"]);
    let sweeping = Queues::of_texts(patient_builder(server).sweep_interval(Duration::from_secs(1))).await;
    until_async("the ids are swept", || async {
        server.get::<usize, _>(["HEXISTS", CONTROL, "jobs-at"]) == 1
            || server.get::<usize, _>(["EXISTS", JOBS, NOTES]) == 0
    })
    .await;
    sweeping.client.shutdown().await;
}

/// The sweep finds no note, and a message that holds an id goes back to the list after that.
#[tokio::test]
async fn what_goes_back_behind_a_sweep_keeps_its_id() {
    let server = Server::start();
    let (client, queue, delayed) = text_queues(&server).await;
    for way in ["unread", "released"] {
        delayed.offer("x", Duration::ZERO).id("a").until_done().header("n", "1").await.unwrap();
        ready(&server, 1).await;
        let delivery = receive(&queue).await;
        delivery.retry_after(HOUR).await.unwrap();
        sweep(&server).await;
        assert_eq!(server.get::<usize, _>(["HEXISTS", CONTROL, "notes"]), 0, "{way}");
        if way == "released" {
            assert_eq!(queue.release_all().await.unwrap(), 1);
        } else {
            assert!(delayed.job("a").run_now().await.unwrap());
            // A receive that is dropped gives back what it has claimed. It was delivered before, so it is
            // redelivered.
            let delivery = receive(&queue).await;
            delivery.release().await.unwrap();
        }
        assert!(matches!(delayed.offer("y", HOUR).id("a").await.unwrap(), Offered::Kept(_)), "{way}");
        let delivery = receive(&queue).await;
        assert_eq!((delivery.job_id(), delivery.header("n")), (Some(&b"a"[..]), Some("1")), "{way}");
        delivery.ack().await.unwrap();
        assert_eq!(delayed.job("a").state().await.unwrap(), None);
    }
    client.shutdown().await;
}

#[tokio::test]
async fn a_job_that_is_offered_again_has_what_was_said_last() {
    let server = Server::start();
    let (client, queue, delayed) = text_queues(&server).await;
    let offer = |number: &'static str, expires| {
        let offer = delayed.offer("x", Duration::ZERO).id("a").until_done().header("n", number);
        offer.expires_after(expires).discard_if_expired()
    };
    offer("1", ms(30)).await.unwrap();
    ready(&server, 1).await;
    assert_eq!(soon(queue.take()).await.unwrap(), "x");
    tokio::time::sleep(ms(31)).await;
    assert!(matches!(offer("2", HOUR).await.unwrap(), Offered::Stored(_)));
    let delivery = receive(&queue).await;
    assert_eq!((delivery.header("n"), delivery.job_id()), (Some("2"), Some(&b"a"[..])));
    delivery.ack().await.unwrap();
    assert_eq!((notes(&server), server.get::<usize, _>(["EXISTS", JOBS])), (0, 0));
    client.shutdown().await;
}

/// A job that was removed before it was due is not ready because an equal payload is.
#[tokio::test]
async fn a_cancel_takes_nobody_elses_payload() {
    let server = Server::start();
    let (client, queue, delayed) = text_queues(&server).await;
    delayed.offer("x", HOUR).id("a").until_done().await.unwrap();
    assert!(delayed.remove("x").await.unwrap());
    queue.put("x").await.unwrap();
    assert_eq!(delayed.job("a").state().await.unwrap(), None);
    assert_eq!(delayed.job("a").cancel().await.unwrap(), Cancelled::NotFound);
    assert_eq!(server.list(TARGET), [b"x"]);
    client.shutdown().await;
}

/// Without the field of its id, a note holds none: an equal payload of somebody else's is not cancelled by
/// it.
#[tokio::test]
async fn a_note_alone_holds_no_id() {
    let server = Server::start();
    let (client, queue, delayed) = text_queues(&server).await;
    delayed.offer("x", Duration::ZERO).id("a").until_done().await.unwrap();
    ready(&server, 1).await;
    assert_eq!(soon(queue.take()).await.unwrap(), "x");
    server.cmd(["HDEL", JOBS, "a"]);
    queue.put("x").await.unwrap();
    let delivery = receive(&queue).await;
    assert_eq!(delayed.job("a").cancel().await.unwrap(), Cancelled::NotFound);
    assert!(matches!(delayed.offer("y", HOUR).id("a").await.unwrap(), Offered::Stored(_)));
    delivery.retry_after(Duration::ZERO).await.unwrap();
    assert_eq!(receive(&queue).await.attempt(), 2);
    client.shutdown().await;
}

/// What waits for a retry by an operator's doing, or because it was found without a lease, is not begun
/// again.
#[tokio::test]
async fn a_cancelled_message_is_not_claimed_again() {
    let server = Server::start();
    let (client, queue, delayed) = text_queues(&server).await;
    delayed.offer("x", Duration::ZERO).id("a").until_done().await.unwrap();
    let delivery = receive(&queue).await;
    assert_eq!(delayed.job("a").cancel().await.unwrap(), Cancelled::Requested);
    // The offer of another job is not kept for it.
    assert_eq!(delayed.offer("y", HOUR).id("a").keep().await.unwrap(), Offered::Running);
    assert!(queue.unsettled().requeue(delivery.id()).await.unwrap());
    let receiver = queue.receiver();
    assert!(receiver.receive_timeout(ms(200)).await.unwrap().is_none());
    until_async("it is gone", || async {
        assert!(receiver.try_receive().await.unwrap().is_none());
        delayed.job("a").state().await.unwrap().is_none()
    })
    .await;
    assert!(delivery.ack().await.is_err());
    client.shutdown().await;
}

#[tokio::test]
async fn equal_payloads_have_what_belongs_to_each() {
    const EQUAL: usize = 200;
    let server = Server::start();
    let (client, queue, delayed) = text_queues(&server).await;
    let mut expected = Vec::new();
    for number in 0..EQUAL {
        let (id, delay) = (number.to_string(), ms(number as u64 / 2));
        delayed.offer("x", delay).id(&id).until_done().header("n", &id).await.unwrap();
        expected.push(id);
    }
    // A later one, and one of somebody else's.
    delayed.offer("x", HOUR).id("later").until_done().header("n", "later").await.unwrap();
    ready(&server, EQUAL).await;
    let receiver = queue.receiver();
    let mut got = Vec::new();
    while got.len() < EQUAL {
        for delivery in soon(receiver.receive_many(EQUAL)).await.unwrap() {
            let delivery = delivery.unwrap();
            assert_eq!(delivery.job_id(), delivery.header("n").map(str::as_bytes));
            got.push(delivery.header("n").unwrap().to_owned());
            delivery.ack().await.unwrap();
        }
    }
    got.sort();
    expected.sort();
    assert_eq!(got, expected);
    queue.put("x").await.unwrap();
    let delivery = receive(&queue).await;
    assert_eq!((delivery.job_id(), delivery.header("n")), (None, None), "the later one is pending");
    delivery.ack().await.unwrap();
    assert!(matches!(delayed.job("later").state().await.unwrap(), Some(JobState::Pending { .. })));
    assert!(delayed.job("later").cancel().await.unwrap().is_removed());
    assert_eq!((notes(&server), server.get::<usize, _>(["EXISTS", JOBS, MORE_NOTES])), (0, 0));
    client.shutdown().await;
}

/// Notes of jobs whose payloads Java has taken are swept, however many there are.
#[tokio::test]
async fn notes_that_nobody_has_read_are_swept() {
    const JOBS_TAKEN: usize = 3000;
    let server = Server::start();
    let (client, _queue, delayed) = text_queues(&server).await;
    let jobs: Vec<(String, String)> =
        (0..JOBS_TAKEN).map(|number| (number.to_string(), (number / 2).to_string())).collect();
    let jobs = jobs.iter().map(|(id, payload)| (id, payload, HOUR));
    delayed.offer_jobs(jobs).header("n", "1").await.unwrap();
    assert_eq!(notes(&server), JOBS_TAKEN / 2);
    server.cmd(["DEL", TIMEOUT_SET, ORDERED_LIST]);
    let sweeping = Queues::of_texts(patient_builder(&server).sweep_interval(Duration::from_secs(1))).await;
    until_async("all are swept", || async {
        server.cmd(["HDEL", CONTROL, "jobs-at"]);
        server.get::<usize, _>(["EXISTS", JOBS, NOTES, MORE_NOTES]) == 0
    })
    .await;
    sweeping.client.shutdown().await;
    client.shutdown().await;
}

/// The note says when its job is due, and so does the entry that is pending under the same id. A field says
/// that nothing travels with that one.
#[tokio::test]
async fn a_ready_job_keeps_what_a_plain_one_of_its_id_and_time_does_not_have() {
    let server = Server::start();
    let still = Queues::of_texts(still_builder(&server)).await;
    let due = SystemTime::UNIX_EPOCH + HOUR;
    for others in [false, true] {
        let (client, _, delayed) = text_queues(&server).await;
        if others {
            // What is first among equal payloads is another one's.
            delayed.offer_at("x", due - MINUTE).id("other").header("n", "0").await.unwrap();
            ready(&server, 1).await;
        }
        delayed.offer_at("x", due).id("a").header("n", "1").await.unwrap();
        ready(&server, 1 + usize::from(others)).await;
        client.shutdown().await;
        // It stays pending.
        still.delayed.offer_at("x", due).id("a").await.unwrap();
        for number in if others { &["0", "1"][..] } else { &["1"] } {
            let delivery = receive(&still.ready).await;
            assert_eq!(delivery.header("n"), Some(*number), "{others}");
            delivery.ack().await.unwrap();
        }
        let (client, queue, _) = text_queues(&server).await;
        let delivery = receive(&queue).await;
        assert_eq!(delivery.header("n"), None, "{others}");
        delivery.ack().await.unwrap();
        assert_eq!((notes(&server), server.get::<usize, _>(["EXISTS", JOBS])), (0, 0), "{others}");
        client.shutdown().await;
    }
    still.client.shutdown().await;
}

/// Entries that are due, and were not moved yet, come before what is ready.
#[tokio::test]
async fn many_overdue_jobs_hide_no_note() {
    let server = Server::start();
    let (client, _queue, delayed) = text_queues(&server).await;
    let still = Queues::of_texts(still_builder(&server)).await;
    delayed.offer("x", Duration::ZERO).id("a").until_done().await.unwrap();
    ready(&server, 1).await;
    client.shutdown().await;
    for number in 0..100 {
        let due = SystemTime::UNIX_EPOCH + ms(number);
        still.delayed.offer_at("x", due).id(number.to_string()).until_done().await.unwrap();
    }
    assert_eq!(receive(&still.ready).await.job_id(), Some(&b"a"[..]));
    still.client.shutdown().await;
}

/// Of equal payloads, the first ones are taken. So the first notes are stale, if there are more of them.
#[tokio::test]
async fn equal_payloads_that_java_takes_leave_nothing() {
    let server = Server::start();
    let (client, queue, delayed) = text_queues(&server).await;
    for holds in [true, false] {
        for number in 0..20 {
            let offer = delayed.offer("x", ms(number)).id(number.to_string()).header("n", number.to_string());
            if holds { offer.until_done() } else { offer }.await.unwrap();
        }
        delayed.offer("x", HOUR).id("later").header("n", "later").await.unwrap();
        ready(&server, 20).await;
        for _ in 0..17 {
            server.cmd(["LPOP", TARGET]);
        }
        // A sweep looks at lists for a few ms only.
        until_async("the first ones are swept", || async {
            sweep(&server).await;
            server.get::<usize, _>(["HLEN", JOBS]) == 4
        })
        .await;
        assert_eq!(server.get::<usize, _>(["ZCARD", MORE_NOTES]), 3, "{holds}");
        for number in 17..20 {
            let delivery = receive(&queue).await;
            assert_eq!(delivery.header("n"), Some(&*number.to_string()), "{holds}");
            delivery.ack().await.unwrap();
        }
        assert!(delayed.job("later").cancel().await.unwrap().is_removed());
        assert_eq!((notes(&server), server.get::<usize, _>(["EXISTS", JOBS, MORE_NOTES])), (0, 0));
    }
    client.shutdown().await;
}

/// A call that finds no job leaves what a sweep needs to find the note.
#[tokio::test]
async fn a_cancel_or_an_offer_leaves_no_note_behind() {
    let server = Server::start();
    let (client, queue, delayed) = text_queues(&server).await;
    // There is always something ready.
    queue.put("y").await.unwrap();
    delayed.offer("x", Duration::ZERO).id("a").header("n", "1").await.unwrap();
    ready(&server, 2).await;
    server.cmd(["RPOP", TARGET]);
    assert_eq!(delayed.job("a").cancel().await.unwrap(), Cancelled::NotFound);
    until_async("the note is swept", || async {
        sweep(&server).await;
        server.get::<usize, _>(["EXISTS", JOBS, NOTES]) == 0
    })
    .await;

    delayed.offer("x", HOUR).id("a").header("n", "1").await.unwrap();
    assert!(delayed.remove("x").await.unwrap());
    delayed.offer("z", Duration::ZERO).id("a").await.unwrap();
    ready(&server, 2).await;
    assert_eq!(notes(&server), 0, "an offer");
    client.shutdown().await;
}

/// Another type under the notes of equal payloads: nothing is stored.
#[tokio::test]
async fn a_note_that_cannot_be_stored_refuses_the_offer() {
    let server = Server::start();
    let (client, _queue, delayed) = text_queues(&server).await;
    delayed.offer("x", HOUR).id("a").until_done().await.unwrap();
    server.cmd(["SET", MORE_NOTES, "text"]);
    let error = delayed.offer("x", HOUR).id("b").until_done().await.unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    server.cmd(["DEL", MORE_NOTES]);
    assert_eq!((notes(&server), delayed.len().await.unwrap()), (1, 1));
    assert_eq!(delayed.job("b").state().await.unwrap(), None);
    client.shutdown().await;
}

/// One call gives a message back and claims it again, and no note was there before.
#[tokio::test]
async fn what_goes_back_in_the_call_that_claims_it_keeps_its_id() {
    let server = Server::start();
    let (client, queue, delayed) = text_queues(&server).await;
    let receiver = queue.receiver();
    for round in 0..10 {
        delayed.offer("x", Duration::ZERO).id("a").until_done().await.unwrap();
        ready(&server, 1).await;
        // The first one has its message, and is dropped without reading it.
        let mut first = Box::pin(receiver.receive());
        assert!(futures::poll!(&mut first).is_pending());
        until_async("it is claimed", || async { server.list(TARGET).is_empty() }).await;
        // Each round claims it twice.
        until_async("it is handed out", || async {
            queue.stats().await.unwrap().receiving.received == 2 * round + 1
        })
        .await;
        server.cmd(["HDEL", CONTROL, "notes"]);
        drop(first);
        let delivery = receiver.try_receive().await.unwrap().unwrap();
        assert_eq!((delivery.attempt(), delivery.job_id()), (1, Some(&b"a"[..])));
        delivery.ack().await.unwrap();
    }
    client.shutdown().await;
}
