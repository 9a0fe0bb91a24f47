//! Where and how to connect.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fred::types::config::{Config, ServerConfig};

use super::address::Address;
use super::connect_error::ConnectError;
use super::credentials::Credentials;
use super::op_error::Cause;
#[cfg(feature = "tls")]
use super::tls::TlsOptions;
use super::topology::{self, Lead};

/// Where a sentinel listens by default.
const SENTINEL_PORT: u16 = 26_379;
/// How long a connection to a sentinel may take.
const SENTINEL_CONNECT: Duration = Duration::from_secs(3);
/// Where a server of a cluster listens by default.
const PORT: u16 = 6379;

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
    /// If replicas are to confirm writes.
    pub(crate) replicas: Option<Replicas>,
}

/// How many replicas must have a write, and how long that may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    pub(crate) count: u32,
    pub(crate) timeout: Duration,
}

/// Everything that is needed to open a connection. Holds the password, so it has no derived `Debug`.
#[derive(Clone)]
pub(crate) struct Options {
    pub(super) config: Config,
    pub(super) credentials: Credentials,
    pub(super) source: Source,
    /// For a handshake without the client library.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<super::tls::Handshake>,
    pub(crate) client_name: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(super) replicas: Option<Replicas>,
}

/// Who says where to connect.
#[derive(Clone)]
pub(super) enum Source {
    /// `config`, as the URL has it.
    Url,
    /// Sentinels. The server in `config` is the first of them.
    Sentinels(Arc<Sentinels>),
    /// The servers of a cluster that the URL names. The server in `config` is the first of them, or the one that a
    /// connection is made to.
    Cluster(Arc<[Address]>),
}

