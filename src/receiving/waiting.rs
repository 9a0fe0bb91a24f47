//! What waits for a receiver's task: receives, and deliveries to settle. Shared by the handles and the task.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::call::{Settled, Settlement};
use super::{Answer, Claim};
use crate::conn::OpError;
use crate::outbox::{Held, Outbox};
use crate::wire::message::Member;

/// One receive.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) most: usize,
    /// Whether it waits until there is something.
    pub(super) patient: bool,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// One delivery to settle.
#[derive(Debug)]
pub(super) struct ToSettle {
    pub(super) member: Member,
    pub(super) settlement: Settlement,
    /// The length of the payload.
    bytes: usize,
    /// Dropped without an answer: it was sent, and may have been executed.
    pub(super) answer: oneshot::Sender<Result<Settled, OpError>>,
}

impl ToSettle {
    /// A claim that no program has read. Nobody waits for the result.
    pub(super) fn unread(member: Member) -> Self {
        Self { member, settlement: Settlement::Unread, bytes: 0, answer: oneshot::channel().0 }
    }

    /// Whether it may have a long text.
    pub(super) fn has_text(&self) -> bool {
        matches!(self.settlement, Settlement::Retry { .. } | Settlement::Reject { .. })
    }

    /// The bytes of payload that the script reads, and may write again.
    fn rewritten(&self) -> usize {
        match self.settlement {
            Settlement::Acknowledge | Settlement::Extend { .. } => 0,
            _ => self.bytes,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// In the order in which they began.
    receives: BTreeMap<u64, Waiter>,
    next: u64,
    to_settle: Vec<ToSettle>,
    /// No more receives.
    closed: bool,
    /// The task has ended.
    ended: bool,
    /// Since when a call has had no answer.
    unanswered: Option<Instant>,
}

/// What the receives want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// Messages, in sum.
    pub(super) messages: usize,
    /// Each of them wants one message.
    pub(super) one_each: bool,
    /// Whether one of them does not wait.
    pub(super) at_once: bool,
    /// Receives that begin later have larger numbers.
    pub(super) before: u64,
}

impl Waiting {
    /// A receive of up to this many messages: its number, and where it is answered.
    pub(super) fn join(&self, most: usize, patient: bool) -> (u64, oneshot::Receiver<Answer>) {
        let (answer, receiver) = oneshot::channel();
        let waiter = Waiter { most, patient, answer };
        let mut queue = self.queue();
        let id = queue.next;
        queue.next += 1;
        // Otherwise the waiter is dropped, and its channel with it: that is an answer, too.
        if !queue.closed {
            queue.receives.insert(id, waiter);
            drop(queue);
            self.changed.notify_one();
        }
        (id, receiver)
    }

    pub(super) fn leave(&self, id: u64) {
        let left = self.queue().receives.remove(&id);
        if left.is_some() {
            self.changed.notify_one();
        }
    }

    pub(super) fn expire(&self, id: u64) {
        if let Some(waiter) = self.queue().receives.get_mut(&id) {
            waiter.patient = false;
        }
        self.changed.notify_one();
    }

    pub(super) fn settle(
        &self,
        claim: &Claim,
        settlement: Settlement,
        answer: oneshot::Sender<Result<Settled, OpError>>,
    ) {
        let mut queue = self.queue();
        if queue.ended {
            drop(queue);
            let _ = answer.send(Err(OpError::Closed));
        } else {
            let (member, bytes) = (claim.member, claim.payload.len());
            queue.to_settle.push(ToSettle { member, settlement, bytes, answer });
            drop(queue);
            self.changed.notify_one();
        }
    }

    /// Lets the task look at what has changed elsewhere.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// A call begins.
    pub(super) fn call_begins(&self) {
        self.queue().unanswered.get_or_insert_with(Instant::now);
    }

    /// A call has ended. Others may be on their way.
    pub(super) fn call_ended(&self, is_last: bool) {
        self.queue().unanswered = (!is_last).then(Instant::now);
    }

    /// For how long a call has had no answer.
    pub(super) fn unanswered_for(&self) -> Duration {
        self.queue().unanswered.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits for a change. Cancel safe.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Whether there is more than one receive.
    pub(super) fn has_several(&self) -> bool {
        self.queue().receives.len() > 1
    }

    pub(super) fn demand(&self) -> Demand {
        let queue = self.queue();
        let mut demand = Demand { before: queue.next, one_each: true, ..Demand::default() };
        for waiter in queue.receives.values() {
            demand.messages = demand.messages.saturating_add(waiter.most);
            demand.one_each &= waiter.most == 1;
            demand.at_once |= !waiter.patient;
        }
        demand
    }

    /// Takes at most `most` deliveries to settle. Unless it is only one, at most `texts` of them have a text, and the script reads
    /// at most this number of bytes of their payloads.
    pub(super) fn take_to_settle(&self, most: usize, texts: usize, bytes: usize) -> Vec<ToSettle> {
        let mut queue = self.queue();
        let (mut with_text, mut rewritten) = (0, 0);
        let fits = |(index, to_settle): &(usize, &ToSettle)| {
            with_text += usize::from(to_settle.has_text());
            rewritten += to_settle.rewritten();
            *index == 0 || with_text <= texts && rewritten <= bytes
        };
        let count = queue.to_settle.iter().enumerate().take(most).take_while(fits).count();
        let taken = queue.to_settle.drain(..count).collect();
        if !queue.to_settle.is_empty() {
            self.changed.notify_one();
        }
        taken
    }

    /// Gives claims to the receives, in the order in which those began. Returns what nobody wants.
    pub(super) fn hand_out(&self, claims: Vec<Claim>, outbox: &Outbox<Vec<Claim>>) -> Vec<Claim> {
        let mut claims = claims.into_iter().peekable();
        while claims.peek().is_some() {
            let Some((_, waiter)) = self.queue().receives.pop_first() else { break };
            let batch: Vec<Claim> = claims.by_ref().take(waiter.most).collect();
            // Dropped in this very moment: its guard releases them.
            let _ = waiter.answer.send(Ok(Some(outbox.hold(batch))));
        }
        claims.collect()
    }

    /// Answers receives that began before `before`: all of them, or those that do not wait.
    pub(super) fn answer(&self, before: u64, all: bool, answer: impl Fn() -> Result<(), OpError>) {
        let answered: Vec<Waiter> = {
            let mut queue = self.queue();
            let is_answered = |(id, waiter): &(&u64, &Waiter)| **id < before && (all || !waiter.patient);
            let ids: Vec<u64> = queue.receives.iter().filter(is_answered).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| queue.receives.remove(id)).collect()
        };
        for waiter in answered {
            let nothing: Result<Option<Held<Vec<Claim>>>, OpError> = answer().map(|()| None);
            let _ = waiter.answer.send(nothing);
        }
    }

    /// Ends the receives, and later ones.
    pub(super) fn close(&self) {
        let receives = {
            let mut queue = self.queue();
            queue.closed = true;
            std::mem::take(&mut queue.receives)
        };
        // Without the lock: wakers of others run.
        drop(receives);
    }

    /// Nothing is settled from here on.
    pub(super) fn end(&self) {
        self.close();
        let to_settle = {
            let mut queue = self.queue();
            queue.ended = true;
            std::mem::take(&mut queue.to_settle)
        };
        for to_settle in to_settle {
            let _ = to_settle.answer.send(Err(OpError::Closed));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
