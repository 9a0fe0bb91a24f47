//! Offers around a failover: how many are acknowledged, how many of these are gone, and whether later ones
//! are delivered. And what is waited for before and after it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use redelay::client::ClientBuilder;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, MINUTE, ms, soon};
use tokio::task::block_in_place;

/// How many offers say something.
const ENOUGH: usize = 20;

/// Eight callers offer to `q` without a pause, from a second before the failover until half a second after
/// it, or longer on a busy machine. Returns how many offers were acknowledged, and how many of them are not
/// pending in the end.
pub(crate) async fn acknowledged_and_lost(
    builder: ClientBuilder,
    fail_over: impl FnOnce(),
) -> (usize, usize) {
    let client = builder.connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    let is_over = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::<AtomicUsize>::default();
    let offering: Vec<_> = (0..8)
        .map(|offerer| {
            let (delayed, is_over, acknowledged) = (delayed.clone(), is_over.clone(), acknowledged.clone());
            tokio::spawn(async move {
                let mut stored = Vec::new();
                let mut values = offerer * 1_000_000..;
                while !is_over.load(Ordering::Relaxed) {
                    let value: i64 = values.next().unwrap();
                    if delayed.offer(&value, HOUR).await.is_ok() {
                        stored.push(value);
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                }
                stored
            })
        })
        .collect();
    tokio::time::sleep(ms(1000)).await;
    until_async("enough is acknowledged", || async { acknowledged.load(Ordering::Relaxed) >= ENOUGH }).await;
    block_in_place(fail_over);
    tokio::time::sleep(ms(500)).await;
    is_over.store(true, Ordering::Relaxed);
    let mut stored = Vec::new();
    for offerer in offering {
        stored.extend(soon(offerer).await.unwrap());
    }
    let pending: HashSet<i64> = delayed.read_all().await.unwrap().into_iter().collect();
    let lost = stored.iter().filter(|value| !pending.contains(value)).count();
    client.shutdown().await;
    (stored.len(), lost)
}

/// Takes what is delivered around a failover.
pub(crate) struct Taker<'a> {
    pub(crate) ready: &'a BlockingQueue<i64>,
    /// A value that may come twice. On a busy machine, it is due before the promotion. The old master may
    /// deliver it, and the new one does not know.
    pub(crate) again: Option<i64>,
}

impl Taker<'_> {
    /// Takes until there are all of these, in whatever order.
    pub(crate) async fn take_all(&mut self, mut taken: BTreeSet<i64>, all: &[i64]) {
        while taken.len() < all.len() {
            let value = soon(self.ready.take()).await.unwrap();
            let comes_again = !taken.insert(value);
            assert!(!comes_again || self.is_excused(value), "{value} comes again");
        }
        assert!(taken.iter().eq(all), "{taken:?}");
    }

    pub(crate) async fn next(&mut self) -> i64 {
        loop {
            let value = soon(self.ready.take()).await.unwrap();
            if !self.is_excused(value) {
                return value;
            }
        }
    }

    /// Once.
    fn is_excused(&mut self, value: i64) -> bool {
        self.again.take_if(|again| *again == value).is_some()
    }

    /// Offers are delivered one after the other, for about half a second.
    pub(crate) async fn delivers(&mut self, delayed: &DelayedQueue<i64>) {
        for value in 5..30 {
            soon(delayed.offer(&value, ms(1))).await.unwrap();
            assert_eq!(self.next().await, value);
            tokio::time::sleep(ms(20)).await;
        }
    }
}

/// The delayed queue `q` of a client. Its calls may take longer than the client's others, as a busy machine
/// needs it.
pub(crate) fn patient(client: &Client) -> DelayedQueue<i64> {
    let client = client.with_timeout(10 * MINUTE);
    client.delayed_queue(&client.blocking_queue("q", codec::Long))
}

/// Waits until a replica has everything that the master has now.
pub(crate) async fn until_replicated(master: &Server, replica: &Server) {
    let least = master.replication_offset();
    until_async("it is replicated", || async { replica.replication_offset() >= least }).await;
}

/// A replica does not know the scripts of the client when it is promoted. That of Redis 6.2 does: `SCRIPT
/// LOAD` was replicated.
pub(crate) fn lacks_scripts(replica: &Server) -> bool {
    replica.cached_scripts() == 0 || replica.version().major < 7
}

/// Waits until no client has a connection to a server that is no master any more, and nothing is parked
/// there. Does nothing if it is down.
pub(crate) async fn until_left(old: &Server) {
    if old.is_running() {
        until_async("the old master is left", || async {
            old.clients_named("redelay") == 0 && old.blocked_clients() == 0
        })
        .await;
    }
}
