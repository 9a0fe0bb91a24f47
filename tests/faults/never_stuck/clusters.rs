//! Receivers and workers on a cluster whose masters are replaced, and whose slots move. Offers and
//! settlements wait for a replica, so nothing that was answered is lost, whatever happens to a master.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use redelay_fixture::{Cluster, Failover, Product, Server, redis, replication_offset, until};
use redelay_support::{Part, TARGET, ms};
use tokio::task::{block_in_place, spawn_blocking};
use tokio::time::sleep;

use super::plan::{consumer, members};
use super::rig::{BOUND, Report, finish_without_takers};
use super::{run, run_all, sixth, some_seeds, variable};
use crate::consumers::{Consumer, How};
use crate::ledger::{Ledger, Offered, Price};
use crate::workload::{Crew, Load, Producer};

/// The number of plans. `REDELAY_PLANS=200` runs 200.
const PLANS: u64 = 30;

/// One run.
#[derive(Clone, Debug)]
struct Plan {
    crew: Crew,
    /// The number of programs that push to the ready list, and are not redelay.
    pushers: usize,
    steps: Vec<Step>,
}

/// One fault, and the pause between the recovery from the previous one and its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) after: Duration,
    pub(super) fault: Fault,
    /// For how long the slot is half moved, or the master is down or frozen at least.
    pub(super) lasts: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    /// `CLUSTER FAILOVER`.
    Planned,
    /// `CLUSTER FAILOVER FORCE`.
    Forced,
    /// `kill -9` of the master, and a start after its replica was promoted.
    Killed,
    /// SIGSTOP, and SIGCONT after the promotion: the master does not know that it is none any more.
    Frozen,
    /// SIGSTOP, and SIGCONT after a time in which nobody is promoted, unless the machine is busy.
    FrozenForAMoment,
    /// The slot of the queue gets another master.
    Moved,
    /// The same at once, where the server can do that.
    MovedAtOnce,
}

/// Faults that undo nothing.
const GENTLE: [Fault; 3] = [Fault::Planned, Fault::Moved, Fault::MovedAtOnce];
const ALL: [Fault; 7] = {
    use Fault::{Forced, Frozen, FrozenForAMoment, Killed, Moved, MovedAtOnce, Planned};
    [Planned, Forced, Killed, Frozen, FrozenForAMoment, Moved, MovedAtOnce]
};

impl Plan {
    fn of_seed(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let is_gentle = random.u8(0..3) == 0;
        let mut clients = members(&mut random);
        let first = random.usize(0..clients.len());
        for (number, member) in clients.iter_mut().enumerate() {
            // A taker may lose what a master has popped for it when the connection is given up.
            member.takers.clear();
            member.is_replicated = true;
            member.command_timeout = ms([300, 1_000, 5_000][random.usize(0..3)]);
            member.consumers = (0..random.usize(0..=3)).map(|_| consumer(&mut random)).collect();
            if number == first {
                // One that receives, and one with enough slots for what has come during a fault.
                let how = [How::Receives, How::Many, How::Streams, How::Drops][random.usize(0..4)];
                let receiver = Consumer { how, lease: ms(3_000), attempts: 10, extends: true };
                member.consumers.extend([receiver, Consumer { how: How::Works(8), ..receiver }]);
            }
            if !is_gentle {
                // No replica confirms a cancellation.
                for producer in &mut member.producers {
                    if matches!(producer, Producer::Cancels) {
                        *producer = Producer::Offers;
                    }
                }
            }
        }
        let faults = if is_gentle { &GENTLE[..] } else { &ALL };
        let step = |_| Step {
            after: ms(random.u64(10..300)),
            fault: faults[random.usize(0..faults.len())],
            lasts: ms(random.u64(0..700)),
        };
        let steps = (0..3).map(step).collect();
        let backlog = [0, 0, 200, 1_000][random.usize(0..4)];
        let mut crew = Crew { seed, backlog, distant: Vec::new(), clients, others: 0 };
        if random.u8(0..3) == 0 {
            crew.divide();
        }
        Self { crew, pushers: random.usize(1..=2), steps }
    }

    /// Whether a master may be replaced that has not sent everything to its replica.
    fn undoes(&self) -> bool {
        self.steps.iter().any(|step| !GENTLE.contains(&step.fault))
    }

