//! redelay and Redisson on the same cluster, and on a master that the same sentinels name: before and after
//! failovers and moves of a slot, and through them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redelay::{Client, codec};
use redelay_fixture::{Cluster, Failover, Product, Sentinels, Server, until_within};
use redelay_support::{ms, rounds, soon};

use super::peer::{Lang, Peer, Setup};
use super::{BOTH, Cast, all_roles, report};

const ORDERS: &str = "orders";
const PENDING: &str = "redisson_delay_queue:{orders}";
/// The last payload for a taker.
const END: &str = "end";

/// Offers, transfers and takes in every combination of the two.
fn play_all(cast: &mut Cast, what: &str) {
    for name in [ORDERS, "{tag}orders"] {
        for roles in all_roles() {
            cast.play(name, roles, 4);
        }
    }
    report(what);
}

/// What happens while entries are pending.
struct Change<'a> {
    what: &'a str,
    master: &'a Server,
    replicas: Vec<&'a Server>,
    /// Whether the old master may have acknowledged an offer that its replica never gets.
    loses: bool,
    /// Whether the old master accepts writes for a while that are lost: what is taken there comes again.
    undoes: bool,
}

impl Cast {
    /// Both have pending entries, both transfer, takers of both wait, and both offer while the change
    /// happens. Then everything is delivered, once. `happen` returns the master of the queue.
    fn play_through<'a>(&mut self, change: &Change<'_>, happen: impl FnOnce() -> &'a Server) {
        let Change { what, master, replicas, .. } = change;
        let patience = Duration::from_secs(60);
        until_within(patience, "the replicas follow", || {
            replicas.iter().all(|replica| replica.follows(master))
        });
        self.movers.iter_mut().for_each(|mover| mover.open(ORDERS));
        let (taken, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let mut before = Vec::new();
        let failed = AtomicUsize::new(0);
        let during = thread::scope(|scope| {
            let (taken, failed, is_over) = (&taken, &failed, Over(&is_over));
            let [rust, java] = &mut self.takers;
            let until = is_over.0;
            let rust = scope.spawn(move || take_until_the_end(until, rust, taken));
            let java = scope.spawn(move || poll_until(until, java, taken, failed));
            until_within(patience, "both wait", || master.blocked_clients() == 2);
            for round in 0.. {
                for (number, delay) in ["2000", "2600", "3200", "4000"].into_iter().enumerate() {
                    for (lang, offerer) in BOTH.into_iter().zip(&mut self.offerers) {
                        let value = format!("{lang:?} {round}.{number} é");
                        offerer.tell(&["offer", ORDERS, &format!("\"{value}\""), delay]);
                        before.push(value);
                    }
                }
                let written = master.replication_offset();
                until_within(patience, "they are replicated", || {
                    replicas.iter().all(|replica| replica.replication_offset() >= written)
                });
                // Entries are pending when it happens, unless the machine was held up.
                if length(master, PENDING) > 0 {
                    break;
                }
            }
            let has_happened = &AtomicBool::new(false);
            let (master, during) = thread::scope(|scope| {
                let offerers = BOTH.into_iter().zip(&mut self.offerers);
                let offering: Vec<_> = offerers
                    .map(|(lang, offerer)| scope.spawn(move || offer_until(has_happened, lang, offerer)))
                    .collect();
                let happened = Over(has_happened);
                let master = happen();
                drop(happened);
                let offered = offering.into_iter().map(|offering| offering.join().expect("it ends"));
                (master, offered.fold(During::default(), During::and))
            });
            let certain = during.stored.iter().filter(|_| !change.loses);
            let certain: Vec<_> = before.iter().chain(certain).collect();
            let missing = || {
                let taken = taken.lock().unwrap();
                certain.iter().filter(|value| !taken.contains(value)).collect::<Vec<_>>()
            };
            // Redisson may send a poll that has failed once more, for nobody. What that gets is lost.
            let (begun, mut lost_since) = (Instant::now(), None);
            loop {
                let (missing, failed) = (missing(), failed.load(Ordering::Relaxed));
                if missing.is_empty() {
                    break;
                }
                let (pending, ready) = (length(master, PENDING), length(master, ORDERS));
                if missing.len() > failed || pending + ready > 0 {
                    lost_since = None;
                } else if lost_since.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(20) {
                    report(&format!("{missing:?} went to {failed} polls of Redisson's that had failed"));
                    break;
                }
                assert!(
                    begun.elapsed() < 2 * patience,
                    "{what}: not delivered: {missing:?}; {pending} pending, {ready} ready, {} wait, {failed} polls failed",
                    master.blocked_clients(),
                );
                thread::sleep(ms(20));
            }
            until_within(patience, "nothing is left", || {
                length(master, PENDING) + length(master, ORDERS) == 0
            });
            drop(is_over);
            java.join().expect("it ends");
            master.cmd(["RPUSH", ORDERS, END]);
            rust.join().expect("no take fails");
            until_no_poll_is_left(master);
            during
        });
        self.movers.iter_mut().for_each(|mover| mover.tell(&["destroy", ORDERS]));
        let taken = taken.into_inner().unwrap();
        let times = |value: &String| taken.iter().filter(|other| *other == value).count();
        let all: Vec<_> = before.iter().chain(&during.stored).chain(&during.unknown).collect();
        assert!(taken.iter().all(|value| all.contains(&value)), "{what}: {taken:?}");
        let lost = during.stored.iter().filter(|value| times(value) == 0).count();
        let doubled: Vec<_> = all.iter().filter(|value| times(value) > 1).collect();
        report(&format!(
            "through {what}: {lost} of {} offers lost, {} doubled, {} offers and {} of Redisson's polls failed",
            before.len() + during.stored.len(),
            doubled.len(),
            during.unknown.len(),
            failed.load(Ordering::Relaxed),
        ));
        assert!(change.undoes || doubled.is_empty(), "{what}: {doubled:?}");
    }
}

