use std::future::pending;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use redelay::{Client, codec};
use redelay_fixture::{Program, Server, until, until_async};
use redelay_patterns::reliable_list::work;
use redelay_support::{builder, soon};

const LEASE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn an_order_survives_the_process_that_works_on_it() {
    let server = Server::start();
    let client = builder(&server).connect().await.unwrap();
    let orders = client.blocking_queue::<String>("orders", codec::String);
    orders.put("coffee").await.unwrap();

    let url = server.url();
    let process = Program::start_ignored_test("reliable_list::never_ends", &[("PATTERNS_URL", &url)]);
    until("the other process works on it", || process.output().contains("ships coffee, attempt 1, "));
    let output = process.output();
    let id = output.split("attempt 1, ").nth(1).unwrap().lines().next().unwrap();
    drop(process); // SIGKILL

    orders.put("tea").await.unwrap();
    let seen = Mutex::new(Vec::new());
    let working = work(&orders, LEASE, async |order| {
        let seen = {
            let mut seen = seen.lock().unwrap();
            seen.push((order.value().to_string(), order.attempt(), order.id().to_string()));
            seen.len()
        };
        if seen == 3 {
            client.stop_taking().await;
        }
        if (order.value().as_str(), order.attempt()) == ("tea", 1) {
            Err(io::Error::other("no tea"))
        } else {
            Ok(())
        }
    });
    let retrying = async {
        until_async("tea waits for its retry", || async {
            !orders.unsettled().waiting(None, 1).await.unwrap().is_empty()
        })
        .await;
        let waiting = orders.unsettled().waiting(None, 1).await.unwrap().remove(0);
        assert!(orders.unsettled().requeue(waiting.id).await.unwrap());
    };
    soon(async { tokio::join!(working, retrying) }).await;
    let seen = seen.into_inner().unwrap();
    let of = |name: &str| seen.iter().filter(|(order, ..)| order == name).collect::<Vec<_>>();
    assert_eq!(of("coffee"), [&("coffee".to_owned(), 2, id.to_owned())]);
    assert_eq!(of("tea").iter().map(|(_, attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(orders.unsettled().len().await.unwrap(), 0);
    assert_eq!(orders.dead_letters().len().await.unwrap(), 0);
}

#[tokio::test]
#[ignore = "the process that dies"]
async fn never_ends() {
    let client = Client::connect(&std::env::var("PATTERNS_URL").unwrap()).await.unwrap();
    let orders = client.blocking_queue::<String>("orders", codec::String);
    work(&orders, LEASE, async |order| {
        println!("ships {}, attempt {}, {}", order.value(), order.attempt(), order.id());
        pending().await
    })
    .await;
}
