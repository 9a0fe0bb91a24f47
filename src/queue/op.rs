//! `Op`: one call of a public method. It encodes, runs a command or script, reads the reply and decodes. It
//! knows the queue and the verb, so that every error says which call failed on which queue.

use std::collections::BTreeSet;

use bytes::Bytes;
use tokio::time::Instant;

use super::{AsValue, HandleKind, Queue};
use crate::codec::Codec;
use crate::conn::{Command, OpError, Reply};
use crate::error::{Error, Result};
use crate::scripts::{self, Call};
use crate::wire::keys::Keys;

/// The most payloads in one call. Before version 7, Redis drops a connection that sends more than 1,048,576
/// arguments. An entry takes two arguments.
const MOST: usize = 500_000;

/// A verb on a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op<'a> {
    pub(super) queue: &'a Queue,
    pub(super) verb: &'static str,
    /// Whether it changes nothing. Then an error never says that something may have been executed.
    pub(super) only_reads: bool,
}

impl Op<'_> {
    pub(crate) fn verb(self) -> &'static str {
        self.verb
    }

    /// The same operation, which has executed nothing so far.
    pub(crate) fn reading(self) -> Self {
        Self { only_reads: true, ..self }
    }

    /// The attempt that an error names.
    fn attempt(self) -> String {
        let handle = match self.queue.kind {
            HandleKind::Blocking => "blocking queue",
            HandleKind::Delayed => "delayed queue",
        };
        format!("`{}` on the {handle} `{}`", self.verb, self.queue.name)
    }

    /// The error for a refused argument.
    pub(crate) fn invalid(self, reason: impl Into<String>) -> Error {
        Error::invalid(self.attempt(), reason)
    }

    /// The error for a record that this version cannot read.
    pub(crate) fn unreadable(self, why: impl Into<String>) -> Error {
        Error::unreadable(self.attempt(), why)
    }

    /// The error for a command that failed.
    pub(crate) fn failed(self, error: impl Into<OpError>) -> Error {
        match error.into() {
            OpError::Closed if self.queue.engine.check_open().is_ok() => Error::takes_no_more(self.attempt()),
            OpError::Unknown(cause) if self.only_reads => Error::no_answer(self.attempt(), &cause),
            error => Error::operation(self.attempt(), error),
        }
    }

    /// The error for a delivery that no longer holds.
    pub(crate) fn lease_lost(self) -> Error {
        Error::lease_lost(self.attempt())
    }

    /// Returns an error after a shutdown, or if a cluster cannot hold the queue.
    pub(crate) fn ensure_open(self) -> Result<()> {
        self.queue.engine.check_open().map_err(|error| self.failed(error))?;
        self.ensure_whole()
    }

    /// Returns an error if a cluster cannot hold the queue.
    pub(crate) fn ensure_whole(self) -> Result<()> {
        if self.queue.is_split { Err(self.split(&self.queue.name)) } else { Ok(()) }
    }

    /// Returns an error if a cluster cannot hold this other queue.
    pub(crate) fn ensure_other_is_whole(self, name: &str, keys: &Keys) -> Result<()> {
        if self.queue.conn.can_hold(keys) { Ok(()) } else { Err(self.split(name)) }
    }

    /// Returns an error if a cluster may put this other queue on another server.
    pub(crate) fn ensure_beside(self, name: &str) -> Result<()> {
        self.ensure_whole()?;
        let (conn, keys) = (&self.queue.conn, &self.queue.keys);
        if conn.slot_of(keys) == conn.slot_of(&self.queue.engine.keys(name)) {
            return Ok(());
        }
        Err(self.invalid(format!(
            "a cluster moves payloads only between queues of one slot, and `{name}` is in another; give both names the same part in braces, as in `{{shop}}orders` and `{{shop}}billing`"
        )))
    }

    /// The error of a queue that a cluster cannot hold.
    pub(crate) fn split(self, name: &str) -> Error {
        let plain: String = name.chars().filter(|letter| !matches!(letter, '{' | '}')).collect();
        let plain = if plain.is_empty() { "orders" } else { &plain };
        let why = if name.is_empty() { "its name is empty" } else { "of its braces" };
        self.invalid(format!(
            "a cluster would put the keys of `{name}` on several servers, because {why}; a name such as `{plain}` or `{{{plain}}}` works"
        ))
    }

    pub(crate) fn encode<T: 'static>(self, codec: &dyn Codec<T>, value: impl AsValue<T>) -> Result<Bytes> {
        let payload = value.apply(|value| codec.encode(value));
        let payload = payload.map_err(|error| Error::encode(self.attempt(), error))?;
        let most = self.queue.engine.max_payload;
        if payload.len() > most {
            let size = payload.len();
            return Err(self.invalid(format!(
                "the payload has {size} bytes, more than the {most} that max_payload allows"
            )));
        }
        Ok(payload.into())
    }

    pub(crate) fn encode_all<'v, T: 'static>(
        self,
        codec: &dyn Codec<T>,
        values: impl IntoIterator<Item = &'v T>,
    ) -> Result<Vec<Bytes>> {
        let payloads =
            values.into_iter().map(|value| self.encode(codec, value)).collect::<Result<Vec<_>>>()?;
        self.check_count(payloads.len())?;
        Ok(payloads)
    }

    /// Returns an error for more payloads than one call takes.
    pub(crate) fn check_count(self, payloads: usize) -> Result<()> {
        if payloads > MOST {
            return Err(self.invalid(format!(
                "{payloads} payloads are more than the {MOST} that one call takes: split them into several calls"
            )));
        }
        Ok(())
    }

    pub(crate) fn decode<T: 'static>(self, codec: &dyn Codec<T>, payload: Bytes) -> Result<T> {
        codec.decode(&payload).map_err(|error| Error::decode(self.attempt(), payload, &codec.name(), error))
    }

    /// Runs a command: once, unless it may be repeated.
    pub(crate) async fn call(self, command: Command) -> Result<Reply> {
        self.ensure_open()?;
        let op = if command.is_read() { self.reading() } else { self };
        self.queue.conn.call(&command).await.map_err(|error| op.failed(error))
    }

    /// Runs a command at most once, and waits until replicas have its effect, if they are to confirm writes.
    pub(crate) async fn write(self, command: Command) -> Result<Reply> {
        self.ensure_open()?;
        let (conn, keys) = (&self.queue.conn, &self.queue.keys);
        let deadline = Instant::now() + conn.command_timeout();
        conn.replicated(keys, deadline, conn.call(&command), |_| true)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Reads one element of a list.
    pub(crate) async fn element(self, list: &Bytes, index: i64) -> Result<Option<Bytes>> {
        self.optional_bytes(
            self.call(Command::new("LINDEX").arg(list.clone()).number(index).only_reads()).await?,
        )
    }

    /// Runs a script.
    pub(crate) async fn run(self, call: Call) -> Result<Reply> {
        self.ensure_open()?;
        let op = if call.is_read() { self.reading() } else { self };
        // In a box, or the futures of callers become so deep that the compiler refuses some.
        Box::pin(call.run(&self.queue.conn)).await.map_err(|error| op.failed(error))
    }

    /// A reply may name the head of the queue. Then its transfer may have to be started.
    pub(crate) fn on_head(self, head: Option<f64>) {
        if let (Some(transfer), Some(head)) = (&self.queue.engine.transfer, head) {
            transfer.head(&self.queue.keys, head);
        }
    }

    /// A call that changes due times has failed. If it was executed nevertheless, no client may know of the
    /// new head.
    pub(crate) fn on_lost(self, error: &Error) {
        if let (Some(transfer), true) = (&self.queue.engine.transfer, error.is_outcome_unknown()) {
            transfer.head_unknown(&self.queue.keys);
        }
    }

    /// A call has changed a schedule, or may have.
    pub(crate) fn on_schedule(self) {
        if let Some(transfer) = &self.queue.engine.transfer {
            transfer.scheduled(&self.queue.keys);
        }
    }

    /// The fields of a hash, in the order of their bytes. They are read a part at a time, so those that come
    /// or go meanwhile may be missing.
    pub(crate) async fn fields(self, hash: &Bytes) -> Result<BTreeSet<Bytes>> {
        let (mut fields, mut cursor) = (BTreeSet::new(), Bytes::from_static(b"0"));
        loop {
            let call = scripts::FIELDS.on(&[hash]).arg(cursor).only_reads();
            let mut found = self.strings(self.run(call).await?)?.into_iter();
            cursor = found.next().unwrap_or_default();
            fields.extend(found);
            if matches!(&cursor[..], b"0" | b"") {
                return Ok(fields);
            }
        }
    }

    /// Reads a reply that is a length.
    pub(crate) fn len(self, reply: Reply) -> Result<usize> {
        Ok(self.int(reply)?.max(0) as usize)
    }

    /// Reads a reply that is a count. Returns whether it is more than zero.
    pub(crate) fn any(self, reply: Reply) -> Result<bool> {
        Ok(self.int(reply)? > 0)
    }

    pub(crate) fn int(self, reply: Reply) -> Result<i64> {
        reply.into_int().map_err(|shape| self.failed(shape))
    }

    pub(crate) fn optional_bytes(self, reply: Reply) -> Result<Option<Bytes>> {
        reply.into_optional_bytes().map_err(|shape| self.failed(shape))
    }

    pub(crate) fn optional_score(self, reply: Reply) -> Result<Option<f64>> {
        reply.into_optional_score().map_err(|shape| self.failed(shape))
    }

    pub(crate) fn strings(self, reply: Reply) -> Result<Vec<Bytes>> {
        reply.into_strings().map_err(|shape| self.failed(shape))
    }

    pub(crate) fn parts<const N: usize>(self, reply: Reply) -> Result<[Reply; N]> {
        reply.into_parts().map_err(|shape| self.failed(shape))
    }
}
