//! Transferring what is due, once.

use std::sync::Arc;

use super::call::Call;
use super::task::Settings;
use crate::conn::{Conn, OpError};
use crate::telemetry::QueueCounters;
use crate::wire::keys::Keys;

/// Transfers all entries that are due when it begins. What becomes due meanwhile may be transferred, too.
/// Counts what is transferred before an error, too.
///
/// Each call of the script moves something, prepares that, or ends with an error. So it ends, however much is
/// offered.
pub(crate) async fn all_due(
    conn: &Conn,
    keys: &Keys,
    counters: &Arc<QueueCounters>,
    settings: &Settings,
    transferred: &mut usize,
) -> Result<(), OpError> {
    let (mut cursor, mut begun) = (0, None);
    loop {
        let call = Call {
            conn: conn.clone(),
            queue: 0,
            server: conn.own_server(),
            keys: keys.clone(),
            counters: counters.clone(),
            batch: settings.batch,
            budget: settings.budget,
            // Not the id of the task, which would take it for one of its own.
            client_id: "once".into(),
            cursor,
            tells_peers: true,
            looks_for_schedules: false,
        };
        let reply = call.run().await.result?;
        *transferred += reply.transferred as usize;
        // If the clock was set back, what was due when it began may be due no more.
        let begun = reply.clock.min(*begun.get_or_insert(reply.clock));
        if reply.head.is_none_or(|head| head * 1e3 > begun as f64) {
            return Ok(());
        }
        cursor = reply.cursor;
    }
}
