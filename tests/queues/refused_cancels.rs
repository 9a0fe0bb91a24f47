//! Cancels of jobs that hold their ids, which the server refuses: nothing is half cancelled, and once the
//! cause is gone, the cancel works. One that is full refuses none.

use std::collections::{BTreeMap, BTreeSet};

use redelay::ErrorKind;
use redelay::delayed_queue::Cancelled;
use redelay_support::{
    DEAD, DEAD_MESSAGES, HOUR, INBOX, JOBS, MESSAGES, MORE_NOTES, NOTES, ORDERED_LIST, RETRIES, SCRATCH,
    TARGET, TIMEOUT_SET, lasting,
};

use crate::many_held_jobs::Many;

/// The keys of the script, and the type of each.
const KEYS: [(&str, &str); 12] = [
    (TIMEOUT_SET, "zset"),
    (ORDERED_LIST, "list"),
    (JOBS, "hash"),
    (SCRATCH, "list"),
    (NOTES, "hash"),
    (TARGET, "list"),
    (INBOX, "list"),
    (MESSAGES, "hash"),
    (RETRIES, "zset"),
    (DEAD, "zset"),
    (DEAD_MESSAGES, "hash"),
    (MORE_NOTES, "zset"),
];
/// Those that a cancel needs whatever the state of the job.
const ALWAYS: [&str; 5] = [ORDERED_LIST, JOBS, SCRATCH, NOTES, MORE_NOTES];
/// Those that it needs besides.
const NEEDS: [(&str, &[&str]); 5] = [
    ("pending", &[TIMEOUT_SET]),
    ("ready", &[TIMEOUT_SET, TARGET, INBOX]),
    ("in flight", &[MESSAGES, RETRIES]),
    ("waiting", &[MESSAGES, RETRIES]),
    ("dead", &[MESSAGES, DEAD, DEAD_MESSAGES]),
];

fn cancelled(state: &str) -> Cancelled {
    if state == "in flight" { Cancelled::Requested } else { Cancelled::Removed }
}

/// Puts a text in the place of a key.
fn break_key(many: &Many, key: &str) {
    many.server.cmd(["DEL", "{q}:there"]);
    let _ = many.server.try_cmd(["RENAME", key, "{q}:there"]);
    many.server.cmd(["SET", key, "text"]);
}

/// What a cancel may change. Receivers write other keys.
fn contents(many: &Many) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut contents = lasting(&many.server);
    let is_of_cancels = |key: &[u8]| key == b"{q}:there" || KEYS.iter().any(|(of, _)| of.as_bytes() == key);
    contents.retain(|(key, _)| is_of_cancels(key));
    contents
}

fn repair(many: &Many, key: &str) {
    many.server.cmd(["DEL", key]);
    let _ = many.server.try_cmd(["RENAME", "{q}:there", key]);
}

#[tokio::test]
async fn a_key_of_another_type_cancels_nothing_by_halves() {
    let mut refused: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (state, _) in NEEDS {
        let mut many = Many::new().await;
        let id = format!("{state} 0");
        for (key, type_of_key) in KEYS {
            many.bring(state, 1, 0).await;
            break_key(&many, key);
            let before = contents(&many);
            let answer = many.delayed.job(&id).cancel().await;
            if let Err(error) = &answer {
                let sentence = error.to_string();
                assert_eq!(error.kind(), ErrorKind::Refused, "{state}, {key}: {sentence}");
                let says = format!(
                    "the key `{key}` is a string and must be a {type_of_key} (WRONGTYPE); rename that key"
                );
                assert!(sentence.contains(&says), "{state}, {key}: {sentence}");
                assert!(contents(&many) == before, "{state}, {key} was half cancelled");
                refused.entry(state).or_default().insert(key);
            }
            repair(&many, key);
            let answer = match answer {
                Err(_) => many.delayed.job(&id).cancel().await.unwrap(),
                Ok(answer) => answer,
            };
            assert_eq!(answer, cancelled(state), "{state}, {key}");
            for delivery in many.deliveries.drain(..) {
                delivery.retry().await.unwrap();
            }
            assert_eq!(many.delayed.job(&id).state().await.unwrap(), None, "{state}, {key}");
            let left: usize =
                many.server.get(["EXISTS", JOBS, NOTES, MORE_NOTES, MESSAGES, DEAD, TARGET, TIMEOUT_SET]);
            assert_eq!(left, 0, "{state}, {key}");
        }
        many.client.shutdown().await;
    }
    let expected =
        NEEDS.map(|(state, keys)| (state, ALWAYS.into_iter().chain(keys.iter().copied()).collect()));
    assert_eq!(refused, BTreeMap::from(expected));
}

