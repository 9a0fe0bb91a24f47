//! An offer that makes its own call, because no other one is on its way with which it could share one.
//!
//! A batch has a task: it is woken by the caller, yields for the sake of others, and wakes the caller at the
//! end. On several threads, tokio wakes another one for that, which costs a lone caller twice what the call
//! itself costs. So a lone caller polls its call itself.
//!
//! | if the caller … | then … |
//! |---|---|
//! | is dropped | a task takes its call over, with all retries; a shutdown waits for that task, as long as for others |
//! | is no longer polled, and not dropped either | its call was sent, but not more; other offers are batched, and after the next batch one may be alone again |
//! | is in another runtime than the connections | it joins a batch: the timers of a call belong to the runtime that began it, and that one may end before the call does |

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tokio::runtime::Handle;

use super::store::Store;

/// The last call that has begun: its number, which is odd until another offer may be alone.
///
/// Calls before the last one do not matter. Replies arrive in the order of the calls, so after the last one,
/// a call that has not ended is one whose caller is not polled, or whose reply was lost.
#[derive(Debug, Default)]
pub(super) struct LastCall(AtomicU64);

/// The number of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallId(u64);

impl LastCall {
    /// A batch begins.
    pub(super) fn begin(&self) -> CallId {
        let next = |last: u64| (last + 1) | 1;
        let (Ok(last) | Err(last)) =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        CallId(next(last))
    }

    /// The call of a lone offer begins, unless others are on their way.
    pub(super) fn begin_alone(&self) -> Option<CallId> {
        let last = self.0.load(Ordering::Relaxed);
        let begun = CallId(last + 1);
        let is_quiet = last.is_multiple_of(2)
            && self.0.compare_exchange(last, begun.0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_quiet.then_some(begun)
    }

    /// A call with one offer has ended. That of a batch of several is not told: their callers are likely to
    /// offer again at the same time, and the first of them would be alone otherwise.
    pub(super) fn end(&self, CallId(ended): CallId) {
        // Fails if another call has begun.
        let _ = self.0.compare_exchange(ended, ended + 1, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Whether a caller that runs here may make its call.
pub(super) fn may_run_here(store: &Store) -> bool {
    // Without a connection, offers that wait for one share a call then.
    store.conn().is_ready_to_write()
        && Handle::try_current().is_ok_and(|here| here.id() == store.conn().runtime().id())
}

/// A call that its caller polls, until it is dropped.
pub(super) struct LoneCall<'a, T: Send + 'static> {
    store: &'a Store,
    /// `None` after its end.
    call: Option<BoxFuture<'static, T>>,
}

impl<'a, T: Send + 'static> LoneCall<'a, T> {
    pub(super) fn new(store: &'a Store, call: impl Future<Output = T> + Send + 'static) -> Self {
        Self { store, call: Some(Box::pin(call)) }
    }
}

impl<T: Send + 'static> Future for LoneCall<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // It is not here if it panics.
        let mut call = self.call.take().expect("it is not polled after its end");
        let polled = call.as_mut().poll(context);
        self.call = polled.is_pending().then_some(call);
        polled
    }
}

impl<T: Send + 'static> Drop for LoneCall<'_, T> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.store.spawn(async move { drop(call.await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_alone_after_the_end_of_another_one_that_was() {
        let calls = LastCall::default();
        for _ in 0..3 {
            let lone = calls.begin_alone().expect("no other");
            assert!(calls.begin_alone().is_none());
            calls.end(lone);
        }
        let batch = calls.begin();
        assert!(calls.begin_alone().is_none());
        calls.end(batch);
        assert!(calls.begin_alone().is_some());
    }

    #[test]
    fn nothing_is_alone_after_a_batch_of_several_until_the_end_of_a_batch_of_one() {
        let calls = LastCall::default();
        calls.begin();
        assert!(calls.begin_alone().is_none());
        let batch = calls.begin();
        calls.end(batch);
        assert!(calls.begin_alone().is_some());
    }

    /// Its caller is not polled.
    #[test]
    fn a_lone_call_that_does_not_end_delays_the_next_one_until_a_batch_has_ended() {
        let calls = LastCall::default();
        let stuck = calls.begin_alone().expect("no other");
        let batch = calls.begin();
        calls.end(batch);
        let lone = calls.begin_alone().expect("the last one has ended");
        calls.end(stuck);
        assert!(calls.begin_alone().is_none(), "that one is not the last");
        calls.end(lone);
        assert!(calls.begin_alone().is_some());
    }

    #[test]
    fn only_the_end_of_the_last_call_counts() {
        let calls = LastCall::default();
        let (first, second) = (calls.begin(), calls.begin());
        calls.end(first);
        assert!(calls.begin_alone().is_none());
        calls.end(second);
        assert!(calls.begin_alone().is_some());
    }
}
