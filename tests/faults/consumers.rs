//! A load's receivers, its workers, and its programs that are not redelay: they receive or take continuously,
//! settle in every way, and record what they did.

use std::panic::resume_unwind;
use std::time::Duration;

use fastrand::Rng;
use futures::StreamExt;
use redelay::worker::{Backoff, Context, Outcome};
use redelay::{Delivery, Receiver, Worker};
use redelay_fixture::redis;
use redelay_support::{HOUR, MINUTE, TARGET, ms};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::deliveries::End;
use crate::ledger::{Ledger, outcome};
use crate::workload::{drop_after, random_pause};

type Queues = redelay_support::Queues<i64>;

/// A receiver, or a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consumer {
    pub(crate) how: How,
    pub(crate) lease: Duration,
    pub(crate) attempts: u32,
    /// Whether leases are extended in the background.
    pub(crate) extends: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Receives,
    /// Without waiting.
    Tries,
    WithTimeout,
    Many,
    Streams,
    /// Drops some of the futures.
    Drops,
    /// A worker with this number of handlers.
    Works(usize),
}

impl How {
    pub(crate) fn deed(self) -> &'static str {
        match self {
            Self::Receives => "messages received",
            Self::Tries => "messages received without waiting",
            Self::WithTimeout => "messages received with a timeout",
            Self::Many => "messages received with others",
            Self::Streams => "messages streamed",
            Self::Drops => "messages received by calls that may be dropped",
            Self::Works(_) => "messages received by workers",
        }
    }
}

/// From this lease on, nothing is held beyond it: a plan is short.
const SHORT: Duration = Duration::from_secs(1);

/// Receives until the client is shut down.
pub(crate) async fn consume(consumer: Consumer, queues: Queues, ledger: Ledger, random: Rng) {
    match consumer.how {
        How::Works(concurrency) => work(consumer, concurrency, queues, ledger, random).await,
        _ => receive(consumer, queues, ledger, random).await,
    }
}

async fn receive(consumer: Consumer, queues: Queues, ledger: Ledger, mut random: Rng) {
    let receiver = queues.ready.receiver().lease(consumer.lease).max_attempts(consumer.attempts);
    let mut receiver = receiver.backoff(Backoff::fixed(ms(5)));
    if !consumer.extends {
        receiver = receiver.extend_for(Duration::ZERO);
    }
    let mut stream = receiver.clone().into_stream();
    loop {
        let received = match consumer.how {
            How::Tries => {
                sleep(random_pause(&mut random)).await;
                receiver.try_receive().await.map(Vec::from_iter)
            }
            How::WithTimeout => {
                let pause = random_pause(&mut random);
                receiver.receive_timeout(pause).await.map(Vec::from_iter)
            }
            How::Many => receiver
                .receive_many(random.usize(1..8))
                .await
                .map(|received| received.into_iter().map(|one| one.expect("a number")).collect()),
            How::Streams => match stream.next().await {
                Some(received) => received.map(|one| vec![one]),
                None => return,
            },
            How::Drops => match dropped(&receiver, &mut random).await {
                Some(received) => received.map(|one| vec![one]),
                None => {
                    ledger.record().deliveries.did("receives dropped");
                    continue;
                }
            },
            How::Receives | How::Works(_) => receiver.receive().await.map(|one| vec![one]),
        };
        match received {
            Ok(received) => {
                let received: Vec<_> = received
                    .into_iter()
                    .map(|one| (ledger.received(*one.value(), one.id(), one.attempt(), consumer), one))
                    .collect();
                for (index, one) in received {
                    settle(consumer, index, one, &ledger, &mut random).await;
                }
            }
            Err(error) if error.is_closed() => return,
            Err(error) => {
                outcome(&Err::<(), _>(error));
                sleep(ms(2)).await;
            }
        }
    }
}

/// Drops the future after some polls, most of all when a message is on its way to it.
async fn dropped(receiver: &Receiver<i64>, random: &mut Rng) -> Option<redelay::Result<Delivery<i64>>> {
    drop_after(random.usize(1..4), receiver.receive()).await
}

async fn settle(
    consumer: Consumer,
    index: usize,
    delivery: Delivery<i64>,
    ledger: &Ledger,
    random: &mut Rng,
) {
    let did = |deed| ledger.record().deliveries.did(deed);
    let number = *delivery.value();
    linger(delivery.attempt(), random).await;
    let answer = match random.u8(0..100) {
        0..7 => {
            did("messages retried by hand");
            ledger.ends(index, End::Failed);
            if random.bool() { delivery.retry() } else { delivery.retry_after(random_pause(random)) }
        }
        7..13 => {
            did("messages snoozed by hand");
            ledger.ends(index, End::Postponed);
            delivery.snooze(random_pause(random))
        }
        13..18 => {
            did("messages released by hand");
            ledger.ends(index, End::Postponed);
            delivery.release()
        }
        18..22 => {
            did("messages rejected by hand");
            ledger.ends(index, End::Rejected);
            delivery.reject("no")
        }
        22..26 => {
            did("deliveries dropped");
            ledger.ends(index, End::Failed);
            return;
        }
        26..29 => {
            did("settlements dropped");
            ledger.ends(index, End::Acknowledged);
            drop(delivery.ack());
            return;
        }
        29..31 if ledger.may_wait(number) => {
            did("messages that wait for an hour");
            ledger.ends(index, End::Postponed);
            delivery.snooze(HOUR)
        }
        what => {
            // What the server says to this, it says to the acknowledgement, too.
            if what < 36 && delivery.extend(consumer.lease + ms(random.u64(0..500))).await.is_ok() {
                did("leases extended by hand");
            }
            if consumer.lease <= SHORT && what < if consumer.extends { 38 } else { 60 } {
                sleep(consumer.lease * random.u32(21..32) / 20).await;
                did(if consumer.extends {
                    "deliveries held beyond a lease that is extended"
                } else {
                    "deliveries held beyond a lease that is not extended"
                });
            }
            did("messages acknowledged by hand");
            ledger.ends(index, End::Acknowledged);
            delivery.ack()
        }
    };
    ledger.answered(index, &answer.await);
}

