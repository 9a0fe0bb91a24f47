//! Why a command has no reply, in the cases that a caller tells apart.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::address::Address;
use super::slot::Slot;

/// How an error reply of our own scripts begins. A script sends one before it has written anything.
const REJECTED: &str = "REDELAY ";

/// How it goes on if the queue is full.
const FULL: &str = "FULL ";

/// How a server of a cluster refuses a command that another one serves, or this one in a moment.
const REDIRECTS: [&str; 3] = ["MOVED ", "ASK ", "TRYAGAIN"];

/// How a server refuses a command that it does not serve now. Another one may.
const NOT_HERE: [&str; 4] = ["CLUSTERDOWN", "LOADING", "READONLY", "MASTERDOWN"];

/// How it refuses a command that it does not run now, and no other server does.
const NOT_NOW: [&str; 3] = ["BUSY ", "NOREPLICAS", "MISCONF"];

/// What the error of a script contains if one of its commands was refused like that, on Redis 6.2.
const READONLY_IN_SCRIPT: &str = "READONLY You can't write";

/// The longest message of a server that is kept, in bytes.
const LONGEST: usize = 1_000;

/// Why a command has no reply. A caller reacts differently to each of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpError {
    /// The server did not run the command.
    NotExecuted(Cause),
    /// The command was sent and its reply is lost: the server may or may not have run it.
    Unknown(Cause),
    /// The server has run the command, but replicas have not confirmed it: if the master fails now, it may be
    /// lost.
    Unconfirmed(Cause),
    /// One of our scripts rejected its arguments and wrote nothing.
    Rejected(String),
    /// One of our scripts stored nothing, because the queue has as many pending entries as it may have.
    Full {
        /// How many it may have.
        most: u64,
        /// How many more entries there would have been room for.
        room: usize,
        /// How many there should have been room for.
        wanted: usize,
    },
    /// The server does not accept arguments of this size. So it has executed no try.
    TooLarge(String),
    /// The server answered with any other error.
    Server(String),
    /// The client has been shut down.
    Closed,
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotExecuted(cause) | Self::Unknown(cause) | Self::Unconfirmed(cause) => cause.fmt(f),
            Self::Rejected(why) | Self::TooLarge(why) | Self::Server(why) => f.write_str(why),
            Self::Full { most, wanted, .. } => {
                let entries = if *most == 1 { "entry" } else { "entries" };
                write!(f, "the queue may have {most} pending {entries}, and has no room for ")?;
                match wanted {
                    1 => f.write_str("this one"),
                    _ => write!(f, "these {wanted}"),
                }
            }
            Self::Closed => f.write_str("the client is shut down"),
        }
    }
}

impl OpError {
    /// The reason alone.
    pub(super) fn into_cause(self) -> Cause {
        match self {
            Self::NotExecuted(cause) | Self::Unknown(cause) | Self::Unconfirmed(cause) => cause,
            other => other.to_string().into(),
        }
    }

    pub(super) fn is_not_executed(&self) -> bool {
        matches!(self, Self::NotExecuted(_))
    }

    /// Whether no reply came in time.
    pub(super) fn is_timeout(&self) -> bool {
        matches!(self, Self::Unknown(cause) if cause.is_timeout())
    }

    /// Whether the server does not serve the command now, and another one may.
    pub(super) fn is_not_here(&self) -> bool {
        let in_script = matches!(self, Self::NotExecuted(why) if why.says(READONLY_IN_SCRIPT));
        in_script || self.is_refusal(&NOT_HERE) || self.is_redirect()
    }

    /// Whether the server belongs to a cluster, and does not serve the slot now.
    pub(super) fn is_redirect(&self) -> bool {
        self.is_refusal(&REDIRECTS)
    }

    /// Whether it begins with one of these codes, and says that nothing was executed.
    fn is_refusal(&self, codes: &[&str]) -> bool {
        matches!(self, Self::NotExecuted(why) if begins_with(&why.text, codes))
    }

    /// A server of a cluster was taken for a single one: no retry helps.
    pub(super) fn end_without_cluster(&mut self) {
        if self.is_redirect() {
            *self = Self::Server(format!("{self}; the server belongs to a cluster: write redis-cluster://…"));
        }
    }

