//! The copy of what a pop took, as the scripts write it: an array in MessagePack. Pure.

use bytes::Bytes;

use super::letter::Raw;

/// What a pop took.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) kind: Bytes,
    /// Epoch ms.
    pub(crate) popped_at: u64,
    /// Payloads, or of a poll, entries and their scores.
    pub(crate) popped: Vec<Bytes>,
}

impl Claim {
    /// `None` for what no pop has written, as `parts/stored_claim.lua` has it.
    pub(crate) fn parse(copy: &[u8]) -> Option<Self> {
        let (kind, popped_at, popped): (Raw, f64, Vec<Raw>) = rmp_serde::from_slice(copy).ok()?;
        let popped: Vec<Bytes> = popped.into_iter().map(|element| element.0.into()).collect();
        let is_score = |score: &Bytes| {
            score.is_empty() || std::str::from_utf8(score).is_ok_and(|score| score.parse::<f64>().is_ok())
        };
        let is_poll = match &kind.0[..] {
            b"poll" => true,
            b"LPOP" | b"RPOP" => false,
            // Of a later version.
            _ => return None,
        };
        let has_scores = popped.len().is_multiple_of(2) && popped.iter().skip(1).step_by(2).all(is_score);
        (!is_poll || has_scores).then(|| Self { kind: kind.0.into(), popped_at: popped_at as u64, popped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `cmsgpack.pack({'poll', 1795249257299, {'\xff\x00', '7'}})` gives.
    const POLL: &[u8] = b"\x93\xa4poll\xcf\0\0\x01\xa1\xfd\xc4\x1f\x53\x92\xa2\xff\0\xa17";

    #[test]
    fn a_claim_is_read() {
        let claim = Claim::parse(POLL).unwrap();
        let popped = [&b"\xff\0"[..], b"7"].map(Bytes::from_static).to_vec();
        let popped_at = u64::from_be_bytes(*b"\0\0\x01\xa1\xfd\xc4\x1f\x53");
        assert_eq!(claim, Claim { kind: "poll".into(), popped_at, popped });
    }

    #[test]
    fn what_is_no_claim_is_refused() {
        for length in 0..POLL.len() {
            assert_eq!(Claim::parse(&POLL[..length]), None, "{length}");
        }
        for junk in [
            &b"junk"[..],
            b"\x91\xa4poll",
            b"\x93\xa4poll\x01\x92\xa1x\xa1x",
            b"\x93\xa4poll\x01\x91\xa1x",
            b"\x93\x01\x01\x91\xa1x",
            b"\x93\xa4LPOP\x01\x91\x07",
            b"\x93\xa4XPOP\x01\x91\xa1x",
            b"\x94\xa4LPOP\x01\x91\xa1x\x01",
        ] {
            assert_eq!(Claim::parse(junk), None, "{junk:?}");
        }
        assert!(Claim::parse(b"\x93\xa4LPOP\x01\x91\xa1x").is_some());
        assert!(Claim::parse(b"\x93\xa4poll\x01\x92\xa1x\xa0").is_some());
    }
}
