//! Counters: atomics that every module increments. Hot paths count without a lock. Only an error is stored
//! under a lock.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::health::Health;
use super::histogram::Buckets;
use super::stats::{ClientStats, HandlingStats, LastError, PumpStats, QueueStats, ReceivingStats};
use crate::wire::keys::Keys;

/// A queue has no overdue entry.
const NONE: i64 = i64::MAX;

/// The state of a queue on the server.
#[derive(Debug, Default)]
pub(crate) struct OnServer {
    pub(crate) pending: u64,
    pub(crate) list_len: u64,
    pub(crate) ready: u64,
    pub(crate) quarantined: u64,
    pub(crate) unconfirmed_pops: u64,
    pub(crate) overdue: u64,
    /// Messages of receivers.
    pub(crate) in_flight: u64,
    pub(crate) waiting: u64,
    pub(crate) dead_letters: u64,
    /// When the first message is due for its next delivery, epoch ms.
    pub(crate) retry: Option<f64>,
    pub(crate) is_paused: bool,
    pub(crate) max_in_flight: Option<u64>,
    /// The score of the head, epoch ms.
    pub(crate) head: Option<f64>,
    /// The server's clock, epoch µs.
    pub(crate) clock: i64,
}

/// The counters of a client and of its queues. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ClientCounters(Arc<OfClient>);

#[derive(Debug)]
struct OfClient {
    counts: Counts,
    reconnects: AtomicU64,
    failovers: AtomicU64,
    redirects: AtomicU64,
    transferring: AtomicU64,
    /// What the servers say of themselves.
    servers: Mutex<BTreeMap<String, OfServer>>,
    queues: Mutex<OfQueues>,
}

#[derive(Debug, Default)]
struct OfServer {
    /// `None` if it deletes nothing when its memory is full.
    eviction_policy: Option<String>,
    /// `None` if it does not say so.
    has_append_only_file: Option<bool>,
}

/// The counters of the queues that still have a handle.
#[derive(Debug, Default)]
struct OfQueues {
    known: HashMap<Keys, Weak<QueueCounters>>,
    /// At this number of queues, those without a handle are removed from the map.
    most: usize,
}

/// The counters of one queue of a client. Each event is also counted for the client.
#[derive(Debug)]
pub(crate) struct QueueCounters {
    client: ClientCounters,
    counts: Counts,
    transferring: AtomicBool,
    /// When the first overdue entry was due: µs after `counts.since`, or before it; [`NONE`] if none is.
    overdue_since: AtomicI64,
    warned: AtomicBool,
    delivered: [AtomicU64; Delivered::COUNT],
    /// Both are made when they are needed: most queues are idle.
    lateness: OnceLock<Box<Buckets>>,
    handled: OnceLock<Box<[Buckets; Delivered::SETTLED]>>,
}

/// What receivers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    Acknowledged,
    Failed,
    Snoozed,
    Released,
    Rejected,
    Received,
    Lost,
    Recovered,
    Died,
    Expired,
    Vanished,
}

impl Delivered {
    const COUNT: usize = Self::Vanished as usize + 1;
    /// The first ones say how a delivery was settled.
    const SETTLED: usize = Self::Rejected as usize + 1;

    /// How a delivery was settled, as metrics and spans say it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Failed => "failed",
            Self::Snoozed => "snoozed",
            Self::Released => "released",
            _ => "rejected",
        }
    }
}

#[derive(Debug)]
struct Counts {
    since: Instant,
    takers: AtomicU64,
    transfers: AtomicU64,
    failed_transfers: AtomicU64,
    stalled_transfers: AtomicU64,
    transferred: AtomicU64,
    empty_transfers: AtomicU64,
    quarantined: AtomicU64,
    /// µs after `since`; zero means never.
    last_transfer: AtomicU64,
    last_error: Mutex<Option<(String, Instant)>>,
}

