//! The slot of a queue moves to another master while everybody works on the queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redelay::{Worker, codec};
use redelay_fixture::{Cluster, Product, Server, until_async, until_async_within};
use redelay_support::{MINUTE, SCRATCH, TARGET, builder, is_soak, ms, rounds, script, soon};
use tokio::task::block_in_place;

/// The slot of a queue moves while everybody works on it, and stays half moved for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves() {
    let cluster = Cluster::start();
    cluster.be_patient(true);
    for _ in 0..rounds() {
        keeps_all_while_it_moves(&cluster, |slot, to| {
            cluster.begin_move(slot, to);
            std::thread::sleep(ms(1000));
            cluster.migrate_keys(slot);
            std::thread::sleep(ms(if is_soak() { 2000 } else { 1500 }));
            cluster.migrate_keys(slot);
            cluster.end_move(slot);
        })
        .await;
    }
}

/// The same, as Valkey does it since version 9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_at_once() {
    let cluster = Cluster::start();
    cluster.be_patient(true);
    let version = cluster.servers()[0].version();
    if version.product != Product::Valkey || version.major < 9 {
        println!("skipped: {version} has no CLUSTER MIGRATESLOTS, which Valkey has since version 9");
        return;
    }
    for _ in 0..rounds() {
        keeps_all_while_it_moves(&cluster, |slot, to| cluster.migrate_slot(slot, to)).await;
    }
}

async fn keeps_all_while_it_moves(cluster: &Cluster, moves: impl Fn(u16, &Server)) {
    // Enough to take as fast as it is transferred.
    const TAKERS: usize = 8;
    let pending = if is_soak() { 100_000 } else { 20_000 };
    let slot = cluster.slot_of("q");
    let client = builder(&cluster).command_timeout(MINUTE);
    let client = client.connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    // They become due while it moves, or later.
    let due = Duration::from_secs(if is_soak() { 8 } else { 4 });
    let values: Vec<i64> = (0..pending).collect();
    for values in values.chunks(1000) {
        delayed.offer_all(values.iter().map(|value| (value, due))).await.unwrap();
    }
    let received = client.blocking_queue("{q}received", codec::Long);
    let handled = Arc::new(Mutex::new(Vec::new()));
    let working = tokio::spawn({
        let (worker, handled) = (Worker::new(&received).concurrency(4), handled.clone());
        let handler = move |value: i64| {
            handled.lock().unwrap().push(value);
            async {}
        };
        worker.run_until(std::future::pending::<()>(), handler)
    });
    let dropped = client.blocking_queue("{q}dropped", codec::Long);
    let dropped = tokio::spawn(async move { dropped.take().await });
    let is_over = Arc::new(AtomicBool::new(false));
    let offering = tokio::spawn({
        let queues = [delayed.clone(), client.delayed_queue(&received)];
        let is_over = is_over.clone();
        async move {
            let (mut next, mut longest, mut refused) = (pending, Duration::ZERO, Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                for delayed in &queues {
                    let begun = Instant::now();
                    if let Err(error) = delayed.offer(&next, ms(1)).await {
                        refused.push(error);
                    }
                    longest = longest.max(begun.elapsed());
                }
                next += 1;
                tokio::time::sleep(ms(2)).await;
            }
            (next, longest, refused)
        }
    });
    let taking: Vec<_> = (0..TAKERS)
        .map(|_| {
            let ready = ready.clone();
            tokio::spawn(async move {
                let mut taken = Vec::new();
                loop {
                    let value: i64 = ready.take().await.expect("no take fails");
                    if value < 0 {
                        return taken;
                    }
                    taken.push(value);
                }
            })
        })
        .collect();
    let redirects = client.stats().redirects;
    let from = cluster.master_of(slot);
    let to = cluster.servers()[..3].iter().find(|server| server.port() != from.port()).unwrap();
    // A taker leaves while the slot is half moved.
    let leaving = tokio::spawn(async move {
        tokio::time::sleep(ms(1000)).await;
        dropped.abort();
    });
    block_in_place(|| {
        std::thread::sleep(ms(500));
        moves(slot, to);
    });
    soon(leaving).await.unwrap();
    // Nobody takes it.
    to.cmd(["RPUSH", "{q}dropped", "7"]);
    assert_eq!(cluster.master_of(slot).port(), to.port());
    tokio::time::sleep(ms(500)).await;
    is_over.store(true, Ordering::Relaxed);
    let (offered, longest, refused) = soon(offering).await.unwrap();
    until_async_within(10 * MINUTE, "all is transferred", || async {
        to.get::<i64, _>(["LLEN", "redisson_delay_queue:{q}"]) == 0
    })
    .await;
    to.cmd(["RPUSH", "q"].into_iter().chain(["-1"; TAKERS]));
    let mut taken = Vec::new();
    for taking in taking {
        taken.extend(soon(taking).await.unwrap());
    }
    let handled = || handled.lock().unwrap().clone();
    until_async_within(10 * MINUTE, "all is handled", || async {
        handled().len() as i64 >= offered - pending
    })
    .await;
    let all = taken.len();
    taken.sort_unstable();
    taken.dedup();
    let (doubled, lost) = (all - taken.len(), offered as usize - taken.len());
    println!(
        "{pending} pending: {} offers during the move, {} of them refused, the longest took {longest:?}; {lost} lost, {doubled} doubled",
        offered - pending,
        refused.len(),
    );
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!((lost, doubled), (0, 0));
    assert!(client.stats().redirects > redirects, "nobody was sent to the new server");
    until_async("nothing is left there", || async { from.blocked_clients() == 0 }).await;
    assert_eq!(to.list("{q}dropped"), [b"7"]);
    client.shutdown().await;
    soon(working).await.unwrap().unwrap();
    let mut handled = handled();
    handled.sort_unstable();
    assert!(handled.iter().copied().eq(pending..offered), "{} of {}", handled.len(), offered - pending);
    to.cmd(["DEL", "{q}dropped"]);
}

