//! What goes back, and in which order; and receives that must not get less, or more, than there is.

use std::time::Duration;

use futures::future::join_all;
use redelay::{Delivery, ErrorKind, Receiver, Worker};
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, INBOX, LEASES, MESSAGES, ms, number_queues, soon, text_queues};

fn count(server: &Server, command: &str, key: &str) -> usize {
    server.get([command, key])
}

fn texts(range: std::ops::Range<i64>) -> Vec<Vec<u8>> {
    range.map(|number| number.to_string().into_bytes()).collect()
}

async fn receive(receiver: &Receiver<i64>, numbers: std::ops::Range<i64>) -> Vec<Delivery<i64>> {
    let mut deliveries = Vec::new();
    for number in numbers {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(*delivery.value(), number);
        deliveries.push(delivery);
    }
    deliveries
}

#[tokio::test]
async fn dropped_receives_put_their_payloads_back_in_order() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let receiver = ready.receiver();
    for _ in 0..10 {
        let mut receives: Vec<_> = (0..3).map(|_| Box::pin(receiver.receive())).collect();
        receives.iter_mut().for_each(|receive| assert!(futures::FutureExt::now_or_never(receive).is_none()));
        server.cmd(["RPUSH", "q", "0", "1", "2", "3"]);
        until_async("claimed", || async { count(&server, "ZCARD", LEASES) == 3 }).await;
        drop(receives);
        until_async("back", || async { server.list("q").len() == 4 }).await;
        assert_eq!(server.list("q"), texts(0..4));
        server.cmd(["DEL", "q"]);
    }
}

#[tokio::test]
async fn a_release_of_everything_keeps_the_order() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    // More than one call of the script releases.
    ready.offer_all(&(0..1300).collect::<Vec<_>>()).await.unwrap();
    let deliveries = receive(&ready.receiver(), 0..1200).await;
    let snoozed = deliveries.into_iter().map(|delivery| {
        let pause = HOUR + ms(delivery.value().unsigned_abs());
        delivery.snooze(pause)
    });
    join_all(snoozed).await.into_iter().for_each(Result::unwrap);
    let waiting = ready.unsettled().waiting(None, usize::MAX).await.unwrap();
    let mut expected: Vec<Vec<u8>> = waiting.iter().map(|message| message.payload.to_vec()).collect();
    expected.extend(texts(1200..1300));
    assert_eq!(ready.release_all().await.unwrap(), 1200);
    assert!(server.list("q") == expected, "in order");
}

/// One call claims a megabyte.
#[tokio::test]
async fn receives_that_do_not_wait_get_all_that_is_there() {
    let server = Server::start();
    let (_client, ready, _) = text_queues(&server).await;
    let long = "x".repeat(300_000);
    for _ in 0..10 {
        ready.put(&long).await.unwrap();
    }
    let receiver = ready.receiver();
    let received = join_all((0..11).map(|_| receiver.try_receive())).await;
    let received: Vec<_> = received.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(received.len(), 10);
    join_all(received.into_iter().map(Delivery::ack)).await.into_iter().for_each(Result::unwrap);
}

#[tokio::test]
async fn leases_may_be_extended_without_end() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[0, 1]).await.unwrap();
    let receiver = ready.receiver().extend_for(Duration::MAX);
    receive(&receiver, 0..1).await.remove(0).ack().await.unwrap();
    let (done, signal) = tokio::sync::oneshot::channel::<()>();
    let done = std::sync::Mutex::new(Some(done));
    let handler = move |number: i64| {
        assert_eq!(number, 1);
        drop(done.lock().unwrap().take());
        async {}
    };
    let stopped = soon(Worker::new(&ready).timeout(Duration::MAX).run_until(signal, handler)).await.unwrap();
    assert_eq!(stopped.acknowledged, 1);
}

/// A receiver that is never idle looks for messages without lease and retry, too.
#[tokio::test]
async fn a_busy_receiver_finds_what_is_in_no_other_key() {
    let server = Server::start();
    let (_first, ready, _) = number_queues(&server).await;
    let (_second, other, _) = number_queues(&server).await;
    let busy = other.receiver();
    assert!(busy.try_receive().await.unwrap().is_none());
    ready.put(&7).await.unwrap();
    let held = soon(ready.receiver().receive()).await.unwrap();
    server.cmd(["DEL", LEASES]);
    let again = soon(async {
        loop {
            if let Some(again) = busy.try_receive().await.unwrap() {
                break again;
            }
        }
    });
    let again = again.await;
    assert_eq!((*again.value(), again.id()), (7, held.id()));
    again.ack().await.unwrap();
}

/// The messages cannot be written, so nothing is claimed.
#[tokio::test]
async fn what_cannot_be_claimed_is_not_delivered() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let receiver = ready.receiver();
    // The first call sweeps.
    assert!(receiver.try_receive().await.unwrap().is_none());
    server.cmd(["SET", MESSAGES, "x"]);
    ready.put(&7).await.unwrap();
    let received = soon(receiver.receive()).await;
    assert_eq!(received.map(|delivery| delivery.id()).unwrap_err().kind(), ErrorKind::Refused);
    let left = [server.list("q"), server.list(INBOX)].concat();
    assert_eq!(left, [b"7"]);
}
