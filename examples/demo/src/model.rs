//! All that the demo shows, and how each event changes it. Pure: times are given, as durations since the demo
//! began.

use std::collections::VecDeque;
use std::time::Duration;

use crate::consumer::{ATTEMPTS, LEASE, RETRY_AFTER};
use crate::event::{Event, Queue};
use crate::lateness::Lateness;
use crate::ledger::{Arrival, Finish, Hand, Ledger, Stage};
use crate::order::{Order, Side, Taker, letter, ordinal};

pub(crate) const CONSUMERS: usize = 3;

/// How many finished orders are kept for the picture.
const RECENT: usize = 64;

/// A note is read for this long.
const NOTE: Duration = Duration::from_secs(4);

/// Without a key pressed for this long, no more orders are offered, and the demo ends when all are done.
pub(crate) const UNATTENDED: Duration = Duration::from_secs(12);

/// After the last due time the demo waits this long for a server that is away, then ends all the same.
const PATIENCE: Duration = Duration::from_secs(20);

/// An order that is done with.
#[derive(Debug, PartialEq)]
pub(crate) struct Past {
    pub(crate) order: Order,
    pub(crate) offered_by: Side,
    pub(crate) how: How,
}

#[derive(Debug, PartialEq)]
pub(crate) enum How {
    Done { by: Taker, attempt: u32, finish: Finish },
    Cancelled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Consumer {
    #[default]
    Starting,
    Alive,
    Gone,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) ledger: Ledger,
    pub(crate) lateness: Lateness,
    /// The youngest first.
    pub(crate) recent: VecDeque<Past>,
    pub(crate) note: Option<(Duration, String)>,
    /// What the server has said last, and when it was asked.
    pub(crate) queue: Queue,
    pub(crate) asked: Duration,
    /// Orders that were promised, are not done, and are not on the server.
    pub(crate) lost: usize,
    pub(crate) consumers: [Consumer; CONSUMERS],
    pub(crate) kills: usize,
    /// Orders that killed consumers had in hand.
    pub(crate) orphans: usize,
    pub(crate) failures: usize,
    /// The order whose handler is to fail, now or when it begins again.
    doomed: Option<u32>,
    pub(crate) connections_killed: usize,
    pub(crate) paused: bool,
    /// The dead letters are shown instead of the lists.
    pub(crate) dead_letters_only: bool,
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
            Event::Begun { id, by, attempt } => self.begun(id, by, attempt, at),
            Event::Done { id, by } => self.done(id, by),
            Event::Failed { id } => self.failed(id, at),
            Event::ConsumerStarted(number) => self.consumers[number] = Consumer::Alive,
            Event::ConsumerGone { number, killed } => self.gone(number, killed, at),
            Event::ConnectionsKilled(n) => {
                self.connections_killed += n;
                self.say(at, format!("{n} connections cut: redelay connects again"));
            }
            Event::Queue(queue) => {
                self.lost = self.ledger.lost(at, queue.sizes.held());
                (self.queue, self.asked) = (queue, at);
            }
            Event::Disconnected => self.queue.connected = false,
            Event::Note(text) => self.say(at, text),
        }
    }

    fn became(&mut self, id: u32, stage: Stage, at: Duration) {
        self.ledger.becomes(id, stage);
        if stage == Stage::Cancelled {
            self.remember(id, How::Cancelled);
            self.say(at, format!("order {id} is cancelled: gone from Redis"));
        }
    }

    fn begun(&mut self, id: u32, by: Taker, attempt: u32, at: Duration) {
        match self.ledger.begun(id, by, attempt, at) {
            Arrival::First(Some(late)) => self.lateness.add(late),
            Arrival::Again { from: Hand::Orphaned(dead) } => {
                let nth = ordinal(attempt);
                self.say(at, format!("{dead} died with order {id}: {by} has it, {nth} attempt"));
            }
            Arrival::First(None) | Arrival::Again { .. } | Arrival::Unwanted => {}
        }
    }

    fn done(&mut self, id: u32, by: Taker) {
        let finish = self.ledger.done(id, by);
        let attempt = self.ledger.get(id).map_or(1, |entry| entry.attempt);
        self.remember(id, How::Done { by, attempt, finish });
    }

    fn failed(&mut self, id: u32, at: Duration) {
        let failed = self.ledger.failed(id);
        self.failures += 1;
        let attempt = self.ledger.get(id).map_or(1, |entry| entry.attempt);
        let next = if failed < ATTEMPTS {
            format!("failed: {} attempt in {} s", ordinal(attempt + 1), RETRY_AFTER.as_secs())
        } else {
            format!("failed {failed} times: a dead letter (d)")
        };
        self.say(at, format!("order {id} {next}"));
    }

    fn gone(&mut self, number: usize, killed: bool, at: Duration) {
        self.consumers[number] = Consumer::Gone;
        let orphans = self.ledger.gone(Taker::Consumer(number)).len();
        self.orphans += orphans;
        self.kills += usize::from(killed);
        let (letter, lease) = (letter(number), LEASE.as_secs());
        if killed {
            self.say(at, format!("kill -9: {letter} held {orphans}; others get them in {lease} s"));
        }
    }

    fn remember(&mut self, id: u32, how: How) {
        if let Some(entry) = self.ledger.get(id) {
            self.recent.push_front(Past { order: entry.order.clone(), offered_by: entry.by, how });
            self.recent.truncate(RECENT);
        }
    }

    /// Up to 45 characters, for a narrow terminal.
    fn say(&mut self, at: Duration, text: String) {
        self.note = Some((at, text));
    }

    /// Somebody is at the keyboard: more orders are offered.
    pub(crate) fn attended(&mut self, at: Duration) {
        self.offers_until = at + UNATTENDED;
        self.through = None;
    }

    /// Fails a handler: see [`Model::take_doomed`].
    pub(crate) fn doom(&mut self, at: Duration) {
        self.doomed = self.ledger.next_to_fail();
        self.say(
            at,
            match self.doomed {
                Some(id) => format!("order {id} is to fail"),
                None => "no handler runs now".to_owned(),
            },
        );
    }

    /// The order whose handler is to fail, once a consumer has it, and the consumer.
    pub(crate) fn take_doomed(&mut self) -> Option<(u32, usize)> {
        let doomed = self.doomed?;
        let found = self.ledger.in_hand().into_iter().find(|(id, _)| *id == doomed)?;
        self.doomed = None;
        Some(found)
    }

    /// Called often; [`Phase::Over`] when there is nothing more to see.
    pub(crate) fn phase(&mut self, at: Duration) -> Phase {
        if self.paused {
            return Phase::Paused;
        }
        if at < self.offers_until {
            return Phase::Offering;
        }
        // The lost ones and the dead letters are not waited for. For half a second more nothing should
        // arrive.
        let open = self.ledger.open().len();
        let through = open <= self.lost + self.queue.sizes.dead;
        let since = *self.through.get_or_insert(at);
        if !through {
            self.through = None;
        }
        let patient = at < self.ledger.last_due().max(self.offers_until) + PATIENCE;
        if patient && (!through || at < since + Duration::from_millis(500)) {
            return Phase::Draining;
        }
        // Without a server nobody knows better.
        self.lost = self.lost.max(open.saturating_sub(self.queue.sizes.dead));
        Phase::Over
    }

    /// The promise holds, as far as one can see: nothing is lost. Twice is allowed.
    pub(crate) fn kept(&self) -> bool {
        self.lost == 0 && self.ledger.counts().unwanted == 0
    }

    /// What just happened.
    pub(crate) fn current_note(&self, now: Duration) -> Option<&str> {
        self.note.as_ref().filter(|(at, _)| now < *at + NOTE).map(|(_, text)| text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Sizes;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn order(id: u32) -> Order {
        Order { id, item: "tea".into() }
    }

    const A: Taker = Taker::Consumer(0);
    const B: Taker = Taker::Consumer(1);

    /// Order 1, due after a second.
    fn with_one() -> Model {
        let mut model = Model::new();
        model.apply(secs(0), Event::Offering { order: order(1), by: Side::Rust, due: secs(1) });
        model.apply(secs(0), Event::Became { id: 1, stage: Stage::Stored });
        model
    }

    fn queue(sizes: Sizes) -> Event {
        Event::Queue(Queue { connected: true, sizes, ..Queue::default() })
    }

    #[test]
    fn it_ends_by_itself_when_all_are_done() {
        let mut model = with_one();
        assert_eq!(model.phase(secs(1)), Phase::Offering);
        model.apply(secs(13), Event::Begun { id: 1, by: A, attempt: 1 });
        assert_eq!(model.phase(secs(13)), Phase::Draining, "order 1 is open");
        model.apply(secs(13), Event::Done { id: 1, by: A });
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
    fn a_killed_consumer_loses_nothing() {
        let mut model = with_one();
        model.apply(secs(1), Event::ConsumerStarted(0));
        model.apply(secs(1), Event::Begun { id: 1, by: A, attempt: 1 });
        model.apply(secs(1), Event::ConsumerGone { number: 0, killed: true });
        assert_eq!((model.kills, model.orphans, model.consumers[0]), (1, 1, Consumer::Gone));
        assert_eq!(model.current_note(secs(2)), Some("kill -9: A held 1; others get them in 3 s"));
        model.apply(secs(4), queue(Sizes { in_flight: 1, ..Sizes::default() }));
        assert_eq!(model.lost, 0, "it has a lease");
        model.apply(secs(4), Event::Begun { id: 1, by: B, attempt: 2 });
        assert_eq!(model.current_note(secs(5)), Some("A died with order 1: B has it, 2nd attempt"));
        model.apply(secs(5), Event::Done { id: 1, by: B });
        model.apply(secs(9), queue(Sizes::default()));
        assert_eq!((model.lost, model.ledger.counts().twice), (0, 0));
    }

    #[test]
    fn a_lost_order_is_counted_and_not_waited_for() {
        let mut model = with_one();
        model.apply(secs(1), Event::Begun { id: 1, by: A, attempt: 1 });
        model.apply(secs(2), queue(Sizes::default()));
        assert!(model.kept(), "it may still come");
        model.apply(secs(12), queue(Sizes::default()));
        assert_eq!((model.lost, model.kept()), (1, false));
        assert_eq!(model.phase(secs(13)), Phase::Draining);
        assert_eq!(model.phase(secs(14)), Phase::Over);
    }

    #[test]
    fn a_dead_letter_is_not_lost_and_not_waited_for() {
        let mut model = with_one();
        for attempt in 1..=ATTEMPTS {
            if attempt > 1 {
                model.doom(secs(3));
                assert_eq!(model.take_doomed(), None, "it waits");
            }
            model.apply(secs(3), Event::Begun { id: 1, by: A, attempt });
            if attempt == 1 {
                model.doom(secs(3));
            }
            assert_eq!((model.take_doomed(), model.take_doomed()), (Some((1, 0)), None));
            model.apply(secs(3), Event::Failed { id: 1 });
        }
        assert_eq!(model.current_note(secs(3)), Some("order 1 failed 3 times: a dead letter (d)"));
        model.apply(secs(12), queue(Sizes { dead: 1, ..Sizes::default() }));
        assert_eq!((model.phase(secs(12)), model.phase(secs(13))), (Phase::Draining, Phase::Over));
        assert_eq!((model.lost, model.failures), (0, 3));
    }

    #[test]
    fn what_the_server_still_has_is_waited_for_but_not_for_ever() {
        let mut model = with_one();
        model.apply(secs(12), queue(Sizes { ready: 1, ..Sizes::default() }));
        assert_eq!((model.lost, model.phase(secs(20))), (0, Phase::Draining));
        assert_eq!((model.phase(secs(32)), model.lost), (Phase::Over, 1));
    }

    #[test]
    fn recent_is_what_was_done_and_what_was_cancelled() {
        let mut model = with_one();
        model.apply(secs(1), Event::Begun { id: 1, by: Taker::Java, attempt: 1 });
        model.apply(secs(1), Event::Done { id: 1, by: Taker::Java });
        model.apply(secs(1), Event::Offering { order: order(2), by: Side::Java, due: secs(5) });
        model.apply(secs(2), Event::Became { id: 2, stage: Stage::Cancelled });
        let ids: Vec<_> = model.recent.iter().map(|past| (past.order.id, past.offered_by)).collect();
        assert_eq!(ids, [(2, Side::Java), (1, Side::Rust)]);
        assert_eq!(model.current_note(secs(3)), Some("order 2 is cancelled: gone from Redis"));
        assert_eq!(model.current_note(secs(30)), None);
    }
}
