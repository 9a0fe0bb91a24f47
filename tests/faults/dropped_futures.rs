//! Drops futures at each of their polls, thousands of times, while other tasks produce and take. Every
//! acknowledged payload is received exactly once, or is still there at the end. A dropped offer is stored at
//! most once; if it was alone, exactly once.
//!
//! `give_back.rs` drops single futures at a chosen moment. `lost_replies.rs` is about lost replies.

use std::collections::BTreeSet;

use futures::future::FutureExt;
use futures::stream::StreamExt;
use redelay::ErrorKind;
use redelay_fixture::Server;
use redelay_support::{HOUR, MINUTE, builder, ms};

use crate::dropping::{
    Call, Moment, Queues, Traffic, drop_at, drop_calls, drops, in_time, produce, runtimes,
};
use crate::ledger::Offered;

/// The number of tasks that drop calls concurrently, so that thousands take a second or two.
const DROPPING: usize = 8;

/// Drops calls at each of their polls while a producer puts and offers, and other tasks take, in the same
/// client and in another one.
fn drop_under_load(victim: Call) {
    let take: Call = |queues| async move { vec![queues.ready.take().await.unwrap()] }.boxed();
    let poll_any: Call = |queues| {
        async move {
            let polled = queues.ready.poll_from_any(HOUR, &["other", "moved"]).await.unwrap();
            polled.map(|(_, element)| element).into_iter().collect()
        }
        .boxed()
    };
    for runtime in runtimes() {
        let server = Server::start();
        runtime.block_on(async {
            let queues = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
            let others = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
            let traffic = Traffic::with_room(2 * (DROPPING + 2));
            let takers = [
                tokio::spawn(traffic.clone().keep_taking(queues.clone(), take)),
                tokio::spawn(traffic.clone().keep_taking(others.clone(), poll_any)),
            ];
            let producer = tokio::spawn(produce(traffic.clone(), queues.clone()));
            let dropping = [(); DROPPING].map(|()| {
                tokio::spawn(drop_calls(traffic.clone(), queues.clone(), victim, drops() / DROPPING))
            });
            for dropping in dropping {
                dropping.await.unwrap();
            }
            traffic.over.cancel();
            producer.await.unwrap();
            for taker in takers {
                taker.await.unwrap();
            }
            queues.client.shutdown().await;
            others.client.shutdown().await;
            traffic.judge(&server);
            traffic.assert_nobody_stalled();
        });
    }
}

/// Repeats a poll whose time is over before there is a connection: on a busy machine, to open one takes long.
/// Nothing was executed.
async fn connected<T, F: Future<Output = redelay::Result<T>>>(poll: impl Fn() -> F) -> T {
    loop {
        match poll().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            polled => return polled.unwrap(),
        }
    }
}

#[test]
fn take() {
    drop_under_load(|queues| async move { vec![queues.ready.take().await.unwrap()] }.boxed());
}

#[test]
fn take_last() {
    drop_under_load(|queues| async move { vec![queues.ready.take_last().await.unwrap()] }.boxed());
}

#[test]
fn poll() {
    drop_under_load(|queues| async move { Vec::from_iter(queues.ready.poll().await.unwrap()) }.boxed());
}

#[test]
fn poll_timeout() {
    drop_under_load(|queues| {
        async move { Vec::from_iter(connected(|| queues.ready.poll_timeout(ms(2))).await) }.boxed()
    });
}

#[test]
fn drain() {
    drop_under_load(|queues| {
        async move { queues.ready.poll_many(3).await.unwrap().into_iter().map(Result::unwrap).collect() }
            .boxed()
    });
}

#[test]
fn poll_from_any() {
    drop_under_load(|queues| {
        async move {
            let polled = queues.ready.poll_from_any(HOUR, &["other", "moved"]).await.unwrap();
            polled.map(|(_, element)| element).into_iter().collect()
        }
        .boxed()
    });
}

#[test]
fn poll_many_from_any() {
    drop_under_load(|queues| {
        async move {
            let polled = queues.ready.poll_many_from_any(ms(5), 3, &["other"]).await.unwrap();
            polled.into_iter().flat_map(|(_, several)| several).map(Result::unwrap).collect()
        }
        .boxed()
    });
}

