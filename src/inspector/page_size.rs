//! How many entries the next command reads: their lengths are known only when they have been read. Pure.

/// The most entries, and about how many bytes, that one command reads.
const ENTRIES: usize = 1_000;
const BYTES: usize = 1_048_576;
/// The first command reads as many. Each reads this many times as many as the one before, at most.
const FIRST: usize = 16;
const GROWTH: usize = 4;

/// How many entries to read next.
#[derive(Debug)]
pub(super) struct PageSize {
    count: usize,
    longest: usize,
}

impl PageSize {
    pub(super) fn new() -> Self {
        Self { count: FIRST, longest: 1 }
    }

    /// How many of these to read: one at least.
    pub(super) fn of(&self, most: usize) -> usize {
        self.count.min(most).max(1)
    }

    /// Learns from what was read.
    pub(super) fn has_read<'a>(&mut self, entries: impl IntoIterator<Item = &'a [u8]>) {
        self.longest = entries.into_iter().map(<[u8]>::len).fold(self.longest, usize::max);
        self.count = (self.count * GROWTH).min(BYTES / self.longest).clamp(1, ENTRIES);
    }

    /// How many of the first of these fit into one command, by their lengths: one at least.
    pub(super) fn fitting(lengths: &[usize]) -> usize {
        let mut bytes = 0_usize;
        let fitting = lengths.iter().take_while(|length| {
            bytes = bytes.saturating_add(**length);
            bytes <= BYTES
        });
        fitting.count().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_grow_while_entries_are_short() {
        let mut size = PageSize::new();
        let mut read = |length: usize| {
            size.has_read([&vec![0; length][..]]);
            size.of(usize::MAX)
        };
        assert_eq!([read(100), read(100), read(100), read(100)], [64, 256, 1_000, 1_000]);
        assert_eq!([read(10_000), read(100), read(3 << 20)], [104, 104, 1]);
        assert_eq!(PageSize::new().of(5), 5);
        assert_eq!(PageSize::new().of(0), 1);
    }

    #[test]
    fn what_is_known_to_be_long_is_read_alone() {
        assert_eq!(PageSize::fitting(&[10, 20, 30]), 3);
        assert_eq!(PageSize::fitting(&[BYTES, 1]), 1);
        assert_eq!(PageSize::fitting(&[2 * BYTES, 1]), 1);
        assert_eq!(PageSize::fitting(&[1, BYTES, 1]), 1);
        assert_eq!(PageSize::fitting(&[]), 1);
    }
}
