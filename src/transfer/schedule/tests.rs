use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const INTERVAL: Duration = Duration::from_secs(60);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What anybody may know of a queue from outside: the reference that [`Schedule`] is compared with.
#[derive(Default)]
struct Known {
    /// All times named since the last run began.
    named: BTreeSet<Instant>,
    /// While a run is in flight: what had been named when it began.
    serving: Option<BTreeSet<Instant>>,
    /// The next sweep is between these two.
    sweep: Option<(Instant, Instant)>,
    /// A failure is waited out until some time between these two.
    not_before: Option<(Instant, Instant)>,
    failures: u32,
}

impl Known {
    /// The earliest and the latest time at which it may be run.
    fn bounds(&self) -> (Instant, Instant) {
        let (sweep_low, sweep_high) = self.sweep.unwrap();
        let named = self.named.first().copied();
        let (low, high) = (
            named.map_or(sweep_low, |at| at.min(sweep_low)),
            named.map_or(sweep_high, |at| at.min(sweep_high)),
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
    Finish(Which, Option<i64>),
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
        4 => (which(), proptest::option::of(offset())).prop_map(|(run, head)| Event::Finish(run, head)),
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
                    known.named.insert(now);
                    known.not_before = None;
                }
            }
            Event::Pass(millis) => self.now += ms(millis),
            Event::Next => self.run_next()?,
            Event::Finish(which, head) => {
                let Some(queue) = self.end_of_run(which) else { return Ok(()) };
                let head = head.map(|offset| self.at(offset));
                self.schedule.finished(queue, now, head);
                if let Some(known) = self.model.get_mut(&queue) {
                    *known = Known {
                        named: std::mem::take(&mut known.named),
                        sweep: Some((now + INTERVAL, now + INTERVAL + INTERVAL / 4)),
                        ..Known::default()
                    };
                    known.named.extend(head);
                }
            }
            Event::Fail(which) => {
                let Some(queue) = self.end_of_run(which) else { return Ok(()) };
                self.schedule.failed(queue, now);
                if let Some(known) = self.model.get_mut(&queue) {
                    known.named.extend(known.serving.take().unwrap_or_default());
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

    /// The schedule at work on one queue: replies and announcements take their time, calls fail before or after the
    /// server ran them, announcements get lost.
    #[test]
    fn every_entry_is_moved_in_time(
        offers in proptest::collection::vec((0_u64..200_000, prop_oneof![0_u64..100, 0_u64..100_000]), 1..40),
        failures in proptest::collection::btree_set(0_usize..20, 0..4),
        lossy: bool,
        seed: u64,
    ) {
        let mut world = World::new(&offers, &failures, lossy, seed);
        world.run();
        prop_assert_eq!(world.moved.len(), offers.len());
        // Known from the announcement, or from the sweep that makes up for it. Then one call may be in the way, and
        // one moves it; failures add their pauses, no more than all of them in a row would.
        let known = LATENCY + if lossy { INTERVAL + INTERVAL / 4 } else { Duration::ZERO };
        let trouble: Duration = (0..failures.len()).map(|times| ms(50 << times) + LATENCY * 2).sum();
        for (entry, at) in &world.moved {
            let due = entry.due.max(entry.offered + known);
            prop_assert!(*at >= entry.due, "{:?} was moved before its time", entry);
            prop_assert!(*at <= due + LATENCY * 4 + trouble, "{:?} is late by {:?}", entry, *at - due);
        }
        // Each run has its reason: an announcement, a head, a failure, or that nobody spoke for long.
        let sweeps = (world.now - world.origin).as_secs() / INTERVAL.as_secs() + 2;
        let reasons = world.heard + world.moved.len() + failures.len() + sweeps as usize;
        prop_assert!(world.runs <= reasons, "{} runs for {} reasons", world.runs, reasons);
    }
}

/// The longest way of an announcement, a call or a reply.
const LATENCY: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: Instant,
    offered: Instant,
    number: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Offered(Entry),
    Heard(Instant),
    /// The script has run, or the call was lost before that.
    Executed {
        failing: bool,
    },
    Replied {
        head: Option<Instant>,
    },
    Failed,
    Woken,
}

/// One queue on a server, and the task that watches it.
struct World<'a> {
    schedule: Schedule,
    to_come: BTreeSet<(Instant, Happening)>,
    pending: BTreeSet<Entry>,
    moved: Vec<(Entry, Instant)>,
    /// The runs that fail.
    failures: &'a BTreeSet<usize>,
    lossy: bool,
    heard: usize,
    runs: usize,
    origin: Instant,
    now: Instant,
    random: fastrand::Rng,
}

