//! Timers of this process.

use std::time::Duration;

use futures::StreamExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::time::DelayQueue;

use super::store::{Store, Taken};

pub(super) struct Timers {
    offered: UnboundedSender<(String, Duration)>,
    _runtime: Runtime,
}

impl Timers {
    pub(super) fn start(taken: Taken) -> Self {
        let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let (offered, mut arrived) = unbounded_channel::<(String, Duration)>();
        runtime.spawn(async move {
            let mut queue = DelayQueue::<String>::new();
            loop {
                tokio::select! {
                    offered = arrived.recv() => match offered {
                        Some((message, delay)) => drop(queue.insert(message, delay)),
                        None => return,
                    },
                    Some(message) = queue.next(), if !queue.is_empty() => taken.note(message.get_ref()),
                }
            }
        });
        Self { offered, _runtime: runtime }
    }
}

impl Store for Timers {
    fn offer(&mut self, message: String, delay: Duration) {
        self.offered.send((message, delay)).expect("the task runs");
    }
}
