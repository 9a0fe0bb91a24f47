//! Receivers that wait while another client settles, requeues or retries: they learn at once what is due.

use std::time::Duration;

use redelay::blocking_queue::RateLimit;
use redelay::{BlockingQueue, Client, Delivery, codec};
use redelay_fixture::{Server, redis, until_async};
use redelay_support::{
    CHANNEL, HOUR, Queues, TARGET, ms, number_queues, patient_builder, slowly, still_number_queues,
};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Half of the time after which a receiver looks by itself.
const BEFORE_IT_LOOKS: Duration = Duration::from_secs(3);

/// A client that waits for a message.
struct Rig {
    server: Server,
    client: Client,
    other: Client,
    /// The handle of the other client.
    ready: BlockingQueue<i64>,
    waiting: JoinHandle<redelay::Result<Delivery<i64>>>,
}

impl Rig {
    /// One message is in flight in the other client, and a receive of this client waits.
    async fn start() -> (Self, Delivery<i64>) {
        Self::start_with(true).await
    }

    async fn start_with(transfer: bool) -> (Self, Delivery<i64>) {
        let server = Server::start();
        let Queues { client, ready: waiting, .. } =
            Queues::of_numbers(patient_builder(&server).transfer(transfer)).await;
        let (other, ready, _) = number_queues(&server).await;
        ready.put(&7).await.unwrap();
        let in_flight = ready.receiver().lease(HOUR).receive().await.unwrap();
        let receiver = waiting.receiver().lease(HOUR);
        let waiting = tokio::spawn(async move { receiver.receive().await });
        until_async("it waits", || async {
            server.get::<String, _>(["CLIENT", "LIST"]).contains("cmd=blmove")
                && server.subscribers("redelay:receivers:{q}") > 0
        })
        .await;
        // What follows the confirmation of the subscription is over, too.
        sleep(ms(200)).await;
        (Self { server, client, other, ready, waiting }, in_flight)
    }

    async fn received(self) {
        let received = slowly(timeout(BEFORE_IT_LOOKS, self.waiting)).await;
        let received = received.expect("it is told").unwrap().unwrap();
        assert_eq!(*received.value(), 7);
        received.ack().await.unwrap();
        assert_eq!(self.server.get::<usize, _>(["EXISTS", TARGET]), 0);
        self.client.shutdown().await;
        self.other.shutdown().await;
    }
}

/// A client that transfers nothing hears of retries like any other.
#[tokio::test]
async fn what_is_snoozed_reaches_those_that_do_not_transfer() {
    for transfer in [true, false] {
        let (rig, in_flight) = Rig::start_with(transfer).await;
        in_flight.snooze(ms(200)).await.unwrap();
        rig.received().await;
    }
}

/// Receivers that a limit or a pause holds back look again after up to 5 s; the end of it is announced.
#[tokio::test]
async fn the_end_of_a_limit_reaches_those_that_do_not_transfer() {
    for transfer in [true, false] {
        let server = Server::start();
        let Queues { client, ready, .. } =
            Queues::of_numbers(patient_builder(&server).transfer(transfer)).await;
        let (_other, remote, _) = number_queues(&server).await;
        ready.set_rate_limit(Some(RateLimit::new(1, HOUR))).await.unwrap();
        ready.offer_all(&[1, 2]).await.unwrap();
        let receiver = ready.receiver().lease(HOUR);
        receiver.receive().await.unwrap().ack().await.unwrap();
        let waiting = tokio::spawn(async move { receiver.receive().await });
        until_async("it is told", || async { server.subscribers("redelay:receivers:{q}") > 0 }).await;
        // What follows the confirmation of the subscription is over, too.
        sleep(ms(200)).await;
        remote.pause().await.unwrap();
        remote.set_rate_limit(None).await.unwrap();
        remote.resume().await.unwrap();
        let received = slowly(timeout(BEFORE_IT_LOOKS, waiting)).await;
        let received = received.expect("it is told").unwrap().unwrap();
        assert_eq!(*received.value(), 2);
        received.ack().await.unwrap();
        client.shutdown().await;
    }
}

