//! Handlers that fail in every way, and errors of every kind: the message is tried again, and the place of
//! the handler is free.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redelay::Worker;
use redelay::admin::DeadLetter;
use redelay::worker::{Backoff, Context, Outcome};
use redelay_fixture::{Server, until_async};
use redelay_support::{DEAD_MESSAGES, HOUR, LEASES, MESSAGES, ms, number_queues, soon};
use tokio::task::yield_now;
use tokio::time::sleep;

/// The attempts of each message.
type Attempts = Arc<Mutex<BTreeMap<i64, Vec<u32>>>>;

fn count(server: &Server, command: &str, key: &str) -> usize {
    server.get([command, key])
}

/// How the first attempt at a message ends.
const WAYS: [&str; 5] =
    ["panics", "never ends", "panics when it is dropped", "fails", "panics with a value that is no text"];
/// The `await`s of the handler. Point 0 is before its future is made, so it panics or goes on there.
const POINTS: i64 = 5;

/// Panics when the future of a handler is dropped.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new("dropped"));
        }
    }
}

/// Case 40: at each `await`. The places are so few that one that is not freed again is missed.
#[tokio::test]
async fn a_handler_that_ends_anywhere_is_tried_again_and_frees_its_place() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    let messages = POINTS * WAYS.len() as i64;
    ready.offer_all(&(0..messages).collect::<Vec<_>>()).await.unwrap();
    let attempts = Attempts::default();
    let seen = attempts.clone();
    let handler = move |number: i64, context: Context| {
        let (point, way) = (number % POINTS, WAYS[(number / POINTS) as usize]);
        let is_first = context.attempt() == 1;
        seen.lock().unwrap().entry(number).or_default().push(context.attempt());
        if is_first && point == 0 && way.starts_with("panics") {
            std::panic::resume_unwind(Box::new(way));
        }
        async move {
            for at in 1..POINTS {
                yield_now().await;
                if !is_first || at != point {
                    continue;
                }
                match way {
                    "panics" => std::panic::resume_unwind(Box::new(way)),
                    "panics with a value that is no text" => std::panic::resume_unwind(Box::new(at)),
                    "fails" => return Err("no"),
                    _ => {
                        let _fragile = (way != "never ends").then_some(Fragile);
                        sleep(HOUR).await;
                    }
                }
            }
            Ok(())
        }
    };
    let worker = Worker::new(&ready).concurrency(2).timeout(ms(500)).backoff(Backoff::fixed(ms(1)));
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), handler));
    until_async("all are done", || async {
        attempts.lock().unwrap().len() as i64 == messages && count(&server, "HLEN", MESSAGES) == 0
    })
    .await;
    client.stop_taking().await;
    let stopped = soon(running).await.unwrap().unwrap();
    assert_eq!(stopped.acknowledged, messages as u64);
    for (number, attempts) in &*attempts.lock().unwrap() {
        let (point, way) = (number % POINTS, WAYS[(number / POINTS) as usize]);
        let ends = point > 0 || way.starts_with("panics");
        // On a busy machine, a later attempt may time out.
        assert!(attempts.len() > usize::from(ends), "{way} at {point}: {attempts:?}");
        assert!(attempts.iter().copied().eq(1..=attempts.len() as u32), "{way} at {point}: {attempts:?}");
    }
}

/// Case 40: the worker is dropped while its handler is at each `await`. No handler has failed.
#[tokio::test]
async fn a_handler_that_is_dropped_anywhere_has_not_failed() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    for point in 0..POINTS {
        ready.put(&point).await.unwrap();
        let (begun, is_there) = tokio::sync::oneshot::channel();
        let begun = Mutex::new(Some(begun));
        let handler = move |point: i64| {
            let begun = begun.lock().unwrap().take().expect("handled once");
            async move {
                for _ in 0..point {
                    yield_now().await;
                }
                begun.send(()).unwrap();
                sleep(HOUR).await;
            }
        };
        let running = tokio::spawn(Worker::new(&ready).run_until(std::future::pending::<()>(), handler));
        soon(is_there).await.unwrap();
        running.abort();
        until_async("it is released", || async { count(&server, "ZCARD", LEASES) == 0 }).await;
        let again = soon(ready.receiver().receive()).await.unwrap();
        assert_eq!((*again.value(), again.attempt()), (point, 1));
        again.ack().await.unwrap();
        assert_eq!((count(&server, "ZCARD", LEASES), count(&server, "HLEN", MESSAGES)), (0, 0));
    }
}

/// An error with a text of a megabyte, of what was no UTF-8, or of none.
#[derive(Debug)]
struct Odd(i64);

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str(&"é".repeat(500_000)),
            1 => f.write_str(&String::from_utf8_lossy(&b"\xff\xfe\0\r\n".repeat(200_000))),
            2 => std::panic::resume_unwind(Box::new("no text")),
            3 => Err(fmt::Error),
            // Halfway.
            _ => {
                f.write_str("half")?;
                std::panic::resume_unwind(Box::new("no more text"))
            }
        }
    }
}

impl std::error::Error for Odd {}

const ODD: i64 = 5;

async fn letters(ready: &redelay::BlockingQueue<i64>) -> Vec<DeadLetter> {
    ready.dead_letters().read(None, usize::MAX).await.unwrap()
}

