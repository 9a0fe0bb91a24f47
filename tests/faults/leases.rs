//! When leases end, and what of it the living see: servers that are away, clocks that jump, receivers that
//! are late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
use redelay::worker::Context;
use redelay::{ErrorKind, Receiver, Worker, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{HOUR, LEASES, MINUTE, Queues, builder, ms, number_queues, soon, unread};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::never_stuck::clock::Clock;
use super::receivers::{is_drained, until_drained};

/// How often each message was handled.
pub(super) type Handled = Arc<Mutex<BTreeMap<i64, usize>>>;

/// Two workers whose handlers take `handler_takes`. Returns what they handled.
pub(super) async fn two_workers(
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
            drop(worker.run_until(std::future::pending::<()>(), handler).await);
        });
    }
    (handled, workers)
}

/// Case 21: the server stands still for three leases.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_doubles_nothing() {
    let server = Server::start();
    doubles_nothing(&server, Server::freeze, Server::thaw).await;
}

/// Nothing of what two workers have in hand is handled twice if the server is away for three leases.
async fn doubles_nothing(server: &Server, leave: impl Fn(&Server), come_back: impl Fn(&Server)) {
    let (_client, ready, _) = number_queues(server).await;
    let begun = Arc::<AtomicUsize>::default();
    // A busy machine may need a second for what is to be done when the server is back.
    let (handled, _workers) = two_workers(server, ms(6000), ms(27_000), &begun).await;
    ready.offer_all(&(0..12).collect::<Vec<_>>()).await.unwrap();
    until_async("they run", || async { begun.load(Ordering::SeqCst) == 12 }).await;
    leave(server);
    sleep(ms(18_000)).await;
    come_back(server);
    until_drained(server).await;
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

/// The server cuts leases that end too late when its clock was set back. One that was extended by hand is
/// longer than those of its receiver.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_ends_no_lease_that_was_extended_by_hand() {
    let clock = Clock::start();
    let (_client, ready, _) = number_queues(&clock.server).await;
    let (_other_client, other, _) = number_queues(&clock.server).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    let receiver = || ready.receiver().lease(ms(2000));
    let mut held = Vec::new();
    for receiver in [receiver(), receiver().extend_for(Duration::ZERO)] {
        let delivery = soon(receiver.receive()).await.unwrap();
        delivery.extend(MINUTE).await.unwrap();
        held.push(delivery);
    }
    let ends = || clock.server.zset(LEASES).into_iter().map(|(_, end)| end).fold(f64::MAX, f64::min);
    let extended = ends();
    clock.set(-60);
    // Another one sweeps, and cuts them; they end 2 s later.
    let another = other.receiver();
    let (is_cut, begun) = (|| ends() < extended - 5000.0, Instant::now());
    let mut cut_at = None;
    while cut_at.is_none_or(|at: Instant| at.elapsed() < ms(6000)) {
        assert!(begun.elapsed() < 3 * MINUTE, "nothing cuts them");
        assert!(soon(another.receive_timeout(ms(100))).await.unwrap().is_none(), "it is delivered again");
        cut_at = cut_at.or_else(|| is_cut().then(Instant::now));
    }
    for delivery in held {
        delivery.ack().await.unwrap();
    }
    assert!(is_drained(&clock.server));
}

