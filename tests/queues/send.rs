//! What can go to another thread: every public type and every future of a public method. A break is a compile
//! error here.

use std::time::{Duration, SystemTime};

use futures::future::ready;
use redelay::admin::{
    DeadLetter, DeadLetters, DeadReason, PopKind, Pump, Quarantine, Quarantined, UnconfirmedPop,
    UnconfirmedPops,
};
use redelay::admin::{Unsettled, UnsettledMessage};
use redelay::blocking_queue::{KeyNames, PayloadStream, RateLimit};
use redelay::client::{ClientBuilder, ClientConfig, ReplicasConfig, Tls, TlsConfig};
use redelay::delayed_queue::{
    Cancelled, EntryFormat, Job, JobOffer, JobState, Missed, Offer, Offered, Overlap, PendingJob, Schedule,
};
use redelay::delayed_queue::{Schedules, StoredSchedule, Ticket};
use redelay::inspector::{
    ClusterState, Cursor, Details, DueCount, Happening, Happenings, Inspector, Leftover, LeftoverKind,
    ListedEntry, Orphans, Overview, PendingEntry, QueueKey, Queues, ReadyPayload, Role, Sentinel, Server,
    ServerSettings, Unknown,
};
use redelay::receiver::{DeliveryStream, MessageId};
use redelay::stats::{
    ClientStats, HandlingStats, Health, Histogram, LastError, PumpStats, QueueStats, ReceivingStats,
};
use redelay::worker::{Backoff, Context, Failure, OnUndecodable, Outcome, Stopped};
use redelay::{
    BlockingQueue, Client, DelayedQueue, Delivery, Error, ErrorKind, PartitionedQueue, Receiver, Worker,
};

/// A payload that may go to another thread, but not be shared by several.
type Value = std::cell::Cell<i64>;

fn goes<T: Send>(_: T) {}
fn is_shared<T: Send + Sync + 'static>() {}

#[test]
fn types_are_shared_by_threads() {
    is_shared::<Client>();
    is_shared::<ClientBuilder>();
    is_shared::<ClientConfig>();
    is_shared::<Tls>();
    is_shared::<BlockingQueue<Value>>();
    is_shared::<DelayedQueue<Value>>();
    is_shared::<PartitionedQueue<Value>>();
    is_shared::<Receiver<Value>>();
    is_shared::<Job<Value>>();
    is_shared::<(Schedule<Value>, Schedules<Value>)>();
    is_shared::<(DeadLetters, DeadLetter, DeadReason, Unsettled, UnsettledMessage)>();
    is_shared::<(UnconfirmedPops, UnconfirmedPop, PopKind, Quarantine, Quarantined)>();
    is_shared::<(ReplicasConfig, TlsConfig, Pump, Inspector)>();
    is_shared::<(KeyNames, RateLimit, EntryFormat, Missed, Offered, Ticket, MessageId)>();
    is_shared::<(Cancelled, JobState, Overlap)>();
    is_shared::<(
        ClientStats,
        LastError,
        QueueStats,
        ReceivingStats,
        HandlingStats,
        Health,
        Histogram,
        PumpStats,
    )>();
    is_shared::<(ClusterState, Details, DueCount, Happening, Leftover, LeftoverKind, ListedEntry, Orphans)>();
    is_shared::<(
        Overview,
        PendingEntry,
        Cursor,
        QueueKey,
        ReadyPayload,
        Role,
        Sentinel,
        Server,
        ServerSettings,
    )>();
    is_shared::<Unknown>();
    is_shared::<(Backoff, Context, Failure, OnUndecodable, Outcome, Stopped, Error, ErrorKind)>();
    is_shared::<(PendingJob<i64>, StoredSchedule<i64>, Delivery<i64>)>();
}

#[test]
fn types_go_to_another_thread() {
    fn go<T: Send + 'static>() {}
    go::<(Offer, JobOffer, JobOffer<Vec<Offered>>)>();
    go::<(PayloadStream<Value>, DeliveryStream<Value>, Queues, Happenings)>();
    go::<(Delivery<Value>, PendingJob<Value>, StoredSchedule<Value>, Worker<Value>)>();
}

/// Is compiled, and never called.
#[allow(dead_code)]
fn futures_of_clients(client: &Client, config: &ClientConfig) {
    goes(Client::connect("redis://localhost"));
    goes(config.builder().unwrap().connect());
    goes(client.stop_taking());
    goes(client.shutdown());
    goes(client.partitioned_queue("q", 2, redelay::codec::Long));
}

