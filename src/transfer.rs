//! Moving due entries to their targets: one task per client for all of its queues.
//!
//! For each queue: subscribe, wait until the server confirms, look (a sweep); from then on sleep until the head is
//! due, as the last reply or an announcement said, whichever is earlier. Every lost event is found by the next sweep:
//! after each reconnection at once, otherwise about once a minute.

mod alarm;
mod clock;
mod schedule;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use crate::conn::{Channels, Conn, Notice, OpError};
use crate::scripts;
use crate::telemetry::QueueCounters;
use crate::telemetry::events::{self, Span};
use crate::wire::keys::{self, Keys};
use alarm::Alarm;
use clock::ServerClock;
use schedule::{Next, Outcome, QueueId, Schedule};

/// Transfers in flight at a time, so that ten thousand sweeps do not queue up in front of the callers' commands.
const IN_FLIGHT: usize = 64;

/// How often the server's clock is looked at. Who has not heard of its being set takes what is announced for much later
/// or earlier than it is.
const CLOCK: Duration = Duration::from_secs(5);

/// How transfers are run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Most entries per call.
    pub(crate) batch: u32,
    /// Most time that one call may hold the server.
    pub(crate) budget: Duration,
    /// How often a queue is looked at that nobody spoke of.
    pub(crate) sweep_interval: Duration,
}

/// The way to the transfer task.
#[derive(Clone, Debug)]
pub(crate) struct Transfer(mpsc::UnboundedSender<Request>);

#[derive(Debug)]
enum Request {
    Open(Keys),
    Close(Keys, Option<oneshot::Sender<()>>),
}

/// Keeps a queue moving for as long as it lives.
#[derive(Debug)]
pub(crate) struct Watch {
    keys: Keys,
    requests: mpsc::UnboundedSender<Request>,
    closed: bool,
}

impl Transfer {
    /// Starts the task. It ends when `stop` is cancelled, after the calls in flight have ended.
    pub(crate) fn start(
        conn: Conn,
        settings: Settings,
        stop: CancellationToken,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, requests) = mpsc::unbounded_channel();
        (Self(sender), tokio::spawn(Task::new(conn, settings).run(requests, stop)))
    }

    /// Keeps this queue moving until the guard is dropped. Several guards for one queue share one watch.
    pub(crate) fn watch(&self, keys: &Keys) -> Watch {
        // Fails only after a shutdown, when nothing is to be moved any more.
        let _ = self.0.send(Request::Open(keys.clone()));
        Watch { keys: keys.clone(), requests: self.0.clone(), closed: false }
    }
}

impl Watch {
    /// Stops watching, and waits until the last call has ended.
    pub(crate) async fn close(mut self) {
        self.closed = true;
        let (done, stopped) = oneshot::channel();
        let _ = self.requests.send(Request::Close(self.keys.clone(), Some(done)));
        let _ = stopped.await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.closed {
            let _ = self.requests.send(Request::Close(self.keys.clone(), None));
        }
    }
}

/// What one call of the script told.
struct Report {
    queue: QueueId,
    sent: Instant,
    received: Instant,
    result: Result<Moved, OpError>,
}

#[derive(Clone, Copy)]
struct Moved {
    moved: i64,
    quarantined: i64,
    /// The score of the next head, epoch ms.
    head: Option<f64>,
    /// The server's clock, epoch µs.
    clock: i64,
    /// Where the next call goes on, if it is not to begin anew; only the script reads it.
    cursor: i64,
}

/// The server's clock, epoch µs, at some instant between these two.
struct Seen {
    sent: Instant,
    received: Instant,
    clock: i64,
}

struct Watched {
    keys: Keys,
    counters: Arc<QueueCounters>,
    watches: usize,
    /// Whether it is told what others move.
    hears_others: bool,
    /// Where the last call wants the next one to go on.
    cursor: i64,
}

