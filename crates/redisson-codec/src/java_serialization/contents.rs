//! [`Contents`]: what a class writes itself, in the order in which it does.

use super::stream::Item;

/// What is still to be read of it.
pub(super) struct Contents<'a> {
    items: &'a [Item],
    payload: &'a [u8],
    /// Bytes in front of the items.
    bytes: &'a [u8],
}

impl<'a> Contents<'a> {
    pub(super) fn new(items: &'a [Item], payload: &'a [u8]) -> Self {
        Self { items, payload, bytes: &[] }
    }

    /// Reads this number of bytes, which may be in several pieces.
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut array = [0; N];
        for to in &mut array {
            while self.bytes.is_empty() {
                let (Item::Data(data), rest) = self.items.split_first()? else { return None };
                (self.bytes, self.items) = (data.of(self.payload), rest);
            }
            let (byte, rest) = self.bytes.split_first()?;
            (*to, self.bytes) = (*byte, rest);
        }
        Some(array)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn int(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A text behind its length, in Java's form of UTF-8.
    pub(super) fn text(&mut self) -> Option<Vec<u8>> {
        let length = self.array().map(u16::from_be_bytes)?;
        (0..length).map(|_| self.byte()).collect()
    }

    pub(super) fn item(&mut self) -> Option<Item> {
        if !self.bytes.is_empty() {
            return None;
        }
        let (item, rest) = self.items.split_first()?;
        self.items = rest;
        match item {
            Item::Data(_) => None,
            item => Some(*item),
        }
    }

    /// Reads this number of values, with nothing behind them.
    pub(super) fn items(self, count: i32) -> Option<&'a [Item]> {
        let fits = self.bytes.is_empty() && usize::try_from(count) == Ok(self.items.len());
        let data = |item: &Item| matches!(item, Item::Data(_));
        (fits && !self.items.iter().any(data)).then_some(self.items)
    }

    /// The values before a null, with nothing behind it.
    pub(super) fn items_before_null(self) -> Option<&'a [Item]> {
        let (Item::Null, items) = self.items.split_last()? else { return None };
        Contents { items, ..self }.items(i32::try_from(items.len()).ok()?)
    }
}
