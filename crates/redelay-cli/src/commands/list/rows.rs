//! The rows of `redelay list`: what is printed of each kind of thing, beside its payload.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use redelay::admin::{DeadLetter, PopKind, Quarantined, UnconfirmedPop, UnsettledMessage};
use redelay::delayed_queue::{EntryFormat, Overlap, StoredSchedule};
use redelay::inspector::{Cursor, PendingEntry, ReadyPayload};
use serde::Serialize;

use crate::args::What;
use crate::escape;
use crate::human::{self, rfc_3339};
use crate::out::Out;
use crate::payload::{PayloadFields, hex};
use crate::queue::Name;
use crate::table::{Cell, Column};

/// A row as a document.
#[derive(Serialize)]
pub(super) struct Item {
    #[serde(flatten)]
    pub(super) name: Name,
    #[serde(flatten)]
    pub(super) what: Kind,
    #[serde(flatten)]
    pub(super) payload: PayloadFields,
    /// For `--after`: the next page begins behind it.
    pub(super) cursor: String,
}

/// What a document says beside the payload. Times are in RFC 3339, in UTC. `id_text` makes the ids of entries
/// and jobs.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Kind {
    Pending {
        /// `null` if the score is no time.
        due: Option<String>,
        due_in_ms: Option<f64>,
        score: String,
        /// `null` if the entry is malformed.
        id: Option<String>,
        /// `null` if the entry is malformed. Then `entry_hex` has it, unless the profile masks values.
        format: Option<EntryFormat>,
        entry_hex: Option<String>,
    },
    Ready {
        index: usize,
    },
    /// In flight: until the lease ends. Waiting: until the next delivery is due.
    Unsettled {
        id: String,
        /// `null` if it is not known: nothing travels with the job.
        job_id: Option<String>,
        attempt: u32,
        first_received: Option<String>,
        remaining_ms: f64,
    },
    Dead {
        id: String,
        job_id: Option<String>,
        reason: String,
        error: String,
        failed: u32,
        lost: u32,
        first_received: Option<String>,
        died: Option<String>,
    },
    Quarantined {
        due: Option<String>,
        entry_bytes: usize,
        /// `null` if the profile masks values.
        entry_hex: Option<String>,
    },
    Schedule {
        schedule: String,
        runs: String,
        next_run: Option<String>,
        last_run: Option<String>,
        no_overlap: Option<Overlap>,
        is_running: bool,
        start: Option<String>,
        end: Option<String>,
        is_paused: bool,
    },
    Popped {
        /// Of the pop, for `unconfirmed_pops(…)` of the library.
        id: String,
        age_ms: f64,
        from: PopKind,
        /// Which of the pop's payloads, and how many it has.
        index: usize,
        payloads: usize,
    },
}

/// A row for people and programs.
pub(in crate::commands) struct Row {
    pub(super) item: Kind,
    pub(in crate::commands) cells: Vec<Cell>,
    pub(in crate::commands) payload: Option<Bytes>,
    pub(super) cursor: Cursor,
}

const PENDING: [Column; 3] =
    [Column::text("DUE").goes(4), Column::text("IN").goes(3), Column::long("ID").goes(5)];
const READY: [Column; 1] = [Column::number("INDEX")];
const IN_FLIGHT: [Column; 5] = [
    Column::long("ID"),
    Column::long("JOB").goes(4),
    Column::number("ATTEMPT"),
    Column::text("FIRST RECEIVED").goes(3),
    Column::text("LEASE ENDS"),
];
const WAITING: [Column; 5] = [
    Column::long("ID"),
    Column::long("JOB").goes(4),
    Column::number("ATTEMPT"),
    Column::text("FIRST RECEIVED").goes(3),
    Column::text("AGAIN"),
];
const DEAD: [Column; 7] = [
    Column::text("DIED").goes(3),
    Column::long("ID"),
    Column::long("JOB").goes(5),
    Column::text("REASON"),
    Column::number("FAILED").goes(4),
    Column::number("LOST").goes(4),
    Column::long("ERROR"),
];
const QUARANTINE: [Column; 3] =
    [Column::text("DUE"), Column::number("ENTRY BYTES").goes(3), Column::long("ENTRY")];
const POPS: [Column; 4] = [
    Column::text("AGO"),
    Column::long("ID").goes(5),
    Column::text("FROM").goes(3),
    Column::text("NUMBER").goes(2),
];
const SCHEDULES: [Column; 4] =
    [Column::long("NAME"), Column::text("NEXT"), Column::text("IN").goes(3), Column::long("RUNS")];

