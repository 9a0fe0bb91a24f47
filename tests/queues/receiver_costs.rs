//! What receivers cost the server, in commands and not in time.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::future::{BoxFuture, FutureExt, join_all};
use redelay::{BlockingQueue, Client, Receiver};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    HOUR, LEASES, MESSAGES, Queues, RECEIPTS, TARGET, ms, soon, still_builder, still_text_queues, text,
};

/// An idle receiver gives a sign of life every six seconds, which may come in the middle of a message. So
/// some are counted, and the cheaper ones show what a message costs.
const MESSAGES_COUNTED: usize = 9;

/// The scripts and the blocking pops since the start.
fn calls(server: &Server) -> [u64; 2] {
    ["evalsha", "blmove"].map(|command| server.command_calls(command))
}

/// What most of some equal messages cost, if what comes by itself falls into some of them.
pub(super) fn usual(mut counts: Vec<u64>) -> u64 {
    counts.sort_unstable();
    counts[counts.len() / 4]
}

/// Lets this number of clients with a receiver each wait for messages that come one after the other. Returns
/// the scripts and the blocking pops of a message.
async fn costs(receivers: u64) -> [u64; 2] {
    let server = Server::start();
    let clients: Vec<(Client, BlockingQueue<String>, _)> =
        join_all((0..receivers).map(|_| still_text_queues(&server))).await;
    for (_, queue, _) in &clients {
        let receiver = queue.receiver();
        tokio::spawn(acknowledge(receiver));
    }
    let idle = || async { server.blocked_clients() == receivers };
    let (mut scripts, mut pops) = (Vec::new(), Vec::new());
    for _ in 0..MESSAGES_COUNTED {
        until_async("all of them wait", idle).await;
        let before = calls(&server);
        server.cmd(["RPUSH", TARGET, "payload"]);
        until_async("it is received", || async { server.command_calls("blmove") > before[1] }).await;
        until_async("it is acknowledged", || async { server.get::<usize, _>(["HLEN", MESSAGES]) == 0 }).await;
        until_async("all of them wait again", idle).await;
        let after = calls(&server);
        scripts.push(after[0] - before[0]);
        pops.push(after[1] - before[1]);
    }
    for (client, ..) in &clients {
        client.shutdown().await;
    }
    [scripts, pops].map(usual)
}

async fn acknowledge(receiver: Receiver<String>) -> redelay::Result<()> {
    loop {
        receiver.receive().await?.ack().await?;
    }
}

#[tokio::test]
async fn a_message_on_an_idle_queue_costs_two_scripts_and_one_blocking_pop() {
    let [scripts, pops] = costs(1).await;
    assert!(scripts <= 2, "{scripts} scripts");
    assert_eq!(pops, 1);
}

#[tokio::test]
async fn a_message_wakes_one_of_sixteen_idle_processes() {
    let [scripts, pops] = costs(16).await;
    assert!(scripts <= 2, "{scripts} scripts");
    assert_eq!(pops, 1);
}

/// Many leases are searched by a skip list, and a batch of messages costs a call.
#[tokio::test]
async fn a_batch_costs_two_scripts_and_leaves_only_its_leases() {
    let server = Server::start();
    let (_client, queue, _delayed) = still_text_queues(&server).await;
    let receiver = queue.receiver();
    let payloads: Vec<String> = (0..64).map(|number| number.to_string()).collect();
    queue.offer_all(&payloads).await.unwrap();
    let before = calls(&server)[0];
    let deliveries = soon(receiver.receive_many(100)).await.unwrap();
    assert_eq!(calls(&server)[0] - before, 1, "scripts for 64 messages");
    assert_eq!((deliveries.len(), server.get::<usize, _>(["ZCARD", LEASES])), (64, 64));
    assert_eq!(server.get::<String, _>(["OBJECT", "ENCODING", LEASES]), "skiplist");
    let before = calls(&server)[0];
    let acknowledged = join_all(deliveries.into_iter().map(|delivery| delivery.unwrap().ack())).await;
    assert!(acknowledged.iter().all(Result::is_ok), "{acknowledged:?}");
    assert_eq!(calls(&server)[0] - before, 1, "scripts for 64 acknowledgements");
    assert_eq!(server.get::<usize, _>(["EXISTS", LEASES, MESSAGES]), 0);
}

