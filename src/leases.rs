//! Which leases to extend when, and which are certainly over. Pure.
//!
//! A lease is safe for its length from the moment when the call that claimed or last extended it was *sent*:
//! the server counted from a later moment. So it needs no clock but this machine's own, which does not jump.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::wire::message::{Member, MessageId};

/// The lease of one delivery, as its handler sees it.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Not over before this.
    safe_until: Mutex<Instant>,
    state: AtomicU8,
    changed: Notify,
}

/// How often in the length of a lease it is checked whether to extend it.
const LOOKS: u32 = 3;

/// A client has asked to cancel the job.
const CANCELLED: u8 = 1;
const OVER: u8 = 2;
const LOST: u8 = 3;

impl Lease {
    fn new(safe_until: Instant) -> Self {
        Self { safe_until: Mutex::new(safe_until), state: AtomicU8::default(), changed: Notify::new() }
    }

    /// Whether it is certainly over, also if it was not checked since: this process may have stood still.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        *self.safe_until() <= now
    }

    fn safe_until(&self) -> MutexGuard<'_, Instant> {
        self.safe_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns until when it is not over now.
    fn extend(&self, until: Instant) -> Instant {
        let mut safe_until = self.safe_until();
        *safe_until = until.max(*safe_until);
        *safe_until
    }

    /// Waits until the work should end: somebody has asked to cancel the job, or the lease is certainly over,
    /// so another receiver may have the message.
    pub(crate) async fn cancelled(&self) {
        self.reaches(CANCELLED).await;
    }

    /// Waits until the server says that this delivery no longer holds.
    pub(crate) async fn lost(&self) {
        self.reaches(LOST).await;
    }

    /// Somebody has asked to cancel the job.
    pub(crate) fn cancel(&self) {
        self.set(CANCELLED);
    }

    /// Whether somebody has asked to cancel the job, and the lease was not over when that was last looked at.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }

    #[cfg(test)]
    fn is_told(&self) -> bool {
        self.state.load(Ordering::Acquire) >= OVER
    }

    async fn reaches(&self, state: u8) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if self.state.load(Ordering::Acquire) >= state {
                return;
            }
            changed.await;
        }
    }

    fn set(&self, state: u8) {
        if self.state.fetch_max(state, Ordering::AcqRel) < state {
            self.changed.notify_waiters();
        }
    }
}

/// A lease to extend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ToExtend {
    pub(crate) member: Member,
    /// The id that the message holds, if it is such a job.
    pub(crate) holds: Option<Bytes>,
}

/// The leases of one receiver.
#[derive(Debug)]
pub(crate) struct Leases {
    length: Duration,
    /// For how long a lease is extended without the handler's doing.
    most: Duration,
    held: HashMap<Member, HeldLease>,
    /// When to look at them again. Leases that are added later need nothing before that.
    next: Option<Instant>,
    /// None is over before this, so that not all of them are looked at for each call. `None`: none that is
    /// not over.
    safe_until: Option<Instant>,
    /// Those that a look has found, and that were not returned yet.
    left: Vec<Member>,
    /// What was announced before this may be missing.
    unheard_until: Option<Instant>,
}

#[derive(Debug)]
struct HeldLease {
    lease: Arc<Lease>,
    holds: Option<Bytes>,
    /// Somebody may have asked to cancel the job, and the server is to say so.
    is_doubtful: bool,
    /// The extension that is on its way tells.
    asked: bool,
    /// Extended until then; `None` if that is later than an instant can be.
    extend_until: Option<Instant>,
    /// An extension is on its way.
    extending: bool,
}

