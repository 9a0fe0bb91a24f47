//! Polls of delayed queues, which take entries before they are due.
//!
//! Each poll runs in a separate task, so that dropping the caller's future does not lose the reply of the
//! script. The result is held in an [`Outbox`]. If no caller reads it, its entries return to the queue. After
//! a lost reply the same poll is sent again, and gets what the first one took.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::claims::{self, ClaimId, KEPT_MS};
use crate::conn::{Command, Conn, OpError, Reply, ServerId};
use crate::outbox::{Held, Outbox};
use crate::pacing::{self, pause_after};
use crate::scripts;
use crate::telemetry::events;
use crate::unreturned::Unreturned;
use crate::upkeep::OnHead;
use crate::wire::entry;
use crate::wire::keys::Keys;

/// The most entries that one call polls or returns.
const CALL: usize = 1000;
/// The most polls of a client at a time, on each server; the others wait for their turn. While a server is
/// silent, a loop that begins a poll and drops it, again and again, must not fill the memory with tasks.
const AT_A_TIME: usize = 1024;

/// Entries that were polled.
pub(crate) struct Polled {
    keys: Keys,
    entries: Vec<Entry>,
    /// Some of them may be jobs.
    are_jobs: bool,
}

#[derive(Clone)]
struct Entry {
    bytes: Bytes,
    /// Empty for an entry that was only in the ordered list.
    score: Bytes,
}

impl Entry {
    fn pair(&self) -> [Bytes; 2] {
        [self.bytes.clone(), self.score.clone()]
    }
}

/// The turns at each server.
type Turns = HashMap<ServerId, Arc<Semaphore>>;

/// The polls of a client.
#[derive(Clone, Debug)]
pub(crate) struct EarlyPolls {
    conn: Conn,
    outbox: Outbox<Polled>,
    tasks: TaskTracker,
    /// Those that return entries, and what ends them.
    returns: TaskTracker,
    over: CancellationToken,
    /// `None` when the polls have ended.
    turns: Arc<Mutex<Option<Turns>>>,
}

impl EarlyPolls {
    pub(crate) fn start(conn: Conn, on_head: OnHead) -> Self {
        let (tasks, returns, over) = (TaskTracker::new(), TaskTracker::new(), CancellationToken::new());
        let outbox = Outbox::new({
            let (conn, returns, over) = (conn.clone(), returns.clone(), over.clone());
            move |polled: Polled| {
                let (back, over) = (polled.return_to_queue(conn.clone(), on_head.clone()), over.clone());
                let back_or_over = async move {
                    tokio::select! {
                        () = back => {}
                        () = over.cancelled() => {}
                    }
                };
                returns.spawn_on(back_or_over, conn.runtime());
            }
        });
        Self { conn, outbox, tasks, returns, over, turns: Arc::new(Mutex::new(Some(Turns::new()))) }
    }

    /// Polls up to `n` entries, with the timeout of the caller's `conn`. Further tries and the confirmation
    /// have that of the client.
    pub(crate) async fn poll(&self, conn: &Conn, keys: &Keys, n: usize) -> Result<Held<Polled>, OpError> {
        // A silent server may not reply. The task goes on, and returns the entries that it still gets.
        let silent = || OpError::NotExecuted("the server does not answer".into());
        // The task's own error is better, and comes earlier.
        let within = conn.command_timeout() * 2;
        timeout(within, self.poll_in_task(conn, keys, n)).await.unwrap_or_else(|_| Err(silent()))
    }

    /// Those at the server of a queue. A server where no poll is on its way is forgotten when another is met.
    fn turns_at(&self, keys: &Keys) -> Result<Arc<Semaphore>, OpError> {
        let server = self.conn.server_of(keys.timeout_set());
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = turns.as_mut().ok_or(OpError::Closed)?;
        if !turns.contains_key(&server) {
            turns.retain(|_, turns| Arc::strong_count(turns) > 1);
        }
        Ok(turns.entry(server).or_insert_with(|| Arc::new(Semaphore::new(AT_A_TIME))).clone())
    }

    async fn poll_in_task(&self, conn: &Conn, keys: &Keys, n: usize) -> Result<Held<Polled>, OpError> {
        let turn = self.turns_at(keys)?.acquire_owned().await.map_err(|_| OpError::Closed)?;
        let Self { outbox, tasks, .. } = self.clone();
        let own = self.conn.of(keys);
        let (conn, keys) = (conn.clone(), keys.clone());
        let task = async move {
            let _turn = turn;
            let (polled, claims) = Polled::poll(&conn, &own, keys.clone(), n).await?;
            if !claims.is_empty() {
                tasks.spawn(async move { claims::confirm(&own, &keys, claims).await });
            }
            Ok(outbox.hold(polled))
        };
        self.tasks.spawn_on(task, self.conn.runtime()).await.unwrap_or(Err(OpError::Closed))
    }

    /// Forgets which jobs these entries are, which the caller has. A task does it: a caller that waited here,
    /// and were dropped, would lose them. What it does not do, a sweep does.
    pub(crate) fn forget_jobs(&self, polled: &Polled) {
        if !polled.are_jobs {
            return;
        }
        let (conn, keys) = (self.conn.clone(), polled.keys.clone());
        let entries = polled.entries.clone();
        let task = async move {
            for part in scripts::in_parts(&entries, CALL, |entry| entry.bytes.len()) {
                let call = scripts::FORGET_JOBS.of(&keys, None).args(part.iter().flat_map(Entry::pair));
                if call.idempotent().run(&conn).await.is_err() {
                    break;
                }
            }
        };
        self.tasks.spawn_on(task, self.conn.runtime());
    }