struct Task {
    conn: Conn,
    settings: Settings,
    schedule: Schedule,
    clock: ServerClock,
    queues: HashMap<QueueId, Watched>,
    ids: HashMap<Keys, QueueId>,
    /// The queues behind a channel: `q` and `{q}` share theirs.
    listeners: HashMap<Arc<str>, Vec<QueueId>>,
    /// Tells this client's transfers from those of others.
    mover: Bytes,
    running: FuturesUnordered<BoxFuture<'static, Report>>,
    /// Queues with a call in flight, and who is told when it has ended.
    in_flight: HashMap<QueueId, Vec<oneshot::Sender<()>>>,
    /// Looks at the clock.
    looking: FuturesUnordered<BoxFuture<'static, Option<Seen>>>,
    next_id: QueueId,
}

impl Task {
    fn new(conn: Conn, settings: Settings) -> Self {
        let schedule = Schedule::new(settings.sweep_interval, fastrand::u64(..));
        Self {
            conn,
            settings,
            schedule,
            clock: ServerClock::new(Instant::now()),
            queues: HashMap::new(),
            ids: HashMap::new(),
            listeners: HashMap::new(),
            mover: format!("{:x}", fastrand::u64(..)).into(),
            running: FuturesUnordered::new(),
            in_flight: HashMap::new(),
            looking: FuturesUnordered::new(),
            next_id: 0,
        }
    }

