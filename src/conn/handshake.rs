//! How a session begins and ends on the server.
//!
//! A connection that was given up may still have commands on their way to the server, and the network may
//! deliver them late: after their retry, or after a claim was deleted. So the server is asked to close the
//! old connection before the new one is used.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::client::FredClient;
use super::expect::Expect;
use super::purpose::Purpose;
use super::reply::{Frame, NoReply, Reply};
use super::topology::{Lead, outdated, replaced};
use super::{Cause, OpError, library_error};

/// How long the handshake of a new connection may take.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);

/// How the server tells a connection from all others, those before a restart of the server included.
pub(super) struct Peer {
    id: String,
    address: String,
    server: Option<SocketAddr>,
}

impl Peer {
    /// Reads the reply of `CLIENT INFO`: `id=7 addr=127.0.0.1:43210 laddr=...`. All clients of a Unix socket
    /// have the same address, so it cannot tell them apart; but nothing is delivered late there.
    fn of_info(info: &str) -> Option<Self> {
        let field = |name: &str| info.split_whitespace().find_map(|field| field.strip_prefix(name));
        let address = field("addr=").filter(|address| !address.starts_with('/'))?;
        let server = field("laddr=").and_then(|address| address.parse().ok());
        Some(Self { id: field("id=")?.to_owned(), address: address.to_owned(), server })
    }

    /// The address at which the server has this connection.
    pub(super) fn server(&self) -> Option<SocketAddr> {
        self.server
    }
}

/// What the server has answered.
pub(super) struct Answered {
    /// Its id of this connection, for `CLIENT UNBLOCK`; `None` if that is missing or forbidden.
    pub(super) client_id: Option<i64>,
    /// `None` if the server does not name it.
    pub(super) peer: Option<Peer>,
    /// What `INFO` says of its memory and its persistence. Empty if that was not asked for, and without the
    /// sections that are missing or forbidden.
    pub(super) info: String,
}

/// Begins a session on a connection: ends the one before it (`last`) on the server, names this one, and
/// learns its id. Refuses a server that is no master, if the connection is led to masters, or if nothing that
/// is sent on it would be refused there: a subscriber would stay, and hear nothing.
pub(super) async fn handshake(
    client: &FredClient,
    purpose: Purpose,
    client_name: &str,
    last: Option<&Peer>,
    lead: Option<&Lead>,
) -> Result<Answered, OpError> {
    let mut words = vec![vec!["SETNAME", client_name]];
    if let Some(Peer { id, address, .. }) = last {
        // Both, because after a restart of the server the id may be another client's. The caller is spared
        // (SKIPME), should it turn out to be the same connection.
        words.push(vec!["KILL", "ID", id, "ADDR", address]);
    }
    words.push(vec!["INFO"]);
    match purpose {
        Purpose::Tracker => words.push(vec!["TRACKING", "ON"]),
        // There is no such client: it shows whether the command works.
        Purpose::Blocking => words.push(vec!["UNBLOCK", "0", "TIMEOUT"]),
        Purpose::Commands | Purpose::Question | Purpose::Subscriber | Purpose::Sentinel => {}
    }
    words.push(vec!["ID"]);
    let expect: Vec<_> =
        words.iter().map(|words| Expect::of("CLIENT", &[words[0].to_owned().into()])).collect();
    let ask = |name, args| client.clone().execute(name, args, None);
    let server_role = async {
        match lead.is_some() || purpose.only_listens() {
            true => ask("ROLE", Vec::new()).await.map(Some),
            false => Ok(None),
        }
    };
    // In this order on one connection, and without a pause: each is handed over when it is first polled.
    let replies = futures::future::try_join_all(words.into_iter().map(|words| {
        let words = words.into_iter().map(|word| Bytes::copy_from_slice(word.as_bytes()));
        ask("CLIENT", words.collect())
    }));
    // Redis 6.2 takes one section a command. On a slow link, each takes long, so the second one is asked for
    // once.
    let sections: &[&'static str] = match (purpose, last) {
        (Purpose::Commands, None) => &["memory", "persistence"],
        (Purpose::Commands, Some(_)) => &["memory"],
        _ => &[],
    };
    let info =
        futures::future::try_join_all(sections.iter().map(|section| ask("INFO", vec![(*section).into()])));
    let all = timeout(HANDSHAKE_TIMEOUT, futures::future::try_join3(replies, server_role, info));
    let (replies, server_role, info) = tokio::select! {
        all = all => all
            .map_err(|_| OpError::Unknown(Cause::silence()))?
            .map_err(|error| library_error::of_sent(&error))?,
        () = outdated(lead) => return Err(OpError::NotExecuted(replaced())),
    };
    ensure_master(server_role)?;
    let mut answers = Vec::with_capacity(replies.len());
    for (frame, expect) in replies.into_iter().zip(expect) {
        answers.push(answer(expect.read(frame))?);
    }
    let mut next = || answers.pop().expect("a reply for each command");
    // Without `CLIENT ID`, or without what it is for, a pop is not interrupted: it blocks for shorter.
    let mut client_id = next().ok().and_then(|id| id.into_int().ok());
    match (purpose, client_id.is_some()) {
        (Purpose::Tracker, _) => drop(next()?),
        (Purpose::Blocking, _) if next().is_err() => client_id = None,
        _ => {}
    }
    // A server may lack the others, or a user the permission: then the connection has no name, or the old
    // one stays.
    let of_client = next().ok().and_then(|info| info.into_bytes().ok());
    let peer = of_client.and_then(|info| Peer::of_info(&String::from_utf8_lossy(&info)));
    Ok(Answered { client_id, peer, info: info.into_iter().map(text).collect::<Result<_, _>>()? })
}

