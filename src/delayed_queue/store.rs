//! Storing entries, exactly once.
//!
//! What if the reply never comes? The entry's id makes a second try harmless while the entry is pending. Once the entry is
//! due it may be delivered, and a second try would store it again. So a second try carries a due time instead of a
//! delay, counted from when the first was sent, and the server refuses it once the first may have been due.
//!
//! One gap is left: another client may poll, cancel or remove the entry before it is due and before the second try
//! arrives.

use std::ops::RangeInclusive;

use bytes::Bytes;
use tokio::time::Instant;

use super::batcher::{Answer, Batcher};
use crate::conn::{Cause, Conn, OpError, Reply};
use crate::pacing::Retries;
use crate::scripts;
use crate::wire::keys::Keys;

/// What a time means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// A delay, ms.
    After,
    /// A due time, epoch ms.
    At,
}

impl When {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::After => "after",
            Self::At => "at",
        }
    }
}

/// Stores the entries with their times in one call. Returns their due times, epoch ms.
pub(super) async fn all(
    conn: &Conn,
    keys: &Keys,
    when: When,
    entries: &[(u64, Bytes)],
) -> Result<Vec<u64>, OpError> {
    let retries = Retries::until(Instant::now() + conn.command_timeout());
    all_with(retries, conn, keys, when, entries).await
}

/// As [`all`], with these retries while there is no connection.
async fn all_with(
    mut retries: Retries,
    conn: &Conn,
    keys: &Keys,
    when: When,
    entries: &[(u64, Bytes)],
) -> Result<Vec<u64>, OpError> {
    loop {
        let sent = Instant::now();
        match first_try(conn, keys, when, entries).await {
            Ok(clock) => return Ok(dues(when, clock, entries)),
            Err(OpError::Unknown(why)) => return second_try(conn, keys, when, entries, sent, why).await,
            Err(error @ OpError::NotExecuted(_)) => {
                if !retries.pause().await {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

impl Batcher {
    /// Stores one entry, in a call with other offers. Returns its due time, epoch ms.
    pub(super) async fn store(&self, when: When, time: u64, entry: &Bytes) -> Result<u64, OpError> {
        let sent = Instant::now();
        let Answer { clock, shared } = self.add(when, time, entry.clone()).await;
        let error = match clock {
            Ok(clock) => return Ok(due(when, clock, time)),
            Err(error) => error,
        };
        let entries = [(time, entry.clone())];
        let dues = match error {
            OpError::Unknown(why) => second_try(&self.conn, &self.keys, when, &entries, sent, why).await?,
            OpError::NotExecuted(_) => {
                let mut retries = Retries::until(sent + self.conn.command_timeout());
                if !retries.pause().await {
                    return Err(error);
                }
                all_with(retries, &self.conn, &self.keys, when, &entries).await?
            }
            // Nothing was written, perhaps because of another offer.
            OpError::Rejected(_) if shared => all(&self.conn, &self.keys, when, &entries).await?,
            error => return Err(error),
        };
        Ok(dues[0])
    }
}

/// The due time of an entry that the server stored when its clock showed `clock`; all in epoch ms.
fn due(when: When, clock: u64, time: u64) -> u64 {
    match when {
        When::After => clock + time,
        When::At => time,
    }
}

fn dues(when: When, clock: u64, entries: &[(u64, Bytes)]) -> Vec<u64> {
    entries.iter().map(|(time, _)| due(when, clock, *time)).collect()
}

/// One try whose outcome, if its reply is lost, [`second_try`] settles. Returns the server's clock, epoch ms.
pub(super) async fn first_try(
    conn: &Conn,
    keys: &Keys,
    when: When,
    entries: &[(u64, Bytes)],
) -> Result<u64, OpError> {
    let reply = send(conn, keys, when.word().into(), 0, entries).await?;
    Ok(u64::try_from(reply.into_int()?).unwrap_or(0))
}

/// Retries after a first try, made at `sent`, whose reply was lost. Any of them may have been executed before.
async fn second_try(
    conn: &Conn,
    keys: &Keys,
    when: When,
    entries: &[(u64, Bytes)],
    sent: Instant,
    lost: Cause,
) -> Result<Vec<u64>, OpError> {
    let mut retries = Retries::until(Instant::now() + conn.command_timeout());
    let bases = match when {
        When::After => clock_at(conn, sent).await.map_err(|_| OpError::Unknown(lost.clone()))?,
        When::At => 0..=0,
    };
    let (base, earlier) = (*bases.end(), bases.end() - bases.start());
    loop {
        match send(conn, keys, earlier.to_string().into(), base, entries).await {
            Ok(Reply::Nil) => {
                return Err(OpError::Unknown(format!("{lost}; a second try came after the due time").into()));
            }
            Ok(_) => return Ok(entries.iter().map(|(time, _)| base + time).collect()),
            // Whatever this try says, the first may have been executed.
            Err(error @ (OpError::NotExecuted(_) | OpError::Unknown(_))) => {
                if !retries.pause().await {
                    return Err(OpError::Unknown(error.to_string().into()));
                }
            }
            Err(error) => return Err(OpError::Unknown(error.to_string().into())),
        }
    }
}

/// One call of the script. The times count from `base`, and `mode` says what they mean: see `offer.lua`.
async fn send(
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

/// What the server's clock showed at `instant`, at the earliest and at the latest; epoch ms.
async fn clock_at(conn: &Conn, instant: Instant) -> Result<RangeInclusive<u64>, OpError> {
    let asked = instant.elapsed().as_millis() as u64;
    let now = u64::try_from(conn.time().await? / 1000).unwrap_or(0);
    let answered = instant.elapsed().as_millis() as u64;
    // Whole milliseconds, so one more on either side.
    Ok(now.saturating_sub(answered + 1)..=(now + 1).saturating_sub(asked))
}
