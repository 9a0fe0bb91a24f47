//! Clients that are busy in one role, whatever they are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_support::ms;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::relay::{Relay, Role};

const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Crew {
    url: String,
    clients: Vec<Client>,
    busy: JoinSet<()>,
    is_over: Arc<AtomicBool>,
}

impl Crew {
    pub(crate) async fn start(relay: &Relay, role: Role, clients: usize) -> Self {
        let (mut all, mut busy, is_over) = (Vec::new(), JoinSet::new(), Arc::<AtomicBool>::default());
        for number in 0..clients {
            let client = connect(&relay.url()).await;
            let tasks = match role {
                Role::Connect => 2,
                Role::Commands => 12,
                Role::Pops => 6,
                Role::Subscriber => 2,
            };
            for task in 0..tasks {
                let worker = Worker::new(&client, number, task);
                let (over, url) = (is_over.clone(), relay.url());
                busy.spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        // A hostile reply may leave a call waiting, for a blocking pop of ten seconds for
                        // example.
                        let _ = timeout(PATIENCE, worker.work(role, &url)).await;
                    }
                });
            }
            all.push(client);
        }
        Self { url: relay.url(), clients: all, busy, is_over }
    }

    /// Everything works again: what is offered is taken, by the clients of before and by a new one.
    pub(crate) async fn works(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = self.clients.clone();
        all.push(connect(&self.url).await);
        for (number, client) in all.iter().enumerate() {
            let ready = client.blocking_queue(&format!("at the end {number}"), codec::Long);
            let delayed = client.delayed_queue(&ready);
            for n in 0.. {
                let _ = delayed.offer(&n, ms(1)).await;
                if let Ok(Ok(Some(_))) = timeout(PATIENCE, ready.poll_timeout(ms(1_000))).await {
                    break;
                }
            }
        }
        all.pop().expect("the new one").shutdown().await;
    }

    pub(crate) async fn end(mut self) {
        while self.busy.join_next().await.is_some() {}
        for client in &self.clients {
            client.shutdown().await;
        }
    }
}

/// However long it takes on a busy machine.
async fn connect(url: &str) -> Client {
    loop {
        let client = Client::builder().url(url).connect_timeout(ms(2_000)).command_timeout(ms(500));
        match client.connect().await {
            Ok(client) => return client,
            Err(_) => sleep(ms(50)).await,
        }
    }
}

struct Worker {
    client: Client,
    ready: BlockingQueue<String>,
    other: BlockingQueue<String>,
    delayed: DelayedQueue<String>,
    name: String,
}

impl Worker {
    fn new(client: &Client, number: usize, task: usize) -> Self {
        let (name, next) = (format!("q{number}"), format!("q{}", number + 1));
        let ready = client.blocking_queue(&name, codec::String);
        let other = client.blocking_queue(&next, codec::String);
        let delayed = client.delayed_queue(&ready);
        Self { client: client.clone(), ready, other, delayed, name: format!("{name}-{task}") }
    }

    async fn work(&self, role: Role, url: &str) {
        match role {
            Role::Connect => self.connect(url).await,
            Role::Commands => self.command().await,
            Role::Pops => self.pop().await,
            Role::Subscriber => self.listen().await,
        }
    }

    async fn connect(&self, url: &str) {
        let client = Client::builder().url(url).connect_timeout(ms(100)).command_timeout(ms(100));
        if let Ok(client) = client.connect().await {
            client.shutdown().await;
        }
        let _ = self.ready.len().await;
    }

    async fn command(&self) {
        let (ready, delayed, payload) = (&self.ready, &self.delayed, "a".to_owned());
        let all = || [payload.clone(), payload.clone()];
        let mut random = Rng::new();
        match random.u32(0..30) {
            0..4 => drop(delayed.offer(&payload, ms(random.u64(..3))).await),
            4 => drop(delayed.offer_all(all().iter().map(|payload| (payload, ms(1)))).await),
            5 => drop(delayed.poll().await),
            6 => drop(delayed.poll_many(3).await),
            7 => drop(delayed.len().await),
            8 => drop(delayed.peek().await),
            9 => drop(delayed.read_all().await),
            10 => drop(delayed.stats().await),
            11 => drop(delayed.contains(&payload).await),
            12 => drop(delayed.remove(&payload).await),
            13 => drop(delayed.quarantine().read(None, 10).await),
            14 => drop(delayed.quarantine().len().await),
            15 => drop(delayed.expire(ms(10_000)).await),
            16 => drop(delayed.poll_last_and_offer_first_to("elsewhere").await),
            17 => {
                if let Ok(ticket) = delayed.offer(&payload, ms(100)).await {
                    let _ = (ticket.due(), ticket.to_string());
                    drop(delayed.reschedule(&ticket, ms(50)).await);
                    drop(delayed.cancel(&ticket).await);
                }
            }
            18 => drop(ready.put(&payload).await),
            19 => drop(ready.len().await),
            20 => drop(ready.peek().await),
            21 => drop(ready.read_all().await),
            22 => drop(ready.stats().await),
            23 => drop(ready.contains(&payload).await),
            24 => drop(ready.remove(&payload).await),
            25 => drop(ready.poll_many(5).await),
            26 => drop(ready.poll().await),
            27 => drop(ready.poll_timeout(ms(5)).await),
            28 => drop(ready.poll_last_and_offer_first_to("elsewhere").await),
            _ => drop(delayed.clear().await),
        }
        let _ = self.client.stats();
    }

    async fn pop(&self) {
        let (ready, payload) = (&self.ready, "a".to_owned());
        let mut random = Rng::new();
        let wait = ms(random.u64(5..50));
        match random.u32(0..8) {
            0 | 1 => drop(self.ready.put(&payload).await),
            2 => drop(ready.poll_last_timeout(wait).await),
            3 => drop(ready.poll_from_any(wait, &["x", "y"]).await),
            4 => drop(ready.take_last_and_offer_first_to("elsewhere").await),
            5 => drop(self.other.poll_timeout(wait).await),
            _ => drop(ready.poll_timeout(wait).await),
        }
    }

    /// Queues that come and go, with something that is due in each.
    async fn listen(&self) {
        let mut random = Rng::new();
        let ready =
            self.client.blocking_queue::<String>(&format!("{}-{}", self.name, random.u8(..9)), codec::String);
        let delayed = self.client.delayed_queue(&ready);
        let payload = "a".to_owned();
        for _ in 0..random.usize(1..10) {
            let _ = delayed.offer(&payload, ms(random.u64(..20))).await;
            let _ = ready.poll_timeout(ms(random.u64(1..30))).await;
        }
    }
}