/// One connection hears all announcements of a client, and only if something listens.
#[tokio::test]
async fn announcements_take_one_connection_and_only_where_somebody_listens() {
    let server = Server::start();
    let subscribers = || {
        let clients = server.get::<String, _>(["CLIENT", "LIST"]);
        let subscribed = |line: &&str| !line.contains(" sub=0 ");
        clients.lines().filter(subscribed).count()
    };
    let (producer, ready, delayed) = still_number_queues(&server).await;
    ready.put(&1).await.unwrap();
    delayed.offer(&2, HOUR).await.unwrap();
    assert_eq!(ready.take().await.unwrap(), 1);
    let receiver = ready.receiver();
    assert!(receiver.try_receive().await.unwrap().is_none());
    until_async("it listens", || async { server.subscribers("redelay:receivers:{q}") == 1 }).await;
    let other = producer.blocking_queue("other", codec::Long).receiver();
    assert!(other.try_receive().await.unwrap().is_none());
    until_async("it listens for both", || async { server.subscribers("redelay:receivers:{other}") == 1 })
        .await;
    assert_eq!(subscribers(), 1);
    assert_eq!(server.subscribers(CHANNEL), 0, "it transfers nothing");
    drop((receiver, other));
    until_async("nobody listens", || async { server.subscribers("redelay:receivers:{q}") == 0 }).await;
    let (_transferring, ready, _delayed) = number_queues(&server).await;
    let receiver = ready.receiver();
    assert!(receiver.try_receive().await.unwrap().is_none());
    until_async("it listens", || async {
        server.subscribers("redelay:receivers:{q}") == 1 && server.subscribers(CHANNEL) == 1
    })
    .await;
    assert_eq!(subscribers(), 1);
    producer.shutdown().await;
}

#[tokio::test]
async fn a_release_reaches_them() {
    let (rig, in_flight) = Rig::start().await;
    in_flight.release().await.unwrap();
    rig.received().await;
}

#[tokio::test]
async fn a_retry_reaches_them_when_it_is_due() {
    let (rig, in_flight) = Rig::start().await;
    in_flight.retry_after(ms(500)).await.unwrap();
    rig.received().await;
}

#[tokio::test]
async fn only_the_first_retry_is_announced() {
    let (rig, in_flight) = Rig::start().await;
    in_flight.retry_after(HOUR).await.unwrap();
    let counted = || rig.server.get::<String, _>(["INFO", "commandstats"]);
    let published = |stats: String| {
        let line =
            stats.lines().find_map(|line| line.strip_prefix("cmdstat_publish:calls=").map(str::to_owned));
        line.map_or(0, |line| line.split(',').next().unwrap().parse::<u64>().unwrap())
    };
    let before = published(counted());
    let receiver = rig.ready.receiver().lease(HOUR);
    let payloads: Vec<i64> = (0..20).collect();
    rig.ready.offer_all(&payloads).await.unwrap();
    let mut failed = 0;
    while let Some(delivery) = receiver.try_receive().await.unwrap() {
        delivery.retry_after(2 * HOUR).await.unwrap();
        failed += 1;
    }
    assert!(failed >= 19, "{failed}");
    assert_eq!(published(counted()), before);
}

#[tokio::test]
async fn a_requeued_dead_letter_reaches_them() {
    let (rig, in_flight) = Rig::start().await;
    in_flight.reject("closed").await.unwrap();
    assert_eq!(rig.ready.dead_letters().requeue_all(1).await.unwrap(), 1);
    rig.received().await;
}

#[tokio::test]
async fn a_retry_by_hand_reaches_them() {
    let (rig, in_flight) = Rig::start().await;
    let id = in_flight.id();
    in_flight.retry_after(HOUR).await.unwrap();
    assert!(rig.ready.unsettled().requeue(id).await.unwrap());
    rig.received().await;
}

const QUEUES: usize = 100;

/// A field of `INFO`.
fn info(server: &Server, section: &str, field: &str) -> usize {
    let info = server.get::<String, _>(["INFO", section]);
    let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).expect("the field");
    line.trim().parse().expect("a number")
}

/// A client whose receivers wait on more queues than may block.
struct Many {
    server: Server,
    client: Client,
    other: BlockingQueue<i64>,
    waiting: JoinSet<redelay::Result<Delivery<i64>>>,
}

impl Many {
    async fn start(client: impl AsyncFn(&Server) -> Client) -> Self {
        let server = Server::start();
        let (_, other, _) = number_queues(&server).await;
        let client = client(&server).await;
        let mut waiting = JoinSet::new();
        for number in 0..QUEUES {
            let receiver = client.blocking_queue(&format!("q{number}"), codec::Long).receiver().lease(HOUR);
            waiting.spawn(async move { receiver.receive().await });
        }
        until_async("64 of them block", || async { server.blocked_clients() == 64 }).await;
        Self { server, client, other, waiting }
    }

