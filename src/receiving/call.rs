//! One call of `receive.lua`: its arguments, and what its reply says.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::time::Instant;

use super::forward::Destination;
use super::plan::{News, Scope};
use super::settlement::{Settled, Settlement, ToSettle};
use crate::conn::{OpError, Reply};
use crate::leases::ToExtend;
use crate::scripts::{self, Call};
use crate::wire::keys::{Keys, MessageKeys};
use crate::wire::message::{Member, MessageId, Policy, Record};

/// The settings of one receiver.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    /// For how long leases are extended by themselves.
    pub(crate) extend_for: Duration,
    /// The most dead letters of the queue, and their greatest age in ms; 0 for no limit.
    pub(crate) dead_letters: (u64, u64),
    /// Where dead letters are sent; `None` if they are kept or discarded.
    pub(crate) send_to: Option<Destination>,
}

impl Settings {
    /// The length of the leases.
    pub(super) fn lease(&self) -> Duration {
        Duration::from_millis(self.policy.lease_ms.into())
    }
}

/// What is to be done in one call.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) acknowledge: Vec<ToSettle>,
    pub(super) extend: Vec<ToExtend>,
    pub(super) settle: Vec<ToSettle>,
    pub(super) scope: Scope,
}

/// When a receiver was last answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastReply {
    /// What the server's clock showed, epoch ms.
    pub(super) clock: u64,
    /// When a call that arrived at that time would have been sent.
    pub(super) sent: Instant,
}

impl Turn {
    /// Whether it settles or extends anything.
    pub(super) fn settles(&self) -> bool {
        self.settlements() > 0
    }

    pub(super) fn settlements(&self) -> usize {
        self.acknowledge.len() + self.extend.len() + self.settle.len()
    }

    pub(super) fn add(&mut self, to_settle: ToSettle) {
        match &to_settle.settlement {
            Settlement::Acknowledge => self.acknowledge.push(to_settle),
            _ => self.settle.push(to_settle),
        }
    }

    pub(super) fn call(
        &self,
        receiver: &Bytes,
        token: [u8; 16],
        keys: &Keys,
        of_messages: &MessageKeys,
        settings: &Settings,
        last: Option<LastReply>,
    ) -> Call {
        let words = [
            (self.scope.sweep, "sweep "),
            (self.scope.retries_first, "retries "),
            (self.scope.empty_inbox, "inbox "),
            (settings.send_to.is_some(), "send"),
        ];
        let words: String = words.iter().filter(|(is_said, _)| *is_said).map(|(_, word)| *word).collect();
        let MessageKeys { inbox, messages, leases, retries, receipts, dead, dead_messages, control, .. } =
            of_messages;
        let MessageKeys { channel, jobs, notes, more_notes, .. } = of_messages;
        let acknowledged = numbered(self.acknowledge.iter().map(|done| &done.holds));
        let extended = numbered(self.extend.iter().map(|one| &one.holds));
        let mut call = scripts::RECEIVE
            .on(&[
                keys.target(),
                inbox,
                messages,
                leases,
                retries,
                receipts,
                dead,
                dead_messages,
                control,
                channel,
                keys.timeout_set(),
                jobs,
                notes,
                more_notes,
            ])
            .arg(receiver.clone())
            .arg(Bytes::copy_from_slice(&token))
            .arg(settings.policy.bytes())
            .arg(words)
            .arg(self.numbers([acknowledged.len(), extended.len()], settings.dead_letters, last))
            .args(self.acknowledge.iter().map(|to_settle| to_settle.member.bytes()))
            .args(self.extend.iter().map(|one| one.member.bytes()));
        let none = Bytes::new;
        for ToSettle { member, settlement, holds, .. } in &self.settle {
            let (verb, ms, reason, error) = match settlement {
                Settlement::Acknowledge => ("a", 0, none(), ""),
                Settlement::Retry { after_ms, error } => ("f", *after_ms, none(), &**error),
                Settlement::Snooze { after_ms } => ("s", *after_ms, none(), ""),
                Settlement::Reject { reason, error } => {
                    ("x", 0, Bytes::from_static(reason.as_bytes()), &**error)
                }
                Settlement::Extend { by_ms } => ("e", *by_ms, holds.clone().unwrap_or_default(), ""),
                Settlement::Unread => ("u", 0, none(), ""),
            };
            call = call.arg(verb).arg(member.bytes()).number(ms).arg(reason);
            call = call.arg(error.to_owned());
        }
        for (number, id) in acknowledged.into_iter().chain(extended) {
            call = call.number(number).arg(id);
        }
        call.idempotent()
    }

