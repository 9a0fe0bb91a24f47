//! The matrix of crashes in docs/guarantees.md, cell by cell: a call is lost before or after its execution,
//! and the client, its connection or the server ends, or a replica takes over that lacks the call. Another
//! receiver finds each message in the one place where it belongs, with its counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use redelay::receiver::MessageId;
use redelay::worker::Backoff;
use redelay::{Delivery, ErrorKind};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    DEAD, DEAD_MESSAGES, INBOX, LEASES, MESSAGES, Queues, RETRIES, ms, soon, still_builder,
};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::around_failover::until_replicated;
use super::on_threads::each_on_threads;
use super::receivers::count;

pub(crate) const LEASE: u64 = 1000;
/// How many cells run at a time.
pub(crate) const THREADS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// By a client that releases the message when it has it.
    Claim,
    /// The extension of a lease in the background. The message is acknowledged later.
    Heartbeat,
    Ack,
    Retry,
    Snooze,
    Release,
    Reject,
    /// Of a dead letter.
    Requeue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// The call was not executed.
    Request,
    /// It was.
    Reply,
    /// The client has the answer.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not come back. Another client takes over.
    ClientDies,
    /// The same client goes on.
    ConnectionIsCut,
    /// With `kill -9`. It starts again with its append-only file.
    ServerDies,
    /// It dies, and a replica takes over that has nothing of the call.
    FailsOver,
}

/// Those that lose nothing that the server has stored.
pub(crate) const FAULTS: [Fault; 3] = [Fault::ClientDies, Fault::ConnectionIsCut, Fault::ServerDies];

#[derive(Clone, Copy, Debug)]
struct Cell {
    call: Call,
    lost: Lost,
    fault: Fault,
}

/// What another receiver finds in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Gone,
    DeadLetter { failed: u32, lost: u32 },
    Message { failed: u32, lost: u32 },
}

impl Cell {
    /// What docs/guarantees.md says.
    fn expected(self) -> Found {
        // A client that lives repeats what was lost, and does not know what the server has lost.
        let is_done = match self.lost {
            Lost::Request => self.fault != Fault::ClientDies,
            Lost::Reply => true,
            Lost::Nothing => self.fault != Fault::FailsOver,
        };
        match (self.call, is_done) {
            // Nobody knows of the claim but the server.
            (Call::Claim, _) => {
                let is_lost = self.lost == Lost::Reply && self.fault == Fault::ClientDies;
                Found::Message { failed: 0, lost: u32::from(is_lost) }
            }
            (Call::Heartbeat, _) if self.fault == Fault::ClientDies => Found::Message { failed: 0, lost: 1 },
            (Call::Heartbeat, _) => Found::Gone,
            // It has failed once, and begins with the first attempt again.
            (Call::Requeue, true) => Found::Message { failed: 0, lost: 0 },
            (Call::Requeue, false) => Found::DeadLetter { failed: 1, lost: 0 },
            (_, false) => Found::Message { failed: 0, lost: 1 },
            (Call::Ack, true) => Found::Gone,
            (Call::Retry, true) => Found::Message { failed: 1, lost: 0 },
            (Call::Snooze | Call::Release, true) => Found::Message { failed: 0, lost: 0 },
            (Call::Reject, true) => Found::DeadLetter { failed: 0, lost: 0 },
        }
    }

    /// Whether the server has executed the call. The lease ended at `lease_end` before.
    fn is_executed(self, server: &Server, lease_end: f64) -> bool {
        match self.call {
            Call::Claim => count(server, "ZCARD", LEASES) == 1,
            Call::Heartbeat => self::lease_end(server) > lease_end,
            Call::Ack => count(server, "HLEN", MESSAGES) == 0,
            Call::Retry | Call::Snooze | Call::Release | Call::Requeue => {
                count(server, "ZCARD", RETRIES) == 1
            }
            Call::Reject => count(server, "ZCARD", DEAD) == 1,
        }
    }

    async fn run(self) {
        for _ in 0..50 {
            if self.meets_the_call().await {
                return;
            }
        }
        panic!("{self:?}: another call was on its way each time");
    }

