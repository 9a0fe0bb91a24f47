//! What goes into a [`Plan`](super::Plan), and what comes out of it.

use std::time::Duration;

use tokio::time::Instant;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make a call that settles what there is, and does this.
    Call(Scope),
    /// Answer the receives that do not wait: nothing may be claimed now. They may have other queues to ask.
    Answer {
        /// The server has refused. Otherwise the queue is paused or limited.
        refused: bool,
    },
    /// Send a blocked pop.
    Block,
    /// End the blocked pop.
    Unblock,
    /// Nothing before this time, if nothing happens.
    Sleep(Instant),
    /// Nothing until a call is answered.
    Idle,
}

/// What a call does beside settling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The most messages to claim.
    pub(crate) most: usize,
    /// Look for messages without lease and retry, and trim the dead letters.
    pub(crate) sweep: bool,
    /// Claim retries before new messages, where only one can be claimed.
    pub(crate) retries_first: bool,
    /// Put what is in the inbox back.
    pub(crate) empty_inbox: bool,
}

/// What the receives want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiveDemand {
    /// Messages, in sum.
    pub(crate) messages: usize,
    /// Each of them wants one message.
    pub(crate) one_each: bool,
    /// Whether one of them does not wait.
    pub(crate) at_once: bool,
    /// Receives that begin later have larger numbers.
    pub(crate) before: u64,
}

/// What the task has in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The calls on their way.
    pub(crate) calls: usize,
    /// The messages that these calls are to claim.
    pub(crate) claiming: usize,
    /// The most messages that a call is to claim.
    pub(crate) most: usize,
    /// Something was taken to be settled by the next call, which is made in any case.
    pub(crate) settles: bool,
    pub(crate) blocked: Blocked,
}

/// Whether there is a blocked pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    No,
    Waits,
    /// It was told to end.
    Ending,
}

/// How a blocked pop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Whether a payload was moved to the inbox.
    Moved(bool),
    /// Without the permission, a connection, or memory on the server.
    Refused,
    /// It may have moved a payload.
    Unknown,
}

/// What a reply says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// What the server's clock showed, epoch ms.
    pub(crate) clock: u64,
    /// Until the first lease of any receiver may be ended.
    pub(crate) lease_ends_in: Option<Duration>,
    /// Until the first retry is due.
    pub(crate) retry_in: Option<Duration>,
    /// The messages that it has brought.
    pub(crate) claimed: usize,
    /// Whether the call has left payloads; not said by one that claims nothing.
    pub(crate) left: bool,
    /// Whether keys do not agree.
    pub(crate) disagree: bool,
    /// For how long not as many messages may be claimed as were asked for: the queue is paused or limited.
    pub(crate) hold: Option<Duration>,
    /// Whether the server has refused to claim.
    pub(crate) refused: bool,
}

/// What the task does about a reply, beside handing out what it has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Consequences {
    /// The receives that began before the call and do not wait have seen what there is.
    pub(crate) answer: bool,
    /// The first call that claims again after refusals.
    pub(crate) recovered: bool,
    /// Make keys agree again.
    pub(crate) agree: bool,
}
