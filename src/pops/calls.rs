//! The commands behind the pops. The pops task awaits each of these futures until it ends.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::blocked_lists::BlockedLists;
use super::dispatcher::PopOutcome;
use super::kind::{End, Kind};
use crate::claims::{self, ClaimId, KEPT_MS};
use crate::conn::{Command, Conn, Link, OpError, Reply, wrong_type};
use crate::pacing::pause_after;
use crate::scripts;
use crate::telemetry::events;
use crate::unreturned::Unreturned;
use crate::wire::keys::Keys;

/// How long one blocking pop blocks. An endless pop would not notice that the server is gone.
const SLICE: Duration = Duration::from_secs(10);
/// The same for a pop that nothing can interrupt: the server lacks `CLIENT ID` or `CLIENT UNBLOCK`, or the
/// user the permission. A payload in another list waits for so long.
const SHORT_SLICE: Duration = Duration::from_millis(500);
/// The same for a pop that only looks whether its lists have a payload.
const GLANCE: Duration = Duration::from_millis(10);
/// How long after its slice a pop may still be answered before the connection is given up.
const OVERTIME: Duration = Duration::from_secs(3);
/// A timer that fires this late was held up with the whole process. The replies may wait in its sockets.
const HELD_UP: Duration = Duration::from_millis(100);
/// How often a pop is spared for that.
const SPARED: u32 = 3;
/// How long a pop waits for a connection before it reports that there is none.
const CONNECTION: Duration = Duration::from_secs(1);
/// The most payloads that one call pops or returns.
pub(super) const CALL: usize = 1000;

/// A blocking pop on several lists.
pub(super) struct BlockingPop {
    pub(super) conn: Conn,
    pub(super) kind: Kind,
    pub(super) keys: Vec<Keys>,
    /// Interrupt it as soon as it is sent: the only purpose is that the server looks at the lists.
    pub(super) interrupt_at_once: bool,
    pub(super) interrupt: CancellationToken,
    /// Set when the pop is sent.
    pub(super) sent: Arc<OnceLock<Instant>>,
    pub(super) blocked: BlockedLists,
    /// The number of attempts in a row that have failed before.
    pub(super) failures: u32,
}

impl BlockingPop {
    /// Returns the connection, which may be new, and how the pop ended.
    pub(super) async fn run(self, link: Option<Arc<Link>>) -> (Option<Arc<Link>>, PopOutcome) {
        if self.failures > 0 {
            sleep(pause_after(self.failures - 1)).await;
        }
        let link = match link {
            Some(link) => link,
            None => match self.conn.open_blocking(self.kind.queue().as_deref()).await {
                Ok(link) => link,
                Err(error) => {
                    return (None, PopOutcome::Failed(OpError::NotExecuted(error.into())));
                }
            },
        };
        let outcome = match self.block(&link).await {
            PopOutcome::Failed(error @ OpError::Server(_)) => {
                let deadline = Instant::now() + self.conn.command_timeout();
                PopOutcome::Failed(self.conn.naming_keys(error, "pop", &self.lists(), deadline).await)
            }
            outcome => outcome,
        };
        (Some(link), outcome)
    }

    /// The lists that it uses.
    fn lists(&self) -> Vec<Bytes> {
        let mut lists: Vec<Bytes> = self.keys.iter().map(|keys| keys.target().clone()).collect();
        if let Kind::Move { destination: other, .. } | Kind::Receive { inbox: other, .. } = &self.kind {
            lists.push(other.clone());
        }
        lists
    }

