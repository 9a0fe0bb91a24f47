//! What is known of each server: its clock, the session with it, and the transfers that it has or will have.
//! Pure.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

use super::clock::{ClockReading, ServerClock};
use super::schedule::QueueId;
use crate::conn::ServerId;

/// The most transfers in flight on a server, so that ten thousand sweeps do not delay the callers' commands.
pub(super) const IN_FLIGHT: usize = 64;

pub(super) struct Servers {
    of: HashMap<ServerId, OfServer>,
    /// From where their clocks are measured.
    origin: Instant,
}

struct OfServer {
    clock: ServerClock,
    /// The session, if its queues were swept since it began.
    session: Option<u64>,
    /// How many transfers it has now.
    running: usize,
    /// The queues whose turn has not come.
    waiting: VecDeque<QueueId>,
}

impl Servers {
    pub(super) fn new(now: Instant) -> Self {
        Self { of: HashMap::new(), origin: now }
    }

    fn of(&mut self, server: ServerId) -> &mut OfServer {
        self.of.entry(server).or_insert_with(|| OfServer {
            clock: ServerClock::new(self.origin),
            session: None,
            running: 0,
            waiting: VecDeque::new(),
        })
    }

    pub(super) fn clock(&mut self, server: ServerId) -> &ServerClock {
        &self.of(server).clock
    }

    /// Takes a reading of its clock into account. Returns whether it was set.
    pub(super) fn observe(&mut self, server: ServerId, reading: ClockReading) -> bool {
        self.of(server).clock.observe(reading)
    }

    /// Notes the present session, if none is known: a queue that is opened is swept anyway.
    pub(super) fn first_session(&mut self, server: ServerId, session: u64) {
        self.of(server).session.get_or_insert(session);
    }

    /// Notes the present session. Returns whether another one or none was known.
    pub(super) fn is_new_session(&mut self, server: ServerId, session: u64) -> bool {
        self.of(server).session.replace(session) != Some(session)
    }

    /// Whether a transfer may begin now. If not, the queue waits for its turn.
    pub(super) fn begins(&mut self, server: ServerId, queue: QueueId) -> bool {
        let of_server = self.of(server);
        let begins = of_server.running < IN_FLIGHT;
        if begins {
            of_server.running += 1;
        } else {
            of_server.waiting.push_back(queue);
        }
        begins
    }

    /// A transfer has ended.
    pub(super) fn ended(&mut self, server: ServerId) {
        let of_server = self.of(server);
        of_server.running = of_server.running.saturating_sub(1);
    }

    /// A queue whose turn has come.
    pub(super) fn next_waiting(&mut self, server: ServerId) -> Option<QueueId> {
        let of_server = self.of(server);
        if of_server.running < IN_FLIGHT { of_server.waiting.pop_front() } else { None }
    }

    /// Forgets the servers that have no queues any more.
    pub(super) fn retain(&mut self, has_queues: impl Fn(ServerId) -> bool) {
        self.of.retain(|server, of_server| {
            of_server.running > 0 || !of_server.waiting.is_empty() || has_queues(*server)
        });
    }
}
