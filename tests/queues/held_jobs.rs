//! Jobs that hold their ids until they are done: each state, what each call answers in it, and who ends it.

use std::time::{Duration, SystemTime};

use redelay::delayed_queue::{Cancelled, JobState, Offered};
use redelay::worker::{Context, Outcome};
use redelay::{BlockingQueue, Client, DelayedQueue, Delivery, ErrorKind, Worker};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    HOUR, INBOX, JOBS, MINUTE, NOTES, ORDERED_LIST, Queues, TARGET, TIMEOUT_SET, end_leases, ms,
    patient_builder, soon, text_queues,
};
use tokio::time::{sleep, timeout};

struct Held {
    server: Server,
    client: Client,
    ready: BlockingQueue<String>,
    delayed: DelayedQueue<String>,
}

/// A word for each state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Pending,
    Ready,
    InFlight,
    Waiting,
    Dead,
}

const ALL: [Is; 5] = [Is::Pending, Is::Ready, Is::InFlight, Is::Waiting, Is::Dead];

impl Held {
    async fn new() -> Self {
        let server = Server::start();
        let (client, ready, delayed) = text_queues(&server).await;
        Self { server, client, ready, delayed }
    }

    async fn offer(&self, text: &str, delay: Duration) -> Offered {
        self.delayed.offer(text, delay).id("a").until_done().await.unwrap()
    }

    async fn is(&self) -> Option<Is> {
        let state = self.delayed.job("a").state().await.unwrap();
        state.map(|state| match state {
            JobState::Pending { .. } => Is::Pending,
            JobState::Ready => Is::Ready,
            JobState::InFlight { .. } => Is::InFlight,
            JobState::Waiting { .. } => Is::Waiting,
            JobState::Dead { .. } => Is::Dead,
            other => panic!("{other:?}"),
        })
    }

    /// Somebody asks to cancel the job, and no receiver hears it.
    fn request_unheard(&self) {
        self.request_unheard_of("a");
    }

    fn request_unheard_of(&self, id: &str) {
        let field: Vec<u8> = self.server.get(["HGET", JOBS, id]);
        assert_eq!(field[0], b'm');
        let requested = [b"c", &field[1..]].concat();
        let _: u64 = self.server.get([b"HSET", JOBS.as_bytes(), id.as_bytes(), &requested]);
    }

    async fn receive(&self) -> Delivery<String> {
        soon(self.ready.receiver().receive()).await.unwrap()
    }

    /// Brings a new job into this state. A delivery is in flight as long as it is there.
    async fn bring(&self, to: Is) -> Option<Delivery<String>> {
        let delay = if to == Is::Pending { HOUR } else { Duration::ZERO };
        assert!(matches!(self.offer("1", delay).await, Offered::Stored(_)), "{to:?}");
        if to == Is::Pending {
            return None;
        }
        until_async("it is ready", || async { self.is().await == Some(Is::Ready) }).await;
        if to == Is::Ready {
            return None;
        }
        let delivery = self.receive().await;
        assert_eq!(delivery.job_id(), Some(&b"a"[..]));
        match to {
            Is::Waiting => delivery.with_error("no luck").retry_after(HOUR).await.unwrap(),
            Is::Dead => delivery.reject("no use").await.unwrap(),
            _ => return Some(delivery),
        }
        None
    }

    /// Nothing of it is left, in no key.
    async fn is_free(&self, how: &str) {
        assert_eq!(self.is().await, None, "{how}");
        let left: Vec<String> = self.server.get(["HKEYS", JOBS]);
        assert_eq!(left, Vec::<String>::new(), "{how}");
        let messages: usize = self.server.get(["HLEN", "redelay:messages:{q}"]);
        assert_eq!(
            (messages, self.ready.len().await.unwrap(), self.delayed.len().await.unwrap()),
            (0, 0, 0),
            "{how}"
        );
        let notes: usize = self.server.get(["HLEN", NOTES]);
        assert_eq!(notes, 0, "{how}");
    }
}