/// Tasks that are answered together settle and receive again in one call.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn tasks_that_receive_by_hand_share_calls() {
    const TASKS: usize = 8;
    const EACH: usize = 100;
    let server = Server::start();
    let (_client, queue, _) = still_text_queues(&server).await;
    queue.offer_all(&vec![text("payload"); TASKS * EACH]).await.unwrap();
    let receiver = queue.receiver();
    let before = calls(&server)[0];
    let tasks = (0..TASKS).map(|_| {
        let receiver = receiver.clone();
        tokio::spawn(async move {
            for _ in 0..EACH {
                receiver.receive().await.unwrap().ack().await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        soon(task).await.unwrap();
    }
    let scripts = calls(&server)[0] - before;
    println!("{scripts} scripts for {} messages", TASKS * EACH);
    assert!(scripts as usize <= TASKS * EACH * 3 / 10, "{scripts} scripts");
}

/// No call reads and writes more than 4 MB of payloads, and none of them leave the server.
#[tokio::test]
async fn large_messages_take_several_calls() {
    const LARGE: usize = 12;
    let server = Server::start();
    let (_client, queue, _) = still_text_queues(&server).await;
    let receiver = queue.receiver();
    for _ in 0..LARGE {
        queue.put(&"x".repeat(1 << 20)).await.unwrap();
    }
    let receive = async || {
        let mut held = Vec::new();
        while held.len() < LARGE {
            held.push(soon(receiver.receive()).await.unwrap());
        }
        held
    };
    let scripts = async |what: &str, work: BoxFuture<'_, ()>| {
        let (before, sent) = (calls(&server)[0], server.bytes_sent());
        work.await;
        let scripts = calls(&server)[0] - before;
        assert!(server.bytes_sent() - sent < 1 << 20, "{what}");
        assert!((3..=2 * LARGE as u64).contains(&scripts), "{what}: {scripts} scripts for {LARGE} MB");
    };
    let held = receive().await;
    let retry = async {
        let retried = join_all(held.into_iter().map(|delivery| delivery.retry_after(HOUR))).await;
        assert!(retried.iter().all(Result::is_ok), "{retried:?}");
    };
    scripts("retry", retry.boxed()).await;
    let release = async { assert_eq!(queue.release_all().await.unwrap(), LARGE) };
    scripts("release", release.boxed()).await;
    assert_eq!(queue.len().await.unwrap(), LARGE);

    for delivery in receive().await {
        delivery.reject("too large").await.unwrap();
    }
    let requeue = async { assert_eq!(queue.dead_letters().requeue_all(usize::MAX).await.unwrap(), LARGE) };
    scripts("requeue", requeue.boxed()).await;
    for delivery in receive().await {
        assert_eq!(delivery.value().len(), 1 << 20);
        delivery.ack().await.unwrap();
    }
}

/// Case 24: the messages of a dead process cost each of the others one look, when the leases end.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_ended_leases_cost_sixteen_receivers_a_script_each() {
    const RECEIVERS: usize = 16;
    const LOST: usize = 100;
    const LEASE: u64 = 3_000;
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let dying = Queues::of_texts(still_builder(&proxy)).await;
    let payloads: Vec<String> = (0..LOST).map(|number| number.to_string()).collect();
    dying.ready.offer_all(&payloads).await.unwrap();

    // Together they receive what is lost, and nobody has to ask twice.
    let each = LOST.div_ceil(RECEIVERS);
    let got = Arc::<Mutex<Vec<(String, u32)>>>::default();
    let held = soon(dying.ready.receiver().lease(ms(LEASE)).receive_many(LOST)).await.unwrap();
    assert_eq!(held.len(), LOST);
    let clients = join_all((0..RECEIVERS).map(|_| still_text_queues(&server))).await;
    for (_, queue, _) in &clients {
        let (receiver, got) = (queue.receiver().lease(ms(LEASE)), got.clone());
        tokio::spawn(async move {
            let received = receiver.receive_many(each).await.unwrap();
            let received: Vec<_> = received.into_iter().map(Result::unwrap).collect();
            let seen = received.iter().map(|delivery| (delivery.value().clone(), delivery.attempt()));
            got.lock().unwrap().extend(seen);
            // Nothing is settled, and nothing else received: these would be calls, too.
            let _held = (receiver, received);
            pending::<()>().await;
        });
    }
    until_async("all of them wait", || async { server.blocked_clients() == RECEIVERS as u64 }).await;
    proxy.refuse(true);
    proxy.cut();

    let ends = server.zset(LEASES).into_iter().map(|(_, end)| end).fold(0.0, f64::max);
    let near = || async {
        let is_early = !got.lock().unwrap().is_empty();
        let (seconds, micros): (u64, u64) = server.get(["TIME"]);
        let now = (seconds * 1000 + micros / 1000) as f64;
        assert!(!is_early || now >= ends, "they have not ended");
        now > ends - 100.0
    };
    until_async("the leases are about to end", near).await;
    let (began, before) = (Instant::now(), calls(&server)[0]);
    until_async("all are received", || async { got.lock().unwrap().len() >= LOST }).await;
    let (scripts, took) = (calls(&server)[0] - before, began.elapsed());
    let mut got = got.lock().unwrap().clone();
    got.sort_unstable();
    let mut expected: Vec<_> = payloads.into_iter().map(|payload| (payload, 2)).collect();
    expected.sort_unstable();
    assert_eq!(got, expected, "each once");
    // Beside the looks, each receiver gives a sign of life every fifth of its lease. Those that looked first
    // may have been early, and hear of the messages then.
    let signs = RECEIVERS * (1 + took.as_millis() as usize * 5 / LEASE as usize);
    println!("{scripts} scripts in {took:?}, with up to {signs} signs of life");
    assert!(scripts as usize <= 2 * RECEIVERS + signs, "{scripts} scripts, with up to {signs} signs of life");
}

/// Lets this number of tasks receive a backlog. Returns how many calls the receiver had in flight at most:
/// the server has a receipt for each.
async fn calls_at_a_time(tasks: usize) -> usize {
    const BACKLOG: usize = 2_000;
    let server = Server::start();
    let (client, queue, _delayed) = still_text_queues(&server).await;
    let payloads: Vec<String> = (0..BACKLOG).map(|number| number.to_string()).collect();
    queue.offer_all(&payloads).await.unwrap();
    let receiver = queue.receiver();
    let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(acknowledge(receiver.clone()))).collect();
    until_async("all are acknowledged", || async {
        server.get::<usize, _>(["LLEN", TARGET]) + server.get::<usize, _>(["HLEN", MESSAGES]) == 0
    })
    .await;
    let receipts = server.get(["HLEN", RECEIPTS]);
    drop(receiver);
    client.shutdown().await;
    for task in tasks {
        assert!(task.await.unwrap().unwrap_err().is_closed());
    }
    assert_eq!(server.get::<usize, _>(["EXISTS", RECEIPTS]), 0, "a receiver that ends leaves nothing");
    receipts
}

#[tokio::test]
async fn a_backlog_is_received_by_two_calls_at_a_time() {
    assert_eq!(calls_at_a_time(64).await, 2);
}

#[tokio::test]
async fn few_receives_share_one_call() {
    assert_eq!(calls_at_a_time(16).await, 1);
}

/// The share of a call beside another one is no reason to receive less.
#[tokio::test]
async fn a_receive_of_many_gets_all_of_a_backlog() {
    let server = Server::start();
    let (_client, queue, _delayed) = still_text_queues(&server).await;
    let payloads: Vec<String> = (0..5_000).map(|number| number.to_string()).collect();
    queue.offer_all(&payloads).await.unwrap();
    let receiver = queue.receiver();
    for _ in 0..3 {
        assert_eq!(soon(receiver.receive_many(500)).await.unwrap().len(), 500);
    }
    // More than one call claims. No second call claims messages for a receive that the first one answers.
    for _ in 0..3 {
        assert_eq!(soon(receiver.receive_many(2_000)).await.unwrap().len(), 1_000);
    }
    assert_eq!(queue.stats().await.unwrap().receiving.released, 0);
}
