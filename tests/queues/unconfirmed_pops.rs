//! What dead processes had popped is requeued or removed pop by pop. `stats` has the calls for all pops of an age.

use redelay::{Client, ErrorKind, PopKind, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{HOUR, TIMEOUT_SET, soon, still_text_queues};

/// What a process leaves if it dies before it confirms this pop.
fn leave(server: &Server, id: &str, kind: &str, popped: &[&[u8]]) {
    let script =
        "return redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack({ARGV[2], 1, {unpack(ARGV, 3)}}))";
    let words = ["EVAL", script, "1", "redelay:popped:{q}", id, kind].map(str::as_bytes);
    server.cmd(words.iter().chain(popped));
}

#[tokio::test]
async fn each_is_requeued_where_it_was_or_removed() {
    let server = Server::start();
    let (_client, ready, delayed) = still_text_queues(&server).await;
    delayed.offer("pending", HOUR).await.unwrap();
    let pending = server.zset(TIMEOUT_SET);
    let (entry, score) = &pending[0];
    assert!(delayed.clear().await.unwrap());
    ready.put("m").await.unwrap();
    leave(&server, "1", "LPOP", &[b"a", b"b"]);
    leave(&server, "2", "RPOP", &[b"z", b"y"]);
    leave(&server, "3", "poll", &[entry, score.to_string().as_bytes()]);
    leave(&server, "4", "LPOP", &[b"handled"]);

    assert_eq!(ready.keys().popped, "redelay:popped:{q}");
    let unconfirmed = ready.unconfirmed_pops();
    let pops = unconfirmed.read(HOUR, 10).await.unwrap();
    let [head, tail, polled, handled] = &pops[..] else { panic!("{pops:?}") };
    let kinds = [head, tail, polled, handled].map(|pop| pop.kind);
    assert_eq!(kinds, [PopKind::Head, PopKind::Tail, PopKind::Delayed, PopKind::Head]);
    assert_eq!(polled.payloads, [entry]);
    assert!(!format!("{pops:?}").contains("handled"), "a payload must not get into a log");

    assert!(unconfirmed.requeue_one(tail).await.unwrap());
    assert_eq!(server.list("q").concat(), b"myz");
    assert!(unconfirmed.requeue_one(head).await.unwrap());
    assert_eq!(server.list("q").concat(), b"abmyz");
    assert!(unconfirmed.requeue_one(polled).await.unwrap());
    assert_eq!(server.zset(TIMEOUT_SET), pending);
    assert_eq!(delayed.read_all().await.unwrap(), ["pending"]);
    assert!(unconfirmed.remove_one(handled).await.unwrap());
    for gone in &pops {
        assert!(!unconfirmed.requeue_one(gone).await.unwrap());
        assert!(!unconfirmed.remove_one(gone).await.unwrap());
    }
    assert_eq!(unconfirmed.len().await.unwrap(), 0);
    assert_eq!(server.list("q").concat(), b"abmyz");
    assert_eq!(delayed.len().await.unwrap(), 1);
}

#[tokio::test]
async fn one_of_another_queue_is_refused() {
    let server = Server::start();
    let (client, ready, _delayed) = still_text_queues(&server).await;
    leave(&server, "1", "LPOP", &[b"a"]);
    let pop = ready.unconfirmed_pops().read(HOUR, 1).await.unwrap().remove(0);
    let other = client.blocking_queue("other", codec::String).unconfirmed_pops();
    for refused in [other.requeue_one(&pop).await, other.remove_one(&pop).await] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("another queue: `q`"), "{error}");
    }
    assert!(ready.unconfirmed_pops().remove_one(&pop).await.unwrap());
}

#[tokio::test]
async fn a_requeue_whose_reply_is_lost_is_done_once() {
    let server = Server::start();
    let (_client, ready, _delayed) = still_text_queues(&server).await;
    leave(&server, "1", "LPOP", &[b"a"]);
    // From now on the server knows the script: the requeue takes one command.
    assert_eq!(ready.unconfirmed_pops().requeue(HOUR).await.unwrap(), 1);
    assert!(ready.clear().await.unwrap());

    leave(&server, "2", "LPOP", &[b"b"]);
    let proxy = Proxy::start(server.port());
    let client = Client::builder().url(proxy.url()).transfer(false).connect().await.unwrap();
    let unconfirmed = client.blocking_queue("q", codec::String).unconfirmed_pops();
    let pop = unconfirmed.read(HOUR, 1).await.unwrap().remove(0);
    proxy.hold_replies(true);
    let requeueing = tokio::spawn(async move { unconfirmed.requeue_one(&pop).await });
    until_async("it is requeued, and the reply is held", || async {
        server.list("q") == [b"b"] && proxy.held() > 0
    })
    .await;
    proxy.cut();
    proxy.hold_replies(false);
    assert!(!soon(requeueing).await.unwrap().unwrap(), "the second try finds nothing");
    assert_eq!(server.list("q"), [b"b"]);
}
