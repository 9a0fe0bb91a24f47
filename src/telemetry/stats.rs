//! The numbers that a caller reads: snapshots of the counters and of the server.

use std::time::Duration;

use serde::Serialize;

use super::histogram::Histogram;
use crate::wire::time;

/// Counters and gauges of a client since it connected. [`Client::stats`](crate::Client::stats) returns them.
///
/// Fields that say "now" are gauges. All other numbers only grow. Serialized, a duration is a number of
/// milliseconds with decimals, and its field ends in `_ms`.
///
/// # Examples
/// ```no_run
/// # use redelay::Client;
/// # fn example(client: &Client) {
/// let stats = client.stats();
/// if !stats.connected {
///     println!("no connection; the last error: {:?}", stats.last_error);
/// }
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClientStats {
    /// Whether the connection for commands is up now; in a cluster, those to all masters.
    pub connected: bool,
    /// The servers that the client writes to now, as `host:port` or the path of a socket: one, or the masters
    /// of a cluster.
    pub masters: Vec<String>,
    /// Masters that were replaced since the client connected: of sentinels; or of a cluster, including those
    /// that have no slots any more.
    pub failovers: u64,
    /// Commands that a server of a cluster has refused because another one serves their slot, or because the
    /// slot was moving. Each is sent again.
    pub redirects: u64,
    /// Lost connections that were replaced, including those for announcements and for blocking pops.
    pub reconnects: u64,
    /// The server's eviction policy, if it is another than `noeviction`: the server deletes keys when its
    /// memory is full, and with them messages. In a cluster, that of one such master. Looked at with each new
    /// connection; `None` if the user may not run `INFO`.
    pub eviction_policy: Option<String>,
    /// Whether the server has an append-only file. Without it, a restart loses everything since the last
    /// snapshot. In a cluster: whether every master that reports this has one. Looked at when the client
    /// connects; `None` if the user may not run `INFO`, or a service does not say it.
    pub has_append_only_file: Option<bool>,
    /// Queues for which this client transfers now.
    pub transferring_queues: u64,
    /// Futures and streams that wait for a payload now.
    pub takers: u64,
    /// Transfer calls that the server answered.
    pub transfers: u64,
    /// Transfer calls that failed. Each is retried.
    pub failed_transfers: u64,
    /// How often an entry was overdue for more than 5 s although the server answered, and this client had not
    /// tried to move it: its announcement was lost, or there was none. Then the client moves it. A transfer
    /// without a reply for longer than its timeouts allow counts, too.
    pub stalled_transfers: u64,
    /// Payloads that this client moved to their targets.
    pub transferred: u64,
    /// Transfer calls that found nothing due: those of idle queues, about once a minute, and wake-ups when
    /// another client was faster.
    pub empty_transfers: u64,
    /// Malformed entries that this client moved to a quarantine.
    pub quarantined: u64,
    /// The last error of any connection or background task of this client.
    pub last_error: Option<LastError>,
}