#[allow(dead_code)]
fn futures_of_blocking_queues(queue: &BlockingQueue<i64>) {
    goes(queue.put(&1));
    goes(queue.offer(&1));
    goes(queue.offer_all([&1]));
    goes(queue.take());
    goes(queue.take_last());
    goes(queue.poll());
    goes(queue.poll_last());
    goes(queue.poll_timeout(Duration::ZERO));
    goes(queue.poll_last_timeout(Duration::ZERO));
    goes(queue.poll_many(1));
    goes(queue.poll_from_any(Duration::ZERO, &["r"]));
    goes(queue.poll_last_from_any(Duration::ZERO, &["r"]));
    goes(queue.poll_many_from_any(Duration::ZERO, 1, &["r"]));
    goes(queue.poll_last_many_from_any(Duration::ZERO, 1, &["r"]));
    goes(queue.poll_last_and_offer_first_to("r"));
    goes(queue.poll_last_and_offer_first_to_timeout("r", Duration::ZERO));
    goes(queue.take_last_and_offer_first_to("r"));
    goes(queue.len());
    goes(queue.is_empty());
    goes(queue.read_all());
    goes(queue.peek());
    goes(queue.peek_last());
    goes(queue.stats());
    goes(queue.contains(&1));
    goes(queue.contains_all([&1]));
    goes(queue.remove(&1));
    goes(queue.remove_all([&1]));
    goes(queue.retain_all([&1]));
    goes(queue.clear());
    goes(queue.delete());
    goes(queue.expire(Duration::ZERO));
    goes(queue.pause());
    goes(queue.resume());
    goes(queue.is_paused());
    goes(queue.set_max_in_flight(None));
    goes(queue.max_in_flight());
    goes(queue.set_rate_limit(None));
    goes(queue.rate_limit());
    goes(queue.release_all());
}

#[allow(dead_code)]
fn futures_of_delayed_queues(queue: &DelayedQueue<i64>, ticket: &Ticket, at: SystemTime) {
    goes(queue.set_max_pending(None));
    goes(queue.max_pending());
    goes(queue.offer(&1, Duration::ZERO));
    goes(queue.offer_at(&1, at));
    goes(queue.offer(&1, Duration::ZERO).id("1"));
    goes(queue.offer_jobs([("1", &1, Duration::ZERO)]));
    goes(queue.offer_all([(&1, Duration::ZERO)]));
    goes(queue.cancel(ticket));
    goes(queue.reschedule(ticket, Duration::ZERO));
    goes(queue.reschedule_at(ticket, at));
    goes(queue.cancel_all(["1"]));
    goes(queue.job_states(["1"]));
    goes(queue.len());
    goes(queue.is_empty());
    goes(queue.read_all());
    goes(queue.peek());
    goes(queue.stats());
    goes(queue.contains(&1));
    goes(queue.contains_all([&1]));
    goes(queue.poll());
    goes(queue.poll_many(1));
    goes(queue.remove(&1));
    goes(queue.remove_all([&1]));
    goes(queue.retain_all([&1]));
    goes(queue.poll_last_and_offer_first_to("r"));
    goes(queue.clear());
    goes(queue.delete());
    goes(queue.expire(Duration::ZERO));
    goes(queue.destroy());
    let job = queue.job("1");
    goes(job.get());
    goes(job.state());
    goes(job.exists());
    goes(job.cancel());
    goes(job.reschedule(Duration::ZERO));
    goes(job.reschedule_at(at));
    goes(job.replace(&1, Duration::ZERO));
    goes(job.run_now());
    let schedule = queue.schedule("1");
    goes(schedule.upsert(&1));
    goes(schedule.get());
    goes(schedule.next_runs(1));
    goes(schedule.pause());
    goes(schedule.resume());
    goes(schedule.remove());
    goes(schedule.trigger());
}