impl Counts {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            takers: AtomicU64::new(0),
            transfers: AtomicU64::new(0),
            failed_transfers: AtomicU64::new(0),
            stalled_transfers: AtomicU64::new(0),
            transferred: AtomicU64::new(0),
            empty_transfers: AtomicU64::new(0),
            quarantined: AtomicU64::new(0),
            last_transfer: AtomicU64::new(0),
            last_error: Mutex::new(None),
        }
    }

    fn transferred(&self, transferred: u64, quarantined: u64) {
        self.transfers.fetch_add(1, Relaxed);
        self.transferred.fetch_add(transferred, Relaxed);
        self.empty_transfers.fetch_add(u64::from(transferred + quarantined == 0), Relaxed);
        let now = self.since.elapsed().as_micros() as u64;
        self.last_transfer.store(now.max(1), Relaxed);
    }

    fn failed(&self, message: String) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some((message, Instant::now()));
    }

    fn last_transfer_ago(&self) -> Option<Duration> {
        let at = Some(self.last_transfer.load(Relaxed)).filter(|at| *at > 0)?;
        Some(self.since.elapsed().saturating_sub(Duration::from_micros(at)))
    }

    fn last_error(&self) -> Option<LastError> {
        let last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.map(|(message, at)| LastError { message, ago: at.elapsed() })
    }

    /// The last error, unless a transfer has succeeded after it.
    fn failure(&self) -> Option<LastError> {
        self.last_error().filter(|error| error.lasts(self.last_transfer_ago()))
    }
}

impl ClientCounters {
    pub(crate) fn new() -> Self {
        Self(Arc::new(OfClient {
            counts: Counts::new(),
            reconnects: AtomicU64::new(0),
            failovers: AtomicU64::new(0),
            redirects: AtomicU64::new(0),
            transferring: AtomicU64::new(0),
            servers: Mutex::default(),
            queues: Mutex::default(),
        }))
    }

    /// The counters of a queue. All callers share them while at least one holds them.
    pub(crate) fn queue(&self, keys: &Keys) -> Arc<QueueCounters> {
        let mut queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = queues.known.get(keys).and_then(Weak::upgrade) {
            return known;
        }
        if queues.known.len() >= queues.most {
            queues.known.retain(|_, held| held.strong_count() > 0);
            queues.most = 64.max(2 * queues.known.len());
        }
        let new = Arc::new(QueueCounters {
            client: self.clone(),
            counts: Counts::new(),
            transferring: AtomicBool::new(false),
            overdue_since: AtomicI64::new(NONE),
            warned: AtomicBool::new(false),
            delivered: Default::default(),
            lateness: OnceLock::new(),
            handled: OnceLock::new(),
        });
        queues.known.insert(keys.clone(), Arc::downgrade(&new));
        new
    }

    pub(crate) fn reconnected(&self) {
        self.0.reconnects.fetch_add(1, Relaxed);
    }

    /// This number of masters has been replaced.
    pub(crate) fn failed_over(&self, masters: usize) {
        self.0.failovers.fetch_add(masters as u64, Relaxed);
    }

    /// A server has refused a command that another one serves, or it does in a moment.
    pub(crate) fn redirected(&self) {
        self.0.redirects.fetch_add(1, Relaxed);
    }

    /// Notes the server's eviction policy; `None` if it deletes nothing. Returns whether that has changed.
    pub(crate) fn evicts(&self, server: &str, policy: Option<&str>) -> bool {
        let mut servers = self.0.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = &mut servers.entry(server.to_owned()).or_default().eviction_policy;
        let changes = known.as_deref() != policy;
        *known = policy.map(str::to_owned);
        changes
    }

    /// Notes whether the server has an append-only file. Returns whether that has changed.
    pub(crate) fn has_aof(&self, server: &str, enabled: bool) -> bool {
        let mut servers = self.0.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.entry(server.to_owned()).or_default().has_append_only_file.replace(enabled) != Some(enabled)
    }

