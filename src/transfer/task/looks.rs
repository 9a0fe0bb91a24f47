//! The looks for overdue entries: at which queues, and what follows.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;

use super::Task;
use crate::conn::ServerId;
use crate::telemetry::events;
use crate::transfer::overdue::{self, Look, look};
use crate::transfer::schedule::QueueId;

/// How often a client says that entries were overdue, at most.
const SELDOM: Duration = Duration::from_secs(60);

/// The looks in flight, and what others have found.
#[derive(Default)]
pub(super) struct Looks {
    pub(super) in_flight: FuturesUnordered<BoxFuture<'static, (ServerId, Option<Look>)>>,
    /// Looks at other servers do not wait for one that is silent.
    at: HashMap<ServerId, AtServer>,
    /// When overdue entries were last reported.
    reported: Option<Instant>,
}

#[derive(Default)]
struct AtServer {
    in_flight: usize,
    /// Whether the server refuses looks, which is reported; and whether it has accepted or refused any since
    /// the last pass began.
    is_refused: bool,
    accepted: bool,
    refused: bool,
}

impl Looks {
    /// A pass begins at a server, unless one is in flight there.
    fn begin_pass(&mut self, server: ServerId) -> bool {
        let at = self.at.entry(server).or_default();
        if at.in_flight == 0 {
            at.is_refused &= at.refused || !at.accepted;
            (at.accepted, at.refused) = (false, false);
        }
        at.in_flight == 0
    }

    fn begin(&mut self, server: ServerId, look: impl Future<Output = Option<Look>> + Send + 'static) {
        self.at.entry(server).or_default().in_flight += 1;
        self.in_flight.push(Box::pin(async move { (server, look.await) }));
    }

    pub(super) fn ended(&mut self, server: ServerId) {
        if let Some(at) = self.at.get_mut(&server) {
            at.in_flight -= 1;
        }
    }

    /// A look was accepted, or refused. Returns whether that is to be reported.
    fn answered(&mut self, server: ServerId, accepted: bool) -> bool {
        let at = self.at.entry(server).or_default();
        at.accepted |= accepted;
        at.refused |= !accepted;
        !accepted && !std::mem::replace(&mut at.is_refused, true)
    }
}

impl Task {
    /// Looks at the clocks of all servers, and at some queues of each: those that were looked at longest ago.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        let mut of_servers: HashMap<_, Vec<_>> = HashMap::new();
        for (id, queue) in &self.queues {
            // One that fails is tried again soon. A key that is forbidden hides the others of its call.
            if !self.schedule.is_failing(*id) {
                let server = self.conn.server_of(queue.keys.target());
                of_servers.entry(server).or_default().push((queue.looked, *id));
            }
        }
        self.looks
            .at
            .retain(|server, at| at.in_flight > 0 || at.is_refused || of_servers.contains_key(server));
        for (server, mut queues) in of_servers {
            if !self.looks.begin_pass(server) {
                continue;
            }
            queues.sort_unstable();
            let (mut of_slots, mut count) = (HashMap::<_, Vec<_>>::new(), 0);
            for (_, id) in queues {
                let Some(queue) = self.queues.get_mut(&id) else { continue };
                let slot = self.conn.slot_of(&queue.keys);
                if count < overdue::MOST && (of_slots.contains_key(&slot) || of_slots.len() < overdue::SLOTS)
                {
                    queue.looked = now;
                    count += 1;
                    of_slots.entry(slot).or_default().push((id, queue.keys.clone()));
                }
            }
            for queues in of_slots.into_values() {
                let look = look(self.conn.clone(), server, queues, self.longest_look);
                self.looks.begin(server, look);
            }
        }
    }

    /// Sweeps queues with overdue entries that no client has tried to move, and finds out whether this client
    /// hears their announcements.
    pub(super) fn on_look(&mut self, look: Look) {
        let Look { server, reading, queues, overdue } = look;
        let now = Instant::now();
        match overdue {
            Ok(overdue) => {
                self.looks.answered(server, true);
                if let Some(since) = reading.and_then(|reading| reading.sent.checked_sub(overdue::OVERDUE)) {
                    for id in overdue {
                        if self.schedule.is_idle_since(id, since, now) {
                            self.on_stalled(id, now);
                        }
                    }
                }
            }
            Err(error) => {
                self.conn.counters().failed("look for overdue entries", &error);
                if self.looks.answered(server, false) {
                    events::look_failing(&self.conn.server(), &error);
                    // A transfer of one of them may be refused, too, and say more.
                    queues.iter().for_each(|id| self.schedule.sweep(*id, now));
                }
            }
        }
        if let Some(reading) = reading {
            self.observe(server, reading);
        }
    }

    fn on_stalled(&mut self, id: QueueId, now: Instant) {
        self.schedule.sweep(id, now);
        self.count_stalled(id, now);
        let Some(queue) = self.queues.get(&id) else { return };
        self.announcements.misses(queue.keys.channel(), now);
    }

    /// Counts and reports that entries of a queue were overdue, or may be.
    pub(super) fn count_stalled(&mut self, id: QueueId, now: Instant) {
        let Some(queue) = self.queues.get(&id) else { return };
        queue.counters.transfer_stalled();
        if self.looks.reported.is_none_or(|last| now - last >= SELDOM) {
            self.looks.reported = Some(now);
            events::transfer_stalled(&queue.keys);
        }
    }
}
