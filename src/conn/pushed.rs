//! What the server sends by itself on a connection: messages, and notices of changes.

use std::future::pending;
use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;

use super::Link;
use super::client::FredClient;
use super::session::Session;

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Push<T> {
    Message(T),
    /// Some messages were lost: more have come than are kept.
    Missed,
    /// The connection was lost, or there is a new one, on which the server sends only what it is asked for.
    Session,
}

/// All that the server sends on a link from its opening on, whatever becomes of its connections.
///
/// When the link is led to another server, the library's client is replaced, and nothing more comes from the
/// old one.
#[derive(Debug)]
pub(super) struct Pushed<T> {
    link: Arc<Link>,
    receive: fn(&FredClient) -> broadcast::Receiver<T>,
    receiver: broadcast::Receiver<T>,
    sessions: watch::Receiver<Option<Session>>,
    /// The last session that `next` has reported, or the one at the beginning.
    session: Option<Session>,
}

impl<T: Clone> Pushed<T> {
    pub(super) fn of(link: &Arc<Link>, receive: fn(&FredClient) -> broadcast::Receiver<T>) -> Self {
        let mut sessions = link.sessions();
        let session = *sessions.borrow_and_update();
        Self { receiver: receive(&link.client()), link: link.clone(), receive, sessions, session }
    }

    /// The next that comes; `None` when nothing will come any more. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Push<T>> {
        let message = async {
            match self.receiver.recv().await {
                Ok(message) => Push::Message(message),
                Err(RecvError::Lagged(_)) => Push::Missed,
                // The library's client is gone. There is another one in the next session.
                Err(RecvError::Closed) => pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = self.sessions.changed() => {
                changed.ok()?;
                self.session = *self.sessions.borrow_and_update();
                self.receiver = (self.receive)(&self.link.client());
                Some(Push::Session)
            }
            message = message => Some(message),
        }
    }

    /// The present session, if `next` has reported it: what is asked for in it is not missed.
    pub(super) fn session(&self) -> Option<Session> {
        self.link.session().filter(|present| self.session == Some(*present))
    }
}

#[cfg(all(test, workspace))]
mod tests {
    use redelay_fixture::{Server, until_async};
    use redelay_support::soon;

    use super::super::Options;
    use super::super::address::Address;
    use super::super::purpose::Purpose;
    use super::super::slot::Slot;
    use super::super::slots::Table;
    use super::super::tests::{settings, shared};
    use super::super::topology::Topology;
    use super::*;

    #[tokio::test]
    async fn messages_come_from_each_server_to_which_the_link_is_led() {
        let servers = [Server::start(), Server::start()];
        let topology = Topology::new("nobody knows the server".into(), "nobody has answered");
        let lead_to = |server: &Server| {
            let address = Address::new("127.0.0.1", server.port());
            topology.update(|table| {
                *table = Some(Table::of_one(address));
                true
            });
        };
        lead_to(&servers[0]);
        let options = Options::new(settings(&servers[0].url())).expect("options");
        let lead = Some(topology.lead(Slot::ANY));
        let link =
            Link::open_once(&options, Purpose::Subscriber, &shared(), lead).await.expect("a connection");
        let mut pushed = Pushed::of(&link, FredClient::messages);
        for server in [&servers[0], &servers[1], &servers[0]] {
            lead_to(server);
            while pushed.session().is_none() || link.address().port != server.port() {
                assert!(matches!(soon(pushed.next()).await, Some(Push::Session)));
            }
            link.client().subscribe("news").await.expect("it is sent");
            until_async("it listens", || async { server.subscribers("news") == 1 }).await;
            server.cmd(["PUBLISH", "news", "7"]);
            assert!(matches!(soon(pushed.next()).await, Some(Push::Message(_))));
        }
        link.close().await;
        assert!(matches!(soon(pushed.next()).await, Some(Push::Session)));
        assert!(soon(pushed.next()).await.is_none());
    }
}
