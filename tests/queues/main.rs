//! What each operation of a queue does, on a real server, and what it costs the server.

mod announced;
mod long_lists;
mod offer_batches;
mod operations;
mod quarantine;
mod scale;
mod stats;
mod transfer_script;
