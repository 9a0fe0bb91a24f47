//! The runs of schedules: when the one that is stored is due, the next one is stored.
//!
//! Every client that transfers a queue does this for its schedules. The server accepts the first one's
//! change, and the others read what has become of it.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{self, StreamExt};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::agreement::Pair;
use crate::conn::{Conn, OpError};
use crate::recurrence::Step;
use crate::schedules::{self, Change, Found, Named};
use crate::telemetry::events;
use crate::wire::keys::Keys;

/// What is told the head of a queue, epoch ms, if its transfer may have to be started.
pub(crate) type OnHead = Arc<dyn Fn(&Keys, f64) + Send + Sync>;

/// How many schedules one call reads at most.
const PAGE: usize = 100;
/// How many schedules are changed at once.
const AT_ONCE: usize = 16;
/// How often schedules are looked at without a run: another client may have stored an earlier one, or the
/// clock was set.
const LOOK: Duration = Duration::from_secs(30);
/// The pause after a failure of the connection.
const FAILED: Duration = Duration::from_secs(1);
/// The pause after the server refused a change.
const REFUSED: Duration = Duration::from_secs(5);
/// The pause after the names and the records could not be made to agree.
const DISAGREE: Duration = Duration::from_secs(60);
/// A schedule that this client cannot run is reported if no other client has run it for this long, ms.
const OVERDUE: u64 = 2000;
/// Clients do not look at the same time: each waits for up to this long after the run, and no longer than a
/// part of the time until it.
const JITTER: Duration = Duration::from_millis(20);
/// The shortest pause.
const SHORTEST: Duration = Duration::from_millis(1);

/// The task that runs the schedules of a queue, as long as there are any. It ends with this handle.
#[derive(Debug)]
pub(super) struct Recurring {
    signals: Arc<Signals>,
    task: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct Signals {
    /// This client has changed a schedule.
    changed: Notify,
    /// The task sees no signal any more.
    has_ended: AtomicBool,
}

impl Recurring {
    pub(super) fn start(conn: Conn, keys: Keys, on_head: OnHead) -> Self {
        let signals = Arc::<Signals>::default();
        let runtime = conn.runtime().clone();
        let task = runtime.spawn(keep(conn, keys, on_head, signals.clone()));
        Self { signals, task: AbortOnDropHandle::new(task) }
    }

