//! The running part: a producer, what is asked of the server, and what the keys do to orders. Whatever
//! happens is reported as an event.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redelay::admin::{DeadLetter, UnsettledMessage};
use redelay::delayed_queue::Ticket;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::event::{Dead, Event, Queue, Sizes, Unsettled};
use crate::ledger::Stage;
use crate::order::{Order, Side};
use crate::server::Server;

const OFFER_EVERY: Duration = Duration::from_millis(200);
/// Delays in milliseconds.
pub(crate) const DELAYS: std::ops::Range<u64> = 300..6000;
const NEW_DELAY: Duration = Duration::from_secs(5);
/// The most rows of a list that are read.
const ROWS: usize = 50;

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
        };
        (Arc::new(shop), received)
    }

    pub(crate) fn start(self: &Arc<Self>) {
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

    /// Asks the server what there is, again and again.
    async fn measure(self: Arc<Self>) {
        loop {
            // The time before the question: what has arrived since then is not missing.
            let at = self.now();
            match timeout(Duration::from_millis(500), self.look()).await {
                Ok(Ok(queue)) => self.report_at(at, Event::Queue(queue)),
                _ => self.report(Event::Disconnected),
            }
            sleep(Duration::from_millis(150)).await;
        }
    }

    async fn look(&self) -> redelay::Result<Queue> {
        let sizes = self.sizes().await?;
        let unsettled = self.ready.unsettled();
        let in_flight = unsettled.in_flight(None, ROWS).await?;
        let waiting = unsettled.waiting(None, ROWS).await?;
        let dead = self.ready.dead_letters().read(None, ROWS).await?;
        Ok(Queue {
            connected: self.client.stats().connected,
            sizes,
            in_flight: in_flight.iter().filter_map(|message| self.unsettled(message)).collect(),
            waiting: waiting.iter().filter_map(|message| self.unsettled(message)).collect(),
            dead: dead.iter().filter_map(|letter| self.dead(letter)).collect(),
        })
    }

    fn unsettled(&self, message: &UnsettledMessage) -> Option<Unsettled> {
        let order = self.ready.decode(&message.payload).ok()?;
        Some(Unsettled { order, attempt: message.attempt, remaining: message.remaining })
    }

    fn dead(&self, letter: &DeadLetter) -> Option<Dead> {
        let order = self.ready.decode(&letter.payload).ok()?;
        Some(Dead { order, failed: letter.failed, lost: letter.lost, error: letter.error.clone() })
    }

    /// One call: what moves meanwhile is counted once.
    pub(crate) async fn sizes(&self) -> redelay::Result<Sizes> {
        let stats = self.delayed.stats().await?;
        let receiving = &stats.receiving;
        Ok(Sizes {
            ready: stats.ready as usize,
            timeout_set: stats.pending as usize,
            ordered_list: stats.list_len as usize,
            overdue: stats.overdue as usize,
            in_flight: receiving.in_flight as usize,
            waiting: receiving.waiting as usize,
            dead: receiving.dead_letters as usize,
        })
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

    pub(crate) async fn kill_connections(self: Arc<Self>) {
        let Some(server) = Server::parse(&self.url) else {
            return self.note("connections can be killed only where the URL is redis://");
        };
        match server.kill_connections(&self.name).await {
            Ok(killed) => self.report(Event::ConnectionsKilled(killed)),
            Err(error) => self.note(format!("CLIENT KILL: {error}")),
        }
    }

    /// Nothing of this run stays in Redis. False when the server cannot be reached. No consumer runs any
    /// more.
    pub(crate) async fn clear(&self) -> bool {
        let producer = lock(&self.producer).take();
        if let Some(producer) = producer {
            producer.abort();
            let _ = producer.await;
        }
        for _ in 0..3 {
            if self.try_to_clear().await.is_ok() {
                return true;
            }
        }
        false
    }

    async fn try_to_clear(&self) -> redelay::Result<()> {
        // First what is pending: it may become ready at any time.
        self.delayed.clear().await?;
        self.ready.clear().await?;
        let unsettled = self.ready.unsettled();
        unsettled.remove_all(usize::MAX).await?;
        // Those of killed consumers, whose leases have not ended.
        for message in unsettled.in_flight(None, ROWS).await? {
            unsettled.remove(message.id).await?;
        }
        self.ready.dead_letters().remove_all(usize::MAX).await?;
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.client.shutdown().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
