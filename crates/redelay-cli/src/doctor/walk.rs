//! What is found by reading the entries of a queue. Pure.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use redelay::delayed_queue::EntryFormat;

/// The most entries of a queue that are read, and about how many bytes.
pub(crate) const ENTRIES: usize = 10_000;
pub(crate) const BYTES: usize = 16 << 20;
/// An entry that is longer should not be in a queue.
const LONG: usize = 1 << 20;
/// From here on, a score is no time.
const BEYOND: f64 = 1e15;

/// The entries of a queue: of the timeout set, and of the ordered list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// Whether both were read to their ends.
    pub(crate) is_complete: bool,
    /// Whether one of them is longer than what is read.
    pub(crate) is_cut: bool,
    /// How many of the timeout set were read.
    pub(crate) read: usize,
    pub(crate) current: usize,
    pub(crate) legacy: usize,
    pub(crate) malformed: usize,
    /// Those with bytes behind the payload.
    pub(crate) trailing: usize,
    pub(crate) fractions: usize,
    pub(crate) long: usize,
    /// The length of the longest.
    pub(crate) longest: usize,
    /// Which are in the list, and not in the set.
    pub(crate) without_score: BTreeSet<u64>,
    /// Which are in the list again.
    pub(crate) twice: BTreeSet<u64>,
    in_set: HashSet<u64>,
    in_list: HashSet<u64>,
    /// Of the key that is read.
    count: usize,
    bytes: usize,
}

/// What stands for an entry. Its payload must not be kept.
pub(crate) fn hash_of(parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

impl Walk {
    /// Whether no more are to be read.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= ENTRIES || self.bytes >= BYTES
    }

    /// Begins with the other key, or ends. `has_all` says whether this one was read to its end.
    pub(crate) fn turn(&mut self, has_all: bool) {
        self.is_cut |= self.is_full() && !has_all;
        (self.count, self.bytes) = (0, 0);
    }

    /// An entry of the timeout set.
    pub(crate) fn add_pending(&mut self, score: &str, entry: &[u8]) {
        self.read += 1;
        self.count += 1;
        self.bytes += entry.len();
        self.in_set.insert(hash_of(&[entry]));
        self.longest = self.longest.max(entry.len());
        self.long += usize::from(entry.len() > LONG);
        let due = score.parse::<f64>().unwrap_or(f64::NAN);
        self.fractions += usize::from((0.0..BEYOND).contains(&due) && due.fract() > 0.0);
        let length = match EntryFormat::unpack(entry) {
            None => {
                self.malformed += 1;
                return;
            }
            Some((EntryFormat::Legacy, id, payload)) => {
                self.legacy += 1;
                id.len() + 8 + payload.len()
            }
            Some((_, id, payload)) => {
                self.current += 1;
                1 + id.len() + 8 + payload.len()
            }
        };
        self.trailing += usize::from(length < entry.len());
    }

    /// An entry of the ordered list.
    pub(crate) fn add_listed(&mut self, entry: &[u8], is_in_set: bool) {
        self.count += 1;
        self.bytes += entry.len();
        let hash = hash_of(&[entry]);
        if !self.in_list.insert(hash) {
            self.twice.insert(hash);
        } else if !is_in_set {
            self.without_score.insert(hash);
        }
    }

    /// Which are in the set only, if both were read to their ends.
    pub(crate) fn unlisted(&self) -> BTreeSet<u64> {
        match self.is_complete {
            true => self.in_set.difference(&self.in_list).copied().collect(),
            false => BTreeSet::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &[u8] = b"\x01a\x05\0\0\0\0\0\0\0hello";

    #[test]
    fn entries_are_told_apart() {
        let mut walk = Walk::default();
        walk.add_pending("1795615390307", HELLO);
        walk.add_pending("1795615390307.5", b"\x81\xed\x4b\xdc\x43\x9a\xc0\xc3\x05\0\0\0\0\0\0\0hello");
        walk.add_pending("inf", b"\x01a\x05\0\0\0\0\0\0\0hello\0\0");
        walk.add_pending("-0.5", b"junk");
        assert_eq!((walk.read, walk.current, walk.legacy, walk.malformed), (4, 2, 1, 1));
        assert_eq!((walk.trailing, walk.fractions, walk.long, walk.longest), (1, 1, 0, 21));
    }

    #[test]
    fn the_list_is_compared_with_the_set() {
        let mut walk = Walk::default();
        for entry in [HELLO, b"both", b"set only"] {
            walk.add_pending("7", entry);
        }
        walk.turn(true);
        for (entry, is_in_set) in [(HELLO, true), (b"both", true), (b"list only", false), (HELLO, true)] {
            walk.add_listed(entry, is_in_set);
        }
        assert_eq!(walk.unlisted(), BTreeSet::new(), "the rest may be behind what was read");
        walk.is_complete = true;
        assert_eq!(walk.unlisted(), BTreeSet::from([hash_of(&[b"set only"])]));
        assert_eq!(walk.without_score, BTreeSet::from([hash_of(&[b"list only"])]));
        assert_eq!(walk.twice, BTreeSet::from([hash_of(&[HELLO])]));
    }

    #[test]
    fn a_walk_ends() {
        let mut walk = Walk::default();
        for n in 0..ENTRIES {
            assert!(!walk.is_full());
            walk.add_pending("7", &n.to_be_bytes());
        }
        assert!(walk.is_full());
        let mut walk = Walk::default();
        walk.add_listed(&vec![0; BYTES], true);
        assert!(walk.is_full());
        walk.turn(true);
        assert!(!walk.is_full() && !walk.is_cut, "there is no more");
        walk.add_pending("7", &vec![0; BYTES]);
        walk.turn(false);
        assert!(walk.is_cut);
    }
}
