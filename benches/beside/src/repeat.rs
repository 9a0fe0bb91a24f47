//! Repeating what fails: a run of half an hour must not be lost because one process failed once.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use crate::system::System;

/// How often a turn is tried before its measurement fails.
const TRIES: usize = 3;

/// A worker process could not do a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) system: System,
    /// Continues "the worker on this system".
    pub(crate) why: String,
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the worker on {} {}", self.system.name(), self.why)
    }
}

/// A turn that failed and was repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repeat {
    pub(crate) what: String,
    pub(crate) failure: Failure,
}

/// All repeats of a run. Clones share them.
#[derive(Clone)]
pub(crate) struct Repeats {
    all: Rc<RefCell<Vec<Repeat>>>,
    progress: ProgressBar,
}

impl Repeats {
    pub(crate) fn new(progress: ProgressBar) -> Self {
        Self { all: Rc::default(), progress }
    }

    pub(crate) fn all(&self) -> Vec<Repeat> {
        self.all.borrow().clone()
    }

    /// Runs a turn until it succeeds.
    ///
    /// # Panics
    /// Panics with the reason if the last try fails, too.
    pub(crate) fn turn<T>(&self, what: &str, mut turn: impl FnMut() -> Outcome<T>) -> T {
        for _ in 1..TRIES {
            match turn() {
                Ok(measured) => return measured,
                Err(failure) => self.note(what, failure),
            }
        }
        turn().unwrap_or_else(|failure| {
            panic!("{what}: this turn failed {TRIES} times. The last time, {failure}")
        })
    }

    fn note(&self, what: &str, failure: Failure) {
        self.progress.suspend(|| eprintln!("{what}: this turn is repeated, because {failure}"));
        self.all.borrow_mut().push(Repeat { what: what.to_owned(), failure });
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn failure(number: usize) -> Failure {
        Failure { system: System::Redisson, why: format!("has ended ({number})") }
    }

    /// Runs a turn that fails this number of times. Returns its result, the number of tries, and the repeats.
    fn failing(times: usize) -> (Result<(), String>, usize, Vec<Repeat>) {
        let repeats = Repeats::new(ProgressBar::hidden());
        let mut tries = 0;
        let turn = || {
            tries += 1;
            if tries > times { Ok(()) } else { Err(failure(tries)) }
        };
        let result = catch_unwind(AssertUnwindSafe(|| repeats.turn("lateness", turn)));
        let result = result.map_err(|panic| panic.downcast_ref::<String>().expect("a sentence").clone());
        (result, tries, repeats.all())
    }

    #[test]
    fn a_turn_is_repeated_until_it_succeeds() {
        let repeat = |number| Repeat { what: "lateness".into(), failure: failure(number) };
        assert_eq!(failing(0), (Ok(()), 1, Vec::new()));
        assert_eq!(failing(1), (Ok(()), 2, vec![repeat(1)]));
        assert_eq!(failing(2), (Ok(()), 3, vec![repeat(1), repeat(2)]));
    }

    #[test]
    fn the_third_failure_of_a_turn_ends_the_measurement() {
        let (result, tries, _) = failing(3);
        let wanted =
            "lateness: this turn failed 3 times. The last time, the worker on Redisson has ended (3)";
        assert_eq!((result.unwrap_err().as_str(), tries), (wanted, 3));
    }
}
