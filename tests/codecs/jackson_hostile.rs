//! Payloads that Redisson did not write, for the Jackson codecs and the compressions: changed, made up.
//! `REDELAY_FUZZ=5000000` tries so many more of them.

use codec::java::Value;
use codec::{CborJackson, JsonJackson, Lz4V2, MsgPackJackson, SnappyV2, ZStd};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::zoo::*;
use super::*;

/// What decodes is encoded to something that decodes to the same, unless Java could not write it.
fn survives<T: Serialize + DeserializeOwned + 'static>(codec: &impl Codec<T>, payload: &[u8]) {
    if let Ok(value) = codec.decode(payload) {
        let Ok(again) = codec.encode(&value) else { return };
        let value =
            codec.decode(&again).unwrap_or_else(|error| panic!("{error}: {payload:02x?} as {again:02x?}"));
        assert_eq!(codec.encode(&value).unwrap(), again, "{payload:02x?}");
    }
}

macro_rules! survive {
    ($codec:expr, $payload:expr) => {{
        let (codec, payload) = (&$codec, $payload);
        survives::<Value>(codec, payload);
        survives::<Order>(codec, payload);
        survives::<RefundEvent>(codec, payload);
        survives::<Envelope>(codec, payload);
        survives::<Ledger>(codec, payload);
        survives::<Nested>(codec, payload);
        survives::<Boxes>(codec, payload);
        survives::<Level>(codec, payload);
        survives::<Vec<Value>>(codec, payload);
    }};
}

fn payloads(file: &str) -> Vec<Vec<u8>> {
    // Short ones, since most of the longest is one text.
    rows(file).into_iter().map(|row| row.payload).filter(|payload| payload.len() < 800).collect()
}

/// Of pieces of real payloads, with bytes that mean something.
fn made_up(file: &str, meaning: &[u8], survive: impl Fn(&[u8])) {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let count = number("REDELAY_FUZZ").unwrap_or(10_000);
    let seed = number("REDELAY_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("REDELAY_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let payloads = payloads(file);
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

#[test]
fn made_up_json() {
    made_up("json-jackson", b"[]{},:\"\\0-.eEntf", |payload| survive!(JsonJackson, payload));
}

#[test]
fn made_up_cbor() {
    let meaning = [
        0x00, 0x20, 0x40, 0x5f, 0x60, 0x7f, 0x80, 0x82, 0x9f, 0xa0, 0xbf, 0xc2, 0xc3, 0xc4, 0xf6, 0xfb, 0xff,
    ];
    made_up("cbor-jackson", &meaning, |payload| survive!(CborJackson, payload));
}

#[test]
fn made_up_msgpack() {
    let meaning = [
        0x00, 0x80, 0x90, 0x92, 0xa0, 0xc0, 0xc1, 0xc4, 0xc7, 0xcb, 0xcf, 0xd3, 0xd9, 0xdc, 0xdd, 0xde, 0xdf,
    ];
    made_up("msgpack-jackson", &meaning, |payload| survive!(MsgPackJackson, payload));
}

#[test]
fn made_up_compressed() {
    const MEANING: [u8; 9] = [0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0xf0, 0xfe, 0xff];
    made_up("lz4v2-kryo5", &MEANING, |payload| survives::<Vec<u8>>(&Lz4V2(codec::Bytes), payload));
    made_up("snappyv2-kryo5", &MEANING, |payload| survives::<Vec<u8>>(&SnappyV2(codec::Bytes), payload));
    made_up("zstd-kryo5", &MEANING, |payload| survives::<Vec<u8>>(&ZStd(codec::Bytes), payload));
}
