//! The Redis URL, and `CLIENT KILL` through a connection of its own: a few lines of RESP over TCP.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A server that is reached by plain TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
    user: Option<String>,
    password: Option<String>,
}

impl Server {
    /// `redis://[user:password@]host[:port][/database]`; none for what is not plain TCP.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("redis://")?;
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (address, 6379),
        };
        let given = |text: &str| (!text.is_empty()).then(|| percent_decoded(text));
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some(Self { host, port, user: given(user), password: given(password) })
    }

    /// Kills every connection with this name; how many there were.
    pub(crate) async fn kill_connections(&self, name: &str) -> io::Result<usize> {
        timeout(Duration::from_secs(3), self.kill(name)).await?
    }

    async fn kill(&self, name: &str) -> io::Result<usize> {
        let mut redis = BufReader::new(TcpStream::connect((self.host.as_str(), self.port)).await?);
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => command(&mut redis, &["AUTH", user, password]).await?,
            (None, Some(password)) => command(&mut redis, &["AUTH", password]).await?,
            _ => String::new(),
        };
        let mut killed = 0;
        for id in ids(&command(&mut redis, &["CLIENT", "LIST"]).await?, name) {
            let answer = command(&mut redis, &["CLIENT", "KILL", "ID", id]).await?;
            killed += usize::from(answer != "0");
        }
        Ok(killed)
    }
}

/// The ids of the connections with this name, from the reply to `CLIENT LIST`.
fn ids<'a>(list: &'a str, name: &str) -> Vec<&'a str> {
    let field = |line: &'a str, key: &str| line.split(' ').find_map(|field| field.strip_prefix(key));
    list.lines()
        .filter(|line| field(line, "name=") == Some(name))
        .filter_map(|line| field(line, "id="))
        .collect()
}

/// Sends a command, and reads a reply that is a line, a number or a string.
async fn command(redis: &mut BufReader<TcpStream>, args: &[&str]) -> io::Result<String> {
    let mut request = format!("*{}\r\n", args.len());
    args.iter().for_each(|arg| request += &format!("${}\r\n{arg}\r\n", arg.len()));
    redis.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    redis.read_line(&mut line).await?;
    let line = line.trim_end();
    match line.split_at_checked(1) {
        Some(("+" | ":", text)) => Ok(text.to_owned()),
        Some(("$", length)) => {
            let length: usize = length.parse().map_err(io::Error::other)?;
            let mut text = vec![0; length + 2];
            redis.read_exact(&mut text).await?;
            text.truncate(length);
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        _ => Err(io::Error::other(line.trim_start_matches('-').to_owned())),
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The URL for people: without user and password.
pub(crate) fn shown(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('?').next().unwrap_or(rest);
    rest.rsplit('@').next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str, port: u16, user: Option<&str>, password: Option<&str>) -> Option<Server> {
        let [user, password] = [user, password].map(|text| text.map(str::to_owned));
        Some(Server { host: host.into(), port, user, password })
    }

    #[test]
    fn urls() {
        assert_eq!(Server::parse("redis://localhost"), server("localhost", 6379, None, None));
        assert_eq!(Server::parse("redis://10.0.0.1:7000/2"), server("10.0.0.1", 7000, None, None));
        let secret = server("h", 1, None, Some("p@:ss"));
        assert_eq!(Server::parse("redis://:p%40%3Ass@h:1"), secret);
        assert_eq!(Server::parse("redis://me:p%@h?x=1"), server("h", 6379, Some("me"), Some("p%")));
        assert_eq!(Server::parse("redis://[::1]:7000"), server("::1", 7000, None, None));
        assert_eq!(Server::parse("redis://[::1]"), server("::1", 6379, None, None));
        for other in ["rediss://localhost", "redis+unix:///run/redis.sock", "redis://h:port"] {
            assert_eq!(Server::parse(other), None, "{other}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        assert_eq!(shown("redis://me:secret@host:7000/1"), "host:7000/1");
        assert_eq!(shown("redis://host"), "host");
        assert_eq!(shown("redis+unix://:secret@/run/redis.sock?db=1"), "/run/redis.sock");
    }

    #[test]
    fn connections_by_name() {
        let list = "id=3 addr=1 name=demo-1 db=0\nid=4 addr=2 name= db=0\nid=15 addr=3 name=demo-1 db=0\n";
        assert_eq!(ids(list, "demo-1"), ["3", "15"]);
        assert_eq!(ids(list, "demo"), [""; 0]);
    }
}
