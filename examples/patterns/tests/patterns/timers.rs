use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redelay_fixture::{Server, until_async_within};
use redelay_patterns::timers::{answered, run, start};
use redelay_support::{MINUTE, ms, number_queues, soon};

const TIMERS: i64 = 10_000;

/// Between 10 and 500 ms.
fn timeout(request: i64) -> Duration {
    ms(10 + (request as u64 * 7919) % 491)
}

#[tokio::test]
async fn each_timer_ends_once_or_is_cancelled() {
    let server = Server::start();
    let (client, ended, timers) = number_queues(&server).await;
    let fired = Arc::<Mutex<Vec<(i64, Instant)>>>::default();
    let log = fired.clone();
    let running = tokio::spawn(run(ended, move |request| {
        log.lock().unwrap().push((request.unwrap(), Instant::now()));
    }));

    // Two of three requests are answered soon.
    let is_answered = |request: &i64| request % 3 != 0;
    let requests: Vec<i64> = (0..TIMERS).collect();
    let (mut started, mut cancelled) = (BTreeMap::new(), 0);
    for some in requests.chunks(500) {
        let begun = Instant::now();
        started.extend(some.iter().map(|request| (*request, begun)));
        let with_timeout: Vec<_> = some.iter().map(|request| (*request, timeout(*request))).collect();
        start(&timers, &with_timeout).await.unwrap();
        let some: Vec<i64> = some.iter().copied().filter(is_answered).collect();
        cancelled += answered(&timers, &some).await.unwrap();
    }
    let left = TIMERS as usize - cancelled;
    until_async_within(5 * MINUTE, "the others", || async { fired.lock().unwrap().len() >= left }).await;
    assert_eq!(timers.len().await.unwrap(), 0);
    client.stop_taking().await;
    soon(running).await.unwrap();

    let fired = fired.lock().unwrap();
    let times: BTreeMap<i64, Instant> = fired.iter().copied().collect();
    assert_eq!((fired.len(), times.len()), (left, left), "each once");
    // Those that were answered too late have fired, and no other answered one.
    assert!(requests.iter().all(|request| is_answered(request) || times.contains_key(request)));
    assert!(cancelled > 0, "all of them were too late");
    let early: Vec<_> = times.iter().filter(|(id, at)| **at - started[id] < timeout(**id)).collect();
    assert!(early.is_empty(), "{early:?}");
    println!("{cancelled} of {TIMERS} were cancelled");
}
