//! When a message that failed is due again, and what its dead letter says of the times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redelay::worker::Backoff;
use redelay_fixture::Server;
use redelay_support::{DEAD, MESSAGES, RETRIES, number_queues, soon};

/// The server's clock in epoch milliseconds, rounded down, as the scripts read it.
fn clock(server: &Server) -> f64 {
    let (seconds, micros): (u64, u64) = server.get(["TIME"]);
    (seconds * 1000 + micros / 1000) as f64
}

fn millis(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap().as_millis() as f64
}

/// Fails this often, and checks when it is due each time: between the shortest and the longest pause from
/// now.
async fn fails(backoff: Backoff, pauses: &[[u64; 2]]) {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let attempts = pauses.len() as u32 + 1;
    let receiver = ready.receiver().backoff(backoff).max_attempts(attempts);
    let began = clock(&server);
    ready.put(&7).await.unwrap();
    let mut received = clock(&server);
    for attempt in 1..=attempts {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(delivery.attempt(), attempt);
        if attempt == 1 {
            received = clock(&server);
        }
        let id = delivery.id();
        let before = clock(&server);
        delivery.with_error(format_args!("failure {attempt}")).retry().await.unwrap();
        let after = clock(&server);
        if let Some([shortest, longest]) = pauses.get(attempt as usize - 1) {
            let retries = server.zset(RETRIES);
            let [(_, due)] = &retries[..] else { panic!("{retries:?}") };
            let (earliest, latest) = (before + (shortest * 1000) as f64, after + (longest * 1000) as f64);
            assert!(
                (earliest..=latest).contains(due),
                "failure {attempt}: {due}, not {earliest} to {latest}"
            );
            assert!(ready.unsettled().requeue(id).await.unwrap());
            continue;
        }
        let letters = ready.dead_letters().read(None, 9).await.unwrap();
        let [letter] = &letters[..] else { panic!("{letters:?}") };
        assert_eq!(
            (letter.id, letter.reason.as_str(), letter.error.as_str()),
            (id, "attempts", &*format!("failure {attempt}"))
        );
        assert_eq!((letter.failed, letter.lost), (attempts, 0));
        let (first, died) = (millis(letter.first_received), millis(letter.died));
        assert!((began..=received).contains(&first), "first received at {first}, not {began} to {received}");
        assert!((before..=after).contains(&died), "died at {died}, not {before} to {after}");
    }
    let left: [usize; 3] =
        [server.get(["ZCARD", RETRIES]), server.get(["HLEN", MESSAGES]), server.get(["ZCARD", DEAD])];
    assert_eq!(left, [0, 0, 1]);
}

/// Case 30.
#[tokio::test]
async fn each_failure_waits_as_the_backoff_says() {
    let exactly = |seconds: u64| [seconds; 2];
    let ladder = [15, 180, 600, 1_800, 1_800, 3_600, 7_200, 21_600, 54_000];
    fails(Backoff::ladder(ladder.map(Duration::from_secs)), &ladder.map(exactly)).await;
    fails(Backoff::ladder([1, 20].map(Duration::from_secs)), &[1, 20, 20, 20].map(exactly)).await;
    // The default. Half of a pause is random.
    let doubled: Vec<[u64; 2]> =
        (0..9).map(|failures| (15 << failures).min(6 * 3_600)).map(|most| [most / 2, most]).collect();
    fails(Backoff::default(), &doubled).await;
}
