//! Letting others go first. Pure, but for the scheduler.

use std::future::poll_fn;
use std::task::Poll;

/// Comes back when those have run who could run by now, of this worker thread at least.
///
/// Tokio's `yield_now` waits for longer: until the worker has nothing else to do, or for 61 polls. Where tasks compute
/// for a millisecond each, that is 60 ms.
pub(crate) async fn let_others_run() {
    let mut passed = false;
    poll_fn(|context| {
        if std::mem::replace(&mut passed, true) {
            return Poll::Ready(());
        }
        // Whoever wakes itself while it runs goes to the end of the queue, and stays there if it is woken again.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
