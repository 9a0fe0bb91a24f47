//! Drops futures at a chosen poll, and drops calls repeatedly while other tasks produce and take.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures::future::BoxFuture;
use redelay::codec;
use redelay_fixture::Server;
use redelay_support::{MINUTE, ORDERED_LIST, TIMEOUT_SET, ms, part};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::ledger::{Ledger, Offered, Price};

pub(crate) type Queues = redelay_support::Queues<i64>;

/// The number of futures that each test drops in each kind of runtime, so that there are thousands for each
/// kind of call. `make soak` has 10,000 in both together.
pub(crate) fn drops() -> usize {
    let all = std::env::var("REDELAY_DROPS").map_or(1000, |drops| drops.parse().expect("a number of drops"));
    part().share(all)
}

/// A runtime of one thread, and one of several.
pub(crate) fn runtimes() -> [Runtime; 2] {
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let several = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    [single.unwrap(), several.unwrap()]
}

/// The moment at which a future is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The future was pending after this number of polls …
    pub(crate) polls: usize,
    /// … and has been woken since.
    pub(crate) woken: bool,
}

impl Moment {
    /// All moments that matter, repeatedly: the first poll most often, the second half as often, and so on;
    /// woken or not.
    pub(crate) fn number(n: usize) -> Self {
        Self { polls: 1 + (n / 2).trailing_ones() as usize, woken: n % 2 == 1 }
    }
}

/// Drops a future at this moment, unless it is ready earlier.
pub(crate) async fn drop_at<F: Future>(moment: Moment, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = moment.polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 && !moment.woken => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A ledger, and a limit of payloads in flight. It is so low that takers wait for payloads as often as the
/// reverse.
#[derive(Clone)]
pub(crate) struct Traffic {
    pub(crate) ledger: Ledger,
    room: Arc<Semaphore>,
    pub(crate) over: CancellationToken,
    stalled: Arc<AtomicBool>,
}

impl Traffic {
    pub(crate) fn with_room(room: usize) -> Self {
        Self {
            ledger: Ledger::default(),
            room: Arc::new(Semaphore::new(room)),
            over: CancellationToken::new(),
            stalled: Arc::default(),
        }
    }

    pub(crate) fn receive(&self, elements: Vec<i64>) {
        self.room.add_permits(elements.len());
        self.ledger.took(elements);
    }

    /// Waits until one more payload may be in flight. Returns false when the run is over.
    pub(crate) async fn room(&self) -> bool {
        tokio::select! {
            biased;
            () = self.over.cancelled() => false,
            room = self.room.acquire() => {
                room.unwrap().forget();
                true
            }
        }
    }

    /// Repeats a call until the run is over. The last call is dropped.
    pub(crate) async fn keep_taking(self, queues: Queues, call: Call) {
        while let Some(elements) = self.over.run_until_cancelled(call(queues.clone())).await {
            self.receive(elements);
        }
    }

    pub(crate) fn stalled(&self) {
        self.stalled.store(true, Ordering::Relaxed);
    }

    /// Adds what is left on the server to what was received. Every acknowledged payload must be there exactly
    /// once, and every other one, whose offer was dropped, at most once.
    #[track_caller]
    pub(crate) fn judge(&self, server: &Server) {
        let (listed, timed) = (server.list(ORDERED_LIST).len(), server.zset(TIMEOUT_SET).len());
        assert_eq!(listed, timed, "the ordered list and the timeout set differ");
        self.ledger.took_what_is_left(server, &["q", "other", "moved"]);
        let verdict = self.ledger.record().judge(Price::default());
        assert!(verdict.is_good(), "{verdict}");
    }

    /// Checked last: if a call waited in vain, the lost payload is the more useful message.
    pub(crate) fn assert_nobody_stalled(&self) {
        let stalled = self.stalled.load(Ordering::Relaxed);
        assert!(!stalled, "a call waited for a minute, though there was a producer, and nothing is lost");
    }
}

/// A call, and what it received.
pub(crate) type Call = fn(Queues) -> BoxFuture<'static, Vec<i64>>;

/// Drops this number of calls. Stops early when one has waited so long that a payload must be lost.
pub(crate) async fn drop_calls(traffic: Traffic, queues: Queues, call: Call, drops: usize) {
    let (mut n, mut dropped) = (0, 0);
    while dropped < drops {
        match in_time(drop_at(Moment::number(n), call(queues.clone()))).await {
            Some(Some(elements)) => traffic.receive(elements),
            Some(None) => dropped += 1,
            None => return traffic.stalled(),
        }
        n += 1;
    }
}

/// A call that must not wait long, because there is a producer.
pub(crate) async fn in_time<F: Future>(call: F) -> Option<F::Output> {
    tokio::time::timeout(MINUTE, call).await.ok()
}

/// Puts and offers alternately until the run is over.
pub(crate) async fn produce(traffic: Traffic, queues: Queues) {
    let other = queues.client.blocking_queue("other", codec::Long);
    while traffic.room().await {
        let next = traffic.ledger.begin(1)[0];
        match next % 4 {
            0 => other.put(&next).await.unwrap(),
            1 => queues.ready.put(&next).await.unwrap(),
            _ => drop(queues.delayed.offer(&next, ms(next as u64 % 11)).await.unwrap()),
        }
        traffic.ledger.end(&[next], Offered::Acknowledged);
    }
}