    /// Returns false if another call of the receiver was on its way, and the fault met that one.
    async fn meets_the_call(self) -> bool {
        let server = durable_server();
        let proxy = Proxy::start(server.port());
        let replica = (self.fault == Fault::FailsOver).then(|| follow(&server));
        let mut other = Queues::of_numbers(still_builder(&server)).await;
        let first = Queues::of_numbers(still_builder(&proxy)).await;
        load_scripts(&server, &other).await;
        other.ready.put(&7).await.unwrap();
        // Only what settles has a receiver: its signs of life are calls, too.
        let (mut receiver, mut delivery) = (None, None);
        let id = if self.call == Call::Requeue {
            Some(bury(&other).await)
        } else {
            let receiving = first.ready.receiver().lease(ms(LEASE)).backoff(Backoff::fixed(ms(1)));
            if self.call != Call::Claim {
                delivery = Some(soon(receiving.receive()).await.unwrap());
            }
            receiver = Some(receiving);
            delivery.as_ref().map(Delivery::id)
        };
        // It lies beside the other one all the time.
        other.ready.put(&8).await.unwrap();

        let (claimed, over) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let call = || -> BoxFuture<'static, redelay::Result<()>> {
            let (claiming, has_claimed) = (receiver.clone(), claimed.clone());
            let (over, released) = (over.clone(), over.clone());
            let settle = |delivery: Delivery<i64>| -> BoxFuture<'static, redelay::Result<()>> {
                match self.call {
                    Call::Heartbeat => Box::pin(async move {
                        over.notified().await;
                        delivery.ack().await
                    }),
                    Call::Ack => delivery.ack(),
                    Call::Retry => delivery.retry(),
                    Call::Snooze => delivery.snooze(ms(1)),
                    Call::Release => delivery.release(),
                    Call::Claim | Call::Reject | Call::Requeue => delivery.reject("no"),
                }
            };
            let dead = first.ready.dead_letters();
            match (delivery, claiming) {
                (Some(delivery), _) => settle(delivery),
                (None, Some(receiver)) => Box::pin(async move {
                    let delivery = receiver.receive().await?;
                    has_claimed.notify_one();
                    released.notified().await;
                    delivery.release().await
                }),
                (None, None) => Box::pin(async move {
                    assert!(dead.requeue(id.expect("of the letter")).await?, "it is there");
                    Ok(())
                }),
            }
        };
        if let Some(replica) = &replica {
            promote(replica, &server).await;
        }
        if self.call == Call::Heartbeat {
            // A receiver makes a call every fifth of a lease, and extends it every third. The next call
            // extends it.
            sleep(ms(LEASE / 4)).await;
        }
        let (calling, before);
        match self.lost {
            Lost::Request => {
                proxy.blackhole(true);
                before = lease_end(&server);
                calling = tokio::spawn(call());
                // Until it was sent, which nobody can see.
                sleep(ms(if self.call == Call::Heartbeat { LEASE / 5 } else { 50 })).await;
            }
            Lost::Reply => {
                proxy.hold_replies(true);
                before = lease_end(&server);
                calling = tokio::spawn(call());
                if self.call == Call::Requeue {
                    // It looks for the letter first. This reply comes through, and no further byte.
                    until_async("the letter is found", || async { proxy.held() > 0 }).await;
                    proxy.refuse(true);
                    proxy.truncate(proxy.held());
                    proxy.hold_replies(false);
                }
                let executed = until_async("it is executed", || async { self.is_executed(&server, before) });
                if timeout(ms(2000), executed).await.is_err() {
                    return false;
                }
                if self.call == Call::Requeue {
                    until_async("the connection has ended", || async { proxy.connections() == 0 }).await;
                    proxy.truncate_nothing();
                }
            }
            Lost::Nothing => {
                before = lease_end(&server);
                calling = tokio::spawn(call());
                until_async("it is executed", || async { self.is_executed(&server, before) }).await;
                match self.call {
                    Call::Claim => soon(claimed.notified()).await,
                    // The reply comes through, which nobody can see.
                    Call::Heartbeat => sleep(ms(50)).await,
                    _ => until_async("it is answered", || async { calling.is_finished() }).await,
                }
            }
        }
        let is_answered = self.lost == Lost::Nothing && !matches!(self.call, Call::Claim | Call::Heartbeat);
        assert_eq!(calling.is_finished(), is_answered, "{self:?}");
        assert_eq!(self.is_executed(&server, before), self.lost != Lost::Request, "{self:?}");

        match self.fault {
            Fault::ClientDies => {
                proxy.refuse(true);
                proxy.cut();
                calling.abort();
            }
            Fault::ConnectionIsCut => restore(&proxy),
            Fault::ServerDies => {
                server.kill_9();
                restore(&proxy);
                server.start_again();
            }
            Fault::FailsOver => server.kill_9(),
        }
        if let Some(replica) = &replica {
            proxy.switch_to(replica.port());
            restore(&proxy);
            other = Queues::of_numbers(still_builder(replica)).await;
        }
        over.notify_one();
        if self.fault != Fault::ClientDies {
            match soon(calling).await.unwrap() {
                // The claim is lost.
                Err(error) if self.call == Call::Claim && self.lost == Lost::Nothing => {
                    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{self:?}: {error}");
                }
                answer => answer.unwrap_or_else(|error| panic!("{self:?}: {error}")),
            }
        }
        self.judge(replica.as_ref().unwrap_or(&server), &other, id).await;
        drop(receiver);
        true
    }

    /// Receives and reads all that there is.
    async fn judge(self, server: &Server, other: &Queues<i64>, id: Option<MessageId>) {
        let expected = self.expected();
        let receiver = other.ready.receiver().lease(ms(LEASE));
        let mut got = BTreeMap::new();
        let messages = if matches!(expected, Found::Message { .. }) { 2 } else { 1 };
        while got.len() < messages {
            let delivery = soon(receiver.receive()).await.unwrap();
            let (number, attempt) = (*delivery.value(), delivery.attempt());
            if number == 7 {
                assert_eq!(delivery.id(), id.unwrap_or(delivery.id()), "{self:?}: the id stays");
                delivery.reject("judged").await.unwrap();
            } else {
                delivery.ack().await.unwrap();
            }
            assert_eq!(got.insert(number, attempt), None, "{self:?}: {number} is there twice");
        }
        assert_eq!(got.get(&8), Some(&1), "{self:?}");
        let letters = other.ready.dead_letters().read(None, 9).await.unwrap();
        let found = match &letters[..] {
            [] => Found::Gone,
            [letter] => {
                assert_eq!(
                    (letter.id, letter.reason.as_str(), &letter.payload[..]),
                    (id.unwrap_or(letter.id), "rejected", &b"7"[..])
                );
                let (failed, lost) = (letter.failed, letter.lost);
                match letter.error.as_str() {
                    "no" => Found::DeadLetter { failed, lost },
                    _ => Found::Message { failed, lost },
                }
            }
            _ => panic!("{self:?}: {letters:?}"),
        };
        assert_eq!(found, expected, "{self:?}");
        if let Found::Message { failed, lost } = found {
            assert_eq!(got.get(&7), Some(&(1 + failed + lost)), "{self:?}");
        }
        let left =
            count(server, "LLEN", "q") + count(server, "LLEN", INBOX) + count(server, "HLEN", MESSAGES);
        let sets = count(server, "ZCARD", LEASES) + count(server, "ZCARD", RETRIES);
        assert_eq!((left, sets, count(server, "HLEN", DEAD_MESSAGES)), (0, 0, letters.len()), "{self:?}");
    }
}

