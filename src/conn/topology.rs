//! Where the servers are at present: sentinels or the servers of a cluster say so, connections follow.

use std::fmt;
use std::future::pending;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::address::Address;
use super::slot::Slot;
use super::slots::Table;
use super::{Cause, OpError};
use crate::pacing::jittered;

/// How long a sentinel or a server of the cluster may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How often each of them is asked.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// How often after a sign that something has changed.
const EVERY_IN_DOUBT: Duration = Duration::from_millis(100);
/// For how long after such a sign.
const IN_DOUBT: Duration = Duration::from_secs(3);
/// For how long an answer counts more than one with an older epoch.
pub(super) const FRESH: Duration = Duration::from_secs(5);
/// How long a connection waits for the first answer.
const FIRST: Duration = Duration::from_secs(1);

/// The present table of slots, shared by those who write it and those who are led by it.
#[derive(Clone)]
pub(super) struct Topology(Arc<Inner>);

struct Inner {
    table: watch::Sender<Option<Table>>,
    /// Says what is not known while there is no table.
    unknown: String,
    /// Why there is no table, while there is none.
    trouble: Mutex<Trouble>,
    changes: AtomicU64,
    begun: Instant,
    /// When the last sign of a change was, in ms since `begun`.
    doubted: AtomicU64,
    raised: Notify,
}

/// Why a server has not said where the servers are.
struct Trouble {
    why: String,
    weight: Weight,
    since: Instant,
}

/// What helps most to find the cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Silence,
    /// Nobody listens there, or the connection was lost.
    Network,
    /// The server itself has said why.
    Words,
}

impl Weight {
    fn of(cause: &Cause) -> Self {
        match cause {
            cause if cause.is_timeout() => Self::Silence,
            cause if cause.is_of_network() => Self::Network,
            _ => Self::Words,
        }
    }
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Topology").field(&*self.0.table.borrow()).finish()
    }
}

impl Topology {
    /// `unknown` says what is not known, and `trouble` why, as long as none has answered.
    pub(super) fn new(unknown: String, trouble: &str) -> Self {
        let begun = Instant::now();
        let trouble = Trouble { why: trouble.into(), weight: Weight::Silence, since: begun };
        Self(Arc::new(Inner {
            table: watch::Sender::new(None),
            unknown,
            trouble: Mutex::new(trouble),
            changes: AtomicU64::new(0),
            begun,
            doubted: AtomicU64::new(0),
            raised: Notify::new(),
        }))
    }

    /// To follow the table.
    pub(super) fn tables(&self) -> watch::Receiver<Option<Table>> {
        self.0.table.subscribe()
    }

    /// Changes the table, unless `change` returns false.
    pub(super) fn update(&self, change: impl FnOnce(&mut Option<Table>) -> bool) {
        self.0.table.send_if_modified(|table| {
            let is_changed = change(table);
            self.0.changes.fetch_add(is_changed.into(), Relaxed);
            is_changed
        });
    }

    /// How often the table has changed.
    pub(super) fn changes(&self) -> u64 {
        self.0.changes.load(Relaxed)
    }

    /// The server of a slot.
    pub(super) fn server_of(&self, slot: Slot) -> Option<Address> {
        self.0.table.borrow().as_ref()?.server_of(slot).cloned()
    }

    /// There is a sign that another server serves a slot: a lost connection, or a server that refuses.
    /// Sentinels and servers of the cluster are asked at once.
    pub(super) fn doubt(&self) {
        self.0.doubted.store(self.0.begun.elapsed().as_millis() as u64, Relaxed);
        self.0.raised.notify_waiters();
    }

    /// Waits for the next sign.
    pub(super) fn doubted(&self) -> impl Future<Output = ()> + '_ {
        self.0.raised.notified()
    }

    fn is_in_doubt(&self) -> bool {
        let last = Duration::from_millis(self.0.doubted.load(Relaxed));
        self.0.begun.elapsed().saturating_sub(last) < IN_DOUBT
    }

    /// Waits until it is time to ask again. A sign since `doubted` was made ends the wait.
    pub(super) async fn next_question(&self, doubted: impl Future<Output = ()>) {
        let in_doubt = self.is_in_doubt();
        tokio::select! {
            () = doubted, if !in_doubt => {}
            () = sleep(jittered(if in_doubt { EVERY_IN_DOUBT } else { EVERY })) => {}
        }
    }

    /// Whether each slot has the same server in this table.
    pub(super) fn agrees_with(&self, table: &Table) -> bool {
        self.0.table.borrow().as_ref().is_some_and(|present| present.agrees_with(table))
    }

    /// The server at `asked` has refused a command for now. It may say who serves the slot.
    pub(super) fn refused(&self, error: &OpError, asked: &Address) {
        if let Some((slot, server)) = error.moved_to(asked) {
            self.update(|table| {
                let is_news = table.as_ref().is_some_and(|table| table.server_of(slot) != Some(&server));
                if let (Some(table), true) = (table, is_news) {
                    table.moved(slot, server);
                }
                is_news
            });
        }
        self.doubt();
    }

    /// A sentinel or a server of the cluster did not answer. For a while, what one of them has said outweighs
    /// that another one is silent.
    pub(super) fn failed(&self, server: &Address, cause: Cause) {
        let weight = Weight::of(&cause);
        let mut trouble = self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if weight >= trouble.weight || trouble.since.elapsed() >= FRESH {
            *trouble = Trouble { why: format!("{server}: {cause}"), weight, since: Instant::now() };
        }
    }

    /// The error that the server is not known, and why.
    pub(super) fn unknown(&self) -> Cause {
        let trouble = self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{}: {}", self.0.unknown, trouble.why).into()
    }

    /// To lead one connection to the server of a slot.
    pub(super) fn lead(&self, slot: Slot) -> Lead {
        Lead { topology: self.clone(), slot, led_to: None }
    }
}

