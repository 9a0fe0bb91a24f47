//! All that the demo shows, and how each event changes it. Pure: times are given, as durations since the demo began.

use std::collections::VecDeque;
use std::time::Duration;

use crate::event::{Event, Sizes};
use crate::lateness::Lateness;
use crate::ledger::{Arrival, GRACE, Ledger, Stage};
use crate::order::{Order, Side, Taker, letter};

pub(crate) const CONSUMERS: usize = 3;

/// How many finished orders are kept for the picture.
const RECENT: usize = 64;

/// Without a key pressed for this long, no more orders are offered, and the demo ends when all are taken.
pub(crate) const UNATTENDED: Duration = Duration::from_secs(12);

/// After the last due time the demo waits this long for a server that is away, then ends all the same.
const PATIENCE: Duration = Duration::from_secs(15);

/// An order that is done with.
#[derive(Debug, PartialEq)]
pub(crate) struct Done {
    pub(crate) order: Order,
    pub(crate) offered_by: Side,
    pub(crate) how: How,
}

#[derive(Debug, PartialEq)]
pub(crate) enum How {
    Taken { by: Taker, arrival: Arrival },
    Cancelled,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) ledger: Ledger,
    pub(crate) lateness: Lateness,
    /// The youngest first.
    pub(crate) recent: VecDeque<Done>,
    pub(crate) note: Option<(Duration, String)>,
    pub(crate) sizes: Sizes,
    /// Orders that were promised, did not arrive, and are not on the server.
    pub(crate) lost: usize,
    pub(crate) consumers_gone: [bool; CONSUMERS],
    pub(crate) consumers_killed: usize,
    pub(crate) connections_killed: usize,
    pub(crate) paused: bool,
    /// When offering ends, unless a key is pressed before.
    pub(crate) offers_until: Duration,
    /// Since nothing is open any more.
    through: Option<Duration>,
}

