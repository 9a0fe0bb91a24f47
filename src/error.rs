//! The error type of all calls.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::codec::CodecError;
use crate::conn::{Cause, ConnectError, OpError, is_forbidden};

/// The error of every call: what was attempted, on which queue, why it failed, and what to do next.
///
/// Match on [`Error::kind`] or use one of the predicates. The text is for people and may change.
///
/// `Debug` prints the same text as `Display` and adds the kind, so that a `main` that returns [`Result`] ends
/// with a readable message. Neither contains a payload or a password.
///
/// [`source`](std::error::Error::source) returns the cause of a connection error: a [`std::io::Error`], an
/// error of the TLS library (of a type that may change) or the error of a [credentials
/// provider](crate::client::ClientBuilder::credentials_provider). For a value or payload, it returns the
/// error that the codec made its [`CodecError`](crate::codec::CodecError) of. Its text is part of this
/// error's text.
///
/// # Examples
/// ```no_run
/// use std::error::Error as _;
///
/// # async fn example() {
/// let error = redelay::Client::connect("redis://localhost:7999").await.unwrap_err();
/// // connect to localhost:7999 failed: Connection refused (os error 111); is a server running there, and reachable
/// // from here? [Unavailable]
/// println!("{error:?}");
/// let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
/// assert_eq!(source.map(|source| source.kind()), Some(std::io::ErrorKind::ConnectionRefused));
/// # }
/// ```
///
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let orders = client.blocking_queue("orders", codec::Long);
/// match orders.put(&7).await {
///     Ok(()) => println!("it is there"),
///     Err(error) if error.is_unavailable() => println!("it is not there: {error}"),
///     Err(error) if error.is_outcome_unknown() => println!("it may be there: {error}"),
///     Err(error) => return Err(error), // A retry does not help.
/// }
/// # Ok(())
/// # }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    /// What was attempted: "`offer` on the delayed queue `orders`".
    attempt: String,
    reason: String,
    payload: Option<Bytes>,
    /// The codec's own error, or that of the connection. The reason contains its text.
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// What the error of a call says that was not executed.
const NOTHING_EXECUTED: &str = "; nothing was executed, so a retry is safe";
/// What the error of a call that only reads says.
const NOTHING_CHANGED: &str = "; nothing was changed, so a retry is safe";

/// The kinds of failure. Each says how to react.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, ErrorKind};
/// # async fn example() -> redelay::Result<()> {
/// let error = Client::connect("redis://:secret@localhost").await.unwrap_err();
/// match error.kind() {
///     ErrorKind::Invalid => println!("the URL is wrong: {error}"),
///     ErrorKind::Credentials => println!("the password is wrong: {error}"),
///     _ => println!("no server: {error}"), // There may be more kinds in later versions.
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument or option is not valid. Nothing was executed. Fix the call.
    Invalid,
    /// There is no connection, or the server cannot run the command now, or a call that only reads got no
    /// answer in time. Nothing was changed: a retry is safe. (A wait that ends with this error may have lost
    /// a payload, as any lost connection may: see [`BlockingQueue`](crate::BlockingQueue).)
    Unavailable,
    /// The reply was lost, or belonged to another command: the server may or may not have executed the call.
    /// A call that only reads never fails with it. Check before you retry, or retry only idempotent calls.
    /// Or, with [`ClientBuilder::replicas`](crate::client::ClientBuilder::replicas), the server has executed
    /// it, but too few replicas have confirmed it.
    OutcomeUnknown,
    /// The server refused the call: a key of another type, a missing ACL permission, no memory. Nothing is
    /// left half done. Fix the server, the key or the ACL.
    Refused,
    /// The delayed queue has as many pending entries as
    /// [`set_max_pending`](crate::DelayedQueue::set_max_pending) allows. Nothing was stored. Offer it later.
    Full,
    /// The user name or password is wrong or missing. Fix the credentials.
    Credentials,
    /// The TLS handshake failed: a certificate is not trusted, has expired or does not have the server's
    /// name, the server requires a client certificate, or it does not speak TLS. Only connecting can fail
    /// with it. It is not retried: fix the certificates, or the options in
    /// [`ClientBuilder::tls`](crate::client::ClientBuilder#method.tls).
    Tls,
    /// The server is older than Redis 6.2. Upgrade it.
    UnsupportedServer,
    /// The value could not be encoded. Nothing was sent. Fix the value or the codec.
    Encode,
    /// The payload could not be decoded; [`Error::payload`] has its bytes. Or what is stored of a schedule
    /// could not be read.
    Decode,
    /// The lease of a delivery ended before it was settled, so the message was or will be given to another
    /// receiver. Nothing was changed. Undo what was done, or rely on the id of the message.
    LeaseLost,
    /// The client was shut down, or its Tokio runtime has ended. A call that takes from a
    /// [`BlockingQueue`](crate::BlockingQueue) also fails with it after
    /// [`Client::stop_taking`](crate::Client::stop_taking). Nothing was executed. End, or connect a new
    /// client.
    Closed,
}