#[test]
fn a_stream() {
    drop_under_load(|queues| {
        async move { vec![queues.ready.into_stream().next().await.unwrap().unwrap()] }.boxed()
    });
}

#[test]
fn poll_last_and_offer_first_to_timeout() {
    drop_under_load(|queues| {
        async move {
            // The payload is in the other list now, where a taker finds it. On a busy machine, the connection
            // of a pop may be given up: then it is in one of the two.
            let poll = || queues.ready.poll_last_and_offer_first_to_timeout("moved", ms(3));
            connected(|| async {
                match poll().await {
                    Err(error) if error.is_outcome_unknown() => Ok(None),
                    moved => moved,
                }
            })
            .await;
            vec![]
        }
        .boxed()
    });
}

#[test]
fn poll_of_the_delayed_queue() {
    drop_under_load(|queues| async move { Vec::from_iter(queues.delayed.poll().await.unwrap()) }.boxed());
}

#[test]
fn poll_many_of_the_delayed_queue() {
    drop_under_load(|queues| {
        async move { queues.delayed.poll_many(3).await.unwrap().into_iter().map(Result::unwrap).collect() }
            .boxed()
    });
}

/// Drops offers while another task takes, and judges what has become of them.
fn drop_beside_a_taker<T>(dropping: impl AsyncFn(Traffic, Queues) -> T, judge: impl Fn(&Traffic, T)) {
    let take: Call = |queues| async move { vec![queues.ready.take().await.unwrap()] }.boxed();
    for runtime in runtimes() {
        let server = Server::start();
        runtime.block_on(async {
            let queues = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
            let traffic = Traffic::with_room(0);
            let taker = tokio::spawn(traffic.clone().keep_taking(queues.clone(), take));
            let dropped = dropping(traffic.clone(), queues.clone()).await;
            traffic.over.cancel();
            taker.await.unwrap();
            queues.client.shutdown().await;
            traffic.judge(&server);
            judge(&traffic, dropped);
        });
    }
}

/// Drops calls of `size` offers each.
fn drop_offers(size: i64) {
    let dropping = async |traffic: Traffic, queues: Queues| {
        let mut dropped = Vec::new();
        for n in 0.. {
            let batch = traffic.ledger.begin(size);
            let offers = batch.iter().map(|element| (element, ms(*element as u64 % 11)));
            match drop_at(Moment::number(n), queues.delayed.offer_all(offers)).await {
                Some(tickets) => {
                    assert_eq!(tickets.unwrap().len(), batch.len());
                    traffic.ledger.end(&batch, Offered::Acknowledged);
                }
                None => dropped.push(batch),
            }
            if dropped.len() == drops() {
                break;
            }
        }
        dropped
    };
    drop_beside_a_taker(dropping, |traffic, dropped| {
        let record = traffic.ledger.record();
        let stored: BTreeSet<_> = record.taken.iter().collect();
        for batch in dropped {
            let of_one_offer = batch.iter().filter(|number| stored.contains(number)).count();
            assert!([0, batch.len()].contains(&of_one_offer), "{of_one_offer} of {size} are stored");
        }
    });
}

/// Drops offers that are alone: the first poll sends them, and nothing that happens later takes that back.
#[test]
fn a_lone_offer() {
    let dropping = async |traffic: Traffic, queues: Queues| {
        let (mut n, mut dropped) = (0, 0);
        while dropped < drops() {
            // When this one has ended, the next one is alone.
            let before = traffic.ledger.begin(1);
            queues.delayed.offer(&before[0], ms(n as u64 % 11)).await.unwrap();
            let next = traffic.ledger.begin(1);
            match drop_at(Moment::number(n), queues.delayed.offer(&next[0], ms(n as u64 % 7))).await {
                Some(ticket) => drop(ticket.unwrap()),
                None => dropped += 1,
            }
            traffic.ledger.end(&[before[0], next[0]], Offered::Acknowledged);
            n += 1;
        }
    };
    drop_beside_a_taker(dropping, |_, ()| {});
}

