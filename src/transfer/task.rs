//! The task that transfers for all queues of a client: when to call the script for which queue, and what its
//! replies say. `notices` reads the announcements, and `looks` finds what was left behind.

mod looks;
mod notices;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use super::call::{Call, TransferReport};
use super::clock::{ClockReading, ServerClock};
use super::overdue::{self, Looks};
use super::precise_sleep::PreciseSleep;
use super::schedule::{Moved, Next, QueueId, TransferSchedule};
use super::servers::{IN_FLIGHT, Servers};
use crate::announcements::{Announced, Announcements};
use crate::conn::{Conn, ServerId};
use crate::scripts;
use crate::telemetry::QueueCounters;
use crate::telemetry::events;
use crate::upkeep::{self, OnHead, Upkeep};
use crate::wire::keys::Keys;

/// How transfers are run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The most entries per call.
    pub(crate) batch: u32,
    /// The longest time that one call may hold the server.
    pub(crate) budget: Duration,
    /// How often a queue runs without an event.
    pub(crate) sweep_interval: Duration,
    /// How often entries are looked for that no client moves, and the clock is read. Until a client notices
    /// that the clock was set, it takes announced times for much later or earlier than they are.
    pub(crate) check_interval: Duration,
    /// What receivers have left is released when none of them has given a sign of life for this long; `None`:
    /// never.
    pub(crate) release_after: Option<Duration>,
}

/// What the handle asks of the task.
#[derive(Debug)]
pub(super) enum Request {
    Open(Keys),
    Head(Keys, f64),
    Close(Keys, Option<oneshot::Sender<()>>),
    /// The schedules of a queue have changed.
    Scheduled(Keys),
    Follow(Bytes, Arc<Announced>),
    Unfollow(Bytes, Arc<Announced>),
}

/// A queue that this client transfers for.
struct Watched {
    keys: Keys,
    counters: Arc<QueueCounters>,
    /// The number of guards.
    watches: usize,
    /// Whether it listens to the transfers of peers.
    follows_peers: bool,
    /// Where the next call continues.
    cursor: i64,
    /// When the next entry is due, epoch ms, as far as this client has heard.
    expected: Option<f64>,
    /// When a call last checked whether an entry is overdue.
    looked: Instant,
    upkeep: Upkeep,
}

pub(super) struct Task {
    conn: Conn,
    settings: Settings,
    /// What the upkeep of a queue tells this task.
    on_head: OnHead,
    schedule: TransferSchedule,
    servers: Servers,
    queues: HashMap<QueueId, Watched>,
    ids: HashMap<Keys, QueueId>,
    announcements: Announcements<QueueId>,
    /// Tells this client's transfers from those of its peers.
    client_id: Bytes,
    running: FuturesUnordered<BoxFuture<'static, TransferReport>>,
    /// Queues with a call in flight, and the senders to drop when it has ended.
    in_flight: HashMap<QueueId, Vec<oneshot::Sender<()>>>,
    looks: Looks,
    /// A run or a look that takes longer has no reply, and never will.
    longest_run: Duration,
    longest_look: Duration,
    next_id: QueueId,
    /// What a test does to it.
    #[cfg(all(test, workspace))]
    fault: Option<Bytes>,
}

impl Task {
    pub(super) fn new(conn: Conn, settings: Settings, requests: mpsc::WeakUnboundedSender<Request>) -> Self {
        let schedule = TransferSchedule::new(settings.sweep_interval, fastrand::u64(..));
        let longest_run = scripts::TRANSFER.longest(&conn).saturating_add(overdue::OVERDUE_AFTER);
        let longest_look = scripts::OVERDUE.longest(&conn);
        let on_head = move |keys: &Keys, due| {
            if let Some(requests) = requests.upgrade() {
                let _ = requests.send(Request::Head(keys.clone(), due));
            }
        };
        Self {
            announcements: Announcements::new(conn.clone()),
            conn,
            settings,
            on_head: Arc::new(on_head),
            schedule,
            servers: Servers::new(Instant::now()),
            queues: HashMap::new(),
            ids: HashMap::new(),
            client_id: format!("{:x}", fastrand::u64(..)).into(),
            running: FuturesUnordered::new(),
            in_flight: HashMap::new(),
            looks: Looks::default(),
            longest_run,
            longest_look,
            next_id: 0,
            #[cfg(all(test, workspace))]
            fault: None,
        }
    }

