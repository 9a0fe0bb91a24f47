//! The client library's errors in our words, with the I/O error that the library has turned into text.
//!
//! The library keeps the `Debug` text of an I/O error and drops the error. Its own phrases are about its
//! inner parts, so none of them is passed on. What the server says is passed on as it is.

use std::io;

use fred::error::ErrorKind;

use super::op_error::{Cause, OpError, cut, is_of_server};

pub(super) use fred::error::Error;
#[cfg(feature = "tls")]
pub(super) use fred::{rustls, rustls_native_certs};

/// The library's error of a command that was handed to it.
pub(super) fn of_sent(error: &Error) -> OpError {
    match error.kind() {
        ErrorKind::InvalidCommand | ErrorKind::InvalidArgument | ErrorKind::Config => {
            OpError::Server(cause(error).to_string())
        }
        _ => OpError::Unknown(cause(error)),
    }
}

/// Why a connection was lost, or could not be made.
pub(super) fn cause(error: &Error) -> Cause {
    let details = error.details();
    if let Some(error) = io_error(details) {
        return Cause::of_io(error);
    }
    if is_of_server(details) {
        return Cause::from(cut(details).into_owned());
    }
    match error.kind() {
        ErrorKind::Timeout => Cause::of_kind(io::ErrorKind::TimedOut, "the server did not answer in time"),
        ErrorKind::IO if details.starts_with("Failed to resolve") => {
            Cause::of_kind(io::ErrorKind::NotFound, "the host has no address")
        }
        #[cfg(feature = "tls")]
        _ if is_of_tls(error) => Cause::of_kind(io::ErrorKind::InvalidData, "the TLS connection failed"),
        // The library reads nil where the server has closed the connection before it has answered.
        _ if matches!(details, "No response!" | "Missing response." | "Expected string.") => closed(),
        ErrorKind::IO | ErrorKind::Canceled => closed(),
        ErrorKind::Protocol | ErrorKind::Parse => {
            Cause::of_kind(io::ErrorKind::InvalidData, "the answer is not in the Redis protocol")
        }
        _ => Cause::of_kind(io::ErrorKind::NotConnected, "the connection was lost"),
    }
}

fn closed() -> Cause {
    Cause::of_kind(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

/// Whether a command was not answered in time.
pub(super) fn is_timeout(error: &Error) -> bool {
    *error.kind() == ErrorKind::Timeout
}

/// Whether the library refuses what it is configured with.
pub(super) fn is_of_configuration(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Config | ErrorKind::Url | ErrorKind::InvalidArgument)
}

/// Whether the text gives neither the server's words nor the I/O error back.
pub(super) fn is_vague(error: &Error) -> bool {
    !is_timeout(error) && io_error(error.details()).is_none() && !is_of_server(error.details())
}

/// An error of TLS is an I/O error around one whose text does not give it back.
#[cfg(feature = "tls")]
fn is_of_tls(error: &Error) -> bool {
    let around = error.details().strip_prefix("Custom { kind: InvalidData, error: ");
    *error.kind() == ErrorKind::Tls || around.is_some_and(|inner| !inner.starts_with('"'))
}

/// The error that has this text as `{:?}`.
fn io_error(details: &str) -> Option<io::Error> {
    if let Some(rest) = details.strip_prefix("Os { code: ") {
        return Some(io::Error::from_raw_os_error(rest.split(',').next()?.parse().ok()?));
    }
    if let Some(kind) = details.strip_prefix("Kind(").and_then(|rest| rest.strip_suffix(')')) {
        return kind_named(kind).map(io::Error::from);
    }
    let (name, rest) = details
        .strip_prefix("Custom { kind: ")
        .or(details.strip_prefix("Error { kind: "))?
        .split_once(", ")?;
    let message = rest.strip_prefix("error: \"").or(rest.strip_prefix("message: \""))?;
    let message = message.strip_suffix("\" }")?.replace("\\\"", "\"").replace("\\n", " ");
    Some(io::Error::new(kind_named(name).unwrap_or(io::ErrorKind::Other), message))
}

fn kind_named(name: &str) -> Option<io::ErrorKind> {
    use io::ErrorKind::*;
    let kinds = [
        AddrInUse,
        AddrNotAvailable,
        BrokenPipe,
        ConnectionAborted,
        ConnectionRefused,
        ConnectionReset,
        HostUnreachable,
        Interrupted,
        InvalidData,
        InvalidInput,
        NetworkDown,
        NetworkUnreachable,
        NotConnected,
        NotFound,
        OutOfMemory,
        PermissionDenied,
        TimedOut,
        UnexpectedEof,
        WriteZero,
    ];
    kinds.into_iter().find(|kind| format!("{kind:?}") == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_are_what_they_were() {
        let custom = |kind, text: &str| io::Error::new(kind, text.to_owned());
        let errors = [
            io::Error::from_raw_os_error(111),
            io::Error::from_raw_os_error(104),
            io::ErrorKind::UnexpectedEof.into(),
            custom(io::ErrorKind::ConnectionReset, "peer closed \"early\""),
            io::Error::other("failed to lookup address information: Name or service not known"),
            std::net::ToSocketAddrs::to_socket_addrs("localhost").unwrap_err(),
        ];
        for error in errors {
            let (text, kind) = (error.to_string(), error.kind());
            let cause = cause(&Error::from(error));
            assert_eq!((cause.to_string(), cause.io_kind()), (text, Some(kind)));
        }
        let refused = cause(&Error::from(io::Error::from_raw_os_error(111)));
        assert_eq!(refused.to_string(), "Connection refused (os error 111)");
        assert_eq!(refused.io_kind(), Some(io::ErrorKind::ConnectionRefused));
    }

    #[test]
    fn phrases_of_the_library_are_not_passed_on() {
        use ErrorKind as Kind;
        let rows = [
            (Kind::Routing, "Failed to route command.", "the connection was lost"),
            (Kind::Unknown, "Failed to route command.", "the connection was lost"),
            (Kind::Unknown, "Failed to send command to router.", "the connection was lost"),
            (Kind::IO, "Connection closed.", "the server closed the connection"),
            (Kind::Canceled, "Connection closed unexpectedly.", "the server closed the connection"),
            (Kind::Unknown, "No response!", "the server closed the connection"),
            (Kind::Timeout, "Request timed out.", "the server did not answer in time"),
            (Kind::Protocol, "Expected string.", "the server closed the connection"),
            (Kind::Protocol, "Invalid response frame type.", "the answer is not in the Redis protocol"),
            (Kind::Unknown, "something new", "the connection was lost"),
        ];
        for (kind, details, expected) in rows {
            let cause = cause(&Error::new(kind, details));
            assert_eq!(cause.to_string(), expected);
            assert!(cause.io_kind().is_some(), "{details}");
        }
    }

    #[test]
    fn words_of_the_server_are_passed_on() {
        for words in [
            "WRONGPASS invalid username-password pair or user is disabled.",
            "NOAUTH Authentication required.",
            "ERR DB index is out of range",
            "LOADING Redis is loading the dataset in memory",
        ] {
            let cause = cause(&Error::new(ErrorKind::Auth, words));
            assert_eq!((cause.to_string().as_str(), cause.source().is_none()), (words, true));
        }
    }
}
