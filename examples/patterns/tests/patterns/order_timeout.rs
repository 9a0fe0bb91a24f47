use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redelay::Worker;
use redelay::delayed_queue::Offered;
use redelay_fixture::{Server, until_async};
use redelay_patterns::order_timeout::{extend, find, paid, place};
use redelay_support::{HOUR, MINUTE, ms, soon, text_queues};

#[tokio::test]
async fn a_paid_order_never_fires_and_an_extended_one_fires_at_its_new_time() {
    // The paid order would be due before the extended one.
    const PAID: Duration = Duration::from_secs(6);
    const EXTENDED: Duration = Duration::from_secs(7);
    let server = Server::start();
    let (client, due, unpaid) = text_queues(&server).await;
    assert!(matches!(place(&unpaid, "order-1", "coffee", PAID).await.unwrap(), Offered::Stored(_)));
    place(&unpaid, "order-2", "tea", MINUTE).await.unwrap();
    place(&unpaid, "order-3", "cocoa", ms(0)).await.unwrap();
    assert!(matches!(place(&unpaid, "order-1", "other", HOUR).await.unwrap(), Offered::Kept(_)));
    assert_eq!(find(&unpaid, "order-1").await.unwrap().as_deref(), Some("coffee"));

    let fired = Arc::<Mutex<Vec<(String, Instant)>>>::default();
    let log = fired.clone();
    let handler = move |order: String| {
        log.lock().unwrap().push((order, Instant::now()));
        async {}
    };
    let worker = tokio::spawn(Worker::new(&due).run(handler));
    assert!(paid(&unpaid, "order-1").await.unwrap());
    assert_eq!(find(&unpaid, "order-1").await.unwrap(), None);
    let begun = Instant::now();
    assert!(extend(&unpaid, "order-2", EXTENDED).await.unwrap());
    until_async("the extended order", || async { fired.lock().unwrap().len() > 1 }).await;
    assert!(!paid(&unpaid, "order-2").await.unwrap(), "it is too late");
    assert!(!extend(&unpaid, "order-2", HOUR).await.unwrap(), "it is too late");

    client.stop_taking().await;
    assert_eq!(soon(worker).await.unwrap().unwrap().acknowledged, 2);
    assert_eq!(unpaid.len().await.unwrap(), 0);
    let fired = fired.lock().unwrap();
    assert_eq!((&*fired[0].0, &*fired[1].0), ("cocoa", "tea"));
    assert!(fired[1].1 - begun >= EXTENDED, "{:?}", fired[1].1 - begun);
}
