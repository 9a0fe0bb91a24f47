//! Queues that are well, in all the ways there are: nothing is found.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use redelay::blocking_queue::RateLimit;
use redelay::{Client, codec};
use redelay_fixture::Server;

use super::{HOUR, add, doctor, entry, key, list, now, set, sound, subscribed, text};

/// As Redisson does it, but the two keys one after the other, so that everybody can look in between.
fn churn(server: &Server, queue: &str, is_over: &AtomicBool) {
    let mut number = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        let entry = entry(&number.to_string(), &text("hello"));
        server.cmd([b"ZADD", set(queue).as_bytes(), (now() + HOUR).to_string().as_bytes(), &entry]);
        thread::sleep(Duration::from_millis(3));
        server.cmd([b"RPUSH", list(queue).as_bytes(), &entry]);
        thread::sleep(Duration::from_millis(3));
        if number >= 20 {
            let first = server.list(list(queue)).remove(0);
            server.cmd([b"ZREM", set(queue).as_bytes(), &first]);
            thread::sleep(Duration::from_millis(3));
            server.cmd([b"LREM", list(queue).as_bytes(), b"1", &first]);
            // To whom it may concern, who takes at once.
            server.cmd([b"RPUSH", queue.as_bytes(), &text("hello")]);
            server.cmd(["LPOP", queue]);
        }
        number += 1;
    }
}

/// Names that are allowed on a server that is alone.
const NAMES: [&str; 7] = ["orders", "{tag}q", "a{b", "a}b", "{}q", "with a space", "очередь#7"];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found() {
    let server = sound();
    let long = Duration::from_secs(600);
    let builder = || Client::builder().url(server.url()).connect_timeout(long).command_timeout(long);
    let client = builder().connect().await.unwrap();
    let mut kept = Vec::new();
    for name in NAMES {
        let ready = client.blocking_queue::<Vec<u8>>(name, codec::Bytes);
        let delayed = client.delayed_queue(&ready);
        for n in 0..30 {
            delayed.offer(&text(&format!("payload {n}")), Duration::from_secs(3_600 + n)).await.unwrap();
        }
        delayed.offer(&text("job"), Duration::from_secs(3_600)).id("order-7").await.unwrap();
        delayed.offer(&text("soon"), Duration::from_millis(10)).await.unwrap();
        // Its first run is a day away at any time of the day.
        let day = Duration::from_secs(86_400);
        let nightly = delayed.schedule("nightly").every(day).start_at(std::time::SystemTime::now() + day);
        nightly.upsert(&text("report")).await.unwrap();
        let paused = delayed.schedule("paused").every(Duration::from_secs(1));
        paused.upsert(&text("report")).await.unwrap();
        delayed.schedule("paused").pause().await.unwrap();
        ready.set_max_in_flight(Some(10)).await.unwrap();
        ready.set_rate_limit(Some(RateLimit::new(1_000, Duration::from_secs(1)))).await.unwrap();
        // One is in flight, and one waits for its retry.
        ready.put(&text("other")).await.unwrap();
        let receiver = ready.receiver();
        receiver.receive().await.unwrap().retry_after(Duration::from_secs(3_600)).await.unwrap();
        kept.push((receiver.receive().await.unwrap(), receiver, delayed));
    }
    // Consumers that take nothing at the moment, and one that has left a few payloads for Java.
    let idle = client.blocking_queue::<Vec<u8>>("idle", codec::Bytes);
    idle.put(&text("hello")).await.unwrap();
    idle.receiver().receive().await.unwrap().ack().await.unwrap();
    for n in 0..50 {
        idle.put(&text(&format!("payload {n}"))).await.unwrap();
    }
    // What Java has: a queue that is not due, with somebody who listens, and one in an old format alone.
    let _java = subscribed(&server, "java");
    for n in 0..20 {
        add(&server, "java", now() + HOUR + n, &entry(&format!("id-{n:05}"), &text(&format!("payload {n}"))));
    }
    // A partitioned queue, and one whose name only looks like a partition.
    server.cmd(["SET", &key("partitions", "parted"), "4"]);
    add(&server, "parted#3", now() + HOUR, &entry("a", &text("hello")));
    // What is left for a moment: receipts, and a throttle that ends.
    server.cmd(["SET", "redelay:offered:{java}:019ab5c2e40070008000000000000000", "1", "EX", "86400"]);
    server.cmd(["SET", &format!("{}:id:order-7", key("throttle", "java")), "", "PX", "600000"]);
    // A transfer is rebuilding the ordered list.
    add(&server, "rebuilt", now() + HOUR, &entry("listed", &text("hello")));
    server.cmd([
        b"ZADD",
        set("rebuilt").as_bytes(),
        (now() + HOUR).to_string().as_bytes(),
        &entry("not listed", &text("hello")),
    ]);
    server.cmd(["SET", "redelay:rebuild:{rebuilt}", "1795615390307", "PX", "600000"]);
    let is_over = AtomicBool::new(false);
    let findings = thread::scope(|scope| {
        let _ends = super::Ends(&is_over);
        for queue in ["churned", "churned too"] {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || churn(server, queue, is_over));
        }
        // Several times, so that they are caught in between.
        (0..3).flat_map(|_| doctor(&server.url(), &[])).collect::<Vec<_>>()
    });
    assert!(findings.is_empty(), "{findings:#?}");
    drop(kept);
    client.shutdown().await;
}
