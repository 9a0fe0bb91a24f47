//! What the reply to a command looks like, if it is no error.
//!
//! Replies carry no number that would say which command they belong to. If a server or a proxy sends one too
//! many or one too few, each later command gets the reply of its neighbour. So every reply is compared with
//! what the command can have; one that does not fit drops the connection, because all that follow on it may
//! be wrong, too. Of two commands whose replies look alike, neither is noticed: a script echoes a tag for
//! that reason.

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::reply::{Frame, NoReply};
use super::{OpError, Reply};

/// The error text for a reply that does not fit its command.
pub(super) const FOREIGN: &str = "the reply belongs to another command";

/// A set of replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Anything,
    Int(RangeInclusive<i64>),
    IntOrNil,
    Text(&'static str),
    Bytes,
    BytesOrNil,
    /// An array of this many strings.
    Strings(usize),
    StringsOrNil(usize),
    /// An array that begins with this number. A script whose text was sent is not unknown; other errors
    /// cannot be told from those of another command.
    Tagged {
        tag: i64,
        has_text: bool,
    },
    /// An array of any length, of strings and nils.
    OptionalStrings,
    /// An array, maps, or nil.
    OfSentinel,
}

impl Expect {
    /// What a command of this name with these arguments is answered.
    pub(super) fn of(name: &str, args: &[Bytes]) -> Self {
        let count = |items: usize| i64::try_from(items).unwrap_or(i64::MAX);
        match name {
            "BLPOP" | "BRPOP" => Self::StringsOrNil(2),
            "BLMOVE" | "LMOVE" | "BRPOPLPUSH" | "RPOPLPUSH" | "GET" | "LINDEX" | "ZSCORE" => Self::BytesOrNil,
            "CLIENT" => match args.first().map(|word| &word[..]) {
                Some(b"SETNAME" | b"TRACKING") => Self::Text("OK"),
                Some(b"UNBLOCK") => Self::Int(0..=1),
                Some(b"ID" | b"KILL") => Self::Int(0..=i64::MAX),
                Some(b"INFO") => Self::Bytes,
                _ => Self::Anything,
            },
            "CLUSTER" if args.first().is_some_and(|word| word == "NODES") => Self::Bytes,
            "DEL" | "EXISTS" => Self::Int(0..=count(args.len())),
            "HDEL" | "ZREM" => Self::Int(0..=count(args.len() - 1)),
            "INFO" | "TYPE" => Self::Bytes,
            "HLEN" | "LLEN" | "LREM" | "ZCARD" => Self::Int(0..=i64::MAX),
            "HSTRLEN" | "ZCOUNT" => Self::Int(0..=i64::MAX),
            "HGET" => Self::BytesOrNil,
            "HMGET" | "LRANGE" | "ZRANGE" | "ZRANGEBYSCORE" => Self::OptionalStrings,
            "LPOS" => Self::IntOrNil,
            "HEXISTS" | "PEXPIRE" => Self::Int(0..=1),
            "PING" => Self::Text("PONG"),
            // The length of the list: what was pushed is in it.
            "RPUSH" => Self::Int(count(args.len() - 1)..=i64::MAX),
            // A sentence, or an error.
            "SENTINEL" if args.first().is_some_and(|word| word == "CKQUORUM") => Self::Bytes,
            "SENTINEL" => Self::OfSentinel,
            "TIME" => Self::Strings(2),
            "WAIT" => Self::Int(0..=i64::MAX),
            _ => Self::Anything,
        }
    }

    /// The reply in a frame, if it is one of these.
    pub(super) fn read(&self, frame: Frame) -> Result<Reply, NoReply> {
        let reply = match self {
            Self::OfSentinel => Reply::of_sentinel(frame),
            _ => Reply::of_frame(frame),
        };
        let reply = match (reply, self) {
            (Err(NoReply::Error(OpError::Server(why))), Self::Tagged { has_text: true, .. })
                if why.starts_with("NOSCRIPT") =>
            {
                return Err(NoReply::Impossible(FOREIGN));
            }
            (reply, _) => reply?,
        };
        if self.fits(&reply) { Ok(reply) } else { Err(NoReply::Impossible(FOREIGN)) }
    }

