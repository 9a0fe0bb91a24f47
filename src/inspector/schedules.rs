//! Schedules, by their names.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;

use super::Inspector;
use super::cursor::{Cursor, Inner};
use super::look::Look;
use crate::conn::{Command, Reply};
use crate::delayed_queue::StoredSchedule;
use crate::error::{Error, Result};
use crate::schedules::{Named, run_of};

/// Where the id of the message begins in the field of a job: src/scripts/parts/field.lua.
const MESSAGE: usize = 13;
/// How many runs one command asks for.
const PAGE: usize = 1000;

impl<T> From<&(String, Result<StoredSchedule<T>>)> for Cursor {
    fn from((name, _): &(String, Result<StoredSchedule<T>>)) -> Self {
        Self(Inner::Name(Bytes::copy_from_slice(name.as_bytes())))
    }
}

impl Inspector {
    /// Reads up to `max` schedules in the order of their names, with the payloads that they offer. A
    /// schedule that cannot be read has its name and the error. Each call reads all names. `is_running` may
    /// be true for up to a minute after a run was taken by [`take`](crate::BlockingQueue::take) or a Java
    /// service.
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
    /// for (name, schedule) in inspector.schedules("reports", None, 100).await? {
    ///     match schedule {
    ///         Ok(schedule) => println!("{name}: {}, next {:?}", schedule.text, schedule.next_run),
    ///         Err(error) => println!("{name}: {error}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn schedules(
        &self,
        queue: impl AsRef<[u8]>,
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<(String, Result<StoredSchedule<Bytes>>)>> {
        let look = self.look("schedules", queue);
        let [names, records] = look.keys.schedules();
        let after = match after {
            None => None,
            Some(Cursor(Inner::Name(name))) => Some(name),
            Some(other) => return Err(look.foreign(&other)),
        };
        let members = look.members(&names, None, usize::MAX).await?.into_iter();
        let named: BTreeMap<_, _> = members.map(|named| (named.member, named.score)).collect();
        let is_behind = |name: &Bytes| after.as_ref().is_none_or(|after| name > after);
        let mut named = named.into_iter().filter(|(name, _)| is_behind(name));
        let mut schedules = Vec::new();
        while schedules.len() < max {
            let some: Vec<_> = named.by_ref().take(max - schedules.len()).collect();
            if some.is_empty() {
                break;
            }
            let fields: Vec<_> = some.iter().map(|(name, _)| name.clone()).collect();
            let contents = look.all_values(&records, &fields).await?;
            schedules.extend(some.into_iter().zip(contents).filter_map(|((name, score), bytes)| {
                // Without a record, it is none.
                let named = Named::new(name, score, bytes);
                let state = named.state().transpose()?;
                Some((named.name, state))
            }));
        }
        let runs = schedules.iter().filter_map(|(name, state)| run_of(name, &state.as_ref().ok()?.record));
        let running = look.unfinished(&runs.collect::<Vec<_>>()).await?;
        let mut read = Vec::with_capacity(schedules.len());
        for (bytes, state) in schedules {
            let name = String::from_utf8_lossy(&bytes).into_owned();
            let schedule = match state {
                Ok(state) => {
                    let is_running = run_of(&bytes, &state.record).is_some_and(|run| running.contains(&run));
                    Ok(StoredSchedule::new(&bytes, state.record.payload.clone(), state, is_running))
                }
                Err(why) => Err(Error::unreadable(format!("reading the schedule `{name}`"), why)),
            };
            read.push((name, schedule));
        }
        Ok(read)
    }
}

impl Look {
    /// Those of these runs, by their ids, whose jobs hold them and are no dead letters.
    async fn unfinished(&self, runs: &[Bytes]) -> Result<HashSet<Bytes>> {
        let fields = self.all_values(&self.keys.jobs(), runs).await?;
        let mut unfinished = HashSet::new();
        let mut messages = Vec::new();
        for (run, field) in runs.iter().zip(fields) {
            match field.as_deref().and_then(|field| field.split_at_checked(MESSAGE)) {
                Some(([b'h', ..], _)) => drop(unfinished.insert(run.clone())),
                Some(([b'm' | b'c', ..], message)) => messages.push((run, Bytes::copy_from_slice(message))),
                _ => {}
            }
        }
        for some in messages.chunks(PAGE) {
            let ids = some.iter().map(|(_, message)| message.clone());
            let ask = Command::new("ZMSCORE").arg(self.keys.of_messages().dead).args(ids);
            let deaths = self.ask(ask).await?.into_array().map_err(|error| self.failed(error))?;
            let alive = some.iter().zip(deaths).filter(|(_, death)| *death == Reply::Nil);
            unfinished.extend(alive.map(|((run, _), _)| Bytes::clone(run)));
        }
        Ok(unfinished)
    }
}
