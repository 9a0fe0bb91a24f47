//! The commands behind the pops. Each future is seen through to its end by the pops task.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::Kind;
use super::lane::Parked;
use super::list::Place;
use super::popped::End;
use super::task::Done;
use crate::conn::{Command, Conn, Link, OpError, Reply};
use crate::pacing::backoff;
use crate::scripts;
use crate::telemetry::events;
use crate::wire::keys::Keys;

/// How long one blocking pop is parked. A pop without end would never notice that nobody is at the other side.
const SLICE: Duration = Duration::from_secs(10);
/// How long after its slice a pop may still be answered before the connection is given up.
const GRACE: Duration = Duration::from_secs(3);
/// How long a pop waits for a connection before it reports that there is none.
const CONNECTION: Duration = Duration::from_secs(1);
/// Payloads that one call pops at most.
const CLAIM: usize = 1000;
/// Claims that one command deletes at most, each with as many payloads as that.
const FORGET: usize = 100;

/// A blocking pop on several lists.
pub(super) struct BlockingPop {
    pub(super) conn: Conn,
    pub(super) kind: Kind,
    pub(super) place: Place,
    pub(super) keys: Vec<Keys>,
    /// Interrupt it as soon as it is sent: what matters is that the lists are looked at.
    pub(super) hurry: bool,
    pub(super) interrupt: CancellationToken,
    /// Is told when it is sent.
    pub(super) sent: Arc<OnceLock<Instant>>,
    /// How many attempts in a row have failed before.
    pub(super) failures: u32,
}

impl BlockingPop {
    pub(super) async fn run(self, link: Option<Arc<Link>>) -> Done {
        if self.failures > 0 {
            sleep(backoff(self.failures - 1)).await;
        }
        let link = match link {
            Some(link) => link,
            None => match self.conn.open_blocking().await {
                Ok(link) => Arc::new(link),
                Err(error) => {
                    let outcome = Parked::Failed(OpError::NotExecuted(error.into()));
                    return Done::Parked { kind: self.kind, place: self.place, link: None, outcome };
                }
            },
        };
        let outcome = self.park(&link).await;
        Done::Parked { kind: self.kind, place: self.place, link: Some(link), outcome }
    }

    async fn park(&self, link: &Link) -> Parked {
        match timeout(CONNECTION, link.connected()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Parked::Failed(error),
            Err(_) => return Parked::Failed(link.no_connection()),
        }
        if self.interrupt.is_cancelled() && !self.hurry {
            return Parked::NotSent;
        }
        let now = Instant::now();
        let _ = self.sent.set(now);
        let mut pop = std::pin::pin!(link.call_blocking(self.command()));
        // The pop must not be dropped: whatever else happens, it is awaited until it ends.
        let mut deadline = now + GRACE + if self.hurry { Duration::ZERO } else { SLICE };
        let mut until_unblocked = Duration::ZERO;
        loop {
            let interrupted = self.hurry || self.interrupt.is_cancelled();
            tokio::select! {
                biased;
                reply = &mut pop => return self.read(reply),
                () = self.interrupt.cancelled(), if !interrupted => {
                    deadline = deadline.min(Instant::now() + GRACE);
                }
                () = sleep(until_unblocked), if interrupted => {
                    // No effect before the server has the pop, so it is repeated until the pop ends.
                    // The id is of use only as long as the server has not been started anew.
                    if let Some(session) = link.session().filter(|_| self.conn.is_connected()) {
                        let _ = timeout(GRACE, unblock(&self.conn, session.client_id)).await;
                    }
                    until_unblocked = (until_unblocked * 2).clamp(Duration::from_millis(1), Duration::from_millis(50));
                }
                () = sleep_until(deadline) => {
                    // The server is silent. With its connection the pop ends, too, as one of unknown outcome.
                    link.reconnect();
                    deadline = Instant::now() + GRACE;
                }
            }
        }
    }

