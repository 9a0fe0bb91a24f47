//! `redelay ls`.

use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use redelay::inspector::{Overview, Unknown};

use crate::connect::Session;
use crate::failure::Failure;
use crate::human;
use crate::out::Out;
use crate::payload::Reader;
use crate::queue::{self, Queue};
use crate::state::{State, is_absent, is_silence};

/// Of how many queues the payloads are read at a time.
const AT_A_TIME: usize = 200;

pub(crate) async fn run(session: &Session, pattern: &[u8], out: &Out) -> Result<(), Failure> {
    let servers = session.servers(out).await?;
    let begun = Instant::now();
    let mut queues = session.inspector.queues(session.pattern(pattern));
    let names: Vec<Bytes> = (&mut queues).try_collect().await?;
    let (calls, refused) = (queues.calls(), queues.unknown());
    let taken = begun.elapsed();
    // Only keys with settings or times of redelay may be left of a queue that no client uses.
    let overviews = session.inspector.overview(&names).await?.into_iter().filter(|queue| !is_absent(queue));
    let overviews: Vec<Overview> = overviews.collect();
    let readers: Vec<Reader> = stream::iter(&overviews)
        .map(|overview| session.reader(overview))
        .buffered(AT_A_TIME)
        .try_collect()
        .await?;
    let mut found: Vec<(Overview, Reader)> = overviews.into_iter().zip(readers).collect();
    found.sort_by_cached_key(|(queue, _)| (State::of(queue), queue.name.clone()));
    let own = |queue: &Overview| session.own_name(&queue.name).to_vec();
    if out.is_json {
        for (queue, reader) in &found {
            out.json(&Queue::new(&own(queue), queue, reader))?;
        }
    } else {
        out.line(&format!(
            "{} · {}, found in {:.1} s with {}",
            servers.line(),
            human::counted(found.len() as u64, "queue", "queues"),
            taken.as_secs_f64(),
            human::counted(calls, "call", "calls"),
        ))?;
        if !found.is_empty() {
            let rows: Vec<_> =
                found.iter().map(|(queue, reader)| queue::row(&own(queue), queue, reader)).collect();
            out.line("")?;
            out.table(&queue::COLUMNS, &rows)?;
        }
    }
    let of_queues = found.iter().flat_map(|(queue, reader)| queue::refusals(queue, reader));
    let is_new = |unknown: &&Unknown| !(servers.are_incomplete() && is_silence(unknown));
    out.refusals(refused.iter().filter(is_new).map(queue::refusal).chain(of_queues));
    Ok(())
}
