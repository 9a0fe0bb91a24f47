//! New ids: UUIDs of version 7, which are unique and in the order of time.

use std::hash::{BuildHasher, RandomState};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

/// The bits of a UUID besides its time, version and variant: a counter of 42 bits, and 32 bits of the
/// process.
const BITS: u32 = 74;
const STEP: u128 = 1 << 32;

/// The last id of this process.
struct Last {
    millis: u64,
    rest: u128,
}

static LAST: LazyLock<Mutex<Last>> = LazyLock::new(|| {
    // The keys of a `RandomState` are random numbers of the system. Processes that begin apart stay apart.
    let random = RandomState::new();
    let rest = u128::from(random.hash_one(0)) << 64 | u128::from(random.hash_one(1));
    Mutex::new(Last { millis: 0, rest: rest % (1 << BITS) })
});

impl Last {
    /// The first 12 bytes go up with each id of a process, also if the clock was set back: scripts compare
    /// them.
    fn next(&mut self, now: u64) -> [u8; 16] {
        self.rest += STEP;
        let is_over = self.rest >> BITS != 0;
        self.rest %= 1 << BITS;
        self.millis = now.max(self.millis + u64::from(is_over));
        let (high, low) = (self.rest >> 62, self.rest & ((1 << 62) - 1));
        let id = (u128::from(self.millis) << 80) | (7 << 76) | (high << 64) | (2 << 62) | low;
        id.to_be_bytes()
    }
}

pub(crate) fn new() -> [u8; 16] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or_default();
    LAST.lock().unwrap_or_else(PoisonError::into_inner).next(now)
}

/// A new id as 32 hexadecimal digits.
pub(crate) fn text() -> Bytes {
    let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
    new().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_go_up_whatever_the_clock_does() {
        for rest in [0, (1 << BITS) - 1, (1 << BITS) - STEP, 1 << 62] {
            let mut last = Last { millis: 1_000, rest };
            let mut before = [0; 16];
            for now in [1_000, 1_000, 1_001, 999, 0, 1_001, 5_000, 5_000] {
                let id = last.next(now);
                assert!(id[..12] > before[..12], "{before:?} {id:?}");
                assert_eq!(id[6] >> 4, 7, "the version");
                assert_eq!(id[8] >> 6, 0b10, "the variant");
                before = id;
            }
            // A counter that is over takes a millisecond of the next.
            assert!((5_000..=5_001).contains(&(u128::from_be_bytes(before) >> 80)));
        }
    }

    #[test]
    fn threads_get_different_ids() {
        let draw = || (0..10_000).map(|_| new()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(draw)).collect();
        let ids: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(ids.iter().all(|ids| ids.is_sorted_by(|a, b| a < b)));
        let all: std::collections::HashSet<_> = ids.into_iter().flatten().collect();
        assert_eq!(all.len(), 80_000);
    }
}
