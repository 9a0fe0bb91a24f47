//! Schedules on the server: how they are read, and changed if no other client has changed them.

use bytes::Bytes;

use crate::conn::{Command, Conn, OpError, Reply};
use crate::recurrence::{ScheduleRecord, State, Step};
use crate::scripts;
use crate::wire::entry;
use crate::wire::keys::Keys;

/// The longest name: that of an id without `@` and the 15 digits of a time.
pub(crate) const LONGEST_NAME: usize = 255 - 1 - 15;

/// Schedules as they were at one time by the server's clock, epoch ms.
pub(crate) struct Found {
    pub(crate) now: u64,
    /// Whether there is a name without a record, or a record without a name.
    pub(crate) disagree: bool,
    pub(crate) schedules: Vec<Named>,
}

/// A schedule, or what is in its place.
pub(crate) struct Named {
    pub(crate) name: Bytes,
    pub(crate) next: Option<u64>,
    /// The next run as the server prints it, or nothing.
    score: Bytes,
    /// `None` if there is nothing.
    pub(crate) bytes: Option<Bytes>,
}

impl Named {
    /// A schedule as the server has it: its name, its next run, and its record.
    pub(crate) fn new(name: Bytes, score: Bytes, bytes: Option<Bytes>) -> Self {
        let next = std::str::from_utf8(&score).ok().and_then(|score| score.parse::<f64>().ok());
        let next = next.filter(|next| *next != f64::INFINITY).map(|next| next.max(0.0) as u64);
        Self { name, next, score, bytes }
    }

    /// The same after a change.
    pub(crate) fn after(&self, step: &Step) -> Self {
        let bytes = step.record.as_ref().map(ScheduleRecord::pack);
        Self::new(self.name.clone(), next_of(step).into(), bytes)
    }

    /// Its state, if there is one: the record may have been deleted by hand. An error says why the record
    /// cannot be read, and what to do.
    pub(crate) fn state(&self) -> Result<Option<State>, &'static str> {
        let Some(bytes) = self.bytes.clone() else { return Ok(None) };
        if self.name.len() > LONGEST_NAME {
            return Err("its name is too long: remove it");
        }
        match ScheduleRecord::unpack(&bytes) {
            Some(record) => Ok(Some(State { record, next: self.next, bytes, gone: None })),
            None => Err("it was written by a newer version of redelay, or is damaged: upgrade, or remove it"),
        }
    }
}

/// Whether there may be schedules. It costs less than to read them, and most queues have none.
pub(crate) async fn exist(conn: &Conn, keys: &Keys) -> Result<bool, OpError> {
    Ok(conn.call(&Command::new("EXISTS").args(keys.schedules()).only_reads()).await?.into_count()? > 0)
}

/// Reads schedules in the order of their next runs: at most `most` of them, and fewer if they are long.
pub(crate) async fn read(conn: &Conn, keys: &Keys, skip: usize, most: usize) -> Result<Found, OpError> {
    let call = scripts::READ_SCHEDULES.of(keys, None).number(skip).number(most);
    found(call.only_reads().run(conn).await?)
}

/// Reads the schedules of these names, up to 100: the first ones, if they are long.
pub(crate) async fn read_these(
    conn: &Conn,
    keys: &Keys,
    names: impl IntoIterator<Item = Bytes>,
) -> Result<Vec<Named>, OpError> {
    let call = scripts::READ_SCHEDULES.of(keys, None).number(0).number(0).args(names);
    Ok(found(call.only_reads().run(conn).await?)?.schedules)
}

/// Reads the schedule of this name.
pub(crate) async fn read_one(conn: &Conn, keys: &Keys, name: &Bytes) -> Result<(u64, Named), OpError> {
    let call = scripts::READ_SCHEDULES.of(keys, None).number(0).number(1).arg(name.clone());
    let Found { now, mut schedules, .. } = found(call.only_reads().run(conn).await?)?;
    let absent = || Named { name: name.clone(), next: None, score: Bytes::new(), bytes: None };
    Ok((now, schedules.pop().unwrap_or_else(absent)))
}

