//! Opening a link: once, or until the connect timeout, and what its failure means.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::establish::{NotEstablished, SOCKET_TIMEOUT, build, establish};
use super::op_error::is_missing_command;
use super::options::Lookup;
use super::probe::probe;
use super::purpose::Purpose;
use super::shared::Shared;
use super::slot::Slot;
use super::supervisor::Supervisor;
use super::topology::{Lead, outdated, replaced};
use super::{Cause, ConnectError, Link, OpError, Options, library_error};
use crate::telemetry::events;

/// What to check if no sentinel names a master.
const SENTINELS: &str = "are sentinels running there, do they know a master of this name, and do they need \
    credentials of their own?";

/// What to check if a server answers, and refuses the connection.
const BUSY: &str = "the server answers, and does not accept the connection";

/// What to check if no server of a cluster answers.
pub(super) const SERVERS: &str = "are servers of a cluster running there, and reachable from here?";

impl Link {
    /// Connects, again and again until the deadline: a service may start before its server. What waiting does
    /// not fix (credentials, TLS) fails at once.
    pub(super) async fn open(
        options: &Options,
        purpose: Purpose,
        shared: &Shared,
        deadline: Instant,
    ) -> Result<Arc<Self>, ConnectError> {
        let mut pause = Duration::from_millis(20);
        let mut is_first = true;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let lead = shared.lead(Slot::ANY);
            let error = match Self::open_within(left, options, purpose, shared, lead).await {
                Ok(link) => return Ok(link),
                Err(error) => error,
            };
            if !may_pass(&error, options) || Instant::now() + pause >= deadline {
                return Err(error);
            }
            if std::mem::take(&mut is_first) {
                events::connecting_failing(&options.server(), &error.to_string());
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Connects where it is led to, or says why not.
    pub(super) async fn open_once(
        options: &Options,
        purpose: Purpose,
        shared: &Shared,
        lead: Option<Lead>,
    ) -> Result<Arc<Self>, ConnectError> {
        Self::open_within(options.connect_timeout, options, purpose, shared, lead).await
    }

    /// A link to the server in the options that connects in the background.
    pub(super) fn begin(options: &Options, purpose: Purpose, shared: &Shared) -> Result<Arc<Self>, OpError> {
        let client =
            build(options, purpose).map_err(|error| OpError::NotExecuted(library_error::cause(&error)))?;
        let supervisor = Supervisor::unconnected(options, client, purpose, shared.clone());
        Ok(Self::new(options, supervisor, purpose, shared.clone()))
    }

    /// Connects, or says why not. A reason is looked for no longer than `left`. Compiled once: see
    /// [`client`](super::client).
    #[inline(never)]
    fn open_within<'a>(
        left: Duration,
        options: &'a Options,
        purpose: Purpose,
        shared: &'a Shared,
        lead: Option<Lead>,
    ) -> BoxFuture<'a, Result<Arc<Self>, ConnectError>> {
        Box::pin(Self::open_where_led(left, options, purpose, shared, lead))
    }

    async fn open_where_led(
        left: Duration,
        options: &Options,
        purpose: Purpose,
        shared: &Shared,
        mut lead: Option<Lead>,
    ) -> Result<Arc<Self>, ConnectError> {
        let deadline = Instant::now() + left;
        let nobody_knows = |cause| ConnectError::Failed(cause, advice(options));
        let (at, opened) = loop {
            let at = options.led_by(lead.as_mut()).await.map_err(nobody_knows)?;
            // An old master may accept the connection, and not answer.
            let opened = tokio::select! {
                opened = Self::open_at(&at, deadline, options, purpose, shared, lead.clone()) => opened,
                () = outdated(lead.as_ref()) => match Instant::now() < deadline {
                    true => continue,
                    false => Err(ConnectError::failed(replaced())),
                },
            };
            break (at, opened);
        };
        opened.map_err(|error| match error {
            ConnectError::Failed(cause, hint) if options.is_led() => {
                ConnectError::Failed(cause.at(&at.address().to_string()), hint)
            }
            error => error,
        })
    }

