//! Waits for payloads on a shared connection, on which the server reports which lists have changed. A blocked
//! pop needs a connection of its own. So from the 65th queue on, the receivers of a client wait here; and in
//! a cluster, takers from the 65th slot of a server on.
//!
//! The server tells every process that tracks a list of each change, and a blocked pop of any client gets the
//! payload first. So this suits clients of many queues, few of which have payloads at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::conn::{Change, Changes, Command, Conn, ConnectError, Link, OpError, Reply, ServerId};
use crate::pacing::pause_after;
use crate::wire::keys::Keys;

/// How the error begins for a client that may not, or cannot, track lists.
pub(super) const UNTRACKED: &str = "lists cannot be tracked";
/// The most queues of a client whose receivers block.
const PERMITS: usize = 64;
/// How often the task forgets those that wait no more.
const TICK: Duration = Duration::from_secs(10);
/// How long the connection is kept when no pop waits.
const KEEP: Duration = Duration::from_secs(30);

/// The queues whose receivers may block, and how many receivers each of them has.
#[derive(Clone, Debug, Default)]
pub(super) struct Permits(Arc<Mutex<HashMap<Keys, usize>>>);

/// The permission to block, for the receivers of one queue.
#[derive(Debug)]
pub(crate) struct Permit {
    permits: Permits,
    keys: Keys,
}

impl Permits {
    pub(super) fn acquire(&self, keys: &Keys) -> Option<Permit> {
        let mut permits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if permits.len() >= PERMITS && !permits.contains_key(keys) {
            return None;
        }
        *permits.entry(keys.clone()).or_default() += 1;
        Some(Permit { permits: self.clone(), keys: keys.clone() })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut permits = self.permits.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(receivers) = permits.get_mut(&self.keys) {
            *receivers -= 1;
            if *receivers == 0 {
                permits.remove(&self.keys);
            }
        }
    }
}

/// A receiver or pop that waits until a list has changed.
#[derive(Debug)]
struct TrackedWait {
    list: Bytes,
    changed: Changed,
}

type Changed = oneshot::Sender<Result<(), OpError>>;

/// The handle of the tasks that wait: one, or in a cluster one for each server.
#[derive(Clone, Debug)]
pub(super) struct Tracked {
    conn: Conn,
    stop: CancellationToken,
    servers: Arc<Mutex<HashMap<ServerId, mpsc::UnboundedSender<TrackedWait>>>>,
}

impl Tracked {
    /// The tasks start when a pop waits, and end with `stop`.
    pub(super) fn new(conn: Conn, stop: CancellationToken) -> Self {
        Self { conn, stop, servers: Arc::default() }
    }

    /// Waits until there is a payload in the list, or there may be one.
    pub(super) fn wait(&self, keys: &Keys) -> oneshot::Receiver<Result<(), OpError>> {
        let (changed, receiver) = oneshot::channel();
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        // Of tasks that had nothing to do for a while.
        servers.retain(|_, server| !server.is_closed());
        let server = servers.entry(self.conn.server_of(keys.target())).or_insert_with(|| self.start(keys));
        // Fails only if the task has ended meanwhile. The drop is an answer, too.
        let _ = server.send(TrackedWait { list: keys.target().clone(), changed });
        receiver
    }

    /// Starts the task for the server of this queue.
    fn start(&self, keys: &Keys) -> mpsc::UnboundedSender<TrackedWait> {
        let (sender, waits) = mpsc::unbounded_channel();
        let (conn, stop) = (self.conn.of(keys), self.stop.clone());
        let server = conn.own_server();
        self.conn.runtime().spawn(async move {
            tokio::select! {
                () = run(conn, server, waits) => {}
                // The drop answers those that wait.
                () = stop.cancelled() => {}
            }
        });
        sender
    }
}

