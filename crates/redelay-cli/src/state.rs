//! What is wrong with a queue, by one look at it. Pure.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use redelay::inspector::{Overview, Unknown};
use serde::Serialize;

use crate::{escape, human};

/// Where a client transfers, the head is due for less. Redisson repeats a transfer that has failed after 5 s.
const LATE: Duration = Duration::from_secs(5);
/// Where no client transfers, nothing else is to come.
const LATE_ALONE: Duration = Duration::from_secs(1);
/// A taker of Java leaves no trace, so fewer ready payloads may be on their way to one.
const MANY: u64 = 100;
/// A receiver that lives is active more often.
const SILENT: Duration = Duration::from_secs(60);

/// The state of a queue, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// Entries are due, and nothing moves.
    StandsStill,
    /// As many entries are pending as may be: offers are refused.
    Full,
    /// Payloads are ready, and no client takes them.
    NoClientTakes,
    /// All receivers are held back.
    Paused,
    /// There are dead letters.
    DeadLetters,
    /// The server has not answered a question that this depends on.
    Unknown,
    /// Nothing is wrong.
    Ok,
}

impl State {
    pub(crate) fn of(queue: &Overview) -> Self {
        let late = match queue.transferring_processes {
            Some(0) => LATE_ALONE,
            _ => LATE,
        };
        let has_no_receiver = queue.in_flight == Some(0) && queue.received_ago.is_none_or(|ago| ago > SILENT);
        let known = [queue.pending, queue.overdue, queue.ready, queue.in_flight, queue.dead_letters];
        let is_known = known.iter().all(Option::is_some)
            && queue.is_paused.is_some()
            && (queue.transferring_processes.is_some()
                || queue.overdue_for.is_none_or(|ago| ago < LATE_ALONE))
            && !queue.unknown.iter().any(|unknown| unknown.what == "next_due_in");
        if queue.overdue_for.is_some_and(|for_long| for_long >= late) {
            Self::StandsStill
        } else if is_full(queue) {
            Self::Full
        } else if queue.is_paused == Some(true) {
            Self::Paused
        } else if queue.ready.is_some_and(|ready| ready >= MANY) && has_no_receiver && is_known {
            Self::NoClientTakes
        } else if queue.dead_letters.is_some_and(|dead| dead > 0) {
            Self::DeadLetters
        } else if is_known {
            Self::Ok
        } else {
            Self::Unknown
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::StandsStill => "stands still",
            Self::Full => "full",
            Self::NoClientTakes => "no client takes",
            Self::Paused => "paused",
            Self::DeadLetters => "dead letters",
            Self::Unknown => "unknown",
            Self::Ok => "ok",
        }
    }

    pub(crate) fn style(self) -> Style {
        match self {
            Self::StandsStill | Self::Full => AnsiColor::Red.on_default().bold(),
            Self::NoClientTakes | Self::DeadLetters => AnsiColor::Yellow.on_default(),
            Self::Paused | Self::Unknown => AnsiColor::Cyan.on_default(),
            Self::Ok => AnsiColor::Green.on_default(),
        }
    }

    /// What it means for this queue, and what to do about it.
    pub(crate) fn advice(self, queue: &Overview) -> Option<String> {
        Some(match self {
            Self::StandsStill => {
                let for_long = human::span(queue.overdue_for.unwrap_or_default());
                let overdue = match queue.overdue {
                    Some(overdue) => human::counted(overdue, "entry has", "entries have"),
                    None => "entries have".into(),
                };
                let who = match queue.transferring_processes {
                    Some(0) => "no process transfers: start a service that holds the delayed queue",
                    Some(1) => {
                        "the process that is subscribed does not move them: it may have lost a wake-up"
                    }
                    Some(_) => {
                        "the processes that are subscribed do not move them: they may have lost a wake-up"
                    }
                    None => "who transfers is unknown",
                };
                format!("{overdue} been due for up to {for_long}, and {who}")
            }
            Self::Full => {
                let pending = queue.pending.unwrap_or_default();
                let pending = human::counted(pending, "entry is", "entries are");
                let most = human::count(queue.max_pending.unwrap_or_default());
                format!(
                    "{pending} pending, and at most {most} may be: offers and runs of schedules are refused. Wait until entries become due, cancel some, or raise the limit: DelayedQueue::set_max_pending"
                )
            }
            Self::NoClientTakes => {
                format!("{} ready, and no receiver is active: start a consumer", ready(queue))
            }
            Self::Paused => {
                "no receiver gets a message until the queue is resumed: BlockingQueue::resume".into()
            }
            Self::DeadLetters => {
                let name = escape::argument(&queue.name);
                format!("handlers have given messages up: redelay list {name} dead says why")
            }
            Self::Unknown if is_unanswered(queue) => "its server gives no answer".into(),
            Self::Unknown => "the server has not answered a question".into(),
            Self::Ok => return None,
        })
    }
}

/// Whether as many entries are pending as may be. A limit of 0, which no client sets, is none.
pub(crate) fn is_full(queue: &Overview) -> bool {
    queue.max_pending.is_some_and(|most| most > 0 && queue.pending >= Some(most))
}

fn ready(queue: &Overview) -> String {
    human::counted(queue.ready.unwrap_or_default(), "payload is", "payloads are")
}

/// Whether the server of a queue does not answer, and others of its cluster do.
pub(crate) fn is_unanswered(queue: &Overview) -> bool {
    queue.unknown.iter().any(is_silence)
}

/// Whether a server has not answered at all.
pub(crate) fn is_silence(unknown: &Unknown) -> bool {
    unknown.what == "server"
}

/// Whether the server has nothing of a queue of this name, as far as it says.
pub(crate) fn is_absent(queue: &Overview) -> bool {
    is_unused(queue) && queue.receivers == Some(0)
}

