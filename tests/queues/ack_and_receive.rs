//! `ack_and_receive`: one call of the server for each message, and the errors of its two halves.

use std::time::Duration;

use redelay::ErrorKind;
use redelay_fixture::{Server, until_async};
use redelay_support::{LEASES, MESSAGES, RETRIES, soon, still_number_queues};

fn count(server: &Server, command: &str, key: &str) -> usize {
    server.get([command, key])
}

fn is_done(server: &Server) -> bool {
    count(server, "ZCARD", LEASES) + count(server, "ZCARD", RETRIES) + count(server, "HLEN", MESSAGES) == 0
}

/// On several threads, the task of the receiver may run before the caller goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_costs_one_script() {
    const COUNT: i64 = 500;
    let server = Server::start();
    let (_client, ready, _) = still_number_queues(&server).await;
    let numbers: Vec<i64> = (0..COUNT).collect();
    ready.offer_all(&numbers).await.unwrap();
    let receiver = ready.receiver();
    let mut order = soon(receiver.receive()).await.unwrap();
    let before = server.command_calls("evalsha");
    for number in 1..COUNT {
        order = soon(receiver.ack_and_receive(order)).await.unwrap();
        assert_eq!((*order.value(), order.attempt()), (number, 1));
    }
    let scripts = server.command_calls("evalsha") - before;
    // A receiver gives a sign of life every six seconds.
    assert!(scripts < COUNT as u64 + 10, "{scripts} scripts for {COUNT} messages");
    order.ack().await.unwrap();
    assert!(is_done(&server));
}

#[tokio::test]
async fn it_waits_for_the_next_message() {
    let server = Server::start();
    let (_client, ready, _) = still_number_queues(&server).await;
    ready.put(&1).await.unwrap();
    let receiver = ready.receiver();
    let order = soon(receiver.receive()).await.unwrap();
    let (value, order) = order.into_parts();
    assert_eq!(value, 1);
    let next = tokio::spawn({
        let receiver = receiver.clone();
        async move { receiver.ack_and_receive(order).await }
    });
    until_async("it is acknowledged", || async { is_done(&server) }).await;
    ready.put(&2).await.unwrap();
    let next = soon(next).await.unwrap().unwrap();
    assert_eq!(*next.value(), 2);
    next.ack().await.unwrap();
}

#[tokio::test]
async fn a_lost_lease_is_the_error_of_the_acknowledgement_and_nothing_is_received() {
    let server = Server::start();
    let (_client, ready, _) = still_number_queues(&server).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    let receiver = ready.receiver().extend_for(Duration::ZERO);
    let order = soon(receiver.receive()).await.unwrap();
    server.cmd(["DEL", LEASES, MESSAGES]);
    let error = soon(receiver.ack_and_receive(order)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    assert!(error.to_string().starts_with("`ack`"), "{error}");
    until_async("the other one is back", || async { server.list("q") == [b"2"] && is_done(&server) }).await;
    let order = soon(receiver.receive()).await.unwrap();
    assert_eq!((*order.value(), order.attempt()), (2, 1));
    order.ack().await.unwrap();
}

#[tokio::test]
async fn the_message_is_acknowledged_whatever_becomes_of_the_receive() {
    let server = Server::start();
    let (client, ready, _) = still_number_queues(&server).await;
    ready.offer_all(&[1, 2, 3]).await.unwrap();
    let receiver = ready.receiver();
    let order = soon(receiver.receive()).await.unwrap();
    drop(receiver.ack_and_receive(order));
    until_async("one is left out", || async { server.list("q").len() == 2 && is_done(&server) }).await;
    let order = soon(receiver.receive()).await.unwrap();
    assert_eq!((*order.value(), order.attempt()), (2, 1));
    client.stop_taking().await;
    let error = soon(receiver.ack_and_receive(order)).await.unwrap_err();
    assert!(error.is_closed() && error.to_string().contains("ack_and_receive"), "{error}");
    assert!(is_done(&server));
    assert_eq!(server.list("q"), [b"3"]);
}

#[tokio::test]
async fn a_message_of_another_queue_is_acknowledged_there() {
    let server = Server::start();
    let (client, ready, _) = still_number_queues(&server).await;
    let other = client.blocking_queue("other", redelay::codec::Long);
    ready.put(&1).await.unwrap();
    other.put(&2).await.unwrap();
    let order = soon(ready.receiver().receive()).await.unwrap();
    let next = soon(other.receiver().ack_and_receive(order)).await.unwrap();
    assert_eq!((*next.value(), next.queue()), (2, "other"));
    assert!(is_done(&server), "what the first queue had");
    next.ack().await.unwrap();
}
