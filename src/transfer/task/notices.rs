//! What announcements say: when the head of a queue is due, and what a peer has transferred.

use tokio::time::Instant;

use super::Task;
use crate::announcements;
use crate::conn::Notice;
use crate::transfer::schedule::QueueId;
use crate::wire::keys;

impl Task {
    pub(super) fn on_notice(&mut self, notice: Notice) {
        let now = Instant::now();
        match notice {
            Notice::Confirmed(channels) => {
                // What was announced before is not known.
                for id in channels.iter().flat_map(|channel| self.announcements.of(channel)) {
                    self.schedule.sweep(id, now);
                }
            }
            Notice::Refused(_) => {}
            Notice::Missed => {
                for id in self.queues.keys() {
                    self.schedule.sweep(*id, now);
                }
            }
            Notice::Message { channel, payload } => {
                #[cfg(all(test, workspace))]
                {
                    assert_ne!(payload, super::tests::PANIC, "a panic on purpose");
                    self.fault = Some(payload.clone());
                }
                if channel.starts_with(keys::MOVED) {
                    let Some((peer, clock, due)) = announcements::moved(&payload) else { return };
                    if peer.as_bytes() == self.client_id {
                        return;
                    }
                    let comes_first = peer.as_bytes() < &self.client_id[..];
                    let head = due.and_then(|due| self.clock_of(channel.as_bytes()).instant_of(due));
                    for id in self.announcements.of(&channel) {
                        self.schedule.on_peer_transfer(id, now, head, clock, comes_first);
                        if let Some(queue) = self.queues.get_mut(&id) {
                            queue.expected = due;
                        }
                    }
                } else {
                    let due = announcements::due(&payload);
                    for id in self.announcements.of(&channel).collect::<Vec<_>>() {
                        self.expect(id, due);
                    }
                    let Some(at) = self.clock_of(channel.as_bytes()).instant_of(due) else { return };
                    for id in self.announcements.of(&channel) {
                        self.schedule.announced(id, at);
                    }
                }
            }
        }
    }

    /// From now on the transfers of peers can postpone the wake-ups of this queue.
    pub(super) fn follow_peers(&mut self, id: QueueId) {
        if let Some(queue) = self.queues.get_mut(&id).filter(|queue| !queue.follows_peers) {
            queue.follows_peers = true;
            self.announcements.join(queue.keys.moved(), id);
        }
    }
}
