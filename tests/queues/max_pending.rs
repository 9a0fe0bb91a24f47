//! The limit of pending entries: what it refuses, what it does not bind, and what it costs.

use redelay::delayed_queue::{Missed, Offered, Overlap};
use redelay::{Client, DelayedQueue, ErrorKind};
use redelay_fixture::{Proxy, Server, until, until_async};
use redelay_support::{
    CONTROL, HOUR, ORDERED_LIST, SELDOM, TIMEOUT_SET, lasting, ms, soon, still_builder, still_text_queues,
    text_queues,
};

async fn still() -> (Server, Client, DelayedQueue<String>) {
    let server = Server::start();
    let (client, _ready, delayed) = still_text_queues(&server).await;
    (server, client, delayed)
}

fn stored(server: &Server) -> usize {
    assert_eq!(server.list(ORDERED_LIST).len(), server.zset(TIMEOUT_SET).len());
    server.list(ORDERED_LIST).len()
}

#[tokio::test]
async fn an_offer_beyond_the_limit_is_refused_and_leaves_nothing() {
    let (server, client, delayed) = still().await;
    assert_eq!(delayed.max_pending().await.unwrap(), None);
    delayed.set_max_pending(Some(2)).await.unwrap();
    assert_eq!(delayed.max_pending().await.unwrap(), Some(2));
    let first = delayed.offer("1", HOUR).await.unwrap();
    delayed.offer("2", HOUR).await.unwrap();
    for _ in 0..3 {
        let error = delayed.offer("3", HOUR).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full);
        let text = error.to_string();
        let why = "may have 2 pending entries, and has no room for this one";
        assert!(text.contains("`q`") && text.contains(why), "{text}");
    }
    assert_eq!(delayed.read_all().await.unwrap(), ["1", "2"]);
    // What is gone makes room.
    assert!(delayed.cancel(&first).await.unwrap());
    delayed.offer("3", HOUR).await.unwrap();
    delayed.set_max_pending(None).await.unwrap();
    for n in 4..9 {
        delayed.offer(&format!("{n}"), HOUR).await.unwrap();
    }
    assert_eq!((stored(&server), delayed.max_pending().await.unwrap()), (7, None));
    assert_eq!(delayed.set_max_pending(Some(0)).await.unwrap_err().kind(), ErrorKind::Invalid);
    client.shutdown().await;
}

#[tokio::test]
async fn concurrent_offers_fill_the_queue_to_its_limit() {
    let (server, client, delayed) = still().await;
    delayed.set_max_pending(Some(100)).await.unwrap();
    let offers = (0..300).map(|n| {
        let delayed = delayed.clone();
        async move { delayed.offer(&format!("{n}"), HOUR).await.map(drop) }
    });
    let results = futures::future::join_all(offers).await;
    let full = results.iter().filter(|result| result.as_ref().is_err_and(|e| e.kind() == ErrorKind::Full));
    // However many were sent in one call, each caller has made one.
    let full = full.filter(|result| format!("{result:?}").contains("no room for this one"));
    assert_eq!((full.count(), stored(&server)), (200, 100));
    assert!(results.iter().flatten().count() == 100);
    client.shutdown().await;
}