#[tokio::test]
async fn an_id_is_held_from_the_offer_until_the_acknowledgement() {
    let held = Held::new().await;
    for state in ALL {
        let delivery = held.bring(state).await;
        assert_eq!(held.is().await, Some(state));
        // Whether or not the next offer would hold it.
        assert!(matches!(held.offer("2", HOUR).await, Offered::Kept(_)), "{state:?}");
        let plain = held.delayed.offer("2", HOUR).id("a").await.unwrap();
        assert!(matches!(plain, Offered::Kept(_)), "{state:?}");
        match state {
            Is::Pending => assert!(held.delayed.job("a").run_now().await.unwrap()),
            Is::Waiting => assert!(held.delayed.job("a").run_now().await.unwrap()),
            Is::Dead => assert_eq!(held.ready.dead_letters().requeue_all(10).await.unwrap(), 1),
            _ => assert!(!held.delayed.job("a").run_now().await.unwrap(), "{state:?}"),
        }
        let delivery = match delivery {
            Some(delivery) => delivery,
            None => held.receive().await,
        };
        assert_eq!((delivery.value().as_str(), delivery.job_id()), ("1", Some(&b"a"[..])), "{state:?}");
        assert_eq!(held.is().await, Some(Is::InFlight));
        delivery.ack().await.unwrap();
        held.is_free(&format!("{state:?}")).await;
    }
    held.client.shutdown().await;
}

#[tokio::test]
async fn a_job_is_replaced_in_every_state_but_in_flight() {
    let held = Held::new().await;
    for state in ALL {
        let delivery = held.bring(state).await;
        let replaced = held.delayed.offer("2", HOUR).id("a").until_done().replace().await.unwrap();
        if let Some(delivery) = delivery {
            assert_eq!(replaced, Offered::Running);
            assert_eq!(held.is().await, Some(Is::InFlight));
            delivery.ack().await.unwrap();
        } else {
            assert!(matches!(replaced, Offered::Replaced(_)), "{state:?}");
            assert_eq!(held.is().await, Some(Is::Pending), "{state:?}");
            assert_eq!(held.delayed.read_all().await.unwrap(), ["2"]);
            assert_eq!(held.ready.len().await.unwrap(), 0, "{state:?}");
            assert!(held.ready.dead_letters().is_empty().await.unwrap());
            assert_eq!(held.delayed.job("a").cancel().await.unwrap(), Cancelled::Removed);
        }
        held.is_free(&format!("{state:?}")).await;
    }
    held.client.shutdown().await;
}

#[tokio::test]
async fn a_job_is_cancelled_in_every_state_and_one_in_flight_is_not_delivered_again() {
    let held = Held::new().await;
    for state in ALL {
        let delivery = held.bring(state).await;
        let cancelled = held.delayed.job("a").cancel().await.unwrap();
        let Some(delivery) = delivery else {
            assert_eq!(cancelled, Cancelled::Removed, "{state:?}");
            held.is_free(&format!("{state:?}")).await;
            continue;
        };
        assert_eq!(cancelled, Cancelled::Requested);
        // It holds its id until the handler returns, and is kept for nobody.
        assert_eq!(held.offer("2", HOUR).await, Offered::Running);
        delivery.retry_after(Duration::ZERO).await.unwrap();
        held.is_free("it was to be retried").await;
    }
    for end in ["ack", "reject", "snooze", "lease"] {
        let receiver = held.ready.receiver().extend_for(Duration::ZERO);
        assert!(matches!(held.offer("1", Duration::ZERO).await, Offered::Stored(_)));
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(held.delayed.job("a").cancel().await.unwrap(), Cancelled::Requested);
        match end {
            "ack" => delivery.ack().await.unwrap(),
            "reject" => delivery.reject("no use").await.unwrap(),
            "snooze" => delivery.snooze(ms(1)).await.unwrap(),
            _ => {
                std::mem::forget(delivery);
                end_leases(&held.server);
                until_async("the lease has ended", || async {
                    held.ready.receiver().try_receive().await.unwrap().is_none() && held.is().await.is_none()
                })
                .await;
            }
        }
        assert!(held.ready.dead_letters().is_empty().await.unwrap(), "{end}");
        held.is_free(end).await;
    }
    held.client.shutdown().await;
}

