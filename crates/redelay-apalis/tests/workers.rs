//! Workers of apalis on queues of a real server.
#![allow(missing_docs, reason = "a test has no API")]

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apalis::layers::WorkerBuilderExt;
use apalis::layers::retry::RetryPolicy;
use apalis_core::backend::TaskSink;
use apalis_core::error::{AbortError, BoxDynError, RetryAfterError, WorkerError};
use apalis_core::task::attempt::Attempt;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::data::Data;
use apalis_core::task::metadata::MetadataStore;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_core::worker::context::WorkerContext;
use futures::StreamExt;
use redelay::receiver::{Backoff, MessageId};
use redelay::{BlockingQueue, Client, DelayedQueue, Receiver, codec};
use redelay_apalis::RedelayBackend;
use redelay_fixture::{Server, until_async};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const LEASE: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
/// On a busy machine.
const SOON: Duration = Duration::from_secs(120);

/// Each handler that has begun: its order and its attempt.
type Begun = Arc<Mutex<Vec<(i64, usize)>>>;

async fn queues(server: &Server) -> (BlockingQueue<i64>, DelayedQueue<i64>) {
    let (_, orders, delayed) = client(server).await;
    (orders, delayed)
}

async fn client(server: &Server) -> (Client, BlockingQueue<i64>, DelayedQueue<i64>) {
    let client = Client::connect(&server.url()).await.unwrap();
    let orders = client.blocking_queue("orders", codec::Long);
    let delayed = client.delayed_queue(&orders);
    (client, orders, delayed)
}

fn receiver(orders: &BlockingQueue<i64>) -> Receiver<i64> {
    orders.receiver().lease(LEASE).max_attempts(3).backoff(Backoff::fixed(Duration::ZERO))
}

/// A worker that runs.
struct Running {
    context: WorkerContext,
    end: JoinHandle<Result<(), WorkerError>>,
}

impl Running {
    fn new(
        context: &WorkerContext,
        run: impl Future<Output = Result<(), WorkerError>> + Send + 'static,
    ) -> Self {
        Self { context: context.clone(), end: tokio::spawn(run) }
    }

    /// Its handlers wait at the gate.
    fn waiting(
        context: &WorkerContext,
        backend: RedelayBackend<i64>,
        begun: &Begun,
        gate: &Arc<Semaphore>,
    ) -> Self {
        let worker = WorkerBuilder::new(context.clone()).backend(backend);
        let worker = worker.data(begun.clone()).data(gate.clone()).build(waits);
        Self::new(context, worker.run())
    }

    async fn stop(self) {
        self.context.stop().unwrap();
        self.until_over().await.unwrap();
    }

    async fn until_over(self) -> Result<(), WorkerError> {
        until_async("it is over", || async { self.end.is_finished() }).await;
        self.end.await.unwrap()
    }

    async fn until_dead(self, orders: &BlockingQueue<i64>) {
        until_async("a dead letter", || async { !orders.dead_letters().is_empty().await.unwrap() }).await;
        self.stop().await;
    }
}

fn context() -> WorkerContext {
    WorkerContext::from("orders")
}

async fn dead(orders: &BlockingQueue<i64>) -> Vec<(String, String, u32)> {
    let letters = orders.dead_letters().read(None, 10).await.unwrap();
    letters.into_iter().map(|letter| (letter.reason.to_string(), letter.error, letter.failed)).collect()
}

fn note(begun: &Begun, order: i64, attempt: &Attempt) {
    begun.lock().unwrap().push((order, attempt.current()));
}

async fn fails(order: i64, begun: Data<Begun>, attempt: Attempt) -> Result<(), BoxDynError> {
    note(&begun, order, &attempt);
    Err("no coffee".into())
}

async fn waits(order: i64, begun: Data<Begun>, attempt: Attempt, gate: Data<Arc<Semaphore>>) {
    note(&begun, order, &attempt);
    gate.acquire().await.unwrap().forget();
}

/// Another receive of the worker waits, behind those of the handlers that have begun.
async fn until_it_waits(orders: &BlockingQueue<i64>, begun: &Begun) {
    until_async("a handler has begun", || async { !begun.lock().unwrap().is_empty() }).await;
    until_takers(orders, 1).await;
}

async fn until_takers(orders: &BlockingQueue<i64>, takers: u64) {
    until_async("receives", || async { orders.stats().await.unwrap().takers == takers }).await;
}

