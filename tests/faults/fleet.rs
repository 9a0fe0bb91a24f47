//! Processes that receive, each with a lease of its own, while some are stopped for longer than their leases,
//! or killed. What they print is the evidence: nothing is lost, nothing is handled twice without a reason,
//! and no handler begins when somebody else has settled its message.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use redelay::{BlockingQueue, Delivery, Worker, codec};
use redelay_fixture::{Program, Server, until_async};
use redelay_support::{Part, builder, ms, soon, still_builder};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::never_stuck::seeds;
use super::receivers::is_drained;

/// The plans of a run without the variables of `never_stuck`.
const SEEDS: Range<u64> = 9..15;
/// The bound of docs/guarantees.md for the leases here is 12 s. On a busy machine it takes longer.
const PATIENCE: Duration = Duration::from_secs(110);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Waits in receives, and handles several messages at a time.
    Receives,
    /// Receives in a loop, and handles one message after the other.
    Polls,
    Works,
}

const KINDS: [Kind; 3] = [Kind::Receives, Kind::Polls, Kind::Works];

#[derive(Clone, Copy, Debug)]
struct Member {
    kind: Kind,
    lease: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    after: Duration,
    member: usize,
    /// SIGSTOP, and SIGCONT after this time. `None`: SIGKILL, and another process in its place.
    stopped: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Plan {
    members: Vec<Member>,
    /// The pause between two pushes, which go on until the last fault has ended. `None`: there is no traffic,
    /// but some messages right before each fault.
    pause: Option<Duration>,
    steps: Vec<Step>,
}

impl Plan {
    fn of_seed(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let members: Vec<_> = (0..random.usize(2..=4))
            .map(|_| Member {
                kind: KINDS[random.usize(0..3)],
                // On a busy machine, shorter ones end by themselves.
                lease: ms((2_000.0 * 2_f64.powf(random.f64())) as u64),
            })
            .collect();
        let steps = (0..random.usize(2..=4))
            .map(|_| {
                let member = random.usize(0..members.len());
                let stopped = members[member].lease.mul_f64(1.1 + random.f64() / 2.0);
                Step {
                    after: ms(random.u64(20..400)),
                    member,
                    stopped: (random.u8(0..4) > 0).then_some(stopped),
                }
            })
            .collect();
        let pause = [None, Some(ms(3)), Some(ms(30)), Some(ms(1_000))][random.usize(0..4)];
        Self { members, pause, steps }
    }
}

/// What a process tells all the time, ...
const RUNS: &str = "runs";
/// ... at this interval. One that has not done so for longer than this was held up, as by a busy machine.
const OFTEN: Duration = Duration::from_millis(100);
const HELD_UP: Duration = Duration::from_millis(500);

/// Prints what happens to a message, and when.
fn tell(what: &str, number: i64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
    println!("{now} {what} {number}");
}

async fn handle(number: i64) {
    tell("begun", number);
    sleep(ms(fastrand::u64(0..40))).await;
    tell("ended", number);
}

async fn settle(delivery: Delivery<i64>) {
    let (number, delivery) = delivery.into_parts();
    handle(number).await;
    tell(if delivery.ack().await.is_ok() { "acknowledged" } else { "not-acknowledged" }, number);
}

/// A member of a fleet. The test below starts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, in a process of its own"]
async fn receives() {
    let [url, kind, lease] =
        ["URL", "KIND", "LEASE"].map(|name| std::env::var(name).expect("started by a test"));
    let lease = ms(lease.parse().unwrap());
    let client = builder(&url).connect().await.unwrap();
    let queue = client.blocking_queue::<i64>("q", codec::Long);
    let receiver = queue.receiver().lease(lease).max_losses(1_000);
    tokio::spawn(async {
        loop {
            tell(RUNS, 0);
            sleep(OFTEN).await;
        }
    });
    match KINDS.into_iter().find(|one| format!("{one:?}") == kind).expect("a kind") {
        Kind::Receives => loop {
            if let Ok(delivery) = receiver.receive().await {
                tokio::spawn(settle(delivery));
            }
        },
        Kind::Polls => loop {
            if let Ok(Some(delivery)) = receiver.receive_timeout(lease.mul_f64(0.26)).await {
                settle(delivery).await;
            }
        },
        Kind::Works => {
            let worker = Worker::new(&queue).concurrency(4).lease(lease).max_losses(1_000);
            worker.run_until(std::future::pending::<()>(), handle).await.unwrap();
        }
    }
}

/// A member that runs, or has run.
struct Running {
    member: Member,
    program: Program,
    /// When it did not run as it should, µs since the epoch: from each to the next.
    away: Vec<(u128, u128)>,
}

/// The end of a time in which a process was away that was killed.
const FOR_EVER: u128 = u128::MAX / 2;

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros()
}

