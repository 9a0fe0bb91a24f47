//! Where and how to connect.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fred::types::config::{Config, ServerConfig};
use tokio_util::task::AbortOnDropHandle;

use super::Shared;
use super::credentials::Credentials;
use super::op_error::Cause;
use super::sentinel::{self, Address, Lead, Master};
#[cfg(feature = "tls")]
use super::tls::TlsOptions;

/// Where a sentinel listens by default.
const SENTINEL_PORT: u16 = 26_379;

/// What a client is built with, not yet checked.
pub(crate) struct Settings<'a> {
    pub(crate) url: &'a str,
    pub(crate) credentials: Credentials,
    /// For the sentinels, if the URL names any: a user, or none for the default user, and a password.
    pub(crate) sentinel_credentials: Option<(String, String)>,
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
    /// The sentinels, if they say where to connect. The server in `config` is the first of them then.
    pub(super) sentinels: Option<Arc<Sentinels>>,
    /// For a handshake without the client library.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<super::tls::Handshake>,
    pub(crate) client_name: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
}

/// The sentinels of a master.
pub(super) struct Sentinels {
    pub(super) master: Master,
    addresses: Vec<Address>,
    /// For a connection to the first of them.
    options: Options,
    following: OnceLock<AbortOnDropHandle<()>>,
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
        let (first, group) = match group_of(settings.url)? {
            Some((first, group)) => (Cow::from(first), Some(group)),
            None => (settings.url.into(), None),
        };
        if group.is_none() && settings.sentinel_credentials.is_some() {
            return Err(ConnectError::Option(
                "there are credentials for sentinels, but the URL names none; write redis-sentinel://…"
                    .into(),
            ));
        }
        let address = parse_url(&first)?;
        let mut config = address.config;
        settings.credentials.configure(&mut config, settings.connect_timeout);
        #[cfg(feature = "tls")]
        let tls = super::tls::configure(&mut config, address.is_tls, settings.tls)?;
        let mut options = Self {
            config,
            credentials: settings.credentials,
            sentinels: None,
            #[cfg(feature = "tls")]
            tls,
            client_name: settings.client_name,
            connect_timeout: settings.connect_timeout,
            command_timeout: settings.command_timeout,
        };
        if let Some((name, addresses)) = group {
            let mut of_sentinel = options.config.clone();
            (of_sentinel.username, of_sentinel.password) = (None, None);
            (of_sentinel.credential_provider, of_sentinel.database) = (None, None);
            let credentials = settings
                .sentinel_credentials
                .map_or(Credentials::OfUrl, |(user, password)| Credentials::User(user, password));
            credentials.configure(&mut of_sentinel, settings.connect_timeout);
            let of_sentinel = Self {
                config: of_sentinel,
                credentials,
                connect_timeout: settings.connect_timeout.min(sentinel::CONNECT),
                command_timeout: sentinel::PATIENCE,
                ..options.clone()
            };
            let master = Master::new(name);
            options.sentinels = Some(Arc::new(Sentinels {
                master,
                addresses,
                options: of_sentinel,
                following: OnceLock::new(),
            }));
        }
        Ok(options)
    }

    /// The same options, for this server.
    pub(super) fn at(&self, address: &Address) -> Self {
        let mut options = self.clone();
        if let ServerConfig::Centralized { server } = &mut options.config.server {
            (server.host, server.port) = (address.host.as_str().into(), address.port);
            #[cfg(feature = "tls")]
            if let Some(tls) = &mut options.tls {
                tls.lead_to(&address.host);
                server.tls_server_name = Some(tls.name.to_str().into_owned().into());
            }
        }
        options
    }

    /// The same options, for the server that this connection is led to now.
    pub(super) async fn led_by(&self, lead: Option<&mut Lead>) -> Result<Self, Cause> {
        match lead {
            Some(lead) => Ok(self.at(&lead.next().await?)),
            None => Ok(self.clone()),
        }
    }

    /// Follows the sentinels, if they say where to connect, until the last of these options is dropped.
    pub(super) fn follow_sentinels(&self, shared: &Shared) {
        if let Some(sentinels) = &self.sentinels {
            let Sentinels { master, addresses, options, following } = &**sentinels;
            let follow =
                || sentinel::follow(addresses.clone(), options.clone(), master.clone(), shared.clone());
            following.get_or_init(follow);
        }
    }

    /// The master that the sentinels name, if they say where to connect.
    pub(super) fn master(&self) -> Option<&Master> {
        Some(&self.sentinels.as_ref()?.master)
    }

    /// Host and port, or the path of the socket, for messages.
    pub(crate) fn server(&self) -> String {
        match &self.sentinels {
            Some(sentinels) => sentinels.to_string(),
            None => self.address(),
        }
    }

    /// Host and port of the server that a connection is led to, or the path of its socket.
    pub(super) fn address(&self) -> String {
        match &self.config.server {
            ServerConfig::Centralized { server } => format!("{}:{}", server.host, server.port),
            ServerConfig::Unix { path } => path.display().to_string(),
            _ => String::new(),
        }
    }

    /// Host and port, if they are known and the server is not reached over a unix socket.
    pub(super) fn host(&self) -> Option<(String, u16)> {
        if let Some(master) = self.master() {
            return master.address().map(|address| (address.host, address.port));
        }
        match &self.config.server {
            ServerConfig::Centralized { server } => Some((server.host.to_string(), server.port)),
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

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentinels: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        write!(f, "the master `{}` of the sentinels {}", self.master.name(), sentinels.join(", "))
    }
}