/// Counters and gauges of one queue: its state on the server, and what this client has done for it.
/// [`DelayedQueue::stats`](crate::DelayedQueue::stats) and
/// [`BlockingQueue::stats`](crate::BlockingQueue::stats) return them.
///
/// The client's own counters start with its first handle for the queue and end with its last one. Serialized,
/// a duration is a number of milliseconds with decimals, and its field ends in `_ms`.
///
/// # Examples
/// ```no_run
/// # use redelay::{DelayedQueue, Result};
/// # async fn example(jobs: DelayedQueue<String>) -> Result<()> {
/// let stats = jobs.stats().await?;
/// println!("{} pending, {} ready, the next is due in {:?}", stats.pending, stats.ready, stats.next_due_in);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct QueueStats {
    /// The server that has the queue, as `host:port` or the path of a socket. Empty for partitions on several
    /// servers.
    pub server: String,
    /// Entries with a due time, including overdue ones.
    pub pending: u64,
    /// Entries in the ordered list. It equals `pending` unless a client wrote to only one of the two keys, or
    /// a transfer moves a backlog: due entries leave the list first.
    /// [`DelayedQueue::len`](crate::DelayedQueue::len) returns this, or `pending` during such a transfer.
    pub list_len: u64,
    /// Payloads that takers can take now.
    pub ready: u64,
    /// Pending entries that are due by the server's clock and not transferred yet.
    pub overdue: u64,
    /// How long the earliest overdue entry has been due.
    #[serde(rename = "overdue_for_ms", serialize_with = "time::optional_in_ms")]
    pub overdue_for: Option<Duration>,
    /// Time until the next entry is due, by the server's clock: zero when one is overdue, `None` when nothing
    /// is pending.
    #[serde(rename = "next_due_in_ms", serialize_with = "time::optional_in_ms")]
    pub next_due_in: Option<Duration>,
    /// Entries in the queue's quarantine, from all clients.
    pub quarantined: u64,
    /// Pops whose payloads the server still keeps a copy of, from all clients: those in flight, and those of
    /// processes that died before they confirmed the reply. See
    /// [`UnconfirmedPops`](crate::admin::UnconfirmedPops).
    pub unconfirmed_pops: u64,
    /// Whether [`BlockingQueue::pause`](crate::BlockingQueue::pause) holds back all receivers of the queue.
    pub is_paused: bool,
    /// How many messages may be in flight at a time, as set by
    /// [`BlockingQueue::set_max_in_flight`](crate::BlockingQueue::set_max_in_flight); `None` if there is no
    /// limit.
    pub max_in_flight: Option<u64>,
    /// What receivers of the queue have done, and what they have left to do.
    pub receiving: ReceivingStats,
    /// Whether this client transfers for this queue now.
    pub transferring: bool,
    /// Futures and streams of this client that wait for a payload of this queue now.
    pub takers: u64,
    /// Transfer calls of this client that the server answered.
    pub transfers: u64,
    /// Time since the last of them.
    #[serde(rename = "last_transfer_ago_ms", serialize_with = "time::optional_in_ms")]
    pub last_transfer_ago: Option<Duration>,
    /// Transfer calls of this client that failed. Each is retried.
    pub failed_transfers: u64,
    /// How often an entry of this queue was overdue for more than 5 s although the server answered, and this
    /// client had not tried to move it.
    pub stalled_transfers: u64,
    /// Payloads that this client moved to the target.
    pub transferred: u64,
    /// Transfer calls of this client that found nothing due: about one a minute if it is idle, and wake-ups
    /// when another client was faster.
    pub empty_transfers: u64,
    /// How late this client's transfers were: the time from the due time of the first entry, by the server's
    /// clock. Each transfer that moves something counts once, if the client knew that due time before, by an
    /// announcement or by its last transfer.
    pub lateness: Histogram,
    /// Malformed entries that this client moved to the quarantine.
    pub quarantined_by_this_client: u64,
    /// The last transfer that failed. If `last_transfer_ago` is shorter than its `ago`, the problem is over.
    pub last_error: Option<LastError>,
}

impl QueueStats {
    /// Those of two queues together.
    pub(crate) fn and(self, other: Self) -> Self {
        let (last_transfer_ago, last_error) = match (self.is_failing(), other.is_failing()) {
            (true, false) => (self.last_transfer_ago, self.last_error),
            (false, true) => (other.last_transfer_ago, other.last_error),
            _ => (
                earlier(self.last_transfer_ago, other.last_transfer_ago),
                match (self.last_error, other.last_error) {
                    (Some(one), Some(other)) => Some(if one.ago <= other.ago { one } else { other }),
                    (one, other) => one.or(other),
                },
            ),
        };
        let both = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        Self {
            server: if self.server == other.server { self.server } else { String::new() },
            pending: self.pending + other.pending,
            list_len: self.list_len + other.list_len,
            ready: self.ready + other.ready,
            overdue: self.overdue + other.overdue,
            overdue_for: self.overdue_for.max(other.overdue_for),
            next_due_in: earlier(self.next_due_in, other.next_due_in),
            quarantined: self.quarantined + other.quarantined,
            unconfirmed_pops: self.unconfirmed_pops + other.unconfirmed_pops,
            is_paused: self.is_paused && other.is_paused,
            max_in_flight: both(self.max_in_flight, other.max_in_flight),
            receiving: self.receiving.and(other.receiving),
            transferring: self.transferring && other.transferring,
            takers: self.takers + other.takers,
            transfers: self.transfers + other.transfers,
            last_transfer_ago,
            failed_transfers: self.failed_transfers + other.failed_transfers,
            stalled_transfers: self.stalled_transfers + other.stalled_transfers,
            transferred: self.transferred + other.transferred,
            empty_transfers: self.empty_transfers + other.empty_transfers,
            lateness: self.lateness.and(other.lateness),
            quarantined_by_this_client: self.quarantined_by_this_client + other.quarantined_by_this_client,
            last_error,
        }
    }

