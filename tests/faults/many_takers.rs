//! Takers by the ten thousand: none of them is left behind when taking ends, none of them runs while it
//! waits, and those that are dropped at once leave nothing behind.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::poll_immediate;
use futures::stream::{FuturesUnordered, StreamExt};
use redelay::{BlockingQueue, Client, ErrorKind, Result, codec};
use redelay_fixture::{Server, redis, until_async};
use redelay_support::{Boxed, CHANNEL, MINUTE, Queues, alone, builder, ms, number_queues, soon};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::dropping::runtimes;

/// A future that counts how often it is polled, together with others.
struct Counted<F> {
    future: Pin<Box<F>>,
    polls: Arc<AtomicUsize>,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.future.as_mut().poll(context)
    }
}

#[derive(Clone, Copy, Debug)]
enum End {
    StopTaking,
    Shutdown,
}

impl End {
    async fn run(self, client: &Client) {
        let end: Boxed<()> = match self {
            Self::StopTaking => Box::pin({
                let client = client.clone();
                async move { client.stop_taking().await }
            }),
            Self::Shutdown => Box::pin({
                let client = client.clone();
                async move { client.shutdown().await }
            }),
        };
        timeout(2 * MINUTE, end).await.unwrap_or_else(|_| panic!("{self:?} hangs"));
    }
}

async fn take(ready: BlockingQueue<i64>) -> Result<i64> {
    ready.take().await
}

/// Begins so many takers, each in a task of its own, waits for that long, and ends taking.
async fn every_taker_ends(server: &Server, number: usize, end: End, wait: Duration) {
    let (client, ready, _delayed) = number_queues(server).await;
    let polls = Arc::<AtomicUsize>::default();
    let mut takers = JoinSet::new();
    for _ in 0..number {
        takers.spawn(Counted { future: Box::pin(take(ready.clone())), polls: polls.clone() });
    }
    sleep(wait).await;
    end.run(&client).await;
    let mut ended = 0;
    while let Ok(Some(taker)) = timeout(2 * MINUTE, takers.join_next()).await {
        assert_eq!(taker.expect("a taker").expect_err("nothing to take").kind(), ErrorKind::Closed);
        ended += 1;
    }
    assert_eq!(ended, number, "the others wait for ever after {end:?}, {wait:?} after they began");
    // Once to begin, once for the answer, and a few at random: a task's budget may be used up.
    let polls = polls.load(Ordering::Relaxed);
    assert!(polls <= 3 * number, "{number} takers were polled {polls} times");
    client.shutdown().await;
}

fn ends_on(runtime: &Runtime, number: usize, waits: &[Duration]) {
    let server = Server::start();
    for end in [End::StopTaking, End::Shutdown] {
        for wait in waits {
            runtime.block_on(every_taker_ends(&server, number, end, *wait));
        }
    }
}

#[test]
fn every_taker_ends_on_one_thread() {
    ends_on(&runtimes()[0], 20_000, &[ms(0), ms(20), ms(100), ms(200), ms(300)]);
}

#[test]
fn every_taker_ends_on_several_threads() {
    ends_on(&runtimes()[1], 100_000, &[ms(0), ms(1000)]);
}

/// All are begun before the client has seen any of them.
#[tokio::test]
async fn takers_that_begin_and_end_together() {
    let server = Server::start();
    for end in [End::StopTaking, End::Shutdown] {
        let (client, ready, _delayed) = number_queues(&server).await;
        let mut takers: Vec<_> = (0..20_000).map(|_| Box::pin(take(ready.clone()))).collect();
        for taker in &mut takers {
            assert!(poll_immediate(taker).await.is_none());
        }
        let takers: FuturesUnordered<_> = takers.into_iter().collect();
        let ended = tokio::spawn(takers.map(|taker| taker.expect_err("nothing to take").kind()).collect());
        end.run(&client).await;
        let ended: Vec<ErrorKind> = timeout(10 * MINUTE, ended).await.expect("all end").unwrap();
        assert_eq!(ended, [ErrorKind::Closed; 20_000]);
        client.shutdown().await;
    }
}