fn is_short(letters: &[DeadLetter]) {
    for letter in letters {
        assert!((1..=1_000).contains(&letter.error.len()), "{} bytes", letter.error.len());
    }
}

/// Case 36, with a worker that has one place, whose reports need the text, too.
#[tokio::test]
async fn errors_of_every_kind_are_kept_short() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    // Each becomes a dead letter after two attempts, or at once.
    ready.offer_all(&(0..2 * ODD).collect::<Vec<_>>()).await.unwrap();
    let handler = |number: i64| async move {
        match number {
            0..ODD => Outcome::Retry(Odd(number).into()),
            _ => Outcome::Reject(Odd(number - ODD).into()),
        }
    };
    let worker = Worker::new(&ready).concurrency(1).max_attempts(2).backoff(Backoff::fixed(ms(1)));
    let worker = worker.on_failure(|failure| drop(failure.to_string()));
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), handler));
    until_async("all are dead", || async { count(&server, "HLEN", DEAD_MESSAGES) as i64 == 2 * ODD }).await;
    client.stop_taking().await;
    let stopped = soon(running).await.unwrap().unwrap();
    assert_eq!((stopped.failed, stopped.rejected), (2 * ODD as u64, ODD as u64));
    let letters = letters(&ready).await;
    is_short(&letters);
    assert_eq!(letters.iter().filter(|letter| letter.failed == 2).count() as i64, ODD);
    assert_eq!(count(&server, "HLEN", MESSAGES), 0);
}

/// The text of an error seldom says why: `error sending request` has a cause.
#[tokio::test]
async fn the_causes_of_an_error_are_kept() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    let handler = |number: i64| async move {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = Box::new(Sent { cause: refused });
        if number == 1 { Outcome::Retry(error) } else { Outcome::Reject(error) }
    };
    let reports = Arc::new(Mutex::new(Vec::new()));
    let report = reports.clone();
    let worker = Worker::new(&ready)
        .max_attempts(1)
        .on_failure(move |failure| report.lock().unwrap().push(failure.to_string()));
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), handler));
    until_async("both are dead", || async { count(&server, "HLEN", DEAD_MESSAGES) == 2 }).await;
    client.stop_taking().await;
    soon(running).await.unwrap().unwrap();
    let text = "not sent: connection refused";
    assert!(letters(&ready).await.iter().all(|letter| letter.error == text));
    let reports = reports.lock().unwrap();
    assert_eq!(reports.iter().filter(|report| report.contains(text)).count(), 2, "{reports:?}");
}

#[derive(Debug)]
struct Sent {
    cause: std::io::Error,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not sent")
    }
}

impl std::error::Error for Sent {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Case 36, by hand.
#[tokio::test]
async fn errors_of_every_kind_are_kept_short_by_hand() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&(0..2 * ODD).collect::<Vec<_>>()).await.unwrap();
    let receiver = ready.receiver().max_attempts(1);
    for number in 0..2 * ODD {
        let delivery = soon(receiver.receive()).await.unwrap();
        if number < ODD {
            delivery.with_error(Odd(number)).retry().await.unwrap();
        } else {
            delivery.reject(Odd(number - ODD)).await.unwrap();
        }
    }
    is_short(&letters(&ready).await);
    // The error of a payload that is no text of a number.
    server.cmd([b"RPUSH".to_vec(), b"q".to_vec(), b"\xff".repeat(1_000_000)]);
    assert!(soon(receiver.receive()).await.is_err());
    until_async("one more", || async { count(&server, "HLEN", DEAD_MESSAGES) as i64 == 2 * ODD + 1 }).await;
    is_short(&letters(&ready).await);
}

/// Case 35: of two equal payloads, one fails always and one never. Case 32: what is no failure does not
/// count.
#[tokio::test]
async fn equal_payloads_have_their_own_counts() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[7, 7]).await.unwrap();
    let attempts: Arc<Mutex<BTreeMap<_, Vec<u32>>>> = Arc::default();
    let seen = attempts.clone();
    let handler = move |_: i64, context: Context| {
        let mut seen = seen.lock().unwrap();
        let is_first = seen.keys().next().is_none_or(|first| *first == context.id());
        seen.entry(context.id()).or_default().push(context.attempt());
        let is_even = seen[&context.id()].len() % 2 == 0;
        async move {
            match (is_first, is_even) {
                (false, _) => Outcome::Done,
                (true, false) => Outcome::Snooze(Duration::ZERO),
                (true, true) => Outcome::Retry("never".into()),
            }
        }
    };
    let worker = Worker::new(&ready).concurrency(1).max_attempts(3).backoff(Backoff::fixed(Duration::ZERO));
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), handler));
    until_async("both have ended", || async {
        count(&server, "HLEN", DEAD_MESSAGES) == 1 && count(&server, "HLEN", MESSAGES) == 0
    })
    .await;
    client.stop_taking().await;
    soon(running).await.unwrap().unwrap();
    let mut all: Vec<_> = attempts.lock().unwrap().values().cloned().collect();
    all.sort_unstable();
    assert_eq!(all, [vec![1], vec![1, 1, 2, 2, 3, 3]]);
    assert_eq!(letters(&ready).await[0].failed, 3);
}