    async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Request>, stop: CancellationToken) {
        // A client that only offers opens no second connection.
        let mut listening: Option<(Channels, mpsc::Receiver<Notice>)> = None;
        let mut alarm = Alarm::default();
        let mut looks = interval_at(Instant::now() + CLOCK, CLOCK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let wake = self.start_what_is_due();
            // Every branch is cancel safe: channels, a timer, and futures that stay in the set.
            tokio::select! {
                () = stop.cancelled() => break,
                request = requests.recv() => match request {
                    Some(Request::Open(keys)) => {
                        let (channels, _) = listening.get_or_insert_with(|| self.conn.listen());
                        self.open(keys, channels);
                    }
                    Some(Request::Close(keys, done)) => {
                        if let Some((channels, _)) = &listening {
                            self.close(&keys, channels, done);
                        }
                    }
                    None => break,
                },
                Some(notice) = async { listening.as_mut()?.1.recv().await } => self.note(notice),
                _ = looks.tick(), if !self.queues.is_empty() && self.looking.is_empty() => {
                    self.looking.push(Box::pin(look_at_clock(self.conn.clone())));
                }
                Some(seen) = self.looking.next() => {
                    if let Some(seen) = seen {
                        self.observe(seen);
                    }
                }
                Some(report) = self.running.next() => {
                    let missed = self.digest(report);
                    if let (Some(id), Some((channels, _))) = (missed, &listening) {
                        self.hear_others(id, channels);
                    }
                }
                () = async { match wake { Some(at) => alarm.wait(at).await, None => std::future::pending().await } } => {}
            }
        }
        // Dropping a call would be harmless, for the script is atomic; but a server that is being left in an orderly
        // way should not find half-read connections.
        let _ = timeout(self.conn.command_timeout(), async { while self.running.next().await.is_some() {} })
            .await;
        self.queues.values().for_each(|watched| watched.counters.set_transferring(false));
    }

    /// Starts the transfers that are due; returns when the next one will be.
    fn start_what_is_due(&mut self) -> Option<Instant> {
        while self.running.len() < IN_FLIGHT {
            match self.schedule.next(Instant::now()) {
                Next::Run(queue) => {
                    let Some(watched) = self.queues.get_mut(&queue) else { continue };
                    let call = call(
                        self.conn.clone(),
                        watched.keys.clone(),
                        watched.counters.clone(),
                        queue,
                        self.settings.clone(),
                        self.mover.clone(),
                        std::mem::take(&mut watched.cursor),
                    );
                    self.running.push(Box::pin(call));
                    self.in_flight.insert(queue, Vec::new());
                }
                Next::Sleep(at) => return Some(at),
                Next::Idle => return None,
            }
        }
        None
    }

    fn open(&mut self, keys: Keys, channels: &Channels) {
        if let Some(watched) = self.ids.get(&keys).and_then(|id| self.queues.get_mut(id)) {
            watched.watches += 1;
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.schedule.open(id, Instant::now());
        self.listen(&keys.channel().clone(), id, channels);
        self.ids.insert(keys.clone(), id);
        let counters = self.conn.counters().queue(&keys);
        counters.set_transferring(true);
        self.queues.insert(id, Watched { keys, counters, watches: 1, hears_others: false, cursor: 0 });
    }

    /// From now on this queue's wake-ups follow what other clients move.
    fn hear_others(&mut self, id: QueueId, channels: &Channels) {
        if let Some(watched) = self.queues.get_mut(&id).filter(|watched| !watched.hears_others) {
            watched.hears_others = true;
            let channel = watched.keys.moved().clone();
            self.listen(&channel, id, channels);
        }
    }

    fn listen(&mut self, channel: &[u8], id: QueueId, channels: &Channels) {
        let channel: Arc<str> = String::from_utf8_lossy(channel).into();
        self.listeners.entry(channel.clone()).or_default().push(id);
        channels.subscribe(channel);
    }

    /// Who waits on `done` waits until it is dropped.
    fn close(&mut self, keys: &Keys, channels: &Channels, done: Option<oneshot::Sender<()>>) {
        let Some(&id) = self.ids.get(keys) else { return };
        let Some(watched) = self.queues.get_mut(&id) else { return };
        watched.watches -= 1;
        if watched.watches > 0 {
            return;
        }
        if let Some(waiting) = self.in_flight.get_mut(&id) {
            waiting.extend(done);
        }
        watched.counters.set_transferring(false);
        self.queues.remove(&id);
        self.ids.remove(keys);
        self.schedule.close(id);
        for channel in [keys.channel(), keys.moved()] {
            let channel: Arc<str> = String::from_utf8_lossy(channel).into();
            let Some(listeners) = self.listeners.get_mut(&channel) else { continue };
            listeners.retain(|listener| *listener != id);
            if listeners.is_empty() {
                self.listeners.remove(&channel);
                channels.unsubscribe(channel);
            }
        }
    }

    fn note(&mut self, notice: Notice) {
        let now = Instant::now();
        match notice {
            Notice::Confirmed(channels) => {
                for id in channels.iter().filter_map(|channel| self.listeners.get(channel)).flatten() {
                    self.schedule.sweep(*id, now);
                }
            }
            Notice::Missed => {
                for id in self.queues.keys() {
                    self.schedule.sweep(*id, now);
                }
            }
            Notice::Message { channel, payload } => {
                let listeners = self.listeners.get(channel.as_str()).into_iter().flatten();
                if channel.starts_with(keys::MOVED) {
                    let Some((head, clock)) = self.moved_by_another(&payload) else { return };
                    for id in listeners {
                        self.schedule.relieved(*id, now, head, clock);
                    }
                } else {
                    let Some(at) = self.announced(&payload, now) else { return };
                    for id in listeners {
                        self.schedule.announced(*id, at);
                    }
                }
            }
        }
    }

    /// When what is announced is due; `None` if never.
    fn announced(&self, payload: &[u8], now: Instant) -> Option<Instant> {
        // Redisson understands decimal integers only. Whatever else comes says at least that somebody had something
        // to say, and one look costs little.
        let due = std::str::from_utf8(payload).ok().and_then(|text| text.trim().parse::<f64>().ok());
        match due {
            Some(due) if !due.is_nan() => self.clock.instant_of(due),
            _ => Some(now),
        }
    }

    /// What was the head after somebody else's transfer, and the server's clock then, µs.
    fn moved_by_another(&self, payload: &[u8]) -> Option<(Option<Instant>, i64)> {
        let mut words = std::str::from_utf8(payload).ok()?.split(' ');
        let (mover, clock, head) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        if mover.as_bytes() == self.mover {
            return None;
        }
        let head = if head.is_empty() { None } else { self.clock.instant_of(head.parse().ok()?) };
        Some((head, clock))
    }

    /// If the clock was set, no time that was told before is right any more.
    fn observe(&mut self, seen: Seen) {
        if self.clock.observe(seen.sent, seen.received, seen.clock) {
            for id in self.queues.keys() {
                self.schedule.sweep(*id, seen.received);
            }
        }
    }

    /// Returns the queue if somebody else seems to have moved what this call was for.
    fn digest(&mut self, report: Report) -> Option<QueueId> {
        self.in_flight.remove(&report.queue);
        if let Ok(Moved { clock, .. }) = &report.result {
            self.observe(Seen { sent: report.sent, received: report.received, clock: *clock });
        }
        let watched = self.queues.get_mut(&report.queue)?;
        let was_failing = self.schedule.is_failing(report.queue);
        match report.result {
            Ok(moved) => {
                let outcome = Outcome {
                    head: moved.head.and_then(|due| self.clock.instant_of(due)),
                    // To have looked for what is due is a part of moving it.
                    moved: moved.moved + moved.quarantined > 0 || moved.cursor != 0,
                    clock: moved.clock,
                };
                watched.cursor = moved.cursor;
                let missed = self.schedule.finished(report.queue, report.received, outcome);
                if was_failing {
                    events::transfer_recovered(&watched.keys);
                }
                missed.then_some(report.queue)
            }
            Err(error) => {
                self.schedule.failed(report.queue, report.received);
                if !was_failing {
                    events::transfer_failing(&watched.keys, &error);
                }
                None
            }
        }
    }
}

