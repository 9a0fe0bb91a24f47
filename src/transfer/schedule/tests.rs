use std::collections::BTreeMap;

use super::*;

mod reference;
mod world;

const INTERVAL: Duration = Duration::from_secs(60);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The result of a run that transferred nothing.
fn head(head: Option<Instant>) -> Moved {
    Moved { head, transferred: false, clock: 1 }
}

/// A schedule with one queue whose first run is in flight.
fn running(now: Instant) -> TransferSchedule {
    let mut schedule = TransferSchedule::new(INTERVAL, 1);
    schedule.open(7, now);
    schedule.sweep(7, now);
    assert_eq!(schedule.next(now), Next::Run(7));
    schedule
}

#[test]
fn a_late_reply_postpones_nothing() {
    let now = Instant::now();
    let mut schedule = running(now);
    schedule.announced(7, now + ms(10));
    schedule.announced(7, now + ms(3_000));
    assert_eq!(schedule.next(now), Next::Idle);
    schedule.finished(7, now + ms(5), head(Some(now + ms(2_000))));
    assert_eq!(schedule.next(now + ms(5)), Next::Sleep(now + ms(10)));
}

#[test]
fn a_head_that_is_due_already_is_run_at_once() {
    let now = Instant::now();
    let mut schedule = running(now);
    schedule.finished(7, now + ms(5), head(Some(now - ms(2_000))));
    assert_eq!(schedule.next(now + ms(5)), Next::Run(7));
}

#[test]
fn failures_back_off_and_keep_the_wake_up() {
    let mut now = Instant::now();
    let mut schedule = running(now);
    for expected in [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000] {
        schedule.failed(7, now);
        assert!(schedule.is_failing(7));
        // An announcement does not shorten the pause of a failing server.
        schedule.announced(7, now);
        let Next::Sleep(at) = schedule.next(now) else { panic!("no pause of {expected} ms") };
        assert!(at >= now + ms(expected / 2) && at <= now + ms(expected), "{:?}", at - now);
        now = at;
        assert_eq!(schedule.next(now), Next::Run(7));
    }
    schedule.finished(7, now, head(None));
    assert!(!schedule.is_failing(7));
    let Next::Sleep(at) = schedule.next(now) else { panic!("runs for nothing") };
    assert!(at >= now + INTERVAL);
}

#[test]
fn a_connection_that_is_back_ends_the_pause() {
    let now = Instant::now();
    let mut schedule = running(now);
    schedule.failed(7, now);
    schedule.sweep(7, now + ms(1));
    assert_eq!(schedule.next(now + ms(1)), Next::Run(7));
}

#[test]
fn a_queue_is_idle_when_nobody_has_tried() {
    let now = Instant::now();
    let mut schedule = running(now);
    let is_idle =
        |schedule: &TransferSchedule, since| schedule.is_idle_since(7, now + ms(since), now + ms(1_000));
    assert!(!is_idle(&schedule, 10), "it runs");
    schedule.finished(7, now + ms(20), head(Some(now + ms(60_000))));
    assert!(!is_idle(&schedule, 10) && is_idle(&schedule, 20));
    schedule.on_peer_transfer(7, now + ms(30), None, 2, false);
    assert!(!is_idle(&schedule, 20) && is_idle(&schedule, 30));
    schedule.sweep(7, now + ms(40));
    assert!(!is_idle(&schedule, 30), "it is about to run");
    assert_eq!(schedule.next(now + ms(40)), Next::Run(7));
    schedule.failed(7, now + ms(50));
    assert!(!is_idle(&schedule, 90), "it is tried again");
    assert!(!schedule.is_idle_since(8, now + ms(90), now + ms(1_000)), "there is none");
}

/// A message of a peer may be older than the reply that named the time.
#[test]
fn a_time_from_a_reply_outlives_a_message_of_a_peer() {
    let now = Instant::now();
    let mut schedule = running(now);
    schedule.finished(7, now, head(None));
    for millis in [20, 10, 30] {
        schedule.seen(7, now + ms(millis));
    }
    schedule.on_peer_transfer(7, now, None, 2, false);
    assert_eq!(schedule.next(now), Next::Sleep(now + ms(10)));
    assert_eq!(schedule.next(now + ms(10)), Next::Run(7));
}