/// The name of a master, and its sentinels.
type GroupName = (String, Vec<Address>);

/// If the URL is for sentinels: one for their first server, and the group.
fn group_of(url: &str) -> Result<Option<(String, GroupName)>, ConnectError> {
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(None) };
    let scheme = match scheme {
        "redis-sentinel" | "valkey-sentinel" => "redis",
        "rediss-sentinel" | "valkeys-sentinel" => "rediss",
        _ => return Ok(None),
    };
    let wrong = || {
        ConnectError::Url(
            "write redis-sentinel://[user:password@]host[:port][,host[:port]...]/master[/database], with the user and password percent-encoded".into(),
        )
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (format!("{user}@"), rest),
        None => (String::new(), rest),
    };
    let (hosts, path) = rest.split_once('/').ok_or_else(wrong)?;
    let (name, database) = path.split_once('/').unwrap_or((path, "0"));
    let name =
        percent_decoded(name).filter(|name| !name.is_empty() && !path.contains('?')).ok_or_else(wrong)?;
    let addresses: Vec<Address> =
        hosts.split(',').map(sentinel_address).collect::<Option<_>>().ok_or_else(wrong)?;
    let first = addresses.first().ok_or_else(wrong)?;
    let host = if first.host.contains(':') { format!("[{}]", first.host) } else { first.host.clone() };
    Ok(Some((format!("{scheme}://{user}{host}:{}/{database}", first.port), (name, addresses))))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// `host`, `host:port`, `[::1]` or `[::1]:port`.
fn sentinel_address(text: &str) -> Option<Address> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    let port = match port {
        "" => SENTINEL_PORT,
        port => port.strip_prefix(':')?.parse().ok()?,
    };
    (!host.is_empty()).then(|| Address { host: host.to_owned(), port })
}

struct ServerUrl {
    config: Config,
    #[cfg_attr(not(feature = "tls"), expect(dead_code))]
    is_tls: bool,
}

fn parse_url(url: &str) -> Result<ServerUrl, ConnectError> {
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
                "the scheme `{other}` is unknown; use redis://, redis-sentinel://, either with `rediss` for TLS (feature `tls`), or redis+unix://"
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
    Ok(ServerUrl { config, is_tls: matches!(scheme, "rediss" | "valkeys") })
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
            sentinel_credentials: None,
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
    fn urls_of_sentinels() {
        let of = |url| group_of(url).map(|group| group.expect("sentinels"));
        let addresses = |addresses: &[(&str, u16)]| -> Vec<Address> {
            addresses.iter().map(|(host, port)| Address { host: (*host).into(), port: *port }).collect()
        };
        let (first, (name, sentinels)) =
            of("redis-sentinel://joe:p%40ss@a,b:7000,[::1],[::1]:7/main/3").unwrap();
        assert_eq!(first, "redis://joe:p%40ss@a:26379/3");
        assert_eq!(name, "main");
        assert_eq!(sentinels, addresses(&[("a", 26_379), ("b", 7000), ("::1", 26_379), ("::1", 7)]));
        let (first, (name, sentinels)) = of("rediss-sentinel://[::1]:7/my%20main").unwrap();
        assert_eq!((&*first, &*name), ("rediss://[::1]:7/0", "my main"));
        assert_eq!(sentinels, addresses(&[("::1", 7)]));
        for wrong in
            ["a", "a/", "/main", "a:/main", "a:x/main", "a,/main", "a/main?db=3", "a/m%4", "[::1/main"]
        {
            let error = group_of(&format!("redis-sentinel://joe:hunter2@{wrong}"));
            let Err(ConnectError::Url(why)) = error else { panic!("{wrong}") };
            assert!(why.contains("/master") && !why.contains("hunter2"), "{why}");
        }
        assert!(group_of("redis://a/3").unwrap().is_none());
    }

    #[test]
    fn servers_are_named_without_credentials() {
        let server = |url| Options::new(settings(url, Credentials::OfUrl)).unwrap().server();
        assert_eq!(server("redis://joe:hunter2@host/3"), "host:6379");
        assert_eq!(server("redis+unix://joe:hunter2@/run/redis.sock?db=1"), "/run/redis.sock");
        let group = server("redis-sentinel://joe:hunter2@a,b:7/main");
        assert_eq!(group, "the master `main` of the sentinels a:26379, b:7");
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