async fn next(orders: &BlockingQueue<i64>) -> i64 {
    let receiver = receiver(orders);
    let order = timeout(SOON, receiver.receive()).await.expect("it goes back").unwrap();
    let number = *order.value();
    order.ack().await.unwrap();
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pushed_is_handled_once_also_beyond_its_lease() {
    async fn works(order: i64, begun: Data<Begun>, attempt: Attempt) {
        tokio::time::sleep(LEASE * 2).await;
        note(&begun, order, &attempt);
    }
    let server = Server::start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders), delayed);
    backend.push_bulk(vec![1, 2, 3]).await.unwrap();
    let begun = Begun::default();
    let worker = WorkerBuilder::new(context.clone()).backend(backend).data(begun.clone()).build(works);
    let running = Running::new(&context, worker.run());
    until_async("all are acknowledged", || async {
        begun.lock().unwrap().len() >= 3 && orders.unsettled().is_empty().await.unwrap()
    })
    .await;
    running.stop().await;
    let mut begun = begun.lock().unwrap().clone();
    begun.sort_unstable();
    assert_eq!(begun, [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(dead(&orders).await, []);
}

#[tokio::test]
async fn a_task_has_a_time_an_id_and_metadata() {
    type Seen = Arc<Mutex<Vec<(i64, String)>>>;
    async fn reads(order: i64, seen: Data<Seen>, headers: MetadataStore) {
        seen.lock().unwrap().push((order, headers.get("tenant").unwrap_or_default().to_owned()));
    }
    let server = Server::start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders), delayed.clone());
    for order in [1, 2] {
        let headers = MetadataStore::from_map([("tenant".to_owned(), "acme".to_owned())].into());
        let task = TaskBuilder::new(order).idempotency_key("one").with_metadata(headers).run_after(HOUR);
        backend.push_task(task.build()).await.unwrap();
    }
    assert_eq!(delayed.read_all().await.unwrap(), [1], "the first one is kept");
    let left = delayed.stats().await.unwrap().next_due_in.unwrap();
    assert!(left > HOUR / 2 && left <= HOUR + Duration::from_secs(1), "{left:?}");
    delayed.job("one").reschedule(Duration::ZERO).await.unwrap();

    let seen = Seen::default();
    let worker = WorkerBuilder::new(context.clone()).backend(backend).data(seen.clone()).build(reads);
    let running = Running::new(&context, worker.run());
    until_async("it is handled", || async { !seen.lock().unwrap().is_empty() }).await;
    running.stop().await;
    assert_eq!(*seen.lock().unwrap(), [(1, "acme".to_owned())]);
}

#[tokio::test]
async fn an_error_is_tried_again_and_a_dead_letter_in_the_end() {
    let server = Server::start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders), delayed);
    backend.push(7).await.unwrap();
    let begun = Begun::default();
    let worker = WorkerBuilder::new(context.clone()).backend(backend).data(begun.clone()).build(fails);
    Running::new(&context, worker.run()).until_dead(&orders).await;
    assert_eq!(*begun.lock().unwrap(), [(7, 1), (7, 2), (7, 3)]);
    assert_eq!(dead(&orders).await, [("attempts".to_owned(), "no coffee".to_owned(), 3)]);
}

#[tokio::test]
async fn errors_of_apalis_say_when_it_is_tried_again_and_that_it_is_not() {
    async fn decides(order: i64, begun: Data<Begun>, attempt: Attempt) -> Result<(), BoxDynError> {
        note(&begun, order, &attempt);
        match order {
            1 => Err(AbortError::new("bad order").into()),
            _ => Err(RetryAfterError::new("closed", HOUR).into()),
        }
    }
    let server = Server::start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders), delayed);
    backend.push_bulk(vec![1, 2]).await.unwrap();
    let begun = Begun::default();
    let worker = WorkerBuilder::new(context.clone()).backend(backend).data(begun.clone()).build(decides);
    let running = Running::new(&context, worker.run());
    until_async("one waits", || async { orders.unsettled().waiting(None, 10).await.unwrap().len() == 1 })
        .await;
    running.until_dead(&orders).await;
    assert_eq!(begun.lock().unwrap().len(), 2);
    let [waiting] = &orders.unsettled().waiting(None, 10).await.unwrap()[..] else { panic!("one waits") };
    assert!(waiting.remaining > HOUR / 2 && waiting.attempt == 2, "{waiting:?}");
    let [(reason, error, _)] = &dead(&orders).await[..] else { panic!("one is dead") };
    assert!(reason == "rejected" && error.contains("bad order"), "{error}");
}