    /// The kinds of its faults, and whether it undoes something.
    fn kinds(&self) -> Vec<String> {
        let faults = self.steps.iter().map(|step| format!("{:?}", step.fault));
        faults.chain([format!("undoes: {}", self.undoes())]).collect()
    }
}

async fn play(plan: &Plan) -> Result<Report, String> {
    let cluster = Arc::new(block_in_place(Cluster::start));
    let slot = cluster.slot_of(TARGET);
    if !plan.undoes() {
        cluster.be_patient(true);
    }
    let mut load = Load::start(&plan.crew, &cluster.url()).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let pushing: Vec<_> = (0..plan.pushers)
        .map(|_| {
            let (cluster, ledger, is_over) = (cluster.clone(), load.ledger.clone(), is_over.clone());
            spawn_blocking(move || push_elsewhere(&cluster, slot, &ledger, &is_over))
        })
        .collect();
    for step in &plan.steps {
        sleep(step.after).await;
        block_in_place(|| {
            suffer(&cluster, slot, *step);
            until_in_step(&cluster, slot);
        });
    }
    is_over.store(true, Ordering::Relaxed);
    for pushing in pushing {
        pushing.await.expect("a program goes on whatever happens");
    }
    cluster.be_patient(true);
    // From here on, the master stays.
    block_in_place(|| {
        may_be_replaced(&cluster, false);
        until_in_step(&cluster, slot);
    });
    let price = Price { undone: plan.undoes(), ..Price::default() };
    let mut report = finish_without_takers(cluster.master_of(slot), &mut load, price).await?;
    report.faults = plan.steps.len();
    Ok(report)
}

pub(super) fn suffer(cluster: &Cluster, slot: u16, step: Step) {
    let old = cluster.master_of(slot);
    match step.fault {
        Fault::Planned => drop(cluster.failover(slot, Failover::Planned)),
        Fault::Forced => drop(cluster.failover(slot, Failover::Forced)),
        Fault::Killed => {
            old.kill_9();
            cluster.wait_for_other_master(slot, old.port());
            // Not before that: it comes back empty.
            thread::sleep(step.lasts);
            old.start_again();
        }
        Fault::Frozen => {
            old.freeze();
            cluster.wait_for_other_master(slot, old.port());
            thread::sleep(step.lasts);
            old.thaw();
        }
        Fault::FrozenForAMoment => {
            old.freeze();
            thread::sleep(step.lasts);
            old.thaw();
        }
        Fault::Moved | Fault::MovedAtOnce => {
            // A master that is replaced because a busy machine is slow takes no part in the move any more.
            may_be_replaced(cluster, false);
            until_in_step(cluster, slot);
            move_slot(cluster, slot, step);
            may_be_replaced(cluster, true);
        }
    }
}

/// Whether masters that seem to be down are replaced. With `false`, also what has begun ends at once.
fn may_be_replaced(cluster: &Cluster, may: bool) {
    for server in cluster.servers() {
        server.cmd(["CONFIG", "SET", "cluster-replica-no-failover", if may { "no" } else { "yes" }]);
    }
}

fn move_slot(cluster: &Cluster, slot: u16, step: Step) {
    let old = cluster.master_of(slot);
    let is_other = |server: &&Server| server.port() != old.port() && cluster.is_master(server);
    let mut other = None;
    until("another master answers", || {
        other = cluster.servers().iter().find(is_other);
        other.is_some()
    });
    let to = other.expect("it was waited for");
    let version = old.version();
    let is_possible = version.product == Product::Valkey && version.major >= 9;
    if step.fault == Fault::MovedAtOnce && is_possible {
        cluster.migrate_slot(slot, to);
        return;
    }
    cluster.begin_move(slot, to);
    thread::sleep(step.lasts / 2);
    cluster.migrate_keys(slot);
    thread::sleep(step.lasts / 2);
    cluster.migrate_keys(slot);
    cluster.end_move(slot);
}

