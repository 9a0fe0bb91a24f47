//! When a schedule runs: at equal intervals or by a cron expression, from a start to an end; and what becomes
//! of missed runs. Pure: times are epoch ms.

#[cfg(feature = "cron")]
mod cron;
mod record;
mod step;

use std::collections::VecDeque;
use std::fmt;

use serde::Serialize;

pub(crate) use record::ScheduleRecord;
pub(crate) use step::{State, Step};

use crate::wire::time;

/// What happens to missed runs: those whose times passed before any client stored them. No client was
/// running, none had a connection, the server was full, or all clients stalled. The run that was stored ahead
/// is not missed: it is delivered late. [`Schedule::missed`](crate::delayed_queue::Schedule::missed) accepts
/// this.
///
/// With an interval of a second or less, a short stall is enough to miss a run. If every run must be offered,
/// use `UpTo`.
///
/// # Examples
/// ```
/// use redelay::delayed_queue::Missed;
///
/// // After a weekend without any process, an hourly schedule runs at once for each of the last 3 hours.
/// let catch_up = Missed::UpTo(3);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Missed {
    /// Missed runs are dropped.
    #[default]
    Skip,
    /// The latest missed run is offered late. Earlier ones are dropped.
    Once,
    /// The latest missed runs, up to this number, are offered late: 1 to 1,000. Earlier ones are dropped.
    UpTo(u32),
}

/// What happens to a run of a schedule whose runs do not overlap, if an earlier run is not done at its time.
/// [`Schedule::no_overlap`](crate::delayed_queue::Schedule::no_overlap) accepts this.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(imports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
/// use redelay::delayed_queue::Overlap;
///
/// let hourly = imports.schedule("hourly").every(Duration::from_secs(3600)).no_overlap(Overlap::Queue);
/// hourly.upsert("all shops").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Overlap {
    /// The run is dropped.
    Skip,
    /// The run is offered when the earlier one is done, at most about a second later. While one run waits,
    /// later ones are [missed](Missed): with [`Missed::Skip`], they are dropped; with the others, the latest
    /// of them follow, one after the other.
    Queue,
}

/// The most missed runs that are offered late.
const MOST_MISSED: u32 = 1000;
/// How far back missed runs are looked for first, ms.
const FIRST_WINDOW: u64 = 10_000;
/// The shortest interval, ms.
const SHORTEST: u64 = 10;

/// When a schedule runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recurrence {
    pub(crate) when: When,
    /// The first and the last time at which it may run.
    pub(crate) start: Option<u64>,
    pub(crate) end: Option<u64>,
    pub(crate) missed: Missed,
    /// `None`: runs may overlap.
    pub(crate) no_overlap: Option<Overlap>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Each time this many ms have passed since the start, or since 1970.
    Every(u64),
    /// By a cron expression, in a time zone.
    Cron { text: String, zone: String },
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(interval) => write!(f, "every {interval} ms"),
            Self::Cron { text, zone } => write!(f, "{text} {zone}"),
        }
    }
}

/// A recurrence that can be computed.
pub(crate) struct Rule<'a> {
    recurrence: &'a Recurrence,
    #[cfg(feature = "cron")]
    cron: Option<cron::Cron>,
}

impl Recurrence {
    /// Returns why it is no recurrence, if it is none.
    pub(crate) fn rule(&self) -> Result<Rule<'_>, String> {
        if let (Some(start), Some(end)) = (self.start, self.end)
            && end < start
        {
            return Err("the end is before the start".into());
        }
        match self.missed {
            Missed::UpTo(0) => return Err("Missed::UpTo(0) is Missed::Skip: use that".into()),
            Missed::UpTo(count) if count > MOST_MISSED => {
                return Err(format!(
                    "{count} missed runs are more than {MOST_MISSED}, the most that are offered late"
                ));
            }
            _ => {}
        }
        match &self.when {
            When::Every(interval) if *interval < SHORTEST => {
                Err(format!("an interval of {interval} ms is below {SHORTEST} ms, the shortest one"))
            }
            When::Every(time::LIMIT..) => Err("an interval of 10^15 ms or more (31,000 years)".into()),
            When::Every(_) => Ok(Rule {
                recurrence: self,
                #[cfg(feature = "cron")]
                cron: None,
            }),
            #[cfg(feature = "cron")]
            When::Cron { text, zone } => {
                Ok(Rule { recurrence: self, cron: Some(cron::Cron::new(text, zone)?) })
            }
            #[cfg(not(feature = "cron"))]
            When::Cron { .. } => Err("this program was built without the feature `cron` of redelay".into()),
        }
    }
}

impl Rule<'_> {
    /// The first run after a time, if there is one.
    pub(crate) fn next(&self, after: u64) -> Option<u64> {
        let Recurrence { when, start, end, .. } = self.recurrence;
        // A run at the start itself counts.
        let after = start.map_or(after, |start| after.max(start.saturating_sub(1)));
        let next = match when {
            When::Every(interval) => {
                let anchor = start.unwrap_or(0);
                let passed = after.checked_sub(anchor).map_or(0, |since| since / interval + 1);
                anchor.checked_add(passed.checked_mul(*interval)?)?
            }
            #[cfg(feature = "cron")]
            When::Cron { .. } => self.cron.as_ref()?.next(after)?,
            #[cfg(not(feature = "cron"))]
            When::Cron { .. } => return None,
        };
        (end.is_none_or(|end| next <= end) && next < time::LIMIT).then_some(next)
    }

    /// The missed runs after `last` up to `now` that are offered late.
    pub(crate) fn missed(&self, last: u64, now: u64) -> Vec<u64> {
        let most = match self.recurrence.missed {
            Missed::Skip => return Vec::new(),
            Missed::Once => 1,
            Missed::UpTo(count) => count.min(MOST_MISSED) as usize,
        };
        let now = self.recurrence.end.map_or(now, |end| end.min(now));
        // Looks back further and further, because millions may have been missed, or one in years.
        let mut window = FIRST_WINDOW;
        loop {
            let from = last.max(now.saturating_sub(window));
            let runs = std::iter::successors(self.next(from), |run| self.next(*run));
            let mut found = VecDeque::with_capacity(most + 1);
            for run in runs.take_while(|run| *run <= now) {
                found.push_back(run);
                if found.len() > most {
                    found.pop_front();
                }
            }
            if found.len() == most || from == last {
                return found.into();
            }
            window = window.saturating_mul(4);
        }
    }
}
