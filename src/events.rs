//! What is told to a subscriber of the `tracing` crate (feature `tracing`), target `redelay`. Without the feature
//! nothing is compiled in.
//!
//! Events are told once per change of state, so that a failing server does not fill the log. Their names and fields,
//! and those of the spans, are listed in `docs/watching.md`, and stay as they are.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::pin;

use crate::conn::OpError;
use crate::keys::Keys;

/// One event. Its arguments are given before the arrow as well, for they would be unused without the feature.
macro_rules! event {
    ($level:ident, $name:literal, ($($used:ident),*) => $($rest:tt)*) => {{
        #[cfg(feature = "tracing")]
        tracing::$level!(name: $name, target: "redelay", $($rest)*);
        #[cfg(not(feature = "tracing"))]
        let _ = ($($used),*);
    }};
}

/// A transfer failed, and will be tried again.
pub(crate) fn transfer_failing(keys: &Keys, error: &OpError) {
    event!(warn, "redelay.transfer.failing", (keys, error) =>
        queue = %name(keys), %error,
        "transfer failing, trying again"
    );
}

/// The first transfer that succeeded after failing ones.
pub(crate) fn transfer_recovered(keys: &Keys) {
    event!(info, "redelay.transfer.recovered", (keys) =>
        queue = %name(keys),
        "transfer recovered"
    );
}

/// Entries that nobody can read were set aside, for the first time in this queue.
pub(crate) fn quarantined(keys: &Keys, entries: i64) {
    event!(warn, "redelay.quarantined", (keys, entries) =>
        queue = %name(keys), entries,
        "malformed entries quarantined; further ones are counted, not told"
    );
}

/// A first try to connect failed; there will be more.
pub(crate) fn connecting_failing(server: &str, error: &str) {
    event!(warn, "redelay.connection.failing", (server, error) =>
        server, error,
        "no connection yet, trying again"
    );
}

/// The first blocking pop that succeeded after failing ones.
pub(crate) fn pops_recovered() {
    event!(info, "redelay.pops.recovered", () =>
        "blocking pops recovered"
    );
}

/// Blocking pops fail, and will be tried again.
pub(crate) fn pops_failing(error: &OpError) {
    event!(warn, "redelay.pops.failing", (error) =>
        %error,
        "blocking pops failing, trying again"
    );
}

/// The server does not let us listen to the announcements of some queue. Its entries are found by sweeps only.
pub(crate) fn announcements_failing(error: &OpError) {
    event!(warn, "redelay.announcements.failing", (error) =>
        %error,
        "announcements failing, trying again"
    );
}

/// The announcements of all queues are listened to, after some were not.
pub(crate) fn announcements_back() {
    event!(info, "redelay.announcements.recovered", () =>
        "announcements back"
    );
}

/// A payload whose taker is gone could not be put back yet.
pub(crate) fn give_back_failing(keys: &Keys, error: &OpError) {
    event!(warn, "redelay.give_back.failing", (keys, error) =>
        queue = %name(keys), %error,
        "giving a payload back failed, trying again"
    );
}

/// A connection is lost, and will be made anew.
pub(crate) fn connection_lost(connection: &str, error: &str) {
    event!(warn, "redelay.connection.lost", (connection, error) =>
        connection, error,
        "connection lost, connecting again"
    );
}

/// A lost connection is made anew.
pub(crate) fn connection_back(connection: &str) {
    event!(info, "redelay.connection.recovered", (connection) =>
        connection,
        "connection back"
    );
}

/// How a queue is called, on the server.
pub(crate) fn name(keys: &Keys) -> Cow<'_, str> {
    String::from_utf8_lossy(keys.target())
}

/// Something that takes time. Costs next to nothing while nobody is interested.
#[derive(Debug)]
pub(crate) struct Span(#[cfg(feature = "tracing")] tracing::Span);

impl Span {
    /// One transfer call.
    pub(crate) fn transfer(keys: &Keys) -> Self {
        #[cfg(feature = "tracing")]
        return Self(tracing::debug_span!(
            target: "redelay",
            "redelay.transfer",
            queue = %name(keys),
            moved = tracing::field::Empty,
            quarantined = tracing::field::Empty,
            next_due_ms = tracing::field::Empty,
            error = tracing::field::Empty,
        ));
        #[cfg(not(feature = "tracing"))]
        {
            let _ = keys;
            Self()
        }
    }

    /// What came of a transfer call; the head in ms from then, by the server's clock.
    pub(crate) fn transferred(&self, result: Result<(i64, i64, Option<f64>), &OpError>) {
        #[cfg(feature = "tracing")]
        match result {
            Ok((moved, quarantined, next)) => {
                self.0.record("moved", moved).record("quarantined", quarantined);
                if let Some(next) = next {
                    self.0.record("next_due_ms", next);
                }
            }
            Err(error) => drop(self.0.record("error", tracing::field::display(error))),
        }
        #[cfg(not(feature = "tracing"))]
        let _ = result;
    }

    /// Storing entries in a delayed queue.
    pub(crate) fn offer(keys: &Keys, entries: usize) -> Self {
        #[cfg(feature = "tracing")]
        return Self(tracing::trace_span!(target: "redelay", "redelay.offer", queue = %name(keys), entries));
        #[cfg(not(feature = "tracing"))]
        {
            let _ = (keys, entries);
            Self()
        }
    }

    /// Waiting for a payload of one or more queues; named is the first.
    pub(crate) fn take(lists: &[Keys]) -> Self {
        #[cfg(feature = "tracing")]
        return Self(tracing::trace_span!(
            target: "redelay",
            "redelay.take",
            queue = lists.first().map(name).as_deref().unwrap_or_default(),
            queues = lists.len(),
        ));
        #[cfg(not(feature = "tracing"))]
        {
            let _ = lists;
            Self()
        }
    }

    /// Does something inside the span.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        #[cfg(feature = "tracing")]
        return self.0.in_scope(work);
        #[cfg(not(feature = "tracing"))]
        work()
    }

    /// Awaits something inside the span.
    pub(crate) async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| self.within(|| future.as_mut().poll(context))).await
    }
}
