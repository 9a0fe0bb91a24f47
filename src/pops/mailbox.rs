//! How takers reach the pops task. A taker that is dropped before the task has seen it leaves nothing behind,
//! so a loop that begins a take and drops it, again and again, does not fill the memory. No taker waits to
//! get in.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::kind::Kind;
use super::waiter::{Wait, Waiter, WaiterId};

/// What takers send to the pops task.
#[derive(Debug)]
pub(super) enum TakerRequest {
    Join(Kind, WaiterId, Waiter),
    Leave(Kind, WaiterId),
    Expire(Kind, WaiterId),
}

/// Shared by the takers and the task.
#[derive(Clone, Debug, Default)]
pub(super) struct Mailbox {
    unseen: Arc<Mutex<Unseen>>,
    arrived: Arc<Notify>,
}

/// What the task has not seen yet.
#[derive(Debug, Default)]
struct Unseen {
    /// Takers, in the order in which they began.
    takers: BTreeMap<WaiterId, (Kind, Waiter)>,
    /// What became of takers that the task has seen.
    changes: VecDeque<TakerRequest>,
    closed: bool,
}

impl Mailbox {
    /// A taker begins. When the mailbox is closed, the waiter is dropped, and its channel with it: that is an
    /// answer, too.
    pub(super) fn join(&self, kind: Kind, id: WaiterId, waiter: Waiter) {
        let mut unseen = self.unseen();
        if !unseen.closed {
            unseen.takers.insert(id, (kind, waiter));
            drop(unseen);
            self.arrived.notify_one();
        }
    }

    /// The time of a taker is over.
    pub(super) fn expire(&self, kind: &Kind, id: WaiterId) {
        let mut unseen = self.unseen();
        match unseen.takers.get_mut(&id) {
            Some((_, waiter)) => waiter.wait = Wait::Expired,
            None => self.changed(unseen, TakerRequest::Expire(kind.clone(), id)),
        }
    }

    /// A taker was dropped.
    pub(super) fn leave(&self, kind: &Kind, id: WaiterId) {
        let mut unseen = self.unseen();
        let taker = unseen.takers.remove(&id);
        match taker {
            // Wakers of others run when it is dropped.
            Some(_) => drop(unseen),
            None => self.changed(unseen, TakerRequest::Leave(kind.clone(), id)),
        }
    }

    fn changed(&self, mut unseen: MutexGuard<'_, Unseen>, change: TakerRequest) {
        if !unseen.closed {
            unseen.changes.push_back(change);
            drop(unseen);
            self.arrived.notify_one();
        }
    }

    /// Waits until there is something to [`take`](Self::take). Cancel safe.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// The next requests, at most this many.
    pub(super) fn take(&self, most: usize) -> Vec<TakerRequest> {
        let mut unseen = self.unseen();
        let changes = unseen.changes.len().min(most);
        let mut requests: Vec<_> = unseen.changes.drain(..changes).collect();
        while requests.len() < most
            && let Some((id, (kind, waiter))) = unseen.takers.pop_first()
        {
            requests.push(TakerRequest::Join(kind, id, waiter));
        }
        if !(unseen.takers.is_empty() && unseen.changes.is_empty()) {
            self.arrived.notify_one();
        }
        requests
    }

    /// Answers the takers that the task has not seen, and later ones, with the end of their channel.
    pub(super) fn close(&self) {
        let closed = Unseen { closed: true, ..Unseen::default() };
        let unseen = std::mem::replace(&mut *self.unseen(), closed);
        // Without the lock: wakers of others run.
        drop(unseen);
    }

    fn unseen(&self) -> MutexGuard<'_, Unseen> {
        self.unseen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::future::FutureExt;
    use tokio::sync::oneshot;

    use super::super::kind::End;
    use super::super::waiter::Answer;
    use super::*;
    use crate::wire::keys::Keys;

    const KIND: Kind = Kind::Take(End::Head, None);

    fn join(mailbox: &Mailbox, id: WaiterId) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        let keys = vec![Keys::new("q")];
        mailbox.join(KIND, id, Waiter { keys, in_order: true, want: 1, wait: Wait::Endless, answer });
        receiver
    }

    fn seen(mailbox: &Mailbox, most: usize) -> Vec<String> {
        let name = |request| match request {
            TakerRequest::Join(_, id, waiter) => format!("{id} joins: {:?}", waiter.wait),
            TakerRequest::Leave(_, id) => format!("{id} leaves"),
            TakerRequest::Expire(_, id) => format!("{id} expires"),
        };
        mailbox.take(most).into_iter().map(name).collect()
    }

    #[test]
    fn what_happens_to_a_taker_that_was_not_seen_is_not_reported() {
        let mailbox = Mailbox::default();
        let _takers = [2, 1, 0].map(|id| join(&mailbox, id));
        mailbox.leave(&KIND, 1);
        mailbox.expire(&KIND, 2);
        assert_eq!(seen(&mailbox, 9), ["0 joins: Endless", "2 joins: Expired"]);
        mailbox.leave(&KIND, 2);
        mailbox.expire(&KIND, 0);
        assert_eq!(seen(&mailbox, 9), ["2 leaves", "0 expires"]);
    }

    #[test]
    fn what_is_left_arrives_again() {
        let mailbox = Mailbox::default();
        let arrived = || mailbox.arrived().now_or_never().is_some();
        let _takers = [0, 1, 2].map(|id| join(&mailbox, id));
        assert!(arrived() && seen(&mailbox, 2).len() == 2);
        assert!(arrived() && seen(&mailbox, 2).len() == 1);
        assert!(!arrived());
    }

    #[test]
    fn closing_answers_takers_that_were_not_seen_and_later_ones() {
        let mailbox = Mailbox::default();
        let mut early = join(&mailbox, 0);
        mailbox.close();
        let mut late = join(&mailbox, 1);
        mailbox.leave(&KIND, 0);
        for taker in [&mut early, &mut late] {
            assert_eq!(taker.try_recv().err(), Some(oneshot::error::TryRecvError::Closed));
        }
    }
}
