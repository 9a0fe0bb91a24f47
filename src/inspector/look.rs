//! One look of an inspector at a queue: its connection, its keys, and what an error names.

use bytes::Bytes;
use futures::future::{join_all, try_join_all};

use super::page_size::PageSize;
use super::{Cursor, Inspector};
use crate::conn::{Command, Conn, OpError, Reply};
use crate::error::{Error, Result};
use crate::wire::keys::Keys;

/// A look at a queue.
pub(super) struct Look {
    pub(super) conn: Conn,
    pub(super) keys: Keys,
    attempt: String,
}

impl Inspector {
    pub(super) fn look(&self, verb: &str, queue: impl AsRef<[u8]>) -> Look {
        let keys = Keys::new(queue.as_ref());
        let name = String::from_utf8_lossy(queue.as_ref());
        Look {
            conn: self.conn.of(&keys),
            keys,
            attempt: format!("`inspector().{verb}` of the queue `{name}`"),
        }
    }
}

/// The error of a look that failed: nothing was changed.
pub(super) fn failed(attempt: &str, error: OpError) -> Error {
    match error {
        OpError::Unknown(cause) => Error::no_answer(attempt, &cause),
        error => Error::operation(attempt, error),
    }
}

impl Look {
    pub(super) fn failed(&self, error: impl Into<OpError>) -> Error {
        failed(&self.attempt, error.into())
    }

    pub(super) fn invalid(&self, reason: &str) -> Error {
        Error::invalid(&*self.attempt, reason)
    }

    /// The error for a cursor of another kind of row.
    pub(super) fn foreign(&self, cursor: &Cursor) -> Error {
        Error::invalid(&*self.attempt, format!("`{cursor}` is no cursor of what is read here"))
    }

    pub(super) async fn ask(&self, command: Command) -> Result<Reply> {
        self.conn.call(&command.only_reads()).await.map_err(|error| self.failed(error))
    }

    pub(super) async fn strings(&self, command: Command) -> Result<Vec<Bytes>> {
        self.ask(command).await?.into_strings().map_err(|shape| self.failed(shape))
    }

    pub(super) async fn count(&self, command: Command) -> Result<usize> {
        let count = self.ask(command).await?.into_count().map_err(|shape| self.failed(shape))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The server's clock, epoch ms.
    pub(super) async fn millis(&self) -> Result<i64> {
        Ok(self.conn.time().await.map_err(|error| self.failed(error))? / 1_000)
    }

    /// The values of these fields of a hash. They are short, or some of the first ones: as many as one
    /// command may read, and one at least.
    pub(super) async fn values(&self, hash: &Bytes, fields: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        let fields = &fields[..fields.len().min(100)];
        let lengths = fields
            .iter()
            .map(|field| self.count(Command::new("HSTRLEN").arg(hash.clone()).arg(field.clone())));
        let lengths = try_join_all(lengths).await?;
        let values = fields.iter().take(PageSize::fitting(&lengths)).map(async |field| {
            let reply = self.ask(Command::new("HGET").arg(hash.clone()).arg(field.clone())).await?;
            reply.into_optional_bytes().map_err(|shape| self.failed(shape))
        });
        join_all(values).await.into_iter().collect()
    }
}
