//! The functions that a worker runs.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::SystemTime;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::outcome::{IntoOutcome, Outcome};
use crate::Delivery;
use crate::receiver::MessageId;

/// Metadata of the message: the optional second argument of a handler. [`Context::for_test`] makes one for a
/// test of a handler.
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
    job: Option<Arc<JobInfo>>,
    pub(super) cancelled: CancellationToken,
}

/// What travels with a job.
#[derive(Clone)]
struct JobInfo {
    id: Box<[u8]>,
    headers: Vec<(String, String)>,
    offered_at: Option<SystemTime>,
    due: Option<SystemTime>,
}

impl JobInfo {
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
            job: JobInfo::of(delivery).map(Arc::new),
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

    /// Waits until the handler should end: its lease is certainly over, a client has asked to cancel the job
    /// ([`Delivery::cancelled`]), or the worker stops and its grace is over. After a cancel or the grace, an
    /// `Err` is no failure. After a lost lease, it is reported as one, and has no effect on the message once
    /// another receiver has it. It is also ready when the handler has ended: a clone of the context tells
    /// that to tasks that the handler has spawned. A handler that does not end is dropped at its next
    /// `await`: a second after the end of the grace, or, after a lost lease, when the server says that
    /// another receiver has the message.
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

/// # For tests of handlers
///
/// What is not set is as for a first delivery that was received now, of a message that is no job.
impl Context {
    /// A context for a test of a handler: of the message with this id, in this attempt, which is 1 for the
    /// first one. The id is printed as 32 hexadecimal digits.
    ///
    /// # Examples
    /// ```
    /// use redelay::worker::{Context, Outcome};
    ///
    /// async fn handle(order: i64, context: Context) -> Outcome {
    ///     match context.attempt() {
    ///         1 | 2 => Outcome::Retry(format!("the shop does not answer for {order}").into()),
    ///         _ => Outcome::Done,
    ///     }
    /// }
    ///
    /// # tokio_test::block_on(async {
    /// assert!(matches!(handle(7, Context::for_test(17, 1)).await, Outcome::Retry(_)));
    /// assert!(matches!(handle(7, Context::for_test(17, 3)).await, Outcome::Done));
    /// # });
    /// ```
    #[must_use]
    pub fn for_test(id: u128, attempt: u32) -> Self {
        Self {
            queue: "test".into(),
            id: format!("{id:032x}").parse().expect("32 digits"),
            attempt,
            is_last_attempt: false,
            first_received: SystemTime::now(),
            job: None,
            cancelled: CancellationToken::new(),
        }
    }

    /// Sets [`queue`](Self::queue), which is `test` otherwise.
    ///
    /// # Examples
    /// ```
    /// use redelay::worker::Context;
    ///
    /// assert_eq!(Context::for_test(17, 1).with_queue("orders").queue(), "orders");
    /// ```
    #[must_use]
    pub fn with_queue(mut self, name: &str) -> Self {
        self.queue = name.into();
        self
    }

    /// Makes it the [last attempt](Self::is_last_attempt).
    ///
    /// # Examples
    /// ```
    /// use redelay::worker::Context;
    ///
    /// assert!(Context::for_test(17, 10).as_last_attempt().is_last_attempt());
    /// ```
    #[must_use]
    pub fn as_last_attempt(mut self) -> Self {
        self.is_last_attempt = true;
        self
    }

    /// Sets [`first_received`](Self::first_received).
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// use redelay::worker::Context;
    ///
    /// let yesterday = SystemTime::now() - Duration::from_secs(86_400);
    /// let context = Context::for_test(17, 3).with_first_received(yesterday);
    /// assert_eq!(context.first_received(), yesterday);
    /// ```
    #[must_use]
    pub fn with_first_received(mut self, at: SystemTime) -> Self {
        self.first_received = at;
        self
    }

    /// Makes the message a job: sets [`job_id`](Self::job_id) and [`headers`](Self::headers). It was offered
    /// and due when it was [received](Self::first_received).
    ///
    /// # Examples
    /// ```
    /// use redelay::worker::Context;
    ///
    /// let context = Context::for_test(17, 1).with_job("order-17", &[("tenant", "shop")]);
    /// assert_eq!(context.job_id(), Some(&b"order-17"[..]));
    /// assert_eq!(context.header("tenant"), Some("shop"));
    /// ```
    #[must_use]
    pub fn with_job(mut self, id: impl AsRef<[u8]>, headers: &[(&str, &str)]) -> Self {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let now = Some(self.first_received);
        let job = JobInfo { id: id.as_ref().into(), headers: headers.collect(), offered_at: now, due: now };
        self.job = Some(Arc::new(job));
        self
    }

    /// Sets [`offered_at`](Self::offered_at) and [`due`](Self::due) of a job.
    ///
    /// # Panics
    /// Panics before [`with_job`](Self::with_job): a message that is no job does not have them.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// use redelay::worker::Context;
    ///
    /// let due = SystemTime::now() - Duration::from_secs(60);
    /// let offered = due - Duration::from_secs(1800);
    /// let context = Context::for_test(17, 1).with_job("order-17", &[]).with_times(offered, due);
    /// assert_eq!((context.offered_at(), context.due()), (Some(offered), Some(due)));
    /// ```
    #[must_use]
    pub fn with_times(mut self, offered_at: SystemTime, due: SystemTime) -> Self {
        let job = self.job.as_mut().expect("with_job comes before with_times");
        let job = Arc::make_mut(job);
        (job.offered_at, job.due) = (Some(offered_at), Some(due));
        self
    }

    /// Makes [`cancelled`](Self::cancelled) return, for all clones: as if a client had cancelled the job, or
    /// the grace of the worker were over.
    ///
    /// # Examples
    /// ```
    /// use redelay::worker::Context;
    ///
    /// # tokio_test::block_on(async {
    /// let context = Context::for_test(17, 1);
    /// context.cancel();
    /// context.clone().cancelled().await;
    /// # });
    /// ```
    pub fn cancel(&self) {
        self.cancelled.cancel();
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
/// Its future is `Send`. If it is not, the compiler names the value that the future holds across an `await`:
/// ```compile_fail
/// # use redelay::{BlockingQueue, Worker};
/// # async fn example(orders: BlockingQueue<i64>) -> redelay::Result<()> {
/// let handler = |order: i64| async move {
///     let local = std::rc::Rc::new(order);
///     tokio::task::yield_now().await;
///     println!("{local}");
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
    /// What it returns. [`Worker::run`](crate::Worker::run) needs it to be `Send`. The trait does
    /// not require that, so that the compiler's error can name the value that is held across an `await`.
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

/// Calls a handler as a worker does, without its timeout. `Err` is the text of a panic. `redelay-testing`
/// calls it, too.
#[doc(hidden)]
pub async fn call<T, A, H: Handler<T, A>>(
    handler: &H,
    value: T,
    context: Context,
) -> std::result::Result<Outcome, String> {
    let handled = async { handler.call(value, context).await.into_outcome() };
    let handled = AssertUnwindSafe(handled).catch_unwind().await;
    handled.map_err(|panic| format!("panicked: {}", text_of(&*panic)))
}

/// The text of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is no text")
}

mod sealed {
    use super::Context;

    pub trait Sealed<T, A> {}

    impl<T, F: Fn(T) -> R, R> Sealed<T, (T,)> for F {}
    impl<T, F: Fn(T, Context) -> R, R> Sealed<T, (T, Context)> for F {}
}
