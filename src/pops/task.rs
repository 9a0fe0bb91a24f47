//! The task that owns the pops: it brings requests and replies to the lanes, and does what they ask for.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::calls::{self, BlockingPop, Return, Taken};
use super::lane::{Action, Lane, Parked};
use super::list::{Place, Question};
use super::popped::{Batch, End};
use super::{Kind, Request};
use crate::conn::{Conn, Link, OpError};
use crate::outbox::Outbox;
use crate::pacing::yield_once;
use crate::telemetry::events;
use crate::wire::keys::Keys;

/// A pop parked for so long has looked at its lists, and what it found would be here, if the server answers other
/// commands meanwhile: more than a command and its reply take, however far it is.
const LOOKED: Duration = Duration::from_secs(1);
/// A connection that is down for so long makes itself felt to takers whose time is over.
const DOWN: Duration = Duration::from_secs(1);
/// Requests that are served before replies get their turn.
const BATCH: usize = 256;
/// How long a claim waits for a question that has it deleted on its way.
const FORGET: Duration = Duration::from_millis(20);
/// How long an unused connection for a rare kind of pop is kept.
const KEEP: Duration = Duration::from_secs(30);

/// What came of something that the task had started.
pub(super) enum Done {
    Parked {
        kind: Kind,
        place: Place,
        link: Option<Arc<Link>>,
        outcome: Parked,
    },
    Asked {
        kind: Kind,
        keys: Keys,
        question: Question,
        result: Result<Taken, OpError>,
    },
    Examined {
        kind: Kind,
        place: Place,
        wrong: HashMap<Keys, OpError>,
    },
    Returned {
        kind: Kind,
        keys: Keys,
        way_back: Return,
    },
    /// It is time to forget what no question has followed.
    Forgetting {
        kind: Kind,
    },
    /// Nothing that a lane waits for.
    Settled,
}

/// A lane, and the connections on which its pops are parked.
struct Station {
    lane: Lane,
    hot: Stand,
    cold: Stand,
    /// What the server still remembers of pops whose replies have arrived. The next question to a list has one deleted.
    claims: HashMap<Keys, Vec<Bytes>>,
    /// Whether a timer runs for those that no question follows.
    forgetting: bool,
    /// Since when pops have failed, how often in a row, and the last reason.
    failing: Option<(Instant, u32, OpError)>,
    used: Instant,
}

/// Where one pop is parked at a time.
#[derive(Default)]
struct Stand {
    link: Option<Arc<Link>>,
    interrupt: CancellationToken,
    /// When the parked pop was sent.
    sent: Arc<OnceLock<Instant>>,
}

impl Stand {
    /// Whether the pop has certainly looked at its lists, and what it found would be here.
    fn has_looked(&self, conn: &Conn) -> bool {
        self.sent
            .get()
            .is_some_and(|sent| sent.elapsed() >= LOOKED && conn.last_reply() >= *sent + LOOKED / 2)
    }
}

impl Station {
    fn earlier_claim(&mut self, keys: &Keys) -> Option<Bytes> {
        let claims = self.claims.get_mut(keys)?;
        let claim = claims.pop();
        if claims.is_empty() {
            self.claims.remove(keys);
        }
        claim
    }

    fn stand(&mut self, place: Place) -> &mut Stand {
        match place {
            Place::Hot => &mut self.hot,
            Place::Cold => &mut self.cold,
        }
    }
}

