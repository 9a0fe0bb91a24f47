//! Compares what was promised with what arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use redelay::delayed_queue::Ticket;
use redelay::{Error, ErrorKind};
use redelay_fixture::Server;
use redelay_support::{CLAIMS, ORDERED_LIST, Queues};

use crate::deliveries::Deliveries;
use crate::server_clock::ServerClock;

/// Returns the payloads in all claims, and the entries in those of polls. `src/scripts/parts/claims.lua` has
/// the format.
const UNCONFIRMED: &str = "local payloads, entries = {}, {}
    for _, copy in ipairs(redis.call('HVALS', KEYS[1])) do
        local kind, _, popped = unpack(cmsgpack.unpack(copy))
        for i = 1, #popped, kind == 'poll' and 2 or 1 do
            table.insert(kind == 'poll' and entries or payloads, popped[i])
        end
    end
    return {payloads, entries}";
/// The most payloads that a plan's client returns in one call.
const MOST_RETURNED: usize = 100;
/// By how much two readings of the same clock may differ.
const TOLERANCE: Duration = Duration::from_millis(2);

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
    /// When each became ready, at the latest. What was taken before it was due has no time.
    pub(crate) ready_by: BTreeMap<i64, SystemTime>,
    /// The times of the offers whose delays are known.
    pub(crate) times: BTreeMap<i64, Times>,
    /// When the receipts of offers were lost, at the earliest and at the latest: a server without append-only
    /// file was ended, or somebody has deleted them.
    pub(crate) receipt_losses: Vec<(SystemTime, SystemTime)>,
    /// What only a deleted key may have had.
    pub(crate) deleted: BTreeSet<i64>,
    /// How many receipts of returns were deleted.
    pub(crate) returns_deleted: usize,
    /// What the server's clock showed.
    pub(crate) clock: ServerClock,
    /// The number of taker calls that ended with an error.
    pub(crate) failed_takes: usize,
    /// How many pops of another library were given up. Each may have lost one payload.
    pub(crate) given_up_elsewhere: usize,
    /// What receivers and workers did.
    pub(crate) deliveries: Deliveries,
    /// Numbers that a receiver has put off for an hour.
    pub(crate) waited: BTreeSet<i64>,
}

/// The times of one offer, by the clock of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) begun: SystemTime,
    pub(crate) delay: Duration,
    pub(crate) ended: Option<SystemTime>,
    /// The due time of its ticket, by the server's clock.
    pub(crate) due: Option<SystemTime>,
}

/// The losses that the faults of a run may cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Price {
    /// The number of blocking pops that were lost with their connections. Each may have lost one payload.
    pub(crate) dead_pops: usize,
    /// Whether the server may have lost stored data.
    pub(crate) forgot: bool,
    /// Whether it may have refused a command of a script, so that the script was not done or half done.
    pub(crate) refused: bool,
    /// Whether a failover may have undone what no replica had confirmed: claims and transfers, but neither
    /// offers nor settlements that were answered.
    pub(crate) undone: bool,
    /// There were no faults, so everything can be counted.
    pub(crate) exact: bool,
}

/// The faults found in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) lost: Vec<i64>,
    pub(crate) doubled: Vec<i64>,
    /// What happened to each of those that are doubled, uncalled or early, and of those that should not be
    /// lost.
    pub(crate) stories: Vec<String>,
    /// Delivered, although the offer was refused or cancelled, or there was none.
    pub(crate) uncalled: Vec<i64>,
    /// Delivered before the server's clock had reached the due time, or with a ticket whose due time is too
    /// early.
    pub(crate) early: Vec<i64>,
    /// Deliveries that nothing explains.
    pub(crate) wrong: Vec<String>,
    pub(crate) is_too_dear: bool,
}

impl Record {
    /// How often payloads have arrived.
    pub(crate) fn arrivals(&self) -> usize {
        self.taken.len() + self.deliveries.count()
    }

