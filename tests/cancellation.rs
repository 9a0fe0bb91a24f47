//! Futures that are dropped at each of their polls, thousands of times, while others produce and take: every
//! acknowledged element is received exactly once, or is still there at the end; a dropped offer is stored at most once.
//!
//! Dropping at a chosen moment, one at a time: `give_back.rs`. Replies that get lost: `lost_replies.rs`.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::StreamExt;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_fixture::Server;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How many futures each test drops in each kind of runtime.
const DROPS: usize = 300;
const HOUR: Duration = Duration::from_secs(3600);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A runtime of one thread, and one of several.
fn runtimes() -> [Runtime; 2] {
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let several = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    [single.unwrap(), several.unwrap()]
}

/// The moment at which a future is dropped.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// So many polls have given nothing …
    polls: usize,
    /// … and it has been woken since.
    woken: bool,
}

impl Moment {
    /// All that matter, again and again: the first poll most often, the second half as often …; woken or not.
    fn number(n: usize) -> Self {
        Self { polls: 1 + (n / 2).trailing_ones() as usize, woken: n % 2 == 1 }
    }
}

/// Drops a future at this moment, unless it is ready before.
async fn drop_at<F: Future>(moment: Moment, future: F) -> Option<F::Output> {
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
struct Queues {
    client: Client,
    ready: BlockingQueue<i64>,
    delayed: DelayedQueue<i64>,
}

impl Queues {
    async fn of(server: &Server) -> Self {
        let client = Client::connect(&server.url()).await.expect("a connection");
        let ready = client.blocking_queue("q", codec::Long);
        let delayed = client.delayed_queue(&ready);
        Self { client, ready, delayed }
    }
}

/// Who got what, and how many may be on their way: so few that takers wait for elements as often as elements for takers.
#[derive(Clone)]
struct Ledger {
    received: Arc<Mutex<Vec<i64>>>,
    room: Arc<Semaphore>,
    over: CancellationToken,
}

impl Ledger {
    fn with_room(room: usize) -> Self {
        Self {
            received: Arc::default(),
            room: Arc::new(Semaphore::new(room)),
            over: CancellationToken::new(),
        }
    }

    fn receive(&self, elements: Vec<i64>) {
        self.room.add_permits(elements.len());
        self.received.lock().unwrap().extend(elements);
    }

    /// Waits for room for one element more; false when it is all over.
    async fn room(&self) -> bool {
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
    async fn keep_taking(self, queues: Queues, call: Call) {
        while let Some(elements) = self.over.run_until_cancelled(call(queues.clone())).await {
            self.receive(elements);
        }
    }

    fn into_received(self) -> Vec<i64> {
        std::mem::take(&mut *self.received.lock().unwrap())
    }
}

/// A call, and what it received.
type Call = fn(Queues) -> BoxFuture<'static, Vec<i64>>;

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
fn each_once(acknowledged: impl IntoIterator<Item = i64>, mut found: Vec<i64>) {
    found.sort_unstable();
    let doubled: BTreeSet<_> =
        found.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    let lost: Vec<_> =
        acknowledged.into_iter().filter(|element| found.binary_search(element).is_err()).collect();
    assert!(lost.is_empty() && doubled.is_empty(), "lost: {lost:?}, doubled: {doubled:?}");
}

/// Drops calls at each of their polls, while a producer puts and offers, and others take, in the same client and in
/// another one.
fn drop_under_load(victim: Call) {
    let take: Call = |queues| async move { vec![queues.ready.take().await.unwrap()] }.boxed();
    let poll_any: Call = |queues| {
        async move {
            let polled = queues.ready.poll_from_any(HOUR, &["other", "moved"]).await.unwrap();
            polled.map(|(_, element)| element).into_iter().collect()
        }
        .boxed()
    };
    for runtime in runtimes() {
        let server = Server::start();
        runtime.block_on(async {
            let queues = Queues::of(&server).await;
            let others = Queues::of(&server).await;
            let ledger = Ledger::with_room(6);
            let takers = [
                tokio::spawn(ledger.clone().keep_taking(queues.clone(), take)),
                tokio::spawn(ledger.clone().keep_taking(others.clone(), poll_any)),
            ];
            let producer = tokio::spawn(produce(ledger.clone(), queues.clone()));
            let dropping = tokio::spawn(drop_calls(ledger.clone(), queues.clone(), victim));
            dropping.await.unwrap();
            ledger.over.cancel();
            let produced = producer.await.unwrap();
            for taker in takers {
                taker.await.unwrap();
            }
            queues.client.shutdown().await;
            others.client.shutdown().await;
            let mut found = ledger.into_received();
            found.extend(left(&server));
            each_once(0..produced, found);
        });
    }
}

async fn drop_calls(ledger: Ledger, queues: Queues, call: Call) {
    let mut dropped = 0;
    for n in 0.. {
        match drop_at(Moment::number(n), call(queues.clone())).await {
            Some(elements) => ledger.receive(elements),
            None => dropped += 1,
        }
        if dropped == DROPS {
            return;
        }
    }
}

/// Puts and offers 0, 1, 2 …; returns how many.
async fn produce(ledger: Ledger, queues: Queues) -> i64 {
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

#[test]
fn take() {
    drop_under_load(|queues| async move { vec![queues.ready.take().await.unwrap()] }.boxed());
}

#[test]
fn take_last() {
    drop_under_load(|queues| async move { vec![queues.ready.take_last().await.unwrap()] }.boxed());
}

#[test]
fn poll() {
    drop_under_load(|queues| async move { Vec::from_iter(queues.ready.poll().await.unwrap()) }.boxed());
}

#[test]
fn poll_timeout() {
    drop_under_load(|queues| {
        async move { Vec::from_iter(queues.ready.poll_timeout(ms(2)).await.unwrap()) }.boxed()
    });
}

#[test]
fn drain() {
    drop_under_load(|queues| {
        async move { queues.ready.drain(3).await.unwrap().into_iter().map(Result::unwrap).collect() }.boxed()
    });
}

#[test]
fn poll_first_from_any() {
    drop_under_load(|queues| {
        async move {
            let polled = queues.ready.poll_first_from_any(ms(5), 3, &["other"]).await.unwrap();
            polled.into_iter().flat_map(|(_, several)| several).map(Result::unwrap).collect()
        }
        .boxed()
    });
}

#[test]
fn a_stream() {
    drop_under_load(|queues| {
        async move { vec![queues.ready.into_stream().next().await.unwrap().unwrap()] }.boxed()
    });
}

#[test]
fn poll_last_and_offer_first_to_timeout() {
    drop_under_load(|queues| {
        async move {
            // It is in the other list now, where a taker finds it.
            queues.ready.poll_last_and_offer_first_to_timeout("moved", ms(3)).await.unwrap();
            vec![]
        }
        .boxed()
    });
}

#[test]
fn poll_of_the_delayed_queue() {
    drop_under_load(|queues| async move { Vec::from_iter(queues.delayed.poll().await.unwrap()) }.boxed());
}

#[test]
fn poll_many_of_the_delayed_queue() {
    drop_under_load(|queues| {
        async move { queues.delayed.poll_many(3).await.unwrap().into_iter().map(Result::unwrap).collect() }
            .boxed()
    });
}

/// Drops offers of `size` elements each, while others take.
fn drop_offers(size: i64) {
    for runtime in runtimes() {
        let server = Server::start();
        runtime.block_on(async {
            let queues = Queues::of(&server).await;
            let ledger = Ledger::with_room(0);
            let take: Call = |queues| async move { vec![queues.ready.take().await.unwrap()] }.boxed();
            let taker = tokio::spawn(ledger.clone().keep_taking(queues.clone(), take));
            let (mut acknowledged, mut dropped) = (Vec::new(), BTreeSet::new());
            for n in 0.. {
                let batch: Vec<i64> = (n * size..(n + 1) * size).collect();
                let offers = batch.iter().map(|element| (element, ms(*element as u64 % 11)));
                match drop_at(Moment::number(n as usize), queues.delayed.offer_all(offers)).await {
                    Some(tickets) => {
                        assert_eq!(tickets.unwrap().len(), batch.len());
                        acknowledged.extend(batch);
                    }
                    None => drop(dropped.insert(n)),
                }
                if dropped.len() == DROPS {
                    break;
                }
            }
            ledger.over.cancel();
            taker.await.unwrap();
            queues.client.shutdown().await;
            let mut found = ledger.into_received();
            found.extend(left(&server));
            let stored: BTreeSet<i64> = found.iter().copied().collect();
            for n in dropped {
                let of_one_offer = stored.range(n * size..(n + 1) * size).count() as i64;
                assert!([0, size].contains(&of_one_offer), "{of_one_offer} of {size} are stored");
            }
            each_once(acknowledged, found);
        });
    }
}

#[test]
fn offer() {
    drop_offers(1);
}

#[test]
fn offer_all() {
    drop_offers(3);
}

/// What a single taker gets, dropped at each of its polls, and what is left at the end, is what was put, in this order.
fn keeps_the_order(call: Call) {
    for runtime in runtimes() {
        let server = Server::start();
        runtime.block_on(async {
            let queues = Queues::of(&server).await;
            let ledger = Ledger::with_room(6);
            let producer = tokio::spawn({
                let (ledger, ready) = (ledger.clone(), queues.ready.clone());
                async move {
                    let mut next = 0;
                    while ledger.room().await {
                        ready.put(&next).await.unwrap();
                        next += 1;
                    }
                    next
                }
            });
            drop_calls(ledger.clone(), queues.clone(), call).await;
            ledger.over.cancel();
            let produced = producer.await.unwrap();
            queues.client.shutdown().await;
            let mut found = ledger.into_received();
            found.extend(left(&server));
            let swapped = found.windows(2).find(|pair| pair[0] >= pair[1]);
            assert_eq!((found.len() as i64, swapped), (produced, None));
        });
    }
}

#[test]
fn a_single_taker_keeps_the_order() {
    keeps_the_order(|queues| async move { vec![queues.ready.take().await.unwrap()] }.boxed());
}

#[test]
fn a_single_drainer_keeps_the_order() {
    keeps_the_order(|queues| {
        async move { queues.ready.drain(3).await.unwrap().into_iter().map(Result::unwrap).collect() }.boxed()
    });
}

#[test]
fn a_single_poller_keeps_the_order() {
    keeps_the_order(|queues| {
        async move { Vec::from_iter(queues.ready.poll_timeout(ms(1)).await.unwrap()) }.boxed()
    });
}
