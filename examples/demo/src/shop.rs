//! The running part: a producer, consumers, and what the keys do to them. Whatever happens is reported as an event.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redelay::delayed_queue::Ticket;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::event::{Event, Sizes};
use crate::ledger::Stage;
use crate::model::CONSUMERS;
use crate::order::{Order, Side, Taker};
use crate::server::Server;

const OFFER_EVERY: Duration = Duration::from_millis(100);
/// Delays in milliseconds.
pub(crate) const DELAYS: std::ops::Range<u64> = 300..6000;
const NEW_DELAY: Duration = Duration::from_secs(5);
const CONSUMER_BACK_AFTER: Duration = Duration::from_secs(2);

pub(crate) type Events = mpsc::UnboundedReceiver<(Duration, Event)>;

pub(crate) struct Shop {
    pub(crate) name: String,
    url: String,
    begun: Instant,
    events: mpsc::UnboundedSender<(Duration, Event)>,
    client: Client,
    ready: BlockingQueue<Order>,
    delayed: DelayedQueue<Order>,
    tickets: Mutex<HashMap<u32, Ticket>>,
    last_id: AtomicU32,
    offering: AtomicBool,
    producer: Mutex<Option<JoinHandle<()>>>,
    consumers: Mutex<Vec<JoinHandle<()>>>,
}

impl Shop {
    pub(crate) fn new(client: Client, name: &str, url: &str) -> (Arc<Self>, Events) {
        let ready = client.blocking_queue::<Order>(name, codec::Json);
        let delayed = client.delayed_queue(&ready);
        let (events, received) = mpsc::unbounded_channel();
        let shop = Self {
            name: name.to_owned(),
            url: url.to_owned(),
            begun: Instant::now(),
            events,
            client,
            ready,
            delayed,
            tickets: Mutex::default(),
            last_id: AtomicU32::new(0),
            offering: AtomicBool::new(true),
            producer: Mutex::default(),
            consumers: Mutex::default(),
        };
        (Arc::new(shop), received)
    }

    pub(crate) fn start(self: &Arc<Self>) {
        for number in 0..CONSUMERS {
            lock(&self.consumers).push(tokio::spawn(self.clone().consume(number)));
        }
        *lock(&self.producer) = Some(tokio::spawn(self.clone().produce()));
        tokio::spawn(self.clone().measure());
    }

    /// Since the demo began.
    pub(crate) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(crate) fn report(&self, event: Event) {
        self.report_at(self.now(), event);
    }