/// The sentinels of a master.
pub(super) struct Sentinels {
    /// The name of the master.
    pub(super) master: String,
    pub(super) addresses: Vec<Address>,
    /// For a connection to the first of them.
    pub(super) options: Options,
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
        if !matches!(group, Some(Group::Sentinels(..))) && settings.sentinel_credentials.is_some() {
            return Err(ConnectError::Option(
                "there are credentials for sentinels, but the URL names none; write redis-sentinel://…"
                    .into(),
            ));
        }
        let address = parse_url(&first)?;
        let mut config = address.config;
        settings.credentials.configure(&mut config, settings.connect_timeout);
        if config.username.is_some() && config.password.is_none() && config.credential_provider.is_none() {
            // Or the library would connect as the default user.
            config.password = Some(empty_password(&first)?);
        }
        #[cfg(feature = "tls")]
        let tls = super::tls::configure(&mut config, address.is_tls, settings.tls)?;
        let mut options = Self {
            config,
            credentials: settings.credentials,
            source: Source::Url,
            #[cfg(feature = "tls")]
            tls,
            client_name: settings.client_name,
            connect_timeout: settings.connect_timeout,
            command_timeout: settings.command_timeout,
            replicas: settings.replicas,
        };
        options.source = match group {
            None => Source::Url,
            Some(Group::Cluster(addresses)) => Source::Cluster(addresses.into()),
            Some(Group::Sentinels(master, addresses)) => {
                let credentials = settings
                    .sentinel_credentials
                    .map_or(Credentials::OfUrl, |(user, password)| Credentials::User(user, password));
                let options = options.of_sentinel(credentials);
                Source::Sentinels(Arc::new(Sentinels { master, addresses, options }))
            }
        };
        Ok(options)
    }

    /// The same options, for a sentinel.
    fn of_sentinel(&self, credentials: Credentials) -> Self {
        let mut config = self.config.clone();
        (config.username, config.password) = (None, None);
        (config.credential_provider, config.database) = (None, None);
        credentials.configure(&mut config, self.connect_timeout);
        let connect_timeout = self.connect_timeout.min(SENTINEL_CONNECT);
        Self { config, credentials, connect_timeout, command_timeout: topology::PATIENCE, ..self.clone() }
    }

    /// The same options, for this server.
    pub(super) fn at(&self, address: &Address) -> Self {
        let mut options = self.clone();
        if let ServerConfig::Centralized { server } = &mut options.config.server {
            (server.host, server.port) = (address.host.as_str().into(), address.port);
            #[cfg(feature = "tls")]
            if let Some(tls) = &mut options.tls {
                tls.lead_to(address.name.as_ref().unwrap_or(&address.host));
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

    /// Whether the URL names sentinels, or servers of a cluster, which say where to connect.
    pub(super) fn is_led(&self) -> bool {
        !matches!(self.source, Source::Url)
    }

    /// What the client is connected to, for messages.
    pub(crate) fn server(&self) -> String {
        let list =
            |addresses: &[Address]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match &self.source {
            Source::Url => self.address().to_string(),
            Source::Sentinels(group) => {
                let Sentinels { master, addresses, .. } = &**group;
                format!("the master `{master}` of the sentinels {}", list(addresses))
            }
            Source::Cluster(seeds) => format!("the cluster of {}", list(seeds)),
        }
    }

    /// Host and port of the server that a connection is led to. A socket has a path, and no port.
    pub(super) fn address(&self) -> Address {
        match &self.config.server {
            // The library keeps the brackets of an IPv6 address.
            ServerConfig::Centralized { server } => {
                Address::new(server.host.trim_matches(['[', ']']), server.port)
            }
            ServerConfig::Unix { path } => Address::new(path.display().to_string(), 0),
            _ => Address::new("", 0),
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

/// Several servers that a URL names.
enum Group {
    /// The sentinels of the master of this name.
    Sentinels(String, Vec<Address>),
    Cluster(Vec<Address>),
}

/// If the URL names several servers: a URL for the first of them, and all of them.
fn group_of(url: &str) -> Result<Option<(String, Group)>, ConnectError> {
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(None) };
    let (scheme, has_master) = match scheme {
        "redis-sentinel" | "valkey-sentinel" => ("redis", true),
        "rediss-sentinel" | "valkeys-sentinel" => ("rediss", true),
        "redis-cluster" | "valkey-cluster" => ("redis", false),
        "rediss-cluster" | "valkeys-cluster" => ("rediss", false),
        _ => return Ok(None),
    };
    let wrong = || {
        ConnectError::Url(match has_master {
            true => "write redis-sentinel://[user:password@]host[:port][,host[:port]...]/master[/database], with the user and password percent-encoded".into(),
            false => "write redis-cluster://[user:password@]host[:port][,host[:port]...], with the user and password percent-encoded; a cluster has only database 0".into(),
        })
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (format!("{user}@"), rest),
        None => (String::new(), rest),
    };
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let default_port = if has_master { SENTINEL_PORT } else { PORT };
    let addresses = hosts.split(',').map(|host| Address::parse(host, default_port));
    let addresses: Vec<Address> = addresses.collect::<Option<_>>().ok_or_else(wrong)?;
    let first = addresses.first().ok_or_else(wrong)?.to_string();
    if !has_master {
        return match path {
            "" | "0" if !hosts.contains('?') => {
                Ok(Some((format!("{scheme}://{user}{first}"), Group::Cluster(addresses))))
            }
            _ => Err(wrong()),
        };
    }
    let (name, database) = path.split_once('/').unwrap_or((path, "0"));
    let name =
        percent_decoded(name).filter(|name| !name.is_empty() && !path.contains('?')).ok_or_else(wrong)?;
    Ok(Some((format!("{scheme}://{user}{first}/{database}"), Group::Sentinels(name, addresses))))
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
                "the scheme `{other}` is unknown; use redis://, redis-cluster://, redis-sentinel://, each with `rediss` for TLS (feature `tls`), or redis+unix://"
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

/// The password of a user for whom this URL has none. redis-cli takes such a user for a password, and other
/// clients for a user, so the URL has to say it.
fn empty_password(url: &str) -> Result<String, ConnectError> {
    let user = url.split_once("://").and_then(|(_, rest)| Some(rest.rsplit_once('@')?.0));
    match user.is_some_and(|user| user.ends_with(':')) {
        true => Ok(String::new()),
        false => Err(ConnectError::Url(
            "it has a user and no password; write user:password@, or user:@ if the user needs none, or :password@ for the default user".into(),
        )),
    }
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
            replicas: None,
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
        assert!(parse("redis://localhost/x").unwrap_err().contains("/database"));
        assert!(parse("redis+unix:///s?db=x").unwrap_err().contains("db=N"));
        assert!(parse("redis://localhost?db=3").unwrap_err().contains("write the database as /N"));
        #[cfg(not(feature = "tls"))]
        assert!(parse("rediss://localhost").unwrap_err().contains("`tls`"));
    }

    #[test]
    fn urls_of_sentinels() {
        let of = |url| match group_of(url) {
            Ok(Some((first, Group::Sentinels(name, addresses)))) => (first, name, addresses),
            _ => panic!("no sentinels"),
        };
        let (first, name, sentinels) = of("redis-sentinel://joe:p%40ss@a,b:7000,[::1],[::1]:7/main/3");
        assert_eq!(first, "redis://joe:p%40ss@a:26379/3");
        assert_eq!(name, "main");
        let expected = [("a", 26_379), ("b", 7000), ("::1", 26_379), ("::1", 7)];
        assert_eq!(sentinels, expected.map(|(host, port)| Address::new(host, port)));
        let (first, name, _) = of("rediss-sentinel://[::1]:7/my%20main");
        assert_eq!((&*first, &*name), ("rediss://[::1]:7/0", "my main"));
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
    fn urls_of_clusters() {
        let of = |url| match group_of(url) {
            Ok(Some((first, Group::Cluster(addresses)))) => (first, addresses),
            _ => panic!("no cluster"),
        };
        let (first, seeds) = of("redis-cluster://joe:p%40ss@a,[::1]:7/");
        assert_eq!(first, "redis://joe:p%40ss@a:6379");
        assert_eq!(seeds, [Address::new("a", 6379), Address::new("::1", 7)]);
        assert_eq!(of("rediss-cluster://a:1/0").0, "rediss://a:1");
        for wrong in ["", "a/3", "a/main", "a,", "a:x", "a?db=1"] {
            let error = group_of(&format!("redis-cluster://joe:hunter2@{wrong}"));
            let Err(ConnectError::Url(why)) = error else { panic!("{wrong}") };
            assert!(why.contains("only database 0") && !why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn servers_are_named_without_credentials() {
        let server = |url| Options::new(settings(url, Credentials::OfUrl)).unwrap().server();
        assert_eq!(server("redis://joe:hunter2@host/3"), "host:6379");
        assert_eq!(server("redis://[::1]"), "[::1]:6379");
        assert_eq!(server("redis+unix://joe:hunter2@/run/redis.sock?db=1"), "/run/redis.sock");
        let group = server("redis-sentinel://joe:hunter2@a,b:7/main");
        assert_eq!(group, "the master `main` of the sentinels a:26379, b:7");
        assert_eq!(server("redis-cluster://joe:hunter2@a,b:7"), "the cluster of a:6379, b:7");
    }

    #[test]
    fn a_user_needs_a_password_if_only_an_empty_one() {
        let of = |url, credentials| {
            Options::new(settings(url, credentials))
                .map(|options| (options.config.username, options.config.password))
        };
        let some = |text: &str| Some(text.to_owned());
        for url in
            ["redis://bob:@host", "redis+unix://bob:@/run/redis.sock", "redis-sentinel://bob:@a,b/main"]
        {
            assert_eq!(of(url, Credentials::OfUrl).unwrap(), (some("bob"), some("")), "{url}");
        }
        for url in ["redis://bob@host", "redis+unix://bob@/run/redis.sock", "redis-cluster://bob@a,b"] {
            let Err(ConnectError::Url(why)) = of(url, Credentials::OfUrl) else { panic!("{url}") };
            assert!(why.contains("user:@"), "{why}");
            let given = Credentials::Password("secret".into());
            assert_eq!(of(url, given).unwrap(), (some("bob"), some("secret")));
        }
        assert_eq!(of("redis://host", Credentials::OfUrl).unwrap(), (None, None));
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