#[tokio::test]
async fn a_taker_does_not_run_while_it_waits() {
    const NUMBER: usize = 20_000;
    let server = Server::start();
    let Queues { client, ready, .. } =
        Queues::of_numbers(builder(&server).command_timeout(10 * MINUTE)).await;
    let polls = Arc::<AtomicUsize>::default();
    let mut takers = JoinSet::new();
    for _ in 0..NUMBER {
        takers.spawn(Counted { future: Box::pin(take(ready.clone())), polls: polls.clone() });
    }
    let load = || polls.load(Ordering::Relaxed);
    until_async("all wait", || async { load() >= NUMBER }).await;
    assert!(load() <= 2 * NUMBER, "{NUMBER} takers were polled {} times to begin", load());
    // One of them is served for each payload, in the order in which they began, and no other is woken.
    let before = load();
    for n in 0..100 {
        ready.put(&n).await.unwrap();
        let taken = timeout(MINUTE, takers.join_next()).await.expect("a payload");
        assert_eq!(taken.unwrap().unwrap().unwrap(), n);
    }
    assert!(load() - before <= 200, "100 payloads woke {} takers", load() - before);
    client.shutdown().await;
}

/// Takers that nobody polls any more, in a set beside the work in progress for example, hold nothing that
/// others need.
#[tokio::test]
async fn takers_that_are_not_polled_hold_up_no_other() {
    let server = Server::start();
    let (client, ready, _delayed) = number_queues(&server).await;
    let mut idle: Vec<_> = (0..20_000).map(|_| Box::pin(take(ready.clone()))).collect();
    for taker in &mut idle {
        assert!(poll_immediate(taker).await.is_none());
    }
    let other = client.blocking_queue("other", codec::Long);
    let taker = tokio::spawn(take(other.clone()));
    // The client gets through all of them meanwhile.
    until_async("they wait", || async { server.blocked_clients() == 1 }).await;
    other.put(&1).await.unwrap();
    assert_eq!(timeout(MINUTE, taker).await.expect("a payload").unwrap().unwrap(), 1);
    assert_eq!(timeout(MINUTE, other.poll()).await.expect("an answer").unwrap(), None);
    drop(idle);
    client.shutdown().await;
}

/// Bytes of memory that are this process's own now.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[tokio::test]
async fn takers_that_begin_and_are_dropped_leave_nothing_behind() {
    // What is measured is the process's.
    if !alone("many_takers::takers_that_begin_and_are_dropped_leave_nothing_behind") {
        return;
    }
    let server = Server::start();
    let (client, ready, _delayed) = number_queues(&server).await;
    let before = memory();
    // The client's task does not run meanwhile.
    for _ in 0..1_000_000 {
        assert!(poll_immediate(Box::pin(take(ready.clone()))).await.is_none());
    }
    let more = memory().saturating_sub(before);
    assert!(more <= 32 << 20, "{more} bytes");
    ready.put(&1).await.unwrap();
    assert_eq!(timeout(MINUTE, ready.take()).await.expect("a payload").unwrap(), 1);
    client.shutdown().await;
}

/// The server accepts no more connections, and those that there are work.
#[tokio::test]
async fn takers_without_a_connection_to_block_on_are_served() {
    let server = Server::start();
    let (_client, ready, _delayed) = number_queues(&server).await;
    until_async("subscribed", || async { server.subscribers(CHANNEL) == 1 }).await;
    let mut admin = server.redis();
    let mut ask = |words: &[&str]| -> redis::Value {
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| _ = command.arg(*word));
        command.query(&mut admin).unwrap()
    };
    let text = |value| redis::from_redis_value::<String>(value).unwrap();
    let clients = text(ask(&["CLIENT", "LIST"])).lines().count();
    ask(&["CONFIG", "SET", "maxclients", &clients.to_string()]);
    let taker = ready.clone();
    let taken = tokio::spawn(async move { taker.take().await });
    let refused = async {
        while text(ask(&["INFO", "stats"])).contains("rejected_connections:0") {
            sleep(ms(10)).await;
        }
    };
    timeout(MINUTE, refused).await.expect("the server refuses a connection");
    ask(&["RPUSH", "q", "7", "8"]);
    assert_eq!(soon(taken).await.unwrap().unwrap(), 7);
    assert_eq!(soon(ready.take()).await.unwrap(), 8);
    let receiver = ready.receiver();
    let received = tokio::spawn(async move { receiver.receive().await.unwrap().into_parts().0 });
    sleep(ms(100)).await;
    ask(&["RPUSH", "q", "9"]);
    assert_eq!(soon(received).await.unwrap(), 9);
    ask(&["CONFIG", "SET", "maxclients", "10000"]);
}