    /// The client does not write to this server any more.
    pub(crate) fn left(&self, server: &str) {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner).remove(server);
    }

    /// What is known of the queues that this client transfers for.
    pub(crate) fn health(&self, connected: bool, last_reply_ago: Option<Duration>) -> Health {
        let queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let queues = queues.known.values().filter_map(Weak::upgrade);
        let queues: Vec<_> = queues.filter(|queue| queue.transferring.load(Relaxed)).collect();
        Health {
            connected,
            last_reply_ago,
            transferring_queues: queues.len() as u64,
            failing_queues: queues.iter().filter(|queue| queue.counts.failure().is_some()).count() as u64,
            last_transfer_ago: self.0.counts.last_transfer_ago(),
            overdue_for: queues.iter().filter_map(|queue| queue.overdue_for()).max(),
        }
    }

    pub(crate) fn failed(&self, what: impl Display, error: impl Display) {
        self.0.counts.failed(format!("{what}: {error}"));
    }

    /// A task of the client has met a mistake in this program.
    pub(crate) fn panicked(&self, what: &str, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        self.failed(what, text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message"));
    }

    pub(crate) fn stats(&self, connected: bool) -> ClientStats {
        let OfClient { counts, reconnects, failovers, redirects, transferring, servers, queues: _ } =
            &*self.0;
        let servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        ClientStats {
            connected,
            masters: Vec::new(),
            reconnects: reconnects.load(Relaxed),
            failovers: failovers.load(Relaxed),
            redirects: redirects.load(Relaxed),
            eviction_policy: servers.values().find_map(|server| server.eviction_policy.clone()),
            has_append_only_file: servers
                .values()
                .filter_map(|server| server.has_append_only_file)
                .reduce(|all, one| all && one),
            transferring_queues: transferring.load(Relaxed),
            takers: counts.takers.load(Relaxed),
            transfers: counts.transfers.load(Relaxed),
            failed_transfers: counts.failed_transfers.load(Relaxed),
            stalled_transfers: counts.stalled_transfers.load(Relaxed),
            transferred: counts.transferred.load(Relaxed),
            empty_transfers: counts.empty_transfers.load(Relaxed),
            quarantined: counts.quarantined.load(Relaxed),
            last_error: counts.last_error(),
        }
    }
}

impl QueueCounters {
    /// Counts a transfer call that the server answered.
    pub(crate) fn transferred(&self, transferred: i64, quarantined: i64) {
        let (transferred, quarantined) = (transferred.max(0) as u64, quarantined.max(0) as u64);
        self.counts.transferred(transferred, quarantined);
        self.client.0.counts.transferred(transferred, quarantined);
    }

    pub(crate) fn transfer_failed(&self, queue: impl Display, error: impl Display) {
        let message = format!("transfer of queue `{queue}`: {error}");
        for counts in [&self.counts, &self.client.0.counts] {
            counts.failed_transfers.fetch_add(1, Relaxed);
            counts.failed(message.clone());
        }
    }

    /// An entry was overdue, and no client had tried to move it.
    pub(crate) fn transfer_stalled(&self) {
        for counts in [&self.counts, &self.client.0.counts] {
            counts.stalled_transfers.fetch_add(1, Relaxed);
        }
    }

    /// Counts entries that were moved to the quarantine. Returns whether they are the first of this queue.
    pub(crate) fn quarantined(&self, entries: i64) -> bool {
        if entries <= 0 {
            return false;
        }
        self.counts.quarantined.fetch_add(entries as u64, Relaxed);
        self.client.0.counts.quarantined.fetch_add(entries as u64, Relaxed);
        !self.warned.swap(true, Relaxed)
    }

    pub(crate) fn delivered(&self, what: Delivered, messages: u64) {
        self.delivered[what as usize].fetch_add(messages, Relaxed);
    }

    /// A program has settled a delivery after this time.
    pub(crate) fn handled(&self, what: Delivered, time: Duration) {
        let handled = self.handled.get_or_init(Box::default);
        if let Some(buckets) = handled.get(what as usize) {
            buckets.add(time);
        }
    }

    /// A transfer has moved an entry that was due at `due`, by a clock that is at `now`; both epoch ms.
    pub(crate) fn was_late(&self, due: f64, now: f64) {
        self.lateness.get_or_init(Box::default).add(span((now - due) / 1e3));
    }

    /// The first entry of the queue has been overdue for these ms; `None` if it is not.
    pub(crate) fn overdue(&self, ms: Option<f64>) {
        let now = self.counts.since.elapsed().as_micros() as i64;
        let since = ms.map_or(NONE, |ms| now.saturating_sub((ms * 1e3) as i64));
        self.overdue_since.store(since, Relaxed);
    }

    fn overdue_for(&self) -> Option<Duration> {
        let since = Some(self.overdue_since.load(Relaxed)).filter(|since| *since != NONE)?;
        let now = self.counts.since.elapsed().as_micros() as i64;
        Some(Duration::from_micros(now.saturating_sub(since).max(0) as u64))
    }

    fn handling(&self) -> HandlingStats {
        let Some(handled) = self.handled.get() else { return HandlingStats::default() };
        let of = |what: Delivered| handled[what as usize].read();
        HandlingStats {
            acknowledged: of(Delivered::Acknowledged),
            failed: of(Delivered::Failed),
            snoozed: of(Delivered::Snoozed),
            released: of(Delivered::Released),
            rejected: of(Delivered::Rejected),
        }
    }

