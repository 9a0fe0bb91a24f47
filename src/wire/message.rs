//! Messages that receivers claimed, as they are on the server: records, and the members of the set of leases.

use std::fmt;

use bytes::Bytes;
use serde::{Serialize, Serializer};

use super::job::JobData;

/// The id of a message. It is the same for all deliveries of the message, so it is the key that makes a
/// handler idempotent. Ids sort by the time of the first delivery. The text has 32 hexadecimal digits; serde
/// writes and reads that text.
///
/// # Examples
/// ```
/// use redelay::receiver::MessageId;
///
/// let id: MessageId = "0199a0b1c2d37e4f8a9b0c1d2e3f0001".parse()?;
/// assert_eq!(id.to_string(), "0199a0b1c2d37e4f8a9b0c1d2e3f0001");
/// # Ok::<(), redelay::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub(crate) [u8; 16]);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId({self})")
    }
}

/// The text of [`Display`](fmt::Display).
impl Serialize for MessageId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl MessageId {
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.0)
    }
}

/// The bytes of a record before the payload.
const HEADER: usize = 24;
/// The version of the record of a message without data of a job.
const WITHOUT_DATA: u8 = 1;
/// That of one with such data: behind the header, the last claim, two lengths, the data, the last error.
const WITH_DATA: u8 = 2;

/// One delivery of a message, as the set of leases names it. A later delivery has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Member(pub(crate) [u8; 20]);

impl Member {
    pub(crate) fn new(id: MessageId, delivery: u32) -> Self {
        let mut bytes = [0; 20];
        bytes[..16].copy_from_slice(&id.0);
        bytes[16..].copy_from_slice(&delivery.to_be_bytes());
        Self(bytes)
    }

    pub(crate) fn id(&self) -> MessageId {
        let mut id = [0; 16];
        id.copy_from_slice(&self.0[..16]);
        MessageId(id)
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.0)
    }
}

/// What the server keeps of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Counts the deliveries, also those that no program got.
    pub(crate) delivery: u32,
    /// Deliveries that failed.
    pub(crate) failed: u16,
    /// Deliveries whose lease ended.
    pub(crate) lost: u16,
    /// When it was claimed for the first time, epoch ms.
    pub(crate) first: u64,
    /// What travels with it, if it is a job.
    pub(crate) job: Option<JobData>,
    pub(crate) payload: Bytes,
}

impl Record {
    /// `None` if these bytes are no record of these versions.
    pub(crate) fn parse(bytes: &Bytes) -> Option<Self> {
        let header = bytes.get(..HEADER)?;
        let (job, payload) = match header[0] {
            WITHOUT_DATA => (None, bytes.slice(HEADER..)),
            WITH_DATA => {
                let length = |at: usize| {
                    let length = bytes.get(at..at + 2)?;
                    Some(usize::from(u16::from_be_bytes([length[0], length[1]])))
                };
                let data_end = HEADER + 10 + length(HEADER + 6)?;
                let error_end = data_end + length(HEADER + 8)?;
                bytes.get(..error_end)?;
                (JobData::parse(&bytes.slice(HEADER + 10..data_end)), bytes.slice(error_end..))
            }
            _ => return None,
        };
        let number = |from: usize, to: usize| {
            header[from..to].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        Some(Self {
            delivery: u32::try_from(number(1, 5)).ok()?,
            failed: u16::try_from(number(5, 7)).ok()?,
            lost: u16::try_from(number(7, 9)).ok()?,
            first: number(18, 24),
            job,
            payload,
        })
    }
}

/// What becomes of messages that failed too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadMode {
    Keep,
    Send,
    Discard,
}

/// The settings of a receiver that stay with each message it claims, so that others treat the message alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// A message that has failed this often is a dead letter.
    pub(crate) attempts: u16,
    /// A message whose leases have ended this often is a dead letter.
    pub(crate) losses: u16,
    pub(crate) lease_ms: u32,
    pub(crate) dead: DeadMode,
}

impl Policy {
    pub(crate) fn bytes(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(9);
        bytes.extend(self.attempts.to_be_bytes());
        bytes.extend(self.losses.to_be_bytes());
        bytes.extend(self.lease_ms.to_be_bytes());
        bytes.push(match self.dead {
            DeadMode::Keep => b'k',
            DeadMode::Send => b's',
            DeadMode::Discard => b'd',
        });
        bytes.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_the_scripts_write_it() {
        let policy = Policy { attempts: 10, losses: 5, lease_ms: 30_000, dead: DeadMode::Keep };
        let mut bytes = vec![1, 0, 0, 1, 2, 0, 3, 0, 4];
        bytes.extend(policy.bytes());
        bytes.extend(&1_700_000_000_123_u64.to_be_bytes()[2..]);
        bytes.extend(b"payload");
        let bytes = Bytes::from(bytes);
        let record = Record::parse(&bytes).unwrap();
        let payload = Bytes::from_static(b"payload");
        let (delivery, failed, lost, first) = (258, 3, 4, 1_700_000_000_123);
        let expected = Record { delivery, failed, lost, first, job: None, payload };
        assert_eq!(record, expected);
        for len in 0..HEADER {
            assert_eq!(Record::parse(&bytes.slice(..len)), None);
        }
        assert_eq!(Record::parse(&Bytes::from(vec![3; 40])), None, "a later version");
        // That of a job.
        let mut data = vec![0, 0, 0, 0, 0, 7, 1];
        data.extend(b"j\x01\0\0\0\0\0\x05\0\0\0\0\0\0");
        let mut with_data = bytes[..HEADER].to_vec();
        with_data[0] = 2;
        with_data.extend([0, 0, 0, 0, 0, 6, 0, data.len() as u8, 0, 2]);
        with_data.extend(&data);
        with_data.extend(b"nopayload");
        let with_data = Bytes::from(with_data);
        let read = Record::parse(&with_data).unwrap();
        let job = read.job.as_ref().unwrap();
        assert_eq!((&job.id[..], job.holds, job.due, job.offered), (&b"j"[..], true, 7, 5));
        assert_eq!(read, Record { job: read.job.clone(), ..expected });
        for len in 0..with_data.len() - 7 {
            assert_eq!(Record::parse(&with_data.slice(..len)), None, "{len}");
        }
    }

    #[test]
    fn a_member_is_the_id_and_the_number_of_the_delivery() {
        let member = Member::new(MessageId([7; 16]), 258);
        assert_eq!(member.0[16..], [0, 0, 1, 2]);
        assert_eq!(member.id(), MessageId([7; 16]));
    }
}
