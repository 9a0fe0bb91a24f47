//! What receivers have left behind, when there are none any more: it goes back to the target, where Java finds it, too.

use std::time::Duration;

use crate::conn::{Conn, OpError};
use crate::scripts;
use crate::telemetry::events;
use crate::wire::keys::{Keys, MessageKeys};

/// Releases what has been left, if no receiver has given a sign of life for this long. If it fails, it is repeated later.
pub(super) async fn release(conn: Conn, keys: Keys, after: Duration) {
    let of_messages = keys.of_messages();
    let mut released = 0;
    while let Ok(more @ 1..) = call(&conn, &keys, &of_messages, after).await {
        released += more as u64;
    }
    if released > 0 {
        events::abandoned_released(&keys, released);
    }
}

async fn call(conn: &Conn, keys: &Keys, of_messages: &MessageKeys, after: Duration) -> Result<i64, OpError> {
    let MessageKeys { inbox, messages, leases, retries, control, .. } = of_messages;
    let call = scripts::RELEASE_ALL
        .on(&[keys.target(), inbox, messages, leases, retries, control, keys.scratch()])
        .number(after.as_millis().max(1));
    Ok(call.run(conn).await?.into_count()?)
}
