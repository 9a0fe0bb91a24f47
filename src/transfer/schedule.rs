//! When which queue's transfer runs. Pure: events and the time go in, what to do comes out.
//!
//! The one rule: a queue wakes at the earliest time that anybody has named for it, by an announcement, a reply or a
//! sweep. Nothing postpones a wake-up but running it, or hearing that somebody else has.
//!
//! Many processes may watch a queue, and one call is enough. So whose call came too late, and who has heard who was
//! quicker, lets that one go first from then on, and calls only if nothing is heard of it in time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;

/// A queue, as the transfer task numbers them.
pub(crate) type QueueId = u64;

/// How long a queue that was just opened waits for its subscription before it is looked at all the same.
const UNCONFIRMED: Duration = Duration::from_secs(1);
/// The pause after a first failure; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
/// The longest pause after a failure.
const LAST_BACKOFF: Duration = Duration::from_secs(5);
/// How long to wait for one that goes first: longer than its call and its message take, and short enough to be no harm
/// when it is gone. Between these two, so that those who wait do not all step in at once.
const DEFERENCE: Range<Duration> = Duration::from_millis(10)..Duration::from_millis(30);
/// A head so near was only looked at a little early: nobody else has moved it.
const EARLY: Duration = Duration::from_millis(5);
/// Sweeps of all queues together, for each of them: two a second.
const SPREAD: Duration = Duration::from_millis(500);

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run this queue's transfer. It counts as running until [`Schedule::finished`] or [`Schedule::failed`].
    Run(QueueId),
    /// Nothing before this time.
    Sleep(Instant),
    /// Nothing at all until something happens.
    Idle,
}

/// The wake-ups of all queues.
#[derive(Debug)]
pub(crate) struct Schedule {
    sweep_interval: Duration,
    queues: HashMap<QueueId, Queue>,
    /// The queues that are not running, by the time at which they are to run.
    timers: BTreeSet<(Instant, QueueId)>,
    random: fastrand::Rng,
}

/// What a run has told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// When the next entry is due.
    pub(crate) head: Option<Instant>,
    /// Whether it moved anything.
    pub(crate) moved: bool,
    /// When it ran, by the server's clock.
    pub(crate) clock: i64,
}

#[derive(Debug)]
struct Queue {
    /// The earliest due time that anybody has named since the last run began.
    head: Option<Instant>,
    /// When it is looked at though nobody named a time: lost events are found then.
    sweep: Instant,
    /// Somebody has asked for a sweep since the present run began.
    asked: bool,
    /// The head when the present run began; it is kept in case the run fails.
    serving: Option<Instant>,
    /// Not before this: the last run failed.
    not_before: Option<Instant>,
    failures: u32,
    running: bool,
    /// The server's clock when it told of the head.
    clock: i64,
    /// Somebody else has moved something since the last run that did.
    heard: bool,
    /// How long somebody else is let go first.
    deference: Duration,
}

impl Queue {
    fn due(&self) -> Instant {
        let earliest = self.head.map_or(self.sweep, |head| self.sweep.min(head + self.deference));
        self.not_before.map_or(earliest, |not_before| earliest.max(not_before))
    }
}