    fn receiving(&self, server: &OnServer) -> ReceivingStats {
        let count = |what: Delivered| self.delivered[what as usize].load(Relaxed);
        let behind = server.retry.map(|retry| server.clock as f64 / 1e6 - retry / 1e3);
        ReceivingStats {
            in_flight: server.in_flight,
            waiting: server.waiting,
            dead_letters: server.dead_letters,
            overdue_for: behind.filter(|behind| *behind > 0.0).map(span),
            received: count(Delivered::Received),
            acknowledged: count(Delivered::Acknowledged),
            failed: count(Delivered::Failed),
            snoozed: count(Delivered::Snoozed),
            released: count(Delivered::Released),
            rejected: count(Delivered::Rejected),
            lost: count(Delivered::Lost),
            recovered: count(Delivered::Recovered),
            died: count(Delivered::Died),
            expired: count(Delivered::Expired),
            vanished: count(Delivered::Vanished),
            handling: self.handling(),
        }
    }

    /// What this client has transferred, and the last transfer if it failed.
    pub(crate) fn pumped(&self) -> PumpStats {
        let Counts { transferred, quarantined, .. } = &self.counts;
        PumpStats {
            transferred: transferred.load(Relaxed),
            quarantined: quarantined.load(Relaxed),
            failure: self.counts.failure(),
        }
    }

    pub(crate) fn set_transferring(&self, transferring: bool) {
        let total = &self.client.0.transferring;
        match (self.transferring.swap(transferring, Relaxed), transferring) {
            (false, true) => total.fetch_add(1, Relaxed),
            (true, false) => total.fetch_sub(1, Relaxed),
            _ => 0,
        };
    }

    pub(crate) fn stats(&self, server: &OnServer) -> QueueStats {
        let counts = &self.counts;
        let ahead = server.head.map(|head| head / 1e3 - server.clock as f64 / 1e6);
        QueueStats {
            server: String::new(),
            pending: server.pending,
            list_len: server.list_len,
            ready: server.ready,
            overdue: server.overdue,
            overdue_for: ahead.filter(|_| server.overdue > 0).map(|ahead| span(-ahead)),
            next_due_in: ahead.map(span),
            quarantined: server.quarantined,
            unconfirmed_pops: server.unconfirmed_pops,
            is_paused: server.is_paused,
            max_in_flight: server.max_in_flight,
            receiving: self.receiving(server),
            transferring: self.transferring.load(Relaxed),
            takers: counts.takers.load(Relaxed),
            transfers: counts.transfers.load(Relaxed),
            last_transfer_ago: counts.last_transfer_ago(),
            failed_transfers: counts.failed_transfers.load(Relaxed),
            stalled_transfers: counts.stalled_transfers.load(Relaxed),
            transferred: counts.transferred.load(Relaxed),
            empty_transfers: counts.empty_transfers.load(Relaxed),
            lateness: self.lateness.get().map_or_else(Default::default, |lateness| lateness.read()),
            quarantined_by_this_client: counts.quarantined.load(Relaxed),
            last_error: counts.last_error(),
        }
    }
}

fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// A waiting taker. While this value exists, the taker counts once for the client and once for each of its
/// queues.
#[derive(Debug)]
pub(crate) struct Taker(Vec<Arc<QueueCounters>>);

impl Taker {
    pub(crate) fn new(queues: Vec<Arc<QueueCounters>>) -> Self {
        let new = Self(queues);
        for takers in new.counters() {
            takers.fetch_add(1, Relaxed);
        }
        new
    }

