//! One call of the transfer script, and its reply.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::Settings;
use super::clock::ClockReading;
use super::schedule::QueueId;
use crate::conn::{Conn, OpError, Reply};
use crate::scripts;
use crate::telemetry::QueueCounters;
use crate::telemetry::events::{self, Span};
use crate::wire::keys::Keys;

/// A call that is to be made.
pub(super) struct Call {
    pub(super) conn: Conn,
    pub(super) queue: QueueId,
    pub(super) keys: Keys,
    pub(super) counters: Arc<QueueCounters>,
    pub(super) settings: Settings,
    /// Tells this client's transfers from those of its peers.
    pub(super) client_id: Bytes,
    /// Where the call before has stopped.
    pub(super) cursor: i64,
}

/// A call that was made.
pub(super) struct Report {
    pub(super) queue: QueueId,
    pub(super) sent: Instant,
    pub(super) received: Instant,
    pub(super) result: Result<Transferred, OpError>,
}

/// The reply of the script.
#[derive(Clone, Copy)]
pub(super) struct Transferred {
    pub(super) transferred: i64,
    pub(super) quarantined: i64,
    /// The score of the next head, epoch ms.
    pub(super) head: Option<f64>,
    /// The server's clock, epoch µs.
    pub(super) clock: i64,
    /// Where the next call continues; 0 if it starts from the beginning. Only the script interprets it.
    pub(super) cursor: i64,
}

impl Call {
    /// After a lost reply the schedule runs the call again, which is harmless: entries that were transferred are gone.
    pub(super) async fn run(self) -> Report {
        let Self { conn, queue, keys, counters, settings, client_id, cursor } = self;
        let span = Span::transfer(&keys);
        let sent = Instant::now();
        let call = scripts::TRANSFER
            .on(&[
                keys.timeout_set(),
                keys.ordered_list(),
                keys.target(),
                keys.quarantine(),
                keys.moved(),
                keys.scratch(),
            ])
            .number(settings.batch)
            .number(settings.budget.as_micros())
            .arg(client_id)
            .number(cursor);
        let reply = span.run(call.run(&conn)).await;
        let received = Instant::now();
        let result = reply.and_then(Transferred::parse);
        // Counted here, and not where the report is read: the queue may be closed by then.
        match &result {
            Ok(reply) => {
                let Transferred { transferred, quarantined, head, clock, cursor } = *reply;
                // A call that only searched for due entries is a part of the call that transfers them.
                if transferred + quarantined > 0 || cursor == 0 {
                    counters.transferred(transferred, quarantined);
                }
                if counters.quarantined(quarantined) {
                    events::quarantined(&keys, quarantined);
                }
                span.transferred(Ok((transferred, quarantined, head.map(|due| due - clock as f64 / 1e3))));
            }
            Err(error) => {
                counters.transfer_failed(events::name(&keys), error);
                span.transferred(Err(error));
            }
        }
        Report { queue, sent, received, result }
    }
}

impl Report {
    /// The server's clock, if the reply has it.
    pub(super) fn clock(&self) -> Option<ClockReading> {
        let Transferred { clock, .. } = self.result.as_ref().ok()?;
        Some(ClockReading { sent: self.sent, received: self.received, micros: *clock })
    }
}

impl Transferred {
    fn parse(reply: Reply) -> Result<Self, OpError> {
        let [transferred, quarantined, head, clock, cursor] = reply.into_parts()?;
        let head = head.into_optional_bytes()?;
        Ok(Self {
            transferred: transferred.into_int()?,
            quarantined: quarantined.into_int()?,
            head: head.and_then(|score| std::str::from_utf8(&score).ok()?.parse().ok()),
            clock: clock.into_int()?,
            cursor: cursor.into_int()?,
        })
    }
}