    async fn block(&self, link: &Link) -> PopOutcome {
        let session = match timeout(CONNECTION, link.in_use()).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) => return PopOutcome::Failed(error),
            Err(_) => return PopOutcome::Failed(link.no_connection()),
        };
        if self.interrupt.is_cancelled() && !self.interrupt_at_once {
            return PopOutcome::NotSent;
        }
        let now = Instant::now();
        let _ = self.sent.set(now);
        let _blocked = self.conn.is_cluster().then(|| self.blocked.enter(&self.keys));
        let can_interrupt = session.client_id.is_some();
        let slice = match (can_interrupt, self.interrupt_at_once) {
            (true, _) => SLICE,
            (false, false) => SHORT_SLICE,
            (false, true) => GLANCE,
        };
        let command = self.command(slice);
        let mut pop = std::pin::pin!(link.call_blocking(&command));
        // The pop must not be dropped: whatever else happens, it is awaited until it ends.
        let ends_at_once = can_interrupt && self.interrupt_at_once;
        let mut deadline = now + OVERTIME + if ends_at_once { Duration::ZERO } else { slice };
        let mut until_unblocked = Duration::ZERO;
        let mut spared = 0;
        loop {
            let interrupted = can_interrupt && (self.interrupt_at_once || self.interrupt.is_cancelled());
            tokio::select! {
                biased;
                reply = &mut pop => return self.outcome(link, reply),
                () = self.interrupt.cancelled(), if can_interrupt && !interrupted => {
                    deadline = deadline.min(Instant::now() + OVERTIME);
                }
                () = sleep(until_unblocked), if interrupted => {
                    // No effect before the server has received the pop, so it is repeated until the pop ends.
                    // The id is valid only until the server restarts.
                    let _ = timeout(OVERTIME, self.conn.unblock(link)).await;
                    until_unblocked = (until_unblocked * 2).clamp(Duration::from_millis(1), Duration::from_millis(50));
                }
                () = sleep_until(deadline) => {
                    // The connection's reader has been held up as well. A reply that it reads now must not be
                    // lost.
                    if deadline.elapsed() > HELD_UP && spared < SPARED {
                        spared += 1;
                        deadline = Instant::now() + OVERTIME;
                        continue;
                    }
                    // The server does not answer. The pop ends with its connection, as one of unknown
                    // outcome.
                    link.reconnect();
                    deadline = Instant::now() + OVERTIME;
                }
            }
        }
    }

    /// Blocks for so long.
    fn command(&self, slice: Duration) -> Command {
        let command = match &self.kind {
            Kind::Take(end, _) => {
                let name = if *end == End::Head { "BLPOP" } else { "BRPOP" };
                Command::new(name).args(self.keys.iter().map(|keys| keys.target().clone()))
            }
            Kind::Move { source, destination } => {
                Command::new("BRPOPLPUSH").arg(source.target().clone()).arg(destination.clone())
            }
            Kind::Receive { source, inbox } => move_to_inbox("BLMOVE", source, inbox),
        };
        match slice {
            // Nearly all of them. To print a fraction costs more than the rest of the command.
            SLICE => command.number(SLICE.as_secs()),
            part => command.arg(part.as_secs_f64().to_string()),
        }
    }

    fn outcome(&self, link: &Link, reply: Result<Reply, OpError>) -> PopOutcome {
        let parse = |reply: Reply| -> Result<PopOutcome, OpError> {
            match (&self.kind, reply) {
                (_, Reply::Nil) => Ok(PopOutcome::Empty),
                (Kind::Move { source, .. } | Kind::Receive { source, .. }, payload) => {
                    Ok(PopOutcome::Payload(source.clone(), payload.into_bytes()?))
                }
                (Kind::Take(..), reply) => {
                    let [name, payload] = reply.into_parts()?;
                    let name = name.into_bytes()?;
                    let keys = self.keys.iter().find(|keys| *keys.target() == name);
                    // What was popped, if anything, is not this.
                    let keys = keys.ok_or_else(|| link.desynchronised())?;
                    Ok(PopOutcome::Payload(keys.clone(), payload.into_bytes()?))
                }
            }
        };
        match reply.and_then(parse) {
            Ok(outcome) => outcome,
            // Another reply of a server to an interrupted pop.
            Err(OpError::Server(why)) if why.starts_with("UNBLOCKED") => PopOutcome::Empty,
            Err(error) => PopOutcome::Failed(error),
        }
    }
}

fn move_to_inbox(name: &'static str, source: &Keys, inbox: &Bytes) -> Command {
    Command::new(name).arg(source.target().clone()).arg(inbox.clone()).arg("LEFT").arg("RIGHT")
}

