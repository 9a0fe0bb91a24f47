//! Receivers without every single permission: the answer is true, and every message is settled, waiting or
//! dead, once.

use std::collections::BTreeMap;
use std::task::Poll;
use std::time::{Duration, Instant};

use redelay::delayed_queue::JobState;
use redelay::{BlockingQueue, Client, Delivery, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    CONTROL, DEAD_MESSAGES, HOUR, JOBS, MESSAGES, NOTES, RECEIPTS, SCRATCH, TARGET, ms, pending, soon,
    still_builder, text_queues, woken,
};

/// Every command that a receiver uses, except those without which nothing works at all. The scripts name
/// them.
fn commands() -> Vec<String> {
    let scripts = concat!(
        include_str!("../../src/scripts/receive.lua"),
        include_str!("../../src/scripts/receive/begin.lua"),
        include_str!("../../src/scripts/receive/acknowledge.lua"),
        include_str!("../../src/scripts/receive/many.lua"),
        include_str!("../../src/scripts/receive/many_jobs.lua"),
        include_str!("../../src/scripts/receive/record.lua"),
        include_str!("../../src/scripts/receive/dead.lua"),
        include_str!("../../src/scripts/receive/settle.lua"),
        include_str!("../../src/scripts/receive/recover.lua"),
        include_str!("../../src/scripts/receive/claim.lua"),
        include_str!("../../src/scripts/read_messages.lua"),
        include_str!("../../src/scripts/read_in_flight.lua"),
        include_str!("../../src/scripts/read_dead.lua"),
        include_str!("../../src/scripts/requeue_dead.lua"),
        include_str!("../../src/scripts/remove_dead.lua"),
        include_str!("../../src/scripts/remove_message.lua"),
        include_str!("../../src/scripts/release_all.lua"),
        include_str!("../../src/scripts/parts/permitted.lua"),
    );
    let calls = scripts.split("call('").skip(1);
    let mut commands: Vec<String> =
        calls.filter_map(|call| Some(call.split_once('\'')?.0.to_lowercase())).collect();
    commands.extend(["blmove", "lmove", "lpush", "zcard"].map(str::to_owned));
    commands.sort();
    commands.dedup();
    assert!(commands.len() > 20, "{commands:?}");
    commands
}

/// The queue `q` of a user whose permissions change.
struct Rig {
    server: Server,
    client: Client,
    ready: BlockingQueue<String>,
    /// The same queue for a user with every permission.
    free: BlockingQueue<String>,
}

/// What a call has taken out of the queue for good.
type Outcome = redelay::Result<Option<String>>;

impl Rig {
    async fn start() -> Self {
        let server = Server::start();
        server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "allkeys", "allchannels", "+@all"]);
        let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
        let client = still_builder(&url).connect().await.expect("a connection");
        let ready = client.blocking_queue(TARGET, codec::String);
        let free = still_builder(&server).connect().await.expect("a connection");
        let free = free.blocking_queue(TARGET, codec::String);
        Self { server, client, ready, free }
    }

    /// A dead letter, a message that has failed and is due again, and two that are ready.
    async fn fill(&self) {
        self.server.cmd(["FLUSHALL"]);
        let receiver = self.free.receiver();
        for payload in ["dead", "failed"] {
            self.free.put(payload).await.unwrap();
            let delivery = soon(receiver.receive()).await.unwrap();
            if payload == "dead" { delivery.reject("no").await } else { delivery.retry_after(ms(0)).await }
                .unwrap();
        }
        self.free.offer_all(&["a".to_owned(), "b".to_owned()]).await.unwrap();
    }

    async fn receive(&self) -> redelay::Result<Delivery<String>> {
        // Nothing extends it, so that what is not settled comes back soon.
        self.ready.receiver().lease(ms(200)).extend_for(Duration::ZERO).receive().await
    }

    fn permit(&self) {
        self.server.cmd(["ACL", "SETUSER", "user", "+@all"]);
    }

    /// How often each payload is there.
    async fn drain(&self) -> BTreeMap<String, usize> {
        let mut payloads = BTreeMap::new();
        let receiver = self.free.receiver().lease(ms(200));
        self.free.dead_letters().requeue_all(usize::MAX).await.unwrap();
        loop {
            while let Some(delivery) = receiver.receive_timeout(ms(20)).await.unwrap() {
                *payloads.entry(delivery.value().clone()).or_default() += 1;
                delivery.ack().await.unwrap();
            }
            if self.free.unsettled().len().await.unwrap() == 0 && self.free.len().await.unwrap() == 0 {
                return payloads;
            }
        }
    }
}

