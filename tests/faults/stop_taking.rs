//! The first phase of a shutdown: taking ends, undelivered payloads go back, and everything else of the
//! client goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures::stream::StreamExt;
use redelay::{BlockingQueue, DelayedQueue, ErrorKind, Result, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    Boxed, HOUR, builder, ms, number_queues, pending, soon, still_builder, still_number_queues, text_queues,
    woken,
};
use tokio_test::{assert_pending, assert_ready, task};
use tokio_util::sync::CancellationToken;

/// Every call that takes, on an empty list.
fn takers(q: &BlockingQueue<String>) -> Vec<(&'static str, Boxed<Result<()>>)> {
    macro_rules! calls {
        ($($call:ident ($($arg:expr),*)),+ $(,)?) => {
            vec![$((
                stringify!($call),
                { let q = q.clone(); Box::pin(async move { q.$call($($arg),*).await.map(drop) }) as Boxed<_> },
            )),+]
        };
    }
    calls![
        take(),
        take_last(),
        poll_timeout(HOUR),
        poll_last_timeout(HOUR),
        poll_from_any(HOUR, &["x"]),
        poll_last_from_any(HOUR, &["x"]),
        poll_many_from_any(HOUR, 3, &["x"]),
        poll_last_many_from_any(HOUR, 3, &["x"]),
        take_last_and_offer_first_to("x"),
        poll_last_and_offer_first_to_timeout("x", HOUR),
    ]
}

