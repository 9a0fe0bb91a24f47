//! Messages of processes that have died are delivered again in time, whatever the leases of the others, and
//! however these receive. `tests/model` has the same with long leases and a clock of its own.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use futures::future::join_all;
use redelay::worker::Context;
use redelay::{Client, Delivery, Receiver, Worker};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{LEASES, MINUTE, Queues, builder, is_soak, ms};
use tokio::time::{sleep, timeout};

use super::receivers::{count, is_drained};

/// A message is delivered again within this time after the death of its process: see `docs/guarantees.md`.
fn bound(dead: Duration) -> Duration {
    dead + (dead / 2).max(ms(1500)) + ms(6000)
}

/// For a busy machine.
fn margin() -> Duration {
    if is_soak() { ms(8000) } else { MINUTE }
}

/// A process that has received all that was ready, and is cut off for ever.
struct Dead {
    died: Instant,
    _client: Client,
    _proxy: Proxy,
    _deliveries: Vec<Delivery<i64>>,
}

impl Dead {
    async fn with(server: &Server, lease: Duration, messages: usize) -> Self {
        let proxy = Proxy::start(server.port());
        let Queues { client, ready, .. } = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE)).await;
        let receiver = ready.receiver().lease(lease);
        let mut deliveries = Vec::new();
        while deliveries.len() < messages {
            deliveries.push(timeout(MINUTE, receiver.receive()).await.unwrap().unwrap());
        }
        proxy.refuse(true);
        proxy.cut();
        Self { died: Instant::now(), _client: client, _proxy: proxy, _deliveries: deliveries }
    }

    /// Waits until they have been received again.
    async fn are_received_again(&self, server: &Server, lease: Duration, what: &str) {
        let limit = (bound(lease) + margin()).saturating_sub(self.died.elapsed());
        let is_done = || async { is_drained(server) };
        if timeout(limit, until_async(what, is_done)).await.is_err() {
            let control: Vec<String> = server.get(["HGETALL", redelay_support::CONTROL]);
            panic!(
                "{what}: not within {:?}; {} in flight, {control:?}",
                bound(lease),
                count(server, "ZCARD", LEASES)
            );
        }
        println!("{what}: after {:.1?} of {:?}", self.died.elapsed(), bound(lease));
    }
}

/// How the survivors receive.
#[derive(Clone, Copy, Debug)]
enum How {
    /// One receive that waits.
    Parked,
    /// `receive_timeout` again and again.
    Asking(Duration),
    /// A new receiver for each `receive_timeout`.
    Anew(Duration),
    /// `try_receive`, and this pause.
    Polling(Duration),
}

async fn survive(receiver: impl Fn() -> Receiver<i64>, how: How) {
    let mut same = receiver();
    loop {
        let received = match how {
            How::Parked => Some(same.receive().await.unwrap()),
            How::Asking(time) => same.receive_timeout(time).await.unwrap(),
            How::Anew(time) => {
                same = receiver();
                same.receive_timeout(time).await.unwrap()
            }
            How::Polling(pause) => {
                sleep(pause).await;
                same.try_receive().await.unwrap()
            }
        };
        if let Some(delivery) = received {
            delivery.ack().await.unwrap();
        }
    }
}

/// One process has died, and these live. Their round trips take this long.
#[derive(Clone, Copy, Debug)]
struct Case {
    dead: u64,
    living: u64,
    survivors: usize,
    how: How,
    round_trip: u64,
}

async fn is_delivered_again(case: Case) {
    let server = Server::start();
    let near = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
    let proxy = Proxy::start(server.port());
    let (mut clients, mut tasks) = (Vec::new(), tokio::task::JoinSet::new());
    for _ in 0..case.survivors {
        let Queues { client, ready, .. } = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE)).await;
        clients.push((client, ready));
    }
    proxy.delay(ms(case.round_trip));
    near.ready.put(&1).await.unwrap();
    let dead = Dead::with(&server, ms(case.dead), 1).await;
    for (_, ready) in &clients {
        let ready = ready.clone();
        tasks.spawn(survive(move || ready.receiver().lease(ms(case.living)), case.how));
    }
    dead.are_received_again(&server, ms(case.dead), &format!("{case:?}")).await;
}

async fn are_delivered_again(cases: impl IntoIterator<Item = Case>) {
    join_all(cases.into_iter().map(is_delivered_again)).await;
}

const PARKED: Case = Case { dead: 0, living: 0, survivors: 1, how: How::Parked, round_trip: 0 };