#[test]
fn opened_twice_in_one_instant() {
    let now = Instant::now();
    let mut schedule = TransferSchedule::new(INTERVAL, 1);
    schedule.open(7, now);
    schedule.open(7, now);
    assert_eq!(schedule.next(now), Next::Sleep(now + UNCONFIRMED));
    assert_eq!(schedule.next(now + UNCONFIRMED), Next::Run(7));
    // Nor does it run twice.
    schedule.open(7, now);
    assert_eq!(schedule.next(now + ms(100_000)), Next::Idle);
}

#[test]
fn a_closed_queue_is_forgotten() {
    let now = Instant::now();
    let mut schedule = running(now);
    schedule.close(7);
    schedule.announced(7, now);
    schedule.sweep(7, now);
    schedule.finished(7, now, head(Some(now)));
    schedule.failed(7, now);
    assert_eq!(schedule.next(now + ms(1_000_000)), Next::Idle);
    assert!(!schedule.is_failing(7) && schedule.queues.is_empty() && schedule.timers.is_empty());
}

#[test]
fn ten_thousand_queues_sweep_twice_a_second_in_all() {
    let now = Instant::now();
    let mut schedule = TransferSchedule::new(INTERVAL, 42);
    for queue in 0..10_000 {
        schedule.open(queue, now);
        schedule.sweep(queue, now);
    }
    for _ in 0..10_000 {
        assert!(matches!(schedule.next(now), Next::Run(_)));
    }
    for queue in 0..10_000 {
        schedule.finished(queue, now, head(None));
    }
    // The first sweeps are spread over a quarter of an interval of 5,000 s, all later ones over the whole.
    let seconds = schedule.timers.iter().map(|(at, _)| (*at - now).as_secs());
    let mut sweeps = BTreeMap::<u64, usize>::new();
    seconds.for_each(|second| *sweeps.entry(second).or_default() += 1);
    assert!(*sweeps.first_key_value().unwrap().0 >= 5_000 && *sweeps.last_key_value().unwrap().0 <= 6_250);
    assert!(sweeps.values().all(|queues| *queues <= 30), "{sweeps:?}");
}

/// A client whose call was too late twice, and that has seen the quicker peer, lets that peer go first.
#[test]
fn one_goes_first_and_the_others_step_in() {
    let now = Instant::now();
    let mut schedule = running(now);
    let next = now + ms(100);
    schedule.finished(7, now, head(Some(next)));
    assert_eq!(schedule.next(next), Next::Run(7));
    let after = next + ms(100);
    // A peer was quicker. Nothing else is known of it yet.
    assert!(schedule.finished(7, next, Moved { head: Some(after), transferred: false, clock: 2 }));
    assert_eq!(schedule.next(next), Next::Sleep(after));
    assert_eq!(schedule.next(after), Next::Run(7));
    let third = after + ms(100);
    schedule.on_peer_transfer(7, after, Some(third), 3, false);
    assert!(schedule.finished(7, after, Moved { head: Some(third), transferred: false, clock: 4 }));
    let Next::Sleep(at) = schedule.next(after) else { panic!("does not wait") };
    assert!(at >= third + STAND_DOWN.start && at <= third + STAND_DOWN.end, "{:?}", at - third);
    // The message of the peer arrives in time.
    let fourth = third + ms(100);
    schedule.on_peer_transfer(7, third + ms(2), Some(fourth), 5, false);
    let waited = at - third;
    let Next::Sleep(at) = schedule.next(third + ms(50)) else { panic!("does not wait") };
    assert_ne!(at - fourth, waited, "each wait is random");
    assert!(at >= fourth + STAND_DOWN.start && at <= fourth + STAND_DOWN.end, "{:?}", at - fourth);
    // Old messages postpone nothing.
    schedule.on_peer_transfer(7, third + ms(3), None, 4, false);
    assert_eq!(schedule.next(third + ms(50)), Next::Sleep(at));
    // No more messages arrive, so from now on this client calls in time.
    assert_eq!(schedule.next(at), Next::Run(7));
    let fifth = at + ms(100);
    schedule.finished(7, at, Moved { head: Some(fifth), transferred: true, clock: 6 });
    assert_eq!(schedule.next(at), Next::Sleep(fifth));
}

/// Cancelled entries are no reason to be late: no peer was seen.
#[test]
fn a_lost_race_alone_changes_nothing() {
    let mut now = Instant::now();
    let mut schedule = running(now);
    schedule.finished(7, now, head(None));
    for _ in 0..10 {
        let due = now + ms(100);
        schedule.announced(7, due);
        assert_eq!(schedule.next(now), Next::Sleep(due));
        assert_eq!(schedule.next(due), Next::Run(7));
        now = due + ms(1);
        assert!(schedule.finished(7, now, head(None)));
    }
}
