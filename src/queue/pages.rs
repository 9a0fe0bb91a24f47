//! Reading a list of any length in pages, while others change it.
//!
//! Each page is read at one instant, and a list that fits into one is read at one instant, too. What stays in
//! the list is returned, although what others put or take moves it to another index between two pages. There
//! are two ways to ensure that:
//!
//! * **[`Payloads`]: from the tail to the head.** What leaves the list moves the rest towards the head, and
//!   what comes moves it nowhere: so neither moves an element past the reader. Each page begins with the last
//!   few elements of the one before. That shows where they are now; from there on, the page replaces what was
//!   read. Equal payloads in a row may be taken for each other: then they are returned as often as they were
//!   there, or more often, by as many as have left the list. If all that was read has left the list, the
//!   reading begins again; and if that happens often, it goes on where it was. Then what is put in front
//!   meanwhile may hide as many elements from it, and nothing else does.
//! * **[`Entries`]: from the head to the tail.** No two entries are equal. A transfer brings entries that are
//!   overdue to the front; so from the tail, the last few of a page might be found there, behind others that
//!   were not read. From the head, what was read is always in front of everything else. So a page is right
//!   if it begins with a known entry. At the end, the front is read again, for the overdue ones.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::mem;

use bytes::Bytes;

use super::Op;
use crate::conn::Reply;
use crate::error::{Error, Result};
use crate::scripts::{self, Call};

/// The most elements of a page, those that are already known not included.
const PAGE: usize = 1000;
/// The most known elements at the beginning of a page, and the most bytes of them.
const KNOWN: usize = 16;
const KNOWN_BYTES: usize = 65_536;
/// The most payloads that are sent with each part of a list, and their bytes.
const SENT: usize = 1000;
const SENT_BYTES: usize = 1_048_576;
/// How often the reading begins again. Takers that are faster than it would keep it going indefinitely.
const RESTARTS: usize = 2;

/// The page to read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ask {
    /// The index of its first element; that of the list's last one, if the list is shorter.
    at: usize,
    towards_head: bool,
    /// How many of its first elements are expected to be known.
    known: usize,
}

/// Elements in the order of the reading, and the length of the list at that instant.
#[derive(Debug)]
struct Page {
    length: usize,
    elements: Vec<Bytes>,
}

/// What has been read so far, and what to read next.
trait Reading {
    /// `None` if all is read.
    fn next(&self) -> Option<Ask>;
    /// Adds the page that was asked for.
    fn add(&mut self, ask: Ask, page: Page);
}