impl Schedule {
    /// `sweep_interval` is how often a queue is looked at that nobody spoke of; each time with up to a quarter of
    /// jitter, so that many queues and processes do not sweep at once. With many queues it grows, so that all their
    /// sweeps together are no more than two a second. `seed` makes the jitter repeatable.
    pub(crate) fn new(sweep_interval: Duration, seed: u64) -> Self {
        Self {
            sweep_interval,
            queues: HashMap::new(),
            timers: BTreeSet::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// From now on this queue is looked after. Its first run follows the confirmation of its subscription. An id is
    /// not used again after [`Schedule::close`]: the last run's end may be still to come.
    pub(crate) fn open(&mut self, queue: QueueId, now: Instant) {
        if let Entry::Vacant(place) = self.queues.entry(queue) {
            let state = place.insert(Queue {
                head: None,
                sweep: now + UNCONFIRMED,
                asked: false,
                serving: None,
                not_before: None,
                failures: 0,
                running: false,
                clock: 0,
                heard: false,
                deference: Duration::ZERO,
            });
            self.timers.insert((state.due(), queue));
        }
    }

    /// From now on this queue is left alone.
    pub(crate) fn close(&mut self, queue: QueueId) {
        if let Some(state) = self.queues.remove(&queue) {
            self.timers.remove(&(state.due(), queue));
        }
    }

    /// Somebody says that something is due at this time. A later time than the one known changes nothing.
    pub(crate) fn announced(&mut self, queue: QueueId, at: Instant) {
        self.update(queue, |state| state.head = Some(state.head.map_or(at, |head| head.min(at))));
    }

    /// Somebody else has moved something, and this was the head then, by the server's clock. What was announced before
    /// that is in it; a reply that was given later knows better.
    pub(crate) fn relieved(&mut self, queue: QueueId, now: Instant, head: Option<Instant>, clock: i64) {
        let deference = self.deference();
        self.update(queue, |state| {
            state.heard = true;
            if state.running || clock <= state.clock {
                return;
            }
            state.clock = clock;
            // If there is more to move, the same one is at it.
            state.head = head.map(|head| head.max(now));
            if state.deference > Duration::ZERO {
                state.deference = deference;
            }
        });
    }

    /// Something may have been missed: look now, even after failures.
    pub(crate) fn sweep(&mut self, queue: QueueId, now: Instant) {
        self.update(queue, |state| {
            state.sweep = state.sweep.min(now);
            state.asked = true;
            state.not_before = None;
        });
    }

    /// The run is over. Returns whether somebody else seems to have been quicker: then it is worth listening to what
    /// others move.
    pub(crate) fn finished(&mut self, queue: QueueId, now: Instant, outcome: Outcome) -> bool {
        let Outcome { head, moved, clock } = outcome;
        let interval = self.sweep_interval.max(SPREAD * self.queues.len() as u32);
        let interval = interval.mul_f64(1.0 + self.random.f64() / 4.0);
        let deference = self.deference();
        let mut missed = false;
        self.update(queue, |state| {
            let is_early = head.is_some_and(|head| head <= now + EARLY);
            missed = !moved && !is_early && state.serving.is_some_and(|due| due <= now);
            if moved {
                (state.heard, state.deference) = (false, Duration::ZERO);
            } else if missed && state.heard {
                state.deference = deference;
            }
            state.running = false;
            state.serving = None;
            state.failures = 0;
            state.not_before = None;
            state.clock = clock;
            // What was announced while the run was in flight may be earlier than the head it saw.
            state.head = [state.head, head].into_iter().flatten().min();
            state.sweep = if state.asked { now } else { now + interval };
        });
        missed
    }

    /// The run failed; what it was to serve is still to be served.
    pub(crate) fn failed(&mut self, queue: QueueId, now: Instant) {
        let jitter = 0.5 + self.random.f64() / 2.0;
        self.update(queue, |state| {
            state.running = false;
            state.head = [state.head, state.serving.take()].into_iter().flatten().min();
            state.sweep = now;
            let backoff = FIRST_BACKOFF.saturating_mul(1 << state.failures.min(10)).min(LAST_BACKOFF);
            state.failures += 1;
            state.not_before = Some(now + backoff.mul_f64(jitter));
        });
    }

    /// Whether the queue's last run failed.
    pub(crate) fn is_failing(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(|state| state.failures > 0)
    }

    /// What to do now. A run is handed out once.
    pub(crate) fn next(&mut self, now: Instant) -> Next {
        match self.timers.first() {
            Some(&(at, queue)) if at <= now => {
                self.update(queue, |state| {
                    state.running = true;
                    state.serving = state.head.take();
                    state.asked = false;
                });
                Next::Run(queue)
            }
            Some(&(at, _)) => Next::Sleep(at),
            None => Next::Idle,
        }
    }

    fn deference(&mut self) -> Duration {
        let Range { start, end } = DEFERENCE;
        start + (end - start).mul_f64(self.random.f64())
    }

    /// Changes a queue's state, and its timer with it.
    fn update(&mut self, queue: QueueId, change: impl FnOnce(&mut Queue)) {
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

#[cfg(test)]
mod tests;
