//! Random walks: whatever happens, the steps come to an end, and nothing is forgotten.

use super::*;

/// A task without a server: anything may be answered.
struct World {
    now: Instant,
    plan: Plan,
    demand: ReceiveDemand,
    view: View,
    calls: Vec<Scope>,
    random: fastrand::Rng,
}

impl World {
    fn new(seed: u64) -> Self {
        let now = Instant::now();
        let random = fastrand::Rng::with_seed(seed);
        Self { now, plan: Plan::new(LEASE, now, seed), demand: NOBODY, view: REST, calls: Vec::new(), random }
    }

    fn millis(&mut self, most: u64) -> Duration {
        ms(self.random.u64(0..most))
    }

    fn sometimes<T>(&mut self, value: T) -> Option<T> {
        self.random.bool().then_some(value)
    }

    /// Takes the next step.
    fn step(&mut self) -> Step {
        let step = self.plan.next(self.now, self.demand, self.view);
        match step {
            Step::Call(scope) => {
                assert!(scope.most <= self.demand.messages.saturating_sub(self.view.claiming));
                self.view.settles = false;
                self.view.calls += 1;
                self.view.claiming += scope.most;
                self.calls.push(scope);
                assert!(self.view.calls <= MOST_CALLS);
            }
            Step::Answer { .. } => {
                assert!(self.demand.at_once);
                self.demand.at_once = false;
            }
            Step::Block => {
                assert!(self.view.blocked == Blocked::No && self.demand.messages > 0);
                self.view.blocked = Blocked::Waits;
            }
            Step::Unblock => {
                assert_eq!(self.view.blocked, Blocked::Waits);
                self.view.blocked = Blocked::Ending;
            }
            Step::Sleep(_) => assert!(self.view.calls == 0 && !self.view.settles),
            Step::Idle => assert!(self.view.calls > 0 && !self.view.settles),
        }
        step
    }

    /// Takes the steps of now. Returns until when it sleeps, if no call is on its way.
    fn steps(&mut self) -> Option<Instant> {
        for _ in 0..10 {
            match self.step() {
                Step::Sleep(at) => return Some(at),
                Step::Idle => return None,
                _ => {}
            }
        }
        panic!("steps without end: {:?} {:?} {:?}", self.plan, self.demand, self.view);
    }

    fn answer(&mut self, news: News) {
        let scope = self.calls.swap_remove(self.random.usize(0..self.calls.len()));
        self.view.calls -= 1;
        self.view.claiming -= scope.most;
        let news = if scope.most == 0 { News { claimed: 0, left: false, hold: None, ..news } } else { news };
        let consequences = self.plan.on_answered(self.now, scope, news, self.view.calls == 0);
        self.demand.at_once &= !consequences.answer;
        if news.refused {
            self.plan.on_refused(self.now);
        }
    }

    fn any_news(&mut self) -> News {
        let (lease_ends_in, retry_in, hold) = (self.millis(9000), self.millis(9000), self.millis(3000));
        News {
            clock: self.random.u64(0..1 << 40),
            lease_ends_in: self.sometimes(lease_ends_in),
            retry_in: self.sometimes(retry_in),
            claimed: self.random.usize(0..2),
            left: self.random.bool(),
            disagree: self.random.bool(),
            hold: self.sometimes(hold).filter(|_| self.random.bool()),
            refused: self.random.u8(0..8) == 0,
        }
    }

    fn something_happens(&mut self) {
        match self.random.u8(0..8) {
            0 if !self.plan.is_closed() => {
                let messages = [0, 1, 2, 40, 5000][self.random.usize(0..5)];
                let at_once = messages > 0 && self.random.bool();
                self.demand = ReceiveDemand { messages, one_each: self.random.bool(), at_once, before: 9 };
            }
            1 if self.view.calls == 0 => self.view.settles = true,
            2 if self.view.blocked != Blocked::No => {
                let wakes = [Wake::Moved(true), Wake::Moved(false), Wake::Refused, Wake::Unknown];
                let wake = wakes[self.random.usize(0..4)];
                self.plan.on_woken(self.now, wake, self.view.blocked == Blocked::Ending);
                self.view.blocked = Blocked::No;
            }
            3 => self.plan.on_announced(self.now, self.random.f64() * 2e12),
            4 => self.plan.on_forwarded(self.now),
            5 if !self.calls.is_empty() => {
                let news = self.any_news();
                self.answer(news);
            }
            6 if self.random.u8(0..50) == 0 => {
                self.plan.close();
                self.demand = NOBODY;
            }
            _ => {
                let passes = self.millis(2000);
                self.now += passes;
            }
        }
    }
}

#[test]
fn a_sleep_ends_with_a_step_or_goes_on() {
    for seed in 0..200 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.something_happens();
            if let Some(at) = world.steps()
                && world.random.bool()
            {
                world.now = world.now.max(at);
                let step = world.step();
                assert!(!matches!(step, Step::Sleep(at) if at <= world.now), "seed {seed}: {:?}", world.plan);
            }
        }
    }
}

#[test]
fn a_payload_in_the_inbox_is_not_forgotten_and_who_waits_is_woken() {
    for seed in 0..200 {
        let mut world = World::new(seed);
        for _ in 0..100 {
            world.something_happens();
            world.steps();
        }
        // From here on, each call is answered, and there is nothing.
        let begun = world.now;
        for n in 0.. {
            assert!(n < 1000, "seed {seed}: {:?} {:?} {:?}", world.plan, world.demand, world.view);
            let at = world.steps();
            let waits = world.view.blocked == Blocked::Waits || world.demand.messages == 0;
            if world.view.calls > 0 {
                world.answer(NOTHING);
            } else if waits && !world.plan.woken {
                break;
            } else if world.view.blocked == Blocked::Ending {
                world.plan.on_woken(world.now, Wake::Moved(false), true);
                world.view.blocked = Blocked::No;
            } else {
                world.now = world.now.max(at.expect("no call is on its way"));
            }
            assert!(world.now < begun + secs(20), "seed {seed}: {:?} {:?}", world.plan, world.view);
        }
    }
}
