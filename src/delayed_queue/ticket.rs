//! What an offer returns: enough to find the entry again.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::wire::keys::Keys;
use crate::wire::time;

/// Stands for one pending payload: with it, [`cancel`](crate::DelayedQueue::cancel) and
/// [`reschedule`](crate::DelayedQueue::reschedule) find the entry without reading through the list. It
/// serialises, so that another process can use it; it holds the whole entry, payload included.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::{Client, Ticket, codec};
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::String));
/// let ticket = jobs.offer(&"job 1".to_owned(), Duration::from_secs(60)).await?;
/// let stored = serde_json::to_string(&ticket)?;
/// // … later, elsewhere:
/// let ticket: Ticket = serde_json::from_str(&stored)?;
/// let was_pending = jobs.cancel(&ticket).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ticket {
    target: String,
    entry: Bytes,
    due: u64,
}

impl Ticket {
    pub(super) fn new(keys: &Keys, entry: Bytes, due: u64) -> Self {
        Self { target: String::from_utf8_lossy(keys.target()).into_owned(), entry, due }
    }

    /// When the payload was to become ready, by the server's clock, when the ticket was issued.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.delayed_queue(&client.blocking_queue("cancel", codec::Long));
    /// # let reminders = client.delayed_queue(&client.blocking_queue("remind", codec::Long));
    /// let ticket = orders.offer(&7, Duration::from_secs(1800)).await?;
    /// // 5 minutes earlier, whatever the clocks of the two machines say.
    /// reminders.offer_at(&7, ticket.due() - Duration::from_secs(300)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn due(&self) -> SystemTime {
        time::from_epoch_millis(self.due)
    }

    pub(super) fn entry(&self) -> &Bytes {
        &self.entry
    }

    pub(super) fn target(&self) -> &str {
        &self.target
    }

    pub(super) fn is_of(&self, keys: &Keys) -> bool {
        self.target.as_bytes() == keys.target()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The entry holds the payload, which has no place in a log.
        f.debug_struct("Ticket").field("target", &self.target).field("due", &self.due).finish_non_exhaustive()
    }
}
