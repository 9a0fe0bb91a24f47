use super::super::{Missed, Overlap, Recurrence, When};
use super::*;

const SECOND: u64 = 1000;

fn every(interval: u64) -> ScheduleRecord {
    let recurrence = Recurrence {
        when: When::Every(interval),
        start: None,
        end: None,
        missed: Missed::Skip,
        no_overlap: None,
    };
    ScheduleRecord { recurrence, payload: Bytes::from_static(b"p"), last: 0, held: 0, is_paused: false }
}

/// The runs that a step stores.
fn runs(step: &Step) -> Vec<u64> {
    step.stored.iter().map(|(run, _)| *run).collect()
}

/// The state after a step.
fn state(step: &Step) -> State {
    let record = step.record.clone().expect("a record");
    State { bytes: record.pack(), record, next: step.next, gone: None }
}

fn begun(record: ScheduleRecord, now: u64) -> State {
    state(&Step::upsert(None, record, now).expect("right").expect("a change"))
}

#[test]
fn a_run_is_stored_one_ahead() {
    let first = begun(every(SECOND), 1_500);
    assert_eq!(first.next, Some(2_000));
    assert_eq!(Step::advance(&first, 1_999, false), Ok(None));
    let step = Step::advance(&first, 2_000, false).unwrap().unwrap();
    assert_eq!((step.next, runs(&step), &step.withdrawn), (Some(3_000), vec![3_000], &None));
    assert_eq!(state(&step).record.last, 2_000);
}

#[test]
fn an_equal_schedule_changes_nothing_and_another_one_replaces_the_pending_run() {
    let old = begun(every(SECOND), 1_500);
    assert_eq!(Step::upsert(Some(&old), every(SECOND), 1_700), Ok(None));
    let step = Step::upsert(Some(&old), every(700), 1_700).unwrap().unwrap();
    assert_eq!((step.next, step.withdrawn.unwrap().0), (Some(2_100), 2_000));
    // The pending run is due: it is left alone.
    let step = Step::upsert(Some(&old), every(700), 2_000).unwrap().unwrap();
    assert_eq!((step.next, &step.withdrawn, state(&step).record.last), (Some(2_100), &None, 2_000));
    // The sorted set was lost.
    let lost = State { next: None, ..old };
    assert_eq!(runs(&Step::upsert(Some(&lost), every(SECOND), 1_700).unwrap().unwrap()), [2_000]);
}

#[test]
fn missed_runs_are_made_up_for_as_the_policy_says() {
    for (missed, expected) in [
        (Missed::Skip, &[5_000][..]),
        (Missed::Once, &[4_000, 5_000]),
        (Missed::UpTo(2), &[3_000, 4_000, 5_000]),
        (Missed::UpTo(3), &[2_000, 3_000, 4_000, 5_000]),
        (Missed::UpTo(1000), &[2_000, 3_000, 4_000, 5_000]),
    ] {
        let mut record = every(SECOND);
        record.recurrence.missed = missed;
        let step = Step::advance(&begun(record, 0), 4_500, false).unwrap().unwrap();
        assert_eq!(runs(&step), expected, "{missed:?}");
        assert_eq!(step.next, Some(5_000));
    }
    // Long payloads come in several steps.
    let mut record = every(SECOND);
    record.payload = vec![0; 100_000].into();
    record.recurrence.missed = Missed::UpTo(1000);
    let mut at = begun(record, 0);
    let mut steps = Vec::new();
    while let Some(step) = Step::advance(&at, 6_500, false).unwrap() {
        steps.push(runs(&step));
        at = state(&step);
    }
    assert_eq!(steps, [vec![2_000, 3_000], vec![4_000, 5_000], vec![6_000, 7_000]]);
    // The next run was set back by hand.
    let mut record = every(SECOND);
    (record.recurrence.missed, record.last) = (Missed::UpTo(1000), 3_000);
    let next = Some(1_000);
    let edited = State { bytes: record.pack(), record, next, gone: None };
    assert_eq!(runs(&Step::advance(&edited, 4_500, false).unwrap().unwrap()), [4_000, 5_000]);
    // A million and more were missed.
    let mut record = every(10);
    record.recurrence.missed = Missed::UpTo(3);
    let step = Step::advance(&begun(record, 0), 100_000_000_005, false).unwrap().unwrap();
    assert_eq!(runs(&step), [99_999_999_980, 99_999_999_990, 100_000_000_000, 100_000_000_010]);
    // The same before an end long ago: not each of ten thousand million runs is looked at.
    let mut record = every(10);
    (record.recurrence.missed, record.recurrence.end) = (Missed::UpTo(3), Some(100_000_000_005));
    let step = Step::advance(&begun(record, 0), 200_000_000_000, false).unwrap().unwrap();
    assert_eq!(runs(&step), [99_999_999_980, 99_999_999_990, 100_000_000_000]);
}

