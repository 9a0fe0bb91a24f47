//! The schedule beside a reference that remembers all it was told.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What anybody may know of a queue from outside: the reference that [`Schedule`] is compared with.
#[derive(Default)]
struct Known {
    /// All due times named since the last run began.
    named: BTreeSet<Instant>,
    /// While a run is in flight: what had been named when it began.
    serving: Option<BTreeSet<Instant>>,
    /// The next sweep is between these two.
    sweep: Option<(Instant, Instant)>,
    /// A sweep was asked for since the last run began.
    asked: bool,
    /// Somebody else has moved something since this one has.
    heard: bool,
    /// Somebody else goes first.
    defers: bool,
    /// When the head was told last, by the server's clock.
    clock: i64,
    /// A failure is waited out until some time between these two.
    not_before: Option<(Instant, Instant)>,
    failures: u32,
}

impl Known {
    /// The earliest and the latest time at which it may be run.
    fn bounds(&self) -> (Instant, Instant) {
        let (sweep_low, sweep_high) = self.sweep.unwrap();
        let (least, most) =
            if self.defers { (DEFERENCE.start, DEFERENCE.end) } else { (Duration::ZERO, Duration::ZERO) };
        let named = self.named.first().copied();
        let (low, high) = (
            named.map_or(sweep_low, |at| sweep_low.min(at + least)),
            named.map_or(sweep_high, |at| sweep_high.min(at + most)),
        );
        self.not_before.map_or((low, high), |(from, to)| (low.max(from), high.max(to)))
    }
}

/// One of those there are, modulo their number.
type Which = usize;

/// Everything that happens to a schedule, by way of `transfer.rs`.
#[derive(Clone, Debug)]
enum Event {
    Open,
    /// The same queue once more.
    OpenAgain(Which),
    Close(Which),
    /// So many ms from now, or ago.
    Announce(Which, i64),
    Sweep(Which),
    Pass(u64),
    Next,
    /// A run ends, the head so many ms from now, or ago. The queue may have been closed meanwhile.
    Finish(Which, Option<i64>, bool),
    /// Somebody else has moved something; perhaps that is old news.
    Relieve(Which, Option<i64>, bool),
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
            .prop_map(|(run, head, moved)| Event::Finish(run, head, moved)),
        4 => (which(), proptest::option::of(offset()), any::<bool>())
            .prop_map(|(run, head, old)| Event::Relieve(run, head, old)),
        3 => which().prop_map(Event::Fail),
    ]
}

/// A schedule and the reference side by side.
struct Pair {
    schedule: Schedule,
    model: BTreeMap<QueueId, Known>,
    /// Runs whose reply is to come.
    in_flight: Vec<QueueId>,
    opened: QueueId,
    clock: i64,
    now: Instant,
    /// Before everything.
    origin: Instant,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let origin = Instant::now();
        Self {
            schedule: Schedule::new(INTERVAL, seed),
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
                    known.asked = true;
                    known.not_before = None;
                }
            }
            Event::Pass(millis) => self.now += ms(millis),
            Event::Next => self.run_next()?,
            Event::Finish(which, head, moved) => {
                let Some(queue) = self.end_of_run(which) else { return Ok(()) };
                self.clock += 1;
                let head = head.map(|offset| self.at(offset));
                let missed = self.schedule.finished(queue, now, Outcome { head, moved, clock: self.clock });
                if let Some(known) = self.model.get_mut(&queue) {
                    let was_due =
                        known.serving.take().unwrap_or_default().first().is_some_and(|due| *due <= now);
                    let is_missed = was_due && !moved && head.is_none_or(|head| head > now + EARLY);
                    prop_assert_eq!(missed, is_missed);
                    let next = (now + INTERVAL, now + INTERVAL + INTERVAL / 4);
                    *known = Known {
                        named: std::mem::take(&mut known.named),
                        sweep: Some(if known.asked { (now, now) } else { next }),
                        asked: known.asked,
                        heard: known.heard && !moved,
                        defers: !moved && (known.defers || is_missed && known.heard),
                        clock: self.clock,
                        ..Known::default()
                    };
                    known.named.extend(head);
                }
            }
            Event::Relieve(which, head, old) => {
                let Some(queue) = self.queue(which) else { return Ok(()) };
                let head = head.map(|offset| self.at(offset));
                self.clock += 1;
                let clock = if old { self.clock - 2 } else { self.clock };
                self.schedule.relieved(queue, now, head, clock);
                let running = self.in_flight.contains(&queue);
                if let Some(known) = self.model.get_mut(&queue) {
                    known.heard = true;
                    if !running && clock > known.clock {
                        known.clock = clock;
                        known.named = head.map(|head| head.max(now)).into_iter().collect();
                    }
                }
            }
            Event::Fail(which) => {
                let Some(queue) = self.end_of_run(which) else { return Ok(()) };
                self.schedule.failed(queue, now);
                if let Some(known) = self.model.get_mut(&queue) {
                    known.named.extend(known.serving.take().unwrap_or_default());
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
            known.serving = Some(std::mem::take(&mut known.named));
            known.asked = false;
            known.not_before = None;
            self.in_flight.push(queue);
        }
        Ok(())
    }

    /// The rule: it wakes no later than anybody asked for any queue, and not without a reason.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        let resting = self.model.iter().filter(|(queue, _)| !self.in_flight.contains(queue));
        let bounds: Vec<_> = resting.map(|(queue, known)| (*queue, known.bounds())).collect();
        let earliest = bounds.iter().map(|(_, (low, _))| *low).min();
        // What is late already is run now.
        let latest = bounds.iter().map(|(_, (_, high))| (*high).max(self.now)).min();
        // Asked about a time before everything, it names the next wake-up and hands nothing out.
        match self.schedule.next(self.origin) {
            Next::Sleep(at) => {
                prop_assert!(earliest.is_some_and(|earliest| earliest <= at), "wakes for nobody");
                prop_assert!(
                    latest.is_some_and(|latest| at <= latest),
                    "oversleeps by {:?}",
                    at - latest.unwrap()
                );
            }
            Next::Idle => prop_assert!(bounds.is_empty(), "forgot {bounds:?}"),
            Next::Run(queue) => prop_assert!(false, "{queue} runs before everything"),
        }
        for (queue, known) in &self.model {
            prop_assert_eq!(self.schedule.is_failing(*queue), known.failures > 0);
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn never_sleeps_past_what_it_was_told(seed: u64, events in proptest::collection::vec(event(), 0..80)) {
        let mut pair = Pair::new(seed);
        for event in events {
            pair.apply(event)?;
        }
        // Whatever happened: once all replies are here, every open queue gets its run within a sweep or a backoff.
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
