//! The options of a client as data: from a file by serde, or from the environment.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};

use super::{Client, ClientBuilder};
use crate::error::{Error, Result};

/// The options of a client that operators set, as data. Any format of serde reads it, and
/// [`from_env`](Self::from_env) reads the environment. What is left out has the default of [`ClientBuilder`],
/// and what only code can set, such as a credentials provider, is set on the builder.
///
/// # Examples
/// ```
/// use redelay::client::ClientConfig;
///
/// let config: ClientConfig = serde_json::from_str(
///     r#"{
///         "url": "rediss://redis-1",
///         "command_timeout_ms": 2000,
///         "name_prefix": "shop:",
///         "replicas": { "count": 1, "timeout_ms": 500 },
///         "tls": { "root_certificates": ["/etc/ssl/shop-ca.pem"] }
///     }"#,
/// )?;
/// # async fn example(config: ClientConfig) -> redelay::Result<()> {
/// let client = config.builder()?.connect().await?;
/// # Ok(())
/// # }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The server: see [`Client::connect`] for its forms.
    pub url: Option<String>,
    /// The user. It needs a password.
    pub user: Option<String>,
    /// The password. It is better here, or in a credentials provider, than in the URL.
    #[serde(deserialize_with = "secret")]
    pub password: Option<String>,
    /// The user of the sentinels. It needs a password.
    pub sentinel_user: Option<String>,
    /// The password of the sentinels.
    #[serde(deserialize_with = "secret")]
    pub sentinel_password: Option<String>,
    /// The name that `CLIENT LIST` shows: [`ClientBuilder::client_name`].
    pub client_name: Option<String>,
    /// What the name of each queue begins with on the server: [`ClientBuilder::name_prefix`].
    pub name_prefix: Option<String>,
    /// [`ClientBuilder::connect_timeout`], ms.
    pub connect_timeout_ms: Option<u64>,
    /// [`ClientBuilder::command_timeout`], ms.
    pub command_timeout_ms: Option<u64>,
    /// Whether this client moves due entries: [`ClientBuilder::transfer`].
    pub transfer: Option<bool>,
    /// How many replicas confirm each write: [`ClientBuilder::replicas`].
    pub replicas: Option<ReplicasConfig>,
    /// The TLS options, for a URL that begins with `rediss`.
    pub tls: Option<TlsConfig>,
}

/// How many replicas confirm each write, and how long a call waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReplicasConfig {
    /// How many.
    pub count: u32,
    /// How long a call waits for them, ms.
    pub timeout_ms: u64,
}

impl ReplicasConfig {
    /// As [`ClientBuilder::replicas`].
    ///
    /// # Examples
    /// ```
    /// # use redelay::client::{ClientConfig, ReplicasConfig};
    /// let mut config = ClientConfig::default();
    /// config.replicas = Some(ReplicasConfig::new(1, 500));
    /// ```
    #[must_use]
    pub fn new(count: u32, timeout_ms: u64) -> Self {
        Self { count, timeout_ms }
    }
}

/// TLS options, with the names of files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TlsConfig {
    /// PEM files of authorities that are trusted besides those of the system.
    pub root_certificates: Vec<PathBuf>,
    /// Trusts no other authorities.
    pub only_these_roots: bool,
    /// The PEM file of this client's certificate and its chain. It needs the key.
    pub client_certificate: Option<PathBuf>,
    /// The PEM file of the certificate's key.
    pub client_key: Option<PathBuf>,
    /// The name that the server's certificate must have, if it is not that of the URL.
    pub server_name: Option<String>,
}

