//! The commands of acknowledged receive.

use std::collections::HashMap;
use std::error::Error;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use redelay::admin::{DeadLetter, DeadReason};
use redelay::codec::Codec;
use redelay::receiver::MessageId;
use redelay::worker::{Context, Failure, Outcome};
use redelay::{BlockingQueue, Client, Delivery, ErrorKind, Receiver, Worker};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::{Answer, Chosen, Refusal, millis};

/// How long a worker lets handlers go on after they could have slept.
const GRACE: Duration = Duration::from_secs(20);
/// How long a payload that cannot be read may take to be settled.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

/// The receivers of this peer, and the deliveries that they got.
pub(crate) struct Messages {
    client: Client,
    codec: Chosen,
    leases: HashMap<String, Lease>,
    receivers: HashMap<String, Receiver<Value>>,
    /// By queue and id.
    deliveries: HashMap<(String, String), Named>,
}

/// The settings of the receiver of a queue.
#[derive(Clone, Copy)]
struct Lease {
    length: Duration,
    attempts: u32,
    heartbeat: bool,
}

/// What an id names.
enum Named {
    Held(Box<Delivery<Value>>),
    /// It could not be settled, because it is somebody else's.
    Lost,
}

impl Messages {
    pub(crate) fn new(client: Client, codec: Chosen) -> Self {
        Self { client, codec, leases: HashMap::new(), receivers: HashMap::new(), deliveries: HashMap::new() }
    }

    /// Others get at once what was not settled. It does not count as an attempt.
    pub(crate) async fn release(&mut self) {
        let named = mem::take(&mut self.deliveries).into_values();
        let held = named.filter_map(|named| match named {
            Named::Held(delivery) => Some(delivery.release()),
            Named::Lost => None,
        });
        join_all(held).await;
    }

    fn blocking(&self, queue: &str) -> BlockingQueue<Value> {
        self.client.blocking_queue(queue, self.codec.clone())
    }

    fn receiver(&mut self, queue: &str) -> Receiver<Value> {
        if let Some(receiver) = self.receivers.get(queue) {
            return receiver.clone();
        }
        let receiver = self.blocking(queue).receiver();
        // A delivery is kept until it is settled.
        let receiver = match self.leases.get(queue) {
            Some(Lease { length, attempts, heartbeat }) => {
                let extend_for = if *heartbeat { Duration::MAX } else { Duration::ZERO };
                receiver.lease(*length).max_attempts(*attempts).extend_for(extend_for)
            }
            None => receiver.extend_for(Duration::MAX),
        };
        self.receivers.insert(queue.to_owned(), receiver.clone());
        receiver
    }

    pub(crate) async fn run(&mut self, fields: &[&str]) -> Answer {
        let done = Ok("ok".to_owned());
        match *fields {
            ["lease", queue, length, attempts, heartbeat] => {
                let heartbeat = match heartbeat {
                    "on" => true,
                    "off" => false,
                    _ => return Err(format!("a heartbeat is `on` or `off`, not `{heartbeat}`").into()),
                };
                let lease = Lease { length: millis(length)?, attempts: attempts.parse()?, heartbeat };
                self.leases.insert(queue.to_owned(), lease);
                self.receivers.remove(queue);
                done
            }
            // In boxes, since the compiler does not follow futures inside futures any deeper.
            ["receive", queue, wait] => Box::pin(self.receive(queue, millis(wait)?)).await,
            ["receivemany", queue, most] => Box::pin(self.receive_many(queue, most.parse()?)).await,
            ["ack", queue, id] => self.settle(queue, id, Delivery::ack).await,
            ["retry", queue, id, pause] => {
                let pause = millis(pause)?;
                self.settle(queue, id, |delivery| delivery.retry_after(pause)).await
            }
            ["snooze", queue, id, pause] => {
                let pause = millis(pause)?;
                self.settle(queue, id, |delivery| delivery.snooze(pause)).await
            }
            ["release", queue, id] => self.settle(queue, id, Delivery::release).await,
            ["reject", queue, id, reason] => self.settle(queue, id, |delivery| delivery.reject(reason)).await,
            ["extend", queue, id, by] => {
                let by = millis(by)?;
                match self.deliveries.get(&name(queue, id)) {
                    Some(Named::Held(delivery)) => delivery.extend(by).await?,
                    Some(Named::Lost) => return Err(lost(id)),
                    None => return Err(unnamed(id)),
                }
                done
            }
            ["inflight", queue] => Ok(self.blocking(queue).unsettled().len().await?.to_string()),
            ["dead", queue] => self.dead(queue).await,
            ["requeue", queue, most] => {
                Ok(self.blocking(queue).dead_letters().requeue_all(most.parse()?).await?.to_string())
            }
            ["releaseall", queue] => Ok(self.blocking(queue).release_all().await?.to_string()),
            ["work", queue, count, concurrency, pause] => {
                self.work(queue, count.parse()?, concurrency.parse()?, millis(pause)?).await
            }
            [command, ..] => Err(format!("no command `{command}` with {} fields", fields.len() - 1).into()),
            [] => Err("an empty line".into()),
        }
    }

    async fn receive(&mut self, queue: &str, wait: Duration) -> Answer {
        match self.receiver(queue).receive_timeout(wait).await {
            Ok(Some(delivery)) => Ok(self.named(queue, delivery)),
            Ok(None) => Ok(Value::Null.to_string()),
            Err(error) => Err(self.unreceived(queue, error).await),
        }
    }

