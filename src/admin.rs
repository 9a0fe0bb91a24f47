//! What an operator sees and changes: dead letters, messages that are not settled, pops whose arrival nobody has
//! confirmed, malformed entries.

mod dead_letters;
mod quarantine;
mod unconfirmed_pops;
mod unsettled;

pub use dead_letters::{DeadLetter, DeadLetters};
pub use quarantine::{Quarantine, Quarantined};
pub use unconfirmed_pops::{PopKind, UnconfirmedPop, UnconfirmedPops};
pub use unsettled::{Unsettled, UnsettledMessage};
