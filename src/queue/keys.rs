//! `KeyNames`: the names of a queue's keys, for operators.

use bytes::Bytes;

use crate::wire::keys::Keys;

/// The names of a queue's keys on the server, after any mapping of names, for use in `redis-cli`.
///
/// [`BlockingQueue::keys`](crate::BlockingQueue::keys) and [`DelayedQueue::keys`](crate::DelayedQueue::keys)
/// return them. `docs/keys.md` describes the content of each key.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # fn example(client: &Client) {
/// let orders = client.blocking_queue("orders", codec::Long);
/// assert_eq!(orders.keys().target, "orders");
/// assert_eq!(orders.keys().timeout_set, "redisson_delay_queue_timeout:{orders}");
/// assert_eq!(orders.keys().popped, "redelay:popped:{orders}");
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KeyNames {
    /// The list that takers read.
    pub target: String,
    /// The sorted set of pending entries, by due time.
    pub timeout_set: String,
    /// The list of pending entries, in the order of the offers.
    pub ordered_list: String,
    /// The pub/sub channel of announcements.
    pub channel: String,
    /// The list of malformed entries, each behind its score.
    pub quarantine: String,
    /// The hash of copies of popped payloads, which [`UnconfirmedPops`](crate::admin::UnconfirmedPops) reads.
    pub popped: String,
}

impl KeyNames {
    pub(crate) fn new(keys: &Keys) -> Self {
        let text = |key: &Bytes| String::from_utf8_lossy(key).into_owned();
        Self {
            target: text(keys.target()),
            timeout_set: text(keys.timeout_set()),
            ordered_list: text(keys.ordered_list()),
            channel: text(keys.channel()),
            quarantine: text(keys.quarantine()),
            popped: text(keys.claims()),
        }
    }
}
