//! Keys that belong together, of which somebody deletes one, or puts a key of another type in its place. What
//! is lost then is what only that key had, as docs/keys.md says. Nothing is overwritten, delivered twice or
//! counted for ever.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use redelay::delayed_queue::{JobState, Offered};
use redelay::receiver::MessageId;
use redelay::{BlockingQueue, DelayedQueue, ErrorKind};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    CHANNEL, CLAIMS, CONTROL, DEAD, DEAD_MESSAGES, HOUR, INBOX, JOBS, LEASES, MESSAGES, MINUTE, ORDERED_LIST,
    QUARANTINE, Queues, RECEIPTS, RETRIES, SCHEDULE_RECORDS, SCHEDULES, SELDOM, TARGET, TIMEOUT_SET, ms,
    number_queues, patient_builder, soon, still_builder, still_number_queues,
};

/// What is in the queue before a key is lost.
const PAYLOADS: std::ops::RangeInclusive<i64> = 1..=9;

/// A key, the payloads that are gone with it, and how many of those are counted as such.
const KEYS: &[(&str, &[i64], u64)] = &[
    // Pending: 1; a job, 2; and the run of a schedule, 3. Each is in two keys.
    (TIMEOUT_SET, &[], 0),
    (ORDERED_LIST, &[], 0),
    (JOBS, &[], 0),
    (SCHEDULES, &[], 0),
    (SCHEDULE_RECORDS, &[], 0),
    (TARGET, &[4], 0),
    // Of a process that is dead: 5. It waits for a retry: 6.
    (MESSAGES, &[5, 6], 2),
    (LEASES, &[], 0),
    (RETRIES, &[], 0),
    (RECEIPTS, &[], 0),
    (DEAD, &[], 0),
    (DEAD_MESSAGES, &[7], 1),
    (INBOX, &[8], 0),
    (CONTROL, &[], 0),
    (CLAIMS, &[9], 0),
    (QUARANTINE, &[], 0),
];

/// Fills the queue `q`, by a process that is gone after that.
async fn fill(server: &Server) {
    let Queues { client, ready, delayed } = Queues::of_numbers(still_builder(server)).await;
    delayed.offer(&1, HOUR).await.unwrap();
    delayed.offer(&2, HOUR).id("job").await.unwrap();
    delayed.schedule("s").every(SELDOM).upsert(&3).await.unwrap();
    let receiver = ready.receiver().lease(ms(1000));
    let receive = async |number| {
        ready.put(&number).await.unwrap();
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(*delivery.value(), number);
        delivery
    };
    receive(7).await.reject("dead").await.unwrap();
    receive(6).await.retry_after(HOUR).await.unwrap();
    let held = receive(5).await;
    ready.put(&4).await.unwrap();
    ready.set_max_in_flight(Some(100)).await.unwrap();
    client.shutdown().await;
    drop(held);
    server.cmd(["RPUSH", INBOX, "8"]);
    let popped = "redis.call('HSET', KEYS[1], 'id', cmsgpack.pack({'LPOP', 1, {'9'}}))";
    server.cmd(["EVAL", popped, "1", CLAIMS]);
    server.cmd(["RPUSH", QUARANTINE, "1", "malformed"]);
}

/// What calls answer while a key has another type: the truth, and nothing is half done.
async fn ask(queues: &Queues<i64>) {
    let Queues { ready, delayed, .. } = queues;
    let receiver = ready.receiver().lease(ms(1000));
    let answers = [
        soon(ready.stats()).await.map(drop),
        soon(delayed.schedules().read(None, 9)).await.map(drop),
        soon(ready.dead_letters().read(None, 9)).await.map(drop),
        soon(ready.unsettled().waiting(None, 9)).await.map(drop),
        soon(ready.unconfirmed_pops(Duration::ZERO).len()).await.map(drop),
        soon(ready.dead_letters().requeue_all(0)).await.map(drop),
        match soon(receiver.try_receive()).await {
            Ok(Some(delivery)) => delivery.release().await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        },
    ];
    for error in answers.into_iter().filter_map(Result::err) {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    }
}

