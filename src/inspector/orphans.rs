//! What one of a pair of keys has and the other one lacks.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use futures::future::try_join_all;
use serde::Serialize;

use super::Inspector;
use super::look::Look;
use crate::conn::Command;
use crate::error::Result;
use crate::wire::message::Member;
use crate::wire::time;

/// The most ids that are looked at of a key.
const MOST: usize = 1_000;
/// Of jobs, whose entries are long. A field that was left is found by a sweep within minutes.
const JOBS: usize = 100;
const STALE_MILLIS: u64 = 3_600_000;

/// Ids that only one of two keys has, which should have the same. [`Inspector::orphans`] returns it.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// let orphans = inspector.orphans("orders").await?;
/// println!("{} messages are neither in flight nor waiting", orphans.messages.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Orphans {
    /// Members of leases or retries without a message.
    pub claims: Vec<Bytes>,
    /// Messages with neither a lease nor a retry: no receiver delivers them.
    pub messages: Vec<Bytes>,
    /// Dead letters without content.
    pub dead: Vec<Bytes>,
    /// Contents of dead letters that are not listed.
    pub dead_messages: Vec<Bytes>,
    /// Schedules without a record.
    pub schedules: Vec<Bytes>,
    /// Records of schedules without a next run.
    pub records: Vec<Bytes>,
    /// Ids of jobs that have not been pending for an hour.
    pub jobs: Vec<Bytes>,
    /// Whether all ids of all these keys were looked at. Of a longer key, it is a sample.
    pub is_complete: bool,
}

impl Inspector {
    /// Compares the keys of a queue that should have the same ids: up to 1,000 of each, and 100 jobs. The
    /// keys are read one after the other, so what changes meanwhile may be among them: what two looks have is
    /// true.
    ///
    /// # Errors
    /// As [`in_flight`](Self::in_flight), with the permissions `HRANDFIELD`, `HEXISTS`, `HLEN` and `ZMSCORE`,
    /// too.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let orphans = inspector.orphans("orders").await?;
    /// assert!(orphans.dead.is_empty() && orphans.dead_messages.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn orphans(&self, queue: impl AsRef<[u8]>) -> Result<Orphans> {
        let look = self.look("orphans", queue);
        let keys = look.keys.of_messages();
        let [schedules, records] = look.keys.schedules();
        let mut orphans = Orphans { is_complete: true, ..Orphans::default() };
        let leases = look.first(&keys.leases, &mut orphans.is_complete).await?;
        let retries = look.first(&keys.retries, &mut orphans.is_complete).await?;
        // What another program wrote there is no lease.
        let leased = leases.iter().filter_map(|lease| Some(Member(lease[..].try_into().ok()?).id().bytes()));
        let leased: HashSet<Bytes> = leased.collect();
        let claimed: Vec<_> = leased.iter().cloned().chain(retries).collect();
        orphans.claims = look.absent_from(&keys.messages, claimed).await?;
        if leases.len() < MOST {
            let ids = look.fields(&keys.messages, MOST, &mut orphans.is_complete).await?;
            let ids = ids.into_iter().filter(|id| id.len() == 16 && !leased.contains(id)).collect();
            orphans.messages = look.not_among(&keys.retries, ids).await?;
        }
        let dead = look.first(&keys.dead, &mut orphans.is_complete).await?;
        orphans.dead = look.absent_from(&keys.dead_messages, dead).await?;
        let letters = look.fields(&keys.dead_messages, MOST, &mut orphans.is_complete).await?;
        let letters = letters.into_iter().filter(|id| id.len() == 16).collect();
        orphans.dead_messages = look.not_among(&keys.dead, letters).await?;
        let named = look.first(&schedules, &mut orphans.is_complete).await?;
        orphans.schedules = look.absent_from(&records, named).await?;
        let named = look.fields(&records, MOST, &mut orphans.is_complete).await?;
        orphans.records = look.not_among(&schedules, named).await?;
        orphans.jobs = look.stale_jobs(&mut orphans.is_complete).await?;
        Ok(orphans)
    }
}

impl Look {
    /// The first members of a set.
    async fn first(&self, set: &Bytes, is_complete: &mut bool) -> Result<Vec<Bytes>> {
        let members = self.members(set, None, MOST).await?;
        *is_complete &= members.len() < MOST;
        Ok(members.into_iter().map(|member| member.member).take(MOST).collect())
    }

    /// Some fields of a hash, without their values. The client library takes a reply of three to five items
    /// for a message of a channel if the first one is `message` or the like, so for so few fields, the server
    /// is asked for more, which it repeats.
    async fn fields(&self, hash: &Bytes, most: usize, is_complete: &mut bool) -> Result<Vec<Bytes>> {
        let command = Command::new("HRANDFIELD").arg(hash.clone());
        let command = match self.count(Command::new("HLEN").arg(hash.clone())).await? {
            0 => return Ok(Vec::new()),
            // One may be added.
            few @ 1..=2 => command.number(few),
            3..=5 => command.number(-(JOBS as i64)),
            _ => command.number(most),
        };
        let fields: BTreeSet<_> = self.strings(command).await?.into_iter().collect();
        *is_complete &= fields.len() < most;
        Ok(fields.into_iter().collect())
    }

    /// Which of these are no fields of a hash.
    async fn absent_from(&self, hash: &Bytes, fields: Vec<Bytes>) -> Result<Vec<Bytes>> {
        let exist = fields
            .iter()
            .map(|field| self.count(Command::new("HEXISTS").arg(hash.clone()).arg(field.clone())));
        let exist = try_join_all(exist).await?;
        Ok(fields.into_iter().zip(exist).filter(|(_, exists)| *exists == 0).map(|(field, _)| field).collect())
    }

    /// Which of these are no members of a set.
    async fn not_among(&self, set: &Bytes, members: Vec<Bytes>) -> Result<Vec<Bytes>> {
        let scores = self.scores(set, &members).await?;
        Ok(members.into_iter().zip(scores).filter(|(_, score)| score.is_none()).map(|(id, _)| id).collect())
    }

    /// Ids of jobs that were due an hour ago or earlier, and are not pending.
    async fn stale_jobs(&self, is_complete: &mut bool) -> Result<Vec<Bytes>> {
        let jobs = self.keys.jobs();
        let ids = self.fields(&jobs, JOBS, is_complete).await?;
        let contents = self.all_values(&jobs, &ids).await?;
        let now = self.millis().await?.unsigned_abs();
        // A kind, two times of 6 bytes, and the entry. With what travels with a job, its field waits for the
        // claim.
        let is_late = |content: &Bytes| {
            let is_freed = content.first() == Some(&b'p');
            let due = content
                .get(7..13)
                .filter(|_| is_freed)
                .map(|due| due.iter().fold(0, |due, byte| due << 8 | u64::from(*byte)));
            due.is_some_and(|due| due < time::LIMIT && due.saturating_add(STALE_MILLIS) <= now)
        };
        let late =
            ids.into_iter().zip(contents).filter_map(|(id, content)| Some((id, content.filter(is_late)?)));
        let (ids, entries): (Vec<_>, Vec<_>) = late.map(|(id, content)| (id, content.slice(13..))).unzip();
        let scores = self.scores(self.keys.timeout_set(), &entries).await?;
        Ok(ids.into_iter().zip(scores).filter(|(_, score)| score.is_none()).map(|(id, _)| id).collect())
    }
}
