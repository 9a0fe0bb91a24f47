//! A caller without company makes its call itself, which spares switches of threads. That call depends on
//! its caller for nothing, and no other caller depends on it.

use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, MINUTE, Queues, TIMEOUT_SET, still_builder};
use tokio_test::task;
use tokio_test::{assert_pending, assert_ready};

#[cfg(target_os = "linux")]
mod switches {
    use std::fs;

    use redelay_fixture::Server;
    use redelay_support::{HOUR, Queues, still_builder};
    use tokio::runtime::{Builder, Runtime};

    const NAME: &str = "two-workers";
    const CALLS: u32 = 2000;

    /// A runtime whose threads are counted.
    fn two_workers() -> Runtime {
        Builder::new_multi_thread().worker_threads(2).thread_name(NAME).enable_all().build().unwrap()
    }

    /// How often these threads have waited for something. When a busy machine takes the processor away from
    /// them, that does not count.
    fn waits() -> u64 {
        let threads = fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
        let ours = threads
            .filter(|thread| fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim() == NAME));
        let waits = ours.map(|thread| {
            let status = fs::read_to_string(thread.join("status")).unwrap();
            let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            count.expect("a count").trim().parse::<u64>().unwrap()
        });
        waits.sum()
    }

    /// How often the threads wait for each of these calls.
    fn waits_for<F>(calls: impl FnOnce(Queues<i64>) -> F) -> f64
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let server = Server::start();
        let runtime = two_workers();
        let queues = runtime.block_on(Queues::of_numbers(still_builder(&server)));
        let calls = calls(queues);
        // Its own task, because another thread waits for it.
        let counted = runtime.spawn(async move {
            let before = waits();
            calls.await;
            waits() - before
        });
        runtime.block_on(counted).unwrap() as f64 / f64::from(CALLS)
    }

    /// For the reply, and for nothing else. With a task for each call, another thread is woken for it, and
    /// waits again: twice as often.
    #[test]
    fn a_lone_offer_switches_threads_once() {
        let waits = waits_for(|queues| async move {
            for n in 0..CALLS {
                queues.delayed.offer(&i64::from(n), HOUR).await.unwrap();
            }
        });
        println!("{waits} waits for an offer");
        assert!(waits <= 1.5, "{waits} waits for an offer");
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