#[tokio::test]
async fn a_batch_is_refused_as_a_whole_and_jobs_one_by_one() {
    let (server, client, delayed) = still().await;
    delayed.set_max_pending(Some(10)).await.unwrap();
    let batch = |count: usize| (0..count).map(|n| (format!("{n}"), HOUR)).collect::<Vec<_>>();
    let offers = batch(11);
    let error = delayed.offer_all(offers.iter().map(|(text, delay)| (text, *delay))).await.unwrap_err();
    assert_eq!((error.kind(), stored(&server)), (ErrorKind::Full, 0));
    let text = error.to_string();
    assert!(text.contains("may have 10 pending entries, and has no room for these 11: "), "{text}");
    let offers = batch(4);
    delayed.offer_all(offers.iter().map(|(text, delay)| (text, *delay))).await.unwrap();
    let jobs: Vec<_> = (0..9).map(|n| (format!("id-{n}"), format!("job {n}"))).collect();
    let offer = delayed.offer_jobs(jobs.iter().map(|(id, text)| (id.as_str(), text, HOUR)));
    let error = offer.await.unwrap_err();
    assert_eq!((error.kind(), stored(&server)), (ErrorKind::OutcomeUnknown, 10));
    let text = error.to_string();
    assert!(text.contains("may have 10 pending") && text.contains("(6 jobs were offered before)"), "{text}");
    assert!(delayed.job("id-5").exists().await.unwrap() && !delayed.job("id-6").exists().await.unwrap());
    // What is pending may be replaced and kept.
    let replaced = delayed.offer("other", HOUR).id("id-3").replace().await.unwrap();
    assert!(matches!(replaced, Offered::Replaced(_)));
    assert!(matches!(delayed.offer("no", HOUR).id("id-3").keep().await.unwrap(), Offered::Kept(_)));
    let held = delayed.offer("new", HOUR).id("held").until_done().await.unwrap_err();
    assert_eq!((held.kind(), stored(&server)), (ErrorKind::Full, 10));
    client.shutdown().await;
}

#[tokio::test]
async fn runs_of_schedules_wait_for_room() {
    let (server, client, delayed) = still().await;
    delayed.set_max_pending(Some(1)).await.unwrap();
    delayed.offer("1", HOUR).id("a").await.unwrap();
    let before = lasting(&server);
    let error = delayed.schedule("s").every(SELDOM).upsert("run").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(lasting(&server) == before);
    // The run that is stored ahead is replaced by another one.
    assert!(delayed.job("a").cancel().await.unwrap().is_removed());
    delayed.schedule("s").every(SELDOM).upsert("run").await.unwrap();
    delayed.schedule("s").every(SELDOM).upsert("other").await.unwrap();
    assert_eq!((stored(&server), delayed.read_all().await.unwrap()), (1, vec!["other".to_owned()]));
    assert_eq!(delayed.schedule("s").trigger().await.unwrap_err().kind(), ErrorKind::Full);
    client.shutdown().await;
}