/// The task that owns every pop.
pub(super) struct Task {
    conn: Conn,
    outbox: Outbox<Batch>,
    /// What left the outbox unread.
    returned: mpsc::UnboundedReceiver<Batch>,
    /// Takers that have come and are not looked at yet.
    backlog: Arc<AtomicUsize>,
    stations: HashMap<Kind, Station>,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl Task {
    pub(super) fn new(conn: Conn, backlog: Arc<AtomicUsize>) -> Self {
        let (returns, returned) = mpsc::unbounded_channel();
        // Fails only when the task is over, and by then it has closed the outbox and seen to what lay there.
        let outbox = Outbox::new(move |batch| drop(returns.send(batch)));
        Self { conn, outbox, returned, backlog, stations: HashMap::new(), running: FuturesUnordered::new() }
    }

    pub(super) async fn run(
        mut self,
        mut requests: mpsc::UnboundedReceiver<Request>,
        stop: CancellationToken,
    ) {
        let mut tidying = interval(KEEP);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let mut kinds: HashSet<Kind> = HashSet::new();
            // Every branch is cancel safe: channels, a timer, and futures that stay in the set. None has precedence, so
            // that takers that come and go without a pause do not keep replies waiting.
            tokio::select! {
                () = stop.cancelled() => break,
                Some(batch) = self.returned.recv() => kinds.extend(self.take_back(batch)),
                number = requests.recv_many(&mut batch, BATCH) => {
                    if number == 0 {
                        break;
                    }
                }
                Some(done) = self.running.next() => kinds.extend(self.digest(done)),
                _ = tidying.tick() => self.tidy(),
            }
            // Takers that were served just now come again, and are asked for together.
            yield_once().await;
            for _ in 0..BATCH {
                let Some(Some(done)) = self.running.next().now_or_never() else { break };
                kinds.extend(self.digest(done));
            }
            // What came back before a taker came is handed out before it is asked for more.
            while let Ok(batch) = self.returned.try_recv() {
                kinds.extend(self.take_back(batch));
            }
            batch.extend(std::iter::from_fn(|| requests.try_recv().ok()).take(BATCH));
            for request in batch.drain(..) {
                kinds.extend(self.serve(request));
            }
            kinds.iter().for_each(|kind| self.act(kind));
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
                self.backlog.fetch_sub(1, Ordering::Relaxed);
                if waiter.answer.is_closed() {
                    // Gone already.
                    return None;
                }
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
                let looked = Place::BOTH.map(|place| station.stand(place).has_looked(&self.conn));
                station.lane.expire(id, |place| looked[place as usize], down);
                Some(kind)
            }
        }
    }

    fn take_back(&mut self, batch: Batch) -> Option<Kind> {
        let kind = Kind::Take(batch.end);
        self.station(&kind).lane.given_back(batch);
        Some(kind)
    }

    fn digest(&mut self, done: Done) -> Option<Kind> {
        match done {
            Done::Parked { kind, place, link, outcome } => {
                let station = self.stations.get_mut(&kind)?;
                let stand = station.stand(place);
                stand.link = link.or(stand.link.take());
                match &outcome {
                    Parked::Failed(error @ (OpError::Unknown(_) | OpError::NotExecuted(_))) => {
                        station.failing = Some(match station.failing.take() {
                            // Something may have been moved, whatever has failed since.
                            Some((since, times, unknown @ OpError::Unknown(_)))
                                if matches!(kind, Kind::Move { .. }) =>
                            {
                                (since, times + 1, unknown)
                            }
                            Some((since, times, _)) => (since, times + 1, error.clone()),
                            None => {
                                events::pops_failing(error);
                                (Instant::now(), 1, error.clone())
                            }
                        });
                    }
                    // One that was not sent had a connection all the same. Where takers do not wait for long, none may be
                    // sent for ever, for each of them is told of the failure and leaves before the pause is over.
                    _ => {
                        if station.failing.take().is_some() {
                            events::pops_recovered();
                        }
                    }
                }
                station.lane.parked(place, outcome);
                Some(kind)
            }
            Done::Asked { kind, keys, question, result } => {
                let station = self.station(&kind);
                let payloads = result.map(|taken| {
                    if let Some(claim) = taken.claim {
                        station.claims.entry(keys.clone()).or_default().push(claim);
                    }
                    taken.payloads
                });
                station.lane.asked(&keys, question, payloads);
                Some(kind)
            }
            Done::Examined { kind, place, wrong } => {
                self.stations.get_mut(&kind)?.lane.examined(place, &wrong);
                Some(kind)
            }
            Done::Returned { kind, keys, way_back } => {
                self.running.push(Box::pin(async move {
                    way_back.finish().await;
                    Done::Settled
                }));
                self.stations.get_mut(&kind)?.lane.returned(&keys);
                Some(kind)
            }
            Done::Forgetting { kind } => {
                self.forget(&kind);
                Some(kind)
            }
            Done::Settled => None,
        }
    }

    /// Closes the connections of rare kinds of pop that nobody has used for a while.
    fn tidy(&mut self) {
        let common = Kind::Take(End::Head);
        self.stations.retain(|kind, station| {
            let is_in_use = !station.lane.is_idle() || !station.claims.is_empty();
            *kind == common || is_in_use || station.used.elapsed() < KEEP
        });
    }

    fn station(&mut self, kind: &Kind) -> &mut Station {
        self.stations.entry(kind.clone()).or_insert_with(|| {
            let lane = match kind {
                Kind::Take(end) => Lane::taking(*end, self.outbox.clone()),
                Kind::Move { .. } => Lane::moving(),
            };
            Station {
                lane,
                hot: Stand::default(),
                cold: Stand::default(),
                claims: HashMap::new(),
                forgetting: false,
                failing: None,
                used: Instant::now(),
            }
        })
    }

    /// Does what a lane asks for.
    fn act(&mut self, kind: &Kind) {
        let Some(station) = self.stations.get_mut(kind) else { return };
        for action in station.lane.next_actions() {
            let (conn, kind) = (self.conn.clone(), kind.clone());
            let future: BoxFuture<'static, Done> = match action {
                Action::Interrupt(place) => {
                    station.stand(place).interrupt.cancel();
                    continue;
                }
                Action::Park { place, keys, hurry } => {
                    let failures = station.failing.as_ref().map_or(0, |(_, times, _)| *times);
                    let stand = station.stand(place);
                    stand.interrupt = CancellationToken::new();
                    stand.sent = Arc::default();
                    let pop = BlockingPop {
                        conn,
                        kind,
                        place,
                        keys,
                        hurry,
                        interrupt: stand.interrupt.clone(),
                        sent: stand.sent.clone(),
                        failures,
                    };
                    Box::pin(pop.run(stand.link.clone()))
                }
                Action::Ask { keys, question } => {
                    let earlier = station.earlier_claim(&keys);
                    Box::pin(async move {
                        let result = calls::ask(&conn, &kind, &keys, question.count, earlier).await;
                        Done::Asked { kind, keys, question, result }
                    })
                }
                Action::GiveBack { keys, payloads } => {
                    let Kind::Take(end) = kind else { continue };
                    let mut way_back = Return::new(conn, end, keys.clone(), payloads);
                    Box::pin(async move {
                        way_back.try_once().await;
                        Done::Returned { kind, keys, way_back }
                    })
                }
                Action::Examine { place, keys, refused } => Box::pin(async move {
                    let wrong = calls::examine(&conn, keys, refused).await;
                    Done::Examined { kind, place, wrong }
                }),
            };
            self.running.push(future);
        }
        if !station.claims.is_empty() && !station.forgetting {
            station.forgetting = true;
            let kind = kind.clone();
            self.running.push(Box::pin(async move {
                sleep(FORGET).await;
                Done::Forgetting { kind }
            }));
        }
    }

    /// Deletes the claims that no question deletes on its way.
    fn forget(&mut self, kind: &Kind) {
        let Some(Station { claims, lane, forgetting, .. }) = self.stations.get_mut(kind) else { return };
        *forgetting = false;
        let over: Vec<Keys> = claims.keys().filter(|keys| !lane.is_asking(keys)).cloned().collect();
        let over: Vec<Bytes> = over.iter().filter_map(|keys| claims.remove(keys)).flatten().collect();
        if !over.is_empty() {
            let conn = self.conn.clone();
            self.running.push(Box::pin(async move {
                calls::forget(&conn, over).await;
                Done::Settled
            }));
        }
    }

    /// Tells the waiters, ends the pops, and finds a place for whatever is on its way; all within a bound.
    async fn finish(mut self) {
        self.stations.values_mut().for_each(|station| station.lane.close());
        self.outbox.close();
        // Together, so that they keep their order.
        while let Ok(batch) = self.returned.try_recv() {
            self.take_back(batch);
        }
        let kinds: Vec<Kind> = self.stations.keys().cloned().collect();
        kinds.iter().for_each(|kind| self.act(kind));
        let _ = timeout(self.conn.command_timeout(), self.settle()).await;
        for station in self.stations.into_values() {
            for link in [station.hot.link, station.cold.link].into_iter().flatten() {
                link.close().await;
            }
        }
    }

    /// Waits until nothing is in flight and every payload that nobody read is put back.
    async fn settle(&mut self) {
        loop {
            let kind = tokio::select! {
                biased;
                Some(batch) = self.returned.recv(), if !self.returned.is_empty() => self.take_back(batch),
                Some(done) = self.running.next() => self.digest(done),
                else => break,
            };
            if let Some(kind) = kind {
                self.act(&kind);
            }
        }
    }
}