/// Waits until the replica of the slot's master has everything that the master has now. If the master were
/// replaced before, what came with a move would be lost, or all.
pub(super) fn until_in_step(cluster: &Cluster, slot: u16) {
    let offset = |server: &Server| {
        let info: String = redis::cmd("INFO").arg("replication").query(&mut connection(server)?).ok()?;
        replication_offset(&info)
    };
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < BOUND, "no master of the slot answers");
        let (replica, master) = (cluster.wait_for_replica(slot), cluster.master_of(slot));
        let Some(least) = offset(master) else {
            thread::sleep(ms(20));
            continue;
        };
        // A frozen master may be replaced after all.
        let is_replaced = || cluster.master_of(slot).port() != master.port();
        let has_all = || offset(replica).is_some_and(|offset| offset >= least);
        until("the replica is in step", || is_replaced() || has_all());
        if !is_replaced() {
            return;
        }
    }
}

fn connection(server: &Server) -> Option<redis::Connection> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{}", server.port())).expect("an address");
    let connection = client.get_connection_with_timeout(ms(300)).ok()?;
    connection.set_read_timeout(Some(ms(1_000))).ok()?;
    Some(connection)
}

/// Pushes to the ready list as another library does, and waits until a replica has it.
fn push_elsewhere(cluster: &Cluster, slot: u16, ledger: &Ledger, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        if let Some(mut connection) = connection(cluster.master_of(slot)) {
            while !is_over.load(Ordering::Relaxed) && push_one(&mut connection, ledger).is_some() {
                thread::sleep(ms(5));
            }
        }
        thread::sleep(ms(5));
    }
}

/// `None` if another connection is needed.
fn push_one(connection: &mut redis::Connection, ledger: &Ledger) -> Option<()> {
    let numbers = ledger.begin(1);
    let pushed: redis::RedisResult<i64> = redis::cmd("RPUSH").arg(TARGET).arg(numbers[0]).query(connection);
    let offered = match pushed {
        Ok(_) => match redis::cmd("WAIT").arg(1).arg(300).query::<i64>(connection) {
            Ok(1..) => Offered::Acknowledged,
            _ => Offered::Unknown,
        },
        // The server says that it did not do it.
        Err(error) if error.code().is_some() => Offered::Refused,
        Err(_) => Offered::Unknown,
    };
    ledger.end(&numbers, offered);
    (offered == Offered::Acknowledged).then_some(())
}

#[test]
fn seeded_plans_of_clusters() {
    let begun = Instant::now();
    let (good, bad) = run_all(some_seeds(range(), |seed| Plan::of_seed(seed).kinds()), |seed| {
        let plan = Plan::of_seed(seed);
        run("clusters::seeded_plans_of_clusters", seed, &plan, play(&plan))
    });
    let sum = |of: fn(&Report) -> usize| good.iter().map(of).sum::<usize>();
    println!(
        "{} plans with {} faults in {:.0?}: {} offers acknowledged, {} of unknown outcome, {} refused; {} deliveries, {} lost",
        good.len(),
        sum(|report| report.faults),
        begun.elapsed(),
        sum(|report| report.acknowledged),
        sum(|report| report.unknown),
        sum(|report| report.refused),
        sum(|report| report.received),
        sum(|report| report.lost),
    );
    let longest = good.iter().map(|report| report.recovery).max().unwrap_or_default();
    println!("all delivered after {longest:.1?} at most; {BOUND:?} are allowed");
    let plans = good.len() + bad.len();
    assert!(bad.is_empty(), "{} of {plans} plans failed: {bad:?}", bad.len());
}

fn range() -> Range<u64> {
    0..variable("REDELAY_PLANS").unwrap_or(PLANS)
}

#[test]
fn each_kind_of_fault_is_in_each_of_three_parts() {
    for number in 0..3 {
        let part = Part::new(number, 3);
        let seeds = sixth((0..PLANS).filter(|seed| part.has(*seed)), |seed| Plan::of_seed(seed).kinds());
        assert!(seeds.len() <= 6, "{part:?}: {seeds:?}");
        let plans: Vec<_> = seeds.into_iter().map(Plan::of_seed).collect();
        assert!(plans.iter().any(|plan| !plan.undoes()), "{part:?}");
        let faults: HashSet<_> = plans.iter().flat_map(|plan| &plan.steps).map(|step| step.fault).collect();
        assert_eq!(faults.len(), ALL.len(), "{part:?}: {faults:?}");
    }
}
