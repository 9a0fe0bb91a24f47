//! Messages that are acknowledged: receivers and workers of redelay, beside BullMQ, asynq and apalis-redis.
//! One measurement a file.

pub(crate) mod beside_java;
pub(crate) mod delayed;
pub(crate) mod end_to_end;
pub(crate) mod heartbeats;
pub(crate) mod idle_receivers;
pub(crate) mod idle_workers;
pub(crate) mod memory;
pub(crate) mod receive;
pub(crate) mod recovery;
pub(crate) mod retries;

use std::slice::from_mut;
use std::time::Duration;

use crate::bench::{Bench, Workers};
use crate::contest::columns;
use crate::repeat::Outcome;
use crate::system::System;
use crate::warm_up::warm_up_receiving;
use crate::worker::{Worker, wait_for};

const QUEUE: &str = "messages";
/// The column of redelay, where there is only one.
const WORKER: &str = "redelay";

/// Those that are measured: redelay, and the peers that are there.
fn all_systems(bench: &Bench) -> Vec<System> {
    [System::Redelay].into_iter().chain(bench.peers.iter().copied()).collect()
}

/// Those that are measured where due times and retries need milliseconds.
fn systems(bench: &Bench) -> Vec<System> {
    all_systems(bench).into_iter().filter(|system| system.has_milliseconds()).collect()
}

/// A warm process of each system.
fn workers(bench: &mut Bench) -> Workers {
    let mut workers = Workers::new(|bench, system| {
        let mut worker = bench.start_workers(system, 1, 1)?.remove(0);
        warm_up_receiving(&mut worker, QUEUE, bench.effort.taken)?;
        Ok(worker)
    });
    workers.start(bench, all_systems(bench));
    workers
}

/// Waits until a worker has handled this number of messages.
fn wait(worker: &mut Worker, count: u64, patience: Duration) -> Outcome<()> {
    match wait_for(from_mut(worker), count, patience)? {
        handled if handled >= count => Ok(()),
        handled => Err(worker
            .failure(&format!("has handled {handled} of {count} messages, and no more after {patience:?}"))),
    }
}
