//! `WAIT`: a few for many writes, nothing else waits behind it, and an error says what was not confirmed.

use futures::future::try_join_all;
use redelay::{ErrorKind, codec};
use redelay_fixture::{Server, until, until_async};
use redelay_support::{HOUR, MINUTE, builder, ms, soon};
use tokio::task::block_in_place;

/// A master, and a replica that has all its data.
fn pair() -> (Server, Server) {
    let quick = ["repl-diskless-sync yes", "repl-diskless-sync-delay 0"];
    let master = quick.into_iter().fold(Server::builder(), |builder, line| builder.config(line)).start();
    let replica = format!("replicaof 127.0.0.1 {}", master.port());
    let replica = Server::builder().config(replica).start();
    until("the replica is online", || replica.follows(&master));
    (master, replica)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_confirmation_is_for_many_writes() {
    const OFFERS: i64 = 100;
    let (master, _replica) = block_in_place(pair);
    let builder = builder(&master).replicas(1, MINUTE).command_timeout(MINUTE);
    let client = builder.connect().await.unwrap();
    // Queues of their own: offers to the same one share a call.
    let offer = |value: i64| {
        let delayed = client.delayed_queue(&client.blocking_queue(&format!("q{value}"), codec::Long));
        async move { delayed.offer(&value, HOUR).await }
    };
    let before = master.command_calls("wait");
    soon(try_join_all((0..OFFERS).map(offer))).await.unwrap();
    let waits = master.command_calls("wait") - before;
    println!("{waits} WAIT for {OFFERS} offers");
    assert!((1..=OFFERS as u64 / 4).contains(&waits), "{waits}");
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receive_does_not_wait_for_confirmations() {
    let (master, replica) = block_in_place(pair);
    let builder = builder(&master).replicas(1, 2 * MINUTE).command_timeout(2 * MINUTE);
    let client = builder.connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    soon(ready.put(&1)).await.unwrap();
    replica.freeze();
    let delayed = client.delayed_queue(&ready);
    let offering = tokio::spawn(async move { delayed.offer(&2, HOUR).await });
    until_async("the offer waits for the replica", || async { master.blocked_clients() == 1 }).await;
    let receiver = ready.receiver();
    let delivery = soon(receiver.receive()).await.unwrap();
    assert_eq!((*delivery.value(), delivery.attempt()), (1, 1));
    // One that waits gets what another program pushes.
    let waiting = tokio::spawn(async move { receiver.receive().await });
    until_async("it waits", || async { master.blocked_clients() == 2 }).await;
    master.cmd(["RPUSH", "q", "3"]);
    let next = soon(waiting).await.unwrap().unwrap();
    assert_eq!(*next.value(), 3);
    let settling = tokio::spawn(async move { delivery.ack().await });
    tokio::time::sleep(ms(100)).await;
    assert!(!offering.is_finished() && !settling.is_finished(), "the replica is frozen");
    replica.thaw();
    soon(offering).await.unwrap().unwrap();
    soon(settling).await.unwrap().unwrap();
    soon(next.ack()).await.unwrap();
    client.shutdown().await;
}

/// A call that may take less time than its replicas does not wait for them until the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_take_no_more_time_than_the_call_has() {
    let server = Server::start();
    let builder = builder(&server).replicas(1, MINUTE).command_timeout(2 * MINUTE);
    let client = builder.connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    let offer = async { delayed.offer(&1, HOUR).timeout(ms(3000)).await };
    let hasty = client.with_timeout(ms(3000)).blocking_queue("q", codec::Long);
    let (offer, put) = soon(async { tokio::join!(offer, hasty.put(&2)) }).await;
    for error in [offer.unwrap_err(), put.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        assert!(error.to_string().contains("has executed the call"), "{error}");
    }
    assert_eq!((delayed.len().await.unwrap(), ready.len().await.unwrap()), (1, 1));
    client.shutdown().await;
}

/// More replicas than there are: the error says so, and the offer is stored all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_replicas_than_there_are() {
    let server = Server::start();
    let builder = builder(&server).replicas(1, ms(50)).command_timeout(MINUTE);
    let client = builder.connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    for error in [
        soon(async { delayed.offer(&1, HOUR).await }).await.unwrap_err(),
        soon(ready.put(&2)).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        let text = error.to_string();
        assert!(text.contains(&server.port().to_string()) && text.contains("0 of 1 replicas"), "{text}");
        assert!(text.contains("has executed the call"), "{text}");
    }
    assert_eq!(delayed.len().await.unwrap(), 1);
    let receiver = ready.receiver();
    let error = soon(receiver.receive()).await.unwrap().ack().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(ready.stats().await.unwrap().receiving.in_flight, 0);

    // What has written nothing needs no confirmation.
    soon(ready.put(&3)).await.unwrap_err();
    let delivery = soon(receiver.receive()).await.unwrap();
    server.cmd(["FLUSHALL"]);
    let error = soon(delivery.ack()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    server.cmd(["SET", "redisson_delay_queue:{q}", "no list"]);
    let error = soon(async { delayed.offer(&4, HOUR).await }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    client.shutdown().await;
}
