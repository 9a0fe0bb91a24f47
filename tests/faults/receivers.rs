//! Receivers and workers under faults: lost replies, cut connections, killed, stopped and poisoned processes, a server that
//! stands still, a clock that jumps. Every message is acknowledged, dead or waiting, exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::stream;
use redelay::{Backoff, BlockingQueue, Client, Context, Delivery, ErrorKind, Receiver, Worker, codec};
use redelay_fixture::{ClientKind, Program, Proxy, Server, until, until_async, until_async_within};
use redelay_support::{HOUR, MINUTE, Queues, builder, ms, number_queues, soon};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::never_stuck::clock::Clock;

const INBOX: &str = "redelay:inbox:{q}";
const MESSAGES: &str = "redelay:messages:{q}";
const LEASES: &str = "redelay:leases:{q}";
const DEAD: &str = "redelay:dead:{q}";

fn count(server: &Server, command: &str, key: &str) -> usize {
    server.get([command, key])
}

/// Nothing is ready, in flight or waiting.
fn is_drained(server: &Server) -> bool {
    count(server, "LLEN", "q") + count(server, "LLEN", INBOX) + count(server, "HLEN", MESSAGES) == 0
}

async fn until_drained(server: &Server) {
    until_async_within(2 * MINUTE, "every message is acknowledged or dead", || async { is_drained(server) })
        .await;
}

async fn dead_numbers(queue: &BlockingQueue<i64>) -> BTreeSet<i64> {
    let letters = queue.dead_letters().read(0, usize::MAX).await.unwrap();
    let numbers = letters.iter().map(|letter| String::from_utf8_lossy(&letter.payload).parse().unwrap());
    let set: BTreeSet<i64> = numbers.collect();
    assert_eq!(set.len(), letters.len(), "no message is dead twice");
    set
}

/// What receivers did, by the numbers of the messages.
#[derive(Debug, Default)]
struct Done {
    /// Acknowledged or rejected.
    settled: BTreeSet<i64>,
    /// Settled, and the reply was lost for good.
    unknown: BTreeSet<i64>,
    /// Settled twice.
    twice: Vec<i64>,
    lost_leases: Vec<i64>,
}