/// Leads one connection to the server of a slot.
#[derive(Clone, Debug)]
pub(super) struct Lead {
    topology: Topology,
    slot: Slot,
    /// Where it was led last.
    led_to: Option<Address>,
}

impl Lead {
    /// Waits until another server than the connection's serves the slot. Cancel safe.
    pub(super) async fn is_outdated(&self) {
        let Some(led_to) = &self.led_to else { return pending().await };
        let is_other = |table: &Option<Table>| {
            table.as_ref().and_then(|table| table.server_of(self.slot)).is_some_and(|server| server != led_to)
        };
        // The sender is in `self`.
        let _ = self.topology.tables().wait_for(is_other).await.map(drop);
    }

    /// Where to connect now. Waits a while for an answer.
    pub(super) async fn next(&mut self) -> Result<Address, Cause> {
        let mut tables = self.topology.tables();
        let server = |table: &Option<Table>| table.as_ref()?.server_of(self.slot).cloned();
        let found = match timeout(FIRST, tables.wait_for(|table| server(table).is_some())).await {
            // It is taken from here: to read the table again would wait for this lock.
            Ok(Ok(table)) => server(&table),
            _ => None,
        };
        let address = found.ok_or_else(|| self.topology.unknown())?;
        self.led_to = Some(address.clone());
        Ok(address)
    }
}

/// Waits until the connection is one to an old master.
pub(super) async fn outdated(lead: Option<&Lead>) {
    match lead {
        Some(lead) => lead.is_outdated().await,
        None => pending().await,
    }
}

/// A failover has taken place.
pub(super) fn replaced() -> Cause {
    Cause::of_kind(ErrorKind::ConnectionAborted, "another server is the master now")
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn at(port: u16) -> Address {
        Address::new("h", port)
    }

    fn topology() -> Topology {
        let topology = Topology::new("nobody knows".into(), "no answer");
        topology.update(|table| table.replace(Table::of_one(at(1))).is_none());
        topology
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_led_to_the_server_of_its_slot_alone() {
        let topology = topology();
        let [mut one, mut other] = [b"a", b"b"].map(|key| topology.lead(Slot::of(key)));
        assert!(one.is_outdated().now_or_never().is_none(), "it was not led anywhere yet");
        assert_eq!((one.next().await.unwrap().port, other.next().await.unwrap().port), (1, 1));
        let moved = format!("MOVED {} h:2", Slot::of(b"a").number());
        topology.refused(&OpError::of_reply(&moved), &at(1));
        assert!(topology.is_in_doubt());
        assert!(one.is_outdated().now_or_never().is_some());
        assert!(other.is_outdated().now_or_never().is_none());
        assert_eq!(one.next().await.unwrap().port, 2);
        assert!(one.is_outdated().now_or_never().is_none());
        tokio::time::advance(IN_DOUBT).await;
        assert!(!topology.is_in_doubt());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_server_the_error_says_why() {
        let topology = Topology::new("nobody knows".into(), "no answer");
        let mut lead = topology.lead(Slot::ANY);
        assert_eq!(lead.next().await.unwrap_err().to_string(), "nobody knows: no answer");
        topology.failed(&at(1), "NOAUTH".into());
        assert_eq!(lead.next().await.unwrap_err().to_string(), "nobody knows: h:1: NOAUTH");
        topology.refused(&OpError::of_reply("MOVED 7 h:2"), &at(1));
        assert_eq!(topology.server_of(Slot::ANY), None, "one slot is no table");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_server_has_said_outweighs_the_silence_of_another_one() {
        let topology = Topology::new("nobody knows".into(), "no answer");
        let why = || topology.unknown().to_string();
        topology.failed(&at(1), Cause::silence());
        assert_eq!(why(), "nobody knows: h:1: the server does not answer");
        topology.failed(&at(2), Cause::of_kind(ErrorKind::ConnectionRefused, "refused"));
        topology.failed(&at(1), Cause::silence());
        assert_eq!(why(), "nobody knows: h:2: refused");
        topology.failed(&at(3), "NOAUTH".into());
        topology.failed(&at(2), Cause::of_kind(ErrorKind::ConnectionRefused, "refused"));
        assert_eq!(why(), "nobody knows: h:3: NOAUTH");
        tokio::time::advance(FRESH).await;
        topology.failed(&at(1), Cause::silence());
        assert_eq!(why(), "nobody knows: h:1: the server does not answer");
    }
}
