//! The time from one reconnection to the next.

use std::net::SocketAddr;

use tokio::sync::watch;
use tokio::time::Instant;

/// The time from one reconnection to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// Counts the reconnections.
    pub(crate) number: u64,
    /// The server's id of this connection, for `CLIENT UNBLOCK`; `None` if that is missing or forbidden.
    pub(crate) client_id: Option<i64>,
    /// It was opened after this, and what it replaces has ended then.
    pub(super) begun: Instant,
    /// The server has answered its handshake then.
    pub(super) answered: Instant,
    /// The server's own address, by which servers behind one address differ; `None` if it does not say it.
    pub(super) server: Option<SocketAddr>,
}

/// The present session of a link; `None` while there is none.
pub(super) type Sessions = watch::Sender<Option<Session>>;
