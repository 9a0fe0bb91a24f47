//! `redelay list`: a page of what is in a queue.

mod rows;

use bytes::Bytes;
use redelay::inspector::{Overview, Place};

use crate::args::What;
use crate::connect::Session;
use crate::failure::Failure;
use crate::human;
use crate::out::Out;
use crate::payload::Reader;
use crate::queue::Name;
use crate::table::{Cell, Column};
use rows::{Item, Row};

/// What is asked for.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) what: What,
    pub(crate) after: Option<Place>,
    pub(crate) limit: usize,
}

/// How many payloads of a queue say which codec it has.
const SAMPLE: usize = 10;

pub(crate) async fn run(session: &Session, name: &[u8], page: Page, out: &Out) -> Result<(), Failure> {
    let servers = session.servers(out).await?;
    let queue = session.queue(name).await?;
    let rows = rows::Rows { now: servers.clock(&queue.server), out, is_masked: session.is_masked() };
    let look = Look { session, name, queue: &queue, rows };
    if out.is_json { look.print_json(page).await } else { look.print_table(page).await }
}

/// A page that was read.
struct Read {
    rows: Vec<Row>,
    /// Whether it has as many as were asked for, so that there may be more.
    is_full: bool,
}

/// A look into a queue.
struct Look<'a> {
    session: &'a Session,
    name: &'a [u8],
    queue: &'a Overview,
    rows: rows::Rows<'a>,
}

impl Look<'_> {
    /// Prints a line for each row, as they are read.
    async fn print_json(&self, mut page: Page) -> Result<(), Failure> {
        const MOST: usize = 1_000;
        let mut reader = None;
        while page.limit > 0 {
            let limit = page.limit.min(MOST);
            let Read { rows, is_full } = self.read(Page { limit, ..page.clone() }).await?;
            let Some(last) = rows.last() else { break };
            page.limit = if is_full { page.limit - limit } else { 0 };
            page.after = Some(last.place.clone());
            let reader = match &reader {
                Some(reader) => reader,
                None => reader.insert(self.reader(&rows).await?),
            };
            for row in rows {
                let payload = row.payload.as_ref().map(|payload| reader.read(payload));
                let (name, place) = (Name::new(self.name), row.place.to_string());
                self.rows.out.json(&Item { name, what: row.item, payload, place })?;
            }
        }
        Ok(())
    }

    async fn print_table(&self, page: Page) -> Result<(), Failure> {
        let (what, is_first, out) = (page.what, page.after.is_none(), self.rows.out);
        let Read { rows, is_full } = self.read(page).await?;
        let Some(last) = rows.last() else {
            return out.line(if is_first { "nothing" } else { "nothing more" });
        };
        let reader = self.reader(&rows).await?;
        let mut columns = rows::columns(what).to_vec();
        let of_payload =
            [Column::long("CODEC").goes(2), Column::number("BYTES").goes(1), Column::long("PAYLOAD")];
        columns.extend(of_payload);
        let cells = |row: &Row| {
            let payload = row.payload.as_ref().map(|payload| reader.read(payload));
            let payload = payload
                .map(|shown| [shown.codec, human::count(shown.bytes as u64), shown.text].map(Cell::from));
            row.cells.iter().cloned().chain(payload.into_iter().flatten()).collect()
        };
        out.table(&columns, &rows.iter().map(cells).collect::<Vec<_>>())?;
        let left = total(what, self.queue).map(|total| total.saturating_sub(rows.len() as u64));
        match left.filter(|_| is_first) {
            Some(0) => Ok(()),
            _ if !is_full => Ok(()),
            Some(left) => out.line(&format!("{} more: --after {}", human::count(left), last.place)),
            None => out.line(&format!("more: --after {}", last.place)),
        }
    }

    /// How payloads are read: by these, and if they are few, by others of the queue.
    async fn reader(&self, rows: &[Row]) -> Result<Reader, Failure> {
        let mut sample: Vec<Bytes> = rows.iter().filter_map(|row| row.payload.clone()).take(SAMPLE).collect();
        if !sample.is_empty() && sample.len() < SAMPLE {
            sample.extend(self.session.sample(self.queue).await?.0);
        }
        Ok(self.session.reader_of(self.name, sample.iter().map(|payload| &payload[..])))
    }

    async fn read(&self, page: Page) -> Result<Read, Failure> {
        let Page { what, after, limit } = page;
        let (inspector, name, rows) = (&self.session.inspector, &self.queue.name, &self.rows);
        macro_rules! read {
            ($read:ident) => {
                inspector.$read(name, after, limit).await?.iter().map(|row| rows.$read(row)).collect()
            };
        }
        let rows: Vec<Row> = match what {
            What::Pending => read!(pending),
            What::Ready => read!(ready),
            What::InFlight => read!(in_flight),
            What::Waiting => read!(waiting),
            What::Dead => read!(dead_letters),
            What::Quarantine => read!(quarantine),
            What::Schedules => {
                let schedules = inspector.schedules(name, after, limit).await?;
                let is_full = schedules.len() == limit;
                let mut read = Vec::with_capacity(schedules.len());
                for schedule in schedules {
                    match schedule {
                        Ok(schedule) => read.push(rows.schedule(&schedule)),
                        Err(error) => rows.out.note(&error.to_string()),
                    }
                }
                return Ok(Read { rows: read, is_full });
            }
        };
        Ok(Read { is_full: rows.len() == limit, rows })
    }
}

/// How many there are.
fn total(what: What, queue: &Overview) -> Option<u64> {
    match what {
        What::Pending => queue.pending,
        What::Ready => queue.ready,
        What::InFlight => queue.in_flight,
        What::Waiting => queue.waiting,
        What::Dead => queue.dead_letters,
        What::Quarantine => queue.quarantined,
        What::Schedules => queue.schedules,
    }
}