/// Receives everything that is anywhere. Returns how often each payload came.
async fn drain(server: &Server, queues: &Queues<i64>) -> BTreeMap<i64, usize> {
    let Queues { ready, delayed, .. } = queues;
    let mut received = BTreeMap::new();
    let receiver = ready.receiver().lease(ms(1000));
    let deadline = tokio::time::Instant::now() + 3 * MINUTE;
    loop {
        assert!(tokio::time::Instant::now() < deadline, "something counts for ever: {received:?}");
        for payload in delayed.poll_many(100).await.unwrap() {
            *received.entry(payload.unwrap()).or_default() += 1;
        }
        // An entry that the list does not have.
        let due = "for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], 1, entry) end";
        server.cmd(["EVAL", due, "1", TIMEOUT_SET]);
        server.cmd(["PUBLISH", CHANNEL, "1"]);
        ready.unconfirmed_pops(Duration::ZERO).requeue_all(usize::MAX).await.unwrap();
        ready.dead_letters().requeue_all(usize::MAX).await.unwrap();
        ready.unsettled().requeue_all(usize::MAX).await.unwrap();
        while let Some(delivery) = soon(receiver.receive_timeout(ms(100))).await.unwrap() {
            *received.entry(*delivery.value()).or_default() += 1;
            delivery.ack().await.unwrap();
        }
        let stats = ready.stats().await.unwrap();
        let of_receivers = stats.receiving.in_flight + stats.receiving.waiting + stats.receiving.dead_letters;
        let others = stats.pending + stats.list_len + stats.ready + stats.unconfirmed_pops;
        if of_receivers + others == 0 && ready.unsettled().len().await.unwrap() == 0 {
            return received;
        }
    }
}

async fn without(key: &'static str, lost: &'static [i64], vanished: u64, had_another_type: bool) {
    let what = format!("{key}, another type: {had_another_type}");
    let server = Server::start();
    fill(&server).await;
    let run = server.zset(SCHEDULES);
    server.cmd(["DEL", key]);
    let queues;
    if had_another_type {
        server.cmd(["SET", key, "text"]);
        queues = Queues::of_numbers(patient_builder(&server)).await;
        ask(&queues).await;
        server.cmd(["DEL", key]);
    } else {
        queues = Queues::of_numbers(patient_builder(&server)).await;
    }
    if key == SCHEDULES {
        until_async("the schedule has its next run again", || async { server.zset(SCHEDULES) == run }).await;
    }
    let expected: BTreeMap<i64, usize> =
        PAYLOADS.filter(|payload| !lost.contains(payload)).map(|payload| (payload, 1)).collect();
    assert_eq!(drain(&server, &queues).await, expected, "without {what}");
    // The server may be ahead of the reply that tells of it.
    until_async("what has vanished is counted", || async {
        queues.ready.stats().await.unwrap().receiving.vanished >= vanished
    })
    .await;
    let stats = queues.ready.stats().await.unwrap();
    assert_eq!(stats.receiving.vanished, vanished, "without {what}");
    assert_eq!(stats.max_in_flight, (key != CONTROL).then_some(100), "without {what}");
    if key == SCHEDULE_RECORDS {
        until_async("the schedule is gone", || async { server.get::<usize, _>(["EXISTS", SCHEDULES]) == 0 })
            .await;
    } else {
        assert_eq!(server.zset(SCHEDULES), run, "without {what}");
        assert!(delayed_is_listed(&queues.delayed).await, "without {what}");
    }
    queues.client.shutdown().await;
}