    fn report_at(&self, at: Duration, event: Event) {
        // Nobody listens any more: the demo is over.
        let _ = self.events.send((at, event));
    }

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.report(Event::Note(text.into()));
    }

    /// Whether orders are to be offered now.
    pub(crate) fn set_offering(&self, offering: bool) {
        self.offering.store(offering, Ordering::Relaxed);
    }

    pub(crate) fn is_offering(&self) -> bool {
        self.offering.load(Ordering::Relaxed)
    }

    pub(crate) fn next_order(&self) -> Order {
        Order::random(self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    async fn produce(self: Arc<Self>) {
        let mut ticks = interval(OFFER_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.is_offering() {
                continue;
            }
            let (order, delay) = (self.next_order(), Duration::from_millis(fastrand::u64(DELAYS)));
            let id = order.id;
            self.report(Event::Offering { order: order.clone(), by: Side::Rust, due: self.now() + delay });
            let stage = match self.delayed.offer(&order, delay).await {
                Ok(ticket) => {
                    lock(&self.tickets).insert(id, ticket);
                    Stage::Stored
                }
                Err(error) => {
                    self.note(error.to_string());
                    if error.is_outcome_unknown() { Stage::Unsure } else { Stage::Refused }
                }
            };
            self.report(Event::Became { id, stage });
        }
    }

    async fn consume(self: Arc<Self>, number: usize) {
        loop {
            match self.ready.take().await {
                Ok(Order { id, .. }) => self.report(Event::Taken { id, by: Taker::Consumer(number) }),
                Err(error) if error.is_closed() => return,
                Err(error) => {
                    self.note(error.to_string());
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    /// Asks the server how much there is, again and again.
    async fn measure(self: Arc<Self>) {
        loop {
            // The time before the question: what has arrived since then is not missing.
            let at = self.now();
            if let Some(sizes) = self.sizes().await {
                self.report_at(at, Event::Sizes(sizes));
            } else {
                self.report(Event::Disconnected);
            }
            sleep(Duration::from_millis(150)).await;
        }
    }

    pub(crate) async fn sizes(&self) -> Option<Sizes> {
        let stats = timeout(Duration::from_millis(500), self.delayed.stats()).await.ok()?.ok()?;
        let [ready, timeout_set, ordered_list, overdue] =
            [stats.ready, stats.pending, stats.list_len, stats.overdue].map(|size| size as usize);
        Some(Sizes { connected: self.client.stats().connected, ready, timeout_set, ordered_list, overdue })
    }

    pub(crate) async fn cancel(self: Arc<Self>, id: u32) {
        let Some(ticket) = self.ticket(id) else { return };
        let mut sure = true;
        for _ in 0..3 {
            match self.delayed.cancel(&ticket).await {
                Ok(true) => return self.report(Event::Became { id, stage: Stage::Cancelled }),
                Ok(false) if sure => return self.note(format!("too late to cancel order {id}: it is ready")),
                // It was cancelled by the call whose reply was lost, or is ready: the ledger will see.
                Ok(false) => return self.report(Event::Became { id, stage: Stage::Unsure }),
                Err(error) => {
                    sure &= !error.is_outcome_unknown();
                    self.note(error.to_string());
                }
            }
        }
        if !sure {
            self.report(Event::Became { id, stage: Stage::Unsure });
        }
    }

    pub(crate) async fn reschedule(self: Arc<Self>, id: u32) {
        let Some(ticket) = self.ticket(id) else { return };
        let due = self.now() + NEW_DELAY;
        match self.delayed.reschedule(&ticket, NEW_DELAY).await {
            Ok(true) => self.report(Event::Rescheduled { id, due, sure: true }),
            Ok(false) => self.note(format!("too late to reschedule order {id}: it is ready")),
            Err(error) => {
                if error.is_outcome_unknown() {
                    self.report(Event::Rescheduled { id, due, sure: false });
                }
                self.note(error.to_string());
            }
        }
    }

    fn ticket(&self, id: u32) -> Option<Ticket> {
        lock(&self.tickets).get(&id).cloned()
    }

    /// Drops the task of a consumer while it takes; another one starts in its place a little later.
    pub(crate) async fn kill_consumer(self: Arc<Self>, number: usize) {
        lock(&self.consumers)[number].abort();
        self.report(Event::ConsumerKilled(number));
        sleep(CONSUMER_BACK_AFTER).await;
        lock(&self.consumers)[number] = tokio::spawn(self.clone().consume(number));
        self.report(Event::ConsumerBack(number));
    }

    pub(crate) async fn kill_connections(self: Arc<Self>) {
        let Some(server) = Server::parse(&self.url) else {
            return self.note("connections can be killed only where the URL is redis://");
        };
        match server.kill_connections(&self.name).await {
            Ok(killed) => self.report(Event::ConnectionsKilled(killed)),
            Err(error) => self.note(format!("CLIENT KILL: {error}")),
        }
    }

    /// Ends early: nothing of this run stays in Redis. False when the server cannot be reached.
    pub(crate) async fn clear(&self) -> bool {
        let producer = lock(&self.producer).take();
        if let Some(producer) = producer {
            producer.abort();
            let _ = producer.await;
        }
        for _ in 0..3 {
            // First what is pending: it may become ready at any time.
            if self.delayed.clear().await.is_ok() && self.ready.clear().await.is_ok() {
                return true;
            }
        }
        false
    }

    pub(crate) async fn close(&self) {
        self.client.shutdown().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
