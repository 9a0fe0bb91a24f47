//! Reading a sorted set in pages, while others change it.
//!
//! A page begins with the score of the last member that was read: so what leaves in front of it moves nothing
//! past the reader. Members of the same score come again, and are dropped. If there are more of these than a
//! page has, the cursor is looked for by rank.
//!
//! A page that is shorter than was asked for is the last one: on a busy queue there is always one more behind
//! it.

use std::cmp::Ordering;

use bytes::Bytes;
use futures::future::try_join_all;

use super::cursor::{Cursor, Inner};
use super::look::Look;
use super::page_size::PageSize;
use crate::conn::Command;
use crate::error::Result;

/// A member, and its score as the server wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scored {
    pub(super) member: Bytes,
    pub(super) score: Bytes,
}

/// What was read: all up to this one.
struct Read {
    last: Scored,
    /// The member of a cursor may be only how it begins.
    is_cursor: bool,
}

impl Read {
    fn includes(&self, other: &Scored) -> bool {
        let Scored { member, score } = &self.last;
        let [score, other_score] = [score, &other.score].map(|score| number(score).unwrap_or_default());
        match other_score.total_cmp(&score) {
            Ordering::Less => true,
            Ordering::Equal => other.member <= *member || self.is_cursor && other.member.starts_with(member),
            Ordering::Greater => false,
        }
    }
}

/// A score as a number, with one zero.
fn number(score: &[u8]) -> Option<f64> {
    let score: f64 = std::str::from_utf8(score).ok()?.parse().ok()?;
    (!score.is_nan()).then_some(score + 0.0)
}

impl Look {
    /// Up to `max` members behind this cursor, in the order of scores. Fewer only if there were no more.
    pub(super) async fn members(
        &self,
        set: &Bytes,
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<Scored>> {
        let mut read = match after {
            None => None,
            Some(Cursor(Inner::Score { score, member })) => {
                Some(Read { last: Scored { member, score }, is_cursor: true })
            }
            Some(other) => return Err(self.foreign(&other)),
        };
        let (mut members, mut size) = (Vec::new(), PageSize::new());
        // Others may add faster than this reads. What moves behind what was read comes again, and must take
        // no other's place.
        let most = if max > size.of(max) { self.cardinality(set).await?.saturating_mul(2) } else { max };
        let end = max.min(most);
        while members.len() < end {
            let most = size.of(max - members.len());
            let Page { members: mut page, is_last } = match &read {
                None => self.by_rank(set, 0, most).await?,
                Some(read) => self.behind(set, read, most).await?,
            };
            page.truncate(end - members.len());
            size.has_read(page.iter().map(|member| &member.member[..]));
            let Some(last) = page.last() else { break };
            read = Some(Read { last: last.clone(), is_cursor: false });
            members.extend(page);
            if is_last {
                break;
            }
        }
        Ok(members)
    }

    /// At least one member behind this cursor, if there is any, and not many more than `most`.
    async fn behind(&self, set: &Bytes, read: &Read, most: usize) -> Result<Page> {
        let from_score = |name| Command::new(name).arg(set.clone()).arg(read.last.score.clone()).arg("+inf");
        let left = self.count(from_score("ZCOUNT")).await?;
        let range = |at: usize, count: usize| {
            from_score("ZRANGEBYSCORE").arg("WITHSCORES").arg("LIMIT").number(at).number(count)
        };
        // One more, for the one that was read.
        let page = self.page(left, most + 1, range).await?.behind(read);
        if !page.members.is_empty() || page.is_last {
            return Ok(page);
        }
        self.behind_equals(set, read, most).await
    }

    /// The same, where more members have the score than a page.
    async fn behind_equals(&self, set: &Bytes, read: &Read, most: usize) -> Result<Page> {
        let (mut from, mut to) = (0, self.cardinality(set).await?);
        while from < to {
            let middle = from + (to - from) / 2;
            match self.by_rank(set, middle, 1).await?.members.first() {
                Some(member) if read.includes(member) => from = middle + 1,
                _ => to = middle,
            }
        }
        // What left meanwhile has moved the others: so it begins with one that was read, if there is one.
        let mut back = 1;
        loop {
            from = from.saturating_sub(back);
            let page = self.by_rank(set, from, most + back).await?;
            if from == 0 || page.members.first().is_some_and(|member| read.includes(member)) {
                return Ok(page.behind(read));
            }
            back = (back * 2).min(most.max(1));
        }
    }

    async fn by_rank(&self, set: &Bytes, from: usize, count: usize) -> Result<Page> {
        let left = if count == 1 { 1 } else { self.cardinality(set).await?.saturating_sub(from) };
        let range = |at: usize, count: usize| {
            let first = from + at;
            let command = Command::new("ZRANGE").arg(set.clone()).number(first).number(first + count - 1);
            command.arg("WITHSCORES")
        };
        self.page(left, count, range).await
    }

    /// Reads up to `count` of the members that are left. `range` makes the command that reads a number of
    /// them from an index on.
    /// The client library takes a reply of four strings for a message of a channel if the first one is
    /// `unsubscribe` or the like, so two members are read one by one: the last one first, as in a list.
    async fn page(&self, left: usize, count: usize, range: impl Fn(usize, usize) -> Command) -> Result<Page> {
        let strings = match left.min(count) {
            few @ 0..=2 => {
                let members = (0..few).rev().map(|at| self.strings(range(at, 1)));
                try_join_all(members).await?.into_iter().rev().flatten().collect()
            }
            _ => self.strings(range(0, count)).await?,
        };
        Page::of(strings, count).ok_or_else(|| self.failed(self.conn.desynchronised()))
    }

    async fn cardinality(&self, set: &Bytes) -> Result<usize> {
        self.count(Command::new("ZCARD").arg(set.clone())).await
    }
}

/// The members that a command has read, and whether the set had no more.
struct Page {
    members: Vec<Scored>,
    is_last: bool,
}

impl Page {
    /// `None` if these are no members with their scores.
    fn of(strings: Vec<Bytes>, asked_for: usize) -> Option<Self> {
        let scored = |pair: &[Bytes]| {
            let [member, score] = pair else { return None };
            number(score)?;
            Some(Scored { member: member.clone(), score: score.clone() })
        };
        let mut members = strings.chunks(2).map(scored).collect::<Option<Vec<_>>>()?;
        let is_last = members.len() < asked_for;
        // One that has moved forward between two commands was read by both.
        members.dedup_by(|one, other| one.member == other.member);
        Some(Self { members, is_last })
    }

