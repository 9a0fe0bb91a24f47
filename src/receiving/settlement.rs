//! A message in the hands of this process, and how it is settled.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::conn::OpError;
use crate::leases::Lease;
use crate::telemetry::Delivered;
use crate::wire::job::{JobData, held_id};
use crate::wire::message::Member;

/// A message that was claimed.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) member: Member,
    pub(crate) failed: u16,
    pub(crate) lost: u16,
    /// Epoch ms.
    pub(crate) first: u64,
    /// What travels with it, if it is a job.
    pub(crate) job: Option<JobData>,
    pub(crate) payload: Bytes,
    pub(crate) lease: Arc<Lease>,
}

/// How a delivery is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    Acknowledge,
    /// It failed: retry after this time. The text says why.
    Retry {
        after_ms: u64,
        error: String,
    },
    /// Deliver again after this time. It does not count as a failure.
    Snooze {
        after_ms: u64,
    },
    /// It is a dead letter.
    Reject {
        reason: &'static str,
        error: String,
    },
    /// A lease of at least this length from now on.
    Extend {
        by_ms: u64,
    },
    /// No program has read it.
    Unread,
}

impl Settlement {
    /// What is counted of it; `None` if the delivery goes on.
    pub(crate) fn counted(&self) -> Option<Delivered> {
        match self {
            Self::Acknowledge => Some(Delivered::Acknowledged),
            Self::Retry { .. } => Some(Delivered::Failed),
            Self::Snooze { after_ms: 0 } | Self::Unread => Some(Delivered::Released),
            Self::Snooze { .. } => Some(Delivered::Snoozed),
            Self::Reject { .. } => Some(Delivered::Rejected),
            Self::Extend { .. } => None,
        }
    }
}

/// What a settlement has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Done,
    /// The message is a dead letter now.
    Dead,
    /// The lease is extended, and somebody has asked to cancel the job.
    Cancelled,
    /// The delivery no longer holds: the message was settled, or is another receiver's.
    Gone,
}

/// One delivery to settle.
#[derive(Debug)]
pub(super) struct ToSettle {
    pub(super) member: Member,
    pub(super) settlement: Settlement,
    /// The id that it holds.
    pub(super) holds: Option<Bytes>,
    /// The length of the payload.
    bytes: usize,
    /// Dropped without an answer: it was sent, and may have been executed.
    pub(super) answer: oneshot::Sender<Result<Settled, OpError>>,
}

impl ToSettle {
    pub(super) fn new(
        claim: &Claimed,
        settlement: Settlement,
        answer: oneshot::Sender<Result<Settled, OpError>>,
    ) -> Self {
        let holds = held_id(&claim.job);
        Self { member: claim.member, settlement, holds, bytes: claim.payload.len(), answer }
    }

    /// A claim that no program has read. Nobody waits for the result.
    pub(super) fn unread(member: Member) -> Self {
        Self { member, settlement: Settlement::Unread, holds: None, bytes: 0, answer: oneshot::channel().0 }
    }

    /// Whether it may have a long text.
    pub(super) fn has_text(&self) -> bool {
        matches!(self.settlement, Settlement::Retry { .. } | Settlement::Reject { .. })
    }

    /// The bytes of payload that the script reads, and may write again.
    pub(super) fn rewritten(&self) -> usize {
        match self.settlement {
            Settlement::Acknowledge | Settlement::Extend { .. } => 0,
            _ => self.bytes,
        }
    }
}
