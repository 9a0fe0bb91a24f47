//! What the server's settings mean for a client: sizes of requests, eviction, passwords that change.

use std::collections::HashSet;
use std::time::Instant;

use redelay::{Client, Error, ErrorKind, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{HOUR, MINUTE, Queues, builder, ms, soon, still_builder, text};

#[track_caller]
fn is_too_large(error: &Error, limit: &str) {
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains(limit) && sentence.contains("max_payload"), "{sentence}");
}

#[tokio::test]
async fn a_call_above_a_limit_of_the_server_says_so() {
    for limit in ["client-query-buffer-limit", "proto-max-bulk-len"] {
        let server = Server::builder().config(format!("{limit} 1mb")).start();
        let proxy = Proxy::start(server.port());
        let queues = Queues::of_texts(still_builder(&proxy)).await;
        queues.delayed.offer(&text("small"), HOUR).await.unwrap();
        let large = "x".repeat(3 << 20);
        is_too_large(&queues.ready.put(&large).await.unwrap_err(), limit);
        is_too_large(&queues.delayed.offer(&large, HOUR).await.unwrap_err(), limit);
        assert!(proxy.accepted() <= 8, "{}", proxy.accepted());
        assert_eq!((queues.delayed.len().await.unwrap(), queues.ready.len().await.unwrap()), (1, 0));
    }
}

/// The server limits the size of an argument, and not of the call. An offer whose reply is lost is sent again
/// with its receipt.
#[tokio::test]
async fn many_arguments_above_a_limit_are_executed_once() {
    let server = Server::builder().config("client-query-buffer-limit 1mb").start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_texts(still_builder(&proxy)).await;
    let delayed = &queues.delayed;
    delayed.offer(&text("small"), HOUR).await.unwrap();
    let mut stored = 1;
    for (many, each) in [(40, 65_000), (15_000, 100)] {
        let payloads: Vec<_> = (0..many).map(|n| format!("{n:>each$}")).collect();
        let losses = proxy.swallowing();
        proxy.swallow_behind(Some(1 << 19));
        let lose = async {
            until_async("a reply is kept", || async { proxy.swallowing() > losses }).await;
            let count = || server.get::<usize, _>(["ZCARD", "redisson_delay_queue_timeout:{q}"]);
            until_async("it is executed", || async { count() > stored }).await;
            proxy.swallow_behind(None);
            proxy.cut();
        };
        let offer = delayed.offer_all(payloads.iter().map(|payload| (payload, HOUR)));
        let (offered, ()) = tokio::join!(offer, lose);
        assert_eq!(offered.unwrap().len(), many);
        stored += many;
        assert_eq!(delayed.len().await.unwrap() as usize, stored);
    }
}

/// The server does not tell its limits: they are only suspected.
#[tokio::test]
async fn a_call_that_ends_its_connection_again_and_again_may_be_too_large() {
    let server = Server::builder()
        .config("client-query-buffer-limit 1mb")
        .config("rename-command CONFIG \"\"")
        .start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_texts(still_builder(&proxy)).await;
    let accepted = proxy.accepted();
    let begun = Instant::now();
    let error = queues.delayed.offer(&"x".repeat(3 << 20), HOUR).await.unwrap_err();
    println!("after {:?}", begun.elapsed());
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    let sentence = error.to_string();
    assert!(sentence.contains("client-query-buffer-limit") && sentence.contains("max_payload"), "{sentence}");
    assert!(proxy.accepted() <= accepted + 15, "{}", proxy.accepted());
}

/// Nobody knows the limits, and the network is at fault.
#[tokio::test]
async fn a_large_call_is_sent_again_as_often_as_a_small_one() {
    let server = Server::builder().config("rename-command CONFIG \"\"").start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_texts(still_builder(&proxy)).await;
    queues.delayed.offer(&text("small"), HOUR).await.unwrap();
    proxy.swallow_behind(Some(1 << 19));
    let large = "x".repeat(3 << 20);
    let lose = async {
        for n in 1..=5 {
            until_async("a reply is kept", || async { proxy.swallowing() == n }).await;
            if n == 5 {
                proxy.swallow_behind(None);
            }
            proxy.cut();
        }
    };
    let (offered, ()) = tokio::join!(queues.delayed.offer(&large, HOUR).timeout(MINUTE), lose);
    offered.unwrap();
    assert_eq!(queues.delayed.len().await.unwrap(), 2);
}

/// The server is not asked for its limits then: a unit test has the time that it may take.
#[tokio::test]
async fn a_large_call_ends_in_time_in_an_outage() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_texts(still_builder(&proxy)).await;
    queues.delayed.offer(&text("small"), HOUR).await.unwrap();
    proxy.swallow_behind(Some(1 << 19));
    let large = "x".repeat(2 << 20);
    let lose = async {
        until_async("a reply is kept", || async { proxy.swallowing() == 1 }).await;
        proxy.refuse(true);
        proxy.cut();
    };
    let offer = soon(async { queues.delayed.offer(&large, HOUR).timeout(ms(4000)).await });
    let (offered, ()) = tokio::join!(offer, lose);
    assert_eq!(offered.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
}

