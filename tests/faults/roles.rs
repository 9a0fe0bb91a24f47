//! Clients that do one thing each, in a process of their own, through failovers. A client that does
//! everything is woken by the replies to its own calls, so it cannot show what a client misses that only
//! waits.
//!
//! The test stands for the other participants, on the server: it offers, pushes and takes there as Redisson
//! does.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use futures::future::join_all;
use redelay::receiver::MessageId;
use redelay::{BlockingQueue, Client, Delivery, codec};
use redelay_fixture::{Cluster, Program, Sentinels, Server, redis};
use redelay_support::{HOUR, MINUTE, builder, is_soak, ms, rounds, soon, still_builder};
use tokio::task::block_in_place;

use super::around_failover::until_replicated;
use super::failover_load::offer_elsewhere;
use super::{clusters, sentinels};

/// What a client does, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// It moves what others offer.
    Transfers,
    /// It takes what others push.
    Takes,
    /// It waits in one receive until others push.
    Receives,
    /// It receives in a loop, and does not wait long.
    Polls,
    /// It waits for a retry that others bring forward.
    FollowsRetries,
    /// It runs a schedule.
    Schedules,
    Offers,
}

const ROLES: [Role; 7] = [
    Role::Transfers,
    Role::Takes,
    Role::Receives,
    Role::Polls,
    Role::FollowsRetries,
    Role::Schedules,
    Role::Offers,
];

/// How often a schedule runs.
const EVERY: Duration = ms(500);
/// How often everybody does what they do after a failover, until it counts.
const OFTEN: usize = 5;
/// How many messages wait for a retry.
const RETRIES: usize = 1000;
/// What a client prints that has missed an announcement, and has found out by looking for overdue entries.
const STALLED: &str = "it has stalled";
/// A client does its thing again within this time.
const BACK: Duration = Duration::from_secs(20);
/// In that time, a test looks more often than this. Otherwise, the machine was held up.
const LOOKS: u32 = 300;
/// An entry is overdue for longer when a client finds out that it has stalled.
const OVERDUE: Duration = Duration::from_secs(5);
/// In that time, a client looks more often than this whether it has stalled.
const OWN_LOOKS: usize = 15;
/// How often the test asks who the master is, if something takes long. A frozen server delays that by a
/// second.
const ASK: Duration = Duration::from_secs(5);

impl Role {
    /// In one slot.
    fn queue(self) -> String {
        format!("{{q}}{self:?}")
    }

    fn named(name: &str) -> Self {
        ROLES.into_iter().find(|role| format!("{role:?}") == name).expect("a role")
    }

    /// Does it for ever, and prints numbers.
    async fn play(self, client: Client) {
        let queue = client.blocking_queue::<i64>(&self.queue(), codec::Long);
        match self {
            Self::Transfers | Self::Schedules => {
                let _watched = client.delayed_queue(&queue);
                std::future::pending().await
            }
            Self::Takes => loop {
                print_result(queue.take().await);
            },
            Self::Receives | Self::FollowsRetries => {
                let receiver = queue.receiver();
                loop {
                    let received = receiver.receive().await;
                    print_result(received.map(acknowledged));
                }
            }
            Self::Polls => {
                let receiver = queue.receiver();
                loop {
                    if let Some(received) = receiver.receive_timeout(ms(300)).await.transpose() {
                        print_result(received.map(acknowledged));
                    }
                }
            }
            Self::Offers => {
                let delayed = client.delayed_queue(&queue);
                for value in 0.. {
                    print_result(delayed.offer(&value, HOUR).await.map(|_| value));
                    tokio::time::sleep(ms(20)).await;
                }
            }
        }
    }
}

fn acknowledged(delivery: Delivery<i64>) -> i64 {
    let (value, delivery) = delivery.into_parts();
    tokio::spawn(delivery.ack());
    value
}

fn print_result(result: redelay::Result<i64>) {
    match result {
        Ok(value) => println!("did {value}"),
        Err(error) => println!("{error}"),
    }
}

