//! Which queues a command is for, by names and patterns.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::future::ready;
use futures::{Stream, TryStreamExt};
use redelay::inspector::{Inspector, Overview, Queues, Unknown, matches};

use crate::connect::Session;
use crate::failure::Failure;
use crate::queue::refusal;
use crate::state::is_silence;

/// The names and patterns of a command line, as they are on the server.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// These are meant whether or not they are there.
    pub(crate) names: BTreeSet<Bytes>,
    pub(crate) patterns: Vec<Vec<u8>>,
}

impl Wanted {
    pub(crate) fn new(session: &Session, words: &[Vec<u8>]) -> Self {
        let (mut names, mut patterns) = (BTreeSet::new(), Vec::new());
        for word in words {
            match literal(word) {
                Some(name) => {
                    names.insert(session.name(&name));
                }
                None => patterns.push(session.pattern(word)),
            }
        }
        Self { names, patterns }
    }

    /// Finds the queues that one of the patterns means, among others if there are several patterns.
    pub(crate) fn search(&self, inspector: &Inspector) -> Queues {
        inspector.queues(self.searched())
    }

    /// The same, and the keys of all queues that should have been deleted.
    pub(crate) fn search_with_leftovers(&self, inspector: &Inspector) -> Queues {
        inspector.queues_and_leftovers(self.searched())
    }

    /// The pattern of a search.
    fn searched(&self) -> &[u8] {
        match &self.patterns[..] {
            // It asks nothing about the keys of other queues, which the user may not be granted.
            [pattern] => pattern,
            _ => b"*",
        }
    }

    /// Those of the queues that are found that are meant.
    pub(crate) fn of(&self, queues: &mut Queues) -> impl Stream<Item = redelay::Result<Bytes>> {
        queues.try_filter(|name| ready(self.matches(name)))
    }

    /// Whether a queue that was found is meant.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        self.names.contains(name) || self.patterns.iter().any(|pattern| matches(pattern, name))
    }

    /// Whether a queue that was found has the pending entries that are under its name. `{q}` shares them with
    /// `q`: see [`twin`].
    pub(crate) fn owner(&self, queue: &Overview, twin: &Overview) -> Owner {
        if self.names.contains(&queue.name) {
            return Owner::This;
        }
        if self.names.contains(&twin.name) {
            return Owner::Twin;
        }
        match (has_traces(queue), has_traces(twin)) {
            (true, true) => Owner::Unclear,
            (true, false) => Owner::This,
            (false, true) => Owner::Twin,
            // Names in braces are rare.
            (false, false) if queue.name.starts_with(b"{") => Owner::Twin,
            (false, false) => Owner::This,
        }
    }
}

/// Why the keys of a server were not searched.
///
/// # Errors
/// The failure, if it will not get better by itself: a permission is missing.
pub(crate) fn not_searched(queues: &Queues) -> Result<Option<String>, Failure> {
    let unknown = queues.unknown();
    let not_searched = |unknown: &&Unknown| is_silence(unknown) || unknown.what == "keys";
    match unknown.iter().find(not_searched) {
        Some(unknown) if unknown.permission.is_some() => Err(Failure::Refused(refusal(unknown))),
        unknown => Ok(unknown.map(refusal)),
    }
}

/// Whose pending entries these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    This,
    Twin,
    /// Both queues are in use.
    Unclear,
}

/// The other name with the same keys of pending entries, if there is one: that of `q` is `{q}`.
pub(crate) fn twin(name: &[u8]) -> Option<Bytes> {
    if !name.contains(&b'{') {
        return Some([b"{", name, b"}"].concat().into());
    }
    let plain = name.strip_prefix(b"{")?.strip_suffix(b"}")?;
    (!plain.contains(&b'{')).then(|| Bytes::copy_from_slice(plain))
}

/// Whether there is something that only the queue of this name has.
pub(crate) fn has_traces(queue: &Overview) -> bool {
    let counts =
        [queue.ready, queue.in_flight, queue.waiting, queue.dead_letters, queue.receivers, queue.schedules];
    counts.into_iter().flatten().any(|count| count > 0) || queue.is_paused == Some(true)
}

/// The name that this is, if it is no pattern of several names.
fn literal(pattern: &[u8]) -> Option<Vec<u8>> {
    let (mut name, mut bytes) = (Vec::new(), pattern.iter().copied());
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' | b'?' | b'[' => return None,
            b'\\' => name.push(bytes.next().unwrap_or(b'\\')),
            byte => name.push(byte),
        }
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape;

    #[test]
    fn a_word_without_a_wildcard_is_a_name() {
        for (word, name) in [
            (&b"orders"[..], Some(&b"orders"[..])),
            (br"a\*b\\", Some(br"a*b\")),
            (b"{a} \xff", Some(b"{a} \xff")),
            (b"", Some(b"")),
            (b"shop:*", None),
            (b"a?", None),
            (b"[ab]", None),
        ] {
            assert_eq!(literal(word).as_deref(), name, "{word:?}");
        }
        // What is said of a queue names it.
        for name in [&b"orders"[..], br"a*b?[c]\d", b"\xff\\"] {
            assert_eq!(literal(&escape::pattern(name)).as_deref(), Some(name), "{name:?}");
        }
    }

    #[test]
    fn one_pattern_is_searched_for_and_nothing_else() {
        let wanted = |patterns: &[&[u8]]| Wanted {
            names: BTreeSet::from(["mails".into()]),
            patterns: patterns.iter().map(|pattern| pattern.to_vec()).collect(),
        };
        assert_eq!(wanted(&[b"shop:*"]).searched(), b"shop:*");
        let several = wanted(&[b"shop:*", b"o?ders"]);
        assert_eq!(several.searched(), b"*");
        let is_meant = ["shop:orders", "orders", "mails"].map(|name| several.matches(name.as_bytes()));
        assert_eq!((is_meant, several.matches(b"invoices")), ([true; 3], false));
    }

    #[test]
    fn twins_share_their_pending_keys() {
        for (name, other) in [
            ("q", Some("{q}")),
            ("{q}", Some("q")),
            ("a}b", Some("{a}b}")),
            ("{a}b}", Some("a}b")),
            ("", Some("{}")),
            ("{shop}q", None),
            ("{{q}}", None),
            ("a{b", None),
        ] {
            assert_eq!(twin(name.as_bytes()).as_deref(), other.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn the_pending_entries_are_those_of_the_queue_that_is_in_use() {
        let wanted = |names: &[&'static str]| Wanted {
            names: names.iter().map(|name| (*name).into()).collect(),
            patterns: vec![],
        };
        let queue = |name: &'static str, ready| {
            let mut queue = Overview::default();
            queue.name = name.into();
            queue.ready = Some(ready);
            queue
        };
        for (names, this, twin, owner) in [
            (&[][..], queue("q", 0), queue("{q}", 0), Owner::This),
            (&[], queue("{q}", 0), queue("q", 0), Owner::Twin),
            (&[], queue("{q}", 1), queue("q", 0), Owner::This),
            (&[], queue("q", 0), queue("{q}", 1), Owner::Twin),
            (&[], queue("q", 1), queue("{q}", 1), Owner::Unclear),
            (&["{q}"], queue("{q}", 0), queue("q", 1), Owner::This),
            (&["{q}"], queue("q", 1), queue("{q}", 0), Owner::Twin),
        ] {
            assert_eq!(wanted(names).owner(&this, &twin), owner, "{names:?} {this:?}");
        }
    }
}
