//! The tests of `docs/testing.md`.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use redelay::worker::{Context, Outcome};
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_testing::{Proxy, Server, assert_pending, make_due, run_once, until_async};
use redelay_testing_example::{Shop, TO_PAY, cancel, place, worker};
use tokio::sync::oneshot;

async fn queues(url: &str) -> (BlockingQueue<i64>, DelayedQueue<i64>) {
    let client = Client::connect(url).await.expect("a server");
    let due = client.blocking_queue("orders", codec::Long);
    let orders = client.delayed_queue(&due);
    (due, orders)
}

#[tokio::test]
async fn an_order_is_cancelled_once() {
    let shop = Arc::new(Shop::default());
    for attempt in [1, 2] {
        let outcome = cancel(shop.clone(), 17, Context::for_test(1, attempt)).await;
        assert!(matches!(outcome, Outcome::Done));
    }
    assert_eq!(*shop.cancelled.lock().unwrap(), BTreeSet::from([17]));
}

#[tokio::test]
async fn a_closed_shop_is_tried_again_after_a_minute() {
    let shop = Arc::new(Shop::default());
    shop.is_closed.store(true, Ordering::SeqCst);
    let handler = move |order: i64, context: Context| cancel(shop.clone(), order, context);
    let Outcome::RetryAfter(pause, error) = run_once(handler, 17).await else { panic!("it is tried again") };
    assert_eq!((pause, &*error.to_string()), (Duration::from_secs(60), "closed at attempt 1"));
}

#[tokio::test]
async fn a_customer_has_half_an_hour_to_pay() {
    let server = Server::start();
    let (_, orders) = queues(&server.url()).await;
    place(&orders, 17).await.unwrap();
    assert_pending(&orders, &17, SystemTime::now() + TO_PAY, Duration::from_secs(60)).await;
}

#[tokio::test]
async fn what_is_due_is_cancelled() {
    let server = Server::start();
    let (due, orders) = queues(&server.url()).await;
    place(&orders, 17).await.unwrap();
    assert_eq!(make_due(&orders).await, 1);

    assert_eq!(due.take().await.unwrap(), 17); // Or let the service take it:

    place(&orders, 18).await.unwrap();
    make_due(&orders).await;
    let shop = Arc::new(Shop::default());
    let handler = {
        let shop = shop.clone();
        move |order: i64, context: Context| cancel(shop.clone(), order, context)
    };
    tokio::spawn(worker(&due).run_until(pending::<()>(), handler));
    until_async("18 is cancelled", || async { shop.cancelled.lock().unwrap().contains(&18) }).await;
}

#[tokio::test]
async fn a_shop_that_stays_closed_leaves_a_dead_letter() {
    let server = Server::start();
    let (due, _) = queues(&server.url()).await;
    due.put(&18).await.unwrap();
    let shop = Arc::new(Shop::default());
    shop.is_closed.store(true, Ordering::SeqCst);
    let handler = move |order: i64, context: Context| cancel(shop.clone(), order, context);
    let (stop, stopped) = oneshot::channel::<()>(); // The worker stops if `stop` is dropped, too.
    let running = tokio::spawn(worker(&due).run_until(stopped, handler));

    until_async("18 is dead", || async {
        due.unsettled().requeue_all(10).await.unwrap(); // It does not wait for a minute each time.
        due.dead_letters().len().await.unwrap() == 1
    })
    .await;
    let letter = due.dead_letters().read(None, 1).await.unwrap().remove(0);
    assert_eq!((letter.reason.as_str(), due.decode(&letter.payload).unwrap()), ("attempts", 18));
    stop.send(()).unwrap();
    assert_eq!(running.await.unwrap().unwrap().failed, 3);
}

#[tokio::test]
async fn an_order_whose_reply_is_lost_is_stored_once() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let (_, orders) = queues(&proxy.url()).await;

    proxy.hold_replies(true);
    let placed = tokio::spawn({
        let orders = orders.clone();
        async move { place(&orders, 17).await }
    });
    until_async("the server has answered", || async { proxy.held() > 0 }).await;
    proxy.cut(); // With the answer. The client connects again,
    proxy.hold_replies(false);

    placed.await.unwrap().unwrap(); // and learns that its call was executed.
    assert_eq!(orders.len().await.unwrap(), 1);
}
