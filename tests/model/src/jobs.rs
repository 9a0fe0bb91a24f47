//! The life of the id of a job that holds it until it is done (`until_done`).
//!
//! * [`server`]: the keys that have to do with it, and the scripts as steps on them. A test compares them
//!   with the real scripts on real servers.
//! * [`model`]: what happens to jobs, within bounds.
//! * [`properties`]: what must hold in every state.
//! * `removals`: what redelay removes, and the jobs that it forgets.
//!
//! The unit of time is longer than a lease, and than what clocks differ by. A failover that loses the last
//! writes takes the server back to a state that was visited before; what receivers then settle is not held,
//! and changes nothing. So it is no event here.

pub mod model;
pub mod properties;
mod removals;
pub mod server;
