//! A master that sentinels replace: whatever happens to it, the client goes on with the new one, and nothing
//! waits for ever.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redelay::{Client, ErrorKind, codec};
use redelay_fixture::{Port, Sentinels, Server, until, until_async};
use redelay_support::{HOUR, MINUTE, builder, is_soak, ms, rounds, soon};
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::around_failover::{
    Taker, acknowledged_and_lost, lacks_scripts, patient, until_left, until_replicated,
};
use super::failover_load::{FailoverLoad, offer_elsewhere};

/// How the master fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// `SENTINEL FAILOVER`: the old master accepts writes for some seconds more.
    Planned,
    Killed,
    /// It comes back, and knows nothing of what has happened.
    Frozen,
}

impl Failure {
    /// Replaces the master. Returns the new one.
    pub(crate) fn happen(self, group: &Sentinels) -> &Server {
        let old = group.master();
        match self {
            Self::Planned => return group.failover(),
            Self::Killed => old.kill_9(),
            Self::Frozen => old.freeze(),
        }
        group.wait_for_other_master(old.port())
    }
}

fn kill_master(group: &Sentinels) {
    Failure::Killed.happen(group);
}

/// Takes, receives and offers go on, an entry that becomes due during the failover is delivered, and so is
/// what others offer and push after it.
async fn goes_on(failure: Failure) {
    for _ in 0..rounds() {
        goes_on_once(failure).await;
    }
}

