//! What is late or strange in a queue, in numbers.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use serde::Serialize;

use super::Inspector;
use super::unknown::{Unknown, Unknowns};
use crate::conn::{Command, OpError};
use crate::error::Result;
use crate::wire::time;

/// How many ids of pops are read at most.
const POPS: usize = 1_000;
/// A pop is confirmed within a few milliseconds.
const LEFT: Duration = Duration::from_secs(60);
/// A client that transfers stores the next run of a schedule within half a minute.
const RUN: Duration = Duration::from_secs(60);
/// A receiver finds a lease that has ended within 10 s.
const LEASE: Duration = Duration::from_secs(10);
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

/// What is late or strange in a queue, in numbers. [`Inspector::details`] returns it.
///
/// A number is `None` if the server has refused the question; `unknown` says which, and why.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// let orders = inspector.details("orders").await?;
/// if orders.in_seconds > Some(0) {
///     println!("a producer has given seconds instead of milliseconds");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Details {
    /// Pending entries that have been due for a second or more, `negative` and `in_seconds` included.
    pub late: Option<u64>,
    /// Pending entries with a negative score: Redisson transfers nothing while there is one.
    pub negative: Option<u64>,
    /// Pending entries with a score from 1 to 10^11, which is a time in seconds rather than milliseconds.
    pub in_seconds: Option<u64>,
    /// Pending entries that are due in ten years or later, `beyond` included.
    pub distant: Option<u64>,
    /// Pending entries with a score of 10^15 or more, which is no time: Redisson fails on them.
    pub beyond: Option<u64>,
    /// Leases that have ended 10 s ago or earlier.
    pub ended_leases: Option<u64>,
    /// Messages that should have been delivered again 10 s ago or earlier.
    pub late_retries: Option<u64>,
    /// Dead letters that wait to be sent to another queue.
    pub unsent_letters: Option<u64>,
    /// Schedules whose next run should have been stored a minute ago or earlier.
    pub late_schedules: Option<u64>,
    /// Pops that were not confirmed for a minute, of 1,000: a process has died, and has left their payloads.
    pub left_pops: Option<u64>,
    /// Whether the clock of the server was set back, and leases and retries may be late for that.
    pub clock_went_back: Option<bool>,
    /// What the server has refused to say.
    pub unknown: Vec<Unknown>,
}

impl Inspector {
    /// Counts what is late or strange in a queue: about ten commands, none of which takes longer in a longer
    /// queue.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) without the
    /// permission `TIME`. What else the server refuses is `None`.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let orders = inspector.details("orders").await?;
    /// println!("{:?} leases have ended", orders.ended_leases);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn details(&self, queue: impl AsRef<[u8]>) -> Result<Details> {
        let look = self.look("details", queue);
        let of_messages = look.keys.of_messages();
        let [schedules, _] = look.keys.schedules();
        let now = look.millis().await?;
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let before = |span: Duration| now.saturating_sub(millis(span)).to_string();
        let pending = look.keys.timeout_set();
        let counted = [
            ("late", pending, "-inf".to_owned(), before(Duration::from_secs(1))),
            ("negative", pending, "-inf".to_owned(), "(0".to_owned()),
            ("in_seconds", pending, "1".to_owned(), "100000000000".to_owned()),
            ("distant", pending, now.saturating_add(millis(TEN_YEARS)).to_string(), "+inf".to_owned()),
            ("beyond", pending, time::LIMIT.to_string(), "+inf".to_owned()),
            ("ended_leases", &of_messages.leases, "-inf".to_owned(), before(LEASE)),
            ("late_retries", &of_messages.retries, "-inf".to_owned(), before(LEASE)),
            ("unsent_letters", &of_messages.dead, "-inf".to_owned(), "(0".to_owned()),
            ("late_schedules", &schedules, "-inf".to_owned(), before(RUN)),
        ];
        let counts = counted.iter().map(async |(_, key, from, to)| {
            let command = Command::new("ZCOUNT").arg((*key).clone()).arg(from.clone()).arg(to.clone());
            Ok(look.conn.call(&command.only_reads()).await?.into_count()?.unsigned_abs())
        });
        let pops = async {
            let command = Command::new("HRANDFIELD").arg(look.keys.claims().clone()).number(POPS);
            Ok::<_, OpError>(look.conn.call(&command.only_reads()).await?.into_strings()?)
        };
        let back = async {
            let command = Command::new("HEXISTS").arg(of_messages.control.clone()).arg("back");
            Ok::<_, OpError>(look.conn.call(&command.only_reads()).await?.into_int()? > 0)
        };
        let (counts, pops, back) = futures::join!(join_all(counts), pops, back);
        let mut unknowns = Unknowns::default();
        let mut numbers = [None; 9];
        for ((number, (what, ..)), answer) in numbers.iter_mut().zip(&counted).zip(counts) {
            *number = unknowns.known(what, "ZCOUNT", answer).map_err(|error| look.failed(error))?;
        }
        let pops = unknowns.known("left_pops", "HRANDFIELD", pops).map_err(|error| look.failed(error))?;
        let back = unknowns.known("clock_went_back", "HEXISTS", back).map_err(|error| look.failed(error))?;
        let is_left = |id: &&Bytes| drawn_at(id).is_some_and(|at| now.saturating_sub(at) >= millis(LEFT));
        let [late, negative, in_seconds, distant, beyond, leases, retries, unsent, schedules] = numbers;
        Ok(Details {
            late,
            negative,
            in_seconds,
            distant,
            beyond,
            ended_leases: leases,
            late_retries: retries,
            unsent_letters: unsent,
            late_schedules: schedules,
            left_pops: pops.map(|ids| ids.iter().filter(is_left).count() as u64),
            clock_went_back: back,
            unknown: unknowns.to_vec(),
        })
    }

    /// The number of partitions of a partitioned queue, as the server has it; `None` if it has none.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) for a key of
    /// another type or without the permission `GET`.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// assert_eq!(inspector.partitions("orders").await?, Some(16));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn partitions(&self, queue: impl AsRef<[u8]>) -> Result<Option<u64>> {
        let look = self.look("partitions", queue);
        let reply = look.ask(Command::new("GET").arg(look.keys.partitions())).await?;
        let number = reply.into_optional_bytes().map_err(|shape| look.failed(shape))?;
        Ok(number.and_then(|number| std::str::from_utf8(&number).ok()?.parse().ok()))
    }
}

/// When an id in 32 hexadecimal digits was drawn, epoch ms.
pub(super) fn drawn_at(id: &[u8]) -> Option<i64> {
    let id = std::str::from_utf8(id).ok().filter(|id| id.len() == 32)?;
    i64::try_from(u128::from_str_radix(id, 16).ok()? >> 80).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::id;

    #[test]
    fn ids_say_when_they_were_drawn() {
        assert_eq!(drawn_at(b"01993f0c5d0070008000000000000000"), Some(0x0199_3f0c_5d00));
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64;
        assert!((drawn_at(&id::text()).unwrap() - now).abs() < 600_000);
        for other in [&b"01993f0c"[..], b"", b"zz993f0c5d0070008000000000000000"] {
            assert_eq!(drawn_at(other), None);
        }
    }
}
