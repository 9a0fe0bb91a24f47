//! What a command answers, in our own words.

use std::fmt;

use bytes::Bytes;
use fred::error::{Error as FredError, ErrorKind as FredErrorKind};
use fred::types::Resp3Frame;

/// Why a command gave no reply: the four cases in which a caller acts differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpError {
    /// The server certainly did not run it.
    NotExecuted(String),
    /// It was sent, and no reply came: the server may or may not have run it.
    Unknown(String),
    /// The server ran it and refused.
    Server(String),
    /// The client has been shut down.
    Closed,
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotExecuted(why) | Self::Unknown(why) | Self::Server(why) => f.write_str(why),
            Self::Closed => f.write_str("the client is shut down"),
        }
    }
}

impl OpError {
    /// The client library's error of a command that had been handed to it.
    pub(super) fn of_sent(error: &FredError) -> Self {
        match error.kind() {
            FredErrorKind::InvalidCommand | FredErrorKind::InvalidArgument | FredErrorKind::Config => {
                Self::Server(error.details().to_owned())
            }
            _ => Self::Unknown(error.details().to_owned()),
        }
    }

    /// An error reply. Some say that the server did not even look at the command: those are worth another try.
    fn of_reply(message: &str) -> Self {
        const NOT_NOW: [&str; 6] = ["LOADING", "READONLY", "MASTERDOWN", "BUSY ", "NOREPLICAS", "MISCONF"];
        // Redis 6.2 wraps the error of a script's command into one of its own.
        let demoted = message.contains("READONLY You can't write");
        if demoted || NOT_NOW.iter().any(|prefix| message.starts_with(prefix)) {
            Self::NotExecuted(message.to_owned())
        } else {
            Self::Server(message.to_owned())
        }
    }
}

/// A reply, with bytes left as they came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Nil,
    Int(i64),
    Bytes(Bytes),
    Array(Vec<Reply>),
}

/// The reply did not have the shape that the command promises.
#[derive(Debug)]
pub(crate) struct Shape(&'static str);

impl From<Shape> for OpError {
    fn from(shape: Shape) -> Self {
        Self::Server(format!("the reply was not {}", shape.0))
    }
}

impl Reply {
    pub(super) fn of_frame(frame: Resp3Frame) -> Result<Self, OpError> {
        Ok(match frame {
            Resp3Frame::BlobString { data, .. } => Self::Bytes(data),
            Resp3Frame::SimpleString { data, .. } => Self::Bytes(data),
            Resp3Frame::Number { data, .. } => Self::Int(data),
            Resp3Frame::Null => Self::Nil,
            Resp3Frame::Array { data, .. } | Resp3Frame::Push { data, .. } => {
                Self::Array(data.into_iter().map(Self::of_frame).collect::<Result<_, _>>()?)
            }
            Resp3Frame::SimpleError { data, .. } => return Err(OpError::of_reply(&data)),
            Resp3Frame::BlobError { data, .. } => {
                return Err(OpError::of_reply(&String::from_utf8_lossy(&data)));
            }
            _ => return Err(OpError::Server("the reply is of a kind that no command here has".into())),
        })
    }

    pub(crate) fn into_bytes(self) -> Result<Bytes, Shape> {
        self.into_optional_bytes()?.ok_or(Shape("a string"))
    }

    pub(crate) fn into_optional_bytes(self) -> Result<Option<Bytes>, Shape> {
        match self {
            Self::Bytes(bytes) => Ok(Some(bytes)),
            Self::Nil => Ok(None),
            _ => Err(Shape("a string or nil")),
        }
    }

    pub(crate) fn into_int(self) -> Result<i64, Shape> {
        match self {
            Self::Int(number) => Ok(number),
            _ => Err(Shape("an integer")),
        }
    }

    /// The elements of an array; nil counts as an empty one, as `LPOP key count` has it.
    pub(crate) fn into_array(self) -> Result<Vec<Reply>, Shape> {
        match self {
            Self::Array(items) => Ok(items),
            Self::Nil => Ok(Vec::new()),
            _ => Err(Shape("an array")),
        }
    }

    /// The strings behind their number: see `script.rs`.
    pub(crate) fn into_counted_bytes(self) -> Result<Vec<Bytes>, Shape> {
        self.into_array()?.into_iter().skip(1).map(Self::into_bytes).collect()
    }

    /// Exactly `N` elements of an array.
    pub(crate) fn into_parts<const N: usize>(self) -> Result<[Reply; N], Shape> {
        self.into_array()?.try_into().map_err(|_| Shape("an array of the promised length"))
    }
}
