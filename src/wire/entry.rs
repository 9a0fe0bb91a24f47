//! The packed entry: one pending payload in the timeout set and in the ordered list. Pure: decoding accepts
//! any bytes.
//!
//! ```text
//! current (Redisson ≥ 3.21.1)    n: 1 byte | id: n bytes   | length: 8 bytes LE | payload
//! legacy  (Redisson ≤ 3.21.0)               id: 8 bytes    | length: 8 bytes LE | payload
//! ```
//!
//! The id makes equal payloads distinct. Its length and its bytes order entries with the same due time.
//! redelay writes time-ordered ids (UUID v7), which keeps the order of the offers; the id of a job is the
//! user's. Redisson writes random ids. The legacy id keeps no order; it is a float64 to Redisson and eight
//! bytes here.
//!
//! The exact length tells the formats apart. Bytes behind the payload of a current entry are ignored, as in
//! Redisson. All other bytes are malformed: [`payload`] returns `None`.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;

use super::id;

/// The layout in which a handle writes entries. Both layouts are always read.
///
/// [`DelayedQueue::with_entry_format`](crate::DelayedQueue::with_entry_format) sets it.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::delayed_queue::EntryFormat;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let ready = client.blocking_queue("jobs", codec::Long);
/// // A Redisson 3.21.0 still transfers this queue.
/// let jobs = client.delayed_queue(&ready).with_entry_format(EntryFormat::Legacy);
/// jobs.offer(&7, Duration::from_secs(60)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryFormat {
    /// The layout since Redisson 3.21.1 (2023-05).
    #[default]
    Current,
    /// The layout up to Redisson 3.21.0, for a fleet that still runs such a version. Entries with the same
    /// due time then become ready in random order, as they do with such a Redisson.
    Legacy,
}

impl EntryFormat {
    /// The layout, the id and the payload of an entry, or `None` if it is malformed. For tools: the handles
    /// unpack entries by themselves.
    ///
    /// # Examples
    /// ```
    /// use redelay::delayed_queue::EntryFormat;
    ///
    /// let entry = b"\x08\x10\x68\x90\xaa\x3e\x21\x91\x25\x05\0\0\0\0\0\0\0hello";
    /// let (format, id, payload) = EntryFormat::unpack(entry).unwrap();
    /// assert_eq!((format, id.len(), payload), (EntryFormat::Current, 8, &b"hello"[..]));
    /// assert_eq!(EntryFormat::unpack(b"hello"), None);
    /// ```
    #[must_use]
    pub fn unpack(entry: &[u8]) -> Option<(Self, &[u8], &[u8])> {
        parts(entry).map(|parts| (parts.format, parts.id, parts.payload))
    }
}

/// The most bytes in front of a payload.
pub(crate) const HEADER: usize = 1 + 16 + 8;

/// Packs a payload with a new id.
pub(crate) fn pack(format: EntryFormat, payload: &[u8]) -> Bytes {
    match format {
        EntryFormat::Current => {
            let mut entry = BytesMut::with_capacity(HEADER + payload.len());
            entry.put_u8(16);
            entry.put_slice(&id::new());
            entry.put_u64_le(payload.len() as u64);
            entry.put_slice(payload);
            entry.freeze()
        }
        EntryFormat::Legacy => loop {
            let mut entry = BytesMut::with_capacity(16 + payload.len());
            // The half without the time: a time-ordered id of eight bytes has too few other bits to make
            // equal payloads distinct.
            entry.put_slice(&id::new()[8..]);
            entry.put_u64_le(payload.len() as u64);
            entry.put_slice(payload);
            // By chance, the bytes may be valid as a current entry with another payload. Then another id is
            // tried.
            if self::payload(&entry) == Some(payload) {
                return entry.freeze();
            }
        },
    }
}