/// The same of what may have receipts of receivers that are gone.
pub(crate) fn is_unused(queue: &Overview) -> bool {
    let counts = [
        queue.pending,
        queue.list_len,
        queue.ready,
        queue.in_flight,
        queue.waiting,
        queue.dead_letters,
        queue.quarantined,
        queue.unconfirmed_pops,
        queue.schedules,
        queue.transferring_processes,
    ];
    counts.iter().all(|count| *count == Some(0))
        && queue.is_paused == Some(false)
        && queue.max_in_flight.is_none()
        && queue.max_pending.is_none()
        && queue.rate_limit.is_none()
}

/// A queue of which everything is known, and nothing is there but for this change.
#[cfg(test)]
pub(crate) fn known(change: impl FnOnce(&mut Overview)) -> Overview {
    let mut queue = Overview::default();
    for count in [
        &mut queue.pending,
        &mut queue.list_len,
        &mut queue.overdue,
        &mut queue.ready,
        &mut queue.in_flight,
        &mut queue.waiting,
        &mut queue.dead_letters,
        &mut queue.quarantined,
        &mut queue.unconfirmed_pops,
        &mut queue.schedules,
        &mut queue.receivers,
        &mut queue.transferring_processes,
    ] {
        *count = Some(0);
    }
    queue.is_paused = Some(false);
    change(&mut queue);
    queue
}

#[cfg(test)]
mod tests {
    use super::known as queue;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_queue_has_the_worst_state_that_it_is_in() {
        let overdue = |for_long: Duration, processes| {
            queue(|queue| {
                queue.overdue = Some(3);
                queue.overdue_for = Some(for_long);
                queue.transferring_processes = processes;
                queue.dead_letters = Some(1);
            })
        };
        assert_eq!(State::of(&overdue(SECOND, Some(0))), State::StandsStill);
        assert_eq!(State::of(&overdue(SECOND, Some(1))), State::DeadLetters);
        assert_eq!(State::of(&overdue(5 * SECOND, Some(1))), State::StandsStill);
        assert_eq!(State::of(&overdue(5 * SECOND, None)), State::StandsStill);
        let ready = |count, change: fn(&mut Overview)| {
            queue(|queue| {
                queue.ready = Some(count);
                change(queue);
            })
        };
        assert_eq!(State::of(&ready(2_204, |_| ())), State::NoClientTakes);
        assert_eq!(State::of(&ready(2_204, |queue| queue.received_ago = Some(9 * SECOND))), State::Ok);
        assert_eq!(State::of(&ready(2_204, |queue| queue.in_flight = Some(1))), State::Ok);
        assert_eq!(State::of(&ready(2_204, |queue| queue.is_paused = Some(true))), State::Paused);
        assert_eq!(State::of(&ready(3, |_| ())), State::Ok, "they may be on their way");
    }

    #[test]
    fn a_queue_with_as_many_entries_as_it_may_have_is_full() {
        let limited = |pending, most| {
            queue(|queue| {
                queue.pending = pending;
                queue.max_pending = most;
                queue.is_paused = Some(true);
            })
        };
        assert_eq!(State::of(&limited(Some(4), Some(5))), State::Paused);
        assert_eq!(State::of(&limited(None, Some(5))), State::Paused);
        assert_eq!(State::of(&limited(Some(7), None)), State::Paused);
        assert_eq!(State::of(&limited(Some(7), Some(0))), State::Paused, "it limits nothing");
        let mut full = limited(Some(5), Some(5));
        assert_eq!(State::of(&full), State::Full);
        let text = State::Full.advice(&full).unwrap();
        assert!(text.starts_with("5 entries are pending, and at most 5 may be: "), "{text}");
        assert!(!text.contains("consumer"), "{text}: they make no room");
        full.overdue_for = Some(5 * SECOND);
        assert_eq!(State::of(&full), State::StandsStill, "that is why it is full");
    }

    #[test]
    fn what_is_unknown_is_not_ok() {
        for change in [
            |queue: &mut Overview| queue.pending = None,
            |queue: &mut Overview| queue.overdue = None,
            |queue: &mut Overview| queue.ready = None,
            |queue: &mut Overview| queue.dead_letters = None,
            |queue: &mut Overview| queue.is_paused = None,
            |queue: &mut Overview| {
                queue.transferring_processes = None;
                queue.overdue_for = Some(2 * SECOND);
            },
        ] {
            let queue = queue(change);
            assert_eq!(State::of(&queue), State::Unknown, "{queue:?}");
            assert!(State::of(&queue).advice(&queue).is_some());
        }
    }

    #[test]
    fn a_queue_without_anything_is_absent() {
        assert!(is_absent(&queue(|_| ())));
        assert!(!is_absent(&queue(|queue| queue.transferring_processes = Some(1))));
        assert!(!is_absent(&queue(|queue| queue.pending = None)), "it may be there");
        assert!(!is_absent(&queue(|queue| queue.max_in_flight = Some(7))));
        assert!(!is_absent(&queue(|queue| queue.max_pending = Some(7))));
    }

    #[test]
    fn what_stands_still_is_explained() {
        let mut queue = queue(|queue| {
            queue.overdue = Some(37);
            queue.overdue_for = Some(252 * SECOND);
            queue.transferring_processes = Some(1);
        });
        let text = State::of(&queue).advice(&queue).unwrap();
        assert!(text.starts_with("37 entries have been due for up to 4 m 12 s, and the process"), "{text}");
        queue.transferring_processes = Some(0);
        let text = State::of(&queue).advice(&queue).unwrap();
        assert!(text.contains("no process transfers"), "{text}");
    }
}
