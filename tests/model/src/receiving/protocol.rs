//! What receivers and the server say to each other, and the variants of the protocol.

/// A payload: no two are the same.
pub type Payload = u8;
/// A time, or a length of time, in quarters of a lease.
pub type Time = i8;
/// The id of a receiver.
pub type ReceiverId = u8;
/// The token of a call. Those of one receiver are in the order of its calls.
pub type Token = u8;

/// The variants of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// A settlement belongs to one delivery. Otherwise it belongs to the message, and any receiver may send
    /// it.
    pub fences: bool,
    /// Each delivery of a message has a number of its own.
    pub numbers_deliveries: bool,
    /// The last call of each receiver leaves a receipt, by which the server knows another try of it.
    pub receipts: bool,
    /// A try that arrives after a later call of its receiver has no effect.
    pub ends_old_tries: bool,
    /// A receiver that has lost a try leaves its receipt behind when it ends, as the try may still arrive.
    pub keeps_receipts: bool,
    /// A call that does not find the receipt of the call before claims nothing under an id that is taken.
    pub looks_for_ids: bool,
    /// No lease is ended for a while after all receivers were silent.
    pub extra_time: bool,
    /// A silence that may be a pause between two calls counts only for leases that ended after it began, and
    /// who learns that a lease is spared looks again before it may be ended. Otherwise, each silence counts
    /// for all, the wait for the end of the extra time included.
    pub knows_pauses: bool,
    /// A blocked receiver moves the payload to the inbox. Otherwise it pops the payload, and a call records
    /// it.
    pub moves: bool,
    /// A call claims what is in the inbox, also for another receiver.
    pub claims_inbox: bool,
    /// A receiver that is woken and wants nothing puts the inbox back.
    pub empties_inbox: bool,
    /// Each new connection ends the one before it on the server: `CLIENT KILL`. A user may lack the
    /// permission.
    pub kills_old_connections: bool,
    /// An acknowledgement deletes the message together with its lease.
    pub deletes_at_once: bool,
    /// A receiver counts its leases from the moment when it sent the call. Otherwise: from the reply.
    pub counts_from_the_call: bool,
    /// What was left is released if all receivers are still silent at a second look.
    pub looks_twice: bool,
}

impl Protocol {
    /// As it is.
    pub const NOW: Self = Self {
        fences: true,
        numbers_deliveries: true,
        receipts: true,
        ends_old_tries: true,
        keeps_receipts: true,
        looks_for_ids: true,
        extra_time: true,
        knows_pauses: true,
        moves: true,
        claims_inbox: true,
        empties_inbox: true,
        kills_old_connections: true,
        deletes_at_once: true,
        counts_from_the_call: true,
        looks_twice: true,
    };
}

/// The id of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId {
    /// That of the call which claimed it first.
    pub token: Token,
    /// Its number in that call.
    pub number: u8,
}

/// A delivery, as the set of leases names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Member {
    /// Of the message.
    pub id: MessageId,
    /// The number of the delivery.
    pub delivery: u8,
}

/// A delivery, as a receiver has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Delivery {
    /// Its name.
    pub member: Member,
    /// What was delivered. The server is not told.
    pub payload: Payload,
}

/// What becomes of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeadMode {
    /// They stay.
    Keep,
    /// They stay until they are sent to another queue.
    Send,
    /// They are deleted.
    Discard,
}

/// The settings of a receiver that stay with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Policy {
    /// A message that failed this often is a dead letter.
    pub attempts: u8,
    /// A message whose leases ended this often is a dead letter.
    pub losses: u8,
    /// The length of a lease.
    pub lease: Time,
    /// What becomes of dead letters.
    pub dead: DeadMode,
}

/// What the server keeps of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Record {
    /// The number of the last delivery.
    pub delivery: u8,
    /// Deliveries that failed.
    pub failed: u8,
    /// Deliveries whose lease ended.
    pub lost: u8,
    /// Of the receiver that claimed it last.
    pub policy: Policy,
    /// When it was claimed for the first time.
    pub first: Time,
    /// What is delivered.
    pub payload: Payload,
}

