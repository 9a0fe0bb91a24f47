//! Arbitrary messages on a wake-up channel. Entries are still delivered when they are due, and the messages
//! do not keep the server busy with scripts.

use std::time::Duration;

use redelay::{BlockingQueue, Client, DelayedQueue};
use redelay_fixture::{Server, redis, until_async};
use redelay_support::{CHANNEL, HOUR, keys, ms, number_queues, soon};

/// A client that has subscribed, and has finished its first transfer call.
async fn queues(server: &Server) -> (Client, BlockingQueue<i64>, DelayedQueue<i64>) {
    let (client, ready, delayed) = number_queues(server).await;
    until_async("subscribed", || async { server.subscribers(CHANNEL) == 1 }).await;
    delayed.offer(&-1, Duration::ZERO).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), -1);
    (client, ready, delayed)
}

fn script_calls(server: &Server) -> u64 {
    server.command_calls("evalsha")
}

/// The server's clock in epoch ms, plus this time.
fn time_in(server: &Server, millis: i64) -> i64 {
    let (seconds, micros): (i64, i64) = server.get(["TIME"]);
    seconds * 1000 + micros / 1000 + millis
}

fn publish(server: &Server, message: impl AsRef<[u8]>) {
    let receivers: i64 = server.get([b"PUBLISH", CHANNEL.as_bytes(), message.as_ref()]);
    assert_eq!(receivers, 1);
}

/// Checks that new payloads are delivered one by one, and that the client is idle for a while after that.
async fn delivers(ready: &BlockingQueue<i64>, delayed: &DelayedQueue<i64>) {
    for delay in [0, 1, 2, 3, 0, 1, 2, 3, 5, 20] {
        delayed.offer(&delay, ms(delay as u64)).await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), delay);
    }
    assert_eq!(ready.poll_timeout(ms(50)).await.unwrap(), None);
}

/// The number of script calls that the ten deliveries may cost: the offers, and the wake-ups for entries due
/// soon.
const CALLS: u64 = 10 * 4;

#[tokio::test]
async fn junk_costs_one_look_at_most() {
    let server = Server::start();
    let (_client, ready, delayed) = queues(&server).await;
    let huge = "9".repeat(1_000_000);
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let junk: [&[u8]; 21] = [
        b"",
        b" ",
        b"abc",
        b"nil",
        b"NaN",
        b"inf",
        b"-inf",
        b"-1",
        b"-9223372036854775808",
        b"9223372036854775807",
        b"99999999999999999999",
        b"1.7E12",
        b"1e400",
        b"1795249991101.5",
        b" 1795249991101 ",
        b"+5",
        b"0x10",
        b"\xff\xfe",
        b"\0",
        huge.as_bytes(),
        &binary,
    ];
    for message in junk {
        let before = script_calls(&server);
        publish(&server, message);
        delivers(&ready, &delayed).await;
        let calls = script_calls(&server) - before;
        assert!(calls <= 1 + CALLS, "{calls} script calls after {:?}", &message[..message.len().min(30)]);
    }
}

#[tokio::test]
async fn a_flood_of_messages_neither_blocks_nor_keeps_the_server_busy() {
    let server = Server::start();
    let (_client, ready, delayed) = queues(&server).await;
    delayed.offer(&99, HOUR).await.unwrap();
    for message in [&b"junk"[..], b"0", b"", b"9999999999999"] {
        let before = script_calls(&server);
        let mut flood = redis::pipe();
        for _ in 0..10_000 {
            flood.cmd("PUBLISH").arg(CHANNEL).arg(message).ignore();
        }
        flood.exec(&mut server.redis()).unwrap();
        delivers(&ready, &delayed).await;
        let calls = script_calls(&server) - before;
        println!("{calls} script calls for 10,000 messages {:?}", message.escape_ascii().to_string());
        assert!(calls < 1_000, "{calls} script calls for 10,000 messages");
    }
    assert_eq!(delayed.read_all().await.unwrap(), [99]);
}

#[tokio::test]
async fn a_message_with_a_later_time_postpones_nothing() {
    let server = Server::start();
    let (_client, ready, delayed) = queues(&server).await;
    for n in 0..20 {
        delayed.offer(&n, ms(30)).await.unwrap();
        for later in [60_000, 3_600_000, 86_400_000] {
            publish(&server, time_in(&server, later).to_string());
        }
        assert_eq!(soon(ready.take()).await.unwrap(), n);
    }
    assert_eq!(delayed.len().await.unwrap(), 0);
}

#[tokio::test]
async fn a_message_with_an_earlier_time_is_one_look_more() {
    let server = Server::start();
    let (_client, ready, delayed) = queues(&server).await;
    for n in 0..10 {
        let before = script_calls(&server);
        delayed.offer(&n, ms(40)).await.unwrap();
        for earlier in [-3_600_000, 0, 10, 20] {
            publish(&server, time_in(&server, earlier).to_string());
        }
        assert_eq!(soon(ready.take()).await.unwrap(), n);
        let calls = script_calls(&server) - before;
        assert!(calls <= 8, "{calls} script calls");
    }
}

#[tokio::test]
async fn an_entry_that_another_producer_announces_is_delivered() {
    let server = Server::start();
    let (_client, ready, delayed) = queues(&server).await;
    for n in 0..20 {
        let due = time_in(&server, n % 30).to_string();
        let payload = n.to_string();
        let entry = [b"\x01x", &(payload.len() as u64).to_le_bytes()[..], payload.as_bytes()].concat();
        server.cmd([b"ZADD", b"redisson_delay_queue_timeout:{q}".as_slice(), due.as_bytes(), &entry]);
        server.cmd([b"RPUSH", b"redisson_delay_queue:{q}".as_slice(), &entry]);
        publish(&server, due);
        assert_eq!(soon(ready.take()).await.unwrap(), n);
    }
    assert_eq!(delayed.len().await.unwrap(), 0);
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}
