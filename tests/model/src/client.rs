//! What a client knows, and how it reacts.
//!
//! Pauses, backoff and jitter are left out: what waits for them may happen at any time. So a step here may
//! come earlier or later than in reality, but nothing happens that cannot.

use crate::protocol::{Call, Entry, Id, Popped, Protocol, Published, Reply, Time, When};

/// How an offer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// `Ok`
    Ok,
    /// `ErrorKind::Refused`
    Refused,
    /// `ErrorKind::Unavailable`
    Unavailable,
    /// `ErrorKind::OutcomeUnknown`
    Unknown,
}

/// One process with its connections: one for commands, one for announcements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Client {
    /// What the user is waiting for. Another one is started when it has ended.
    pub op: Option<Op>,
    /// A claim whose pop was answered. The next pop deletes it, or a command of its own does.
    pub spent_claim: Option<Id>,
    /// When to transfer.
    pub schedule: TransferSchedule,
    /// Whether the connection for announcements is there.
    pub subscribed: bool,
    /// Announcements that were published and not received yet, in the order of the server.
    pub inbox: Vec<Notice>,
    /// The server's clock minus the client's own, as the client knows it. Its bounds are taken for exact.
    pub offset: Time,
    /// What was sent on connections that the client has given up, and may still be executed.
    pub late: Vec<Call>,
}

/// A call, through all its tries.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Op {
    /// What it is for.
    pub task: Task,
    /// Whether an earlier try may have been executed.
    pub lost: bool,
    /// The present try.
    pub wire: Wire,
}

/// What a call is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// `DelayedQueue::offer`, `offer_all`
    Offer {
        /// Only with receipts.
        receipt: Option<Id>,
        /// With their delays.
        entries: Vec<(Time, Entry)>,
        /// When the first try was sent, by the client's clock.
        sent: Option<Time>,
        /// What the server's clock showed then; determined for the second try.
        base: Option<Time>,
    },
    /// `BlockingQueue::poll`, or `DelayedQueue::poll` if it is `early`
    Pop {
        /// The copy on the server.
        claim: Id,
        /// Whether it is a poll of entries that are not due.
        early: bool,
    },
    /// In the outbox.
    Unread(Popped, bool),
    /// On their way back, because nobody has read them.
    Return {
        /// Says that it was done.
        receipt: Id,
        /// What returns.
        popped: Popped,
        /// Whether they return to the delayed queue.
        early: bool,
    },
    /// `DelayedQueue::reschedule`
    Reschedule(Entry, Time),
}

/// Where a request is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wire {
    /// Nowhere.
    Idle,
    /// On its way to the server.
    Request(Call),
    /// Executed; the reply is on its way.
    Reply(Reply),
}

/// A message on the connection for announcements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Notice {
    /// What was published.
    pub message: Published,
    /// When.
    pub stamp: Stamp,
}

/// The server's clock when it ran a script, and a number that tells scripts of the same time apart: the real
/// clock counts microseconds.
pub type Stamp = (Time, u8);

/// As `transfer/schedule.rs`, for one queue. There is no sweep without a reason: what would wait for one
/// waits too long.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransferSchedule {
    /// The earliest time that was named since the last run began, by the client's clock.
    pub head: Option<Time>,
    /// The same, by replies to own calls. Kept apart only if the messages of peers do not withdraw it.
    pub own_head: Option<Time>,
    /// Run as soon as possible.
    pub sweep: bool,
    /// The run in flight.
    pub run: Option<Run>,
    /// The latest of the runs that were heard of.
    pub stamp: Stamp,
}

/// A transfer in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Run {
    /// On its way to the server.
    Request,
    /// Executed; the reply is on its way.
    Reply {
        /// `Transferred` or `Refused`
        reply: Reply,
        /// When it ran.
        stamp: Stamp,
        /// The server's clock minus the client's own.
        offset: Time,
    },
}

impl Client {
    /// A client that has run for a while.
    #[must_use]
    pub fn new() -> Self {
        Self {
            op: None,
            spent_claim: None,
            schedule: TransferSchedule { head: None, own_head: None, sweep: false, run: None, stamp: (0, 0) },
            subscribed: true,
            inbox: Vec::new(),
            offset: 0,
            late: Vec::new(),
        }
    }

    /// Starts a call. It is sent later, when there is a connection.
    pub fn start(&mut self, task: Task) {
        self.op = Some(Op { task, lost: false, wire: Wire::Idle });
    }

