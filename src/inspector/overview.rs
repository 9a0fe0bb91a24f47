//! What is in a queue, in numbers: for many queues at once.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use serde::Serialize;

use super::Inspector;
use super::look::failed;
use super::server::{Role, role};
use super::unknown::{Unknown, Unknowns, answered};
use crate::blocking_queue::RateLimit;
use crate::conn::{Command, Conn, OpError, Reply, ServerId};
use crate::error::Result;
use crate::wire::keys::Keys;
use crate::wire::time;

/// How many queues are asked about in one pipeline.
const PIPELINE: usize = 100;
/// No server has more connections.
const MOST_LISTENERS: u64 = 1_000_000;
const ATTEMPT: &str = "`inspector().overview`";

type Replied<T> = std::result::Result<T, OpError>;

/// What is in a queue now, in numbers. [`Inspector::overview`] returns it.
///
/// A number is `None` if the server has refused the question; `unknown` says which, and why. Serialized, a
/// duration is a number of milliseconds with decimals, and its field ends in `_ms`.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for queue in inspector.overview(&["orders", "mails"]).await? {
///     if queue.overdue > Some(0) && queue.transferring_processes == Some(0) {
///         println!("{:?} stands still: no client transfers", queue.name);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Overview {
    /// The name of the queue on the server.
    pub name: Bytes,
    /// The server that has it, as `host:port` or the path of a socket.
    pub server: String,
    /// Entries with a due time, including overdue ones.
    pub pending: Option<u64>,
    /// Entries in the ordered list. It equals `pending` unless a client wrote to only one of the two keys,
    /// or a transfer moves a backlog.
    pub list_len: Option<u64>,
    /// Pending entries that are due and not transferred yet.
    pub overdue: Option<u64>,
    /// How long the earliest overdue entry has been due; `None` if none is.
    #[serde(rename = "overdue_for_ms", serialize_with = "time::optional_in_ms")]
    pub overdue_for: Option<Duration>,
    /// Time until the next entry is due: zero when one is overdue, `None` when nothing is pending.
    #[serde(rename = "next_due_in_ms", serialize_with = "time::optional_in_ms")]
    pub next_due_in: Option<Duration>,
    /// Payloads that takers can take now.
    pub ready: Option<u64>,
    /// Messages that receivers have now.
    pub in_flight: Option<u64>,
    /// Messages that wait for a retry, including overdue ones.
    pub waiting: Option<u64>,
    /// Dead letters.
    pub dead_letters: Option<u64>,
    /// Entries in the quarantine.
    pub quarantined: Option<u64>,
    /// Pops whose payloads the server still keeps a copy of.
    pub unconfirmed_pops: Option<u64>,
    /// Schedules.
    pub schedules: Option<u64>,
    /// Whether all receivers are held back.
    pub is_paused: Option<bool>,
    /// How many messages may be in flight at a time; `None` if there is no limit.
    pub max_in_flight: Option<u64>,
    /// How many entries may be pending; `None` if there is no limit.
    pub max_pending: Option<u64>,
    /// How many messages may be received in which time; `None` if there is no limit.
    pub rate_limit: Option<RateLimit>,
    /// Processes that listen to the announcements of the queue, Redisson's included: each of them transfers.
    /// A replica does not know those of its master.
    pub transferring_processes: Option<u64>,
    /// Receivers that have called in the last days, also those of processes that have ended.
    pub receivers: Option<u64>,
    /// The time since a receiver was last active; `None` if none ever was.
    #[serde(rename = "received_ago_ms", serialize_with = "time::optional_in_ms")]
    pub received_ago: Option<Duration>,
    /// What the server has refused to say.
    pub unknown: Vec<Unknown>,
}

impl Inspector {
    /// Counts what is in these queues: about 15 commands for each, in pipelines of 100 queues. None of them
    /// takes longer in a longer queue; the first pending entry of each is transmitted.
    ///
    /// The queues of a cluster are asked about on their masters. Its bus does not count listeners, so each
    /// master is asked for these; a process that listens to a replica is not counted.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), if no queue's server answers. What a server refuses is
    /// `None`, and so is everything of a queue whose server does not answer.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let [orders] = &inspector.overview(&["orders"]).await?[..] else { unreachable!() };
    /// println!("{:?} pending, {:?} ready", orders.pending, orders.ready);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn overview(&self, queues: &[impl AsRef<[u8]>]) -> Result<Vec<Overview>> {
        let mut answers = Vec::with_capacity(queues.len());
        let mut silent = Vec::new();
        for batch in queues.chunks(PIPELINE) {
            let names = batch.iter().map(|name| Bytes::copy_from_slice(name.as_ref())).collect();
            answers.extend(of_these(&self.conn, names, &mut silent).await);
        }
        let unanswered = |at: usize, unknown| {
            let name = Bytes::copy_from_slice(queues[at].as_ref());
            let server = self.conn.of(&Keys::new(&name)).address();
            Overview { name, server, unknown: vec![unknown], ..Overview::default() }
        };
        answered(answers, unanswered).map_err(|error| failed(ATTEMPT, error))
    }
}

