//! Payloads that the handle's codec cannot decode. The error carries the bytes, and no other payload is lost.

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::StreamExt;
use redelay::{BlockingQueue, Client, DelayedQueue, Error, ErrorKind, codec};
use redelay_fixture::Server;
use redelay_support::{HOUR, soon};

/// The two queues of numbers, which also contain texts.
async fn queues(server: &Server) -> (BlockingQueue<i64>, DelayedQueue<i64>) {
    let client = Client::connect(&server.url()).await.expect("a connection");
    let texts = client.blocking_queue("q", codec::String);
    let later = client.delayed_queue(&texts);
    for text in ["wrong1", "2", "wrong3"] {
        texts.put(&text.to_owned()).await.unwrap();
        later.offer(&text.to_owned(), HOUR).await.unwrap();
    }
    let ready = client.blocking_queue("q", codec::Long);
    (ready.clone(), client.delayed_queue(&ready))
}

/// The error of a payload that is not a number. It carries the payload, and no text of it shows the payload.
#[track_caller]
fn carries<T: Debug>(result: Result<T, Error>, payload: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{error}");
    assert_eq!(error.payload().unwrap(), payload.as_bytes());
    let sentence = error.to_string();
    assert!(sentence.contains("queue `q`") && sentence.contains("cannot decode as Long: "), "{sentence}");
    assert!(!format!("{error} {error:?}").contains(payload), "a payload has no place in a log: {error:?}");
}

#[tokio::test]
async fn what_only_looks_leaves_it_where_it_is() {
    let server = Server::start();
    let (ready, delayed) = queues(&server).await;
    carries(ready.peek().await, "wrong1");
    carries(ready.peek_last().await, "wrong3");
    carries(ready.read_all().await, "wrong1");
    assert_eq!(ready.len().await.unwrap(), 3);
    assert!(ready.contains(&2).await.unwrap());
    carries(delayed.peek().await, "wrong1");
    carries(delayed.read_all().await, "wrong1");
    assert_eq!(delayed.len().await.unwrap(), 3);
    assert!(delayed.contains(&2).await.unwrap());
    assert!(delayed.remove(&2).await.unwrap());
}

#[tokio::test]
async fn every_take_takes_it_and_the_next_one_works() {
    let server = Server::start();
    let (ready, _delayed) = queues(&server).await;
    carries(soon(ready.take()).await, "wrong1");
    assert_eq!(soon(ready.take()).await.unwrap(), 2);
    carries(ready.poll().await, "wrong3");
    assert_eq!(ready.poll().await.unwrap(), None);

    let (ready, _delayed) = queues(&server).await;
    carries(soon(ready.take_last()).await, "wrong3");
    carries(soon(ready.poll_timeout(HOUR)).await, "wrong1");
    assert_eq!(soon(ready.poll_from_any(HOUR, &["x"])).await.unwrap(), Some(("q".to_owned(), 2)));

    let (ready, _delayed) = queues(&server).await;
    carries(soon(ready.poll_last_and_offer_first_to("{q}moved")).await, "wrong3");
    assert_eq!(soon(ready.poll_last_and_offer_first_to_timeout("{q}moved", HOUR)).await.unwrap(), Some(2));
    carries(soon(ready.take_last_and_offer_first_to("{q}moved")).await, "wrong1");
    assert_eq!(server.list("{q}moved"), [&b"wrong1"[..], b"2", b"wrong3"]);
}

#[tokio::test]
async fn of_several_each_is_decoded_by_itself() {
    let server = Server::start();
    let (ready, delayed) = queues(&server).await;
    let [first, second, third] = ready.poll_many(9).await.unwrap().try_into().unwrap();
    carries(first, "wrong1");
    assert_eq!(second.unwrap(), 2);
    carries(third, "wrong3");

    let [first, second, third] = delayed.poll_many(9).await.unwrap().try_into().unwrap();
    carries(first, "wrong1");
    assert_eq!(second.unwrap(), 2);
    carries(third, "wrong3");

    let (ready, _delayed) = queues(&server).await;
    let (_, several) = soon(ready.poll_many_from_any(HOUR, 2, &["x"])).await.unwrap().unwrap();
    let [first, second] = several.try_into().unwrap();
    carries(first, "wrong1");
    assert_eq!(second.unwrap(), 2);
}

#[tokio::test]
async fn a_stream_goes_on() {
    let server = Server::start();
    let (ready, _delayed) = queues(&server).await;
    let mut stream = ready.into_stream();
    carries(soon(stream.next()).await.unwrap(), "wrong1");
    assert_eq!(soon(stream.next()).await.unwrap().unwrap(), 2);
    carries(soon(stream.next()).await.unwrap(), "wrong3");
}

#[tokio::test]
async fn the_delayed_queue_goes_on() {
    let server = Server::start();
    let (ready, delayed) = queues(&server).await;
    ready.clear().await.unwrap();
    carries(delayed.poll().await, "wrong1");
    carries(delayed.poll_last_and_offer_first_to("{q}moved").await, "wrong3");
    assert_eq!(server.list("{q}moved"), [b"wrong3"]);
    assert_eq!(delayed.read_all().await.unwrap(), [2]);
    delayed.offer(&3, Duration::ZERO).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 3);
}
