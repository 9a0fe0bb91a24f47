//! `Cursor`: where a reading goes on. Pure.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use hmac_sha256::Hash;

use crate::error::Error;
use crate::wire::entry;

/// The most bytes of an entry in the text of a cursor, if it is malformed.
const PREFIX: usize = 32;

/// Where a page of an [`Inspector`](super::Inspector) ends. [`From`] gives it for each row, and the next page
/// begins behind it, although others take or offer meanwhile, and although the row itself has left.
///
/// Its text is short, without spaces, and safe in a command line: `1795615390307:order-8120` is the entry
/// with this due time and id. [`Display`](fmt::Display) writes it, and [`FromStr`] reads it; a text that none
/// has written is [`Invalid`](crate::ErrorKind::Invalid).
///
/// # Examples
/// ```no_run
/// # use redelay::inspector::{Inspector, Cursor};
/// # async fn example(inspector: Inspector) -> redelay::Result<()> {
/// let first = inspector.pending("orders", None, 100).await?;
/// let after = first.last().map(|entry| Cursor::from(entry).to_string());
/// // … later, in another process:
/// let after = after.map(|text| text.parse::<Cursor>()).transpose()?;
/// let second = inspector.pending("orders", after, 100).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(pub(super) Inner);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Inner {
    /// In a sorted set: a score as the server wrote it, and a member or how it begins.
    Score { score: Bytes, member: Bytes },
    /// In a list: how many elements were in front of it, and what it was.
    Index { index: usize, hash: u64 },
    /// In the order of names.
    Name(Bytes),
}

impl Cursor {
    pub(super) fn in_set(score: &Bytes, member: &Bytes) -> Self {
        Self(Inner::Score { score: score.clone(), member: member.clone() })
    }

    pub(super) fn in_list(index: usize, items: &[&Bytes]) -> Self {
        Self(Inner::Index { index, hash: hash_of(items.iter().map(|item| &item[..])) })
    }
}

/// What identifies an element of a list.
pub(super) fn hash_of<'a>(items: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hash = Hash::new();
    items.for_each(|item| hash.update(item));
    let hash = hash.finalize();
    u64::from_be_bytes(*hash.first_chunk().expect("a hash has 32 bytes"))
}

/// An id as text: as it is, or in hexadecimal digits behind `0x`. No two ids have the same text.
pub(super) struct Short<'a>(pub(super) &'a [u8]);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) if !text.starts_with("0x") && !text.chars().any(char::is_control) => f.write_str(text),
            _ => write_hex(f, self.0),
        }
    }
}

