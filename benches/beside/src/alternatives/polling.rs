//! A sorted set, which a thread polls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use redelay_fixture::redis::{Client, Connection, Script, cmd};

use super::store::{Store, Taken};
use crate::job::{due, now};

/// Members of one poll. After a full one, the next follows at once.
const MOST: usize = 100;

const POLL: &str = "
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
return due";

pub(super) struct Polled {
    queue: String,
    connection: Connection,
    stop: Arc<AtomicBool>,
    poller: Option<JoinHandle<()>>,
}

impl Polled {
    pub(super) fn start(url: &str, queue: &str, interval: Duration, taken: Taken) -> Self {
        let connect = || Client::open(url).and_then(|client| client.get_connection()).expect("a connection");
        let (mut polling, key, stop) = (connect(), queue.to_owned(), Arc::<AtomicBool>::default());
        let is_over = stop.clone();
        let poller = spawn(move || {
            let script = Script::new(POLL);
            while !is_over.load(Relaxed) {
                let millis = now() / 1_000;
                let mut poll = script.key(&key);
                let due: Vec<String> = poll.arg(millis).arg(MOST).invoke(&mut polling).expect("an answer");
                due.iter().for_each(|message| taken.note(message));
                if due.len() < MOST {
                    sleep(interval);
                }
            }
        });
        Self { queue: queue.to_owned(), connection: connect(), stop, poller: Some(poller) }
    }
}

impl Store for Polled {
    fn offer(&mut self, message: String, _delay: Duration) {
        // Rounded up, so that nothing is due early.
        let at = (due(&message) + 999) / 1_000;
        cmd("ZADD").arg(&self.queue).arg(at).arg(message).exec(&mut self.connection).expect("ZADD");
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.poller.take().map(JoinHandle::join);
    }
}
