use std::collections::{BTreeMap, BTreeSet};

use async_nats::jetstream::{self, stream};
use bytes::Bytes;
use redelay::{BlockingQueue, codec};
use redelay_fixture::{Server, until_async};
use redelay_patterns::to_broker::forward;
use redelay_support::{builder, ms, soon};

use crate::nats::Nats;

const ORDERS: u64 = 1000;

async fn stored(broker: &jetstream::Context) -> u64 {
    // While the broker is away, the answer is an error.
    match broker.get_stream("orders").await {
        Ok(stream) => stream.cached_info().state.messages,
        Err(_) => 0,
    }
}

/// What the stream has: message id and payload of each message.
async fn messages(broker: &jetstream::Context) -> Vec<(String, Bytes)> {
    let stream = broker.get_stream("orders").await.unwrap();
    let mut all = Vec::new();
    for sequence in 1..=stream.cached_info().state.last_sequence {
        let message = stream.get_raw_message(sequence).await.unwrap();
        all.push((message.headers.get("Nats-Msg-Id").unwrap().to_string(), message.payload));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_broker_gets_each_message_once_although_it_was_killed() {
    let (server, nats) = (Server::start(), Nats::start());
    let broker = nats.connect().await;
    let config = stream::Config {
        name: "orders".into(),
        subjects: vec!["orders.due".into()],
        ..stream::Config::default()
    };
    broker.create_stream(config).await.unwrap();

    let client = builder(&server).connect().await.unwrap();
    let due: BlockingQueue<Bytes> = client.blocking_queue("orders", codec::Bytes);
    let delayed = client.delayed_queue(&due);
    let orders: Vec<Bytes> = (0..ORDERS).map(|order| format!("order {order}").into()).collect();
    let running = tokio::spawn({
        let (due, broker) = (due.clone(), broker.clone());
        async move { forward(&due, broker).await }
    });
    let (before, during) = orders.split_at(orders.len() / 2);
    delayed.offer_all(before.iter().zip((0..).map(ms))).await.unwrap();
    until_async("some are stored", || async { stored(&broker).await > ORDERS / 10 }).await;
    nats.kill_9();
    delayed.offer_all(during.iter().zip((0..).map(ms))).await.unwrap();
    // More than the worker has slots.
    until_async("publishes fail", || async {
        let waiting = due.unsettled().waiting(None, ORDERS as usize).await.unwrap();
        waiting.iter().filter(|message| message.attempt > 1).count() > 70
    })
    .await;
    nats.start_again();
    until_async("all are acknowledged", || async {
        due.stats().await.unwrap().receiving.acknowledged == ORDERS
    })
    .await;
    client.stop_taking().await;
    let stopped = soon(running).await.unwrap().unwrap();

    let messages = messages(&broker).await;
    let ids: BTreeSet<&str> = messages.iter().map(|(id, _)| &**id).collect();
    let mut payloads = BTreeMap::new();
    for (_, payload) in &messages {
        *payloads.entry(payload).or_insert(0) += 1;
    }
    assert_eq!((messages.len(), ids.len(), payloads.len()), (1000, 1000, 1000));
    assert!(orders.iter().all(|order| payloads.get(order) == Some(&1)));
    assert_eq!((stopped.acknowledged, stopped.failed > 70), (ORDERS, true));
    assert_eq!(due.dead_letters().len().await.unwrap(), 0);
}