/// A client with one role. The tests below start it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part of another test, in a process of its own"]
async fn plays() {
    let [url, role] = ["URL", "ROLE"].map(|name| std::env::var(name).expect("started by a test"));
    let role = Role::named(&role);
    let transfers = matches!(role, Role::Transfers | Role::Schedules);
    // On a busy machine, it may begin when the master has failed.
    let builder = builder(&url).transfer(transfers);
    let client = builder.connect().await.unwrap();
    let (playing, started) = (tokio::spawn(role.play(client.clone())), Instant::now());
    let mut looks = VecDeque::from([started; OWN_LOOKS]);
    while client.stats().stalled_transfers == 0 && !playing.is_finished() {
        tokio::time::sleep(ms(100)).await;
        looks.pop_front();
        looks.push_back(Instant::now());
    }
    // A client that gets no processor time hears announcements late.
    let is_held_up = looks[0].elapsed() > OVERDUE || looks[0] == started;
    let what = if is_held_up { "it was held up" } else { STALLED };
    println!("{what} {:?} after its start: {:?}", started.elapsed(), client.stats());
    playing.await.unwrap();
}

/// The servers, seen from outside.
trait Servers {
    fn url(&self) -> String;
    /// The present master of the queues.
    fn master(&self) -> &Server;
    /// Its replicas.
    fn replicas(&self) -> Vec<&Server>;
    /// Makes another server the master. Returns when that is known.
    fn fail(&self);
}

struct OfSentinels(Sentinels, sentinels::Failure);

impl Servers for OfSentinels {
    fn url(&self) -> String {
        self.0.url()
    }

    fn master(&self) -> &Server {
        self.0.master()
    }

    fn replicas(&self) -> Vec<&Server> {
        self.0.replicas()
    }

    fn fail(&self) {
        self.1.happen(&self.0);
    }
}

struct OfCluster(Cluster, clusters::Failure);

impl Servers for OfCluster {
    fn url(&self) -> String {
        self.0.url()
    }

    fn master(&self) -> &Server {
        self.0.master_of(self.0.slot_of("{q}"))
    }

    fn replicas(&self) -> Vec<&Server> {
        vec![self.0.replica_of(self.0.slot_of("{q}"))]
    }

    fn fail(&self) {
        self.0.be_patient(false);
        self.1.happen(&self.0, self.0.slot_of("{q}"));
    }
}

/// What a client is given to do, and what it has done.
struct Player {
    role: Role,
    program: Program,
    /// The queue, by a client of the test.
    queue: BlockingQueue<i64>,
    /// Messages that wait for a retry in an hour.
    retries: Vec<MessageId>,
    number: i64,
    /// The server has what this client is to do.
    is_given: bool,
    /// How often it had done it when this wait began.
    done: usize,
    wait: Wait,
    /// Those that are over.
    waits: Vec<Wait>,
}

/// A time in which a client has to do something once.
#[derive(Clone, Copy)]
struct Wait {
    begun: Instant,
    took: Duration,
    /// How often the test has looked.
    looks: u32,
}

impl Wait {
    fn new() -> Self {
        Self { begun: Instant::now(), took: Duration::ZERO, looks: 0 }
    }

    fn is_held_up(&self) -> bool {
        self.looks * BACK < self.took * LOOKS
    }

    fn is_too_long(&self) -> bool {
        self.took > 10 * BACK || self.took > BACK && !self.is_held_up()
    }
}

impl Player {
    async fn start(role: Role, url: &str, others: &Client) -> Self {
        let queue = others.blocking_queue(&role.queue(), codec::Long);
        let retries = match role {
            Role::FollowsRetries => wait_for_retries(url, &role.queue()).await,
            _ => Vec::new(),
        };
        if role == Role::Schedules {
            let schedule = others.delayed_queue(&queue).schedule("often").every(EVERY);
            soon(schedule.upsert(&1)).await.unwrap();
        }
        let program =
            Program::start_ignored_test("roles::plays", &[("URL", url), ("ROLE", &format!("{role:?}"))]);
        let (wait, waits) = (Wait::new(), Vec::new());
        Self { role, program, queue, retries, number: 0, is_given: false, done: 0, wait, waits }
    }

    /// Gives it one thing more to do. `None` if the server does not do that now.
    async fn give(&mut self, server: &Server) -> Option<()> {
        let keys = self.queue.keys();
        match self.role {
            Role::Transfers => {
                let delayed = self.queue.keys();
                block_in_place(|| offer_elsewhere(&mut server.redis(), &delayed, self.number, ms(20)))
                    .ok()?;
            }
            Role::Takes | Role::Receives | Role::Polls => {
                server.try_cmd(["RPUSH", &keys.target, &self.number.to_string()]).ok()?;
            }
            Role::FollowsRetries => {
                let id = self.retries.last()?;
                // The id is kept until the call is known to be executed.
                let requeued = self.queue.unsettled().requeue(*id).await.ok()?;
                self.retries.pop();
                // `false`: a call whose reply was lost has done it, or the message was lost with the master.
                requeued.then_some(())?;
            }
            Role::Schedules | Role::Offers => {}
        }
        self.number += 1;
        Some(())
    }

