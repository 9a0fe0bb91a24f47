//! Users and passwords, and where they come from at each connection.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use super::library_error;
use super::op_error::{Cause, Source};

/// How long one call of a provider may take, if the connect timeout is not shorter.
const LONGEST_FETCH: Duration = Duration::from_secs(30);
/// How the error that is handed to the client library begins. It has nothing but a text for it.
pub(super) const FAILED: &str = "the credentials provider failed";

/// Where the user and the password come from.
#[derive(Clone)]
pub(crate) enum Credentials {
    /// From the URL, if it has any.
    OfUrl,
    /// This password, for the user in the URL.
    Password(String),
    /// This user and this password. An empty user is the default user.
    User(String, String),
    /// Asked for at each connection.
    Provider(Provider),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OfUrl => "OfUrl",
            Self::Password(_) => "Password(…)",
            Self::User(..) => "User(…)",
            Self::Provider(_) => "Provider(…)",
        })
    }
}

impl Credentials {
    /// The user and the password, if these are the ones in the URL.
    pub(super) fn or_of_url(
        &self,
        user: Option<String>,
        password: Option<String>,
    ) -> (Option<String>, Option<String>) {
        match self {
            Self::OfUrl | Self::Provider(_) => (user, password),
            Self::Password(password) => (user, Some(password.clone())),
            Self::User(user, password) => (named(user.clone()), Some(password.clone())),
        }
    }

    /// How much longer a handshake may take for their sake. A provider may take as long as the connect
    /// timeout.
    pub(super) fn fetch_timeout(&self, connect_timeout: Duration) -> Duration {
        match self {
            Self::Provider(_) => connect_timeout.min(LONGEST_FETCH),
            _ => Duration::ZERO,
        }
    }

    /// Whether another try may bring other credentials.
    pub(super) fn may_change(&self) -> bool {
        matches!(self, Self::Provider(_))
    }

    /// The provider's error, if that is the reason for this one of the client library.
    pub(super) fn failure(&self, error: &library_error::Error) -> Option<Cause> {
        match self {
            Self::Provider(provider) if error.details().starts_with(FAILED) => provider.last_failure(),
            _ => None,
        }
    }

    /// That the provider was asked and has not answered, if that is so.
    pub(super) fn unanswered(&self) -> Option<Cause> {
        match self {
            Self::Provider(provider) if *provider.asking() > 0 => Some(unanswered()),
            _ => None,
        }
    }
}

fn unanswered() -> Cause {
    Cause::of_kind(std::io::ErrorKind::TimedOut, "the credentials provider did not answer in time")
}

/// An empty user is the default user.
pub(super) fn named(user: String) -> Option<String> {
    Some(user).filter(|user| !user.is_empty())
}

type Fetched = Result<(String, String), Box<Source>>;
type Fetch = dyn Fn() -> Pin<Box<dyn Future<Output = Fetched> + Send>> + Send + Sync;

/// The caller's function that returns a user and a password.
#[derive(Clone)]
pub(crate) struct Provider {
    fetch: Arc<Fetch>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// How many calls have not returned.
    asking: Mutex<usize>,
    failure: Mutex<Option<Cause>>,
}

impl Provider {
    pub(crate) fn new<F, Fut, E>(provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(String, String), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let provider = Arc::new(provider);
        let fetch = move || -> Pin<Box<dyn Future<Output = Fetched> + Send>> {
            let provider = provider.clone();
            Box::pin(async move { provider().await.map_err(Into::into) })
        };
        Self { fetch: Arc::new(fetch), state: Arc::default() }
    }

    fn last_failure(&self) -> Option<Cause> {
        self.state.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn asking(&self) -> std::sync::MutexGuard<'_, usize> {
        self.state.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn fetch(&self, within: Duration) -> Result<(String, String), Cause> {
        struct Asking<'a>(&'a Provider);
        impl Drop for Asking<'_> {
            fn drop(&mut self) {
                *self.0.asking() -= 1;
            }
        }
        *self.asking() += 1;
        let _asking = Asking(self);
        let failure = match timeout(within, (self.fetch)()).await {
            Ok(Ok(credentials)) => return Ok(credentials),
            Ok(Err(error)) => Cause::new(format!("{FAILED}: {error}"), Some(Arc::from(error))),
            Err(_) => unanswered(),
        };
        *self.state.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.clone());
        Err(failure)
    }
}
