//! Step by step, with one file per concern, and in a simulation where commands and replies are late, lost or
//! reordered.

use tokio::sync::{mpsc, oneshot};

use super::*;

mod answers;
mod any;
mod order;
mod simulation;
mod tiers;
mod try_pops;

/// A dispatcher, step by step.
struct Steps {
    dispatcher: Dispatcher,
    returned: mpsc::UnboundedReceiver<Payloads>,
}

impl Steps {
    fn new() -> Self {
        let (outbox, returned) = outbox();
        Self { dispatcher: Dispatcher::taking(End::Head, outbox), returned }
    }

    fn join(&mut self, id: WaiterId, names: &[&str], wait: Wait) -> oneshot::Receiver<Answer> {
        self.join_for(1, id, names, wait)
    }

    fn join_for(
        &mut self,
        want: usize,
        id: WaiterId,
        names: &[&str],
        wait: Wait,
    ) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        self.dispatcher.join(id, Waiter { keys: keys(names), in_order: true, want, wait, answer });
        receiver
    }

    fn actions(&mut self) -> Vec<Action> {
        self.dispatcher.next_actions()
    }

    fn popped(&mut self, name: &str, payload: &'static str) {
        self.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Payload(Keys::new(name), payload.into()));
    }

    /// The oldest try pop of a list, which requested `count` payloads, is answered.
    fn try_popped(&mut self, name: &str, count: usize, payloads: &[&'static str]) {
        self.answered(name, count, Ok(payloads.iter().map(|payload| (*payload).into()).collect()));
    }

    fn answered(&mut self, name: &str, count: usize, result: Result<Vec<Bytes>, OpError>) {
        let try_pop = self.oldest_try_pop(name);
        assert_eq!(try_pop.count, count);
        self.dispatcher.on_try_popped(&Keys::new(name), try_pop, result);
    }

    fn oldest_try_pop(&self, name: &str) -> TryPop {
        self.dispatcher.lists[&Keys::new(name)].try_pops[0]
    }
}

/// The receiver gets the batches that leave the outbox unread.
fn outbox() -> (Outbox<Payloads>, mpsc::UnboundedReceiver<Payloads>) {
    let (returns, returned) = mpsc::unbounded_channel();
    (Outbox::new(move |batch| drop(returns.send(batch))), returned)
}

fn wrong_type() -> OpError {
    OpError::Server("WRONGTYPE Operation against a key holding the wrong kind of value".into())
}

fn keys(names: &[&str]) -> Vec<Keys> {
    names.iter().map(Keys::new).collect()
}

/// A try pop of `count` payloads for the waiters before this one.
fn try_pop(name: &str, count: usize, before: WaiterId) -> Action {
    Action::TryPop { keys: Keys::new(name), try_pop: TryPop { before, count } }
}

fn block(names: &[&str], interrupt_at_once: bool) -> Action {
    Action::Block { tier: Tier::Hot, keys: keys(names), interrupt_at_once }
}

/// What a taker got. An empty text means "nothing".
fn got(receiver: &mut oneshot::Receiver<Answer>) -> Option<String> {
    let answer = receiver.try_recv().ok()?.unwrap();
    let payloads = answer.map(|popped| popped.read().unwrap().concat()).unwrap_or_default();
    Some(String::from_utf8(payloads).unwrap())
}
