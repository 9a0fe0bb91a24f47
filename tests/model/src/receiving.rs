//! The protocol of receivers: messages that are claimed, settled, and taken back.
//!
//! * [`protocol`]: what receivers and the server say to each other, and the variants of the protocol.
//! * [`server`]: the keys of receivers, and the scripts as steps on them. A test compares them with the real
//!   scripts on real servers.
//! * [`recovery`]: what is taken back from receivers that are gone.
//! * [`client`]: what a receiver does between the calls.
//! * [`model`]: what users do, and what goes wrong, within bounds.
//! * `acting`: what each action does.
//! * `left_alone`: what happens from a state on if nothing goes wrong any more.
//! * [`state`]: the state of everything, and which states are the same.
//! * [`properties`]: what must hold in every state.
//!
//! The bounds of the checks are in `tests/checked/receivers.rs`. Each check prints how many states it has
//! visited.
//!
//! The unit of time is a quarter of a lease. A receiver that lives extends its leases in each of them, as in
//! reality in each third; nothing else is assumed of time. Within some bounds, a receiver has longer leases,
//! or pauses for longer. Refused commands and announced retries are left out.
//!
//! A script is one step, as on the server, and a receiver sends a call and has it executed in the same step.
//! What happens between the two is a lost call, a late one or another try. Where neither a fault nor a drop
//! is left, the reply arrives in that step, too. Others give back what receivers have left only while none
//! runs, except in the check of an outage of an hour. `state` says which states count as one.

mod acting;
pub mod client;
mod left_alone;
pub mod model;
pub mod properties;
pub mod protocol;
pub mod recovery;
pub mod server;
pub mod state;
