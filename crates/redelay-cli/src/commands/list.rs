//! `redelay list`: a page of what is in a queue.

pub(super) mod rows;

use std::pin::pin;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use redelay::inspector::{Cursor, Overview};

use crate::args::What;
use crate::connect::Session;
use crate::decoder::Decoder;
use crate::escape;
use crate::failure::Failure;
use crate::human;
use crate::out::Out;
use crate::payload::{Reader, Shown};
use crate::queue::Name;
use crate::table::{Cell, Column};
use rows::{Item, Row};

/// What is asked for.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) what: What,
    pub(crate) after: Option<Cursor>,
    pub(crate) limit: usize,
}

/// How many payloads of a queue say which codec it has.
const SAMPLE: usize = 10;

/// How many payloads a program of the user's reads at the same time.
const AT_A_TIME: usize = 4;

pub(crate) async fn run(
    session: &Session,
    name: &[u8],
    page: Page,
    decoder: Option<String>,
    out: &Out,
) -> Result<(), Failure> {
    if decoder.is_some() && session.is_masked() {
        return Err(Failure::Usage(
            "--decoder is not allowed here: the profile masks values, and what a program prints cannot be masked"
                .into(),
        ));
    }
    let servers = session.servers(out).await?;
    let queue = session.queue(name).await?;
    let rows = rows::Rows { now: servers.clock(&queue.server), out, is_masked: session.is_masked() };
    let look = Look { session, name, queue: &queue, rows, decoder: decoder.map(Decoder::new) };
    if out.is_json { look.print_json(page).await } else { look.print_table(page).await }
}

/// A page that was read.
struct Read {
    rows: Vec<Row>,
    /// How many things: a pop has a row for each payload, and a schedule that cannot be read has none.
    count: usize,
    /// The last of them.
    last: Option<Cursor>,
}

/// A look into a queue.
struct Look<'a> {
    session: &'a Session,
    name: &'a [u8],
    queue: &'a Overview,
    rows: rows::Rows<'a>,
    decoder: Option<Decoder>,
}

impl Look<'_> {
    /// Prints a line for each row, as they are read.
    async fn print_json(&self, mut page: Page) -> Result<(), Failure> {
        const MOST: usize = 1_000;
        let mut reader = None;
        while page.limit > 0 {
            let limit = page.limit.min(MOST);
            let Read { rows, count, last } = self.read(Page { limit, ..page.clone() }).await?;
            page.limit = if count == limit { page.limit - limit } else { 0 };
            page.after = last;
            if rows.is_empty() {
                continue;
            }
            let reader = match &reader {
                Some(reader) => reader,
                None => reader.insert(self.reader(&rows).await?),
            };
            let mut rows = pin!(self.shown(rows, reader));
            while let Some((row, payload)) = rows.next().await {
                let (name, cursor) = (Name::new(self.name), row.cursor.to_string());
                self.rows.out.json(&Item { name, what: row.item, payload: payload.into(), cursor })?;
            }
        }
        Ok(())
    }

    async fn print_table(&self, page: Page) -> Result<(), Failure> {
        let (what, is_first, limit, out) = (page.what, page.after.is_none(), page.limit, self.rows.out);
        let Read { rows, count, last } = self.read(page).await?;
        let Some(last) = last else {
            return out.line(if is_first { "nothing" } else { "nothing more" });
        };
        let reader = self.reader(&rows).await?;
        let mut columns = rows::columns(what).to_vec();
        let of_payload =
            [Column::long("CODEC").goes(2), Column::number("BYTES").goes(1), Column::long("PAYLOAD")];
        columns.extend(of_payload);
        let cells = |(row, payload): (Row, Option<Shown>)| {
            let payload = payload
                .map(|shown| [shown.codec, human::count(shown.bytes as u64), shown.text].map(Cell::from));
            row.cells.into_iter().chain(payload.into_iter().flatten()).collect()
        };
        out.table(&columns, &self.shown(rows, &reader).map(cells).collect::<Vec<_>>().await)?;
        let last = escape::text(&last.to_string());
        let left = total(what, self.queue).map(|total| total.saturating_sub(count as u64));
        match left.filter(|_| is_first) {
            Some(0) => Ok(()),
            _ if count < limit => Ok(()),
            Some(left) => out.line(&format!("{} more: --after {last}", human::count(left))),
            None => out.line(&format!("more: --after {last}")),
        }
    }

    /// The rows with their payloads as they are printed.
    fn shown(&self, rows: Vec<Row>, reader: &Reader) -> impl Stream<Item = (Row, Option<Shown>)> {
        let shown = async |row: Row| {
            let Some(payload) = &row.payload else { return (row, None) };
            let shown = reader.read(payload);
            let shown = match &self.decoder {
                Some(decoder) => shown.decoded(decoder.decode(payload).await),
                None => shown,
            };
            (row, Some(shown))
        };
        stream::iter(rows).map(shown).buffered(AT_A_TIME)
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
                let (count, last) = (schedules.len(), schedules.last().map(Cursor::from));
                let mut read = Vec::with_capacity(count);
                for schedule in &schedules {
                    match &schedule.1 {
                        Ok(stored) => read.push(rows.schedule(stored, Cursor::from(schedule))),
                        Err(error) => rows.out.note(&error.to_string()),
                    }
                }
                return Ok(Read { rows: read, count, last });
            }
            What::Pops => {
                let pops = inspector.unconfirmed_pops(name, after, limit).await?;
                let of_pop = pops.iter().flat_map(rows::Rows::pops);
                let last = pops.last().map(Cursor::from);
                return Ok(Read { rows: of_pop.collect(), count: pops.len(), last });
            }
        };
        let last = rows.last().map(|row| row.cursor.clone());
        Ok(Read { count: rows.len(), rows, last })
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
        What::Pops => queue.unconfirmed_pops,
    }
}
