//! The keys of one queue, and the scripts as steps on them.
//!
//! A step does what the script of its name does, in the same order of writes, so that a command which the
//! server refuses leaves behind what it leaves on a real server. `tests/scripts` compares both, step by
//! step.

use std::collections::BTreeMap;

use crate::protocol::{Call, Command, Entry, Id, Popped, Protocol, Published, Receipt, Reply, Time, When};

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
    /// What pops took, until their replies have arrived.
    pub claims: BTreeMap<Id, Popped>,
    /// How calls have ended, and until when that is known.
    pub receipts: BTreeMap<Id, (Receipt, Time)>,
    /// The command that is refused at present.
    pub refused: Option<Command>,
}

impl Server {
    /// Executes a call. Returns the reply, and what is published.
    pub fn execute(&mut self, protocol: Protocol, call: &Call) -> (Reply, Vec<Published>) {
        let mut published = Vec::new();
        let reply = match call {
            Call::Offer { receipt, when, entries } => match *receipt {
                Some(receipt) => self.offer(protocol, receipt, *when, entries, &mut published),
                None => self.offer_without_receipt(*when, entries, &mut published),
            },
            Call::Transfer => self.transfer(&mut published),
            Call::Take { claim, forget } => self.take(*claim, *forget),
            Call::ReturnToList { receipt, payloads } => self.return_to_list(protocol, *receipt, payloads),
            Call::Poll { claim } => self.poll(*claim),
            Call::Restore { receipt, entries } => self.restore(protocol, *receipt, entries, &mut published),
            Call::Cancel(entry) => self.cancel(*entry),
            Call::Remove(entry) => self.remove(*entry),
            Call::Reschedule(entry, delay) => self.reschedule(*entry, *delay, &mut published),
            Call::Clear => self.clear(),
            Call::Forget(receipt) => self.forget(*receipt),
            Call::Confirm(claim) => self.confirm(*claim),
        };
        (reply.unwrap_or(Reply::Refused), published)
    }

