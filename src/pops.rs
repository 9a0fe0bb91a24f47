//! Taking from lists: one task that owns every pop and hands payloads to takers.
//!
//! A taker may be dropped at any await point, but a pop may not: the server has popped for it already. So takers wait
//! on a channel, and the pops belong to a task that sees each of them through. [`Popped`] is what travels between
//! them, and it comes back unless it was read.
//!
//! | if … | then … |
//! |---|---|
//! | the taker is dropped before it got anything | the parked pop is interrupted, unless others wait for the same list |
//! | … after it got something, read or not yet woken | [`Popped`] comes back: to the next taker, or to its end of the list |
//! | the reply to a parked pop is lost with its connection | the one payload that the server may have popped for it is lost |
//! | the reply to a pop that does not block is lost | it is sent again, and gets what the first try took |
//! | the reply to a give-back is lost | it is sent again; a marker on the server tells that it was done |
//! | the server restarts | pops are parked again when the connection is back |
//! | the connection falls silent | a watchdog gives it up a few seconds after the pop should have ended |

mod calls;
mod lane;
mod list;
mod popped;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conn::{Conn, Link, OpError};
use crate::events;
use crate::keys::Keys;
use calls::{BlockingPop, Return, Taken};
use lane::{Action, Answer, Lane, Parked, Patience, Waiter, WaiterId};
use popped::Home;
pub(crate) use popped::{End, Popped};

/// A connection that is down for so long makes itself felt to takers whose time is over.
const DOWN: Duration = Duration::from_secs(1);
/// How long an unused connection for a rare kind of pop is kept.
const KEEP: Duration = Duration::from_secs(30);

/// The kinds of pop; each has a lane, and a connection while it is used, for one connection parks one command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Take(End),
    /// From the tail of one list to the head of another.
    Move {
        source: Keys,
        destination: Bytes,
    },
}

/// What a taker waits for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    kind: Kind,
    keys: Vec<Keys>,
    count: usize,
}

impl Wanted {
    /// One payload from one of several lists.
    pub(crate) fn one(end: End, keys: Vec<Keys>) -> Self {
        Self { kind: Kind::Take(end), keys, count: 1 }
    }

    /// Up to `count` payloads from one list.
    pub(crate) fn many(end: End, keys: Keys, count: usize) -> Self {
        Self { kind: Kind::Take(end), keys: vec![keys], count }
    }

    /// One payload, moved from the tail of a list to the head of another.
    pub(crate) fn moved(source: Keys, destination: Bytes) -> Self {
        Self { kind: Kind::Move { source: source.clone(), destination }, keys: vec![source], count: 1 }
    }
}

/// The way to the pops task.
#[derive(Clone, Debug)]
pub(crate) struct Pops {
    requests: mpsc::UnboundedSender<Request>,
    ids: Arc<AtomicU64>,
    command_timeout: Duration,
}

#[derive(Debug)]
enum Request {
    Join(Kind, WaiterId, Waiter),
    Leave(Kind, WaiterId),
    Expire(Kind, WaiterId),
}

impl Pops {
    /// Starts the task. It ends when `stop` is cancelled, after everything that was popped has found a place.
    pub(crate) fn start(conn: Conn, stop: CancellationToken) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, requests) = mpsc::unbounded_channel();
        let command_timeout = conn.command_timeout();
        let handle = tokio::spawn(Task::new(conn).run(requests, stop));
        (Self { requests: sender, ids: Arc::default(), command_timeout }, handle)
    }

    /// Waits as long as it takes.
    pub(crate) fn wait(&self, wanted: Wanted) -> Waiting {
        self.join(wanted, Patience::Endless)
    }

    /// Takes what is there.
    pub(crate) async fn poll(&self, wanted: Wanted) -> Answer {
        let patience = if wanted.keys.len() == 1 { Patience::None } else { Patience::Over };
        let waiting = self.join(wanted, patience);
        self.soon(waiting).await
    }

    /// Waits until something comes, or this time has passed; looks at least once.
    pub(crate) async fn wait_for(&self, wanted: Wanted, time: Duration) -> Answer {
        let kind = wanted.kind.clone();
        let mut waiting = self.wait(wanted);
        match timeout(time, &mut waiting).await {
            Ok(answer) => answer,
            Err(_) => {
                let _ = self.requests.send(Request::Expire(kind, waiting.id));
                self.soon(waiting).await
            }
        }
    }

    /// An answer that should come at once. From a server that has fallen silent it may not come at all; to give the
    /// place up is harmless.
    async fn soon(&self, waiting: Waiting) -> Answer {
        let silent = || OpError::NotExecuted("the server does not answer".into());
        // A command waits for a connection first, for which it has as long; then it has an error of its own.
        timeout(self.command_timeout * 2, waiting).await.unwrap_or_else(|_| Err(silent()))
    }

    fn join(&self, wanted: Wanted, patience: Patience) -> Waiting {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = oneshot::channel();
        let waiter = Waiter { keys: wanted.keys, want: wanted.count, patience, answer };
        // If the task is over, the waiter is dropped, and with it the channel: that is an answer, too.
        let _ = self.requests.send(Request::Join(wanted.kind.clone(), id, waiter));
        Waiting { id, kind: wanted.kind, answer: receiver, requests: self.requests.clone(), answered: false }
    }
}