/// Pops up to `count` payloads without blocking. Returns them, and the claim that is still to be confirmed.
/// `earlier` is the claim of a pop whose reply has arrived; this call confirms it.
///
/// If a reply is lost, the same pop is sent again until it is answered, and gets what the first attempt
/// popped.
pub(super) async fn try_pop(
    conn: &Conn,
    kind: &Kind,
    keys: &Keys,
    count: usize,
    mut earlier: Option<ClaimId>,
) -> (Result<Vec<Bytes>, OpError>, Option<ClaimId>) {
    let pop = match kind {
        Kind::Take(End::Head, _) => "LPOP",
        Kind::Take(End::Tail, _) => "RPOP",
        // A moved payload is in the other list, whether or not the reply arrives.
        Kind::Move { source, destination } => {
            let command = Command::new("RPOPLPUSH").arg(source.target().clone()).arg(destination.clone());
            let payload = conn.call(&command).await.and_then(|reply| Ok(reply.into_optional_bytes()?));
            return (payload.map(|payload| payload.into_iter().collect()), earlier);
        }
        Kind::Receive { source, inbox } => {
            let moved = conn.call(&move_to_inbox("LMOVE", source, inbox)).await;
            let payload = moved.and_then(|reply| Ok(reply.into_optional_bytes()?));
            return (payload.map(|payload| payload.into_iter().collect()), earlier);
        }
    };
    let mut popped = Vec::new();
    // Takers do not wait indefinitely, and payloads that arrive too late would have to return to the list.
    let deadline = Instant::now() + conn.command_timeout();
    while popped.len() < count && (popped.is_empty() || Instant::now() < deadline) {
        let limit = CALL.min(count - popped.len());
        let claim = claims::new_id();
        let call = scripts::TAKE
            .on(&[keys.target(), keys.claims(), keys.scratch()])
            .arg(pop)
            .number(limit)
            .number(KEPT_MS)
            .arg(claim.clone())
            .arg(earlier.clone().unwrap_or_default());
        let mut unreturned = Unreturned::new(conn.counters(), keys.clone(), popped.len());
        let reply = claims::run_until_answered(call, conn, conn).await;
        unreturned.are_safe(popped.len());
        let more = match reply.and_then(|reply| Ok(reply.into_strings()?)) {
            Ok(more) => more,
            // Payloads that came before the error are here, and must not be lost with it.
            Err(_) if !popped.is_empty() => break,
            Err(error) => return (Err(error), earlier),
        };
        earlier = (!more.is_empty()).then_some(claim);
        let is_all = more.len() < limit && !scripts::is_full(more.iter().map(Bytes::len));
        popped.extend(more);
        if is_all {
            break;
        }
    }
    (Ok(popped), earlier)
}

/// Pops up to `count` payloads of several lists without blocking: of the first that has any, then of the
/// next. `earlier` has a claim of each list to be confirmed, or an empty one. Returns the payloads of each
/// list, and the claims that are still to be confirmed. A lost reply is as with [`try_pop`].
pub(super) async fn try_pop_any(
    conn: &Conn,
    kind: &Kind,
    lists: &[Keys],
    count: usize,
    earlier: Vec<ClaimId>,
) -> (Result<Vec<Vec<Bytes>>, OpError>, Vec<(Keys, ClaimId)>) {
    let pop = match kind {
        Kind::Take(End::Tail, _) => "RPOP",
        // Moves have one list.
        Kind::Take(End::Head, _) | Kind::Move { .. } | Kind::Receive { .. } => "LPOP",
    };
    let claim = claims::new_id();
    let call = scripts::TAKE_ANY
        .on(&[])
        .keys(lists.iter().flat_map(|keys| [keys.target().clone(), keys.claims().clone()]))
        .keys(lists.first().map(|keys| keys.scratch().clone()))
        .arg(pop)
        .number(CALL.min(count))
        .number(KEPT_MS)
        .arg(claim.clone())
        .args(earlier.iter().cloned());
    let reply = claims::run_until_answered(call, conn, conn).await;
    match reply.and_then(|reply| payloads_of(reply, lists.len())) {
        Ok(payloads) => {
            let popped = lists.iter().zip(&payloads).filter(|(_, payloads)| !payloads.is_empty());
            let claims = popped.map(|(keys, _)| (keys.clone(), claim.clone())).collect();
            (Ok(payloads), claims)
        }
        Err(error) => {
            if matches!(&error, OpError::Server(why) if !why.starts_with("WRONGTYPE")) {
                conn.counters().failed("pop from several lists", &error);
            }
            let claims = lists.iter().cloned().zip(earlier).filter(|(_, claim)| !claim.is_empty());
            (Err(error), claims.collect())
        }
    }
}

/// The payloads of each list.
fn payloads_of(reply: Reply, lists: usize) -> Result<Vec<Vec<Bytes>>, OpError> {
    let mut payloads = vec![Vec::new(); lists];
    let mut reply = reply.into_array()?.into_iter();
    while let Some(number) = reply.next() {
        let list = number.into_number_of(lists)?;
        for _ in 0..reply.next().unwrap_or(Reply::Nil).into_count()? {
            payloads[list - 1].push(reply.next().unwrap_or(Reply::Nil).into_bytes()?);
        }
    }
    Ok(payloads)
}

/// Payloads on their way back to the end of the list they came from.
pub(super) struct Return {
    conn: Conn,
    unreturned: Unreturned,
    push: &'static str,
    /// In chunks, because a command has a bound of arguments and of bytes. The last chunk goes first.
    chunks: Vec<Chunk>,
    /// The receipts of the chunks that are back. Without those of which a try was lost: it may still arrive.
    spent: Vec<Bytes>,
}

