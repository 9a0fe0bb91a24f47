//! Schedules whose runs do not overlap: what holds the next run back, and what becomes of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redelay::delayed_queue::{Cancelled, JobState, Overlap, Schedule, StoredSchedule};
use redelay::{BlockingQueue, Client, DelayedQueue, Delivery};
use redelay_fixture::{Proxy, Server, until, until_async};
use redelay_support::{
    HOUR, JOBS, NOTES, SCHEDULE_RECORDS, SCHEDULES, SELDOM, TARGET, TIMEOUT_SET, lasting, ms, soon,
    still_text_queues, text_queues,
};

const OFTEN: Duration = Duration::from_millis(100);

struct Runs {
    server: Server,
    client: Client,
    ready: BlockingQueue<String>,
    delayed: DelayedQueue<String>,
}

impl Runs {
    async fn new() -> Self {
        let server = Server::start();
        let (client, ready, delayed) = text_queues(&server).await;
        Self { server, client, ready, delayed }
    }

    fn often(&self, overlap: Overlap) -> Schedule<String> {
        self.delayed.schedule("s").every(OFTEN).no_overlap(overlap)
    }

    async fn stored(&self) -> StoredSchedule<String> {
        self.delayed.schedule("s").get().await.unwrap().expect("a schedule")
    }

    async fn receive(&self) -> Delivery<String> {
        soon(self.ready.receiver().receive()).await.unwrap()
    }

    fn record(&self) -> String {
        self.server.get(["HGET", SCHEDULE_RECORDS, "s"])
    }

    /// The next run, or the next look at the one that waits.
    fn next(&self) -> f64 {
        self.server.zset(SCHEDULES)[0].1
    }

    /// Waits until the next run has been decided on a few times.
    fn some_runs_pass(&self) {
        for _ in 0..3 {
            let next = self.next();
            until("it is decided on", || self.next() > next);
        }
    }

    /// Nothing of a run is pending or ready.
    fn has_none(&self) -> bool {
        self.server.zset(TIMEOUT_SET).is_empty() && self.server.list(TARGET).is_empty()
    }
}

fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

