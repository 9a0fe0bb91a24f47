//! The keys of one queue, and the scripts as steps on them.
//!
//! A step does what the script of its name does, in the same order of writes, so that a command which the server refuses
//! leaves behind what it leaves on a real server. `tests/scripts.rs` compares both, step by step.

use std::collections::BTreeMap;

/// An entry, and its payload: no two have the same.
pub type Entry = u8;
/// A time, or a delay. The unit does not matter: only the order of events does.
pub type Time = i8;
/// The id of a claim or of a receipt.
pub type Id = u8;

/// The variants of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Offers leave receipts, pops keep their claims in a hash, and scripts check permissions before they write.
    /// Otherwise: as it was before there were receipts.
    pub receipts: bool,
    /// A client wakes its own transfer when the reply of its offer says so, and not only by the announcement.
    pub own_offers_wake: bool,
    /// Each new connection ends the one before it on the server: `CLIENT KILL`. A user may lack the permission.
    pub kills_old_connections: bool,
    /// How long receipts and claims are kept, by the server's clock; `None` if for longer than anything lasts here.
    pub life: Option<Time>,
}

impl Protocol {
    /// Without receipts.
    pub const BEFORE: Self =
        Self { receipts: false, own_offers_wake: false, kills_old_connections: true, life: None };
    /// With receipts.
    pub const NOW: Self = Self { receipts: true, own_offers_wake: true, kills_old_connections: true, life: None };
}

/// The commands that write or publish. A user may lack the permission for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Command {
    /// Writes a receipt.
    Set,
    /// Deletes receipts, or both keys of the pending entries.
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
    /// Pops.
    Lpop,
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

