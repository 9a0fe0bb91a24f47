//! The effects of each queue operation on a real server, and its cost for the server.

mod ack_and_receive;
mod announced;
mod dead_letters;
mod handlers;
mod held_jobs;
mod held_races;
mod inspector;
mod inspector_checks;
mod jobs;
mod leftover_notes;
mod limits;
mod lone_callers;
mod lone_runs;
mod long_lists;
mod long_payloads;
mod many_held_jobs;
mod max_pending;
mod message_costs;
mod offer_batches;
mod operations;
mod operators;
mod overdue;
mod partial_failures;
mod partitions;
mod peers;
mod pumps;
mod quarantine;
mod reads;
mod rebuilt_lists;
mod receiver_costs;
mod receiving;
mod refusals;
mod refused_cancels;
mod removed_jobs;
mod retries;
mod returned;
mod scale;
#[cfg(feature = "cron")]
mod schedules;
#[cfg(feature = "tls")]
mod send;
#[cfg(feature = "tower")]
mod services;
mod several_lists;
mod stats;
mod swept_ids;
#[cfg(feature = "tracing-opentelemetry-0-34")]
mod traces;
mod transfer_script;
mod travelling_jobs;
mod unconfirmed_pops;
mod waiting_receivers;
mod workers;