    pub(crate) fn judge(&self, price: Price) -> Verdict {
        let mut times = BTreeMap::<i64, usize>::new();
        for number in &self.taken {
            *times.entry(*number).or_default() += 1;
        }
        for number in self.deliveries.arrived() {
            times.entry(number).or_default();
        }
        for (number, times) in &mut times {
            *times += self.deliveries.certain(*number);
        }
        let numbers = |wanted: &dyn Fn(i64, usize) -> bool| {
            let found = times.iter().filter(|(number, times)| wanted(**number, **times));
            found.map(|(number, _)| *number).collect::<Vec<_>>()
        };
        let may_come = |number: i64| {
            let Some(offered) = self.offered.get(&number) else { return false };
            let may_be_gone = *offered == Offered::Refused || self.cancelled.contains(&number);
            // It was delivered before its offer was stored again, or refused then, or cancelled after that.
            !may_be_gone || self.may_be_stored_again(number)
        };
        let is_missing = |number: &i64| !times.contains_key(number) && !self.deleted.contains(number);
        let lost: Vec<_> = self.must_come().filter(is_missing).collect();
        let mut doubled = numbers(&|number, times| times > 1 && !self.may_be_stored_again(number));
        if doubled.len() <= MOST_RETURNED * self.returns_deleted {
            doubled.clear();
        }
        let mut uncalled = numbers(&|number, _| !may_come(number));
        uncalled.extend(self.deliveries.numbers().filter(|number| !may_come(*number)));
        let is_too_dear = !price.forgot && lost.len() > price.dead_pops + self.given_up_elsewhere;
        let too_dear = lost.iter().filter(|_| is_too_dear);
        let early: Vec<_> = self.early(price).collect();
        let told = doubled.iter().chain(&uncalled).chain(&early).chain(too_dear);
        let stories = told.map(|number| self.story(*number)).collect();
        Verdict {
            is_too_dear,
            lost,
            wrong: if price.forgot {
                Vec::new()
            } else {
                let may_be_twice = |number| self.returns_deleted > 0 || self.may_be_stored_again(number);
                self.deliveries.judge(price, &may_be_twice)
            },
            doubled,
            stories,
            uncalled,
            early,
        }
    }

    /// The payloads that have to be delivered.
    fn must_come(&self) -> impl Iterator<Item = i64> {
        let acknowledged = self.offered.iter().filter(|(_, offered)| **offered == Offered::Acknowledged);
        acknowledged
            .map(|(number, _)| *number)
            .filter(|number| !self.cancelled.contains(number) && !self.perhaps_cancelled.contains(number))
    }

    fn early(&self, price: Price) -> impl Iterator<Item = i64> {
        let times = self.times.iter().filter(move |(number, times)| self.is_early(**number, times, price));
        times.map(|(number, _)| *number)
    }

    /// Whether a try of its offer may have been executed before its receipt was lost, and another one after
    /// that.
    fn may_be_stored_again(&self, number: i64) -> bool {
        let Some(times) = self.times.get(&number) else { return false };
        self.receipt_losses
            .iter()
            .any(|(from, to)| times.begun <= *to && times.ended.is_none_or(|ended| ended >= *from))
    }

    fn is_early(&self, number: i64, times: &Times, price: Price) -> bool {
        if self.may_be_stored_again(number) {
            return false;
        }
        // A delay counts from the first try at the earliest, by a clock that may have been set until the
        // reply came.
        let ready_by = self.ready_by.get(&number);
        let Some(ended) = times.ended.or(ready_by.copied()) else { return false };
        let least = self.clock.lowest_of(times.begun, ended) + times.delay - TOLERANCE;
        let due = times.due.unwrap_or(least);
        // A failover may have undone a first try and its delivery: then the ticket is that of the second.
        let first_due = if price.undone { least } else { due.max(least) };
        // The clock has shown the due time, and may have been set back since.
        let is_early = |ready: &SystemTime| self.clock.highest(times.begun, *ready) + TOLERANCE < first_due;
        due < least || ready_by.is_some_and(is_early)
    }

    /// Whether one of these numbers has been taken or received.
    pub(crate) fn has_any(&self, numbers: &[i64]) -> bool {
        self.taken.iter().copied().chain(self.deliveries.numbers()).any(|number| numbers.contains(&number))
    }

    /// All that is known of this number.
    fn story(&self, number: i64) -> String {
        let (offered, times) = (self.offered.get(&number), self.times.get(&number));
        let taken: Vec<_> = (0..self.taken.len()).filter(|place| self.taken[*place] == number).collect();
        let deliveries = self.deliveries.story(number);
        let ready_by = self.ready_by.get(&number);
        format!(
            "{number}: {offered:?} {times:?}, taken at places {taken:?} of {}, ready by {ready_by:?}, {deliveries}",
            self.taken.len()
        )
    }