/// What was offered while something happened.
#[derive(Default)]
struct During {
    stored: Vec<String>,
    /// The call has failed.
    unknown: Vec<String>,
}

impl During {
    fn and(mut self, other: Self) -> Self {
        self.stored.extend(other.stored);
        self.unknown.extend(other.unknown);
        self
    }
}

/// Offers entries that become due after a while.
fn offer_until(is_over: &AtomicBool, lang: Lang, offerer: &mut Peer) -> During {
    let mut during = During::default();
    for number in 0.. {
        let value = format!("{lang:?} meanwhile {number}");
        match offerer.ask(&["offer", ORDERS, &format!("\"{value}\""), "3000"]).as_str() {
            "ok" => during.stored.push(value),
            _ => during.unknown.push(value),
        }
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(ms(30));
    }
    during
}

fn length(server: &Server, list: &str) -> usize {
    server.get(["LLEN", list])
}

/// One take of redelay waits through all of it, which may take long.
fn take_until_the_end(is_over: &AtomicBool, rust: &mut Peer, taken: &Mutex<Vec<String>>) {
    loop {
        rust.send(&["take", ORDERS]);
        let value = text(&rust.answer_while(|| !is_over.load(Ordering::Relaxed)));
        if value == END {
            return;
        }
        taken.lock().unwrap().push(value);
    }
}

/// Redisson may send a poll once more after its caller was told that it failed, or that there is nothing.
/// Then it takes a payload for nobody.
fn until_no_poll_is_left(master: &Server) {
    let (begun, mut seen) = (Instant::now(), Instant::now());
    // Longer than Redisson's pause between two tries, and than a poll.
    while seen.elapsed() < Duration::from_secs(5) {
        assert!(begun.elapsed() < Duration::from_secs(60), "a poll is left");
        if master.blocked_clients() > 0 {
            seen = Instant::now();
        }
        thread::sleep(ms(20));
    }
}

/// Redisson throws where the server says that the master is another one. Counts how often.
fn poll_until(is_over: &AtomicBool, java: &mut Peer, taken: &Mutex<Vec<String>>, failed: &AtomicUsize) {
    while !is_over.load(Ordering::Relaxed) {
        match java.ask(&["poll", ORDERS, "2000"]).as_str() {
            "null" => {}
            answer if answer.starts_with('!') => {
                failed.fetch_add(1, Ordering::Relaxed);
                thread::sleep(ms(20));
            }
            answer => taken.lock().unwrap().push(text(answer)),
        }
    }
}

/// Ends the polls, even if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn text(json: &str) -> String {
    serde_json::from_str(json).unwrap_or_else(|_| panic!("no text: {json}"))
}

#[test]
fn a_cluster_with_failovers_and_a_slot_that_moves() {
    for _ in 0..rounds() {
        a_cluster_that_changes();
    }
}