async fn delayed_is_listed(delayed: &DelayedQueue<i64>) -> bool {
    let listed = delayed.schedules().read(None, 9).await.unwrap();
    listed.len() == 1 && listed[0].1.as_ref().unwrap().next_run.is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_lost_key_had_is_lost_and_nothing_else() {
    for some in KEYS.chunks(4) {
        join_all(some.iter().map(|(key, lost, vanished)| without(key, lost, *vanished, false))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_had_another_type_loses_what_a_lost_one_loses() {
    for some in KEYS.chunks(4) {
        join_all(some.iter().map(|(key, lost, vanished)| without(key, lost, *vanished, true))).await;
    }
}

async fn bury(ready: &BlockingQueue<i64>, numbers: &[i64]) -> Vec<MessageId> {
    let mut ids = Vec::new();
    for number in numbers {
        ready.put(number).await.unwrap();
        let delivery = soon(ready.receiver().receive()).await.unwrap();
        ids.push(delivery.id());
        delivery.reject("no").await.unwrap();
    }
    ids
}

fn bytes(id: MessageId) -> Vec<u8> {
    let text = id.to_string();
    (0..32).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Clients that only transfer look, too: receivers may be gone, and dead letters stay.
#[tokio::test]
async fn dead_letters_agree_again_without_receivers() {
    let server = Server::start();
    let (client, ready, _) = still_number_queues(&server).await;
    bury(&ready, &[1, 2, 3, 4, 5]).await;
    client.shutdown().await;
    let order = server.zset(DEAD);
    server.cmd(["DEL", DEAD]);
    let sweeping = patient_builder(&server).sweep_interval(ms(1000));
    let Queues { client, ready, delayed: _transferred } = Queues::of_numbers(sweeping).await;
    until_async("they are listed again", || async { ready.dead_letters().len().await.unwrap() == 5 }).await;
    assert_eq!(server.zset(DEAD), order, "in the order of their deaths");
    server.cmd(["DEL", DEAD_MESSAGES]);
    until_async("nothing is counted", || async { ready.dead_letters().len().await.unwrap() == 0 }).await;
    until_async("they are counted", || async { ready.stats().await.unwrap().receiving.vanished == 5 }).await;
    client.shutdown().await;
}

/// What somebody else has written into the hash of the letters stays. It is looked at once, and reported
/// once.
#[tokio::test]
async fn what_is_no_dead_letter_is_not_looked_at_again_and_again() {
    let server = Server::start();
    let (client, ready, _) = still_number_queues(&server).await;
    bury(&ready, &[1, 2, 3]).await;
    client.shutdown().await;
    server.cmd(["HSET", DEAD_MESSAGES, "somebody", "else's", "0123456789012345", "no letter"]);
    let scans = || server.command_calls("hscan");
    let sweeping = || patient_builder(&server).sweep_interval(ms(1000));
    let Queues { client, ready, delayed: _transferred } = Queues::of_numbers(sweeping()).await;
    until_async("they are looked at", || async { scans() > 0 }).await;
    let sweeps = async |more| {
        let transfers = client.stats().transfers;
        until_async("sweeps", || async { client.stats().transfers >= transfers + more }).await;
    };
    sweeps(3).await;
    let before = scans();
    sweeps(6).await;
    assert_eq!(scans(), before, "by those that transfer");
    assert!(ready.receiver().try_receive().await.unwrap().is_none());
    // The first call of a receiver looks at its receipts.
    until_async("it has looked", || async { scans() > before }).await;
    tokio::time::sleep(ms(500)).await;
    assert_eq!(scans(), before + 1, "by receivers");
    let agreed = scans();
    assert_eq!(ready.dead_letters().requeue_all(1).await.unwrap(), 1);
    assert_eq!(scans(), agreed, "by calls for dead letters");

    // All else is found.
    let member = server.zset(DEAD)[0].0.clone();
    server.cmd([b"ZREM", DEAD.as_bytes(), &member]);
    until_async("it is listed again", || async { ready.dead_letters().len().await.unwrap() == 2 }).await;
    server.cmd(["HDEL", DEAD_MESSAGES, "somebody"]);
    sweeps(6).await;
    let before = scans();
    sweeps(6).await;
    assert_eq!(scans(), before);
    assert_eq!(ready.dead_letters().remove_all(usize::MAX).await.unwrap(), 2);
    let left: Vec<String> = server.get(["HKEYS", DEAD_MESSAGES]);
    assert_eq!(left, ["0123456789012345"]);
    client.shutdown().await;
}

/// Without anybody who looks in the background.
#[tokio::test]
async fn calls_for_dead_letters_find_those_that_are_not_listed() {
    let server = Server::start();
    let (_client, ready, _) = still_number_queues(&server).await;
    let dead = ready.dead_letters();
    let ids = bury(&ready, &(0..250).collect::<Vec<_>>()).await;
    server.cmd(["DEL", DEAD]);
    assert!(dead.requeue(ids[3]).await.unwrap(), "its content is there");
    assert!(!dead.requeue(ids[3]).await.unwrap());
    assert_eq!(dead.requeue_all(200).await.unwrap(), 200);
    assert_eq!(dead.remove_all(usize::MAX).await.unwrap(), 49);
    assert_eq!(server.get::<usize, _>(["EXISTS", DEAD, DEAD_MESSAGES]), 0);
    let mut received = BTreeMap::new();
    while let Some(delivery) = ready.receiver().try_receive().await.unwrap() {
        *received.entry(*delivery.value()).or_insert(0) += 1;
        delivery.ack().await.unwrap();
    }
    assert!(received.len() == 201 && received.values().all(|count| *count == 1), "{received:?}");

    let ids = bury(&ready, &[1, 2, 3]).await;
    server.cmd(["DEL", DEAD_MESSAGES]);
    assert!(!dead.requeue(ids[0]).await.unwrap(), "nothing was requeued");
    assert_eq!((dead.requeue_all(9).await.unwrap(), dead.len().await.unwrap()), (0, 0));
    assert!(ready.receiver().try_receive().await.unwrap().is_none());
}

/// No call reads more than a megabyte or so.
#[tokio::test]
async fn long_dead_letters_are_listed_again_a_few_at_a_time() {
    const COUNT: usize = 12;
    let server = Server::start();
    let Queues { ready, .. } = Queues::of_texts(still_builder(&server)).await;
    for _ in 0..COUNT {
        ready.put(&"x".repeat(1 << 20)).await.unwrap();
        soon(ready.receiver().receive()).await.unwrap().reject("long").await.unwrap();
    }
    server.cmd(["DEL", DEAD]);
    let before = server.command_calls("evalsha");
    assert_eq!(ready.dead_letters().remove_all(1).await.unwrap(), 1);
    // One letter is looked for and removed.
    let scripts = server.command_calls("evalsha") - before - 2;
    println!("{scripts} scripts");
    // The server decides how many of a hash one command returns: about ten scripts in Redis, three in Valkey.
    assert!(scripts >= 2, "{scripts} scripts for {COUNT} MB");
    assert_eq!(ready.dead_letters().remove_all(usize::MAX).await.unwrap(), COUNT - 1);
    assert_eq!(server.get::<usize, _>(["EXISTS", DEAD, DEAD_MESSAGES]), 0);
}

/// The handler has the payload. If it does not finish, nobody has it.
#[tokio::test]
async fn what_a_handler_has_is_settled_without_its_record() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2, 3]).await.unwrap();
    let receiver = ready.receiver().lease(HOUR);
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(soon(receiver.receive()).await.unwrap());
    }
    server.cmd(["DEL", MESSAGES]);
    held.remove(0).ack().await.unwrap();
    assert_eq!(held.remove(0).retry().await.unwrap_err().kind(), ErrorKind::LeaseLost);
    assert_eq!(held.remove(0).reject("no").await.unwrap_err().kind(), ErrorKind::LeaseLost);
    let receiving = ready.stats().await.unwrap().receiving;
    assert_eq!((receiving.acknowledged, receiving.vanished, receiving.in_flight), (1, 2, 0));
}

/// Whatever else has the id of a letter or of a message stays.
#[tokio::test]
async fn a_dead_letter_and_its_requeue_overwrite_nothing() {
    let server = Server::start();
    let (_client, ready, _) = still_number_queues(&server).await;
    ready.put(&1).await.unwrap();
    let delivery = soon(ready.receiver().lease(HOUR).receive()).await.unwrap();
    let id = bytes(delivery.id());
    server.cmd([b"HSET", DEAD_MESSAGES.as_bytes(), &id, b"somebody else's"]);
    delivery.reject("no").await.unwrap();
    let letters = ready.dead_letters().read(None, 9).await.unwrap();
    assert_eq!(letters.iter().map(|letter| &letter.payload[..]).collect::<Vec<_>>(), [b"1"]);
    let kept: Vec<u8> = server.get([b"HGET", DEAD_MESSAGES.as_bytes(), &id]);
    assert_eq!(kept, b"somebody else's");

    let letter = bytes(letters[0].id);
    let record =
        [&[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 9, 0, 9, 0, 0, 9, 9, b'k', 0, 0, 0, 0, 0, 1][..], b"2"].concat();
    server.cmd([b"HSET", MESSAGES.as_bytes(), &letter, &record]);
    assert!(ready.dead_letters().requeue(letters[0].id).await.unwrap());
    let mut received = Vec::new();
    let receiver = ready.receiver();
    while received.len() < 2 {
        let delivery = soon(receiver.receive()).await.unwrap();
        received.push(*delivery.value());
        delivery.ack().await.unwrap();
    }
    received.sort_unstable();
    assert_eq!(received, [1, 2]);
}

/// The id of a run is its schedule's name, `@` and its time. A job that has it keeps it.
#[tokio::test]
async fn a_run_takes_no_id_away() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_number_queues(&server).await;
    let next = delayed.schedule("s").every(SELDOM).upsert(&1).await.unwrap().unwrap();
    let millis = next.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    assert!(delayed.schedule("s").remove().await.unwrap());
    let id = format!("s@{millis}");
    assert!(matches!(delayed.offer(&7, HOUR).id(&id).await.unwrap(), Offered::Stored(_)));
    delayed.schedule("s").every(SELDOM).upsert(&1).await.unwrap();
    assert_eq!(delayed.job(&id).get().await.unwrap().unwrap().value, 7);
    assert!(delayed.schedule("s").remove().await.unwrap(), "the run is withdrawn, and not the job");
    assert_eq!(delayed.read_all().await.unwrap(), [7]);
    assert!(delayed.job(&id).cancel().await.unwrap().is_removed());
}