async fn look_at_clock(conn: Conn) -> Option<Seen> {
    let sent = Instant::now();
    let clock = conn.time().await.ok()?;
    Some(Seen { sent, received: Instant::now(), clock })
}

/// One call of the script. After a lost reply the schedule has it run again, which is harmless: what was moved is gone.
async fn call(
    conn: Conn,
    keys: Keys,
    counters: Arc<QueueCounters>,
    queue: QueueId,
    settings: Settings,
    mover: Bytes,
    cursor: i64,
) -> Report {
    let span = Span::transfer(&keys);
    let sent = Instant::now();
    let call = scripts::TRANSFER
        .on(&[keys.timeout_set(), keys.ordered_list(), keys.target(), keys.quarantine(), keys.moved()])
        .number(settings.batch)
        .number(settings.budget.as_micros())
        .arg(mover)
        .number(cursor);
    let reply = span.run(call.run(&conn)).await;
    let received = Instant::now();
    let read = |reply: crate::conn::Reply| {
        let [moved, quarantined, head, clock, cursor] = reply.into_parts()?;
        let head = head.into_optional_bytes()?;
        Ok(Moved {
            moved: moved.into_int()?,
            quarantined: quarantined.into_int()?,
            head: head.and_then(|score| std::str::from_utf8(&score).ok()?.parse().ok()),
            clock: clock.into_int()?,
            cursor: cursor.into_int()?,
        })
    };
    let result = reply.and_then(read);
    // Counted here, and not where the report is read: the queue may be closed by then.
    match &result {
        Ok(moved) => {
            let Moved { moved, quarantined, head, clock, cursor } = *moved;
            // A call that has only looked for what is due is a part of the one that moves it.
            if moved + quarantined > 0 || cursor == 0 {
                counters.transferred(moved, quarantined);
            }
            if counters.quarantined(quarantined) {
                events::quarantined(&keys, quarantined);
            }
            span.transferred(Ok((moved, quarantined, head.map(|due| due - clock as f64 / 1e3))));
        }
        Err(error) => {
            counters.transfer_failed(events::name(&keys), error);
            span.transferred(Err(error));
        }
    }
    Report { queue, sent, received, result }
}