    /// Sets the clock. What has expired by it is gone.
    pub fn set_clock(&mut self, clock: Time) {
        self.clock = clock;
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

    fn base(&self, when: When) -> Time {
        match when {
            When::Now => self.clock,
            When::From(time) => time,
        }
    }

    fn offer(
        &mut self,
        protocol: Protocol,
        receipt: Id,
        when: When,
        entries: &[(Time, Entry)],
        published: &mut Vec<Published>,
    ) -> Result<Reply, Refused> {
        self.permits(Command::Set)?;
        match self.receipts.get(&receipt) {
            None => {}
            Some((Receipt::NotStored { undone }, _)) => return Ok(Reply::NotStored { undone: *undone }),
            Some((Receipt::Stored(base), _)) => {
                return Ok(Reply::Stored { base: *base, head: self.head() });
            }
            Some((Receipt::Returned, _)) => unreachable!("ids are unique"),
        }
        let base = self.base(when);
        let until = self.until(protocol);
        self.receipts.insert(receipt, (Receipt::Stored(base), until));
        let mut added = Vec::new();
        for &(delay, entry) in entries {
            if self.permits(Command::Zadd).is_err() {
                return Ok(self.refuse_offer(protocol, receipt, &added));
            }
            if self.zadd_nx(base + delay, entry) {
                added.push(entry);
            }
        }
        if !added.is_empty() && self.permits(Command::Rpush).is_err() {
            return Ok(self.refuse_offer(protocol, receipt, &added));
        }
        self.ordered_list.extend(&added);
        let head = self.announce_new_head(&added, published).or(self.overdue_head());
        Ok(Reply::Stored { base, head })
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

    /// Announces the head, and returns it, if it is one of these entries.
    fn announce_new_head(&self, entries: &[Entry], published: &mut Vec<Published>) -> Option<Time> {
        let &(due, _) = self.timeout_set.first().filter(|(_, head)| entries.contains(head))?;
        self.publish(Command::Announce, Published::Announcement(due), published);
        Some(due)
    }

    fn overdue_head(&self) -> Option<Time> {
        self.head().filter(|due| *due <= self.clock)
    }

    /// As it was before there were receipts.
    fn offer_without_receipt(
        &mut self,
        when: When,
        entries: &[(Time, Entry)],
        published: &mut Vec<Published>,
    ) -> Result<Reply, Refused> {
        let base = self.base(when);
        // The first try may have been executed at this very time.
        let is_late = |(delay, _): &(Time, Entry)| when != When::Now && base + delay <= self.clock;
        if entries.iter().any(is_late) {
            return Ok(Reply::TooLate);
        }
        let mut added = Vec::new();
        for &(delay, entry) in entries {
            self.permits(Command::Zadd)?;
            if self.zadd_nx(base + delay, entry) {
                added.push(entry);
            }
        }
        if !added.is_empty() {
            self.permits(Command::Rpush)?;
            self.ordered_list.extend(&added);
        }
        self.announce_new_head(&added, published);
        Ok(Reply::Stored { base: self.clock, head: None })
    }

    fn transfer(&mut self, published: &mut Vec<Published>) -> Result<Reply, Refused> {
        let due: Vec<Entry> = self
            .timeout_set
            .iter()
            .take_while(|(due, _)| *due <= self.clock)
            .map(|&(_, entry)| entry)
            .collect();
        if !due.is_empty() {
            // What is refused after the first of them is undone.
            for command in [Command::Lrem, Command::Rpush, Command::Zremrangebyrank] {
                self.permits(command)?;
            }
        }
        self.target.extend(&due);
        self.timeout_set.drain(..due.len());
        due.iter().for_each(|entry| self.lrem(*entry));
        let head = self.head();
        if !due.is_empty() {
            self.publish(Command::PublishMoved, Published::Moved(head), published);
        }
        Ok(Reply::Transferred { count: due.len() as u8, head })
    }

    /// `parts/claims.lua`
    fn claim(&mut self, claim: Id, forget: Option<Id>, popped: &Popped) -> Result<(), Refused> {
        self.unclaim(forget)?;
        self.permits(Command::Hset)?;
        self.claims.insert(claim, popped.clone());
        Ok(())
    }

    fn unclaim(&mut self, claim: Option<Id>) -> Result<(), Refused> {
        self.permits(Command::Hdel)?;
        if let Some(claim) = claim {
            self.claims.remove(&claim);
        }
        Ok(())
    }

    fn take(&mut self, claim: Id, forget: Option<Id>) -> Result<Reply, Refused> {
        if let Some(popped) = self.claims.get(&claim) {
            return Ok(Reply::Popped(popped.clone()));
        }
        let Some(&payload) = self.target.first() else {
            if forget.is_some() {
                self.unclaim(forget)?;
            }
            return Ok(Reply::Popped(Popped::new()));
        };
        let popped = vec![(payload, None)];
        self.claim(claim, forget, &popped)?;
        if self.permits(Command::Ltrim).is_err() {
            self.unclaim(Some(claim))?;
            return Err(Refused);
        }
        self.target.remove(0);
        Ok(Reply::Popped(popped))
    }

    fn return_to_list(
        &mut self,
        protocol: Protocol,
        receipt: Id,
        payloads: &[Entry],
    ) -> Result<Reply, Refused> {
        self.ensure_permitted(&[Command::Lpush])?;
        self.permits(Command::Set)?;
        if self.receipts.contains_key(&receipt) {
            return Ok(Reply::Count(0));
        }
        let until = self.until(protocol);
        self.receipts.insert(receipt, (Receipt::Returned, until));
        self.target.splice(..0, payloads.iter().copied());
        Ok(Reply::Count(1))
    }

    fn poll(&mut self, claim: Id) -> Result<Reply, Refused> {
        if let Some(popped) = self.claims.get(&claim) {
            return Ok(Reply::Popped(popped.clone()));
        }
        let Some(&entry) = self.ordered_list.first() else {
            return Ok(Reply::Popped(Popped::new()));
        };
        self.ensure_permitted(&[Command::Zrem])?;
        let popped = vec![(entry, self.due(entry))];
        self.claim(claim, None, &popped)?;
        self.zrem(entry);
        self.ordered_list.remove(0);
        Ok(Reply::Popped(popped))
    }

    fn restore(
        &mut self,
        protocol: Protocol,
        receipt: Id,
        entries: &Popped,
        published: &mut Vec<Published>,
    ) -> Result<Reply, Refused> {
        self.ensure_permitted(&[Command::Lpush, Command::Zadd])?;
        self.permits(Command::Set)?;
        if self.receipts.contains_key(&receipt) {
            return Ok(Reply::Pending { head: self.head() });
        }
        let until = self.until(protocol);
        self.receipts.insert(receipt, (Receipt::Returned, until));
        let mut restored = Vec::new();
        for &(entry, due) in entries.iter().rev() {
            if due.is_none_or(|due| self.zadd_nx(due, entry)) {
                self.ordered_list.insert(0, entry);
                // What was in the list only has no due time to be announced.
                restored.extend(due.map(|_| entry));
            }
        }
        Ok(Reply::Pending { head: self.announce_new_head(&restored, published) })
    }

    fn cancel(&mut self, entry: Entry) -> Result<Reply, Refused> {
        self.ensure_permitted(&[Command::Lrem])?;
        self.permits(Command::Zrem)?;
        if !self.zrem(entry) {
            return Ok(Reply::Count(0));
        }
        if let Some(at) = self.ordered_list.iter().rposition(|listed| *listed == entry) {
            self.ordered_list.remove(at);
        }
        Ok(Reply::Count(1))
    }

    fn remove(&mut self, entry: Entry) -> Result<Reply, Refused> {
        if !self.ordered_list.contains(&entry) {
            return Ok(Reply::Count(0));
        }
        self.ensure_permitted(&[Command::Lrem, Command::Lset, Command::Zrem])?;
        self.zrem(entry);
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
        self.zadd_nx(self.clock + delay, entry);
        Ok(Reply::Pending { head: self.announce_new_head(&[entry], published).or(self.overdue_head()) })
    }

    fn clear(&mut self) -> Result<Reply, Refused> {
        // Without `UNLINK`, it is `DEL`.
        let count = self.ordered_list.len().max(self.timeout_set.len());
        self.timeout_set.clear();
        self.ordered_list.clear();
        Ok(Reply::Count(count as u8))
    }

    fn forget(&mut self, receipt: Id) -> Result<Reply, Refused> {
        self.permits(Command::Del)?;
        Ok(Reply::Count(u8::from(self.receipts.remove(&receipt).is_some())))
    }

    fn confirm(&mut self, claim: Id) -> Result<Reply, Refused> {
        self.permits(Command::Hdel)?;
        Ok(Reply::Count(u8::from(self.claims.remove(&claim).is_some())))
    }
}
