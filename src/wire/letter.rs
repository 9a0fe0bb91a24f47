//! The content of a dead letter, as the scripts write it: an array in MessagePack. Pure.

use bytes::Bytes;
use serde::Deserialize;

use super::job::JobData;
use serde::de::{Deserializer, Visitor};

/// The content of a dead letter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) reason: String,
    pub(crate) error: String,
    pub(crate) failed: u32,
    pub(crate) lost: u32,
    /// Epoch ms.
    pub(crate) first: u64,
    pub(crate) died: u64,
    pub(crate) payload: Bytes,
    /// What travels with it, if it is a job.
    pub(crate) job: Option<JobData>,
}

impl Letter {
    /// `None` for what another program wrote.
    pub(crate) fn parse(content: &[u8]) -> Option<Self> {
        type Parts = (Raw, Raw, f64, f64, f64, f64, f64, Raw);
        type PartsOfJob = (Raw, Raw, f64, f64, f64, f64, f64, Raw, Raw);
        let (parts, data): (Parts, _) = match rmp_serde::from_slice::<PartsOfJob>(content) {
            Ok((reason, error, failed, lost, first, died, delivery, payload, data)) => {
                ((reason, error, failed, lost, first, died, delivery, payload), Some(data))
            }
            Err(_) => (rmp_serde::from_slice(content).ok()?, None),
        };
        let (reason, error, failed, lost, first, died, _delivery, payload) = parts;
        let text = |raw: Raw| String::from_utf8_lossy(&raw.0).into_owned();
        Some(Self {
            reason: text(reason),
            error: text(error),
            failed: failed as u32,
            lost: lost as u32,
            first: first as u64,
            died: died as u64,
            payload: payload.0.into(),
            job: data.and_then(|data| JobData::parse(&data.0.into())),
        })
    }
}

/// A string of Lua: any bytes, which MessagePack has as text.
pub(super) struct Raw(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyBytes;

        impl Visitor<'_> for AnyBytes {
            type Value = Raw;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Raw, E> {
                Ok(Raw(bytes.to_vec()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
                Ok(Raw(text.as_bytes().to_vec()))
            }
        }

        deserializer.deserialize_bytes(AnyBytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `cmsgpack.pack({'attempts', 'no', 2, 1, 1795249257299, 1795249257300, 3, '\xff\x00'})` gives.
    fn content() -> Vec<u8> {
        let mut content = vec![0x98, 0xa8];
        content.extend(b"attempts\xa2no\x02\x01");
        for time in [1_795_249_257_299_u64, 1_795_249_257_300] {
            content.push(0xcf);
            content.extend(time.to_be_bytes());
        }
        content.extend([3, 0xa2, 0xff, 0]);
        content
    }

    #[test]
    fn a_letter_is_read() {
        let letter = Letter::parse(&content()).unwrap();
        let expected = Letter {
            reason: "attempts".into(),
            error: "no".into(),
            failed: 2,
            lost: 1,
            first: 1_795_249_257_299,
            died: 1_795_249_257_300,
            payload: Bytes::from_static(b"\xff\0"),
            job: None,
        };
        assert_eq!(letter, expected);
    }

    #[test]
    fn what_is_no_letter_is_refused() {
        let content = content();
        for length in 0..content.len() {
            assert_eq!(Letter::parse(&content[..length]), None, "{length}");
        }
        for junk in [&b"junk"[..], &[0x91, 1], &[0x98, 1, 2, 3, 4, 5, 6, 7, 8]] {
            assert_eq!(Letter::parse(junk), None);
        }
    }
}
