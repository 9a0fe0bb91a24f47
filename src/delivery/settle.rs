//! How a delivery is settled, whether or not anybody awaits the answer.

use std::any::Any;
use std::fmt::{self, Display, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::backoff::Backoff;
use crate::conn::OpError;
use crate::error::Result;
use crate::queue::Queue;
use crate::receiving::{Claimed, PendingSettle, Receiving, Settled, Settlement};
use crate::telemetry::events::Span;
use crate::wire::time;

/// The most bytes of an error that the server keeps.
const LONGEST_ERROR: usize = 1_000;

/// What a delivery needs to be settled.
pub(super) struct Open {
    pub(super) claim: Claimed,
    pub(super) receiving: Arc<Receiving>,
    pub(super) queue: Arc<Queue>,
    pub(super) backoff: Backoff,
    pub(super) error: String,
    /// When the program got it.
    pub(super) since: Instant,
    /// Ends when the delivery is settled.
    pub(super) span: Span,
}

impl Open {
    pub(super) fn retry(&mut self) -> Settlement {
        let failures = u32::from(self.claim.failed) + 1;
        let after_ms = time::millis(self.backoff.after(failures)).unwrap_or(u64::from(u32::MAX));
        Settlement::Retry { after_ms, error: std::mem::take(&mut self.error) }
    }
}

/// Settles with the next call of the receiver, which is made at the latest when the future is polled or
/// dropped.
pub(super) fn settle(
    open: Option<Box<Open>>,
    verb: &'static str,
    settlement: impl FnOnce(&mut Open) -> Settlement,
) -> BoxFuture<'static, Result<()>> {
    settle_by(open, verb, settlement, |receiving, claim, settlement| receiving.settle(claim, settlement))
}

/// The same; `send` passes it to the task of the receiver.
pub(super) fn settle_by(
    open: Option<Box<Open>>,
    verb: &'static str,
    settlement: impl FnOnce(&mut Open) -> Settlement,
    send: impl FnOnce(&Arc<Receiving>, &Claimed, Settlement) -> PendingSettle,
) -> BoxFuture<'static, Result<()>> {
    let started = open.map(|open| {
        let mut open = *open;
        let settlement = settlement(&mut open);
        if let Some(what) = settlement.counted() {
            open.span.processed(what.word());
            open.queue.counters.handled(what, open.since.elapsed());
        }
        let span = open.span.settle(&open.queue.keys, open.claim.member.id(), verb);
        (send(&open.receiving, &open.claim, settlement), open.receiving, open.queue, span)
    });
    Box::pin(async move {
        let Some((answer, receiving, queue, span)) = started else { return Ok(()) };
        answered(verb, answer, &receiving, &queue, &span).await
    })
}

pub(super) fn settle_after(
    open: Option<Box<Open>>,
    verb: &'static str,
    pause: Duration,
    settlement: impl FnOnce(u64, &mut Open) -> Settlement,
) -> BoxFuture<'static, Result<()>> {
    let after_ms = time::millis(pause);
    let invalid = match (&after_ms, &open) {
        (Err(why), Some(open)) => Some(open.queue.op(verb).invalid(why)),
        _ => None,
    };
    let settled = settle(open, verb, |open| match after_ms {
        Ok(after_ms) => settlement(after_ms, open),
        Err(why) => {
            // What its dead letter says, if this was the last attempt.
            if open.error.is_empty() {
                open.error = format!("{verb}: {why}");
            }
            open.retry()
        }
    });
    Box::pin(async move {
        let settled = settled.await;
        invalid.map_or(settled, Err)
    })
}

pub(super) async fn answered(
    verb: &'static str,
    answer: PendingSettle,
    receiving: &Receiving,
    queue: &Queue,
    span: &Span,
) -> Result<()> {
    let op = queue.op(verb);
    // The time begins here, because the settlement may be sent only now.
    let result = match span.run(timeout_at(receiving.deadline(), answer)).await {
        Ok(Some(Ok(Settled::Done | Settled::Dead | Settled::Cancelled))) => Ok(()),
        Ok(Some(Ok(Settled::Gone))) => Err(op.lease_lost()),
        Ok(Some(Err(error))) => Err(op.failed(error)),
        // The runtime of the client has ended, or the time for the client's end was over.
        Ok(None) => {
            Err(op.failed(OpError::Unknown("the client ended before the server had answered".into())))
        }
        Err(_) => Err(op.failed(OpError::Unknown("the server does not answer".into()))),
    };
    if let Err(error) = &result {
        span.failed(&error.kind());
    }
    result
}

/// At most 1,000 bytes of a text; and something even if its `Display` fails or panics.
pub(super) fn cut(text: &dyn Display) -> String {
    struct Cut(String);
    impl Write for Cut {
        fn write_str(&mut self, more: &str) -> fmt::Result {
            let room = LONGEST_ERROR - self.0.len();
            let end = (0..=room.min(more.len())).rev().find(|end| more.is_char_boundary(*end)).unwrap_or(0);
            self.0.push_str(&more[..end]);
            if end < more.len() { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut cut = Cut(String::new());
    let written: std::result::Result<_, Box<dyn Any + Send>> =
        catch_unwind(AssertUnwindSafe(|| write!(cut, "{text}")));
    // A text that was cut is no failure.
    if !matches!(written, Ok(Ok(()))) && cut.0.is_empty() {
        cut.0.push_str("an error whose text cannot be printed");
    }
    cut.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_cut() {
        assert_eq!(cut(&"short"), "short");
        assert_eq!(cut(&"é".repeat(1_000_000)).len(), 1_000);
        struct Panics(&'static str);
        impl Display for Panics {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)?;
                panic!("no text")
            }
        }
        struct Fails;
        impl Display for Fails {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                Err(fmt::Error)
            }
        }
        let nothing = "an error whose text cannot be printed";
        assert_eq!([cut(&Panics("")), cut(&Fails), cut(&Panics("half"))], [nothing, nothing, "half"]);
    }
}