#[test]
fn no_run_comes_twice_when_the_clock_is_set_back() {
    let noon = 12 * 3_600 * SECOND;
    let hourly = every(3_600 * SECOND);
    let fired = state(&Step::advance(&begun(hourly.clone(), noon - 1), noon, false).unwrap().unwrap());
    let back = noon - 3_600 * SECOND + 5;
    assert_eq!(Step::advance(&fired, back, false), Ok(None));
    let paused = state(&Step::pause(&fired, back).unwrap());
    let resumed = Step::resume(&paused, back).unwrap().unwrap();
    assert_eq!(runs(&resumed), [noon + 3_600 * SECOND]);
    let mut other = hourly;
    other.payload = Bytes::from_static(b"other");
    assert_eq!(runs(&Step::upsert(Some(&fired), other, back).unwrap().unwrap()), [noon + 3_600 * SECOND]);
}

#[test]
fn a_run_that_is_gone_before_its_time_does_not_come_again() {
    let mut running = begun(every(SECOND), 1_500);
    running.gone = Some(2_000);
    let mut other = every(SECOND);
    other.payload = Bytes::from_static(b"other");
    let step = Step::upsert(Some(&running), other, 1_999).unwrap().unwrap();
    assert_eq!((runs(&step), &step.withdrawn, state(&step).record.last), (vec![3_000], &None, 2_000));
    let paused = Step::pause(&running, 1_999).unwrap();
    assert_eq!((&paused.withdrawn, state(&paused).record.last), (&None, 2_000));
    assert_eq!(runs(&Step::resume(&state(&paused), 1_999).unwrap().unwrap()), [3_000]);
    // Another run is not.
    running.gone = Some(1_000);
    assert!(Step::pause(&running, 1_999).unwrap().withdrawn.is_some());
}

#[test]
fn a_pause_withdraws_the_pending_run() {
    let running = begun(every(SECOND), 1_500);
    let step = Step::pause(&running, 1_600).unwrap();
    assert_eq!((step.next, runs(&step), step.withdrawn.as_ref().unwrap().0), (None, vec![], 2_000));
    let paused = state(&step);
    assert_eq!(Step::pause(&paused, 1_600), None);
    assert_eq!(Step::advance(&paused, 9_000, false), Ok(None));
    // It stays paused, also with another schedule.
    assert_eq!(Step::upsert(Some(&paused), every(SECOND), 9_000), Ok(None));
    let other = Step::upsert(Some(&paused), every(700), 9_000).unwrap().unwrap();
    assert_eq!((other.next, runs(&other)), (None, vec![]));
    assert_eq!(runs(&Step::resume(&state(&other), 9_000).unwrap().unwrap()), [9_100]);
    assert_eq!(Step::resume(&running, 9_000), Ok(None));
    let removed = Step::remove(&running, 1_600);
    assert_eq!((removed.record, removed.withdrawn.unwrap().0), (None, 2_000));
    assert_eq!(Step::remove(&running, 2_000).withdrawn, None);
}

#[test]
fn start_and_end() {
    let mut record = every(SECOND);
    (record.recurrence.start, record.recurrence.end) = (Some(10_300), Some(12_300));
    let recurrence = record.recurrence.clone();
    let rule = recurrence.rule().unwrap();
    assert_eq!(
        [0, 10_299, 10_300, 11_300, 12_299, 12_300].map(|after| rule.next(after)),
        [Some(10_300), Some(10_300), Some(11_300), Some(12_300), Some(12_300), None]
    );
    let mut at = begun(record, 0);
    let mut runs = Vec::new();
    while let Some(step) = at.next.and_then(|next| Step::advance(&at, next, false).unwrap()) {
        runs.extend(at.next);
        at = state(&step);
    }
    assert_eq!(runs, [10_300, 11_300, 12_300]);
}