impl Op<'_> {
    /// Reads the first `most` elements of a list in which equal ones may be, from the head to the tail.
    pub(crate) async fn read_payloads(self, list: &Bytes, most: usize) -> Result<Vec<Bytes>> {
        let mut payloads = Payloads::new(most);
        while self.read_page(list, &mut payloads).await? {}
        Ok(payloads.into_elements())
    }

    /// Reads the ordered list, and calls `found` with the entries of each page, and whether they are from the
    /// front, which is read again at the end. They are in their order but for those that were moved
    /// meanwhile. Ends early if it returns false.
    pub(crate) async fn read_entries(
        self,
        list: &Bytes,
        mut found: impl FnMut(Vec<Bytes>, bool) -> bool,
    ) -> Result<()> {
        let mut entries = Entries::default();
        loop {
            let is_front = entries.stage == Stage::Front;
            let is_over = !self.read_page(list, &mut entries).await?;
            if is_over || !found(mem::take(&mut entries.page), is_front) {
                return Ok(());
            }
        }
    }

    /// Deletes as much as there is at the first call, in parts, and returns whether there was anything.
    pub(crate) async fn clear_in_parts(self, call: impl Fn() -> Call) -> Result<bool> {
        let (mut removed, mut all) = (0, None);
        loop {
            let parts = self.run(call()).await.and_then(|reply| self.parts(reply));
            let [count, left] = parts.map_err(|error| error.after_parts(removed, "payloads were removed"))?;
            removed += self.len(count)?;
            let left = self.len(left)?;
            // Others may offer faster than this removes.
            if left == 0 || removed >= *all.get_or_insert(removed + left) {
                return Ok(removed > 0);
            }
        }
    }

    /// Removes payloads by a script that does it in a part of the list: from this index on, or from the tail.
    /// Returns how many.
    ///
    /// What is taken or offered meanwhile hides nothing from it. What is put in front may hide something, if
    /// it is more than the overlap of two parts.
    pub(crate) async fn remove_in_parts(self, call: impl Fn(i64) -> Call) -> Result<usize> {
        let (mut removed, mut at) = (0, -1);
        loop {
            let parts = self.run(call(at)).await.and_then(|reply| self.parts(reply));
            let [count, next] = parts.map_err(|error| error.after_parts(removed, "payloads were removed"))?;
            removed += self.len(count)?;
            at = self.int(next)?;
            if at < 0 {
                return Ok(removed);
            }
        }
    }

    /// The same for so many payloads that they cannot be sent with each part: reads the list, and removes the
    /// payloads that `goes` accepts, those of a page by a script that looks for them from the index on where
    /// the page begins.
    pub(crate) async fn remove_in_pages(
        self,
        list: &Bytes,
        payload_of: impl Fn(&Bytes) -> Option<Bytes>,
        goes: impl Fn(&Bytes) -> bool,
        call: impl Fn(i64, Vec<Bytes>) -> Call,
    ) -> Result<usize> {
        let (mut removed, mut at) = (0, usize::MAX);
        loop {
            let stopped = |error: Error| error.after_parts(removed, "payloads were removed");
            let page = self.page(list, Ask { at, towards_head: true, known: 0 }).await.map_err(stopped)?;
            let (first, count) = (at.min(page.length.saturating_sub(1)), page.elements.len());
            let found: HashSet<_> = page.elements.iter().filter_map(&payload_of).filter(&goes).collect();
            if !found.is_empty() {
                let call = call(i64::try_from(first).unwrap_or(-1), found.into_iter().collect());
                let reply = self.run(call).await.and_then(|reply| self.parts::<2>(reply));
                let [count, _] = reply.map_err(stopped)?;
                removed += self.len(count)?;
            }
            if count == 0 || count > first {
                return Ok(removed);
            }
            // They overlap, for what is put in front.
            at = first - count + count / 4;
        }
    }

    /// Reads a page. Returns whether there was one to read.
    async fn read_page(self, list: &Bytes, reading: &mut impl Reading) -> Result<bool> {
        let Some(ask) = reading.next() else { return Ok(false) };
        reading.add(ask, self.page(list, ask).await?);
        Ok(true)
    }

    async fn page(self, list: &Bytes, ask: Ask) -> Result<Page> {
        let call = scripts::RANGE
            .on(&[list])
            .number(i64::try_from(ask.at).unwrap_or(-1))
            .arg(if ask.towards_head { "back" } else { "on" })
            .number(PAGE + ask.known)
            .number(1 + ask.known);
        let mut reply =
            self.run(call.only_reads()).await?.into_array().map_err(|shape| self.failed(shape))?;
        let elements = reply.split_off(reply.len().min(1));
        let length = self.len(reply.pop().unwrap_or(Reply::Nil))?;
        Ok(Page { length, elements: self.strings(Reply::Array(elements))? })
    }
}

/// Whether these are few enough to send them with each part of a list.
pub(crate) fn are_few(payloads: &[Bytes]) -> bool {
    payloads.len() <= SENT && payloads.iter().map(Bytes::len).sum::<usize>() <= SENT_BYTES
}

/// How many of these last elements begin the next page.
fn known(read: &[Bytes]) -> usize {
    let mut bytes = 0;
    let fits = |element: &&Bytes| {
        bytes += element.len();
        bytes <= KNOWN_BYTES
    };
    read.iter().rev().take(KNOWN).take_while(fits).count().max(1).min(read.len())
}

/// Elements of which some may be equal, in the order from the tail to the head.
struct Payloads {
    /// Those of which none was found again.
    settled: Vec<Bytes>,
    /// Those behind them, without a gap.
    read: Vec<Bytes>,
    /// The index of the last one that was read; `None` at the beginning.
    low: Option<usize>,
    /// How far before the last elements that were read the next page begins. More than 0 if the last page did
    /// not begin with known elements: other clients have put others in front, or removed some of them.
    back: usize,
    /// The index of the first one to read.
    from: usize,
    /// How often the reading has begun again because nothing of what it had read was left.
    restarts: usize,
}

impl Payloads {
    fn new(most: usize) -> Self {
        let low = if most == 0 { Some(0) } else { None };
        Self {
            settled: Vec::new(),
            read: Vec::new(),
            low,
            back: 0,
            from: most.saturating_sub(1),
            restarts: 0,
        }
    }

    fn into_elements(mut self) -> Vec<Bytes> {
        self.settled.append(&mut self.read);
        self.settled.reverse();
        self.settled
    }

    /// The page begins at what was read there, and replaces all from there on.
    fn join(&mut self, at: usize, elements: Vec<Bytes>, low: usize) {
        self.read.truncate(at);
        self.read.extend(elements);
        (self.low, self.back) = (Some(low), 0);
    }

    /// Nothing of what was read is found. What was in front of it is still in front of that index: it moves
    /// towards the head alone, unless another client puts elements in front.
    fn go_on(&mut self, length: usize) {
        self.restarts += 1;
        self.back = 0;
        if self.restarts <= RESTARTS {
            self.read.clear();
            self.low = None;
        } else {
            self.settled.append(&mut self.read);
            self.low = self.low.map(|low| low.min(length));
        }
    }
}

