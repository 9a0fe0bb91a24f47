//! Pause, rate and the number of messages in flight, for all receivers of a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use redelay::blocking_queue::RateLimit;
use redelay::{BlockingQueue, Client, ErrorKind, Worker};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    CONTROL, INBOX, Queues, TARGET, end_leases, is_soak, ms, soon, still_builder, still_text_queues,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

async fn clients(server: &Server, count: usize) -> Vec<(Client, BlockingQueue<String>)> {
    let clients = (0..count).map(|_| still_text_queues(server));
    join_all(clients).await.into_iter().map(|(client, ready, _)| (client, ready)).collect()
}

/// Whether it is pending after a while.
async fn waits(future: impl Future) -> bool {
    timeout(ms(50), future).await.is_err()
}

/// Case 45.
#[tokio::test]
async fn a_paused_queue_delivers_to_takers_only() {
    let server = Server::start();
    let clients = clients(&server, 2).await;
    let ready = &clients[0].1;
    ready.pause().await.unwrap();
    assert!(ready.is_paused().await.unwrap());
    assert!(ready.stats().await.unwrap().is_paused);
    ready.put("1").await.unwrap();
    ready.put("2").await.unwrap();
    let receiver = clients[1].1.receiver();
    assert!(receiver.try_receive().await.unwrap().is_none());
    assert!(soon(receiver.receive_timeout(ms(300))).await.unwrap().is_none());
    let mut receiving = Box::pin(receiver.receive());
    assert!(waits(&mut receiving).await);
    assert_eq!(ready.poll().await.unwrap().as_deref(), Some("1"), "takers go on");
    ready.resume().await.unwrap();
    assert!(!ready.is_paused().await.unwrap() && !ready.stats().await.unwrap().is_paused);
    // Without an announcement, it would look after a second.
    let resumed = SystemTime::now();
    let delivery = soon(receiving).await.unwrap();
    println!("resumed after {:?}", resumed.elapsed());
    assert_eq!(*delivery.value(), "2");
    delivery.ack().await.unwrap();
    for (client, _) in clients {
        client.shutdown().await;
    }
}

#[tokio::test]
async fn a_pause_stops_receivers_that_wait_and_messages_in_flight_are_settled() {
    let server = Server::start();
    let clients = clients(&server, 3).await;
    let ready = &clients[0].1;
    let receivers: Vec<_> = clients[1..].iter().map(|(_, ready)| ready.receiver()).collect();
    ready.put("in flight").await.unwrap();
    let held = soon(receivers[0].receive()).await.unwrap();
    let mut receiving: Vec<_> = receivers.iter().map(|receiver| Box::pin(receiver.receive())).collect();
    for receive in &mut receiving {
        assert!(waits(receive).await);
    }
    until_async("they wait", || async { server.blocked_clients() == 2 }).await;
    ready.pause().await.unwrap();
    until_async("nobody waits", || async { server.blocked_clients() == 0 }).await;
    let numbers: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    ready.offer_all(&numbers).await.unwrap();
    held.ack().await.unwrap();
    sleep(ms(300)).await;
    assert_eq!(ready.read_all().await.unwrap(), numbers, "in their order");
    assert_eq!(server.get::<usize, _>(["EXISTS", INBOX]), 0);
    ready.resume().await.unwrap();
    for receive in receiving {
        soon(receive).await.unwrap().ack().await.unwrap();
    }
    for (client, _) in clients {
        client.shutdown().await;
    }
}

/// Messages that a slow rate has kept back come at once when the limit is raised.
#[tokio::test]
async fn a_limit_that_is_raised_counts_at_once() {
    let server = Server::start();
    let [(client, ready)] = &clients(&server, 1).await[..] else { panic!("one client") };
    ready.set_rate_limit(Some(RateLimit::new(1, Duration::from_secs(3600)))).await.unwrap();
    ready.offer_all(&["1".to_owned(), "2".to_owned()]).await.unwrap();
    let receiver = ready.receiver();
    soon(receiver.receive()).await.unwrap().ack().await.unwrap();
    assert!(receiver.try_receive().await.unwrap().is_none());
    ready.set_rate_limit(Some(RateLimit::new(50, Duration::from_secs(1)))).await.unwrap();
    soon(receiver.receive()).await.unwrap().ack().await.unwrap();
    client.shutdown().await;
}

#[tokio::test]
async fn limits_are_read_back_as_they_were_given() {
    let server = Server::start();
    let Queues { client, ready, .. } = Queues::of_numbers(still_builder(&server)).await;
    assert_eq!((ready.rate_limit().await.unwrap(), ready.max_in_flight().await.unwrap()), (None, None));
    // Neither is a whole number of µs for a message.
    for limit in
        [RateLimit::new(7, Duration::from_secs(3)).burst(4), RateLimit::new(3, Duration::from_nanos(10_001))]
    {
        ready.set_rate_limit(Some(limit)).await.unwrap();
        assert_eq!(ready.rate_limit().await.unwrap(), Some(limit));
    }
    ready.set_max_in_flight(Some(5)).await.unwrap();
    assert_eq!(ready.max_in_flight().await.unwrap(), Some(5));
    ready.set_rate_limit(None).await.unwrap();
    ready.set_max_in_flight(None).await.unwrap();
    assert_eq!((ready.rate_limit().await.unwrap(), ready.max_in_flight().await.unwrap()), (None, None));
    let left: u32 = server.get(["EXISTS", CONTROL]);
    assert_eq!(left, 0);
    // By hand.
    ready.set_rate_limit(Some(RateLimit::new(7, Duration::from_secs(3)))).await.unwrap();
    server.cmd(["HSET", CONTROL, "interval", "20000"]);
    assert_eq!(ready.rate_limit().await.unwrap(), Some(RateLimit::new(1, ms(20))));
    client.shutdown().await;
}

