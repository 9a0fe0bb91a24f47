//! What was done with one id, and whether there is an order of the calls that explains every answer.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// A call on an id, and its answer. The jobs are named by their payloads, which are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Stored(i64),
    Replaced(i64),
    /// The id was taken, or there was a job to read or reschedule; or not.
    Found(bool),
    Read(i64),
    Cancelled(bool),
    /// A transfer has moved the job, or a poll has taken it before it was due.
    Moved(i64),
    /// The same of a job that had its id then, or had lost it before.
    MovedPerhapsWithoutId(i64),
    /// Somebody has deleted all ids.
    Forgotten,
    /// Those whose outcome is unknown.
    MayStore(i64),
    MayReplace(i64),
    MayCancel,
    /// From then on, a poll may have taken the job before it was due, and lost the reply. Then the job is
    /// pending again, or delivered, sooner or later.
    MayPoll,
    /// Nothing was done.
    Nothing,
}

/// Nobody knows the number of this job.
const ANY: i64 = -1;

impl Call {
    /// The pending job after this call, if the call may have had this answer.
    fn after(self, pending: Option<i64>) -> Option<Option<i64>> {
        let is_possible = match self {
            Self::Stored(_) | Self::MayStore(_) => pending.is_none(),
            Self::Replaced(_) | Self::MayCancel => pending.is_some(),
            Self::Found(is_found) | Self::Cancelled(is_found) => pending.is_some() == is_found,
            Self::Read(number) | Self::Moved(number) => pending == Some(number),
            Self::MayReplace(_) | Self::MovedPerhapsWithoutId(_) | Self::Forgotten => true,
            Self::MayPoll | Self::Nothing => true,
        };
        is_possible.then_some(match self {
            Self::Stored(number)
            | Self::Replaced(number)
            | Self::MayStore(number)
            | Self::MayReplace(number) => Some(number),
            Self::Found(_) | Self::Read(_) | Self::MayPoll | Self::Nothing => pending,
            Self::MovedPerhapsWithoutId(number) => pending.filter(|pending| *pending != number),
            Self::Cancelled(_) | Self::MayCancel | Self::Moved(_) | Self::Forgotten => None,
        })
    }

    /// Whether it may change something later if it changes nothing now.
    fn depends(self) -> bool {
        matches!(self, Self::MovedPerhapsWithoutId(_) | Self::Forgotten)
    }

    /// The kind of a call of unknown outcome.
    fn unknown(self) -> Option<(usize, Option<i64>)> {
        match self {
            Self::MayStore(number) => Some((0, Some(number))),
            Self::MayReplace(number) => Some((1, Some(number))),
            Self::MayCancel => Some((2, None)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) begun: Instant,
    /// `None` if it may be executed at any later time.
    pub(super) ended: Option<Instant>,
    pub(super) call: Call,
}

/// Some of the events, in an order that explains their answers.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Explained {
    /// A bit for each event whose outcome is known.
    done: Vec<u64>,
    count: usize,
    pending: Option<i64>,
    /// Has been taken by a poll whose reply was lost.
    polled: Option<i64>,
    /// How many events of each kind with an unknown outcome were executed.
    unknown: [usize; 3],
}

impl Explained {
    fn has(&self, event: usize) -> bool {
        self.done[event / 64] >> (event % 64) & 1 == 1
    }

