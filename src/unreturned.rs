//! Payloads that only this client has.

use crate::telemetry::{ClientCounters, events};
use crate::wire::keys::Keys;

/// Counts payloads that are to return to a queue, or to reach a caller. Dropped before all of them are there,
/// it tells of the rest: a shutdown that does not reach the server drops it, and so does the end of the
/// runtime. Create it before you spawn the task that returns them: the runtime may have ended, and then that
/// task never runs.
pub(crate) struct Unreturned {
    counters: ClientCounters,
    keys: Keys,
    payloads: usize,
}

impl Unreturned {
    pub(crate) fn new(counters: &ClientCounters, keys: Keys, payloads: usize) -> Self {
        Self { counters: counters.clone(), keys, payloads }
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Notes that this many more payloads are back, or with somebody else who tells of them.
    pub(crate) fn are_safe(&mut self, payloads: usize) {
        self.payloads -= payloads;
    }
}

impl Drop for Unreturned {
    fn drop(&mut self) {
        if self.payloads > 0 {
            let what = format!("return of unread payloads to `{}`", events::name(&self.keys));
            self.counters.failed(what, format!("{} were not back when the client ended", self.payloads));
            events::payloads_lost(&self.keys, self.payloads);
        }
    }
}