impl Leases {
    pub(crate) fn new(length: Duration, most: Duration) -> Self {
        Self {
            length,
            most,
            held: HashMap::new(),
            next: None,
            safe_until: None,
            left: Vec::new(),
            unheard_until: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// A claim in the reply to a call that was sent at `sent`, and the id that it holds.
    pub(crate) fn add(&mut self, member: Member, holds: Option<Bytes>, sent: Instant) -> Arc<Lease> {
        let lease = Arc::new(Lease::new(sent + self.length));
        let extend_until = sent.checked_add(self.most);
        let is_doubtful = holds.is_some() && self.unheard_until.is_some_and(|until| sent <= until);
        let held = HeldLease {
            lease: lease.clone(),
            holds,
            is_doubtful,
            asked: false,
            extend_until,
            extending: false,
        };
        self.held.insert(member, held);
        let next = if is_doubtful { sent } else { sent + self.length / LOOKS };
        self.next = Some(self.next.map_or(next, |known| known.min(next)));
        self.is_safe_until(sent + self.length);
        lease
    }

    /// The delivery is settled.
    pub(crate) fn remove(&mut self, member: &Member) {
        self.held.remove(member);
        if self.held.is_empty() {
            self.next = None;
        }
    }

    /// What was announced until now may be missing. So the next call extends the leases of jobs that hold
    /// their ids: the reply says which of them somebody has asked to cancel.
    pub(crate) fn on_unheard(&mut self, now: Instant) {
        self.unheard_until = Some(now);
        for held in self.held.values_mut().filter(|held| held.holds.is_some()) {
            held.is_doubtful = true;
            self.next = Some(now);
        }
    }

    /// When to call [`due`](Self::due).
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Tells the handlers whose leases are over. Returns the leases to extend: those that would be over
    /// before the next look but one. Up to `most` of them, the first ones first; the others are due at once.
    pub(crate) fn due(&mut self, now: Instant, most: usize) -> Vec<ToExtend> {
        if self.left.is_empty() {
            self.left = self.found(now);
        }
        let mut extend = Vec::new();
        while extend.len() < most
            && let Some(member) = self.left.pop()
        {
            if let Some(held) = self.held.get_mut(&member).filter(|held| !held.extending) {
                held.extending = true;
                held.asked = std::mem::take(&mut held.is_doubtful);
                extend.push(ToExtend { member, holds: held.holds.clone() });
            }
        }
        let look = now + self.length / LOOKS;
        let look = if self.left.is_empty() { look } else { now };
        let over = self.safe_until;
        self.next = (!self.held.is_empty()).then(|| over.map_or(look, |over| over.min(look)));
        extend
    }

    /// Those that are to be extended now, the first ones last.
    fn found(&mut self, now: Instant) -> Vec<Member> {
        self.look(now);
        let is_due = |held: &HeldLease| {
            let extends = held.extend_until.is_none_or(|until| now < until);
            // At the next look, less than half of it would be left.
            let is_old = held.lease.is_over(now + self.length / LOOKS + self.length / 2);
            // One that the handler has extended for longer, too: that does not change it, unless the server
            // has shortened it because its clock was set back.
            let is_longer = !held.lease.is_over(now + self.length);
            !held.extending && (is_longer || extends && (is_old || held.is_doubtful))
        };
        let due = self.held.iter().filter(|(_, held)| is_due(held));
        let mut due: Vec<_> = due.map(|(member, held)| (*held.lease.safe_until(), *member)).collect();
        due.sort_unstable_by(|one, other| other.cmp(one));
        due.into_iter().map(|(_, member)| member).collect()
    }

    /// Tells the handlers whose leases are over. Returns a time before which no other one is.
    pub(crate) fn end(&mut self, now: Instant) -> Option<Instant> {
        if self.safe_until.is_some_and(|safe_until| safe_until <= now) {
            self.look(now);
        }
        self.safe_until
    }

    fn look(&mut self, now: Instant) {
        let (over, safe): (Vec<_>, Vec<_>) = self.held.values().partition(|held| held.lease.is_over(now));
        over.iter().for_each(|held| held.lease.set(OVER));
        self.safe_until = safe.iter().map(|held| *held.lease.safe_until()).min();
    }

    /// One of them is safe until then.
    fn is_safe_until(&mut self, then: Instant) {
        self.safe_until = Some(self.safe_until.map_or(then, |safe_until| safe_until.min(then)));
    }

    /// The server has extended a lease for the length from `sent` on; or the delivery no longer holds.
    pub(crate) fn on_extended(&mut self, member: &Member, sent: Instant, holds: bool) {
        if !holds {
            if let Some(held) = self.held.remove(member) {
                held.lease.set(LOST);
            }
            if self.held.is_empty() {
                self.next = None;
            }
        } else if let Some(held) = self.held.get_mut(member) {
            held.extending = false;
            let safe_until = held.lease.extend(sent + self.length);
            if held.is_doubtful {
                // The extension was on its way before.
                self.next = Some(sent);
            }
            self.is_safe_until(safe_until);
        }
    }

    /// Somebody has asked to cancel the jobs of these messages.
    pub(crate) fn cancel(&self, mut is_one: impl FnMut(MessageId) -> bool) {
        let cancelled = self.held.iter().filter(|(member, _)| is_one(member.id()));
        cancelled.for_each(|(_, held)| held.lease.cancel());
    }

    /// The call that should have extended it was refused.
    pub(crate) fn on_refused(&mut self, member: &Member) {
        if let Some(held) = self.held.get_mut(member) {
            held.extending = false;
            held.is_doubtful |= held.asked;
        }
    }

    /// The handler has asked for a longer lease, and got it.
    pub(crate) fn on_extended_by_hand(&mut self, member: &Member, safe_until: Instant) {
        if let Some(held) = self.held.get_mut(member) {
            let safe_until = held.lease.extend(safe_until);
            self.is_safe_until(safe_until);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::FutureExt;

    use super::*;
    use crate::wire::message::MessageId;

    const LENGTH: Duration = Duration::from_secs(30);
    const MOST: Duration = Duration::from_secs(1800);
    const ALL: usize = 1000;

    fn member(number: u8) -> Member {
        Member::new(MessageId([number; 16]), 1)
    }

    fn members(extend: Vec<ToExtend>) -> Vec<Member> {
        extend.into_iter().map(|one| one.member).collect()
    }

    fn after(begun: Instant, secs: u64) -> Instant {
        begun + Duration::from_secs(secs)
    }

    #[test]
    fn a_lease_is_extended_every_third_of_its_length() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, MOST);
        assert_eq!(leases.next(), None);
        let lease = leases.add(member(1), None, begun);
        for third in 1..100 {
            let now = after(begun, third * 10);
            assert_eq!(leases.next(), Some(now));
            assert_eq!(members(leases.due(now, ALL)), [member(1)]);
            assert_eq!(leases.due(now, ALL), [], "the extension is on its way");
            leases.on_extended(&member(1), now, true);
        }
        assert!(!lease.is_told());
        leases.remove(&member(1));
        assert_eq!((leases.next(), leases.is_empty()), (None, true));
    }

    #[test]
    fn of_many_that_are_due_the_first_ones_come_first() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, MOST);
        let _held: Vec<_> = (0..9)
            .rev()
            .map(|number| leases.add(member(number), None, after(begun, number.into())))
            .collect();
        let now = after(begun, 24);
        for part in [0..4, 4..8] {
            let mut due = members(leases.due(now, 4));
            due.sort_unstable();
            assert_eq!((due, leases.next()), (part.map(member).collect(), Some(now)));
        }
        assert_eq!(members(leases.due(now, 4)), [member(8)]);
        assert!(leases.next() > Some(now));
        // Those that stay due wait for the next look: here, because the server refuses.
        for number in 0..9 {
            leases.on_refused(&member(number));
        }
        assert!(leases.next() > Some(now));
    }

