//! When to run which queue's transfer. Pure: events and the time go in, the next step comes out.
//!
//! The one rule: a queue wakes at the earliest time that an announcement, a reply or a sweep has named for
//! it. Only a run postpones a wake-up, or the message that a peer has run it.
//!
//! Many processes (peers) may transfer for one queue, and one call is enough. So a client whose call was too
//! late, and that has seen the message of the quicker peer, stands down: from then on it calls a little
//! later, and only if no message of the peer arrives in time. While entries follow each other quickly, who
//! transfers them tells its peers now and then, and these wait a little longer. A backlog keeps every client
//! busy, so nobody's call is too late: then those stand down that hear of a peer whose id comes before
//! theirs.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;

/// A queue, as the transfer task numbers them.
pub(crate) type QueueId = u64;

/// How long a new queue waits for the confirmation of its subscription before it runs without.
const UNCONFIRMED: Duration = Duration::from_secs(1);
/// The pause after a first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause after a failure.
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// How long to wait for a peer that goes first: longer than its call and its message take, and short enough
/// to do no harm when it is gone. A random time in this range, so that the waiting clients do not all step in
/// at once.
const STAND_DOWN: Range<Duration> = Duration::from_millis(10)..Duration::from_millis(30);
/// While the next entry is due within this time, who transfers tells its peers no more often than that.
pub(super) const QUIET: Duration = Duration::from_millis(20);
/// How long to wait for a peer that may be quiet: its next message comes within twice that time.
const STAND_DOWN_QUIETLY: Range<Duration> = Duration::from_millis(60)..Duration::from_millis(100);
/// A head that is overdue by this is that of a backlog.
const BEHIND: Duration = Duration::from_millis(100);
/// How long to wait for a peer that moves a backlog: longer than its calls take.
const STAND_DOWN_BEHIND: Range<Duration> = Duration::from_millis(200)..Duration::from_millis(300);
/// A head within this time of the one that a call was made for is the same: the call was a little early, and
/// no peer has transferred it. Both were computed from the server's clock, with an error each.
const SAME: Duration = Duration::from_micros(500);
/// The interval between the sweeps of all queues together: two a second.
const SPREAD: Duration = Duration::from_millis(500);

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run this queue's transfer. It counts as running until [`TransferSchedule::finished`] or
    /// [`TransferSchedule::failed`].
    Run(QueueId),
    /// Nothing before this time.
    Sleep(Instant),
    /// Nothing until the next event.
    Idle,
}

/// The wake-ups of all queues.
#[derive(Debug)]
pub(crate) struct TransferSchedule {
    sweep_interval: Duration,
    queues: HashMap<QueueId, Timing>,
    /// The queues that are not running, by the time of their next run.
    timers: BTreeSet<(Instant, QueueId)>,
    random: fastrand::Rng,
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// When the next entry is due.
    pub(crate) head: Option<Instant>,
    /// Whether it transferred anything.
    pub(crate) transferred: bool,
    /// When it ran, by the server's clock.
    pub(crate) clock: i64,
}

#[derive(Debug)]
struct Timing {
    /// The earliest due time that was named since the last run began.
    head: Option<Instant>,
    /// When it runs without a named time, to find entries whose events were lost.
    sweep: Instant,
    /// A sweep was requested since the present run began.
    sweep_requested: bool,
    /// A head that a reply to another call of this client named. Only a run supersedes it: a message of a
    /// peer may be older.
    seen: Option<Instant>,
    /// The head when the present run began, in case the run fails.
    head_of_run: Option<Instant>,
    /// The end of the pause after a failed run.
    not_before: Option<Instant>,
    failures: u32,
    running: bool,
    /// The server's clock when it reported the head.
    clock: i64,
    /// A peer has transferred something since this client's last run that did.
    peer_seen: bool,
    /// A peer that comes first has transferred something during the present run.
    is_second: bool,
    /// How long this client lets a peer go first.
    stand_down: Duration,
    /// When this client last told its peers of a transfer.
    told: Option<Instant>,
    /// Whether the present run tells them in any case.
    tells: bool,
    /// When this client last began or ended a run, or heard of a peer's.
    active: Instant,
}

