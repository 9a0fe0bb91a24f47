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
    /// From when on something may have ended it.
    may_be_over: Option<Instant>,
    /// Whether a cancel has certainly removed it, if nothing else had ended it.
    is_removed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Pages {
    jobs: HashMap<i64, Job>,
    /// Calls under way that may end all jobs of an id, or, without one, any job.
    ending: HashMap<usize, Option<String>>,
    calls: usize,
    pub(super) wrong: Vec<String>,
    pub(super) deeds: HashMap<&'static str, usize>,
}

/// The record of a run. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Book(Arc<Mutex<Pages>>);

pub(super) const DEEDS: [&str; 14] = [
    "stored",
    "kept",
    "replaced",
    "running",
    "acknowledged",
    "failed",
    "rejected",
    "cancelled",
    "certainly removed",
    "cancel requested",
    "told to end",
    "taken",
    "offered by Redisson",
    "taken by Redisson",
];
/// Those of plans without Redisson.
pub(super) const OWN: usize = 12;

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
        let mut ending = pages.ending.values();
        let is_ended = ending.any(|ending| ending.as_deref().is_none_or(|ended| Some(ended) == id));
        let begun = Instant::now();
        let may_be_over = is_ended.then_some(begun);
        let id = id.map(str::to_owned);
        let job = Job { id, begun, stored: None, refused: false, may_be_over, is_removed: false };
        pages.jobs.insert(number, job);
        number
    }

    /// A call that may end all jobs of an id, or, without one, any job: also those that are offered
    /// meanwhile, and for ever if its outcome is unknown, because it may arrive late.
    pub(super) async fn ending<T>(
        &self,
        id: Option<&str>,
        but: i64,
        call: impl IntoFuture<Output = redelay::Result<T>>,
    ) -> redelay::Result<T> {
        let may_be_late =
            |answer: &redelay::Result<T>| answer.as_ref().is_err_and(redelay::Error::is_outcome_unknown);
        self.ending_unless(may_be_late, id, but, call).await
    }

    /// The same for a call whose answer says otherwise that it may arrive late.
    pub(super) async fn ending_unless<T>(
        &self,
        may_be_late: impl Fn(&T) -> bool,
        id: Option<&str>,
        but: i64,
        call: impl IntoFuture<Output = T>,
    ) -> T {
        let number = {
            let mut pages = self.pages();
            pages.calls += 1;
            let number = pages.calls;
            pages.ending.insert(number, id.map(str::to_owned));
            number
        };
        self.may_end(|other, job| other != but && (id.is_none() || job.id.as_deref() == id));
        let answer = call.await;
        if !may_be_late(&answer) {
            self.pages().ending.remove(&number);
        }
        answer
    }

    /// The offer of this one stores nothing.
    pub(super) fn refused(&self, number: i64) {
        self.pages().jobs.get_mut(&number).expect("it was offered").refused = true;
    }

    /// A cancel that began then has removed what had this id, and was not in flight. So no job is delivered
    /// any more that was stored before; unless there are takers, from whom payloads may come back. Returns
    /// whether there was one.
    pub(super) fn removed(&self, id: &str, begun: Instant) -> bool {
        let is_one =
            |job: &&mut Job| job.id.as_deref() == Some(id) && job.stored.is_some_and(|stored| stored < begun);
        self.pages().jobs.values_mut().filter(is_one).map(|job| job.is_removed = true).count() > 0
    }

    /// From now on, these may be over.
    pub(super) fn may_end(&self, is_one: impl Fn(i64, &Job) -> bool) {
        let now = Instant::now();
        let mut pages = self.pages();
        for (number, job) in &mut pages.jobs {
            if job.may_be_over.is_none() && is_one(*number, job) {
                job.may_be_over = Some(now);
            }
        }
    }

    /// A job was stored: another one of its id cannot be live. One that has begun is, if nothing may have
    /// ended it before this answer.
    pub(super) fn stored(&self, number: i64) {
        let now = Instant::now();
        let mut pages = self.pages();
        let (id, begun) = (pages.jobs[&number].id.clone(), pages.jobs[&number].begun);
        let is_live = |job: &Job| {
            id.is_some()
                && job.id == id
                && job.stored.is_some_and(|stored| stored < begun)
                && job.may_be_over.is_none()
        };
        let others: Vec<i64> =
            pages.jobs.iter().filter(|(_, job)| is_live(job)).map(|(other, _)| *other).collect();
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
        let may_be_bare = job.may_be_over.is_some() && id.is_none() && header.is_none();
        if is_removed && !is_over {
            pages.wrong.push(format!("{number} was cancelled, and is delivered"));
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

    /// Payloads that were stored, that nothing may have ended.
    pub(super) fn live(&self) -> Vec<i64> {
        let pages = self.pages();
        let is_live = |job: &Job| job.stored.is_some() && job.may_be_over.is_none();
        pages.jobs.iter().filter(|(_, job)| is_live(job)).map(|(number, _)| *number).collect()
    }
}
