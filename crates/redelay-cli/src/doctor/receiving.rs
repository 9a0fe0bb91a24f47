//! What one look says of messages, dead letters, pops, schedules and jobs. Pure.

use bytes::Bytes;

use crate::human;
use crate::state;

use super::codes::Code;
use super::finding::Finding;
use super::look::Look;
use super::walk::hash_of;

pub(crate) fn findings(look: &Look) -> Vec<Finding> {
    let mut found = receiving(look);
    found.extend(held_back(look));
    found.extend(dead(look));
    found.extend(left(look));
    found.extend(schedules(look));
    found
}

fn is_some(count: Option<u64>) -> Option<u64> {
    count.filter(|count| *count > 0)
}

fn messages(count: u64) -> String {
    human::counted(count, "message", "messages")
}

fn hashes(ids: &[Bytes]) -> impl Iterator<Item = u64> {
    ids.iter().map(|id| hash_of(&[id]))
}

fn receiving(look: &Look) -> Vec<Finding> {
    let (details, orphans) = (&look.details, &look.orphans);
    let mut found = Vec::new();
    if let Some(ended) = is_some(details.ended_leases).filter(|_| look.is_silent()) {
        let text = format!("the leases of {} have ended, and no receiver is active", messages(ended));
        found.push(Finding::new(Code::Q30, text));
    }
    if let Some(late) = is_some(details.late_retries).filter(|_| look.is_silent()) {
        let text = format!("{} should have been delivered again, and no receiver is active", messages(late));
        found.push(Finding::new(Code::Q32, text));
    }
    if !orphans.claims.is_empty() || !orphans.messages.is_empty() {
        let text = format!(
            "{} without a message, and {} with neither a lease nor a retry",
            human::counted(orphans.claims.len() as u64, "lease or retry", "leases or retries"),
            messages(orphans.messages.len() as u64)
        );
        let evidence = hashes(&orphans.claims).chain(hashes(&orphans.messages));
        found.push(Finding::new(Code::Q31, text).evidence(evidence));
    }
    if let Some(first) = look.first_unclaimed.filter(|_| look.is_silent()) {
        let count = look.key("inbox").and_then(|key| key.len).unwrap_or(1);
        let text = format!(
            "{} there, and no receiver claims them",
            human::counted(count, "payload is", "payloads are")
        );
        found.push(Finding::new(Code::Q33, text).evidence([first]));
    }
    if details.clock_went_back == Some(true) {
        found.push(Finding::new(Code::Q29, "it was set back while messages were in flight or waiting"));
    }
    found
}

/// What keeps receivers from receiving.
fn held_back(look: &Look) -> Vec<Finding> {
    let overview = &look.overview;
    let mut found = Vec::new();
    if overview.is_paused == Some(true) {
        found.push(Finding::new(Code::Q27, "all receivers are held back"));
    }
    let ready = overview.ready;
    match overview.max_in_flight {
        Some(0) => found.push(Finding::new(Code::Q28, "at most 0 messages may be in flight")),
        Some(most) if overview.in_flight >= Some(most) && ready > Some(0) => {
            let ready = human::counted(ready.unwrap_or(0), "payload is", "payloads are");
            let text = format!("{} in flight, which is all that may be, and {ready} ready", messages(most));
            found.push(Finding::new(Code::Q28, text).measure(overview.ready));
        }
        _ => {}
    }
    if let Some(items) = is_some(overview.quarantined) {
        let text = human::counted(items, "entry that cannot be read", "entries that cannot be read");
        found.push(Finding::new(Code::Q26, text));
    }
    found
}

fn dead(look: &Look) -> Vec<Finding> {
    let orphans = &look.orphans;
    let mut found = Vec::new();
    let unsent = look.details.unsent_letters.unwrap_or(0);
    let others = unsent + orphans.dead.len() as u64;
    if let Some(dead) = is_some(look.overview.dead_letters.map(|dead| dead.saturating_sub(others))) {
        let text = human::counted(dead, "message was given up", "messages were given up");
        found.push(Finding::new(Code::Q34, text));
    }
    if unsent > 0 {
        let text = human::counted(unsent, "letter waits to be sent", "letters wait to be sent");
        found.push(Finding::new(Code::Q35, format!("{text} to another queue")));
    }
    if !orphans.dead.is_empty() || !orphans.dead_messages.is_empty() {
        let text = format!(
            "{} without content, and {} that are not listed",
            human::counted(orphans.dead.len() as u64, "dead letter", "dead letters"),
            human::counted(orphans.dead_messages.len() as u64, "content", "contents")
        );
        let evidence = hashes(&orphans.dead).chain(hashes(&orphans.dead_messages));
        found.push(Finding::new(Code::Q36, text).evidence(evidence));
    }
    found
}

/// What was left of pops and jobs.
fn left(look: &Look) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(pops) = is_some(look.details.left_pops) {
        let text = human::counted(pops, "pop was not confirmed", "pops were not confirmed");
        found.push(Finding::new(Code::Q37, format!("{text} for more than a minute")));
    }
    let knows_expiry =
        |key: &&redelay::inspector::QueueKey| key.unknown.is_empty() && key.kind == key.expected;
    if let Some(popped) = look.key("popped").filter(knows_expiry).filter(|key| key.expires_in.is_none()) {
        let finding = Finding::new(Code::Q38, "the key of popped payloads does not expire");
        found.push(finding.name("KEY", vec![popped.key.to_vec()]));
    }
    let stale = look.orphans.jobs.len() as u64;
    if stale > 0 {
        let text =
            human::counted(stale, "id of a job that is not pending", "ids of jobs that are not pending");
        found.push(Finding::new(Code::Q41, text).evidence(hashes(&look.orphans.jobs)));
    }
    found
}

fn schedules(look: &Look) -> Vec<Finding> {
    let orphans = &look.orphans;
    let mut found = Vec::new();
    let late = look.details.late_schedules.map(|late| late.saturating_sub(orphans.schedules.len() as u64));
    if let Some(late) = is_some(late) {
        let text = human::counted(late, "schedule has", "schedules have");
        let text = format!("{text} not stored the next run, and should have a minute ago");
        found.push(match state::is_full(&look.overview) {
            // Another service would not help.
            true => Finding::new(Code::Q39, text + ": the queue is full").without_fix(),
            false => Finding::new(Code::Q39, text),
        });
    }
    if !orphans.schedules.is_empty() || !orphans.records.is_empty() {
        let text = format!(
            "{} without a record, and {} without a next run",
            human::counted(orphans.schedules.len() as u64, "schedule", "schedules"),
            human::counted(orphans.records.len() as u64, "record", "records")
        );
        let evidence = hashes(&orphans.schedules).chain(hashes(&orphans.records));
        found.push(Finding::new(Code::Q40, text).evidence(evidence));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_no_finding() {
        assert_eq!(findings(&Look::default()), []);
    }

    #[test]
    fn a_silent_queue_needs_a_receiver() {
        let mut look = Look::default();
        look.details.ended_leases = Some(2);
        look.details.late_retries = Some(1);
        look.overview.is_paused = Some(false);
        let codes = |look: &Look| findings(look).iter().map(|finding| finding.code).collect::<Vec<_>>();
        assert_eq!(codes(&look), [Code::Q30, Code::Q32]);
        look.overview.received_ago = Some(std::time::Duration::from_secs(9));
        assert_eq!(codes(&look), []);
        look.overview.is_paused = None;
        look.overview.received_ago = None;
        assert_eq!(codes(&look), [], "it is unknown");
    }
}
