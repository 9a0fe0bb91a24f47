//! Storing entries, exactly once.
//!
//! What if the reply never comes? The entry's id makes a second try harmless while the entry is pending. Once
//! it is due it may be delivered, and a second try would store it again. So a second try carries a due time
//! instead of a delay, counted from when the first was sent, and the server refuses it once the first may
//! have been due.
//!
//! One gap is left: somebody may poll, cancel or remove the entry before it is due, and before the second try arrives.

mod call;
mod gathering;

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

pub(super) use call::When;
pub(super) use gathering::Gathering;

use crate::conn::{Conn, OpError, Reply};
use gathering::Answer;

/// Stores the entries with their times; returns their due times, epoch ms. One that is alone may go with others.
pub(super) async fn store(
    gathering: &Gathering,
    when: When,
    entries: &[(u64, Bytes)],
) -> Result<Vec<u64>, OpError> {
    let Gathering { conn, keys, .. } = gathering;
    let sent = Instant::now();
    let deadline = sent + conn.command_timeout();
    let mut pause = Duration::from_millis(2);
    let mut first = match entries {
        [(time, entry)] => Some(gathering.store(when, *time, entry.clone())),
        _ => None,
    };
    // From here on, tries that may have been executed need care; the others may just be repeated.
    let lost = loop {
        let Answer { clock, shared } = match first.take() {
            Some(together) => together.await,
            None => Answer { clock: call::first_try(conn, keys, when, entries).await, shared: false },
        };
        match clock {
            Ok(clock) => {
                let base = if when == When::After { clock } else { 0 };
                return Ok(entries.iter().map(|(time, _)| base + time).collect());
            }
            Err(OpError::NotExecuted(_)) if Instant::now() + pause < deadline => {
                sleep(pause).await;
                pause *= 2;
            }
            Err(OpError::Unknown(why)) => break why,
            // It may be for the sake of another one.
            Err(OpError::Rejected(_)) if shared => {}
            Err(error) => return Err(error),
        }
    };
    let deadline = Instant::now() + conn.command_timeout();
    let bases = match when {
        When::After => clock_at(conn, sent).await.map_err(|_| OpError::Unknown(lost.clone()))?,
        When::At => 0..=0,
    };
    let (base, earlier) = (*bases.end(), bases.end() - bases.start());
    loop {
        match call::send(conn, keys, earlier.to_string().into(), base, entries).await {
            Ok(Reply::Nil) => {
                return Err(OpError::Unknown(format!("{lost}; a second try came after the due time").into()));
            }
            Ok(_) => return Ok(entries.iter().map(|(time, _)| base + time).collect()),
            Err(OpError::NotExecuted(_) | OpError::Unknown(_)) if Instant::now() + pause < deadline => {
                sleep(pause).await;
                pause *= 2;
            }
            // Whatever this try says, the first one may have been executed.
            Err(error) => return Err(OpError::Unknown(error.to_string().into())),
        }
    }
}

/// What the server's clock showed at that instant of ours, at the earliest and at the latest; epoch ms.
async fn clock_at(conn: &Conn, instant: Instant) -> Result<RangeInclusive<u64>, OpError> {
    let asked = instant.elapsed().as_millis() as u64;
    let now = u64::try_from(conn.time().await? / 1000).unwrap_or(0);
    let answered = instant.elapsed().as_millis() as u64;
    // Whole milliseconds, so one more on either side.
    Ok(now.saturating_sub(answered + 1)..=(now + 1).saturating_sub(asked))
}
