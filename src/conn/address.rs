//! Where a server listens.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

/// Where a URL says that a server is.
#[derive(Clone, Debug)]
pub(super) enum Endpoint {
    /// If the host is an IPv6 address of a URL, it has brackets.
    Host(Address),
    /// The path of a Unix socket.
    #[cfg_attr(not(unix), expect(dead_code, reason = "no URL is accepted that names one"))]
    Socket(PathBuf),
}

impl Endpoint {
    /// Host and port. A socket has a path, and no port.
    pub(super) fn address(&self) -> Address {
        match self {
            Self::Host(server) => Address::new(server.host.trim_matches(['[', ']']), server.port),
            Self::Socket(path) => Address::new(path.display().to_string(), 0),
        }
    }
}

/// A host and a port; or the path of a socket, and the port 0.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
    /// The host name that the server announces besides its IP address. Its certificate is verified against
    /// this name.
    #[cfg_attr(not(any(feature = "tls", test)), expect(dead_code))]
    pub(super) name: Option<String>,
}

/// Two are equal if they are the same place. The servers of a cluster may not agree about a name yet.
impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Address {}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Address {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.host, self.port).cmp(&(&other.host, other.port))
    }
}

impl Hash for Address {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.host, self.port).hash(state);
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.port, self.host.contains(':')) {
            (0, _) => f.write_str(&self.host),
            (port, true) => write!(f, "[{}]:{port}", self.host),
            (port, false) => write!(f, "{}:{port}", self.host),
        }
    }
}

impl Address {
    pub(super) fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, name: None }
    }

    /// Reads a host and a port that a server has sent.
    pub(super) fn of(texts: &[impl AsRef<[u8]>]) -> Option<Self> {
        let [host, port] = texts else { return None };
        let text = |text: &[u8]| String::from_utf8(text.to_vec()).ok();
        let host = text(host.as_ref()).filter(|host| !host.is_empty())?;
        let port = text(port.as_ref())?.parse().ok().filter(|port| *port > 0)?;
        Some(Self::new(host, port))
    }

    /// Reads `host`, `host:port`, `[::1]` or `[::1]:port`.
    pub(super) fn parse(text: &str, default_port: u16) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
        };
        let port = match port {
            "" => default_port,
            port => port.strip_prefix(':')?.parse().ok()?,
        };
        (!host.is_empty()).then(|| Self::new(host, port))
    }
}