/// The server runs no script of which a key is absent. Otherwise this one would empty the hash of the claims,
/// and the next command on it would end the script half-way.
#[test]
fn no_take_runs_while_its_slot_is_half_moved() {
    const CLAIMS: &str = "redelay:popped:{q}";
    let cluster = Cluster::without_replicas(3);
    let slot = cluster.slot_of(TARGET);
    let source = cluster.master_of(slot);
    let target = cluster.servers().iter().find(|server| server.port() != source.port()).unwrap();
    source.cmd(["RPUSH", TARGET, "a"]);
    source.cmd(["HSET", CLAIMS, "earlier", ""]);
    cluster.begin_move(slot, target);
    let call = ["LPOP", "1", "60000", "this", "earlier"];
    let take = script("TAKE");
    let error =
        source.try_cmd(["EVAL", &take, "3", TARGET, CLAIMS, SCRATCH].into_iter().chain(call)).unwrap_err();
    assert!(matches!(error.code(), Some("ASK" | "TRYAGAIN")), "{error}");
    assert_eq!((source.list(TARGET), source.get::<u64, _>(["HLEN", CLAIMS])), (vec![b"a".to_vec()], 1));
}

/// What a server has said of a slot says more than that it is silent in the end.
#[tokio::test]
async fn a_read_says_that_its_slot_is_being_moved_though_its_last_try_is_not_answered() {
    let cluster = Cluster::without_replicas(3);
    let slot = cluster.slot_of("q");
    let source = cluster.master_of(slot);
    let target = cluster.servers().iter().find(|server| server.port() != source.port()).unwrap();
    let builder = builder(&cluster).transfer(false);
    let client = builder.command_timeout(ms(8000)).connect().await.unwrap();
    cluster.begin_move(slot, target);
    let looking = tokio::spawn({
        let inspector = client.inspector();
        async move { inspector.pending("q", None, 1).await }
    });
    until_async("it is refused", || async { client.stats().redirects > 2 }).await;
    source.freeze();
    let error = soon(looking).await.unwrap().unwrap_err().to_string();
    source.thaw();
    assert!(error.contains("its slot is being moved"), "{error}");
}
