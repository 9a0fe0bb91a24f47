//! A master that was demoted, and what follows for the connections to it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::purpose::Purpose;
use super::session::Session;

/// A connection is at least this old before it is closed because another one has met a demoted server. While
/// there is no master, the connections must not keep each other reconnecting.
pub(super) const YOUNG: Duration = Duration::from_secs(1);

/// What the connections that share this have found. The new master answers at the same address, but a
/// connection to the old one may last as long as that server does. A subscriber would stay there: no reply
/// ever tells it.
#[derive(Clone, Debug)]
pub(super) struct Demotion(Arc<watch::Sender<Found>>);

#[derive(Debug, Default)]
struct Found {
    /// When one of them last found its server demoted.
    demoted: Option<Instant>,
    /// The last session for commands: where the address leads now.
    commands: Option<Session>,
}

impl Demotion {
    pub(super) fn none_yet() -> Self {
        Self(Arc::new(watch::Sender::new(Found::default())))
    }

    /// Records a demotion that this session has found. It is not news if the session is older than the last
    /// one.
    pub(super) fn found_by(&self, session: Session) {
        self.0.send_if_modified(|found| {
            let news = found.demoted.is_none_or(|demoted| demoted <= session.begun);
            if news {
                found.demoted = Some(Instant::now());
            }
            news
        });
    }

    /// A session for commands has begun. The address may lead to another server since, and no write was
    /// refused on the old one: the connection was lost, or given up while writes were paused.
    pub(super) fn leads_to(&self, session: Session) {
        self.0.send_modify(|found| found.commands = Some(session));
    }

    /// Waits until a demotion was found after the session began, or, if nothing is written on it, until the
    /// address leads to another server; and until the session is no longer young.
    pub(super) async fn concerns(&self, session: Option<Session>, purpose: Purpose) {
        let Some(session) = session else { return };
        let mut found = self.0.subscribe();
        let is_left_behind = |commands: &Session| {
            purpose.only_listens()
                && commands.answered > session.answered
                && commands.server.zip(session.server).is_some_and(|(theirs, own)| theirs != own)
        };
        let concerns = |found: &Found| {
            found.demoted.is_some_and(|demoted| demoted > session.begun)
                || found.commands.as_ref().is_some_and(is_left_behind)
        };
        // The sender is in `self`.
        let _ = found.wait_for(concerns).await.map(drop);
        sleep_until(session.begun + YOUNG).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::poll_immediate;
    use std::pin::pin;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_demotion_concerns_sessions_that_began_before_it() {
        let demotion = Demotion::none_yet();
        let begun_at = |begun| Session { number: 0, client_id: None, begun, answered: begun, server: None };
        let begun_now = || begun_at(Instant::now());
        let concerns = async |session| {
            poll_immediate(pin!(demotion.concerns(Some(session), Purpose::Commands))).await.is_some()
        };
        let ms = Duration::from_millis;

        let (found, other) = (begun_now(), begun_now());
        advance(ms(5_000)).await;
        assert!(!concerns(other).await);
        demotion.found_by(found);
        assert!(concerns(other).await);

        advance(ms(1)).await;
        let new = begun_now();
        advance(ms(1)).await;
        demotion.found_by(other);
        assert!(!concerns(new).await, "what an old session finds is known");
        demotion.found_by(new);
        assert!(!concerns(new).await, "it is young");
        advance(YOUNG).await;
        assert!(concerns(new).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_listener_follows_the_commands_to_another_server() {
        let demotion = Demotion::none_yet();
        let now = Instant::now();
        let at = |port, ms| Session {
            number: 0,
            client_id: None,
            begun: now,
            answered: now + Duration::from_millis(ms),
            server: Some(([127, 0, 0, 1], port).into()),
        };
        let concerns = async |session, purpose| {
            poll_immediate(pin!(demotion.concerns(Some(session), purpose))).await.is_some()
        };
        advance(YOUNG).await;
        demotion.leads_to(at(1, 1));
        assert!(!concerns(at(1, 0), Purpose::Subscriber).await, "it is the same server");
        demotion.leads_to(at(2, 5));
        assert!(concerns(at(1, 0), Purpose::Subscriber).await);
        assert!(!concerns(at(1, 0), Purpose::Blocking).await, "its writes are refused there");
        assert!(!concerns(at(3, 9), Purpose::Subscriber).await, "the commands may follow it");
        assert!(!concerns(Session { server: None, ..at(1, 0) }, Purpose::Subscriber).await);
    }
}
