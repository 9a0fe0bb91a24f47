//! Pairs of keys that have the same ids: what becomes of them when one of the two was deleted by hand, or
//! something in it.
//!
//! `docs/keys.md` says it for each pair. One script makes the pairs in this module agree, a part in each
//! call. Any client may call it at any time, and several may at once.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use crate::conn::{Conn, OpError};
use crate::scripts;
use crate::telemetry::{Delivered, events};
use crate::wire::keys::Keys;

/// The pause between two calls in the background.
const PAUSE: Duration = Duration::from_millis(20);

/// A sorted set, and a hash with what its ids stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    /// Messages that wait for a retry, and records.
    Retries,
    /// Dead letters, and their content.
    Dead,
    /// The names of schedules, and their records.
    Schedules,
}

impl Pair {
    fn keys(self, keys: &Keys) -> [Bytes; 4] {
        let of_messages = keys.of_messages();
        let [set, hash] = match self {
            Self::Retries => [of_messages.retries, of_messages.messages],
            Self::Dead => [of_messages.dead, of_messages.dead_messages],
            Self::Schedules => keys.schedules(),
        };
        [set, hash, of_messages.control, keys.scratch().clone()]
    }

    fn word(self) -> &'static str {
        match self {
            Self::Retries => "retries",
            Self::Dead => "dead",
            Self::Schedules => "schedules",
        }
    }

    /// Makes both agree, and reports what it has found. Returns whether it has changed anything.
    ///
    /// # Cancel safety
    /// Each call is complete in itself.
    pub(crate) async fn agree(self, conn: &Conn, keys: &Keys) -> Result<bool, OpError> {
        let (mut rank, mut cursor) = (0, Bytes::from_static(b"0"));
        let (mut gone, mut again, mut foreign) = (0, 0, 0);
        let [set, hash, control, scratch] = self.keys(keys);
        let result = loop {
            let call = scripts::AGREE.on(&[&set, &hash, &control, &scratch]).arg(self.word()).number(rank);
            let call = call.arg(cursor).number(foreign);
            let [gone_now, again_now, next_rank, next_cursor, foreign_now, is_news] =
                match call.idempotent().run(conn).await {
                    Ok(reply) => reply.into_parts()?,
                    Err(error) => break Err(error),
                };
            gone += gone_now.into_count()?.unsigned_abs();
            again += again_now.into_count()?.unsigned_abs();
            (rank, cursor) = (next_rank.into_int()?, next_cursor.into_bytes()?);
            foreign = foreign_now.into_count()?;
            if is_news.into_int()? > 0 {
                events::foreign_fields(keys, self.word(), foreign.unsigned_abs());
            }
            if rank < 0 && cursor.is_empty() {
                break Ok(());
            }
            sleep(PAUSE).await;
        };
        if gone + again > 0 {
            if self != Self::Schedules {
                conn.counters().queue(keys).delivered(Delivered::Vanished, gone);
            }
            events::keys_disagreed(keys, self.word(), gone, again);
        }
        result.map(|()| gone + again > 0)
    }

    /// The same in the background. If it fails, that is reported, and the next look finds what is left.
    pub(crate) async fn agree_or_report(self, conn: &Conn, keys: &Keys) -> Result<(), OpError> {
        self.agree(conn, keys).await.map(drop).inspect_err(|error| {
            let what = format!("agreement of the keys of `{}`, {}", events::name(keys), self.word());
            conn.counters().failed(what, error);
        })
    }
}