#[cfg(feature = "tracing")]
#[tokio::test]
async fn an_eviction_policy_is_warned_of() {
    let (listener, _listening) = redelay_support::Listener::start();
    let server = Server::builder().config("maxmemory 100mb").config("maxmemory-policy allkeys-lru").start();
    let client = Client::builder().url(server.url()).client_name("warned").connect().await.unwrap();
    assert_eq!(client.stats().eviction_policy.as_deref(), Some("allkeys-lru"));
    let warned = || listener.named("redelay.eviction");
    assert_eq!(warned().len(), 1);
    assert_eq!(warned()[0].fields["policy"], "allkeys-lru");
    let reconnected = async || {
        let before = client.stats().reconnects;
        server.kill_client_named("warned");
        until_async("it is back", || async { client.stats().reconnects > before }).await;
    };
    reconnected().await;
    assert_eq!(warned().len(), 1, "it is known");
    server.cmd(["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    reconnected().await;
    assert_eq!(client.stats().eviction_policy, None);
    assert_eq!(warned().len(), 1);
}

/// It is said once of each server, and only of one that says so itself.
#[cfg(feature = "tracing")]
#[tokio::test]
async fn a_server_without_an_append_only_file_is_named() {
    let (listener, _listening) = redelay_support::Listener::start();
    let said = || listener.named("redelay.aof.off");
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let client = Client::builder().url(proxy.url()).client_name("told").connect().await.unwrap();
    assert_eq!(client.stats().has_append_only_file, Some(false));
    assert_eq!(said().len(), 1);
    assert_eq!(said()[0].fields["server"], format!("127.0.0.1:{}", proxy.port()));
    assert_eq!(said()[0].level, tracing::Level::INFO);
    let reconnected = async || {
        let before = client.stats().reconnects;
        server.kill_client_named("told");
        until_async("it is back", || async { client.stats().reconnects > before }).await;
    };
    reconnected().await;
    assert_eq!(said().len(), 1, "it is known");
    // As a service that does not show it. What was known stays.
    proxy.rewrite_commands("persistence\r\n", "persistencX\r\n");
    reconnected().await;
    assert_eq!(client.stats().has_append_only_file, Some(false));
    let other = Client::connect(&proxy.url()).await.unwrap();
    assert_eq!(other.stats().has_append_only_file, None);
    assert_eq!(other.stats().eviction_policy, None);
    proxy.rewrite_nothing();
    server.cmd(["CONFIG", "SET", "appendonly", "yes"]);
    let other = Client::connect(&proxy.url()).await.unwrap();
    assert_eq!(other.stats().has_append_only_file, Some(true));

    // A user who may not ask.
    server.cmd(["CONFIG", "SET", "appendonly", "no"]);
    server.cmd(["ACL", "SETUSER", "clerk", "on", ">secret", "~*", "&*", "+@all", "-info"]);
    let url = format!("redis://clerk:secret@127.0.0.1:{}", server.port());
    let clerk = Client::connect(&url).await.unwrap();
    assert_eq!(clerk.stats().has_append_only_file, None);
    assert_eq!(said().len(), 1, "{:?}", said());
}

/// The password changes under a client that works, with takers and receivers.
#[cfg(feature = "tracing")]
#[tokio::test]
async fn a_password_that_is_wrong_from_now_on_is_the_reason() {
    let (listener, _listening) = redelay_support::Listener::start();
    let server = Server::start();
    let set = |password: &str| {
        let password = format!(">{password}");
        server.cmd(["ACL", "SETUSER", "clerk", "on", "resetpass", &password, "~*", "&*", "+@all"]);
        server.cmd(["CLIENT", "KILL", "USER", "clerk"]);
    };
    set("old");
    let url = format!("redis://clerk:old@127.0.0.1:{}", server.port());
    let client = Client::builder().url(url).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    let receiver = ready.receiver();
    let receive = receiver.receive();
    let check = async {
        until_async("it waits", || async { server.blocked_clients() == 1 }).await;
        until_async("it listens", || async { server.subscribers("redisson_delay_queue_channel:{q}") == 1 })
            .await;
        set("new");
        let refused = || listener.named("redelay.connection.refused");
        let says = || async {
            let last = client.stats().last_error.map(|error| error.message).unwrap_or_default();
            let connections: HashSet<_> =
                refused().iter().map(|event| event.fields["connection"].clone()).collect();
            last.contains("WRONGPASS") && connections.len() == 3
        };
        until_async("the reason is named", says).await;
        for event in refused() {
            assert!(event.fields["error"].contains("WRONGPASS"), "{event:?}");
            let queue = if event.fields["connection"] == "pops" { "q" } else { "" };
            assert_eq!(event.fields["queue"], queue, "{event:?}");
        }
        // It is said once, or again if a busy machine had another reason in between. There are ten tries.
        let said = refused().len();
        tokio::time::sleep(ms(2_000)).await;
        assert_eq!(listener.named("redelay.connection.lost").len(), 3);
        assert!(refused().len() < said + 3, "{:?}", refused());
        set("old");
        until_async("it is back", || async { client.stats().connected }).await;
        until_async("all are back", || async { listener.named("redelay.connection.recovered").len() == 3 })
            .await;
        delayed.offer(&1, ms(10)).await.unwrap();
    };
    let (delivery, ()) = tokio::join!(receive, check);
    delivery.unwrap().ack().await.unwrap();
}

/// It is tried again now and then, each time with a new connection, on which all others are subscribed again.
#[tokio::test]
async fn a_forbidden_channel_costs_the_others_few_commands() {
    const OTHERS: usize = 300;
    let server = Server::start();
    let channels = ["resetchannels", "&*{q*", "&redelay:*"];
    server.cmd(["ACL", "SETUSER", "clerk", "on", ">secret", "~*", "+@all"].into_iter().chain(channels));
    let client = builder(&server).credentials("clerk", "secret").connect().await.unwrap();
    let names = (0..OTHERS).map(|number| format!("q{number}")).chain(["x".to_owned()]);
    let queues: Vec<_> =
        names.map(|name| client.delayed_queue(&client.blocking_queue::<i64>(&name, codec::Long))).collect();
    let are_subscribed = || async {
        let channels: Vec<String> = server.get(["PUBSUB", "CHANNELS", "redisson_delay_queue_channel:{q*"]);
        channels.len() == OTHERS
    };
    let after_refusals = async |refusals: u64| {
        until_async("it is refused", || async { server.errors("NOPERM") >= refusals }).await;
        until_async("the others are subscribed", are_subscribed).await;
    };
    // Those of the search for it are behind it.
    after_refusals(10).await;
    let (commands, refusals) = (server.command_calls("subscribe"), server.errors("NOPERM"));
    after_refusals(refusals + 1).await;
    let (commands, refusals) =
        (server.command_calls("subscribe") - commands, server.errors("NOPERM") - refusals);
    assert!(commands <= 20 * refusals, "{commands} for {refusals} tries");
    drop(queues);
}

/// The connection is replaced on purpose, because a channel is forbidden, and meets another password.
#[cfg(feature = "tracing")]
#[tokio::test]
async fn a_wrong_password_is_named_after_a_refused_channel() {
    let (listener, _listening) = redelay_support::Listener::start();
    let server = Server::start();
    let set = |words: &[&str]| drop(server.cmd(["ACL", "SETUSER", "clerk"].iter().chain(words)));
    set(&["on", ">old", "~*", "resetchannels", "&redisson_delay_queue_channel:{q}", "+@all"]);
    let client = Client::connect(&format!("redis://clerk:old@127.0.0.1:{}", server.port())).await.unwrap();
    let delayed = |name: &str| client.delayed_queue(&client.blocking_queue(name, codec::Long));
    let _permitted = delayed("q");
    until_async("it listens", || async { server.subscribers("redisson_delay_queue_channel:{q}") == 1 }).await;
    set(&["resetpass", ">new"]);
    let _forbidden = delayed("p");
    until_async("the reason is named", || async { !listener.named("redelay.connection.refused").is_empty() })
        .await;
    let event = &listener.named("redelay.connection.refused")[0];
    assert_eq!(event.fields["connection"], "announcements", "{event:?}");
    assert!(event.fields["error"].contains("WRONGPASS"), "{event:?}");
    set(&["resetpass", ">old"]);
    until_async("it is back", || async { !listener.named("redelay.connection.recovered").is_empty() }).await;
}

#[cfg(feature = "tracing")]
#[tokio::test]
async fn a_client_says_once_what_it_is_connected_to() {
    let (listener, _listening) = redelay_support::Listener::start();
    let server = Server::builder().appendonly(true).start();
    let client = Client::builder().url(server.url()).connect().await.unwrap();
    let events = listener.events();
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &listener.named("redelay.connected")[0];
    assert_eq!(event.fields["server"], format!("127.0.0.1:{}", server.port()));
    assert_eq!(event.fields["version"].to_lowercase(), server.version().to_string().to_lowercase());
    drop(client);
}

/// Some clients take `bob@` for a user, and redis-cli takes it for a password.
#[tokio::test]
async fn a_user_without_a_password() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "bob", "on", "nopass", "~*", "&*", "+@all", "-llen"]);
    let at = format!("127.0.0.1:{}", server.port());
    let error = Client::connect(&format!("redis://bob@{at}")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("user:@"), "{error}");
    let client = Client::connect(&format!("redis://bob:@{at}")).await.unwrap();
    let error = client.blocking_queue::<i64>("q", codec::Long).len().await.unwrap_err();
    assert!(error.to_string().contains("NOPERM"), "it is bob: {error}");
}
