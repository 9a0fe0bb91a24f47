//! The schedule compared with a reference that remembers all events.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The state of a queue as seen from outside: the reference that [`TransferSchedule`] is compared with.
#[derive(Default)]
struct Known {
    /// All due times named since the last run began.
    named: BTreeSet<Instant>,
    /// While a run is in flight: the times that had been named when it began.
    named_before_run: Option<BTreeSet<Instant>>,
    /// The next sweep is between these two.
    sweep: Option<(Instant, Instant)>,
    /// A sweep was requested since the last run began.
    sweep_requested: bool,
    /// A peer has transferred something since this client has.
    peer_seen: bool,
    /// A peer that comes first has transferred something since the present run began.
    is_second: bool,
    /// A peer goes first, and for how long.
    stands_down: Option<Range<Duration>>,
    /// When the head was reported last, by the server's clock.
    clock: i64,
    /// The pause after a failure ends between these two.
    not_before: Option<(Instant, Instant)>,
    failures: u32,
}

impl Known {
    /// The earliest and the latest time of its next run.
    fn bounds(&self) -> (Instant, Instant) {
        let (sweep_low, sweep_high) = self.sweep.unwrap();
        let Range { start: least, end: most } =
            self.stands_down.clone().unwrap_or(Duration::ZERO..Duration::ZERO);
        let named = self.named.first().copied();
        let (low, high) = (
            named.map_or(sweep_low, |at| sweep_low.min(at + least)),
            named.map_or(sweep_high, |at| sweep_high.min(at + most)),
        );
        self.not_before.map_or((low, high), |(from, to)| (low.max(from), high.max(to)))
    }
}

/// How long a client waits for a peer that transfers this head.
fn wait_for(head: Option<Instant>, now: Instant) -> Range<Duration> {
    match head {
        Some(head) if is_behind(head, now) => STAND_DOWN_BEHIND,
        Some(head) if head <= now + QUIET => STAND_DOWN_QUIETLY,
        _ => STAND_DOWN,
    }
}

/// An index, modulo the number of the things there are.
type Which = usize;

/// All events of a schedule in `transfer.rs`.
#[derive(Clone, Debug)]
enum Event {
    Open,
    /// The same queue once more.
    OpenAgain(Which),
    Close(Which),
    /// This number of ms from now, or ago.
    Announce(Which, i64),
    Sweep(Which),
    Pass(u64),
    Next,
    /// A run ends, with the head this number of ms from now, or ago. The queue may have been closed during
    /// the run.
    Finish(Which, Option<i64>, bool),
    /// A peer has transferred something; the flags say that the message is old, and that the peer comes
    /// first.
    PeerTransfer(Which, Option<i64>, bool, bool),
    Fail(Which),
}

fn event() -> impl Strategy<Value = Event> {
    let which = || 0_usize..1_000;
    let offset = || prop_oneof![-5_000_i64..=0, 0_i64..200, 0_i64..150_000];
    prop_oneof![
        2 => Just(Event::Open),
        1 => which().prop_map(Event::OpenAgain),
        1 => which().prop_map(Event::Close),
        6 => (which(), offset()).prop_map(|(queue, at)| Event::Announce(queue, at)),
        2 => which().prop_map(Event::Sweep),
        4 => prop_oneof![0_u64..100, 0_u64..80_000].prop_map(Event::Pass),
        8 => Just(Event::Next),
        4 => (which(), proptest::option::of(offset()), any::<bool>())
            .prop_map(|(run, head, transferred)| Event::Finish(run, head, transferred)),
        4 => (which(), proptest::option::of(offset()), any::<bool>(), any::<bool>())
            .prop_map(|(run, head, old, first)| Event::PeerTransfer(run, head, old, first)),
        3 => which().prop_map(Event::Fail),
    ]
}

