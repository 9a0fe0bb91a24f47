//! Users without the permission to subscribe or to publish.
#![cfg(feature = "tracing")]

use std::time::{Duration, Instant};

use redelay::{Client, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{CHANNEL, Listener, MINUTE, ms, soon};

use super::{connected, each_version};

/// The number of SUBSCRIBE commands that the server has refused.
fn refusals(server: &Server) -> u64 {
    let stats = server.info("commandstats");
    let subscribe = stats.lines().find(|line| line.starts_with("cmdstat_subscribe:"));
    let count =
        subscribe.and_then(|line| line.split(',').find_map(|part| part.strip_prefix("rejected_calls=")));
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// The URL of a user who may do everything except subscribe and publish.
fn with_deaf_user(server: &Server, port: u16) -> String {
    server.cmd(["ACL", "SETUSER", "deaf", "on", ">secret", "allkeys", "resetchannels", "+@all"]);
    format!("redis://deaf:secret@127.0.0.1:{port}")
}

#[tokio::test]
async fn without_the_permission_to_subscribe_entries_are_delivered_and_it_is_reported_once() {
    let (listener, _listening) = Listener::start();
    let server = Server::start();
    let url = with_deaf_user(&server, server.port());
    let taking = connected(Client::builder().url(url).sweep_interval(Duration::from_secs(1))).await;
    let offering = connected(Client::builder().url(server.url()).transfer(false)).await;
    for n in 0..3 {
        let take = tokio::spawn({
            let ready = taking.ready.clone();
            async move { ready.take().await }
        });
        offering.delayed.offer(&n, ms(1)).await.unwrap();
        assert_eq!(soon(take).await.unwrap().unwrap(), n);
    }
    until_async("refused again", || async { refusals(&server) >= 2 }).await;
    let times = |name: &str| listener.named(name).len();
    let failing = listener.named("redelay.announcements.failing");
    assert!(failing.len() == 1 && failing[0].fields["error"].starts_with("NOPERM"), "{failing:?}");
    assert_eq!(times("redelay.announcements.recovered"), 0);
    assert_eq!(server.subscribers(CHANNEL), 0);

    server.cmd(["ACL", "SETUSER", "deaf", "allchannels"]);
    until_async("it listens", || async { server.subscribers(CHANNEL) == 1 }).await;
    until_async("the recovery is reported", || async { times("redelay.announcements.recovered") == 1 }).await;
    assert_eq!(times("redelay.announcements.failing"), 1);
    // By the announcement: a sweep would not be that quick a hundred times in a row.
    for n in 0..100 {
        offering.delayed.offer(&n, ms(1)).await.unwrap();
        assert_eq!(soon(taking.ready.take()).await.unwrap(), n);
    }
}

/// The pauses between the tries are 1, 2 and 4 s.
#[tokio::test]
async fn a_refusal_does_not_make_a_busy_loop() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let begun = Instant::now();
    let _queues = connected(Client::builder().url(with_deaf_user(&server, proxy.port()))).await;
    until_async("refused again and again", || async { refusals(&server) >= 4 }).await;
    assert!(begun.elapsed() >= Duration::from_secs(7), "{:?}", begun.elapsed());
    // One connection for commands, and one for each try.
    assert!(proxy.accepted() <= 6, "{}", proxy.accepted());
}

#[tokio::test]
async fn a_channel_that_is_refused_does_not_keep_others_waiting() {
    for server in each_version() {
        let user = with_deaf_user(&server, server.port());
        server.cmd(["ACL", "SETUSER", "deaf", "&redisson_delay_queue_channel:{good-*"]);
        let client = Client::connect(&user).await.unwrap();
        let names: Vec<_> = (0..20).map(|n| format!("good-{n}")).chain(["bad".to_owned()]).collect();
        let queues: Vec<_> =
            names.iter().map(|name| client.blocking_queue::<i64>(name, codec::Long)).collect();
        let delayed: Vec<_> = queues.iter().map(|queue| client.delayed_queue(queue)).collect();
        for name in &names[..20] {
            let channel = format!("redisson_delay_queue_channel:{{{name}}}");
            until_async("it listens", || async { server.subscribers(&channel) == 1 }).await;
        }
        // A queue that is opened later does not wait for the refused one, either.
        let late = client.blocking_queue::<i64>("good-late", codec::Long);
        let watched = client.delayed_queue(&late);
        let channel = "redisson_delay_queue_channel:{good-late}";
        until_async("it listens", || async { server.subscribers(channel) == 1 }).await;
        drop((delayed, watched));
    }
}

#[tokio::test]
async fn without_the_permission_to_publish_offers_work() {
    for server in each_version() {
        let offering =
            connected(Client::builder().url(with_deaf_user(&server, server.port())).transfer(false)).await;
        let taking =
            connected(Client::builder().url(server.url()).sweep_interval(Duration::from_secs(1))).await;
        offering.delayed.offer(&1, ms(1)).await.unwrap();
        offering.delayed.offer_all([(&2, ms(1)), (&3, ms(2))]).await.unwrap();
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(soon(taking.ready.take()).await.unwrap());
        }
        assert_eq!(taken, [1, 2, 3], "{}", server.version());
        let ticket = offering.delayed.offer(&4, MINUTE).await.unwrap();
        assert!(offering.delayed.reschedule(&ticket, ms(1)).await.unwrap(), "{}", server.version());
        assert_eq!(soon(taking.ready.take()).await.unwrap(), 4);
    }
}