fn run_of(delivery: &Delivery<String>) -> u64 {
    let due = millis(delivery.due().expect("a run has its time"));
    assert_eq!(delivery.job_id(), Some(format!("s@{due}").as_bytes()));
    due
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_dropped_while_the_last_one_is_in_flight_or_waits_for_a_retry() {
    let runs = Runs::new().await;
    let first = runs.often(Overlap::Skip).upsert("p").await.unwrap().expect("a run");
    let running = runs.receive().await;
    let run = run_of(&running);
    assert!(run >= millis(first) && run.is_multiple_of(100));
    runs.some_runs_pass();
    assert!(runs.has_none());
    let stored = runs.stored().await;
    assert!(stored.is_running && stored.no_overlap == Some(Overlap::Skip));
    assert_eq!(stored.last_run.map(millis), Some(run));
    running.retry_after(HOUR).await.unwrap();
    runs.some_runs_pass();
    assert!(runs.has_none() && runs.stored().await.is_running);
    assert!(runs.delayed.job(format!("s@{run}")).run_now().await.unwrap());
    let again = runs.receive().await;
    assert_eq!(run_of(&again), run);
    let before = runs.next();
    again.ack().await.unwrap();
    let later = runs.receive().await;
    assert!(run_of(&later) as f64 >= before, "those before were dropped");
    later.ack().await.unwrap();
    runs.client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_waits_until_the_last_one_is_done() {
    let runs = Runs::new().await;
    runs.often(Overlap::Queue).upsert("p").await.unwrap().expect("a run");
    let running = runs.receive().await;
    let run = run_of(&running);
    until("a run waits", || runs.record().contains("\nheld "));
    runs.some_runs_pass();
    assert!(runs.has_none());
    let stored = runs.stored().await;
    let waits = millis(stored.next_run.expect("it waits"));
    assert!(stored.is_running && waits > run && waits < millis(SystemTime::now()));
    assert_eq!(stored.last_run.map(millis), Some(run));
    running.ack().await.unwrap();
    let next = runs.receive().await;
    assert_eq!(run_of(&next), waits);
    next.ack().await.unwrap();
    // Of those that were due meanwhile, no other one comes.
    assert!(run_of(&runs.receive().await) > millis(SystemTime::now()) - 60_000);
    runs.client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_a_dead_letter_nor_what_was_taken_holds_a_run_back() {
    let runs = Runs::new().await;
    runs.often(Overlap::Skip).upsert("p").await.unwrap().expect("a run");
    runs.receive().await.reject("no").await.unwrap();
    let second = runs.receive().await;
    assert_eq!(runs.ready.dead_letters().len().await.unwrap(), 1);
    second.ack().await.unwrap();
    // A plain take ends a run, as a Java service does.
    for _ in 0..3 {
        assert_eq!(soon(runs.ready.take()).await.unwrap(), "p");
    }
    // A run that is cancelled is over.
    let third = runs.receive().await;
    let id = format!("s@{}", run_of(&third));
    assert_eq!(runs.delayed.job(&*id).cancel().await.unwrap(), Cancelled::Requested);
    third.ack().await.unwrap();
    runs.receive().await.ack().await.unwrap();
    runs.client.shutdown().await;
}

/// All runs have the same payload. What travelled with the one that was taken is not of the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_taken_is_not_mistaken_for_the_next_one() {
    let runs = Runs::new().await;
    let rare = runs.delayed.schedule("s").every(SELDOM).no_overlap(Overlap::Skip);
    rare.upsert("p").await.unwrap();
    for _ in 0..3 {
        assert!(rare.trigger().await.unwrap());
        assert_eq!(soon(runs.ready.take()).await.unwrap(), "p");
    }
    assert!(rare.trigger().await.unwrap());
    let last = runs.stored().await.last_run.map(millis);
    let running = runs.receive().await;
    assert_eq!(Some(run_of(&running)), last);
    assert!(runs.stored().await.is_running && !rare.trigger().await.unwrap());
    running.ack().await.unwrap();
    assert!(!runs.stored().await.is_running);
    let left: (usize, usize) = (runs.server.get(["HLEN", NOTES]), runs.server.get(["HLEN", JOBS]));
    assert_eq!(left, (0, 0));
    runs.client.shutdown().await;
}

/// A client that transfers nothing: its schedules run only where a test says so.
async fn still() -> Runs {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    Runs { server, client, ready, delayed }
}

#[tokio::test]
async fn nothing_is_stored_ahead_and_a_triggered_run_holds_its_id() {
    let runs = still().await;
    let rare = runs.delayed.schedule("s").every(SELDOM).no_overlap(Overlap::Queue);
    let next = rare.upsert("p").await.unwrap().expect("a run");
    assert_eq!(runs.record(), format!("every {}\nno_overlap queue\n\np", SELDOM.as_millis()));
    assert!(runs.has_none() && runs.next() == millis(next) as f64);
    let before = lasting(&runs.server);
    assert_eq!(rare.upsert("p").await.unwrap(), Some(next));
    assert!(lasting(&runs.server) == before);

    assert!(rare.trigger().await.unwrap());
    let last = runs.stored().await.last_run.map(millis).expect("the triggered run");
    let id = format!("s@{last}");
    assert!(matches!(runs.delayed.job(&*id).state().await.unwrap(), Some(JobState::Pending { .. })));
    assert_eq!(runs.server.get::<usize, _>(["HLEN", NOTES]), 1);
    let stored = runs.stored().await;
    assert!(stored.is_running && stored.next_run == Some(next));
    // It is not done.
    assert!(!rare.trigger().await.unwrap());
    let listed = runs.delayed.schedules().read(None, 9).await.unwrap().remove(0).1.unwrap();
    let inspected = runs.client.inspector().schedules("q", None, 9).await.unwrap().remove(0).1.unwrap();
    assert!(listed == stored && inspected.is_running && inspected.last_run == stored.last_run);
    assert!(runs.delayed.job(&*id).cancel().await.unwrap().is_removed());
    assert!(!runs.stored().await.is_running && rare.trigger().await.unwrap());
    runs.client.shutdown().await;
}

#[tokio::test]
async fn an_inspector_tells_a_dead_run_from_one_in_flight() {
    let runs = Runs::new().await;
    let rare = runs.delayed.schedule("s").every(SELDOM).no_overlap(Overlap::Skip);
    rare.upsert("p").await.unwrap();
    assert!(rare.trigger().await.unwrap());
    let running = runs.receive().await;
    let inspector = runs.client.inspector();
    let seen = async || inspector.schedules("q", None, 9).await.unwrap().remove(0).1.unwrap().is_running;
    assert!(seen().await && runs.stored().await.is_running);
    running.reject("no").await.unwrap();
    assert!(!seen().await && !runs.stored().await.is_running);
    runs.client.shutdown().await;
}

/// To look whether the last run is ready, the server walks through all that is ready.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_clients_one_looks_whether_the_last_run_is_done() {
    let runs = Runs::new().await;
    let proxy = Proxy::start(runs.server.port());
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(text_queues(&proxy).await);
    }
    // All of them have read that it is time when the first one has changed it.
    proxy.delay(ms(50));
    runs.often(Overlap::Queue).upsert("p").await.unwrap();
    until("one is held back", || runs.record().contains("held"));
    runs.some_runs_pass();
    let walks_and_time = || {
        let (seconds, micros): (u64, u64) = runs.server.get(["TIME"]);
        (runs.server.command_calls("lpos"), seconds * 1000 + micros / 1000)
    };
    let (walks, begun) = walks_and_time();
    runs.some_runs_pass();
    runs.some_runs_pass();
    let (all_walks, ended) = walks_and_time();
    let (walks, most) = (all_walks - walks, (ended - begun) / 1000 + 2);
    assert!(walks > 0 && walks <= most, "{walks} in {} ms", ended - begun);
}