/// The result of every call.
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # use redelay::DelayedQueue;
/// async fn remind(reminders: &DelayedQueue<String>, whom: &str) -> redelay::Result<()> {
///     reminders.offer(&whom.to_owned(), Duration::from_secs(3600)).await?;
///     Ok(())
/// }
/// ```
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns the kind, to match on.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, ErrorKind, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// match orders.len().await {
    ///     Err(error) if error.kind() == ErrorKind::Refused => println!("the server refused: {error}"),
    ///     length => println!("{} are ready", length?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns whether the reply was lost: the server may or may not have executed the call. Retry only
    /// idempotent calls.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// # let ticket = jobs.offer(&7, Duration::from_secs(60)).await?;
    /// let cancelled = match jobs.cancel(&ticket).await {
    ///     // A retry does no harm, but it may answer false because the first call has cancelled the entry.
    ///     Err(error) if error.is_outcome_unknown() => jobs.cancel(&ticket).await?,
    ///     answer => answer?,
    /// };
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        self.0.kind == ErrorKind::OutcomeUnknown
    }

    /// Returns whether nothing was executed and the same call may succeed later.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// while let Err(error) = jobs.offer(&7, Duration::from_secs(60)).await {
    ///     if !error.is_unavailable() {
    ///         return Err(error);
    ///     }
    ///     tokio::time::sleep(Duration::from_secs(1)).await; // It is not stored: retry.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.0.kind == ErrorKind::Unavailable
    }

    /// Returns whether the client was shut down, by [`Client::shutdown`](crate::Client::shutdown) or because
    /// its last clone was dropped, or has ended with its Tokio runtime. For a call that takes from a
    /// [`BlockingQueue`](crate::BlockingQueue), it also returns true after
    /// [`Client::stop_taking`](crate::Client::stop_taking).
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// loop {
    ///     match orders.take().await {
    ///         Ok(order) => println!("{order}"),
    ///         Err(error) if error.is_closed() => break, // After `stop_taking` or `shutdown`.
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.kind == ErrorKind::Closed
    }

    /// Returns the bytes that could not be decoded, if that is the reason. A payload that was taken is no
    /// longer in its list, so this is the only copy.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// let rejected = client.blocking_queue("orders:rejected", codec::Bytes);
    /// if let Err(error) = orders.take().await {
    ///     match error.payload() {
    ///         Some(payload) => rejected.put(payload).await?,
    ///         None => return Err(error),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn payload(&self) -> Option<&Bytes> {
        self.0.payload.as_ref()
    }

    /// The text without the call that failed, for those who did not make it.
    pub(crate) fn reason(&self) -> &str {
        &self.0.reason
    }

    pub(crate) fn invalid(attempt: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, attempt, reason)
    }

    pub(crate) fn encode(attempt: impl Into<String>, source: CodecError) -> Self {
        let reason = format!("the value could not be encoded, and nothing was sent: {source}");
        Self::new(ErrorKind::Encode, attempt, reason).of_codec(source)
    }

    /// `format` is the name of the codec.
    pub(crate) fn decode(
        attempt: impl Into<String>,
        payload: Bytes,
        format: &str,
        source: CodecError,
    ) -> Self {
        // Operators read it, too: with a dead letter, for example.
        let reason = format!("cannot decode as {format}: {source}; is the producer's codec another one?");
        let mut error = Self::new(ErrorKind::Decode, attempt, reason).of_codec(source);
        error.0.payload = Some(payload);
        error
    }

    /// The error of a record that this version cannot read.
    pub(crate) fn unreadable(attempt: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Decode, attempt, why)
    }

    pub(crate) fn lease_lost(attempt: impl Into<String>) -> Self {
        let reason = "the lease ended before, so another receiver may have the message; nothing was changed. If this process has not stood still or blocked the runtime, use a longer lease";
        Self::new(ErrorKind::LeaseLost, attempt, reason)
    }

    pub(crate) fn operation(attempt: impl Into<String>, error: OpError) -> Self {
        match error {
            OpError::NotExecuted(cause) => {
                let reason = format!("{cause}{NOTHING_EXECUTED}");
                Self::new(ErrorKind::Unavailable, attempt, reason).caused_by(&cause)
            }
            OpError::Unknown(cause) => {
                let reason = format!(
                    "the reply was lost ({cause}); the server may or may not have executed the call: check before you retry"
                );
                Self::new(ErrorKind::OutcomeUnknown, attempt, reason).caused_by(&cause)
            }
            OpError::Unconfirmed(cause) => {
                let (why, then) = match cause.is_missing_command() {
                    true => (
                        format!("cannot ask its replicas ({cause})"),
                        "`ClientBuilder::replicas` requires EVAL and WAIT: see docs/deployment.md#writes-that-replicas-confirm",
                    ),
                    false => (cause.to_string(), "Let more replicas follow it, or ask for fewer"),
                };
                let reason = format!(
                    "the server has executed the call, but {why}: if that server fails now, its effect may be lost. {then}"
                );
                Self::new(ErrorKind::OutcomeUnknown, attempt, reason).caused_by(&cause)
            }
            OpError::Rejected(why) => Self::new(ErrorKind::Invalid, attempt, why),
            full @ OpError::Full { .. } => {
                let reason = format!("{full}: offer it later, or raise the limit");
                Self::new(ErrorKind::Full, attempt, reason)
            }
            OpError::Server(why) if why.contains("WRONGTYPE") => {
                let which = why.strip_prefix("WRONGTYPE the key").map(|which| format!("the key{which}"));
                let which = which.unwrap_or_else(|| "one of the queue's keys holds another type".into());
                let reason = format!("{which} (WRONGTYPE); rename that key or the queue");
                Self::new(ErrorKind::Refused, attempt, reason)
            }
            OpError::TooLarge(why) | OpError::Server(why) => Self::refused(attempt, &why),
            OpError::Closed => {
                Self::new(ErrorKind::Closed, attempt, "the client was shut down; connect a new one to go on")
            }
        }
    }

    /// The error of a call that only reads, and got no answer that it can use.
    pub(crate) fn no_answer(attempt: impl Into<String>, cause: &Cause) -> Self {
        let reason = format!("the server has not answered in time ({cause}){NOTHING_CHANGED}");
        Self::new(ErrorKind::Unavailable, attempt, reason).caused_by(cause)
    }

    /// The error of what the server refuses.
    fn refused(attempt: impl Into<String>, why: &str) -> Self {
        let more = if is_forbidden(why) { "; see ACL LOG, and docs/deployment.md#permissions" } else { "" };
        Self::new(ErrorKind::Refused, attempt, format!("the server refused: {why}{more}"))
    }

    /// The error of a call that takes, after the client has stopped taking.
    pub(crate) fn takes_no_more(attempt: impl Into<String>) -> Self {
        let reason = "the client takes no more, or its Tokio runtime has ended; connect a new one to go on";
        Self::new(ErrorKind::Closed, attempt, reason)
    }

    /// The same error of what the user has called.
    pub(crate) fn of(mut self, attempt: impl Into<String>) -> Self {
        self.0.attempt = attempt.into();
        self
    }

    /// The error of calls that were made together, if some have failed. Of what is unknown, no other error
    /// may say that it is not stored.
    pub(crate) fn of_several(errors: impl IntoIterator<Item = Self>) -> Option<Self> {
        errors.into_iter().min_by_key(|error| !error.is_outcome_unknown())
    }

    /// The error of a call that works in parts, after `done` were executed. `what` says what that means.
    pub(crate) fn after_parts(mut self, done: usize, what: &str) -> Self {
        if done == 0 {
            return self;
        }
        let Inner { kind, reason, .. } = &mut *self.0;
        *kind = ErrorKind::OutcomeUnknown;
        let why = reason.trim_end_matches(NOTHING_EXECUTED).trim_end_matches(NOTHING_CHANGED);
        *reason = format!("{why} ({done} {what} before)");
        self
    }

    pub(crate) fn connect(server: &str, error: ConnectError) -> Self {
        let attempt = if server.is_empty() { "connect".to_owned() } else { format!("connect to {server}") };
        match error {
            ConnectError::Url(why) => {
                Self::new(ErrorKind::Invalid, attempt, format!("the URL cannot be used: {why}"))
            }
            ConnectError::Option(why) => Self::new(ErrorKind::Invalid, attempt, why),
            ConnectError::Credentials(why) => Self::new(
                ErrorKind::Credentials,
                attempt,
                format!("the server refused the user ({why}); check the user and password"),
            ),
            ConnectError::Refused(why) => Self::refused(attempt, &why),
            ConnectError::Provider(cause) => {
                Self::new(ErrorKind::Unavailable, attempt, cause.to_string()).caused_by(&cause)
            }
            #[cfg(feature = "tls")]
            ConnectError::Tls { why, source } => {
                let mut error = Self::new(ErrorKind::Tls, attempt, why);
                error.0.source = Some(source);
                error
            }
            ConnectError::Failed(cause, check) => {
                Self::new(ErrorKind::Unavailable, attempt, format!("{cause}; {check}")).caused_by(&cause)
            }
            ConnectError::OldServer(version) => Self::new(
                ErrorKind::UnsupportedServer,
                attempt,
                format!("the server is Redis {version}; Redis 6.2 or later, or Valkey, is required"),
            ),
        }
    }

    fn new(kind: ErrorKind, attempt: impl Into<String>, reason: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            attempt: attempt.into(),
            reason: reason.into(),
            payload: None,
            source: None,
        }))
    }

    fn of_codec(mut self, source: CodecError) -> Self {
        self.0.source = Some(source.into_inner().into());
        self
    }

    fn caused_by(mut self, cause: &Cause) -> Self {
        self.0.source = cause.source().cloned();
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.0.attempt, self.0.reason)
    }
}