    /// Of messages that cannot be read, the answer says something only if there is no other.
    async fn receive_many(&mut self, queue: &str, most: usize) -> Answer {
        let receiver = self.receiver(queue);
        let received = join_all((0..most).map(|_| receiver.try_receive())).await;
        let (mut printed, mut first_error) = (Vec::new(), None);
        for delivery in received {
            match delivery {
                Ok(Some(delivery)) => printed.push(self.named(queue, delivery)),
                Ok(None) => {}
                Err(error) => {
                    let error = self.unreceived(queue, error).await;
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if printed.is_empty() => Err(error),
            _ => Ok(format!("[{}]", printed.join(","))),
        }
    }

    /// Keeps a delivery under its id, and prints it. An older delivery of the message no longer holds.
    fn named(&mut self, queue: &str, delivery: Delivery<Value>) -> String {
        let (id, attempt) = (delivery.id().to_string(), delivery.attempt());
        let job = delivery.job_id().map(|id| format!(r#""job":{},"#, json!(String::from_utf8_lossy(id))));
        let job = job.unwrap_or_default();
        let printed = format!(r#"{{"id":"{id}","attempt":{attempt},{job}"value":{}}}"#, delivery.value());
        self.deliveries.insert(name(queue, &id), Named::Held(Box::new(delivery)));
        printed
    }

    async fn unreceived(&self, queue: &str, error: redelay::Error) -> Box<dyn Error> {
        let Some(payload) = error.payload() else { return error.into() };
        // It is settled in the background; the next command is to find that done.
        let unsettled = self.blocking(queue).unsettled();
        let settled = async {
            while unsettled
                .in_flight(None, 1000)
                .await
                .is_ok_and(|messages| messages.iter().any(|message| message.payload[..] == payload[..]))
            {
                sleep(Duration::from_millis(2)).await;
            }
        };
        let _ = timeout(SETTLED_WITHIN, settled).await;
        Refusal { kind: "undecodable", why: error.to_string() }.into()
    }

    async fn settle(
        &mut self,
        queue: &str,
        id: &str,
        how: impl FnOnce(Delivery<Value>) -> BoxFuture<'static, redelay::Result<()>>,
    ) -> Answer {
        match self.deliveries.remove(&name(queue, id)) {
            Some(Named::Held(delivery)) => match how(*delivery).await {
                Ok(()) => Ok("ok".to_owned()),
                Err(error) => {
                    if error.kind() == ErrorKind::LeaseLost {
                        self.deliveries.insert(name(queue, id), Named::Lost);
                    }
                    Err(error.into())
                }
            },
            Some(Named::Lost) => {
                self.deliveries.insert(name(queue, id), Named::Lost);
                Err(lost(id))
            }
            None => Err(unnamed(id)),
        }
    }

    async fn dead(&self, queue: &str) -> Answer {
        let letters = self.blocking(queue).dead_letters().read(None, usize::MAX).await?;
        let printed: Vec<String> = letters.iter().map(|letter| self.printed(letter)).collect();
        Ok(format!("[{}]", printed.join(",")))
    }

    fn printed(&self, letter: &DeadLetter) -> String {
        let DeadLetter { id, reason, error, failed, lost, payload, .. } = letter;
        let value = self.codec.decode(payload).unwrap_or(Value::Null);
        // Attempts that failed and lost ones are counted; the attempt that ended in a rejection is one more.
        let (reason, last) = match reason {
            DeadReason::Rejected => (error.as_str(), 1),
            DeadReason::Undecodable => (reason.as_str(), 1),
            _ => (reason.as_str(), 0),
        };
        let attempts = failed + lost + last;
        format!(r#"{{"id":"{id}","value":{value},"reason":{},"attempts":{attempts}}}"#, json!(reason))
    }

    async fn work(&self, queue: &str, count: usize, concurrency: usize, pause: Duration) -> Answer {
        let done = Arc::new(Done::default());
        // Again, if a message could not be acknowledged.
        while done.count() < count {
            let mut worker = Worker::new(&self.blocking(queue)).concurrency(concurrency).grace(pause + GRACE);
            if let Some(Lease { length, attempts, .. }) = self.leases.get(queue).copied() {
                worker = worker.lease(length).max_attempts(attempts);
            }
            let (on_failure, at_stop, handled) = (done.clone(), done.clone(), done.clone());
            let worker = worker.on_failure(move |failure| on_failure.remove(failure));
            let handler = move |value: Value, context: Context| {
                let done = handled.clone();
                async move {
                    sleep(pause).await;
                    done.add(context.id(), value, count);
                    Outcome::Done
                }
            };
            worker.run_until(at_stop.enough.notified(), handler).await?;
        }
        let values = mem::take(&mut *done.values()).into_iter().map(|(_, value)| value);
        Ok(Value::Array(values.collect()).to_string())
    }
}

/// What a worker has done.
#[derive(Default)]
struct Done {
    /// In the order of completion.
    values: Mutex<Vec<(MessageId, Value)>>,
    enough: Notify,
}

impl Done {
    fn values(&self) -> MutexGuard<'_, Vec<(MessageId, Value)>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) -> usize {
        self.values().len()
    }

    fn add(&self, id: MessageId, value: Value, enough: usize) {
        let mut values = self.values();
        values.push((id, value));
        if values.len() >= enough {
            self.enough.notify_one();
        }
    }

    /// It was completed, but not acknowledged.
    fn remove(&self, failure: &Failure) {
        let mut values = self.values();
        if let Some(at) = values.iter().rposition(|(id, _)| Some(*id) == failure.id) {
            values.remove(at);
        }
    }
}

fn name(queue: &str, id: &str) -> (String, String) {
    (queue.to_owned(), id.to_owned())
}

fn unnamed(id: &str) -> Box<dyn Error> {
    format!("`{id}` names no delivery of this peer that is to be settled").into()
}

fn lost(id: &str) -> Box<dyn Error> {
    Refusal { kind: "leaselost", why: format!("`{id}` was lost before") }.into()
}