/// A report of a failure names the job, as the context of the handler does.
#[tokio::test]
async fn a_report_names_the_job() {
    let held = Held::new().await;
    assert!(matches!(held.offer("1", Duration::ZERO).await, Offered::Stored(_)));
    held.delayed.offer("2", Duration::ZERO).await.unwrap();
    let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::new(&held.ready).max_attempts(1).on_failure(move |failure| {
        report.send((failure.payload.clone(), failure.job_id.clone())).unwrap();
    });
    let (_stop, stopping) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(worker.run_until(stopping, |_: String| async { Err::<(), _>("no") }));
    let mut found = [soon(reports.recv()).await.unwrap(), soon(reports.recv()).await.unwrap()];
    found.sort();
    assert_eq!(found.map(|(_, id)| id), [Some("a".into()), None]);
    held.client.shutdown().await;
}

#[tokio::test]
async fn a_handler_hears_that_its_job_is_cancelled() {
    let held = Held::new().await;
    // By an announcement, long before the lease is extended for the first time.
    assert!(matches!(held.offer("1", Duration::ZERO).await, Offered::Stored(_)));
    let (begun, mut began) = tokio::sync::mpsc::unbounded_channel();
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(&held.ready).lease(HOUR);
    let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let worker = worker.on_failure(move |failure| report.send(failure.to_string()).unwrap());
    let worker = tokio::spawn(worker.run_until(stopping, move |_: String, context: Context| {
        begun.send(context.job_id().map(<[u8]>::to_vec)).unwrap();
        async move {
            context.cancelled().await;
            Ok::<_, &str>(match context.header("outcome") {
                Some("reject") => Outcome::Reject("cancelled".into()),
                Some("snooze") => Outcome::Snooze(HOUR),
                _ => Outcome::Retry("cancelled".into()),
            })
        }
    }));
    assert_eq!(soon(began.recv()).await.flatten().as_deref(), Some(&b"a"[..]));
    assert_eq!(held.delayed.job("a").cancel().await.unwrap(), Cancelled::Requested);
    until_async("the handler has returned", || async { held.is().await.is_none() }).await;
    held.is_free("by an announcement").await;

    // The announcement is lost: the client is not subscribed.
    assert!(matches!(held.offer("2", Duration::ZERO).await, Offered::Stored(_)));
    assert_eq!(soon(began.recv()).await.flatten().as_deref(), Some(&b"a"[..]));
    held.request_unheard();
    held.server.cmd(["CLIENT", "KILL", "TYPE", "pubsub"]);
    until_async("the handler has returned", || async { held.is().await.is_none() }).await;
    held.is_free("by a new subscription").await;

    for outcome in ["reject", "snooze"] {
        let offer = held.delayed.offer("3", Duration::ZERO).id("a").until_done();
        assert!(matches!(offer.header("outcome", outcome).await.unwrap(), Offered::Stored(_)));
        soon(began.recv()).await.flatten().unwrap();
        assert_eq!(held.delayed.job("a").cancel().await.unwrap(), Cancelled::Requested);
        until_async("the handler has returned", || async { held.is().await.is_none() }).await;
        held.is_free(outcome).await;
    }
    stop.send(()).unwrap();
    let stopped = soon(worker).await.unwrap().unwrap();
    assert_eq!((stopped.cancelled, stopped.failed, stopped.rejected, stopped.released), (4, 0, 0, 0));
    assert_eq!(reports.recv().await, None, "it has not failed");

    // The announcement is lost: by the extension of the lease, of this message only.
    let receiver = held.ready.receiver().lease(Duration::from_secs(3));
    held.delayed.offer("2", Duration::ZERO).id("b").until_done().await.unwrap();
    let other = soon(receiver.receive()).await.unwrap();
    assert!(matches!(held.offer("1", Duration::ZERO).await, Offered::Stored(_)));
    let delivery = soon(receiver.receive()).await.unwrap();
    held.request_unheard();
    soon(delivery.cancelled()).await;
    assert!(delivery.is_cancel_requested() && !other.is_cancel_requested());
    assert_eq!(
        held.delayed.job("a").state().await.unwrap().map(|state| matches!(state, JobState::InFlight { .. })),
        Some(true)
    );
    assert!(timeout(ms(50), other.cancelled()).await.is_err());

    // Nothing extends it by itself any more: by the next extension that its handler asks for.
    let receiver = held.ready.receiver().lease(HOUR).extend_for(Duration::ZERO);
    held.delayed.offer("3", Duration::ZERO).id("c").until_done().await.unwrap();
    let own = soon(receiver.receive()).await.unwrap();
    held.request_unheard_of("c");
    own.extend(HOUR).await.unwrap();
    soon(own.cancelled()).await;
    assert!(own.is_cancel_requested());
    own.ack().await.unwrap();
    delivery.retry().await.unwrap();
    assert_eq!(held.is().await, None);
    other.ack().await.unwrap();
    held.is_free("by an extension").await;
    held.client.shutdown().await;
}

