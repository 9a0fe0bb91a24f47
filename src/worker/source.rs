//! Which queue the next message comes from.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use tokio::time::sleep;

use crate::{BlockingQueue, Delivery, Error, Receiver, Result};

/// How often a runner that waits for an answer checks whether the server is silent.
const CHECK: Duration = Duration::from_millis(250);

/// A setting of the receivers.
pub(super) type Setting<T> = Box<dyn Fn(Receiver<T>) -> Receiver<T> + Send>;

/// The receivers of a worker.
#[derive(Debug)]
pub(super) struct Source<T> {
    receivers: Vec<(Arc<str>, Receiver<T>, u32)>,
    /// In order, rather than by weight.
    is_strict: bool,
}

/// A message, or why there is none, and the name of its queue.
pub(super) type NextMessage<'a, T> = (&'a Arc<str>, Result<Delivery<T>>);

/// The error for a setting out of its range.
pub(super) fn invalid(reason: impl Into<String>) -> Error {
    Error::invalid("`Worker::run`", reason)
}

impl<T: 'static> Source<T> {
    pub(super) fn new(
        queues: Vec<(BlockingQueue<T>, u32)>,
        is_strict: bool,
        set: &[Setting<T>],
        timeout: Duration,
    ) -> Result<Self> {
        if queues.is_empty() {
            return Err(invalid("the worker has no queue"));
        }
        let mut receivers: Vec<(Arc<str>, Receiver<T>, u32)> = Vec::with_capacity(queues.len());
        for (queue, weight) in queues {
            let name = Arc::<str>::from(queue.name());
            if weight == 0 {
                return Err(invalid(format!("the queue `{name}` has a weight of 0")));
            }
            if receivers.iter().any(|(other, ..)| *other == name) {
                return Err(invalid(format!("the worker has two queues with the name `{name}`")));
            }
            // A handler that runs is extended, however long that takes; after the timeout it no longer runs.
            let receiver = queue.receiver().extend_for(timeout.saturating_add(timeout));
            receivers.push((name, set.iter().fold(receiver, |receiver, setting| setting(receiver)), weight));
        }
        Ok(Self { receivers, is_strict })
    }

    /// Finds settings that are out of their range.
    pub(super) async fn check(&self) -> Result<()> {
        for (name, receiver, _) in &self.receivers {
            let checked = receiver.receive_many(0).await;
            checked.map_err(|error| error.of(format!("`Worker::run` on `{name}`")))?;
        }
        Ok(())
    }

    /// Waits until one of the clients takes no more. Cancel safe.
    pub(super) async fn closed(&self) {
        select_all(self.receivers.iter().map(|(_, receiver, _)| Box::pin(receiver.closed()))).await;
    }

    /// Waits for the next message. Cancel safe.
    pub(super) async fn next(&self) -> NextMessage<'_, T> {
        if let [(name, receiver, _)] = &self.receivers[..] {
            return (name, receiver.receive().await);
        }
        // Neither a queue that is refused nor one whose server is silent must hold up the others, and the
        // wait that follows goes through reconnections.
        let mut silent = self.silent();
        for index in self.order() {
            let (name, receiver, _) = &self.receivers[index];
            if silent.iter().any(|other| receiver.is_beside(other)) {
                continue;
            }
            let answer = pin!(receiver.try_receive());
            tokio::select! {
                biased;
                answer = answer => match answer {
                    Ok(Some(delivery)) => return (name, Ok(delivery)),
                    Err(error) if error.is_closed() || error.payload().is_some() => return (name, Err(error)),
                    Ok(None) | Err(_) => {}
                },
                () = self.falls_silent(receiver) => silent = self.silent(),
            }
        }
        // Messages that arrive at the same moment are released.
        let waiting = self.receivers.iter().map(|(_, receiver, _)| Box::pin(receiver.receive()));
        let (received, index, _) = select_all(waiting).await;
        (&self.receivers[index].0, received)
    }

    /// Waits until the servers of all these queues are silent. Cancel safe.
    pub(super) async fn all_silent<'a>(&self, names: impl Iterator<Item = &'a Arc<str>>) {
        for name in names {
            if let Some((_, receiver, _)) = self.receivers.iter().find(|(other, ..)| other == name) {
                self.silence(receiver).await;
            }
        }
    }

    /// Waits until the server of this receiver is silent. Cancel safe.
    async fn silence(&self, receiver: &Receiver<T>) {
        while !self.silent().iter().any(|other| receiver.is_beside(other)) {
            sleep(CHECK).await;
        }
    }

    /// The same, if its server was not silent when last checked: most answers come before the next check.
    async fn falls_silent(&self, receiver: &Receiver<T>) {
        sleep(CHECK).await;
        self.silence(receiver).await;
    }

    /// The receivers whose servers have not answered in time.
    fn silent(&self) -> Vec<&Receiver<T>> {
        self.receivers.iter().map(|(_, receiver, _)| receiver).filter(|one| one.is_silent()).collect()
    }

    /// In which order the queues are asked.
    fn order(&self) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.receivers.len()).collect();
        if self.is_strict {
            return left;
        }
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let sum: u64 = left.iter().map(|index| u64::from(self.receivers[*index].2)).sum();
            let mut at = fastrand::u64(..sum);
            let chosen = left.iter().position(|index| {
                let weight = u64::from(self.receivers[*index].2);
                let is_it = at < weight;
                at = at.saturating_sub(weight);
                is_it
            });
            order.push(left.remove(chosen.unwrap_or(0)));
        }
        order
    }
}
