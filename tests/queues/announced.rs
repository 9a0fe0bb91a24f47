//! Messages on Redisson's wake-up channel. Redisson sets its one timer to any time it receives there, even a
//! later one, and throws at anything but an integer. So redelay announces only new heads, in plain digits.

use std::time::SystemTime;

use redelay::delayed_queue::Ticket;
use redelay::{DelayedQueue, codec};
use redelay_fixture::{Server, redis, until_async};
use redelay_support::{CHANNEL, HOUR, ORDERED_LIST, TIMEOUT_SET, patient_builder, still_text_queues};
use tokio_test::{assert_pending, task};

async fn offer(delayed: &DelayedQueue<String>, hours: u32) -> Ticket {
    delayed.offer(&format!("in {hours} h"), HOUR * hours).await.unwrap()
}

/// A subscriber of Redisson's channel.
struct Listener<'a> {
    server: &'a Server,
    channel: redis::PubSub<'a>,
}

impl<'a> Listener<'a> {
    fn start(server: &'a Server, connection: &'a mut redis::Connection) -> Self {
        let mut channel = connection.as_pubsub();
        channel.subscribe(CHANNEL).expect("a subscription");
        Self { server, channel }
    }

    /// All messages since the last call. Messages arrive in the order in which they were published, so a
    /// message of the test itself marks the end.
    fn heard(&mut self) -> Vec<String> {
        const END: &str = "the end";
        self.server.cmd(["PUBLISH", CHANNEL, END]);
        let next = || {
            let message = self.channel.get_message().expect("a message");
            message.get_payload_bytes().escape_ascii().to_string()
        };
        std::iter::repeat_with(next).take_while(|message| message != END).collect()
    }

    /// Checks that the head was announced once, in the form that Redisson writes and reads.
    #[track_caller]
    fn heard_head(&mut self, when: &str) {
        let (_, head) = self.server.zset(TIMEOUT_SET).swap_remove(0);
        assert_eq!(self.heard(), [format!("{head:.0}")], "{when}");
    }

    #[track_caller]
    fn heard_nothing(&mut self, when: &str) {
        assert_eq!(self.heard(), Vec::<String>::new(), "{when}");
    }
}

#[tokio::test]
async fn an_offer_announces_a_new_head_only() {
    let server = Server::start();
    let mut connection = server.redis();
    let mut channel = Listener::start(&server, &mut connection);
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    offer(&delayed, 5).await;
    channel.heard_head("the first one");
    offer(&delayed, 6).await;
    channel.heard_nothing("behind the head");
    offer(&delayed, 4).await;
    channel.heard_head("before the head");
    let at = SystemTime::now() + HOUR * 3;
    delayed.offer_at(&"at".to_owned(), at).await.unwrap();
    channel.heard_head("at a time");
    delayed.offer_at(&"at".to_owned(), at).await.unwrap();
    channel.heard_nothing("at the time of the head, behind it");

    let (late, middle, early) = ("late".to_owned(), "middle".to_owned(), "early".to_owned());
    delayed.offer_all([(&late, HOUR * 9), (&middle, HOUR * 8)]).await.unwrap();
    channel.heard_nothing("several behind the head");
    delayed.offer_all([(&late, HOUR * 9), (&early, HOUR), (&middle, HOUR * 2)]).await.unwrap();
    channel.heard_head("the earliest of several");
    delayed.offer_all([]).await.unwrap();
    channel.heard_nothing("none at all");
    // Overdue already.
    delayed.offer_at(&early, SystemTime::UNIX_EPOCH + HOUR).await.unwrap();
    assert_eq!(channel.heard(), ["3600000"]);
    delayed.offer_at(&early, SystemTime::UNIX_EPOCH).await.unwrap();
    assert_eq!(channel.heard(), ["0"]);
}

#[tokio::test]
async fn rescheduling_announces_only_what_is_the_head_then() {
    let server = Server::start();
    let mut connection = server.redis();
    let mut channel = Listener::start(&server, &mut connection);
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    let one = offer(&delayed, 2).await;
    let other = offer(&delayed, 5).await;
    channel.heard_head("the first of the two");
    let to = async |ticket: &Ticket, hours: u32| {
        assert!(delayed.reschedule(ticket, HOUR * hours).await.unwrap());
    };
    to(&other, 6).await;
    channel.heard_nothing("later, behind the head");
    to(&other, 4).await;
    channel.heard_nothing("earlier, behind the head");
    to(&one, 1).await;
    channel.heard_head("the head, earlier");
    to(&one, 3).await;
    channel.heard_head("the head, later, and still the head");
    to(&other, 2).await;
    channel.heard_head("to before the head");
    // The new head is later than the time that Redisson waits for. Redisson will look at that time, and see
    // it.
    to(&other, 9).await;
    channel.heard_nothing("the head, to behind another one");
    assert!(delayed.reschedule_at(&one, SystemTime::UNIX_EPOCH + HOUR).await.unwrap());
    assert_eq!(channel.heard(), ["3600000"]);
    assert!(delayed.cancel(&one).await.unwrap());
    assert!(!delayed.reschedule(&one, HOUR).await.unwrap());
    channel.heard_nothing("what is not pending any more");
}

