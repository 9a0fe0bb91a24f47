//! A model of the protocol between clients and server, small enough to be checked exhaustively.
//!
//! * [`server`]: the keys of a queue, and the scripts as steps on them. A test compares them with the real scripts on real
//!   servers.
//! * [`client`]: what a client does between the calls.
//! * [`model`]: what users do, and what goes wrong, within bounds.
//! * [`properties`]: what must hold in every state.

pub mod client;
pub mod model;
pub mod properties;
pub mod server;