/// All runs that were missed are stored at once, as soon as there is room for one.
#[tokio::test(flavor = "multi_thread")]
async fn a_low_limit_stops_no_schedule() {
    let server = Server::start();
    let (still, _, delayed) = still_text_queues(&server).await;
    delayed.set_max_pending(Some(1)).await.unwrap();
    let often = delayed.schedule("s").every(ms(100)).missed(Missed::UpTo(3));
    let first = often.upsert("run").await.unwrap().expect("a run");
    let is_over = || first + ms(500) < std::time::SystemTime::now();
    until_async("runs are missed", || async { is_over() }).await;
    // Its own run is due, and was not moved: it is not in its way.
    let (client, ready, _) = text_queues(&server).await;
    for _ in 0..10 {
        assert_eq!(soon(ready.take()).await.unwrap(), "run");
    }
    for client in [still, client] {
        client.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_goes_on_when_there_is_room() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    delayed.set_max_pending(Some(1)).await.unwrap();
    delayed.offer("1", HOUR).id("a").await.unwrap();
    let often = delayed.schedule("s").every(ms(100)).missed(Missed::Skip);
    often.no_overlap(Overlap::Skip).upsert("run").await.unwrap();
    until("it is reported", || {
        let said = "schedules of `q`: `s` does not run: the queue may have 1 pending entry, and has no room";
        client.stats().last_error.is_some_and(|last| last.message.contains(said))
    });
    assert!(delayed.job("a").cancel().await.unwrap().is_removed());
    assert_eq!(soon(ready.take()).await.unwrap(), "run");
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_delivered_again_needs_no_room() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    delayed.offer("1", ms(1)).await.unwrap();
    let receiver = ready.receiver();
    let message = soon(receiver.receive()).await.unwrap();
    delayed.set_max_pending(Some(1)).await.unwrap();
    delayed.offer("2", HOUR).await.unwrap();
    message.retry_after(ms(1)).await.unwrap();
    soon(receiver.receive()).await.unwrap().reject("no").await.unwrap();
    assert_eq!(ready.dead_letters().requeue_all(9).await.unwrap(), 1);
    soon(receiver.receive()).await.unwrap().ack().await.unwrap();
    client.shutdown().await;
}

#[tokio::test]
async fn another_process_knows_the_limit_at_its_first_offer() {
    let (server, client, delayed) = still().await;
    delayed.set_max_pending(Some(1)).await.unwrap();
    delayed.offer("1", HOUR).await.unwrap();
    let (other, _, elsewhere) = still_text_queues(&server).await;
    assert_eq!(elsewhere.offer("2", HOUR).await.unwrap_err().kind(), ErrorKind::Full);
    // One that knew of none learns of it.
    delayed.set_max_pending(None).await.unwrap();
    elsewhere.offer("2", HOUR).await.unwrap();
    server.cmd(["HSET", CONTROL, "max_pending", "1"]);
    until_async("it looks again", || async {
        elsewhere.offer("3", HOUR).await.is_err_and(|error| error.kind() == ErrorKind::Full)
    })
    .await;
    // What is no number limits nothing.
    server.cmd(["HSET", CONTROL, "max_pending", "many"]);
    elsewhere.offer("4", HOUR).await.unwrap();
    assert_eq!(elsewhere.max_pending().await.unwrap(), None);
    for client in [client, other] {
        client.shutdown().await;
    }
}

#[tokio::test]
async fn a_queue_without_a_limit_pays_nothing() {
    let (server, client, delayed) = still().await;
    delayed.offer("0", HOUR).await.unwrap();
    delayed.offer("0", HOUR).id("a").await.unwrap();
    let before = ["hget", "zcard"].map(|command| server.command_calls(command));
    let begun = std::time::Instant::now();
    for n in 0..500 {
        delayed.offer(&format!("{n}"), HOUR).await.unwrap();
    }
    let after = ["hget", "zcard"].map(|command| server.command_calls(command));
    let looks = after[0] - before[0];
    assert!(looks <= begun.elapsed().as_secs() / 5 + 1 && after[1] == before[1], "{looks} looks");
    client.shutdown().await;
}

#[tokio::test]
async fn a_refusal_whose_reply_is_lost_is_told_and_stays() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let (client, _, delayed) = still_text_queues(&proxy).await;
    let (_other, _, direct) = still_text_queues(&server).await;
    delayed.set_max_pending(Some(1)).await.unwrap();
    let first = direct.offer("1", HOUR).await.unwrap();
    let receipts = || server.keys().into_iter().filter(|key| key.starts_with(b"redelay:offered:")).count();
    until_async("no receipt is left", || async { receipts() == 0 }).await;
    proxy.hold_replies(true);
    let (refused, ()) = tokio::join!(delayed.offer("2", HOUR), async {
        until_async("it is refused", || async { receipts() > 0 }).await;
        // There is room for the second try.
        assert!(direct.cancel(&first).await.unwrap());
        proxy.cut();
        proxy.hold_replies(false);
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(stored(&server), 0);
    client.shutdown().await;
}

/// Without the permission to read the limit, nobody knows of it.
#[tokio::test]
async fn a_client_that_may_not_read_the_limit_offers() {
    let (server, client, delayed) = still().await;
    delayed.set_max_pending(Some(1)).await.unwrap();
    server.cmd(["ACL", "SETUSER", "producer", "on", ">secret", "~*", "&*", "+@all", "-hget"]);
    let builder = still_builder(&server).credentials("producer", "secret");
    let other = builder.connect().await.unwrap();
    let elsewhere = other.delayed_queue(&other.blocking_queue("q", redelay::codec::String));
    for n in 0..3 {
        elsewhere.offer(&format!("{n}"), HOUR).await.unwrap();
    }
    assert_eq!(stored(&server), 3);
    for client in [client, other] {
        client.shutdown().await;
    }
}
