//! The functions that a worker runs.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use super::outcome::IntoOutcome;
use crate::Delivery;
use crate::receiver::MessageId;

/// Metadata of the message: the optional second argument of a handler.
///
/// # Examples
/// ```no_run
/// # use redelay::worker::Context;
/// # use redelay::{BlockingQueue, Worker};
/// # async fn example(orders: BlockingQueue<i64>) -> redelay::Result<()> {
/// Worker::new(&orders)
///     .run(|order: i64, context: Context| async move {
///         println!("{order}, {}, attempt {}", context.id(), context.attempt());
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Context {
    queue: Arc<str>,
    id: MessageId,
    attempt: u32,
    is_last_attempt: bool,
    first_received: SystemTime,
    job: Option<Arc<Job>>,
    pub(super) cancelled: CancellationToken,
}

/// What travels with a job.
struct Job {
    id: Box<[u8]>,
    headers: Vec<(String, String)>,
    offered_at: Option<SystemTime>,
    due: Option<SystemTime>,
}

impl Job {
    fn of<T>(delivery: &Delivery<T>) -> Option<Self> {
        let headers = delivery.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Self {
            id: delivery.job_id()?.into(),
            headers: headers.collect(),
            offered_at: delivery.offered_at(),
            due: delivery.due(),
        })
    }
}

impl Context {
    pub(super) fn new<T>(queue: Arc<str>, delivery: &Delivery<T>) -> Self {
        Self {
            queue,
            id: delivery.id(),
            attempt: delivery.attempt(),
            is_last_attempt: delivery.is_last_attempt(),
            first_received: delivery.first_received(),
            job: Job::of(delivery).map(Arc::new),
            cancelled: CancellationToken::new(),
        }
    }

    /// The name of the queue that the message came from, as the program gave it to the client: without the
    /// prefix.
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// println!("{} of `{}`", context.id(), context.queue());
    /// # }
    /// ```
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// The id of the message: see [`Delivery::id`].
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// println!("{}", context.id());
    /// # }
    /// ```
    #[must_use]
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// Which attempt this is: see [`Delivery::attempt`].
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// println!("attempt {}", context.attempt());
    /// # }
    /// ```
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether the message has no other attempt if this one fails: see [`Delivery::is_last_attempt`].
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// if context.is_last_attempt() {
    ///     println!("{} is a dead letter if it fails again", context.id());
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.is_last_attempt
    }

    /// The id of the job: see [`Delivery::job_id`].
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// if let Some(id) = context.job_id() {
    ///     println!("job {}", String::from_utf8_lossy(id));
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn job_id(&self) -> Option<&[u8]> {
        self.job.as_ref().map(|job| &*job.id)
    }

    /// A header of the job: see [`Delivery::header`].
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// println!("trace {}", context.header("traceparent").unwrap_or("none"));
    /// # }
    /// ```
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The names and values of all [headers](Self::header).
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// for (name, value) in context.headers() {
    ///     println!("{name}: {value}");
    /// }
    /// # }
    /// ```
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.job.iter().flat_map(|job| &job.headers);
        headers.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// When the job was offered: see [`Delivery::offered_at`].
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// println!("offered {:?} ago", context.offered_at().and_then(|at| at.elapsed().ok()));
    /// # }
    /// ```
    #[must_use]
    pub fn offered_at(&self) -> Option<SystemTime> {
        self.job.as_ref().and_then(|job| job.offered_at)
    }

    /// When the job was due: see [`Delivery::due`].
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// println!("due at {:?}", context.due());
    /// # }
    /// ```
    #[must_use]
    pub fn due(&self) -> Option<SystemTime> {
        self.job.as_ref().and_then(|job| job.due)
    }

    /// When the message was received for the first time, by the server's clock.
    ///
    /// # Examples
    /// ```
    /// # fn example(context: &redelay::worker::Context) {
    /// println!("first received {:?} ago", context.first_received().elapsed());
    /// # }
    /// ```
    #[must_use]
    pub fn first_received(&self) -> SystemTime {
        self.first_received
    }

    /// Waits until the handler should end: its lease is certainly over, somebody has asked to cancel the job
    /// ([`Delivery::cancelled`]), or the worker stops and its grace is over. A handler that does not end is
    /// dropped at its next `await`: a second after the end of the grace, or, after a lost lease, when the
    /// server says that another receiver has the message.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn ship(order: i64) {}
    /// # async fn example(order: i64, context: redelay::worker::Context) {
    /// tokio::select! {
    ///     () = ship(order) => {}
    ///     () = context.cancelled() => println!("leave {order} to others"),
    /// }
    /// # }
    /// ```
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("queue", &self.queue)
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// An async function of a value, or of a value and a [`Context`], that returns what [`IntoOutcome`] allows. A
/// closure captures state. No other type can implement this trait.
///
/// # Examples
/// ```no_run
/// # use std::sync::Arc;
/// # use redelay::{BlockingQueue, Worker};
/// # struct Database;
/// # impl Database { async fn cancel(&self, order: i64) -> std::io::Result<()> { Ok(()) } }
/// # async fn example(orders: BlockingQueue<i64>, database: Arc<Database>) -> redelay::Result<()> {
/// let handler = move |order: i64| {
///     let database = database.clone();
///     async move { database.cancel(order).await }
/// };
/// Worker::new(&orders).run(handler).await?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no handler of messages of the type `{T}`",
    label = "this is no handler of `{T}`",
    note = "a handler is an async function or closure, `Fn`, `Send`, `Sync` and `'static`",
    note = "it takes the value, `{T}`, or the value and a `redelay::worker::Context`; a closure names the types of its parameters",
    note = "it returns `()`, an `Outcome`, or a `Result` of one of them, whose error converts into `Box<dyn Error + Send + Sync>`"
)]
pub trait Handler<T, A>: sealed::Sealed<T, A> + Send + Sync + 'static {
    /// What it returns. [`Worker::run`](crate::Worker::run) needs it to be `Send`. It is not asked for here,
    /// so that the compiler can name the value that is held across an `await` and is not.
    type Future: Future<Output: IntoOutcome>;

    #[doc(hidden)]
    fn call(&self, value: T, context: Context) -> Self::Future;
}

impl<T, F, R> Handler<T, (T,)> for F
where
    F: Fn(T) -> R + Send + Sync + 'static,
    R: Future<Output: IntoOutcome>,
{
    type Future = R;

    fn call(&self, value: T, _: Context) -> R {
        self(value)
    }
}

impl<T, F, R> Handler<T, (T, Context)> for F
where
    F: Fn(T, Context) -> R + Send + Sync + 'static,
    R: Future<Output: IntoOutcome>,
{
    type Future = R;

    fn call(&self, value: T, context: Context) -> R {
        self(value, context)
    }
}

mod sealed {
    use super::Context;

    pub trait Sealed<T, A> {}

    impl<T, F: Fn(T) -> R, R> Sealed<T, (T,)> for F {}
    impl<T, F: Fn(T, Context) -> R, R> Sealed<T, (T, Context)> for F {}
}