/// A taker's place in the queue. Dropping it gives the place up; whatever was on its way to it goes on to the next.
#[derive(Debug)]
pub(crate) struct Waiting {
    id: WaiterId,
    kind: Kind,
    answer: oneshot::Receiver<Answer>,
    requests: mpsc::UnboundedSender<Request>,
    answered: bool,
}

impl Future for Waiting {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        self.answered = true;
        Poll::Ready(answer.unwrap_or(Err(OpError::Closed)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.answered {
            let _ = self.requests.send(Request::Leave(self.kind.clone(), self.id));
        }
    }
}

/// What came of something that the task had started.
enum Done {
    Parked {
        kind: Kind,
        link: Option<Arc<Link>>,
        outcome: Parked,
    },
    Asked {
        kind: Kind,
        keys: Keys,
        count: usize,
        result: Result<Taken, OpError>,
    },
    Examined {
        kind: Kind,
        wrong: Vec<Keys>,
    },
    Returned {
        kind: Kind,
        keys: Keys,
        unfinished: Option<Return>,
    },
    /// Nothing that a lane waits for.
    Settled,
}

/// A lane, and the connection on which its pops are parked.
struct Station {
    lane: Lane,
    link: Option<Arc<Link>>,
    interrupt: CancellationToken,
    /// What the server still remembers of pops whose replies have arrived.
    claims: HashMap<Keys, Bytes>,
    /// Since when pops have failed, how often in a row, and the last reason.
    failing: Option<(Instant, u32, OpError)>,
    used: Instant,
}

struct Task {
    conn: Conn,
    home: Home,
    returned: mpsc::UnboundedReceiver<Popped>,
    stations: HashMap<Kind, Station>,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl Task {
    fn new(conn: Conn) -> Self {
        let (returns, returned) = mpsc::unbounded_channel();
        let home = Home { returns, on_their_way: TaskTracker::new() };
        Self { conn, home, returned, stations: HashMap::new(), running: FuturesUnordered::new() }
    }

    async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Request>, stop: CancellationToken) {
        let mut tidying = interval(KEEP);
        loop {
            // Every branch is cancel safe: channels, a timer, and futures that stay in the set.
            let kind = tokio::select! {
                // What came back before a taker came is handed out before it is asked for more.
                biased;
                () = stop.cancelled() => break,
                Some(popped) = self.returned.recv() => self.take_back(popped),
                request = requests.recv() => match request {
                    Some(request) => {
                        let mut kinds: Vec<Kind> = Vec::new();
                        while let Ok(popped) = self.returned.try_recv() {
                            kinds.extend(self.take_back(popped));
                        }
                        kinds.extend(self.serve(request));
                        kinds.iter().for_each(|kind| self.act(kind));
                        None
                    }
                    None => break,
                },
                Some(done) = self.running.next() => self.digest(done),
                _ = tidying.tick() => {
                    self.tidy();
                    None
                }
            };
            if let Some(kind) = kind {
                self.act(&kind);
            }
        }
        requests.close();
        while let Ok(request) = requests.try_recv() {
            // Dropping a waiter answers it.
            drop(request);
        }
        self.finish().await;
    }

    fn serve(&mut self, request: Request) -> Option<Kind> {
        match request {
            Request::Join(kind, id, waiter) => {
                let station = self.station(&kind);
                station.lane.join(id, waiter);
                station.used = Instant::now();
                Some(kind)
            }
            Request::Leave(kind, id) => {
                self.stations.get_mut(&kind)?.lane.leave(id);
                Some(kind)
            }
            Request::Expire(kind, id) => {
                let station = self.stations.get_mut(&kind)?;
                let now = Instant::now();
                let down = station.failing.as_ref().filter(|(since, ..)| now - *since >= DOWN);
                let down = down.map(|(.., error)| error.clone());
                station.lane.expire(id, now, down);
                Some(kind)
            }
        }
    }

    fn take_back(&mut self, popped: Popped) -> Option<Kind> {
        let kind = Kind::Take(popped.end);
        self.station(&kind).lane.given_back(popped);
        Some(kind)
    }