/// A program that ends with an error prints it this way. A payload may hold what must not be in a log.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} [{:?}]", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| source.as_ref() as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_wide_and_sendable() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        fn shared<T: Send + Sync + 'static>() {}
        shared::<Error>();
    }

    #[test]
    fn says_what_where_why_and_what_next() {
        let error = Error::operation(
            "`offer` on the delayed queue `orders`",
            OpError::NotExecuted("no connection".into()),
        );
        assert_eq!(
            error.to_string(),
            "`offer` on the delayed queue `orders` failed: no connection; nothing was executed, so a retry is safe"
        );
        assert!(error.is_unavailable());
    }

    #[test]
    fn says_why_a_payload_does_not_decode() {
        let error = Error::decode(
            "`take` on the blocking queue `q`",
            Bytes::from_static(b"x"),
            "Long",
            CodecError::new("expected a number"),
        );
        let expected = "`take` on the blocking queue `q` failed: cannot decode as Long: expected a number; is the producer's codec another one?";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn debug_is_the_sentence_and_the_kind() {
        let error = Error::operation("`len`", OpError::Server("NOPERM this user has no permissions".into()));
        let expected = "`len` failed: the server refused: NOPERM this user has no permissions; see ACL LOG, and docs/deployment.md#permissions [Refused]";
        assert_eq!((format!("{error:?}").as_str(), format!("{error:#?}").as_str()), (expected, expected));
    }

    #[test]
    fn what_a_script_rejects_is_invalid() {
        let error = Error::operation("`offer`", OpError::Rejected("the due time is beyond 10^15 ms".into()));
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), "`offer` failed: the due time is beyond 10^15 ms");
    }

    #[test]
    fn debug_keeps_the_payload_to_itself() {
        let error = Error::decode("take", Bytes::from_static(b"secret"), "Json", CodecError::new("not JSON"));
        assert!(!format!("{error:?} {error:#?}").contains("secret"));
        assert_eq!(error.payload().unwrap(), &b"secret"[..]);
        assert!(error.to_string().contains(": not JSON; "));
        assert_eq!(error.source().unwrap().to_string(), "not JSON");
        let own = CodecError::new("300".parse::<u8>().unwrap_err());
        let error = Error::decode("take", Bytes::new(), "Shelf", own);
        assert!(error.source().is_some_and(|source| source.is::<std::num::ParseIntError>()));
    }
}