/// In a pass through the ordered list, those before the one that is refused are cancelled, and those behind
/// it are not.
#[tokio::test]
async fn a_pass_ends_before_a_job_that_is_refused() {
    const EACH: usize = 40;
    let mut tries = 0;
    let (many, ids, error) = loop {
        let mut many = Many::new().await;
        for (state, count) in [("pending", 2 * EACH), ("waiting", 1), ("ready", 1)] {
            many.bring(state, count, 0).await;
        }
        let (pending, others) = many.ids.split_at(2 * EACH);
        let (before, behind) = pending.split_at(EACH);
        let ids = [&others[..1], before, &others[1..], behind].concat();
        break_key(&many, TARGET);
        let error = many.delayed.cancel_all(&ids).await.unwrap_err();
        tries += 1;
        if tries == 5 || error.to_string().contains(&format!("({} jobs were cancelled", 1 + EACH)) {
            break (many, ids, error);
        }
        // The server was held up for longer than a pass looks for jobs that are not pending: it has left the
        // one that is refused to the next pass, or begun that one with it.
        many.client.shutdown().await;
    };
    let behind = &ids[2 + EACH..];
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    for part in [&format!("{} jobs were cancelled", 1 + EACH), "WRONGTYPE", TARGET] {
        assert!(error.to_string().contains(part), "{error}");
    }
    repair(&many, TARGET);
    many.states_are_right(&[&ids[1 + EACH..2 + EACH], behind].concat()).await;
    let again = many.delayed.cancel_all(&ids).await.unwrap();
    let (gone, left) = again.split_at(1 + EACH);
    assert!(gone.iter().all(|cancelled| *cancelled == Cancelled::NotFound), "{gone:?}");
    assert!(left.iter().all(|cancelled| cancelled.is_removed()), "{left:?}");
    assert_eq!(lasting(&many.server).len(), 1, "what concerns all receivers");
    many.client.shutdown().await;
}

#[tokio::test]
async fn a_server_without_memory_cancels_jobs_in_every_state() {
    for all in [false, true] {
        let mut many = Many::of_each(if all { 10 } else { 1 }, 0).await;
        many.server.cmd(["CONFIG", "SET", "maxmemory", "1"]);
        assert_eq!(many.delayed.offer("x", HOUR).id("x").await.unwrap_err().kind(), ErrorKind::Refused);
        many.states_are_right(&many.ids).await;
        let answers = if all {
            many.delayed.cancel_all(&many.ids).await.unwrap()
        } else {
            let mut answers = Vec::new();
            for id in &many.ids {
                answers.push(many.delayed.job(id).cancel().await.unwrap());
            }
            answers
        };
        for (id, answer) in many.ids.iter().zip(answers) {
            let state = id.rsplit_once(' ').unwrap().0;
            let expected = if state == "none" { Cancelled::NotFound } else { cancelled(state) };
            assert_eq!(answer, expected, "{id}");
        }
        for delivery in many.deliveries.drain(..) {
            delivery.retry().await.unwrap();
        }
        let states = many.delayed.job_states(&many.ids).await.unwrap();
        assert!(states.iter().all(Option::is_none), "{states:?}");
        let left: usize =
            many.server.get(["EXISTS", JOBS, NOTES, MORE_NOTES, MESSAGES, DEAD, TARGET, TIMEOUT_SET]);
        assert_eq!(left, 0);
        many.client.shutdown().await;
    }
}
