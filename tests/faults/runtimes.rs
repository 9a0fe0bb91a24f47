//! A client whose Tokio runtime nobody drives any more, or which is gone: every call ends.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use redelay::{BlockingQueue, DelayedQueue, ErrorKind, Result};
use redelay_fixture::{Server, until_async};
use redelay_support::{Boxed, HOUR, builder, ms, soon};
use tokio::runtime::Runtime;

use crate::dropping::Queues;

const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);

/// A client that has worked, and its runtime, in which nothing runs now.
fn undriven(server: &Server) -> (Runtime, Queues) {
    let home = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let queues = home.block_on(async {
        let queues = Queues::of_numbers(builder(server).command_timeout(COMMAND_TIMEOUT)).await;
        // On a busy machine, it may have been put although the reply came too late.
        until_async("a put", || async { queues.ready.put(&1).await.is_ok() }).await;
        assert_eq!(queues.ready.take().await.unwrap(), 1);
        server.cmd(["DEL", "q"]);
        queues
    });
    (home, queues)
}

type Call = (&'static str, Boxed<Result<()>>);

macro_rules! calls {
    ($($queue:ident.$call:ident ($($arg:expr),*)),+ $(,)?) => {
        vec![$((
            stringify!($call),
            { let q = $queue.clone(); Box::pin(async move { q.$call($($arg),*).await.map(drop) }) as Boxed<_> },
        )),+]
    };
}

/// Calls that have an end even where nothing runs.
fn bounded(ready: &BlockingQueue<i64>, delayed: &DelayedQueue<i64>) -> Vec<Call> {
    calls![
        ready.len(),
        ready.put(&1),
        ready.read_all(),
        ready.poll(),
        ready.poll_many(3),
        ready.poll_timeout(ms(10)),
        ready.poll_from_any(ms(10), &["x"]),
        ready.stats(),
        delayed.len(),
        delayed.poll(),
        delayed.remove(&1),
        delayed.offer_all([(&1, HOUR)]),
    ]
}

/// Those that a task of the client sends.
fn gathered(delayed: &DelayedQueue<i64>) -> Vec<Call> {
    let job = delayed.job("a");
    calls![delayed.offer(&1, HOUR), job.cancel()]
}

fn takes(ready: &BlockingQueue<i64>) -> Vec<Call> {
    calls![ready.take(), ready.take_last(), ready.take_last_and_offer_first_to("x")]
}

async fn ends_in_time(calls: Vec<Call>) {
    for (name, call) in calls {
        let begun = Instant::now();
        let error = soon(call).await.expect_err(name);
        let kinds = [ErrorKind::Unavailable, ErrorKind::OutcomeUnknown];
        assert!(kinds.contains(&error.kind()), "{name}: {error:?}");
        assert!(begun.elapsed() <= 30 * COMMAND_TIMEOUT, "{name} took {:?}", begun.elapsed());
    }
}

#[test]
fn where_nothing_runs_calls_end_in_time() {
    let server = Server::start();
    let (home, queues) = undriven(&server);
    Runtime::new().unwrap().block_on(ends_in_time(bounded(&queues.ready, &queues.delayed)));
    drop((queues, home));
}

#[test]
fn where_nothing_runs_offers_and_cancels_end_in_time() {
    let server = Server::start();
    let (home, queues) = undriven(&server);
    Runtime::new().unwrap().block_on(ends_in_time(gathered(&queues.delayed)));
    drop((queues, home));
}

/// Runs this in a thread of its own, which is left behind if it hangs.
fn in_time(what: &'static str, run: impl FnOnce() + Send + 'static) {
    let (ended, has_ended) = mpsc::channel();
    thread::spawn(move || {
        run();
        let _ = ended.send(());
    });
    assert!(has_ended.recv_timeout(180 * COMMAND_TIMEOUT).is_ok(), "{what} hangs, or has panicked");
}

async fn end(queues: Queues) {
    queues.delayed.destroy().await;
    queues.client.stop_taking().await;
    queues.client.shutdown().await;
}

/// Where the end of a client is waited for.
type Context = (&'static str, fn(Queues));

/// In a runtime of several threads, in one without a timer, and outside of any runtime.
#[test]
fn where_nothing_runs_the_client_ends_in_time() {
    let contexts: [Context; 3] = [
        ("several threads", |queues| Runtime::new().unwrap().block_on(end(queues))),
        ("no timer", |queues| {
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(end(queues));
        }),
        ("no runtime", |queues| futures::executor::block_on(end(queues))),
    ];
    for (name, run) in contexts {
        let server = Server::start();
        let (home, queues) = undriven(&server);
        let ending = queues.clone();
        in_time(name, move || run(ending));
        // What begins now ends at once.
        is_closed(all(&queues));
        drop((queues, home));
    }
}

/// Nothing is sent, and no later call can be.
#[test]
fn where_the_runtime_is_gone_everything_is_closed() {
    let server = Server::start();
    let (home, queues) = undriven(&server);
    let waiting = takes(&queues.ready);
    let away = Runtime::new().unwrap();
    let waiting: Vec<_> = waiting.into_iter().map(|(name, call)| (name, away.spawn(call))).collect();
    home.block_on(until_async("they wait", || async { server.blocked_clients() == 3 }));
    drop(home);
    for (name, taker) in waiting {
        let error = away.block_on(soon(taker)).unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{name}");
    }
    is_closed(all(&queues));
    let ending = queues.clone();
    in_time("the end of a client that has ended", move || futures::executor::block_on(end(ending)));
    assert_eq!(server.keys(), Vec::<Vec<u8>>::new());
}

#[test]
fn where_the_runtime_is_gone_offers_and_cancels_are_closed() {
    let server = Server::start();
    let (home, queues) = undriven(&server);
    drop(home);
    is_closed(gathered(&queues.delayed));
    assert_eq!(server.keys(), Vec::<Vec<u8>>::new());
}

#[test]
fn where_the_runtime_is_gone_receivers_are_closed() {
    let server = Server::start();
    let (home, queues) = undriven(&server);
    let receiver = queues.ready.receiver();
    let delivery = home.block_on(async {
        queues.ready.put(&2).await.unwrap();
        soon(receiver.receive()).await.unwrap()
    });
    let away = Runtime::new().unwrap();
    let waiting = away.spawn({
        let receiver = receiver.clone();
        async move { receiver.receive().await }
    });
    home.block_on(until_async("it waits", || async { server.blocked_clients() == 1 }));
    drop(home);
    assert_eq!(away.block_on(soon(waiting)).unwrap().unwrap_err().kind(), ErrorKind::Closed);
    let new = queues.ready.receiver();
    is_closed(calls![receiver.receive(), receiver.try_receive(), new.receive(), new.receive_many(2)]);
    is_closed(vec![("ack", Box::pin(delivery.ack()))]);
}

fn all(queues: &Queues) -> Vec<Call> {
    let mut all = bounded(&queues.ready, &queues.delayed);
    all.extend(takes(&queues.ready));
    all
}

#[track_caller]
fn is_closed(calls: Vec<Call>) {
    Runtime::new().unwrap().block_on(async {
        for (name, call) in calls {
            let begun = Instant::now();
            assert_eq!(soon(call).await.expect_err(name).kind(), ErrorKind::Closed, "{name}");
            assert!(begun.elapsed() < 30 * COMMAND_TIMEOUT, "{name} took {:?}", begun.elapsed());
        }
    });
}
