//! Schedules of several processes for one queue. Calls, replies and messages take time, calls fail before or
//! after the server ran them, announcements get lost, processes stop.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The longest time that an announcement, a call or a reply takes.
const LATENCY: Duration = Duration::from_millis(20);

proptest! {
    #[test]
    fn every_entry_is_transferred_in_time(
        offers in proptest::collection::vec((0_u64..200_000, prop_oneof![0_u64..100, 0_u64..100_000]), 1..40),
        failures in proptest::collection::btree_set(0_usize..20, 0..4),
        processes in 1_usize..5,
        lossy: bool,
        seed: u64,
    ) {
        let in_ms: Vec<_> = offers.iter().map(|(at, delay)| (ms(*at), ms(*delay))).collect();
        let mut world = World::new(&in_ms, &failures, processes, lossy, LATENCY, seed);
        world.run();
        prop_assert_eq!(world.transferred.len(), offers.len());
        // Known from the announcement, or from the sweep that replaces a lost one. Then one call may be in
        // flight, and the next one transfers it. Failures add their pauses, at most all of them in a row.
        let known = LATENCY + if lossy { INTERVAL + INTERVAL / 4 } else { Duration::ZERO };
        let pauses: Duration = (0..failures.len()).map(|times| ms(50 << times) + LATENCY * 2).sum();
        let others = if processes > 1 { STAND_DOWN_BEHIND.end } else { Duration::ZERO };
        for (entry, at) in &world.transferred {
            let due = entry.due.max(entry.offered + known);
            prop_assert!(*at >= entry.due, "{:?} was transferred before its time", entry);
            prop_assert!(*at <= due + LATENCY * 4 + pauses + others, "{:?} is late by {:?}", entry, *at - due);
        }
        // Each run has a reason: an announcement, a head, a failure or a sweep.
        let sweeps = (world.now - world.origin).as_secs() / INTERVAL.as_secs() + 2;
        let reasons = world.announcements + processes * (world.transferred.len() + failures.len() + sweeps as usize);
        prop_assert!(world.runs.len() <= reasons, "{} runs for {} reasons", world.runs.len(), reasons);
    }

    /// After a while one process calls for all; when it stops, another one does.
    #[test]
    fn one_call_for_each_entry_is_enough(
        gaps in proptest::collection::vec(80_u64..1_000, 40..80),
        processes in 2_usize..17,
        seed: u64,
    ) {
        let mut at = 1_000;
        let offers: Vec<_> = gaps.iter().map(|gap| { at += gap; (Duration::ZERO, ms(at)) }).collect();
        let failures = BTreeSet::new();
        let latency = ms(2);
        let mut world = World::new(&offers, &failures, processes, false, latency, seed);
        world.run_until(|world| world.transferred.len() >= 20);
        let (transferred, runs) = (world.transferred.len(), world.runs.len());
        world.run_until(|world| world.transferred.len() >= 30);
        let (transferred, runs) = (world.transferred.len() - transferred, world.runs.len() - runs);
        prop_assert!(runs <= 2 * transferred, "{} runs for {} entries in {} processes", runs, transferred, processes);
        let leader = world.last_transferrer.unwrap();
        world.stopped.insert(leader);
        world.run();
        prop_assert_eq!(world.transferred.len(), offers.len());
        for (entry, at) in &world.transferred {
            let late = *at - entry.due.min(*at);
            prop_assert!(late <= STAND_DOWN.end + latency * 2, "{:?} is late by {:?}", entry, late);
        }
    }
}

/// Up to 5,000 entries a second: then the next one is nearly due when a call comes too late.
#[test]
fn who_loses_the_race_stands_down_at_any_rate() {
    for gap in [200, 500, 1_000, 3_000, 7_000, 30_000].map(Duration::from_micros) {
        for processes in [2, 4, 16] {
            for seed in 0..5 {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut at = ms(1_000);
                // A second until they agree.
                let (early, late) = ((1e6 / gap.as_micros() as f64) as usize + 20, 400);
                let offers: Vec<_> = (0..early + late + 100)
                    .map(|_| {
                        at += gap.mul_f64(2.0 * random.f64());
                        (Duration::ZERO, at)
                    })
                    .collect();
                let failures = BTreeSet::new();
                let mut world = World::new(&offers, &failures, processes, false, ms(1), seed);
                world.run_until(|world| world.transferred.len() >= early);
                let (runs, led, told, begun) = (world.runs.len(), world.leads, world.messages, world.now);
                world.run_until(|world| world.transferred.len() >= early + late);
                let (runs, led, told) = (world.runs.len() - runs, world.leads - led, world.messages - told);
                println!(
                    "{gap:?}, {processes} processes: {runs} runs, {led} have transferred, {told} messages"
                );
                assert!(runs <= led + led / 10 + processes, "{gap:?}, {processes}: {runs} for {led}");
                let pauses = (world.now - begun).as_micros() / QUIET.as_micros();
                let peers = processes - 1;
                assert!(
                    told <= led * peers && (gap > QUIET || told <= (pauses as usize + 2) * peers * 3 / 2),
                    "{told}"
                );
                world.stopped.insert(world.last_transferrer.unwrap());
                world.run();
                let late = world.transferred.iter().map(|(entry, at)| *at - entry.due.min(*at)).max();
                println!("  at most {late:?} late");
                assert!(late.unwrap() <= ms(110), "{gap:?}, {processes}: {late:?}");
            }
        }
    }
}

