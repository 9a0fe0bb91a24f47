//! The pauses of takers whose lists the server refuses: a key of another type, or missing permission. Pure.
//!
//! A refusal usually lasts. A taker in a loop gets the first error at once. Before the next attempt it
//! pauses, as the other takers of the same lists do: 10 ms, doubled with each refusal up to a second.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::kind::Kind;
use crate::pacing::pause_after;
use crate::wire::keys::Keys;

/// A refusal that is this old does not lengthen the next pause.
const MEMORY: Duration = Duration::from_secs(2);

/// What a taker takes from. A taker of several lists, one of them refused, does not delay takers of the
/// others.
pub(super) type Sources = (Kind, Vec<Keys>);

#[derive(Debug, Default)]
pub(super) struct Refusals {
    refused: Mutex<HashMap<Sources, Refused>>,
    /// Whether there are any; then almost every take avoids the lock.
    some: AtomicBool,
}

#[derive(Debug)]
struct Refused {
    /// The number of refusals in a row.
    times: u32,
    /// The end of the pause.
    until: Instant,
}

impl Refusals {
    /// The end of the pause of a new taker, if there is one.
    pub(super) fn pause_until(&self, sources: &Sources, now: Instant) -> Option<Instant> {
        if !self.some.load(Ordering::Relaxed) {
            return None;
        }
        self.refused().get(sources).map(|refused| refused.until).filter(|until| *until > now)
    }

    /// A taker was refused. Takers that are refused together count once.
    pub(super) fn on_refused(&self, sources: &Sources, now: Instant) {
        let mut refused = self.refused();
        refused.retain(|_, refused| now < refused.until + MEMORY);
        let entry = refused.entry(sources.clone()).or_insert(Refused { times: 0, until: now });
        if entry.until <= now {
            entry.until = now + pause_after(entry.times);
            entry.times += 1;
        }
        self.some.store(true, Ordering::Relaxed);
    }

    /// A taker got a payload, or the server found nothing.
    pub(super) fn on_success(&self, sources: &Sources) {
        if self.some.load(Ordering::Relaxed) {
            let mut refused = self.refused();
            refused.remove(sources);
            self.some.store(!refused.is_empty(), Ordering::Relaxed);
        }
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<Sources, Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::End;
    use super::*;

    fn sources(names: &[&str]) -> Sources {
        (Kind::Take(End::Head, None), names.iter().map(Keys::new).collect())
    }

    #[test]
    fn pauses_double_up_to_a_second() {
        let refusals = Refusals::default();
        let sources = sources(&["a"]);
        let mut now = Instant::now();
        for longest in [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000] {
            assert_eq!(refusals.pause_until(&sources, now), None);
            // Those that are refused together count once.
            (0..8).for_each(|_| refusals.on_refused(&sources, now));
            let until = refusals.pause_until(&sources, now).unwrap();
            let longest = Duration::from_millis(longest);
            assert!(until >= now + longest / 2 && until <= now + longest, "{:?}", until - now);
            now = until;
        }
        now += MEMORY;
        refusals.on_refused(&sources, now);
        assert!(refusals.pause_until(&sources, now).unwrap() <= now + Duration::from_millis(10));
    }

    #[test]
    fn only_takers_of_the_same_lists_pause() {
        let refusals = Refusals::default();
        let now = Instant::now();
        refusals.on_refused(&sources(&["a", "b"]), now);
        assert!(refusals.pause_until(&sources(&["a", "b"]), now).is_some());
        for others in [
            sources(&["a"]),
            sources(&["b"]),
            (Kind::Take(End::Tail, None), vec![Keys::new("a"), Keys::new("b")]),
        ] {
            assert_eq!(refusals.pause_until(&others, now), None);
            refusals.on_success(&others);
        }
        refusals.on_success(&sources(&["a", "b"]));
        assert_eq!(refusals.pause_until(&sources(&["a", "b"]), now), None);
        assert!(!refusals.some.load(Ordering::Relaxed));
    }

    #[test]
    fn old_refusals_are_forgotten() {
        let refusals = Refusals::default();
        let now = Instant::now();
        for n in 0..100 {
            refusals.on_refused(&sources(&[&n.to_string()]), now + Duration::from_secs(3) * n);
        }
        assert!(refusals.refused().len() <= 2);
    }
}