/// Makes a call without each permission.
async fn each<F: AsyncFn(&Rig, &str) -> Outcome>(call: F) {
    let rig = Rig::start().await;
    let mut refused = Vec::new();
    for command in commands() {
        let mut tries = 0;
        let outcome = loop {
            rig.fill().await;
            let outcome = soon(call(&rig, &command)).await;
            rig.permit();
            tries += 1;
            match &outcome {
                // A lease is so short that it may end meanwhile on a busy machine.
                Err(error) if error.kind() == ErrorKind::LeaseLost && tries < 5 => drop(rig.drain().await),
                _ => break outcome,
            }
        };
        let mut expected: BTreeMap<String, usize> =
            ["a", "b", "dead", "failed"].map(|payload| (payload.to_owned(), 1)).into();
        match outcome {
            Ok(gone) => {
                if let Some(payload) = gone {
                    expected.remove(&payload);
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Refused, "without {command}: {error}");
                refused.push(command.clone());
            }
        }
        assert_eq!(rig.drain().await, expected, "without {command}");
    }
    assert!(!refused.is_empty(), "no permission was missed");
    rig.client.shutdown().await;
}

fn forbid(rig: &Rig, command: &str) {
    rig.server.cmd(["ACL", "SETUSER", "user", &format!("-{command}")]);
}

#[tokio::test]
async fn receive() {
    each(async |rig, command| {
        forbid(rig, command);
        rig.receive().await?.release().await?;
        Ok(None)
    })
    .await;
}

#[tokio::test]
async fn receive_many() {
    each(async |rig, command| {
        forbid(rig, command);
        let receiver = rig.ready.receiver().lease(ms(200)).extend_for(Duration::ZERO);
        for delivery in receiver.receive_many(10).await? {
            delivery?.release().await?;
        }
        Ok(None)
    })
    .await;
}

#[tokio::test]
async fn a_dropped_receive() {
    each(async |rig, command| {
        let receiver = rig.ready.receiver().lease(ms(200));
        forbid(rig, command);
        for _ in 0..3 {
            let mut receive = Box::pin(receiver.receive());
            // It may get at once what was claimed for one that was dropped.
            if let Poll::Ready(received) = futures::poll!(&mut receive) {
                received?.release().await?;
            }
            tokio::time::sleep(ms(2)).await;
        }
        rig.permit();
        // So that a permission is missed in this case, too.
        forbid(rig, "evalsha");
        rig.receive().await.map(|_| None)
    })
    .await;
}

#[tokio::test]
async fn a_parked_receive() {
    each(async |rig, command| {
        rig.drain().await;
        forbid(rig, command);
        let receiver = rig.ready.receiver().lease(ms(200)).extend_for(Duration::ZERO);
        let received = async {
            let delivery = receiver.receive().await?;
            delivery.release().await
        };
        let offers = async {
            tokio::time::sleep(ms(30)).await;
            rig.fill().await;
        };
        let (received, ()) = tokio::join!(received, offers);
        received.map(|()| None)
    })
    .await;
}

macro_rules! settlements {
    ($($name:ident: $settle:expr, $gone:literal;)+) => {
        $(#[tokio::test]
        async fn $name() {
            each(async |rig, command| {
                let delivery = rig.receive().await?;
                let payload = delivery.value().clone();
                forbid(rig, command);
                let settle: fn(Delivery<String>) -> futures::future::BoxFuture<'static, redelay::Result<()>> = $settle;
                settle(delivery).await?;
                Ok($gone.then_some(payload))
            })
            .await;
        })+
    };
}

settlements! {
    ack: |delivery| delivery.ack(), true;
    retry: |delivery| delivery.retry_after(ms(1)), false;
    snooze: |delivery| delivery.snooze(ms(1)), false;
    release: |delivery| delivery.release(), false;
    reject: |delivery| delivery.reject("no"), false;
    extend: |delivery| {
        let extended = delivery.extend(ms(300));
        drop(delivery.release());
        extended
    }, false;
}

