//! Concurrent offers share a call and nothing else. Each has its own ticket, its own refusal and its own
//! second try, independent of the others. The first of them is alone, and has its own call.

use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::join_all;
use redelay::{BlockingQueue, Client, DelayedQueue, ErrorKind, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{MINUTE, ORDERED_LIST, TIMEOUT_SET, still_builder};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_test::{assert_pending, task};

/// A delay that only the server refuses, because it depends on the server's clock.
const TOO_LATE: Duration = Duration::from_millis(999_999_999_999_999);

async fn connect(url: String) -> (Client, BlockingQueue<String>, DelayedQueue<String>) {
    let client = still_builder(&url).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    let delayed = client.delayed_queue(&ready);
    // From here on, the script is loaded.
    delayed.offer(&text(0), MINUTE).await.unwrap();
    delayed.clear().await.unwrap();
    (client, ready, delayed)
}

fn text(n: usize) -> String {
    n.to_string()
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(text).collect()
}

fn current_thread() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The number of scripts that the server runs for it.
async fn scripts(server: &Server, work: impl Future) -> u64 {
    let before = server.command_calls("evalsha");
    work.await;
    server.command_calls("evalsha") - before
}

#[tokio::test]
async fn they_go_in_one_call_in_their_order() {
    let server = Server::start();
    let (_client, _ready, delayed) = connect(server.url()).await;
    let values = texts(100);
    let calls = scripts(&server, async {
        let tickets = join_all(values.iter().map(|value| delayed.offer(value, MINUTE))).await;
        let tickets: Vec<_> = tickets.into_iter().map(Result::unwrap).collect();
        assert!(tickets[1..].iter().all(|ticket| ticket.due() == tickets[1].due()));
        assert!(delayed.cancel(&tickets[7]).await.unwrap(), "each has a ticket of its own");
    });
    assert_eq!(calls.await, 3, "the first one, 99 others, and one that is cancelled");
    let kept: Vec<_> = values.iter().filter(|value| *value != "7").cloned().collect();
    assert_eq!(delayed.read_all().await.unwrap(), kept);
    let calls = scripts(&server, join_all(values.iter().map(|value| delayed.offer(value, MINUTE))));
    assert_eq!(calls.await, 1, "behind a batch, the first one waits for others");
}

/// A multi-threaded runtime first runs the task that was woken last, which would be the call of a single
/// offer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn those_of_many_tasks_go_together() {
    const TASKS: usize = 64;
    const EACH: usize = 20;
    let server = Server::start();
    let (_client, _ready, delayed) = connect(server.url()).await;
    let calls = scripts(&server, async {
        let mut tasks = JoinSet::new();
        for value in texts(TASKS) {
            let delayed = delayed.clone();
            tasks.spawn(async move {
                for _ in 0..EACH {
                    delayed.offer(&value, MINUTE).await.unwrap();
                }
            });
        }
        tasks.join_all().await;
    });
    let calls = calls.await;
    assert!(calls < (TASKS * EACH / 4) as u64, "{calls} calls for {} offers", TASKS * EACH);
    assert_eq!(delayed.len().await.unwrap(), TASKS * EACH);
}

#[tokio::test]
async fn one_that_is_alone_goes_at_once_and_those_that_follow_each_other_go_alone() {
    let server = Server::start();
    let (_client, _ready, delayed) = connect(server.url()).await;
    let calls = scripts(&server, async {
        for value in texts(10) {
            delayed.offer(&value, MINUTE).await.unwrap();
        }
    });
    assert_eq!(calls.await, 10);
}

#[tokio::test]
async fn delays_and_due_times_do_not_mix() {
    let server = Server::start();
    let (_client, _ready, delayed) = connect(server.url()).await;
    let at = UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    let (after, other) = (text(1), text(2));
    let (after, at_once) = tokio::join!(delayed.offer(&after, MINUTE), delayed.offer_at(&other, at));
    assert_eq!(at_once.unwrap().due(), at);
    let due = after.unwrap().due();
    assert!(due > SystemTime::now() && due < SystemTime::now() + 2 * MINUTE, "{due:?}");
    let scores: Vec<_> = server.zset(TIMEOUT_SET).into_iter().map(|(_, score)| score).collect();
    assert_eq!(scores[1], 4e12);
}

/// A call blocks the server, and has to fit into the memory of both sides.
#[tokio::test]
async fn many_and_big_ones_go_in_several_calls() {
    let server = Server::start();
    let (_client, _ready, delayed) = connect(server.url()).await;
    let (many, big) = (texts(1_000), ["x".repeat(200_000), "y".repeat(200_000), "z".repeat(2_000_000)]);
    // The first one is alone.
    for (values, most) in [(&many[..], 1 + 4), (&big[..], 3)] {
        let calls = scripts(&server, async {
            join_all(values.iter().map(|value| delayed.offer(value, MINUTE))).await;
        });
        assert_eq!(calls.await, most);
        assert_eq!(delayed.read_all().await.unwrap(), values);
        delayed.clear().await.unwrap();
    }
}