/// Case 20: the runtime is blocked for two leases.
#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_runtime_loses_its_lease_and_settles_nothing() {
    let server = Server::start();
    let other = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
    other.ready.put(&7).await.unwrap();
    let url = server.url();
    let is_received = Arc::new(AtomicBool::new(false));
    let told = is_received.clone();
    let (goes_on, is_lost) = std::sync::mpsc::channel::<()>();
    let blocked = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = builder(&url).command_timeout(MINUTE).connect().await.unwrap();
            let receiver = client.blocking_queue::<i64>("q", codec::Long).receiver().lease(ms(1000));
            let delivery = receiver.receive().await.unwrap();
            told.store(true, Ordering::SeqCst);
            // Until another one has the message.
            is_lost.recv().unwrap();
            let cancelled = delivery.cancelled();
            timeout(MINUTE, cancelled).await.unwrap();
            delivery.ack().await.unwrap_err().kind()
        })
    });
    until_async("received", || async { is_received.load(Ordering::SeqCst) }).await;
    let again = soon(other.ready.receiver().lease(ms(1000)).receive()).await.unwrap();
    assert_eq!((*again.value(), again.attempt()), (7, 2));
    goes_on.send(()).unwrap();
    let first = tokio::task::spawn_blocking(|| blocked.join().unwrap()).await.unwrap();
    assert_eq!(first, ErrorKind::LeaseLost);
    again.ack().await.unwrap();
    assert!(is_drained(&server));
}

/// Nobody can reach the server for three leases, which it spends dead.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_doubles_nothing() {
    let server = Server::builder().appendonly(true).start();
    doubles_nothing(&server, Server::kill_9, Server::start_again).await;
}

/// Case 28: a receiver that takes a message back goes by the limits of the one that had it.
#[tokio::test]
async fn a_lost_message_keeps_the_settings_of_its_receiver() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let (_other_client, other, _) = number_queues(&server).await;
    let short = || ready.receiver().lease(ms(300)).extend_for(Duration::ZERO);
    let dead = other.dead_letters();
    // One loss is too many; the letter is kept, though the one that finds it discards its own.
    ready.put(&1).await.unwrap();
    let _first = soon(short().max_losses(1).receive()).await.unwrap();
    let patient = other.receiver().lease(HOUR).discard_dead_letters();
    assert!(patient.receive_timeout(ms(10)).await.unwrap().is_none());
    until_async("it is dead", || async { dead.len().await.unwrap() == 1 }).await;
    let letter = &dead.read(None, 1).await.unwrap()[0];
    assert_eq!((letter.reason.as_str(), letter.lost, &letter.payload[..]), ("lost", 1, &b"1"[..]));
    // Two losses are not, for a receiver that gives up after five.
    ready.put(&2).await.unwrap();
    let _second = soon(short().max_losses(5).receive()).await.unwrap();
    let again = soon(other.receiver().max_losses(1).receive()).await.unwrap();
    assert_eq!((*again.value(), again.attempt()), (2, 2));
    again.ack().await.unwrap();
    // It is discarded, though the one that finds it keeps its own.
    ready.put(&3).await.unwrap();
    let _third = soon(short().max_losses(1).discard_dead_letters().receive()).await.unwrap();
    until_async("it is gone", || async {
        assert!(other.receiver().receive_timeout(ms(10)).await.unwrap().is_none());
        is_drained(&server)
    })
    .await;
    assert_eq!(dead.len().await.unwrap(), 1);
}

/// Case 27: leases end while they are settled. Either the settlement counts, and the message is gone; or the
/// loss counts, and another receiver gets the message.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_settled_while_its_lease_ends_is_settled_or_delivered_again() {
    const MESSAGES: i64 = 300;
    const LEASE: u64 = 3000;
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let (_other_client, other, _) = number_queues(&server).await;
    ready.offer_all(&(0..MESSAGES).collect::<Vec<_>>()).await.unwrap();
    let held = ready.receiver().lease(ms(LEASE)).extend_for(Duration::ZERO);
    let held = held.receive_many(MESSAGES as usize).await.unwrap();
    let received = Instant::now();
    let again = Arc::<Mutex<BTreeSet<i64>>>::default();
    let seen = again.clone();
    let others = tokio::spawn(async move {
        let receiver = other.receiver().lease(MINUTE);
        loop {
            let delivery = receiver.receive().await.unwrap();
            assert_eq!(delivery.attempt(), 2);
            assert!(seen.lock().unwrap().insert(*delivery.value()), "{} again", *delivery.value());
            delivery.ack().await.unwrap();
        }
    });
    // Over a time in which the leases end; a few of them at once, and a few when others have had them.
    let settle = held.into_iter().enumerate().map(async |(index, delivery)| {
        let delivery = delivery.unwrap();
        let number = *delivery.value();
        match index {
            0..20 => {}
            280.. => {
                until_async("its lease ends", || async { again.lock().unwrap().contains(&number) }).await
            }
            _ => {
                let after = ms(LEASE - 60) + Duration::from_micros(500) * index as u32;
                sleep_until((received + after).into()).await;
            }
        }
        match delivery.ack().await.map_err(|error| error.kind()) {
            Ok(()) => None,
            Err(ErrorKind::LeaseLost) => Some(number),
            Err(kind) => panic!("{kind:?}"),
        }
    });
    let lost: BTreeSet<i64> = join_all(settle).await.into_iter().flatten().collect();
    until_drained(&server).await;
    others.abort();
    assert!(others.await.unwrap_err().is_cancelled());
    println!("{} of {MESSAGES} were lost", lost.len());
    assert_eq!(lost, *again.lock().unwrap());
}

