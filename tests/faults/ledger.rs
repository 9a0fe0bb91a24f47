//! Who knows what was promised, and judges what came. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What an offer said in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    Acknowledged,
    /// It may have been stored, or not.
    Unknown,
    /// It said that nothing was stored.
    Refused,
}

/// What happened in a run, by the numbers that were the payloads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) offered: BTreeMap<i64, Offered>,
    /// Those for which `cancel` has said that they will not come ...
    pub(crate) cancelled: BTreeSet<i64>,
    /// ... and those for which it could not say.
    pub(crate) perhaps_cancelled: BTreeSet<i64>,
    /// In any order; and what is found on the server when all clients have gone.
    pub(crate) taken: Vec<i64>,
}

/// What the faults of a run may cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Price {
    /// How many blocking pops died with their connections: each may have taken one payload with it.
    pub(crate) dead_pops: usize,
    /// Whether the server has forgotten what it had stored.
    pub(crate) forgot: bool,
}

/// What is wrong with a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) lost: Vec<i64>,
    pub(crate) doubled: Vec<i64>,
    /// Came, though the offer was refused or cancelled, or there was none.
    pub(crate) uncalled: Vec<i64>,
    pub(crate) is_too_dear: bool,
}

impl Record {
    pub(crate) fn judge(&self, price: Price) -> Verdict {
        let mut times = BTreeMap::<i64, usize>::new();
        for number in &self.taken {
            *times.entry(*number).or_default() += 1;
        }
        let numbers = |wanted: &dyn Fn(i64, usize) -> bool| {
            let found = times.iter().filter(|(number, times)| wanted(**number, **times));
            found.map(|(number, _)| *number).collect::<Vec<_>>()
        };
        let may_come = |number: i64| {
            matches!(self.offered.get(&number), Some(Offered::Acknowledged | Offered::Unknown))
                && !self.cancelled.contains(&number)
        };
        let lost: Vec<_> = self.must_come().filter(|number| !times.contains_key(number)).collect();
        Verdict {
            is_too_dear: !price.forgot && lost.len() > price.dead_pops,
            lost,
            doubled: numbers(&|_, times| times > 1),
            uncalled: numbers(&|number, _| !may_come(number)),
        }
    }

    /// What has to be delivered.
    fn must_come(&self) -> impl Iterator<Item = i64> {
        let acknowledged = self.offered.iter().filter(|(_, offered)| **offered == Offered::Acknowledged);
        acknowledged
            .map(|(number, _)| *number)
            .filter(|number| !self.cancelled.contains(number) && !self.perhaps_cancelled.contains(number))
    }

    pub(crate) fn count(&self, wanted: Offered) -> usize {
        self.offered.values().filter(|offered| **offered == wanted).count()
    }
}

impl Verdict {
    pub(crate) fn is_good(&self) -> bool {
        !self.is_too_dear && self.doubled.is_empty() && self.uncalled.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, doubled, uncalled, is_too_dear } = self;
        let dear = if *is_too_dear { " (more than faults can explain)" } else { "" };
        write!(f, "lost{dear}: {lost:?}, doubled: {doubled:?}, uncalled: {uncalled:?}")
    }
}

#[test]
fn judgements() {
    use Offered::{Acknowledged, Refused, Unknown};
    let record = |taken: &[i64]| Record {
        offered: [(1, Acknowledged), (2, Unknown), (3, Refused), (4, Acknowledged), (5, Acknowledged)].into(),
        cancelled: [4].into(),
        perhaps_cancelled: [5].into(),
        taken: taken.to_vec(),
    };
    let (nothing, one) = (Price::default(), Price { dead_pops: 1, forgot: false });
    let forgot = Price { dead_pops: 0, forgot: true };
    // What was taken, the price, and what is lost, doubled, uncalled; and whether that is good.
    type Row<'a> = (&'a [i64], Price, [&'a [i64]; 3], bool);
    let rows: [Row<'_>; 10] = [
        (&[1], nothing, [&[], &[], &[]], true),
        (&[1, 2, 5], nothing, [&[], &[], &[]], true),
        (&[2], nothing, [&[1], &[], &[]], false),
        (&[2], one, [&[1], &[], &[]], true),
        (&[], forgot, [&[1], &[], &[]], true),
        (&[1, 1], one, [&[], &[1], &[]], false),
        (&[1, 2, 2], forgot, [&[], &[2], &[]], false),
        (&[1, 3], nothing, [&[], &[], &[3]], false),
        (&[1, 4], nothing, [&[], &[], &[4]], false),
        (&[1, 6], nothing, [&[], &[], &[6]], false),
    ];
    for (taken, price, [lost, doubled, uncalled], good) in rows {
        let verdict = record(taken).judge(price);
        assert_eq!(
            (&verdict.lost[..], &verdict.doubled[..], &verdict.uncalled[..]),
            (lost, doubled, uncalled),
            "{taken:?}"
        );
        assert_eq!(verdict.is_good(), good, "{taken:?} {price:?}");
    }
}