#[tokio::test]
async fn nobody_is_refused_for_another_ones_sake() {
    let server = Server::start();
    let (_client, _ready, delayed) = connect(server.url()).await;
    let (one, two, three) = (text(1), text(2), text(3));
    let (one, two, three) = tokio::join!(
        delayed.offer(&one, MINUTE),
        delayed.offer(&two, TOO_LATE),
        delayed.offer(&three, MINUTE)
    );
    one.unwrap();
    three.unwrap();
    assert_eq!(two.unwrap_err().kind(), ErrorKind::Invalid);
    let mut stored = delayed.read_all().await.unwrap();
    stored.sort();
    assert_eq!(stored, ["1", "3"]);
}

#[tokio::test]
async fn all_are_told_when_the_queue_is_none() {
    let server = Server::start();
    let (_client, _ready, delayed) = connect(server.url()).await;
    server.cmd(["SET", TIMEOUT_SET, "x"]);
    let values = texts(5);
    for result in join_all(values.iter().map(|value| delayed.offer(value, MINUTE))).await {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Refused);
    }
    assert_eq!(server.list(ORDERED_LIST).len(), 0);
}

#[tokio::test]
async fn all_are_told_when_a_right_is_missing() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-rpush"]);
    let client = Client::connect(&server.url().replace("://", "://u:p@")).await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::String));
    let values = texts(3);
    for result in join_all(values.iter().map(|value| delayed.offer(value, MINUTE))).await {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Refused);
    }
}

#[tokio::test]
async fn a_caller_that_is_dropped_takes_nobody_with_it() {
    let server = Server::start();
    let (_client, _ready, delayed) = connect(server.url()).await;
    let values = texts(4);
    let mut offers: Vec<_> = values.iter().map(|value| task::spawn(delayed.offer(value, MINUTE))).collect();
    for offer in &mut offers {
        assert_pending!(offer.poll());
    }
    // The first one has its own call. The second one began the batch, of which nothing is sent yet.
    drop(offers.drain(..2));
    for offer in offers {
        offer.await.unwrap();
    }
    assert_eq!(delayed.read_all().await.unwrap(), ["0", "2", "3"]);
}

#[tokio::test]
async fn each_is_stored_once_when_the_reply_to_all_is_lost() {
    let server = Server::start();
    connect(server.url()).await.0.shutdown().await;
    let proxy = Proxy::start(server.port());
    for _ in 0..3 {
        let (_client, _ready, delayed) = connect(proxy.url()).await;
        let values = texts(20);
        // This one may have been delivered when the second try is made.
        let short = text(20);
        proxy.hold_replies(true);
        let cut = async {
            until_async("stored", || async { server.list(ORDERED_LIST).len() == 21 && proxy.held() > 0 })
                .await;
            proxy.cut();
            proxy.hold_replies(false);
        };
        let offers = join_all(values.iter().map(|value| delayed.offer(value, MINUTE)));
        let (tickets, short, ()) = tokio::join!(offers, delayed.offer(&short, Duration::ZERO), cut);
        for ticket in tickets {
            ticket.unwrap();
        }
        short.unwrap();
        assert_eq!(delayed.read_all().await.unwrap(), texts(21), "each of them once");
        delayed.clear().await.unwrap();
    }
}

/// A handle works in other runtimes than that of its client.
#[test]
fn a_runtime_that_stands_still_keeps_nobody_waiting() {
    let server = Server::start();
    let main = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (_client, _ready, delayed) = main.block_on(connect(server.url()));
    let other = current_thread();
    let value = text(1);
    {
        let _within = other.enter();
        // Dropped halfway.
        let _ = task::spawn(delayed.offer(&value, MINUTE)).poll();
    }
    let offer = async { tokio::time::timeout(MINUTE, delayed.offer(&value, MINUTE)).await };
    main.block_on(offer).expect("an answer").unwrap();

    // Two concurrent offers, one of which has its own call and takes longer.
    let (done, finished) = std::sync::mpsc::channel();
    let meeting = Arc::new(Barrier::new(2));
    for bytes in [1, 300_000] {
        let (delayed, done, meeting) = (delayed.clone(), done.clone(), meeting.clone());
        std::thread::spawn(move || {
            let (runtime, value) = (current_thread(), "x".repeat(bytes));
            for _ in 0..100 {
                meeting.wait();
                runtime.block_on(delayed.offer(&value, MINUTE)).unwrap();
            }
            done.send(()).unwrap();
        });
    }
    for _ in 0..2 {
        finished.recv_timeout(MINUTE).expect("a thread that goes on");
    }
}

/// Offers do not wait for ever when the runtime of the connections ends before it sends them.
#[test]
fn a_runtime_that_is_gone_leaves_nobody_waiting() {
    let server = Server::start();
    let gone = current_thread();
    let (client, _ready, delayed) = gone.block_on(connect(server.url()));
    let value = text(1);
    let offer = {
        let _within = gone.enter();
        let mut offer = task::spawn(delayed.offer(&value, MINUTE));
        assert_pending!(offer.poll());
        offer
    };
    drop(gone);
    current_thread().block_on(async {
        let both = async { (offer.await, delayed.offer(&value, MINUTE).await) };
        let (first, second) = tokio::time::timeout(MINUTE, both).await.expect("an answer");
        assert_eq!(first.unwrap_err().kind(), ErrorKind::OutcomeUnknown, "it was about to be sent");
        assert_eq!(second.unwrap_err().kind(), ErrorKind::Closed);
    });
    drop(client);
}