/// Receivers with other leases give signs of life, too: what is silence for one of them is none for another.
#[tokio::test(flavor = "multi_thread")]
async fn receivers_with_short_leases_do_not_end_the_long_ones_of_the_living() {
    let clock = Clock::start();
    let (_client, ready, _) = number_queues(&clock.server).await;
    let begun = Arc::<AtomicUsize>::default();
    let (handled, _workers) = two_workers(&clock.server, ms(6000), ms(8000), &begun).await;
    ready.offer_all(&[1, 2, 3, 4]).await.unwrap();
    until_async("they run", || async { begun.load(Ordering::SeqCst) == 4 }).await;
    let (_other_client, other, _) = number_queues(&clock.server).await;
    let short = tokio::spawn(async move {
        let received = other.receiver().lease(ms(300)).receive().await;
        received.map(|delivery| *delivery.value()).expect("the client lives")
    });
    until_async("it waits", || async { clock.server.blocked_clients() == 3 }).await;
    clock.set(60);
    until_drained(&clock.server).await;
    if short.is_finished() {
        panic!("the lease of {}, which is being handled, was ended", short.await.unwrap());
    }
    assert!(handled.lock().unwrap().values().all(|times| *times == 1), "{:?}", handled.lock().unwrap());
}

/// A receive in one of the ways; the number of the message and its attempt, and `None` if there is none.
async fn receive_in_way(receiver: Receiver<i64>, way: usize) -> Option<(i64, u32)> {
    let delivery = match way {
        0 => Some(receiver.receive().await),
        1 => receiver.try_receive().await.transpose(),
        2 => receiver.receive_timeout(MINUTE).await.transpose(),
        3 => receiver.receive_many(2).await.unwrap().pop(),
        _ => receiver.into_stream().next().await,
    };
    let delivery = delivery?.unwrap();
    let seen = (*delivery.value(), delivery.attempt());
    delivery.ack().await.unwrap();
    Some(seen)
}

/// Claims whose reply arrives when another receiver has handled the message.
#[tokio::test(flavor = "multi_thread")]
async fn what_arrives_after_its_lease_is_not_begun() {
    // The last of the messages is handled within this time.
    const LEASE: Duration = ms(3000);
    join_all((0..5).map(async |way| {
        let mut tries = 0;
        let (_server, other, proxy, receiving) = loop {
            let server = Server::start();
            let other = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
            let proxy = Proxy::start(server.port());
            let late = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE)).await;
            let receiver = late.ready.receiver().lease(LEASE);
            assert!(receiver.try_receive().await.unwrap().is_none());
            other.ready.put(&1).await.unwrap();
            proxy.hold_replies(true);
            let receiving = tokio::spawn(receive_in_way(receiver, way));
            let is_claimed = || async { server.get::<usize, _>(["ZCARD", LEASES]) == 1 };
            if timeout(ms(20_000), until_async("it is claimed", is_claimed)).await.is_ok() {
                break (server, other, proxy, receiving);
            }
            // A sign of life was on its way when the replies were held, and the receive waits for its reply.
            receiving.abort();
            tries += 1;
            assert!(tries < 5, "way {way}: it is claimed");
        };
        let again = soon(other.ready.receiver().lease(LEASE).receive()).await.unwrap();
        assert_eq!((*again.value(), again.attempt()), (1, 2), "way {way}");
        again.ack().await.unwrap();
        proxy.hold_replies(false);
        if way == 1 {
            assert_eq!(soon(receiving).await.unwrap(), None);
            return;
        }
        other.ready.put(&2).await.unwrap();
        assert_eq!(soon(receiving).await.unwrap(), Some((2, 1)), "way {way}");
    }))
    .await;
}