/// The same in a cursor: without spaces, and without what means something to a shell or in a cursor.
struct Word<'a>(&'a [u8]);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.@/+".contains(byte);
        if !self.0.is_empty() && self.0.iter().all(is_plain) && !self.0.starts_with(b"0x") {
            return f.write_str(&String::from_utf8_lossy(self.0));
        }
        write_hex(f, self.0)
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn bytes_of(short: &str) -> Option<Bytes> {
    let Some(digits) = short.strip_prefix("0x") else {
        return Some(Bytes::copy_from_slice(short.as_bytes()));
    };
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let is_whole = digits.is_ascii() && digits.len().is_multiple_of(2);
    is_whole.then(|| digits.as_bytes().chunks(2).map(pair).collect()).flatten()
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Score { score, member } => {
                let score = String::from_utf8_lossy(score);
                let prefix = match entry::parts(member) {
                    // Its first byte is the length of its id.
                    Some(entry::Parts { format: entry::EntryFormat::Current, id, .. }) => {
                        return write!(f, "{score}:{}", Word(id));
                    }
                    // The id, and the length: nothing of the payload.
                    Some(parts) => parts.id.len() + 8,
                    None => member.len().min(PREFIX),
                };
                write!(f, "{score}:={}", Word(&member[..prefix]))
            }
            Inner::Index { index, hash } => write!(f, "{index}:#{hash:016x}"),
            Inner::Name(name) => write!(f, ":{}", Word(name)),
        }
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = (|| {
            let (first, rest) = text.split_once(':')?;
            if first.is_empty() {
                return Some(Inner::Name(bytes_of(rest)?));
            }
            if let Some(hash) = rest.strip_prefix('#') {
                let hash = u64::from_str_radix(hash, 16).ok()?;
                return Some(Inner::Index { index: first.parse().ok()?, hash });
            }
            first.parse::<f64>().ok().filter(|score| !score.is_nan())?;
            let member = match rest.strip_prefix('=') {
                Some(prefix) => bytes_of(prefix)?,
                None => {
                    let id = bytes_of(rest)?;
                    [&[u8::try_from(id.len()).ok()?], &id[..]].concat().into()
                }
            };
            Some(Inner::Score { score: Bytes::copy_from_slice(first.as_bytes()), member })
        })();
        let wrong = || Error::invalid("read a cursor", "expected the text that Cursor's Display writes");
        parsed.map(Self).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cursors_are_short_text() {
        let score = |score: &'static str, member: &[u8]| {
            Cursor(Inner::Score { score: score.into(), member: Bytes::copy_from_slice(member) })
        };
        let job = entry::pack_job(b"order-8120", b"payload");
        assert_eq!(score("1795615390307", &job).to_string(), "1795615390307:order-8120");
        let foreign = entry::pack_job(&[0, 255], b"payload");
        assert_eq!(score("-5", &foreign).to_string(), "-5:0x00ff");
        assert_eq!(score("inf", b"junk").to_string(), "inf:=junk");
        let legacy = entry::pack(entry::EntryFormat::Legacy, b"payload of a legacy entry");
        let text = score("7", &legacy).to_string();
        assert_eq!(text.parse::<Cursor>().unwrap(), score("7", &legacy[..16]), "nothing of the payload");
        assert_eq!(Cursor(Inner::Index { index: 7, hash: 255 }).to_string(), "7:#00000000000000ff");
        assert_eq!(Cursor(Inner::Name("nightly".into())).to_string(), ":nightly");
        let Cursor(Inner::Score { score, member }) = "1795615390307:order-8120".parse().unwrap() else {
            panic!("another kind")
        };
        assert_eq!(score, "1795615390307");
        assert!(job.starts_with(&member) && member.len() == 11);
        for wrong in ["", "7", "x:y", "nan:y", "7:#x", "7:0xf", "7:=0xzz", "-1:#00"] {
            assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_text_unless_that_could_be_another_one() {
        for (id, text) in [
            (&b"order-8120"[..], "order-8120"),
            (b"order 8", "order 8"),
            ("Größe".as_bytes(), "Größe"),
            (b"\xff\x01", "0xff01"),
            (b"0xff01", "0x307866663031"),
            (b"line\nfeed", "0x6c696e650a66656564"),
            (b"", ""),
        ] {
            assert_eq!(Short(id).to_string(), text);
        }
        let job = entry::pack_job(b"order 8", b"payload");
        assert_eq!(Cursor(Inner::Score { score: "7".into(), member: job }).to_string(), "7:0x6f726465722038");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(index: usize, hash: u64, name: Vec<u8>) {
            for cursor in [Inner::Index { index, hash }, Inner::Name(name.into())].map(Cursor) {
                prop_assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
            }
        }

        #[test]
        fn the_text_of_an_entry_names_its_beginning(id in proptest::collection::vec(any::<u8>(), 1..=255)) {
            let member = entry::pack_job(&id, b"payload");
            let cursor = Cursor(Inner::Score { score: "7".into(), member: member.clone() });
            let text = cursor.to_string();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
            let Cursor(Inner::Score { member: read, .. }) = text.parse().unwrap() else { panic!("another kind") };
            prop_assert!(member.starts_with(&read));
        }
    }
}
