//! A master that sentinels replace: whatever happens to it, the client goes on with the new one, and nothing waits for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redelay::{Client, ErrorKind, codec};
use redelay_fixture::{Sentinels, until_async, until_async_within};
use redelay_support::{is_soak, ms, rounds, soon};
use tokio::task::block_in_place;

use super::around_failover::{acknowledged_and_lost, delivers, until_left, until_replicated};
use super::failover_load::FailoverLoad;

/// How the master fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// `SENTINEL FAILOVER`: the old master accepts writes for some seconds more.
    Planned,
    Killed,
    /// It comes back, and knows nothing of what has happened.
    Frozen,
}

fn kill_master(group: &Sentinels) {
    let old = group.master().port();
    group.master().kill_9();
    group.wait_for_other_master(old);
}

/// Takes, receives and offers go on, an entry that becomes due during the failover is delivered, and so is what others offer and
/// push after it.
async fn goes_on(failure: Failure) {
    for _ in 0..rounds() {
        goes_on_once(failure).await;
    }
}

async fn goes_on_once(failure: Failure) {
    let group = Arc::new(Sentinels::start());
    let client = Client::connect(&group.url()).await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    let load = FailoverLoad::start(&group.url(), {
        let group = group.clone();
        move || group.master().port()
    })
    .await;
    delayed.offer(&1, ms(100)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
    let pending = tokio::spawn({
        let ready = ready.clone();
        async move { ready.take().await }
    });
    let receiver = client.blocking_queue("r", codec::Long).receiver();
    let receiving = tokio::spawn(async move { receiver.receive().await?.ack().await });
    let dropped = client.blocking_queue("beside", codec::Long);
    let dropped = tokio::spawn(async move { dropped.take().await });
    load.under_way().await;
    delayed.offer(&2, ms(4000)).await.unwrap();
    let due = Instant::now() + ms(4000);
    let old = group.master();
    for replica in group.replicas() {
        until_replicated(old, replica).await;
    }
    let failed = Instant::now();
    // A taker leaves while nobody answers.
    let leaving = tokio::spawn(async move {
        tokio::time::sleep(ms(50)).await;
        dropped.abort();
    });
    let new = block_in_place(|| {
        match failure {
            Failure::Planned => drop(group.failover()),
            Failure::Killed => old.kill_9(),
            Failure::Frozen => old.freeze(),
        }
        group.wait_for_other_master(old.port())
    });
    let promoted = Instant::now();
    soon(leaving).await.unwrap();
    new.cmd(["RPUSH", "beside", "5"]);
    // A foreign push and the entry that was armed, then both ways for one taker.
    new.cmd(["RPUSH", "r", "3"]);
    soon(receiving).await.unwrap().unwrap();
    let received = promoted.elapsed();
    assert_eq!(soon(pending).await.unwrap().unwrap(), 2);
    new.cmd(["RPUSH", "q", "3"]);
    assert_eq!(soon(ready.take()).await.unwrap(), 3);
    soon(delayed.offer(&4, ms(1))).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 4);
    let delivered = promoted.max(due).elapsed();
    println!(
        "{failure:?}: {received:?} after the promotion a message is received, after {delivered:?} all is delivered"
    );
    let back = Duration::from_secs(if is_soak() { 2 } else { 10 });
    assert!(received.max(delivered) < back, "{received:?} {delivered:?}");
    load.judge(failed, promoted, new).await;
    if let Failure::Frozen = failure {
        group.servers().iter().for_each(|server| server.thaw());
        // It becomes a replica of the new one. Nothing goes there meanwhile.
        delivers(&delayed, &ready).await;
    }
    until_left(old).await;
    // Nobody has this but the taker that has left.
    assert_eq!(new.list("beside"), [b"5"]);
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_failover() {
    goes_on(Failure::Planned).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_is_killed() {
    goes_on(Failure::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_is_frozen_and_comes_back() {
    goes_on(Failure::Frozen).await;
}

/// The old master of a planned failover accepts writes for eleven seconds more, which are lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_offered_to_the_old_master_once_the_new_one_is_announced() {
    let group = Sentinels::start();
    let client = Client::connect(&group.url()).await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    delayed.offer(&0, Duration::from_secs(3600)).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let offering = tokio::spawn({
        let (delayed, is_over) = (delayed.clone(), is_over.clone());
        async move {
            let mut accepted = Vec::new();
            for value in 1.. {
                if delayed.offer(&value, Duration::from_secs(3600)).await.is_ok() {
                    accepted.push((value, Instant::now()));
                }
                tokio::time::sleep(ms(2)).await;
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
            accepted
        }
    });
    let new = block_in_place(|| group.failover());
    let announced = Instant::now();
    tokio::time::sleep(ms(1500)).await;
    is_over.store(true, Ordering::Relaxed);
    let accepted = soon(offering).await.unwrap();
    let stored = delayed.read_all().await.unwrap();
    assert_eq!(stored.len(), new.list("redisson_delay_queue:{q}").len());
    let late: Vec<_> =
        accepted.iter().filter(|(value, at)| *at > announced + ms(300) && !stored.contains(value)).collect();
    let lost = accepted.iter().filter(|(value, _)| !stored.contains(value)).count();
    println!("{} offers accepted, {lost} of them lost", accepted.len());
    assert!(late.is_empty(), "{} offers were lost long after the announcement", late.len());
    assert!(accepted.iter().any(|(_, at)| *at > announced + ms(500)));
    client.shutdown().await;
}

/// A sentinel that does not answer delays nothing, neither at the start nor at a failover.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_sentinel() {
    let group = Sentinels::start();
    group.sentinel(0).freeze();
    let begun = Instant::now();
    let client = soon(Client::connect(&group.url())).await.unwrap();
    let late = begun.elapsed();
    println!("connected after {late:?}");
    assert!(late < Duration::from_secs(3), "{late:?}");
    let ready = client.blocking_queue("q", codec::Long);
    ready.put(&1).await.unwrap();
    block_in_place(|| kill_master(&group));
    until_async_within(Duration::from_secs(10), "a payload", || async {
        ready.put(&2).await.is_ok() && matches!(ready.poll().await, Ok(Some(_)))
    })
    .await;
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_of_the_servers_and_of_the_sentinels_differ() {
    let group = Sentinels::builder().password("secret").sentinel_password("other").start();
    let error = Client::builder().url(group.url()).connect_timeout(ms(1500)).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("NOAUTH"), "{error}");
    let builder = Client::builder().url(group.url()).sentinel_credentials("", "other");
    let client = soon(builder.connect()).await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    ready.put(&1).await.unwrap();
    assert_eq!(group.master().list("q").len(), 1);
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_nobody_knows() {
    let group = Sentinels::start();
    let url = group.url().replace("/main", "/other");
    let error = Client::builder().url(url).connect_timeout(ms(1500)).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let text = error.to_string();
    assert!(text.contains("`other`") && text.contains("No such master"), "{text}");
}

/// The seeds may be gone: what they knew is followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_sentinels_are_learned() {
    let group = Sentinels::start();
    let first = group.sentinel(0).port();
    let url = format!("redis-sentinel://127.0.0.1:{first}/main");
    let client = Client::connect(&url).await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    ready.put(&1).await.unwrap();
    until_async("the others are followed", || async {
        (1..3).all(|other| group.sentinel(other).clients_named("redelay") > 0)
    })
    .await;
    group.sentinel(0).kill_9();
    block_in_place(|| kill_master(&group));
    until_async_within(Duration::from_secs(10), "a payload", || async {
        ready.put(&2).await.is_ok() && matches!(ready.poll().await, Ok(Some(_)))
    })
    .await;
    client.shutdown().await;
}

/// With all replicas of the master, what is acknowledged with `replicas(2)` survives its death, whichever of them is promoted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_all_replicas_have_confirmed_is_lost() {
    for _ in 0..rounds() {
        let group = Sentinels::start();
        let builder = Client::builder().url(group.url()).replicas(2, ms(500));
        let (acknowledged, lost) = acknowledged_and_lost(builder, || kill_master(&group)).await;
        println!("{acknowledged} offers acknowledged, {lost} lost");
        assert_eq!(lost, 0);
        assert!(acknowledged > 10, "too few to say anything");
    }
}
