//! Keys that should have been deleted.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::future::join_all;
use serde::Serialize;
use tokio::time::sleep;

use super::Inspector;
use super::details::drawn_at;
use super::find::names;
use super::look::failed;
use super::scan::{BEGIN, PAUSE, scan};
use crate::conn::{Command, Conn, OpError};
use crate::error::Result;

/// How many keys of a kind are named for each queue.
const NAMED: usize = 10;
/// A receipt is deleted within a second after the reply.
const LEFT_MILLIS: i64 = 60_000;

/// What kind of key is left.
///
/// # Examples
/// ```
/// # use redelay::inspector::LeftoverKind;
/// assert_ne!(LeftoverKind::Receipt, LeftoverKind::Throttle);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeftoverKind {
    /// The receipt of an offer, or of a return, that is older than a minute: its reply was lost, or its
    /// process has died. It expires.
    Receipt,
    /// A throttle that does not expire: it refuses its id, or its payload, indefinitely.
    Throttle,
    /// The key on which scripts try out their permissions.
    Scratch,
}

/// Keys of a queue that should have been deleted. [`Inspector::leftovers`] returns it.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for left in inspector.leftovers().await? {
///     println!("{:?}: {} of {:?}", left.queue, left.count, left.kind);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Leftover {
    /// The name of the queue. Of `{q}` and `q`, which have the same receipts, it is `q`.
    pub queue: Bytes,
    /// Of which kind they are.
    pub kind: LeftoverKind,
    /// How many there are.
    pub count: u64,
    /// The first ten of them.
    pub keys: Vec<Bytes>,
}

impl Inspector {
    /// Looks for keys that should have been deleted, among all keys of the database, as
    /// [`queues`](Self::queues) does.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) without the
    /// permissions `SCAN`, `PTTL` and `TIME`.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let leftovers = inspector.leftovers().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn leftovers(&self) -> Result<Vec<Leftover>> {
        let mut left = BTreeMap::new();
        for server in self.conn.each_server() {
            let searched = search(&server, &mut left).await;
            searched.map_err(|error| failed("`inspector().leftovers`", error))?;
        }
        Ok(of_queues(left))
    }
}

/// How many of a kind a queue has, and the first ones.
pub(super) type Left = BTreeMap<(Bytes, LeftoverKind), (u64, Vec<Bytes>)>;

pub(super) fn of_queues(left: Left) -> Vec<Leftover> {
    let of_queue = |((queue, kind), (count, keys))| Leftover { queue, kind, count, keys };
    left.into_iter().map(of_queue).collect()
}

async fn search(server: &Conn, left: &mut Left) -> std::result::Result<(), OpError> {
    let now = server.time().await? / 1_000;
    let mut cursor = BEGIN;
    loop {
        let keys = scan(server, "redelay:[orts]*", &mut cursor).await?;
        add(server, now, &keys, left).await?;
        if cursor == BEGIN {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
}

/// Adds those of these keys that should have been deleted. `now` is the server's clock, epoch ms.
pub(super) async fn add(
    server: &Conn,
    now: i64,
    keys: &[Bytes],
    left: &mut Left,
) -> std::result::Result<(), OpError> {
    let keys = keys.iter().filter_map(|key| Some((key, of_key(key, now)?)));
    let keys = join_all(keys.map(async |(key, (queue, kind))| {
        let stays = kind != LeftoverKind::Throttle || {
            let ttl = Command::new("PTTL").arg(key.clone());
            server.call(&ttl.only_reads()).await?.into_int()? == -1
        };
        Ok::<_, OpError>(stays.then_some((key, queue, kind)))
    }));
    for found in keys.await {
        if let Some((key, queue, kind)) = found? {
            let (count, keys) = left.entry((queue, kind)).or_default();
            *count += 1;
            if keys.len() < NAMED && !keys.contains(key) {
                keys.push(key.clone());
            }
        }
    }
    Ok(())
}

/// Which queue a key belongs to, if it is of a kind that may be left. `now` is epoch ms.
fn of_key(key: &Bytes, now: i64) -> Option<(Bytes, LeftoverKind)> {
    let rest = |prefix: &str| Some(key.slice_ref(key.strip_prefix(prefix.as_bytes())?));
    if let Some(tag) = rest("redelay:scratch:") {
        return Some((names::of_tag(tag)?.likelier(), LeftoverKind::Scratch));
    }
    if let Some(tag) = rest("redelay:throttle:") {
        let end = [&b":id:"[..], b":payload:"];
        let end = end.iter().filter_map(|end| tag.windows(end.len()).position(|part| part == *end)).min()?;
        let tag = tag.slice(..end);
        // A second colon marks a name that has a brace itself.
        let name = tag.strip_prefix(b":").map(|name| tag.slice_ref(name));
        return Some((
            name.map_or_else(|| Some(names::of_tag(tag)?.likelier()), Some)?,
            LeftoverKind::Throttle,
        ));
    }
    let tag = rest("redelay:offered:").or_else(|| rest("redelay:returned:"))?;
    let colon = tag.iter().rposition(|byte| *byte == b':')?;
    let is_left = drawn_at(&tag[colon + 1..]).is_some_and(|at| now.saturating_sub(at) >= LEFT_MILLIS);
    let name = names::of_tag(tag.slice(..colon))?;
    is_left.then(|| (name.likelier(), LeftoverKind::Receipt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::keys::Keys;

    #[test]
    fn keys_name_their_queues() {
        let found = |key: &Bytes, now| of_key(key, now);
        let late = i64::MAX;
        for name in ["q", "{tag}q", "{q", "a:id:b"] {
            let keys = Keys::new(name);
            let is = |kind| Some((Bytes::copy_from_slice(name.as_bytes()), kind));
            assert_eq!(found(keys.scratch(), late), is(LeftoverKind::Scratch), "{name}");
            for key in [keys.offered(), keys.returned()] {
                assert_eq!(found(&key, late), is(LeftoverKind::Receipt), "{name}");
                assert_eq!(found(&key, 0), None, "{name}");
            }
            if !name.contains(":id:") {
                assert_eq!(
                    found(&keys.throttle("id", b"x:id:y"), late),
                    is(LeftoverKind::Throttle),
                    "{name}"
                );
                assert_eq!(found(&keys.throttle("payload", b"\0"), late), is(LeftoverKind::Throttle));
            }
        }
        let sent = Keys::new("q").returned_as("0102-1795615390307");
        assert_eq!(found(&sent, late), None, "a dead letter that was sent leaves it");
        assert_eq!(found(&"redelay:offered:x".into(), late), None);
    }
}