    pub(crate) fn count(&self, wanted: Offered) -> usize {
        self.offered.values().filter(|offered| **offered == wanted).count()
    }
}

impl Verdict {
    pub(crate) fn is_good(&self) -> bool {
        let is_right = self.uncalled.is_empty() && self.early.is_empty() && self.wrong.is_empty();
        is_right && !self.is_too_dear && self.doubled.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, doubled, stories, uncalled, early, wrong, is_too_dear } = self;
        let dear = if *is_too_dear { " (more than faults can explain)" } else { "" };
        write!(f, "lost{dear}: {lost:?}, doubled: {doubled:?}, uncalled: {uncalled:?}, early: {early:?}")?;
        stories.iter().chain(wrong).try_for_each(|why| write!(f, "\n{why}"))
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

    /// The same for offers with these delays.
    pub(crate) fn begin_delayed(&self, delays: &[Duration]) -> Vec<i64> {
        let numbers = self.begin(delays.len() as i64);
        let begun = SystemTime::now();
        let times = delays.iter().map(|delay| Times { begun, delay: *delay, ended: None, due: None });
        self.record().times.extend(numbers.iter().copied().zip(times));
        numbers
    }

    pub(crate) fn end(&self, numbers: &[i64], offered: Offered) {
        let mut record = self.record();
        for number in numbers {
            record.offered.insert(*number, offered);
            // A call of unknown outcome may be executed later.
            if offered == Offered::Acknowledged
                && let Some(times) = record.times.get_mut(number)
            {
                times.ended = Some(SystemTime::now());
            }
        }
    }

    /// The due times of tickets.
    fn promised(&self, numbers: &[i64], tickets: &[Ticket]) {
        let mut record = self.record();
        for (number, ticket) in numbers.iter().zip(tickets) {
            if let Some(times) = record.times.get_mut(number) {
                times.due = Some(ticket.due());
            }
        }
    }

    /// Records what was ready and was taken.
    pub(crate) fn took(&self, numbers: impl IntoIterator<Item = i64>) {
        let now = SystemTime::now();
        let mut record = self.record();
        for number in numbers {
            record.taken.push(number);
            record.ready_by.entry(number).or_insert(now);
        }
    }

    /// Records what was pending and was taken.
    pub(crate) fn took_pending(&self, numbers: impl IntoIterator<Item = i64>) {
        self.record().taken.extend(numbers);
    }

    /// Records what is ready in these lists or pending for `q` when all clients have ended.
    pub(crate) fn took_what_is_left(&self, server: &Server, lists: &[&str]) {
        self.took(lists.iter().flat_map(|list| server.list(list)).map(|payload| number(&payload)));
        self.took_pending(server.list(ORDERED_LIST).iter().filter_map(|entry| payload_of(entry)));
    }

    /// What pops have taken and nobody has received: their replies are lost or on their way, and the server
    /// has copies.
    pub(crate) fn unconfirmed(&self, server: &Server) -> Vec<i64> {
        let (payloads, entries): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
            server.get(["EVAL", UNCONFIRMED, "1", CLAIMS]);
        let mut numbers: BTreeSet<_> = payloads.iter().map(|payload| number(payload)).collect();
        numbers.extend(entries.iter().filter_map(|entry| payload_of(entry)));
        let record = self.record();
        for number in record.taken.iter().copied().chain(record.deliveries.numbers()) {
            numbers.remove(&number);
        }
        numbers.into_iter().collect()
    }

    /// Makes one offer, and records its result.
    pub(crate) async fn offer(&self, queues: &Queues<i64>, delay: Duration) -> Option<(i64, Ticket)> {
        let number = self.begin_delayed(&[delay])[0];
        let offered = queues.delayed.offer(&number, delay).await;
        self.end(&[number], outcome(&offered));
        let ticket = offered.ok()?;
        self.promised(&[number], std::slice::from_ref(&ticket));
        Some((number, ticket))
    }

