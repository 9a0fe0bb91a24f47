//! Replies to commands, free of the client library's types.

use std::io::ErrorKind;

use bytes::Bytes;

use super::{Cause, OpError};
use crate::wire::time;

/// A reply as the client library passes it on.
pub(super) use fred::types::Resp3Frame as Frame;

/// How deep arrays may be nested. No command here is answered with more than two levels.
const DEPTH: usize = 16;
/// More than any server has of anything. Sums of counts do not overflow.
const MOST: i64 = 1 << 53;

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
pub(crate) struct Shape(pub(super) &'static str);

impl From<Shape> for OpError {
    fn from(shape: Shape) -> Self {
        // Whatever was executed, this is not what it answers.
        Self::Unknown(format!("the reply was not {}", shape.0).into())
    }
}

/// Why there is no reply in a frame.
#[derive(Debug)]
pub(super) enum NoReply {
    /// The server says that it failed.
    Error(OpError),
    /// No command here is answered like that.
    Impossible(&'static str),
}

impl From<NoReply> for OpError {
    fn from(why: NoReply) -> Self {
        match why {
            NoReply::Error(error) => error,
            NoReply::Impossible(why) => Self::Unknown(Cause::of_kind(ErrorKind::InvalidData, why)),
        }
    }
}

impl Reply {
    pub(super) fn of_frame(frame: Frame) -> Result<Self, NoReply> {
        Self::of_nested(frame, DEPTH, false)
    }

    /// What a sentinel says of servers. In the older protocol, its maps are arrays of names and values, and
    /// so they are here.
    pub(super) fn of_sentinel(frame: Frame) -> Result<Self, NoReply> {
        Self::of_nested(frame, DEPTH, true)
    }

    /// With at most this many levels of arrays.
    fn of_nested(frame: Frame, depth: usize, has_maps: bool) -> Result<Self, NoReply> {
        let error = |message: &str| Err(NoReply::Error(OpError::of_reply(message)));
        Ok(match frame {
            Frame::BlobString { data, .. } => Self::Bytes(data),
            Frame::SimpleString { data, .. } => Self::Bytes(data),
            // `CLIENT INFO`, on the connection that speaks the newer protocol.
            Frame::VerbatimString { data, .. } => Self::Bytes(data),
            Frame::Number { data, .. } => Self::Int(data),
            Frame::Null => Self::Nil,
            Frame::Array { data, .. } | Frame::Push { data, .. } => Self::of_items(data, depth, has_maps)?,
            Frame::Map { data, .. } if has_maps => {
                Self::of_items(data.into_iter().flat_map(|(name, value)| [name, value]), depth, has_maps)?
            }
            Frame::SimpleError { data, .. } => return error(&data),
            Frame::BlobError { data, .. } => return error(&String::from_utf8_lossy(&data)),
            _ => return Err(NoReply::Impossible("the reply is of a kind that no command here has")),
        })
    }

    fn of_items(
        items: impl IntoIterator<Item = Frame>,
        depth: usize,
        has_maps: bool,
    ) -> Result<Self, NoReply> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(NoReply::Impossible("the reply is nested too deeply"));
        };
        let items = items.into_iter().map(|frame| Self::of_nested(frame, depth, has_maps));
        Ok(Self::Array(items.collect::<Result<_, _>>()?))
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

    /// A score as the server prints it; `None` for nil, and for what is no number.
    pub(crate) fn into_optional_score(self) -> Result<Option<f64>, Shape> {
        let score = self.into_optional_bytes()?;
        Ok(score.and_then(|score| std::str::from_utf8(&score).ok()?.parse().ok()))
    }

    pub(crate) fn into_int(self) -> Result<i64, Shape> {
        match self {
            Self::Int(number) => Ok(number),
            _ => Err(Shape("an integer")),
        }
    }

    /// A number of things that were counted in memory.
    pub(crate) fn into_count(self) -> Result<i64, Shape> {
        match self {
            Self::Int(number @ 0..=MOST) => Ok(number),
            _ => Err(Shape("a count")),
        }
    }

    /// A number from 1 to `things`.
    pub(crate) fn into_number_of(self, things: usize) -> Result<usize, Shape> {
        let number = usize::try_from(self.into_count()?).ok();
        number.filter(|number| (1..=things).contains(number)).ok_or(Shape("the number of a thing"))
    }

    /// The server's clock, epoch µs.
    pub(crate) fn into_clock(self) -> Result<i64, Shape> {
        match self {
            Self::Int(number) if time::is_clock(number) => Ok(number),
            _ => Err(Shape("a time")),
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

    /// The strings of an array.
    pub(crate) fn into_strings(self) -> Result<Vec<Bytes>, Shape> {
        self.into_array()?.into_iter().map(Self::into_bytes).collect()
    }

    /// Exactly `N` elements of an array.
    pub(crate) fn into_parts<const N: usize>(self) -> Result<[Reply; N], Shape> {
        self.into_array()?.try_into().map_err(|_| Shape("an array of the promised length"))
    }
}
