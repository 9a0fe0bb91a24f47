//! How many messages a call claims, so that its reply arrives while somebody waits for it. Reads no clock.

use std::time::Duration;

/// The most messages that one call claims.
pub(super) const MOST: usize = 1000;
/// A reply that took no longer than this part of the command timeout may have twice as many messages the next
/// time.
const SOON: u32 = 4;

/// What is known of the link. Nobody sees the bytes of a reply move: a reply that takes longer than the
/// command timeout is lost, and so would be the next one of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClaimSize {
    most: usize,
}

impl ClaimSize {
    pub(super) fn new() -> Self {
        Self { most: MOST }
    }

    /// The most messages that the next call is to claim.
    pub(super) fn most(self) -> usize {
        self.most
    }

    /// Whether a reply was lost lately, perhaps because it was too long.
    pub(super) fn is_slow(self) -> bool {
        self.most < MOST
    }

    /// A call was answered, with these messages: at once, within `round_trip`; or only when it was repeated.
    pub(super) fn answered(
        &mut self,
        messages: usize,
        round_trip: Option<Duration>,
        command_timeout: Duration,
    ) {
        match round_trip {
            // It says nothing of replies with messages.
            _ if messages == 0 => {}
            None => self.most = messages.min(MOST),
            Some(time) if time.saturating_mul(SOON) <= command_timeout => {
                self.most = (2 * self.most).min(MOST)
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[test]
    fn a_call_claims_what_arrives_and_doubles_it_while_that_arrives_soon() {
        let soon = Some(Duration::from_millis(1250));
        let late = Some(Duration::from_millis(1251));
        let mut size = ClaimSize::new();
        let mut answered = |messages, round_trip| {
            size.answered(messages, round_trip, TIMEOUT);
            size.most()
        };
        assert_eq!(answered(MOST, soon), MOST);
        assert_eq!(answered(64, late), MOST, "it has arrived all the same");
        assert_eq!(answered(0, None), MOST, "it says nothing of replies with messages");
        assert_eq!(answered(6, None), 6);
        assert_eq!(answered(0, soon), 6);
        assert_eq!(answered(6, soon), 12);
        assert_eq!(answered(12, late), 12);
        assert_eq!(answered(3, None), 3);
        assert_eq!(answered(1, soon), 6, "there were no more");
        for most in [12, 24, 48, 96, 192, 384, 768, MOST, MOST] {
            assert_eq!(answered(1, soon), most);
        }
        assert_eq!(answered(2 * MOST, None), MOST);
    }

    #[test]
    fn the_link_is_slow_until_a_usual_call_may_be_made() {
        let mut size = ClaimSize::new();
        assert!(!size.is_slow());
        size.answered(MOST / 2, None, TIMEOUT);
        assert!(size.is_slow());
        size.answered(1, Some(Duration::MAX), Duration::MAX);
        assert!(!size.is_slow());
    }
}
