//! What dead processes had popped is requeued or removed, pop by pop or all of it.

use redelay::admin::PopKind;
use redelay::{ErrorKind, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{HOUR, TIMEOUT_SET, soon, still_builder, still_text_queues};

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
    let unconfirmed = ready.unconfirmed_pops(HOUR);
    let pops = unconfirmed.read(None, 10).await.unwrap();
    let [head, tail, polled, handled] = &pops[..] else { panic!("{pops:?}") };
    let kinds = [head, tail, polled, handled].map(|pop| pop.kind);
    assert_eq!(kinds, [PopKind::Head, PopKind::Tail, PopKind::Delayed, PopKind::Head]);
    assert_eq!(polled.payloads, [entry]);
    assert!(!format!("{pops:?}").contains("handled"), "a payload must not get into a log");

    assert!(unconfirmed.requeue(&tail.id).await.unwrap());
    assert_eq!(server.list("q").concat(), b"myz");
    assert!(unconfirmed.requeue(&head.id).await.unwrap());
    assert_eq!(server.list("q").concat(), b"abmyz");
    assert!(unconfirmed.requeue(&polled.id).await.unwrap());
    assert_eq!(server.zset(TIMEOUT_SET), pending);
    assert_eq!(delayed.read_all().await.unwrap(), ["pending"]);
    assert!(unconfirmed.remove(&handled.id).await.unwrap());
    for gone in &pops {
        assert!(!unconfirmed.requeue(&gone.id).await.unwrap());
        assert!(!unconfirmed.remove(&gone.id).await.unwrap());
    }
    assert_eq!(unconfirmed.len().await.unwrap(), 0);
    assert_eq!(server.list("q").concat(), b"abmyz");
    assert_eq!(delayed.len().await.unwrap(), 1);
}

#[tokio::test]
async fn one_of_another_queue_is_not_there() {
    let server = Server::start();
    let (client, ready, _delayed) = still_text_queues(&server).await;
    leave(&server, "1", "LPOP", &[b"a"]);
    let pop = ready.unconfirmed_pops(HOUR).read(None, 1).await.unwrap().remove(0);
    let other = client.blocking_queue("other", codec::String).unconfirmed_pops(HOUR);
    assert!(!other.requeue(&pop.id).await.unwrap() && !other.remove(&pop.id).await.unwrap());
    assert!(ready.unconfirmed_pops(HOUR).remove(&pop.id).await.unwrap());
}

#[tokio::test]
async fn a_requeue_whose_reply_is_lost_is_done_once() {
    let server = Server::start();
    let (_client, ready, _delayed) = still_text_queues(&server).await;
    leave(&server, "1", "LPOP", &[b"a"]);
    // From now on the server knows the script: the requeue takes one command.
    assert_eq!(ready.unconfirmed_pops(HOUR).requeue_all(usize::MAX).await.unwrap(), 1);
    assert!(ready.clear().await.unwrap());

    leave(&server, "2", "LPOP", &[b"b"]);
    let proxy = Proxy::start(server.port());
    let client = still_builder(&proxy).connect().await.unwrap();
    let unconfirmed = client.blocking_queue("q", codec::String).unconfirmed_pops(HOUR);
    let pop = unconfirmed.read(None, 1).await.unwrap().remove(0);
    proxy.hold_replies(true);
    let requeueing = tokio::spawn(async move { unconfirmed.requeue(&pop.id).await });
    until_async("it is requeued, and the reply is held", || async {
        server.list("q") == [b"b"] && proxy.held() > 0
    })
    .await;
    proxy.cut();
    proxy.hold_replies(false);
    assert!(!soon(requeueing).await.unwrap().unwrap(), "the second try finds nothing");
    assert_eq!(server.list("q"), [b"b"]);
}

