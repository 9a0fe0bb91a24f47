//! Receivers and workers under faults: lost replies, cut connections, restarts, dropped futures. Every
//! message is acknowledged, dead or waiting, exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fastrand::Rng;
use redelay::worker::Backoff;
use redelay::{BlockingQueue, Delivery, ErrorKind, Receiver};
use redelay_fixture::{ClientKind, Proxy, Server, redis, until, until_async};
use redelay_support::{
    DEAD, INBOX, LEASES, MESSAGES, MINUTE, Queues, builder, ms, number_queues, part, soon,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::dropping::{Moment, drop_at};
use super::leases::two_workers;

pub(super) fn count(server: &Server, command: &str, key: &str) -> usize {
    server.get([command, key])
}

/// Nothing is ready, in flight or waiting.
pub(super) fn is_drained(server: &Server) -> bool {
    count(server, "LLEN", "q") + count(server, "LLEN", INBOX) + count(server, "HLEN", MESSAGES) == 0
}

pub(super) async fn until_drained(server: &Server) {
    until_async("every message is acknowledged or dead", || async { is_drained(server) }).await;
}

pub(super) async fn dead_numbers(queue: &BlockingQueue<i64>) -> BTreeSet<i64> {
    let letters = queue.dead_letters().read(None, usize::MAX).await.unwrap();
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
        let number = *delivery.value();
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
    cut_connections(200, 3, 8, 20).await;
}

/// With a backlog, each receiver makes two calls at a time.
#[tokio::test(flavor = "multi_thread")]
async fn cut_connections_lose_nothing_of_a_backlog() {
    cut_connections(60, 2, 64, 200).await;
}

/// Cuts connections while clients receive, each in this number of tasks. Behind each cut there are new
/// messages.
async fn cut_connections(cuts: i64, clients: u64, slots: u64, messages_each: i64) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let direct = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
    let done = Arc::<Mutex<Done>>::default();
    let mut receiving = JoinSet::new();
    let mut connected = Vec::new();
    for client in 0..clients {
        let queues = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE)).await;
        let receiver = queues.ready.receiver().backoff(Backoff::fixed(ms(5))).max_attempts(60_000);
        for slot in 0..slots {
            receiving.spawn(receive_all(receiver.clone(), done.clone(), client * 100 + slot));
        }
        connected.push(queues.client);
    }
    let mut random = Rng::with_seed(7);
    let mut offered = 0;
    for cut in 0..cuts {
        let numbers = (offered..offered + messages_each).map(|number| number.to_string());
        server.cmd(["RPUSH".to_owned(), "q".to_owned()].into_iter().chain(numbers));
        offered += messages_each;
        sleep(ms(random.u64(1..20))).await;
        match cut % 3 {
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
    for client in connected {
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
    in_the_inbox_of_a_dead_process(false).await;
}

#[tokio::test]
async fn a_payload_in_the_inbox_survives_a_restart_of_the_server() {
    in_the_inbox_of_a_dead_process(true).await;
}

async fn in_the_inbox_of_a_dead_process(restarts: bool) {
    // On a busy machine, a call of the receiver may be on its way although it is parked, and claims the
    // payload.
    for _ in 0..10 {
        let server = Server::builder().appendonly(true).start();
        let proxy = Proxy::start(server.port());
        let dying = Queues::of_numbers(builder(&proxy)).await;
        let other = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
        let receiver = dying.ready.receiver();
        let receive = tokio::spawn(async move { receiver.receive().await.map(|delivery| *delivery.value()) });
        until_async("it is parked", || async { server.blocked_clients() == 1 }).await;
        proxy.hold_replies(true);
        other.ready.put(&7).await.unwrap();
        let is_claimed = || count(&server, "ZCARD", LEASES) == 1;
        until_async("it is moved", || async { count(&server, "LLEN", INBOX) == 1 || is_claimed() }).await;
        let is_claimed = is_claimed();
        proxy.refuse(true);
        proxy.cut();
        receive.abort();
        if is_claimed {
            continue;
        }
        if restarts {
            server.kill_9();
            server.start_again();
        }
        let delivery = soon(other.ready.receiver().lease(ms(3000)).receive()).await.unwrap();
        let (value, attempt) = (*delivery.value(), delivery.attempt());
        delivery.ack().await.unwrap();
        assert_eq!(value, 7);
        // Or the call has arrived since.
        if attempt == 1 {
            return;
        }
    }
    panic!("it was claimed each time");
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
            let warm = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
            assert!(warm.ready.receiver().try_receive().await.unwrap().is_none());
            let proxy = Proxy::start(server.port());
            let queues = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE)).await;
            let receiver = queues.ready.receiver();
            warm.ready.put(&7).await.unwrap();
            let lose = async |proxy: &Proxy, is_claim: bool| {
                if is_executed {
                    let is_claimed = || !is_claim || count(&server, "ZCARD", LEASES) == 1;
                    until_async("a reply is held", || async { proxy.held() > 0 && is_claimed() }).await;
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
            let (delivery, ()) = tokio::join!(receiver.receive(), lose(&proxy, true));
            let delivery = delivery.unwrap();
            assert_eq!((*delivery.value(), delivery.attempt()), (7, 1), "{name}");
            begin(&proxy);
            let (settled, ()) = tokio::join!(settle(delivery), lose(&proxy, false));
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

/// Dropped at each poll: receives count no attempt, deliveries count a failure each.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_futures_and_deliveries_are_conserved() {
    const DELIVERIES: usize = 10_000;
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    let numbers: Vec<i64> = (0..50).collect();
    ready.offer_all(&numbers).await.unwrap();
    let receiver = ready.receiver();
    let mut random = Rng::with_seed(3);
    let mut dropped = 0;
    // Ten thousand on all servers together.
    for number in 0..part().share(10_000) {
        match drop_at(Moment::number(number), receiver.receive()).await {
            Some(delivery) => delivery.unwrap().release().await.unwrap(),
            None => dropped += 1,
        }
        if random.u8(0..20) == 0 {
            sleep(Duration::from_micros(random.u64(0..300))).await;
        }
    }
    println!("{dropped} receives were dropped");
    assert!(dropped > part().share(5_000));
    let mut got = BTreeMap::new();
    while got.len() < numbers.len() {
        let delivery = soon(receiver.receive()).await.unwrap();
        got.insert(*delivery.value(), delivery.attempt());
        delivery.ack().await.unwrap();
    }
    assert!(got.values().all(|attempt| *attempt == 1), "{got:?}");
    assert!(is_drained(&server));

    // Also while the future that settles them is polled: what is begun is done.
    ready.offer_all(&numbers).await.unwrap();
    let receiver = ready.receiver().backoff(Backoff::fixed(Duration::ZERO)).max_attempts(60_000);
    let mut attempts = BTreeMap::<i64, u32>::new();
    let mut dropped = 0;
    while dropped < DELIVERIES {
        for delivery in soon(receiver.receive_many(numbers.len())).await.unwrap() {
            let delivery = delivery.unwrap();
            let attempt = attempts.entry(*delivery.value()).or_default();
            *attempt += 1;
            assert_eq!(delivery.attempt(), *attempt, "one failure for each delivery");
            let polls = random.u8(0..5);
            if polls > 0 {
                let mut retry = delivery.retry();
                for _ in 1..polls {
                    if futures::poll!(&mut retry).is_ready() {
                        break;
                    }
                }
            }
            dropped += 1;
        }
    }
    client.shutdown().await;
    let waiting = count(&server, "HLEN", MESSAGES) + count(&server, "LLEN", "q");
    assert_eq!(waiting, numbers.len());
}

/// The connections on which receivers wait are killed while payloads come.
#[tokio::test(flavor = "multi_thread")]
async fn killed_connections_of_waiting_receivers_lose_nothing() {
    const RECEIVERS: usize = 4;
    let server = Server::start();
    let received = Arc::<Mutex<Vec<(i64, u32)>>>::default();
    let (mut clients, mut receiving) = (Vec::new(), JoinSet::new());
    for _ in 0..RECEIVERS {
        let Queues { client, ready, .. } = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
        let seen = received.clone();
        receiving.spawn(async move {
            let receiver = ready.receiver();
            while let Ok(delivery) = receiver.receive().await {
                seen.lock().unwrap().push((*delivery.value(), delivery.attempt()));
                delivery.ack().await.unwrap();
            }
        });
        clients.push(client);
    }
    let rounds = part().share(200).div_ceil(RECEIVERS);
    let (mut offered, mut late) = (0, 0);
    for round in 0..rounds {
        let waiters = || -> Vec<String> {
            let list: String = server.get(["CLIENT", "LIST"]);
            let waiting = list.lines().filter(|line| line.contains(" cmd=blmove "));
            waiting
                .filter_map(|line| line.split(' ').next()?.strip_prefix("id=").map(str::to_owned))
                .collect()
        };
        until("they wait", || waiters().len() == RECEIVERS);
        // In one step: each payload is popped for a connection that is about to end, or all end just before
        // it comes.
        let (mut pipe, ids) = (redis::pipe(), waiters());
        let kill = |pipe: &mut redis::Pipeline| {
            for id in &ids {
                pipe.cmd("CLIENT").arg("KILL").arg("ID").arg(id).ignore();
            }
        };
        if round % 2 == 1 {
            kill(&mut pipe);
        }
        for number in offered..offered + RECEIVERS as i64 {
            pipe.cmd("RPUSH").arg("q").arg(number).ignore();
        }
        if round % 2 == 0 {
            kill(&mut pipe);
        }
        offered += RECEIVERS as i64;
        pipe.exec(&mut server.redis()).unwrap();
        let begun = Instant::now();
        let all = || async { received.lock().unwrap().len() as i64 >= offered };
        until_async("all are received", all).await;
        // Before the next look of an idle receiver, after 6 s.
        late += usize::from(begun.elapsed() > ms(4_000));
    }
    // Only where a busy machine stands still for a moment.
    assert!(4 * late <= rounds, "{late} of {rounds} are late");
    for client in clients {
        client.shutdown().await;
    }
    while let Some(ended) = receiving.join_next().await {
        ended.unwrap();
    }
    let mut received = received.lock().unwrap().clone();
    received.sort_unstable();
    assert_eq!(received, (0..offered).map(|number| (number, 1)).collect::<Vec<_>>());
    assert!(is_drained(&server));
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
