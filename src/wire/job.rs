//! What travels with a job, as the scripts store it.

use bytes::Bytes;
use serde::{Serialize, Serializer};

/// What travels with a job from its offer to the handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobData {
    pub(crate) id: Bytes,
    /// Whether the job holds its id until it is done.
    pub(crate) holds: bool,
    /// When it was due, epoch ms.
    pub(crate) due: u64,
    /// When it was offered, epoch ms.
    pub(crate) offered: u64,
    headers: Bytes,
}

/// The header of the trace that an offer belongs to.
pub(crate) const TRACEPARENT: &str = "traceparent";
/// The flag of a job that holds its id.
pub(crate) const HOLDS: u8 = 1;
/// The flag of a job that is discarded if it expires.
pub(crate) const DISCARDED: u8 = 2;

impl JobData {
    /// `None` for what another program wrote.
    pub(crate) fn parse(bytes: &Bytes) -> Option<Self> {
        let id_end = 7 + usize::from(*bytes.get(6)?);
        let number = |from: usize| {
            let digits = bytes.get(from..from + 6)?;
            Some(digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        };
        let flags = *bytes.get(id_end)?;
        let headers = bytes.slice_ref(bytes.get(id_end + 13..)?); // behind the time when it expires
        Some(Self {
            id: bytes.slice(7..id_end),
            holds: flags & HOLDS != 0,
            due: number(0)?,
            offered: number(id_end + 1)?,
            headers,
        })
    }

    /// Names and values, in the order of the offer; up to what another program wrote.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = &self.headers[..];
        std::iter::from_fn(move || {
            let (name, behind) = text(rest.get(1..)?, usize::from(*rest.first()?))?;
            let (length, behind) = behind.split_first_chunk()?;
            let (value, behind) = text(behind, usize::from(u16::from_be_bytes(*length)))?;
            rest = behind;
            Some((name, value))
        })
    }
}

impl JobData {
    /// The value of the header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(other, _)| *other == name).map(|(_, value)| value)
    }
}

fn text(bytes: &[u8], length: usize) -> Option<(&str, &[u8])> {
    let (text, behind) = bytes.split_at_checked(length)?;
    Some((std::str::from_utf8(text).ok()?, behind))
}

/// Appends a header: the length of its name (1 byte), the name, the length of the value (2, big-endian), the
/// value. What is longer than that is for the caller to refuse.
pub(crate) fn put_header(bytes: &mut Vec<u8>, name: &str, value: &str) {
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value.as_bytes());
}

/// The id that a job holds, if it does.
pub(crate) fn held_id(job: &Option<JobData>) -> Option<Bytes> {
    job.as_ref().filter(|job| job.holds).map(|job| job.id.clone())
}

/// Serializes the id of a job as text.
pub(crate) fn id_as_text<S: Serializer>(id: &Option<Bytes>, serializer: S) -> Result<S::Ok, S::Error> {
    id.as_ref().map(|id| String::from_utf8_lossy(id)).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_the_scripts_write_it() {
        let mut bytes = vec![0, 0, 0, 0, 1, 2, 3];
        bytes.extend(b"abc\x01\0\0\0\0\0\x09\0\0\0\0\0\0");
        let mut headers = Vec::new();
        put_header(&mut headers, "traceparent", "00-ä");
        put_header(&mut headers, "b", "");
        bytes.extend(&headers);
        let bytes = Bytes::from(bytes);
        let headers = Bytes::from(headers);
        let data = JobData { id: Bytes::from_static(b"abc"), holds: true, due: 258, offered: 9, headers };
        assert_eq!(data.headers().collect::<Vec<_>>(), [("traceparent", "00-ä"), ("b", "")]);
        for len in 0..data.headers.len() {
            let cut = JobData { headers: data.headers.slice(..len), ..data.clone() };
            assert!(cut.headers().count() < 2, "{len}");
        }
        assert_eq!(JobData::parse(&bytes), Some(data));
        for len in 0..23 {
            assert_eq!(JobData::parse(&bytes.slice(..len)), None, "{len}");
        }
    }
}