impl Running {
    fn start(member: Member, url: &str) -> Self {
        let (kind, lease) = (format!("{:?}", member.kind), member.lease.as_millis().to_string());
        let program = Program::start_ignored_test(
            "fleet::receives",
            &[("URL", url), ("KIND", &kind), ("LEASE", &lease)],
        );
        Self { member, program, away: Vec::new() }
    }

    /// What it has told of messages: when, what, and of which.
    fn told(&self) -> Vec<(u128, String, i64)> {
        self.all_told().into_iter().filter(|(_, what, _)| what != RUNS).collect()
    }

    /// When nobody has stopped it, and it did not run nevertheless.
    fn held_up(&self) -> Vec<(u128, u128)> {
        let told = self.all_told().into_iter().filter(|(_, what, _)| what == RUNS);
        let times: Vec<_> = told.map(|(at, ..)| at).collect();
        let is_gap = |gap: &(u128, u128)| gap.1 - gap.0 > HELD_UP.as_micros();
        let was_stopped =
            |gap: &(u128, u128)| self.away.iter().any(|(from, to)| *from < gap.1 && gap.0 < *to);
        let gaps = times.windows(2).map(|pair| (pair[0], pair[1]));
        gaps.filter(is_gap).filter(|gap| !was_stopped(gap)).collect()
    }

    fn all_told(&self) -> Vec<(u128, String, i64)> {
        let output = self.program.output();
        let told = output.lines().filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?.parse().ok()?, words.next()?.to_owned(), words.next()?.parse().ok()?))
        });
        told.collect()
    }
}

/// What the fleets of a run did, and what the faults did to them.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    /// How many messages each of [`KINDS`] has handled.
    handled: [usize; KINDS.len()],
    /// How many were delivered again after their process was stopped, ...
    after_stops: usize,
    /// ... and after it was killed.
    after_kills: usize,
    /// How long the end of a plan took at most.
    longest: Duration,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.handled = std::array::from_fn(|kind| self.handled[kind] + other.handled[kind]);
        self.after_stops += other.after_stops;
        self.after_kills += other.after_kills;
        self.longest = self.longest.max(other.longest);
    }
}

/// Something that a member has told.
#[derive(Clone, Debug)]
struct Told {
    at: u128,
    what: String,
    by: usize,
}

/// What was done, and what cannot be explained.
fn judge(all: &[Running], pushed: i64) -> (Done, Vec<String>) {
    let mut stories = BTreeMap::<i64, Vec<Told>>::new();
    for (by, member) in all.iter().enumerate() {
        for (at, what, number) in member.told() {
            stories.entry(number).or_default().push(Told { at, what, by });
        }
    }
    let away: Vec<Vec<_>> = all.iter().map(|member| [&member.away[..], &member.held_up()].concat()).collect();
    let mut wrong = Vec::new();
    let (mut late, mut done_in_all) = (0, Done::default());
    for number in 0..pushed {
        let Some(story) = stories.get_mut(&number) else {
            wrong.push(format!("{number} was never handled"));
            continue;
        };
        story.sort_by_key(|told| told.at);
        let begun: Vec<_> = story.iter().filter(|told| told.what == "begun").collect();
        let done: Vec<_> = story.iter().filter(|told| told.what == "acknowledged").collect();
        if done.len() > 1 {
            wrong.push(format!("{number} was acknowledged {} times: {story:?}", done.len()));
        }
        let lease = |told: &Told| all[told.by].member.lease.as_micros();
        for told in &begun {
            done_in_all.handled[all[told.by].member.kind as usize] += 1;
        }
        let mut is_late = false;
        for pair in begun.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            // Whoever had it did not run, between the call that brought it and the next delivery.
            let was_away = |told: &Told| {
                let mut times = away[told.by].iter();
                times.rfind(|(from, to)| *from < second.at && *to + lease(told) > first.at)
            };
            match (was_away(first), was_away(second)) {
                (Some((_, FOR_EVER)), _) => done_in_all.after_kills += 1,
                (Some(_), _) => done_in_all.after_stops += 1,
                (None, Some(_)) => is_late = true,
                (None, None) => {
                    wrong.push(format!("{number} was delivered again without a reason: {story:?}"));
                }
            }
        }
        is_late |= begun.iter().any(|begun| done.iter().any(|done| done.at < begun.at));
        late += usize::from(is_late);
    }
    // A process may be stopped right after it has looked at the lease, and before it prints: for one message
    // each time, about.
    let stops: usize = away.iter().map(Vec::len).sum();
    if late > stops {
        wrong.push(format!(
            "{late} handlers began when somebody else had their messages, or had settled them"
        ));
    }
    (done_in_all, wrong)
}

