//! Where and how to connect.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use fred::types::config::{Config, ServerConfig};

use super::credentials::Credentials;
use super::op_error::Cause;
#[cfg(feature = "tls")]
use super::tls::TlsOptions;

/// What a client is built with, not yet checked.
pub(crate) struct Settings<'a> {
    pub(crate) url: &'a str,
    pub(crate) credentials: Credentials,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<&'a TlsOptions>,
    pub(crate) client_name: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
}

/// Everything that is needed to open a connection. Holds the password, so it has no derived `Debug`.
#[derive(Clone)]
pub(crate) struct Options {
    pub(super) config: Config,
    pub(super) credentials: Credentials,
    /// For a handshake without the client library.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<super::tls::Handshake>,
    pub(crate) client_name: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
}

/// Why there is no connection.
#[derive(Clone, Debug)]
pub(crate) enum ConnectError {
    /// The URL cannot be used. The text never contains the URL: it may hold a password.
    Url(String),
    /// Another option cannot be used. The text is a whole sentence.
    Option(String),
    /// The server wants other credentials.
    Refused(String),
    /// The caller's credentials provider failed or did not answer.
    Provider(Cause),
    /// The TLS handshake failed for a reason that a retry does not change.
    #[cfg(feature = "tls")]
    Tls { why: String, source: std::sync::Arc<super::op_error::Source> },
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
            Self::Url(why) | Self::Option(why) | Self::Refused(why) => f.write_str(why),
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

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("server", &self.server())
            .field("credentials", &self.credentials)
            .field("client_name", &self.client_name)
            .field("connect_timeout", &self.connect_timeout)
            .field("command_timeout", &self.command_timeout)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// # Errors
    /// [`ConnectError::Url`] or [`ConnectError::Option`], with a sentence that says what is wrong and what to write.
    pub(crate) fn new(settings: Settings<'_>) -> Result<Self, ConnectError> {
        let address = parse_url(settings.url)?;
        let mut config = address.config;
        settings.credentials.configure(&mut config, settings.connect_timeout);
        #[cfg(feature = "tls")]
        let tls = super::tls::configure(&mut config, address.is_tls, settings.tls)?;
        Ok(Self {
            config,
            credentials: settings.credentials,
            #[cfg(feature = "tls")]
            tls,
            client_name: settings.client_name,
            connect_timeout: settings.connect_timeout,
            command_timeout: settings.command_timeout,
        })
    }

    /// Host and port, or the path of the socket, for messages.
    pub(crate) fn server(&self) -> String {
        match self.socket() {
            Some(path) => path.display().to_string(),
            None => self.host().map_or_else(String::new, |(host, port)| format!("{host}:{port}")),
        }
    }

    /// Host and port, unless the server is reached over a unix socket.
    pub(super) fn host(&self) -> Option<(String, u16)> {
        match &self.config.server {
            ServerConfig::Centralized { server } => Some((server.host.to_string(), server.port)),
            _ => None,
        }
    }

    fn socket(&self) -> Option<&Path> {
        match &self.config.server {
            ServerConfig::Unix { path } => Some(path),
            _ => None,
        }
    }

    /// Whether connections are made over TLS.
    pub(super) fn is_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }
}

struct Address {
    config: Config,
    #[cfg_attr(not(feature = "tls"), expect(dead_code))]
    is_tls: bool,
}

fn parse_url(url: &str) -> Result<Address, ConnectError> {
    let refuse = |why: String| Err(ConnectError::Url(why));
    let Some((scheme, rest)) = url.split_once("://") else {
        return refuse("it has no scheme; write for example redis://localhost:6379".into());
    };
    match scheme {
        "redis" | "valkey" | "redis+unix" | "valkey+unix" => {}
        "rediss" | "valkeys" if cfg!(feature = "tls") => {}
        "rediss" | "valkeys" => {
            return refuse(format!(
                "{scheme}:// needs the cargo feature `tls`, and this program was built without it"
            ));
        }
        other => {
            return refuse(format!(
                "the scheme `{other}` is unknown; use redis://, rediss:// (with the feature `tls`) or redis+unix://"
            ));
        }
    }
    let is_socket = scheme.ends_with("+unix");
    if !is_socket && rest.contains('?') {
        return refuse(
            "it has a query (?…), which is not supported; write the database as /N, and '?' as %3F".into(),
        );
    }
    let no_path = is_socket && matches!(rest.split('?').next(), None | Some("" | "/"));
    // The library's own messages are not passed on: they may quote the URL, and with it the password. TLS is set up
    // by `tls`, and for the library, a user needs a host.
    let url = if is_socket { url.replacen("@/", "@localhost/", 1) } else { format!("redis://{rest}") };
    let Some(mut config) = Config::from_url(&url).ok().filter(|_| !no_path) else {
        return refuse(if is_socket {
            "write redis+unix://[user:password@]/path/to/redis.sock, with an optional ?db=N".into()
        } else {
            "write redis://[user:password@]host[:port][/database], with the user and password percent-encoded"
                .into()
        });
    };
    if is_socket {
        config.database = unix_database(rest)?;
    }
    config.fail_fast = true;
    Ok(Address { config, is_tls: matches!(scheme, "rediss" | "valkeys") })
}

