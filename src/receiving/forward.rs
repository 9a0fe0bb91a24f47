//! Dead letters that are sent on to another queue.
//!
//! A message is a dead letter first; sending it on is a second step, which any receiver with the same setting completes. The
//! push leaves a receipt that is named after the letter, so the step can be repeated, by another process, too.

use std::fmt;

use bytes::Bytes;

use crate::conn::{Command, Conn, OpError};
use crate::scripts;
use crate::wire::keys::{Keys, MessageKeys};

/// The most letters that are sent between two calls.
const MOST: u64 = 20;

/// Where dead letters are sent.
#[derive(Clone)]
pub(crate) struct Destination {
    pub(crate) conn: Conn,
    pub(crate) keys: Keys,
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("queue", self.keys.target()).finish_non_exhaustive()
    }
}

impl Destination {
    /// Sends some of the letters that wait to be sent, the oldest first. Returns how many.
    pub(super) async fn send(&self, conn: &Conn, from: &MessageKeys, waiting: u64) -> Result<usize, OpError> {
        let read = scripts::READ_DEAD.on(&[&from.dead, &from.dead_messages]);
        let letters = read.number(0).number(waiting.min(MOST)).idempotent().run(conn).await?.into_array()?;
        // Behind the number of letters that were looked at.
        let letters = letters.get(1..).unwrap_or_default().chunks_exact(8);
        let sent = letters.len();
        for letter in letters {
            let [id, _, _, _, _, _, died, payload] = letter else { continue };
            let (id, died, payload) =
                (id.clone().into_bytes()?, died.clone().into_int()?, payload.clone().into_bytes()?);
            let name = format!("{}-{died}", id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            let receipt = self.keys.returned_as(&name);
            let push = scripts::RETURN_TO_LIST.on(&[self.keys.target(), &receipt, self.keys.scratch()]);
            let push = push.arg("RPUSH").number(scripts::REMEMBERED_MS).arg(payload);
            push.idempotent().run(&self.conn).await?;
            forget(conn, from, id).await?;
        }
        Ok(sent)
    }
}

async fn forget(conn: &Conn, from: &MessageKeys, id: Bytes) -> Result<(), OpError> {
    conn.call_idempotent(Command::new("ZREM").arg(from.dead.clone()).arg(id.clone())).await?;
    conn.call_idempotent(Command::new("HDEL").arg(from.dead_messages.clone()).arg(id)).await?;
    Ok(())
}