#[tokio::test(flavor = "multi_thread")]
async fn survivors_with_other_leases_deliver_again() {
    let pairs = [
        (100, 86_400_000),
        (300, 2000),
        (1000, 6000),
        (2000, 12_000),
        (3000, 5000),
        (2000, 300),
        (1000, 1000),
    ];
    are_delivered_again(pairs.map(|(dead, living)| Case { dead, living, ..PARKED })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_survivors_deliver_again() {
    let cases = [(300, 2000, 3), (1000, 30_000, 6), (2000, 12_000, 2)];
    are_delivered_again(cases.map(|(dead, living, survivors)| Case { dead, living, survivors, ..PARKED }))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn survivors_that_ask_in_a_loop_deliver_again() {
    let asking = [(2000, 2000, 500), (4000, 4000, 1000), (2000, 2000, 550), (1000, 6000, 300)]
        .map(|(dead, living, period)| Case { dead, living, how: How::Asking(ms(period)), ..PARKED });
    let polling = [(2000, 2000, 520), (2000, 2000, 3000), (1000, 6000, 300)]
        .map(|(dead, living, period)| Case { dead, living, how: How::Polling(ms(period)), ..PARKED });
    let anew = [(2000, 2000, 520), (300, 2000, 100)].map(|(dead, living, period)| Case {
        dead,
        living,
        how: How::Anew(ms(period)),
        ..PARKED
    });
    are_delivered_again(asking.into_iter().chain(polling).chain(anew)).await;
}

/// A third of the shorter lease, and a second at most.
#[tokio::test(flavor = "multi_thread")]
async fn survivors_far_from_the_server_deliver_again() {
    let cases =
        [(300, 2000, 100), (900, 6000, 300), (3000, 12_000, 1000), (2000, 2000, 660), (6000, 900, 300)];
    are_delivered_again(cases.map(|(dead, living, round_trip)| Case { dead, living, round_trip, ..PARKED }))
        .await;
}

/// Processes that receive once and end.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_again_and_again_deliver_again() {
    let each = async |lease: u64, period: u64, ends: bool| {
        let server = Server::start();
        let near = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
        near.ready.put(&1).await.unwrap();
        let dead = Dead::with(&server, ms(lease), 1).await;
        let mut killed = Vec::new();
        let again = async {
            while !is_drained(&server) {
                let proxy = Proxy::start(server.port());
                let Queues { client, ready, .. } =
                    Queues::of_numbers(builder(&proxy).command_timeout(MINUTE)).await;
                if let Some(delivery) = ready.receiver().lease(ms(lease)).try_receive().await.unwrap() {
                    delivery.ack().await.unwrap();
                }
                if ends {
                    client.shutdown().await;
                } else {
                    proxy.refuse(true);
                    proxy.cut();
                    killed.push((client, ready, proxy));
                }
                sleep(ms(period)).await;
            }
        };
        let limit = bound(ms(lease)) + ms(3 * period) + margin();
        let is_in_time = timeout(limit, again).await.is_ok();
        assert!(is_in_time, "a lease of {lease} ms, a process every {period} ms: not within {limit:?}");
        println!("a lease of {lease} ms, a process every {period} ms: after {:.1?}", dead.died.elapsed());
    };
    tokio::join!(each(2000, 700, true), each(1000, 400, false), each(1000, 2000, true));
}

/// The messages of the dead process count as in flight, and the queue goes on all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_the_dead_have_reached_does_not_stop_a_queue() {
    let each = async |dead: u64, living: u64| {
        const LIMIT: usize = 3;
        let server = Server::start();
        let near = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
        let survivor = builder(&server).command_timeout(MINUTE);
        let Queues { client: _client, ready, .. } = Queues::of_numbers(survivor).await;
        near.ready.set_max_in_flight(Some(LIMIT as u64)).await.unwrap();
        near.ready.offer_all(&(0..LIMIT as i64).collect::<Vec<_>>()).await.unwrap();
        let gone = Dead::with(&server, ms(dead), LIMIT).await;
        near.ready.offer_all(&(100..120).collect::<Vec<_>>()).await.unwrap();
        let survivor = tokio::spawn(survive(move || ready.receiver().lease(ms(living)), How::Parked));
        gone.are_received_again(&server, ms(dead), &format!("{LIMIT} of {dead} ms, {living} ms")).await;
        survivor.abort();
    };
    tokio::join!(each(300, 2000), each(2000, 12_000), each(1000, 30_000));
}

/// A deployment raises the lease, or lowers it: what the last process of a version leaves is delivered again
/// by those that have replaced it, up to three versions side by side.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_with_another_lease_leaves_nothing_behind() {
    let server = Server::start();
    let near = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
    let mut workers = VecDeque::new();
    for (old, new) in [(1000, 6000), (6000, 300), (300, 12_000), (2000, 4000), (400, 30_000)] {
        let more = async {
            loop {
                near.ready.put(&1).await.unwrap();
                sleep(ms(2)).await;
            }
        };
        let dead = tokio::select! {
            dead = Dead::with(&server, ms(old), 2) => dead,
            () = more => unreachable!("there is always more"),
        };
        let queues = Queues::of_numbers(builder(&server)).await;
        let worker = Worker::new(&queues.ready).concurrency(2).lease(ms(new));
        workers.push_back(tokio::spawn(async move {
            let _client = queues.client;
            drop(worker.run_until(std::future::pending::<()>(), |_: i64, _: Context| async {}).await);
        }));
        if workers.len() > 3 {
            workers.pop_front().expect("the oldest").abort();
        }
        dead.are_received_again(&server, ms(old), &format!("{old} ms beside {} versions", workers.len()))
            .await;
    }
}