async fn play(plan: &Plan) -> Result<Done, String> {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let queue = client.blocking_queue::<i64>("q", codec::Long);
    let pushed = Arc::new(AtomicI64::new(0));
    let push = async |queue: &BlockingQueue<i64>| {
        // More than one process has handlers for.
        let numbers: Vec<_> = (0..20).map(|_| pushed.fetch_add(1, Relaxed)).collect();
        soon(queue.offer_all(&numbers)).await.unwrap();
    };
    let (is_over, pause) = (CancellationToken::new(), plan.pause);
    let pushing = tokio::spawn({
        let (queue, pushed, is_over) = (queue.clone(), pushed.clone(), is_over.clone());
        async move {
            while let (Some(pause), false) = (pause, is_over.is_cancelled()) {
                soon(queue.put(&pushed.fetch_add(1, Relaxed))).await.unwrap();
                sleep(pause).await;
            }
        }
    });
    push(&queue).await;
    let mut present: Vec<_> =
        plan.members.iter().map(|member| Running::start(*member, &server.url())).collect();
    let mut past = Vec::new();
    until_async("somebody has started", || async { present.iter().any(|member| !member.told().is_empty()) })
        .await;
    for step in &plan.steps {
        sleep(step.after).await;
        push(&queue).await;
        let member = &mut present[step.member];
        let begun = stop_in_the_middle(member, async || push(&queue).await).await;
        match step.stopped {
            Some(time) => {
                sleep(time).await;
                member.program.thaw();
                member.away.push((begun, now()));
            }
            None => {
                let next = Running::start(member.member, &server.url());
                let mut killed = std::mem::replace(member, next);
                killed.program.kill();
                killed.away.push((begun, FOR_EVER));
                past.push(killed);
            }
        }
    }
    is_over.cancel();
    let ended = Instant::now();
    pushing.await.expect("all is pushed");
    let done = until_async("all is handled", || async { is_drained(&server) });
    if tokio::time::timeout(PATIENCE, done).await.is_err() {
        return Err(format!("not all was handled {PATIENCE:?} after the last fault"));
    }
    let took = ended.elapsed();
    past.extend(present);
    let (done, wrong) = judge(&past, pushed.load(Relaxed));
    if wrong.is_empty() { Ok(Done { longest: took, ..done }) } else { Err(wrong.join("\n")) }
}

/// Stops a member while it handles something. Returns when that was.
async fn stop_in_the_middle(member: &Running, push: impl AsyncFn()) -> u128 {
    loop {
        sleep(ms(fastrand::u64(0..10))).await;
        let begun = now();
        member.program.freeze();
        // A worker drops the handlers of the messages that it had when it was stopped before.
        let since = member.away.last().map_or(0, |(_, to)| *to);
        let told = member.told();
        let numbers = |wanted: &str| -> BTreeSet<i64> {
            let found = told.iter().filter(|(at, what, _)| *at > since && what == wanted);
            found.map(|(.., number)| *number).collect()
        };
        if !numbers("begun").is_subset(&numbers("ended")) {
            return begun;
        }
        member.program.thaw();
        push().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fleets() {
    let (mut done, mut plans) = (Done::default(), 0);
    for seed in seeds(SEEDS) {
        println!("the fleet of seed {seed}");
        let plan = Plan::of_seed(seed);
        match play(&plan).await {
            Ok(more) => done.add(more),
            Err(why) => panic!(
                "{plan:#?}\n{why}\nTo run it again: REDELAY_SEED={seed} cargo test --all-features --test faults fleets"
            ),
        }
        plans += 1;
    }
    println!("{plans} fleets: {done:?}");
    if plans >= 6 {
        assert!(done.handled.iter().all(|count| *count > 0), "a kind of member did nothing");
        assert!(done.after_stops > 0 && done.after_kills > 0, "a kind of fault did nothing");
    }
}

#[test]
fn each_kind_of_member_and_of_fault_is_in_each_of_three_parts() {
    for number in 0..3 {
        let part = Part::new(number, 3);
        let plans: Vec<_> = SEEDS.filter(|seed| part.has(*seed)).map(Plan::of_seed).collect();
        let steps =
            |is: fn(&Step) -> bool| plans.iter().flat_map(|plan| &plan.steps).filter(|step| is(step)).count();
        let kinds =
            KINDS.map(|kind| plans.iter().flat_map(|plan| &plan.members).any(|member| member.kind == kind));
        assert_eq!(kinds, [true; KINDS.len()], "{part:?}");
        assert!(
            steps(|step| step.stopped.is_some()) > 1 && steps(|step| step.stopped.is_none()) > 0,
            "{part:?}"
        );
    }
}
