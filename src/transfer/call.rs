//! One call of the transfer script, and its reply.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::clock::ClockReading;
use super::schedule::{QUIET, QueueId};
use crate::conn::{Conn, OpError, Reply, ServerId};
use crate::schedules;
use crate::scripts;
use crate::telemetry::QueueCounters;
use crate::telemetry::events::{self, Span};
use crate::wire::keys::Keys;

/// A call that is to be made.
pub(super) struct Call {
    pub(super) conn: Conn,
    pub(super) queue: QueueId,
    pub(super) server: ServerId,
    pub(super) keys: Keys,
    pub(super) counters: Arc<QueueCounters>,
    /// The most entries.
    pub(super) batch: u32,
    /// The longest time that it may hold the server.
    pub(super) budget: Duration,
    /// Tells this client's transfers from those of its peers.
    pub(super) client_id: Bytes,
    /// Where the call before has stopped.
    pub(super) cursor: i64,
    /// Whether it tells its peers although the next entry is due soon.
    pub(super) tells_peers: bool,
    /// Whether to find out if the queue has schedules.
    pub(super) looks_for_schedules: bool,
}

/// A call that was made.
pub(super) struct TransferReport {
    pub(super) queue: QueueId,
    /// The server that the queue was on.
    pub(super) server: ServerId,
    pub(super) sent: Instant,
    pub(super) received: Instant,
    pub(super) result: Result<Transferred, OpError>,
    /// Whether it has taken longer than all of its timeouts.
    pub(super) hangs: bool,
    /// Whether the queue has schedules, or a key that is none; `None` if that is not known.
    pub(super) has_schedules: Option<bool>,
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
    /// How many of the entries are runs of schedules.
    pub(super) runs: i64,
}

impl Call {
    /// After a lost reply the schedule runs the call again, which is harmless: entries that were transferred
    /// are gone.
    pub(super) async fn run(self) -> TransferReport {
        let Self { conn, queue, server, keys, counters, client_id, cursor, looks_for_schedules, .. } = self;
        let quiet = if self.tells_peers { Duration::ZERO } else { QUIET };
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
                &keys.jobs(),
                &keys.rebuild(),
            ])
            .number(self.batch)
            .number(self.budget.as_micros())
            .arg(client_id)
            .number(cursor)
            .number(quiet.as_millis());
        let transfer = async {
            let reply = span.run(call.run(&conn)).await;
            (reply, Instant::now())
        };
        let look = async {
            match schedules::exist(&conn, &keys).await {
                Ok(exist) => Some(exist),
                Err(error) => matches!(error, OpError::Server(_)).then_some(true),
            }
        };
        let ((reply, received), has_schedules) =
            tokio::join!(transfer, async { if looks_for_schedules { look.await } else { None } });
        let result = reply.and_then(Transferred::parse);
        // Counted here, and not where the report is read: the queue may be closed by then.
        match &result {
            Ok(reply) => {
                let Transferred { transferred, quarantined, head, clock, cursor, .. } = *reply;
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
        TransferReport { queue, server, sent, received, result, hangs: false, has_schedules }
    }
}

impl TransferReport {
    /// The report of a run that takes longer than it can.
    pub(super) fn without_reply(queue: QueueId, server: ServerId, sent: Instant) -> Self {
        let result = Err(OpError::Unknown("a transfer has taken longer than its timeouts".into()));
        Self { queue, server, sent, received: Instant::now(), result, hangs: true, has_schedules: None }
    }

    /// The server's clock, if the reply has it.
    pub(super) fn clock(&self) -> Option<ClockReading> {
        let Transferred { clock, .. } = self.result.as_ref().ok()?;
        Some(ClockReading { sent: self.sent, received: self.received, micros: *clock })
    }
}

impl Transferred {
    fn parse(reply: Reply) -> Result<Self, OpError> {
        let [transferred, quarantined, head, clock, cursor, runs] = reply.into_parts()?;
        Ok(Self {
            transferred: transferred.into_count()?,
            quarantined: quarantined.into_count()?,
            head: head.into_optional_score()?,
            clock: clock.into_clock()?,
            cursor: cursor.into_int()?,
            runs: runs.into_count()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reply(transferred: i64, quarantined: i64, head: &str, clock: i64, cursor: i64) -> Reply {
        let head = if head.is_empty() { Reply::Nil } else { Reply::Bytes(head.to_owned().into()) };
        Reply::Array(vec![
            Reply::Int(transferred),
            Reply::Int(quarantined),
            head,
            Reply::Int(clock),
            Reply::Int(cursor),
            Reply::Int(0),
        ])
    }

    #[test]
    fn counts_and_clocks_that_cannot_be_are_refused() {
        const NOW: i64 = 1_795_249_257_299_000;
        assert!(Transferred::parse(reply(1, 2, "1795249257299", NOW, -3)).is_ok());
        for (transferred, quarantined, clock) in [
            (-1, 0, NOW),
            (0, -1, NOW),
            (i64::MAX, 1, NOW),
            (1, i64::MIN, NOW),
            (0, 0, -1),
            (0, 0, i64::MAX),
            (0, 0, i64::MIN),
        ] {
            let parsed = Transferred::parse(reply(transferred, quarantined, "", clock, 0));
            assert!(parsed.is_err(), "{transferred} {quarantined} {clock}");
        }
    }

    #[test]
    fn any_score_is_a_head() {
        for (score, head) in
            [("inf", f64::INFINITY), ("-inf", f64::NEG_INFINITY), ("1e308", 1e308), ("-7", -7.0)]
        {
            assert_eq!(Transferred::parse(reply(0, 0, score, 1, 0)).unwrap().head, Some(head));
        }
        for score in ["nan", "x", "1 2"] {
            let head = Transferred::parse(reply(0, 0, score, 1, 0)).unwrap().head;
            assert!(head.is_none_or(f64::is_nan), "{score}: {head:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_can_be_counted(
            transferred: i64,
            quarantined: i64,
            head: String,
            clock: i64,
            cursor: i64,
        ) {
            if let Ok(parsed) = Transferred::parse(reply(transferred, quarantined, &head, clock, cursor)) {
                prop_assert!(parsed.transferred.checked_add(parsed.quarantined).is_some());
            }
        }
    }
}
