//! How a command ends that has not done what was asked: a line on stderr, and an exit code.

use std::fmt;
use std::io;

use redelay::{Error, ErrorKind};

use crate::escape;

/// Why a command ends.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The answer is negative: 1.
    Negative(String),
    /// The command or the configuration is wrong: 2.
    Usage(String),
    /// No server answers: 3.
    NoConnection(String),
    /// The server is older than what is supported: 3.
    TooOld(String),
    /// The login is refused, or a permission is missing: 4.
    Refused(String),
    /// The server or this machine refuses it for another reason: 5.
    Other(String),
    /// The reader of the output has closed it: 0.
    PipeClosed,
}

impl Failure {
    /// Why a program that goes on cannot do something now.
    ///
    /// # Errors
    /// The failure, if it will not get better by itself: a permission is missing.
    pub(crate) fn passes(error: Error) -> Result<String, Self> {
        match error.into() {
            refused @ Self::Refused(_) => Err(refused),
            failure => Ok(failure.to_string()),
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::PipeClosed => 0,
            Self::Negative(_) => 1,
            Self::Usage(_) => 2,
            Self::NoConnection(_) | Self::TooOld(_) => 3,
            Self::Refused(_) => 4,
            Self::Other(_) => 5,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PipeClosed => Ok(()),
            Self::Negative(text)
            | Self::Usage(text)
            | Self::NoConnection(text)
            | Self::TooOld(text)
            | Self::Refused(text)
            | Self::Other(text) => f.write_str(&escape::text(text)),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Other(format!("the output cannot be written: {error}")),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error.kind() {
            ErrorKind::Invalid => Self::Usage(text),
            ErrorKind::Credentials => Self::Refused(text),
            ErrorKind::UnsupportedServer => Self::TooOld(text),
            ErrorKind::Refused => match missing_permission(&text) {
                Some(right) => Self::Refused(format!("{text}; the missing permission: {right}")),
                // What has this name is no queue.
                None if text.contains("WRONGTYPE") => Self::Negative(text),
                None => Self::Other(text),
            },
            // Of one server or sentinel of several: another one may still accept it.
            ErrorKind::Unavailable if ["NOAUTH ", "WRONGPASS "].iter().any(|words| text.contains(words)) => {
                let of_sentinels = text.contains("do they need credentials of their own");
                let where_it_is = " A profile has it as sentinel_password_command";
                Self::Refused(text + if of_sentinels { where_it_is } else { "" })
            }
            ErrorKind::Unavailable | ErrorKind::OutcomeUnknown | ErrorKind::Tls | ErrorKind::Closed => {
                Self::NoConnection(text)
            }
            _ => Self::Other(text),
        }
    }
}

/// The permission for the keys of a queue.
const KEYS: &str = "~*, or a pattern of the keys";

/// What `ACL SETUSER` has to grant, by the server's words.
pub(crate) fn missing_permission(text: &str) -> Option<String> {
    // In a script, the server does not name it. Behind its words, the library names the commands of the line
    // that was refused.
    if let Some((_, rest)) = text.split_once("executing the script can't run this command") {
        let names = rest.rsplit_once(": ").map_or("", |(_, names)| names).split(", ");
        let is_name = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase());
        let rights: Vec<_> = names.filter(is_name).map(|name| format!("+{}", name.to_lowercase())).collect();
        let none = || "+ the commands of a pump, of which the server names none".into();
        return Some(if rights.is_empty() { none() } else { rights.join(" or ") });
    }
    if text.contains("executing the script can't access") {
        return Some(KEYS.into());
    }
    // Valkey says it of a script in other words.
    let (_, words) = text.split_once("NOPERM").or_else(|| text.split_once("ACL failure in script"))?;
    if let Some((_, rest)) = words.split_once("to run the '") {
        return rest.split_once('\'').map(|(command, _)| format!("+{}", command.to_lowercase()));
    }
    if words.contains("channel") {
        return Some("+psubscribe, and &* or patterns of the channels".into());
    }
    Some(KEYS.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_permission_is_named() {
        for (text, right) in [
            ("it failed: NOPERM User looks has no permissions to run the 'scan' command", Some("+scan")),
            (
                "NOPERM this user has no permissions to run the 'pubsub|numsub' command or its subcommand",
                Some("+pubsub|numsub"),
            ),
            (
                "ERR ACL failure in script: User pump has no permissions to run the 'llen' command",
                Some("+llen"),
            ),
            (
                "ERR The user executing the script can't run this command or subcommand: RPUSH, LREM",
                Some("+rpush or +lrem"),
            ),
            (
                "The user executing the script can't run this command or subcommand",
                Some("+ the commands of a pump, of which the server names none"),
            ),
            (
                "The user executing the script can't access at least one of the keys",
                Some("~*, or a pattern of the keys"),
            ),
            ("NOPERM No permissions to access a key", Some("~*, or a pattern of the keys")),
            (
                "NOPERM no permission to listen to `x` (PSUBSCRIBE, and channels that match)",
                Some("+psubscribe, and &* or patterns of the channels"),
            ),
            ("WRONGTYPE", None),
        ] {
            assert_eq!(missing_permission(text).as_deref(), right, "{text}");
        }
    }

    #[test]
    fn a_script_can_tell_an_answer_from_what_prevents_one() {
        for (failure, code) in [
            (Failure::Negative("there is no such queue".into()), 1),
            (io::Error::other("no space is left").into(), 5),
            (io::Error::from(io::ErrorKind::BrokenPipe).into(), 0),
        ] {
            assert_eq!(failure.code(), code, "{failure}");
        }
    }

    #[test]
    fn an_error_is_one_line() {
        let failure = Failure::Negative("the queue `a\nb\x1b[2J` is not there".into());
        assert_eq!(failure.to_string(), "the queue `a\\nb\\x1b[2J` is not there");
    }
}
