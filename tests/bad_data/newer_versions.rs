//! What a newer version of redelay may have written: this version leaves it alone and says so, and what it
//! does know goes on. Nothing is lost: a program that knows it finds it as it was.

use std::time::Duration;

use redelay::ErrorKind;
use redelay::delayed_queue::{Cancelled, Offered};
use redelay_fixture::{Server, redis, until_async};
use redelay_support::{
    CLAIMS, CONTROL, DEAD, DEAD_MESSAGES, HOUR, JOBS, LEASES, Listener, MESSAGES, MINUTE, Queues, RETRIES,
    SCHEDULE_RECORDS, SCHEDULES, ms, number_queues, patient_builder, soon, still_number_queues,
};
use tracing::Level;

/// The content of a hash.
fn hash(server: &Server, key: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = server.get(["HGETALL", key]);
    fields.sort();
    fields
}

/// Writes another first byte into each field.
fn mark(server: &Server, key: &str, byte: u8) -> Vec<(Vec<u8>, Vec<u8>)> {
    for (field, mut value) in hash(server, key) {
        value[0] = byte;
        server.cmd([b"HSET".as_slice(), key.as_bytes(), &field, &value]);
    }
    hash(server, key)
}

#[tokio::test]
async fn messages_keep_their_leases_and_retries() {
    let (listener, _listening) = Listener::up_to(Level::INFO);
    let server = Server::start();
    let (dying, ready, _) = still_number_queues(&server).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    let receiver = ready.receiver().lease(ms(1000));
    soon(receiver.receive()).await.unwrap().retry_after(ms(1)).await.unwrap();
    let held = soon(receiver.receive()).await.unwrap();
    let held = if *held.value() == 1 {
        // Its retry was due before the other one was taken.
        held.retry_after(ms(1)).await.unwrap();
        soon(receiver.receive()).await.unwrap()
    } else {
        held
    };
    dying.shutdown().await;
    drop(held);
    let newer = mark(&server, MESSAGES, 3);
    assert_eq!(newer.len(), 2);

    let (client, ready, _) = number_queues(&server).await;
    let receiver = ready.receiver().lease(ms(1000));
    ready.put(&7).await.unwrap();
    let other = soon(receiver.receive()).await.unwrap();
    assert_eq!(*other.value(), 7, "what it knows goes on");
    other.ack().await.unwrap();
    // Beyond the lease of the one that is gone, and several sweeps.
    let sweeps = server.command_calls("evalsha");
    assert!(receiver.receive_timeout(Duration::from_secs(25)).await.unwrap().is_none());
    assert!(server.command_calls("evalsha") > sweeps + 3);
    assert_eq!(hash(&server, MESSAGES), newer, "it is left alone");
    assert_eq!((server.zset(LEASES).len(), server.zset(RETRIES).len()), (1, 1));
    let error = client.stats().last_error.expect("an error").message;
    assert!(error.contains("newer version"), "{error}");
    let reported = listener.named("redelay.keys.foreign");
    assert_eq!(reported.len(), 1, "once: {reported:?}");
    assert_eq!((&*reported[0].fields["what"], &*reported[0].fields["queue"]), ("messages", "q"));
    assert_eq!(ready.stats().await.unwrap().receiving.vanished, 0);

    mark(&server, MESSAGES, 1);
    let mut again = Vec::new();
    while again.len() < 2 {
        let delivery = tokio::time::timeout(MINUTE, receiver.receive()).await.expect("in time").unwrap();
        again.push(*delivery.value());
        delivery.ack().await.unwrap();
    }
    again.sort_unstable();
    assert_eq!(again, [1, 2], "a program that knows them finds them");
    assert_eq!(server.get::<usize, _>(["EXISTS", MESSAGES, LEASES, RETRIES]), 0);
}

#[tokio::test]
async fn jobs_keep_their_ids() {
    let server = Server::start();
    let queues = Queues::of_numbers(patient_builder(&server).sweep_interval(ms(1000))).await;
    queues.delayed.offer(&1, HOUR).id("a").await.unwrap();
    let newer = mark(&server, JOBS, b'n');
    let refused = queues.delayed.offer(&2, HOUR).id("a").replace().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("newer version"), "{refused}");
    assert!(matches!(queues.delayed.job("a").cancel().await.unwrap(), Cancelled::NotFound));
    assert!(queues.delayed.job("a").get().await.unwrap().is_none());
    for _ in 0..3 {
        server.cmd(["HDEL", CONTROL, "jobs", "jobs-at"]);
        let swept = || async { server.get::<usize, _>(["HEXISTS", CONTROL, "jobs-at"]) == 1 };
        until_async("the ids are swept", swept).await;
    }
    assert_eq!(hash(&server, JOBS), newer);
    assert_eq!(queues.delayed.len().await.unwrap(), 1);
    mark(&server, JOBS, b'p');
    assert!(matches!(queues.delayed.offer(&2, HOUR).id("a").await.unwrap(), Offered::Kept(_)));
}

