//! Calls for jobs that hold their ids, without every single permission: each job is as it was, or the call is
//! done for it, and the answer says which.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use redelay::admin::DeadReason;
use redelay::delayed_queue::{Cancelled, JobState};
use redelay::{Delivery, ErrorKind};
use redelay_support::{CONTROL, DEAD, HOUR, JOBS, LEASES, MESSAGES, MORE_NOTES, NOTES, RECEIPTS, lasting};

use super::{Rig, commands, names_a_permission};

/// More than are cancelled one by one.
const MANY: usize = 33;
const STATES: [&str; 5] = ["pending", "ready", "in flight", "waiting", "dead"];

/// What the call has done for how many jobs.
type Answer = redelay::Result<usize>;
type Call = for<'a> fn(&'a Rig, &'a [String]) -> Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// Brings jobs into these states. Two of each have the same payload. Returns their ids.
async fn begin(rig: &Rig, states: &[&str]) -> (Vec<String>, Vec<Delivery<String>>) {
    let (mut ids, mut deliveries) = (Vec::new(), Vec::new());
    // What is ready comes last, or it would be received.
    let (ready, others): (Vec<_>, Vec<_>) = states.iter().partition(|state| **state == "ready");
    for state in others.into_iter().chain(ready) {
        for number in 0..2 {
            let id = format!("{state} {number}");
            let delay = if state == "pending" { HOUR } else { Duration::ZERO };
            rig.free.1.offer(state, delay).id(&id).until_done().await.expect("nothing is missing");
            ids.push(id);
            if state == "pending" {
                continue;
            }
            rig.transfer_by_hand_of(state);
            if state == "ready" {
                continue;
            }
            let delivery = rig.free.0.receiver().lease(HOUR).receive().await.expect("nothing is missing");
            assert_eq!(delivery.value(), state);
            match state {
                "waiting" => delivery.retry_after(HOUR).await.expect("nothing is missing"),
                "dead" => delivery.reject("no use").await.expect("nothing is missing"),
                _ => deliveries.push(delivery),
            }
        }
    }
    (ids, deliveries)
}

/// What the call may change. Receivers write other keys.
fn contents(rig: &Rig) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut contents = lasting(&rig.server);
    contents.retain(|(key, _)| ![CONTROL, RECEIPTS, LEASES].map(str::as_bytes).contains(&&key[..]));
    contents
}

/// Makes the call for jobs in these states without each permission. `is_done` says whether it was done for a
/// job, by its state and the kind of its field. `is_whole`: it is done for all or for none.
async fn each(
    states: &[&str],
    call: Call,
    is_whole: bool,
    is_done: fn(Option<&JobState>, Option<u8>) -> bool,
) {
    let (rig, mut refused) = (Rig::start(false).await, BTreeSet::new());
    for command in &commands() {
        rig.fill().await;
        let payloads = rig.payloads().await;
        let (ids, deliveries) = begin(&rig, states).await;
        let (before, were) = (contents(&rig), rig.free.1.job_states(&ids).await.unwrap());
        rig.forbid(command);
        let answer = call(&rig, &ids).await;
        rig.permit();
        let now = rig.free.1.job_states(&ids).await.unwrap();
        let mut done = 0;
        for (id, (was, is)) in ids.iter().zip(were.iter().zip(&now)) {
            let field: Option<Vec<u8>> = rig.server.get(["HGET", JOBS, id]);
            let of_this = is_done(is.as_ref(), field.map(|field| field[0]));
            assert!(of_this || is == was, "without {command}: {id} is {is:?}");
            done += usize::from(of_this);
        }
        match &answer {
            Ok(count) => assert_eq!(done, *count, "without {command}: {now:?}"),
            Err(error) => {
                let sentence = error.to_string();
                assert!(names_a_permission(&sentence), "{sentence}");
                if error.kind() == ErrorKind::Refused {
                    assert!(contents(&rig) == before, "without {command}: {sentence}, but {done} are done");
                } else {
                    assert!(!is_whole && error.is_outcome_unknown(), "without {command}: {sentence}");
                    assert!(
                        sentence.contains(&format!("({done} jobs were")),
                        "without {command}: {sentence}"
                    );
                }
                refused.insert(command.clone());
            }
        }
        // Whatever was refused can be done now, and leaves nothing.
        rig.free.1.cancel_all(&ids).await.unwrap();
        for delivery in deliveries {
            delivery.retry().await.unwrap();
        }
        assert_eq!(rig.payloads().await, payloads, "without {command}: {answer:?}");
        let left: usize = rig.server.get(["EXISTS", JOBS, NOTES, MORE_NOTES, MESSAGES, DEAD]);
        assert_eq!(left, 0, "without {command}: {answer:?}");
    }
    assert!(!refused.is_empty(), "the call needs no permission: the test tests nothing");
}

fn is_cancelled(state: Option<&JobState>, kind: Option<u8>) -> bool {
    state.is_none() || kind == Some(b'c')
}

fn is_later(state: Option<&JobState>, _: Option<u8>) -> bool {
    let at = match state {
        Some(JobState::Pending { due, .. }) => due,
        Some(JobState::Waiting { retry_at, .. }) => retry_at,
        _ => return false,
    };
    *at > SystemTime::now() + HOUR * 2
}

#[tokio::test]
async fn cancels() {
    for state in STATES {
        let cancel: Call = |rig, ids| {
            Box::pin(async move {
                let cancelled = rig.delayed.job(&ids[0]).cancel().await?;
                Ok(usize::from(cancelled != Cancelled::NotFound))
            })
        };
        each(&[state], cancel, true, is_cancelled).await;
    }
}

#[tokio::test]
async fn cancels_of_several() {
    each(&STATES, |rig, ids| Box::pin(cancel_all(rig, ids, 0)), false, is_cancelled).await;
    // In a pass through the ordered list.
    each(&STATES, |rig, ids| Box::pin(cancel_all(rig, ids, MANY)), false, is_cancelled).await;
}

async fn cancel_all(rig: &Rig, ids: &[String], others: usize) -> Answer {
    let others = (0..others).map(|number| format!("none {number}"));
    let cancelled = rig.delayed.cancel_all(ids.iter().cloned().chain(others)).await?;
    Ok(cancelled.iter().filter(|cancelled| **cancelled != Cancelled::NotFound).count())
}

#[tokio::test]
async fn other_times() {
    for state in STATES {
        let reschedule: Call = |rig, ids| {
            Box::pin(async { Ok(usize::from(rig.delayed.job(&ids[0]).reschedule(HOUR * 3).await?)) })
        };
        each(&[state], reschedule, true, is_later).await;
    }
}

#[tokio::test]
async fn questions() {
    let ask: Call = |rig, ids| {
        Box::pin(async move {
            for (id, state) in ids.iter().zip(rig.delayed.job_states(ids).await?) {
                let is_right = match state.expect("a state") {
                    JobState::Pending { .. } => id.starts_with("pending"),
                    JobState::Ready => id.starts_with("ready"),
                    JobState::InFlight { .. } => id.starts_with("in flight"),
                    JobState::Waiting { .. } => id.starts_with("waiting"),
                    JobState::Dead { reason, .. } => id.starts_with("dead") && reason == DeadReason::Rejected,
                    _ => false,
                };
                assert!(is_right, "{id}");
            }
            Ok(0)
        })
    };
    for state in STATES {
        each(&[state], ask, true, |_, _| false).await;
    }
}
