//! Shared by the tests of payloads that Redisson did not write: 25,000 a decoder, always the same.
//! `REDELAY_FUZZ=2000000` sets the number of payloads, which are then random ones. `REDELAY_SEED` makes those
//! of a seed.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Codec;

/// A payload that decodes is encoded to one that decodes to the same value, unless Java could not write it.
pub(crate) fn survives<T: Serialize + DeserializeOwned + 'static>(codec: &impl Codec<T>, payload: &[u8]) {
    match codec.decode(payload) {
        Ok(value) => {
            let Ok(again) = codec.encode(&value) else { return };
            let value = codec
                .decode(&again)
                .unwrap_or_else(|error| panic!("{error}: {payload:02x?} as {again:02x?}"));
            assert_eq!(codec.encode(&value).unwrap(), again, "{payload:02x?}");
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.len() <= 1024, "{} bytes: {error}: {payload:02x?}", error.len());
            assert!(error.contains("offset "), "{error}: {payload:02x?}");
        }
    }
}

/// How many payloads, and of which seed.
pub(crate) fn fuzz(count: u64) -> (u64, fastrand::Rng) {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let fuzz = number("REDELAY_FUZZ");
    let usual = if fuzz.is_some() { fastrand::u64(..) } else { 1 };
    let seed = number("REDELAY_SEED").unwrap_or(usual);
    println!("REDELAY_SEED={seed}");
    (fuzz.unwrap_or(count), fastrand::Rng::with_seed(seed))
}

/// Tries payloads made of pieces of real ones, with meaningful bytes in between. Each is tried as one of the
/// types, in turn.
pub(crate) fn made_up(payloads: &[Vec<u8>], meaning: &[u8], types: &[fn(&[u8])]) {
    let (count, mut random) = fuzz(25_000);
    for survive in types.iter().cycle().take(count as usize) {
        survive(&changed(payloads, meaning, &mut random));
    }
}

/// One of them, changed in several places.
pub(crate) fn changed(payloads: &[Vec<u8>], meaning: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut payload = payloads[random.usize(..payloads.len())].clone();
    for _ in 0..random.usize(1..5) {
        let at = random.usize(..=payload.len());
        match random.u8(..6) {
            0 if at < payload.len() => payload[at] = random.u8(..),
            1 if at < payload.len() => payload[at] = *random.choice(meaning).unwrap(),
            2 => drop(payload.drain(at..(at + random.usize(..8)).min(payload.len()))),
            3 => payload.truncate(at),
            4 => {
                let other = &payloads[random.usize(..payloads.len())];
                let from = random.usize(..other.len());
                let to = (from + random.usize(..32)).min(other.len());
                payload.splice(at..at, other[from..to].iter().copied());
            }
            _ => payload.splice(at..at, (0..random.usize(..4)).map(|_| random.u8(..))).for_each(drop),
        }
    }
    payload
}
