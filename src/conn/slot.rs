//! The slot of a key: a cluster divides its keys into 16,384 of them.

/// The last slot. The first one is 0.
pub(super) const LAST: u16 = 16_383;

/// The slot of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u16);

impl Slot {
    /// Any slot, where one server serves all of them.
    pub(super) const ANY: Self = Self(0);

    pub(crate) fn of(key: &[u8]) -> Self {
        Self(crc16(hashed(key)) & LAST)
    }

    pub(super) fn numbered(number: u16) -> Option<Self> {
        (number <= LAST).then_some(Self(number))
    }

    pub(crate) fn number(self) -> u16 {
        self.0
    }
}

/// The part of a key that decides about its slot: what is in its first braces, if that is anything.
fn hashed(key: &[u8]) -> &[u8] {
    let inside = || {
        let rest = &key[key.iter().position(|byte| *byte == b'{')? + 1..];
        rest.iter().position(|byte| *byte == b'}').filter(|end| *end > 0).map(|end| &rest[..end])
    };
    inside().unwrap_or(key)
}

/// XMODEM's checksum, as the specification of Redis Cluster has it.
fn crc16(bytes: &[u8]) -> u16 {
    const TABLE: [u16; 256] = {
        let mut table = [0; 256];
        let mut i = 0;
        while i < 256 {
            let (mut sum, mut bit) = ((i as u16) << 8, 0);
            while bit < 8 {
                sum = if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 };
                bit += 1;
            }
            table[i] = sum;
            i += 1;
        }
        table
    };
    bytes.iter().fold(0, |sum, byte| (sum << 8) ^ TABLE[usize::from((sum >> 8) as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        let slot = |key: &str| Slot::of(key.as_bytes()).number();
        for (key, expected) in
            [("", 0), ("foo", 12_182), ("123456789", 0x31c3), ("{user1000}.following", 3_443)]
        {
            assert_eq!(slot(key), expected, "{key}");
        }
        for (key, same) in
            [("{user1000}.followers", "user1000"), ("foo{bar}{zap}", "bar"), ("foo{{bar}}zap", "{bar")]
        {
            assert_eq!(slot(key), slot(same), "{key}");
        }
    }

    #[test]
    fn slots_are_those_of_the_client_library() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let key: Vec<u8> =
                (0..random.usize(..20)).map(|_| *random.choice(b"{}ab\0\xff").unwrap()).collect();
            let key = [&key[..], &random.u64(..).to_le_bytes()[..random.usize(..8)]].concat();
            assert_eq!(Slot::of(&key).number(), fred::util::redis_keyslot(&key), "{key:?}");
        }
    }
}