/// Drops offers of several tasks, which share calls or not.
#[test]
fn offer() {
    let dropping = async |traffic: Traffic, queues: Queues| {
        let dropping = [(); DROPPING].map(|()| {
            let (traffic, queues) = (traffic.clone(), queues.clone());
            tokio::spawn(async move {
                let (mut n, mut dropped) = (0, 0);
                while dropped < drops() / DROPPING {
                    let next = traffic.ledger.begin(1);
                    let offer = queues.delayed.offer(&next[0], ms(next[0] as u64 % 11));
                    match in_time(drop_at(Moment::number(n), offer)).await {
                        Some(Some(ticket)) => {
                            ticket.unwrap();
                            traffic.ledger.end(&next, Offered::Acknowledged);
                        }
                        Some(None) => dropped += 1,
                        None => return traffic.stalled(),
                    }
                    n += 1;
                }
            })
        });
        for dropping in dropping {
            dropping.await.unwrap();
        }
    };
    drop_beside_a_taker(dropping, |traffic, ()| traffic.assert_nobody_stalled());
}

#[test]
fn offer_all_of_one() {
    drop_offers(1);
}

#[test]
fn offer_all() {
    drop_offers(3);
}

/// A single taker is dropped at each of its polls. What it receives and what is left at the end is what was
/// put, in order.
fn keeps_the_order(victim: impl AsyncFn(Traffic, Queues)) {
    for runtime in runtimes() {
        let server = Server::start();
        runtime.block_on(async {
            let queues = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
            let traffic = Traffic::with_room(6);
            let producer = tokio::spawn({
                let (traffic, ready) = (traffic.clone(), queues.ready.clone());
                async move {
                    while traffic.room().await {
                        let next = traffic.ledger.begin(1);
                        ready.put(&next[0]).await.unwrap();
                        traffic.ledger.end(&next, Offered::Acknowledged);
                    }
                }
            });
            victim(traffic.clone(), queues.clone()).await;
            traffic.over.cancel();
            producer.await.unwrap();
            queues.client.shutdown().await;
            traffic.judge(&server);
            let found = traffic.ledger.record().taken.clone();
            assert_eq!(found.windows(2).find(|pair| pair[0] >= pair[1]), None);
            traffic.assert_nobody_stalled();
        });
    }
}

#[test]
fn a_single_taker_keeps_the_order() {
    let call: Call = |queues| async move { vec![queues.ready.take().await.unwrap()] }.boxed();
    keeps_the_order(async |traffic, queues| drop_calls(traffic, queues, call, drops()).await);
}

#[test]
fn a_single_drainer_keeps_the_order() {
    let call: Call = |queues| {
        async move { queues.ready.poll_many(3).await.unwrap().into_iter().map(Result::unwrap).collect() }
            .boxed()
    };
    keeps_the_order(async |traffic, queues| drop_calls(traffic, queues, call, drops()).await);
}

#[test]
fn a_single_taker_with_a_timeout_keeps_the_order() {
    let call: Call =
        |queues| async move { Vec::from_iter(queues.ready.poll_timeout(ms(1)).await.unwrap()) }.boxed();
    keeps_the_order(async |traffic, queues| drop_calls(traffic, queues, call, drops()).await);
}

#[test]
fn a_single_taker_that_looks_before_it_waits_keeps_the_order() {
    let call: Call = |queues| {
        async move {
            match queues.ready.poll().await.unwrap() {
                Some(element) => vec![element],
                None => vec![queues.ready.take().await.unwrap()],
            }
        }
        .boxed()
    };
    keeps_the_order(async |traffic, queues| drop_calls(traffic, queues, call, drops()).await);
}

#[test]
fn a_stream_whose_nexts_are_dropped_keeps_the_order() {
    keeps_the_order(async |traffic, queues| {
        let mut stream = queues.ready.into_stream();
        let (mut n, mut dropped) = (0, 0);
        while dropped < drops() {
            match in_time(drop_at(Moment::number(n), stream.next())).await {
                Some(Some(element)) => traffic.receive(vec![element.expect("an open client").unwrap()]),
                Some(None) => dropped += 1,
                None => return traffic.stalled(),
            }
            n += 1;
        }
    });
}