impl Done {
    fn settled(&mut self, number: i64, result: redelay::Result<()>) {
        match result {
            Ok(()) if self.settled.insert(number) => {}
            Ok(()) => self.twice.push(number),
            Err(error) if error.is_outcome_unknown() => drop(self.unknown.insert(number)),
            Err(error) if error.kind() == ErrorKind::LeaseLost => self.lost_leases.push(number),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Receives until it is stopped, and does something with each message.
async fn receive_all(receiver: Receiver<i64>, done: Arc<Mutex<Done>>, seed: u64) {
    let mut random = Rng::with_seed(seed);
    loop {
        let delivery = if random.u8(0..10) == 0 {
            // Its future is dropped at some time.
            match timeout(Duration::from_micros(random.u64(0..2000)), receiver.receive()).await {
                Ok(received) => received,
                Err(_) => continue,
            }
        } else {
            receiver.receive().await
        };
        let delivery = match delivery {
            Ok(delivery) => delivery,
            Err(error) if error.is_closed() => return,
            Err(error) => panic!("{error}"),
        };
        sleep(Duration::from_micros(random.u64(0..500))).await;
        let number = *delivery;
        let (is_settled, result) = match random.u8(0..100) {
            0..70 => (true, delivery.ack().await),
            70..75 => (true, delivery.reject("no").await),
            75..80 => (false, delivery.retry_after(ms(random.u64(0..20))).await),
            80..85 => (false, delivery.snooze(ms(random.u64(0..20))).await),
            85..90 => (false, delivery.release().await),
            90..93 => (false, delivery.extend(MINUTE).await),
            93..96 => {
                // Nobody waits for the answer.
                drop(delivery.retry_after(ms(1)));
                continue;
            }
            _ => continue,
        };
        let mut done = done.lock().unwrap();
        if is_settled {
            done.settled(number, result);
        } else if let Err(error) = result {
            match error.kind() {
                ErrorKind::OutcomeUnknown => {}
                ErrorKind::LeaseLost => done.lost_leases.push(number),
                _ => panic!("{error}"),
            }
        }
    }
}

/// Case 18: 200 cut connections under load.
#[tokio::test(flavor = "multi_thread")]
async fn cut_connections_lose_nothing_and_count_nothing_twice() {
    const MESSAGES_EACH: i64 = 20;
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let direct = Queues::of_numbers(builder(&server)).await;
    let done = Arc::<Mutex<Done>>::default();
    let (mut receiving, mut clients) = (JoinSet::new(), Vec::new());
    for client in 0..3 {
        let queues = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE)).await;
        let receiver = queues.ready.receiver().retry(Backoff::fixed(ms(5))).attempts(60_000);
        for slot in 0..8 {
            receiving.spawn(receive_all(receiver.clone(), done.clone(), client * 100 + slot));
        }
        clients.push(queues.client);
    }
    let mut random = Rng::with_seed(7);
    let mut offered = 0;
    for fault in 0..200 {
        let numbers = (offered..offered + MESSAGES_EACH).map(|number| number.to_string());
        server.cmd(["RPUSH".to_owned(), "q".to_owned()].into_iter().chain(numbers));
        offered += MESSAGES_EACH;
        sleep(ms(random.u64(1..20))).await;
        match fault % 3 {
            0 => proxy.cut(),
            1 => drop(server.kill_clients(ClientKind::Normal)),
            _ => {
                proxy.hold_replies(true);
                sleep(ms(random.u64(0..5))).await;
                proxy.cut();
                proxy.hold_replies(false);
            }
        }
    }
    until_drained(&server).await;
    for client in clients {
        client.shutdown().await;
    }
    while let Some(ended) = receiving.join_next().await {
        ended.unwrap();
    }
    let dead = dead_numbers(&direct.ready).await;
    let done = done.lock().unwrap();
    assert_eq!((&done.twice, &done.lost_leases), (&vec![], &vec![]));
    let settled: BTreeSet<i64> = done.settled.union(&done.unknown).copied().collect();
    let missing: Vec<i64> =
        (0..offered).filter(|number| !settled.contains(number) && !dead.contains(number)).collect();
    assert!(missing.is_empty(), "lost: {missing:?}");
    assert!(dead.is_subset(&settled), "dead without a reject");
}

/// Case 16: the process dies between the wake-up and the claim.
#[tokio::test]
async fn a_payload_in_the_inbox_of_a_dead_process_is_delivered() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let dying = Queues::of_numbers(builder(&proxy)).await;
    let other = Queues::of_numbers(builder(&server)).await;
    let receiver = dying.ready.receiver();
    let receive = tokio::spawn(async move { receiver.receive().await.map(|delivery| *delivery) });
    until_async("it is parked", || async { server.blocked_clients() == 1 }).await;
    proxy.hold_replies(true);
    other.ready.put(&7).await.unwrap();
    until_async("it is in the inbox", || async { count(&server, "LLEN", INBOX) == 1 }).await;
    proxy.refuse(true);
    proxy.cut();
    receive.abort();
    let delivery = soon(other.ready.receiver().lease(ms(3000)).receive()).await.unwrap();
    assert_eq!((*delivery, delivery.attempt()), (7, 1));
    delivery.ack().await.unwrap();
}

/// Case 17: the connection is lost before and after the execution of each call.
#[tokio::test]
async fn a_lost_reply_to_any_call_changes_nothing() {
    type Settle = fn(Delivery<i64>) -> futures::future::BoxFuture<'static, redelay::Result<()>>;
    let settlements: [(&str, Settle); 5] = [
        ("ack", |delivery| delivery.ack()),
        ("retry", |delivery| delivery.retry_after(ms(1))),
        ("reject", |delivery| delivery.reject("no")),
        ("release", |delivery| delivery.release()),
        ("extend", |delivery| {
            let extended = delivery.extend(MINUTE);
            Box::pin(async move {
                extended.await?;
                delivery.ack().await
            })
        }),
    ];
    for (name, settle) in settlements {
        for is_executed in [true, false] {
            let server = Server::start();
            let warm = Queues::of_numbers(builder(&server)).await;
            assert!(warm.ready.receiver().try_receive().await.unwrap().is_none());
            let proxy = Proxy::start(server.port());
            let queues = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE)).await;
            let receiver = queues.ready.receiver();
            warm.ready.put(&7).await.unwrap();
            let lose = async |proxy: &Proxy| {
                if is_executed {
                    until_async("a reply is held", || async { proxy.held() > 0 }).await;
                } else {
                    sleep(ms(50)).await;
                }
                proxy.cut();
                proxy.hold_replies(false);
                proxy.blackhole(false);
            };
            let begin =
                |proxy: &Proxy| if is_executed { proxy.hold_replies(true) } else { proxy.blackhole(true) };
            begin(&proxy);
            let (delivery, ()) = tokio::join!(receiver.receive(), lose(&proxy));
            let delivery = delivery.unwrap();
            assert_eq!((*delivery, delivery.attempt()), (7, 1), "{name}");
            begin(&proxy);
            let (settled, ()) = tokio::join!(settle(delivery), lose(&proxy));
            settled.unwrap_or_else(|error| panic!("{name}: {error}"));
            match name {
                "ack" | "extend" => {
                    assert!(is_drained(&server) && count(&server, "ZCARD", DEAD) == 0, "{name}")
                }
                "reject" => assert!(is_drained(&server) && count(&server, "ZCARD", DEAD) == 1),
                _ => {
                    let again = soon(receiver.receive()).await.unwrap();
                    assert_eq!(again.attempt(), if name == "retry" { 2 } else { 1 });
                    again.ack().await.unwrap();
                    assert!(is_drained(&server));
                }
            }
        }
    }
}