    fn command(&self) -> Command {
        let slice = SLICE.as_secs();
        match &self.kind {
            Kind::Take(end) => {
                let name = if *end == End::Head { "BLPOP" } else { "BRPOP" };
                Command::new(name).args(self.keys.iter().map(|keys| keys.target().clone())).number(slice)
            }
            Kind::Move { source, destination } => {
                Command::new("BRPOPLPUSH").arg(source.target().clone()).arg(destination.clone()).number(slice)
            }
        }
    }

    fn read(&self, reply: Result<Reply, OpError>) -> Parked {
        let parse = |reply: Reply| -> Result<Parked, OpError> {
            match (&self.kind, reply) {
                (_, Reply::Nil) => Ok(Parked::Empty),
                (Kind::Move { source, .. }, payload) => {
                    Ok(Parked::Payload(source.clone(), payload.into_bytes()?))
                }
                (Kind::Take(_), reply) => {
                    let [name, payload] = reply.into_parts()?;
                    let name = name.into_bytes()?;
                    let keys = self.keys.iter().find(|keys| *keys.target() == name);
                    let keys =
                        keys.ok_or_else(|| OpError::Server("popped from another list than asked".into()))?;
                    Ok(Parked::Payload(keys.clone(), payload.into_bytes()?))
                }
            }
        };
        match reply.and_then(parse) {
            Ok(outcome) => outcome,
            // Another way for a server to say that the pop was interrupted.
            Err(OpError::Server(why)) if why.starts_with("UNBLOCKED") => Parked::Empty,
            Err(error) => Parked::Failed(error),
        }
    }
}

/// Ends the pop of this client.
///
/// Redis 7.0.15 that is paused for writes, as in a failover, holds the pop back, and crashes when such a
/// client is to be unblocked. A script is held back, too, and with it what follows on its connection.
async fn unblock(conn: &Conn, client_id: i64) {
    let hold = Command::new("EVAL").arg("return 0").number(0);
    let unblock = Command::new("CLIENT").arg("UNBLOCK").number(client_id).arg("TIMEOUT");
    let _ = join(conn.call(hold), conn.call(unblock)).await;
}

/// What a question brought, and the key under which the server remembers it until it is deleted.
pub(super) struct Taken {
    pub(super) payloads: Vec<Bytes>,
    pub(super) claim: Option<Bytes>,
}

/// Pops up to `count` payloads without blocking. `earlier` is the claim of a pop whose reply has arrived.
///
/// What if the reply is lost? The same pop is sent again until it is answered, and gets what the first try took.
pub(super) async fn ask(
    conn: &Conn,
    kind: &Kind,
    keys: &Keys,
    count: usize,
    mut earlier: Option<Bytes>,
) -> Result<Taken, OpError> {
    let pop = match kind {
        Kind::Take(End::Head) => "LPOP",
        Kind::Take(End::Tail) => "RPOP",
        // What was moved is in the other list, whether or not the reply comes.
        Kind::Move { source, destination } => {
            let command = Command::new("RPOPLPUSH").arg(source.target().clone()).arg(destination.clone());
            let payload = conn.call(command).await?.into_optional_bytes()?;
            return Ok(Taken { payloads: payload.into_iter().collect(), claim: None });
        }
    };
    let mut taken = Vec::new();
    // Who waits does not wait for ever, and what came too late would have to go back.
    let deadline = Instant::now() + conn.command_timeout();
    while taken.len() < count && (taken.is_empty() || Instant::now() < deadline) {
        let most = CLAIM.min(count - taken.len());
        let claim = keys.popped();
        let call = scripts::TAKE.on(&[keys.target(), &claim, earlier.as_ref().unwrap_or(&claim)]);
        let call = call.arg(pop).number(most).number(scripts::REMEMBERED_MS);
        let more = match call.run_until_answered(conn).await {
            Ok(reply) => reply.into_counted_bytes()?,
            // What came before the error is here, and must not go with it.
            Err(_) if !taken.is_empty() => break,
            Err(error) => return Err(error),
        };
        let popped = more.len();
        earlier = (popped > 0).then_some(claim);
        taken.extend(more);
        if popped < most {
            break;
        }
    }
    Ok(Taken { payloads: taken, claim: earlier })
}

