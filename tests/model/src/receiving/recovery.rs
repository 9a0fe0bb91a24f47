//! The parts of the scripts that take back what was left: `recover.lua`, and `release_all.lua`.

use crate::receiving::protocol::{Member, MessageId, Protocol, Reason, Time};
use crate::receiving::server::{Control, Server, Silence};

/// For how long a lease is spared after a silence: half of it.
pub(super) fn extra_time(lease: Time) -> Time {
    (lease + 1) / 2
}

impl Silence {
    /// Whether it spares leases of this length.
    pub(super) fn is_long(&self, lease: Time) -> bool {
        i16::from(self.length) * 4 > i16::from(lease)
    }

    /// Whether there may be a lease that is spared because of it.
    pub(super) fn matters(&self, now: Time) -> bool {
        self.ended <= now && i16::from(now) < i16::from(self.ended) + 2 * i16::from(self.length)
    }
}

/// The model treats all longer silences like this one. (12 hours, in reality.)
pub const LONGEST: Time = Time::MAX;
/// What was left is released if receivers are silent at a second look, which is this much later: 30 s, the
/// usual lease.
pub const SECOND_LOOK: Time = 4;

/// Receivers live if they gave a sign of life before less than this: 10 s, which is between one and two
/// units.
pub const ALIVE: Time = 2;

/// What a client that looks for what was left has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Receivers may live.
    Wait,
    /// Note the time, if nothing is known of receivers.
    Unknown,
    /// Note the time of the first look.
    First,
    /// Release.
    Second,
}

impl Server {
    /// Compares the clock with the last sign of life. A time of one unit is so long that each call is noted,
    /// and longer than the pauses between two attempts to connect.
    pub(super) fn look_at_the_clock(&mut self, protocol: Protocol, last: Option<Time>, expected: Time) {
        let now = self.clock;
        // The first receiver of a queue has nobody to spare.
        let has_leases = !self.leases.is_empty();
        let Control { seen, silences, back, .. } = &mut self.control;
        if *seen == Some(now) {
            return;
        }
        silences.retain(|silence| silence.matters(now));
        let mut note = |begun: Option<Time>, since: Option<Time>| {
            let length = begun.map_or(LONGEST, |begun| now - begun);
            if length > 0 {
                let since = since.filter(|_| protocol.knows_pauses);
                silences.push(Silence { ended: now, length, since });
            }
        };
        if seen.is_some() || has_leases {
            note(*seen, seen.map(|seen| last.map_or(seen, |last| last.min(seen))));
            if last.is_some() {
                note(Some(seen.map_or(expected, |seen| seen.max(expected))), None);
            }
        }
        if seen.is_some_and(|seen| now < seen) {
            *back = *seen;
        }
        *seen = Some(now);
    }

    /// Until when a lease of this length that ends at `ends` is spared.
    fn spared_until(&self, lease: Time, ends: Time) -> Option<Time> {
        let now = self.clock;
        let spares = |silence: &&Silence| {
            silence.matters(now) && silence.is_long(lease) && silence.since.is_none_or(|since| since < ends)
        };
        self.control.silences.iter().filter(spares).map(|silence| silence.ended + extra_time(lease)).max()
    }

    /// Returns how many messages were taken back, how many of them are dead letters, and when the first of
    /// those that are spared may be taken back.
    pub(super) fn recover(&mut self, protocol: Protocol) -> (u8, u8, Option<Time>) {
        let now = self.clock;
        let (mut taken, mut dead, mut later) = (0, 0, None);
        for (ends, member) in self.ended() {
            let record = self.messages.get(&member.id).filter(|record| record.delivery == member.delivery);
            let Some(mut record) = record.copied() else {
                self.leases.remove(&member);
                continue;
            };
            let till = self
                .spared_until(record.policy.lease, ends)
                .filter(|till| protocol.extra_time && now < *till);
            if let Some(till) = till {
                // In the next unit of time.
                let till = if protocol.knows_pauses { till.min(now + 1) } else { till };
                later = Some(later.map_or(till, |later: Time| later.min(till)));
                continue;
            }
            self.leases.remove(&member);
            taken += 1;
            record.lost += 1;
            if record.lost >= record.policy.losses {
                dead += 1;
                self.bury(member.id, &record, Reason::Lost);
            } else {
                // The random number is a half.
                let pause = if record.lost == 1 { 0 } else { record.policy.lease << (record.lost - 2) };
                self.messages.insert(member.id, record);
                self.retries.insert(member.id, now + pause);
            }
        }
        (taken, dead, later)
    }

