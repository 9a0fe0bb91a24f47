//! A sweep finds each id and each note that is of nothing any more, however many others there are: one pass,
//! of as many calls as it takes.

use std::time::Duration;

use redelay::DelayedQueue;
use redelay_fixture::Server;
use redelay_support::{
    CONTROL, DEAD, DEAD_MESSAGES, INBOX, JOBS, MESSAGES, MORE_NOTES, NOTES, ORDERED_LIST, TARGET,
    TIMEOUT_SET, script, still_text_queues,
};

/// Far more than one call looks for in the ready list.
const LIVE: usize = 5000;

/// One pass, without the pauses between its calls.
fn pass(server: &Server) {
    let sweep = script("SWEEP_JOBS");
    let keys = [TIMEOUT_SET, JOBS, CONTROL, DEAD, DEAD_MESSAGES, NOTES, TARGET, INBOX, MESSAGES, MORE_NOTES];
    let is_over = || {
        server.cmd(["HDEL", CONTROL, "jobs-at"]);
        let words = ["EVAL", &sweep, "10"].into_iter().chain(keys).chain(["2000"]);
        let (_removed, wait, _apart): (u64, i64, u64) = server.get(words);
        wait < 0
    };
    while !is_over() {}
}

/// Ready jobs with these payloads, whose ids are their numbers.
async fn ready(server: &Server, delayed: &DelayedQueue<String>, payloads: &[String]) {
    let ids: Vec<_> = (0..payloads.len()).map(|number| number.to_string()).collect();
    for some in ids.chunks(1000) {
        let jobs = some.iter().map(|id| (id, &payloads[id.parse::<usize>().unwrap()], Duration::ZERO));
        delayed.offer_jobs(jobs).until_done().await.unwrap();
    }
    server.cmd(["DEL", TIMEOUT_SET, ORDERED_LIST]);
    for some in payloads.chunks(1000) {
        server.cmd(["RPUSH", TARGET].into_iter().chain(some.iter().map(String::as_str)));
    }
}

fn ids(server: &Server) -> Vec<String> {
    server.get(["HKEYS", JOBS])
}

#[tokio::test]
async fn one_pass_finds_stale_ids_among_thousands_of_ready_jobs() {
    let server = Server::start();
    let (client, _, delayed) = still_text_queues(&server).await;
    let payloads: Vec<_> = (0..LIVE).map(|number| format!("payload {number}")).collect();
    ready(&server, &delayed, &payloads).await;
    // Java takes some, wherever they are in the order in which the server scans.
    let taken: Vec<_> = (0..LIVE).step_by(LIVE / 30).map(|number| number.to_string()).collect();
    for number in &taken {
        server.cmd(["LREM", TARGET, "1", &format!("payload {number}")]);
    }
    pass(&server);
    let left = ids(&server);
    assert!(
        !left.iter().any(|id| taken.contains(id)),
        "{:?}",
        taken.iter().filter(|id| left.contains(id)).collect::<Vec<_>>()
    );
    assert_eq!(left.len(), LIVE - taken.len());
    assert_eq!(server.get::<usize, _>(["HLEN", NOTES]), left.len());
    client.shutdown().await;
}

/// Of equal payloads, it counts those that are ready.
#[tokio::test]
async fn one_pass_finds_stale_notes_among_thousands_of_equal_payloads() {
    let server = Server::start();
    let (client, _, delayed) = still_text_queues(&server).await;
    // Three of each.
    let payloads: Vec<_> = (0..LIVE).map(|number| format!("payload {}", number / 3)).collect();
    ready(&server, &delayed, &payloads).await;
    let taken: Vec<_> =
        (0..LIVE).step_by(LIVE / 30).map(|number| format!("payload {}", number / 3)).collect();
    for payload in &taken {
        server.cmd(["LREM", TARGET, "1", payload]);
    }
    pass(&server);
    let notes = server.get::<usize, _>(["HLEN", NOTES]) + server.get::<usize, _>(["ZCARD", MORE_NOTES]);
    assert_eq!((ids(&server).len(), notes), (LIVE - taken.len(), LIVE - taken.len()));
    client.shutdown().await;
}
