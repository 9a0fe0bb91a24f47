//! A caller without company makes its call itself, which spares switches of threads. That call depends on
//! its caller for nothing, and no other caller depends on it.

use redelay::ErrorKind;
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, MESSAGES, MINUTE, Queues, TARGET, TIMEOUT_SET, ms, still_builder};
use tokio_test::task;
use tokio_test::{assert_pending, assert_ready};

#[cfg(target_os = "linux")]
mod switches {
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use redelay::{BlockingQueue, Worker};
    use redelay_fixture::Server;
    use redelay_support::{HOUR, Queues, still_builder};
    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::Notify;

    const CALLS: u32 = 2000;

    /// A runtime whose threads are counted.
    fn two_workers(name: &'static str) -> Runtime {
        Builder::new_multi_thread().worker_threads(2).thread_name(name).enable_all().build().unwrap()
    }

    /// How often these threads have waited for something. When a busy machine takes the processor away from
    /// them, that does not count.
    fn waits(name: &str) -> u64 {
        let threads = fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
        let ours = threads
            .filter(|thread| fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.trim() == name));
        let waits = ours.map(|thread| {
            let status = fs::read_to_string(thread.join("status")).unwrap();
            let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            count.expect("a count").trim().parse::<u64>().unwrap()
        });
        waits.sum()
    }

    /// How often the threads wait for each of these calls. Other tests run beside this one, so each names its
    /// threads in its own way.
    fn waits_for<F>(name: &'static str, calls: impl FnOnce(Queues<i64>) -> F) -> f64
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let server = Server::start();
        let runtime = two_workers(name);
        let queues = runtime.block_on(Queues::of_numbers(still_builder(&server)));
        let calls = calls(queues);
        // Its own task, because another thread waits for it.
        let counted = runtime.spawn(async move {
            let before = waits(name);
            calls.await;
            waits(name) - before
        });
        runtime.block_on(counted).unwrap() as f64 / f64::from(CALLS)
    }

    /// For the reply, and for nothing else. With a task for each call, another thread is woken for it, and
    /// waits again: twice as often.
    #[test]
    fn a_lone_offer_switches_threads_once() {
        let waits = waits_for("lone-offers", |queues| async move {
            for n in 0..CALLS {
                queues.delayed.offer(&i64::from(n), HOUR).await.unwrap();
            }
        });
        println!("{waits} waits for an offer");
        assert!(waits <= 1.2, "{waits} waits for an offer");
    }

    async fn fill(ready: &BlockingQueue<i64>) {
        let numbers: Vec<i64> = (0..i64::from(CALLS)).collect();
        ready.offer_all(&numbers).await.unwrap();
    }

    #[test]
    fn a_lone_take_switches_threads_once() {
        let waits = waits_for("lone-takes", |queues| async move {
            fill(&queues.ready).await;
            for n in 0..CALLS {
                assert_eq!(queues.ready.take().await.unwrap(), i64::from(n));
            }
        });
        println!("{waits} waits for a take");
        assert!(waits <= 1.2, "{waits} waits for a take");
    }

    /// Two calls.
    #[test]
    fn a_lone_receive_and_its_ack_switch_threads_twice() {
        let waits = waits_for("lone-receives", |queues| async move {
            fill(&queues.ready).await;
            let receiver = queues.ready.receiver();
            for _ in 0..CALLS {
                receiver.receive().await.unwrap().ack().await.unwrap();
            }
        });
        println!("{waits} waits for a receive and its ack");
        assert!(waits <= 2.4, "{waits} waits for a receive and its ack");
    }

    #[test]
    fn a_message_that_is_acknowledged_with_the_next_receive_switches_threads_once() {
        let waits = waits_for("lone-acks", |queues| async move {
            fill(&queues.ready).await;
            let receiver = queues.ready.receiver();
            let mut delivery = receiver.receive().await.unwrap();
            for _ in 1..CALLS {
                delivery = receiver.ack_and_receive(delivery).await.unwrap();
            }
            delivery.ack().await.unwrap();
        });
        println!("{waits} waits for a message");
        assert!(waits <= 1.2, "{waits} waits for a message");
    }

    #[test]
    fn a_worker_with_one_slot_switches_threads_once_a_message() {
        let waits = waits_for("lone-workers", |queues| async move {
            fill(&queues.ready).await;
            let all = Arc::new(Notify::new());
            let (handled, left) = (all.clone(), AtomicU32::new(CALLS));
            let worker = Worker::new(&queues.ready).concurrency(1);
            let done = worker.run_until(async move { all.notified().await }, move |_: i64| {
                if left.fetch_sub(1, Relaxed) == 1 {
                    handled.notify_one();
                }
                async {}
            });
            done.await.unwrap();
        });
        println!("{waits} waits for a message");
        assert!(waits <= 1.2, "{waits} waits for a message");
    }
}

#[tokio::test]
async fn a_lone_offer_is_sent_by_its_first_poll() {
    let server = Server::start();
    let Queues { delayed, .. } = Queues::of_numbers(still_builder(&server)).await;
    delayed.offer(&1, HOUR).await.unwrap();
    let mut offer = task::spawn(delayed.offer(&2, HOUR));
    assert_pending!(offer.poll());
    assert_eq!(delayed.len().await.unwrap(), 2);
    until_async("answered", || std::future::ready(offer.is_woken())).await;
    assert_ready!(offer.poll()).unwrap();
}