    /// Lets the task look at the schedules, unless it [has ended](Self::has_ended).
    pub(super) fn look(&self) {
        self.signals.changed.notify_one();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.signals.has_ended.load(Ordering::SeqCst) || self.task.is_finished()
    }
}

async fn keep(conn: Conn, keys: Keys, on_head: OnHead, signals: Arc<Signals>) {
    let (mut reported, mut may_agree_at) = (None, Instant::now());
    loop {
        let seen = look(&conn, &keys, &on_head, &mut may_agree_at).await;
        let SchedulesSeen { is_empty, next, failed } = match seen {
            Ok(seen) => seen,
            Err(OpError::Server(why)) => SchedulesSeen {
                failed: Some((String::new(), why)),
                next: Some(REFUSED),
                ..SchedulesSeen::default()
            },
            Err(_) => SchedulesSeen {
                next: Some(FAILED.mul_f64(1.0 + fastrand::f64())),
                ..SchedulesSeen::default()
            },
        };
        if is_empty {
            signals.has_ended.store(true, Ordering::SeqCst);
            // A task that signals now sees that, or the signal is seen here.
            if signals.changed.notified().now_or_never().is_none() {
                return;
            }
            signals.has_ended.store(false, Ordering::SeqCst);
            continue;
        }
        if let Some((name, why)) = failed.as_ref().filter(|_| failed != reported) {
            let what =
                if name.is_empty() { "cannot be read".into() } else { format!("`{name}` does not run") };
            let of_queue = format!("schedules of `{}`", events::name(&keys));
            conn.counters().failed(of_queue, format!("{what}: {why}"));
            events::schedule_failing(&keys, name, why);
        }
        reported = failed;
        let wait = next.map_or(LOOK, |next| next.min(LOOK));
        let pause = wait + JITTER.min(wait / 8).mul_f64(fastrand::f64());
        // A change during the look counts, too.
        let _ = timeout(pause.max(SHORTEST), signals.changed.notified()).await;
    }
}

/// What a look at the schedules has found.
#[derive(Default)]
struct SchedulesSeen {
    /// Whether there are none at all.
    is_empty: bool,
    /// The time until the next run.
    next: Option<Duration>,
    /// A schedule that this client cannot run, and why. The name is empty if it concerns all of them.
    failed: Option<(String, String)>,
}

/// Stores what follows each run that is due.
async fn look(
    conn: &Conn,
    keys: &Keys,
    on_head: &OnHead,
    may_agree_at: &mut Instant,
) -> Result<SchedulesSeen, OpError> {
    let mut seen = SchedulesSeen::default();
    // Those that cannot run stay due. They are read again while others of their page go on, and then skipped.
    let (mut skip, mut not_stored) = (0, HashSet::new());
    let mut has_agreed = false;
    loop {
        let Found { now, disagree, schedules } = schedules::read(conn, keys, skip, PAGE).await?;
        if disagree && !has_agreed && *may_agree_at <= Instant::now() {
            has_agreed = true;
            match Pair::Schedules.agree_or_report(conn, keys).await {
                Ok(()) => {}
                // Without it, the schedules run all the same.
                Err(OpError::Server(_)) => *may_agree_at = Instant::now() + DISAGREE,
                Err(error) => return Err(error),
            }
            continue;
        }
        seen.is_empty = skip == 0 && schedules.is_empty();
        let read = schedules.len();
        let is_due = |schedule: &Named| schedule.next.is_some_and(|next| next <= now);
        let later = schedules.iter().find(|schedule| !is_due(schedule)).map(|schedule| schedule.next);
        let due = schedules.into_iter().take_while(is_due);
        let mut due: Vec<_> = due.filter(|schedule| !not_stored.contains(&schedule.name)).collect();
        if due.is_empty() {
            if read > 0 && later.is_none() {
                skip += read;
                not_stored.clear();
                continue;
            }
            let wait = later.flatten().map(|next| Duration::from_millis(next - now));
            seen.next = [seen.next, wait].into_iter().flatten().min();
            return Ok(seen);
        }
        // Other clients have read the same page. In another order, each has some of the work.
        fastrand::shuffle(&mut due);
        let advance = due.into_iter().map(|due| async move {
            // A panic would be a mistake in this program, or in what reads cron expressions. The other
            // schedules go on.
            let advancing = AssertUnwindSafe(advance(conn, keys, &due, now)).catch_unwind();
            let outcome = advancing.await.unwrap_or_else(|_| Err(NotStored::Unreadable("a panic".into())));
            (due, outcome)
        });
        let mut advancing = stream::iter(advance).buffer_unordered(AT_ONCE);
        while let Some((schedule, outcome)) = advancing.next().await {
            let why = match outcome {
                Ok(head) => {
                    head.into_iter().for_each(|head| on_head(keys, head));
                    continue;
                }
                Err(NotStored::Connection(error)) => return Err(error),
                Err(NotStored::Refused(why)) => {
                    seen.next = Some(REFUSED);
                    why
                }
                Err(NotStored::Unreadable(why)) => why,
            };
            not_stored.insert(schedule.name.clone());
            if now - schedule.next.unwrap_or(now) >= OVERDUE {
                let name = String::from_utf8_lossy(&schedule.name).into_owned();
                // The same one in each look, whatever the order.
                seen.failed = seen.failed.take().into_iter().chain([(name, why)]).min();
            } else {
                // Another client may be able to run it. If none does, it is reported.
                seen.next = Some(Duration::from_millis(OVERDUE));
            }
        }
    }
}

/// Why the next run of a schedule was not stored.
enum NotStored {
    /// This client cannot tell when the next run is.
    Unreadable(String),
    Refused(String),
    Connection(OpError),
}

impl NotStored {
    fn of(error: OpError) -> Self {
        match error {
            OpError::TooLarge(why) | OpError::Server(why) => Self::Refused(why),
            full @ OpError::Full { .. } => Self::Refused(full.to_string()),
            error => Self::Connection(error),
        }
    }
}

/// Stores the run after one that is due. Returns the head, if its transfer may have to be started. Changes
/// nothing if another client was faster.
async fn advance(conn: &Conn, keys: &Keys, schedule: &Named, now: u64) -> Result<Option<f64>, NotStored> {
    let after;
    let mut schedule = schedule;
    let step = match schedule.state().map_err(|why| NotStored::Unreadable(why.into()))? {
        Some(state) => {
            let look = Step::look(&state, now);
            if let Some(look) = &look {
                match schedules::change(conn, keys, schedule, look).await {
                    Ok((Change::Changed, _)) => {
                        after = schedule.after(look);
                        schedule = &after;
                    }
                    Ok(_) => return Ok(None),
                    Err(error) => return Err(NotStored::of(error)),
                }
            }
            let running = schedules::running(conn, keys, [(&schedule.name, &state.record)].into_iter()).await;
            let is_running = running.map_err(NotStored::of)?.contains(&true);
            let step = Step::advance(&state, now, is_running).map_err(NotStored::Unreadable)?;
            step.filter(|step| look.as_ref() != Some(step))
        }
        // The record was deleted by hand: the name follows.
        None => Some(Step::default()),
    };
    let Some(step) = step else { return Ok(None) };
    match schedules::change(conn, keys, schedule, &step).await {
        Ok((_, head)) => Ok(head),
        Err(error) => Err(NotStored::of(error)),
    }
}