#[tokio::test]
async fn the_retry_layer_repeats_within_a_delivery() {
    let server = Server::start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders).max_attempts(1), delayed);
    backend.push(7).await.unwrap();
    let begun = Begun::default();
    let worker = WorkerBuilder::new(context.clone())
        .backend(backend)
        .data(begun.clone())
        .retry(RetryPolicy::retries(2))
        .build(fails);
    Running::new(&context, worker.run()).until_dead(&orders).await;
    assert_eq!(*begun.lock().unwrap(), [(7, 1), (7, 2), (7, 3)]);
    assert_eq!(dead(&orders).await, [("attempts".to_owned(), "no coffee".to_owned(), 1)]);
}

#[tokio::test]
async fn a_panic_ends_the_worker_or_with_the_layer_the_task() {
    async fn panics(order: i64) {
        assert_ne!(order, 7, "a bug");
    }
    let server = Server::start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders), delayed.clone());
    backend.push(7).await.unwrap();
    let worker = WorkerBuilder::new(context.clone()).backend(backend).build(panics);
    assert!(tokio::spawn(worker.run()).await.unwrap_err().is_panic());
    assert_eq!(orders.unsettled().len().await.unwrap(), 1, "it is not lost");

    let context = self::context();
    let backend = RedelayBackend::new(receiver(&orders), delayed);
    let worker = WorkerBuilder::new(context.clone()).backend(backend).catch_panic().build(panics);
    Running::new(&context, worker.run()).until_dead(&orders).await;
    let [(reason, error, _)] = &dead(&orders).await[..] else { panic!("one is dead") };
    assert!(reason == "rejected" && error.contains("a bug"), "{error}");
}

#[tokio::test]
async fn a_stop_waits_for_handlers_and_gives_the_rest_back() {
    let server = Server::start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders), delayed).concurrency(4);
    backend.push_bulk((0..20).collect()).await.unwrap();
    let (begun, gate) = (Begun::default(), Arc::new(Semaphore::new(0)));
    let running = Running::waiting(&context, backend, &begun, &gate);
    until_async("all slots are taken", || async { begun.lock().unwrap().len() == 4 }).await;
    running.context.stop().unwrap();
    gate.add_permits(20);
    running.until_over().await.unwrap();
    assert_eq!(begun.lock().unwrap().len(), 4);
    until_async("the others are ready", || async {
        orders.len().await.unwrap() == 16 && orders.unsettled().is_empty().await.unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_worker_ends_with_its_client() {
    let server = Server::start();
    for is_paused in [false, true] {
        let context = context();
        let (client, orders, delayed) = client(&server).await;
        let mut backend = RedelayBackend::new(receiver(&orders), delayed);
        backend.push(7).await.unwrap();
        let (begun, gate) = (Begun::default(), Arc::new(Semaphore::new(0)));
        let running = Running::waiting(&context, backend, &begun, &gate);
        until_async("it is handled", || async { begun.lock().unwrap().len() == 1 }).await;
        if is_paused {
            context.pause().unwrap();
        }
        client.stop_taking().await;
        until_async("the worker is stopped", || async { context.is_shutting_down() }).await;
        assert!(!running.end.is_finished(), "its handler has not ended");
        gate.add_permits(1);
        running.until_over().await.unwrap();
        assert!(orders.unsettled().is_empty().await.unwrap(), "the handler was not interrupted");
        assert_eq!(dead(&orders).await, []);
    }
}

#[tokio::test]
async fn an_invalid_setting_ends_the_worker() {
    let server = Server::start();
    let (orders, delayed) = queues(&server).await;
    let worker = || {
        let backend = RedelayBackend::new(orders.receiver().max_attempts(0), delayed.clone());
        WorkerBuilder::new("orders").backend(backend).data(Begun::default()).build(fails)
    };
    let error = timeout(SOON, worker().run()).await.expect("it ends").unwrap_err();
    assert!(error.to_string().contains("max_attempts(0)"), "{error}");
    // Who reads on behind the error comes to the end.
    let events = timeout(SOON, worker().stream().collect::<Vec<_>>()).await.expect("it ends");
    assert_eq!(events.iter().filter(|event| event.is_err()).count(), 1);
}

/// apalis has the feature `task-context` here, with which no two tasks may have one id.
#[tokio::test]
async fn a_handler_is_dropped_when_its_message_was_delivered_again() {
    type Ids = Arc<Mutex<Vec<(String, String)>>>;
    async fn hangs_once(
        _: i64,
        task: TaskId,
        message: Data<MessageId>,
        ids: Data<Ids>,
        dropped: Data<CancellationToken>,
    ) {
        ids.lock().unwrap().push((task.to_string(), message.to_string()));
        if ids.lock().unwrap().len() == 1 {
            let _dropped = CancellationToken::clone(&dropped).drop_guard();
            pending::<()>().await;
        }
    }
    let server = Server::start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders), delayed);
    backend.push(7).await.unwrap();
    let (ids, dropped) = (Ids::default(), CancellationToken::new());
    let worker = WorkerBuilder::new(context.clone())
        .backend(backend)
        .data(ids.clone())
        .data(dropped.clone())
        .build(hangs_once);
    let running = Running::new(&context, worker.run());
    until_async("it is handled", || async { ids.lock().unwrap().len() == 1 }).await;
    let [message] = &orders.unsettled().in_flight(None, 10).await.unwrap()[..] else { panic!("one") };
    assert!(orders.unsettled().requeue(message.id).await.unwrap());
    until_async("it is handled again", || async { ids.lock().unwrap().len() == 2 }).await;
    until_async("the first handler is dropped", || async { dropped.is_cancelled() }).await;
    until_async("it is settled", || async { orders.unsettled().is_empty().await.unwrap() }).await;
    running.stop().await;
    let ids = ids.lock().unwrap().clone();
    let id = message.id.to_string();
    assert!(ids.iter().all(|(task, of)| task.starts_with(&id) && *of == id), "{ids:?}");
    assert_ne!(ids[0].0, ids[1].0);
    assert_eq!(dead(&orders).await, []);
}

