//! Where and how to connect.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::address::{Address, Endpoint};
use super::connect_error::ConnectError;
use super::credentials::Credentials;
use super::op_error::Cause;
#[cfg(feature = "tls")]
use super::tls::TlsOptions;
use super::topology::{self, Lead};
use super::url::{Group, empty_password, group_of, parse_url};

/// How long a connection to a sentinel may take.
const SENTINEL_CONNECT: Duration = Duration::from_secs(3);
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
    pub(super) endpoint: Endpoint,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: Option<u8>,
    pub(super) credentials: Credentials,
    pub(super) lookup: Lookup,
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
pub(super) enum Lookup {
    /// The URL says where.
    Url,
    /// Sentinels. `endpoint` is that of the first of them, or of the server that a connection is led to.
    Sentinels(Arc<Sentinels>),
    /// The servers of a cluster that the URL names. `endpoint` is that of the first of them, or of the one
    /// that a connection is made to.
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
    /// [`ConnectError::Url`] or [`ConnectError::Option`], with a sentence that says what is wrong and what to
    /// write.
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
        let (user, mut password) = settings.credentials.or_of_url(address.user, address.password);
        if user.is_some() && password.is_none() && !settings.credentials.may_change() {
            // Or the library would connect as the default user.
            password = Some(empty_password(&first)?);
        }
        #[cfg(feature = "tls")]
        let tls = super::tls::configure(&address.endpoint, address.is_tls, settings.tls)?;
        let mut options = Self {
            endpoint: address.endpoint,
            user,
            password,
            database: address.database,
            credentials: settings.credentials,
            lookup: Lookup::Url,
            #[cfg(feature = "tls")]
            tls,
            client_name: settings.client_name,
            connect_timeout: settings.connect_timeout,
            command_timeout: settings.command_timeout,
            replicas: settings.replicas,
        };
        options.lookup = match group {
            None => Lookup::Url,
            Some(Group::Cluster(addresses)) => Lookup::Cluster(addresses.into()),
            Some(Group::Sentinels(master, addresses)) => {
                let credentials = settings
                    .sentinel_credentials
                    .map_or(Credentials::OfUrl, |(user, password)| Credentials::User(user, password));
                let options = options.of_sentinel(credentials);
                Lookup::Sentinels(Arc::new(Sentinels { master, addresses, options }))
            }
        };
        Ok(options)
    }

    /// The same options, for a sentinel.
    fn of_sentinel(&self, credentials: Credentials) -> Self {
        let (user, password) = credentials.or_of_url(None, None);
        Self {
            user,
            password,
            database: None,
            credentials,
            connect_timeout: self.connect_timeout.min(SENTINEL_CONNECT),
            command_timeout: topology::PATIENCE,
            ..self.clone()
        }
    }

    /// The same options, for the connection on which replicas confirm writes, if they are to do that. It is
    /// silent for as long as they may take.
    pub(super) fn of_confirmations(&self) -> Option<Self> {
        let command_timeout = self.command_timeout.saturating_add(self.replicas?.timeout);
        Some(Self { command_timeout, ..self.clone() })
    }

    /// The same options, for this server.
    pub(super) fn at(&self, address: &Address) -> Self {
        let mut options = self.clone();
        if let Endpoint::Host(server) = &mut options.endpoint {
            *server = address.clone();
            #[cfg(feature = "tls")]
            if let Some(tls) = &mut options.tls {
                tls.lead_to(address.name.as_ref().unwrap_or(&address.host));
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
        !matches!(self.lookup, Lookup::Url)
    }

    /// What the client is connected to, for messages.
    pub(crate) fn server(&self) -> String {
        let list =
            |addresses: &[Address]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match &self.lookup {
            Lookup::Url => self.address().to_string(),
            Lookup::Sentinels(group) => {
                let Sentinels { master, addresses, .. } = &**group;
                format!("the master `{master}` of the sentinels {}", list(addresses))
            }
            Lookup::Cluster(seeds) => format!("the cluster of {}", list(seeds)),
        }
    }

    /// Host and port of the server that a connection is led to. A socket has a path, and no port.
    pub(super) fn address(&self) -> Address {
        self.endpoint.address()
    }

    /// Whether connections are made over TLS.
    pub(super) fn is_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Options::new(settings(url, credentials)).map(|options| (options.user, options.password))
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
            let options = Options::new(settings("redis://joe:old@host", credentials)).unwrap();
            (options.user, options.password)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(Credentials::OfUrl), (some("joe"), some("old")));
        assert_eq!(of(Credentials::Password("new".into())), (some("joe"), some("new")));
        assert_eq!(of(Credentials::User("ann".into(), "new".into())), (some("ann"), some("new")));
        assert_eq!(of(Credentials::User(String::new(), "new".into())), (None, some("new")));
    }

    #[test]
    fn no_debug_shows_the_password() {
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