/// The columns in front of those of the payload.
pub(super) fn columns(what: What) -> &'static [Column] {
    match what {
        What::Pending => &PENDING,
        What::Ready => &READY,
        What::InFlight => &IN_FLIGHT,
        What::Waiting => &WAITING,
        What::Dead => &DEAD,
        What::Quarantine => &QUARANTINE,
        What::Schedules => &SCHEDULES,
        What::Pops => &POPS,
    }
}

/// The most digits of an id of random bytes that people see.
const ID: usize = 10;

/// The id of an entry or of a job in a document, as `id_text` of the library has it: as it is, or in
/// hexadecimal digits behind `0x`. No two ids have the same text.
fn id_text(id: &[u8]) -> String {
    match std::str::from_utf8(id) {
        Ok(text) if !text.starts_with("0x") && !text.chars().any(char::is_control) => text.to_owned(),
        _ => format!("0x{}", hex(id)),
    }
}

/// That of an entry in a table.
fn id_cell(id: &[u8]) -> Cell {
    let text = id_text(id);
    match text.strip_prefix("0x") {
        Some(digits) if digits.len() > ID => format!("0x{}…", &digits[..ID - 2]).into(),
        _ => escape::text(&text).into(),
    }
}

/// The id of a job, if it is known.
fn job_id(id: Option<&Bytes>) -> Option<String> {
    id.map(|id| id_text(id))
}

fn job_cell(id: Option<&Bytes>) -> Cell {
    id.map_or_else(|| "".into(), |id| escape::text(&id_text(id)).into())
}

/// Makes rows.
pub(in crate::commands) struct Rows<'a> {
    /// The server's clock.
    pub(in crate::commands) now: SystemTime,
    pub(in crate::commands) out: &'a Out,
    /// Whether the bytes of entries are not printed.
    pub(in crate::commands) is_masked: bool,
}

