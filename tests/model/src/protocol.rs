//! What clients and the server say to each other, and the variants of the protocol.

/// An entry, and its payload: no two have the same.
pub type Entry = u8;
/// A time, or a delay. The unit does not matter: only the order of events does.
pub type Time = i8;
/// The id of a claim or of a receipt.
pub type Id = u8;

/// The variants of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// An offer leaves a receipt, by which the server knows another try of it. Otherwise: as it was before.
    pub receipts: bool,
    /// A client wakes its own transfer when the reply of its offer says so, and not only by the announcement.
    pub own_offers_wake: bool,
    /// A head that the reply to an own call has named is not withdrawn by the message of a peer, which may be
    /// older.
    pub own_heads_stay: bool,
    /// A lost reply, after which nobody knows whether the head was changed and announced, is followed by a
    /// transfer.
    pub lost_replies_wake: bool,
    /// The receipt of a return is kept if a retry was answered, as the first try may still arrive.
    pub keeps_receipts_of_returns: bool,
    /// Each new connection ends the one before it on the server: `CLIENT KILL`. A user may lack the
    /// permission.
    pub kills_old_connections: bool,
    /// How long receipts are kept, by the server's clock; `None` if for longer than anything lasts here.
    pub life: Option<Time>,
}

impl Protocol {
    /// As it was before offers had receipts.
    pub const BEFORE: Self = Self { receipts: false, own_offers_wake: false, ..Self::NOW };
    /// As it is.
    pub const NOW: Self = Self {
        receipts: true,
        own_offers_wake: true,
        own_heads_stay: true,
        lost_replies_wake: true,
        keeps_receipts_of_returns: true,
        kills_old_connections: true,
        life: None,
    };
}

/// The commands that write or publish. A user may lack the permission for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Command {
    /// Writes a receipt.
    Set,
    /// Deletes receipts.
    Del,
    /// Adds to the timeout set.
    Zadd,
    /// Removes from the timeout set.
    Zrem,
    /// Removes from the timeout set what was transferred.
    Zremrangebyrank,
    /// Appends to the ordered list or to the target.
    Rpush,
    /// Puts in front of the ordered list or of the target.
    Lpush,
    /// Removes one element of the ordered list.
    Lrem,
    /// Removes a part of a list.
    Ltrim,
    /// Sets an element of a list.
    Lset,
    /// Writes a claim.
    Hset,
    /// Deletes a claim.
    Hdel,
    /// Publishes a new head.
    Announce,
    /// Publishes a transfer, on a channel of its own.
    PublishMoved,
}

impl Command {
    /// Everything that a user may not be permitted to do.
    pub const ALL: &'static [Self] = &[
        Self::Set,
        Self::Del,
        Self::Zadd,
        Self::Zrem,
        Self::Zremrangebyrank,
        Self::Rpush,
        Self::Lpush,
        Self::Lrem,
        Self::Ltrim,
        Self::Lset,
        Self::Hset,
        Self::Hdel,
        Self::Announce,
        Self::PublishMoved,
    ];
}

/// What the delays of an offer count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum When {
    /// The server's clock.
    Now,
    /// This time.
    From(Time),
}

/// What was popped, with its due time if it was pending.
pub type Popped = Vec<(Entry, Option<Time>)>;

/// A request of a client: one script or command.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// `offer.lua`
    Offer {
        /// Only with receipts.
        receipt: Option<Id>,
        /// What the delays count from.
        when: When,
        /// What to store, with the delays.
        entries: Vec<(Time, Entry)>,
    },
    /// `transfer.lua`
    Transfer,
    /// `take.lua`, one payload
    Take {
        /// Where a copy is kept until the reply has arrived.
        claim: Id,
        /// The claim of an earlier call, to be deleted.
        forget: Option<Id>,
    },
    /// `return_to_list.lua`, to the head
    ReturnToList {
        /// Says that it was done.
        receipt: Id,
        /// In the order of the pops.
        payloads: Vec<Entry>,
    },
    /// `poll.lua`, one entry
    Poll {
        /// Where a copy is kept until the reply has arrived.
        claim: Id,
    },
    /// `restore_entries.lua`
    Restore {
        /// Says that it was done.
        receipt: Id,
        /// In the order of the poll.
        entries: Popped,
    },
    /// `cancel.lua`
    Cancel(Entry),
    /// `remove.lua`, one payload
    Remove(Entry),
    /// `reschedule.lua`
    Reschedule(Entry, Time),
    /// `DelayedQueue::clear`, one command
    Clear,
    /// Deletes the receipt of a call that was answered.
    Forget(Id),
    /// Deletes the claim of a pop that was answered.
    Confirm(Id),
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reply {
    /// The offer is stored.
    Stored {
        /// What its delays counted from.
        base: Time,
        /// The head, if its transfer may have to be started.
        head: Option<Time>,
    },
    /// A retry without a receipt: what the first try stored may have been delivered.
    TooLate,
    /// By the receipt, the offer was refused. Nothing of it is stored, unless even that was refused.
    NotStored {
        /// Whether nothing of it is stored.
        undone: bool,
    },
    /// The server refused a command, and the script ended there.
    Refused,
    /// What a transfer has done.
    Transferred {
        /// How many entries it moved.
        count: u8,
        /// The next due time.
        head: Option<Time>,
    },
    /// What was popped.
    Popped(Popped),
    /// The entry has a new due time, or polled entries are back.
    Pending {
        /// The head, if its transfer may have to be started.
        head: Option<Time>,
    },
    /// How many.
    Count(u8),
}

/// A message to the clients that listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Published {
    /// A new head.
    Announcement(Time),
    /// A transfer, and the head after it.
    Moved(Option<Time>),
}

/// How one call ended, for other tries of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Receipt {
    /// Stored; the delays counted from this time.
    Stored(Time),
    /// The server refused it.
    NotStored {
        /// Whether nothing of it is stored.
        undone: bool,
    },
    /// Payloads or entries were returned.
    Returned,
}
