//! What is known of the payloads of a plan, and what has happened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// What is known of one payload.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// `None` for a payload of Redisson.
    id: Option<String>,
    begun: Instant,
    /// When it was certainly stored.
    stored: Option<Instant>,
    refused: bool,
    /// Something has ended it, or may have.
    may_be_over: bool,
    /// Whether a cancel or another job has certainly removed it, if nothing else had ended it.
    is_removed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Pages {
    jobs: HashMap<i64, Job>,
    /// Calls that may still end something: those under way, and those that may arrive late.
    ending: HashMap<usize, Ending>,
    calls: usize,
    pub(super) wrong: Vec<String>,
    pub(super) deeds: HashMap<&'static str, usize>,
}

/// A call that may end jobs, those too that are offered meanwhile.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    /// The job that has this id, but not this one.
    OfId(String, i64),
    /// This number of whatever jobs there are.
    Any(usize),
    /// This one.
    One(i64),
}

/// What a call has ended, by its answer.
#[derive(Debug)]
pub(super) enum Ended {
    /// What it was for.
    That,
    These(Vec<i64>),
    Nothing,
    /// It may arrive late.
    Unknown,
}

/// The record of a run. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Book(Arc<Mutex<Pages>>);

pub(super) const DEEDS: [&str; 17] = [
    "stored",
    "kept",
    "replaced",
    "running",
    "acknowledged",
    "failed",
    "rejected",
    "cancelled",
    "certainly removed",
    "certainly replaced",
    "cancel requested",
    "told to end",
    "letter removed",
    "expired",
    "taken",
    "offered by Redisson",
    "taken by Redisson",
];
/// Those of plans without Redisson.
pub(super) const OWN: usize = 15;

impl Ending {
    fn covers(&self, number: i64, job: &Job) -> bool {
        match self {
            Self::OfId(id, but) => number != *but && job.id.as_ref() == Some(id),
            Self::Any(_) => true,
            Self::One(one) => number == *one,
        }
    }
}

impl Ended {
    /// An answer that ended what it was for, or nothing if this does not hold.
    pub(super) fn of<T>(answer: &redelay::Result<T>, is_that: impl Fn(&T) -> bool) -> Self {
        match answer {
            Ok(answer) if is_that(answer) => Self::That,
            Err(error) if error.is_outcome_unknown() => Self::Unknown,
            _ => Self::Nothing,
        }
    }
}

impl Pages {
    /// Whether nothing has ended it, nor may be ending it. Those that end whatever there is are not asked.
    fn is_live(&self, number: i64, asks_any: bool) -> bool {
        let job = &self.jobs[&number];
        let mut ending = self.ending.values().filter(|ending| asks_any || !matches!(ending, Ending::Any(_)));
        !job.may_be_over && !ending.any(|ending| ending.covers(number, job))
    }
}