struct Chunk {
    /// Remembers on the server that the chunk was pushed, so that a lost reply has no effect.
    receipt: Bytes,
    /// In the order of the pushes.
    payloads: Vec<Bytes>,
    /// Whether a try was lost.
    lost: bool,
}

impl Return {
    pub(super) fn new(conn: Conn, end: End, keys: Keys, payloads: Vec<Bytes>) -> Self {
        let push = match end {
            End::Head => "LPUSH",
            End::Tail => "RPUSH",
        };
        // The payload that was popped first is pushed last.
        let chunk = |chunk: &[Bytes]| Chunk {
            receipt: keys.returned(),
            payloads: chunk.iter().rev().cloned().collect(),
            lost: false,
        };
        let chunks = scripts::in_parts(&payloads, CALL, Bytes::len).map(chunk).collect();
        let unreturned = Unreturned::new(conn.counters(), keys, payloads.len());
        Self { conn, unreturned, push, chunks, spent: Vec::new() }
    }

    /// The first attempt. Takers of the list wait for it.
    pub(super) async fn try_once(&mut self) {
        if let Err(error) = self.return_to_list().await {
            events::return_to_list_failing(self.unreturned.keys(), &error);
        }
    }

    /// Retries until all payloads are back: they are nowhere else. When `stop` is cancelled, and again when
    /// `shutdown` is, it retries at once, because the time that is left may be shorter than a pause.
    pub(super) async fn finish(mut self, stop: CancellationToken, shutdown: CancellationToken) {
        let mut ends = [stop, shutdown].into_iter();
        let (mut attempt, mut end) = (0, ends.next());
        while !self.chunks.is_empty() {
            let hurries = async {
                match &end {
                    Some(end) => end.cancelled().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = sleep(pause_after(attempt)) => attempt += 1,
                () = hurries => (attempt, end) = (0, ends.next()),
            }
            if let Err(OpError::Closed) = self.return_to_list().await {
                return;
            }
        }
        if !self.spent.is_empty() {
            // If this command is lost, the server deletes the receipts later by itself.
            let _ = self.conn.call(&Command::new("DEL").args(self.spent)).await;
        }
    }

    async fn return_to_list(&mut self) -> Result<(), OpError> {
        while let Some(chunk) = self.chunks.last_mut() {
            let keys = self.unreturned.keys();
            let call = scripts::RETURN_TO_LIST
                .on(&[keys.target(), &chunk.receipt, keys.scratch()])
                .arg(self.push)
                .number(scripts::REMEMBERED_MS)
                .args(chunk.payloads.iter().cloned())
                .idempotent();
            let conn = self.conn.for_long(chunk.payloads.iter().map(Bytes::len).sum());
            call.run_noting(&conn, &mut chunk.lost).await?;
            self.unreturned.are_safe(chunk.payloads.len());
            self.spent.extend(self.chunks.pop().filter(|chunk| !chunk.lost).map(|chunk| chunk.receipt));
        }
        Ok(())
    }
}

/// Finds out which of these lists the server refuses to pop from, and why. `refused` is its error for all of
/// them together.
pub(super) async fn examine(conn: &Conn, lists: Vec<Keys>, refused: OpError) -> HashMap<Keys, OpError> {
    let types = lists
        .iter()
        .map(async |keys| conn.call(&Command::new("TYPE").arg(keys.target().clone()).only_reads()).await);
    let types = futures::future::join_all(types).await;
    let all_known = types.iter().all(|reply| matches!(reply, Ok(_) | Err(OpError::Server(_))));
    let why =
        |keys: &Keys, reply: Result<Reply, OpError>| match reply.and_then(|reply| Ok(reply.into_bytes()?)) {
            Ok(name) if name == "list" || name == "none" => None,
            Ok(name) => {
                let error = OpError::Server(wrong_type(keys.target(), &name));
                conn.counters().failed("pop", &error);
                Some(error)
            }
            Err(error @ OpError::Server(_)) => Some(error),
            Err(_) => None,
        };
    let mut wrong: HashMap<Keys, OpError> =
        lists.iter().zip(types).filter_map(|(keys, reply)| Some((keys.clone(), why(keys, reply)?))).collect();
    let is_wrong_type = matches!(&refused, OpError::Server(why) if why.starts_with("WRONGTYPE"));
    if wrong.is_empty() && all_known && !is_wrong_type {
        // No single list explains the error, so it is about all of them. A key of another type may be a list
        // by now.
        wrong.extend(lists.into_iter().map(|keys| (keys, refused.clone())));
    }
    wrong
}
