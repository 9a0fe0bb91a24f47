//! The looks for overdue entries: at which queues, and what follows.

use std::collections::HashMap;

use tokio::time::Instant;

use super::Task;
use crate::telemetry::events;
use crate::transfer::overdue::{self, LookReply, look};
use crate::transfer::schedule::QueueId;

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
        self.looks.retain(|server| of_servers.contains_key(&server));
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
    pub(super) fn on_look(&mut self, look: LookReply) {
        let LookReply { server, reading, queues, overdue } = look;
        let now = Instant::now();
        match overdue {
            Ok(overdue) => {
                self.looks.answered(server, true);
                let clock = reading.map_or(0.0, |reading| reading.micros as f64 / 1e3);
                for (id, queue) in queues.iter().filter_map(|id| Some((id, self.queues.get(id)?))) {
                    queue.counters.overdue(overdue.get(id).map(|due| clock - due));
                }
                if let Some(since) =
                    reading.and_then(|reading| reading.sent.checked_sub(overdue::OVERDUE_AFTER))
                {
                    for id in overdue.into_keys() {
                        if self.schedule.is_idle_since(id, since, now) {
                            self.on_stalled(id, now);
                        }
                    }
                }
            }
            Err(error) => {
                self.conn.counters().failed("check for overdue entries", &error);
                if self.looks.answered(server, false) {
                    events::check_failing(&self.conn.server(), &error);
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
        if self.looks.reports_overdue(now) {
            events::transfer_stalled(&queue.keys);
        }
    }
}
