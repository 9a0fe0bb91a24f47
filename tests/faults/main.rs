//! Faults, and their effects on payloads and callers: every acknowledged payload is delivered once, and no
//! process needs a restart.
//!
//! A `ledger` compares what was promised with what arrived, and `deliveries` what receivers did with what the
//! server counted. A `workload` runs clients that offer, take, receive (`consumers`) and record.

mod around_failover;
mod clusters;
mod consumers;
mod crash_matrix;
mod deliveries;
mod dropped_futures;
mod dropping;
mod dying;
mod early_polls;
mod failover_load;
mod fleet;
mod forwarding;
mod give_back;
mod leases;
mod ledger;
mod lone_runs;
mod lost_replies;
mod many_takers;
mod never_stuck;
mod offered_once;
mod on_threads;
mod other_leases;
mod processes;
mod receiver_calls;
mod receivers;
mod roles;
mod runtimes;
mod schedules;
mod sentinels;
mod server_clock;
mod shutdown;
mod signals;
mod slow_links;
mod stop_taking;
mod under_load;
mod workers;
mod workload;