    /// Ends the polls that wait for their turn, returns what has not been read, and waits for that, up to the
    /// command timeout.
    pub(crate) async fn finish(&self) {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner).take();
        turns.into_iter().flatten().for_each(|(_, turns)| turns.close());
        self.outbox.close();
        self.tasks.close();
        self.returns.close();
        pacing::within(self.conn.command_timeout(), async {
            // A poll whose caller is gone begins a return when it ends.
            self.tasks.wait().await;
            self.returns.wait().await;
        })
        .await;
        // Entries that are not back by now are reported before the client ends.
        self.over.cancel();
        self.returns.wait().await;
    }
}

impl Polled {
    /// The entries, and the claims that are to be confirmed.
    async fn poll(conn: &Conn, own: &Conn, keys: Keys, n: usize) -> Result<(Self, Vec<ClaimId>), OpError> {
        let mut polled = Self { keys, entries: Vec::new(), are_jobs: false };
        let mut claims = Vec::new();
        // The caller stops waiting at some point. What comes later than that would have to be returned.
        let deadline = Instant::now() + conn.command_timeout();
        while polled.entries.len() < n && (polled.entries.is_empty() || Instant::now() < deadline) {
            let most = CALL.min(n - polled.entries.len());
            let earlier = polled.entries.len();
            let mut unreturned = Unreturned::new(conn.counters(), polled.keys.clone(), earlier);
            let is_end = polled.call(conn, own, most, &mut claims).await;
            unreturned.are_safe(earlier);
            let is_end = match is_end {
                Ok(is_end) => is_end,
                // Entries that came before the error must not be lost with it.
                Err(_) if !polled.entries.is_empty() => break,
                Err(error) => return Err(error),
            };
            if is_end {
                break;
            }
        }
        Ok((polled, claims))
    }

    /// One call of the script. Returns whether it came to the end of the list.
    async fn call(
        &mut self,
        conn: &Conn,
        own: &Conn,
        most: usize,
        claims: &mut Vec<ClaimId>,
    ) -> Result<bool, OpError> {
        let (keys, claim) = (&self.keys, claims::new_id());
        let (set, list) = (keys.timeout_set(), keys.ordered_list());
        let call = scripts::POLL
            .on(&[set, list, keys.quarantine(), keys.claims(), keys.scratch(), &keys.jobs()])
            .number(most)
            .number(KEPT_MS)
            .arg(claim.clone());
        let mut reply = claims::run_until_answered(call, conn, own).await?.into_array()?.into_iter();
        let quarantined = reply.next().map_or(Ok(0), Reply::into_int)?;
        if conn.counters().queue(keys).quarantined(quarantined) {
            events::quarantined(keys, quarantined);
        }
        let is_end = reply.next().map_or(Ok(1), Reply::into_int)? > 0;
        self.are_jobs |= reply.next().map_or(Ok(0), Reply::into_int)? > 0;
        let items = reply.map(Reply::into_bytes).collect::<Result<Vec<_>, _>>()?;
        if !items.is_empty() {
            claims.push(claim);
        }
        let entry = |pair: &[Bytes]| Entry { bytes: pair[0].clone(), score: pair[1].clone() };
        self.entries.extend(items.chunks_exact(2).map(entry));
        Ok(is_end)
    }

    /// The payloads, in the order of the queue.
    pub(crate) fn into_payloads(self) -> impl Iterator<Item = Bytes> {
        // The script returns only entries that have a payload.
        self.entries.into_iter().map(|Entry { bytes, .. }| entry::payload_in(&bytes).unwrap_or_default())
    }

    /// Retries until it is done, because no other task has these entries. The last entry comes first: each
    /// one is put in front of the list.
    fn return_to_queue(self, conn: Conn, on_head: OnHead) -> impl Future<Output = ()> + Send {
        let unreturned = Unreturned::new(conn.counters(), self.keys.clone(), self.entries.len());
        self.return_all(conn, on_head, unreturned)
    }

    async fn return_all(self, conn: Conn, on_head: OnHead, mut unreturned: Unreturned) {
        let mut failing = false;
        for part in scripts::in_parts(&self.entries, CALL, |entry| entry.bytes.len()).rev() {
            let conn = conn.for_long(part.iter().map(|entry| entry.bytes.len()).sum());
            let receipt = self.keys.returned();
            let args = part.iter().flat_map(Entry::pair);
            let call = scripts::RESTORE_ENTRIES
                .on(&[
                    self.keys.timeout_set(),
                    self.keys.ordered_list(),
                    self.keys.channel(),
                    &receipt,
                    self.keys.scratch(),
                ])
                .number(scripts::REMEMBERED_MS)
                .args(args)
                .idempotent();
            let mut lost = false;
            for attempt in 0.. {
                match call.run_noting(&conn, &mut lost).await {
                    Ok(head) => {
                        if let Ok(Some(head)) = head.into_optional_score() {
                            on_head(&self.keys, head);
                        }
                        unreturned.are_safe(part.len());
                        break;
                    }
                    Err(OpError::Closed) => return,
                    Err(error) => {
                        if !std::mem::replace(&mut failing, true) {
                            events::return_to_list_failing(&self.keys, &error);
                        }
                        sleep(pause_after(attempt)).await;
                    }
                }
            }
            // A lost try may still arrive. If this command is lost, the server deletes the receipt later by
            // itself.
            if !lost {
                let _ = conn.call(&Command::new("DEL").arg(receipt)).await;
            }
        }
    }
}