#[tokio::test]
async fn waiting_takers_and_later_ones_end_and_everything_else_goes_on() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let waiting: Vec<_> = takers(&ready).into_iter().map(|(name, call)| (name, tokio::spawn(call))).collect();
    let mut stream = ready.clone().into_stream();
    let streaming = tokio::spawn(async move { stream.next().await.is_none() });
    until_async("head, tail and move wait", || async { server.blocked_clients() >= 3 }).await;
    // Two concurrent calls end alike.
    let clone = client.clone();
    soon(async { tokio::join!(client.stop_taking(), clone.stop_taking()) }).await;
    for (name, taker) in waiting {
        assert_eq!(soon(taker).await.unwrap().unwrap_err().kind(), ErrorKind::Closed, "{name}");
    }
    assert!(soon(streaming).await.unwrap(), "the stream did not end");
    assert_eq!(server.blocked_clients(), 0);
    soon(client.stop_taking()).await;
    delayed.offer(&"pending".to_owned(), HOUR).await.unwrap();
    delayed.offer(&"due".to_owned(), ms(1)).await.unwrap();
    ready.put(&"put".to_owned()).await.unwrap();
    until_async("transferred", || async { server.list("q").len() == 2 }).await;
    let new = client.blocking_queue("q", codec::String);
    for (name, call) in takers(&ready).into_iter().chain(takers(&new)) {
        assert_eq!(soon(call).await.unwrap_err().kind(), ErrorKind::Closed, "{name}");
    }
    for polled in [ready.poll().await, ready.poll_last().await] {
        assert_eq!(polled.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(ready.poll_many(3).await.unwrap_err().kind(), ErrorKind::Closed);
    assert!(soon(new.into_stream().next()).await.is_none());
    // More than the task accepts at a time.
    for _ in 0..5000 {
        assert_eq!(ready.take().await.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(ready.len().await.unwrap(), 2);
    assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("pending"));
    let other = still_builder(&server).connect().await.unwrap();
    assert_eq!(other.blocking_queue("q", codec::String).poll_many(3).await.unwrap().len(), 2);
    soon(client.shutdown()).await;
    assert_eq!(ready.put(&"late".to_owned()).await.unwrap_err().kind(), ErrorKind::Closed);
    soon(client.stop_taking()).await;
}

#[tokio::test]
async fn unread_payloads_go_back_and_read_ones_stay() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    let queue = ready.clone();
    let mut read = pending(async move { queue.take().await });
    server.cmd(["RPUSH", "q", "read"]);
    woken(&mut read).await;
    until_async("it is handed over", || async { server.list("q").is_empty() }).await;
    let queue = ready.clone();
    let mut one = pending(async move { queue.take().await });
    server.cmd(["RPUSH", "q", "a"]);
    woken(&mut one).await;
    until_async("it is handed over", || async { server.list("q").is_empty() }).await;
    server.cmd(["RPUSH", "q", "b", "c", "d"]);
    let mut many = pending(async move { ready.poll_many(2).await });
    woken(&mut many).await;
    until_async("they are handed over", || async { server.list("q").concat() == b"d" }).await;
    let mut stop = task::spawn(client.stop_taking());
    assert_pending!(stop.poll());
    assert_eq!(assert_ready!(read.poll()).unwrap(), "read");
    soon(stop).await;
    assert_eq!(server.list("q").concat(), b"abcd");
    assert_eq!(assert_ready!(one.poll()).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(assert_ready!(many.poll()).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(server.list("q").concat(), b"abcd");
}

/// The call is bounded, and the client still returns the payload when the server answers again.
#[tokio::test]
async fn a_server_that_does_not_answer_delays_it_for_a_while_only() {
    let server = Server::start();
    let timeout = ms(500);
    let client = builder(&server).command_timeout(timeout).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    let mut take = pending(async move { ready.take().await });
    server.cmd(["RPUSH", "q", "a"]);
    woken(&mut take).await;
    until_async("it is handed over", || async { server.list("q").is_empty() }).await;
    server.freeze();
    let began = Instant::now();
    soon(client.stop_taking()).await;
    assert!(
        began.elapsed() >= timeout / 2,
        "it returned after {:?}, and the payload is not back",
        began.elapsed()
    );
    server.thaw();
    until_async("it is back", || async { server.list("q") == [b"a"] }).await;
    assert_eq!(assert_ready!(take.poll()).unwrap_err().kind(), ErrorKind::Closed);
    soon(client.shutdown()).await;
    assert_eq!(server.list("q"), [b"a"]);
}

#[tokio::test]
async fn a_dropped_call_stops_taking_all_the_same() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    let taker = tokio::spawn(async move { ready.take().await });
    until_async("it waits", || async { server.blocked_clients() == 1 }).await;
    let mut stop = task::spawn(client.stop_taking());
    assert_pending!(stop.poll());
    drop(stop);
    assert_eq!(soon(taker).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_taker_in_the_pause_after_a_refusal_ends_at_once() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    server.cmd(["SET", "q", "text"]);
    // The pauses grow.
    for _ in 0..6 {
        assert_eq!(soon(ready.take()).await.unwrap_err().kind(), ErrorKind::Refused);
    }
    let mut take = pending(async move { ready.take().await });
    soon(client.stop_taking()).await;
    woken(&mut take).await;
    assert_eq!(assert_ready!(take.poll()).unwrap_err().kind(), ErrorKind::Closed);
}

const PAYLOADS: i64 = 2000;
const WORKERS: usize = 64;
/// How many are handled before the workers are to stop.
const SOME: usize = 300;

/// A worker of a service: half of the payloads fail at the first attempt, and are offered again as `PAYLOADS`
/// more.
async fn work(
    ready: BlockingQueue<i64>,
    delayed: DelayedQueue<i64>,
    handled: Arc<AtomicUsize>,
    stopping: CancellationToken,
) -> (Vec<i64>, usize) {
    let (mut done, mut late_retries) = (Vec::new(), 0);
    loop {
        let payload = match ready.take().await {
            Ok(payload) => payload,
            Err(error) if error.is_closed() => return (done, late_retries),
            Err(error) => panic!("{error}"),
        };
        // The work. It takes different times.
        tokio::time::sleep(ms(20 + payload.unsigned_abs() * 7 % 60)).await;
        if payload % 2 == 0 {
            done.push(payload);
        } else {
            if handled.load(Ordering::Relaxed) >= SOME {
                // However busy the machine is, some are busy then.
                stopping.cancelled().await;
            }
            late_retries += usize::from(stopping.is_cancelled());
            delayed.offer(&(payload + PAYLOADS), HOUR).await.expect("a retry is stored");
        }
        handled.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_no_retry_is_lost_and_none_is_doubled() {
    let server = Server::start();
    let (client, ready, delayed) = number_queues(&server).await;
    let (handled, stopping) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| tokio::spawn(work(ready.clone(), delayed.clone(), handled.clone(), stopping.clone())))
        .collect();
    let payloads: Vec<i64> = (0..PAYLOADS).collect();
    ready.offer_all(&payloads).await.unwrap();
    until_async("some are handled", || async { handled.load(Ordering::Relaxed) >= SOME }).await;
    stopping.cancel();
    soon(client.stop_taking()).await;
    let (mut found, mut late_retries) = (Vec::new(), 0);
    for worker in workers {
        let (done, late) = soon(worker).await.unwrap();
        found.extend(done);
        late_retries += late;
    }
    assert!(late_retries > 0, "every retry was stored before the workers were to stop");
    soon(client.shutdown()).await;

    let (_client, ready, delayed) = still_number_queues(&server).await;
    let (is_ready, is_pending) = (ready.read_all().await.unwrap(), delayed.read_all().await.unwrap());
    assert!(!is_ready.is_empty(), "every payload was taken before the workers were to stop");
    found.extend(is_ready.into_iter().chain(is_pending));
    let mut times: BTreeMap<i64, usize> = payloads.into_iter().map(|payload| (payload, 0)).collect();
    found.iter().for_each(|payload| *times.get_mut(&(payload % PAYLOADS)).unwrap() += 1);
    times.retain(|_, times| *times != 1);
    assert!(times.is_empty(), "payloads that are not there exactly once, and how often they are: {times:?}");
}