/// Its content is there, and it holds the id.
#[tokio::test]
async fn a_dead_letter_that_is_not_listed_holds_its_id() {
    let server = Server::start();
    let (client, ready, delayed) = still_number_queues(&server).await;
    let job = async || delayed.offer(&1, Duration::ZERO).id("a").until_done().await.unwrap();
    assert!(matches!(job().await, Offered::Stored(_)));
    until_async("it is ready", || async {
        client.pump("q").transfer().await.unwrap();
        ready.len().await.unwrap() == 1
    })
    .await;
    soon(ready.receiver().receive()).await.unwrap().reject("no").await.unwrap();
    server.cmd(["DEL", DEAD]);
    assert!(matches!(job().await, Offered::Kept(_)));
    assert!(matches!(delayed.job("a").state().await.unwrap(), Some(JobState::Dead { .. })));
    assert!(delayed.job("a").cancel().await.unwrap().is_removed());
    assert_eq!(server.get::<usize, _>(["EXISTS", DEAD, DEAD_MESSAGES, JOBS]), 0);
    client.shutdown().await;
}

/// As docs/keys.md says of a timeout set that is lost, also if the list is searched in parts.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_list_has_is_removed() {
    const COUNT: i64 = 10_500;
    let server = Server::start();
    let (client, _ready, delayed) = still_number_queues(&server).await;
    let numbers: Vec<i64> = (0..COUNT).collect();
    delayed.offer_all(numbers.iter().map(|number| (number, HOUR))).await.unwrap();
    server.cmd(["DEL", TIMEOUT_SET]);
    for number in [0, 7, COUNT - 1] {
        assert!(soon(delayed.remove(&number)).await.unwrap(), "{number}");
        assert!(!soon(delayed.remove(&number)).await.unwrap(), "{number}");
    }
    assert_eq!(delayed.len().await.unwrap(), numbers.len() - 3);
    client.shutdown().await;
}
