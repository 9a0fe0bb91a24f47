//! What a link sees of the sessions of its connection, and of the task that watches over them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use tokio::sync::watch;

use super::Cause;
use super::address::Address;
use super::client::FredClient;
use super::session::{Session, Sessions};

/// A client of the library, and where it is connected, or tries to be.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) client: FredClient,
    pub(super) at: Arc<Address>,
}

/// The last reason for having no session.
pub(super) type LastCause = Arc<Mutex<Option<Cause>>>;

/// The connection of a link, whose task is the supervisor.
pub(super) struct Supervised {
    pub(super) connected: Arc<RwLock<Connected>>,
    pub(super) trouble: LastCause,
    pub(super) session: watch::Receiver<Option<Session>>,
    /// To end a session. The supervisor owns it: after its end there are no further sessions.
    pub(super) sessions: Weak<Sessions>,
    /// Whether the next loss of the connection is our own choice.
    pub(super) expected_loss: Arc<AtomicBool>,
    /// It was closed on purpose. Otherwise, the supervisor connects again, whatever has ended the connection.
    pub(super) closed: Arc<AtomicBool>,
}

impl Supervised {
    /// The session, while there is a connection.
    pub(super) fn session(&self) -> Option<Session> {
        if self.has_ended() { None } else { *self.session.borrow() }
    }

    /// Waits for a session. `None` if there will be none any more.
    pub(super) async fn next_session(&self) -> Option<Session> {
        let mut session = self.session.clone();
        match self.has_ended() {
            false => session.wait_for(Option::is_some).await.ok().and_then(|session| *session),
            true => None,
        }
    }

    /// Follows the sessions from here on.
    pub(super) fn sessions(&self) -> watch::Receiver<Option<Session>> {
        self.session.clone()
    }

    /// Whether the supervisor is gone, which ends with its runtime and leaves the last session behind.
    fn has_ended(&self) -> bool {
        self.sessions.strong_count() == 0
    }

    /// Ends a session at once: commands wait for the next one from now on. Returns whether it had not ended
    /// before.
    pub(super) fn end(&self, session: Option<Session>) -> bool {
        let Some((session, sessions)) = session.zip(self.sessions.upgrade()) else { return false };
        sessions.send_if_modified(|present| present.take_if(|present| *present == session).is_some())
    }

    /// Where it is connected, or tries to be.
    pub(super) fn address(&self) -> Arc<Address> {
        self.connected.read().unwrap_or_else(PoisonError::into_inner).at.clone()
    }

    /// The library's client. After a failover, it is another one.
    pub(super) fn client(&self) -> FredClient {
        self.connected.read().unwrap_or_else(PoisonError::into_inner).client.clone()
    }

    /// Why there is no session, while there is none.
    pub(super) fn trouble(&self) -> Option<Cause> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The connection is about to be replaced, and is not at fault.
    pub(super) fn expect_loss(&self) {
        self.expected_loss.store(true, Relaxed);
    }

    /// The end of the connection that follows is wanted.
    pub(super) fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }
}
