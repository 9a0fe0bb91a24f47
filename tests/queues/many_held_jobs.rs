//! Calls for many jobs that hold their ids: they answer for each, whatever its state, and in parts.

use std::collections::HashSet;
use std::time::Duration;

use fastrand::Rng;
use redelay::admin::DeadReason;
use redelay::delayed_queue::{Cancelled, JobState, Offered};
use redelay::{BlockingQueue, Client, DelayedQueue, Delivery};
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, JOBS, MESSAGES, MORE_NOTES, NOTES, TARGET, soon, still_text_queues};

/// Jobs in every state. The id of each begins with its state.
pub(crate) struct Many {
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) ready: BlockingQueue<String>,
    pub(crate) delayed: DelayedQueue<String>,
    pub(crate) deliveries: Vec<Delivery<String>>,
    /// In random order, those too that were never offered.
    pub(crate) ids: Vec<String>,
}

impl Many {
    pub(crate) async fn new() -> Self {
        let server = Server::start();
        let (client, ready, delayed) = still_text_queues(&server).await;
        Self { server, client, ready, delayed, deliveries: Vec::new(), ids: Vec::new() }
    }

    /// This many in each state. Each payload is the id, filled up to this length.
    pub(crate) async fn of_each(count: usize, length: usize) -> Self {
        let mut many = Self::new().await;
        // What is ready comes last, or it would be received.
        for state in ["none", "pending", "in flight", "waiting", "dead", "ready"] {
            many.bring(state, count, length).await;
        }
        Rng::with_seed(17).shuffle(&mut many.ids);
        many
    }

    pub(crate) async fn bring(&mut self, state: &str, count: usize, length: usize) {
        let ids: Vec<_> = (0..count).map(|number| format!("{state} {number}")).collect();
        self.ids.extend(ids.iter().cloned());
        if state == "none" {
            return;
        }
        let payloads: Vec<_> = ids.iter().map(|id| format!("{id:length$}")).collect();
        let delay = if state == "pending" { HOUR } else { Duration::ZERO };
        let jobs = ids.iter().zip(&payloads).map(|(id, payload)| (id, payload, delay));
        self.delayed.offer_jobs(jobs).until_done().await.unwrap();
        if state == "pending" {
            return;
        }
        let before = self.ready.len().await.unwrap();
        until_async("they are ready", || async {
            self.client.pump("q").transfer().await.unwrap();
            self.ready.len().await.unwrap() == before + count
        })
        .await;
        if state == "ready" {
            return;
        }
        let (receiver, mut left) = (self.ready.receiver().lease(HOUR), count);
        while left > 0 {
            for delivery in soon(receiver.receive_many(left)).await.unwrap() {
                let delivery = delivery.unwrap();
                left -= 1;
                match state {
                    "waiting" => delivery.with_error("no luck").retry_after(HOUR).await.unwrap(),
                    "dead" => delivery.reject("no use").await.unwrap(),
                    _ => self.deliveries.push(delivery),
                }
            }
        }
    }

    /// Asks for the states of these, which must be what their ids say. Returns in how many calls.
    pub(crate) async fn states_are_right(&self, ids: &[String]) -> u64 {
        let calls = || self.server.command_calls("evalsha");
        let before = calls();
        let states = self.delayed.job_states(ids).await.unwrap();
        let calls = calls() - before;
        assert_eq!(states.len(), ids.len());
        for (id, state) in ids.iter().zip(states) {
            let word = match state {
                None => "none",
                Some(JobState::Pending { .. }) => "pending",
                Some(JobState::Ready) => "ready",
                Some(JobState::InFlight { attempt: 1, .. }) => "in flight",
                Some(JobState::Waiting { attempts: 1, error, .. }) if error == "no luck" => "waiting",
                Some(JobState::Dead { reason: DeadReason::Rejected, .. }) => "dead",
                Some(other) => panic!("{id}: {other:?}"),
            };
            assert_eq!(id.rsplit_once(' ').unwrap().0, word, "{id}");
        }
        calls
    }
}

