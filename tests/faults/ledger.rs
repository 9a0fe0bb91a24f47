//! Compares what was promised with what arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use redelay::{Error, ErrorKind, Ticket};
use redelay_fixture::Server;
use redelay_support::{ORDERED_LIST, Queues};

/// The result of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// None: it has not ended, or its future was dropped.
    Begun,
    Acknowledged,
    /// It may have been stored.
    Unknown,
    /// It reported that nothing was stored.
    Refused,
}

/// The events of a run. The payloads are numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) offered: BTreeMap<i64, Offered>,
    /// Entries that `cancel` reported as cancelled ...
    pub(crate) cancelled: BTreeSet<i64>,
    /// ... and those for which its outcome is unknown.
    pub(crate) perhaps_cancelled: BTreeSet<i64>,
    /// In the order of arrival, followed by what is left on the server when all clients have ended.
    pub(crate) taken: Vec<i64>,
    /// The number of taker calls that ended with an error.
    pub(crate) failed_takes: usize,
}

/// The losses that the faults of a run may cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Price {
    /// The number of blocking pops that were lost with their connections. Each may have lost one payload.
    pub(crate) dead_pops: usize,
    /// Whether the server may have lost stored data.
    pub(crate) forgot: bool,
}

/// The faults found in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) lost: Vec<i64>,
    pub(crate) doubled: Vec<i64>,
    /// Delivered, although the offer was refused or cancelled, or there was none.
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
            matches!(
                self.offered.get(&number),
                Some(Offered::Begun | Offered::Acknowledged | Offered::Unknown)
            ) && !self.cancelled.contains(&number)
        };
        let lost: Vec<_> = self.must_come().filter(|number| !times.contains_key(number)).collect();
        Verdict {
            is_too_dear: !price.forgot && lost.len() > price.dead_pops,
            lost,
            doubled: numbers(&|_, times| times > 1),
            uncalled: numbers(&|number, _| !may_come(number)),
        }
    }

    /// The payloads that have to be delivered.
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

/// A record that is being written. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    record: Arc<Mutex<Record>>,
    next: Arc<AtomicI64>,
}

impl Ledger {
    /// The numbers of the offers begin here.
    pub(crate) fn starting_at(first: i64) -> Self {
        Self { next: Arc::new(first.into()), ..Self::default() }
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("nobody panics meanwhile")
    }

    /// Returns `count` consecutive unused numbers, recorded as offers that have begun.
    pub(crate) fn begin(&self, count: i64) -> Vec<i64> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        let numbers: Vec<_> = (first..first + count).collect();
        self.end(&numbers, Offered::Begun);
        numbers
    }

    pub(crate) fn end(&self, numbers: &[i64], offered: Offered) {
        self.record().offered.extend(numbers.iter().map(|number| (*number, offered)));
    }

    pub(crate) fn took(&self, numbers: impl IntoIterator<Item = i64>) {
        self.record().taken.extend(numbers);
    }

    /// Makes one offer, and records its result.
    pub(crate) async fn offer(&self, queues: &Queues<i64>, delay: Duration) -> Option<(i64, Ticket)> {
        let number = self.begin(1)[0];
        let offered = queues.delayed.offer(&number, delay).await;
        self.end(&[number], outcome(&offered));
        Some((number, offered.ok()?))
    }
}

/// # Panics
/// Panics on an error that no fault explains.
pub(crate) fn outcome<T>(result: &redelay::Result<T>) -> Offered {
    match result.as_ref().map_err(Error::kind) {
        Ok(_) => Offered::Acknowledged,
        Err(ErrorKind::OutcomeUnknown) => Offered::Unknown,
        // Out of memory and a wrong type are refusals.
        Err(ErrorKind::Unavailable | ErrorKind::Refused) => Offered::Refused,
        Err(_) => panic!("{:?}", result.as_ref().map(drop)),
    }
}

/// The payloads that are ready in these lists or pending for `q` when all clients have ended.
pub(crate) fn left(server: &Server, lists: &[&str]) -> Vec<i64> {
    let mut payloads: Vec<_> = lists.iter().flat_map(|list| server.list(list)).collect();
    payloads.extend(server.list(ORDERED_LIST).iter().map(|entry| {
        let is_legacy = entry[8..16] == (entry.len() as u64 - 16).to_le_bytes();
        if is_legacy { entry[16..].to_vec() } else { entry[25..].to_vec() }
    }));
    payloads.iter().map(|payload| String::from_utf8_lossy(payload).parse().expect("a number")).collect()
}

#[test]
fn judgements() {
    use Offered::{Acknowledged, Begun, Refused, Unknown};
    let record = |taken: &[i64]| Record {
        offered: [
            (1, Acknowledged),
            (2, Unknown),
            (3, Refused),
            (4, Acknowledged),
            (5, Acknowledged),
            (7, Begun),
        ]
        .into(),
        cancelled: [4].into(),
        perhaps_cancelled: [5].into(),
        taken: taken.to_vec(),
        failed_takes: 0,
    };
    let (nothing, one) = (Price::default(), Price { dead_pops: 1, forgot: false });
    let forgot = Price { dead_pops: 0, forgot: true };
    // Taken, allowed losses, [lost, duplicated, unexpected], and whether that is acceptable.
    type Row<'a> = (&'a [i64], Price, [&'a [i64]; 3], bool);
    let rows: [Row<'_>; 10] = [
        (&[1], nothing, [&[], &[], &[]], true),
        (&[1, 2, 5, 7], nothing, [&[], &[], &[]], true),
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