    /// Without what was read before.
    fn behind(mut self, read: &Read) -> Self {
        self.members.retain(|member| !read.includes(member));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_in_the_order_of_scores_and_then_of_bytes() {
        let member =
            |score: &'static str, member: &'static str| Scored { member: member.into(), score: score.into() };
        for is_cursor in [false, true] {
            let read = Read { last: member("7", "bb"), is_cursor };
            for (other, is_read) in [
                (member("6.5", "z"), true),
                (member("7", "ba"), true),
                (member("7", "bb"), true),
                (member("7", "bbc"), is_cursor),
                (member("7", "bc"), false),
                (member("7.001", "a"), false),
                (member("inf", "a"), false),
                (member("-inf", "z"), true),
                (member("-0", "z"), true),
            ] {
                assert_eq!(read.includes(&other), is_read, "{other:?}");
            }
        }
        assert_eq!(number(b"-0").map(f64::to_bits), number(b"0").map(f64::to_bits));
    }

    #[test]
    fn what_has_no_scores_is_the_reply_to_another_command() {
        let page = |strings: &[&'static str]| {
            Page::of(strings.iter().copied().map(Bytes::from).collect(), 2).map(|page| page.members.len())
        };
        assert_eq!(page(&["a", "7", "b", "-inf"]), Some(2));
        assert_eq!(page(&["a", "7", "a", "7"]), Some(1));
        assert_eq!(page(&[]), Some(0));
        for others in [&["a", "7", "b"][..], &["a", "\x1b[2J"], &["a", "nan"], &["a", ""]] {
            assert_eq!(page(others), None, "{others:?}");
        }
    }
}