/// A server that is `silent` is not asked again: each question would wait for the timeout.
async fn of_these(
    conn: &Conn,
    names: Vec<Bytes>,
    silent: &mut Vec<(ServerId, OpError)>,
) -> Vec<Replied<Overview>> {
    let servers = conn.each_server();
    let heard = |server: &Conn| match silent.iter().find(|(id, _)| *id == server.own_server()) {
        Some((_, error)) => Err(error.clone()),
        None => Ok(()),
    };
    let clocks = servers.iter().map(async |server| {
        let clock = async {
            heard(server)?;
            server.time().await
        };
        (server.own_server(), clock.await)
    });
    let queues: Vec<_> = names.iter().map(|name| (name, Keys::new(name))).collect();
    let channels: Vec<_> = queues.iter().map(|(_, keys)| keys.channel().clone()).collect();
    let listeners = servers.iter().map(async |server| {
        heard(server)?;
        listeners(server, &channels).await
    });
    let (clocks, listeners) = futures::join!(join_all(clocks), join_all(listeners));
    let clock = |of: &Conn| clocks.iter().find(|(server, _)| *server == of.own_server());
    let queues = queues.iter().map(async |(name, keys)| {
        let conn = conn.of(keys);
        let now = match clock(&conn) {
            Some((_, now)) => now.clone()?,
            None => conn.time().await?,
        };
        of_one(&conn, name, keys, now).await
    });
    let mut overviews = join_all(queues).await;
    for answer in listeners {
        add_listeners(&mut overviews, &answer);
    }
    *silent = clocks.into_iter().filter_map(|(id, clock)| Some((id, clock.err()?))).collect();
    overviews
}

/// How many connections listen to each of these channels on this server.
async fn listeners(server: &Conn, channels: &[Bytes]) -> Replied<Vec<u64>> {
    let command = Command::new("PUBSUB").arg("NUMSUB").args(channels.iter().cloned()).only_reads();
    let (pairs, is_replica) = futures::join!(server.call(&command), is_replica(server));
    let pairs = pairs?.into_array()?;
    if is_replica {
        return Err(OpError::Server("a replica does not know who listens to its master".into()));
    }
    let counts = pairs.into_iter().skip(1).step_by(2).map(|count| Ok(count.into_count()?.unsigned_abs()));
    counts.collect()
}

/// Whether the server says that it is one.
async fn is_replica(server: &Conn) -> bool {
    let info = server.call(&Command::new("INFO").arg("replication").only_reads()).await;
    let info = info.ok().and_then(|info| info.into_bytes().ok()).unwrap_or_default();
    role(&String::from_utf8_lossy(&info)) == Some(Role::Replica)
}

/// Adds those of a server. If one does not say, the sum is not known.
fn add_listeners(overviews: &mut [Replied<Overview>], answer: &Replied<Vec<u64>>) {
    for (at, overview) in overviews.iter_mut().enumerate() {
        let Ok(overview) = overview else { continue };
        let count = answer.as_ref().map_err(Clone::clone).and_then(|counts| possible(counts.get(at)));
        // In a cluster, the others answer.
        let count = count.map_err(|error| OpError::Server(error.to_string()));
        let mut unknowns = Unknowns::default();
        let count = unknowns.known("transferring_processes", "PUBSUB NUMSUB", count).ok().flatten();
        overview.transferring_processes =
            overview.transferring_processes.zip(count).map(|(sum, count)| sum + count);
        overview.unknown.extend(unknowns.to_vec());
    }
}

/// A count, if it can be one. Valkey 9.1.2 counts hundreds of millions while its table of listeners grows:
/// when there are 8, 15 or 16.
fn possible(count: Option<&u64>) -> Replied<u64> {
    match count {
        Some(&count) if count <= MOST_LISTENERS => Ok(count),
        _ => Err(OpError::Server("the server's count of listeners is one that cannot be".into())),
    }
}