/// The answer to one of the commands. The server may lack the command, or the user the permission; but what
/// it refuses for now is no answer: the connection would be without it as long as it lasts.
fn answer(reply: Result<Reply, NoReply>) -> Result<Result<Reply, OpError>, OpError> {
    match reply {
        Ok(reply) => Ok(Ok(reply)),
        Err(NoReply::Error(error)) if !error.is_not_executed() => Ok(Err(error)),
        Err(why) => Err(why.into()),
    }
}

/// A section of `INFO`.
fn text(info: Frame) -> Result<String, OpError> {
    let info = answer(Reply::of_frame(info))?;
    let bytes = info.ok().and_then(|info| info.into_bytes().ok()).unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns an error if the server says that it is no master.
fn ensure_master(role: Option<Frame>) -> Result<(), OpError> {
    let Some(role) = role else { return Ok(()) };
    let Ok(role) = answer(Reply::of_frame(role))? else { return Ok(()) };
    match role.into_array().ok().and_then(|role| role.into_iter().next()) {
        Some(Reply::Bytes(role)) if role != "master" => Err(OpError::NotExecuted(Cause::of_kind(
            ErrorKind::ConnectionAborted,
            "the server is not the master",
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_for_now_is_no_answer() {
        let refused = |why: &'static str| Frame::SimpleError { data: why.into(), attributes: None };
        let busy = || refused("BUSY Redis is busy running a script");
        assert!(answer(Reply::of_frame(busy())).is_err_and(|error| error.is_not_executed()));
        assert!(text(busy()).is_err_and(|error| error.is_not_executed()));
        assert!(ensure_master(Some(busy())).is_err_and(|error| error.is_not_executed()));
        let forbidden = || refused("NOPERM this user has no permissions");
        assert!(answer(Reply::of_frame(forbidden())).is_ok_and(|answer| answer.is_err()));
        assert_eq!((text(forbidden()), ensure_master(Some(forbidden()))), (Ok(String::new()), Ok(())));
    }

    #[test]
    fn peer_is_read_from_client_info() {
        let rows = [
            ("id=7 addr=127.0.0.1:43210 laddr=127.0.0.1:6379 fd=8 name=\n", Some(("7", "127.0.0.1:43210"))),
            ("id=7 addr=[::1]:43210 laddr=[::1]:6379", Some(("7", "[::1]:43210"))),
            ("id=7 addr=/run/redis.sock:0 laddr=/run/redis.sock:0", None),
            ("id=7 laddr=127.0.0.1:6379", None),
            ("", None),
        ];
        for (info, expected) in rows {
            let peer = Peer::of_info(info);
            assert_eq!(
                peer.as_ref().map(|peer| (peer.id.as_str(), peer.address.as_str())),
                expected,
                "{info}"
            );
        }
    }
}