    /// The numbers of a call. One argument costs the client and the server less than eleven.
    fn numbers(
        &self,
        with_ids: [usize; 2],
        (most_dead, dead_age): (u64, u64),
        last: Option<LastReply>,
    ) -> BytesMut {
        let (clock, pause) = last.map_or((0, 0), |last| (last.clock, last.sent.elapsed().as_millis()));
        let pause = u64::try_from(pause).unwrap_or(u64::MAX);
        let settlements = [self.acknowledge.len(), self.extend.len(), self.settle.len()];
        let mut numbers = BytesMut::with_capacity(64);
        for count in [self.scope.most].into_iter().chain(settlements).chain(with_ids) {
            numbers.put_u32(u32::try_from(count).unwrap_or(u32::MAX));
        }
        numbers.put_u32(fastrand::u32(..));
        [most_dead, dead_age, clock, pause].into_iter().for_each(|number| numbers.put_u64(number));
        numbers
    }
}

/// The ids that some of them hold, and their numbers.
fn numbered<'a>(holds: impl Iterator<Item = &'a Option<Bytes>>) -> Vec<(u32, Bytes)> {
    (1..).zip(holds).filter_map(|(number, id)| Some((number, id.clone()?))).collect()
}

impl Turn {
    /// Answers all settlements with an error.
    pub(super) fn answer_all(&mut self, error: &OpError) {
        for to_settle in self.acknowledge.drain(..).chain(self.settle.drain(..)) {
            let _ = to_settle.answer.send(Err(error.clone()));
        }
    }
}

/// What a reply says.
#[derive(Debug)]
pub(super) struct Report {
    /// What decides about the next step.
    pub(super) news: News,
    /// Messages taken back from lost receivers.
    pub(super) recovered: u64,
    /// Messages that became dead letters.
    pub(super) died: u64,
    /// Dead letters that were removed because there were too many, or they were too old.
    pub(super) trimmed: u64,
    /// Dead letters that wait to be sent to another queue.
    pub(super) to_send: u64,
    /// Messages whose records somebody has deleted.
    pub(super) gone: u64,
    /// Messages of a later version of redelay, which were due.
    pub(super) newer: u64,
    /// Jobs that have expired.
    pub(super) expired: u64,
    /// Why nothing was claimed.
    pub(super) refused: Option<String>,
    /// Why a message did not become a dead letter.
    pub(super) unburied: Option<String>,
    /// Of each settlement, in the order of the call.
    pub(super) settled: Vec<Result<Settled, OpError>>,
    pub(super) claims: Vec<(Member, Record)>,
    /// Claims whose records were not sent.
    pub(super) unsent: Vec<Member>,
}

impl Report {
    /// `None` if this is not the reply to such a call.
    pub(super) fn read(reply: Reply, settlements: usize) -> Option<Self> {
        let mut items = reply.into_array().ok()?.into_iter();
        let mut bytes = || items.next()?.into_bytes().ok();
        let mut numbers = bytes()?;
        let mut int = || numbers.try_get_i64().ok();
        let (clock, lease_ends, retry) = (int()?, int()?, int()?);
        let mut count = || u64::try_from(int()?).ok();
        let (left, recovered, died) = (count()? > 0, count()?, count()?);
        let (trimmed, to_send) = (count()?, count()?);
        let (gone, newer, expired, disagree) = (count()?, count()?, count()?, count()? > 0);
        let hold = u64::try_from(int()?).ok().map(Duration::from_millis);
        let after = |at: i64| {
            let wait = u64::try_from(at.checked_sub(clock)?).unwrap_or(0);
            (at >= 0).then_some(Duration::from_millis(wait))
        };
        let mut text = || {
            let text = bytes()?;
            Some((!text.is_empty()).then(|| String::from_utf8_lossy(&text).into_owned()))
        };
        let (refused, unburied) = (text()?, text()?);
        let results = bytes()?;
        let settled = results
            .iter()
            .map(|result| {
                Some(match result {
                    b'1' => Ok(Settled::Done),
                    b'd' => Ok(Settled::Dead),
                    b'c' => Ok(Settled::Cancelled),
                    b'0' => Ok(Settled::Gone),
                    b'r' => Err(OpError::Server(String::from_utf8_lossy(&bytes()?).into_owned())),
                    _ => return None,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        let (mut claims, mut unsent) = (Vec::new(), Vec::new());
        while let Some(id) = bytes() {
            let record = bytes()?;
            if record.is_empty() {
                unsent.push(Member(id[..].try_into().ok()?));
                continue;
            }
            let record = Record::parse(&record)?;
            let id = MessageId(id[..].try_into().ok()?);
            claims.push((Member::new(id, record.delivery), record));
        }
        let news = News {
            clock: u64::try_from(clock).ok()?,
            lease_ends_in: after(lease_ends),
            retry_in: after(retry),
            claimed: claims.len(),
            left,
            disagree,
            hold,
            refused: refused.is_some(),
        };
        let report = Self {
            news,
            recovered,
            died,
            trimmed,
            to_send,
            gone,
            newer,
            expired,
            refused,
            unburied,
            settled,
            claims,
            unsent,
        };
        (report.settled.len() == settlements).then_some(report)
    }
}
