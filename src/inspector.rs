//! `Inspector`: looks into the queues of a server, of Redisson and of redelay, with plain commands that only
//! read.
//!
//! `find` finds queues, `overview` counts what is in them, and a file for each kind of row reads what is
//! there: `pending`, `entries`, `ready`, `messages`, `pops`, `quarantine`, `schedules`. They read through
//! `look`, and go on behind a [`Cursor`]. `keys`, `details`, `orphans` and `leftovers` read what is wrong;
//! `server`, `server_settings` and `sentinels` are of the servers.

mod cursor;
mod details;
mod due;
mod entries;
mod find;
mod keys;
mod leftovers;
mod list;
mod look;
mod messages;
mod orphans;
mod overview;
mod page_size;
mod pending;
mod pops;
mod quarantine;
mod ready;
mod scan;
mod schedules;
mod sentinels;
mod server;
mod server_settings;
mod sorted;
mod unknown;
mod watch;

use std::fmt;
use std::sync::Arc;

pub use cursor::Cursor;
pub use details::Details;
pub use due::DueCount;
pub use entries::ListedEntry;
pub use find::Queues;
pub use find::glob::matches;
pub use keys::QueueKey;
pub use leftovers::{Leftover, LeftoverKind};
pub use orphans::Orphans;
pub use overview::Overview;
pub use pending::PendingEntry;
pub use ready::ReadyPayload;
pub use sentinels::Sentinel;
pub use server::{Role, Server};
pub use server_settings::{ClusterState, ServerSettings};
pub use unknown::Unknown;
pub use watch::{Happening, Happenings};

use crate::DelayedQueue;
use crate::conn::Conn;
use crate::engine::Engine;

/// Looks into the queues of a server, those of Java services included.
/// [`Client::inspector`](crate::Client::inspector) returns it.
///
/// # Looking never hurts
/// An inspector sends plain commands that only read, and no scripts. So it works for a user who may only read
/// (`+@read +scan +time +info +type +pubsub`), and on a replica. A command reads at most 1,000 entries, and
/// about 1 MB: how many follows from the lengths of those before. None is slower in a longer queue,
/// except for finding the start of the page.
///
/// A client that is used for nothing else sends nothing that writes.
///
/// # Names
/// A name is that of the queue on the server, as [`queues`](Self::queues) finds it: not mapped by
/// [`ClientBuilder::name_mapper`](crate::client::ClientBuilder::name_mapper), and not necessarily text.
///
/// # Pages
/// Each method that reads entries takes a [`Cursor`] to go on behind, and a limit. What does not move is
/// returned once, whatever others take or offer meanwhile. A call returns no more entries of a list than
/// there were when it began, and of a sorted set no more than twice as many.
///
/// # Unknown is not zero
/// A server may refuse a question: the user lacks a permission, or a key has another type. [`Overview`] and
/// [`Server`] then have `None` there, and say why in `unknown`.
///
/// # Examples
/// ```no_run
/// use futures::TryStreamExt;
///
/// # async fn example() -> redelay::Result<()> {
/// let client = redelay::Client::connect("redis://localhost").await?;
/// let inspector = client.inspector();
/// let names: Vec<_> = inspector.queues("*").try_collect().await?;
/// for queue in inspector.overview(&names).await? {
///     println!("{:?}: {:?} pending, {:?} overdue", queue.name, queue.pending, queue.overdue);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Inspector {
    conn: Conn,
    /// The connections end with it.
    engine: Arc<Engine>,
}

impl Inspector {
    pub(crate) fn new(engine: Arc<Engine>, conn: Conn) -> Self {
        Self { conn, engine }
    }
}

/// The inspector of the queue's client.
///
/// # Examples
/// ```no_run
/// # use redelay::inspector::Inspector;
/// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
/// let next = Inspector::from(&orders).pending(orders.keys().target, None, 10).await?;
/// # Ok(())
/// # }
/// ```
impl<T: 'static> From<&DelayedQueue<T>> for Inspector {
    fn from(queue: &DelayedQueue<T>) -> Self {
        let queue = queue.queue_arc();
        let conn = queue.engine.conn.with_timeout(queue.conn.command_timeout());
        Self::new(queue.engine.clone(), conn)
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").field("server", &self.conn.server()).finish_non_exhaustive()
    }
}
