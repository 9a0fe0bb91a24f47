//! The symptoms that `docs/troubleshooting.md` describes appear, and its fixes work.

use std::time::Duration;

use redelay::{BlockingQueue, Client, DelayedQueue, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{CHANNEL, HOUR, MINUTE, ORDERED_LIST, TIMEOUT_SET, keys, ms, soon};

/// A client of a user with all permissions, changed by these ACL rules. It sweeps as often as the options
/// allow.
async fn queues(
    server: &Server,
    user: &str,
    rules: &[&str],
) -> (Client, BlockingQueue<i64>, DelayedQueue<i64>) {
    queues_within(MINUTE, server, user, rules).await
}

/// The same, with a command timeout.
async fn queues_within(
    timeout: Duration,
    server: &Server,
    user: &str,
    rules: &[&str],
) -> (Client, BlockingQueue<i64>, DelayedQueue<i64>) {
    server.cmd(
        ["ACL", "SETUSER", user, "on", ">secret", "allkeys", "allchannels", "+@all"].iter().chain(rules),
    );
    let url = format!("redis://{user}:secret@127.0.0.1:{}", server.port());
    let client =
        Client::builder().url(url).sweep_interval(Duration::from_secs(1)).command_timeout(timeout).connect();
    let client = client.await.expect("a connection");
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    (client, ready, delayed)
}

fn last_error(client: &Client) -> String {
    client.stats().last_error.map_or_else(String::new, |error| error.message)
}

#[tokio::test]
async fn without_the_permission_to_subscribe_deliveries_are_late() {
    let server = Server::start();
    let (client, ready, delayed) = queues(&server, "deaf", &["resetchannels"]).await;
    until_async("refused", || async { last_error(&client).starts_with("SUBSCRIBE: NOPERM") }).await;
    assert_eq!(server.subscribers(CHANNEL), 0);
    delayed.offer(&1, ms(1)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1, "by a sweep");
    assert_eq!(delayed.stats().await.unwrap().failed_transfers, 0);
}

#[tokio::test]
async fn without_the_permission_to_run_scripts_nothing_is_transferred() {
    let server = Server::start();
    let (client, ready, delayed) = queues(&server, "mute", &["-eval", "-evalsha"]).await;
    until_async("failures", || async { client.stats().failed_transfers > 1 }).await;
    let error = last_error(&client);
    assert!(error.contains("queue `q`") && error.contains("NOPERM"), "{error}");
    assert_eq!(delayed.offer(&1, ms(1)).await.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(delayed.stats().await.unwrap_err().kind(), ErrorKind::Refused);
    server.cmd(["ACL", "SETUSER", "mute", "+@all"]);
    delayed.offer(&1, ms(1)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1, "it goes on by itself");
    let stats = delayed.stats().await.unwrap();
    assert!(
        stats.last_error.unwrap().ago > stats.last_transfer_ago.unwrap(),
        "the last error is older than the last transfer"
    );
}

#[tokio::test]
async fn without_the_permission_to_publish_an_offer_is_still_stored() {
    let server = Server::start();
    let (_client, ready, delayed) = queues(&server, "quiet", &["-publish"]).await;
    delayed.offer(&1, ms(1)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
}

#[tokio::test]
async fn without_memory_nothing_comes_in_and_nothing_is_lost() {
    let server = Server::start();
    let (client, ready, delayed) = queues(&server, "user", &[]).await;
    ready.offer_all(&[1, 2, 3]).await.unwrap();
    let ticket = delayed.offer(&4, HOUR).await.unwrap();
    delayed.offer(&5, ms(400)).await.unwrap();
    server.cmd(["CONFIG", "SET", "maxmemory", "1"]);
    let error = delayed.offer(&6, ms(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("OOM"), "{error}");
    assert_eq!(ready.put(&6).await.unwrap_err().kind(), ErrorKind::Refused);
    // Commands that free memory work.
    assert!(delayed.cancel(&ticket).await.unwrap());
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
    assert_eq!(soon(ready.poll()).await.unwrap(), Some(2));
    assert_eq!(soon(ready.take()).await.unwrap(), 3);
    assert_eq!(soon(ready.take()).await.unwrap(), 5, "what is due is transferred");
    assert_eq!(client.stats().failed_transfers, 0);
    server.cmd(["CONFIG", "SET", "maxmemory", "0"]);
    delayed.offer(&6, ms(1)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 6);
}

#[tokio::test]
async fn client_stats_report_a_silent_server_without_asking_it() {
    let server = Server::start();
    let (client, _ready, delayed) = queues_within(ms(500), &server, "user", &[]).await;
    delayed.offer(&1, ms(3_000)).timeout(MINUTE).await.unwrap();
    server.freeze();
    // The text of a script may be on its way.
    until_async("the silence is noticed", || async {
        let stats = client.stats();
        !stats.connected && stats.failed_transfers > 0
    })
    .await;
    assert!(delayed.stats().await.unwrap_err().is_outcome_unknown() || !client.stats().connected);
    server.thaw();
    // The thawed server may execute a transfer whose reply is lost: then nobody has counted it.
    until_async("connected", || async { client.stats().connected && server.list("q").len() == 1 }).await;
}

/// A consumer and a producer with different name prefixes use different queues.
#[tokio::test]
async fn another_name_is_another_queue() {
    let server = Server::start();
    let (client, ready, _delayed) = queues(&server, "user", &[]).await;
    let prefixed = Client::builder().url(server.url()).name_prefix("shop:").connect().await.unwrap();
    let offered = prefixed.delayed_queue(&prefixed.blocking_queue("q", codec::Long));
    offered.offer(&1, ms(1)).await.unwrap();
    until_async("moved", || async { offered.stats().await.unwrap().ready == 1 }).await;
    assert_eq!(ready.poll_timeout(ms(50)).await.unwrap(), None);
    let stats = ready.stats().await.unwrap();
    assert_eq!((stats.pending, stats.list_len, stats.ready), (0, 0, 0));
    assert_eq!(keys(&server), [b"shop:q".to_vec()]);
    drop(client);
}

#[tokio::test]
async fn without_client_everything_works() {
    let server = Server::start();
    let (client, ready, delayed) = queues(&server, "nobody", &["-client"]).await;
    delayed.offer(&1, ms(1)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
    drop(client);
}

/// Runs the script from the documentation.
#[tokio::test]
async fn phantoms_are_removed_and_nothing_else() {
    let server = Server::start();
    let (_client, _ready, delayed) = queues(&server, "user", &[]).await;
    delayed.offer(&1, HOUR).await.unwrap();
    server.cmd(["RPUSH", "redisson_delay_queue:{q}", "phantom", "phantom"]);
    delayed.offer(&2, HOUR).await.unwrap();
    let documentation = include_str!("../../docs/troubleshooting.md");
    let script = documentation.split("redis-cli EVAL \"").nth(1).and_then(|rest| rest.split('"').next());
    let script = script.expect("the script").replace("\\\n", "\n");
    let removed: usize = server.get([
        "EVAL",
        &script,
        "2",
        "redisson_delay_queue_timeout:{q}",
        "redisson_delay_queue:{q}",
        "0",
    ]);
    assert_eq!(removed, 2);
    let stats = delayed.stats().await.unwrap();
    assert_eq!((stats.pending, stats.list_len), (2, 2));
    assert_eq!(delayed.read_all().await.unwrap(), [1, 2]);
}

/// The due head is not waited for: a client wakes up for its own offers.
#[tokio::test]
async fn an_offer_that_could_not_be_announced_holds_up_nobody() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "quiet", "on", ">secret", "allkeys", "allchannels", "+@all", "-publish"]);
    let url = format!("redis://quiet:secret@127.0.0.1:{}", server.port());
    let client = Client::builder().url(url).sweep_interval(HOUR).connect().await.expect("a connection");
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    until_async("it listens", || async { server.subscribers(CHANNEL) == 1 }).await;
    until_async("the first sweep is over", || async { client.stats().transfers > 0 }).await;
    delayed.offer(&1, ms(50)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1, "its own offer wakes it");
    let ticket = delayed.offer(&2, HOUR).await.unwrap();
    delayed.reschedule(&ticket, ms(50)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 2, "its own change wakes it");

    // Another program writes without a word; the next call that sees the head wakes the client.
    let silently = || {
        let entry = [b"\x02id", &8_u64.to_le_bytes()[..], &3_i64.to_be_bytes()[..]].concat();
        server.cmd([b"ZADD".as_slice(), TIMEOUT_SET.as_bytes(), b"5", &entry]);
        server.cmd([b"RPUSH".as_slice(), ORDERED_LIST.as_bytes(), &entry]);
    };
    silently();
    delayed.offer(&4, HOUR).await.unwrap();
    until_async("an offer has seen it", || async { ready.len().await.unwrap() == 1 }).await;
    assert!(ready.clear().await.unwrap());
    silently();
    delayed.stats().await.unwrap();
    until_async("the stats have seen it", || async { ready.len().await.unwrap() == 1 }).await;
}
