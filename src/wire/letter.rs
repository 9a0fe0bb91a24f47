//! The content of a dead letter, as the scripts write it: an array in MessagePack. Pure.

use std::fmt;

use bytes::Bytes;
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::job::JobData;

/// Why a message is dead. `Display` and serde have the word that `redelay` the command prints.
///
/// # Examples
/// ```
/// use redelay::admin::DeadReason;
///
/// fn advice(reason: &DeadReason) -> &str {
///     match reason {
///         DeadReason::Lost => "does its handler kill the process?",
///         _ => "see its error",
///     }
/// }
/// # assert_eq!(DeadReason::Lost.to_string(), "lost");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadReason {
    /// `attempts`: it failed too often.
    Attempts,
    /// `lost`: its lease ended too often.
    Lost,
    /// `rejected`: its handler has rejected it.
    Rejected,
    /// `undecodable`: its receiver could not decode the payload.
    Undecodable,
    /// `expired`: no receiver began it before its expiry.
    Expired,
    /// The word of a newer version of redelay.
    Other(String),
}

impl DeadReason {
    pub(crate) fn read(word: &[u8]) -> Self {
        match word {
            b"attempts" => Self::Attempts,
            b"lost" => Self::Lost,
            b"rejected" => Self::Rejected,
            b"undecodable" => Self::Undecodable,
            b"expired" => Self::Expired,
            other => Self::Other(String::from_utf8_lossy(other).into_owned()),
        }
    }

    /// The word.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(redelay::admin::DeadReason::Attempts.as_str(), "attempts");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Attempts => "attempts",
            Self::Lost => "lost",
            Self::Rejected => "rejected",
            Self::Undecodable => "undecodable",
            Self::Expired => "expired",
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for DeadReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The content of a dead letter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) reason: DeadReason,
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
            reason: DeadReason::read(&reason.0),
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

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            reason: DeadReason::Attempts,
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
    fn the_words_of_the_reasons_are_read_as_they_are_written() {
        for word in ["attempts", "lost", "rejected", "undecodable", "expired"] {
            let reason = DeadReason::read(word.as_bytes());
            assert_eq!(reason.as_str(), word);
            assert!(!matches!(reason, DeadReason::Other(_)), "{word}");
        }
        assert_eq!(DeadReason::read(b"later"), DeadReason::Other("later".into()));
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