    /// How often it has done what it does. `None` if the server does not say so now: a cluster is down for a
    /// moment if the machine was held up, and its master may be replaced.
    fn done(&self, server: &Server) -> Option<usize> {
        match self.role {
            Role::Transfers | Role::Schedules => {
                let target = self.queue.keys().target;
                let length = block_in_place(|| server.try_cmd(["LLEN", &target])).ok()?;
                Some(redis::from_redis_value(length).unwrap())
            }
            _ => Some(self.program.output().lines().filter(|line| line.starts_with("did ")).count()),
        }
    }

    /// From here on it counts what it does on this server.
    async fn count_from_here(&mut self, server: &Server) {
        self.waits.clear();
        self.done = self.done(server).unwrap_or(self.done);
        self.wait = Wait::new();
        self.is_given = self.give(server).await.is_some();
    }

    /// Looks whether it has done it once more, and goes on.
    async fn look(&mut self, server: &Server) {
        let done = self.done(server).unwrap_or(self.done);
        self.wait.took = self.wait.begun.elapsed();
        self.wait.looks += 1;
        if done > self.done {
            self.waits.push(self.wait);
            (self.done, self.wait) = (done, Wait::new());
            self.is_given = false;
        }
        if !self.is_given {
            self.is_given = self.give(server).await.is_some();
        }
    }
}

/// Messages of a queue that wait for a retry in an hour. Receivers have the timeout of the builder.
async fn wait_for_retries(url: &str, name: &str) -> Vec<MessageId> {
    let patient = still_builder(&url.to_owned()).connect().await.unwrap();
    let queue = patient.blocking_queue(name, codec::Long);
    let numbers: Vec<i64> = (0..).take(RETRIES).collect();
    soon(queue.offer_all(&numbers)).await.unwrap();
    let receiver = queue.receiver().lease(10 * MINUTE);
    let mut ids = Vec::new();
    while ids.len() < RETRIES {
        let deliveries = soon(receiver.receive_many(100)).await.unwrap().into_iter().map(Result::unwrap);
        let waiting = deliveries.map(|delivery| {
            ids.push(delivery.id());
            delivery.retry_after(HOUR)
        });
        soon(join_all(waiting)).await.into_iter().for_each(Result::unwrap);
    }
    patient.shutdown().await;
    ids
}

/// Waits until the replicas have everything, so that nothing that clients are to do is lost with the master.
async fn until_replicas_have_all(servers: &impl Servers) {
    for replica in block_in_place(|| servers.replicas()).into_iter().filter(|replica| replica.is_running()) {
        until_replicated(block_in_place(|| servers.master()), replica).await;
    }
}

