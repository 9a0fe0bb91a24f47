//! `redelay show`.

use crate::connect::Session;
use crate::escape;
use crate::failure::Failure;
use crate::out::Out;
use crate::queue::{self, Queue};
use crate::state::State;
use crate::table::Column;

const COLUMNS: [Column; 2] = [Column::text("QUEUE"), Column::long("")];

pub(crate) async fn run(session: &Session, name: &[u8], out: &Out) -> Result<(), Failure> {
    let servers = session.servers(out).await?;
    let queue = session.queue(name).await?;
    let reader = session.reader(&queue).await?;
    if out.is_json {
        out.json(&Queue::new(name, &queue, &reader))?;
    } else {
        out.line(&servers.line())?;
        out.line("")?;
        let mut rows = queue::facts(&queue, &reader);
        rows.insert(0, vec!["QUEUE".into(), escape::bytes(name).into()]);
        out.facts(&COLUMNS, &rows)?;
        if let Some(advice) = State::of(&queue).advice(&queue) {
            out.line(&format!("\n{advice}"))?;
        }
    }
    out.refusals(queue::refusals(&queue, &reader));
    Ok(())
}
