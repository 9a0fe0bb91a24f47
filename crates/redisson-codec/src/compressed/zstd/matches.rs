//! [`Matches`]: where a block repeats what is before it in the same block.

use ruzstd::encoding::{CompressionLevel, Matcher, Sequence};

/// As many bytes as a block has at most. Matches are within one block.
pub(super) const BLOCK: usize = 128 << 10;

/// What is shorter is not a match.
const LEAST: usize = 5;

/// The fewest slots.
const FEWEST: usize = 1 << 10;

/// As many bytes as sequences take at least: three tables, the counts, and the numbers. A block whose matches
/// are no longer is stored as it is, and the tables take most of the time of a short one.
const OVERHEAD: usize = 11;

/// More literals than these get a code of their own.
const MAX_STORED: usize = 1 << 10;

/// Finds the same matches as `ruzstd`'s own matcher, which clears 128 KiB for each payload, however short it
/// is.
#[derive(Default)]
pub(super) struct Matches {
    /// How many bytes are still to be compressed.
    pub(super) left: usize,
    block: Vec<u8>,
    /// How many blocks there were.
    blocks: usize,
    /// Of a hash of five bytes, where they were first, and one.
    slots: Vec<u32>,
    found: Vec<Match>,
}

/// The hash of five bytes is made of these, one for each.
static HASHES: [[u32; 256]; LEAST] = hashes();

const fn hashes() -> [[u32; 256]; LEAST] {
    const FACTOR: u64 = 0x00cf_3bcc_dcab;
    let mut hashes = [[0; 256]; LEAST];
    let mut place = 0;
    while place < LEAST {
        let mut byte = 0;
        while byte < 256 {
            hashes[place][byte] = (((byte as u64) << (24 + 8 * place)).wrapping_mul(FACTOR) >> 32) as u32;
            byte += 1;
        }
        place += 1;
    }
    hashes
}

fn hash(bytes: &[u8; LEAST]) -> u32 {
    let each = HASHES.iter().zip(bytes).map(|(hashes, byte)| hashes[usize::from(*byte)]);
    each.fold(0, |hash, next| hash ^ next)
}

/// So many bytes that are the same as some before them.
#[derive(Clone, Copy)]
struct Match {
    first: usize,
    at: usize,
    length: usize,
}

impl Matches {
    /// Whether there are so few matches in a short block that it is stored as it is.
    pub(super) fn are_too_few(&mut self, block: &[u8]) -> bool {
        // Longer ones are made shorter without matches, too, and so are equal bytes.
        if block.len() > MAX_STORED || block.iter().all(|byte| *byte == block[0]) {
            return false;
        }
        self.blocks = 0;
        self.find(block);
        self.found.is_empty()
    }

    /// How many bytes of memory it keeps.
    pub(super) fn memory(&self) -> usize {
        self.block.capacity() + size_of::<u32>() * self.slots.capacity()
    }

    /// Finds the matches in a block, unless they are too few.
    fn find(&mut self, block: &[u8]) {
        // From the third block on, it is the memory of one that was full.
        let least = if self.blocks > 2 { BLOCK } else { FEWEST };
        self.slots.clear();
        self.slots.resize(block.len().next_power_of_two().max(least), 0);
        let shift = u32::BITS - self.slots.len().ilog2();
        let slot = |bytes| (hash(bytes) >> shift) as usize;
        self.found.clear();
        let slots = &mut self.slots;
        // Others of the same hash that came first stay.
        let remember = |slots: &mut [u32], slot: usize, at: usize| {
            if slots[slot] == 0 {
                slots[slot] = at as u32 + 1;
            }
        };
        let mut at = 0;
        while let Some(bytes) = block[at..].first_chunk() {
            let here = slot(bytes);
            let first = slots[here] as usize;
            let length = match first.checked_sub(1) {
                // None goes on into the match itself.
                Some(first) => common(&block[first..at], &block[at..]),
                None => 0,
            };
            if length < LEAST {
                remember(slots, here, at);
                at += 1;
                continue;
            }
            for at in at..=at + length - LEAST {
                if let Some(bytes) = block[at..].first_chunk() {
                    remember(slots, slot(bytes), at);
                }
            }
            self.found.push(Match { first: first - 1, at, length });
            at += length;
        }
        if self.found.iter().map(|found| found.length).sum::<usize>() <= OVERHEAD {
            self.found.clear();
        }
    }
}

/// How many bytes are the same in both.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

impl Matcher for Matches {
    /// One byte more than are left, so that the block that is not full is the last one.
    fn get_next_space(&mut self) -> Vec<u8> {
        let mut space = std::mem::take(&mut self.block);
        space.resize((self.left + 1).min(BLOCK), 0);
        self.left = self.left.saturating_sub(space.len());
        space
    }

    fn get_last_space(&mut self) -> &[u8] {
        &self.block
    }

    fn commit_space(&mut self, space: Vec<u8>) {
        self.block = space;
        self.blocks += 1;
    }

    /// Nothing is looked for in a block of equal bytes, and nothing in another block.
    fn skip_matching(&mut self) {}

    fn start_matching(&mut self, mut found: impl for<'a> FnMut(Sequence<'a>)) {
        let block = std::mem::take(&mut self.block);
        self.find(&block);
        let mut end = 0;
        for &Match { first, at, length } in &self.found {
            let literals = &block[std::mem::replace(&mut end, at + length)..at];
            found(Sequence::Triple { literals, offset: at - first, match_len: length });
        }
        if end < block.len() {
            found(Sequence::Literals { literals: &block[end..] });
        }
        self.block = block;
    }

    fn reset(&mut self, _: CompressionLevel) {
        self.blocks = 0;
    }

    fn window_size(&self) -> u64 {
        BLOCK as u64
    }
}