impl ClientConfig {
    /// Reads the variables whose names are this prefix, `_`, and a field in capitals: with `REDELAY`, these
    /// are `REDELAY_URL`, `REDELAY_USER`, `REDELAY_PASSWORD`, `REDELAY_SENTINEL_USER`,
    /// `REDELAY_SENTINEL_PASSWORD`, `REDELAY_CLIENT_NAME`, `REDELAY_NAME_PREFIX`,
    /// `REDELAY_CONNECT_TIMEOUT_MS`, `REDELAY_COMMAND_TIMEOUT_MS`, `REDELAY_TRANSFER` (`true` or `false`),
    /// `REDELAY_REPLICAS_COUNT`, `REDELAY_REPLICAS_TIMEOUT_MS`, `REDELAY_TLS_ROOT_CERTIFICATES` (separated as
    /// in `PATH`), `REDELAY_TLS_ONLY_THESE_ROOTS`, `REDELAY_TLS_CLIENT_CERTIFICATE`, `REDELAY_TLS_CLIENT_KEY`
    /// and `REDELAY_TLS_SERVER_NAME`. An empty variable counts as not set. Other
    /// variables are ignored.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a value that is no number, no `true` or `false`, or no
    /// UTF-8; the error names the variable, and not its value. Also if only one of the two for `REPLICAS` is
    /// set.
    ///
    /// # Examples
    /// ```no_run
    /// use redelay::client::ClientConfig;
    ///
    /// # async fn example() -> redelay::Result<()> {
    /// let client = ClientConfig::from_env("REDELAY")?.builder()?.connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_env(prefix: &str) -> Result<Self> {
        Self::from_variables(|field| {
            let name = format!("{prefix}_{field}");
            match std::env::var_os(&name).filter(|value| !value.is_empty()) {
                None => Ok(None),
                Some(value) => value.into_string().map(Some).map_err(|_| "it is not UTF-8".to_owned()),
            }
            .map_err(|why| invalid(format!("{name}: {why}")))
            .map(|value| value.map(|value| (name, value)))
        })
    }

    /// `variable` has the full name and the value of a field's variable.
    fn from_variables(variable: impl Fn(&str) -> Result<Option<(String, String)>>) -> Result<Self> {
        let text = |field| Ok(variable(field)?.map(|(_, value)| value));
        let file = |field| Ok(text(field)?.map(PathBuf::from));
        let number = |field| read::<u64>(variable(field)?, "a whole number");
        let flag = |field| read::<bool>(variable(field)?, "true or false");
        let replicas = match (
            read::<u32>(variable("REPLICAS_COUNT")?, "a whole number")?,
            number("REPLICAS_TIMEOUT_MS")?,
        ) {
            (None, None) => None,
            (Some(count), Some(timeout_ms)) => Some(ReplicasConfig { count, timeout_ms }),
            _ => return Err(invalid("REPLICAS_COUNT and REPLICAS_TIMEOUT_MS need each other".into())),
        };
        let roots = text("TLS_ROOT_CERTIFICATES")?;
        let tls = TlsConfig {
            root_certificates: roots.iter().flat_map(|roots| std::env::split_paths(roots)).collect(),
            only_these_roots: flag("TLS_ONLY_THESE_ROOTS")?.unwrap_or_default(),
            client_certificate: file("TLS_CLIENT_CERTIFICATE")?,
            client_key: file("TLS_CLIENT_KEY")?,
            server_name: text("TLS_SERVER_NAME")?,
        };
        Ok(Self {
            url: text("URL")?,
            user: text("USER")?,
            password: text("PASSWORD")?,
            sentinel_user: text("SENTINEL_USER")?,
            sentinel_password: text("SENTINEL_PASSWORD")?,
            client_name: text("CLIENT_NAME")?,
            name_prefix: text("NAME_PREFIX")?,
            connect_timeout_ms: number("CONNECT_TIMEOUT_MS")?,
            command_timeout_ms: number("COMMAND_TIMEOUT_MS")?,
            transfer: flag("TRANSFER")?,
            replicas,
            tls: Some(tls).filter(|tls| *tls != TlsConfig::default()),
        })
    }

    /// A builder with these options, to which others can be added. It reads the files that the TLS options
    /// name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a user without a password, a certificate without a key, a
    /// file that cannot be read, or TLS options without the feature `tls`.
    /// [`connect`](ClientBuilder::connect) checks the rest.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::client::ClientConfig;
    /// # async fn example(config: ClientConfig) -> redelay::Result<()> {
    /// let client = config.builder()?.client_name("shop").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(&self) -> Result<ClientBuilder> {
        let mut builder = Client::builder();
        if let Some(url) = &self.url {
            builder = builder.url(url);
        }
        builder = match (&self.user, &self.password) {
            (None, None) => builder,
            (None, Some(password)) => builder.password(password),
            (Some(user), Some(password)) => builder.credentials(user, password),
            (Some(_), None) => return Err(invalid("a user needs a password".into())),
        };
        builder = match (&self.sentinel_user, &self.sentinel_password) {
            (None, None) => builder,
            (user, Some(password)) => {
                builder.sentinel_credentials(user.as_deref().unwrap_or_default(), password)
            }
            (Some(_), None) => return Err(invalid("a user of sentinels needs a password".into())),
        };
        if let Some(name) = &self.client_name {
            builder = builder.client_name(name);
        }
        if let Some(prefix) = &self.name_prefix {
            builder = builder.name_prefix(prefix);
        }
        if let Some(timeout) = self.connect_timeout_ms {
            builder = builder.connect_timeout(Duration::from_millis(timeout));
        }
        if let Some(timeout) = self.command_timeout_ms {
            builder = builder.command_timeout(Duration::from_millis(timeout));
        }
        if let Some(transfer) = self.transfer {
            builder = builder.transfer(transfer);
        }
        if let Some(ReplicasConfig { count, timeout_ms }) = self.replicas {
            builder = builder.replicas(count, Duration::from_millis(timeout_ms));
        }
        match &self.tls {
            None => Ok(builder),
            #[cfg(feature = "tls")]
            Some(tls) => Ok(builder.tls(tls.read()?)),
            #[cfg(not(feature = "tls"))]
            Some(_) => Err(invalid("TLS options need the feature `tls` of redelay".into())),
        }
    }
}

