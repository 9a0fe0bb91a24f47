//! Events and spans for subscribers of the `tracing` crate, target `redelay`. Without the feature `tracing`,
//! nothing is compiled in.
//!
//! An event is emitted once per change of state, so that a failing server does not flood the log. The names
//! and fields of events and spans are listed in `docs/observability.md` and stay as they are.
//!
//! `enabled` and `disabled` have the same functions. A span records values with [`Span::transferred`], and
//! runs code with `within` and `run`.

#[cfg(not(feature = "tracing"))]
mod disabled;
#[cfg(feature = "tracing")]
mod enabled;

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::pin;

use crate::wire::keys::Keys;
#[cfg(not(feature = "tracing"))]
pub(crate) use disabled::*;
#[cfg(feature = "tracing")]
pub(crate) use enabled::*;

/// The name of a queue on the server.
pub(crate) fn name(keys: &Keys) -> Cow<'_, str> {
    String::from_utf8_lossy(keys.target())
}

impl Span {
    /// Awaits a future inside the span.
    pub(crate) async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| self.within(|| future.as_mut().poll(context))).await
    }
}