/// The first element of the page that was read, and the last place where it and the known ones behind it can
/// have been. Those that were in front of it in the page came since; those that were between them have left
/// the list.
fn scattered(read: &[Bytes], page: &[Bytes]) -> Option<(usize, usize)> {
    let those: HashSet<_> = read.iter().collect();
    let first = page.iter().position(|element| those.contains(element))?;
    let known = page[first..].iter().take(KNOWN).take_while(|element| those.contains(element)).count();
    let mut at = read.len();
    for element in page[first..first + known].iter().rev() {
        at = read[..at].iter().rposition(|other| other == element)?;
    }
    Some((first, at))
}

impl Reading for Payloads {
    fn next(&self) -> Option<Ask> {
        let towards_head = true;
        match self.low {
            None => Some(Ask { at: self.from, towards_head, known: 0 }),
            Some(0) => None,
            Some(low) => {
                let known = known(&self.read[..self.read.len() - self.back]);
                Some(Ask { at: low + self.back + known - 1, towards_head, known })
            }
        }
    }

    fn add(&mut self, ask: Ask, page: Page) {
        let Page { length, elements } = page;
        let first = ask.at.min(length.saturating_sub(1));
        let low = (first + 1).saturating_sub(elements.len());
        if elements.is_empty() {
            // Nothing is left.
            self.low = Some(0);
            return;
        }
        if self.read.is_empty() {
            self.join(0, elements, low);
            return;
        }
        let begin = &elements[..ask.known.min(elements.len())];
        // The last place where they are: the first that is possible takes none of several equal ones for
        // another.
        if let Some(at) = self.read.windows(begin.len()).rposition(|read| read == begin) {
            self.join(at, elements, low);
            return;
        }
        self.back = (2 * self.back).max(PAGE);
        if self.back >= self.read.len() {
            match scattered(&self.read, &elements) {
                Some((first, at)) => self.join(at, elements.into_iter().skip(first).collect(), low),
                None => self.go_on(length),
            }
        }
    }
}

/// Elements of which no two are equal, in the order from the head to the tail. Only those of a page are kept.
#[derive(Default)]
struct Entries {
    /// What the last page has brought.
    page: Vec<Bytes>,
    /// The last ones of the list that were read.
    last: Vec<Bytes>,
    seen: Seen,
    /// The index behind the last one.
    at: usize,
    /// How many elements earlier the next page begins. More than 0 if the last page did not begin with an
    /// element that was read.
    back: usize,
    /// How many were read in this stage.
    count: usize,
    /// How many there were at the beginning. Those that were offered since are behind them, and others may
    /// offer faster than this reads.
    most: usize,
    stage: Stage,
}

/// The hashes of elements, of 128 bits, so that two elements practically never have the same.
#[derive(Default)]
struct Seen {
    hashes: HashSet<[u64; 2]>,
    hashers: [RandomState; 2],
}

impl Seen {
    fn hash(&self, element: &Bytes) -> [u64; 2] {
        self.hashers.each_ref().map(|hasher| hasher.hash_one(element))
    }

    fn contains(&self, element: &Bytes) -> bool {
        self.hashes.contains(&self.hash(element))
    }

    /// Returns whether it is new.
    fn insert(&mut self, element: &Bytes) -> bool {
        self.hashes.insert(self.hash(element))
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    List,
    Front,
    Over,
}

impl Reading for Entries {
    fn next(&self) -> Option<Ask> {
        let known = match self.stage {
            Stage::List => known(&self.last),
            Stage::Front => 0,
            Stage::Over => return None,
        };
        Some(Ask { at: self.at.saturating_sub(known + self.back), towards_head: false, known })
    }

    fn add(&mut self, ask: Ask, page: Page) {
        let Page { length, elements } = page;
        let is_known = |element: &Bytes| self.seen.contains(element);
        if self.stage == Stage::List && ask.at > 0 && !elements.first().is_some_and(is_known) {
            self.back = (2 * self.back).max(PAGE);
            return;
        }
        self.at = ask.at + elements.len();
        self.back = 0;
        if self.most == 0 {
            self.most = length;
            if self.at >= length {
                (self.page, self.stage) = (elements, Stage::Over);
                return;
            }
        }
        self.page = elements.into_iter().filter(|element| self.seen.insert(element)).collect();
        self.count += self.page.len();
        let is_end = self.at >= length || self.count >= self.most;
        let is_over = is_end || self.page.is_empty();
        match self.stage {
            Stage::List if is_end => (self.stage, self.at, self.count) = (Stage::Front, 0, 0),
            Stage::List => {
                self.last.extend_from_slice(&self.page[self.page.len().saturating_sub(KNOWN)..]);
                self.last.drain(..self.last.len().saturating_sub(KNOWN));
            }
            Stage::Front if is_over => self.stage = Stage::Over,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
