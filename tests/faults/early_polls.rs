//! Polls of the delayed queue by the ten thousand, on a server that does not answer: what they cost is
//! bounded, and they end in time.

use std::time::Duration;

use futures::future::{join_all, poll_immediate};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{HOUR, Listener, MINUTE, ORDERED_LIST, builder, soon, still_builder, unread};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::dropping::{Queues, runtimes};

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[test]
fn polls_that_begin_and_are_dropped_cost_a_bounded_number_of_tasks() {
    const NUMBER: usize = 50_000;
    for runtime in runtimes() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        runtime.block_on(async {
            let queues = Queues::of_numbers(still_builder(&proxy)).await;
            let ticket = queues.delayed.offer(&7, HOUR).await.unwrap();
            proxy.hold_replies(true);
            let before = tasks();
            let mut most = 0;
            for n in 0..NUMBER {
                assert!(poll_immediate(Box::pin(queues.delayed.poll())).await.is_none());
                if n % 100 == 0 {
                    tokio::task::yield_now().await;
                    most = most.max(tasks() - before);
                }
            }
            assert!(most <= 2_000, "{NUMBER} polls that were dropped left {most} tasks");
            proxy.hold_replies(false);
            // Each of them gives the entry back.
            let back = || async {
                tasks() <= before + 10 && queues.delayed.cancel(&ticket).await.is_ok_and(|found| found)
            };
            until_async("the entry is back", back).await;
            queues.client.shutdown().await;
        });
    }
}

#[tokio::test]
async fn more_polls_than_there_are_tasks_are_answered_all() {
    let server = Server::start();
    let Queues { client, delayed, .. } = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
    for n in 0..5 {
        delayed
            .offer_all((1000 * n..1000 * (n + 1)).collect::<Vec<_>>().iter().map(|n| (n, HOUR)))
            .await
            .unwrap();
    }
    let polls = (0..6_000).map(|_| delayed.poll());
    let polled = timeout(2 * MINUTE, join_all(polls)).await.expect("answers");
    let mut polled: Vec<_> = polled.into_iter().filter_map(Result::unwrap).collect();
    polled.sort_unstable();
    assert_eq!(polled, (0..5_000).collect::<Vec<_>>());
    client.shutdown().await;
}

#[tokio::test]
async fn all_of_them_end_with_the_client() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy).command_timeout(Duration::from_secs(15))).await;
    proxy.hold_replies(true);
    let mut polls = JoinSet::new();
    for _ in 0..3_000 {
        let delayed = queues.delayed.clone();
        polls.spawn(async move { delayed.poll().await });
    }
    until_async("some are sent", || async { proxy.held() > 0 }).await;
    soon(queues.client.shutdown()).await;
    let ended: Vec<_> = soon(polls.join_all()).await;
    let closed = ended.iter().filter(|poll| poll.as_ref().is_err_and(|error| error.is_closed())).count();
    assert!(ended.iter().all(Result::is_err) && closed >= 1_900, "{closed} were closed, of {}", ended.len());
}

/// As for a payload that was ready: reported once, and retried.
#[tokio::test]
async fn an_entry_that_cannot_be_returned_is_reported() {
    let (listener, _listening) = Listener::start();
    let server = Server::start();
    let Queues { client, delayed, .. } = Queues::of_numbers(still_builder(&server)).await;
    delayed.offer(&7, HOUR).await.unwrap();
    let poll = unread(delayed.poll()).await;
    until_async("it is handed over", || async { server.list(ORDERED_LIST).is_empty() }).await;
    server.cmd(["SET", ORDERED_LIST, "of another type"]);
    drop(poll);
    let reports = || listener.named("redelay.return_to_list.failing");
    until_async("reported", || async { !reports().is_empty() }).await;
    let tries = server.command_calls("evalsha") + server.command_calls("eval");
    let more = || server.command_calls("evalsha") + server.command_calls("eval") > tries + 2;
    until_async("retried", || async { more() }).await;
    server.cmd(["DEL", ORDERED_LIST]);
    until_async("returned", || async { server.list(ORDERED_LIST).len() == 1 }).await;
    let [report] = &reports()[..] else { panic!("{:?}", reports()) };
    assert_eq!(report.fields["queue"], "q");
    assert!(report.fields["error"].contains("WRONGTYPE"), "{report:?}");
    client.shutdown().await;
}