    /// The same for a caller who does not know what `ASK` and `TRYAGAIN` mean.
    pub(super) fn explained(self) -> Self {
        match self {
            Self::NotExecuted(why) if begins_with(&why.text, &["ASK ", "TRYAGAIN"]) => {
                Self::NotExecuted(format!("{why} (its slot is being moved to another server)").into())
            }
            error => error,
        }
    }

    /// The slot, and the server that serves it, if the server at `asked` has said so.
    pub(super) fn moved_to(&self, asked: &Address) -> Option<(Slot, Address)> {
        let Self::NotExecuted(why) = self else { return None };
        let (slot, server) = why.text.strip_prefix("MOVED ")?.split_once(' ')?;
        let (host, port) = server.split_whitespace().next()?.rsplit_once(':')?;
        // A server that does not know the address of another one leaves it out: it is at the same host.
        let host = if matches!(host, "" | "?") { &asked.host } else { host.trim_matches(['[', ']']) };
        Some((Slot::numbered(slot.parse().ok()?)?, Address::new(host, port.parse().ok()?)))
    }

    /// The queue has reached its limit of pending entries.
    pub(crate) fn is_full(most: u64) -> Self {
        Self::Full { most, room: 0, wanted: 1 }
    }

    /// What a script says of a queue that is full.
    pub(crate) fn full(why: &str) -> Option<Self> {
        let mut numbers = why.strip_prefix(FULL)?.split(' ');
        let most = numbers.next()?.parse().ok()?;
        let mut count = || numbers.next()?.parse().ok();
        Some(Self::Full { most, room: count()?, wanted: count()? })
    }

    /// The same for a caller whose one offer was sent with those of others.
    pub(crate) fn of_one_offer(self) -> Self {
        match self {
            Self::Full { most, room, .. } => Self::Full { most, room, wanted: 1 },
            other => other,
        }
    }

    /// The error of a call whose last try ended with this one, after an earlier one that the server may have
    /// executed.
    pub(crate) fn after_a_lost_try(self) -> Self {
        match self {
            Self::TooLarge(_) => self,
            error => Self::Unknown(error.into_cause()),
        }
    }

    /// An error reply. Some say that the server did not run the command for now: those are worth a retry.
    pub(super) fn of_reply(message: &str) -> Self {
        // Redis 6.2 wraps the error of a script's command into one of its own.
        let inner = [READONLY_IN_SCRIPT, "-MISCONF "].iter().any(|words| message.contains(words));
        let message = &*cut(message);
        if let Some(why) = message.strip_prefix(REJECTED) {
            return Self::full(why).unwrap_or_else(|| Self::Rejected(why.to_owned()));
        }
        if inner || [&REDIRECTS[..], &NOT_HERE, &NOT_NOW].iter().any(|codes| begins_with(message, codes)) {
            Self::NotExecuted(message.to_owned().into())
        } else {
            Self::Server(message.to_owned())
        }
    }
}

/// The error of a script's command without the script's digest and line, which say nothing to people.
pub(crate) fn without_position(message: &str) -> &str {
    // Redis 7 and Valkey say it behind the error, and Redis 6.2 in front of it, twice.
    let message = match message.rsplit_once(" script: ") {
        // Valkey 9.1 leaves the digest out.
        Some((message, position)) if position.contains("on @user_script:") => message,
        _ => message,
    };
    let message = match message.rsplit_once("@user_script") {
        Some((_, rest)) => rest.trim_start_matches(|c: char| c == ':' || c == ' ' || c.is_ascii_digit()),
        None => message,
    };
    message.strip_prefix('-').unwrap_or(message)
}

