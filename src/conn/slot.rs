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
        Self(fred::util::redis_keyslot(key))
    }

    pub(super) fn numbered(number: u16) -> Option<Self> {
        (number <= LAST).then_some(Self(number))
    }

    pub(crate) fn number(self) -> u16 {
        self.0
    }
}