/// Whether the demo goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Offering,
    Paused,
    /// No more offers; the rest becomes due.
    Draining,
    Over,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self { offers_until: UNATTENDED, ..Self::default() }
    }

    pub(crate) fn apply(&mut self, at: Duration, event: Event) {
        match event {
            Event::Offering { order, by, due } => self.ledger.offering(order, by, due),
            Event::Became { id, stage } => self.became(id, stage, at),
            Event::Rescheduled { id, due, sure } => {
                self.ledger.rescheduled(id, due, sure);
                let seconds = due.saturating_sub(at).as_secs_f64();
                self.say(at, format!("order {id} is rescheduled: due in {seconds:.0} s"));
            }
            Event::Taken { id, by } => self.taken(id, by, at),
            Event::ConsumerKilled(n) => {
                self.consumers_gone[n] = true;
                self.consumers_killed += 1;
                self.say(
                    at,
                    format!("consumer {} is killed while it waits: the others take over", letter(n)),
                );
            }
            Event::ConsumerBack(n) => self.consumers_gone[n] = false,
            Event::ConnectionsKilled(n) => {
                self.connections_killed += n;
                self.say(at, format!("{n} connections are killed: redelay reconnects and goes on"));
            }
            Event::Sizes(sizes) => {
                self.sizes = sizes;
                self.lost = self.ledger.lost(at, sizes.ready + sizes.overdue);
            }
            Event::Disconnected => self.sizes.connected = false,
            Event::Note(text) => self.say(at, text),
        }
    }

    fn became(&mut self, id: u32, stage: Stage, at: Duration) {
        self.ledger.becomes(id, stage);
        let Some(entry) = self.ledger.get(id) else { return };
        if stage == Stage::Cancelled {
            let done = Done { order: entry.order.clone(), offered_by: entry.by, how: How::Cancelled };
            self.remember(done);
            self.say(at, format!("order {id} is cancelled: it is gone from Redis"));
        }
    }

    fn taken(&mut self, id: u32, by: Taker, at: Duration) {
        let arrival = self.ledger.taken(id, by, at);
        if let Arrival::Once(Some(late)) = arrival {
            self.lateness.add(late);
        }
        if let Some(entry) = self.ledger.get(id) {
            let how = How::Taken { by, arrival };
            self.remember(Done { order: entry.order.clone(), offered_by: entry.by, how });
        }
    }

    fn remember(&mut self, done: Done) {
        self.recent.push_front(done);
        self.recent.truncate(RECENT);
    }

    fn say(&mut self, at: Duration, text: String) {
        self.note = Some((at, text));
    }

    /// Somebody is at the keyboard: more orders are offered.
    pub(crate) fn attended(&mut self, at: Duration) {
        self.offers_until = at + UNATTENDED;
        self.through = None;
    }

    /// Called often; [`Phase::Over`] when there is nothing more to see.
    pub(crate) fn phase(&mut self, at: Duration) -> Phase {
        if self.paused {
            return Phase::Paused;
        }
        if at < self.offers_until {
            return Phase::Offering;
        }
        // The lost ones are not waited for. For half a second more nothing should arrive.
        let open = self.ledger.open().len();
        let through = open <= self.lost;
        let since = *self.through.get_or_insert(at);
        if !through {
            self.through = None;
        }
        let patient = at < self.ledger.last_due().max(self.offers_until) + PATIENCE;
        if patient && (!through || at < since + Duration::from_millis(500)) {
            return Phase::Draining;
        }
        // Without a server nobody knows better.
        self.lost = self.lost.max(open);
        Phase::Over
    }

    /// The promise holds, as far as one can see.
    pub(crate) fn kept(&self) -> bool {
        let counts = self.ledger.counts();
        self.lost == 0 && counts.twice == 0 && counts.unwanted == 0
    }

    /// What was lost, if anything, is no more than killed connections may cost.
    pub(crate) fn excused(&self) -> bool {
        let counts = self.ledger.counts();
        self.lost <= self.connections_killed && counts.twice == 0 && counts.unwanted == 0
    }

    /// Why something was lost, in one line.
    pub(crate) fn explanation(&self) -> Option<String> {
        (self.lost > 0 && self.connections_killed > 0).then(|| {
            format!(
                "lost {}: Redis had popped it for a connection that was killed just then (at-most-once, as every \
                 BLPOP); acknowledged receive will close this gap",
                self.lost
            )
        })
    }

    /// The note of the moment: what just happened, else the explanation of a loss.
    pub(crate) fn current_note(&self, now: Duration) -> Option<String> {
        let fresh = self.note.as_ref().filter(|(at, _)| now < *at + 2 * GRACE).map(|(_, text)| text.clone());
        fresh.or_else(|| self.explanation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn order(id: u32) -> Order {
        Order { id, item: "tea".into() }
    }

    /// Order 1, due after a second.
    fn with_one() -> Model {
        let mut model = Model::new();
        model.apply(secs(0), Event::Offering { order: order(1), by: Side::Rust, due: secs(1) });
        model.apply(secs(0), Event::Became { id: 1, stage: Stage::Stored });
        model
    }

    #[test]
    fn it_ends_by_itself_when_all_are_taken() {
        let mut model = with_one();
        assert_eq!(model.phase(secs(1)), Phase::Offering);
        assert_eq!(model.phase(secs(13)), Phase::Draining, "order 1 is open");
        model.apply(secs(13), Event::Taken { id: 1, by: Taker::Consumer(0) });
        assert_eq!(model.phase(secs(13)), Phase::Draining, "a moment longer");
        assert_eq!(model.phase(secs(14)), Phase::Over);
        assert!(model.kept());
    }

    #[test]
    fn a_key_keeps_it_going_and_a_pause_holds_it() {
        let mut model = with_one();
        model.attended(secs(11));
        assert_eq!(model.phase(secs(22)), Phase::Offering);
        model.paused = true;
        assert_eq!(model.phase(secs(99)), Phase::Paused);
    }

    #[test]
    fn a_lost_order_is_not_waited_for_and_is_excused_by_a_killed_connection() {
        let mut model = with_one();
        model.apply(secs(1), Event::ConnectionsKilled(3));
        model.apply(secs(2), Event::Sizes(Sizes::default()));
        assert!(model.kept(), "it may still come");
        model.apply(secs(12), Event::Sizes(Sizes { connected: true, ..Sizes::default() }));
        assert_eq!((model.lost, model.kept(), model.excused()), (1, false, true));
        assert!(model.explanation().is_some_and(|text| text.starts_with("lost 1")));
        assert_eq!(model.phase(secs(13)), Phase::Draining);
        assert_eq!(model.phase(secs(14)), Phase::Over);
    }

    #[test]
    fn what_the_server_still_has_is_waited_for_but_not_for_ever() {
        let mut model = with_one();
        model.apply(secs(12), Event::Sizes(Sizes { ready: 1, ..Sizes::default() }));
        assert_eq!((model.lost, model.phase(secs(20))), (0, Phase::Draining));
        assert_eq!((model.phase(secs(28)), model.lost), (Phase::Over, 1));
        assert!(!model.excused());
    }

    #[test]
    fn recent_is_what_came_and_what_was_cancelled() {
        let mut model = with_one();
        model.apply(secs(1), Event::Taken { id: 1, by: Taker::Java });
        model.apply(secs(1), Event::Offering { order: order(2), by: Side::Java, due: secs(5) });
        model.apply(secs(2), Event::Became { id: 2, stage: Stage::Cancelled });
        let ids: Vec<_> = model.recent.iter().map(|done| (done.order.id, done.offered_by)).collect();
        assert_eq!(ids, [(2, Side::Java), (1, Side::Rust)]);
        assert_eq!(
            model.current_note(secs(3)).as_deref(),
            Some("order 2 is cancelled: it is gone from Redis")
        );
        assert_eq!(model.current_note(secs(30)), None);
    }

    #[test]
    fn consumers_come_back() {
        let mut model = Model::new();
        model.apply(secs(1), Event::ConsumerKilled(1));
        assert_eq!((model.consumers_gone, model.consumers_killed), ([false, true, false], 1));
        model.apply(secs(2), Event::ConsumerBack(1));
        assert_eq!(model.consumers_gone, [false; CONSUMERS]);
    }
}