/// Why a message is a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// It failed too often.
    Attempts,
    /// Its leases ended too often.
    Lost,
    /// A receiver rejected it.
    Rejected,
}

/// A dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Letter {
    /// Whether it waits to be sent to another queue.
    pub to_send: bool,
    /// When it died.
    pub died: Time,
    /// Why.
    pub reason: Reason,
    /// The number of the last delivery.
    pub delivery: u8,
    /// Deliveries that failed.
    pub failed: u8,
    /// Deliveries whose lease ended.
    pub lost: u8,
    /// When it was claimed for the first time.
    pub first: Time,
    /// What was delivered.
    pub payload: Payload,
}

/// How a delivery is settled, if not by an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// It failed: again after this time.
    Retry(Time),
    /// Again after this time. That is not a failure.
    Snooze(Time),
    /// A dead letter now.
    Reject,
    /// A lease of at least this length.
    Extend(Time),
    /// No program has read it.
    Unread,
}

/// One call of `receive.lua`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Receive {
    /// Who calls.
    pub receiver: ReceiverId,
    /// The same for all tries of the call.
    pub token: Token,
    /// How many messages to claim at most.
    pub most: u8,
    /// The caller's settings.
    pub policy: Policy,
    /// What the clock showed when the caller was last answered.
    pub last: Option<Time>,
    /// What it was to show at this call, if nothing came between.
    pub expected: Time,
    /// Look for messages without lease and retry.
    pub sweep: bool,
    /// Retries before new messages, where only one can be claimed.
    pub retries_first: bool,
    /// Put the inbox back.
    pub empty_inbox: bool,
    /// Deliveries that are done.
    pub acknowledge: Vec<Delivery>,
    /// Deliveries whose leases are to be extended.
    pub extend: Vec<Delivery>,
    /// Deliveries to settle in another way.
    pub settle: Vec<(Verb, Delivery)>,
}

/// What a settlement has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Settled {
    /// What it says.
    Done,
    /// The message is a dead letter.
    Dead,
    /// Nothing: the delivery no longer holds.
    Gone,
}

/// A request: one script or command.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// `receive.lua`
    Receive(Receive),
    /// `LMOVE` or `BLMOVE`: a payload for the receivers.
    Move,
    /// `release_all.lua`, if receivers were silent for this long.
    ReleaseAll(Time),
    /// `requeue_dead.lua`
    Requeue(MessageId),
    /// `remove_message.lua`
    Remove(MessageId),
    /// `remove_message.lua`, as a retry
    RetryNow(MessageId),
    /// A receiver ends, and deletes its receipt.
    Forget(ReceiverId),
    /// Somebody offers a payload.
    Push(Payload),
    /// Somebody takes a payload, without a receiver.
    Take,
}

/// The reply to `receive.lua`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Received {
    /// What the clock showed.
    pub clock: Time,
    /// When the first lease may be ended.
    pub lease_ends: Option<Time>,
    /// When the first retry is due.
    pub retry: Option<Time>,
    /// 1 if the call has left payloads, or does not say.
    pub left: u8,
    /// Messages taken back.
    pub recovered: u8,
    /// Messages that became dead letters.
    pub died: u8,
    /// Dead letters to be sent.
    pub to_send: u8,
    /// Of each settlement, in the order of the call.
    pub results: Vec<Settled>,
    /// What was claimed.
    pub claims: Vec<(MessageId, Record)>,
    /// What was claimed, too, and is not sent again.
    pub unsent: Vec<Member>,
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reply {
    /// To `receive.lua`.
    Received(Received),
    /// `receive.lua` found a receipt of a later call.
    TooLate,
    /// A payload was moved or taken, or there was none.
    Payload(Option<Payload>),
    /// How many.
    Count(u8),
}
