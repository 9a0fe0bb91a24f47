//! `redelay pump --once`: moves what is due now.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use redelay::{Client, ErrorKind};

use super::event::Event;
use super::twins::{BATCH, look, unclear};
use crate::connect::Session;
use crate::escape;
use crate::failure::Failure;
use crate::human;
use crate::out::Out;
use crate::queue::{Name, refusal};
use crate::state::is_silence;
use crate::wanted::{Owner, Wanted, not_searched};

/// For how many queues it transfers at a time.
const AT_A_TIME: usize = 16;

pub(crate) async fn run(
    session: &Session,
    client: &Client,
    wanted: &Wanted,
    out: &Out,
) -> Result<(), Failure> {
    let mut names = wanted.names.clone();
    for name in &names {
        // It says if there is no such queue.
        session.queue(session.own_name(name)).await?;
    }
    let mut failure =
        if wanted.patterns.is_empty() { None } else { find(session, wanted, &mut names, out).await? };
    let shown = |name: &Bytes| escape::bytes(session.own_name(name));
    let mut transfers = stream::iter(&names)
        .map(async |name| {
            let pump = client.pump(name);
            (name, pump.transfer().await, pump.stats())
        })
        .buffer_unordered(AT_A_TIME);
    let (mut entries, mut queues) = (0, 0);
    while let Some((name, end, stats)) = transfers.next().await {
        let (transferred, quarantined) = (stats.transferred, stats.quarantined);
        if transferred + quarantined > 0 {
            (entries, queues) = (entries + transferred, queues + 1);
            if out.is_json {
                out.json(&Event::Moved {
                    name: Name::new(session.own_name(name)),
                    transferred,
                    quarantined,
                })?;
            } else {
                out.line(&format!("{}: moved {}", shown(name), moved(transferred, quarantined)))?;
            }
        }
        if let Err(error) = end {
            // Unknown, if others of the queue were moved before it. A server that is away ends it with the
            // next queue.
            let kinds = [ErrorKind::Refused, ErrorKind::Invalid, ErrorKind::OutcomeUnknown];
            if !kinds.contains(&error.kind()) {
                return Err(error.into());
            }
            // The others are moved nevertheless.
            let why = Failure::from(error);
            if failure.is_some() {
                out.note(&why.to_string());
            }
            failure.get_or_insert(why);
        }
    }
    if !out.is_json {
        let entries = human::counted(entries, "entry", "entries");
        out.line(&format!("moved {entries} of {}", human::counted(queues, "queue", "queues")))?;
    }
    failure.map_or(Ok(()), Err)
}

fn moved(transferred: u64, quarantined: u64) -> String {
    let transferred = human::counted(transferred, "entry", "entries");
    if quarantined == 0 {
        return transferred;
    }
    let quarantined = human::counted(quarantined, "entry", "entries");
    format!("{transferred}, and {quarantined} that cannot be read to the quarantine")
}

/// Adds the queues in which something is overdue. Returns what is wrong with others.
async fn find(
    session: &Session,
    wanted: &Wanted,
    names: &mut BTreeSet<Bytes>,
    out: &Out,
) -> Result<Option<Failure>, Failure> {
    let mut failure = None;
    let mut search = wanted.search(&session.inspector);
    let mut batches = Box::pin(wanted.of(&mut search).try_chunks(BATCH));
    while let Some(batch) = batches.try_next().await.map_err(|error| Failure::from(error.1))? {
        for (queue, twin) in look(&session.inspector, &batch).await? {
            if let Some(silence) = queue.unknown.iter().find(|unknown| is_silence(unknown)) {
                failure.get_or_insert(Failure::NoConnection(refusal(silence)));
                continue;
            }
            let is_idle = queue.pending == Some(0) || queue.overdue == Some(0);
            if is_idle || names.contains(&queue.name) {
                continue;
            }
            match twin.as_ref().map_or(Owner::This, |twin| wanted.owner(&queue, twin)) {
                Owner::This => {
                    names.insert(queue.name);
                }
                Owner::Twin => {}
                Owner::Unclear => {
                    let why = unclear(session, &queue.name);
                    if failure.is_some() {
                        out.note(&why);
                    }
                    failure.get_or_insert(Failure::Negative(why));
                }
            }
        }
    }
    drop(batches);
    let not_searched = || not_searched(&search).map_or_else(Some, |why| why.map(Failure::NoConnection));
    Ok(failure.or_else(not_searched))
}