    pub(super) async fn run(
        mut self,
        mut requests: mpsc::UnboundedReceiver<Request>,
        stop: CancellationToken,
    ) {
        // A panic would be a mistake in this program. It must not end the transfers of a process that goes on
        // without them.
        while let Err(panic) = AssertUnwindSafe(self.work(&mut requests, &stop)).catch_unwind().await {
            self.start_over(&*panic);
        }
        // Dropping a call would be harmless, because the script is atomic. But an orderly shutdown should not
        // leave half-read connections to the server.
        let _ = timeout(self.conn.command_timeout(), async { while self.running.next().await.is_some() {} })
            .await;
        self.queues.values().for_each(|queue| queue.counters.set_transferring(false));
    }

    async fn work(&mut self, requests: &mut mpsc::UnboundedReceiver<Request>, stop: &CancellationToken) {
        let mut sleep = PreciseSleep::default();
        let looks = self.settings.check_interval;
        let mut look_timer = interval_at(Instant::now() + looks, looks);
        look_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sessions = self.conn.sessions();
        loop {
            let wake = self.start_due();
            // Every branch is cancel safe: channels, a timer, and futures that stay in the set.
            tokio::select! {
                () = stop.cancelled() => break,
                request = requests.recv() => match request {
                    Some(Request::Open(keys)) => self.open(keys),
                    Some(Request::Head(keys, due)) => self.on_head(&keys, due),
                    Some(Request::Close(keys, done)) => self.close(&keys, done),
                    Some(Request::Scheduled(keys)) => self.on_scheduled(&keys),
                    Some(Request::Follow(channel, to)) => self.announcements.follow(&channel, to),
                    Some(Request::Unfollow(channel, to)) => self.announcements.unfollow(&channel, &to),
                    None => break,
                },
                notice = self.announcements.next() => {
                    self.on_notice(notice);
                    #[cfg(all(test, workspace))]
                    self.deafen();
                }
                // The sender lives as long as the connections.
                Ok(()) = sessions.changed() => self.on_session(),
                // A client that listens to nothing has nothing to look at, and is not woken.
                _ = look_timer.tick(), if self.announcements.is_open() => {
                    self.look();
                    self.announcements.check(Instant::now());
                }
                Some((server, look)) = self.looks.in_flight.next() => {
                    self.looks.ended(server);
                    if let Some(look) = look {
                        self.on_look(look);
                    }
                }
                Some(report) = self.running.next() => {
                    if let Some(id) = self.on_report(report) {
                        self.follow_peers(id);
                    }
                }
                () = async { match wake { Some(at) => sleep.until(at).await, None => std::future::pending().await } } => {}
            }
        }
    }

    /// Forgets everything but the queues, after a panic. Each queue is swept a second later, so that a panic
    /// that comes back does not keep the machine busy.
    fn start_over(&mut self, panic: &(dyn Any + Send)) {
        self.conn.counters().panicked("the transfers were restarted after a panic", panic);
        let now = Instant::now();
        self.schedule = TransferSchedule::new(self.settings.sweep_interval, fastrand::u64(..));
        self.servers = Servers::new(now);
        self.running = FuturesUnordered::new();
        self.looks = Looks::default();
        self.announcements.trust();
        // The drop wakes up those that wait for the end of a call.
        self.in_flight.clear();
        for (id, queue) in &mut self.queues {
            queue.cursor = 0;
            self.schedule.open(*id, now);
        }
    }

    /// Starts the transfers that are due. Returns the time of the next one.
    fn start_due(&mut self) -> Option<Instant> {
        while self.running.len() < IN_FLIGHT * self.conn.server_count() {
            match self.schedule.next(Instant::now()) {
                Next::Run(id) => self.start(id),
                Next::Sleep(at) => return Some(at),
                Next::Idle => return None,
            }
        }
        None
    }

