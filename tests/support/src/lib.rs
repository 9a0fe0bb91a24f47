//! Shared by the integration tests: the queues of a new client, the names of their keys, waiting with a
//! deadline, a recorder of the events of a single test, and Redisson as a process.
//!
//! Servers, proxies and `until` are in `redelay-fixture`.

mod alone;
mod backlog;
mod clients;
mod keys;
mod mover;
mod part;
pub mod peer;
mod recorded;
pub mod resp;
mod script;
mod waiting;

pub use alone::{alone, alone_with};
pub use backlog::{fill_at_random, fill_with_lengths};
pub use clients::{
    Address, Queues, builder, number_queues, patient_builder, still_builder, still_number_queues,
    still_text_queues, text, text_queues,
};
pub use keys::{
    CHANNEL, CLAIMS, CONFIRMED, CONTROL, DEAD, DEAD_MESSAGES, INBOX, JOBS, LEASES, MESSAGES, MORE_NOTES,
    MOVED, NOTES, ORDERED_LIST, QUARANTINE, REBUILD, RECEIPTS, RETRIES, SCHEDULE_RECORDS, SCHEDULES, SCRATCH,
    TARGET, TIMEOUT_SET, end_leases, everything, keys, lasting,
};
pub use mover::Mover;
pub use part::{Part, is_soak, part, rounds, seed};
pub use recorded::{Listener, Listening, Recorded};
pub use script::{script, with_numbers};
pub use waiting::{Boxed, HOUR, MINUTE, SELDOM, leap, ms, pending, slowly, soon, unread, woken};