impl<'a> World<'a> {
    fn new(offers: &[(u64, u64)], failures: &'a BTreeSet<usize>, lossy: bool, seed: u64) -> Self {
        let origin = Instant::now();
        let mut schedule = Schedule::new(INTERVAL, seed);
        schedule.open(0, origin);
        let to_come = offers.iter().enumerate().map(|(number, (at, delay))| {
            let offered = origin + ms(*at);
            (offered, Happening::Offered(Entry { due: offered + ms(*delay), offered, number }))
        });
        Self {
            schedule,
            to_come: to_come.collect(),
            pending: BTreeSet::new(),
            moved: Vec::new(),
            failures,
            lossy,
            heard: 0,
            runs: 0,
            origin,
            now: origin,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    fn run(&mut self) {
        let end = self.origin + ms(1_000_000);
        loop {
            match self.schedule.next(self.now) {
                Next::Run(_) => {
                    let failing = self.failures.contains(&self.runs);
                    self.runs += 1;
                    self.soon(Happening::Executed { failing });
                    continue;
                }
                Next::Sleep(at) => {
                    self.to_come.insert((at, Happening::Woken));
                }
                Next::Idle => {}
            }
            match self.to_come.pop_first() {
                Some((at, happening)) if at < end => {
                    self.now = at;
                    self.happen(happening);
                }
                _ => return,
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Offered(entry) => {
                self.pending.insert(entry);
                let is_head = self.pending.first() == Some(&entry);
                if is_head && !(self.lossy && self.random.bool()) {
                    self.soon(Happening::Heard(entry.due));
                }
            }
            Happening::Heard(due) => {
                self.heard += 1;
                self.schedule.announced(0, due);
            }
            Happening::Executed { failing } => {
                if !failing || self.random.bool() {
                    while let Some(entry) = self.pending.pop_first() {
                        if entry.due > self.now {
                            self.pending.insert(entry);
                            break;
                        }
                        self.moved.push((entry, self.now));
                    }
                }
                let head = self.pending.first().map(|entry| entry.due);
                self.soon(if failing { Happening::Failed } else { Happening::Replied { head } });
            }
            Happening::Replied { head } => self.schedule.finished(0, self.now, head),
            Happening::Failed => self.schedule.failed(0, self.now),
            Happening::Woken => {}
        }
    }

    fn soon(&mut self, happening: Happening) {
        let at = self.now + LATENCY.mul_f64(self.random.f64());
        self.to_come.insert((at, happening));
    }
}

/// A schedule with one queue whose first run is in flight.
fn running(now: Instant) -> Schedule {
    let mut schedule = Schedule::new(INTERVAL, 1);
    schedule.open(7, now);
    schedule.sweep(7, now);
    assert_eq!(schedule.next(now), Next::Run(7));
    schedule
}

#[test]
fn a_late_reply_postpones_nothing() {
    let now = Instant::now();
    let mut schedule = running(now);
    schedule.announced(7, now + ms(10));
    schedule.announced(7, now + ms(3_000));
    assert_eq!(schedule.next(now), Next::Idle);
    schedule.finished(7, now + ms(5), Some(now + ms(2_000)));
    assert_eq!(schedule.next(now + ms(5)), Next::Sleep(now + ms(10)));
}

#[test]
fn a_head_that_is_due_already_is_run_at_once() {
    let now = Instant::now();
    let mut schedule = running(now);
    schedule.finished(7, now + ms(5), Some(now - ms(2_000)));
    assert_eq!(schedule.next(now + ms(5)), Next::Run(7));
}

#[test]
fn failures_back_off_and_keep_the_wake_up() {
    let mut now = Instant::now();
    let mut schedule = running(now);
    for expected in [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000] {
        schedule.failed(7, now);
        assert!(schedule.is_failing(7));
        // It does not hurry an ailing server.
        schedule.announced(7, now);
        let Next::Sleep(at) = schedule.next(now) else { panic!("no pause of {expected} ms") };
        assert!(at >= now + ms(expected / 2) && at <= now + ms(expected), "{:?}", at - now);
        now = at;
        assert_eq!(schedule.next(now), Next::Run(7));
    }
    schedule.finished(7, now, None);
    assert!(!schedule.is_failing(7));
    let Next::Sleep(at) = schedule.next(now) else { panic!("runs for nothing") };
    assert!(at >= now + INTERVAL);
}

#[test]
fn a_connection_that_is_back_ends_the_pause() {
    let now = Instant::now();
    let mut schedule = running(now);
    schedule.failed(7, now);
    schedule.sweep(7, now + ms(1));
    assert_eq!(schedule.next(now + ms(1)), Next::Run(7));
}

#[test]
fn opened_twice_in_one_instant() {
    let now = Instant::now();
    let mut schedule = Schedule::new(INTERVAL, 1);
    schedule.open(7, now);
    schedule.open(7, now);
    assert_eq!(schedule.next(now), Next::Sleep(now + UNCONFIRMED));
    assert_eq!(schedule.next(now + UNCONFIRMED), Next::Run(7));
    // Nor does it run twice.
    schedule.open(7, now);
    assert_eq!(schedule.next(now + ms(100_000)), Next::Idle);
}

#[test]
fn a_closed_queue_is_forgotten() {
    let now = Instant::now();
    let mut schedule = running(now);
    schedule.close(7);
    schedule.announced(7, now);
    schedule.sweep(7, now);
    schedule.finished(7, now, Some(now));
    schedule.failed(7, now);
    assert_eq!(schedule.next(now + ms(1_000_000)), Next::Idle);
    assert!(!schedule.is_failing(7) && schedule.queues.is_empty() && schedule.timers.is_empty());
}

#[test]
fn ten_thousand_queues_do_not_sweep_at_once() {
    let now = Instant::now();
    let mut schedule = Schedule::new(INTERVAL, 42);
    for queue in 0..10_000 {
        schedule.open(queue, now);
        schedule.sweep(queue, now);
    }
    for _ in 0..10_000 {
        assert!(matches!(schedule.next(now), Next::Run(_)));
    }
    for queue in 0..10_000 {
        schedule.finished(queue, now, None);
    }
    // Spread evenly over a quarter of the interval, that is 67 in 100 ms.
    let mut sweeps = BTreeMap::<u128, usize>::new();
    for (at, _) in &schedule.timers {
        *sweeps.entry((*at - now).as_millis() / 100).or_default() += 1;
    }
    assert!(*sweeps.first_key_value().unwrap().0 >= 600 && *sweeps.last_key_value().unwrap().0 <= 750);
    assert!(sweeps.values().all(|queues| *queues < 67 * 2), "{sweeps:?}");
}
