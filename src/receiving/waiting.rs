//! What waits for a receiver's task: receives, and deliveries to settle. Shared by the handles and the task.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::plan::ReceiveDemand;
use super::settlement::{Claimed, Settled, Settlement, ToSettle};
use crate::conn::OpError;
use crate::outbox::{Held, Outbox};

/// What a receive is answered: messages, or `None` if there are none now.
pub(super) type Received = Result<Option<Held<Vec<Claimed>>>, OpError>;

/// Where a settlement is answered.
pub(super) type SettleAnswer = oneshot::Receiver<Result<Settled, OpError>>;

/// One receive.
#[derive(Debug)]
pub(super) struct Receive {
    pub(super) most: usize,
    /// Whether it waits until there is something.
    pub(super) patient: bool,
    pub(super) answer: oneshot::Sender<Received>,
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    lists: Mutex<Lists>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Lists {
    /// In the order in which they began.
    receives: BTreeMap<u64, Receive>,
    next: u64,
    to_settle: Vec<ToSettle>,
    /// No more receives.
    closed: bool,
    /// The task has ended.
    ended: bool,
    /// When a call that is on its way should have been answered.
    silent_at: Option<Instant>,
}

impl Lists {
    fn join(&mut self, most: usize, patient: bool) -> (u64, oneshot::Receiver<Received>) {
        let (answer, receiver) = oneshot::channel();
        let id = self.next;
        self.next += 1;
        // Otherwise the receive is dropped, and its channel with it: that is an answer, too.
        if !self.closed {
            self.receives.insert(id, Receive { most, patient, answer });
        }
        (id, receiver)
    }

    fn settle(&mut self, claim: &Claimed, settlement: Settlement) -> SettleAnswer {
        let (answer, receiver) = oneshot::channel();
        if self.ended {
            let _ = answer.send(Err(OpError::Closed));
        } else {
            self.to_settle.push(ToSettle::new(claim, settlement, answer));
        }
        receiver
    }
}

impl Waiting {
    /// A receive of up to this many messages: its number, and where it is answered.
    pub(super) fn join(&self, most: usize, patient: bool) -> (u64, oneshot::Receiver<Received>) {
        let joined = self.lists().join(most, patient);
        self.changed.notify_one();
        joined
    }

    pub(super) fn leave(&self, id: u64) {
        let left = self.lists().receives.remove(&id);
        if left.is_some() {
            self.changed.notify_one();
        }
    }

    pub(super) fn expire(&self, id: u64) {
        if let Some(receive) = self.lists().receives.get_mut(&id) {
            receive.patient = false;
        }
        self.changed.notify_one();
    }

    /// A delivery to settle, with the next call. Returns where that is answered.
    pub(super) fn settle(&self, claim: &Claimed, settlement: Settlement) -> SettleAnswer {
        self.lists().settle(claim, settlement)
    }

    /// A delivery to settle, and a receive of one message, which the task finds together. So they share a
    /// call.
    pub(super) fn settle_and_join(
        &self,
        claim: &Claimed,
        settlement: Settlement,
    ) -> (SettleAnswer, (u64, oneshot::Receiver<Received>)) {
        let mut lists = self.lists();
        (lists.settle(claim, settlement), lists.join(1, true))
    }

    /// Lets the task make a call for what is to be settled, unless one has it already.
    pub(super) fn wake_to_settle(&self) {
        if self.has_to_settle() {
            self.changed.notify_one();
        }
    }

    pub(super) fn has_to_settle(&self) -> bool {
        !self.lists().to_settle.is_empty()
    }

    /// Lets the task look at what has changed elsewhere.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// A call begins, which should be answered within this time.
    pub(super) fn call_begins(&self, within: Duration) {
        self.lists().silent_at.get_or_insert_with(|| Instant::now() + within);
    }

    /// A call has ended. If it is not the last, others are on their way.
    pub(super) fn call_ended(&self, is_last: bool, within: Duration) {
        self.lists().silent_at = (!is_last).then(|| Instant::now() + within);
    }

    /// Whether a call should have been answered.
    pub(super) fn is_silent(&self) -> bool {
        self.lists().silent_at.is_some_and(|at| at <= Instant::now())
    }

    /// Waits for a change. Cancel safe.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Whether there is more than one receive.
    pub(super) fn has_several(&self) -> bool {
        self.lists().receives.len() > 1
    }

    pub(super) fn demand(&self) -> ReceiveDemand {
        let lists = self.lists();
        let mut demand = ReceiveDemand { before: lists.next, one_each: true, ..ReceiveDemand::default() };
        for receive in lists.receives.values() {
            demand.messages = demand.messages.saturating_add(receive.most);
            demand.one_each &= receive.most == 1;
            demand.at_once |= !receive.patient;
        }
        demand
    }

    /// Takes at most `most` deliveries to settle. Unless it is only one, at most `texts` of them have a text,
    /// and the script reads at most this number of bytes of their payloads.
    pub(super) fn take_to_settle(&self, most: usize, texts: usize, bytes: usize) -> Vec<ToSettle> {
        let mut lists = self.lists();
        let (mut with_text, mut rewritten) = (0, 0);
        let fits = |(index, to_settle): &(usize, &ToSettle)| {
            with_text += usize::from(to_settle.has_text());
            rewritten += to_settle.rewritten();
            *index == 0 || with_text <= texts && rewritten <= bytes
        };
        let count = lists.to_settle.iter().enumerate().take(most).take_while(fits).count();
        let taken = lists.to_settle.drain(..count).collect();
        if !lists.to_settle.is_empty() {
            self.changed.notify_one();
        }
        taken
    }

    /// Gives claims to the receives, in the order in which those began. Returns what nobody wants.
    pub(super) fn hand_out(&self, claims: Vec<Claimed>, outbox: &Outbox<Vec<Claimed>>) -> Vec<Claimed> {
        let mut claims = claims.into_iter().peekable();
        while claims.peek().is_some() {
            let Some((_, receive)) = self.lists().receives.pop_first() else { break };
            let batch: Vec<Claimed> = claims.by_ref().take(receive.most).collect();
            // Dropped in this very moment: its guard releases them.
            let _ = receive.answer.send(Ok(Some(outbox.hold(batch))));
        }
        claims.collect()
    }

    /// Answers receives that began before `before`: all of them, or those that do not wait.
    pub(super) fn answer(&self, before: u64, all: bool, answer: impl Fn() -> Result<(), OpError>) {
        let answered: Vec<Receive> = {
            let mut lists = self.lists();
            let is_answered = |(id, receive): &(&u64, &Receive)| **id < before && (all || !receive.patient);
            let ids: Vec<u64> = lists.receives.iter().filter(is_answered).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| lists.receives.remove(id)).collect()
        };
        for receive in answered {
            let nothing: Received = answer().map(|()| None);
            let _ = receive.answer.send(nothing);
        }
    }

    /// Ends the receives, and later ones.
    pub(super) fn close(&self) {
        let receives = {
            let mut lists = self.lists();
            lists.closed = true;
            std::mem::take(&mut lists.receives)
        };
        // Without the lock: wakers of others run.
        drop(receives);
    }

    /// Nothing is settled from here on.
    pub(super) fn end(&self) {
        self.close();
        let to_settle = {
            let mut lists = self.lists();
            lists.ended = true;
            std::mem::take(&mut lists.to_settle)
        };
        for to_settle in to_settle {
            let _ = to_settle.answer.send(Err(OpError::Closed));
        }
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
