//! Schedules at work on one queue, each in a process of its own: calls, replies and messages take their time, calls fail
//! before or after the server ran them, announcements get lost, processes stop.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The longest way of an announcement, a call or a reply.
const LATENCY: Duration = Duration::from_millis(20);

proptest! {
    #[test]
    fn every_entry_is_moved_in_time(
        offers in proptest::collection::vec((0_u64..200_000, prop_oneof![0_u64..100, 0_u64..100_000]), 1..40),
        failures in proptest::collection::btree_set(0_usize..20, 0..4),
        processes in 1_usize..5,
        lossy: bool,
        seed: u64,
    ) {
        let mut world = World::new(&offers, &failures, processes, lossy, LATENCY, seed);
        world.run();
        prop_assert_eq!(world.moved.len(), offers.len());
        // Known from the announcement, or from the sweep that makes up for it. Then one call may be in the way, and
        // one moves it; failures add their pauses, no more than all of them in a row would.
        let known = LATENCY + if lossy { INTERVAL + INTERVAL / 4 } else { Duration::ZERO };
        let trouble: Duration = (0..failures.len()).map(|times| ms(50 << times) + LATENCY * 2).sum();
        let others = if processes > 1 { DEFERENCE.end } else { Duration::ZERO };
        for (entry, at) in &world.moved {
            let due = entry.due.max(entry.offered + known);
            prop_assert!(*at >= entry.due, "{:?} was moved before its time", entry);
            prop_assert!(*at <= due + LATENCY * 4 + trouble + others, "{:?} is late by {:?}", entry, *at - due);
        }
        // Each run has its reason: an announcement, a head, a failure, or that nobody spoke for long.
        let sweeps = (world.now - world.origin).as_secs() / INTERVAL.as_secs() + 2;
        let reasons = world.heard + processes * (world.moved.len() + failures.len() + sweeps as usize);
        prop_assert!(world.runs <= reasons, "{} runs for {} reasons", world.runs, reasons);
    }

    /// After a while one process calls for all; and when it stops, another does.
    #[test]
    fn one_call_for_each_entry_is_enough(
        gaps in proptest::collection::vec(80_u64..1_000, 40..80),
        processes in 2_usize..17,
        seed: u64,
    ) {
        let mut at = 1_000;
        let offers: Vec<(u64, u64)> = gaps.iter().map(|gap| { at += gap; (0, at) }).collect();
        let failures = BTreeSet::new();
        let latency = ms(2);
        let mut world = World::new(&offers, &failures, processes, false, latency, seed);
        world.run_until(|world| world.moved.len() >= 20);
        let (moved, runs) = (world.moved.len(), world.runs);
        world.run_until(|world| world.moved.len() >= 30);
        let (moved, runs) = (world.moved.len() - moved, world.runs - runs);
        prop_assert!(runs <= 2 * moved, "{} runs for {} entries in {} processes", runs, moved, processes);
        let leader = world.last_mover.unwrap();
        world.stopped.insert(leader);
        world.run();
        prop_assert_eq!(world.moved.len(), offers.len());
        for (entry, at) in &world.moved {
            let late = *at - entry.due.min(*at);
            prop_assert!(late <= DEFERENCE.end + latency * 2, "{:?} is late by {:?}", entry, late);
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
    Heard(Process, Instant),
    HeardOfAnother(Process, Option<Instant>, i64),
    /// The script has run, or the call was lost before that.
    Executed {
        process: Process,
        failing: bool,
    },
    Replied {
        process: Process,
        head: Option<Instant>,
        moved: bool,
        clock: i64,
    },
    Failed(Process),
}

/// One queue on a server, and the tasks that watch it.
struct World<'a> {
    schedules: Vec<Schedule>,
    /// Those that listen to what others move.
    listening: BTreeSet<Process>,
    stopped: BTreeSet<Process>,
    /// When each process hears the last message that is on its way: they keep their order.
    last_heard: Vec<Instant>,
    to_come: BTreeSet<(Instant, usize, Happening)>,
    happenings: usize,
    pending: BTreeSet<Entry>,
    moved: Vec<(Entry, Instant)>,
    last_mover: Option<Process>,
    /// The runs that fail.
    failures: &'a BTreeSet<usize>,
    lossy: bool,
    latency: Duration,
    heard: usize,
    runs: usize,
    clock: i64,
    origin: Instant,
    now: Instant,
    random: fastrand::Rng,
}

impl<'a> World<'a> {
    fn new(
        offers: &[(u64, u64)],
        failures: &'a BTreeSet<usize>,
        processes: usize,
        lossy: bool,
        latency: Duration,
        seed: u64,
    ) -> Self {
        let origin = Instant::now();
        let schedules = (0..processes).map(|process| {
            let mut schedule = Schedule::new(INTERVAL, seed ^ process as u64);
            schedule.open(0, origin);
            schedule
        });
        let mut world = Self {
            schedules: schedules.collect(),
            listening: BTreeSet::new(),
            stopped: BTreeSet::new(),
            last_heard: vec![origin; processes],
            to_come: BTreeSet::new(),
            happenings: 0,
            pending: BTreeSet::new(),
            moved: Vec::new(),
            last_mover: None,
            failures,
            lossy,
            latency,
            heard: 0,
            runs: 0,
            clock: 0,
            origin,
            now: origin,
            random: fastrand::Rng::with_seed(seed),
        };
        for (number, (at, delay)) in offers.iter().enumerate() {
            let offered = origin + ms(*at);
            world.at(offered, Happening::Offered(Entry { due: offered + ms(*delay), offered, number }));
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
                    let failing = self.failures.contains(&self.runs);
                    self.runs += 1;
                    self.soon(Happening::Executed { process, failing });
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
                        self.publish(process, Happening::Heard(process, entry.due));
                    }
                }
            }
            Happening::Heard(process, due) => {
                self.heard += 1;
                self.schedules[process].announced(0, due);
            }
            Happening::HeardOfAnother(process, head, clock) => {
                self.schedules[process].relieved(0, self.now, head, clock);
            }
            Happening::Executed { process, failing } => self.execute(process, failing),
            Happening::Replied { process, head, moved, clock } => {
                let outcome = Outcome { head, moved, clock };
                if self.schedules[process].finished(0, self.now, outcome) && self.listening.insert(process) {
                    // Once the subscription is confirmed, it looks again.
                    self.schedules[process].sweep(0, self.now);
                }
            }
            Happening::Failed(process) => self.schedules[process].failed(0, self.now),
        }
    }

    fn execute(&mut self, process: Process, failing: bool) {
        self.clock += 1;
        let before = self.moved.len();
        if !failing || self.random.bool() {
            while self.pending.first().is_some_and(|entry| entry.due <= self.now) {
                self.moved.extend(self.pending.pop_first().map(|entry| (entry, self.now)));
            }
        }
        let moved = self.moved.len() > before;
        let head = self.pending.first().map(|entry| entry.due);
        let clock = self.clock;
        if moved {
            self.last_mover = Some(process);
            for other in self.listening.clone() {
                if other != process {
                    self.publish(other, Happening::HeardOfAnother(other, head, clock));
                }
            }
        }
        let reply = Happening::Replied { process, head, moved, clock };
        self.soon(if failing { Happening::Failed(process) } else { reply });
    }

    fn publish(&mut self, process: Process, message: Happening) {
        let at = self.now + self.latency.mul_f64(self.random.f64());
        let at = at.max(self.last_heard[process]);
        self.last_heard[process] = at;
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
