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
}

/// The flag of a job that holds its id.
pub(crate) const HOLDS: u8 = 1;

impl JobData {
    /// `None` for what another program wrote.
    pub(crate) fn parse(bytes: &Bytes) -> Option<Self> {
        let id_end = 7 + usize::from(*bytes.get(6)?);
        let number = |from: usize| {
            let digits = bytes.get(from..from + 6)?;
            Some(digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        };
        let flags = *bytes.get(id_end)?;
        number(id_end + 7)?; // when it expires
        Some(Self {
            id: bytes.slice(7..id_end),
            holds: flags & HOLDS != 0,
            due: number(0)?,
            offered: number(id_end + 1)?,
        })
    }
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
        bytes.extend(b"abc\x01\0\0\0\0\0\x09\0\0\0\0\0\0headers");
        let bytes = Bytes::from(bytes);
        let data = JobData { id: Bytes::from_static(b"abc"), holds: true, due: 258, offered: 9 };
        assert_eq!(JobData::parse(&bytes), Some(data));
        for len in 0..23 {
            assert_eq!(JobData::parse(&bytes.slice(..len)), None, "{len}");
        }
    }
}
