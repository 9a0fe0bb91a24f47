//! Schedules, by their names.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Inspector;
use super::place::{Inner, Place};
use crate::delayed_queue::StoredSchedule;
use crate::error::{Error, Result};
use crate::schedules::Named;

impl<T> From<&StoredSchedule<T>> for Place {
    fn from(schedule: &StoredSchedule<T>) -> Self {
        Self(Inner::Name(Bytes::copy_from_slice(schedule.name.as_bytes())))
    }
}

impl Inspector {
    /// Reads up to `limit` schedules in the order of their names, with the payloads that they offer. A
    /// schedule that cannot be read is an error. Each call reads all names.
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
    /// for schedule in inspector.schedules("reports", None, 100).await?.into_iter().flatten() {
    ///     println!("{}: {}, next {:?}", schedule.name, schedule.text, schedule.next);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn schedules(
        &self,
        queue: impl AsRef<[u8]>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<Result<StoredSchedule<Bytes>>>> {
        let look = self.look("schedules", queue);
        let [names, records] = look.keys.schedules();
        let after = match after {
            None => None,
            Some(Place(Inner::Name(name))) => Some(name),
            Some(other) => return Err(look.foreign(&other)),
        };
        let members = look.members(&names, None, usize::MAX).await?.into_iter();
        let named: BTreeMap<_, _> = members.map(|named| (named.member, named.score)).collect();
        let is_behind = |name: &Bytes| after.as_ref().is_none_or(|after| name > after);
        let named: Vec<_> = named.into_iter().filter(|(name, _)| is_behind(name)).take(limit).collect();
        let fields: Vec<_> = named.iter().map(|(name, _)| name.clone()).collect();
        let contents = look.all_values(&records, &fields).await?;
        let schedules = named.into_iter().zip(contents).filter_map(|((name, score), bytes)| {
            let named = Named::new(name, score, bytes);
            let state = match named.state() {
                Ok(state) => state?,
                Err(why) => {
                    let name = String::from_utf8_lossy(&named.name);
                    return Some(Err(Error::invalid(format!("reading the schedule `{name}`"), why)));
                }
            };
            let payload = state.record.payload.clone();
            Some(Ok(StoredSchedule::new(&named.name, payload, state)))
        });
        Ok(schedules.collect())
    }
}
