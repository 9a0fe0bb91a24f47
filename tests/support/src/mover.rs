//! A client that calls the transfer script itself.

use redelay_fixture::Server;
use redelay_fixture::redis;

use crate::keys::{JOBS, MOVED, ORDERED_LIST, QUARANTINE, REBUILD, SCRATCH, TARGET, TIMEOUT_SET};

type Reply = (usize, usize, Option<String>, i64, i64, i64);

/// The script, and where its next call goes on.
#[derive(Debug)]
pub struct Mover {
    script: String,
    budget: String,
    /// That of the next call.
    pub cursor: i64,
}

impl Mover {
    /// `budget`: of a call, µs.
    #[must_use]
    pub fn new(script: impl Into<String>, budget: u32) -> Self {
        Self { script: script.into(), budget: budget.to_string(), cursor: 0 }
    }

    /// Returns how many entries were moved or quarantined.
    ///
    /// # Panics
    /// If the server refuses the call.
    pub fn call(&mut self, server: &Server) -> usize {
        self.try_call(server).expect("a reply")
    }

    /// # Errors
    /// If the server refuses the call.
    pub fn try_call(&mut self, server: &Server) -> redis::RedisResult<usize> {
        let keys = [TIMEOUT_SET, ORDERED_LIST, TARGET, QUARANTINE, MOVED, SCRATCH, JOBS, REBUILD];
        let cursor = self.cursor.to_string();
        let arguments = ["5000", &self.budget, "me", &cursor, "0"];
        let words = ["EVAL", &self.script, "8"].into_iter().chain(keys).chain(arguments);
        let reply = redis::from_redis_value(server.try_cmd(words)?)?;
        let (moved, set_aside, _head, _clock, cursor, _runs): Reply = reply;
        self.cursor = cursor;
        Ok(moved + set_aside)
    }
}