impl Timing {
    fn due(&self) -> Instant {
        let head = [self.head, self.seen].into_iter().flatten().min();
        let earliest = head.map_or(self.sweep, |head| self.sweep.min(head + self.stand_down));
        self.not_before.map_or(earliest, |not_before| earliest.max(not_before))
    }
}

impl TransferSchedule {
    /// `sweep_interval` is how often a queue runs without a named time. Up to a quarter of jitter is added
    /// each time, so that many queues and processes do not sweep at once. With many queues the interval
    /// grows, so that all sweeps together are no more than two a second. `seed` makes the jitter repeatable.
    pub(crate) fn new(sweep_interval: Duration, seed: u64) -> Self {
        Self {
            sweep_interval,
            queues: HashMap::new(),
            timers: BTreeSet::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Adds a queue. Its first run follows the confirmation of its subscription. An id is not used again
    /// after [`TransferSchedule::close`], because the end of the last run may be still to come.
    pub(crate) fn open(&mut self, queue: QueueId, now: Instant) {
        if let Entry::Vacant(vacant) = self.queues.entry(queue) {
            let state = vacant.insert(Timing {
                head: None,
                seen: None,
                sweep: now + UNCONFIRMED,
                sweep_requested: false,
                head_of_run: None,
                not_before: None,
                failures: 0,
                running: false,
                clock: 0,
                peer_seen: false,
                is_second: false,
                stand_down: Duration::ZERO,
                told: None,
                tells: true,
                active: now,
            });
            self.timers.insert((state.due(), queue));
        }
    }

    /// Removes a queue.
    pub(crate) fn close(&mut self, queue: QueueId) {
        if let Some(state) = self.queues.remove(&queue) {
            self.timers.remove(&(state.due(), queue));
        }
    }

    /// An entry is due at this time. A later time than the known one changes nothing.
    pub(crate) fn announced(&mut self, queue: QueueId, at: Instant) {
        self.update(queue, |state| state.head = Some(state.head.map_or(at, |head| head.min(at))));
    }

    /// A reply to another call of this client says that an entry is due at this time.
    pub(crate) fn seen(&mut self, queue: QueueId, at: Instant) {
        self.update(queue, |state| state.seen = Some(state.seen.map_or(at, |seen| seen.min(at))));
    }

    /// A peer has transferred something, and this was the head then. `clock` is the server's clock at that
    /// time: earlier announcements are covered by this head, and a later reply supersedes it. The peer
    /// `comes_first` if its id is before that of this client.
    pub(crate) fn on_peer_transfer(
        &mut self,
        queue: QueueId,
        now: Instant,
        head: Option<Instant>,
        clock: i64,
        comes_first: bool,
    ) {
        let stand_down = self.stand_down(head, now);
        self.update(queue, |state| {
            state.peer_seen = true;
            state.active = now;
            state.is_second |= state.running && comes_first;
            if state.running || clock <= state.clock {
                return;
            }
            state.clock = clock;
            // If there is more to transfer now, the same peer does it.
            state.head = head.map(|head| head.max(now));
            if state.stand_down > Duration::ZERO {
                state.stand_down = stand_down;
            }
        });
    }

    /// An event may have been lost: run now, even after failures.
    pub(crate) fn sweep(&mut self, queue: QueueId, now: Instant) {
        self.update(queue, |state| {
            state.sweep = state.sweep.min(now);
            state.sweep_requested = true;
            state.not_before = None;
        });
    }

    /// The run succeeded. Returns whether it is worth listening to the messages of peers: one seems to have
    /// been quicker, or there is a backlog.
    pub(crate) fn finished(&mut self, queue: QueueId, now: Instant, outcome: Moved) -> bool {
        let Moved { head, transferred, clock } = outcome;
        let interval = self.sweep_interval.max(SPREAD * self.queues.len() as u32);
        let interval = interval.mul_f64(1.0 + self.random.f64() / 4.0);
        let stand_down = self.stand_down(head, now);
        let is_behind = head.is_some_and(|head| is_behind(head, now));
        let mut lost_race = false;
        self.update(queue, |state| {
            let was_for = state.head_of_run.filter(|due| *due <= now);
            lost_race = !transferred && was_for.is_some_and(|due| head.is_none_or(|head| head > due + SAME));
            let is_second = state.is_second && is_behind;
            if transferred && !is_second {
                (state.peer_seen, state.stand_down) = (false, Duration::ZERO);
            } else if is_second || lost_race && state.peer_seen {
                state.stand_down = stand_down;
            }
            if transferred && state.tells {
                state.told = Some(now);
            }
            state.running = false;
            state.active = now;
            state.head_of_run = None;
            state.failures = 0;
            state.not_before = None;
            state.clock = clock;
            // An announcement during the run may be earlier than the head that the run saw.
            state.head = [state.head, head].into_iter().flatten().min();
            if is_second {
                state.head = Some(now);
            }
            state.sweep = if state.sweep_requested { now } else { now + interval };
        });
        lost_race || transferred && is_behind
    }

    /// The run failed; its head is still to be served.
    pub(crate) fn failed(&mut self, queue: QueueId, now: Instant) {
        let jitter = 0.5 + self.random.f64() / 2.0;
        self.update(queue, |state| {
            state.running = false;
            state.active = now;
            state.head = [state.head, state.head_of_run.take()].into_iter().flatten().min();
            state.sweep = now;
            let pause = FIRST_PAUSE.saturating_mul(1 << state.failures.min(10)).min(LAST_PAUSE);
            state.failures += 1;
            state.not_before = Some(now + pause.mul_f64(jitter));
        });
    }

    /// Whether the queue's last run failed.
    pub(crate) fn is_failing(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(|state| state.failures > 0)
    }

    /// Whether no client has tried to transfer since then, as far as this client knows, and it does not mean
    /// to do so now. A run that fails is tried again, and one that is on its way ends.
    pub(crate) fn is_idle_since(&self, queue: QueueId, since: Instant, now: Instant) -> bool {
        let is_idle = |state: &Timing| {
            !state.running && state.failures == 0 && state.active <= since && state.due() > now
        };
        self.queues.get(&queue).is_some_and(is_idle)
    }

    /// What to do now. Each run is returned once.
    pub(crate) fn next(&mut self, now: Instant) -> Next {
        match self.timers.first() {
            Some(&(at, queue)) if at <= now => {
                self.update(queue, |state| {
                    state.running = true;
                    state.is_second = false;
                    state.active = now;
                    state.head_of_run = [state.head.take(), state.seen.take()].into_iter().flatten().min();
                    // A call that moves a backlog takes longer than that.
                    let is_behind = state.head_of_run.is_some_and(|head| is_behind(head, now));
                    state.tells = is_behind || state.told.is_none_or(|told| now >= told + QUIET);
                    state.sweep_requested = false;
                });
                Next::Run(queue)
            }
            Some(&(at, _)) => Next::Sleep(at),
            None => Next::Idle,
        }
    }

    /// Whether the queue's present run tells its peers of what it transfers, also if the next entry is due
    /// within [`QUIET`].
    pub(crate) fn tells_peers(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_none_or(|state| state.tells)
    }

    /// A random time to stand down for. A peer that transfers this head may be quiet if that is near.
    fn stand_down(&mut self, head: Option<Instant>, now: Instant) -> Duration {
        let Range { start, end } = match head {
            Some(head) if is_behind(head, now) => STAND_DOWN_BEHIND,
            Some(head) if head <= now + QUIET => STAND_DOWN_QUIETLY,
            _ => STAND_DOWN,
        };
        start + (end - start).mul_f64(self.random.f64())
    }

    /// Changes the state of a queue, and its timer with it.
    fn update(&mut self, queue: QueueId, change: impl FnOnce(&mut Timing)) {
        let Some(state) = self.queues.get_mut(&queue) else { return };
        if !state.running {
            self.timers.remove(&(state.due(), queue));
        }
        change(state);
        if !state.running {
            self.timers.insert((state.due(), queue));
        }
    }
}

/// Whether this head is that of a backlog.
fn is_behind(head: Instant, now: Instant) -> bool {
    head + BEHIND <= now
}

#[cfg(test)]
mod tests;