/// Packs a payload with an id of 1 to 255 bytes.
pub(crate) fn pack_job(id: &[u8], payload: &[u8]) -> Bytes {
    let mut entry = BytesMut::with_capacity(1 + id.len() + 8 + payload.len());
    entry.put_u8(u8::try_from(id.len()).unwrap_or(u8::MAX));
    entry.put_slice(id);
    entry.put_u64_le(payload.len() as u64);
    entry.put_slice(payload);
    entry.freeze()
}

/// What is in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) format: EntryFormat,
    pub(crate) id: &'a [u8],
    pub(crate) payload: &'a [u8],
    /// Bytes behind the payload, which nobody reads.
    pub(crate) trailing: usize,
}

/// The parts of an entry of either format, or `None` if the entry is malformed.
pub(crate) fn parts(entry: &[u8]) -> Option<Parts<'_>> {
    let end = 1 + usize::from(*entry.first()?);
    let current = split(entry, end).map(|(payload, trailing)| Parts {
        format: EntryFormat::Current,
        id: &entry[1..end],
        payload,
        trailing: trailing.len(),
    });
    let legacy = split(entry, 8).map(|(payload, trailing)| Parts {
        format: EntryFormat::Legacy,
        id: &entry[..8],
        payload,
        trailing: trailing.len(),
    });
    let exact = |parts: &Parts<'_>| parts.trailing == 0;
    current.filter(exact).or(legacy.filter(exact)).or(current)
}

/// The payload of an entry of either format, or `None` if the entry is malformed.
pub(crate) fn payload(entry: &[u8]) -> Option<&[u8]> {
    parts(entry).map(|parts| parts.payload)
}

/// The same, without a copy: both share their memory.
pub(crate) fn payload_in(entry: &Bytes) -> Option<Bytes> {
    payload(entry).map(|payload| entry.slice_ref(payload))
}

/// Reads length and payload at an offset. Returns the payload and the bytes behind it.
fn split(entry: &[u8], offset: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = entry.get(offset..)?.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// Written by Redisson: entry in hex, payload.
    const WRITTEN_BY_REDISSON: &[(&str, &[u8])] = &[
        ("08106890aa3e219125050000000000000068656c6c6f", b"hello"),
        ("81ed4bdc439ac0c3050000000000000068656c6c6f", b"hello"),
        ("08106890aa3e2191250000000000000000", b""),
    ];

    #[test]
    fn reads_what_redisson_wrote() {
        for (entry, expected) in WRITTEN_BY_REDISSON {
            assert_eq!(payload(&hex(entry)), Some(*expected), "{entry}");
        }
    }

    #[test]
    fn trailing_bytes_are_ignored_as_redisson_does() {
        assert_eq!(payload(&hex("0161020000000000000068692121")), Some(&b"hi"[..]));
    }

    #[test]
    fn malformed() {
        for entry in ["", "08", "026162", "0161ffffffffffffffff", "01610900000000000000", "ff00000000"] {
            assert_eq!(payload(&hex(entry)), None, "{entry}");
        }
    }

    #[test]
    fn ids_keep_the_order_of_offers() {
        let entries: Vec<Bytes> = (0..1000).map(|_| pack(EntryFormat::Current, b"same")).collect();
        assert!(entries.is_sorted_by(|a, b| a < b));
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read(bytes: Vec<u8>, legacy: bool) {
            let format = if legacy { EntryFormat::Legacy } else { EntryFormat::Current };
            let entry = pack(format, &bytes);
            prop_assert_eq!(payload(&entry), Some(&bytes[..]));
            let overhead = if legacy { 16 } else { HEADER };
            prop_assert_eq!(entry.len(), bytes.len() + overhead);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Some(payload) = payload(&bytes) {
                prop_assert!(payload.len() + 9 <= bytes.len());
            }
        }

        #[test]
        fn ids_of_every_length_are_read(id in proptest::collection::vec(any::<u8>(), 0..=255), bytes: Vec<u8>) {
            let mut entry = vec![id.len() as u8];
            entry.extend(&id);
            entry.extend((bytes.len() as u64).to_le_bytes());
            entry.extend(&bytes);
            prop_assert_eq!(payload(&entry), Some(&bytes[..]));
        }
    }
}