fn a_cluster_that_changes() {
    let cluster = Cluster::start();
    let slot = cluster.slot_of(ORDERS);
    let mut cast = Cast::start(&Setup::new(&cluster.url()));
    play_all(&mut cast, "in a cluster");
    let change = |what| {
        let replicas = vec![cluster.wait_for_replica(slot)];
        Change { what, master: cluster.master_of(slot), replicas, loses: false, undoes: false }
    };
    cast.play_through(&change("a planned failover"), || cluster.failover(slot, Failover::Planned));
    play_all(&mut cast, "after a planned failover");
    let forced = Change { loses: true, undoes: true, ..change("a forced failover") };
    cast.play_through(&forced, || cluster.failover(slot, Failover::Forced));
    let frozen = Change { loses: true, undoes: true, ..change("a master that is frozen") };
    cast.play_through(&frozen, || {
        frozen.master.freeze();
        cluster.wait_for_other_master(slot, frozen.master.port())
    });
    frozen.master.thaw();
    let killed = Change { loses: true, ..change("the death of the master") };
    cast.play_through(&killed, || {
        killed.master.kill_9();
        cluster.wait_for_other_master(slot, killed.master.port())
    });
    play_all(&mut cast, "after the master was killed");
    let other = || {
        let here = cluster.master_of(slot).port();
        let masters = cluster.servers().iter().filter(|server| server.is_running());
        let mut others = masters.filter(|server| server.port() != here && cluster.is_master(server));
        others.next().expect("another master")
    };
    let moved = |what| Change {
        what,
        master: cluster.master_of(slot),
        replicas: Vec::new(),
        loses: false,
        undoes: false,
    };
    let to = other();
    cast.play_through(&moved("the move of the slot"), || {
        cluster.begin_move(slot, to);
        cluster.migrate_keys(slot);
        // Half moved while entries become due.
        thread::sleep(ms(2500));
        cluster.migrate_keys(slot);
        cluster.end_move(slot);
        to
    });
    let version = to.version();
    if version.product == Product::Valkey && version.major >= 9 {
        let to = other();
        cast.play_through(&moved("the move of the slot at once"), || {
            cluster.migrate_slot(slot, to);
            to
        });
    }
    play_all(&mut cast, "after the slot has moved");
    cast.quit();
}

#[test]
fn a_master_that_sentinels_name_with_failovers() {
    for _ in 0..rounds() {
        a_master_that_sentinels_replace();
    }
}

fn a_master_that_sentinels_replace() {
    let group = Sentinels::start();
    let mut cast = Cast::start(&Setup::new(&group.url()));
    play_all(&mut cast, "with sentinels");
    let change = |what, undoes| Change {
        what,
        master: group.master(),
        replicas: group.replicas(),
        loses: true,
        undoes,
    };
    // The old master serves clients that have not left it yet.
    cast.play_through(&change("their failover", true), || group.failover());
    play_all(&mut cast, "after their failover");
    let killed = change("the death of their master", false);
    cast.play_through(&killed, || {
        killed.master.kill_9();
        group.wait_for_other_master(killed.master.port())
    });
    cast.quit();
}

/// The partitions of a queue are ordinary queues.
#[tokio::test(flavor = "multi_thread")]
async fn java_offers_to_partitions_and_takes_from_them() {
    const PARTITIONS: usize = 4;
    let server = Server::start();
    let mut java = Setup::new(&server.url()).java();
    let client = Client::connect(&server.url()).await.unwrap();
    let orders = client.partitioned_queue(ORDERS, PARTITIONS, codec::String).await.unwrap();
    let names: Vec<String> = (0..PARTITIONS).map(|number| format!("orders#{number}")).collect();
    names.iter().for_each(|name| java.open(name));

    // Sixteen in turn go to each.
    let mut expected: Vec<String> = (0..16 * PARTITIONS).map(|number| format!("r{number} é")).collect();
    for value in &expected {
        orders.offer(value, ms(300)).await.unwrap();
    }
    let mut taken = Vec::new();
    for name in &names {
        let drained = java.ask(&["drain", name, "16"]);
        taken.extend(serde_json::from_str::<Vec<String>>(&drained).unwrap_or_else(|_| panic!("{drained}")));
    }
    taken.sort();
    expected.sort();
    assert_eq!(taken, expected);

    let mut expected = Vec::new();
    for name in &names {
        for (number, delay) in ["1", "200", "3600000"].into_iter().enumerate() {
            let value = format!("{name} {number}");
            java.tell(&["offer", name, &format!("\"{value}\""), delay]);
            expected.push(value);
        }
    }
    let mut taken = Vec::new();
    for _ in 0..2 * PARTITIONS {
        taken.push(soon(orders.take()).await.unwrap());
    }
    for delayed in orders.delayed_queues() {
        taken.extend(delayed.read_all().await.unwrap());
    }
    taken.sort();
    expected.sort();
    assert_eq!(taken, expected);
    assert_eq!(java.ask(&["size", &names[0]]), "1");
    java.quit();
    client.shutdown().await;
}
