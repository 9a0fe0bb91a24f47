//! A master that was demoted, and what follows for the connections to it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::session::Session;

/// A connection is at least this old before it is closed because another one has met a demoted server. While
/// there is no master, the connections must not keep each other reconnecting.
pub(super) const YOUNG: Duration = Duration::from_secs(1);

/// When any of the connections that share this last found its server demoted. The new master answers at the
/// same address, but a connection to the old one may last as long as that server does. A subscriber would
/// stay there: no reply ever tells it.
#[derive(Clone, Debug)]
pub(super) struct Demotion(Arc<watch::Sender<Option<Instant>>>);

impl Demotion {
    pub(super) fn none_yet() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Records a demotion that this session has found. It is not news if the session is older than the last
    /// one.
    pub(super) fn found_by(&self, session: Session) {
        let unknown = |found: &Option<Instant>| found.is_none_or(|found| found <= session.begun);
        self.0.send_if_modified(|found| {
            let news = unknown(found);
            if news {
                *found = Some(Instant::now());
            }
            news
        });
    }

    /// Waits until a demotion was found after the session began and the session is no longer young.
    pub(super) async fn concerns(&self, session: Option<Session>) {
        let Some(session) = session else { return };
        let mut found = self.0.subscribe();
        let since = |found: &Option<Instant>| found.is_some_and(|found| found > session.begun);
        // The sender is in `self`.
        let _ = found.wait_for(since).await.map(drop);
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
        let begun_at = |begun| Session { number: 0, client_id: None, begun, answered: begun };
        let begun_now = || begun_at(Instant::now());
        let concerns = async |session| poll_immediate(pin!(demotion.concerns(Some(session)))).await.is_some();
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
}
