//! Receivers and takers behind a link that takes longer than the command timeout to transmit what a call
//! brings.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use futures::future::join_all;
use redelay::worker::Context;
use redelay::{Error, Worker};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{MINUTE, Queues, builder, ms, soon, text_queues};

use super::receivers::until_drained;

/// A reply that takes longer is lost; but not if it is one that was lost before, and takes no more than 8 s
/// longer.
const COMMAND_TIMEOUT: Duration = ms(1000);
/// Bytes a second.
const SPEED: usize = 100_000;

fn payload(number: usize, bytes: usize) -> String {
    format!("{number:04}{}", "-".repeat(bytes - 4))
}

/// A call claims 1 MB, whose transmission takes longer than any call may: nobody waits for it. A part of it
/// arrives.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_gets_messages_of_which_a_call_claims_too_many() {
    const MESSAGES: usize = 64;
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let (near, ready, _) = text_queues(&server).await;
    let far = Queues::of_texts(builder(&proxy).transfer(false).command_timeout(COMMAND_TIMEOUT)).await;
    for number in 0..MESSAGES {
        ready.put(&payload(number, 20_000)).await.unwrap();
    }
    proxy.throttle(SPEED);
    let handled = std::sync::Arc::<Mutex<Vec<String>>>::default();
    let handler = {
        let handled = handled.clone();
        move |text: String, _: Context| {
            handled.lock().unwrap().push(text[..4].to_owned());
            async {}
        }
    };
    let worker = Worker::new(&far.ready).concurrency(MESSAGES).lease(MINUTE);
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), handler));
    let is_done = || async { handled.lock().unwrap().iter().collect::<BTreeSet<_>>().len() == MESSAGES };
    until_async("all are handled", is_done).await;
    until_drained(&server).await;
    let handled = handled.lock().unwrap().clone();
    assert_eq!(handled.len(), MESSAGES, "each of them once");
    // One in whose first call too many were claimed, and those in which it finds out how many arrive.
    let given_up = proxy.accepted();
    assert!(given_up < 12, "{given_up} connections");
    running.abort();
    near.shutdown().await;
}

/// The transmission of one message takes longer than a call may usually take.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_gets_messages_of_which_each_takes_longer_than_a_command() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let (_near, ready, _) = text_queues(&server).await;
    let far = Queues::of_texts(builder(&proxy).transfer(false).command_timeout(COMMAND_TIMEOUT)).await;
    for number in 0..3 {
        ready.put(&payload(number, 300_000)).await.unwrap();
    }
    proxy.throttle(SPEED);
    let receiver = far.ready.receiver().lease(MINUTE);
    let mut in_time = 0;
    for number in 0..3 {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(delivery.value()[..4], format!("{number:04}"), "they are in their order");
        // On a busy machine, its reply may come too late, too. It is sent again.
        let acknowledged = delivery.ack().await;
        assert!(acknowledged.as_ref().err().is_none_or(Error::is_outcome_unknown), "{acknowledged:?}");
        in_time += u32::from(acknowledged.is_ok());
    }
    assert!(in_time > 0, "no reply has come in time");
    until_drained(&server).await;
}

/// What was popped for several takers is in the claim of the call, and arrives when that is repeated.
#[tokio::test(flavor = "multi_thread")]
async fn takers_get_payloads_of_which_a_call_brings_too_many() {
    const TAKERS: usize = 30;
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let (_near, ready, _) = text_queues(&server).await;
    let far = Queues::of_texts(builder(&proxy).transfer(false).command_timeout(COMMAND_TIMEOUT)).await;
    for number in 0..TAKERS {
        ready.put(&payload(number, 10_000)).await.unwrap();
    }
    proxy.throttle(SPEED);
    let takes = join_all((0..TAKERS).map(|_| far.ready.take()));
    let taken = soon(takes).await;
    let taken: BTreeSet<String> = taken.into_iter().map(Result::unwrap).collect();
    assert_eq!(taken.len(), TAKERS);
    assert!(server.list("q").is_empty());
}