/// When the first lease ends, epoch ms; 0 if there is none.
fn lease_end(server: &Server) -> f64 {
    let first: Vec<Vec<u8>> = server.get(["ZRANGE", LEASES, "0", "0", "WITHSCORES"]);
    first.get(1).map_or(0.0, |end| String::from_utf8_lossy(end).parse().expect("a number"))
}

/// A server that keeps all its writes when it is killed, and lets replicas synchronise at once.
pub(crate) fn durable_server() -> Server {
    Server::builder().appendonly(true).config("repl-diskless-sync-delay 0").start()
}

/// Starts a replica.
pub(crate) fn follow(server: &Server) -> Server {
    let replica = Server::start();
    replica.cmd(["REPLICAOF", "127.0.0.1", &server.port().to_string()]);
    replica
}

/// The replica becomes a master with all that the server has now, and with nothing that comes later.
pub(crate) async fn promote(replica: &Server, server: &Server) {
    until_async("the replica follows", || async { replica.follows(server) }).await;
    until_replicated(server, replica).await;
    replica.cmd(["REPLICAOF", "NO", "ONE"]);
}

/// Ends the connections, and lets new ones work.
pub(crate) fn restore(proxy: &Proxy) {
    proxy.cut();
    proxy.hold_replies(false);
    proxy.blackhole(false);
    proxy.refuse(false);
}

/// So that no call is sent twice because the server does not know its script.
async fn load_scripts(server: &Server, other: &Queues<i64>) {
    let receiver = other.ready.receiver();
    other.ready.put(&1).await.unwrap();
    let delivery = soon(receiver.receive()).await.unwrap();
    let id = delivery.id();
    delivery.reject("to load the scripts").await.unwrap();
    assert!(other.ready.dead_letters().requeue(id).await.unwrap());
    soon(receiver.receive()).await.unwrap().ack().await.unwrap();
    assert_eq!(count(server, "HLEN", MESSAGES), 0);
}

/// Makes a dead letter of the message, which has failed once before.
async fn bury(other: &Queues<i64>) -> MessageId {
    let receiver = other.ready.receiver();
    soon(receiver.receive()).await.unwrap().retry_after(ms(0)).await.unwrap();
    let again = soon(receiver.receive()).await.unwrap();
    let id = again.id();
    again.reject("no").await.unwrap();
    id
}

#[test]
fn each_cell_of_the_matrix_is_as_documented() {
    let mut cells = Vec::new();
    let settlements = [Call::Ack, Call::Retry, Call::Snooze, Call::Release, Call::Reject];
    for call in [Call::Claim, Call::Heartbeat, Call::Requeue].into_iter().chain(settlements) {
        for lost in [Lost::Request, Lost::Reply] {
            cells.extend(FAULTS.map(|fault| Cell { call, lost, fault }));
        }
        for lost in [Lost::Request, Lost::Reply, Lost::Nothing] {
            cells.push(Cell { call, lost, fault: Fault::FailsOver });
        }
    }
    assert_eq!(cells.len(), 72);
    each_on_threads(THREADS, cells, async |cell| cell.run().await);
}