/// Some of those that have lost their leases settle while another one has the message.
async fn linger(attempt: u32, random: &mut Rng) {
    if attempt > 1 && random.u8(0..4) == 0 {
        sleep(ms(150)).await;
    }
}

async fn work(consumer: Consumer, concurrency: usize, queues: Queues, ledger: Ledger, mut random: Rng) {
    let seed = random.u64(..);
    let limit = if consumer.lease <= SHORT { consumer.lease * 2 } else { ms(500) } + ms(300);
    let worker = Worker::new(&queues.ready).concurrency(concurrency).lease(consumer.lease).timeout(limit);
    let worker = worker.max_attempts(consumer.attempts).backoff(Backoff::fixed(ms(5)));
    let handler = move |number: i64, context: Context| {
        let ledger = ledger.clone();
        let index = ledger.received(number, context.id(), context.attempt(), consumer);
        let random = Rng::with_seed(seed.wrapping_add(index as u64));
        let attempt = context.attempt();
        async move {
            let _dropped = Dropped(&ledger, index);
            handle(consumer, (index, attempt), number, &ledger, random).await
        }
    };
    // It ends with the client.
    let stopped = worker.run_until(std::future::pending::<()>(), handler).await;
    stopped.expect("settings in their range");
}

async fn handle(
    consumer: Consumer,
    (index, attempt): (usize, u32),
    number: i64,
    ledger: &Ledger,
    mut random: Rng,
) -> Outcome {
    let did = |deed| ledger.record().deliveries.did(deed);
    let ends = |end| ledger.ends(index, end);
    sleep(random_pause(&mut random) / 2).await;
    linger(attempt, &mut random).await;
    match random.u8(0..100) {
        0..8 => {
            did("handlers that failed");
            ends(End::Failed);
            if random.bool() {
                Outcome::Retry("no".into())
            } else {
                Outcome::RetryAfter(random_pause(&mut random), "no".into())
            }
        }
        8..14 => {
            did("handlers that snoozed");
            ends(End::Postponed);
            Outcome::Snooze(random_pause(&mut random))
        }
        14..18 => {
            did("handlers that rejected");
            ends(End::Rejected);
            Outcome::Reject("no".into())
        }
        18..22 => {
            did("handlers that panicked");
            ends(End::Failed);
            // Without a message on the terminal.
            resume_unwind(Box::new("no"))
        }
        22..23 => {
            did("handlers that timed out");
            ends(End::Failed);
            sleep(HOUR).await;
            Outcome::Done
        }
        23..25 if ledger.may_wait(number) => {
            did("messages that wait for an hour");
            ends(End::Postponed);
            Outcome::Snooze(HOUR)
        }
        what => {
            if what < 27 && consumer.lease <= SHORT {
                sleep(consumer.lease * 3 / 2).await;
                did("handlers that ran for longer than a lease");
            }
            did("messages handled");
            ends(End::Acknowledged);
            Outcome::Done
        }
    }
}

/// A handler that was dropped before it ended: it has timed out, or the lease was lost.
struct Dropped<'a>(&'a Ledger, usize);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.record().deliveries.ends_if_open(self.1, End::Failed);
    }
}

/// Takes as another library does: a `BLPOP` on a connection of its own. A payload whose reply is lost is
/// lost.
pub(crate) async fn take_elsewhere(url: String, ledger: Ledger, stop: CancellationToken) {
    let taking = spawn_blocking(move || {
        let client = redis::Client::open(url).expect("an address");
        while !stop.is_cancelled() {
            if let Ok(mut connection) = client.get_connection_with_timeout(ms(300)) {
                // A server or a proxy may be silent for ever.
                let _ = connection.set_read_timeout(Some(ms(1_000)));
                while !stop.is_cancelled() && take_one(&mut connection, &ledger).is_some() {}
            }
            std::thread::sleep(ms(5));
        }
    });
    tokio::time::timeout(10 * MINUTE, taking).await.expect("it ends").expect("it goes on whatever happens");
}

/// `None` if the connection cannot be used any more. If the other side has not ended it, this program or the
/// server was held up, and a payload may have been on its way.
fn take_one(connection: &mut redis::Connection, ledger: &Ledger) -> Option<()> {
    let popped = redis::cmd("BLPOP").arg(TARGET).arg(0.1).query::<redis::Value>(connection);
    if popped.as_ref().is_err_and(|error| !error.is_connection_dropped()) {
        ledger.record().given_up_elsewhere += 1;
    }
    let popped = popped.ok()?;
    if popped != redis::Value::Nil {
        let (list, number): (String, i64) = redis::FromRedisValue::from_redis_value(popped).ok()?;
        if list != TARGET {
            return None;
        }
        ledger.took([number]);
        ledger.record().deliveries.did("payloads taken by another program");
    }
    Some(())
}