#[tokio::test]
async fn taking_out_announces_nothing() {
    let server = Server::start();
    let mut connection = server.redis();
    let mut channel = Listener::start(&server, &mut connection);
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    let mut tickets = Vec::new();
    for hours in 1..=8 {
        tickets.push(offer(&delayed, hours).await);
    }
    channel.heard_head("the first one");
    assert!(delayed.cancel(&tickets[1]).await.unwrap());
    channel.heard_nothing("cancelled behind the head");
    assert!(delayed.cancel(&tickets[0]).await.unwrap());
    channel.heard_nothing("cancelled the head");
    assert!(!delayed.cancel(&tickets[0]).await.unwrap());
    channel.heard_nothing("cancelled what is not pending any more");
    assert!(delayed.remove(&"in 3 h".to_owned()).await.unwrap());
    channel.heard_nothing("removed the head");
    assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("in 4 h"));
    channel.heard_nothing("polled the head");
    assert_eq!(delayed.poll_last_and_offer_first_to("{q}other").await.unwrap().as_deref(), Some("in 8 h"));
    channel.heard_nothing("moved the last one");
    assert!(delayed.retain_all(&["in 6 h".to_owned(), "in 7 h".to_owned()]).await.unwrap());
    channel.heard_nothing("removed the head, by what stays");
    assert!(delayed.clear().await.unwrap());
    channel.heard_nothing("cleared");
}

#[tokio::test]
async fn a_transfer_announces_nothing_to_redisson() {
    let server = Server::start();
    let mut connection = server.redis();
    let mut channel = Listener::start(&server, &mut connection);
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    offer(&delayed, 1).await;
    delayed.offer_at(&"due".to_owned(), SystemTime::UNIX_EPOCH + HOUR).await.unwrap();
    assert_eq!(channel.heard().len(), 2);
    let moving = patient_builder(&server).connect().await.expect("a connection");
    let ready = moving.blocking_queue("q", codec::String);
    let _watch = moving.delayed_queue(&ready);
    assert_eq!(ready.take().await.unwrap(), "due");
    channel.heard_nothing("another head after a transfer");
}

/// Polls `n` entries, and drops the future that has them. Returns when they are back.
async fn poll_in_vain(server: &Server, delayed: &DelayedQueue<String>, n: usize) {
    let before = (server.list(ORDERED_LIST), server.zset(TIMEOUT_SET));
    let mut poll = task::spawn(delayed.poll_many(n));
    assert_pending!(poll.poll());
    until_async("polled", || std::future::ready(poll.is_woken())).await;
    assert_eq!(server.list(ORDERED_LIST).len(), before.0.len().saturating_sub(n));
    drop(poll);
    until_async("put back", || async { (server.list(ORDERED_LIST), server.zset(TIMEOUT_SET)) == before })
        .await;
}

#[tokio::test]
async fn putting_back_announces_the_head_if_it_was_away() {
    let server = Server::start();
    let mut connection = server.redis();
    let mut channel = Listener::start(&server, &mut connection);
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    // Polls follow the order of the offers.
    for hours in [5, 3, 1, 4] {
        offer(&delayed, hours).await;
    }
    assert_eq!(channel.heard().len(), 3);
    poll_in_vain(&server, &delayed, 1).await;
    channel.heard_nothing("one that is not the head");
    poll_in_vain(&server, &delayed, 2).await;
    channel.heard_nothing("two that are not the head");
    poll_in_vain(&server, &delayed, 3).await;
    channel.heard_head("the head among others");
    poll_in_vain(&server, &delayed, 9).await;
    channel.heard_head("all there are");
}

/// Scores that other producers may write. Each of them would make Redisson's listener throw or spin.
#[tokio::test]
async fn putting_back_announces_no_head_that_is_not_a_plain_integer() {
    let server = Server::start();
    let mut connection = server.redis();
    let mut channel = Listener::start(&server, &mut connection);
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    offer(&delayed, 1_000).await;
    channel.heard_head("the first one");
    let (entry, _) = server.zset(TIMEOUT_SET).swap_remove(0);
    for score in ["1795249991101.5", "0.25", "-5", "-inf", "inf", "1e300", "-1e19"] {
        server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), score.as_bytes(), &entry]);
        poll_in_vain(&server, &delayed, 1).await;
        channel.heard_nothing(score);
    }
    server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), b"1795249991101", &entry]);
    poll_in_vain(&server, &delayed, 1).await;
    channel.heard_head("an integer again");
}
