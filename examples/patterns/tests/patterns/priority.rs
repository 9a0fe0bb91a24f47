use std::sync::{Arc, Mutex};

use redelay::{BlockingQueue, Worker, codec};
use redelay_fixture::{Server, until_async};
use redelay_patterns::priority::{strict, weighted};
use redelay_support::{builder, soon};

const EACH: i64 = 420;

/// The numbers in the order in which they are handled, one at a time. Urgent ones are negative.
async fn handled(make: fn(&BlockingQueue<i64>, &BlockingQueue<i64>) -> Worker<i64>) -> Vec<i64> {
    let server = Server::start();
    let client = builder(&server).connect().await.unwrap();
    let [urgent, orders] = ["urgent", "orders"].map(|name| client.blocking_queue(name, codec::Long));
    orders.offer_all(&(1..=EACH).collect::<Vec<_>>()).await.unwrap();
    urgent.offer_all(&(1..=EACH).map(|number| -number).collect::<Vec<_>>()).await.unwrap();
    let log = Arc::<Mutex<Vec<i64>>>::default();
    let all = log.clone();
    let handler = move |number: i64| {
        log.lock().unwrap().push(number);
        async {}
    };
    let running = tokio::spawn(make(&urgent, &orders).concurrency(1).run(handler));
    until_async("all", || async { all.lock().unwrap().len() == 2 * EACH as usize }).await;
    client.stop_taking().await;
    soon(running).await.unwrap().unwrap();
    all.lock().unwrap().clone()
}

#[tokio::test]
async fn strict_handles_what_is_urgent_first() {
    let handled = handled(strict).await;
    let expected: Vec<i64> = (1..=EACH).map(|number| -number).chain(1..=EACH).collect();
    assert_eq!(handled, expected);
}

#[tokio::test]
async fn weighted_handles_six_urgent_ones_for_one_order() {
    let handled = handled(weighted).await;
    // Of these, 300 are expected to be urgent. Chance leads out of this range once in a billion runs.
    let urgent = handled[..350].iter().filter(|number| **number < 0).count();
    assert!((250..=340).contains(&urgent), "{urgent} of 350");
}