    fn fits(&self, reply: &Reply) -> bool {
        let strings = |items: &[Reply], count: usize| {
            items.len() == count && items.iter().all(|item| matches!(item, Reply::Bytes(_)))
        };
        match (self, reply) {
            (Self::Anything, _) => true,
            (Self::Int(range), Reply::Int(number)) => range.contains(number),
            (Self::IntOrNil, Reply::Int(number)) => *number >= 0,
            (Self::Text(text), Reply::Bytes(bytes)) => *bytes == text.as_bytes(),
            (Self::Bytes | Self::BytesOrNil, Reply::Bytes(_))
            | (Self::OfSentinel, Reply::Array(_) | Reply::Nil) => true,
            (Self::IntOrNil | Self::BytesOrNil | Self::StringsOrNil(_), Reply::Nil) => true,
            (Self::Strings(count) | Self::StringsOrNil(count), Reply::Array(items)) => strings(items, *count),
            (Self::OptionalStrings, Reply::Array(items)) => {
                items.iter().all(|item| matches!(item, Reply::Bytes(_) | Reply::Nil))
            }
            (Self::Tagged { tag, .. }, Reply::Array(items)) => items.first() == Some(&Reply::Int(*tag)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_its_replies() {
        let args = |text: &'static str| text.split(' ').map(Bytes::from).collect::<Vec<_>>();
        let text = |text: &'static str| Reply::Bytes(text.into());
        let ints = |numbers: &[i64]| numbers.iter().map(|number| Reply::Int(*number)).collect::<Vec<_>>();
        let all = [
            ints(&[i64::MIN, -1, 0, 1, 2, 3, i64::MAX]),
            vec![Reply::Nil, text("OK"), text("PONG"), text("list")],
            [vec![], vec![text("q"), text("a")], vec![text("q"), Reply::Int(1)], vec![text("q"); 3]]
                .map(Reply::Array)
                .into(),
        ]
        .concat();
        for (name, given, fitting) in [
            ("LLEN", "q", ints(&[0, 1, 2, 3, i64::MAX])),
            ("RPUSH", "q a b", ints(&[2, 3, i64::MAX])),
            ("DEL", "q p", ints(&[0, 1, 2])),
            ("HDEL", "q a b", ints(&[0, 1, 2])),
            ("HLEN", "q", ints(&[0, 1, 2, 3, i64::MAX])),
            ("PEXPIRE", "q 1", ints(&[0, 1])),
            ("LPOS", "q a", [ints(&[0, 1, 2, 3, i64::MAX]), vec![Reply::Nil]].concat()),
            ("LINDEX", "q 0", vec![Reply::Nil, text("OK"), text("PONG"), text("list")]),
            ("TYPE", "q", vec![text("OK"), text("PONG"), text("list")]),
            ("PING", "", vec![text("PONG")]),
            ("CLIENT", "SETNAME me", vec![text("OK")]),
            ("CLIENT", "UNBLOCK 1 TIMEOUT", ints(&[0, 1])),
            ("TIME", "", vec![Reply::Array(vec![text("q"), text("a")])]),
            ("BLPOP", "q p 10", vec![Reply::Nil, Reply::Array(vec![text("q"), text("a")])]),
        ] {
            let expect = Expect::of(name, &args(given));
            let found: Vec<_> = all.iter().filter(|reply| expect.fits(reply)).cloned().collect();
            assert_eq!(found, fitting, "{name} {given}");
        }
    }

    #[test]
    fn a_tag_is_the_first_element() {
        let expect = Expect::Tagged { tag: 7, has_text: false };
        let tagged = |items: Vec<Reply>| expect.fits(&Reply::Array(items));
        assert!(tagged(vec![Reply::Int(7)]) && tagged(vec![Reply::Int(7), Reply::Nil]));
        assert!(!tagged(vec![]) && !tagged(vec![Reply::Int(8), Reply::Int(7)]));
        assert!(!tagged(vec![Reply::Bytes("7".into())]) && !expect.fits(&Reply::Int(7)));
    }
}
