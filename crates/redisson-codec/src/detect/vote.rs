//! [`Detector`]: the codec of a queue, from several payloads.

use std::collections::BTreeMap;
use std::fmt;

use super::format::Format;
use super::rules::{Candidate, Reason, candidates};

/// Names the codec of a queue from several of its payloads. Three are enough nearly always, ten always.
///
/// Each payload speaks for its candidates by their reasons, and a format that cannot read one of the payloads
/// is out. It keeps the candidates of the payloads, not the payloads.
///
/// # Examples
/// ```
/// use redisson_codec::detect::{Detector, Format, Kind};
///
/// let mut queue = Detector::new();
/// // Each of them alone could be another codec's.
/// for payload in [&b"\x65order"[..], b"\x18\x2a", b"\xf6"] {
///     queue.add(payload);
/// }
/// let verdicts = queue.verdicts();
/// assert_eq!(verdicts[0].format, Format::Plain(Kind::CborJackson));
/// assert_eq!(verdicts[0].payloads, 3);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Detector {
    /// How many payloads had these candidates.
    ballots: Vec<(Vec<Candidate>, usize)>,
}

/// The codec of some payloads of a queue.
///
/// Prints as `json`, or as `long (or int, string)` if it is tied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// The most likely format.
    pub format: Format,
    /// Formats that are as likely.
    pub tied: Vec<Format>,
    /// How many payloads it is the verdict on.
    pub payloads: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tied.is_empty() {
            return self.format.fmt(f);
        }
        let tied: Vec<_> = self.tied.iter().map(Format::to_string).collect();
        write!(f, "{} (or {})", self.format, tied.join(", "))
    }
}

/// What speaks for a format.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// How many payloads it reads.
    reads: usize,
    /// Of these, for how many it is more than weak.
    likely: usize,
    /// The sum of its reasons.
    reasons: usize,
    /// The sum of its places among the candidates.
    places: usize,
}

impl Detector {
    /// A detector that has seen no payload.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a payload of the queue.
    pub fn add(&mut self, payload: &[u8]) {
        let mut found = candidates(payload);
        // A signature excludes what reads anything.
        if found.first().is_some_and(|best| best.reason == Reason::Magic) {
            found.retain(|candidate| candidate.reason > Reason::Weak);
        }
        match self.ballots.iter_mut().find(|(known, _)| *known == found) {
            Some((_, count)) => *count += 1,
            None => self.ballots.push((found, 1)),
        }
    }

    /// The codec of the queue: one verdict on all payloads. There are several if no format reads all of them,
    /// the one with most payloads first: the queue has payloads of several codecs. There is none if no
    /// payload was added.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::detect::Detector;
    ///
    /// let mut queue = Detector::new();
    /// assert!(queue.verdicts().is_empty());
    /// for payload in [&b"\x09\x10"[..], b"\x03ope\xee", br#"["java.lang.Long",8]"#] {
    ///     queue.add(payload);
    /// }
    /// let verdicts: Vec<_> = queue.verdicts().iter().map(ToString::to_string).collect();
    /// assert_eq!(verdicts, ["kryo5", "json-jackson"]);
    /// ```
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut left: Vec<&(Vec<Candidate>, usize)> = self.ballots.iter().collect();
        let mut verdicts = Vec::new();
        while let Some(verdict) = best(&left) {
            left.retain(|(candidates, _)| !reads(candidates, verdict.format));
            verdicts.push(verdict);
        }
        verdicts.sort_by_key(|verdict| std::cmp::Reverse(verdict.payloads));
        verdicts
    }
}

fn reads(candidates: &[Candidate], format: Format) -> bool {
    candidates.iter().any(|candidate| candidate.format == format)
}

/// The format that most of them may have.
fn best(ballots: &[&(Vec<Candidate>, usize)]) -> Option<Verdict> {
    let mut tallies: BTreeMap<Format, Tally> = BTreeMap::new();
    let mut all = 0;
    for (candidates, count) in ballots {
        all += count;
        for (place, candidate) in candidates.iter().enumerate() {
            let tally = tallies.entry(candidate.format).or_default();
            tally.reads += count;
            tally.likely += if candidate.reason > Reason::Weak { *count } else { 0 };
            tally.reasons += count * candidate.reason as usize;
            tally.places += count * place;
        }
    }
    // What reads everything is nothing that speaks for it.
    let whole = |tally: &Tally| tally.reads == all && tally.likely > 0;
    let merit = |tally: &Tally| (whole(tally), tally.likely, tally.reads, tally.reasons);
    let most = tallies.values().map(merit).max()?;
    let mut tied: Vec<_> = tallies.iter().filter(|(_, tally)| merit(tally) == most).collect();
    tied.sort_by_key(|(_, tally)| tally.places);
    let mut tied = tied.into_iter().map(|(format, tally)| (*format, tally.reads));
    let (format, payloads) = tied.next()?;
    Some(Verdict { format, tied: tied.map(|(format, _)| format).collect(), payloads })
}