/// Receivers and handlers of a process of its own. The tests below start it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part of another test, in a process of its own"]
async fn works() {
    let [url, lease, kind] =
        ["URL", "LEASE", "KIND"].map(|name| std::env::var(name).expect("started by a test"));
    let client = Client::builder().url(url).connect_timeout(MINUTE).connect().await.unwrap();
    let queue = client.blocking_queue::<i64>("q", codec::Long);
    let worker = Worker::new(&queue).concurrency(64).lease(ms(lease.parse().unwrap()));
    let worker = worker.retry(Backoff::fixed(ms(10)));
    match kind.as_str() {
        // A payload that kills its process, beside innocent ones.
        "poison" => {
            let handler = |number: i64| async move {
                sleep(ms(if number < 0 { 150 } else { 300 })).await;
                if number < 0 {
                    std::process::abort();
                }
            };
            worker.run_until(stream::pending::<()>(), handler).await.unwrap();
        }
        _ => drop(worker.run_until(stream::pending::<()>(), |_: i64| sleep(HOUR)).await),
    }
}

fn start(server: &Server, lease: u64, kind: &str) -> Program {
    let (url, lease) = (server.url(), lease.to_string());
    Program::start_ignored_test("receivers::works", &[("URL", &url), ("LEASE", &lease), ("KIND", kind)])
}

/// Case 15.
#[tokio::test]
async fn the_messages_of_a_killed_process_are_delivered_when_their_leases_end() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let program = start(&server, 2000, "sleeps");
    ready.offer_all(&(0..64).collect::<Vec<_>>()).await.unwrap();
    until("64 handlers run", || count(&server, "ZCARD", LEASES) == 64);
    // This process lives all along.
    let receiver = ready.receiver().lease(ms(2000));
    assert!(receiver.try_receive().await.unwrap().is_none());
    drop(program); // kill -9
    let killed = Instant::now();
    let mut numbers = BTreeSet::new();
    while numbers.len() < 64 {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(delivery.attempt(), 2);
        assert!(numbers.insert(*delivery), "each once");
        delivery.ack().await.unwrap();
    }
    println!("back after {:?}", killed.elapsed());
    assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
    assert!(is_drained(&server));
}

/// Case 26.
#[tokio::test]
async fn a_payload_that_kills_its_process_ends_in_the_dead_letters_alone() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let mut programs: Vec<Program> = (0..4).map(|_| start(&server, 1000, "poison")).collect();
    let mut numbers: Vec<i64> = (1..64).collect();
    numbers.insert(20, -1);
    ready.offer_all(&numbers).await.unwrap();
    until_async_within(3 * MINUTE, "all are handled, or dead", || {
        for program in &mut programs {
            if !program.is_running() {
                *program = start(&server, 1000, "poison");
            }
        }
        std::future::ready(is_drained(&server))
    })
    .await;
    let dead = dead_numbers(&ready).await;
    assert!(dead.contains(&-1), "{dead:?}");
    assert!(dead.len() <= 4, "innocent ones died: {dead:?}");
    let letters = ready.dead_letters().read(0, 9).await.unwrap();
    let poison = letters.iter().find(|letter| &letter.payload[..] == b"-1").unwrap();
    assert_eq!((poison.reason.as_str(), poison.lost), ("lost", 5));
}