/// Calls that move a part of a backlog take a while, and the server makes one after the other.
#[test]
fn one_process_moves_a_backlog() {
    for (processes, call_time) in [(2, 40), (4, 100), (16, 40), (16, 100)] {
        for seed in 0..20 {
            let offers = vec![(Duration::ZERO, Duration::ZERO); 3_000];
            let failures = BTreeSet::new();
            let mut world = World::new(&offers, &failures, processes, false, ms(2), seed);
            (world.most, world.call_time) = (10, ms(call_time));
            world.run_until(|world| world.transferred.len() >= 1_000);
            let (runs, begun) = (world.runs.len(), world.transferred.len());
            world.run_until(|world| world.transferred.len() >= 2_000);
            let (runs, moved) = (world.runs.len() - runs, world.transferred.len() - begun);
            println!("{processes} processes, {call_time} ms: {} calls for {}", runs, moved / 10);
            assert!(runs <= moved / 10 + 5, "{processes}, {call_time} ms, {seed}: {runs} calls");
            let leader = 0;
            let led = world.runs.iter().rev().take(runs).filter(|caller| **caller == leader).count();
            assert!(led * 20 >= runs * 19, "{processes}, {call_time} ms, {seed}: {led} of {runs}");
            // If it stops, the others go on.
            let at = world.now;
            world.stopped.insert(leader);
            let moved = world.transferred.len();
            world.run_until(|world| world.transferred.len() >= moved + 100);
            assert!(world.now - at <= STAND_DOWN_BEHIND.end + ms(call_time) * (processes as u32 + 12));
            world.run();
            assert_eq!(world.transferred.len(), offers.len());
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: Instant,
    offered: Instant,
    number: usize,
}

type Process = usize;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Offered(Entry),
    Announced(Process, Instant),
    /// The flag says that the peer comes first.
    PeerTransferred(Process, Option<Instant>, i64, bool),
    /// The script has run, or the call was lost before that.
    Executed {
        process: Process,
        failing: bool,
        tells: bool,
    },
    Replied {
        process: Process,
        head: Option<Instant>,
        transferred: bool,
        clock: i64,
    },
    Failed(Process),
}

/// One queue on a server, and the processes that transfer for it.
struct World<'a> {
    schedules: Vec<TransferSchedule>,
    /// The processes that listen to the messages of their peers.
    listening: BTreeSet<Process>,
    stopped: BTreeSet<Process>,
    /// When each process gets the last message that is in flight: messages keep their order.
    last_message: Vec<Instant>,
    to_come: BTreeSet<(Instant, usize, Happening)>,
    happenings: usize,
    pending: BTreeSet<Entry>,
    transferred: Vec<(Entry, Instant)>,
    last_transferrer: Option<Process>,
    /// The most entries that a call moves.
    most: usize,
    /// How long the server works on a call, and when it will have made all calls that it has.
    call_time: Duration,
    busy_until: Instant,
    /// The runs that fail.
    failures: &'a BTreeSet<usize>,
    lossy: bool,
    latency: Duration,
    announcements: usize,
    /// Who made each run.
    runs: Vec<Process>,
    /// Those that transferred something.
    leads: usize,
    /// Those that peers have got.
    messages: usize,
    clock: i64,
    origin: Instant,
    now: Instant,
    random: fastrand::Rng,
}

