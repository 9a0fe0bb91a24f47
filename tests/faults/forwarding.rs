//! Dead letters on their way to another queue, by the last row of the matrix of crashes in
//! docs/guarantees.md.

use redelay::codec;
use redelay_fixture::{Proxy, until_async};
use redelay_support::{DEAD, DEAD_MESSAGES, MESSAGES, Queues, ms, soon, still_builder};
use tokio::time::sleep;

use super::crash_matrix::{FAULTS, Fault, LEASE, THREADS, durable_server, follow, promote, restore};
use super::on_threads::each_on_threads;
use super::receivers::count;

/// Where a dead letter is on its way to another queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    NotPushed,
    Pushed,
    Removed,
}

/// The push to the other queue goes through a proxy of its own.
async fn forward(step: Step, fault: Fault) {
    let server = durable_server();
    let (here, there) = (Proxy::start(server.port()), Proxy::start(server.port()));
    let replica = (fault == Fault::FailsOver).then(|| follow(&server));
    let first = Queues::of_numbers(still_builder(&here)).await;
    let destination = still_builder(&there).connect().await.unwrap();
    let dead = destination.blocking_queue::<i64>("dead", codec::Long);
    let receiver = first.ready.receiver().lease(ms(LEASE)).dead_letters_to(&dead);
    // The first one loads the scripts.
    first.ready.put(&1).await.unwrap();
    soon(receiver.receive()).await.unwrap().reject("no").await.unwrap();
    until_async("it is sent", || async {
        server.list("dead") == [b"1"] && count(&server, "ZCARD", DEAD) == 0
    })
    .await;
    server.cmd(["DEL", "dead"]);

    first.ready.put(&7).await.unwrap();
    let delivery = soon(receiver.receive()).await.unwrap();
    match step {
        Step::NotPushed => there.blackhole(true),
        _ => there.hold_replies(true),
    }
    delivery.reject("no").await.unwrap();
    match step {
        // Until the push was sent, which nobody can see.
        Step::NotPushed => sleep(ms(50)).await,
        _ => until_async("it is pushed", || async { server.list("dead") == [b"7"] }).await,
    }
    assert_eq!(count(&server, "ZCARD", DEAD), 1);
    if let Some(replica) = &replica {
        promote(replica, &server).await;
    }
    if step == Step::Removed {
        here.hold_replies(true);
        there.hold_replies(false);
        until_async("it is removed", || async { count(&server, "ZCARD", DEAD) == 0 }).await;
    }

    let other = Queues::of_numbers(still_builder(&server)).await;
    let other_dead = other.client.blocking_queue::<i64>("dead", codec::Long);
    let mut completes = None;
    match fault {
        Fault::ClientDies => {
            for proxy in [&here, &there] {
                proxy.refuse(true);
                proxy.cut();
            }
            let receiver = other.ready.receiver().lease(ms(LEASE)).dead_letters_to(&other_dead);
            completes =
                Some(tokio::spawn(async move { receiver.receive().await.map(|delivery| *delivery.value()) }));
        }
        Fault::ConnectionIsCut => [&here, &there].into_iter().for_each(restore),
        Fault::ServerDies => {
            server.kill_9();
            [&here, &there].into_iter().for_each(restore);
            server.start_again();
        }
        Fault::FailsOver => server.kill_9(),
    }
    if let Some(replica) = &replica {
        for proxy in [&here, &there] {
            proxy.switch_to(replica.port());
            restore(proxy);
        }
    }
    let server = replica.unwrap_or(server);
    until_async("it is in the other queue only", || async {
        let letters = count(&server, "ZCARD", DEAD) + count(&server, "HLEN", DEAD_MESSAGES);
        letters == 0 && !server.list("dead").is_empty()
    })
    .await;
    // What is on its way is done or given up.
    drop((receiver, dead));
    if fault != Fault::ClientDies {
        first.client.shutdown().await;
        destination.shutdown().await;
    }
    assert_eq!(server.list("dead"), [b"7"], "{step:?}, {fault:?}");
    let left = count(&server, "LLEN", "q") + count(&server, "HLEN", MESSAGES) + count(&server, "ZCARD", DEAD);
    assert_eq!(left, 0, "{step:?}, {fault:?}");
    if let Some(completes) = completes {
        assert!(!completes.is_finished(), "it is no message any more");
        completes.abort();
    }
}

#[test]
fn a_dead_letter_is_sent_once_whatever_ends_meanwhile() {
    let steps = [Step::NotPushed, Step::Pushed, Step::Removed];
    let faults: Vec<_> = FAULTS.into_iter().chain([Fault::FailsOver]).collect();
    let cells = steps.iter().flat_map(|step| faults.iter().map(|fault| (*step, *fault))).collect();
    each_on_threads(THREADS, cells, async |(step, fault)| forward(step, fault).await);
}