    fn with(&self, event: usize, pending: Option<i64>) -> Self {
        let mut next = Self { pending, count: self.count + 1, ..self.clone() };
        next.done[event / 64] |= 1 << (event % 64);
        next
    }
}

/// More orders are not tried.
const MOST: usize = 300_000;

/// Looks for an order of the events in which each call finds what its answer says. A call that has ended
/// comes before those that begin later. So a job is delivered, replaced or cancelled, and never two of these;
/// and no id is taken by nothing.
///
/// # Errors
/// Fails with the events that nothing explains.
pub(super) fn explain(mut events: Vec<Event>) -> Result<(), String> {
    let polls = events.iter().filter(|event| event.call == Call::MayPoll).map(|event| event.begun).min();
    events.retain(|event| ![Call::Nothing, Call::MayPoll].contains(&event.call));
    // When each job was seen.
    let mut seen = HashMap::new();
    for event in &events {
        if let (Call::Moved(number) | Call::MovedPerhapsWithoutId(number) | Call::Read(number), Some(ended)) =
            (event.call, event.ended)
        {
            let first = seen.entry(number).or_insert(ended);
            *first = ended.min(*first);
        }
    }
    // An offer of unknown outcome was executed if its job was seen. The others are alike: an earlier one
    // explains more.
    let mut unknown = [const { Vec::new() }; 3];
    let mut known = Vec::new();
    for event in events {
        match event.call.unknown() {
            None => known.push(event),
            Some((kind, number)) => match number.and_then(|number| seen.get(&number)) {
                Some(ended) => known.push(Event { ended: Some(*ended), ..event }),
                None => unknown[kind].push(event.begun),
            },
        }
    }
    unknown.iter_mut().for_each(|kind| kind.sort());
    known.sort_by_key(|event| event.ended);
    let done = vec![0; known.len().div_ceil(64)];
    let start = Explained { done, count: 0, pending: None, polled: None, unknown: [0; 3] };
    let (mut stack, mut tried) = (vec![start.clone()], HashSet::new());
    let mut farthest = start;
    while let Some(now) = stack.pop() {
        if now.count > farthest.count {
            farthest = now.clone();
        }
        if now.count == known.len() {
            return Ok(());
        }
        if tried.len() > MOST {
            return Err(format!("no order was found within {MOST} tries: {}", left(&known, &farthest)));
        }
        if !tried.insert(now.clone()) {
            continue;
        }
        let first_end =
            known.iter().enumerate().filter(|(at, _)| !now.has(*at)).find_map(|(_, one)| one.ended);
        let may_be_next = |begun: Instant| first_end.is_none_or(|end| begun <= end);
        let begin = stack.len();
        let executed = [Call::MayStore(ANY), Call::MayReplace(ANY), Call::MayCancel];
        for (kind, call) in executed.into_iter().enumerate() {
            let next = unknown[kind].get(now.unknown[kind]);
            if next.is_some_and(|begun| may_be_next(*begun))
                && let Some(pending) = call.after(now.pending)
            {
                let mut unknown = now.unknown;
                unknown[kind] += 1;
                stack.push(Explained { pending, unknown, ..now.clone() });
            }
        }
        match (now.pending, now.polled) {
            (pending @ Some(_), None) if polls.is_some_and(may_be_next) => {
                stack.push(Explained { pending: None, polled: pending, ..now.clone() });
            }
            (None, polled @ Some(_)) => {
                stack.push(Explained { pending: polled, polled: None, ..now.clone() })
            }
            _ => {}
        }
        for (at, event) in known.iter().enumerate().rev() {
            if now.has(at) || !may_be_next(event.begun) {
                continue;
            }
            if matches!(event.call, Call::Moved(number) if now.polled == Some(number)) {
                stack.push(Explained { polled: None, ..now.with(at, now.pending) });
            }
            if let Some(pending) = event.call.after(now.pending) {
                // What may come next may come after a call that changes nothing, too.
                let changes_nothing = pending == now.pending && !event.call.depends();
                if changes_nothing {
                    stack.truncate(begin);
                }
                stack.push(now.with(at, pending));
                if changes_nothing {
                    break;
                }
            }
        }
    }
    Err(left(&known, &farthest))
}

/// The events around those that nothing explains.
fn left(known: &[Event], farthest: &Explained) -> String {
    let first = known.iter().map(|event| event.begun).min();
    let line = |at: usize| {
        let event = known[at];
        let micros = |time: Instant| first.map_or(0, |first| (time - first).as_micros());
        let mark = if farthest.has(at) { "explained" } else { "not explained" };
        format!("{mark}: {:?} from {} to {:?}\n", event.call, micros(event.begun), event.ended.map(micros))
    };
    let at = (0..known.len()).find(|at| !farthest.has(*at)).unwrap_or(0);
    let around: String = (at.saturating_sub(12)..(at + 12).min(known.len())).map(line).collect();
    format!(
        "{} of {} explained, then {:?} is pending\n{around}",
        farthest.count,
        known.len(),
        farthest.pending
    )
}

#[test]
fn answers_are_explained_or_not() {
    use Call::*;
    let start = Instant::now();
    let explains = |rows: &[(u64, Option<u64>, Call)]| {
        let at = |ms| start + redelay_support::ms(ms);
        let event = |&(begun, ended, call): &(u64, Option<u64>, Call)| Event {
            begun: at(begun),
            ended: ended.map(at),
            call,
        };
        explain(rows.iter().map(event).collect()).is_ok()
    };
    let one_by_one = |calls: &[Call]| {
        let rows = calls.iter().zip(0..).map(|(call, at)| (2 * at, Some(2 * at + 1), *call));
        explains(&rows.collect::<Vec<_>>())
    };
    assert!(one_by_one(&[Stored(1), Moved(1), Stored(2), Cancelled(true), Stored(3), Moved(3)]));
    assert!(one_by_one(&[Stored(1), Found(true), Replaced(2), Read(2), Moved(2), Found(false)]));
    assert!(one_by_one(&[Stored(1), Cancelled(true), Cancelled(false), Stored(2)]));
    for wrong in [
        &[Stored(1), Stored(2)][..],
        &[Stored(1), Moved(1), Moved(1)],
        &[Stored(1), Replaced(2), Moved(1)],
        &[Stored(1), Cancelled(true), Moved(1)],
        &[Stored(1), Cancelled(false)],
        &[Stored(1), Moved(1), Found(true)],
        &[Stored(1), Found(true), Moved(2)],
        &[Replaced(1)],
        &[Stored(1), Replaced(2), Read(1)],
    ] {
        assert!(!one_by_one(wrong), "{wrong:?}");
    }
    // At the same time.
    assert!(explains(&[(0, Some(9), Cancelled(true)), (1, Some(2), Found(false)), (3, Some(4), Stored(1))]));
    assert!(explains(&[(0, Some(9), Stored(1)), (1, Some(8), Replaced(2)), (2, Some(7), Moved(2))]));
    assert!(explains(&[(0, Some(9), Stored(1)), (1, Some(8), Stored(2)), (2, Some(7), Moved(2))]));
    assert!(!explains(&[(0, Some(9), Stored(1)), (1, Some(8), Stored(2)), (2, Some(7), Found(true))]));
    // A poll whose reply was lost.
    let polled = |rest: &[(u64, Option<u64>, Call)]| {
        explains(&[&[(0, Some(1), Stored(1)), (2, None, MayPoll), (3, Some(4), Found(false))], rest].concat())
    };
    assert!(polled(&[(5, Some(6), Read(1)), (7, Some(8), Moved(1))]), "it is pending again");
    assert!(polled(&[(5, Some(6), Stored(2)), (7, Some(8), Read(2)), (9, Some(10), Moved(1))]));
    assert!(polled(&[]) && !polled(&[(5, Some(6), Moved(1)), (7, Some(8), Found(true))]));
    // An outcome that is unknown.
    assert!(
        explains(&[(0, None, MayStore(1))]) && explains(&[(0, None, MayStore(1)), (1, Some(9), Moved(1))])
    );
    assert!(explains(&[(0, None, MayStore(1)), (1, Some(2), Stored(2)), (3, Some(4), Moved(2))]));
    assert!(explains(&[(0, None, MayStore(1)), (1, Some(2), Replaced(2)), (3, Some(4), Moved(2))]));
    assert!(!explains(&[(3, None, MayStore(1)), (1, Some(2), Replaced(2))]), "it begins later");
    assert!(explains(&[(0, Some(1), Stored(1)), (2, None, MayCancel), (3, Some(4), Stored(2))]));
    assert!(!explains(&[(0, Some(1), Stored(1)), (2, None, MayStore(2)), (3, Some(4), Stored(3))]));
    assert!(!explains(&[
        (0, Some(1), Stored(1)),
        (2, None, MayCancel),
        (3, Some(4), Stored(2)),
        (5, Some(6), Moved(1)),
        (7, Some(8), Moved(2))
    ]));
}
