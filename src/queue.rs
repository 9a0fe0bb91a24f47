//! What both handles of a queue share: its names, its codec, and how to say which queue an error is about.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::codec::Codec;
use crate::conn::{Command, OpError, Reply};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::scripts::{self, Call};
use crate::telemetry::{OnServer, QueueCounters, QueueStats};
use crate::wire::keys::Keys;

/// Payloads in one call, at most. Before version 7, Redis drops a connection that sends more than 1,048,576 arguments,
/// and an entry is two.
const MOST: usize = 500_000;

/// One queue of one client, typed by its payload.
pub(crate) struct Queue<T> {
    pub(crate) engine: Arc<Engine>,
    pub(crate) name: Arc<str>,
    pub(crate) keys: Keys,
    pub(crate) counters: Arc<QueueCounters>,
    codec: Arc<dyn Codec<T>>,
    /// What an error calls it: a blocking or a delayed queue.
    role: &'static str,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            name: self.name.clone(),
            keys: self.keys.clone(),
            counters: self.counters.clone(),
            codec: self.codec.clone(),
            role: self.role,
        }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: 'static> Queue<T> {
    pub(crate) fn new(engine: Arc<Engine>, name: &str, codec: Arc<dyn Codec<T>>) -> Self {
        let keys = engine.keys(name);
        let counters = engine.conn.counters().queue(&keys);
        Self { engine, name: name.into(), keys, counters, codec, role: "blocking queue" }
    }

    /// The delayed queue in front of this one.
    pub(crate) fn delayed(mut self) -> Self {
        self.role = "delayed queue";
        self
    }

    /// What an error says was attempted.
    pub(crate) fn attempt(&self, verb: &str) -> String {
        format!("`{verb}` on the {} `{}`", self.role, self.name)
    }

    pub(crate) fn refuse(&self, verb: &str, reason: impl Into<String>) -> Error {
        Error::invalid(self.attempt(verb), reason)
    }

    pub(crate) fn failed(&self, verb: &str) -> impl FnOnce(OpError) -> Error {
        move |error| Error::operation(self.attempt(verb), error)
    }

    pub(crate) fn encode(&self, verb: &str, value: &T) -> Result<Bytes> {
        let payload = self.codec.encode(value).map_err(|error| Error::encode(self.attempt(verb), error))?;
        let most = self.engine.max_payload;
        if payload.len() > most {
            let reason = format!(
                "the payload has {} bytes, more than the {most} that max_payload allows",
                payload.len()
            );
            return Err(self.refuse(verb, reason));
        }
        Ok(payload.into())
    }

    pub(crate) fn encode_all<'a>(
        &self,
        verb: &str,
        values: impl IntoIterator<Item = &'a T>,
    ) -> Result<Vec<Bytes>>
    where
        T: 'a,
    {
        let payloads =
            values.into_iter().map(|value| self.encode(verb, value)).collect::<Result<Vec<_>>>()?;
        self.check_number(verb, payloads.len())?;
        Ok(payloads)
    }

    /// Refuses more payloads than one call takes.
    pub(crate) fn check_number(&self, verb: &str, payloads: usize) -> Result<()> {
        if payloads > MOST {
            let reason =
                format!("{payloads} payloads are more than the {MOST} that one call takes; split them");
            return Err(self.refuse(verb, reason));
        }
        Ok(())
    }

    pub(crate) fn decode(&self, verb: &str, payload: Bytes) -> Result<T> {
        self.codec.decode(&payload).map_err(|error| Error::decode(self.attempt(verb), payload, error))
    }

    /// Runs a command at most once.
    pub(crate) async fn call(&self, verb: &str, command: Command) -> Result<Reply> {
        self.open(verb)?;
        self.engine.conn.call(command).await.map_err(self.failed(verb))
    }

    /// Runs a command that may be run twice without harm.
    pub(crate) async fn read(&self, verb: &str, command: Command) -> Result<Reply> {
        self.open(verb)?;
        self.engine.conn.call_repeatable(command).await.map_err(self.failed(verb))
    }

    /// Runs a script.
    pub(crate) async fn run(&self, verb: &str, call: Call) -> Result<Reply> {
        self.open(verb)?;
        call.run(&self.engine.conn).await.map_err(self.failed(verb))
    }

    /// How the queue is, on the server and here.
    pub(crate) async fn stats(&self) -> Result<QueueStats> {
        const VERB: &str = "stats";
        let keys = &self.keys;
        let call =
            scripts::STATS.on(&[keys.timeout_set(), keys.ordered_list(), keys.target(), keys.quarantine()]);
        let reply = self.run(VERB, call.again_is_harmless()).await?;
        let read = |reply: Reply| -> std::result::Result<OnServer, OpError> {
            let [pending, list_len, ready, quarantined, overdue, head, clock] = reply.into_parts()?;
            let number = |reply: Reply| reply.into_int().map(|number| number.max(0) as u64);
            let head = head.into_optional_bytes()?;
            Ok(OnServer {
                pending: number(pending)?,
                list_len: number(list_len)?,
                ready: number(ready)?,
                quarantined: number(quarantined)?,
                overdue: number(overdue)?,
                head: head.and_then(|score| std::str::from_utf8(&score).ok()?.parse().ok()),
                clock: clock.into_int()?,
            })
        };
        Ok(self.counters.stats(&self.shape(VERB, read(reply))?))
    }

    /// A reply of another shape than promised.
    pub(crate) fn shape<V, E: Into<OpError>>(
        &self,
        verb: &str,
        value: std::result::Result<V, E>,
    ) -> Result<V> {
        value.map_err(|error| Error::operation(self.attempt(verb), error.into()))
    }

    pub(crate) fn open(&self, verb: &str) -> Result<()> {
        self.engine.check_open().map_err(self.failed(verb))
    }
}