/// How often each message was handled.
type Handled = Arc<Mutex<BTreeMap<i64, usize>>>;

/// Two workers whose handlers take `handler_takes`. Returns what they handled.
async fn two_workers(
    server: &Server,
    lease: Duration,
    handler_takes: Duration,
    begun: &Arc<AtomicUsize>,
) -> (Handled, JoinSet<()>) {
    let handled = Handled::default();
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        let queues = Queues::of_numbers(builder(server).command_timeout(MINUTE)).await;
        let (handled, begun) = (handled.clone(), begun.clone());
        workers.spawn(async move {
            let handler = move |number: i64, _: Context| {
                let (handled, begun) = (handled.clone(), begun.clone());
                async move {
                    *handled.lock().unwrap().entry(number).or_default() += 1;
                    begun.fetch_add(1, Ordering::SeqCst);
                    sleep(handler_takes).await;
                }
            };
            let worker = Worker::new(&queues.ready).concurrency(8).lease(lease);
            drop(worker.run_until(stream::pending::<()>(), handler).await);
        });
    }
    (handled, workers)
}

/// Case 21: the server stands still for three leases.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_doubles_nothing() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let begun = Arc::<AtomicUsize>::default();
    let (handled, _workers) = two_workers(&server, ms(2000), ms(9000), &begun).await;
    ready.offer_all(&(0..12).collect::<Vec<_>>()).await.unwrap();
    until_async("they run", || async { begun.load(Ordering::SeqCst) == 12 }).await;
    server.freeze();
    sleep(ms(6000)).await;
    server.thaw();
    until_drained(&server).await;
    assert!(handled.lock().unwrap().values().all(|times| *times == 1), "{:?}", handled.lock().unwrap());
}

/// Case 22: a failover to a machine whose clock differs by a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_doubles_nothing() {
    let clock = Clock::start();
    let (_client, ready, _) = number_queues(&clock.server).await;
    let begun = Arc::<AtomicUsize>::default();
    let (handled, _workers) = two_workers(&clock.server, ms(3000), ms(5000), &begun).await;
    let mut expected = 0;
    for offset in [60, -60, 0] {
        ready.offer_all(&(expected as i64..expected as i64 + 6).collect::<Vec<_>>()).await.unwrap();
        expected += 6;
        until_async("they run", || async { begun.load(Ordering::SeqCst) >= expected }).await;
        clock.set(offset);
        until_drained(&clock.server).await;
        let handled = handled.lock().unwrap();
        assert!(handled.values().all(|times| *times == 1), "clock {offset:+} s: {handled:?}");
    }
}

/// A claim of a dead process is found after the clock was set back, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_leaves_no_lease_for_long() {
    let clock = Clock::start();
    let (_client, ready, _) = number_queues(&clock.server).await;
    ready.put(&7).await.unwrap();
    let program = start(&clock.server, 1000, "sleeps");
    until("it is handled", || count(&clock.server, "ZCARD", LEASES) == 1);
    drop(program); // kill -9
    let receiver = ready.receiver().lease(ms(1000));
    assert!(receiver.try_receive().await.unwrap().is_none());
    clock.set(-3600);
    let Ok(delivery) = timeout(MINUTE / 2, receiver.receive()).await else {
        let control: Vec<String> = clock.server.get(["HGETALL", "redelay:control:{q}"]);
        panic!("control {control:?}, leases {:?}", clock.server.zset(LEASES));
    };
    let delivery = delivery.unwrap();
    assert_eq!((*delivery, delivery.attempt()), (7, 2));
    delivery.ack().await.unwrap();
}