/// What the times of an offer mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum When {
    /// They are delays.
    After,
    /// They are due times.
    At,
    /// They are due times of a retry. If the first try was executed, its entries are due up to this much earlier. Only
    /// without receipts.
    Retry(Time),
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
        /// The receipt of an earlier call, to be deleted.
        forget: Option<Id>,
        /// What the times mean.
        when: When,
        /// What to store.
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
        /// The claim of an earlier call, to be deleted. Only with receipts.
        forget: Option<Id>,
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
    /// Deletes a claim or a receipt whose call was answered.
    Forget(Id),
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reply {
    /// The offer is stored.
    Stored {
        /// The server's clock then.
        clock: Time,
        /// A head whose transfer may have to be started.
        wake: Option<Time>,
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
    /// The entry has a new due time.
    Rescheduled {
        /// It, if the entry is the head now.
        wake: Option<Time>,
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
    /// Stored, at this time.
    Stored(Time),
    /// The server refused it.
    NotStored {
        /// Whether nothing of it is stored.
        undone: bool,
    },
    /// Payloads or entries were returned.
    Returned,
}

/// A command was refused.
#[derive(Clone, Copy, Debug)]
struct Refused;

/// The server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Server {
    /// Its clock.
    pub clock: Time,
    /// Pending entries by due time.
    pub timeout_set: Vec<(Time, Entry)>,
    /// Pending entries in the order of their offers.
    pub ordered_list: Vec<Entry>,
    /// What is ready.
    pub target: Vec<Entry>,
    /// What calls have popped, until their replies have arrived; and until when it is kept.
    pub claims: BTreeMap<Id, (Popped, Time)>,
    /// How calls have ended, and until when that is kept.
    pub receipts: BTreeMap<Id, (Receipt, Time)>,
    /// The command that is refused at present.
    pub refused: Option<Command>,
}

impl Server {
    /// Executes a call. Returns the reply, and what is published.
    pub fn execute(&mut self, protocol: Protocol, call: &Call) -> (Reply, Vec<Published>) {
        let mut published = Vec::new();
        let reply = match call {
            Call::Offer { receipt, forget, when, entries } => match *receipt {
                Some(receipt) => {
                    self.offer(protocol, receipt, *forget, *when, entries, &mut published)
                }
                None => self.offer_without_receipt(*when, entries, &mut published),
            },
            Call::Transfer => self.transfer(&mut published),
            Call::Take { claim, forget } if protocol.receipts => self.take(protocol, *claim, *forget),
            Call::Take { claim, forget } => self.take_before(protocol, *claim, *forget),
            Call::ReturnToList { receipt, payloads } => self.return_to_list(protocol, *receipt, payloads),
            Call::Poll { claim, forget } if protocol.receipts => self.poll(protocol, *claim, *forget),
            Call::Poll { claim, .. } => self.poll_before(protocol, *claim),
            Call::Restore { receipt, entries } => self.restore(protocol, *receipt, entries, &mut published),
            Call::Cancel(entry) => self.cancel(protocol, *entry),
            Call::Remove(entry) => self.remove(*entry),
            Call::Reschedule(entry, delay) => self.reschedule(*entry, *delay, &mut published),
            Call::Clear => self.clear(),
            Call::Forget(id) => self.forget(*id),
        };
        (reply.unwrap_or(Reply::Refused), published)
    }

    /// Sets the clock. What has expired by it is gone.
    pub fn set_clock(&mut self, clock: Time) {
        self.clock = clock;
        self.claims.retain(|_, (_, until)| *until > clock);
        self.receipts.retain(|_, (_, until)| *until > clock);
    }

    /// The earliest due time.
    #[must_use]
    pub fn head(&self) -> Option<Time> {
        self.timeout_set.first().map(|&(due, _)| due)
    }

    /// The due time of a pending entry.
    #[must_use]
    pub fn due(&self, entry: Entry) -> Option<Time> {
        self.timeout_set.iter().find(|(_, pending)| *pending == entry).map(|&(due, _)| due)
    }

    fn permits(&self, command: Command) -> Result<(), Refused> {
        if self.refused == Some(command) { Err(Refused) } else { Ok(()) }
    }

    /// `parts/permitted.lua`
    fn ensure_permitted(&self, commands: &[Command]) -> Result<(), Refused> {
        self.permits(Command::Ltrim)?;
        commands.iter().try_for_each(|command| self.permits(*command))
    }

    fn until(&self, protocol: Protocol) -> Time {
        protocol.life.map_or(Time::MAX, |life| self.clock.saturating_add(life))
    }

    /// `ZADD NX`. Returns whether it was added.
    fn zadd_nx(&mut self, due: Time, entry: Entry) -> bool {
        let is_new = self.due(entry).is_none();
        if is_new {
            self.timeout_set.push((due, entry));
            self.timeout_set.sort_unstable();
        }
        is_new
    }

    fn zrem(&mut self, entry: Entry) -> bool {
        let before = self.timeout_set.len();
        self.timeout_set.retain(|(_, pending)| *pending != entry);
        self.timeout_set.len() < before
    }

    fn lrem(&mut self, entry: Entry) {
        if let Some(at) = self.ordered_list.iter().position(|listed| *listed == entry) {
            self.ordered_list.remove(at);
        }
    }

    /// Without this permission, the script succeeds all the same.
    fn publish(&self, command: Command, message: Published, published: &mut Vec<Published>) {
        if self.permits(command).is_ok() {
            published.push(message);
        }
    }

    fn dues(&self, when: When, entries: &[(Time, Entry)]) -> Vec<(Time, Entry)> {
        let base = if when == When::After { self.clock } else { 0 };
        entries.iter().map(|&(time, entry)| (base + time, entry)).collect()
    }

    fn offer(
        &mut self,
        protocol: Protocol,
        receipt: Id,
        forget: Option<Id>,
        when: When,
        entries: &[(Time, Entry)],
        published: &mut Vec<Published>,
    ) -> Result<Reply, Refused> {
        self.permits(Command::Set)?;
        let clock = self.clock;
        match self.receipts.get(&receipt) {
            None => {}
            Some((Receipt::NotStored { undone }, _)) => return Ok(Reply::NotStored { undone: *undone }),
            Some((Receipt::Stored(clock), _)) => return Ok(Reply::Stored { clock: *clock, wake: None }),
            Some((Receipt::Returned, _)) => unreachable!("ids are unique"),
        }
        let until = self.until(protocol);
        self.receipts.insert(receipt, (Receipt::Stored(clock), until));
        let mut added = Vec::new();
        for (due, entry) in self.dues(when, entries) {
            if self.permits(Command::Zadd).is_err() {
                return Ok(self.refuse_offer(protocol, receipt, &added));
            }
            if self.zadd_nx(due, entry) {
                added.push(entry);
            }
        }
        if !added.is_empty() && self.permits(Command::Rpush).is_err() {
            return Ok(self.refuse_offer(protocol, receipt, &added));
        }
        self.ordered_list.extend(&added);
        let wake = self.announce_new_head(&added, published);
        if let Some(forget) = forget.filter(|_| self.permits(Command::Del).is_ok()) {
            self.receipts.remove(&forget);
        }
        Ok(Reply::Stored { clock, wake })
    }

    fn refuse_offer(&mut self, protocol: Protocol, receipt: Id, added: &[Entry]) -> Reply {
        let undone = added.is_empty() || self.permits(Command::Zrem).is_ok();
        if undone {
            self.timeout_set.retain(|(_, entry)| !added.contains(entry));
        }
        let until = self.until(protocol);
        self.receipts.insert(receipt, (Receipt::NotStored { undone }, until));
        Reply::NotStored { undone }
    }

    /// Announces the head if it was added now. Returns it then, or if it is overdue.
    fn announce_new_head(&self, added: &[Entry], published: &mut Vec<Published>) -> Option<Time> {
        let &(due, head) = self.timeout_set.first()?;
        let is_new = added.contains(&head);
        if is_new {
            self.publish(Command::Announce, Published::Announcement(due), published);
        }
        (is_new || due <= self.clock).then_some(due)
    }

    /// As it was before there were receipts.
    fn offer_without_receipt(
        &mut self,
        when: When,
        entries: &[(Time, Entry)],
        published: &mut Vec<Published>,
    ) -> Result<Reply, Refused> {
        let dues = self.dues(when, entries);
        if let When::Retry(earlier) = when {
            if dues.iter().any(|(due, _)| due - earlier <= self.clock) {
                return Ok(Reply::TooLate);
            }
        }
        let mut added = Vec::new();
        for (due, entry) in dues {
            self.permits(Command::Zadd)?;
            if self.zadd_nx(due, entry) {
                added.push(entry);
            }
        }
        if !added.is_empty() {
            self.permits(Command::Rpush)?;
            self.ordered_list.extend(&added);
        }
        self.announce_new_head(&added, published);
        Ok(Reply::Stored { clock: self.clock, wake: None })
    }

    fn transfer(&mut self, published: &mut Vec<Published>) -> Result<Reply, Refused> {
        let due: Vec<Entry> =
            self.timeout_set.iter().take_while(|(due, _)| *due <= self.clock).map(|&(_, entry)| entry).collect();
        let (found, absent) = self.take_out(&due)?;
        let mut left = due.as_slice();
        while let Some(first) = left.first() {
            let is_found = found.contains(first);
            // What was not found has an LREM of its own, unless the whole list was read.
            let together = if absent {
                left.len()
            } else {
                left.iter().take_while(|entry| found.contains(entry)).count().max(1)
            };
            self.permits(Command::Rpush)?;
            self.target.extend(&left[..together]);
            self.permits(Command::Zremrangebyrank)?;
            self.timeout_set.drain(..together);
            if !absent && !is_found {
                self.permits(Command::Lrem)?;
                self.lrem(*first);
            }
            left = &left[together..];
        }
        let head = self.head();
        if !due.is_empty() {
            self.publish(Command::PublishMoved, Published::Moved(head), published);
        }
        Ok(Reply::Transferred { count: due.len() as u8, head })
    }

    /// Takes due entries out of the front of the list, of which as many are read as are due. Returns those, and whether no
    /// other can be in the list.
    fn take_out(&mut self, due: &[Entry]) -> Result<(Vec<Entry>, bool), Refused> {
        let front = due.len().min(self.ordered_list.len());
        let (mut found, mut not_due) = (Vec::new(), Vec::new());
        for entry in &self.ordered_list[..front] {
            if due.contains(entry) && !found.contains(entry) {
                found.push(*entry);
            } else {
                not_due.push(*entry);
            }
        }
        let absent = front < due.len() && not_due.is_empty();
        if !found.is_empty() {
            self.permits(Command::Lset)?;
            self.permits(Command::Ltrim)?;
            self.ordered_list.drain(..front);
            if !not_due.is_empty() {
                self.permits(Command::Lpush)?;
                self.ordered_list.splice(..0, not_due);
            }
        }
        Ok((found, absent))
    }

    fn take(&mut self, protocol: Protocol, claim: Id, forget: Option<Id>) -> Result<Reply, Refused> {
        if let Some((popped, _)) = self.claims.get(&claim) {
            return Ok(Reply::Popped(popped.clone()));
        }
        let Some(&payload) = self.target.first() else {
            if let Some(forget) = forget {
                self.permits(Command::Hdel)?;
                self.claims.remove(&forget);
            }
            return Ok(Reply::Popped(Vec::new()));
        };
        let popped = vec![(payload, None)];
        self.claim(protocol, claim, forget, &popped)?;
        if self.permits(Command::Ltrim).is_err() {
            self.claims.remove(&claim);
            return Err(Refused);
        }
        self.target.remove(0);
        Ok(Reply::Popped(popped))
    }

    /// `parts/claims.lua`
    fn claim(
        &mut self,
        protocol: Protocol,
        claim: Id,
        forget: Option<Id>,
        popped: &Popped,
    ) -> Result<(), Refused> {
        self.permits(Command::Hdel)?;
        if let Some(forget) = forget {
            self.claims.remove(&forget);
        }
        self.permits(Command::Hset)?;
        self.claims.insert(claim, (popped.clone(), self.until(protocol)));
        Ok(())
    }

    fn take_before(&mut self, protocol: Protocol, claim: Id, forget: Option<Id>) -> Result<Reply, Refused> {
        if let Some((popped, _)) = self.claims.get(&claim) {
            return Ok(Reply::Popped(popped.clone()));
        }
        self.permits(Command::Lpop)?;
        let popped: Popped = self.target.drain(..self.target.len().min(1)).map(|payload| (payload, None)).collect();
        self.permits(Command::Del)?;
        if let Some(forget) = forget {
            self.claims.remove(&forget);
        }
        if !popped.is_empty() {
            self.permits(Command::Rpush)?;
            self.claims.insert(claim, (popped.clone(), self.until(protocol)));
        }
        Ok(Reply::Popped(popped))
    }

    fn return_to_list(
        &mut self,
        protocol: Protocol,
        receipt: Id,
        payloads: &[Entry],
    ) -> Result<Reply, Refused> {
        if protocol.receipts {
            self.ensure_permitted(&[Command::Lpush])?;
        }
        self.permits(Command::Set)?;
        if self.receipts.contains_key(&receipt) {
            return Ok(Reply::Count(0));
        }
        let until = self.until(protocol);
        self.receipts.insert(receipt, (Receipt::Returned, until));
        self.permits(Command::Lpush)?;
        self.target.splice(..0, payloads.iter().copied());
        Ok(Reply::Count(1))
    }

    fn poll(&mut self, protocol: Protocol, claim: Id, forget: Option<Id>) -> Result<Reply, Refused> {
        if let Some((popped, _)) = self.claims.get(&claim) {
            return Ok(Reply::Popped(popped.clone()));
        }
        let Some(&entry) = self.ordered_list.first() else {
            if let Some(forget) = forget {
                self.permits(Command::Hdel)?;
                self.claims.remove(&forget);
            }
            return Ok(Reply::Popped(Vec::new()));
        };
        self.ensure_permitted(&[Command::Zrem])?;
        let popped = vec![(entry, self.due(entry))];
        self.claim(protocol, claim, forget, &popped)?;
        self.zrem(entry);
        self.ordered_list.remove(0);
        Ok(Reply::Popped(popped))
    }

    fn poll_before(&mut self, protocol: Protocol, claim: Id) -> Result<Reply, Refused> {
        if let Some((popped, _)) = self.claims.get(&claim) {
            return Ok(Reply::Popped(popped.clone()));
        }
        self.permits(Command::Lpop)?;
        if self.ordered_list.is_empty() {
            return Ok(Reply::Popped(Vec::new()));
        }
        let entry = self.ordered_list.remove(0);
        let popped = vec![(entry, self.due(entry))];
        self.permits(Command::Zrem)?;
        self.zrem(entry);
        self.permits(Command::Rpush)?;
        self.claims.insert(claim, (popped.clone(), self.until(protocol)));
        Ok(Reply::Popped(popped))
    }

    fn restore(
        &mut self,
        protocol: Protocol,
        receipt: Id,
        entries: &Popped,
        published: &mut Vec<Published>,
    ) -> Result<Reply, Refused> {
        if protocol.receipts {
            self.ensure_permitted(&[Command::Zadd, Command::Lpush])?;
        }
        self.permits(Command::Set)?;
        if self.receipts.contains_key(&receipt) {
            return Ok(Reply::Count(0));
        }
        let until = self.until(protocol);
        self.receipts.insert(receipt, (Receipt::Returned, until));
        let mut restored = Vec::new();
        for &(entry, due) in entries.iter().rev() {
            let listed = match due {
                None => true,
                Some(due) => {
                    self.permits(Command::Zadd)?;
                    self.zadd_nx(due, entry)
                }
            };
            if listed {
                self.permits(Command::Lpush)?;
                self.ordered_list.insert(0, entry);
                restored.push(entry);
            }
        }
        self.announce_new_head(&restored, published);
        Ok(Reply::Count(restored.len() as u8))
    }

    fn cancel(&mut self, protocol: Protocol, entry: Entry) -> Result<Reply, Refused> {
        if protocol.receipts {
            self.ensure_permitted(&[Command::Lrem])?;
        }
        self.permits(Command::Zrem)?;
        if !self.zrem(entry) {
            return Ok(Reply::Count(0));
        }
        self.permits(Command::Lrem)?;
        self.lrem(entry);
        Ok(Reply::Count(1))
    }

    fn remove(&mut self, entry: Entry) -> Result<Reply, Refused> {
        if !self.ordered_list.contains(&entry) {
            return Ok(Reply::Count(0));
        }
        self.permits(Command::Zrem)?;
        self.zrem(entry);
        self.permits(Command::Lset)?;
        self.permits(Command::Lrem)?;
        self.lrem(entry);
        Ok(Reply::Count(1))
    }

    fn reschedule(
        &mut self,
        entry: Entry,
        delay: Time,
        published: &mut Vec<Published>,
    ) -> Result<Reply, Refused> {
        if self.due(entry).is_none() {
            return Ok(Reply::Count(0));
        }
        self.permits(Command::Zadd)?;
        self.zrem(entry);
        let due = self.clock + delay;
        self.zadd_nx(due, entry);
        let is_head = self.timeout_set.first() == Some(&(due, entry));
        if is_head {
            self.publish(Command::Announce, Published::Announcement(due), published);
        }
        Ok(Reply::Rescheduled { wake: is_head.then_some(due) })
    }

    fn clear(&mut self) -> Result<Reply, Refused> {
        self.permits(Command::Del)?;
        let keys = u8::from(!self.ordered_list.is_empty()) + u8::from(!self.timeout_set.is_empty());
        self.timeout_set.clear();
        self.ordered_list.clear();
        Ok(Reply::Count(keys))
    }

    fn forget(&mut self, id: Id) -> Result<Reply, Refused> {
        self.permits(Command::Del)?;
        let known = self.claims.remove(&id).is_some() | self.receipts.remove(&id).is_some();
        Ok(Reply::Count(u8::from(known)))
    }
}