    /// Sends the call, for the first time or again. The reply to `TIME`, which a second try asks for, is
    /// taken for immediate.
    pub fn send(&mut self, protocol: Protocol, now: Time, server_clock: Time) {
        let Some(op) = &mut self.op else { return };
        let call = match &mut op.task {
            Task::Offer { receipt, entries, sent, base } => {
                let first_sent = *sent.get_or_insert(now);
                let receipt = *receipt;
                let when = if op.lost {
                    When::From(*base.get_or_insert(server_clock - (now - first_sent)))
                } else {
                    When::Now
                };
                Call::Offer { receipt, when, entries: entries.clone() }
            }
            Task::Pop { claim, early: false } => Call::Take { claim: *claim, forget: self.spent_claim },
            Task::Pop { claim, early: true } => Call::Poll { claim: *claim },
            Task::Return { receipt, popped, early: false } => Call::ReturnToList {
                receipt: *receipt,
                payloads: popped.iter().map(|(payload, _)| *payload).collect(),
            },
            Task::Return { receipt, popped, early: true } => {
                Call::Restore { receipt: *receipt, entries: popped.clone() }
            }
            Task::Reschedule(entry, delay) => Call::Reschedule(*entry, *delay),
            Task::Unread(..) => return,
        };
        op.wire = Wire::Request(call);
        self.on_connected(protocol);
    }

    /// A new connection may have ended the ones before.
    pub fn on_connected(&mut self, protocol: Protocol) {
        if protocol.kills_old_connections {
            self.late.clear();
        }
    }

    /// The connection for commands is lost. `lingers`: what was sent may still be executed.
    pub fn disconnect(&mut self, protocol: Protocol, lingers: bool) {
        if let Some(op) = self.op.as_mut().filter(|op| op.wire != Wire::Idle) {
            op.lost = true;
            if let Wire::Request(call) = std::mem::replace(&mut op.wire, Wire::Idle) {
                // A late transfer is left out: it does what another client's does.
                if lingers {
                    self.late.push(call);
                    self.late.sort_unstable();
                }
            }
            if matches!(op.task, Task::Reschedule(..)) {
                // It is not repeated.
                self.op = None;
                self.schedule.sweep |= protocol.lost_replies_wake;
            }
        }
        if self.schedule.run.take().is_some() {
            self.schedule.sweep = true;
        }
    }

    /// Takes the reply of the call. Returns how an offer has ended, and a side key that is deleted at once.
    pub fn receive(&mut self, protocol: Protocol, now: Time) -> (Option<(Vec<Entry>, Outcome)>, Option<Id>) {
        let Some(Op { task, lost, wire: Wire::Reply(reply) }) = self.op.take() else {
            unreachable!("a reply to a call");
        };
        match task {
            Task::Offer { receipt, entries, .. } => {
                let outcome = match reply {
                    Reply::Stored { head, .. } => {
                        self.on_head(protocol, head, now);
                        Outcome::Ok
                    }
                    Reply::NotStored { undone: true } => Outcome::Refused,
                    Reply::Refused if !lost => Outcome::Refused,
                    _ => {
                        self.schedule.sweep |= protocol.lost_replies_wake;
                        Outcome::Unknown
                    }
                };
                // Only if the first try is the one that was answered, no other can be under way. Then it does
                // not matter when the receipt is deleted.
                let spent = receipt.filter(|_| !lost);
                (Some((entries.iter().map(|(_, entry)| *entry).collect(), outcome)), spent)
            }
            Task::Pop { claim, early } => {
                let Reply::Popped(popped) = reply else { return (None, None) };
                if !early {
                    self.spent_claim = None;
                }
                if !popped.is_empty() {
                    self.spent_claim = Some(claim);
                    self.op = Some(Op { task: Task::Unread(popped, early), lost: false, wire: Wire::Idle });
                }
                (None, None)
            }
            Task::Return { .. } if reply == Reply::Refused => {
                self.op = Some(Op { task, lost, wire: Wire::Idle });
                (None, None)
            }
            Task::Return { receipt, .. } => {
                if let Reply::Pending { head } = reply {
                    self.on_head(protocol, head, now);
                }
                (None, Some(receipt).filter(|_| !(lost && protocol.keeps_receipts_of_returns)))
            }
            Task::Reschedule(..) => {
                if let Reply::Pending { head } = reply {
                    self.on_head(protocol, head, now);
                }
                (None, None)
            }
            Task::Unread(..) => unreachable!("nothing was sent"),
        }
    }

    /// Gives up between two tries. Returns how an offer has ended.
    pub fn give_up(&mut self, protocol: Protocol) -> Option<(Vec<Entry>, Outcome)> {
        let Some(Op { task: Task::Offer { entries, .. }, lost, .. }) = self.op.take() else { return None };
        let outcome = if lost { Outcome::Unknown } else { Outcome::Unavailable };
        self.schedule.sweep |= lost && protocol.lost_replies_wake;
        Some((entries.iter().map(|(_, entry)| *entry).collect(), outcome))
    }