    /// Leases that have ended, in the order of their ends.
    fn ended(&self) -> Vec<(Time, Member)> {
        let ended = self.leases.iter().filter(|(_, ends)| **ends <= self.clock);
        let mut ended: Vec<_> = ended.map(|(member, ends)| (*ends, *member)).collect();
        ended.sort_unstable();
        ended
    }

    pub(super) fn sweep(&mut self) {
        let now = self.clock;
        let Self { messages, leases, retries, control, .. } = self;
        if control.back.is_none() && messages.len() == leases.len() + retries.len() {
            return;
        }
        for (id, record) in messages {
            match leases.get_mut(&Member { id: *id, delivery: record.delivery }) {
                None => {
                    retries.entry(*id).or_insert(now);
                }
                Some(ends) if control.back.is_some() => *ends = (*ends).min(now + record.policy.lease),
                Some(_) => {}
            }
        }
        control.back = None;
    }

    /// What a look does now, if receivers have to be silent for this long.
    #[must_use]
    pub fn look(&self, silent_for: Time, looks_twice: bool) -> Look {
        let now = self.clock;
        let Some(seen) = self.control.seen else { return Look::Unknown };
        if now - seen < silent_for {
            return Look::Wait;
        }
        match self.control.silent.filter(|silent| *silent > seen && *silent <= now) {
            _ if !looks_twice => Look::Second,
            None => Look::First,
            Some(silent) if now - silent < SECOND_LOOK => Look::Wait,
            Some(_) => Look::Second,
        }
    }

    pub(super) fn release_all(&mut self, silent_for: Time, looks_twice: bool) -> u8 {
        let look = if silent_for > 0 { self.look(silent_for, looks_twice) } else { Look::Second };
        match look {
            Look::Second => self.release(),
            Look::First => {
                self.control.silent = Some(self.clock);
                0
            }
            Look::Unknown => {
                if !(self.inbox.is_empty() && self.messages.is_empty()) {
                    self.control.seen = Some(self.clock);
                }
                0
            }
            Look::Wait => 0,
        }
    }

    fn release(&mut self) -> u8 {
        // Receivers that live have the inbox, and what they may still extend.
        let control = &self.control;
        let sign = control.seen.or(control.silent).unwrap_or(self.clock);
        let is_alive = (self.clock - sign).abs() < ALIVE;
        let ended = self.ended();
        if is_alive && self.control.seen.is_none() && !(ended.is_empty() && self.inbox.is_empty()) {
            // Nobody knows when they were.
            self.control.silent.get_or_insert(self.clock);
        }
        let ended = if is_alive { Vec::new() } else { ended };
        let is_last = |member: &Member| {
            self.messages.get(&member.id).is_some_and(|record| record.delivery == member.delivery)
        };
        let mut ids: Vec<MessageId> =
            ended.iter().filter(|(_, member)| is_last(member)).map(|(_, member)| member.id).collect();
        let mut retries: Vec<(Time, MessageId)> = self.retries.iter().map(|(id, at)| (*at, *id)).collect();
        retries.sort_unstable();
        ids.extend(retries.iter().map(|(_, id)| *id));
        if ids.is_empty() && (is_alive || self.inbox.is_empty()) {
            return 0;
        }
        let mut released = 0;
        for id in ids.iter().rev() {
            if let Some(record) = self.messages.remove(id) {
                self.target.insert(0, record.payload);
                released += 1;
            }
            self.retries.remove(id);
        }
        self.leases.retain(|member, _| !ended.iter().any(|(_, gone)| gone == member));
        if !is_alive {
            released += self.inbox.len() as u8;
            self.put_inbox_back();
        }
        released
    }
}
