//! Storing entries, exactly once.
//!
//! | if … | then … |
//! |---|---|
//! | there is no connection | the call is made when there is one, within the command timeout |
//! | the reply is lost | the call is sent again with its receipt: the server executes the try that arrives first, and tells the outcome to the others, whatever has become of the entries |
//! | the server refuses a command of the script | the script takes back what it wrote |
//! | the future is dropped | a call that was sent is executed, but not sent again |
//!
//! A delay counts from the first try, also in a later one, as far as the time of the server's reply allows:
//! an entry may be late by one round trip then, and is never early.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use crate::conn::{Command, Conn, OpError, Reply};
use crate::engine::AtStop;
use crate::pacing::Retries;
use crate::scripts::Call;
use crate::wire::keys::Keys;

/// This number of receipts is deleted by one command.
const DELETE: usize = 64;
/// How long a receipt waits for others at most.
const DELETE_AFTER: Duration = Duration::from_secs(1);

/// What a time means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// A delay, ms.
    After,
    /// A due time, epoch ms.
    At,
}

impl When {
    /// What the times of a first try count from, for the scripts.
    pub(super) fn base(self) -> &'static str {
        match self {
            Self::After => "now",
            Self::At => "0",
        }
    }
}

/// How often it is looked whether the queue has a limit, while none is known.
const LOOK: Duration = Duration::from_secs(5);

/// Entries that are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// What the times count from, epoch ms.
    base: u64,
    /// The head of the queue, epoch ms, if its transfer may have to be started.
    pub(super) head: Option<f64>,
    /// Whether the number of pending entries is limited, if the call has looked.
    pub(super) is_limited: Option<bool>,
}

impl Stored {
    /// What the reply to an offer says.
    pub(super) fn of(reply: Vec<Reply>) -> Option<Self> {
        let mut parts = reply.into_iter();
        let (Some(Reply::Int(base)), Some(head)) = (parts.next(), parts.next()) else { return None };
        let head = head.into_optional_score().ok()?;
        let is_limited = parts.next().and_then(is_limited);
        Some(Self { base: u64::try_from(base).unwrap_or(0), head, is_limited })
    }

    /// The due time of an entry that was offered with this time, epoch ms.
    pub(super) fn due(self, time: u64) -> u64 {
        self.base + time
    }
}

/// Stores entries of one queue. Clones share the receipts that are to be deleted.
#[derive(Clone, Debug)]
pub(super) struct Store {
    conn: Conn,
    keys: Keys,
    spent: Arc<Mutex<Spent>>,
    at_stop: Arc<AtStop>,
    limit: Arc<Limit>,
}

/// The limit of pending entries: its key, and what is known of it.
#[derive(Debug)]
struct Limit {
    key: Bytes,
    known: Mutex<Known>,
}

/// Only offers to a limited queue pay for the limit: the others look now and then.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    is_limited: bool,
    looked_at: Option<Instant>,
}

/// Receipts of calls whose replies have arrived.
#[derive(Debug, Default)]
struct Spent {
    receipts: Vec<Bytes>,
    /// Whether a timer runs for them.
    waiting: bool,
}

