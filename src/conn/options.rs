//! Where and how to connect.

use std::fmt;
use std::time::Duration;

use fred::types::config::Config;

/// Everything a connection needs to know. Holds the password, so it has no derived `Debug`.
#[derive(Clone)]
pub(crate) struct Options {
    pub(super) config: Config,
    pub(crate) client_name: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
}

/// Why there is no connection.
#[derive(Clone, Debug)]
pub(crate) enum ConnectError {
    /// The URL cannot be used. The text never contains the URL: it may hold a password.
    Url(String),
    /// The server wants other credentials.
    Refused(String),
    /// No server could be reached in time.
    Failed(String),
    /// The server lacks commands that are needed. Holds its version.
    OldServer(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(why) | Self::Refused(why) | Self::Failed(why) => f.write_str(why),
            Self::OldServer(version) => write!(f, "the server is Redis {version}"),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("server", &self.server())
            .field("client_name", &self.client_name)
            .field("connect_timeout", &self.connect_timeout)
            .field("command_timeout", &self.command_timeout)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// # Errors
    /// [`ConnectError::Url`] with a sentence that says what is wrong and what would be right.
    pub(crate) fn new(
        url: &str,
        client_name: String,
        connect_timeout: Duration,
        command_timeout: Duration,
    ) -> Result<Self, ConnectError> {
        Ok(Self { config: parse_url(url)?, client_name, connect_timeout, command_timeout })
    }

    /// Host and port, for messages.
    pub(crate) fn server(&self) -> String {
        self.config.server.hosts().first().map_or_else(String::new, ToString::to_string)
    }
}

fn parse_url(url: &str) -> Result<Config, ConnectError> {
    let refuse = |why: String| Err(ConnectError::Url(why));
    let Some((scheme, rest)) = url.split_once("://") else {
        return refuse("it has no scheme; write for example redis://localhost:6379".into());
    };
    match scheme {
        "redis" | "valkey" | "redis+unix" | "valkey+unix" => {}
        "rediss" | "valkeys" if cfg!(feature = "tls") => {}
        "rediss" | "valkeys" => {
            return refuse(format!(
                "{scheme}:// needs the cargo feature `tls`, which this program was built without"
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
            "it has a query (?…), which means nothing here; write the database as /N, and '?' as %3F".into(),
        );
    }
    let no_path = is_socket && matches!(rest.split('?').next(), None | Some("" | "/"));
    // The library's own messages are not passed on: they may quote the URL, and with it the password.
    // For the library, a user needs a host.
    let with_host = is_socket.then(|| url.replacen("@/", "@localhost/", 1));
    let url = with_host.as_deref().unwrap_or(url);
    let Some(mut config) = Config::from_url(url).ok().filter(|_| !no_path) else {
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
    Ok(config)
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
        parse_url(url).map_err(|error| match error {
            ConnectError::Url(why) => why,
            other => panic!("{other:?}"),
        })
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
    fn no_message_and_no_debug_shows_the_password() {
        let error = parse("redis://joe:hunter2@host:badport").unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
        let options =
            Options::new("redis://joe:hunter2@host", "me".into(), Duration::ZERO, Duration::ZERO).unwrap();
        assert!(!format!("{options:?}").contains("hunter2"), "{options:?}");
    }
}