/// Case 46. The server's clock says when each message was claimed.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_holds_for_all_processes_together() {
    const RATE: u32 = 50;
    const BURST: u32 = 10;
    const MESSAGES: usize = 160;
    let server = Server::start();
    let clients = clients(&server, 4).await;
    let ready = &clients[0].1;
    ready.set_rate_limit(Some(RateLimit::new(RATE, Duration::from_secs(1)).burst(BURST))).await.unwrap();
    let numbers: Vec<String> = (0..MESSAGES).map(|number| number.to_string()).collect();
    ready.offer_all(&numbers).await.unwrap();
    let (sender, mut times) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for (_, ready) in &clients {
        for _ in 0..4 {
            let (receiver, sender) = (ready.receiver(), sender.clone());
            tasks.spawn(async move {
                loop {
                    let delivery = receiver.receive().await.unwrap();
                    sender.send(delivery.first_received()).unwrap();
                    delivery.ack().await.unwrap();
                }
            });
        }
    }
    let mut claimed = Vec::new();
    while claimed.len() < MESSAGES {
        claimed.push(soon(times.recv()).await.unwrap());
    }
    tasks.shutdown().await;
    claimed.sort();
    for (first, from) in claimed.iter().enumerate() {
        for (last, to) in claimed.iter().enumerate().skip(first) {
            // The times are whole ms.
            let time = to.duration_since(*from).unwrap() + ms(2);
            let most = f64::from(BURST) + f64::from(RATE) * time.as_secs_f64();
            assert!((last - first + 1) as f64 <= most, "{} in {time:?}", last - first + 1);
        }
    }
    let took = claimed[MESSAGES - 1].duration_since(claimed[0]).unwrap().as_secs_f64();
    let least = (MESSAGES as f64 - f64::from(BURST)) / f64::from(RATE);
    println!("{:.3} of the rate", least / took);
    assert!(took < if is_soak() { 1.5 } else { 30.0 } * least, "{took} s");
    for (client, _) in clients {
        client.shutdown().await;
    }
}

/// Case 47.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_messages_are_in_flight_than_the_limit_allows() {
    const MESSAGES: usize = 3000;
    const MOST: usize = 5;
    let server = Server::start();
    let clients = clients(&server, 3).await;
    let ready = &clients[0].1;
    ready.set_max_in_flight(Some(MOST as u64)).await.unwrap();
    let numbers: Vec<String> = (0..MESSAGES).map(|number| number.to_string()).collect();
    ready.offer_all(&numbers).await.unwrap();
    let (now, most, done) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let mut workers = JoinSet::new();
    for (_, ready) in &clients {
        let (now, most, done) = (now.clone(), most.clone(), done.clone());
        let handler = move |_: String| {
            let (now, most, done) = (now.clone(), most.clone(), done.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
            }
        };
        let worker = Worker::new(ready).concurrency(8);
        workers.spawn(async move { worker.run_until(std::future::pending::<()>(), handler).await });
    }
    until_async("all are handled", || async { done.load(Ordering::SeqCst) == MESSAGES }).await;
    let most = most.load(Ordering::SeqCst);
    assert!(most <= MOST, "{most} in flight at once");
    workers.shutdown().await;
    for (client, _) in clients {
        client.shutdown().await;
    }
}

/// A receiver that waits for room wakes up when there is some.
#[tokio::test]
async fn a_settlement_makes_room_for_receivers_of_other_processes() {
    let server = Server::start();
    let clients = clients(&server, 2).await;
    let ready = &clients[0].1;
    ready.set_max_in_flight(Some(1)).await.unwrap();
    ready.offer_all(["1", "2"].map(str::to_owned).iter()).await.unwrap();
    let one = clients[0].1.receiver();
    let first = soon(one.receive()).await.unwrap();
    let other = clients[1].1.receiver();
    let mut receiving = Box::pin(other.receive());
    assert!(waits(&mut receiving).await);
    sleep(ms(50)).await;
    assert!(waits(&mut receiving).await);
    first.ack().await.unwrap();
    let second = soon(receiving).await.unwrap();
    assert_eq!(*second.value(), "2");
    ready.set_max_in_flight(None).await.unwrap();
    ready.put("3").await.unwrap();
    soon(one.receive()).await.unwrap().ack().await.unwrap();
    second.ack().await.unwrap();
    for (client, _) in clients {
        client.shutdown().await;
    }
}