    /// Makes offers in one call, and records their result.
    pub(crate) async fn offer_all(&self, queues: &Queues<i64>, delays: &[Duration]) -> Option<()> {
        let numbers = self.begin_delayed(delays);
        let offered = queues.delayed.offer_all(numbers.iter().zip(delays.iter().copied())).await;
        self.end(&numbers, outcome(&offered));
        self.promised(&numbers, &offered.ok()?);
        Some(())
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

/// The payload of an entry; `None` if it is one of the unreadable entries of a plan.
pub(crate) fn payload_of(entry: &[u8]) -> Option<i64> {
    if entry.iter().all(|byte| *byte == 0xff) {
        return None;
    }
    let after_legacy = (entry.len() as u64).wrapping_sub(16).to_le_bytes();
    let is_legacy = entry.get(8..16) == Some(&after_legacy);
    Some(number(if is_legacy { &entry[16..] } else { &entry[9 + usize::from(entry[0])..] }))
}

pub(crate) fn number(payload: &[u8]) -> i64 {
    String::from_utf8_lossy(payload).parse().expect("a number")
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
        ..Record::default()
    };
    let (nothing, one) = (Price::default(), Price { dead_pops: 1, ..Price::default() });
    let forgot = Price { forgot: true, ..Price::default() };
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

/// Only an offer that was open when the server lost its data may be stored again.
#[test]
fn judgements_of_what_is_stored_again() {
    let at = |ms: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
    let is_good = |ended: Option<u64>, lost: &[u64], is_cancelled: bool| {
        let times = Times { begun: at(100), delay: Duration::ZERO, ended: ended.map(at), due: None };
        let record = Record {
            offered: [(1, Offered::Acknowledged)].into(),
            cancelled: is_cancelled.then_some(1).into_iter().collect(),
            times: [(1, times)].into(),
            taken: if is_cancelled { vec![1] } else { vec![1, 1] },
            receipt_losses: lost.iter().map(|lost| (at(*lost), at(*lost))).collect(),
            ..Record::default()
        };
        record.judge(Price { forgot: true, ..Price::default() }).is_good()
    };
    for is_cancelled in [false, true] {
        for (ended, lost) in [(Some(110), &[][..]), (Some(110), &[99, 111]), (None, &[99])] {
            assert!(!is_good(ended, lost, is_cancelled), "{ended:?} {lost:?}");
        }
        for (ended, lost) in [(Some(110), &[99, 105][..]), (None, &[5_000])] {
            assert!(is_good(ended, lost, is_cancelled), "{ended:?} {lost:?}");
        }
    }
}

#[test]
fn judgements_of_times() {
    let at = |ms: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
    let ms = Duration::from_millis;
    // Offered at 100 with a delay of 50; the reply came at 110.
    let judge = |jumps: &[(u64, i64)], ready: u64, due: Option<u64>, undone: bool| {
        let mut record = Record::default();
        let times = Times { begun: at(100), delay: ms(50), ended: Some(at(110)), due: due.map(at) };
        record.offered.insert(1, Offered::Acknowledged);
        record.times.insert(1, times);
        record.taken.push(1);
        record.ready_by.insert(1, at(ready));
        for (when, offset) in jumps {
            record.clock.begin(at(*when), *offset);
            record.clock.end_previous(at(*when + 2));
        }
        record.judge(Price { undone, ..Price::default() }).early == [1]
    };
    let undone = |ready, due| judge(&[], ready, Some(due), true);
    let record = |jumps: &[(u64, i64)], ready, due| judge(jumps, ready, due, false);
    assert!(record(&[], 140, None) && !record(&[], 149, None), "by a clock that is never set");
    assert!(record(&[], 155, Some(165)) && !record(&[], 170, Some(165)), "by the ticket");
    assert!(record(&[], 170, Some(140)), "the ticket itself");
    assert!(!undone(155, 165) && undone(140, 165) && undone(170, 140), "by the first try");
    assert!(!record(&[(120, 10)], 125, Some(150)), "a jump forward makes it due");
    assert!(record(&[(170, 10)], 125, Some(150)), "but only after the jump");
    assert!(record(&[(120, -1)], 155, Some(150)) && !record(&[(120, -1)], 1155, Some(150)), "a jump back");
    assert!(!record(&[(153, -1)], 160, Some(150)), "a jump back after it was due");
    assert!(!record(&[(105, 3600)], 160, Some(3_600_150)), "a jump during the offer");
    assert!(record(&[(90, 3600)], 140, Some(3_600_150)), "a jump before the offer");
}