    async fn open_at(
        at: &Options,
        deadline: Instant,
        options: &Options,
        purpose: Purpose,
        shared: &Shared,
        lead: Option<Lead>,
    ) -> Result<Arc<Self>, ConnectError> {
        let begun = Instant::now();
        let left = || deadline.saturating_duration_since(Instant::now());
        let established = match establish(at, purpose).await {
            Ok(established) => established,
            Err(NotEstablished::Build(error)) => {
                let why = format!("the client library refuses it: {}", error.details());
                return Err(ConnectError::Option(why));
            }
            Err(NotEstablished::Connect(error)) => return Err(reason(at, &error, left()).await),
            Err(NotEstablished::Silence) => {
                return Err(match at.credentials.unanswered() {
                    Some(cause) => ConnectError::Provider(cause),
                    None => ConnectError::failed(silence(at)),
                });
            }
        };
        match Supervisor::start(options, at, established, begun, purpose, shared.clone(), lead).await {
            Ok(supervisor) => Ok(Self::new(at, supervisor, purpose, shared.clone())),
            Err(OpError::Server(why)) => Err(refused(why)),
            Err(OpError::NotExecuted(cause)) if cause.is_of_server() => {
                Err(ConnectError::Failed(cause, BUSY))
            }
            Err(OpError::NotExecuted(cause)) if at.is_led() => Err(ConnectError::Failed(cause, advice(at))),
            Err(error) => Err(examine(at, error.into_cause(), true, left()).await),
        }
    }
}

/// Whether another try may succeed.
pub(super) fn may_pass(error: &ConnectError, options: &Options) -> bool {
    match error {
        ConnectError::Failed(..) | ConnectError::Provider(_) => true,
        ConnectError::Credentials(_) => options.credentials.may_change(),
        _ => false,
    }
}

/// What to check if it is not known where the server is.
fn advice(options: &Options) -> &'static str {
    if matches!(options.lookup, Lookup::Cluster(_)) { SERVERS } else { SENTINELS }
}

/// What the client library's error means.
async fn reason(options: &Options, error: &library_error::Error, left: Duration) -> ConnectError {
    if let Some(cause) = options.credentials.failure(error) {
        return ConnectError::Provider(cause);
    }
    let cause = library_error::cause(error);
    if cause.source().is_none() && cause.to_string().contains("DB index is out of range") {
        return ConnectError::Option(format!("the server has no database of this number ({cause})"));
    }
    if cause.is_of_server() {
        return match cause.to_string() {
            // After these errors, another try is worth it, as it is for a call.
            why if OpError::of_reply(&why).is_not_executed() => ConnectError::Failed(cause, BUSY),
            why => refused(why),
        };
    }
    if library_error::is_of_configuration(error) {
        return ConnectError::Url("the client library refuses it".into());
    }
    examine(options, cause, library_error::is_vague(error), left).await
}

/// How a server refuses a user or a password, or the lack of one.
const OF_CREDENTIALS: [&str; 4] = ["NOAUTH", "WRONGPASS", "ERR AUTH ", "ERR Client sent AUTH"];

/// What the server's words mean.
fn refused(why: String) -> ConnectError {
    if OF_CREDENTIALS.iter().any(|words| why.starts_with(words)) {
        return ConnectError::Credentials(why);
    }
    // A limit or the protected mode may end.
    if is_missing_command(&why) {
        return ConnectError::Refused(why);
    }
    ConnectError::Failed(why.into(), BUSY)
}

/// Looks for a better reason where this one is vague.
async fn examine(options: &Options, cause: Cause, is_vague: bool, left: Duration) -> ConnectError {
    if cause.is_timeout() {
        return ConnectError::failed(silence(options));
    }
    // A server that rejects the client's certificate may close the connection before that is read.
    if cause.source().is_some()
        && (is_vague || options.is_tls())
        && let Some(found) = probe(options, left.min(SOCKET_TIMEOUT)).await
    {
        return found;
    }
    if cause.source().is_none() || !(is_vague || cause.is_closed()) {
        return ConnectError::failed(cause);
    }
    ConnectError::Failed(
        cause,
        match options.is_tls() {
            true => "does the server speak TLS on this port?",
            false => "is it a Redis server, and without TLS? If it expects TLS, use rediss://",
        },
    )
}

/// A server that accepts connections and does not answer, or an address from which nothing comes back.
fn silence(options: &Options) -> Cause {
    let text = match options.is_tls() {
        true => "the server does not answer the TLS handshake",
        false => "the server does not answer",
    };
    Cause::of_kind(ErrorKind::TimedOut, text)
}
