//! What a queue needs now and then, besides the transfer of its entries: messages that receivers have left go
//! back, ids of jobs that are no longer pending are removed, and the runs of schedules are stored. A client
//! that transfers a queue does it.

mod abandoned;
mod recurring;
mod stale_jobs;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::conn::Conn;
use crate::wire::keys::Keys;
use recurring::Recurring;

pub(crate) use recurring::OnHead;

/// When to release what receivers have left, and how often to sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// What receivers have left is released when none of them has given a sign of life for this long; `None`:
    /// never.
    pub(crate) release_after: Option<Duration>,
    /// How often stale ids and schedules are looked for.
    pub(crate) interval: Duration,
}

/// The upkeep of one queue. Dropping it ends its tasks, but for a release that has begun.
pub(crate) struct Upkeep {
    conn: Conn,
    keys: Keys,
    settings: Settings,
    on_head: OnHead,
    release_at: Instant,
    sweep_jobs_at: Instant,
    sweeping_jobs: Option<AbortOnDropHandle<()>>,
    schedules_at: Instant,
    schedules: Option<Recurring>,
}

impl Upkeep {
    pub(crate) fn new(conn: &Conn, keys: &Keys, settings: Settings, on_head: OnHead) -> Self {
        let now = Instant::now();
        Self {
            conn: conn.of(keys),
            keys: keys.clone(),
            settings,
            on_head,
            release_at: abandoned::next_look(now, settings.release_after.unwrap_or_default()),
            sweep_jobs_at: now + settings.interval,
            sweeping_jobs: None,
            schedules_at: now,
            schedules: None,
        }
    }

    /// Starts what is due.
    pub(crate) fn start_due(&mut self) {
        let now = Instant::now();
        if let Some(after) = self.settings.release_after.filter(|_| self.release_at <= now) {
            self.release_at = abandoned::next_look(now, after);
            // Nothing waits for it.
            let release = abandoned::release(self.conn.clone(), self.keys.clone(), after);
            drop(self.conn.runtime().spawn(release));
        }
        if self.sweep_jobs_at <= now && self.sweeping_jobs.as_ref().is_none_or(AbortOnDropHandle::is_finished)
        {
            self.sweep_jobs_at = now + self.settings.interval;
            let remove = stale_jobs::remove(self.conn.clone(), self.keys.clone());
            self.sweeping_jobs = Some(AbortOnDropHandle::new(self.conn.runtime().spawn(Box::pin(remove))));
        }
    }

    /// Whether it is time to find out whether the queue has schedules.
    pub(crate) fn is_schedule_check_due(&self) -> bool {
        self.schedules_at <= Instant::now()
    }

    /// Whether the queue has schedules.
    pub(crate) fn on_schedule_check(&mut self, has_some: bool) {
        self.schedules_at = Instant::now() + self.settings.interval;
        if has_some {
            self.run_schedules();
        }
    }

    /// Schedules have changed, or may have.
    pub(crate) fn look_at_schedules(&mut self) {
        if let Some(recurring) = &self.schedules {
            recurring.look();
        }
        self.run_schedules();
    }

    /// Starts the task that runs schedules, unless it runs.
    fn run_schedules(&mut self) {
        if self.schedules.as_ref().is_none_or(Recurring::has_ended) {
            let (conn, keys) = (self.conn.clone(), self.keys.clone());
            self.schedules = Some(Recurring::start(conn, keys, self.on_head.clone()));
        }
    }
}