    /// Those that do not block.
    async fn until_tracked(&self) {
        until_async("the others are tracked", || async {
            info(&self.server, "stats", "tracking_total_keys") == QUEUES - 64
        })
        .await;
        // The last of them has read that its list is empty.
        sleep(ms(200)).await;
    }

    async fn all_receive(mut self, within: Duration) {
        for number in 0..QUEUES {
            self.server.cmd(["RPUSH", &format!("q{number}"), &number.to_string()]);
        }
        let mut received: Vec<i64> = slowly(timeout(within, async {
            let mut received = Vec::new();
            while let Some(delivery) = self.waiting.join_next().await {
                let delivery = delivery.unwrap().unwrap();
                received.push(*delivery.value());
                delivery.ack().await.unwrap();
            }
            received
        }))
        .await
        .expect("all are told");
        received.sort_unstable();
        assert_eq!(received, (0..QUEUES as i64).collect::<Vec<_>>());
        self.client.shutdown().await;
        assert!(self.other.is_empty().await.unwrap());
    }
}

async fn client(server: &Server) -> Client {
    patient_builder(&server).connect().await.unwrap()
}

#[tokio::test]
async fn receivers_of_many_queues_share_a_connection() {
    let many = Many::start(client).await;
    many.until_tracked().await;
    // Beside those that block: commands, announcements, tracking; three of the other client, and that of the
    // test.
    let connections = info(&many.server, "clients", "connected_clients");
    assert!(connections <= 64 + 7, "{connections}");
    many.all_receive(BEFORE_IT_LOOKS).await;
}

/// A taker that blocks is served before a receiver that is told of the change, though it came later.
#[tokio::test]
async fn without_a_place_others_that_block_are_served_first() {
    let many = Many::start(client).await;
    many.until_tracked().await;
    let mut taken = 0;
    // The last ones came when all places were taken.
    for number in (QUEUES - 10..QUEUES).rev() {
        let (mut connection, name) = (many.server.redis(), format!("q{number}"));
        let blocked = many.server.blocked_clients();
        let taker = tokio::task::spawn_blocking({
            let name = name.clone();
            move || {
                redis::cmd("BLPOP").arg(name).arg(60).query::<Option<(String, i64)>>(&mut connection).unwrap()
            }
        });
        until_async("it blocks", || async { many.server.blocked_clients() > blocked }).await;
        many.server.cmd(["RPUSH", &name, &number.to_string()]);
        taken += usize::from(taker.await.unwrap().is_some());
    }
    assert_eq!(taken, 10);
}

#[tokio::test]
async fn a_lost_tracking_connection_is_replaced() {
    let many = Many::start(client).await;
    many.until_tracked().await;
    let clients = many.server.get::<String, _>(["CLIENT", "LIST"]);
    let field = |line: &str, name: &str| {
        line.split(' ').find_map(|field| field.strip_prefix(name)).unwrap_or_default().to_owned()
    };
    let tracker =
        clients.lines().find(|line| field(line, "flags=").contains('t')).expect("a tracking client");
    many.server.cmd(["CLIENT", "KILL", "ID", &field(tracker, "id=")]);
    many.all_receive(BEFORE_IT_LOOKS).await;
}

/// The server forgets what it tracks, and tells of it in a way that is not understood: receivers look every 6
/// s.
#[tokio::test]
async fn a_flush_of_the_server_keeps_nobody_waiting() {
    let many = Many::start(client).await;
    many.until_tracked().await;
    many.server.cmd(["FLUSHALL"]);
    many.all_receive(Duration::from_secs(30)).await;
}

#[tokio::test]
async fn without_the_permission_to_track_receivers_ask() {
    let many = Many::start(async |server| {
        let but_tracking = ["setname", "kill", "info", "id", "unblock"].map(|word| format!("+client|{word}"));
        let user = ["ACL", "SETUSER", "u", "on", ">p", "allkeys", "allchannels", "+@all", "-client"];
        server.cmd(user.into_iter().chain(but_tracking.iter().map(String::as_str)));
        Client::connect(&format!("redis://u:p@127.0.0.1:{}", server.port())).await.unwrap()
    })
    .await;
    many.all_receive(Duration::from_secs(30)).await;
}
