//! How long a connection has been silent, and how long it may be before it is given up. Reads no clock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A connection that has been silent for this long, with nothing to say, is tested, also before it is used.
pub(super) const IDLE: Duration = Duration::from_secs(30);
/// The slowest link, in bytes a second: it says how long a long command may be on its way.
const SLOWEST: u64 = 500;
/// How much longer than otherwise a connection may be silent while a long command, or a long reply, is on its
/// way. The bytes that move are not seen: if there was no reply by then, the connection is given up, and the
/// next one has twice as long.
pub(super) const LONGER: Duration = Duration::from_secs(8);

/// All times are in µs since the link was opened.
#[derive(Debug, Default)]
pub(super) struct Silence {
    last_reply: AtomicU64,
    /// When the first command was sent that may have no reply, other than a test.
    awaited_since: AtomicU64,
    /// Until when long commands may be on their way; 0 if there are none.
    long_until: AtomicU64,
    /// When the first of them was sent, and the last.
    long_since: AtomicU64,
    long_last: AtomicU64,
    /// The last connection was given up while a long command was on its way.
    is_slow: AtomicBool,
}

/// What is known of a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The connection is to be given up.
    Over,
    /// Look again at this time.
    LookAt(u64),
}

impl Silence {
    pub(super) fn last_reply(&self) -> u64 {
        self.last_reply.load(Relaxed)
    }

    /// A command is sent that is no test of the connection.
    pub(super) fn sends(&self, now: u64) {
        if self.awaited_since.load(Relaxed) <= self.last_reply() {
            self.awaited_since.store(now, Relaxed);
        }
    }

    /// Whether the reply to a command is awaited, and has been for less than `patience`. A connection is not
    /// idle then: whoever waits for the reply decides whether to give it up.
    pub(super) fn is_awaited(&self, now: u64, patience: Duration) -> bool {
        let since = self.awaited_since.load(Relaxed);
        since > self.last_reply() && now < since.saturating_add(patience.as_micros() as u64)
    }

    /// The reply to a command that was sent at `sent`. Replies come in the order of the commands: what was
    /// sent before has arrived.
    pub(super) fn replied(&self, now: u64, sent: u64) {
        self.last_reply.fetch_max(now, Relaxed);
        if self.long_until.load(Relaxed) > 0 && sent >= self.long_last.load(Relaxed) {
            self.long_until.store(0, Relaxed);
            self.is_slow.store(false, Relaxed);
        }
    }

    /// A command of this many bytes is sent, behind those that are on their way.
    pub(super) fn begin_long(&self, now: u64, bytes: usize) {
        let transit = (bytes as u64).saturating_mul(1_000_000) / SLOWEST;
        self.long_last.fetch_max(now, Relaxed);
        let until = |before: u64| Some(before.max(now).saturating_add(transit));
        if self.long_until.fetch_update(Relaxed, Relaxed, until) == Ok(0) {
            self.long_since.store(now, Relaxed);
        }
    }

    /// The connection is lost, and what was on its way.
    pub(super) fn lost(&self) {
        self.awaited_since.store(0, Relaxed);
        if self.long_until.swap(0, Relaxed) > 0 {
            self.is_slow.store(true, Relaxed);
        }
    }

    /// Until when the connection may be silent because long commands are on their way. The callers behind
    /// them do not wait longer than the first.
    fn long_over(&self, patience: Duration) -> u64 {
        let longer = if self.is_slow.load(Relaxed) { 2 * LONGER } else { LONGER };
        let since = self.long_since.load(Relaxed).max(self.last_reply());
        let most = patience.saturating_add(longer).as_micros() as u64;
        self.long_until.load(Relaxed).min(since.saturating_add(most))
    }

    /// Whether a long command may be on its way. A connection is not idle then.
    pub(super) fn is_long(&self, now: u64, patience: Duration) -> bool {
        now < self.long_over(patience)
    }