/// A receive that has begun before the pause takes it.
#[tokio::test]
async fn what_comes_in_a_pause_goes_back() {
    let server = Server::start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let (other, offers) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders), delayed);
    backend.push(1).await.unwrap();
    let (begun, gate) = (Begun::default(), Arc::new(Semaphore::new(20)));
    let running = Running::waiting(&context, backend, &begun, &gate);
    until_it_waits(&orders, &begun).await;
    context.pause().unwrap();
    offers.offer(&2, Duration::ZERO).await.unwrap();
    until_takers(&orders, 0).await;
    assert_eq!(next(&other).await, 2);
    context.resume().unwrap();
    offers.offer(&3, Duration::ZERO).await.unwrap();
    until_async("the third is handled", || async { begun.lock().unwrap().len() == 2 }).await;
    running.stop().await;
    assert_eq!(*begun.lock().unwrap(), [(1, 1), (3, 1)]);
}

#[tokio::test]
async fn stop_taking_gives_back_what_came_after_a_stop() {
    let server = Server::start();
    let context = context();
    let (client, orders, delayed) = client(&server).await;
    let (other, offers) = queues(&server).await;
    let mut backend = RedelayBackend::new(receiver(&orders), delayed);
    backend.push(1).await.unwrap();
    let (begun, gate) = (Begun::default(), Arc::new(Semaphore::new(0)));
    let running = Running::waiting(&context, backend, &begun, &gate);
    until_it_waits(&orders, &begun).await;
    context.stop().unwrap();
    offers.offer(&2, Duration::ZERO).await.unwrap();
    until_async("it is held", || async { orders.unsettled().len().await.unwrap() == 2 }).await;
    client.stop_taking().await;
    assert_eq!(next(&other).await, 2);
    gate.add_permits(1);
    running.until_over().await.unwrap();
    assert_eq!(*begun.lock().unwrap(), [(1, 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_does_not_end_the_worker() {
    async fn handles(order: i64, begun: Data<Begun>, attempt: Attempt) {
        note(&begun, order, &attempt);
    }
    let server = Server::builder().appendonly(true).start();
    let context = context();
    let (orders, delayed) = queues(&server).await;
    let begun = Begun::default();
    let mut backend = RedelayBackend::new(receiver(&orders), delayed.clone());
    backend.push(1).await.unwrap();
    let worker = WorkerBuilder::new(context.clone()).backend(backend).data(begun.clone()).build(handles);
    let running = Running::new(&context, worker.run());
    until_async("the first", || async { begun.lock().unwrap().len() == 1 }).await;
    server.stop();
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.start_again();
    until_async("another offer", || async { delayed.offer(&2, Duration::ZERO).await.is_ok() }).await;
    until_async("the second", || async { begun.lock().unwrap().iter().any(|(n, _)| *n == 2) }).await;
    running.stop().await;
    assert_eq!(begun.lock().unwrap()[0], (1, 1));
}
