//! What becomes of a message.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::receiver::MessageId;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// What to do with a message after its handler has run. A handler may also return `()`, or a `Result` whose
/// `Err` is a [`Retry`](Self::Retry).
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// use redelay::worker::Outcome;
///
/// # enum Ship { Closed, NoSuchAddress }
/// fn outcome(shipped: Result<(), Ship>) -> Outcome {
///     match shipped {
///         Ok(()) => Outcome::Done,
///         Err(Ship::Closed) => Outcome::Snooze(Duration::from_secs(3600)), // does not count
///         Err(Ship::NoSuchAddress) => Outcome::Reject("no such address".into()),
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It is done: the message is deleted.
    Done,
    /// It failed: the message is delivered again after the backoff, or becomes a dead letter.
    Retry(BoxError),
    /// It failed: the message is delivered again after this time, or becomes a dead letter.
    RetryAfter(Duration, BoxError),
    /// The message is delivered again after this time. This is not a failure.
    Snooze(Duration),
    /// The message becomes a dead letter now.
    Reject(BoxError),
}

/// What a handler may return: `()`, an [`Outcome`], or a `Result` of one of them, whose error is anything
/// that converts into `Box<dyn Error + Send + Sync>`, such as an `anyhow::Error` or a `&str`. A
/// `Box<dyn Error>` does not: the error crosses threads.
///
/// # Examples
/// ```
/// use redelay::worker::{IntoOutcome, Outcome};
///
/// let failed: Result<(), &str> = Err("the shop does not answer");
/// assert!(matches!(failed.into_outcome(), Outcome::Retry(_)));
/// ```
pub trait IntoOutcome {
    /// The outcome.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl<O: IntoOutcome, E: Into<BoxError>> IntoOutcome for Result<O, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(outcome) => outcome.into_outcome(),
            Err(error) => Outcome::Retry(error.into()),
        }
    }
}

/// An attempt that failed, for [`Worker::on_failure`](crate::Worker::on_failure). `Display` says what
/// happened, and whether the message becomes a dead letter.
///
/// # Examples
/// ```no_run
/// # fn example(orders: redelay::BlockingQueue<i64>) {
/// let queue = orders.clone();
/// let worker = redelay::Worker::new(&orders).on_failure(move |failure| {
///     // attempt 10 of 0199a0b1… in `orders` failed: the shop does not answer; it becomes a dead letter
///     eprintln!("{failure}");
///     if failure.is_dead {
///         eprintln!("the order: {:?}", queue.decode(&failure.payload));
///     }
/// });
/// # }
/// ```
#[non_exhaustive]
pub struct Failure {
    /// The name of the queue.
    pub queue: String,
    /// The id of the message; `None` if its payload cannot be decoded.
    pub id: Option<MessageId>,
    /// Which attempt it was; 1 if its payload cannot be decoded.
    pub attempt: u32,
    /// The id of the job, if it was offered with `until_done`, a header or an expiry: see
    /// [`Delivery::job_id`](crate::Delivery::job_id).
    /// `None` also if the payload cannot be decoded. `Display` does not show it.
    pub job_id: Option<Bytes>,
    /// The payload, as it is on the server. [`BlockingQueue::decode`](crate::BlockingQueue::decode) reads it.
    /// `Debug` and `Display` do not show it.
    pub payload: Bytes,
    /// The error that the handler returned, or what happened to the handler. `Display` of the failure adds
    /// its causes ([`Error::source`]), and so does the dead letter.
    pub error: BoxError,
    /// Whether the message becomes a dead letter with this failure, or is deleted, if the worker discards
    /// those: it was rejected, it cannot be decoded, or it was the last attempt. The settlement has begun
    /// when this is reported. If it fails, a second report has the server's error, and the message may be
    /// delivered again. If the job is cancelled at that moment, there is no dead letter.
    ///
    /// False if the message is tried again, and where the worker cannot tell: after a lost lease, and for a
    /// payload that cannot be decoded with [`OnUndecodable::Retry`](crate::worker::OnUndecodable::Retry).
    pub is_dead: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, id, attempt, error, is_dead, .. } = self;
        match id {
            Some(id) => write!(f, "attempt {attempt} of {id} in `{queue}` failed: "),
            None => write!(f, "a message in `{queue}` failed: "),
        }?;
        WithCauses(&**error).fmt(f)?;
        f.write_str(if *is_dead { "; it becomes a dead letter" } else { "" })
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("queue", &self.queue)
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .field("job_id", &self.job_id)
            .field("error", &self.error)
            .field("is_dead", &self.is_dead)
            .finish_non_exhaustive()
    }
}

/// An error and what caused it, one behind the other. Many errors quote their cause: it is not told twice.
pub(super) struct WithCauses<'a>(pub(super) &'a (dyn Error + 'static));

impl fmt::Display for WithCauses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        let mut told = if next.is_some() { self.0.to_string() } else { String::new() };
        while let Some(cause) = next {
            let text = cause.to_string();
            if !told.contains(&text) {
                write!(f, ": {text}")?;
                told.push_str(&text);
            }
            next = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Failed(&'static str, Option<Box<Failed>>);

    impl fmt::Display for Failed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Failed {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn causes_are_told_once() {
        let chain = |texts: &[&'static str]| {
            let error = texts.iter().rev().fold(None, |cause, text| Some(Box::new(Failed(text, cause))));
            WithCauses(&*error.unwrap()).to_string()
        };
        assert_eq!(chain(&["sending failed"]), "sending failed");
        assert_eq!(chain(&["sending failed", "connection refused"]), "sending failed: connection refused");
        assert_eq!(chain(&["sending: tcp", "tcp", "connection refused"]), "sending: tcp: connection refused");
        assert_eq!(chain(&["sending", "", "sending"]), "sending");
    }
}
