//! When which queue's transfer runs. Pure: events and the time go in, what to do comes out.
//!
//! The one rule: a queue wakes at the earliest time that anybody has named for it, by an announcement, a reply or a
//! sweep. Nothing postpones a wake-up but running it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
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

#[derive(Debug)]
struct Queue {
    /// The earliest time anybody has named since the last run began.
    wake: Option<Instant>,
    /// When it is looked at though nobody named a time: lost events are found then.
    sweep: Instant,
    /// The wake-up that the present run serves; it is kept in case the run fails.
    serving: Option<Instant>,
    /// Not before this: the last run failed.
    not_before: Option<Instant>,
    failures: u32,
    running: bool,
}

impl Queue {
    fn due(&self) -> Instant {
        let earliest = self.wake.map_or(self.sweep, |wake| wake.min(self.sweep));
        self.not_before.map_or(earliest, |not_before| earliest.max(not_before))
    }
}

impl Schedule {
    /// `sweep_interval` is how often a queue is looked at that nobody spoke of; each time with up to a quarter of
    /// jitter, so that many queues and processes do not sweep at once. `seed` makes the jitter repeatable.
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
                wake: None,
                sweep: now + UNCONFIRMED,
                serving: None,
                not_before: None,
                failures: 0,
                running: false,
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
        self.update(queue, |state| state.wake = Some(state.wake.map_or(at, |wake| wake.min(at))));
    }

    /// Something may have been missed: look now, even after failures.
    pub(crate) fn sweep(&mut self, queue: QueueId, now: Instant) {
        self.update(queue, |state| {
            state.wake = Some(state.wake.map_or(now, |wake| wake.min(now)));
            state.not_before = None;
        });
    }

    /// The run is over, and the server named the next head, or that there is none.
    pub(crate) fn finished(&mut self, queue: QueueId, now: Instant, head: Option<Instant>) {
        let interval = self.sweep_interval.mul_f64(1.0 + self.random.f64() / 4.0);
        self.update(queue, |state| {
            state.running = false;
            state.serving = None;
            state.failures = 0;
            state.not_before = None;
            // What was announced while the run was in flight may be earlier than the head it saw.
            state.wake = [state.wake, head].into_iter().flatten().min();
            state.sweep = now + interval;
        });
    }

    /// The run failed; what it was to serve is still to be served.
    pub(crate) fn failed(&mut self, queue: QueueId, now: Instant) {
        let jitter = 0.5 + self.random.f64() / 2.0;
        self.update(queue, |state| {
            state.running = false;
            state.wake = [state.wake, state.serving.take()].into_iter().flatten().min();
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
                    state.serving = Some(state.due());
                    state.wake = None;
                });
                Next::Run(queue)
            }
            Some(&(at, _)) => Next::Sleep(at),
            None => Next::Idle,
        }
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
