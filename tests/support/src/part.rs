//! Splits repetitions over several runs.

use std::env;

/// A part of the repetitions: of seeded plans, and of repeated rounds.
///
/// `REDELAY_PART=2/3` runs the second of three parts. `make test` gives each server a part, so that each plan
/// runs once, and each kind of fault happens on each server. Without the variable everything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    number: u64,
    of: u64,
}

impl Part {
    /// One part of several; the first has the number 0.
    #[must_use]
    pub fn new(number: u64, of: u64) -> Self {
        assert!(number < of, "there is no part {number} of {of}");
        Self { number, of }
    }

    /// Whether a plan belongs to it.
    #[must_use]
    pub fn has(self, plan: u64) -> bool {
        plan % self.of == self.number
    }

    /// Its share of `count` equal repetitions.
    #[must_use]
    pub fn share(self, count: usize) -> usize {
        count.div_ceil(self.of as usize)
    }

    /// Whether the other servers have their own parts.
    #[must_use]
    pub fn is_one_of_several(self) -> bool {
        self.of > 1
    }
}

/// How often a test repeats what is not the same each time: once, or as `REDELAY_ROUNDS` says.
///
/// # Panics
/// Panics if the variable is not a number.
#[must_use]
pub fn rounds() -> usize {
    let number = |text: String| text.parse().unwrap_or_else(|_| panic!("REDELAY_ROUNDS={text} is no number"));
    env::var("REDELAY_ROUNDS").map_or(1, number)
}

/// Whether tests are repeated: `make soak` does it, with the machine for itself. So there is time for more of
/// the same, and for limits that a busy machine would exceed.
#[must_use]
pub fn is_soak() -> bool {
    rounds() > 1
}

/// The seed of what a test makes up: `REDELAY_SEED`, or a random one if [tests are repeated](is_soak), or
/// else always the same. Prints it.
///
/// # Panics
/// Panics if the variable is not a number.
#[must_use]
pub fn seed() -> u64 {
    let number = |text: String| text.parse().unwrap_or_else(|_| panic!("REDELAY_SEED={text} is no number"));
    let usual = if is_soak() { fastrand::u64(..) } else { 1 };
    let seed = env::var("REDELAY_SEED").map_or(usual, number);
    println!("REDELAY_SEED={seed}");
    seed
}

/// The part that `REDELAY_PART` asks for.
///
/// # Panics
/// Panics if the variable is not of the form `2/3`.
#[must_use]
pub fn part() -> Part {
    let Ok(text) = env::var("REDELAY_PART") else { return Part::new(0, 1) };
    let numbers =
        text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((number, of)) if (1..=of).contains(&number) => Part::new(number - 1, of),
        _ => panic!("REDELAY_PART={text}: it should be like 2/3"),
    }
}