/// Until no pop has waited for a while, or the server that `conn` is for is another one. The drop answers
/// those that wait.
async fn run(conn: Conn, server: ServerId, mut waits: mpsc::UnboundedReceiver<TrackedWait>) {
    let mut failures = 0;
    while let Ok(Some(first)) = timeout(KEEP, waits.recv()).await {
        match conn.open_tracker().await {
            Ok((link, changes)) => {
                let within = conn.command_timeout();
                let mut lists =
                    TrackedLists { link, within, waiting: HashMap::new(), reading: FuturesUnordered::new() };
                lists.add(first);
                let stays = || conn.own_server() == server;
                if stays() {
                    lists.follow(changes, &mut waits, stays).await;
                }
                lists.link.close().await;
                return;
            }
            Err(error) => {
                let error = match error {
                    ConnectError::Refused(why)
                        if ["NOPERM", "ERR"].iter().any(|code| why.starts_with(code)) =>
                    {
                        OpError::Server(format!("{UNTRACKED}: {why}"))
                    }
                    error => OpError::NotExecuted(error.into()),
                };
                let _ = first.changed.send(Err(error.clone()));
                while let Ok(wait) = waits.try_recv() {
                    let _ = wait.changed.send(Err(error.clone()));
                }
                sleep(pause_after(failures)).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}

/// The lists that a pop waits for.
struct TrackedLists {
    link: Arc<Link>,
    /// How long a command may take.
    within: Duration,
    waiting: HashMap<Bytes, Vec<Changed>>,
    /// From the end of a reading on, the server tells of the next change.
    reading: FuturesUnordered<BoxFuture<'static, (Bytes, Result<Reply, OpError>)>>,
}

impl TrackedLists {
    /// Until no pop has waited for a while, or the connection is to be left.
    async fn follow(
        &mut self,
        mut changes: Changes,
        waits: &mut mpsc::UnboundedReceiver<TrackedWait>,
        stays: impl Fn() -> bool,
    ) {
        let mut ticks = interval(TICK);
        let mut used = Instant::now();
        while used.elapsed() < KEEP {
            // Every branch is cancel safe: channels, a timer, and futures that stay in the set.
            tokio::select! {
                wait = waits.recv() => match wait {
                    Some(wait) => self.add(wait),
                    None => return,
                },
                Some((list, length)) = self.reading.next() => match length.map(Reply::into_int) {
                    Ok(Ok(0)) => {}
                    Ok(Ok(_)) => self.wake(&list),
                    Ok(Err(_)) => drop(self.link.desynchronised()),
                    Err(error) => self.answer(&list, &Err(error)),
                },
                change = changes.next() => match change {
                    Some(Change::Lists(lists)) => lists.iter().for_each(|list| self.wake(list)),
                    Some(Change::Any) if !stays() => return,
                    Some(Change::Any) => self.wake_all(),
                    None => return,
                },
                _ = ticks.tick() => self.forget(),
            }
            if !self.waiting.is_empty() {
                used = Instant::now();
            }
        }
    }

    fn add(&mut self, wait: TrackedWait) {
        let (link, list, within) = (self.link.clone(), wait.list.clone(), self.within);
        self.waiting.entry(wait.list).or_default().push(wait.changed);
        self.reading.push(Box::pin(async move {
            let length = link.call(&Command::new("LLEN").arg(list.clone()), within).await;
            (list, length)
        }));
    }

    fn wake(&mut self, list: &Bytes) {
        self.answer(list, &Ok(()));
    }

    fn answer(&mut self, list: &Bytes, answer: &Result<(), OpError>) {
        for changed in self.waiting.remove(list).into_iter().flatten() {
            let _ = changed.send(answer.clone());
        }
    }

    fn wake_all(&mut self) {
        for changed in self.waiting.drain().flat_map(|(_, waiting)| waiting) {
            let _ = changed.send(Ok(()));
        }
    }

    /// Forgets those that were dropped.
    fn forget(&mut self) {
        self.waiting.retain(|_, waiting| {
            waiting.retain(|changed| !changed.is_closed());
            !waiting.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_for_queues() {
        let permits = Permits::default();
        let keys = |number: usize| Keys::new(format!("q{number}"));
        let mut held: Vec<_> = (0..PERMITS).map(|number| permits.acquire(&keys(number)).unwrap()).collect();
        held.push(permits.acquire(&keys(0)).expect("a second receiver of the same queue"));
        assert!(permits.acquire(&keys(PERMITS)).is_none());
        drop(held.pop());
        assert!(permits.acquire(&keys(PERMITS)).is_none(), "the first receiver is still there");
        drop(held.pop());
        assert!(permits.acquire(&keys(PERMITS)).is_some());
    }
}