#[tokio::test]
async fn copies_of_pops_stay() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let id = "019ab5c2e40070008000000000000000";
    for copy in [&b"\x93\xa4XPOP\x01\x91\xa17"[..], b"\x94\xa4LPOP\x01\x91\xa17\x01"] {
        server.cmd([b"HSET", CLAIMS.as_bytes(), id.as_bytes(), copy]);
        let pops = ready.unconfirmed_pops(Duration::ZERO);
        assert!(pops.read(None, 10).await.unwrap().is_empty());
        assert_eq!(pops.requeue_all(usize::MAX).await.unwrap(), 0);
        assert_eq!(ready.stats().await.unwrap().unconfirmed_pops, 1, "it is counted");
        assert_eq!(hash(&server, CLAIMS), [(id.into(), copy.to_vec())]);
        assert_eq!(ready.len().await.unwrap(), 0);
    }
}

#[tokio::test]
async fn dead_letters_stay() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    soon(ready.receiver().receive()).await.unwrap().reject("no").await.unwrap();
    let (id, mut letter) = hash(&server, DEAD_MESSAGES).remove(0);
    // An array of ten, where this version has eight or nine.
    assert_eq!(letter[0], 0x98);
    letter[0] = 0x9a;
    letter.extend(b"\xa1x\xa1y");
    server.cmd([b"HSET", DEAD_MESSAGES.as_bytes(), &id, &letter]);
    let letters = ready.dead_letters();
    assert!(letters.read(None, 10).await.unwrap().is_empty());
    assert_eq!(letters.requeue_all(usize::MAX).await.unwrap(), 0);
    assert_eq!(hash(&server, DEAD_MESSAGES), [(id, letter)]);
    assert_eq!(ready.stats().await.unwrap().receiving.dead_letters, 1, "it is counted");
    assert_eq!(server.zset(DEAD).len(), 1);
    assert_eq!(ready.len().await.unwrap(), 0);
}

#[tokio::test]
async fn schedules_stay() {
    let (listener, _listening) = Listener::up_to(Level::INFO);
    let server = Server::start();
    let (client, _ready, delayed) = number_queues(&server).await;
    let record = "every 1000\nquantum 7\n\n7";
    redis::pipe()
        .cmd("HSET")
        .arg(SCHEDULE_RECORDS)
        .arg("s")
        .arg(record)
        .cmd("ZADD")
        .arg(SCHEDULES)
        .arg(1)
        .arg("s")
        .exec(&mut server.redis())
        .unwrap();
    delayed.schedule("other").every(Duration::from_secs(1)).upsert(&1).await.unwrap();
    until_async("it is reported", || async { !listener.named("redelay.schedule.failing").is_empty() }).await;
    let reported = listener.named("redelay.schedule.failing").remove(0);
    assert_eq!(reported.fields["schedule"], "s");
    assert!(reported.fields["error"].contains("newer version"), "{reported:?}");
    let of_queue = delayed.schedules().read(None, 10).await.unwrap();
    let of_inspector = client.inspector().schedules("q", None, 10).await.unwrap();
    let mut errors = vec![delayed.schedule("s").get().await.unwrap_err()];
    errors.extend(of_queue.into_iter().filter_map(|(name, schedule)| schedule.err().filter(|_| name == "s")));
    errors.extend(
        of_inspector.into_iter().filter_map(|(name, schedule)| schedule.err().filter(|_| name == "s")),
    );
    assert_eq!(errors.len(), 3);
    for error in errors {
        assert!(error.kind() == ErrorKind::Decode && error.to_string().contains("newer version"), "{error}");
    }
    until_async("the other one runs", || async { client.stats().transferred > 0 }).await;
    assert!(hash(&server, SCHEDULE_RECORDS).contains(&(b"s".to_vec(), record.into())));
    assert!(server.zset(SCHEDULES).contains(&(b"s".to_vec(), 1.0)));
}