    fn is_failing(&self) -> bool {
        self.last_error.as_ref().is_some_and(|error| error.lasts(self.last_transfer_ago))
    }
}

fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// Gauges of the messages that receivers of all clients have claimed, and counters of what this client's
/// receivers have done. A part of [`QueueStats`].
///
/// # Examples
/// ```no_run
/// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
/// let receiving = orders.stats().await?.receiving;
/// println!("{} in flight, {} wait for a retry, {} dead", receiving.in_flight, receiving.waiting, receiving.dead_letters);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReceivingStats {
    /// Messages that receivers of any client have now.
    pub in_flight: u64,
    /// Messages that wait for their next delivery, including overdue ones.
    pub waiting: u64,
    /// Dead letters, from all clients.
    pub dead_letters: u64,
    /// For how long the first message has been due for its next delivery: its retry, or the end of the lease
    /// of a receiver that is gone. `None` if none is due.
    #[serde(rename = "overdue_for_ms", serialize_with = "time::optional_in_ms")]
    pub overdue_for: Option<Duration>,
    /// Messages that receivers of this client have claimed, each delivery once.
    pub received: u64,
    /// Deliveries that this client has acknowledged.
    pub acknowledged: u64,
    /// Deliveries that failed, dead letters included.
    pub failed: u64,
    /// Deliveries that were snoozed: delivered again after a time, without a failure.
    pub snoozed: u64,
    /// Deliveries that were released, or snoozed for no time: delivered again at once, without a failure.
    pub released: u64,
    /// Deliveries that were rejected, the undecodable included.
    pub rejected: u64,
    /// Deliveries of this client whose lease ended before they were settled.
    pub lost: u64,
    /// Messages that this client took back from receivers whose leases had ended.
    pub recovered: u64,
    /// Messages that became dead letters in calls of this client.
    pub died: u64,
    /// Jobs that expired before their handling began: see
    /// [`JobOffer::expires_after`](crate::delayed_queue::JobOffer::expires_after). Those that became dead
    /// letters count as `died`, too.
    pub expired: u64,
    /// Messages and dead letters that this client has found to be without content on the server: it was
    /// deleted by hand. What a background check found is not counted if the reply to it was lost.
    pub vanished: u64,
    /// How long this client's programs had deliveries, by what became of them.
    pub handling: HandlingStats,
}

impl ReceivingStats {
    fn and(self, other: Self) -> Self {
        Self {
            in_flight: self.in_flight + other.in_flight,
            waiting: self.waiting + other.waiting,
            dead_letters: self.dead_letters + other.dead_letters,
            overdue_for: self.overdue_for.max(other.overdue_for),
            received: self.received + other.received,
            acknowledged: self.acknowledged + other.acknowledged,
            failed: self.failed + other.failed,
            snoozed: self.snoozed + other.snoozed,
            released: self.released + other.released,
            rejected: self.rejected + other.rejected,
            lost: self.lost + other.lost,
            recovered: self.recovered + other.recovered,
            died: self.died + other.died,
            expired: self.expired + other.expired,
            vanished: self.vanished + other.vanished,
            handling: self.handling.and(other.handling),
        }
    }
}

