//! What goes wrong, and what becomes of payloads and callers then: what was acknowledged is delivered, once, and nothing
//! needs a restart.
//!
//! A `ledger` knows what was promised and what came; a `workload` is clients that offer and take and write it down.

mod cancellation;
mod dropping;
mod early_polls;
mod give_back;
mod ledger;
mod lost_replies;
mod many_takers;
mod never_stuck;
mod processes;
mod runtimes;
mod shutdown;
mod stop_taking;
mod under_load;
mod workload;