/// Case 20: the runtime is blocked for two leases.
#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_runtime_loses_its_lease_and_settles_nothing() {
    let server = Server::start();
    let other = Queues::of_numbers(builder(&server)).await;
    other.ready.put(&7).await.unwrap();
    let url = server.url();
    let is_received = Arc::new(AtomicBool::new(false));
    let told = is_received.clone();
    let blocked = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::connect(&url).await.unwrap();
            let receiver = client.blocking_queue::<i64>("q", codec::Long).receiver().lease(ms(1000));
            let delivery = receiver.receive().await.unwrap();
            told.store(true, Ordering::SeqCst);
            std::thread::sleep(ms(4000));
            let cancelled = delivery.cancelled();
            timeout(MINUTE, cancelled).await.unwrap();
            delivery.ack().await.unwrap_err().kind()
        })
    });
    until_async("received", || async { is_received.load(Ordering::SeqCst) }).await;
    let again = soon(other.ready.receiver().lease(ms(1000)).receive()).await.unwrap();
    assert_eq!((*again, again.attempt()), (7, 2));
    let first = tokio::task::spawn_blocking(|| blocked.join().unwrap()).await.unwrap();
    assert_eq!(first, ErrorKind::LeaseLost);
    again.ack().await.unwrap();
    assert!(is_drained(&server));
}

/// Case 24: many receivers, many ended leases.
#[tokio::test(flavor = "multi_thread")]
async fn ended_leases_are_taken_back_once() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let program = start(&server, 1000, "sleeps");
    ready.offer_all(&(0..64).collect::<Vec<_>>()).await.unwrap();
    until("they run", || count(&server, "ZCARD", LEASES) == 64);
    let (got, mut receiving) = (Arc::<Mutex<Vec<(i64, u32)>>>::default(), JoinSet::new());
    for _ in 0..16 {
        let queues = Queues::of_numbers(builder(&server)).await;
        let got = got.clone();
        receiving.spawn(async move {
            let receiver = queues.ready.receiver().lease(ms(1000));
            while let Ok(delivery) = receiver.receive().await {
                got.lock().unwrap().push((*delivery, delivery.attempt()));
                delivery.ack().await.unwrap();
            }
        });
    }
    until_async("all are parked", || async { server.blocked_clients() == 16 }).await;
    drop(program); // kill -9
    until_drained(&server).await;
    let mut got = got.lock().unwrap().clone();
    got.sort_unstable();
    assert_eq!(got, (0..64).map(|number| (number, 2)).collect::<Vec<_>>(), "each once");
}

/// Dropped at each poll: receives count no attempt, deliveries count a failure each.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_futures_and_deliveries_are_conserved() {
    const RECEIVES: usize = 10_000;
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let numbers: Vec<i64> = (0..50).collect();
    ready.offer_all(&numbers).await.unwrap();
    let receiver = ready.receiver();
    let mut random = Rng::with_seed(3);
    for _ in 0..RECEIVES {
        let mut receive = Box::pin(receiver.receive());
        for _ in 0..random.u8(0..4) {
            if let Poll::Ready(delivery) = futures::poll!(&mut receive) {
                delivery.unwrap().release().await.unwrap();
                break;
            }
        }
        drop(receive);
        if random.u8(0..20) == 0 {
            sleep(Duration::from_micros(random.u64(0..300))).await;
        }
    }
    let mut got = BTreeMap::new();
    while got.len() < numbers.len() {
        let delivery = soon(receiver.receive()).await.unwrap();
        got.insert(*delivery, delivery.attempt());
        delivery.ack().await.unwrap();
    }
    assert!(got.values().all(|attempt| *attempt == 1), "{got:?}");
    assert!(is_drained(&server));

    ready.put(&7).await.unwrap();
    let receiver = ready.receiver().retry(Backoff::fixed(Duration::ZERO)).attempts(1000);
    for attempt in 1..=200 {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(delivery.attempt(), attempt);
        drop(delivery);
    }
}

/// Case 43, and failovers: a worker goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_survives_restarts_of_the_server() {
    let server = Server::builder().appendonly(true).start();
    let (_client, ready, _) = number_queues(&server).await;
    let begun = Arc::<AtomicUsize>::default();
    let (handled, _workers) = two_workers(&server, ms(2000), ms(1), &begun).await;
    let mut offered = 0;
    for round in 0..4 {
        let numbers: Vec<i64> = (offered..offered + 200).collect();
        until_async("offered", || async { ready.offer_all(&numbers).await.is_ok() }).await;
        offered += 200;
        sleep(ms(20)).await;
        if round % 2 == 0 {
            server.restart()
        } else {
            server.kill_9()
        }
        if round % 2 == 1 {
            server.start_again();
        }
        until_drained(&server).await;
    }
    let handled = handled.lock().unwrap();
    let missing: Vec<_> = (0..offered).filter(|number| !handled.contains_key(number)).collect();
    assert!(missing.is_empty(), "lost: {missing:?}");
}
