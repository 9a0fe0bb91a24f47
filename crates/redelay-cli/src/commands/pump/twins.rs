//! Queues whose names have the same keys of pending entries: `q` and `{q}`.

use bytes::Bytes;
use redelay::inspector::{Inspector, Overview};

use crate::connect::Session;
use crate::escape;
use crate::wanted::twin;

/// How many names are looked at in one pipeline.
pub(crate) const BATCH: usize = 50;

/// Looks at these queues, and at their twins, which share their pending keys.
pub(crate) async fn look(
    inspector: &Inspector,
    names: &[Bytes],
) -> redelay::Result<Vec<(Overview, Option<Overview>)>> {
    let twins: Vec<Option<Bytes>> = names.iter().map(|name| twin(name)).collect();
    let of_twins: Vec<&Bytes> = twins.iter().flatten().collect();
    let (queues, of_twins) = futures::try_join!(inspector.overview(names), inspector.overview(&of_twins))?;
    let mut of_twins = of_twins.into_iter();
    Ok(queues
        .into_iter()
        .zip(twins)
        .map(|(queue, twin)| (queue, twin.and_then(|_| of_twins.next())))
        .collect())
}

/// Why a queue is left out.
pub(crate) fn unclear(session: &Session, name: &[u8]) -> String {
    let other = twin(name).unwrap_or_default();
    let [name, other] = [name, &other[..]].map(|name| escape::bytes(session.own_name(name)));
    format!(
        "`{name}` is left out: `{other}` is in use, too, and both have the same keys of pending entries; name the one that is meant"
    )
}