/// Everybody plays until the master fails, `after` they have started; and again, `times` in a row. Then
/// everybody is back soon. Returns the longest time that any of them has taken.
async fn play(servers: &impl Servers, after: Duration, times: usize) -> Duration {
    let still = builder(&servers.url()).transfer(false);
    let others = still.connect().await.unwrap();
    let mut players = Vec::new();
    for role in ROLES {
        players.push(Player::start(role, &servers.url(), &others).await);
    }
    let old = block_in_place(|| servers.master());
    until_replicas_have_all(servers).await;
    let started = Instant::now();
    for player in &mut players {
        player.count_from_here(old).await;
    }
    while started.elapsed() < after {
        for player in &mut players {
            player.look(old).await;
        }
        tokio::time::sleep(ms(20)).await;
    }
    for round in 0..times {
        if round > 0 {
            until_replicas_have_all(servers).await;
        }
        block_in_place(|| servers.fail());
    }
    let (mut new, promoted) = (block_in_place(|| servers.master()), Instant::now());
    for player in &mut players {
        player.count_from_here(new).await;
        player.wait.begun = promoted;
    }
    println!("{times} failovers, {after:?} after the start");
    let mut asked = promoted;
    let is_missing = |player: &Player| player.waits.len() < OFTEN;
    while players.iter().any(is_missing) && !players.iter().any(|player| player.wait.is_too_long()) {
        for player in &mut players {
            player.look(new).await;
        }
        let is_late = players.iter().any(|player| player.wait.took > Duration::from_secs(1));
        if is_late && asked.elapsed() > ASK {
            asked = Instant::now();
            // While the machine is held up, the new master may be replaced, too.
            let master = block_in_place(|| servers.master());
            if master.port() != new.port() {
                println!("and another failover");
                new = master;
                for player in &mut players {
                    player.count_from_here(new).await;
                }
            }
        }
        tokio::time::sleep(ms(20)).await;
    }
    let (mut late, mut longest_of_all) = (Vec::new(), Duration::ZERO);
    for player in &players {
        let took: Vec<_> = player.waits.iter().map(|wait| wait.took).collect();
        let first = took.first().copied().unwrap_or_default();
        let longest = took.iter().max().copied().unwrap_or_default();
        println!("{:?}: {:?} after the promotion, then every {longest:?} at most", player.role, first);
        let output = player.program.output();
        longest_of_all = longest_of_all.max(longest);
        let is_late = player.waits.iter().chain([&player.wait]).any(Wait::is_too_long);
        let is_excused = player.waits.iter().any(|wait| wait.took > OVERDUE && wait.is_held_up());
        let has_stalled = output.contains(STALLED) && !is_excused;
        if is_late || is_missing(player) || has_stalled {
            println!("{output}");
            println!("{:?}", new.try_cmd(["KEYS", &format!("*{}*", player.role.queue())]));
            late.push(player.role);
        }
    }
    assert!(
        late.is_empty(),
        "{late:?} did not do it {OFTEN} times with at most {BACK:?} between them, or have stalled"
    );
    longest_of_all
}

/// Sentinels name a master at most that long before everybody uses it.
const OF_SENTINELS: Duration = Duration::from_secs(2);
const OF_CLUSTERS: Duration = Duration::from_secs(1);

async fn play_with_sentinels(failure: sentinels::Failure, after: &[Duration], times: usize) {
    let mut longest = Vec::new();
    for _ in 0..rounds() {
        for after in after {
            let group = Sentinels::start();
            group.be_patient();
            longest.push(play(&OfSentinels(group, failure), *after, times).await);
        }
    }
    are_soon(longest, OF_SENTINELS);
}

async fn play_in_a_cluster(failure: clusters::Failure, after: &[Duration], times: usize) {
    let mut longest = Vec::new();
    for _ in 0..rounds() {
        for after in after {
            let cluster = Cluster::start();
            cluster.be_patient(true);
            longest.push(play(&OfCluster(cluster, failure), *after, times).await);
        }
    }
    are_soon(longest, OF_CLUSTERS);
}

/// A busy machine makes some of them late. Most are not.
fn are_soon(mut longest: Vec<Duration>, within: Duration) {
    longest.sort_unstable();
    let soon = longest.partition_point(|longest| *longest <= within);
    println!("{soon} of {} rounds took {within:?} at most, the longest {:?}", longest.len(), longest.last());
    assert!(!is_soak() || 2 * soon >= longest.len(), "most are late: {longest:?}");
}

/// How long everybody plays before the failure.
fn times_before() -> Vec<Duration> {
    if is_soak() { vec![ms(200), ms(1000), ms(5000), ms(30_000)] } else { vec![ms(200), ms(1000)] }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_replace_a_master_that_is_killed() {
    play_with_sentinels(sentinels::Failure::Killed, &times_before(), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_replace_a_master_that_is_frozen() {
    play_with_sentinels(sentinels::Failure::Frozen, &[ms(1000)], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_replace_a_master_twice() {
    play_with_sentinels(sentinels::Failure::Killed, &[ms(1000)], 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_failover_of_sentinels() {
    play_with_sentinels(sentinels::Failure::Planned, &[ms(1000)], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_replaces_a_master_that_is_killed() {
    play_in_a_cluster(clusters::Failure::Killed, &times_before(), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_replaces_a_master_that_is_frozen() {
    play_in_a_cluster(clusters::Failure::Frozen, &[ms(1000)], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planned_failovers_of_a_cluster() {
    play_in_a_cluster(clusters::Failure::Planned, &[ms(1000)], 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_failover_of_a_cluster() {
    play_in_a_cluster(clusters::Failure::Forced, &[ms(1000)], 1).await;
}
