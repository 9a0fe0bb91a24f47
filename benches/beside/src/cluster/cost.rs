//! What a message costs, and with how many calls in flight.

use super::place::Place;
use crate::job::Reply;
use crate::repeat::Outcome;
use crate::worker::Worker;

/// To each server: the more commands a server reads and writes at a time, the less each of them costs.
pub(super) const IN_FLIGHT: usize = 64;

/// Of each message, in µs of CPU time.
pub(super) struct Cost {
    pub(super) per_second: f64,
    pub(super) client_micros: f64,
    pub(super) servers_micros: f64,
    pub(super) scripts: f64,
    pub(super) commands: f64,
}

impl Cost {
    pub(super) fn both_micros(&self) -> f64 {
        self.client_micros + self.servers_micros
    }
}

/// What each of the messages costs that this job is about.
pub(super) fn counted(
    place: &mut Place,
    worker: &mut Worker,
    job: impl FnOnce(&mut Worker) -> Outcome<Reply>,
) -> Outcome<Cost> {
    let (client, servers) = (worker.cpu_seconds(), place.counters());
    let reply = job(worker)?;
    let servers = place.since(&servers).divided_by(reply.count as f64);
    Ok(Cost {
        per_second: reply.per_second(),
        client_micros: (worker.cpu_seconds() - client) * 1e6 / reply.count as f64,
        servers_micros: servers.cpu_seconds * 1e6,
        scripts: servers.scripts,
        commands: servers.commands,
    })
}