/// The process stands still when the receive has been answered, and not been polled.
#[tokio::test]
async fn what_is_read_after_its_lease_is_not_begun() {
    let server = Server::start();
    let queues = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
    let receiver = queues.ready.receiver().lease(ms(3000));
    queues.ready.put(&1).await.unwrap();
    let mut receiving = unread(receiver.receive()).await;
    until_async("it is handed over", || async { server.list("q").is_empty() }).await;
    let url = server.url();
    // Blocks the only thread of the runtime.
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = builder(&url).command_timeout(MINUTE).connect().await.unwrap();
            let receiver = client.blocking_queue::<i64>("q", codec::Long).receiver().lease(ms(300));
            let again = soon(receiver.receive()).await.unwrap();
            assert_eq!((*again.value(), again.attempt()), (1, 2));
            again.ack().await.unwrap();
        });
    });
    other.join().unwrap();
    if let Poll::Ready(received) = receiving.poll() {
        panic!("{received:?} is begun");
    }
    queues.ready.put(&2).await.unwrap();
    assert_eq!(*soon(receiving).await.unwrap().value(), 2);
}

/// An attempt to connect that is under way when an outage ends hangs until it is given up. Another receiver
/// is back before that, and waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_whose_connection_hangs_behind_an_outage_keeps_its_message() {
    // A busy machine may need longer for what is to be done when the server is back.
    for _ in 0..10 {
        if keeps_its_message_unless_late().await {
            return;
        }
    }
    panic!("each time, the receiver was back too late");
}

/// Returns whether the receiver has its message, or panics. It may lose it if it is back later than a
/// connection that hangs takes, `LONG_CONNECTING` in `src/scripts/receive/recover.lua`.
async fn keeps_its_message_unless_late() -> bool {
    let server = Server::start();
    let proxies = [Proxy::start(server.port()), Proxy::start(server.port())];
    let lease = ms(9000);
    let with = |proxy| Queues::of_numbers(builder(proxy).transfer(false));
    let (hanging, other) = (with(&proxies[0]).await, with(&proxies[1]).await);
    hanging.ready.put(&1).await.unwrap();
    let receiver = hanging.ready.receiver().lease(lease);
    let delivery = soon(receiver.receive()).await.unwrap();
    let other = other.ready.receiver().lease(lease);
    assert!(soon(other.try_receive()).await.unwrap().is_none());
    let receiving = tokio::spawn(async move { other.receive().await });

    proxies[0].swallow_behind(Some(0));
    proxies[1].blackhole(true);
    sleep(ms(12_000)).await;
    let hung = proxies[0].swallowing();
    until_async("the next attempt hangs", || async { proxies[0].swallowing() > hung }).await;
    let ended = Instant::now();
    proxies[0].swallow_behind(None);
    proxies[1].blackhole(false);
    until_async("it is back", || async { hanging.ready.len().await.is_ok() }).await;
    let acked = soon(delivery.ack()).await;
    receiving.abort();
    if acked.is_err() && ended.elapsed() > ms(6_000) {
        return false;
    }
    acked.unwrap();
    assert!(is_drained(&server));
    true
}
