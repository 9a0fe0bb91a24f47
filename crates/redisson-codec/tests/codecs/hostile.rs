//! Shared by the tests of payloads that Redisson did not write. `REDELAY_FUZZ=5000000` sets the number of
//! payloads, which are then random ones. Without it they are always the same. `REDELAY_SEED` makes those of a seed.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Codec;

/// A payload that decodes is encoded to one that decodes to the same value, unless Java could not write it.
pub(crate) fn survives<T: Serialize + DeserializeOwned + 'static>(codec: &impl Codec<T>, payload: &[u8]) {
    // An error is fine.
    if let Ok(value) = codec.decode(payload) {
        let Ok(again) = codec.encode(&value) else { return };
        let value =
            codec.decode(&again).unwrap_or_else(|error| panic!("{error}: {payload:02x?} as {again:02x?}"));
        assert_eq!(codec.encode(&value).unwrap(), again, "{payload:02x?}");
    }
}

/// Tries payloads made of pieces of real ones, with meaningful bytes in between.
pub(crate) fn made_up(payloads: &[Vec<u8>], count: usize, meaning: &[u8], survive: impl Fn(&[u8])) {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let fuzz = number("REDELAY_FUZZ");
    let usual = if fuzz.is_some() { fastrand::u64(..) } else { 1 };
    let (count, seed) = (fuzz.unwrap_or(count as u64), number("REDELAY_SEED").unwrap_or(usual));
    println!("REDELAY_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..count {
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
        survive(&payload);
    }
}
