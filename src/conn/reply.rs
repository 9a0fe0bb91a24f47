//! Replies to commands, free of the client library's types.

use bytes::Bytes;
use fred::types::Resp3Frame;

use super::OpError;

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

    /// The strings of an array.
    pub(crate) fn into_strings(self) -> Result<Vec<Bytes>, Shape> {
        self.into_array()?.into_iter().map(Self::into_bytes).collect()
    }

    /// Exactly `N` elements of an array.
    pub(crate) fn into_parts<const N: usize>(self) -> Result<[Reply; N], Shape> {
        self.into_array()?.try_into().map_err(|_| Shape("an array of the promised length"))
    }
}