/// A killed process leaves its lease, which counts until it ends.
#[tokio::test]
async fn a_message_of_a_dead_process_counts_until_its_lease_ends() {
    let server = Server::start();
    let clients = clients(&server, 1).await;
    let ready = &clients[0].1;
    ready.set_max_in_flight(Some(1)).await.unwrap();
    let max_in_flight = async || ready.stats().await.unwrap().max_in_flight;
    assert_eq!(max_in_flight().await, Some(1));
    ready.put("1").await.unwrap();
    let (dead, theirs, _) = still_text_queues(&server).await;
    // Not extended, as if its process were dead.
    let held = soon(theirs.receiver().extend_for(Duration::ZERO).receive()).await.unwrap();
    ready.put("2").await.unwrap();
    let receiver = ready.receiver();
    assert!(receiver.try_receive().await.unwrap().is_none(), "no room");
    end_leases(&server);
    let mut received = Vec::new();
    for _ in 0..2 {
        let delivery = soon(receiver.receive()).await.unwrap();
        received.push(delivery.value().to_string());
        delivery.ack().await.unwrap();
    }
    received.sort();
    assert_eq!(received, ["1", "2"]);
    assert_eq!(held.ack().await.unwrap_err().kind(), ErrorKind::LeaseLost);
    ready.set_max_in_flight(None).await.unwrap();
    assert_eq!(max_in_flight().await, None);
    server.cmd(["HSET", CONTROL, "most", "x"]);
    assert_eq!(max_in_flight().await, None, "what is no number limits nothing");
    dead.shutdown().await;
    clients[0].0.shutdown().await;
}

/// So a long pause is no silence after which messages would be given back.
#[tokio::test]
async fn receivers_of_a_paused_queue_give_signs_of_life() {
    let server = Server::start();
    let clients = clients(&server, 1).await;
    let ready = &clients[0].1;
    ready.pause().await.unwrap();
    let receiver = ready.receiver();
    let mut receiving = Box::pin(receiver.receive());
    let seen = || server.get::<Option<u64>, _>(["HGET", CONTROL, "seen"]);
    assert!(waits(&mut receiving).await);
    until_async("a sign of life", || async { seen().is_some() }).await;
    let first = seen();
    until_async("another one", || async { seen() > first }).await;
    assert!(waits(&mut receiving).await);
    clients[0].0.shutdown().await;
}

#[tokio::test]
async fn limits_that_are_none_are_refused_and_junk_limits_nobody() {
    let server = Server::start();
    let Queues { client, ready, .. } = Queues::of_numbers(still_builder(&server)).await;
    let kind = |result: redelay::Result<()>| result.unwrap_err().kind();
    let second = Duration::from_secs(1);
    assert_eq!(kind(ready.set_max_in_flight(Some(0)).await), ErrorKind::Invalid);
    for limit in [
        RateLimit::new(0, second),
        RateLimit::new(1, second).burst(0),
        RateLimit::new(1, Duration::ZERO),
        RateLimit::new(u32::MAX, second),
        RateLimit::new(1, Duration::MAX),
    ] {
        assert_eq!(kind(ready.set_rate_limit(Some(limit)).await), ErrorKind::Invalid, "{limit:?}");
    }
    let no_burst = ready.set_rate_limit(Some(RateLimit::new(1, second).burst(0))).await.unwrap_err();
    assert!(no_burst.to_string().contains("a burst of 0"), "{no_burst}");
    for (field, junk) in
        [("most", "x"), ("interval", "x"), ("interval", "-5"), ("interval", "nan"), ("burst", "x")]
    {
        server.cmd(["HSET", CONTROL, field, junk]);
        server.cmd(["RPUSH", TARGET, "7"]);
        soon(ready.receiver().receive()).await.unwrap().ack().await.unwrap();
    }
    ready.set_rate_limit(None).await.unwrap();
    client.shutdown().await;
}

/// Receivers that ask for more than a limit allows wait like any others while there is room.
#[tokio::test]
async fn receivers_of_an_idle_queue_with_limits_wait_for_its_messages() {
    let server = Server::start();
    let clients = clients(&server, 1).await;
    let ready = &clients[0].1;
    ready.set_max_in_flight(Some(5)).await.unwrap();
    ready.set_rate_limit(Some(RateLimit::new(1, Duration::from_secs(3600)))).await.unwrap();
    let receiver = ready.receiver();
    let mut receiving = Box::pin(receiver.receive_many(10));
    assert!(waits(&mut receiving).await);
    until_async("it waits", || async { server.blocked_clients() == 1 }).await;
    ready.put("1").await.unwrap();
    let first = soon(receiving).await.unwrap().remove(0).unwrap();
    first.ack().await.unwrap();
    // The rate is used up.
    ready.put("2").await.unwrap();
    assert!(receiver.try_receive().await.unwrap().is_none());
    let mut receiving = Box::pin(receiver.receive());
    assert!(waits(&mut receiving).await);
    ready.set_rate_limit(None).await.unwrap();
    assert_eq!(*soon(receiving).await.unwrap().value(), "2");
    clients[0].0.shutdown().await;
}
