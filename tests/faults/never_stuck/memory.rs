//! The server is out of memory: a refused command changes nothing, and a script that has begun runs to its
//! end.

use std::time::Duration;

use redelay::{BlockingQueue, Client, DelayedQueue, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    HOUR, MINUTE, ORDERED_LIST, QUARANTINE, TARGET, TIMEOUT_SET, builder, keys, lasting, still_text_queues,
    text_queues,
};

const ALL: Duration = Duration::from_millis(1);

async fn connected(server: &Server, moves: bool) -> (Client, BlockingQueue<String>, DelayedQueue<String>) {
    if moves { text_queues(server).await } else { still_text_queues(server).await }
}

fn limit(server: &Server, bytes: usize) {
    server.cmd(["CONFIG", "SET", "maxmemory", &bytes.to_string()]);
}

fn used(server: &Server) -> usize {
    let info = server.info("memory");
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|number| number.parse().ok()).expect("a number")
}

/// The number of transfers.
fn scripts(server: &Server) -> u64 {
    server.command_calls("evalsha") + server.command_calls("eval")
}

#[tokio::test]
async fn an_offer_without_memory_stores_nothing() {
    let server = Server::start();
    let (_client, ready, delayed) = connected(&server, false).await;
    let ticket = delayed.offer(&"pending".to_owned(), HOUR).await.unwrap();
    ready.put(&"ready".to_owned()).await.unwrap();
    let (before, keys_before) = (lasting(&server), server.keys());
    limit(&server, 1);
    let values: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let refusals = [
        delayed.offer(&values[0], ALL).await.map(drop),
        delayed.offer_all(values.iter().map(|value| (value, ALL))).await.map(drop),
        ready.put(&values[0]).await,
        ready.offer_all(&values).await,
    ];
    for refusal in refusals {
        let error = refusal.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("OOM"), "{error}");
    }
    assert_eq!(lasting(&server), before);
    // The client may delete the receipt of the first offer meanwhile, and adds none.
    assert!(server.keys().iter().all(|key| keys_before.contains(key)));
    // Commands that free memory are allowed.
    assert_eq!(ready.poll().await.unwrap().as_deref(), Some("ready"));
    assert!(delayed.cancel(&ticket).await.unwrap());
    limit(&server, 0);
    delayed.offer(&values[0], HOUR).await.unwrap();
    assert_eq!(delayed.len().await.unwrap(), 1);
}

#[tokio::test]
async fn a_transfer_needs_no_memory() {
    let server = Server::start();
    let (_client, _, delayed) = connected(&server, false).await;
    let values: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    delayed.offer_all(values.iter().map(|value| (value, ALL))).await.unwrap();
    // Among them, one entry that is quarantined.
    server.cmd(["ZADD", TIMEOUT_SET, "1", "malformed"]);
    server.cmd(["RPUSH", ORDERED_LIST, "malformed"]);
    limit(&server, 1);
    let (_moving, ready, _delayed) = connected(&server, true).await;
    until_async("all are ready", || async { ready.len().await.unwrap() == values.len() }).await;
    assert_eq!(ready.read_all().await.unwrap(), values);
    assert_eq!(server.list(QUARANTINE), [b"1".as_slice(), b"malformed"]);
    assert_eq!(keys(&server), [b"q".to_vec(), QUARANTINE.into()]);
    let taken = ready.poll_many(1_000).await.unwrap();
    assert_eq!(taken.len(), values.len(), "takers empty a server that is full");
    assert_eq!(keys(&server), [QUARANTINE.as_bytes()]);
}

/// Memory runs out while scripts run, at several points. The server checks before each script, so a script
/// that has begun to write runs to its end, and the next one is refused.
#[tokio::test]
async fn a_transfer_that_runs_out_of_memory_is_not_torn() {
    for spare in [1, 40_000, 100_000, 250_000, 500_000] {
        let server = Server::start();
        let (_client, _, delayed) = connected(&server, false).await;
        let values: Vec<String> = (0..200).map(|n| format!("{n:>5000}")).collect();
        delayed.offer_all(values.iter().map(|value| (value, ALL))).await.unwrap();
        limit(&server, used(&server) + spare);
        let begun = scripts(&server);
        let client = builder(&server).command_timeout(MINUTE).transfer_batch(30).connect().await.unwrap();
        let ready = client.blocking_queue::<String>("q", codec::String);
        let _moving = client.delayed_queue(&ready);
        until_async("it has tried", || async { scripts(&server) >= begun + 4 }).await;
        // Both are read in one transaction.
        let counts =
            "return {redis.call('ZCARD', KEYS[1]), redis.call('LLEN', KEYS[2]), redis.call('LLEN', KEYS[3])}";
        let keys = [TIMEOUT_SET, ORDERED_LIST, TARGET];
        let look = || server.get::<(usize, usize, usize), _>(["EVAL", counts, "3"].into_iter().chain(keys));
        let (pending, listed, moved) = look();
        assert_eq!((pending, pending + moved), (listed, values.len()), "with {spare} bytes to spare");
        println!("{spare} bytes to spare: {moved} moved");
        limit(&server, 0);
        until_async("all are ready", || async { look() == (0, 0, values.len()) }).await;
        assert_eq!(ready.read_all().await.unwrap(), values);
    }
}