impl Rows<'_> {
    pub(in crate::commands) fn pending(&self, entry: &PendingEntry) -> Row {
        let malformed = entry.format.is_none();
        let due = entry.due.map_or_else(|| format!("score {}", entry.score), |due| self.out.time(due));
        let mut cells: Vec<Cell> = vec![escape::text(&due).into(), self.left(entry.due).into()];
        match malformed {
            false => cells.push(id_cell(&entry.id)),
            true => {
                cells.extend(["".into(), "malformed".into(), human::count(entry.entry.len() as u64).into()])
            }
        }
        if malformed {
            cells.push(self.entry_text(&entry.entry).into());
        }
        Row {
            item: Kind::Pending {
                due: entry.due.and_then(rfc_3339),
                due_in_ms: entry.due.map(|due| self.signed_millis(due)),
                score: entry.score.clone(),
                id: (!malformed).then(|| id_text(&entry.id)),
                format: entry.format,
                entry_hex: malformed.then(|| self.entry_hex(&entry.entry)).flatten(),
            },
            cells,
            payload: entry.payload.clone(),
            cursor: Cursor::from(entry),
        }
    }

    pub(super) fn ready(&self, ready: &ReadyPayload) -> Row {
        Row {
            item: Kind::Ready { index: ready.index },
            cells: vec![human::count(ready.index as u64).into()],
            payload: Some(ready.payload.clone()),
            cursor: Cursor::from(ready),
        }
    }

    pub(super) fn in_flight(&self, message: &UnsettledMessage) -> Row {
        self.unsettled(message)
    }

    pub(super) fn waiting(&self, message: &UnsettledMessage) -> Row {
        self.unsettled(message)
    }

    fn unsettled(&self, message: &UnsettledMessage) -> Row {
        Row {
            item: Kind::Unsettled {
                id: message.id.to_string(),
                job_id: job_id(message.job_id.as_ref()),
                attempt: message.attempt,
                first_received: rfc_3339(message.first_received),
                remaining_ms: message.remaining.as_secs_f64() * 1e3,
            },
            cells: vec![
                message.id.to_string().into(),
                job_cell(message.job_id.as_ref()),
                message.attempt.to_string().into(),
                self.out.time(message.first_received).into(),
                human::until(message.remaining).into(),
            ],
            payload: Some(message.payload.clone()),
            cursor: Cursor::from(message),
        }
    }

    pub(super) fn dead_letters(&self, letter: &DeadLetter) -> Row {
        Row {
            item: Kind::Dead {
                id: letter.id.to_string(),
                job_id: job_id(letter.job_id.as_ref()),
                reason: letter.reason.to_string(),
                error: letter.error.clone(),
                failed: letter.failed,
                lost: letter.lost,
                first_received: rfc_3339(letter.first_received),
                died: rfc_3339(letter.died),
            },
            cells: vec![
                self.out.time(letter.died).into(),
                letter.id.to_string().into(),
                job_cell(letter.job_id.as_ref()),
                escape::text(letter.reason.as_str()).into(),
                letter.failed.to_string().into(),
                letter.lost.to_string().into(),
                escape::text(&letter.error).into(),
            ],
            payload: Some(letter.payload.clone()),
            cursor: Cursor::from(letter),
        }
    }

    pub(super) fn quarantine(&self, quarantined: &Quarantined) -> Row {
        let payload = EntryFormat::unpack(&quarantined.entry).map(|(_, _, payload)| payload);
        Row {
            item: Kind::Quarantined {
                due: quarantined.due.and_then(rfc_3339),
                entry_bytes: quarantined.entry.len(),
                entry_hex: self.entry_hex(&quarantined.entry),
            },
            cells: vec![
                quarantined.due.map_or_else(|| "no time".into(), |due| self.out.time(due)).into(),
                human::count(quarantined.entry.len() as u64).into(),
                self.entry_text(&quarantined.entry).into(),
            ],
            payload: payload.map(|payload| quarantined.entry.slice_ref(payload)),
            cursor: Cursor::from(quarantined),
        }
    }

    pub(super) fn schedule(&self, schedule: &StoredSchedule<Bytes>, cursor: Cursor) -> Row {
        let next = match schedule.next_run {
            _ if schedule.is_paused => "paused".into(),
            Some(next) => self.out.time(next),
            None => "never".into(),
        };
        Row {
            item: Kind::Schedule {
                schedule: schedule.name.clone(),
                runs: schedule.text.clone(),
                next_run: schedule.next_run.and_then(rfc_3339),
                last_run: schedule.last_run.and_then(rfc_3339),
                no_overlap: schedule.no_overlap,
                is_running: schedule.is_running,
                start: schedule.start.and_then(rfc_3339),
                end: schedule.end.and_then(rfc_3339),
                is_paused: schedule.is_paused,
            },
            cells: vec![
                escape::text(&schedule.name).into(),
                next.into(),
                self.left(schedule.next_run).into(),
                escape::text(&schedule.text).into(),
            ],
            payload: Some(schedule.value.clone()),
            cursor,
        }
    }

    /// A row for each of its payloads.
    pub(super) fn pops(pop: &UnconfirmedPop) -> impl Iterator<Item = Row> {
        let from = match pop.kind {
            PopKind::Head => "head",
            PopKind::Tail => "tail",
            _ => "delayed queue",
        };
        pop.payloads.iter().enumerate().map(move |(index, payload)| {
            // Of the delayed queue, entries.
            let unpacked = EntryFormat::unpack(payload).filter(|_| pop.kind == PopKind::Delayed);
            Row {
                item: Kind::Popped {
                    id: pop.id.clone(),
                    age_ms: pop.age.as_secs_f64() * 1e3,
                    from: pop.kind,
                    index,
                    payloads: pop.payloads.len(),
                },
                cells: vec![
                    human::span(pop.age).into(),
                    escape::text(&pop.id).into(),
                    from.into(),
                    format!("{} of {}", index + 1, pop.payloads.len()).into(),
                ],
                payload: Some(
                    unpacked.map_or_else(|| payload.clone(), |(_, _, unpacked)| payload.slice_ref(unpacked)),
                ),
                cursor: Cursor::from(pop),
            }
        })
    }

    fn entry_hex(&self, entry: &[u8]) -> Option<String> {
        (!self.is_masked).then(|| hex(entry))
    }

    fn entry_text(&self, entry: &[u8]) -> String {
        self.entry_hex(entry).map_or_else(|| "(masked)".into(), |digits| format!("0x{digits}"))
    }

    /// How long until then: `20 ms`, `overdue 4 m 12 s`.
    fn left(&self, due: Option<SystemTime>) -> String {
        match due.map(|due| due.duration_since(self.now)) {
            None => String::new(),
            Some(Ok(left)) => human::span(left),
            Some(Err(late)) => format!("overdue {}", human::span(late.duration())),
        }
    }

    /// The same in milliseconds, negative for what is overdue.
    fn signed_millis(&self, due: SystemTime) -> f64 {
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        due.duration_since(self.now).map_or_else(|late| -millis(late.duration()), millis)
    }
}