/// The line of a script in which one of its commands was refused.
pub(crate) fn line_of(message: &str) -> Option<usize> {
    let rest = message.rsplit_once("@user_script:")?.1.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

/// Whether the user lacks a permission.
pub(crate) fn is_forbidden(why: &str) -> bool {
    // Where a script lacks it, Redis 6.2 says it in the second way, and Valkey in the third.
    ["NOPERM", "The user executing the script", "ACL failure"].iter().any(|words| why.contains(words))
}

/// Whether the server lacks the command, or the user the permission. No retry helps.
pub(super) fn is_missing_command(why: &str) -> bool {
    is_forbidden(why) || begins_with(why, &["ERR unknown", "ERR Unknown"])
}

/// Whether the server refuses a command for the type of a key, which it does not name.
pub(super) fn is_wrong_type(why: &str) -> bool {
    why.contains("WRONGTYPE Operation")
}

fn begins_with(message: &str, codes: &[&str]) -> bool {
    codes.iter().any(|code| message.starts_with(code))
}

/// Error replies begin with a code in capitals: `NOAUTH`, `WRONGPASS`, `ERR`.
pub(super) fn is_of_server(details: &str) -> bool {
    let code = details.split(' ').next().unwrap_or_default();
    code.len() >= 3 && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The words of a server, as far as they are worth keeping: they end up in errors, stats and events. A server
/// that does not know a command repeats what was sent, which may be a password or a payload.
pub(super) fn cut(words: &str) -> Cow<'_, str> {
    let words = words.split(", with args beginning with").next().unwrap_or_default();
    if words.len() <= LONGEST {
        return words.into();
    }
    let end = (0..=LONGEST).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &words[..end]).into()
}

/// A reason as a text for people, with the error that is behind it where that is known.
#[derive(Clone)]
pub(crate) struct Cause {
    text: Cow<'static, str>,
    source: Option<Arc<Source>>,
}

/// An error of the standard library, of TLS or of the caller's own code.
pub(crate) type Source = dyn StdError + Send + Sync;

impl Cause {
    pub(super) fn new(text: impl Into<Cow<'static, str>>, source: Option<Arc<Source>>) -> Self {
        Self { text: text.into(), source }
    }

    /// The server did not answer within the time that it may take.
    pub(super) fn silence() -> Self {
        Self::of_kind(io::ErrorKind::TimedOut, "the server does not answer")
    }

    /// The text is the error's own.
    pub(super) fn of_io(error: io::Error) -> Self {
        Self::new(error.to_string(), Some(Arc::new(error)))
    }

    /// A text of ours, and an I/O error of this kind as its source.
    pub(super) fn of_kind(kind: io::ErrorKind, text: &'static str) -> Self {
        Self::new(text, Some(Arc::new(io::Error::new(kind, text))))
    }

    /// The same with another text.
    pub(super) fn instead(self, text: String) -> Self {
        Self::new(text, self.source)
    }

    /// The same, and where.
    pub(super) fn at(self, place: &str) -> Self {
        Self::new(format!("{place}: {self}"), self.source)
    }

    pub(crate) fn source(&self) -> Option<&Arc<Source>> {
        self.source.as_ref()
    }

    pub(super) fn says(&self, part: &str) -> bool {
        self.text.contains(part)
    }