/// Nobody may wait for the answer of a settlement.
#[tokio::test]
async fn refused_settlements_are_told() {
    for (command, told) in [("hset", "dead letters of `q`: "), ("zrem", "settle messages of `q`: ")] {
        let rig = Rig::start().await;
        rig.fill().await;
        let receiver = rig.ready.receiver();
        let delivery = soon(receiver.receive()).await.unwrap();
        forbid(&rig, command);
        let refused = soon(delivery.reject("no")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "without {command}: {refused}");
        let last = rig.client.stats().last_error.expect("an error").message;
        let names_it = last.to_lowercase().contains(command);
        assert!(last.starts_with(told) && names_it, "without {command}: {last}");
        rig.client.shutdown().await;
    }
}

/// A claim that no program has read goes back as soon as that is permitted, long before its lease is over.
#[tokio::test]
async fn an_unread_claim_is_released_when_that_is_permitted() {
    let rig = Rig::start().await;
    rig.free.put("x").await.unwrap();
    let receiver = rig.ready.receiver().lease(HOUR);
    let mut receive = pending({
        let receiver = receiver.clone();
        async move { receiver.receive().await }
    });
    woken(&mut receive).await;
    until_async("it is handed over", async || rig.free.is_empty().await.unwrap()).await;
    forbid(&rig, "zrem");
    drop(receive);
    let told = || rig.client.stats().last_error.map(|error| error.message).unwrap_or_default();
    until_async("it is refused", || async { told().starts_with("settle messages of `q`: ") }).await;
    rig.permit();
    let delivery = soon(rig.free.receiver().receive()).await.unwrap();
    assert_eq!((delivery.value().as_str(), delivery.attempt()), ("x", 1));
    delivery.ack().await.unwrap();
    drop(receiver);
    rig.client.shutdown().await;
}

#[tokio::test]
async fn dead_letters() {
    each(async |rig, command| {
        forbid(rig, command);
        let dead = rig.ready.dead_letters();
        dead.len().await?;
        dead.requeue_all(1).await?;
        Ok(None)
    })
    .await;
    each(async |rig, command| {
        forbid(rig, command);
        let dead = rig.ready.dead_letters();
        assert_eq!(dead.remove_all(1).await?, 1);
        Ok(Some("dead".to_owned()))
    })
    .await;
}

#[tokio::test]
async fn unsettled() {
    each(async |rig, command| {
        forbid(rig, command);
        let unsettled = rig.ready.unsettled();
        let waiting = unsettled.waiting(None, 1).await?;
        unsettled.requeue(waiting[0].id).await?;
        Ok(None)
    })
    .await;
    each(async |rig, command| {
        forbid(rig, command);
        let unsettled = rig.ready.unsettled();
        let waiting = unsettled.waiting(None, 1).await?;
        unsettled.remove(waiting[0].id).await?;
        Ok(Some("failed".to_owned()))
    })
    .await;
    each(async |rig, command| {
        forbid(rig, command);
        let unsettled = rig.ready.unsettled();
        unsettled.in_flight(None, 9).await?;
        unsettled.requeue_all(usize::MAX).await?;
        Ok(None)
    })
    .await;
    each(async |rig, command| {
        forbid(rig, command);
        let removed = rig.ready.unsettled().remove_all(usize::MAX).await?;
        assert_eq!(removed, 1);
        Ok(Some("failed".to_owned()))
    })
    .await;
}

#[tokio::test]
async fn release_all() {
    each(async |rig, command| {
        forbid(rig, command);
        rig.ready.release_all().await?;
        Ok(None)
    })
    .await;
}

