//! Handlers without a queue.

use redelay::worker::{self, Context, Handler, Outcome};

/// Runs a handler once, as a worker does, and returns what the worker would do with the message. Needs no
/// server. The handler gets `Context::for_test(1, 1)`, if it asks for a context.
///
/// As in a worker, `()` and `Ok(())` are [`Outcome::Done`], and an `Err` is an [`Outcome::Retry`]. So is a
/// panic: its text is behind `panicked: `. The timeout of a worker is not applied.
///
/// # Cancel safety
/// If the future is dropped, so is that of the handler.
///
/// # Examples
/// ```
/// use redelay::worker::Outcome;
/// use redelay_testing::run_once;
///
/// async fn ship(order: i64) -> Result<(), String> {
///     if order == 13 { Err("the shop does not answer".into()) } else { Ok(()) }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// assert!(matches!(run_once(ship, 12).await, Outcome::Done));
/// let Outcome::Retry(error) = run_once(ship, 13).await else { panic!("it is tried again") };
/// assert_eq!(error.to_string(), "the shop does not answer");
/// # });
/// ```
pub async fn run_once<T, A>(handler: impl Handler<T, A>, value: T) -> Outcome {
    run_once_with(handler, value, Context::for_test(1, 1)).await
}

/// As [`run_once`], with this context: another attempt, or a job.
///
/// # Cancel safety
/// As [`run_once`].
///
/// # Examples
/// ```
/// use redelay::worker::{Context, Outcome};
/// use redelay_testing::run_once_with;
///
/// async fn ship(order: i64, context: Context) -> Outcome {
///     match context.is_last_attempt() {
///         true => Outcome::Reject(format!("{order} was given up").into()),
///         false => Outcome::Retry("the shop does not answer".into()),
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let last = Context::for_test(17, 10).as_last_attempt();
/// assert!(matches!(run_once_with(ship, 12, last).await, Outcome::Reject(_)));
/// # });
/// ```
pub async fn run_once_with<T, A>(handler: impl Handler<T, A>, value: T, context: Context) -> Outcome {
    worker::call(&handler, value, context).await.unwrap_or_else(|panic| Outcome::Retry(panic.into()))
}