async fn goes_on_once(failure: Failure) {
    let group = Arc::new(Sentinels::start());
    group.be_patient();
    let before = group.master();
    let client = builder(&group.url()).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = patient(&client);
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
    let failed = load.under_way().await;
    delayed.offer(&2, ms(4000)).await.unwrap();
    let due = Instant::now() + ms(4000);
    let old = group.master();
    for replica in group.replicas() {
        until_replicated(old, replica).await;
        // On a busy machine, it may have been the master already.
        let is_new = lacks_scripts(replica) || replica.port() == before.port();
        assert!(is_new, "it has {} scripts", replica.cached_scripts());
    }
    // A taker leaves while nobody answers.
    let leaving = tokio::spawn(async move {
        tokio::time::sleep(ms(50)).await;
        dropped.abort();
    });
    let new = block_in_place(|| failure.happen(&group));
    let promoted = Instant::now();
    group.be_patient();
    soon(leaving).await.unwrap();
    new.cmd(["RPUSH", "beside", "5"]);
    // A foreign push, a foreign offer and the entry that was armed, then both ways for one taker.
    new.cmd(["RPUSH", "r", "3"]);
    soon(receiving).await.unwrap().unwrap();
    let received = promoted.elapsed();
    offer_elsewhere(&mut new.redis(), &ready.keys(), 6, ms(1)).unwrap();
    let mut taker = Taker { ready: &ready, again: (due < promoted).then_some(2) };
    let first = soon(pending).await.unwrap().unwrap();
    taker.take_all([first].into(), &[2, 6]).await;
    new.cmd(["RPUSH", "q", "3"]);
    assert_eq!(taker.next().await, 3);
    soon(delayed.offer(&4, ms(1))).await.unwrap();
    assert_eq!(taker.next().await, 4);
    let delivered = promoted.max(due).elapsed();
    println!(
        "{failure:?}: {received:?} after the promotion a message is received, after {delivered:?} all is delivered"
    );
    let back = Duration::from_secs(if is_soak() { 2 } else { 60 });
    assert!(received.max(delivered) < back, "{received:?} {delivered:?}");
    load.judge(failed, promoted, new).await;
    if let Failure::Frozen = failure {
        group.servers().iter().for_each(|server| server.thaw());
        // It becomes a replica of the new one. Nothing goes there meanwhile.
        taker.delivers(&delayed).await;
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

/// Connections that are being opened to a master that does not answer: neither the answer nor the end of the
/// attempt is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_being_opened_to_a_frozen_master() {
    let group = Sentinels::builder().password("secret").start();
    // A handshake may take half a minute, because a provider may.
    let provider = || async { Ok::<_, Infallible>(("default".to_owned(), "secret".to_owned())) };
    let url = group.url().replace(":secret@", "");
    let builder = builder(&url).credentials_provider(provider);
    let client = soon(builder.connect()).await.unwrap();
    let queues = ["q", "r"].map(|name| client.blocking_queue(name, codec::Long));
    until_async("a put", || async { queues[0].put(&0).await.is_ok() }).await;
    let old = group.master();
    for replica in group.replicas() {
        until_replicated(old, replica).await;
    }
    old.freeze();
    let [taken, transferred] = queues;
    // For pops, and for announcements.
    let taking = tokio::spawn(async move { taken.take().await });
    let delayed = client.delayed_queue(&transferred);
    let new = block_in_place(|| group.wait_for_other_master(old.port()));
    let within = Duration::from_secs(25);
    let all = async {
        until_async("it offers", || async { delayed.offer(&1, ms(1)).await.is_ok() }).await;
        until_async("it is transferred", || async { !new.list("r").is_empty() }).await;
        taking.await.unwrap().unwrap()
    };
    assert_eq!(timeout(within, all).await.expect("all connections are those of the new master"), 0);
    old.thaw();
    client.shutdown().await;
}

/// When the first sentinel names another master than the one on port `than`.
fn first_naming(group: &Sentinels, than: u16) -> Instant {
    let names_another = |sentinel: &Server| {
        let (_, port): (String, u16) = sentinel.get(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"]);
        port != than
    };
    until("a sentinel names another master", || (0..3).any(|number| names_another(group.sentinel(number))));
    Instant::now()
}

/// The old master of a planned failover accepts writes for eleven seconds more, which are lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_offered_to_the_old_master_once_the_new_one_is_announced() {
    for _ in 0..rounds() {
        nothing_is_offered_to_the_old_master().await;
    }
}

async fn nothing_is_offered_to_the_old_master() {
    // On a machine that stands still for a moment, the client hears of the new master late.
    for tries in 1.. {
        let late = lost_long_after_the_announcement().await;
        if late == 0 {
            return;
        }
        assert!(tries < 3, "{late} offers were lost long after the announcement");
    }
}

async fn lost_long_after_the_announcement() -> usize {
    let group = Sentinels::start();
    let client = builder(&group.url()).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    delayed.offer(&0, HOUR).timeout(MINUTE).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let offering = tokio::spawn({
        let (delayed, is_over, accepted) = (delayed.clone(), is_over.clone(), accepted.clone());
        async move {
            for value in 1.. {
                let begun = Instant::now();
                if delayed.offer(&value, HOUR).await.is_ok() {
                    accepted.lock().unwrap().push((value, begun));
                }
                tokio::time::sleep(ms(2)).await;
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
    });
    let old = group.master().port();
    let (new, announced) = block_in_place(|| {
        thread::scope(|scope| {
            let naming = scope.spawn(|| first_naming(&group, old));
            (group.failover(), naming.join().expect("a sentinel names it"))
        })
    });
    tokio::time::sleep(ms(1500)).await;
    until_async("offers go on", || async {
        accepted.lock().unwrap().iter().any(|(_, begun)| *begun > announced + ms(500))
    })
    .await;
    is_over.store(true, Ordering::Relaxed);
    soon(offering).await.unwrap();
    let accepted = accepted.lock().unwrap().clone();
    let stored = delayed.read_all().await.unwrap();
    assert_eq!(stored.len(), new.list("redisson_delay_queue:{q}").len());
    let lost = || accepted.iter().filter(|(value, _)| !stored.contains(value));
    let late = lost().filter(|(_, begun)| *begun > announced + ms(300)).count();
    let last = lost().map(|(_, begun)| begun.saturating_duration_since(announced)).max().unwrap_or_default();
    println!(
        "{} offers accepted, {} of them lost, the last one {last:?} after the first announcement",
        accepted.len(),
        lost().count(),
    );
    client.shutdown().await;
    late
}

/// A sentinel that does not answer delays nothing, neither at the start nor at a failover.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_sentinel() {
    for _ in 0..rounds() {
        a_frozen_sentinel_delays_nothing().await;
    }
}

async fn a_frozen_sentinel_delays_nothing() {
    let group = Sentinels::start();
    group.sentinel(0).freeze();
    let mut tries = 0;
    let client = loop {
        let begun = Instant::now();
        let client = soon(builder(&group.url()).connect()).await.unwrap();
        let late = begun.elapsed();
        println!("connected after {late:?}");
        if late < Duration::from_secs(3) {
            break client;
        }
        // Once is enough on a busy machine.
        tries += 1;
        assert!(tries < 20, "{late:?}");
    };
    let ready = client.blocking_queue("q", codec::Long);
    until_async("a put", || async { ready.put(&1).await.is_ok() }).await;
    block_in_place(|| kill_master(&group));
    until_async("a payload", || async {
        ready.put(&2).await.is_ok() && matches!(ready.poll().await, Ok(Some(_)))
    })
    .await;
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_of_the_servers_and_of_the_sentinels_differ() {
    let group = Sentinels::builder().password("secret").sentinel_password("other").start();
    let error = Client::builder().url(group.url()).connect_timeout(ms(4000)).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("NOAUTH"), "{error}");
    let builder = builder(&group.url()).command_timeout(MINUTE).sentinel_credentials("", "other");
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
    let error = Client::builder().url(url).connect_timeout(ms(4000)).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let text = error.to_string();
    assert!(text.contains("`other`") && text.contains("No such master"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_sentinel_answers() {
    let ports = [Port::reserve(), Port::reserve()];
    let [first, second] = ports.each_ref().map(Port::number);
    let url = format!("redis-sentinel://127.0.0.1:{first},127.0.0.1:{second}/main");
    let error = Client::builder().url(url).connect_timeout(ms(4000)).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let text = error.to_string();
    assert!(text.contains("`main`") && text.contains("refused"), "{text}");
    assert!(ports.iter().any(|port| text.contains(&port.number().to_string())), "{text}");
}

/// A client has one connection to each sentinel, in addition to those to the master.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_one_connection_to_each_sentinel() {
    let group = Sentinels::start();
    let client = builder(&group.url()).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let _delayed = client.delayed_queue(&ready);
    let waiting = tokio::spawn(async move { ready.take().await });
    // For commands, for announcements, and a pop that blocks.
    until_async("all are connected", || async { group.master().clients_named("redelay") == 3 }).await;
    until_async("the sentinels are followed", || async {
        (0..3).all(|number| group.sentinel(number).clients_named("redelay") == 1)
    })
    .await;
    for replica in group.replicas() {
        assert_eq!(replica.clients_named("redelay"), 0);
    }
    client.shutdown().await;
    assert!(soon(waiting).await.unwrap().unwrap_err().is_closed());
    until_async("all are closed", || async {
        (0..3).all(|number| group.sentinel(number).clients_named("redelay") == 0)
    })
    .await;
}

/// The seeds may be gone: what they knew is followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_sentinels_are_learned() {
    let group = Sentinels::start();
    let first = group.sentinel(0).port();
    let url = format!("redis-sentinel://127.0.0.1:{first}/main");
    let client = builder(&url).command_timeout(MINUTE).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    ready.put(&1).await.unwrap();
    until_async("the others are followed", || async {
        (1..3).all(|other| group.sentinel(other).clients_named("redelay") > 0)
    })
    .await;
    group.sentinel(0).kill_9();
    block_in_place(|| kill_master(&group));
    until_async("a payload", || async {
        ready.put(&2).await.is_ok() && matches!(ready.poll().await, Ok(Some(_)))
    })
    .await;
    client.shutdown().await;
}

/// What the servers lose without a confirmation, which depends on them alone. For the documents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it shows numbers, and checks none"]
async fn what_failovers_by_sentinels_lose() {
    for failure in [Failure::Planned, Failure::Killed, Failure::Frozen].repeat(rounds()) {
        let group = Sentinels::start();
        let (acknowledged, lost) = acknowledged_and_lost(builder(&group.url()), || {
            failure.happen(&group);
            thread::sleep(ms(500));
            group.servers().iter().for_each(|server| server.thaw());
        })
        .await;
        println!("{failure:?}: {acknowledged} offers acknowledged, {lost} lost");
    }
}

/// With all replicas of the master, what is acknowledged with `replicas(2)` survives its death, whichever of
/// them is promoted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_all_replicas_have_confirmed_is_lost() {
    for _ in 0..rounds() {
        let group = Sentinels::start();
        group.be_patient();
        let builder = builder(&group.url()).replicas(2, ms(500));
        let (acknowledged, lost) = acknowledged_and_lost(builder, || kill_master(&group)).await;
        println!("{acknowledged} offers acknowledged, {lost} lost");
        assert_eq!(lost, 0);
        assert!(acknowledged > 10, "too few to say anything");
    }
}

/// The same with receivers: what was offered is delivered, and what was acknowledged is not delivered again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_all_replicas_have_confirmed_is_delivered_and_settled_once() {
    for failure in [Failure::Killed, Failure::Planned].repeat(rounds()) {
        delivers_and_settles_once(failure).await;
    }
}

async fn delivers_and_settles_once(failure: Failure) {
    let group = Sentinels::start();
    group.be_patient();
    let builder = builder(&group.url()).replicas(2, ms(300)).command_timeout(ms(1000));
    let client = builder.connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    // By number: when it was received, and when its acknowledgement was confirmed.
    let (received, settled) = (Times::default(), Times::default());
    let receiving: Vec<_> = (0..3)
        .map(|_| {
            let (receiver, received, settled) =
                (ready.receiver().lease(ms(2000)), received.clone(), settled.clone());
            tokio::spawn(async move {
                loop {
                    let delivery = match receiver.receive().await {
                        Ok(delivery) => delivery,
                        Err(error) if error.is_closed() => return,
                        Err(error) => panic!("a receive failed: {error}"),
                    };
                    let number = *delivery.value();
                    note(&received, number);
                    if delivery.ack().await.is_ok() {
                        note(&settled, number);
                    }
                }
            })
        })
        .collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let offering: Vec<_> = (0..4)
        .map(|offerer| {
            let (delayed, is_over) = (delayed.clone(), is_over.clone());
            tokio::spawn(async move {
                let mut stored = Vec::new();
                for number in offerer * 1_000_000.. {
                    if delayed.offer(&number, ms(number as u64 % 40)).await.is_ok() {
                        stored.push(number);
                    }
                    tokio::time::sleep(ms(5)).await;
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                stored
            })
        })
        .collect();
    tokio::time::sleep(ms(1000)).await;
    let are_enough = || async { settled.lock().unwrap().len() > 50 };
    until_async("enough is settled to say anything", are_enough).await;
    block_in_place(|| {
        failure.happen(&group);
    });
    tokio::time::sleep(ms(1000)).await;
    is_over.store(true, Ordering::Relaxed);
    let mut stored = Vec::new();
    for offering in offering {
        stored.extend(soon(offering).await.unwrap());
    }
    until_async("all that was stored is received", || async {
        let received = received.lock().unwrap();
        stored.iter().all(|number| received.contains_key(number))
    })
    .await;
    // Longer than a lease: what was not settled comes again.
    tokio::time::sleep(ms(3000)).await;
    client.shutdown().await;
    for receiving in receiving {
        soon(receiving).await.unwrap();
    }
    let (received, settled) = (received.lock().unwrap(), settled.lock().unwrap());
    let doubled = received.values().filter(|times| times.len() > 1).count();
    println!(
        "{failure:?}: {} offers and {} settlements confirmed, {doubled} delivered twice",
        stored.len(),
        settled.len(),
    );
    let again = |(number, times): &(&i64, &Vec<Instant>)| received[*number].iter().any(|at| *at > times[0]);
    let again: Vec<_> = settled.iter().filter(again).map(|(number, _)| number).collect();
    assert!(again.is_empty(), "delivered after they were settled: {again:?}");
    assert!(settled.values().all(|times| times.len() == 1), "settled twice");
    assert!(stored.len() > 10, "too few to say anything");
}

/// When something has happened to each number.
type Times = Arc<Mutex<HashMap<i64, Vec<Instant>>>>;

fn note(times: &Times, number: i64) {
    times.lock().unwrap().entry(number).or_default().push(Instant::now());
}