/// `HDEL` may be permitted for some keys only. What cannot be deleted is not there twice.
#[tokio::test]
async fn what_may_not_be_deleted_is_there_once() {
    let rig = Rig::start().await;
    if rig.server.version().major == 6 {
        // It knows no permissions for some keys.
        return;
    }
    let (client, _, delayed) = text_queues(&rig.server).await;
    let of_user = rig.client.delayed_queue(&rig.ready);
    let (in_messages, dead) = (["reject", "release", "replace", "cancel"], ["requeue", "replace", "cancel"]);
    let ways = in_messages.map(|way| (MESSAGES, way)).into_iter().chain(dead.map(|way| (DEAD_MESSAGES, way)));
    for (key, way) in ways {
        rig.server.cmd(["FLUSHALL"]);
        delayed.offer("x", Duration::ZERO).id("a").until_done().header("n", "1").await.unwrap();
        let mut delivery = Some(soon(rig.ready.receiver().lease(HOUR).receive()).await.unwrap());
        if way != "reject" {
            let delivery = delivery.take().unwrap();
            if key == MESSAGES { delivery.retry_after(HOUR).await } else { delivery.reject("no").await }
                .unwrap();
        }
        rig.server.cmd(["ACL", "SETUSER", "user", "-hdel", &all_but(key)]);
        let refused = match (way, delivery) {
            ("reject", Some(delivery)) => delivery.reject("no").await.err(),
            ("release", _) => rig.ready.release_all().await.err(),
            ("requeue", _) => rig.ready.dead_letters().requeue_all(1).await.err(),
            ("cancel", _) => of_user.job("a").cancel().await.err(),
            _ => of_user.offer("y", HOUR).id("a").until_done().replace().await.err(),
        };
        let refused = refused.map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::Refused), "{way} of {key}");
        rig.server.cmd(["ACL", "SETUSER", "user", "clearselectors", "+@all"]);
        assert_eq!(delayed.len().await.unwrap(), 0, "{way} of {key}");
        if way != "reject" && key == MESSAGES {
            assert!(delayed.job("a").run_now().await.unwrap(), "{way} of {key}");
        }
        assert_eq!(rig.drain().await, [("x".to_owned(), 1)].into(), "{way} of {key}");
    }
    client.shutdown().await;
    rig.client.shutdown().await;
}

/// A selector that permits `HDEL` for all keys of the queue but this one.
fn all_but(key: &str) -> String {
    let all = [MESSAGES, DEAD_MESSAGES, RECEIPTS, CONTROL, JOBS, NOTES, SCRATCH];
    let others = all.iter().filter(|other| **other != key).map(|other| format!(" ~{other}"));
    format!("(+hdel{})", others.collect::<String>())
}

/// What travels with a message goes back with it, or both stay.
#[tokio::test]
async fn release_all_loses_nothing_that_travels() {
    for command in ["zadd", "hset", "lpush", "hdel", "hget"] {
        let rig = Rig::start().await;
        let (client, _, delayed) = text_queues(&rig.server).await;
        delayed.offer("x", Duration::ZERO).id("a").until_done().header("n", "1").await.unwrap();
        let delivery = soon(rig.free.receiver().receive()).await.unwrap();
        delivery.retry_after(HOUR).await.unwrap();
        // Another one has the first note of the payload.
        delayed.offer("x", HOUR).id("b").until_done().await.unwrap();
        forbid(&rig, command);
        let error = rig.ready.release_all().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "without {command}: {error}");
        rig.permit();
        assert_eq!(rig.ready.release_all().await.unwrap(), 1, "without {command}");
        assert!(matches!(delayed.job("a").state().await.unwrap(), Some(JobState::Ready)), "{command}");
        let delivery = soon(rig.free.receiver().receive()).await.unwrap();
        assert_eq!(
            (delivery.job_id(), delivery.header("n")),
            (Some(&b"a"[..]), Some("1")),
            "without {command}"
        );
        delivery.ack().await.unwrap();
        client.shutdown().await;
        rig.client.shutdown().await;
    }
}

/// Without BLMOVE, a receiver asks.
#[tokio::test]
async fn a_receiver_that_may_not_wait_asks() {
    let rig = Rig::start().await;
    forbid(&rig, "blmove");
    let receiver = rig.ready.receiver();
    let receive = tokio::spawn(async move { receiver.receive().await?.ack().await });
    let asked = || rig.server.command_calls("evalsha");
    until_async("it asks", || async { asked() > 1 }).await;
    let (before, begun) = (asked(), Instant::now());
    tokio::time::sleep(ms(3_000)).await;
    let again = asked() - before;
    // About once a second, and a busy machine lets it sleep for longer.
    assert!(again <= 1 + 2 * begun.elapsed().as_secs(), "it does not ask all the time: {again} times");
    rig.free.put("late").await.unwrap();
    soon(receive).await.unwrap().unwrap();
    until_async("nothing is left", || async { rig.free.unsettled().len().await.unwrap() == 0 }).await;
}
