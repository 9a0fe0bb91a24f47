//! Faults, and their effects on payloads and callers: every acknowledged payload is delivered once, and no process
//! needs a restart.
//!
//! A `ledger` compares what was promised with what arrived. A `workload` runs clients that offer, take and record.

mod cancellation;
mod dropping;
mod early_polls;
mod give_back;
mod ledger;
mod lost_replies;
mod many_takers;
mod never_stuck;
mod offered_once;
mod processes;
mod receivers;
mod runtimes;
mod server_clock;
mod shutdown;
mod stop_taking;
mod under_load;
mod workload;