    /// A command that was sent at `sent` has no reply. A silence of `patience` is too long, unless long
    /// commands are on their way.
    pub(super) fn judge(&self, now: u64, sent: u64, patience: Duration) -> Verdict {
        let since = sent.max(self.last_reply());
        let over = since.saturating_add(patience.as_micros() as u64).max(self.long_over(patience));
        if now >= over { Verdict::Over } else { Verdict::LookAt(over) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn seconds(seconds: u64) -> u64 {
        seconds * 1_000_000
    }

    #[test]
    fn a_silence_counts_from_the_last_reply() {
        let silence = Silence::default();
        let judge = |now, sent| silence.judge(seconds(now), seconds(sent), PATIENCE);
        assert_eq!(judge(4, 0), Verdict::LookAt(seconds(5)));
        assert_eq!(judge(5, 0), Verdict::Over);
        silence.replied(seconds(3), 0);
        assert_eq!(judge(5, 0), Verdict::LookAt(seconds(8)));
        assert_eq!(judge(5, 4), Verdict::LookAt(seconds(9)));
        assert_eq!(judge(9, 4), Verdict::Over);
    }

    #[test]
    fn a_reply_is_awaited_for_as_long_as_the_first_command_may_take() {
        let silence = Silence::default();
        let is_awaited = |now| silence.is_awaited(seconds(now), PATIENCE);
        assert!(!is_awaited(1));
        silence.sends(seconds(1));
        silence.sends(seconds(4));
        assert!(is_awaited(5) && !is_awaited(6), "however many follow");
        silence.replied(seconds(7), seconds(1));
        assert!(!is_awaited(7));
        silence.sends(seconds(8));
        assert!(is_awaited(9));
        silence.lost();
        assert!(!is_awaited(9));
    }

    #[test]
    fn a_long_command_buys_some_patience_and_more_after_a_failure() {
        let silence = Silence::default();
        let judge = |now, sent| silence.judge(seconds(now), seconds(sent), PATIENCE);
        // Two, one behind the other.
        silence.begin_long(0, 1_000);
        assert_eq!(judge(4, 0), Verdict::LookAt(seconds(5)), "it has arrived by then");
        silence.begin_long(seconds(1), 20_000);
        assert_eq!(judge(5, 0), Verdict::LookAt(seconds(13)));
        assert_eq!(judge(13, 0), Verdict::Over);
        // A caller behind them does not wait longer than they do.
        assert_eq!(judge(12, 7), Verdict::LookAt(seconds(13)));
        assert_eq!(judge(13, 9), Verdict::LookAt(seconds(14)));
        // A reply to what was sent before them.
        silence.replied(seconds(2), 0);
        assert_eq!(judge(13, 0), Verdict::LookAt(seconds(15)));
        assert!(silence.is_long(seconds(14), PATIENCE) && !silence.is_long(seconds(15), PATIENCE));

        // However often it fails.
        for _ in 0..3 {
            silence.lost();
            silence.lost();
            assert_eq!(judge(13, 0), Verdict::Over);
            silence.begin_long(seconds(20), 20_000);
            silence.begin_long(seconds(20), 20_000);
            assert_eq!(judge(25, 20), Verdict::LookAt(seconds(20 + 5 + 16)));
        }
        // A command that was sent behind them has its reply, so they have theirs.
        silence.replied(seconds(22), seconds(21));
        assert_eq!(judge(27, 21), Verdict::Over);
        silence.begin_long(seconds(30), 20_000);
        assert_eq!(judge(35, 30), Verdict::LookAt(seconds(43)));
    }

    #[test]
    fn no_number_is_too_large() {
        let silence = Silence::default();
        silence.begin_long(u64::MAX, usize::MAX);
        silence.replied(u64::MAX, 0);
        assert_eq!(silence.judge(0, u64::MAX, Duration::MAX), Verdict::LookAt(u64::MAX));
        silence.lost();
        silence.begin_long(0, usize::MAX);
        assert_eq!(silence.judge(0, 0, Duration::MAX), Verdict::LookAt(u64::MAX));
    }
}
