//! Links so slow that a script takes longer to send than a command may take.

use std::time::{Duration, Instant};

use redelay_fixture::{Proxy, Server, until_async_within};
use redelay_support::{MINUTE, Queues, builder, ms, still_builder};

/// After a restart or a `SCRIPT FLUSH` the server knows no script, and the one that transfers has 13 KB.
#[tokio::test]
async fn what_is_due_moves_after_the_server_has_forgotten_the_scripts() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy)).await;
    let producer = Queues::of_numbers(still_builder(&server)).await;
    queues.delayed.offer(&1, ms(1)).await.unwrap();
    assert_eq!(queues.ready.take().await.unwrap(), 1);
    proxy.delay(ms(200));
    // On a link that takes longer than a connection may be silent, the first try is in vain, and the second has more time.
    for (n, speed, lost) in [(2, 2000, 0), (3, 2000, 0), (4, 1000, 1)] {
        proxy.throttle(speed);
        server.flush_scripts();
        let accepted = proxy.accepted();
        let begun = Instant::now();
        producer.delayed.offer(&n, ms(1)).await.unwrap();
        until_async_within(2 * MINUTE, "it is moved", || async { server.list("q").len() == 1 }).await;
        println!("moved after {:?}", begun.elapsed());
        assert_eq!(queues.ready.take().await.unwrap(), n);
        let given_up = proxy.accepted() - accepted;
        assert!(given_up <= lost, "at {speed} bytes a second, {given_up} connections were given up");
    }
}

/// More time for a script is no more time for a server that is gone.
#[tokio::test]
async fn a_silent_server_is_noticed_when_the_script_was_loaded() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy).command_timeout(ms(1000))).await;
    server.flush_scripts();
    queues.delayed.offer(&1, ms(1)).await.unwrap();
    assert_eq!(queues.ready.take().await.unwrap(), 1);
    let accepted = proxy.accepted();
    proxy.strand();
    let begun = Instant::now();
    until_async_within(MINUTE, "a new connection", || async {
        queues.ready.len().await.is_ok() && proxy.accepted() > accepted
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(4), "after {:?}", begun.elapsed());
}
