//! What receivers have left behind, when there are none any more: it goes back to the target, where Java
//! finds it, too.

use std::time::Duration;

use tokio::time::Instant;

use crate::conn::{Conn, OpError};
use crate::scripts;
use crate::telemetry::events;
use crate::wire::keys::Keys;

/// How often a queue is searched, at most.
const INTERVAL: Duration = Duration::from_secs(600);

/// The next time to look, if receivers may be silent for this long.
pub(super) fn next_look(now: Instant, release_after: Duration) -> Instant {
    now + (release_after / 6).min(INTERVAL)
}

/// Releases what has been left, if no receiver has given a sign of life for this long. If it fails, it is
/// repeated later.
pub(super) async fn release(conn: Conn, keys: Keys, after: Duration) {
    let call = scripts::RELEASE_ALL.of(&keys, None).number(after.as_millis().max(1));
    let run = async || -> Result<_, OpError> {
        let [released, looked_at] = call.run(&conn).await?.into_parts()?;
        Ok((released.into_count()?.unsigned_abs(), looked_at.into_count()?))
    };
    let mut released = 0;
    loop {
        match run().await {
            Ok((more, 1..)) => released += more,
            Ok(_) => break,
            Err(error) => {
                let what = format!("release of abandoned messages of `{}`", events::name(&keys));
                conn.counters().failed(what, &error);
                break;
            }
        }
    }
    if released > 0 {
        events::abandoned_released(&keys, released);
    }
}
