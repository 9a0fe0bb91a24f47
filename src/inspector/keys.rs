//! Which keys of a queue there are.

use std::time::Duration;

use bytes::Bytes;
use futures::future::try_join_all;
use serde::Serialize;

use super::Inspector;
use super::look::Look;
use super::unknown::{Unknown, Unknowns};
use crate::conn::Command;
use crate::error::Result;
use crate::wire::keys::{Keys, type_of};
use crate::wire::time;

/// A key of a queue that exists. [`Inspector::keys`] returns it.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for key in inspector.keys("orders").await? {
///     if key.kind != key.expected {
///         println!("{:?} is a {}, and should be a {}", key.key, key.kind, key.expected);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct QueueKey {
    /// What it is for, as `docs/keys.md` names it: `target`, `timeout set`, `ordered list`, `quarantine`,
    /// `popped`, `rebuild`, `confirmed`, `jobs`, `notes`, `more notes`, `schedules`, `schedule-records`,
    /// `partitions`, `inbox`, `messages`, `leases`, `retries`, `receipts`, `dead`, `dead-messages`,
    /// `control`. `other target` is that of the queue with the same timeout set and ordered list: `q` and
    /// `{q}` are such. More words may come.
    pub what: &'static str,
    /// Its name.
    pub key: Bytes,
    /// Its type, as `TYPE` names it: `list`, `zset`, `hash`, `string`, …
    pub kind: String,
    /// The type that it should have.
    pub expected: &'static str,
    /// How many elements, members, fields or bytes it has; `None` if the type is another one, or the server
    /// has refused to say.
    pub len: Option<u64>,
    /// After which time the server deletes it; `None` if it does not, or has refused to say.
    #[serde(rename = "expires_in_ms", serialize_with = "time::optional_in_ms")]
    pub expires_in: Option<Duration>,
    /// What the server has refused to say.
    pub unknown: Vec<Unknown>,
}

impl Inspector {
    /// The keys of a queue that exist, of whatever type: about 25 commands, and up to two for each of them.
    /// Receipts, throttles and what else has an id in its name are not among them.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) without the
    /// permission `TYPE`. What else the server refuses is in `unknown`.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// for key in inspector.keys("orders").await? {
    ///     println!("{:<16} {:?} {:?}", key.what, key.key, key.len);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn keys(&self, queue: impl AsRef<[u8]>) -> Result<Vec<QueueKey>> {
        let look = self.look("keys", queue);
        let found = all(&look.keys).into_iter().map(|(what, key)| look.key(what, key));
        Ok(try_join_all(found).await?.into_iter().flatten().collect())
    }
}

/// The names of the keys of a queue.
fn all(keys: &Keys) -> Vec<(&'static str, Bytes)> {
    let of_messages = keys.of_messages();
    let ([notes, more_notes], [schedules, records]) = (keys.notes(), keys.schedules());
    let mut all = vec![
        ("target", keys.target().clone()),
        ("timeout set", keys.timeout_set().clone()),
        ("ordered list", keys.ordered_list().clone()),
        ("quarantine", keys.quarantine().clone()),
        ("popped", keys.claims().clone()),
        ("rebuild", keys.rebuild()),
        ("confirmed", keys.confirmed()),
        ("jobs", keys.jobs()),
        ("notes", notes),
        ("more notes", more_notes),
        ("schedules", schedules),
        ("schedule-records", records),
        ("partitions", keys.partitions()),
        ("inbox", of_messages.inbox),
        ("messages", of_messages.messages),
        ("leases", of_messages.leases),
        ("retries", of_messages.retries),
        ("receipts", of_messages.receipts),
        ("dead", of_messages.dead),
        ("dead-messages", of_messages.dead_messages),
        ("control", of_messages.control),
    ];
    all.extend(other_target(keys.target()).map(|target| ("other target", target)));
    all
}

/// The queue that has the same timeout set: `{q}` of `q`, and `q` of `{q}`.
fn other_target(target: &Bytes) -> Option<Bytes> {
    if !target.contains(&b'{') {
        return Some([b"{", &target[..], b"}"].concat().into());
    }
    let inner = target.strip_prefix(b"{")?.strip_suffix(b"}")?;
    (!inner.contains(&b'{')).then(|| target.slice_ref(inner))
}

impl Look {
    async fn key(&self, what: &'static str, key: Bytes) -> Result<Option<QueueKey>> {
        let kind = self.ask(Command::new("TYPE").arg(key.clone())).await?.into_bytes();
        let kind = String::from_utf8_lossy(&kind.map_err(|shape| self.failed(shape))?).into_owned();
        if kind == "none" {
            return Ok(None);
        }
        // A target may have any name, also that of another key.
        let expected = if what.ends_with("target") { "list" } else { type_of(&key) };
        let measure = match expected {
            "list" => "LLEN",
            "zset" => "ZCARD",
            "hash" => "HLEN",
            _ => "STRLEN",
        };
        let number = async |command: &'static str| {
            let reply = self.conn.call(&Command::new(command).arg(key.clone()).only_reads()).await?;
            Ok(reply.into_int()?)
        };
        let mut unknowns = Unknowns::default();
        let len = match kind == expected {
            true => unknowns.known("len", measure, number(measure).await),
            false => Ok(None),
        };
        let left = unknowns.known("expires_in", "PTTL", number("PTTL").await);
        let len = len.map_err(|error| self.failed(error))?;
        let left = left.map_err(|error| self.failed(error))?;
        Ok(Some(QueueKey {
            what,
            kind,
            expected,
            len: len.map(i64::unsigned_abs),
            expires_in: left.and_then(|left| u64::try_from(left).ok()).map(Duration::from_millis),
            key,
            unknown: unknowns.to_vec(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that `docs/keys.md` names, but for what has an id in its name, and the scratch key, which is
    /// always absent.
    #[cfg(workspace)]
    #[test]
    fn all_keys_of_the_docs_are_found() {
        use std::collections::BTreeSet;

        let cells = |row: &'static str| row.split('|').map(str::trim).collect::<Vec<_>>();
        let documented = include_str!("../../docs/keys.md").lines().map(cells).filter_map(|cells| {
            let is_stored = ["list", "sorted set", "hash", "string"].contains(cells.get(3)?);
            let key = cells[2].strip_prefix('`')?.strip_suffix('`')?;
            (is_stored && !key.contains('`')).then(|| key.replace('N', "q"))
        });
        let documented: BTreeSet<_> = documented.collect();
        assert!(documented.len() > 15, "{documented:?}");
        let found = all(&Keys::new("q")).into_iter().filter(|(what, _)| *what != "other target");
        let found: BTreeSet<_> = found.map(|(_, key)| String::from_utf8(key.to_vec()).unwrap()).collect();
        assert_eq!(found, documented);
    }

    #[test]
    fn names_that_share_their_pending_keys() {
        let other = |name: &'static str| other_target(&name.into());
        assert_eq!((other("q").as_deref(), other("{q}").as_deref()), (Some(&b"{q}"[..]), Some(&b"q"[..])));
        for alone in ["{tag}q", "a{b", "{{q}", "x{q}"] {
            assert_eq!(other(alone), None, "{alone}");
        }
        let keys = Keys::new("q");
        let same = Keys::new("{q}");
        assert_eq!(keys.timeout_set(), same.timeout_set());
    }
}