    /// Starts a transfer, now or when it is its turn: a server that is silent does not delay the queues of
    /// others.
    fn start(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let server = self.conn.server_of(queue.keys.target());
        if !self.servers.begins(server, id) {
            return;
        }
        queue.upkeep.start_due();
        let call = Call {
            conn: self.conn.clone(),
            queue: id,
            server,
            keys: queue.keys.clone(),
            counters: queue.counters.clone(),
            batch: self.settings.batch,
            budget: self.settings.budget,
            client_id: self.client_id.clone(),
            cursor: std::mem::take(&mut queue.cursor),
            tells_peers: self.schedule.tells_peers(id),
            looks_for_schedules: queue.upkeep.is_schedule_check_due(),
        };
        let (run, longest) = (call.run(), self.longest_run);
        #[cfg(all(test, workspace))]
        let run = self.hang_up(run);
        let sent = Instant::now();
        let run = timeout(longest, run);
        self.running.push(Box::pin(async move {
            run.await.unwrap_or_else(|_| TransferReport::without_reply(id, server, sent))
        }));
        self.in_flight.insert(id, Vec::new());
    }

    /// A transfer on this server has ended: the next one has its turn.
    fn start_next(&mut self, server: ServerId) {
        self.servers.ended(server);
        while let Some(id) = self.servers.next_waiting(server) {
            // Its queue may be closed, or on another server by now.
            self.start(id);
        }
    }

    /// A connection for commands is back, maybe with another server: queues whose server this concerns are
    /// swept, even if no client can listen there.
    fn on_session(&mut self) {
        let (now, mut back) = (Instant::now(), HashSet::new());
        let mut known = HashSet::new();
        for (id, queue) in &self.queues {
            let server = self.conn.server_of(queue.keys.target());
            if known.insert(server)
                && let Some(session) = self.conn.of(&queue.keys).session()
                && self.servers.is_new_session(server, session)
            {
                back.insert(server);
            }
            if back.contains(&server) {
                self.schedule.sweep(*id, now);
            }
        }
        self.servers.retain(|server| known.contains(&server));
    }

    /// The clock of the server of a key or channel.
    fn clock_of(&mut self, key: &[u8]) -> &ServerClock {
        let server = self.conn.server_of(key);
        self.servers.clock(server)
    }