/// How long a program had its deliveries, from when it got them to when it settled them: in a worker, what
/// the handler takes. A part of [`ReceivingStats`].
///
/// # Examples
/// ```no_run
/// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
/// let failed = orders.stats().await?.receiving.handling.failed;
/// println!("{:?} were spent on failures", failed.sum);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HandlingStats {
    /// Those that were acknowledged.
    pub acknowledged: Histogram,
    /// Those that failed, and are delivered again or become dead letters.
    pub failed: Histogram,
    /// Those that were snoozed.
    pub snoozed: Histogram,
    /// Those that were released.
    pub released: Histogram,
    /// Those that were rejected.
    pub rejected: Histogram,
}

impl HandlingStats {
    fn and(self, other: Self) -> Self {
        Self {
            acknowledged: self.acknowledged.and(other.acknowledged),
            failed: self.failed.and(other.failed),
            snoozed: self.snoozed.and(other.snoozed),
            released: self.released.and(other.released),
            rejected: self.rejected.and(other.rejected),
        }
    }
}

/// What this client has transferred for a queue. [`Pump::stats`](crate::admin::Pump::stats) returns it.
///
/// # Examples
/// ```no_run
/// # fn example(orders: redelay::admin::Pump) {
/// let stats = orders.stats();
/// println!("{} transferred, {} quarantined", stats.transferred, stats.quarantined);
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PumpStats {
    /// Payloads that this client moved to the target.
    pub transferred: u64,
    /// Malformed entries that this client moved to the quarantine.
    pub quarantined: u64,
    /// Why the last transfer failed; `None` if it did not.
    pub failure: Option<LastError>,
}

/// An error that the client handled in the background.
///
/// # Examples
/// ```no_run
/// # fn example(client: &redelay::Client) {
/// if let Some(error) = client.stats().last_error {
///     println!("{:?} ago: {}", error.ago, error.message);
/// }
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LastError {
    /// What failed and why, for people to read.
    pub message: String,
    /// Time since it happened.
    #[serde(rename = "ago_ms", serialize_with = "time::in_ms")]
    pub ago: Duration,
}

impl LastError {
    /// Whether no transfer has succeeded after it, if this is one of a transfer.
    pub(super) fn lasts(&self, last_transfer_ago: Option<Duration>) -> bool {
        last_transfer_ago.is_none_or(|last| last >= self.ago)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_milliseconds_in_json() {
        let mut stats = QueueStats { pending: 2, ..QueueStats::default() };
        stats.next_due_in = Some(Duration::from_micros(1_500));
        stats.last_error = Some(LastError { message: "no memory".into(), ago: Duration::from_secs(2) });
        let json = serde_json::to_value(&stats).unwrap();
        assert_eq!(json["next_due_in_ms"], 1.5);
        assert_eq!(json["overdue_for_ms"], serde_json::Value::Null);
        assert_eq!(json["last_error"]["ago_ms"], 2000.0);
        assert_eq!(serde_json::to_value(ClientStats::default()).unwrap()["transferring_queues"], 0);
    }

    #[test]
    fn a_problem_of_one_partition_is_not_over_in_the_sum() {
        // Of each partition: how many seconds ago its last error and its last transfer were.
        let sum = |partitions: &[(Option<u64>, Option<u64>)]| {
            let stats = partitions.iter().map(|(failed, transferred)| QueueStats {
                last_error: failed.map(|ago| LastError { message: ago.to_string(), ago: seconds(ago) }),
                last_transfer_ago: transferred.map(seconds),
                ..QueueStats::default()
            });
            let sum = stats.reduce(QueueStats::and).expect("a partition");
            (sum.last_error.map(|error| error.ago.as_secs()), sum.last_transfer_ago.map(|ago| ago.as_secs()))
        };
        let (works, failed, fails, never) =
            ((None, Some(1)), (Some(3), Some(2)), (Some(5), Some(60)), (Some(7), None));
        assert_eq!(sum(&[works, failed]), (Some(3), Some(1)));
        for partitions in [[works, failed, fails], [fails, works, failed], [failed, fails, works]] {
            assert_eq!(sum(&partitions), fails, "{partitions:?}");
        }
        assert_eq!(sum(&[failed, never, works]), never);
        assert_eq!(sum(&[fails, never]), fails);
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
}
