//! `Queue`: one queue of one client, shared by both kinds of handle. [`Op`] encodes, calls the server and
//! builds the errors.

mod keys;
mod op;
mod pages;
mod value;

use std::fmt;
use std::sync::Arc;

pub use keys::KeyNames;
pub(crate) use op::Op;
pub(crate) use pages::are_few;
pub use value::AsValue;

use crate::conn::{Conn, OpError, Reply};
use crate::engine::Engine;
use crate::error::Result;
use crate::scripts;
use crate::telemetry::{OnServer, QueueCounters, QueueStats};
use crate::wire::keys::Keys;

/// One queue, for one kind of handle.
pub(crate) struct Queue {
    pub(crate) engine: Arc<Engine>,
    /// Its command timeout may differ from the client's.
    pub(crate) conn: Conn,
    pub(crate) name: Box<str>,
    pub(crate) keys: Keys,
    pub(crate) counters: Arc<QueueCounters>,
    /// Whether a cluster would put its keys on several servers.
    is_split: bool,
    kind: HandleKind,
}

/// The kind of handle, for error texts.
#[derive(Clone, Copy, Debug)]
enum HandleKind {
    Blocking,
    Delayed,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Queue {
    pub(crate) fn blocking(engine: Arc<Engine>, conn: Conn, name: &str) -> Arc<Self> {
        let keys = engine.keys(name);
        let counters = engine.conn.counters().queue(&keys);
        let (conn, is_split) = (conn.of(&keys), !conn.can_hold(&keys));
        if !is_split {
            engine.check_permissions(&keys);
        }
        Arc::new(Self {
            engine,
            conn,
            name: name.into(),
            keys,
            counters,
            is_split,
            kind: HandleKind::Blocking,
        })
    }

    /// The queue of this name on the server, for a handle that offers and takes nothing.
    pub(crate) fn on_server(engine: Arc<Engine>, conn: &Conn, name: &[u8]) -> Arc<Self> {
        let keys = Keys::new(name);
        let counters = engine.conn.counters().queue(&keys);
        let (conn, is_split) = (conn.of(&keys), !conn.can_hold(&keys));
        let name = String::from_utf8_lossy(name).into();
        Arc::new(Self { engine, conn, name, keys, counters, is_split, kind: HandleKind::Delayed })
    }

    /// The same queue, for the handle of a delayed queue.
    pub(crate) fn delayed(&self) -> Arc<Self> {
        Arc::new(Self {
            engine: self.engine.clone(),
            conn: self.conn.clone(),
            name: self.name.clone(),
            keys: self.keys.clone(),
            counters: self.counters.clone(),
            is_split: self.is_split,
            kind: HandleKind::Delayed,
        })
    }

    /// The operation of a public method.
    pub(crate) fn op(&self, verb: &'static str) -> Op<'_> {
        Op { queue: self, verb, only_reads: false }
    }

    /// The operation of a public method that only reads.
    pub(crate) fn reading(&self, verb: &'static str) -> Op<'_> {
        self.op(verb).reading()
    }

    /// The stats of the queue: from the server, and from the counters of this client.
    pub(crate) async fn stats(&self) -> Result<QueueStats> {
        let op = self.reading("stats");
        let keys = &self.keys;
        let of_messages = keys.of_messages();
        let call = scripts::STATS.on(&[
            keys.timeout_set(),
            keys.ordered_list(),
            keys.target(),
            keys.quarantine(),
            keys.claims(),
            &of_messages.leases,
            &of_messages.retries,
            &of_messages.dead,
            &of_messages.control,
        ]);
        let reply = op.run(call.only_reads()).await?;
        let server = on_server(reply).map_err(|error| op.failed(error))?;
        if let (Some(transfer), Some(head)) =
            (&self.engine.transfer, server.head.filter(|_| server.overdue > 0))
        {
            // Its announcement was lost, or never made.
            transfer.head(keys, head);
        }
        Ok(QueueStats { server: self.conn.address(), ..self.counters.stats(&server) })
    }
}

fn on_server(reply: Reply) -> std::result::Result<OnServer, OpError> {
    let [
        pending,
        list_len,
        ready,
        quarantined,
        unconfirmed_pops,
        overdue,
        head,
        in_flight,
        waiting,
        dead,
        retry,
        paused,
        most,
        clock,
    ] = reply.into_parts()?;
    let number = |reply: Reply| reply.into_int().map(|number| number.max(0) as u64);
    let most = most.into_optional_bytes()?;
    let most = most.and_then(|digits| std::str::from_utf8(&digits).ok()?.parse().ok());
    Ok(OnServer {
        pending: number(pending)?,
        list_len: number(list_len)?,
        ready: number(ready)?,
        quarantined: number(quarantined)?,
        unconfirmed_pops: number(unconfirmed_pops)?,
        overdue: number(overdue)?,
        head: head.into_optional_score()?,
        in_flight: number(in_flight)?,
        waiting: number(waiting)?,
        dead_letters: number(dead)?,
        retry: retry.into_optional_score()?,
        is_paused: number(paused)? > 0,
        max_in_flight: most,
        clock: clock.into_int()?,
    })
}