    fn open(&mut self, keys: Keys) {
        if let Some(queue) = self.ids.get(&keys).and_then(|id| self.queues.get_mut(id)) {
            queue.watches += 1;
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.schedule.open(id, Instant::now());
        self.announcements.join(keys.channel(), id);
        self.ids.insert(keys.clone(), id);
        let counters = self.conn.counters().queue(&keys);
        counters.set_transferring(true);
        if let Some(session) = self.conn.of(&keys).session() {
            self.servers.first_session(self.conn.server_of(keys.target()), session);
        }
        let upkeep = upkeep::Settings {
            release_after: self.settings.release_after,
            interval: self.settings.sweep_interval,
        };
        let upkeep = Upkeep::new(&self.conn, &keys, upkeep, self.on_head.clone());
        let queue = Watched {
            keys,
            counters,
            watches: 1,
            follows_peers: false,
            cursor: 0,
            expected: None,
            looked: Instant::now(),
            upkeep,
        };
        self.queues.insert(id, queue);
    }

    /// Drops `done` when the last call has ended.
    fn close(&mut self, keys: &Keys, done: Option<oneshot::Sender<()>>) {
        let Some(&id) = self.ids.get(keys) else { return };
        let Some(queue) = self.queues.get_mut(&id) else { return };
        queue.watches -= 1;
        if queue.watches > 0 {
            return;
        }
        if let Some(waiting) = self.in_flight.get_mut(&id) {
            waiting.extend(done);
        }
        queue.counters.set_transferring(false);
        self.queues.remove(&id);
        self.ids.remove(keys);
        self.schedule.close(id);
        for channel in [keys.channel(), keys.moved()] {
            self.announcements.leave(channel, id);
        }
    }

    fn on_scheduled(&mut self, keys: &Keys) {
        if let Some(queue) = self.ids.get(keys).and_then(|id| self.queues.get_mut(id)) {
            queue.upkeep.look_at_schedules();
        }
    }

    fn on_head(&mut self, keys: &Keys, due: f64) {
        let Some(&id) = self.ids.get(keys) else { return };
        self.expect(id, due);
        if let Some(at) = self.clock_of(keys.target()).instant_of(due) {
            self.schedule.seen(id, at);
        }
    }

    /// An entry is due then, epoch ms; or at once, for an unknown reason.
    fn expect(&mut self, id: QueueId, due: f64) {
        if let Some(queue) = self.queues.get_mut(&id).filter(|_| due > 0.0) {
            queue.expected = Some(queue.expected.map_or(due, |expected| expected.min(due)));
        }
    }

    /// If the server's clock was set, no time that was computed before is right any more.
    fn observe(&mut self, server: ServerId, reading: ClockReading) {
        if self.servers.observe(server, reading) {
            let is_there = |queue: &Watched| self.conn.server_of(queue.keys.target()) == server;
            for (id, _) in self.queues.iter().filter(|(_, queue)| is_there(queue)) {
                self.schedule.sweep(*id, reading.received);
            }
        }
    }

    /// A run has no reply, for an unknown reason: the next one begins with another connection.
    fn on_hang(&mut self, report: &TransferReport) {
        self.count_stalled(report.queue, report.received);
        let Some(queue) = self.queues.get(&report.queue) else { return };
        if let Err(error) = &report.result {
            queue.counters.transfer_failed(events::name(&queue.keys), error);
        }
        self.conn.of(&queue.keys).reconnect();
    }

    /// Returns the queue if it is worth listening to its peers.
    fn on_report(&mut self, report: TransferReport) -> Option<QueueId> {
        self.in_flight.remove(&report.queue);
        self.start_next(report.server);
        // A call that was sent on to another server has the clock of that one.
        let is_there = |queue: &Watched| self.conn.server_of(queue.keys.target()) == report.server;
        if let Some(reading) = report.clock().filter(|_| self.queues.get(&report.queue).is_some_and(is_there))
        {
            self.observe(report.server, reading);
        }
        if report.hangs {
            self.on_hang(&report);
        }
        let queue = self.queues.get_mut(&report.queue)?;
        let head = report.result.as_ref().ok().and_then(|reply| reply.head);
        let head = head.and_then(|due| self.servers.clock(report.server).instant_of(due));
        if let Some(has_schedules) = report.has_schedules {
            queue.upkeep.on_schedule_check(has_schedules);
        }
        let was_failing = self.schedule.is_failing(report.queue);
        match report.result {
            Ok(reply) => {
                let outcome = Moved {
                    head,
                    // A call that only searched for due entries is a part of the call that transfers them.
                    transferred: reply.transferred + reply.quarantined > 0 || reply.cursor != 0,
                    clock: reply.clock,
                };
                queue.cursor = reply.cursor;
                let now = reply.clock as f64 / 1e3;
                let behind = reply.head.map(|due| now - due);
                queue.counters.overdue(behind.filter(|ms| *ms > overdue::OVERDUE_AFTER.as_millis() as f64));
                let due = std::mem::replace(&mut queue.expected, reply.head);
                if let Some(due) = due.filter(|due| reply.transferred > 0 && *due <= now) {
                    queue.counters.was_late(due, now);
                }
                if reply.runs > 0 {
                    // Another process may have stored or changed their schedules.
                    queue.upkeep.look_at_schedules();
                }
                let has_peers = self.schedule.finished(report.queue, report.received, outcome);
                if was_failing {
                    events::transfer_recovered(&queue.keys);
                }
                has_peers.then_some(report.queue)
            }
            Err(error) => {
                self.schedule.failed(report.queue, report.received);
                if !was_failing {
                    events::transfer_failing(&queue.keys, &error);
                }
                None
            }
        }
    }
}

#[cfg(all(test, workspace))]
mod tests;