impl Book {
    pub(super) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().expect("nobody panics meanwhile")
    }

    pub(super) fn did(&self, deed: &'static str) {
        assert!(DEEDS.contains(&deed), "{deed} is not in the list");
        *self.pages().deeds.entry(deed).or_default() += 1;
    }

    pub(super) fn number(&self, id: Option<&str>) -> i64 {
        let mut pages = self.pages();
        let number = pages.jobs.len() as i64;
        let id = id.map(str::to_owned);
        let job = Job {
            id,
            begun: Instant::now(),
            stored: None,
            refused: false,
            may_be_over: false,
            is_removed: false,
        };
        pages.jobs.insert(number, job);
        number
    }

    /// A call that may end something. `ended` says what it has ended.
    pub(super) async fn ending<T>(
        &self,
        ending: Ending,
        call: impl IntoFuture<Output = T>,
        ended: impl Fn(&T) -> Ended,
    ) -> T {
        let number = {
            let mut pages = self.pages();
            pages.calls += 1;
            let number = pages.calls;
            pages.ending.insert(number, ending.clone());
            number
        };
        let answer = call.await;
        let mut pages = self.pages();
        let ended = ended(&answer);
        if !matches!(ended, Ended::Unknown) {
            pages.ending.remove(&number);
        }
        for (number, job) in &mut pages.jobs {
            job.may_be_over |= match &ended {
                Ended::That => ending.covers(*number, job),
                Ended::These(numbers) => numbers.contains(number),
                Ended::Nothing | Ended::Unknown => false,
            };
        }
        answer
    }

    /// The offer of this one stores nothing.
    pub(super) fn refused(&self, number: i64) {
        self.pages().jobs.get_mut(&number).expect("it was offered").refused = true;
    }

    /// A call that began then has cancelled or replaced what had this id, and was not in flight. So no job is
    /// delivered any more that was stored before; unless there are takers, from whom payloads may come back.
    /// Returns whether there was one.
    pub(super) fn removed(&self, id: &str, begun: Instant) -> bool {
        let is_one =
            |job: &&mut Job| job.id.as_deref() == Some(id) && job.stored.is_some_and(|stored| stored < begun);
        self.pages().jobs.values_mut().filter(is_one).map(|job| job.is_removed = true).count() > 0
    }

    /// A handler is about to end this one, or it is discarded when it expires.
    pub(super) fn may_end(&self, number: i64) {
        if let Some(job) = self.pages().jobs.get_mut(&number) {
            job.may_be_over = true;
        }
    }

    /// A job was stored: another one of its id cannot be live. One that has begun is, if nothing may have
    /// ended it before this answer.
    pub(super) fn stored(&self, number: i64) {
        let now = Instant::now();
        let mut pages = self.pages();
        let (id, begun) = (pages.jobs[&number].id.clone(), pages.jobs[&number].begun);
        let is_other =
            |job: &Job| id.is_some() && job.id == id && job.stored.is_some_and(|stored| stored < begun);
        let others = pages.jobs.iter().filter(|(_, job)| is_other(job)).map(|(other, _)| *other);
        let others: Vec<i64> = others.filter(|other| pages.is_live(*other, true)).collect();
        if !others.is_empty() {
            pages.wrong.push(format!("{number} is stored under {id:?}, and {others:?} are live"));
        }
        pages.jobs.get_mut(&number).expect("it was offered").stored = Some(now);
    }

    /// A handler begins. If its lease is over already, its message may be that of another one.
    pub(super) fn handled(&self, number: i64, id: Option<&[u8]>, header: Option<&str>, is_over: bool) {
        let mut pages = self.pages();
        let Some(job) = pages.jobs.get(&number) else {
            return pages.wrong.push(format!("{number} was never offered"));
        };
        let (told, refused, is_removed) = (job.id.clone(), job.refused, job.is_removed);
        // A payload that was taken and given back may have lost both in between, by a sweep.
        let may_be_bare = !pages.is_live(number, true) && id.is_none() && header.is_none();
        if is_removed && !is_over {
            pages.wrong.push(format!("{number} was cancelled or replaced, and is delivered"));
        }
        if refused {
            pages.wrong.push(format!("{number} was refused, and is delivered"));
        }
        let expected = told.as_ref().map(|id| (id.as_bytes(), number.to_string()));
        let has = id.zip(header.map(str::to_owned));
        if !may_be_bare && (has != expected || id.is_some() != header.is_some()) {
            pages.wrong.push(format!("{number} has the id {id:?} and the header {header:?}"));
        }
    }

    /// Payloads that were stored, that nothing has ended; and how many of them calls that may arrive late may
    /// have ended, whichever these are.
    pub(super) fn live(&self) -> (Vec<i64>, usize) {
        let pages = self.pages();
        let stored = pages.jobs.iter().filter(|(_, job)| job.stored.is_some()).map(|(number, _)| *number);
        let live = stored.filter(|number| pages.is_live(*number, false)).collect();
        let any = |ending: &Ending| if let Ending::Any(most) = ending { *most } else { 0 };
        (live, pages.ending.values().map(any).sum())
    }
}