    /// A reply says that this is the head, which may not have been announced.
    fn on_head(&mut self, protocol: Protocol, head: Option<Time>, now: Time) {
        let Some(due) = head.filter(|_| protocol.own_offers_wake) else { return };
        let at = self.instant_of(due, now);
        let TransferSchedule { head, own_head, .. } = &mut self.schedule;
        let known = if protocol.own_heads_stay { own_head } else { head };
        *known = Some(known.map_or(at, |known| known.min(at)));
    }

    fn announced(&mut self, due: Time, now: Time) {
        let at = self.instant_of(due, now);
        self.schedule.head = Some(self.schedule.head.map_or(at, |head| head.min(at)));
    }

    fn instant_of(&self, due: Time, now: Time) -> Time {
        (due - self.offset).max(now)
    }

    /// Whether a pop is under way, which deletes the claim of the one before.
    #[must_use]
    pub fn takes(&self) -> bool {
        self.op.as_ref().is_some_and(|op| matches!(op.task, Task::Pop { early: false, .. }))
    }

    /// Whether a transfer is to be run now.
    #[must_use]
    pub fn is_transfer_due(&self, now: Time) -> bool {
        let TransferSchedule { head, own_head, sweep, run, .. } = &self.schedule;
        run.is_none() && (*sweep || [head, own_head].into_iter().flatten().any(|head| *head <= now))
    }

    /// Runs a transfer.
    pub fn run_transfer(&mut self, protocol: Protocol) {
        (self.schedule.head, self.schedule.own_head) = (None, None);
        self.schedule.sweep = false;
        self.schedule.run = Some(Run::Request);
        self.on_connected(protocol);
    }

    /// Takes the reply of the transfer.
    pub fn finish_transfer(&mut self, now: Time) {
        let Some(Run::Reply { reply, stamp, offset }) = self.schedule.run.take() else {
            unreachable!("a reply to a transfer");
        };
        let Reply::Transferred { head, .. } = reply else {
            self.schedule.sweep = true;
            return;
        };
        self.observe(offset);
        self.schedule.stamp = stamp;
        if let Some(due) = head {
            self.announced(due, now);
        }
    }

    /// If the server's clock was set, every queue is swept.
    pub fn observe(&mut self, offset: Time) {
        if self.offset != offset {
            self.offset = offset;
            self.schedule.sweep = true;
        }
    }

    /// Takes the next message.
    pub fn hear(&mut self, now: Time) {
        let Notice { message, stamp } = self.inbox.remove(0);
        match message {
            Published::Announcement(due) => self.announced(due, now),
            Published::Moved(head) => {
                if self.schedule.run.is_none() && stamp > self.schedule.stamp {
                    self.schedule.stamp = stamp;
                    self.schedule.head = head.map(|due| self.instant_of(due, now));
                }
            }
        }
    }

    /// The connection for announcements is lost, with all that was on its way.
    pub fn unsubscribe(&mut self) {
        self.subscribed = false;
        self.inbox.clear();
    }

    /// The server has confirmed the subscription.
    pub fn resubscribe(&mut self) {
        self.subscribed = true;
        self.schedule.sweep = true;
    }

    /// When the scripts ran of which it has heard, or is going to hear.
    pub fn stamps(&self) -> impl Iterator<Item = Stamp> + '_ {
        let run = self.schedule.run.iter().filter_map(|run| match run {
            Run::Reply { stamp, .. } => Some(*stamp),
            Run::Request => None,
        });
        self.inbox.iter().map(|notice| notice.stamp).chain(run).chain([self.schedule.stamp])
    }

    /// The same, to be changed.
    pub fn stamps_mut(&mut self) -> impl Iterator<Item = &mut Stamp> + '_ {
        let run = self.schedule.run.iter_mut().filter_map(|run| match run {
            Run::Reply { stamp, .. } => Some(stamp),
            Run::Request => None,
        });
        self.inbox.iter_mut().map(|notice| &mut notice.stamp).chain(run).chain([&mut self.schedule.stamp])
    }

    /// The ids that it may still use.
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        let op = self.op.as_ref().and_then(|op| match &op.task {
            Task::Offer { receipt, .. } => *receipt,
            Task::Pop { claim, .. } => Some(*claim),
            Task::Return { receipt, .. } => Some(*receipt),
            Task::Unread(..) | Task::Reschedule(..) => None,
        });
        let late = self.late.iter().filter_map(|call| match call {
            Call::Offer { receipt, .. } => *receipt,
            Call::Take { claim, .. } | Call::Poll { claim } => Some(*claim),
            Call::ReturnToList { receipt, .. } | Call::Restore { receipt, .. } => Some(*receipt),
            _ => None,
        });
        op.into_iter().chain(late).chain(self.spent_claim)
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}
