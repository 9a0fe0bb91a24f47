//! Dropping futures at each of their polls, and a ledger of what was offered and who received what.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_fixture::Server;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How many futures each test drops in each kind of runtime: thousands in both, for each kind of call.
pub(crate) const DROPS: usize = 1000;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
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
    /// So many polls have given nothing …
    pub(crate) polls: usize,
    /// … and it has been woken since.
    pub(crate) woken: bool,
}

impl Moment {
    /// All that matter, again and again: the first poll most often, the second half as often …; woken or not.
    pub(crate) fn number(n: usize) -> Self {
        Self { polls: 1 + (n / 2).trailing_ones() as usize, woken: n % 2 == 1 }
    }
}

/// Drops a future at this moment, unless it is ready before.
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

#[derive(Clone)]
pub(crate) struct Queues {
    pub(crate) client: Client,
    pub(crate) ready: BlockingQueue<i64>,
    pub(crate) delayed: DelayedQueue<i64>,
}

impl Queues {
    pub(crate) async fn of(server: &Server) -> Self {
        let client = Client::connect(&server.url()).await.expect("a connection");
        let ready = client.blocking_queue("q", codec::Long);
        let delayed = client.delayed_queue(&ready);
        Self { client, ready, delayed }
    }
}

/// Who got what, and how many may be on their way: so few that takers wait for elements as often as elements for takers.
#[derive(Clone)]
pub(crate) struct Ledger {
    received: Arc<Mutex<Vec<i64>>>,
    room: Arc<Semaphore>,
    pub(crate) over: CancellationToken,
    stalled: Arc<AtomicBool>,
}

impl Ledger {
    pub(crate) fn with_room(room: usize) -> Self {
        Self {
            received: Arc::default(),
            room: Arc::new(Semaphore::new(room)),
            over: CancellationToken::new(),
            stalled: Arc::default(),
        }
    }

    pub(crate) fn receive(&self, elements: Vec<i64>) {
        self.room.add_permits(elements.len());
        self.received.lock().unwrap().extend(elements);
    }

    /// Waits for room for one element more; false when it is all over.
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

    /// Calls again and again until all is over; the last call is dropped.
    pub(crate) async fn keep_taking(self, queues: Queues, call: Call) {
        while let Some(elements) = self.over.run_until_cancelled(call(queues.clone())).await {
            self.receive(elements);
        }
    }

    pub(crate) fn stalled(&self) {
        self.stalled.store(true, Ordering::Relaxed);
    }

    /// What was received, in this order, and what is left on the server: together all that there is.
    pub(crate) fn found(&self, server: &Server) -> Vec<i64> {
        let mut found = self.received.lock().unwrap().clone();
        found.extend(left(server));
        found
    }

    /// To be asked last: when a call waited in vain, it is of more interest what was lost.
    pub(crate) fn assert_nobody_stalled(&self) {
        let stalled = self.stalled.load(Ordering::Relaxed);
        assert!(!stalled, "a call waited for 10 s, though there was a producer, and nothing is lost");
    }
}

/// A call, and what it received.
pub(crate) type Call = fn(Queues) -> BoxFuture<'static, Vec<i64>>;

/// Everything that is still somewhere on the server.
fn left(server: &Server) -> Vec<i64> {
    let mut payloads = Vec::new();
    for key in ["q", "other", "moved"] {
        payloads.extend(server.list(key));
    }
    let pending = server.list("redisson_delay_queue:{q}");
    let in_both = server.zset("redisson_delay_queue_timeout:{q}").len();
    assert_eq!(pending.len(), in_both, "the ordered list and the timeout set differ");
    payloads.extend(pending.iter().map(|entry| entry[25..].to_vec()));
    payloads.iter().map(|payload| String::from_utf8_lossy(payload).parse().unwrap()).collect()
}

/// Each of these is there exactly once, and others (whose offer was not acknowledged) at most once.
#[track_caller]
pub(crate) fn each_once(acknowledged: impl IntoIterator<Item = i64>, mut found: Vec<i64>) {
    found.sort_unstable();
    let doubled: BTreeSet<_> =
        found.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    let lost: Vec<_> =
        acknowledged.into_iter().filter(|element| found.binary_search(element).is_err()).collect();
    assert!(lost.is_empty() && doubled.is_empty(), "lost: {lost:?}, doubled: {doubled:?}");
}

/// Drops so many calls, or stops when one has waited for so long that something must be lost.
pub(crate) async fn drop_calls(ledger: Ledger, queues: Queues, call: Call, drops: usize) {
    let (mut n, mut dropped) = (0, 0);
    while dropped < drops {
        match soon(drop_at(Moment::number(n), call(queues.clone()))).await {
            Some(Some(elements)) => ledger.receive(elements),
            Some(None) => dropped += 1,
            None => return ledger.stalled(),
        }
        n += 1;
    }
}

/// A call that must not wait for long, for there is a producer.
pub(crate) async fn soon<F: Future>(call: F) -> Option<F::Output> {
    tokio::time::timeout(Duration::from_secs(10), call).await.ok()
}

/// Puts and offers 0, 1, 2 …; returns how many.
pub(crate) async fn produce(ledger: Ledger, queues: Queues) -> i64 {
    let other = queues.client.blocking_queue("other", codec::Long);
    let mut next = 0;
    while ledger.room().await {
        match next % 4 {
            0 => other.put(&next).await.unwrap(),
            1 => queues.ready.put(&next).await.unwrap(),
            _ => drop(queues.delayed.offer(&next, ms(next as u64 % 11)).await.unwrap()),
        }
        next += 1;
    }
    next
}