    /// Whether nothing came in time.
    pub(super) fn is_timeout(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::TimedOut)
    }

    /// Whether the other side closed the connection.
    pub(super) fn is_closed(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        matches!(self.io_kind(), Some(BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
    }

    /// Whether the server lacks a command, or the user the permission. No retry helps.
    pub(crate) fn is_missing_command(&self) -> bool {
        self.is_of_server() && is_missing_command(&self.text)
    }

    /// Whether the server has said it.
    pub(super) fn is_of_server(&self) -> bool {
        self.source.is_none() && is_of_server(&self.text)
    }

    /// Whether the reason is that the server does not answer, or that the connection has ended.
    pub(super) fn is_of_network(&self) -> bool {
        use io::ErrorKind::{InvalidData, Other};
        self.io_kind().is_some_and(|kind| !matches!(kind, InvalidData | Other))
    }

    pub(super) fn io_kind(&self) -> Option<io::ErrorKind> {
        Some(self.source.as_ref()?.downcast_ref::<io::Error>()?.kind())
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Cause {
    fn from(text: T) -> Self {
        Self::new(text, None)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// Two reasons are the same when they say the same.
impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Cause {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reply_says_whether_a_retry_helps() {
        for message in [
            "LOADING Redis is loading the dataset in memory",
            "READONLY You can't write against a read only replica.",
            "MASTERDOWN Link with MASTER is down",
            "ERR Error running script (call to f_1): @user_script:3: READONLY You can't write against a read \
            only replica.",
        ] {
            assert_eq!(OpError::of_reply(message), OpError::NotExecuted(message.into()));
        }
        for message in ["WRONGTYPE Operation against a key", "NOPERM this user", "ERR LOADING"] {
            assert_eq!(OpError::of_reply(message), OpError::Server(message.into()));
        }
    }

    #[test]
    fn what_is_too_large_was_too_large_for_each_try() {
        let error = OpError::TooLarge("an argument has 3 bytes".into());
        assert_eq!(error.clone().after_a_lost_try(), error);
        let refused = OpError::Server("OOM".into());
        assert_eq!(refused.after_a_lost_try(), OpError::Unknown("OOM".to_owned().into()));
    }

    #[test]
    fn errors_of_scripts_tell_the_line() {
        let sha1 = "0123456789012345678901234567890123456789";
        for (message, error) in [
            (
                "WRONGTYPE Operation against a key script: {sha1}, on @user_script:12.",
                "WRONGTYPE Operation against a key",
            ),
            (
                "ERR Error running script (call to f_{sha1}): @user_script:12: WRONGTYPE Operation",
                "WRONGTYPE Operation",
            ),
            (
                "ERR Error running script (call to f_{sha1}): @user_script:12: @user_script: 12: Unknown \
                Redis command",
                "Unknown Redis command",
            ),
            ("@user_script: 12: -MISCONF Redis is", "MISCONF Redis is"),
            (
                "ERR ACL failure in script: User has no permissions script: on @user_script:12.",
                "ERR ACL failure in script: User has no permissions",
            ),
        ] {
            let message = message.replace("{sha1}", sha1);
            assert_eq!((without_position(&message), line_of(&message)), (error, Some(12)), "{message}");
        }
        assert_eq!((without_position("ERR unknown"), line_of("ERR unknown")), ("ERR unknown", None));
    }

    #[test]
    fn a_server_that_does_not_serve_a_slot_may_name_the_one_that_does() {
        let asked = Address::new("asked", 1);
        let moved = |message: &str| {
            let (slot, server) = OpError::of_reply(message).moved_to(&asked)?;
            Some((slot.number(), server.to_string()))
        };
        let to = |slot, server: &str| Some((slot, server.to_owned()));
        assert_eq!(moved("MOVED 3999 127.0.0.1:6381"), to(3999, "127.0.0.1:6381"));
        assert_eq!(moved("MOVED 0 ::1:6381"), to(0, "[::1]:6381"));
        assert_eq!(moved("MOVED 0 redis-1.example.org:6381"), to(0, "redis-1.example.org:6381"));
        assert_eq!(moved("MOVED 7 :6381 script: 12ab, on @user_script:1."), to(7, "asked:6381"));
        assert_eq!(moved("MOVED 7 ?:6381"), to(7, "asked:6381"));
        for wrong in ["MOVED", "MOVED 7", "MOVED 16384 h:1", "MOVED -1 h:1", "MOVED 7 h:x", "ASK 7 h:1"] {
            assert_eq!(moved(wrong), None, "{wrong}");
        }
        for not_here in ["MOVED 7 h:1", "ASK 7 h:1", "TRYAGAIN Multiple keys request", "LOADING Redis is"] {
            assert!(OpError::of_reply(not_here).is_not_here(), "{not_here}");
        }
        for other in ["NOREPLICAS Not enough", "BUSY Redis is busy", "ERR MOVED", "CROSSSLOT Keys"] {
            assert!(!OpError::of_reply(other).is_not_here(), "{other}");
        }
    }

    #[test]
    fn a_rejection_by_a_script_is_no_refusal_by_the_server() {
        let rejected = OpError::of_reply("REDELAY the due time is beyond 10^15 ms");
        assert_eq!(rejected, OpError::Rejected("the due time is beyond 10^15 ms".into()));
        let full = OpError::of_reply("REDELAY FULL 7 2 3");
        assert_eq!(full, OpError::Full { most: 7, room: 2, wanted: 3 });
        let said = "the queue may have 7 pending entries, and has no room for ";
        assert_eq!(full.to_string(), format!("{said}these 3"));
        assert_eq!(full.of_one_offer().to_string(), format!("{said}this one"));
        let unreadable = OpError::of_reply("REDELAY FULL 7 many");
        assert_eq!(unreadable, OpError::Rejected("FULL 7 many".into()));
        let refused = OpError::of_reply("ERR REDELAY no such thing");
        assert_eq!(refused, OpError::Server("ERR REDELAY no such thing".into()));
    }
}
