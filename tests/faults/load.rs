//! Producers and takers that go on whatever happens, and a ledger that knows what was promised and what came.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redelay::{Client, ErrorKind, codec};
use redelay_fixture::{Server, until_async_within};
use tokio::task::JoinHandle;

pub(crate) const QUEUE: &str = "q";

/// What became of every offer, by its payload.
#[derive(Default)]
struct Ledger {
    acknowledged: Mutex<Vec<String>>,
    /// Offers that ended with an error that leaves the outcome open.
    unknown: AtomicUsize,
    refused: AtomicUsize,
    taken: Mutex<HashMap<String, usize>>,
}

/// A running load.
pub(crate) struct Load {
    ledger: Arc<Ledger>,
    stop: Arc<AtomicBool>,
    producers: Vec<JoinHandle<()>>,
    takers: Vec<JoinHandle<()>>,
    clients: [Client; 2],
}

/// What a load has shown.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) acknowledged: usize,
    pub(crate) unknown: usize,
    pub(crate) refused: usize,
    pub(crate) lost: Vec<String>,
    pub(crate) doubled: Vec<String>,
}

impl Load {
    /// Starts producers and takers on two clients of their own: the names of their connections begin with `offers` and
    /// `takes`.
    pub(crate) async fn start(url: &str, producers: usize, takers: usize) -> Self {
        let connect = |name: &str| Client::builder().url(url).client_name(name).connect();
        let clients = [connect("offers").await.expect("a client"), connect("takes").await.expect("a client")];
        let (ledger, stop) = (Arc::<Ledger>::default(), Arc::<AtomicBool>::default());
        let producers = (0..producers)
            .map(|number| tokio::spawn(produce(clients[0].clone(), number, ledger.clone(), stop.clone())))
            .collect();
        let takers = (0..takers).map(|_| tokio::spawn(take(clients[1].clone(), ledger.clone()))).collect();
        Self { ledger, stop, producers, takers, clients }
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.ledger.acknowledged.lock().unwrap().len()
    }

    /// Offers that ended with an error.
    pub(crate) fn failed(&self) -> usize {
        self.ledger.unknown.load(Ordering::Relaxed) + self.ledger.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn taken(&self) -> usize {
        self.ledger.taken.lock().unwrap().len()
    }

    /// Waits until so many more payloads have been taken; how long that took.
    pub(crate) async fn goes_on(&self, more: usize) -> Duration {
        let (begun, goal) = (Instant::now(), self.taken() + more);
        until_async_within(Duration::from_secs(30), "the load goes on", || async { self.taken() >= goal })
            .await;
        begun.elapsed()
    }

    /// Stops offering, waits until the queue is empty, and counts.
    pub(crate) async fn finish(self, server: &Server) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        for producer in self.producers {
            producer.await.expect("a producer");
        }
        let empty = || async {
            let keys = server.keys();
            !keys.iter().any(|key| key.starts_with(b"redisson") || key == QUEUE.as_bytes())
        };
        until_async_within(Duration::from_secs(120), "everything was moved and taken", empty).await;
        // What is on its way to a taker arrives, or comes back before the shutdown ends.
        for client in &self.clients {
            client.shutdown().await;
        }
        for taker in self.takers {
            taker.await.expect("a taker");
        }
        let mut taken = self.ledger.taken.lock().unwrap().clone();
        for back in server.list(QUEUE) {
            *taken.entry(String::from_utf8(back).expect("text")).or_default() += 1;
        }
        let acknowledged = self.ledger.acknowledged.lock().unwrap();
        Outcome {
            acknowledged: acknowledged.len(),
            unknown: self.ledger.unknown.load(Ordering::Relaxed),
            refused: self.ledger.refused.load(Ordering::Relaxed),
            lost: acknowledged.iter().filter(|payload| !taken.contains_key(*payload)).cloned().collect(),
            doubled: taken.into_iter().filter(|(_, times)| *times > 1).map(|(payload, _)| payload).collect(),
        }
    }
}

async fn produce(client: Client, number: usize, ledger: Arc<Ledger>, stop: Arc<AtomicBool>) {
    let delayed = client.delayed_queue(&client.blocking_queue(QUEUE, codec::String));
    let mut random = fastrand::Rng::with_seed(number as u64);
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let payload = format!("{number}-{n}");
        match delayed.offer(&payload, Duration::from_millis(random.u64(0..100))).await {
            Ok(_) => ledger.acknowledged.lock().unwrap().push(payload),
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                ledger.unknown.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                ledger.refused.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn take(client: Client, ledger: Arc<Ledger>) {
    let ready = client.blocking_queue::<String>(QUEUE, codec::String);
    loop {
        match ready.take().await {
            Ok(payload) => *ledger.taken.lock().unwrap().entry(payload).or_default() += 1,
            Err(error) if error.is_closed() => return,
            Err(error) => panic!("take has failed, though it waits for connections: {error}"),
        }
    }
}