impl<'a> World<'a> {
    fn new(
        offers: &[(Duration, Duration)],
        failures: &'a BTreeSet<usize>,
        processes: usize,
        lossy: bool,
        latency: Duration,
        seed: u64,
    ) -> Self {
        let origin = Instant::now();
        let schedules = (0..processes).map(|process| {
            let mut schedule = TransferSchedule::new(INTERVAL, seed ^ process as u64);
            schedule.open(0, origin);
            schedule
        });
        let mut world = Self {
            schedules: schedules.collect(),
            listening: BTreeSet::new(),
            stopped: BTreeSet::new(),
            last_message: vec![origin; processes],
            to_come: BTreeSet::new(),
            happenings: 0,
            pending: BTreeSet::new(),
            transferred: Vec::new(),
            last_transferrer: None,
            most: usize::MAX,
            call_time: Duration::ZERO,
            busy_until: origin,
            failures,
            lossy,
            latency,
            announcements: 0,
            runs: Vec::new(),
            leads: 0,
            messages: 0,
            clock: 0,
            origin,
            now: origin,
            random: fastrand::Rng::with_seed(seed),
        };
        for (number, (at, delay)) in offers.iter().enumerate() {
            let offered = origin + *at;
            world.at(offered, Happening::Offered(Entry { due: offered + *delay, offered, number }));
        }
        world
    }

    fn run(&mut self) {
        self.run_until(|_| false);
    }

    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        let end = self.origin + ms(1_000_000);
        while !done(self) {
            let mut wake = end;
            for process in (0..self.schedules.len())
                .filter(|process| !self.stopped.contains(process))
                .collect::<Vec<_>>()
            {
                while let Next::Run(_) = self.schedules[process].next(self.now) {
                    let failing = self.failures.contains(&self.runs.len());
                    self.runs.push(process);
                    let tells = self.schedules[process].tells_peers(0);
                    let arrives = self.now + self.latency.mul_f64(self.random.f64());
                    let executed = arrives.max(self.busy_until) + self.call_time;
                    if !self.call_time.is_zero() {
                        self.busy_until = executed;
                    }
                    self.at(executed, Happening::Executed { process, failing, tells });
                }
                if let Next::Sleep(at) = self.schedules[process].next(self.now) {
                    wake = wake.min(at);
                }
            }
            match self.to_come.first() {
                Some((at, ..)) if *at <= wake => {
                    let Some((at, _, happening)) = self.to_come.pop_first() else { return };
                    self.now = self.now.max(at);
                    self.happen(happening);
                }
                _ if wake < end => self.now = self.now.max(wake),
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
                    for process in 0..self.schedules.len() {
                        self.publish(process, Happening::Announced(process, entry.due));
                    }
                }
            }
            Happening::Announced(process, due) => {
                self.announcements += 1;
                self.schedules[process].announced(0, due);
            }
            Happening::PeerTransferred(process, head, clock, comes_first) => {
                self.schedules[process].on_peer_transfer(0, self.now, head, clock, comes_first);
            }
            Happening::Executed { process, failing, tells } => self.execute(process, failing, tells),
            Happening::Replied { process, head, transferred, clock } => {
                let outcome = Moved { head, transferred, clock };
                if self.schedules[process].finished(0, self.now, outcome) && self.listening.insert(process) {
                    // Once the subscription is confirmed, it looks again.
                    self.schedules[process].sweep(0, self.now);
                }
            }
            Happening::Failed(process) => self.schedules[process].failed(0, self.now),
        }
    }

    fn execute(&mut self, process: Process, failing: bool, tells: bool) {
        self.clock += 1;
        let before = self.transferred.len();
        if !failing || self.random.bool() {
            while self.transferred.len() - before < self.most
                && self.pending.first().is_some_and(|entry| entry.due <= self.now)
            {
                self.transferred.extend(self.pending.pop_first().map(|entry| (entry, self.now)));
            }
        }
        let transferred = self.transferred.len() > before;
        let head = self.pending.first().map(|entry| entry.due);
        let clock = self.clock;
        if transferred {
            self.leads += 1;
            self.last_transferrer = Some(process);
            let is_told = tells || head.is_none_or(|head| head > self.now + QUIET);
            for other in self.listening.clone() {
                if other != process && is_told {
                    self.messages += 1;
                    self.publish(other, Happening::PeerTransferred(other, head, clock, process < other));
                }
            }
        }
        let reply = Happening::Replied { process, head, transferred, clock };
        self.soon(if failing { Happening::Failed(process) } else { reply });
    }

    fn publish(&mut self, process: Process, message: Happening) {
        let at = self.now + self.latency.mul_f64(self.random.f64());
        let at = at.max(self.last_message[process]);
        self.last_message[process] = at;
        self.at(at, message);
    }

    fn soon(&mut self, happening: Happening) {
        let at = self.now + self.latency.mul_f64(self.random.f64());
        self.at(at, happening);
    }

    fn at(&mut self, at: Instant, happening: Happening) {
        self.happenings += 1;
        self.to_come.insert((at, self.happenings, happening));
    }
}
