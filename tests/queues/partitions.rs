//! One logical queue over several ordinary ones.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use redelay::delayed_queue::{Cancelled, JobState, Offered};
use redelay::{ErrorKind, Worker, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{ms, patient_builder, soon};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn payloads_are_spread_and_taken_from_all_partitions() {
    let server = Server::start();
    let client = patient_builder(&server).connect().await.unwrap();
    let orders = client.partitioned_queue("orders", 4, codec::Long).await.unwrap();
    for value in 0..128 {
        orders.put(&value).await.unwrap();
    }
    // Java finds them under these names.
    for number in 0..4 {
        assert_eq!(server.list(format!("orders#{number}")).len(), 32);
    }
    let mut taken = HashSet::new();
    for _ in 0..128 {
        taken.insert(soon(orders.take()).await.unwrap());
    }
    assert_eq!(taken, (0..128).collect());
    assert_eq!(orders.poll_timeout(ms(1)).await.unwrap(), None);
    let waiting = tokio::spawn({
        let orders = orders.clone();
        async move { orders.take().await }
    });
    orders.offer(&9, ms(50)).await.unwrap();
    assert_eq!(soon(waiting).await.unwrap().unwrap(), 9);
    assert_eq!(orders.decode(b"17").unwrap(), 17);
    assert_eq!(orders.decode(b"seventeen").unwrap_err().kind(), ErrorKind::Decode);
    let waiting = tokio::spawn({
        let orders = orders.clone();
        async move { orders.take().await }
    });
    client.shutdown().await;
    for error in [soon(waiting).await.unwrap().unwrap_err(), orders.take().await.unwrap_err()] {
        assert!(error.is_closed() && error.to_string().contains("`take`"), "{error}");
    }
}

/// In a cluster, a taker looks at the lists before it waits on all of them, but not at those on which others
/// wait already.
#[tokio::test]
async fn takers_of_partitions_that_wait_cost_no_looks() {
    const VALUES: i64 = 50;
    const END: i64 = -1;
    let server = Server::builder().cluster().start();
    let client = patient_builder(&server).connect().await.unwrap();
    let orders = client.partitioned_queue("orders", 16, codec::Long).await.unwrap();
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let orders = orders.clone();
            tokio::spawn(async move {
                let mut taken = Vec::new();
                loop {
                    match orders.take().await.unwrap() {
                        END => return taken,
                        value => taken.push(value),
                    }
                }
            })
        })
        .collect();
    until_async("they wait", || async { server.blocked_clients() == 16 }).await;
    let calls = || server.command_calls("llen") + server.command_calls("evalsha");
    let before = calls();
    for value in 0..VALUES {
        orders.put(&value).await.unwrap();
        tokio::time::sleep(ms(5)).await;
    }
    let calls = calls() - before;
    for _ in 0..takers.len() {
        orders.put(&END).await.unwrap();
    }
    // One of four is served each time, and the others still wait.
    assert!(calls < 8 * VALUES as u64, "{calls} calls for {VALUES} payloads");
    let taken: HashSet<_> = join_all(takers).await.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(taken, (0..VALUES).collect());

    // If there is a backlog, the first look finds a payload.
    for value in 0..512 {
        orders.put(&value).await.unwrap();
    }
    let before = server.command_calls("llen");
    for _ in 0..100 {
        soon(orders.take()).await.unwrap();
    }
    // A transfer asks for a length, too.
    let looks = server.command_calls("llen") - before;
    assert!(looks < 200, "{looks} for 100 payloads on 16 lists");
    client.shutdown().await;
}