#[tokio::test]
async fn states_of_hundreds_of_jobs_are_told_in_the_order_of_the_ids() {
    let many = Many::of_each(60, 0).await;
    // Each twice.
    let ids = [many.ids.clone(), many.ids.iter().rev().cloned().collect()].concat();
    let calls = many.states_are_right(&ids).await;
    assert!(calls >= ids.len().div_ceil(100) as u64, "{calls}");
    assert_eq!(many.delayed.job_states::<&str>([]).await.unwrap(), []);
    many.client.shutdown().await;
}

/// A call reads about 4 MB of messages.
#[tokio::test]
async fn states_of_jobs_with_long_payloads_are_told_in_parts() {
    let many = Many::of_each(40, 60_000).await;
    many.states_are_right(&many.ids).await;
    let is_message =
        |id: &&String| ["in flight", "waiting", "dead"].iter().any(|state| id.starts_with(state));
    let some: Vec<_> = many.ids.iter().filter(is_message).take(100).cloned().collect();
    assert_eq!(some.len(), 100, "as many as one call is asked for");
    let calls = many.states_are_right(&some).await;
    assert!(calls > 1, "{calls}");
    many.client.shutdown().await;
}

/// Each of these is a scan of the ready list: a call ends after 10 ms of them.
#[tokio::test]
async fn states_of_jobs_in_a_long_ready_list_are_told_in_parts() {
    let mut many = Many::new().await;
    let fill = "for n = 1, 200 do redis.call('RPUSH', KEYS[1], unpack(ARGV)) end";
    let words = ["EVAL", fill, "1", TARGET].into_iter().chain(std::iter::repeat_n("other", 1000));
    many.server.cmd(words);
    many.bring("ready", 100, 0).await;
    let calls = many.states_are_right(&many.ids).await;
    assert!(calls > 1, "{calls}");
    many.client.shutdown().await;
}

/// More than are cancelled one by one.
#[tokio::test]
async fn one_pass_cancels_jobs_in_every_state() {
    const EACH: usize = 60;
    let mut many = Many::of_each(EACH, 0).await;
    let delayed = many.delayed.clone();
    for id in ["pending, too", "another"] {
        delayed.offer(id, HOUR).id(id).until_done().await.unwrap();
    }
    many.ready.put("of somebody else").await.unwrap();
    let ids = [many.ids.clone(), many.ids.iter().rev().cloned().collect()].concat();
    let marked = many.server.command_calls("lset");
    let cancelled = delayed.cancel_all(&ids).await.unwrap();
    assert!(many.server.command_calls("lset") - marked > EACH as u64, "in a pass");
    let mut seen = HashSet::new();
    for (id, cancelled) in ids.iter().zip(cancelled) {
        let expected = match id {
            id if !seen.insert(id) || id.starts_with("none") => Cancelled::NotFound,
            id if id.starts_with("in flight") => Cancelled::Requested,
            _ => Cancelled::Removed,
        };
        assert_eq!(cancelled, expected, "{id}");
    }
    // Only what is in flight holds its id, until its handler returns.
    for (id, state) in many.ids.iter().zip(delayed.job_states(&many.ids).await.unwrap()) {
        assert_eq!(
            matches!(state, Some(JobState::InFlight { .. })),
            id.starts_with("in flight"),
            "{id}: {state:?}"
        );
        assert!(
            state.is_none() || delayed.offer("x", HOUR).id(id).await.unwrap() == Offered::Running,
            "{id}"
        );
    }
    assert_eq!(many.deliveries.len(), EACH);
    for delivery in many.deliveries.drain(..) {
        soon(delivery.cancelled()).await;
        assert!(delivery.is_cancel_requested());
        delivery.retry_after(Duration::ZERO).await.unwrap();
    }
    assert_eq!(many.server.list(TARGET), [b"of somebody else"]);
    assert!(many.ready.dead_letters().is_empty().await.unwrap());
    assert_eq!(delayed.read_all().await.unwrap(), ["pending, too", "another"]);
    let [jobs, notes] = [JOBS, NOTES].map(|key| many.server.get::<usize, _>(["HLEN", key]));
    assert_eq!((jobs, notes), (2, 2));
    assert_eq!(many.server.get::<usize, _>(["EXISTS", MESSAGES, MORE_NOTES]), 0);
    many.client.shutdown().await;
}
