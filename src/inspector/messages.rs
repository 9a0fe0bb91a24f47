//! Messages that receivers have claimed: in flight, waiting for a retry, dead.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Inspector;
use super::cursor::{Cursor, Inner};
use super::look::Look;
use super::sorted::Scored;
use crate::admin::{DeadLetter, UnsettledMessage};
use crate::error::Result;
use crate::receiver::MessageId;
use crate::wire::message::{Member, Record};

impl From<&UnsettledMessage> for Cursor {
    fn from(message: &UnsettledMessage) -> Self {
        let [score, member] = message.cursor();
        Self::in_set(&score, &member)
    }
}

impl From<&DeadLetter> for Cursor {
    fn from(letter: &DeadLetter) -> Self {
        let [score, member] = letter.cursor();
        Self::in_set(&score, &member)
    }
}

impl Inspector {
    /// Reads up to `max` messages that receivers have now, in the order of their ids, so those that were
    /// received first for the first time come first. Each call reads all leases, without their messages.
    ///
    /// # Errors
    /// As [`pending`](Self::pending), with the permissions `HSTRLEN`, `HGET` and `TIME`, too.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// for message in inspector.in_flight("orders", None, 100).await? {
    ///     println!("{}: attempt {}, for {:?} more", message.id, message.attempt, message.remaining);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn in_flight(
        &self,
        queue: impl AsRef<[u8]>,
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<UnsettledMessage>> {
        let look = self.look("in_flight", queue);
        let keys = look.keys.of_messages();
        let after = match after {
            None => None,
            Some(Cursor(Inner::Score { member, .. })) => Some(member),
            Some(other) => return Err(look.foreign(&other)),
        };
        // Those whose leases are extended meanwhile move behind the cursor.
        let leases = look.members(&keys.leases, None, usize::MAX).await?.into_iter();
        let leases: BTreeMap<_, _> =
            leases.filter_map(|lease| Some((member_of(&lease)?.id(), lease))).collect();
        let is_behind = |id: &MessageId| after.as_ref().is_none_or(|after| id.bytes() > after);
        let leases: Vec<_> = leases.into_iter().filter(|(id, _)| is_behind(id)).collect();
        look.with_records(leases, max, |lease, record| {
            // A lease of an earlier delivery may be left.
            member_of(lease).is_some_and(|member| member == Member::new(member.id(), record.delivery))
        })
        .await
    }

    /// Reads up to `max` messages that wait for a retry, in the order in which they are due.
    ///
    /// # Errors
    /// As [`in_flight`](Self::in_flight).
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// for message in inspector.waiting("orders", None, 100).await? {
    ///     println!("{}: attempt {} in {:?}", message.id, message.attempt, message.remaining);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn waiting(
        &self,
        queue: impl AsRef<[u8]>,
        mut after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<UnsettledMessage>> {
        let look = self.look("waiting", queue);
        let keys = look.keys.of_messages();
        let mut messages = Vec::new();
        while messages.len() < max {
            let wanted = max - messages.len();
            let members = look.members(&keys.retries, after, wanted).await?;
            let Some(last) = members.last() else { break };
            let is_end = members.len() < wanted;
            after = Some(Cursor::in_set(&last.score, &last.member));
            let waiting = members.into_iter().filter_map(|member| Some((id_of(&member)?, member))).collect();
            messages.extend(look.with_records(waiting, wanted, |_, _| true).await?);
            if is_end {
                break;
            }
        }
        Ok(messages)
    }

    /// Reads up to `max` dead letters, the oldest first. It needs no handle of the queue;
    /// [`BlockingQueue::dead_letters`](crate::BlockingQueue::dead_letters) also requeues and removes.
    ///
    /// # Errors
    /// As [`in_flight`](Self::in_flight).
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// for letter in inspector.dead_letters("orders", None, 100).await? {
    ///     println!("{}: {} after {} failures: {}", letter.id, letter.reason, letter.failed, letter.error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn dead_letters(
        &self,
        queue: impl AsRef<[u8]>,
        mut after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<DeadLetter>> {
        let look = self.look("dead_letters", queue);
        let keys = look.keys.of_messages();
        let mut letters = Vec::new();
        while letters.len() < max {
            let wanted = max - letters.len();
            let members = look.members(&keys.dead, after, wanted).await?;
            let Some(last) = members.last() else { break };
            after = Some(Cursor::in_set(&last.score, &last.member));
            let ids: Vec<_> = members.iter().map(|member| member.member.clone()).collect();
            let contents = look.all_values(&keys.dead_messages, &ids).await?;
            letters.extend(members.iter().zip(contents).filter_map(|(member, content)| {
                DeadLetter::read(id_of(member)?, member.score.clone(), &content?)
            }));
            if members.len() < wanted {
                break;
            }
        }
        Ok(letters)
    }
}

impl Look {
    /// Reads the records of these messages: of up to `max` that have one which `is_it` accepts.
    async fn with_records(
        &self,
        messages: Vec<(MessageId, Scored)>,
        max: usize,
        is_it: impl Fn(&Scored, &Record) -> bool,
    ) -> Result<Vec<UnsettledMessage>> {
        let records = self.keys.of_messages().messages;
        let clock = self.millis().await?;
        let (mut found, mut left) = (Vec::new(), &messages[..]);
        while !left.is_empty() && found.len() < max {
            let ids: Vec<_> = left.iter().take(max - found.len()).map(|(id, _)| id.bytes()).collect();
            let values = self.values(&records, &ids).await?;
            let (read, rest) = left.split_at(values.len().clamp(1, left.len()));
            left = rest;
            found.extend(read.iter().zip(values).filter_map(|((id, member), value)| {
                let record = Record::parse(&value?).filter(|record| is_it(member, record))?;
                let at = std::str::from_utf8(&member.score).ok()?.parse().ok()?;
                Some(UnsettledMessage::new(*id, record, member.score.clone(), at, clock))
            }));
        }
        Ok(found)
    }

    /// The values of these fields of a hash, as many at a time as one command may read.
    pub(super) async fn all_values(&self, hash: &Bytes, fields: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        let mut values = Vec::with_capacity(fields.len());
        while values.len() < fields.len() {
            values.extend(self.values(hash, &fields[values.len()..]).await?);
        }
        Ok(values)
    }
}

/// What another program wrote there is no lease.
fn member_of(lease: &Scored) -> Option<Member> {
    lease.member[..].try_into().ok().map(Member)
}

fn id_of(scored: &Scored) -> Option<MessageId> {
    scored.member[..].try_into().ok().map(MessageId)
}
