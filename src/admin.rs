//! What an operator sees and changes: dead letters, messages that are not settled, pops whose arrival no
//! client has confirmed, malformed entries. And [`Pump`], which transfers for queues that others own.
//!
//! The other handles have the same verbs, where these have a meaning; so has
//! [`Schedules`](crate::delayed_queue::Schedules). None of them keeps anything: each call asks the server.
//!
//! | handle | a row, and its key | read in the order of | `len`, `is_empty` | `read` | `requeue`, `requeue_all` | `remove`, `remove_all` |
//! |---|---|---|---|---|---|---|
//! | [`DeadLetters`] | [`DeadLetter`], its `id` | their deaths | yes | yes | yes | yes |
//! | [`Unsettled`] | [`UnsettledMessage`], its `id` | two orders: ids, due times | yes | [`in_flight`](Unsettled::in_flight), [`waiting`](Unsettled::waiting) | yes | yes |
//! | [`UnconfirmedPops`] | [`UnconfirmedPop`], its `id` | the pops | yes | yes | yes | yes |
//! | [`Quarantine`] | [`Quarantined`], which is its own key | their arrivals | yes | yes | yes | yes |
//! | [`Schedules`](crate::delayed_queue::Schedules) | [`StoredSchedule`](crate::delayed_queue::StoredSchedule), its `name` | names | yes | yes | no: [`trigger`](crate::delayed_queue::Schedule::trigger) | yes |
//!
//! * `len()` and `is_empty()` count what all clients have left there.
//! * `read(after, max)` reads up to `max` rows: from the first one on, or behind the row that was read last.
//! * `requeue(key)` and `remove(key)` change one row, and say whether it was there.
//! * `requeue_all(max)` and `remove_all(max)` change up to `max` rows, the first ones first, and say how
//!   many. Rows that come meanwhile may stay.
//!
//! # Reading in pages
//! `after` is a row and not a position: a row that stays is returned once, whatever is requeued, removed or
//! added meanwhile, in front of it or behind it, and although the row `after` itself has left. A row
//! serves as the cursor: it has everything that is needed to find its place, and the reader has it already.
//! (A schedule that cannot be read is an
//! error instead of a row, so its name is the cursor.) Each order is one in which nothing moves while it
//! stays.
//!
//! The quarantine is a list, in which an entry has no other place than that between its neighbours. A row
//! remembers some of those around it. If all of these have left, too, the reading begins again at the first
//! entry. Of equal entries, one may be returned again if others have left.
//!
//! A page whose end is to travel as text, in a link for example, comes from an
//! [`Inspector`](crate::inspector::Inspector): its places have a text.
//!
//! # Serde
//! Rows implement `Serialize`. A point in time is a whole number, epoch milliseconds. A duration is a number
//! of milliseconds with decimals, and its field ends in `_ms`. A payload is bytes, which are an array of
//! numbers in JSON: it is what a codec wrote, and need not be text. Ids are text. `Debug` prints no payload,
//! so a row may be logged; what serde writes may not.

mod dead_letters;
mod pump;
mod quarantine;
mod unconfirmed_pops;
mod unsettled;

pub use crate::receiver::MessageId;
pub use crate::wire::letter::DeadReason;
pub use dead_letters::{DeadLetter, DeadLetters};
pub use pump::Pump;
pub use quarantine::{Quarantine, Quarantined};
pub use unconfirmed_pops::{PopKind, UnconfirmedPop, UnconfirmedPops};
pub use unsettled::{Unsettled, UnsettledMessage};
