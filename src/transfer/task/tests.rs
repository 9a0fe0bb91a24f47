use redelay_fixture::{Server, until_async};

use super::*;
use crate::{Client, codec};

/// A message that makes the task panic.
pub(super) const PANIC: &str = "panic";

#[tokio::test]
async fn a_panic_does_not_end_the_transfers() {
    let server = Server::start();
    let client = Client::connect(&server.url()).await.unwrap();
    let queues: Vec<_> = ["p", "q"]
        .map(|name| client.blocking_queue(name, codec::Long))
        .map(|ready| (client.delayed_queue(&ready), ready))
        .into();
    for round in 0..3 {
        until_async("it is subscribed", || async {
            ["p", "q"]
                .iter()
                .all(|name| server.subscribers(format!("redisson_delay_queue_channel:{{{name}}}")) == 1)
        })
        .await;
        for (number, (delayed, ready)) in queues.iter().enumerate() {
            delayed.offer(&round, Duration::from_millis(20)).await.unwrap();
            let taken = timeout(Duration::from_secs(20), ready.take()).await;
            assert_eq!(taken.unwrap_or_else(|_| panic!("queue {number} in round {round}")).unwrap(), round);
        }
        assert_eq!(client.stats().transferring_queues, 2);
        server.cmd(["PUBLISH", "redisson_delay_queue_channel:{p}", PANIC]);
    }
    until_async("it is reported", || async {
        client.stats().last_error.is_some_and(|error| error.message.contains("panic"))
    })
    .await;
    timeout(Duration::from_secs(20), client.shutdown()).await.unwrap();
}

/// A message after which the next run never ends.
const HANG: &str = "hang";
/// A message after which the subscriber does nothing any more.
const DEAFEN: &str = "deafen";

impl Task {
    /// The run, or one that never ends.
    pub(super) fn hang_up(
        &mut self,
        run: impl Future<Output = TransferReport> + Send + 'static,
    ) -> BoxFuture<'static, TransferReport> {
        match self.fault.take_if(|fault| *fault == HANG) {
            Some(_) => Box::pin(std::future::pending()),
            None => Box::pin(run),
        }
    }

    pub(super) fn deafen(&mut self) {
        if self.fault.take_if(|fault| *fault == DEAFEN).is_some() {
            self.announcements.deafen();
        }
    }
}

const TIMEOUT_SET: &str = "redisson_delay_queue_timeout:{q}";
const CHANNEL: &str = "redisson_delay_queue_channel:{q}";

/// An entry with the payload 7, long due.
fn offer_silently(server: &Server) {
    let entry = [b"\x0812345678".as_slice(), &1_u64.to_le_bytes(), b"7"].concat();
    server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), b"1", &entry]);
    server.cmd([b"RPUSH", b"redisson_delay_queue:{q}".as_slice(), &entry]);
}

/// The client hears what another one announces.
async fn is_heard(server: &Server, ready: &crate::BlockingQueue<i64>) {
    let other = Client::connect(&server.url()).await.unwrap();
    other
        .delayed_queue(&other.blocking_queue("q", codec::Long))
        .offer(&8, Duration::from_millis(1))
        .await
        .unwrap();
    assert_eq!(timeout(Duration::from_secs(20), ready.take()).await.expect("in time").unwrap(), 8);
    other.shutdown().await;
}

/// A client for which only a look finds something, and its queue.
async fn transferring(
    server: &Server,
    command_timeout: Duration,
) -> (Client, crate::BlockingQueue<i64>, crate::DelayedQueue<i64>) {
    let client = Client::builder().url(server.url()).sweep_interval(Duration::from_secs(3600));
    let client = client.command_timeout(command_timeout).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    until_async("it is subscribed and swept", || async {
        server.subscribers(CHANNEL) == 1 && client.stats().transfers > 0
    })
    .await;
    (client, ready, delayed)
}

#[tokio::test]
async fn a_client_that_hears_nothing_opens_another_connection() {
    let server = Server::start();
    let (client, ready, _delayed) = transferring(&server, Duration::from_secs(5)).await;
    server.cmd(["PUBLISH", CHANNEL, DEAFEN]);
    until_async("it is deaf", || async { server.subscribers(CHANNEL) == 0 }).await;
    offer_silently(&server);
    until_async("it listens again", || async { server.subscribers(CHANNEL) == 1 }).await;
    assert_eq!(client.stats().stalled_transfers, 1);
    assert_eq!(timeout(Duration::from_secs(20), ready.take()).await.expect("in time").unwrap(), 7);
    is_heard(&server, &ready).await;
    client.shutdown().await;
}

#[tokio::test]
async fn a_run_that_never_ends_is_given_up() {
    let server = Server::start();
    let (client, ready, _delayed) = transferring(&server, Duration::from_millis(500)).await;
    server.cmd(["PUBLISH", CHANNEL, HANG]);
    offer_silently(&server);
    assert_eq!(timeout(Duration::from_secs(40), ready.take()).await.expect("in time").unwrap(), 7);
    let stats = client.stats();
    assert_eq!((stats.stalled_transfers, stats.failed_transfers, stats.reconnects), (1, 1, 1));
    client.shutdown().await;
}
