//! Dead letters that are sent on to another queue.
//!
//! A message is a dead letter first; sending it on is a second step, which any receiver with the same setting
//! completes. The push leaves a receipt that is named after the letter, so the step can be repeated, by
//! another process, too.

use std::fmt;

use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::conn::{Command, Conn, LARGE, OpError, Reply};
use crate::pacing::pause_after;
use crate::scripts::{self, SetCursor};
use crate::telemetry::events;
use crate::wire::keys::Keys;

/// The most letters that are sent at a time.
const MOST: u64 = 20;
/// The shortest pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// Where dead letters are sent.
#[derive(Clone)]
pub(crate) struct Destination {
    pub(crate) conn: Conn,
    pub(crate) keys: Keys,
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("queue", self.keys.target()).finish_non_exhaustive()
    }
}

/// Sends dead letters in the background: the destination may be on another server, which may be down.
#[derive(Debug)]
pub(super) struct Forwarding {
    destination: Option<Destination>,
    /// What is being done. It returns how many were sent, and where to go on.
    running: Option<AbortOnDropHandle<(Result<usize, OpError>, SetCursor)>>,
    /// Whether that began with the first letter.
    from_the_first: bool,
    /// The letter that was passed over last.
    behind: SetCursor,
    failures: u32,
    not_before: Instant,
}

impl Forwarding {
    pub(super) fn new(destination: Option<Destination>) -> Self {
        Self {
            destination,
            running: None,
            from_the_first: true,
            behind: SetCursor::default(),
            failures: 0,
            not_before: Instant::now(),
        }
    }

    /// Begins to send some of the letters that wait to be sent, unless that is being done, or has failed just
    /// now.
    pub(super) fn start(&mut self, conn: &Conn, from: &Keys, waiting: u64) {
        let Some(destination) = self.destination.clone().filter(|_| waiting > 0) else { return };
        if self.running.is_none() && self.not_before <= Instant::now() {
            let (conn, from) = (conn.clone(), from.clone());
            let runtime = conn.runtime().clone();
            let mut behind = std::mem::take(&mut self.behind);
            self.from_the_first = behind == SetCursor::default();
            let task = runtime.spawn(async move {
                let sent = destination.send(&conn, &from, waiting, &mut behind).await;
                (sent, behind)
            });
            self.running = Some(AbortOnDropHandle::new(task));
        }
    }

    /// Waits for the end of what was begun. Returns whether there may be more to send. Cancel safe.
    pub(super) async fn ended(&mut self, keys: &Keys) -> bool {
        let ended = match &mut self.running {
            Some(running) => running.await,
            None => pending().await,
        };
        self.running = None;
        // The runtime is shutting down.
        let Ok((sent, behind)) = ended else { return false };
        self.behind = behind;
        match sent {
            // What cannot be read is not sent, and is no reason to hurry.
            Ok(sent) => {
                // If none was sent behind a letter that was refused, that one is still in the way.
                if sent > 0 || self.from_the_first {
                    self.failures = 0;
                }
                sent > 0
            }
            Err(error) => {
                if self.failures == 0 {
                    events::forward_failing(keys, &error);
                }
                self.not_before = Instant::now() + PAUSE + pause_after(self.failures);
                self.failures = self.failures.saturating_add(1);
                false
            }
        }
    }

    /// Waits for what was begun, before the receiver ends.
    pub(super) async fn finish(&mut self, keys: &Keys) {
        if self.running.is_some() {
            self.ended(keys).await;
        }
    }
}

impl Destination {
    /// Sends some of the letters that wait to be sent: those behind this one, the oldest first. Returns how
    /// many. If a long letter is refused, or its push has no reply, it may be too long for the other server:
    /// the next ones are those behind it, and behind the last one, the first ones again.
    async fn send(
        &self,
        conn: &Conn,
        keys: &Keys,
        waiting: u64,
        behind: &mut SetCursor,
    ) -> Result<usize, OpError> {
        let from = keys.of_messages();
        let mut cursor = behind.clone();
        let letters = loop {
            let read = scripts::READ_DEAD.on(&[&from.dead, &from.dead_messages]);
            let read = read.args(cursor).number(MOST).arg("letters").only_reads();
            let mut letters = read.run(&conn.for_long_reply()).await?.into_array()?;
            let read = letters.split_off(letters.len().min(2));
            let [score, id] = Reply::Array(letters).into_parts()?;
            cursor = [score.into_bytes()?, id.into_bytes()?];
            // Those that cannot be read are not in the way.
            if !read.is_empty() || !is_to_be_sent(&cursor[0]) {
                break read;
            }
        };
        let letters = letters.chunks_exact(10);
        let letters =
            letters.filter(|letter| matches!(letter, [_, Reply::Bytes(score), ..] if is_to_be_sent(score)));
        let letters = letters.take(usize::try_from(waiting).unwrap_or(usize::MAX));
        let mut sent = 0;
        for letter in letters {
            let [id, score, _, _, _, _, _, died, payload, _] = letter else { continue };
            let (id, score) = (id.clone().into_bytes()?, score.clone().into_bytes()?);
            let (died, payload) = (died.clone().into_int()?, payload.clone().into_bytes()?);
            let is_long = payload.len() >= LARGE;
            match self.send_one(conn, keys, id.clone(), died, payload).await {
                Ok(is_sent) => sent += usize::from(is_sent),
                Err(error) => {
                    if is_long {
                        *behind = [score, id];
                    }
                    return Err(error);
                }
            }
        }
        if sent == 0 {
            *behind = SetCursor::default();
        }
        Ok(sent)
    }

    /// Sends a letter on, unless somebody has requeued it. Returns whether it was sent.
    async fn send_one(
        &self,
        conn: &Conn,
        keys: &Keys,
        id: Bytes,
        died: i64,
        payload: Bytes,
    ) -> Result<bool, OpError> {
        let from = keys.of_messages();
        // The last push may have taken long.
        let score = Command::new("ZSCORE").arg(from.dead.clone()).arg(id.clone()).only_reads();
        if !conn.call(&score).await?.into_optional_bytes()?.is_some_and(|score| is_to_be_sent(&score)) {
            return Ok(false);
        }
        let name = format!("{}-{died}", id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let receipt = self.keys.returned_as(&name);
        let destination = self.conn.for_long(payload.len());
        let push = scripts::RETURN_TO_LIST.on(&[self.keys.target(), &receipt, self.keys.scratch()]);
        let push = push.arg("RPUSH").number(scripts::REMEMBERED_MS).arg(payload);
        push.idempotent().run(&destination).await?;
        // In one step: a process that dies between two leaves the content for ever.
        let forget = scripts::REMOVE_DEAD.on(&[&from.dead, &from.dead_messages, keys.scratch()]).arg(id);
        forget.idempotent().run(conn).await?;
        Ok(true)
    }
}

/// Whether the score of a letter is negative. Those that are kept come behind these.
fn is_to_be_sent(score: &[u8]) -> bool {
    score.starts_with(b"-")
}