    #[test]
    fn what_may_be_cancelled_unheard_is_asked_for_once() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, MOST);
        let job = || Some(Bytes::from_static(b"job"));
        let _plain = leases.add(member(1), None, begun);
        let _held = leases.add(member(2), job(), begun);
        leases.on_unheard(after(begun, 1));
        assert_eq!(leases.next(), Some(after(begun, 1)));
        assert_eq!(members(leases.due(after(begun, 1), ALL)), [member(2)]);
        leases.on_extended(&member(2), after(begun, 1), true);
        assert_eq!(leases.due(after(begun, 2), ALL), []);
        // An extension was under way, which may have come before; and one that asked was refused.
        leases.due(after(begun, 20), ALL);
        leases.on_unheard(after(begun, 21));
        assert_eq!(leases.due(after(begun, 21), ALL), []);
        leases.on_extended(&member(2), after(begun, 20), true);
        assert!(leases.next() <= Some(after(begun, 22)));
        assert_eq!(members(leases.due(after(begun, 22), ALL)), [member(2)]);
        leases.on_refused(&member(2));
        assert_eq!(members(leases.due(after(begun, 23), ALL)), [member(2)]);
        // A claim was under way.
        let _early = leases.add(member(3), job(), after(begun, 20));
        let _late = leases.add(member(4), job(), after(begun, 22));
        assert_eq!(members(leases.due(after(begun, 24), ALL)), [member(3)]);
    }

    /// The server may shorten it, and somebody may ask to cancel the job.
    #[test]
    fn a_lease_that_its_handler_has_extended_is_asked_for_until_it_is_as_short_as_any() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, Duration::ZERO);
        let lease = leases.add(member(1), Some(Bytes::from_static(b"job")), begun);
        leases.on_unheard(after(begun, 1));
        assert_eq!(leases.due(after(begun, 1), ALL), [], "that would make it longer");
        leases.on_extended_by_hand(&member(1), after(begun, 1000));
        assert_eq!(members(leases.due(after(begun, 11), ALL)), [member(1)]);
        leases.on_extended(&member(1), after(begun, 11), true);
        assert_eq!(members(leases.due(after(begun, 969), ALL)), [member(1)]);
        leases.on_extended(&member(1), after(begun, 969), true);
        assert_eq!(leases.due(after(begun, 970), ALL), [], "that would make it longer");
        leases.end(after(begun, 999));
        assert!(!lease.is_told());
    }

    #[test]
    fn a_young_lease_waits_for_the_next_look() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, MOST);
        let _old = leases.add(member(1), None, begun);
        let _young = leases.add(member(2), None, after(begun, 9));
        assert_eq!(members(leases.due(after(begun, 10), ALL)), [member(1)]);
        leases.on_extended(&member(1), after(begun, 10), true);
        let mut both = members(leases.due(after(begun, 20), ALL));
        both.sort_unstable();
        assert_eq!(both, [member(1), member(2)]);
    }

    #[test]
    fn a_lease_that_is_not_extended_is_over_after_its_length() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, MOST);
        let lease = leases.add(member(1), None, begun);
        for now in [10, 20] {
            leases.due(after(begun, now), ALL);
            assert!(lease.cancelled().now_or_never().is_none());
            assert_eq!(leases.next(), Some(after(begun, now + 10)));
        }
        leases.due(after(begun, 30), ALL);
        assert!(lease.cancelled().now_or_never().is_some() && lease.lost().now_or_never().is_none());
        leases.on_extended(&member(1), after(begun, 10), false);
        assert!(lease.lost().now_or_never().is_some() && leases.is_empty());
    }

    #[test]
    fn heartbeats_end_after_the_longest_time() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, 2 * LENGTH);
        let lease = leases.add(member(1), None, begun);
        for now in [10, 20, 30, 40, 50] {
            assert_eq!(leases.due(after(begun, now), ALL).len(), 1);
            leases.on_extended(&member(1), after(begun, now), true);
        }
        assert_eq!(leases.due(after(begun, 60), ALL), []);
        leases.due(after(begun, 70), ALL);
        assert!(!lease.is_told());
        leases.due(after(begun, 80), ALL);
        assert!(lease.is_told());
    }

    #[test]
    fn between_two_looks_each_lease_ends_in_its_time() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, MOST);
        let first = leases.add(member(1), None, begun);
        leases.on_extended_by_hand(&member(1), after(begun, 1000));
        leases.due(after(begun, 5), ALL);
        let second = leases.add(member(2), None, after(begun, 6));
        assert_eq!(leases.end(after(begun, 35)), Some(after(begun, 36)));
        assert_eq!(leases.end(after(begun, 36)), Some(after(begun, 1000)));
        assert!(second.is_told() && !first.is_told());
        leases.end(after(begun, 1000));
        assert!(first.is_told());
        // The server says that it still holds.
        leases.on_extended(&member(2), after(begun, 1001), true);
        assert_eq!(leases.end(after(begun, 1002)), Some(after(begun, 1031)));
    }

    #[test]
    fn a_cancelled_job_keeps_its_lease() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, MOST);
        let id = Bytes::from_static(b"order-17");
        let (job, other) =
            (leases.add(member(1), Some(id.clone()), begun), leases.add(member(2), None, begun));
        leases.cancel(|id| id == member(1).id());
        assert!(job.cancelled().now_or_never().is_some() && job.lost().now_or_never().is_none());
        assert!(job.is_cancelled() && !other.is_cancelled());
        assert!(other.cancelled().now_or_never().is_none());
        let mut extended = leases.due(after(begun, 10), ALL);
        extended.sort_unstable();
        let job = ToExtend { member: member(1), holds: Some(id) };
        assert_eq!(extended, [job, ToExtend { member: member(2), holds: None }]);
    }

    #[test]
    fn heartbeats_may_go_on_without_end() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, Duration::MAX);
        let _lease = leases.add(member(1), None, begun);
        assert_eq!(members(leases.due(after(begun, 10), ALL)), [member(1)]);
    }

    #[test]
    fn a_longer_lease_is_not_shortened_by_an_extension() {
        let begun = Instant::now();
        let mut leases = Leases::new(LENGTH, LENGTH);
        let lease = leases.add(member(1), None, begun);
        leases.on_extended_by_hand(&member(1), after(begun, 100));
        leases.due(after(begun, 10), ALL);
        leases.on_extended(&member(1), after(begun, 10), true);
        leases.due(after(begun, 99), ALL);
        assert!(!lease.is_told());
        leases.due(after(begun, 100), ALL);
        assert!(lease.is_told());
    }
}