#[test]
fn what_is_no_recurrence_is_refused_with_the_reason() {
    let wrong = |change: fn(&mut Recurrence)| {
        let mut record = every(SECOND);
        change(&mut record.recurrence);
        Step::upsert(None, record, 0).unwrap_err()
    };
    assert!(wrong(|it| it.when = When::Every(0)).contains("an interval of 0 ms"));
    assert!(wrong(|it| it.start = Some(1_000_000_000_000_000)).contains("`every 1000 ms` never runs again"));
    assert!(wrong(|it| it.when = When::Every(u64::MAX)).contains("10^15 ms"));
    assert!(wrong(|it| (it.start, it.end) = (Some(2), Some(1))).contains("the end is before the start"));
    assert!(wrong(|it| it.missed = Missed::UpTo(0)).contains("Missed::Skip"));
    assert!(wrong(|it| it.missed = Missed::UpTo(1_000_000)).contains("1000000 missed runs"));
}

#[test]
fn missed_runs_and_another_schedule_are_one_change() {
    let mut record = every(SECOND);
    record.recurrence.missed = Missed::UpTo(9);
    let old = begun(record, 1_500);
    let due = Step::advance(&old, 4_100, false).unwrap().unwrap();
    assert_eq!(runs(&due), [3_000, 4_000, 5_000]);
    let other = Step::upsert(due.state().as_ref(), every(700), 4_100).unwrap();
    let both = due.clone().then(other);
    // The run at 5,000 is of the old schedule, and the one at 2,000 is pending.
    assert_eq!((runs(&both), both.next, &both.withdrawn), (vec![3_000, 4_000, 4_200], Some(4_200), &None));
    assert_eq!(state(&both).record.recurrence.when, When::Every(700));
    assert_eq!(due.clone().then(None), due);
}

fn alone(overlap: Overlap, missed: Missed) -> ScheduleRecord {
    let mut record = every(SECOND);
    (record.recurrence.no_overlap, record.recurrence.missed) = (Some(overlap), missed);
    record
}

/// Nothing is known of its next run: it may lie ahead, or the schedule may have ended.
#[test]
fn a_run_alone_whose_time_was_lost_is_not_made_up() {
    for overlap in [Overlap::Skip, Overlap::Queue] {
        let begun = begun(alone(overlap, Missed::UpTo(9)), 1_500);
        let lost = State { next: Some(0), ..begun.clone() };
        let step = Step::advance(&lost, 4_500, false).unwrap().unwrap();
        assert_eq!((step.next, runs(&step)), (Some(5_000), vec![]));
        let mut ended = lost.clone();
        ended.record.recurrence.end = Some(4_000);
        let step = Step::advance(&ended, 4_500, false).unwrap().unwrap();
        assert_eq!((step.next, runs(&step)), (None, vec![]));
        // One that is held back is known.
        let mut held = lost;
        held.record.held = 2_000;
        let step = Step::advance(&held, 2_500, false).unwrap().unwrap();
        assert_eq!((step.next, runs(&step)), (Some(3_000), vec![2_000]));
    }
}

#[test]
fn runs_that_do_not_overlap_are_stored_when_their_time_has_come() {
    for overlap in [Overlap::Skip, Overlap::Queue] {
        let first = Step::upsert(None, alone(overlap, Missed::Skip), 1_500).unwrap().unwrap();
        assert_eq!((first.next, runs(&first)), (Some(2_000), vec![]));
        assert_eq!(Step::advance(&state(&first), 1_999, false), Ok(None));
        let step = Step::advance(&state(&first), 2_003, false).unwrap().unwrap();
        assert_eq!((step.next, runs(&step), state(&step).record.last), (Some(3_000), vec![2_000], 2_000));
        // It is done, so it is not withdrawn by what follows.
        assert_eq!(Step::remove(&state(&step), 2_500).withdrawn, None);
        assert_eq!(Step::pause(&state(&step), 2_500).unwrap().withdrawn, None);
    }
}

