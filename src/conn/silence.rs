//! How long a connection has been silent, and how long it may be before it is given up. Reads no clock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A connection that has been silent for this long, with nothing to say, is tested, also before it is used.
pub(super) const IDLE: Duration = Duration::from_secs(30);
/// How slow a link may be, in bytes a second: a long command is on its way for so long.
const SLOWEST: u64 = 500;
/// How much longer than otherwise a connection may be silent while a long command is on its way. Nobody sees the bytes move: if
/// there was no reply by then, the connection is given up, and the next one has twice as long.
const LONGER: Duration = Duration::from_secs(8);
/// How often it may be doubled.
const DOUBLED: u32 = 5;

/// All times are in µs since the link was opened.
#[derive(Debug, Default)]
pub(super) struct Silence {
    last_reply: AtomicU64,
    /// Until when long commands may be on their way; 0 if there are none.
    long_until: AtomicU64,
    /// How many long commands in a row have had no reply.
    long_failures: AtomicU32,
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

    pub(super) fn replied(&self, now: u64) {
        self.last_reply.fetch_max(now, Relaxed);
    }

    /// A command of this many bytes is sent. Returns until when it may be on its way, behind those before it.
    pub(super) fn begin_long(&self, now: u64, bytes: usize) -> u64 {
        let transit = (bytes as u64).saturating_mul(1_000_000) / SLOWEST;
        let until = |before: u64| before.max(now).saturating_add(transit);
        let before = self.long_until.fetch_update(Relaxed, Relaxed, |before| Some(until(before)));
        until(before.unwrap_or_else(|before| before))
    }

    /// The command that may have been on its way until then was answered, or its connection is lost.
    pub(super) fn end_long(&self, until: u64, is_answered: bool) {
        if is_answered {
            self.long_failures.store(0, Relaxed);
        } else {
            self.long_failures.fetch_add(1, Relaxed);
        }
        // Unless another one has begun since: replies come in the order of the commands.
        let _ = self.long_until.compare_exchange(until, 0, Relaxed, Relaxed);
    }

    /// A command that was sent at `sent` has no reply. A silence of `patience` is too long, unless long commands are on
    /// their way.
    pub(super) fn judge(&self, now: u64, sent: u64, patience: Duration) -> Verdict {
        let micros = |time: Duration| time.as_micros() as u64;
        let since = sent.max(self.last_reply());
        let over = since.saturating_add(micros(patience));
        let longer = LONGER * (1 << self.long_failures.load(Relaxed).min(DOUBLED));
        let over = over.max(self.long_until.load(Relaxed).min(over.saturating_add(micros(longer))));
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
        silence.replied(seconds(3));
        assert_eq!(judge(5, 0), Verdict::LookAt(seconds(8)));
        assert_eq!(judge(5, 4), Verdict::LookAt(seconds(9)));
        assert_eq!(judge(9, 4), Verdict::Over);
    }

    #[test]
    fn a_long_command_buys_some_patience_and_more_after_each_failure() {
        let silence = Silence::default();
        let judge = |now| silence.judge(seconds(now), 0, PATIENCE);
        // Two, one behind the other.
        silence.begin_long(0, 1_000);
        assert_eq!(judge(4), Verdict::LookAt(seconds(5)), "it has arrived by then");
        let until = silence.begin_long(0, 20_000);
        assert_eq!(until, seconds(42));
        assert_eq!(judge(5), Verdict::LookAt(seconds(13)));
        assert_eq!(judge(13), Verdict::Over);
        silence.replied(seconds(2));
        assert_eq!(judge(13), Verdict::LookAt(seconds(15)));
        silence.end_long(until, false);
        assert_eq!(judge(13), Verdict::Over);

        let until = silence.begin_long(seconds(20), 20_000);
        let judge = |now| silence.judge(seconds(now), seconds(20), PATIENCE);
        assert_eq!(judge(25), Verdict::LookAt(seconds(20 + 5 + 16)));
        silence.end_long(until, true);
        assert_eq!(judge(25), Verdict::Over);
        silence.begin_long(seconds(20), 20_000);
        assert_eq!(judge(25), Verdict::LookAt(seconds(33)));
    }

    #[test]
    fn no_number_is_too_large() {
        let silence = Silence::default();
        for _ in 0..100 {
            silence.end_long(0, false);
        }
        silence.begin_long(u64::MAX, usize::MAX);
        silence.replied(u64::MAX);
        assert_eq!(silence.judge(0, u64::MAX, Duration::MAX), Verdict::LookAt(u64::MAX));
    }
}