/// A socket's URL has its path where the database would be, so the database is a query parameter.
fn unix_database(rest: &str) -> Result<Option<u8>, ConnectError> {
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    match query.split('&').find_map(|pair| pair.strip_prefix("db=")) {
        None => Ok(None),
        Some(number) => number
            .parse()
            .map(Some)
            .map_err(|_| ConnectError::Url("the database in ?db=N is not a number from 0 to 255".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Config, String> {
        parse_url(url).map(|address| address.config).map_err(|error| match error {
            ConnectError::Url(why) => why,
            other => panic!("{other:?}"),
        })
    }

    fn settings(url: &str, credentials: Credentials) -> Settings<'_> {
        Settings {
            url,
            credentials,
            #[cfg(feature = "tls")]
            tls: None,
            client_name: "me".into(),
            connect_timeout: Duration::ZERO,
            command_timeout: Duration::ZERO,
        }
    }

    #[test]
    fn urls_that_work() {
        let config = parse("redis://joe:p%40ss@example.org:7000/3").unwrap();
        assert_eq!(config.username.as_deref(), Some("joe"));
        assert_eq!(config.password.as_deref(), Some("p@ss"));
        assert_eq!(config.database, Some(3));
        assert_eq!(config.server.hosts()[0].port, 7000);
        assert_eq!(parse("redis://localhost").unwrap().server.hosts()[0].port, 6379);
        assert_eq!(parse("redis+unix:///run/redis.sock?db=2").unwrap().database, Some(2));
        let config = parse("redis+unix://:p%40ss@/run/redis.sock?db=2").unwrap();
        assert_eq!((config.password.as_deref(), config.database), (Some("p@ss"), Some(2)));
        let config = parse("redis+unix://joe:pass@/run/redis.sock").unwrap();
        assert_eq!((config.username.as_deref(), config.password.as_deref()), (Some("joe"), Some("pass")));
    }

    #[test]
    fn urls_that_do_not_say_what_would() {
        assert!(parse("localhost:6379").unwrap_err().contains("no scheme"));
        assert!(parse("http://localhost").unwrap_err().contains("`http` is unknown"));
        assert!(parse("redis-cluster://localhost").unwrap_err().contains("unknown"));
        assert!(parse("redis://localhost/x").unwrap_err().contains("/database"));
        assert!(parse("redis+unix:///s?db=x").unwrap_err().contains("db=N"));
        assert!(parse("redis://localhost?db=3").unwrap_err().contains("write the database as /N"));
        #[cfg(not(feature = "tls"))]
        assert!(parse("rediss://localhost").unwrap_err().contains("`tls`"));
    }

    #[test]
    fn servers_are_named_without_credentials() {
        let server = |url| Options::new(settings(url, Credentials::OfUrl)).unwrap().server();
        assert_eq!(server("redis://joe:hunter2@host/3"), "host:6379");
        assert_eq!(server("redis+unix://joe:hunter2@/run/redis.sock?db=1"), "/run/redis.sock");
    }

    #[test]
    fn credentials_of_the_builder_come_before_those_of_the_url() {
        let of = |credentials| {
            let config = Options::new(settings("redis://joe:old@host", credentials)).unwrap().config;
            (config.username, config.password)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(Credentials::OfUrl), (some("joe"), some("old")));
        assert_eq!(of(Credentials::Password("new".into())), (some("joe"), some("new")));
        assert_eq!(of(Credentials::User("ann".into(), "new".into())), (some("ann"), some("new")));
        assert_eq!(of(Credentials::User(String::new(), "new".into())), (None, some("new")));
    }

    #[test]
    fn no_message_and_no_debug_shows_the_password() {
        let error = parse("redis://joe:hunter2@host:badport").unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
        for credentials in [
            Credentials::OfUrl,
            Credentials::Password("hunter2".into()),
            Credentials::User("joe".into(), "hunter2".into()),
        ] {
            let options = Options::new(settings("redis://joe:hunter2@host", credentials)).unwrap();
            assert!(!format!("{options:?}").contains("hunter2"), "{options:?}");
        }
    }
}
