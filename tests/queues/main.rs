//! The effects of each queue operation on a real server, and its cost for the server.

mod announced;
mod dead_letters;
mod long_lists;
mod offer_batches;
mod operations;
mod quarantine;
mod receiving;
mod returned;
mod scale;
mod stats;
mod transfer_script;
mod unconfirmed_pops;
mod workers;
