//! Reads the server's clock, and whether entries are overdue that no client moves.
//!
//! Nothing should be overdue for long while the server answers: announcements, replies and sweeps wake the
//! transfer. Where one of these fails without a sign, a client would seem to be well and do nothing. So it
//! looks itself, and notes which servers have answered.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, timeout};

use super::clock::ClockReading;
use super::schedule::QueueId;
use crate::conn::{Conn, OpError, ServerId};
use crate::scripts;
use crate::wire::keys::Keys;

/// An entry that has been due for longer should have been moved.
pub(super) const OVERDUE_AFTER: Duration = Duration::from_secs(5);
/// At how many queues of a server a client looks at a time. With more of them, each has its turn.
pub(super) const MOST: usize = 100;
/// In how many slots of a cluster these may be. Each of them takes a call.
pub(super) const SLOTS: usize = 20;
/// How often a client says that entries were overdue, at most.
const SELDOM: Duration = Duration::from_secs(60);

/// The reply to a look.
pub(super) struct LookReply {
    pub(super) server: ServerId,
    /// The server's clock; `None` if it may not be read.
    pub(super) reading: Option<ClockReading>,
    /// Where it has looked.
    pub(super) queues: Vec<QueueId>,
    /// The queues with overdue entries, and when the first of each was due, epoch ms; or why the server has
    /// refused to tell.
    pub(super) overdue: Result<HashMap<QueueId, f64>, OpError>,
}

/// Looks at queues of one server; in a cluster, of one slot. `None` if it does not answer.
pub(super) async fn look(
    conn: Conn,
    server: ServerId,
    queues: Vec<(QueueId, Keys)>,
    within: Duration,
) -> Option<LookReply> {
    let (sent, conn) = (Instant::now(), conn.of(&queues.first()?.1));
    let timeout_sets = queues.iter().map(|(_, keys)| keys.timeout_set().clone());
    let call = scripts::OVERDUE.on(&[]).keys(timeout_sets).number(OVERDUE_AFTER.as_millis()).only_reads();
    let reply = async {
        let mut reply = call.run(&conn).await?.into_array()?.into_iter();
        let micros = reply.next().ok_or_else(|| conn.desynchronised())?.into_clock()?;
        let heads = reply.map(|head| Ok(head.into_optional_score()?)).collect::<Result<Vec<_>, OpError>>()?;
        Ok::<_, OpError>((micros, heads))
    };
    // Whatever fails without a sign must not end the looks.
    let (micros, overdue) = match timeout(within, reply).await.ok()? {
        Ok((micros, heads)) => {
            let overdue = queues.iter().zip(heads).filter_map(|((id, _), head)| Some((*id, head?)));
            (Some(micros), Ok(overdue.collect()))
        }
        // The clock is still needed.
        Err(error @ OpError::Server(_)) => {
            (timeout(within, conn.time()).await.ok().and_then(Result::ok), Err(error))
        }
        Err(_) => return None,
    };
    // It may have been sent on to another server.
    (conn.own_server() == server).then_some(())?;
    let reading = micros.map(|micros| ClockReading { sent, received: Instant::now(), micros });
    Some(LookReply { server, reading, queues: queues.into_iter().map(|(id, _)| id).collect(), overdue })
}

/// The looks in flight, and what others have found.
#[derive(Default)]
pub(super) struct Looks {
    pub(super) in_flight: FuturesUnordered<BoxFuture<'static, (ServerId, Option<LookReply>)>>,
    /// Looks at other servers do not wait for one that is silent.
    at: HashMap<ServerId, AtServer>,
    /// When overdue entries were last reported.
    reported: Option<Instant>,
}

#[derive(Default)]
struct AtServer {
    in_flight: usize,
    /// Whether the server refuses looks, which is reported; and whether it has accepted or refused any since
    /// the last pass began.
    is_refused: bool,
    accepted: bool,
    refused: bool,
}

impl Looks {
    /// A pass begins at a server, unless one is in flight there.
    pub(super) fn begin_pass(&mut self, server: ServerId) -> bool {
        let at = self.at.entry(server).or_default();
        if at.in_flight == 0 {
            at.is_refused &= at.refused || !at.accepted;
            (at.accepted, at.refused) = (false, false);
        }
        at.in_flight == 0
    }

    pub(super) fn begin(
        &mut self,
        server: ServerId,
        look: impl Future<Output = Option<LookReply>> + Send + 'static,
    ) {
        self.at.entry(server).or_default().in_flight += 1;
        self.in_flight.push(Box::pin(async move { (server, look.await) }));
    }

    pub(super) fn ended(&mut self, server: ServerId) {
        if let Some(at) = self.at.get_mut(&server) {
            at.in_flight -= 1;
        }
    }

    /// A look was accepted, or refused. Returns whether that is to be reported.
    pub(super) fn answered(&mut self, server: ServerId, accepted: bool) -> bool {
        let at = self.at.entry(server).or_default();
        at.accepted |= accepted;
        at.refused |= !accepted;
        !accepted && !std::mem::replace(&mut at.is_refused, true)
    }

    /// Overdue entries were found. Returns whether that is to be reported.
    pub(super) fn reports_overdue(&mut self, now: Instant) -> bool {
        let reports = self.reported.is_none_or(|last| now - last >= SELDOM);
        if reports {
            self.reported = Some(now);
        }
        reports
    }

    /// Forgets the servers that have no queues any more, and neither a look in flight nor a refusal.
    pub(super) fn retain(&mut self, has_queues: impl Fn(ServerId) -> bool) {
        self.at.retain(|server, at| at.in_flight > 0 || at.is_refused || has_queues(*server));
    }
}