#[tokio::test]
async fn a_schedule_begins_and_ceases_to_overlap() {
    let runs = still().await;
    let plain = runs.delayed.schedule("s").every(SELDOM);
    let next = plain.upsert("p").await.unwrap().expect("a run");
    assert_eq!(runs.server.zset(TIMEOUT_SET).len(), 1);
    // The run that was stored ahead is withdrawn, and does not hold its id.
    assert_eq!(plain.clone().no_overlap(Overlap::Skip).upsert("p").await.unwrap(), Some(next));
    assert!(runs.has_none() && runs.server.get::<usize, _>(["EXISTS", JOBS]) == 0);
    assert_eq!(plain.upsert("p").await.unwrap(), Some(next));
    assert_eq!(runs.server.zset(TIMEOUT_SET).len(), 1);
    assert!(plain.no_overlap(Overlap::Queue).upsert("other").await.unwrap().is_some());
    assert!(runs.delayed.schedule("s").pause().await.unwrap() && runs.has_none());
    assert!(runs.stored().await.next_run.is_none());
    assert!(runs.delayed.schedule("s").remove().await.unwrap());
    assert!(lasting(&runs.server).is_empty());
    runs.client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_time_has_come_and_one_that_waits_outlive_another_payload() {
    let runs = Runs::new().await;
    runs.often(Overlap::Queue).upsert("old").await.unwrap().expect("a run");
    let running = runs.receive().await;
    until("a run waits", || runs.record().contains("\nheld "));
    let waits = runs.stored().await.next_run;
    assert!(runs.often(Overlap::Queue).upsert("new").await.unwrap().is_some());
    assert_eq!(runs.stored().await.next_run, waits);
    running.ack().await.unwrap();
    let next = runs.receive().await;
    assert_eq!((&**next.value(), Some(run_of(&next))), ("new", waits.map(millis)));
    next.ack().await.unwrap();
    until_async("the schedule goes on", || async { runs.stored().await.last_run > waits }).await;
    runs.client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_store_each_run_once() {
    let server = Server::start();
    let mut clients = Vec::new();
    for _ in 0..4 {
        let (client, ready, delayed) = text_queues(&server).await;
        delayed.schedule("s").every(OFTEN).no_overlap(Overlap::Skip).upsert("p").await.unwrap();
        clients.push((client, ready));
    }
    let receivers: Vec<_> = clients.iter().map(|(_, ready)| ready.receiver()).collect();
    let mut last = 0;
    for n in 0..20 {
        let delivery = soon(receivers[n % 4].receive()).await.unwrap();
        let run = run_of(&delivery);
        assert!(run > last, "{run} after {last}");
        last = run;
        assert_eq!(server.list(TARGET).len() + server.zset(TIMEOUT_SET).len(), 0);
        tokio::time::sleep(ms(n as u64)).await;
        delivery.ack().await.unwrap();
    }
    for (client, _) in clients {
        client.shutdown().await;
    }
}