/// Which of these schedules have a run that is not done: it is pending, ready, in flight or waits
/// for a retry. Those whose runs may overlap have none.
pub(crate) async fn running(
    conn: &Conn,
    keys: &Keys,
    schedules: impl Iterator<Item = (&Bytes, &ScheduleRecord)>,
) -> Result<Vec<bool>, OpError> {
    let ids: Vec<_> = schedules.map(|(name, record)| run_of(name, record)).collect();
    let asked: Vec<_> = ids.iter().flatten().cloned().collect();
    let mut states = scripts::job_states(conn, keys, &asked).await?.into_iter();
    let is_running = |id: Option<Bytes>| {
        let Some([word, ..]) = id.and_then(|_| states.next()) else { return Ok(false) };
        Ok(!matches!(&word.into_bytes()?[..], b"none" | b"dead"))
    };
    ids.into_iter().map(is_running).collect()
}

/// The id of the last run, if it holds that until it is done.
pub(crate) fn run_of(name: &[u8], record: &ScheduleRecord) -> Option<Bytes> {
    let holds = record.recurrence.no_overlap.is_some() && record.last > 0;
    holds.then(|| run_id(name, record.last))
}

/// The id of a run.
fn run_id(name: &[u8], run: u64) -> Bytes {
    [name, format!("@{run}").as_bytes()].concat().into()
}

fn found(reply: Reply) -> Result<Found, OpError> {
    let mut parts = reply.into_array()?.into_iter();
    let now = parts.next().unwrap_or(Reply::Nil).into_int()?.unsigned_abs();
    let disagree = parts.next().unwrap_or(Reply::Nil).into_int()? > 0;
    let mut schedules = Vec::new();
    while let (Some(name), Some(next), Some(bytes)) = (parts.next(), parts.next(), parts.next()) {
        let score = next.into_optional_bytes()?.unwrap_or_default();
        schedules.push(Named::new(name.into_bytes()?, score, bytes.into_optional_bytes()?));
    }
    Ok(Found { now, disagree, schedules })
}

/// The next run that a step stores.
fn next_of(step: &Step) -> String {
    step.next.map_or_else(|| "inf".to_owned(), |next| next.to_string())
}

/// What has become of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Changed,
    /// Another client has changed the schedule. Nothing was changed.
    Differs,
    /// The entry that was to be withdrawn is not there any more. Nothing was changed.
    Gone,
}

/// Changes a schedule, if it is as it was read. Also returns the head, if its transfer may have to be
/// started.
///
/// It may be executed although its reply is lost. To read and to decide again is right in any case.
pub(crate) async fn change(
    conn: &Conn,
    keys: &Keys,
    old: &Named,
    step: &Step,
) -> Result<(Change, Option<f64>), OpError> {
    let name = &old.name;
    let id = |run: u64| run_id(name, run);
    let holds = step.record.as_ref().is_some_and(|record| record.recurrence.no_overlap.is_some());
    let last = old.bytes.as_ref().and_then(ScheduleRecord::unpack).map_or(0, |record| record.last);
    let (withdrawn, withdrawn_id) = step
        .withdrawn
        .as_ref()
        .map(|(run, payload)| (entry::pack_job(&id(*run), payload), id(*run)))
        .unwrap_or_default();
    let runs = step.stored.iter().flat_map(|(run, payload)| {
        let id = id(*run);
        [Bytes::from(run.to_string()), id.clone(), entry::pack_job(&id, payload)]
    });
    let reply = scripts::CHANGE_SCHEDULE
        .of(keys, None)
        .arg(name.clone())
        .arg(old.bytes.clone().unwrap_or_default())
        .arg(old.score.clone())
        .arg(step.record.as_ref().map(ScheduleRecord::pack).unwrap_or_default())
        .arg(next_of(step))
        .arg(withdrawn)
        .arg(withdrawn_id)
        .arg(if holds { id(last) } else { Bytes::new() })
        .args(runs)
        .run(conn)
        .await?;
    let [outcome, head] = reply.into_parts()?;
    let outcome = match outcome.into_int()? {
        1 => Change::Changed,
        0 => Change::Differs,
        -1 => Change::Gone,
        _ => return Err(conn.desynchronised()),
    };
    Ok((outcome, head.into_optional_score()?))
}