#[tokio::test]
async fn what_has_a_key_is_in_its_partition() {
    let server = Server::start();
    let client = patient_builder(&server).connect().await.unwrap();
    let orders = client.partitioned_queue("orders", 4, codec::Long).await.unwrap();
    for value in 0..5 {
        orders.queue_of("customer-7").put(&value).await.unwrap();
    }
    let queue = orders.queue_of("customer-7");
    assert_eq!(queue.read_all().await.unwrap(), [0, 1, 2, 3, 4]);
    queue.clear().await.unwrap();
    for number in 0..40 {
        orders.offer(&number, HOUR).id(format!("order-{number}")).replace().await.unwrap();
        orders.offer(&(100 + number), HOUR).id(format!("order-{number}")).replace().await.unwrap();
    }
    let again: Vec<_> = (0..40).map(|number| (format!("order-{number}"), 200 + number)).collect();
    let again = again.iter().map(|(id, value)| (id, value, HOUR));
    let offered = orders.offer_jobs(again).await.unwrap();
    assert!(offered.iter().all(|offered| matches!(offered, Offered::Kept(_))), "{offered:?}");
    let mixed = [("order-40", &40, HOUR), ("order-7", &7, HOUR), ("order-41", &41, HOUR)];
    let offered = orders.offer_jobs(mixed).await.unwrap();
    assert!(matches!(offered[..], [Offered::Stored(_), Offered::Kept(_), Offered::Stored(_)]), "{offered:?}");
    let ids = ["order-40", "none", "order-7", "order-41"];
    let states = orders.job_states(ids).await.unwrap();
    let is_pending = |state: &Option<JobState>| matches!(state, Some(JobState::Pending { .. }));
    assert_eq!(states.iter().map(is_pending).collect::<Vec<_>>(), [true, false, true, true]);
    let cancelled = orders.cancel_all(["order-40", "none", "order-41"]).await.unwrap();
    assert_eq!(cancelled, [Cancelled::Removed, Cancelled::NotFound, Cancelled::Removed]);
    assert_eq!(orders.cancel_all([""; 0]).await.unwrap(), []);
    assert_eq!(orders.job_states([""]).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(orders.cancel_all(["order-7", ""]).await.unwrap_err().kind(), ErrorKind::Invalid);
    // Equal payloads have one partition, or each partition would accept one.
    let throttled = join_all((0..64).map(|_| orders.offer(&7, Duration::ZERO).throttle(HOUR))).await;
    let stored = throttled.iter().filter(|offered| matches!(offered, Ok(Offered::Stored(_)))).count();
    assert_eq!(stored, 1, "{throttled:?}");
    let seven = soon(orders.take()).await.unwrap();
    assert_eq!(seven, 7);
    let stats = orders.stats().await.unwrap();
    assert_eq!((stats.pending, stats.ready), (40, 0));
    assert!(stats.next_due_in.is_some_and(|time| time > HOUR / 2));
    let mut sizes = Vec::new();
    for queue in orders.delayed_queues() {
        sizes.push(queue.len().await.unwrap());
    }
    assert!(sizes.iter().all(|size| *size > 0), "{sizes:?}");
    let job = orders.job("order-7");
    assert_eq!(job.get().await.unwrap().unwrap().value, 107);
    assert!(job.cancel().await.unwrap().is_removed() && !job.exists().await.unwrap());
    // What holds its id is found in its partition in every state, with what travels with it.
    let held = orders.offer(&8, Duration::ZERO).id("held").until_done().header("n", "1");
    assert!(matches!(held.expires_after(HOUR).await.unwrap(), Offered::Stored(_)));
    let receiver = orders.queue_of("held").receiver();
    let delivery = soon(receiver.receive()).await.unwrap();
    assert_eq!((delivery.job_id(), delivery.header("n")), (Some(&b"held"[..]), Some("1")));
    let states = orders.job_states(["held"]).await.unwrap();
    assert!(matches!(states[..], [Some(JobState::InFlight { .. })]), "{states:?}");
    // What one partition refuses does not hide what another has done.
    let elsewhere = |id: &String| orders.queue_of(id).name() != orders.queue_of("held").name();
    let other = (0..).map(|number| format!("other-{number}")).find(elsewhere).unwrap();
    orders.offer(&9, HOUR).id(&other).await.unwrap();
    let keys = orders.queue_of(&other).keys();
    server.cmd(["SET", &keys.timeout_set, "of another type"]);
    let error = orders.cancel_all(["held", other.as_str()]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(error.to_string().contains("(1 jobs were cancelled before)"), "{error}");
    server.cmd(["DEL", &keys.timeout_set]);
    assert_eq!(orders.cancel_all(["held"]).await.unwrap(), [Cancelled::Requested]);
    soon(delivery.cancelled()).await;
    delivery.retry().await.unwrap();
    assert_eq!(orders.job_states(["held"]).await.unwrap(), [None]);
    let schedule = orders.schedule("nightly").every(HOUR * 24).start_at(SystemTime::now() + HOUR);
    assert!(schedule.upsert(&1).await.unwrap().is_some());
    assert!(orders.schedule("nightly").remove().await.unwrap());
    client.shutdown().await;
}

#[tokio::test]
async fn batches_are_spread_over_the_partitions() {
    let server = Server::start();
    let client = patient_builder(&server).connect().await.unwrap();
    let orders = client.partitioned_queue("orders", 4, codec::Long).await.unwrap();
    assert!(orders.offer_all([]).await.unwrap().is_empty());
    let values: Vec<i64> = (0..64).collect();
    let delay = |value: i64| if value % 2 == 0 { HOUR } else { ms(1) };
    let tickets = orders.offer_all(values.iter().map(|value| (value, delay(*value)))).await.unwrap();
    assert_eq!(tickets.len(), 64);
    // The ticket of each is its own.
    for (value, ticket) in values.iter().zip(&tickets).filter(|(value, _)| *value % 4 == 0) {
        assert!(orders.cancel(ticket).await.unwrap(), "{value}");
    }
    let mut taken = HashSet::new();
    for _ in 0..32 {
        taken.insert(soon(orders.take()).await.unwrap());
    }
    assert_eq!(taken, values.iter().copied().filter(|value| value % 2 == 1).collect());
    let mut pending = HashSet::new();
    for queue in orders.delayed_queues() {
        assert_eq!(queue.len().await.unwrap(), 4);
        pending.extend(queue.read_all().await.unwrap());
    }
    assert_eq!(pending, values.iter().copied().filter(|value| value % 4 == 2).collect());
    // A ticket leads to its partition.
    assert!(orders.reschedule(&tickets[2], ms(1)).await.unwrap());
    assert!(orders.reschedule_at(&tickets[6], SystemTime::now()).await.unwrap());
    assert_eq!(
        HashSet::from([soon(orders.take()).await.unwrap(), soon(orders.take()).await.unwrap()]),
        [2, 6].into()
    );
    let pending_elsewhere = async || {
        let others = orders.delayed_queues().filter(|queue| !queue.name().ends_with("#2"));
        join_all(others.map(|queue| queue.len())).await.into_iter().map(Result::unwrap).sum::<usize>()
    };
    // Everything is checked before any partition stores its batch.
    let still_pending = pending_elsewhere().await;
    let delay = |value: i64| if value == 40 { Duration::MAX } else { HOUR };
    let error = orders.offer_all(values.iter().map(|value| (value, delay(*value)))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    // What one partition refuses, the others have stored.
    let before = pending_elsewhere().await;
    assert_eq!(before, still_pending);
    server.cmd(["SET", "redisson_delay_queue:{orders#2}", "no list"]);
    let error = orders.offer_all(values.iter().map(|value| (value, HOUR))).await.unwrap_err();
    assert!(error.is_outcome_unknown() && error.to_string().contains("48 payloads were offered"), "{error}");
    assert!(error.to_string().contains("orders#2"), "{error}");
    let stored = pending_elsewhere().await;
    assert_eq!(stored, before + 3 * 16);
    client.shutdown().await;
}

#[tokio::test]
async fn workers_and_pauses_are_for_all_partitions() {
    let server = Server::start();
    let client = patient_builder(&server).connect().await.unwrap();
    let orders = client.partitioned_queue("orders", 3, codec::Long).await.unwrap();
    orders.pause().await.unwrap();
    assert!(orders.stats().await.unwrap().is_paused);
    for value in 0..9 {
        orders.put(&value).await.unwrap();
    }
    let worker: Worker<i64> = orders.worker();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(worker.run_until(stopped, |_: i64| async {}));
    tokio::time::sleep(ms(200)).await;
    assert_eq!(orders.stats().await.unwrap().ready, 9);
    orders.resume().await.unwrap();
    until_async("all are handled", || async {
        let stats = orders.stats().await.unwrap();
        !stats.is_paused && stats.receiving.acknowledged == 9
    })
    .await;
    stop.send(()).unwrap();
    soon(running).await.unwrap().unwrap();
    client.shutdown().await;
}

#[tokio::test]
async fn numbers_of_partitions_that_cannot_be() {
    let server = Server::start();
    let client = patient_builder(&server).connect().await.unwrap();
    let error = async |name: &str, count| {
        let error = client.partitioned_queue(name, count, codec::Long).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        error.to_string()
    };
    for count in [0, 1, 1025] {
        assert!(error("orders", count).await.contains("use 2 to 1024"));
    }
    assert!(error("{shop}orders", 16).await.contains("braces"));
    client.partitioned_queue("orders", 16, codec::Long).await.unwrap();
    client.partitioned_queue("orders", 16, codec::Long).await.unwrap();
    let why = error("orders", 8).await;
    assert!(why.contains("`orders`") && why.contains("has 16 partitions, and with 8"), "{why}");
    client.shutdown().await;
}
