//! Why there is no connection.

use std::fmt;
#[cfg(feature = "tls")]
use std::sync::Arc;

use super::op_error::Cause;
#[cfg(feature = "tls")]
use super::op_error::Source;

/// Why there is no connection.
#[derive(Clone, Debug)]
pub(crate) enum ConnectError {
    /// The URL cannot be used. The text never contains the URL: it may hold a password.
    Url(String),
    /// Another option cannot be used. The text is a whole sentence.
    Option(String),
    /// The server wants other credentials.
    Credentials(String),
    /// The server refuses a command without which there is no connection.
    Refused(String),
    /// The caller's credentials provider failed or did not answer.
    Provider(Cause),
    /// The TLS handshake failed for a reason that a retry does not change.
    #[cfg(feature = "tls")]
    Tls { why: String, source: Arc<Source> },
    /// No server could be reached in time, and what the user should check.
    Failed(Cause, &'static str),
    /// The server lacks commands that are needed. Holds its version.
    OldServer(String),
}

impl ConnectError {
    pub(super) fn failed(cause: Cause) -> Self {
        Self::Failed(cause, "is a server running there, and reachable from here?")
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(why) | Self::Option(why) | Self::Credentials(why) | Self::Refused(why) => {
                f.write_str(why)
            }
            #[cfg(feature = "tls")]
            Self::Tls { why, .. } => f.write_str(why),
            Self::Provider(cause) | Self::Failed(cause, _) => cause.fmt(f),
            Self::OldServer(version) => write!(f, "the server is Redis {version}"),
        }
    }
}

impl From<ConnectError> for Cause {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Provider(cause) | ConnectError::Failed(cause, _) => cause,
            #[cfg(feature = "tls")]
            ConnectError::Tls { why, source } => Self::new(why, Some(source)),
            other => other.to_string().into(),
        }
    }
}