#[tokio::test]
async fn a_caller_that_is_not_polled_delays_no_other() {
    let server = Server::start();
    let Queues { client, delayed, .. } = Queues::of_numbers(still_builder(&server)).await;
    delayed.offer(&0, HOUR).await.unwrap();
    let mut stuck = task::spawn(delayed.offer(&1, HOUR));
    assert_pending!(stuck.poll());
    for n in 2..50 {
        delayed.offer(&n, HOUR).await.unwrap();
        // One that is polled once again, now that the last one has ended.
        let mut another = task::spawn(delayed.offer(&-n, HOUR));
        assert_pending!(another.poll());
        drop(another);
    }
    let others = (50..60).map(|n| {
        let delayed = delayed.clone();
        async move { delayed.offer(&n, HOUR).await }
    });
    for ticket in futures::future::join_all(others).await {
        ticket.unwrap();
    }
    assert!(stuck.is_woken());
    assert_ready!(stuck.poll()).unwrap();
    client.shutdown().await;
    assert_eq!(server.zset(TIMEOUT_SET).len(), 60 + 48);
}

/// The call goes on without its caller, and with the server's reply it deletes its receipt.
#[tokio::test]
async fn a_shutdown_waits_for_the_call_of_a_caller_that_was_dropped() {
    let server = Server::start();
    for n in 1..=20 {
        let Queues { client, delayed, .. } = Queues::of_numbers(still_builder(&server)).await;
        let mut offer = task::spawn(delayed.offer(&n, MINUTE));
        assert_pending!(offer.poll());
        drop(offer);
        client.shutdown().await;
        assert_eq!(server.zset(TIMEOUT_SET).len(), n as usize);
        let left = server.keys();
        assert_eq!(left.len(), 2, "only the queue is left: {left:?}");
    }
}

/// A taker without company polls the task of all of them. Another one takes that over.
#[tokio::test]
async fn a_taker_that_is_not_polled_delays_no_other() {
    let server = Server::start();
    let Queues { client, ready, .. } = Queues::of_numbers(still_builder(&server)).await;
    ready.offer_all(&[0, 1, 2, 3]).await.unwrap();
    assert_eq!(ready.take().await.unwrap(), 0);
    let mut stuck = task::spawn(ready.take());
    assert_pending!(stuck.poll());
    let mut taken = vec![ready.take().await.unwrap(), ready.take().await.unwrap()];
    until_async("the first one is answered, too", || std::future::ready(stuck.is_woken())).await;
    taken.push(assert_ready!(stuck.poll()).unwrap());
    taken.sort_unstable();
    assert_eq!(taken, [1, 2, 3]);
    client.shutdown().await;
}

/// It has a payload that nobody reads. Its task goes on without it, and returns the payload.
#[tokio::test]
async fn a_taker_that_is_not_polled_holds_no_shutdown_up() {
    let server = Server::start();
    for n in 0..5 {
        let Queues { client, ready, .. } = Queues::of_numbers(still_builder(&server)).await;
        ready.offer_all(&[n, 7]).await.unwrap();
        assert_eq!(ready.take().await.unwrap(), n);
        let mut stuck = task::spawn(ready.take());
        assert_pending!(stuck.poll());
        client.stop_taking().await;
        assert_eq!(server.get::<usize, _>(["LLEN", TARGET]), 1, "it is back");
        assert!(assert_ready!(stuck.poll()).unwrap_err().is_closed());
        assert_eq!(ready.poll().await.unwrap_err().kind(), ErrorKind::Closed);
        client.shutdown().await;
        server.cmd(["DEL", TARGET]);
    }
}

#[tokio::test]
async fn a_receive_that_is_not_polled_delays_no_settlement() {
    let server = Server::start();
    let Queues { client, ready, .. } = Queues::of_numbers(still_builder(&server)).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    let receiver = ready.receiver();
    let first = receiver.receive().await.unwrap();
    let mut stuck = task::spawn(receiver.receive());
    assert_pending!(stuck.poll());
    first.ack().await.unwrap();
    until_async("it is answered", || std::future::ready(stuck.is_woken())).await;
    let second = assert_ready!(stuck.poll()).unwrap();
    assert_eq!(*second.value(), 2);
    // Nobody polls this, and it is dropped.
    drop(second.ack());
    until_async("it is acknowledged", || async { server.get::<usize, _>(["HLEN", MESSAGES]) == 0 }).await;
    client.shutdown().await;
}

/// In each order, because the first one asks for both, and a select may poll them in any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_beside_a_receive_is_answered_at_once() {
    let server = Server::start();
    let Queues { client, ready, .. } = Queues::of_numbers(still_builder(&server)).await;
    let receiver = ready.receiver();
    ready.offer_all(&(0..201).collect::<Vec<_>>()).await.unwrap();
    let mut delivery = receiver.receive().await.unwrap();
    for number in 0..100 {
        let (acked, next) = tokio::join!(delivery.ack(), receiver.receive());
        acked.unwrap();
        let (next, acked) = tokio::join!(receiver.receive(), next.unwrap().ack());
        acked.unwrap();
        delivery = next.unwrap();
        assert_eq!(*delivery.value(), 2 * number + 2);
    }
    // Nothing comes any more, and the settlement does not wait for that.
    let mut waiting = task::spawn(receiver.receive());
    assert_pending!(waiting.poll());
    delivery.ack().await.unwrap();
    client.shutdown().await;
}

/// Nobody polls them for longer than their leases last.
#[tokio::test]
async fn settlements_that_are_not_polled_keep_no_lease_from_being_extended() {
    let server = Server::start();
    let Queues { client, ready, .. } = Queues::of_numbers(still_builder(&server)).await;
    ready.offer_all(&(0..40).collect::<Vec<_>>()).await.unwrap();
    let receiver = ready.receiver().lease(ms(300));
    let mut acks = Vec::new();
    for delivery in receiver.receive_many(40).await.unwrap() {
        acks.push(delivery.unwrap().ack());
        tokio::time::sleep(ms(30)).await;
    }
    for acked in futures::future::join_all(acks).await {
        acked.unwrap();
    }
    client.shutdown().await;
}
