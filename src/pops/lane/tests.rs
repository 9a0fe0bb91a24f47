//! Step by step, one file per concern, and in a simulation with everything in between late, lost or out of order.

use tokio::sync::mpsc;

use super::*;

mod answers;
mod asking;
mod order;
mod simulation;

/// A lane step by step.
struct Steps {
    lane: Lane,
    returned: mpsc::UnboundedReceiver<Batch>,
}

impl Steps {
    fn new() -> Self {
        let (outbox, returned) = outbox();
        Self { lane: Lane::taking(End::Head, outbox), returned }
    }

    fn join(&mut self, id: WaiterId, names: &[&str], patience: Patience) -> oneshot::Receiver<Answer> {
        self.join_for(1, id, names, patience)
    }

    fn join_for(
        &mut self,
        want: usize,
        id: WaiterId,
        names: &[&str],
        patience: Patience,
    ) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        self.lane.join(id, Waiter { keys: keys(names), want, patience, answer });
        receiver
    }

    fn actions(&mut self) -> Vec<Action> {
        self.lane.next_actions()
    }

    fn parked(&mut self, name: &str, payload: &'static str) {
        self.lane.parked(Place::Hot, Parked::Payload(Keys::new(name), payload.into()));
    }

    /// The oldest question of a list, which is for so many, is answered.
    fn asked(&mut self, name: &str, count: usize, payloads: &[&'static str]) {
        self.answered(name, count, Ok(payloads.iter().map(|payload| (*payload).into()).collect()));
    }

    fn answered(&mut self, name: &str, count: usize, result: Result<Vec<Bytes>, OpError>) {
        let question = self.question(name);
        assert_eq!(question.count, count);
        self.lane.asked(&Keys::new(name), question, result);
    }

    /// The oldest one.
    fn question(&self, name: &str) -> Question {
        self.lane.lists[&Keys::new(name)].questions[0]
    }
}

/// What leaves it unread comes out at the other end.
fn outbox() -> (Outbox<Batch>, mpsc::UnboundedReceiver<Batch>) {
    let (returns, returned) = mpsc::unbounded_channel();
    (Outbox::new(move |batch| drop(returns.send(batch))), returned)
}

fn wrong_type() -> OpError {
    OpError::Server("WRONGTYPE Operation against a key holding the wrong kind of value".into())
}

fn keys(names: &[&str]) -> Vec<Keys> {
    names.iter().map(|name| Keys::new(name)).collect()
}

/// A list that is asked for so many on behalf of the waiters before this one.
fn ask(name: &str, count: usize, before: WaiterId) -> Action {
    Action::Ask { keys: Keys::new(name), question: Question { before, count } }
}

fn park(names: &[&str], hurry: bool) -> Action {
    Action::Park { place: Place::Hot, keys: keys(names), hurry }
}

/// What a taker got; an empty text for "nothing".
fn got(receiver: &mut oneshot::Receiver<Answer>) -> Option<String> {
    let answer = receiver.try_recv().ok()?.unwrap();
    let payloads = answer.map(|popped| popped.read().unwrap().concat()).unwrap_or_default();
    Some(String::from_utf8(payloads).unwrap())
}