/// A receiver remembers the cancelled messages that it may be about to claim. If there are too many of them,
/// it forgets them, and asks the server about those that it has.
#[tokio::test]
async fn many_cancels_of_messages_of_others_are_not_remembered() {
    const CANCELS: &str = "for n = 1, 21 do
        redis.call('PUBLISH', 'redelay:receivers:{q}', 'cancel ' .. struct.pack('>I8I8', ARGV[1], n))
    end";
    let held = Held::new().await;
    held.offer("1", Duration::ZERO).await;
    let delivery = soon(held.ready.receiver().lease(HOUR).receive()).await.unwrap();
    until_async("it listens", || async { held.server.subscribers("redelay:receivers:{q}") == 1 }).await;
    // What follows the confirmation of the subscription is over, too.
    sleep(ms(200)).await;
    held.request_unheard();
    for part in 0..500 {
        held.server.cmd(["EVAL", CANCELS, "0", &part.to_string()]);
        // More at a time would not be heard, which has the same effect.
        sleep(ms(1)).await;
    }
    soon(delivery.cancelled()).await;
    assert!(delivery.is_cancel_requested());
    delivery.ack().await.unwrap();
    held.client.shutdown().await;
}

/// After a failover, the new master may have the claim and not the request.
#[tokio::test]
async fn a_request_that_the_server_has_lost_ends_one_delivery() {
    let held = Held::new().await;
    let receiver = held.ready.receiver().lease(HOUR);
    held.offer("1", Duration::ZERO).await;
    let delivery = soon(receiver.receive()).await.unwrap();
    let claimed: Vec<u8> = held.server.get(["HGET", JOBS, "a"]);
    assert_eq!(held.delayed.job("a").cancel().await.unwrap(), Cancelled::Requested);
    soon(delivery.cancelled()).await;
    let _: u64 = held.server.get([b"HSET", JOBS.as_bytes(), b"a", &claimed]);
    delivery.release().await.unwrap();
    let mut again = soon(receiver.receive()).await.unwrap();
    assert_eq!(again.job_id(), Some(&b"a"[..]));
    // On a busy machine, the request may be heard twice: by the announcement, which comes late, and by the
    // look after the subscription.
    if timeout(ms(100), again.cancelled()).await.is_ok() {
        again.release().await.unwrap();
        again = soon(receiver.receive()).await.unwrap();
    }
    assert!(timeout(ms(100), again.cancelled()).await.is_err() && !again.is_cancel_requested());
    again.ack().await.unwrap();
    held.is_free("by an acknowledgement").await;
    held.client.shutdown().await;
}

