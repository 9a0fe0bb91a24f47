//! One call of the script.

use bytes::Bytes;

use crate::conn::{Conn, OpError, Reply};
use crate::scripts;
use crate::wire::keys::Keys;

/// What a time means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::delayed_queue) enum When {
    /// A delay, ms.
    After,
    /// A due time, epoch ms.
    At,
}

impl When {
    pub(in crate::delayed_queue) fn word(self) -> &'static str {
        match self {
            Self::After => "after",
            Self::At => "at",
        }
    }
}

/// A first try; returns the server's clock, epoch ms.
pub(super) async fn first_try(
    conn: &Conn,
    keys: &Keys,
    when: When,
    entries: &[(u64, Bytes)],
) -> Result<u64, OpError> {
    let reply = send(conn, keys, when.word().into(), 0, entries).await?;
    Ok(u64::try_from(reply.into_int()?).unwrap_or(0))
}

/// The times count from `base`, and `mode` says what they mean: see the script.
pub(super) async fn send(
    conn: &Conn,
    keys: &Keys,
    mode: Bytes,
    base: u64,
    entries: &[(u64, Bytes)],
) -> Result<Reply, OpError> {
    let args =
        entries.iter().flat_map(|(time, entry)| [Bytes::from((base + time).to_string()), entry.clone()]);
    scripts::OFFER
        .on(&[keys.timeout_set(), keys.ordered_list(), keys.channel()])
        .arg(mode)
        .args(args)
        .run(conn)
        .await
}
