//! URLs of servers. No message quotes a URL: it may hold a password.

use fred::types::config::{Config, ServerConfig};

use super::ConnectError;
use super::address::{Address, Endpoint};

/// Where a sentinel listens by default.
const SENTINEL_PORT: u16 = 26_379;
/// Where a server of a cluster listens by default.
const PORT: u16 = 6379;

/// Several servers that a URL names.
pub(super) enum Group {
    /// The sentinels of the master of this name.
    Sentinels(String, Vec<Address>),
    Cluster(Vec<Address>),
}

/// If the URL names several servers: a URL for the first of them, and all of them.
pub(super) fn group_of(url: &str) -> Result<Option<(String, Group)>, ConnectError> {
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
            true => "write redis-sentinel://[user:password@]host[:port][,host[:port]...]/master[/database], \
                with the user and password percent-encoded"
                .into(),
            false => "write redis-cluster://[user:password@]host[:port][,host[:port]...], with the user and \
                password percent-encoded; a cluster has only database 0"
                .into(),
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

/// A URL of one server. Holds the password, so it has no derived `Debug`.
pub(super) struct ServerUrl {
    pub(super) endpoint: Endpoint,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: Option<u8>,
    #[cfg_attr(not(feature = "tls"), expect(dead_code))]
    pub(super) is_tls: bool,
}

pub(super) fn parse_url(url: &str) -> Result<ServerUrl, ConnectError> {
    let refuse = |why: String| Err(ConnectError::Url(why));
    let Some((scheme, rest)) = url.split_once("://") else {
        return refuse("it has no scheme; write for example redis://localhost:6379".into());
    };
    match scheme {
        "redis" | "valkey" => {}
        "redis+unix" | "valkey+unix" if cfg!(unix) => {}
        "redis+unix" | "valkey+unix" => {
            return refuse(format!("{scheme}:// needs Unix sockets, and this program has none on Windows"));
        }
        "rediss" | "valkeys" if cfg!(feature = "tls") => {}
        "rediss" | "valkeys" => {
            return refuse(format!(
                "{scheme}:// needs the cargo feature `tls`, and this program was built without it"
            ));
        }
        other => {
            return refuse(format!(
                "the scheme `{other}` is unknown; use redis://, redis-cluster://, redis-sentinel://, each \
                with `rediss` for TLS (feature `tls`), or redis+unix://"
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
    // The library's own messages are not passed on: they may quote the URL, and with it the password. TLS is
    // set up by `tls`, and for the library, a user needs a host.
    let url = if is_socket { url.replacen("@/", "@localhost/", 1) } else { format!("redis://{rest}") };
    let Some(config) = Config::from_url(&url).ok().filter(|_| !no_path) else {
        return refuse(if is_socket {
            "write redis+unix://[user:password@]/path/to/redis.sock, with an optional ?db=N".into()
        } else {
            "write redis://[user:password@]host[:port][/database], with the user and password percent-encoded"
                .into()
        });
    };
    let (user, password) = (config.username, config.password);
    let database = if is_socket { unix_database(rest)? } else { config.database };
    let endpoint = match config.server {
        ServerConfig::Centralized { server } => Endpoint::Host(Address::new(&*server.host, server.port)),
        #[cfg(unix)]
        ServerConfig::Unix { path } => Endpoint::Socket(path),
        _ => return refuse("it names several servers".into()),
    };
    Ok(ServerUrl { endpoint, user, password, database, is_tls: matches!(scheme, "rediss" | "valkeys") })
}

/// The password of a user for whom this URL has none. redis-cli takes such a user for a password, and other
/// clients for a user, so the URL has to say it.
pub(super) fn empty_password(url: &str) -> Result<String, ConnectError> {
    let user = url.split_once("://").and_then(|(_, rest)| Some(rest.rsplit_once('@')?.0));
    match user.is_some_and(|user| user.ends_with(':')) {
        true => Ok(String::new()),
        false => Err(ConnectError::Url(
            "it has a user and no password; write user:password@, or user:@ if the user needs none, or \
            :password@ for the default user"
                .into(),
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

    fn parse(url: &str) -> Result<ServerUrl, String> {
        parse_url(url).map_err(|error| match error {
            ConnectError::Url(why) => why,
            other => panic!("{other:?}"),
        })
    }

    fn error(url: &str) -> String {
        parse(url).err().expect("an error")
    }

    #[test]
    fn urls_that_work() {
        let parse = |url| parse(url).expect(url);
        let server = parse("redis://joe:p%40ss@example.org:7000/3");
        assert_eq!((server.user.as_deref(), server.password.as_deref()), (Some("joe"), Some("p@ss")));
        assert_eq!(server.database, Some(3));
        assert_eq!(server.endpoint.address(), Address::new("example.org", 7000));
        assert_eq!(parse("redis://localhost").endpoint.address().port, 6379);
        assert_eq!(parse("redis+unix:///run/redis.sock?db=2").database, Some(2));
        let server = parse("redis+unix://:p%40ss@/run/redis.sock?db=2");
        assert_eq!((server.password.as_deref(), server.database), (Some("p@ss"), Some(2)));
        let server = parse("redis+unix://joe:pass@/run/redis.sock");
        assert_eq!((server.user.as_deref(), server.password.as_deref()), (Some("joe"), Some("pass")));
    }

    #[test]
    fn urls_that_do_not_say_what_would() {
        assert!(error("localhost:6379").contains("no scheme"));
        assert!(error("http://localhost").contains("`http` is unknown"));
        assert!(error("redis://localhost/x").contains("/database"));
        assert!(error("redis+unix:///s?db=x").contains("db=N"));
        assert!(error("redis://localhost?db=3").contains("write the database as /N"));
        #[cfg(not(feature = "tls"))]
        assert!(error("rediss://localhost").contains("`tls`"));
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
    fn no_message_shows_the_password() {
        let error = error("redis://joe:hunter2@host:badport");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
