//! Times, and futures that wait or must not wait.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use redelay_fixture::until_async;
use tokio_test::assert_pending;
use tokio_test::task::{self, Spawn};

/// Longer than any test.
pub const HOUR: Duration = Duration::from_secs(3600);
/// The interval of a schedule that does not run during a test. With a shorter one, a run may fall into it:
/// runs are counted from 1970, so each hour begins with one.
pub const SELDOM: Duration = Duration::from_secs(1000 * 24 * 3600);
/// A limit for calls that would otherwise hang.
pub const MINUTE: Duration = Duration::from_secs(60);
/// What a call takes at most on a machine with fifty times as much to do as it can.
const HANGS: Duration = Duration::from_secs(180);

/// A future that owns what it needs.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Milliseconds.
#[must_use]
pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The result of a call that must not wait long. The limit allows for busy machines, and ends calls that
/// hang.
///
/// # Panics
/// Panics after three minutes.
pub async fn soon<F: Future>(call: F) -> F::Output {
    tokio::time::timeout(HANGS, call).await.expect("an answer within three minutes")
}

/// A future that was polled once and is pending.
///
/// # Panics
/// Panics when it is ready.
#[track_caller]
pub fn pending<T: Debug>(future: impl Future<Output = T> + Send + 'static) -> Spawn<Boxed<T>> {
    let future: Boxed<T> = Box::pin(future);
    let mut spawned = task::spawn(future);
    assert_pending!(spawned.poll());
    spawned
}

/// A lone caller polls the task that it waits for. If it is no longer polled, the task takes over before
/// that.
const TAKES_OVER: Duration = Duration::from_millis(400);

/// Returns when the future has been woken and not polled since. In most cases, what it waits for was handed
/// to it; on a busy machine it is woken before that, too, so a test also waits for what the server shows.
pub async fn woken<F>(spawned: &mut Spawn<F>) {
    until_async("woken", || std::future::ready(spawned.is_woken())).await;
    tokio::time::sleep(TAKES_OVER).await;
}

/// A future that has been woken and not polled since.
///
/// # Panics
/// Panics when it is ready at once.
pub async fn unread<F: Future<Output: Debug>>(future: F) -> Spawn<F> {
    let mut spawned = task::spawn(future);
    assert_pending!(spawned.poll());
    woken(&mut spawned).await;
    spawned
}

/// Lets this time pass at once for the timers of this runtime, which has one thread. Nothing arrives
/// meanwhile.
///
/// # Panics
/// Panics within [`slowly`].
pub async fn leap(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Runs a future in slow motion: of the time of this runtime, which has one thread, a millisecond passes in
/// four or more. So a time that it measures is no longer on a busy machine.
///
/// # Panics
/// Panics within itself.
pub async fn slowly<F: Future>(future: F) -> F::Output {
    tokio::time::pause();
    let clock = async {
        loop {
            // While this runs, Tokio does not advance a paused clock by itself.
            let _ = tokio::task::spawn_blocking(|| std::thread::sleep(ms(4))).await;
            tokio::time::advance(ms(1)).await;
        }
    };
    let output = tokio::select! {
        output = future => output,
        () = clock => unreachable!(),
    };
    tokio::time::resume();
    output
}
