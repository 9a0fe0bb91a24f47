//! Payloads of strangers. `REDELAY_SOAK` runs all of two millions of them, and else it is an eightieth.

use redisson_codec::detect::{self, Detector, Kind, Reason};

use super::*;

fn payloads() -> usize {
    if std::env::var_os("REDELAY_SOAK").is_some() { 2_000_000 } else { 25_000 }
}

/// Everything that is done with a payload.
fn all_of(payload: &[u8], detector: &mut Detector) {
    let candidates = detect::candidates(payload);
    assert!(candidates.iter().any(|found| found.format == Format::Plain(Kind::Bytes)));
    assert!(candidates.is_sorted_by(|a, b| a.reason >= b.reason));
    for candidate in candidates {
        let json = candidate.format.to_json(payload);
        let json =
            json.unwrap_or_else(|error| panic!("{}: {error}: {}", candidate.format, payload.escape_ascii()));
        let read: Result<serde_json::Value, _> = serde_json::from_str(&json);
        assert!(read.is_ok(), "{}: {json}: {}", candidate.format, payload.escape_ascii());
        if let Some(described) = candidate.format.describe(payload) {
            assert!(!described.to_string().contains(char::is_control));
        }
    }
    detector.add(payload);
}

/// A payload with some bytes changed, cut or put in.
fn damaged(payload: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut payload = payload.to_vec();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..payload.len() + 1);
        match random.u8(..5) {
            0 if at < payload.len() => payload[at] = random.u8(..),
            1 if at < payload.len() => payload[at] ^= 1 << random.u8(..8),
            2 => payload.truncate(at),
            3 => payload.insert(at, random.u8(..)),
            _ => {
                let part = payload[at..].to_vec();
                payload.extend(&part[..part.len().min(random.usize(..20))]);
            }
        }
    }
    payload
}

fn random_bytes(length: usize, random: &mut fastrand::Rng) -> Vec<u8> {
    (0..length).map(|_| random.u8(..)).collect()
}

#[test]
fn random_and_damaged_payloads() {
    let mut random = fastrand::Rng::with_seed(3_131);
    let rows: Vec<_> =
        all_rows().into_iter().map(|(_, row)| row.payload).filter(|payload| payload.len() < 2000).collect();
    let mut detector = Detector::new();
    for number in 0..payloads() {
        let payload = match number % 4 {
            0 => random_bytes(random.usize(..64), &mut random),
            _ => damaged(&rows[random.usize(..rows.len())], &mut random),
        };
        all_of(&payload, &mut detector);
        if number % 1000 == 999 {
            let verdicts = detector.verdicts();
            assert_eq!(verdicts.iter().map(|verdict| verdict.payloads).sum::<usize>(), 1000);
            detector = Detector::new();
        }
    }
}

/// How often random bytes are taken for something.
#[test]
fn false_alarms() {
    const EACH: usize = 3000;
    let mut random = fastrand::Rng::with_seed(31);
    // In a thousand.
    for (length, most) in [(4, 70), (8, 30), (16, 15), (64, 2), (256, 2)] {
        let is_alarm = |payload: Vec<u8>| detect::candidates(&payload)[0].reason > Reason::Weak;
        let alarms = (0..EACH).filter(|_| is_alarm(random_bytes(length, &mut random))).count();
        println!("{length:>4} bytes: {alarms} of {EACH}");
        assert!(alarms * 1000 <= most * EACH, "{length} bytes: {alarms} of {EACH}");
    }
}

/// What takes long to read takes no longer here.
#[test]
fn long_payloads() {
    let mut detector = Detector::new();
    for piece in [
        &b"t"[..],
        b"\x3e\xff",
        b"a",
        b"[",
        b"{\"a\":",
        b"\x91",
        b"\x9f",
        b"\x81",
        b"\0",
        b"9",
        b"\x01\x00A",
        b"\x85",
    ] {
        for front in [&b""[..], b"\xac\xed\x00\x05", b"\x04\x04", b":)\n\x01", b"\x01\x00com.acme.\xc1", b"["]
        {
            let payload = [front, &piece.repeat(200_000 / piece.len())].concat();
            all_of(&payload, &mut detector);
        }
    }
}