/// `now` is the server's clock, epoch µs.
async fn of_one(conn: &Conn, name: &Bytes, keys: &Keys, now: i64) -> Replied<Overview> {
    let of_messages = keys.of_messages();
    let [schedules, _] = keys.schedules();
    let millis = now as f64 / 1_000.0;
    let count = async |name: &'static str, key: &Bytes| {
        let reply = conn.call(&Command::new(name).arg(key.clone()).only_reads()).await?;
        Ok(reply.into_count()?.unsigned_abs())
    };
    let overdue = async || {
        let command = Command::new("ZCOUNT").arg(keys.timeout_set().clone());
        let command = command.arg("-inf").arg(format!("{millis:.3}"));
        Ok(conn.call(&command.only_reads()).await?.into_count()?.unsigned_abs())
    };
    let head = async || {
        let command = Command::new("ZRANGE").arg(keys.timeout_set().clone());
        let command = command.number(0).number(0).arg("WITHSCORES");
        let last = conn.call(&command.only_reads()).await?.into_array()?.pop();
        last.map_or(Ok(None), |score| Ok(score.into_optional_score()?))
    };
    let control = async || {
        let command =
            Command::new("HMGET").arg(of_messages.control.clone()).arg("paused").arg("seen").arg("most");
        let command = command.arg("max_pending");
        let command = RateLimit::FIELDS.into_iter().fold(command, Command::arg);
        Ok(conn.call(&command.only_reads()).await?.into_parts::<8>()?)
    };
    let mut unknowns = Unknowns::default();
    let counted = [
        ("pending", "ZCARD", keys.timeout_set()),
        ("list_len", "LLEN", keys.ordered_list()),
        ("ready", "LLEN", keys.target()),
        ("in_flight", "ZCARD", &of_messages.leases),
        ("waiting", "ZCARD", &of_messages.retries),
        ("dead_letters", "ZCARD", &of_messages.dead),
        ("quarantined", "LLEN", keys.quarantine()),
        ("unconfirmed_pops", "HLEN", keys.claims()),
        ("schedules", "ZCARD", &schedules),
        ("receivers", "HLEN", &of_messages.receipts),
    ];
    let counts = join_all(counted.map(|(_, command, key)| count(command, key)));
    let (counts, overdue, head, control) = futures::join!(counts, overdue(), head(), control());
    let mut numbers = [None; 10];
    for ((number, (what, command, _)), answer) in numbers.iter_mut().zip(counted).zip(counts) {
        *number = unknowns.known(what, command, answer)?;
    }
    let [pending, list_len, ready, in_flight, waiting, dead_letters, items, pops, schedules, receivers] =
        numbers;
    let head: Option<f64> = unknowns.known("next_due_in", "ZRANGE", head)?.flatten();
    let control = unknowns.known("is_paused", "HMGET", control)?;
    let is_known = control.is_some();
    let [paused, seen, limits @ ..] = control.map(|fields| fields.map(text)).unwrap_or_default();
    let [most, max_pending, interval, rate, per, burst] =
        limits.map(|text| text.and_then(|text| text.parse().ok()));
    let seen = seen.as_ref().and_then(|seen| seen.parse::<f64>().ok());
    let span = |millis: f64| Duration::try_from_secs_f64(millis.max(0.0) / 1_000.0).unwrap_or(Duration::MAX);
    Ok(Overview {
        name: name.clone(),
        server: conn.address(),
        pending,
        list_len,
        overdue: unknowns.known("overdue", "ZCOUNT", overdue)?,
        // A negative score is no time: it is due since there are times.
        overdue_for: head.filter(|head| *head <= millis).map(|head| span(millis - head.max(0.0))),
        next_due_in: head.map(|head| span(head - millis)),
        ready,
        in_flight,
        waiting,
        dead_letters,
        quarantined: items.map(|items| items / 2),
        unconfirmed_pops: pops,
        schedules,
        is_paused: is_known.then_some(paused.is_some()),
        max_in_flight: most,
        max_pending,
        rate_limit: RateLimit::stored([interval, rate, per, burst]),
        // Until the servers have answered.
        transferring_processes: Some(0),
        receivers,
        received_ago: seen.map(|seen| span(millis - seen)),
        unknown: unknowns.to_vec(),
    })
}

fn text(reply: Reply) -> Option<String> {
    let bytes = reply.into_optional_bytes().ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
