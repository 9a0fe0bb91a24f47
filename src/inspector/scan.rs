//! One step of a search of all keys.

use std::time::Duration;

use bytes::Bytes;

use crate::conn::{Command, Conn, OpError};

/// How many keys one command looks at.
const COUNT: usize = 500;
/// The pause between two of them, so that others are served.
pub(super) const PAUSE: Duration = Duration::from_millis(1);
/// The cursor before the first keys, and behind the last ones.
pub(super) const BEGIN: Bytes = Bytes::from_static(b"0");

/// Looks at the next keys of a server, and returns those that match. The cursor is [`BEGIN`] again after the
/// last ones. The caller pauses for [`PAUSE`] between two steps.
pub(super) async fn scan(
    server: &Conn,
    pattern: &'static str,
    cursor: &mut Bytes,
) -> std::result::Result<Vec<Bytes>, OpError> {
    let scan = Command::new("SCAN").arg(cursor.clone()).arg("MATCH").arg(pattern);
    let [next, keys] = server.call(&scan.arg("COUNT").number(COUNT).only_reads()).await?.into_parts()?;
    *cursor = next.into_bytes()?;
    Ok(keys.into_strings()?)
}
