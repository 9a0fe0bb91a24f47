//! Which queue a key or a channel belongs to. Pure.

use bytes::Bytes;

/// Matches all keys that a queue has, but for its ready list.
pub(in crate::inspector) const KEYS: &str = "red[ei]*";
/// Matches the channels of announcements.
pub(in crate::inspector) const CHANNELS: &str = "redisson_delay_queue_channel:*";

/// Their beginnings, behind which the tag follows.
const OF_TAGS: [&[u8]; 4] =
    [b"redisson_delay_queue_timeout:", b"redisson_delay_queue:", b"redelay:quarantine:", b"redelay:popped:"];
/// Those of keys that have a second colon if the name has a brace.
const MARKED: [&[u8]; 11] = [
    b"redelay:inbox:",
    b"redelay:messages:",
    b"redelay:leases:",
    b"redelay:retries:",
    b"redelay:receipts:",
    b"redelay:dead:",
    b"redelay:dead-messages:",
    b"redelay:control:",
    b"redelay:jobs:",
    b"redelay:schedules:",
    b"redelay:schedule-records:",
];

/// What a key says of its queue.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::inspector) enum Found {
    Name(Bytes),
    /// A name in braces: of the queue of this name, or of the one without the braces.
    Tag(Bytes),
}

impl Found {
    /// The name, or the likelier one of a tag.
    pub(in crate::inspector) fn likelier(self) -> Bytes {
        match self {
            Self::Name(name) => name,
            Self::Tag(tag) => tag.slice(1..tag.len() - 1),
        }
    }
}

pub(in crate::inspector) fn of_key(key: &Bytes) -> Option<Found> {
    let behind = |prefixes: &[&[u8]]| {
        prefixes.iter().find(|prefix| key.starts_with(prefix)).map(|prefix| key.slice(prefix.len()..))
    };
    if let Some(tag) = behind(&OF_TAGS) {
        return of_tag(tag);
    }
    let tag = behind(&MARKED)?;
    if tag.first() == Some(&b':') {
        return Some(Found::Name(tag.slice(1..))).filter(|_| tag.contains(&b'{'));
    }
    plain(&tag).map(Found::Name)
}

pub(in crate::inspector) fn of_channel(channel: &Bytes) -> Option<Found> {
    of_tag(channel.slice_ref(channel.strip_prefix(b"redisson_delay_queue_channel:")?))
}

pub(in crate::inspector) fn of_tag(tag: Bytes) -> Option<Found> {
    if plain(&tag).is_some() {
        return Some(Found::Tag(tag));
    }
    // A name without a brace is put in braces.
    tag.contains(&b'{').then_some(Found::Name(tag))
}

/// The name in the braces of a tag, if it has no brace that would have kept it from getting these.
fn plain(tag: &Bytes) -> Option<Bytes> {
    let name = tag.strip_prefix(b"{")?.strip_suffix(b"}")?;
    (!name.contains(&b'{')).then(|| tag.slice_ref(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::keys::Keys;

    fn found(key: &str) -> Option<Found> {
        of_key(&Bytes::copy_from_slice(key.as_bytes()))
    }

    #[test]
    fn keys_name_their_queues() {
        let name = |name: &'static str| Some(Found::Name(name.into()));
        let tag = |tag: &'static str| Some(Found::Tag(tag.into()));
        for (key, expected) in [
            ("redisson_delay_queue:{q}", tag("{q}")),
            ("redisson_delay_queue_timeout:{q}", tag("{q}")),
            ("redisson_delay_queue:{tag}q", name("{tag}q")),
            ("redisson_delay_queue:{a}b}", tag("{a}b}")),
            ("redisson_delay_queue:a{b", name("a{b")),
            ("redisson_delay_queue:{}", tag("{}")),
            ("redisson_delay_queue:{", name("{")),
            ("redisson_delay_queue:orders", None),
            ("redelay:control:{q}", name("q")),
            ("redelay:control::{q}", name("{q}")),
            ("redelay:control::x{y}", name("x{y}")),
            ("redelay:control:", None),
            ("redelay:quarantine:{q}", tag("{q}")),
            ("redelay:offered:{q}:0123", None),
            ("redelay:partitions:{q}", None),
            ("redisson__map", None),
        ] {
            assert_eq!(found(key), expected, "{key}");
        }
    }

    proptest! {
        #[test]
        fn each_name_is_found_by_each_of_its_keys(name: Vec<u8>) {
            let keys = Keys::new(&name);
            let of_messages = keys.of_messages();
            let [schedules, records] = keys.schedules();
            let marked = [
                of_messages.inbox, of_messages.messages, of_messages.leases, of_messages.retries,
                of_messages.receipts, of_messages.dead, of_messages.dead_messages, of_messages.control,
                keys.jobs(), schedules, records,
            ];
            for key in &marked {
                prop_assert_eq!(of_key(key), Some(Found::Name(name.clone().into())));
            }
            for key in [keys.timeout_set(), keys.ordered_list(), keys.quarantine(), keys.claims()] {
                let is_it = match of_key(key) {
                    Some(Found::Name(found)) => found == name,
                    Some(Found::Tag(tag)) => tag == name || tag[1..tag.len() - 1] == name[..],
                    None => false,
                };
                prop_assert!(is_it);
            }
            prop_assert!(of_channel(keys.channel()).is_some());
        }
    }
}