/// A field that no client has written does not stop the others.
#[tokio::test]
async fn what_is_no_copy_is_left_alone() {
    let server = Server::start();
    let (_client, ready, _delayed) = still_text_queues(&server).await;
    let foreign = [
        "return 'text'",
        "return ''",
        "return cmsgpack.pack(7)",
        "return cmsgpack.pack({})",
        "return cmsgpack.pack({'LPOP', 1})",
        "return cmsgpack.pack({'LPOP', 'yesterday', {'payload'}})",
        "return cmsgpack.pack({7, 1, {'payload'}})",
        "return cmsgpack.pack({'LPOP', 1, 'payload'})",
        "return cmsgpack.pack({'LPOP', 1, {'payload', {}}})",
        "return cmsgpack.pack({'poll', 1, {'entry without a score'}})",
        "return cmsgpack.pack({'poll', 1, {'entry', 'no score'}})",
    ];
    for (n, value) in foreign.iter().enumerate() {
        let value: Vec<u8> = server.get(["EVAL", value, "0"]);
        server.cmd([b"HSET", "redelay:popped:{q}".as_bytes(), format!("0 foreign {n}").as_bytes(), &value]);
    }
    leave(&server, "1", "LPOP", &[b"a"]);
    leave(&server, "2", "RPOP", &[b"b"]);
    let unconfirmed = ready.unconfirmed_pops(HOUR);
    let pops = unconfirmed.read(None, 10).await.unwrap();
    assert_eq!(pops.len(), 2, "{pops:?}");
    assert_eq!(unconfirmed.requeue_all(usize::MAX).await.unwrap(), 2);
    assert_eq!(server.list("q").concat(), b"ab");
    leave(&server, "1", "LPOP", &[b"a"]);
    assert_eq!(unconfirmed.remove_all(usize::MAX).await.unwrap(), 1);
    assert!(unconfirmed.is_empty().await.unwrap());
    assert_eq!(server.get::<usize, _>(["HLEN", "redelay:popped:{q}"]), foreign.len());
    // Something else may have taken the place of a copy that was read.
    leave(&server, "1", "LPOP", &[b"a"]);
    let pop = unconfirmed.read(None, 1).await.unwrap().remove(0);
    server.cmd(["HSET", "redelay:popped:{q}", "1", "text"]);
    assert!(!unconfirmed.requeue(&pop.id).await.unwrap());
    assert_eq!(server.list("q").concat(), b"ab");
}

/// To requeue or remove them, the client needs no payload.
#[tokio::test]
async fn payloads_stay_on_the_server() {
    let server = Server::start();
    let (_client, ready, _delayed) = still_text_queues(&server).await;
    let payload = vec![b'x'; 1_000_000];
    leave(&server, "1", "LPOP", &[&payload]);
    let before = server.bytes_sent();
    assert_eq!(ready.unconfirmed_pops(HOUR).requeue_all(usize::MAX).await.unwrap(), 1);
    leave(&server, "1", "LPOP", &[&payload]);
    assert_eq!(ready.unconfirmed_pops(HOUR).remove_all(usize::MAX).await.unwrap(), 1);
    let bytes = server.bytes_sent() - before;
    assert!(bytes < 100_000, "the server sent {bytes} bytes");
}

/// "Nothing was executed" would be wrong, and so would "refused".
#[tokio::test]
async fn an_error_after_others_were_requeued_says_so() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "allkeys", "allchannels", "+@all", "-rpush"]);
    let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
    let client = still_builder(&url).connect().await.unwrap();
    let unconfirmed = client.blocking_queue("q", codec::String).unconfirmed_pops(HOUR);
    leave(&server, "2", "RPOP", &[b"y"]);
    let error = unconfirmed.requeue_all(usize::MAX).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    leave(&server, "1", "LPOP", &[b"a", b"b"]);
    let error = unconfirmed.requeue_all(usize::MAX).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert!(error.to_string().contains("1 pops were requeued before"), "{error}");
    assert_eq!(server.list("q").concat(), b"ab");
    assert_eq!(unconfirmed.len().await.unwrap(), 1);
}
