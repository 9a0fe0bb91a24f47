//! Reading a list in pages, while others change it.
//!
//! An element of a list has no other place than that between its neighbours. What is taken in front of it
//! moves it towards the head, and what is put behind it moves it nowhere. So it is looked for where it was
//! read, and up to `BACK` elements in front of that. If it is not there, it has been taken, and with it all
//! that was in front of it: then the reading begins at the head. Equal elements cannot be told apart: one
//! where it was read counts for it, so that the reading ends, and in front of that, the first one.
//!
//! What follows is read by the command that reads the element again: a command that only began behind it
//! would skip as many elements as are taken before it.

use bytes::Bytes;
use futures::future::try_join_all;

use super::cursor::{Cursor, Inner, hash_of};
use super::look::Look;
use super::page_size::PageSize;
use crate::conn::Command;
use crate::error::Result;

/// How many elements may be taken between two commands before the reading begins at the head.
const BACK: usize = 1_000;
/// How many elements may be taken while an element is looked for, and how often it is looked for.
const TAKEN: usize = 64;
const TRIES: usize = 3;
/// The most items that are read one by one.
const FEW: usize = 10;

/// An element that may consist of several items of the list.
#[derive(Debug)]
pub(super) struct Element {
    /// How many elements are in front of it.
    pub(super) index: usize,
    pub(super) items: Vec<Bytes>,
}

impl Element {
    fn hash(&self) -> u64 {
        hash_of(self.items.iter().map(|item| &item[..]))
    }
}

impl Look {
    /// Up to `max` elements of `width` items each behind this cursor, from the head on.
    pub(super) async fn elements(
        &self,
        list: &Bytes,
        width: usize,
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<Element>> {
        let mut after = match after {
            None => None,
            Some(Cursor(Inner::Index { index, hash })) => Some((index, hash)),
            Some(other) => return Err(self.foreign(&other)),
        };
        let mut reading = Reading { look: self, list, width, size: PageSize::new() };
        // Not more than there are now: others may put faster than this reads.
        let max = if max > reading.fitting(max) { max.min(reading.len().await?) } else { max };
        let mut elements = Vec::new();
        while elements.len() < max {
            let page = reading.behind(after, max - elements.len()).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.index, last.hash()));
            elements.extend(page);
        }
        Ok(elements)
    }
}

/// The reading of one list.
struct Reading<'a> {
    look: &'a Look,
    list: &'a Bytes,
    width: usize,
    size: PageSize,
}

impl Reading<'_> {
    /// How many elements the list has.
    async fn len(&self) -> Result<usize> {
        Ok(self.look.count(Command::new("LLEN").arg(self.list.clone())).await? / self.width)
    }

    /// How many of these elements one command reads.
    fn fitting(&self, elements: usize) -> usize {
        self.size.of(elements.saturating_mul(self.width)).div_ceil(self.width)
    }

    /// Up to `max` elements behind the one that was at an index and has this hash. From the head on if there
    /// is none. Empty only at the end of the list.
    async fn behind(&mut self, after: Option<(usize, u64)>, max: usize) -> Result<Vec<Element>> {
        if let Some((mut was, hash)) = after {
            // The element itself is one of them.
            let mut page = self.page(was, self.fitting(max.saturating_add(1)).max(2)).await?;
            // Nothing was taken, most likely. Of equal elements, another one would be found for ever.
            if page.first().is_some_and(|element| element.hash() == hash) {
                return Ok(page.split_off(1));
            }
            for _ in 0..TRIES {
                let Some(index) = self.index_of(was, hash).await? else { break };
                let before = TAKEN.min((self.fitting(usize::MAX) - 1) / 2).min(index);
                let count = self.fitting(max.saturating_add(before + 1)).max(2);
                let mut page = self.page(index - before, count).await?;
                if let Some(at) = page.iter().position(|element| element.hash() == hash) {
                    let mut behind = page.split_off(at + 1);
                    behind.truncate(max);
                    return Ok(behind);
                }
                was = index;
            }
        }
        self.page(0, self.fitting(max)).await
    }

    /// Where the element is now that was at an index, if it is still there.
    async fn index_of(&mut self, was: usize, hash: u64) -> Result<Option<usize>> {
        let (mut found, mut to) = (None, was.saturating_add(1));
        let end = to.saturating_sub(BACK);
        while to > end {
            let from = to.saturating_sub(self.fitting(to - end));
            let page = self.page(from, to - from).await?;
            found = page.iter().find(|element| element.hash() == hash).map(|element| element.index).or(found);
            to = from;
        }
        Ok(found)
    }

    /// Reads elements at an index. The client library takes a reply of three to five items for a message of
    /// a channel if the first one is `message` or the like, so a page of few items is read item by item: the
    /// last one first, so that what is taken meanwhile is no gap. More are few, too, as some may be taken
    /// between the two commands.
    async fn page(&mut self, from: usize, count: usize) -> Result<Vec<Element>> {
        let Self { look, list, width, .. } = *self;
        let count = count.min(self.len().await?.saturating_sub(from));
        let (first, items) = (from * width, count * width);
        let items = match items {
            0 => return Ok(Vec::new()),
            1..=FEW => {
                let items = (first..first + items).rev().map(async |index| {
                    let reply = look.ask(Command::new("LINDEX").arg(list.clone()).number(index)).await?;
                    reply.into_optional_bytes().map_err(|shape| look.failed(shape))
                });
                try_join_all(items).await?.into_iter().rev().map_while(|item| item).collect()
            }
            _ => {
                let last = first + items - 1;
                look.strings(Command::new("LRANGE").arg(list.clone()).number(first).number(last)).await?
            }
        };
        self.size.has_read(items.iter().map(|item| &item[..]));
        let elements = items.chunks_exact(width).enumerate();
        Ok(elements.map(|(at, items)| Element { index: from + at, items: items.to_vec() }).collect())
    }
}