#[cfg(feature = "tls")]
impl TlsConfig {
    fn read(&self) -> Result<super::Tls> {
        let file = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| invalid(format!("cannot read {}: {error}", path.display())))
        };
        let mut tls = super::Tls::new();
        for path in &self.root_certificates {
            tls = tls.root_certificate_pem(file(path)?);
        }
        if self.only_these_roots {
            tls = tls.only_these_roots();
        }
        tls = match (&self.client_certificate, &self.client_key) {
            (None, None) => tls,
            (Some(chain), Some(key)) => tls.client_certificate_pem(file(chain)?, file(key)?),
            _ => return Err(invalid("client_certificate and client_key need each other".into())),
        };
        Ok(match &self.server_name {
            Some(name) => tls.server_name(name),
            None => tls,
        })
    }
}

fn read<V: std::str::FromStr>(variable: Option<(String, String)>, what: &str) -> Result<Option<V>> {
    let Some((name, value)) = variable else { return Ok(None) };
    value.parse().map(Some).map_err(|_| invalid(format!("{name} is not {what}")))
}

/// A text. What serde says of anything else quotes it, and this does not.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Secret {
        Text(Option<String>),
        Other(IgnoredAny),
    }
    match Secret::deserialize(deserializer)? {
        Secret::Text(text) => Ok(text),
        Secret::Other(_) => Err(D::Error::custom("a password is a text, in quotes")),
    }
}

fn invalid(reason: String) -> Error {
    Error::invalid("read the configuration of a client", reason)
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may contain a password.
        f.debug_struct("ClientConfig")
            .field("user", &self.user)
            .field("client_name", &self.client_name)
            .field("name_prefix", &self.name_prefix)
            .field("connect_timeout_ms", &self.connect_timeout_ms)
            .field("command_timeout_ms", &self.command_timeout_ms)
            .field("transfer", &self.transfer)
            .field("replicas", &self.replicas)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<ClientConfig> {
        ClientConfig::from_variables(|field| {
            let found = variables.iter().find(|(name, _)| *name == field);
            Ok(found.map(|(name, value)| (format!("R_{name}"), (*value).to_owned())))
        })
    }

    #[test]
    fn variables_and_json_say_the_same() {
        let json = r#"{"url":"rediss://a","user":"u","password":"p","sentinel_password":"s","client_name":"n",
            "name_prefix":"x:","connect_timeout_ms":1,"command_timeout_ms":2,"transfer":false,
            "replicas":{"count":1,"timeout_ms":3},
            "tls":{"root_certificates":["a.pem","b.pem"],"only_these_roots":true,"server_name":"h"}}"#;
        let roots = std::env::join_paths(["a.pem", "b.pem"]).unwrap().into_string().unwrap();
        let variables = of(&[
            ("URL", "rediss://a"),
            ("USER", "u"),
            ("PASSWORD", "p"),
            ("SENTINEL_PASSWORD", "s"),
            ("CLIENT_NAME", "n"),
            ("NAME_PREFIX", "x:"),
            ("CONNECT_TIMEOUT_MS", "1"),
            ("COMMAND_TIMEOUT_MS", "2"),
            ("TRANSFER", "false"),
            ("REPLICAS_COUNT", "1"),
            ("REPLICAS_TIMEOUT_MS", "3"),
            ("TLS_ROOT_CERTIFICATES", &roots),
            ("TLS_ONLY_THESE_ROOTS", "true"),
            ("TLS_SERVER_NAME", "h"),
        ]);
        let config = variables.unwrap();
        assert_eq!(config, serde_json::from_str(json).unwrap());
        assert_eq!(of(&[]).unwrap(), ClientConfig::default());
        assert!(serde_json::from_str::<ClientConfig>(r#"{"comand_timeout_ms":2}"#).is_err());
        let error = serde_json::from_str::<ClientConfig>(r#"{"password":12345}"#).unwrap_err().to_string();
        assert!(error.contains("in quotes") && !error.contains("12345"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named_without_its_value() {
        let why = |config: Result<ClientConfig>| config.unwrap_err().to_string();
        assert!(
            why(of(&[("CONNECT_TIMEOUT_MS", "5s")])).ends_with("R_CONNECT_TIMEOUT_MS is not a whole number")
        );
        assert!(why(of(&[("TRANSFER", "no")])).ends_with("R_TRANSFER is not true or false"));
        assert!(why(of(&[("REPLICAS_COUNT", "1")])).contains("need each other"));
        let mut config = ClientConfig { user: Some("u".into()), ..ClientConfig::default() };
        assert!(config.builder().unwrap_err().to_string().contains("a user needs a password"));
        config.password = Some("secret".into());
        config.url = Some("redis://u:secret@a".into());
        assert!(!format!("{config:?} {:?}", config.builder().unwrap()).contains("secret"));
        let files = TlsConfig { root_certificates: vec!["/is/not.pem".into()], ..TlsConfig::default() };
        let error = ClientConfig { tls: Some(files), ..ClientConfig::default() }.builder().unwrap_err();
        let expected = if cfg!(feature = "tls") { "/is/not.pem" } else { "feature `tls`" };
        assert!(error.to_string().contains(expected), "{error}");
    }
}
