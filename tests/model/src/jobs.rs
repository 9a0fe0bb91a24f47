//! The life of the id of a job that holds it until it is done (`until_done`).
//!
//! * [`server`]: the keys that have to do with it. The scripts are steps on them: [`offers`] and what callers
//!   ask of a job, [`receiving`] and what operators do, `notes` of what travels with payloads, the `sweep`,
//!   and `removals` that forget jobs. A test compares them with the real scripts on real servers.
//! * [`protocol`]: what these steps do, so that the checks show why.
//! * [`model`]: what happens to jobs, within bounds.
//! * [`properties`]: what must hold in every state.
//!
//! The unit of time is longer than a lease, and than what clocks differ by. A failover that loses the last
//! writes takes the server back to a state that was visited before; what receivers then settle is not held,
//! and changes nothing. So it is no event here.

pub mod model;
mod notes;
pub mod offers;
pub mod properties;
pub mod protocol;
pub mod receiving;
mod removals;
pub mod server;
mod sweep;
