//! Reads the server's clock, and whether entries are overdue that no client moves.
//!
//! Nothing should be overdue for long while the server answers: announcements, replies and sweeps wake the
//! transfer. Where one of these fails without a sign, a client would seem to be well and do nothing. So it
//! looks itself.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::clock::ClockReading;
use super::schedule::QueueId;
use crate::conn::{Conn, OpError, ServerId};
use crate::scripts;
use crate::wire::keys::Keys;

/// How often the clock is read. Until a client notices that the clock was set, it takes announced times for
/// much later or earlier than they are.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);
/// An entry that has been due for longer should have been moved.
pub(super) const OVERDUE: Duration = Duration::from_secs(5);
/// At how many queues of a server a client looks at a time. With more of them, each has its turn.
pub(super) const MOST: usize = 100;
/// In how many slots of a cluster these may be. Each of them takes a call.
pub(super) const SLOTS: usize = 20;

/// The answer to a look.
pub(super) struct Look {
    pub(super) server: ServerId,
    /// The server's clock; `None` if it may not be read.
    pub(super) reading: Option<ClockReading>,
    /// Where it has looked.
    pub(super) queues: Vec<QueueId>,
    /// The queues with overdue entries, or why the server has refused to tell.
    pub(super) overdue: Result<Vec<QueueId>, OpError>,
}

/// Looks at queues of one server; in a cluster, of one slot. `None` if it does not answer.
pub(super) async fn look(
    conn: Conn,
    server: ServerId,
    queues: Vec<(QueueId, Keys)>,
    within: Duration,
) -> Option<Look> {
    let (sent, conn) = (Instant::now(), conn.of(&queues.first()?.1));
    let timeout_sets = queues.iter().map(|(_, keys)| keys.timeout_set().clone());
    let call = scripts::OVERDUE.on(&[]).keys(timeout_sets).number(OVERDUE.as_millis()).only_reads();
    let reply = async {
        let mut reply = call.run(&conn).await?.into_array()?.into_iter();
        let micros = reply.next().ok_or_else(|| conn.desynchronised())?.into_clock()?;
        let is_overdue = reply.map(|count| Ok(count.into_int()? > 0)).collect::<Result<Vec<_>, OpError>>()?;
        Ok::<_, OpError>((micros, is_overdue))
    };
    // Whatever fails without a sign must not end the looks.
    let (micros, overdue) = match timeout(within, reply).await.ok()? {
        Ok((micros, is_overdue)) => {
            let overdue = queues.iter().zip(is_overdue).filter(|(_, is_overdue)| *is_overdue);
            (Some(micros), Ok(overdue.map(|((id, _), _)| *id).collect()))
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
    Some(Look { server, reading, queues: queues.into_iter().map(|(id, _)| id).collect(), overdue })
}