#[allow(dead_code)]
fn futures_of_partitioned_queues(queue: &PartitionedQueue<i64>, ticket: &Ticket, at: SystemTime) {
    goes(queue.job_states(["a"]));
    goes(queue.cancel_all(["a"]));
    goes(queue.put(&1));
    goes(queue.offer(&1, Duration::ZERO));
    goes(queue.offer_at(&1, at));
    goes(queue.offer_all([(&1, Duration::ZERO)]));
    goes(queue.offer_jobs([("1", &1, Duration::ZERO)]));
    goes(queue.cancel(ticket));
    goes(queue.reschedule(ticket, Duration::ZERO));
    goes(queue.reschedule_at(ticket, at));
    goes(queue.take());
    goes(queue.poll_timeout(Duration::ZERO));
    goes(queue.pause());
    goes(queue.resume());
    goes(queue.stats());
}

#[allow(dead_code)]
fn futures_of_receivers(receiver: &Receiver<i64>, delivery: fn() -> Delivery<i64>) {
    goes(receiver.receive());
    goes(receiver.try_receive());
    goes(receiver.receive_timeout(Duration::ZERO));
    goes(receiver.receive_many(1));
    goes(receiver.ack_and_receive(delivery()));
    goes(receiver.closed());
    goes(delivery().ack());
    goes(delivery().retry());
    goes(delivery().retry_after(Duration::ZERO));
    goes(delivery().snooze(Duration::ZERO));
    goes(delivery().release());
    goes(delivery().reject("no"));
    goes(delivery().extend(Duration::ZERO));
    goes(delivery().instrument(ready(())));
    goes(delivery().cancelled());
    goes(delivery().lost());
}

#[allow(dead_code)]
fn futures_of_workers(worker: fn() -> Worker<i64>, context: &Context) {
    goes(worker().run(|_: i64| async {}));
    goes(worker().run_until(ready(()), |_: i64, _: Context| async {}));
    goes(worker().run_with_signals(futures::stream::empty::<()>(), |_: i64| async {}));
    goes(context.cancelled());
}

#[allow(dead_code)]
fn futures_of_inspectors(inspector: &Inspector, pump: &Pump, cursor: fn() -> Option<Cursor>) {
    goes(pump.transfer());
    goes(inspector.servers());
    goes(inspector.server_settings());
    goes(inspector.sentinels());
    goes(inspector.leftovers());
    goes(inspector.overview(&["q"]));
    goes(inspector.details("q"));
    goes(inspector.partitions("q"));
    goes(inspector.due("q", Duration::ZERO, 1));
    goes(inspector.keys("q"));
    goes(inspector.orphans("q"));
    goes(inspector.pending("q", cursor(), 1));
    goes(inspector.entries("q", cursor(), 1));
    goes(inspector.ready("q", cursor(), 1));
    goes(inspector.inbox("q", cursor(), 1));
    goes(inspector.in_flight("q", cursor(), 1));
    goes(inspector.waiting("q", cursor(), 1));
    goes(inspector.dead_letters("q", cursor(), 1));
    goes(inspector.unconfirmed_pops("q", cursor(), 1));
    goes(inspector.quarantine("q", cursor(), 1));
    goes(inspector.schedules("q", cursor(), 1));
}

#[allow(dead_code)]
fn futures_of_operators(
    (queue, delayed, id): (&BlockingQueue<i64>, &DelayedQueue<i64>, MessageId),
    (letter, message, pop): (&DeadLetter, &UnsettledMessage, &UnconfirmedPop),
    quarantined: &Quarantined,
) {
    let (dead, unsettled, pops) =
        (queue.dead_letters(), queue.unsettled(), queue.unconfirmed_pops(Duration::ZERO));
    let (quarantine, schedules) = (delayed.quarantine(), delayed.schedules());
    macro_rules! verbs {
        ($($handle:ident, $key:expr;)+) => {
            $(goes($handle.len());
            goes($handle.is_empty());
            goes($handle.remove($key));
            goes($handle.remove_all(1));)+
        };
    }
    verbs! { dead, id; unsettled, id; pops, "id"; quarantine, quarantined; schedules, "name"; }
    goes((dead.read(Some(letter), 1), dead.requeue(id), dead.requeue_all(1)));
    goes((unsettled.in_flight(Some(message), 1), unsettled.waiting(Some(message), 1)));
    goes((unsettled.requeue(id), unsettled.requeue_all(1)));
    goes((pops.read(Some(pop), 1), pops.requeue("id"), pops.requeue_all(1)));
    goes((quarantine.read(Some(quarantined), 1), quarantine.requeue(quarantined), quarantine.requeue_all(1)));
    goes(schedules.read(Some("name"), 1));
}
