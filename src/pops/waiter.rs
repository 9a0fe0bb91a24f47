//! A taker as the pops task sees it.

use tokio::sync::oneshot;

use super::popped::Popped;
use crate::conn::OpError;
use crate::wire::keys::Keys;

/// In the order in which the takers began.
pub(crate) type WaiterId = u64;

/// What a taker gets: payloads, or `None` when there are none in time.
pub(crate) type Answer = Result<Option<Popped>, OpError>;

/// One taker.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// The lists it takes from. More than one only for a taker that waits.
    pub(crate) keys: Vec<Keys>,
    /// Whether a payload of a list is for it only while the lists before that one are empty.
    pub(crate) in_order: bool,
    /// The most payloads it takes.
    pub(crate) want: usize,
    pub(crate) wait: Wait,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// How long a taker waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all: it wants an answer at once, even if there is nothing.
    None,
    /// Until there is a payload.
    Endless,
    /// Its time is over: it gets "nothing" as soon as the server has looked at its lists.
    Expired,
}