/// Lets the server forget what pops took, now that their replies have arrived. If this is lost, it forgets by itself.
pub(super) async fn forget(conn: &Conn, claims: Vec<Bytes>) {
    for part in claims.chunks(FORGET) {
        let _ = conn.call(Command::new("DEL").args(part.iter().cloned())).await;
    }
}

/// Payloads on their way back to where they came from.
pub(super) struct Return {
    conn: Conn,
    keys: Keys,
    push: &'static str,
    /// In parts, of which the last is the first to go: a command may not have any number of arguments.
    parts: Vec<Part>,
    /// Of the parts that are back.
    spent: Vec<Bytes>,
}

struct Part {
    /// Tells on the server that it was done, so that a lost reply costs nothing.
    marker: Bytes,
    /// In the order of the pushes.
    payloads: Vec<Bytes>,
}

impl Return {
    pub(super) fn new(conn: Conn, end: End, keys: Keys, payloads: Vec<Bytes>) -> Self {
        let push = match end {
            End::Head => "LPUSH",
            End::Tail => "RPUSH",
        };
        // The one popped first is pushed last.
        let part =
            |part: &[Bytes]| Part { marker: keys.returned(), payloads: part.iter().rev().cloned().collect() };
        let parts = payloads.chunks(CLAIM).map(part).collect();
        Self { conn, keys, push, parts, spent: Vec::new() }
    }

    /// The first try, which takers of the list wait for.
    pub(super) async fn try_once(&mut self) {
        if let Err(error) = self.put_back().await {
            events::give_back_failing(&self.keys, &error);
        }
    }

    /// Does not rest before it is done: nobody else has them.
    pub(super) async fn finish(mut self) {
        let mut attempt = 0;
        while !self.parts.is_empty() {
            sleep(backoff(attempt)).await;
            attempt += 1;
            if let Err(OpError::Closed) = self.put_back().await {
                return;
            }
        }
        // If this is lost, the server forgets by itself.
        let _ = self.conn.call(Command::new("DEL").args(self.spent)).await;
    }

    async fn put_back(&mut self) -> Result<(), OpError> {
        while let Some(part) = self.parts.last() {
            let call = scripts::RETURN_TO_LIST
                .on(&[self.keys.target(), &part.marker])
                .arg(self.push)
                .number(scripts::REMEMBERED_MS)
                .args(part.payloads.iter().cloned())
                .idempotent();
            call.run(&self.conn).await?;
            self.spent.extend(self.parts.pop().map(|part| part.marker));
        }
        Ok(())
    }
}

/// Which of these lists a pop was refused for, and why.
pub(super) async fn examine(conn: &Conn, lists: Vec<Keys>, refused: OpError) -> HashMap<Keys, OpError> {
    let kinds =
        lists.iter().map(|keys| conn.call_idempotent(Command::new("TYPE").arg(keys.target().clone())));
    let kinds = futures::future::join_all(kinds).await;
    let all_known = kinds.iter().all(|kind| matches!(kind, Ok(_) | Err(OpError::Server(_))));
    let why = |kind: Result<Reply, OpError>| match kind.and_then(|reply| Ok(reply.into_bytes()?)) {
        Ok(kind) if kind == "list" || kind == "none" => None,
        Ok(_) => Some(OpError::Server("WRONGTYPE the key holds another type than a list".into())),
        Err(error @ OpError::Server(_)) => Some(error),
        Err(_) => None,
    };
    let mut wrong: HashMap<Keys, OpError> =
        lists.iter().cloned().zip(kinds).filter_map(|(keys, kind)| Some((keys, why(kind)?))).collect();
    let of_a_type = matches!(&refused, OpError::Server(why) if why.starts_with("WRONGTYPE"));
    if wrong.is_empty() && all_known && !of_a_type {
        // It is none of them alone, so it is for all. What was of another type may be a list by now.
        wrong.extend(lists.into_iter().map(|keys| (keys, refused.clone())));
    }
    wrong
}