    fn counters(&self) -> impl Iterator<Item = &AtomicU64> {
        let client = self.0.first().map(|queue| &queue.client.0.counts.takers);
        client.into_iter().chain(self.0.iter().map(|queue| &queue.counts.takers))
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        for takers in self.counters() {
            takers.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(head: Option<f64>, overdue: u64) -> OnServer {
        let clock = 1_700_000_000_000_000;
        OnServer { pending: 1, overdue, head, clock, ..OnServer::default() }
    }

    #[test]
    fn counters_of_a_queue_are_shared_while_they_are_held() {
        let client = ClientCounters::new();
        let first = client.queue(&Keys::new("q"));
        let second = client.queue(&Keys::new("q"));
        assert!(Arc::ptr_eq(&first, &second));
        first.transferred(3, 0);
        client.queue(&Keys::new("p")).transferred(0, 0);
        assert_eq!(second.stats(&server(None, 0)).transferred, 3);
        let stats = client.stats(true);
        assert_eq!((stats.transfers, stats.transferred, stats.empty_transfers), (2, 3, 1));
    }

    #[test]
    fn each_server_that_evicts_is_known() {
        let client = ClientCounters::new();
        let policy = || client.stats(true).eviction_policy;
        assert!(client.evicts("a", Some("allkeys-lru")) && client.evicts("b", Some("allkeys-lru")));
        assert!(!client.evicts("a", Some("allkeys-lru")) && !client.evicts("b", Some("allkeys-lru")));
        assert!(client.evicts("b", Some("volatile-lru")));
        assert!(client.evicts("b", None) && !client.evicts("b", None));
        assert_eq!(policy().as_deref(), Some("allkeys-lru"));
        client.left("a");
        assert_eq!(policy(), None);
    }

    #[test]
    fn one_server_without_an_append_only_file_is_enough() {
        let client = ClientCounters::new();
        let enabled = || client.stats(true).has_append_only_file;
        client.evicts("a", None);
        assert_eq!(enabled(), None);
        assert!(client.has_aof("a", true) && !client.has_aof("a", true));
        assert_eq!(enabled(), Some(true));
        assert!(client.has_aof("b", false) && !client.has_aof("b", false));
        assert_eq!(enabled(), Some(false));
        client.left("b");
        assert_eq!(enabled(), Some(true));
        assert!(client.has_aof("b", false), "it is said again of a server that the client had left");
    }

    #[test]
    fn any_head_and_any_clock_make_stats() {
        let counters = ClientCounters::new().queue(&Keys::new("q"));
        for head in
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 9_007_199_254_740_993.0, -1.0]
        {
            for clock in [i64::MIN, -1, 0, 1 << 53, i64::MAX] {
                let stats = counters.stats(&OnServer { clock, ..server(Some(head), u64::MAX) });
                assert!(serde_json::to_value(&stats).is_ok(), "{head} {clock}");
            }
        }
        for entries in [i64::MIN, -1, 0, i64::MAX, i64::MAX] {
            counters.quarantined(entries);
            counters.transferred(entries, entries);
            counters.transferred(0, entries);
        }
    }

    #[test]
    fn counters_that_nobody_holds_are_forgotten() {
        let client = ClientCounters::new();
        let held = client.queue(&Keys::new("held"));
        for n in 0..1_000 {
            client.queue(&Keys::new(n.to_string())).transferred(1, 0);
        }
        assert!(client.0.queues.lock().unwrap().known.len() <= 128);
        assert!(Arc::ptr_eq(&held, &client.queue(&Keys::new("held"))));
        assert_eq!(client.stats(true).transferred, 1_000);
    }

    #[test]
    fn a_taker_of_many_queues_is_one_to_the_client() {
        let client = ClientCounters::new();
        let queues = ["a", "b"].map(|name| client.queue(&Keys::new(name)));
        let takers = || client.stats(true).takers;
        let both = Taker::new(queues.to_vec());
        let one = Taker::new(vec![queues[0].clone()]);
        assert_eq!(takers(), 2);
        assert_eq!(queues[0].stats(&server(None, 0)).takers, 2);
        assert_eq!(queues[1].stats(&server(None, 0)).takers, 1);
        drop((both, one));
        assert_eq!(takers(), 0);
        assert_eq!(queues[0].stats(&server(None, 0)).takers, 0);
    }

    #[test]
    fn only_the_first_quarantined_entry_of_a_queue_is_logged() {
        let queue = ClientCounters::new().queue(&Keys::new("q"));
        assert!(!queue.quarantined(0));
        assert!(queue.quarantined(2));
        assert!(!queue.quarantined(1));
        assert_eq!(queue.stats(&server(None, 0)).quarantined_by_this_client, 3);
    }

    #[test]
    fn the_head_is_ahead_or_behind() {
        let queue = ClientCounters::new().queue(&Keys::new("q"));
        let spans = |head, overdue| {
            let stats = queue.stats(&server(head, overdue));
            (stats.next_due_in, stats.overdue_for)
        };
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(spans(None, 0), (None, None));
        assert_eq!(spans(Some(1_700_000_005_000.0), 0), (seconds(5), None));
        assert_eq!(spans(Some(1_699_999_995_000.0), 3), (seconds(0), seconds(5)));
        assert_eq!(spans(Some(f64::INFINITY), 0), (Some(Duration::MAX), None));
        assert_eq!(spans(Some(f64::NEG_INFINITY), 1), (seconds(0), Some(Duration::MAX)));
    }
}