    fn digest(&mut self, done: Done) -> Option<Kind> {
        match done {
            Done::Parked { kind, link, outcome } => {
                let station = self.stations.get_mut(&kind)?;
                station.link = link.or(station.link.take());
                match &outcome {
                    Parked::Failed(error @ (OpError::Unknown(_) | OpError::NotExecuted(_))) => {
                        let (since, times) = station
                            .failing
                            .as_ref()
                            .map_or((Instant::now(), 0), |(since, times, _)| (*since, *times));
                        if times == 0 {
                            events::pops_failing(error);
                        }
                        station.failing = Some((since, times + 1, error.clone()));
                    }
                    Parked::NotSent => {}
                    _ => station.failing = None,
                }
                station.lane.parked(outcome);
                Some(kind)
            }
            Done::Asked { kind, keys, count, result } => {
                let station = self.stations.get_mut(&kind)?;
                let payloads = result.map(|taken| {
                    station.claims.extend(taken.claim.map(|claim| (keys.clone(), claim)));
                    taken.payloads
                });
                station.lane.asked(&keys, count, payloads);
                Some(kind)
            }
            Done::Examined { kind, wrong } => {
                self.stations.get_mut(&kind)?.lane.examined(&wrong);
                Some(kind)
            }
            Done::Returned { kind, keys, unfinished } => {
                if let Some(unfinished) = unfinished {
                    self.running.push(Box::pin(async move {
                        unfinished.keep_trying().await;
                        Done::Settled
                    }));
                }
                self.stations.get_mut(&kind)?.lane.returned(&keys);
                Some(kind)
            }
            Done::Settled => None,
        }
    }

    /// Closes the connections of rare kinds of pop that nobody has used for a while.
    fn tidy(&mut self) {
        let common = Kind::Take(End::Head);
        self.stations.retain(|kind, station| {
            *kind == common || !station.lane.is_idle() || station.used.elapsed() < KEEP
        });
    }

    fn station(&mut self, kind: &Kind) -> &mut Station {
        self.stations.entry(kind.clone()).or_insert_with(|| {
            let (end, home) = match kind {
                Kind::Take(end) => (*end, Some(self.home.clone())),
                Kind::Move { .. } => (End::Tail, None),
            };
            Station {
                lane: Lane::new(end, home),
                link: None,
                interrupt: CancellationToken::new(),
                claims: HashMap::new(),
                failing: None,
                used: Instant::now(),
            }
        })
    }

    /// Does what a lane asks for.
    fn act(&mut self, kind: &Kind) {
        let Some(station) = self.stations.get_mut(kind) else { return };
        for action in station.lane.next_actions(Instant::now()) {
            let (conn, kind) = (self.conn.clone(), kind.clone());
            let future: BoxFuture<'static, Done> = match action {
                Action::Interrupt => {
                    station.interrupt.cancel();
                    continue;
                }
                Action::Park { keys, hurry } => {
                    station.interrupt = CancellationToken::new();
                    let failures = station.failing.as_ref().map_or(0, |(_, times, _)| *times);
                    let pop = BlockingPop {
                        conn,
                        kind,
                        keys,
                        hurry,
                        interrupt: station.interrupt.clone(),
                        failures,
                    };
                    Box::pin(pop.run(station.link.clone()))
                }
                Action::Ask { keys, count } => {
                    let earlier = station.claims.remove(&keys);
                    Box::pin(async move {
                        let result = calls::ask(&conn, &kind, &keys, count, earlier).await;
                        Done::Asked { kind, keys, count, result }
                    })
                }
                Action::GiveBack { keys, payloads } => {
                    let Kind::Take(end) = kind else { continue };
                    let way_back = Return::new(conn, end, keys.clone(), payloads);
                    Box::pin(async move {
                        let unfinished = way_back.try_once().await;
                        Done::Returned { kind, keys, unfinished }
                    })
                }
                Action::Examine { keys } => Box::pin(async move {
                    let wrong = calls::examine(&conn, keys).await;
                    Done::Examined { kind, wrong }
                }),
            };
            self.running.push(future);
        }
        // The next question to a list has its claim deleted; what no question follows is deleted now.
        for (_, claim) in station.claims.drain() {
            let conn = self.conn.clone();
            self.running.push(Box::pin(async move {
                calls::forget(&conn, claim).await;
                Done::Settled
            }));
        }
    }

    /// Tells the waiters, ends the pops, and finds a place for whatever is on its way; all within a bound.
    async fn finish(mut self) {
        let kinds: Vec<Kind> = self.stations.keys().cloned().collect();
        for kind in &kinds {
            if let Some(station) = self.stations.get_mut(kind) {
                station.lane.close();
            }
            self.act(kind);
        }
        self.home.on_their_way.close();
        let _ = timeout(self.conn.command_timeout(), self.settle()).await;
        for station in self.stations.into_values() {
            if let Some(link) = station.link {
                link.close().await;
            }
        }
    }

    /// Waits until nothing is in flight and every payload has been read or put back.
    async fn settle(&mut self) {
        let on_their_way = self.home.on_their_way.clone();
        loop {
            let kind = tokio::select! {
                biased;
                Some(popped) = self.returned.recv(), if !(self.returned.is_empty() && on_their_way.is_empty()) => {
                    self.take_back(popped)
                }
                Some(done) = self.running.next(), if !self.running.is_empty() => self.digest(done),
                () = on_their_way.wait(), if !on_their_way.is_empty() => None,
                else => break,
            };
            if let Some(kind) = kind {
                self.act(&kind);
            }
        }
    }
}