impl Store {
    pub(super) fn new(conn: Conn, keys: Keys, at_stop: AtStop) -> Self {
        let limit = Limit { key: keys.named("control"), known: Mutex::default() };
        Self { conn, keys, spent: Arc::default(), at_stop: Arc::new(at_stop), limit: Arc::new(limit) }
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(super) fn conn(&self) -> &Conn {
        &self.conn
    }

    /// The same with another command timeout.
    pub(super) fn with_timeout(&self, timeout: Duration) -> Self {
        Self { conn: self.conn.with_timeout(timeout), ..self.clone() }
    }

    /// Makes a call that leaves a receipt, with as many tries as it takes. For each, `call` gets the receipt,
    /// and what the times count from: `now`, or epoch ms. `read` reads the parts of the reply, unless that
    /// belongs to another command.
    pub(super) async fn once<R>(
        &self,
        when: When,
        call: impl Fn(&Bytes, String) -> Call,
        read: impl Fn(Vec<Reply>) -> Option<R>,
    ) -> Result<R, OpError> {
        let begun = Instant::now();
        let receipt = self.keys.offered();
        let mut base = (when == When::At).then_some(0);
        if base.is_none() && !self.conn.is_ready_to_write() {
            // The wait for a connection is no part of the delay. Nothing of the offer has been sent.
            let clock = self.clock_at(begun).await.map_err(|error| match error {
                OpError::Unknown(cause) => OpError::NotExecuted(cause),
                other => other,
            });
            base = Some(clock?);
        }
        let mut deadline = begun + self.conn.command_timeout();
        let mut retries = Retries::until(deadline);
        // The error of a try that may have been executed, or may still be.
        let mut lost = None;
        loop {
            let call = call(&receipt, base.map_or_else(|| "now".to_owned(), |base| base.to_string()));
            // Its inner result is final, the outer one says what went wrong with this try.
            let attempt = async {
                let until = Instant::now() + self.conn.command_timeout();
                let parts = call.run(&self.conn).await?.into_array()?;
                match refusal(&parts) {
                    Some(refusal) => Ok(Err(explained(&call, &self.conn, refusal, until).await)),
                    None => read(parts).map(Ok).ok_or_else(|| self.conn.desynchronised()),
                }
            };
            let error = match self.conn.replicated(&self.keys, deadline, attempt, Result::is_ok).await {
                Ok(outcome) => {
                    if lost.is_none() {
                        self.on_spent(receipt);
                    }
                    return outcome;
                }
                Err(error) => error,
            };
            match &error {
                OpError::NotExecuted(_) => {}
                // It is executed, and no retry will be confirmed.
                OpError::Unconfirmed(why) if why.is_missing_command() => return Err(error),
                OpError::Unknown(_) => {
                    if lost.is_none() {
                        deadline = Instant::now() + self.conn.command_timeout();
                        retries = Retries::until(deadline);
                    }
                    lost = Some(error.clone());
                }
                // The next try may be confirmed. The last one has little time, so its error says less than
                // the first.
                OpError::Unconfirmed(_) => {
                    lost =
                        lost.filter(|lost| matches!(lost, OpError::Unconfirmed(_))).or(Some(error.clone()));
                }
                // No retry helps.
                _ => return Err(if lost.is_some() { error.after_a_lost_try() } else { error }),
            }
            loop {
                if !retries.pause().await {
                    return Err(lost.unwrap_or(error));
                }
                if base.is_none() {
                    base = self.clock_at(begun).await.ok();
                }
                if base.is_some() {
                    break;
                }
            }
        }
    }

    /// Whether the next call should look whether the number of pending entries is limited.
    pub(super) fn looks_for_limit(&self) -> bool {
        let Known { is_limited, looked_at } = *self.known();
        is_limited || looked_at.is_none_or(|at| at.elapsed() >= LOOK)
    }

    /// A call has looked.
    pub(super) fn on_limit(&self, is_limited: bool) {
        *self.known() = Known { is_limited, looked_at: Some(Instant::now()) };
    }

    /// The key that has the limit.
    pub(super) fn limit_key(&self) -> &Bytes {
        &self.limit.key
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.limit.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reply to the only try has arrived.
    fn on_spent(&self, receipt: Bytes) {
        let mut spent = self.spent();
        spent.receipts.push(receipt);
        if spent.receipts.len() >= DELETE {
            self.spawn(self.clone().delete(std::mem::take(&mut spent.receipts)));
        } else if !std::mem::replace(&mut spent.waiting, true) {
            let store = self.clone();
            self.spawn(async move {
                let _ = timeout(DELETE_AFTER, store.at_stop.stop.cancelled()).await;
                let receipts = {
                    let mut spent = store.spent();
                    spent.waiting = false;
                    std::mem::take(&mut spent.receipts)
                };
                store.delete(receipts).await;
            });
        }
    }

    async fn delete(self, receipts: Vec<Bytes>) {
        if !receipts.is_empty() {
            // If this command is lost, the server deletes them later by itself.
            let _ = self.conn.call(&Command::new("DEL").args(receipts)).await;
        }
    }

    /// Spawns a task that a shutdown waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.at_stop.tasks.spawn_on(task, self.conn.runtime());
    }

    /// What the server's clock showed at `instant`, at the latest; epoch ms.
    async fn clock_at(&self, instant: Instant) -> Result<u64, OpError> {
        // The wait for a connection is not part of the round trip.
        self.conn.connected().await?;
        let asked = instant.elapsed().as_micros() as u64;
        let now = u64::try_from(self.conn.time().await?).unwrap_or(0);
        Ok(now.saturating_sub(asked).div_ceil(1000))
    }
}

/// What the part of a reply says that tells whether the queue has a limit. `None`: the call has not looked.
pub(super) fn is_limited(part: Reply) -> Option<bool> {
    part.into_int().ok().map(|is_limited| is_limited > 0)
}

/// The refusal of a call, with the names of the keys or commands that it is about.
async fn explained(call: &Call, conn: &Conn, refusal: OpError, deadline: Instant) -> OpError {
    match refusal {
        OpError::Server(why) => OpError::Server(Box::pin(call.explained(conn, why, deadline)).await),
        refusal => refusal,
    }
}

/// Why an offer was refused, if it was.
fn refusal(reply: &[Reply]) -> Option<OpError> {
    let [Reply::Nil, Reply::Bytes(why), Reply::Int(undone)] = reply else { return None };
    let why = String::from_utf8_lossy(why).into_owned();
    if let Some(full) = OpError::full(&why) {
        return Some(full);
    }
    Some(if *undone == 1 { OpError::Server(why) } else { OpError::Unknown(why.into()) })
}