#[test]
fn a_run_that_would_overlap_is_dropped() {
    let mut at = begun(alone(Overlap::Skip, Missed::UpTo(9)), 1_500);
    at = state(&Step::advance(&at, 2_000, false).unwrap().unwrap());
    for now in [3_000, 4_000] {
        let step = Step::advance(&at, now, true).unwrap().unwrap();
        assert_eq!((step.next, runs(&step), state(&step).record.last), (Some(now + 1_000), vec![], 2_000));
        at = state(&step);
    }
    let step = Step::advance(&at, 5_001, false).unwrap().unwrap();
    assert_eq!((step.next, runs(&step)), (Some(6_000), vec![5_000]));
}

#[test]
fn a_run_that_would_overlap_waits() {
    for (missed, expected) in [
        (Missed::Skip, &[3_000, 7_000][..]),
        (Missed::Once, &[3_000, 6_000, 7_000]),
        (Missed::UpTo(2), &[3_000, 5_000, 6_000, 7_000]),
    ] {
        let mut at = begun(alone(Overlap::Queue, missed), 1_500);
        at = state(&Step::advance(&at, 2_000, false).unwrap().unwrap());
        // It is looked at once a second, and stays the one that waits.
        for now in [3_000, 4_000, 5_000] {
            let step = Step::advance(&at, now, true).unwrap().unwrap();
            if now > 3_000 {
                assert_eq!(
                    Step::look(&at, now).as_ref(),
                    Some(&step),
                    "one client looks, and changes nothing else"
                );
            }
            assert_eq!(
                (step.next, runs(&step), state(&step).record.held),
                (Some(now + 1_000), vec![], 3_000)
            );
            at = state(&step);
        }
        // From now on, each run is done before the next look.
        let (mut now, mut stored) = (6_010, Vec::new());
        while now <= 7_010 {
            let step = Step::advance(&at, now, false).unwrap().unwrap();
            assert_eq!(runs(&step).len(), 1, "never two at once");
            stored.extend(runs(&step));
            at = state(&step);
            now = at.next.unwrap().max(now) + 10;
        }
        assert_eq!(stored, expected, "{missed:?}");
    }
}

#[test]
fn a_run_that_waits_outlives_another_schedule_but_no_pause() {
    let begun = begun(alone(Overlap::Queue, Missed::Skip), 1_500);
    let running = state(&Step::advance(&begun, 2_000, false).unwrap().unwrap());
    let held = state(&Step::advance(&running, 3_000, true).unwrap().unwrap());
    let mut other = alone(Overlap::Queue, Missed::Skip);
    other.payload = Bytes::from_static(b"other");
    for (old, kept) in [(&held, 3_000), (&running, 0)] {
        let step = Step::upsert(Some(old), other.clone(), 2_900).unwrap().unwrap();
        assert_eq!((state(&step).record.held, state(&step).record.last, runs(&step)), (kept, 2_000, vec![]));
        assert_eq!(step.next, Some(if kept > 0 { 2_900 } else { 3_000 }));
    }
    // Its time has come, and nobody has looked yet.
    let step = Step::upsert(Some(&running), other, 3_005).unwrap().unwrap();
    assert_eq!((state(&step).record.held, step.next), (3_000, Some(3_005)));
    // A schedule whose runs may overlap again stores its next run ahead.
    let step = Step::upsert(Some(&held), every(SECOND), 3_500).unwrap().unwrap();
    assert_eq!((state(&step).record.held, runs(&step)), (0, vec![4_000]));
    let paused = state(&Step::pause(&held, 3_500).unwrap());
    assert_eq!((paused.record.held, paused.next), (0, None));
    let resumed = Step::resume(&paused, 8_500).unwrap().unwrap();
    assert_eq!((resumed.next, runs(&resumed)), (Some(9_000), vec![]));
}

#[test]
fn a_triggered_run_does_not_overlap_either() {
    let at = begun(alone(Overlap::Queue, Missed::Skip), 1_500);
    assert_eq!(Step::trigger(&at, 1_700, true), None);
    let step = Step::trigger(&at, 1_700, false).unwrap();
    assert_eq!((step.next, runs(&step), state(&step).record.last), (Some(2_000), vec![1_700], 1_700));
    let held = state(&Step::advance(&state(&step), 2_000, true).unwrap().unwrap());
    // The run that waits still comes.
    let step = Step::trigger(&held, 2_500, false).unwrap();
    let later = Step::advance(&state(&step), 3_000, false).unwrap().unwrap();
    assert_eq!((runs(&later), state(&later).record.held), (vec![2_501], 0));
}