/// The server refuses one of several that share a call: those before it are cancelled, and their callers
/// learn of it.
#[tokio::test]
async fn a_cancel_that_is_refused_does_not_hide_the_one_before() {
    let held = Held::new().await;
    held.bring(Is::Ready).await;
    held.delayed.offer("2", HOUR).id("b").await.unwrap();
    held.server.cmd(["RENAME", TARGET, "{q}:there"]);
    held.server.cmd(["SET", TARGET, "of another type"]);
    // In one call.
    let jobs = ["b", "a"].map(|id| held.delayed.job(id));
    let [pending, ready] = &jobs;
    let (pending, ready) = tokio::join!(pending.cancel(), ready.cancel());
    assert_eq!(pending.unwrap(), Cancelled::Removed);
    assert_eq!(ready.unwrap_err().kind(), ErrorKind::Refused);
    held.delayed.offer("2", HOUR).id("b").await.unwrap();
    let error = held.delayed.cancel_all(["b", "a"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert!(error.to_string().contains("1 jobs were cancelled"), "{error}");
    held.server.cmd(["RENAME", "{q}:there", TARGET]);
    assert_eq!(held.delayed.cancel_all(["b", "a"]).await.unwrap(), [Cancelled::NotFound, Cancelled::Removed]);
    held.is_free("by a cancel").await;
    held.client.shutdown().await;
}

/// A burst that replaces one waits for as long as any other.
#[tokio::test]
async fn what_is_not_pending_any_more_is_another_burst() {
    let held = Held::new().await;
    for state in ALL.into_iter().filter(|state| *state != Is::InFlight) {
        let delivery = held.bring(state).await;
        drop(delivery);
        tokio::time::sleep(ms(2)).await;
        let before = SystemTime::now();
        let offer = held.delayed.offer("2", MINUTE).id("a").until_done().debounce(HOUR);
        assert!(matches!(offer.await.unwrap(), Offered::Replaced(_)), "{state:?}");
        let offered = held.delayed.job("a").get().await.unwrap().unwrap().first_offered;
        assert_eq!(offered >= before, state != Is::Pending, "{state:?}");
        assert!(held.delayed.job("a").cancel().await.unwrap().is_removed(), "{state:?}");
    }
    held.client.shutdown().await;
}

#[tokio::test]
async fn states_say_when_how_often_and_why() {
    let held = Held::new().await;
    let job = held.delayed.job("a");
    let due = match held.offer("1", HOUR).await {
        Offered::Stored(due) => due,
        other => panic!("{other:?}"),
    };
    let Some(JobState::Pending { due: said, .. }) = job.state().await.unwrap() else { panic!() };
    assert_eq!(said, due);
    assert!(job.reschedule(Duration::ZERO).await.unwrap());
    let delivery = held.receive().await;
    let Some(JobState::InFlight { attempt: 1, since, .. }) = job.state().await.unwrap() else { panic!() };
    assert!(since <= std::time::SystemTime::now() + MINUTE && since >= delivery.first_received());
    delivery.with_error("the bank is closed").retry_after(HOUR).await.unwrap();
    let Some(JobState::Waiting { attempts: 1, error, .. }) = job.state().await.unwrap() else { panic!() };
    assert_eq!(error, "the bank is closed");
    assert!(job.reschedule(Duration::ZERO).await.unwrap());
    let delivery = held.receive().await;
    assert!(matches!(job.state().await.unwrap(), Some(JobState::InFlight { attempt: 2, .. })));
    assert_eq!(delivery.value(), "1");
    delivery.reject("no use").await.unwrap();
    let Some(JobState::Dead { reason, .. }) = job.state().await.unwrap() else { panic!() };
    assert_eq!(reason.as_str(), "rejected");
    let letters = held.ready.dead_letters().read(None, 10).await.unwrap();
    assert_eq!(letters[0].job_id.as_deref(), Some(&b"a"[..]));
    let states = held.delayed.job_states(["b", "a", "c"]).await.unwrap();
    assert!(matches!(states[..], [None, Some(JobState::Dead { .. }), None]));
    held.client.shutdown().await;
}

/// Whoever moves the entry, and whoever takes the payload: Java knows no ids.
#[tokio::test]
async fn what_others_move_keeps_its_id_and_what_others_take_is_done() {
    let held = Held::new().await;
    // Redisson's transfer, by a clock that is ahead.
    held.offer("1", MINUTE).await;
    held.server.cmd(["RPUSH", TARGET, "1"]);
    held.server.cmd(["DEL", TIMEOUT_SET, ORDERED_LIST]);
    assert_eq!(held.is().await, Some(Is::Ready));
    assert!(matches!(held.offer("2", HOUR).await, Offered::Kept(_)));
    let delivery = held.receive().await;
    assert_eq!(delivery.job_id(), Some(&b"a"[..]));
    delivery.ack().await.unwrap();
    held.is_free("acknowledged").await;
    // Its poll.
    held.bring(Is::Ready).await;
    held.server.cmd(["LPOP", TARGET]);
    assert_eq!(held.is().await, None);
    assert!(matches!(held.offer("1", HOUR).await, Offered::Stored(_)));
    held.client.shutdown().await;
}

/// The one that was due first is the first to be done.
#[tokio::test]
async fn equal_payloads_are_interchangeable() {
    let held = Held::new().await;
    let delayed = &held.delayed;
    delayed.offer("same", HOUR).id("pending").until_done().await.unwrap();
    for id in ["x", "y", "z"] {
        delayed.offer("same", Duration::ZERO).id(id).until_done().await.unwrap();
        tokio::time::sleep(ms(2)).await;
    }
    until_async("all are ready", || async { held.ready.len().await.unwrap() == 3 }).await;
    held.ready.put("same").await.unwrap();
    let mut got = Vec::new();
    for delivery in soon(held.ready.receiver().receive_many(10)).await.unwrap() {
        let delivery = delivery.unwrap();
        got.push(delivery.job_id().map(|id| String::from_utf8_lossy(id).into_owned()));
        delivery.ack().await.unwrap();
    }
    assert_eq!(got, [Some("x".into()), Some("y".into()), Some("z".into()), None]);
    assert_eq!(delayed.job_states(["x", "y", "z"]).await.unwrap(), [None, None, None]);
    assert!(matches!(delayed.job("pending").state().await.unwrap(), Some(JobState::Pending { .. })));
    held.client.shutdown().await;
}

/// A receiver that waits may have moved one of them to the inbox.
#[tokio::test]
async fn equal_payloads_are_replaced_in_one_call_wherever_they_are() {
    let held = Held::new().await;
    let delayed = &held.delayed;
    for id in ["x", "y"] {
        delayed.offer("same", Duration::ZERO).id(id).until_done().await.unwrap();
    }
    until_async("both are ready", || async { held.ready.len().await.unwrap() == 2 }).await;
    held.server.cmd(["RPOPLPUSH", TARGET, INBOX]);
    let texts = ["1", "2"].map(String::from);
    let jobs = ["x", "y"].into_iter().zip(&texts).map(|(id, text)| (id, text, HOUR));
    for replaced in delayed.offer_jobs(jobs).until_done().replace().await.unwrap() {
        assert!(matches!(replaced, Offered::Replaced(_)), "{replaced:?}");
    }
    assert_eq!((held.server.list(TARGET).len(), held.server.list(INBOX).len()), (0, 0));
    assert_eq!(delayed.len().await.unwrap(), 2);
    held.client.shutdown().await;
}

/// What Java, or a `take`, has taken is found without an offer of the id; what waits behind it stays.
#[tokio::test]
async fn a_sweep_frees_ids_of_payloads_that_others_have_taken() {
    let server = Server::start();
    let sweeping = patient_builder(&server).sweep_interval(Duration::from_secs(1));
    let Queues { client, ready, delayed } = Queues::of_texts(sweeping).await;
    for id in ["a", "b", "c"] {
        delayed.offer(id, Duration::ZERO).id(id).until_done().await.unwrap();
        tokio::time::sleep(ms(2)).await;
    }
    delayed.offer("d", HOUR).id("d").until_done().await.unwrap();
    until_async("they are ready", || async { ready.len().await.unwrap() == 3 }).await;
    server.cmd(["LPOP", TARGET]);
    let ids = || {
        let mut ids: Vec<String> = server.get(["HKEYS", JOBS]);
        ids.sort();
        ids
    };
    until_async("the first id is free", || async { ids() == ["b", "c", "d"] }).await;
    assert_eq!(server.get::<usize, _>(["HLEN", NOTES]), 3);
    assert_eq!(soon(ready.take()).await.unwrap(), "b");
    assert_eq!(soon(ready.take()).await.unwrap(), "c");
    until_async("the others are free", || async { ids() == ["d"] }).await;
    let flag: Option<String> = server.get(["HGET", "redelay:control:{q}", "notes"]);
    assert_eq!(flag.as_deref(), Some("1"), "there is one more");
    assert!(delayed.job("d").cancel().await.unwrap().is_removed());
    assert_eq!(server.get::<usize, _>(["HLEN", NOTES]), 0);
    until_async("receivers look for no notes any more", || async {
        server.get::<Option<String>, _>(["HGET", "redelay:control:{q}", "notes"]).is_none()
    })
    .await;
    client.shutdown().await;
}

/// A job whose message was deleted by hand, or whose letter was removed, holds no id.
#[tokio::test]
async fn an_id_is_free_once_its_message_is_removed_in_whatever_way() {
    let held = Held::new().await;
    held.bring(Is::Waiting).await;
    assert_eq!(held.ready.unsettled().remove_all(10).await.unwrap(), 1);
    assert!(matches!(held.offer("2", HOUR).await, Offered::Stored(_)));
    assert!(held.delayed.job("a").cancel().await.unwrap().is_removed());
    held.bring(Is::Dead).await;
    assert_eq!(held.ready.dead_letters().remove_all(10).await.unwrap(), 1);
    assert!(matches!(held.offer("2", HOUR).await, Offered::Stored(_)));
    assert!(held.delayed.job("a").cancel().await.unwrap().is_removed());
    // Back to the target, bare: it is ready again.
    held.bring(Is::Waiting).await;
    assert_eq!(held.ready.release_all().await.unwrap(), 1);
    assert_eq!(held.is().await, Some(Is::Ready));
    let delivery = held.receive().await;
    assert_eq!(delivery.job_id(), Some(&b"a"[..]));
    delivery.ack().await.unwrap();
    held.is_free("released").await;
    held.client.shutdown().await;
}

/// No key counts as the throttle of jobs that have none, such as one of the queue with a time to live.
#[tokio::test]
async fn jobs_of_a_queue_that_expires_are_not_throttled() {
    let held = Held::new().await;
    held.delayed.offer("first", HOUR).await.unwrap();
    assert!(held.delayed.expire(HOUR).await.unwrap());
    let ids: Vec<_> = (0..30).map(|n| format!("job-{n}")).collect();
    let jobs = ids.iter().map(|id| (id, id, HOUR));
    let offered = held.delayed.offer_jobs(jobs).until_done().await.unwrap();
    assert_eq!(offered.len(), 30);
    assert!(offered.iter().all(|offered| matches!(offered, Offered::Stored(_))), "{offered:?}");
    held.client.shutdown().await;
}
