//! `redelay list`: a page of what is in a queue.

mod rows;

use bytes::Bytes;
use redelay::inspector::{Overview, Place};

use crate::args::What;
use crate::connect::Session;
use crate::failure::Failure;
use crate::human;
use crate::out::Out;
use crate::queue::Name;
use crate::table::Column;
use rows::{Item, Row};

/// What is asked for.
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
    let is_first = page.after.is_none();
    let (what, limit) = (page.what, page.limit);
    let rows = rows::Rows { now: servers.clock(&queue.server), out };
    let read = read(session, &queue.name, page, &rows).await?;
    let mut sample: Vec<Bytes> = read.iter().filter_map(|row| row.payload.clone()).take(SAMPLE).collect();
    if !sample.is_empty() && sample.len() < SAMPLE {
        sample.extend(session.sample(&queue).await?.unwrap_or_default());
    }
    let reader = session.reader_of(name, sample.iter().map(|payload| &payload[..]));
    let shown = |row: &Row| row.payload.as_ref().map(|payload| reader.read(payload));
    if out.is_json {
        return read.into_iter().try_for_each(|row| {
            let payload = shown(&row);
            out.json(&Item { name: Name::new(name), what: row.item, payload, place: row.place })
        });
    }
    let mut columns = rows::columns(what).to_vec();
    columns.extend([Column::long("CODEC").goes(2), Column::number("BYTES").goes(1), Column::long("PAYLOAD")]);
    let cells: Vec<_> = read
        .iter()
        .map(|row| {
            let payload = shown(row).map(|payload| {
                [payload.codec, human::count(payload.bytes as u64), payload.text].map(Into::into)
            });
            row.cells.iter().cloned().chain(payload.into_iter().flatten()).collect()
        })
        .collect();
    if cells.is_empty() {
        return out.line(if is_first { "nothing" } else { "nothing more" });
    }
    out.table(&columns, &cells)?;
    match read.last() {
        Some(last) if read.len() == limit => {
            more(&last.place, total(what, &queue), is_first, read.len(), out)
        }
        _ => Ok(()),
    }
}

/// Says where the next page begins, if there is one.
fn more(place: &str, total: Option<u64>, is_first: bool, shown: usize, out: &Out) -> Result<(), Failure> {
    match total.map(|total| total.saturating_sub(shown as u64)) {
        Some(0) => Ok(()),
        Some(left) if is_first => out.line(&format!("{} more: --after {place}", human::count(left))),
        _ => out.line(&format!("more: --after {place}")),
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

async fn read(
    session: &Session,
    name: &Bytes,
    page: Page,
    rows: &rows::Rows<'_>,
) -> Result<Vec<Row>, Failure> {
    let Page { what, after, limit } = page;
    let inspector = &session.inspector;
    macro_rules! read {
        ($read:ident) => {
            inspector.$read(name, after, limit).await?.iter().map(|row| rows.$read(row)).collect()
        };
    }
    Ok(match what {
        What::Pending => read!(pending),
        What::Ready => read!(ready),
        What::InFlight => read!(in_flight),
        What::Waiting => read!(waiting),
        What::Dead => read!(dead_letters),
        What::Quarantine => read!(quarantine),
        What::Schedules => {
            let schedules = inspector.schedules(name, after, limit).await?;
            let mut read = Vec::with_capacity(schedules.len());
            for schedule in schedules {
                match schedule {
                    Ok(schedule) => read.push(rows.schedule(&schedule)),
                    Err(error) => rows.out.note(&error.to_string()),
                }
            }
            read
        }
    })
}
