//! The one error type.

use std::error::Error as StdError;
use std::fmt;

use bytes::Bytes;

use crate::codec::CodecError;
use crate::conn::{ConnectError, OpError};
use crate::scripts::REFUSED;

/// What was attempted, on which queue, why it failed, and what to do next.
///
/// Match on [`Error::kind`] or ask one of the predicates; the text is for people and may change.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let orders = client.blocking_queue("orders", codec::Long);
/// match orders.put(&7).await {
///     Ok(()) => println!("it is there"),
///     Err(error) if error.is_unavailable() => println!("it is not there: {error}"),
///     Err(error) if error.is_outcome_unknown() => println!("it may be there: {error}"),
///     Err(error) => return Err(error), // To try again does not help.
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
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kinds of failure, each with one thing to do about it.
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
    /// An argument or option was refused before anything was sent. Mend the call.
    Invalid,
    /// No connection, or the server could not take the command now; nothing was executed. Try again. (A wait that ends
    /// with it can have cost what a lost connection can cost: see [`BlockingQueue`](crate::BlockingQueue).)
    Unavailable,
    /// The reply was lost: the server may or may not have done it. Repeat only what is harmless to repeat.
    OutcomeUnknown,
    /// The server refused: a key of another type, missing rights, no memory. Mend the server or the key.
    Refused,
    /// User name or password is wrong or missing.
    Credentials,
    /// The server is older than Redis 6.2.
    UnsupportedServer,
    /// The value could not be encoded.
    Encode,
    /// The payload could not be decoded; [`Error::payload`] has its bytes.
    Decode,
    /// The client was shut down.
    Closed,
}

/// The result of everything here.
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
    /// The kind, to match on.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, ErrorKind, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// match orders.len().await {
    ///     Err(error) if error.kind() == ErrorKind::Refused => println!("`orders` is no list: {error}"),
    ///     length => println!("{} are ready", length?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The server may or may not have done it: the reply was lost. Repeat only what is harmless to repeat.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// # let ticket = jobs.offer(&7, Duration::from_secs(60)).await?;
    /// let cancelled = match jobs.cancel(&ticket).await {
    ///     // To repeat it is harmless, but false may mean then that the first call has done it.
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

    /// Nothing was executed, and the same call may succeed later.
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
    ///     tokio::time::sleep(Duration::from_secs(1)).await; // It is certainly not stored: once more.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.0.kind == ErrorKind::Unavailable
    }

    /// The client was shut down, by [`Client::shutdown`](crate::Client::shutdown) or because its last clone was dropped.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// loop {
    ///     match orders.take().await {
    ///         Ok(order) => println!("{order}"),
    ///         Err(error) if error.is_closed() => break, // Somebody called `shutdown`.
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

    /// The bytes that could not be decoded, when that is the reason. A payload that was taken is off the list: what
    /// is to be kept of it is here.
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

    pub(crate) fn invalid(attempt: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, attempt, reason)
    }

    pub(crate) fn encode(attempt: impl Into<String>, source: CodecError) -> Self {
        Self::new(ErrorKind::Encode, attempt, "the value could not be encoded; nothing was sent")
            .because(source)
    }

    pub(crate) fn decode(attempt: impl Into<String>, payload: Bytes, source: CodecError) -> Self {
        let reason = format!(
            "a payload of {} bytes could not be decoded; Error::payload has it, and the writer's codec must be the same",
            payload.len()
        );
        let mut error = Self::new(ErrorKind::Decode, attempt, reason).because(source);
        error.0.payload = Some(payload);
        error
    }

    pub(crate) fn operation(attempt: impl Into<String>, error: OpError) -> Self {
        let (kind, reason) = match error {
            OpError::NotExecuted(why) => {
                (ErrorKind::Unavailable, format!("{why}; nothing was executed, so try again"))
            }
            OpError::Unknown(why) => (
                ErrorKind::OutcomeUnknown,
                format!(
                    "the reply was lost ({why}); the server may or may not have done it: look before you repeat it"
                ),
            ),
            // From the scripts: what could not be known before it was sent.
            OpError::Server(why) if why.starts_with(REFUSED) => {
                (ErrorKind::Invalid, why[REFUSED.len()..].to_owned())
            }
            OpError::Server(why) if why.contains("WRONGTYPE") => (
                ErrorKind::Refused,
                "one of the queue's keys holds another type (WRONGTYPE); rename that key or the queue".into(),
            ),
            OpError::Server(why) => (ErrorKind::Refused, format!("the server refused: {why}")),
            OpError::Closed => (ErrorKind::Closed, "the client is shut down; connect a new one".into()),
        };
        Self::new(kind, attempt, reason)
    }

    pub(crate) fn connect(server: &str, error: ConnectError) -> Self {
        let attempt = if server.is_empty() { "connect".to_owned() } else { format!("connect to {server}") };
        match error {
            ConnectError::Url(why) => {
                Self::new(ErrorKind::Invalid, attempt, format!("the URL cannot be used: {why}"))
            }
            ConnectError::Refused(why) => Self::new(
                ErrorKind::Credentials,
                attempt,
                format!(
                    "the server refused the user ({why}); check the user and password in the URL, and the rights of that user"
                ),
            ),
            ConnectError::Failed(why) => Self::new(
                ErrorKind::Unavailable,
                attempt,
                format!("no connection ({why}); is a server running there, and reachable from here?"),
            ),
            ConnectError::OldServer(version) => Self::new(
                ErrorKind::UnsupportedServer,
                attempt,
                format!("the server is Redis {version}; Redis 6.2 or later, or Valkey, is needed"),
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

    fn because(mut self, source: CodecError) -> Self {
        self.0.source = Some(source.into_inner());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.0.attempt, self.0.reason)?;
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.0.kind).field("message", &self.to_string());
        if let Some(payload) = &self.0.payload {
            // Payloads may hold what must not be in a log.
            debug.field("payload_bytes", &payload.len());
        }
        debug.field("source", &self.0.source).finish()
    }
}

/// The text of the codec's error is part of this one's, so its source is what caused that.
impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().and_then(StdError::source)
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
            "`offer` on the delayed queue `orders` failed: no connection; nothing was executed, so try again"
        );
        assert!(error.is_unavailable());
    }

    #[test]
    fn says_why_a_payload_does_not_decode() {
        let error = Error::decode(
            "`take` on the blocking queue `q`",
            Bytes::from_static(b"x"),
            CodecError::new("expected a number"),
        );
        assert!(error.to_string().ends_with(": expected a number"), "{error}");
    }

    #[test]
    fn debug_keeps_the_payload_to_itself() {
        let error = Error::decode("take", Bytes::from_static(b"secret"), CodecError::new("not JSON"));
        assert!(!format!("{error:?}").contains("secret"));
        assert_eq!(error.payload().unwrap(), &b"secret"[..]);
        assert!(error.to_string().ends_with(": not JSON") && error.source().is_none());
    }
}
