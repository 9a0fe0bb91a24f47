//! A model of the protocol between clients and server, small enough to be checked exhaustively.
//!
//! * [`protocol`]: what clients and the server say to each other, and the variants of the protocol.
//! * [`server`]: the keys of a queue, and the scripts as steps on them. A test compares them with the real
//!   scripts on real servers.
//! * [`client`]: what a client does between the calls.
//! * [`model`]: what users do, and what goes wrong, within bounds.
//! * [`state`]: the state of everything, and which states are the same.
//! * [`properties`]: what must hold in every state.
//! * [`receiving`]: the same rooms for receivers.
//! * [`jobs`]: the same for ids that are held until their jobs are done.

#[path = "../../../src/pacing.rs"]
#[allow(dead_code)]
mod pacing;
/// The modules of redelay that the model runs, compiled into it. They contain their unit tests.
#[path = "../../../src"]
#[allow(dead_code, unreachable_pub)]
mod real {
    pub(crate) mod receiving {
        pub(crate) mod plan;
    }
}

pub mod client;
pub mod jobs;
pub mod model;
pub mod properties;
pub mod protocol;
pub mod receiving;
pub mod server;
pub mod state;