/// A schedule and the reference side by side.
struct Pair {
    schedule: TransferSchedule,
    model: BTreeMap<QueueId, Known>,
    /// Runs in flight.
    in_flight: Vec<QueueId>,
    opened: QueueId,
    clock: i64,
    now: Instant,
    /// Before all events.
    origin: Instant,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let origin = Instant::now();
        Self {
            schedule: TransferSchedule::new(INTERVAL, seed),
            model: BTreeMap::new(),
            in_flight: Vec::new(),
            opened: 0,
            clock: 1,
            now: origin + ms(3_600_000),
            origin,
        }
    }

    fn at(&self, offset: i64) -> Instant {
        let offset_abs = ms(offset.unsigned_abs());
        if offset < 0 { self.now - offset_abs } else { self.now + offset_abs }
    }

    /// Some queue that was opened, perhaps closed by now.
    fn queue(&self, which: Which) -> Option<QueueId> {
        (which as QueueId).checked_rem(self.opened)
    }

    fn apply(&mut self, event: Event) -> Result<(), TestCaseError> {
        let now = self.now;
        match event {
            Event::Open => {
                self.schedule.open(self.opened, now);
                let sweep = now + UNCONFIRMED;
                self.model.insert(self.opened, Known { sweep: Some((sweep, sweep)), ..Known::default() });
                self.opened += 1;
            }
            Event::OpenAgain(which) => {
                if let Some(queue) = self.queue(which).filter(|queue| self.model.contains_key(queue)) {
                    self.schedule.open(queue, now);
                }
            }
            Event::Close(which) => {
                let Some(queue) = self.queue(which) else { return Ok(()) };
                self.schedule.close(queue);
                self.model.remove(&queue);
            }
            Event::Announce(which, offset) => {
                let Some(queue) = self.queue(which) else { return Ok(()) };
                let at = self.at(offset);
                self.schedule.announced(queue, at);
                if let Some(known) = self.model.get_mut(&queue) {
                    known.named.insert(at);
                }
            }
            Event::Sweep(which) => {
                let Some(queue) = self.queue(which) else { return Ok(()) };
                self.schedule.sweep(queue, now);
                if let Some(known) = self.model.get_mut(&queue) {
                    let (low, high) = known.sweep.unwrap();
                    known.sweep = Some((low.min(now), high.min(now)));
                    known.sweep_requested = true;
                    known.not_before = None;
                }
            }
            Event::Pass(millis) => self.now += ms(millis),
            Event::Next => self.run_next()?,
            Event::Finish(which, head, transferred) => {
                let Some(queue) = self.end_of_run(which) else { return Ok(()) };
                self.clock += 1;
                let head = head.map(|offset| self.at(offset));
                let listens =
                    self.schedule.finished(queue, now, Moved { head, transferred, clock: self.clock });
                if let Some(known) = self.model.get_mut(&queue) {
                    let named = known.named_before_run.take().unwrap_or_default();
                    let was_for = named.first().filter(|due| **due <= now);
                    let has_lost =
                        !transferred && was_for.is_some_and(|due| head.is_none_or(|head| head > *due + SAME));
                    let is_behind = head.is_some_and(|head| is_behind(head, now));
                    prop_assert_eq!(listens, has_lost || transferred && is_behind);
                    let is_second = known.is_second && is_behind;
                    let next = (now + INTERVAL, now + INTERVAL + INTERVAL / 4);
                    *known = Known {
                        named: std::mem::take(&mut known.named),
                        sweep: Some(if known.sweep_requested { (now, now) } else { next }),
                        sweep_requested: known.sweep_requested,
                        peer_seen: known.peer_seen && (!transferred || is_second),
                        stands_down: match known.stands_down.clone().filter(|_| !transferred) {
                            _ if is_second || has_lost && known.peer_seen => Some(wait_for(head, now)),
                            before => before,
                        },
                        clock: self.clock,
                        ..Known::default()
                    };
                    known.named.extend(head);
                    if is_second {
                        known.named = BTreeSet::from([now]);
                    }
                }
            }
            Event::PeerTransfer(which, head, old, comes_first) => {
                let Some(queue) = self.queue(which) else { return Ok(()) };
                let head = head.map(|offset| self.at(offset));
                self.clock += 1;
                let clock = if old { self.clock - 2 } else { self.clock };
                self.schedule.on_peer_transfer(queue, now, head, clock, comes_first);
                let running = self.in_flight.contains(&queue);
                if let Some(known) = self.model.get_mut(&queue) {
                    known.peer_seen = true;
                    known.is_second |= running && comes_first;
                    if !running && clock > known.clock {
                        known.clock = clock;
                        known.named = head.map(|head| head.max(now)).into_iter().collect();
                        known.stands_down = known.stands_down.as_ref().map(|_| wait_for(head, now));
                    }
                }
            }
            Event::Fail(which) => {
                let Some(queue) = self.end_of_run(which) else { return Ok(()) };
                self.schedule.failed(queue, now);
                if let Some(known) = self.model.get_mut(&queue) {
                    known.named.extend(known.named_before_run.take().unwrap_or_default());
                    known.sweep = Some((now, now));
                    let backoff = ms(50 * 2_u64.pow(known.failures.min(20))).min(ms(5_000));
                    known.not_before = Some((now + backoff / 2, now + backoff));
                    known.failures += 1;
                }
            }
        }
        self.compare()
    }

    fn end_of_run(&mut self, which: Which) -> Option<QueueId> {
        which.checked_rem(self.in_flight.len()).map(|at| self.in_flight.swap_remove(at))
    }

    fn run_next(&mut self) -> Result<(), TestCaseError> {
        if let Next::Run(queue) = self.schedule.next(self.now) {
            prop_assert!(!self.in_flight.contains(&queue), "{queue} runs twice");
            let Some(known) = self.model.get_mut(&queue) else {
                return Err(TestCaseError::fail(format!("{queue} is closed")));
            };
            prop_assert!(known.bounds().0 <= self.now, "{queue} runs too early");
            known.named_before_run = Some(std::mem::take(&mut known.named));
            known.sweep_requested = false;
            known.is_second = false;
            known.not_before = None;
            self.in_flight.push(queue);
        }
        Ok(())
    }

    /// The rule: it wakes no later than the earliest named time of any queue, and not without a reason.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        let resting = self.model.iter().filter(|(queue, _)| !self.in_flight.contains(queue));
        let bounds: Vec<_> = resting.map(|(queue, known)| (*queue, known.bounds())).collect();
        let earliest = bounds.iter().map(|(_, (low, _))| *low).min();
        // A queue that is late already runs now.
        let latest = bounds.iter().map(|(_, (_, high))| (*high).max(self.now)).min();
        // For a time before all events, it returns the next wake-up and no run.
        match self.schedule.next(self.origin) {
            Next::Sleep(at) => {
                prop_assert!(earliest.is_some_and(|earliest| earliest <= at), "wakes without a reason");
                prop_assert!(
                    latest.is_some_and(|latest| at <= latest),
                    "oversleeps by {:?}",
                    at - latest.unwrap()
                );
            }
            Next::Idle => prop_assert!(bounds.is_empty(), "forgot {bounds:?}"),
            Next::Run(queue) => prop_assert!(false, "{queue} runs before all events"),
        }
        for (queue, known) in &self.model {
            prop_assert_eq!(self.schedule.is_failing(*queue), known.failures > 0);
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn never_sleeps_past_a_named_time(seed: u64, events in proptest::collection::vec(event(), 0..80)) {
        let mut pair = Pair::new(seed);
        for event in events {
            pair.apply(event)?;
        }
        // Whatever happened: when all replies are here, every open queue runs within a sweep interval or a
        // pause.
        while !pair.in_flight.is_empty() {
            pair.apply(Event::Fail(0))?;
        }
        pair.now += INTERVAL + INTERVAL / 4;
        for _ in 0..pair.model.len() {
            pair.run_next()?;
        }
        pair.in_flight.sort_unstable();
        prop_assert_eq!(pair.in_flight, pair.model.into_keys().collect::<Vec<_>>());
    }
}
