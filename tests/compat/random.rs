//! Random values of the classes of `compat/values/src/zoo.rs`, as the JSON of the peers' lines.

use base64::prelude::*;
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// A value of one of the classes, or of none.
pub(crate) fn value(random: &mut Rng) -> Value {
    match random.u8(0..8) {
        0 => order(random),
        1 => refund(random),
        2 => envelope(random),
        3 => ledger(random),
        4 => nested(random),
        5 => boxes(random),
        6 => json!({"@class": "lab.Small", "a": int(random), "b": maybe(random, text)}),
        _ => any(random, 3),
    }
}

/// A text of any length that has its own encoding, with every kind of character.
pub(crate) fn text(random: &mut Rng) -> Value {
    let length = match random.u8(0..40) {
        0 => random.usize(3900..4100),
        1 => random.usize(0..20_000),
        2..8 => random.usize(20..300),
        _ => random.usize(0..12),
    };
    let kinds = random.u8(1..=4);
    let text: String = (0..length)
        .map(|_| match random.u8(0..kinds) {
            0 => random.char('a'..='z'),
            1 => random.char('\0'..='\u{ff}'),
            2 => random.char('\u{100}'..='\u{ffff}'),
            _ => random.char('\u{10000}'..='\u{10ffff}'),
        })
        .collect();
    text.into()
}

fn maybe(random: &mut Rng, value: impl FnOnce(&mut Rng) -> Value) -> Value {
    if random.u8(0..4) == 0 { Value::Null } else { value(random) }
}

fn int(random: &mut Rng) -> Value {
    (random.i32(..) >> random.u8(0..32)).into()
}

fn long(random: &mut Rng) -> Value {
    (random.i64(..) >> random.u8(0..64)).into()
}

fn double(random: &mut Rng) -> Value {
    match random.u8(0..4) {
        0 => (f64::from(random.i32(-1000..1000)) / 8.0).into(),
        _ => {
            let double = f64::from_bits(random.u64(..));
            (if double.is_finite() { double } else { 0.5 }).into()
        }
    }
}

/// A number that prints alike as a float and as a double.
fn float(random: &mut Rng) -> Value {
    (f64::from(random.i32(-100_000..100_000)) / 8.0).into()
}

fn character(random: &mut Rng) -> Value {
    random.char(' '..='\u{ffff}').to_string().into()
}

fn list(random: &mut Rng, mut element: impl FnMut(&mut Rng) -> Value) -> Value {
    (0..random.usize(0..5)).map(|_| element(random)).collect()
}

/// A map without nulls, which Jackson leaves out.
fn map(random: &mut Rng, mut value: impl FnMut(&mut Rng) -> Value) -> Value {
    let mut entries = Map::new();
    for _ in 0..random.usize(0..5) {
        let Value::String(key) = text(random) else { continue };
        // The name of the class property must not be a key.
        entries.insert(key.replace('@', ""), value(random));
    }
    entries.into()
}

fn any(random: &mut Rng, depth: u8) -> Value {
    match random.u8(0..if depth == 0 { 5 } else { 7 }) {
        0 => random.bool().into(),
        1 => int(random),
        2 => long(random),
        3 => double(random),
        4 => text(random),
        5 => list(random, |random| any(random, depth - 1)),
        _ => map(random, |random| any(random, depth - 1)),
    }
}

fn order(random: &mut Rng) -> Value {
    let statuses = ["NEW", "PAID", "SHIPPED", "CLOSED"];
    json!({
        "@class": "com.acme.Zoo$Order",
        "id": long(random), "customer": maybe(random, text), "items": int(random), "total": double(random),
        "paid": random.bool(), "couponId": maybe(random, long), "rank": maybe(random, int),
        "status": maybe(random, |random| statuses[random.usize(0..4)].into()),
        "address": maybe(random, |random| {
            json!({"street": maybe(random, text), "zip": int(random), "city": maybe(random, text)})
        }),
        "lines": maybe(random, |random| list(random, line)),
        "tags": maybe(random, |random| list(random, |random| maybe(random, text))),
        "counts": maybe(random, |random| map(random, int)),
        "blob": maybe(random, |random| {
            let bytes: Vec<u8> = (0..random.usize(0..9)).map(|_| random.u8(..)).collect();
            BASE64_STANDARD.encode(&bytes).into()
        }),
    })
}

fn line(random: &mut Rng) -> Value {
    json!({"sku": maybe(random, text), "quantity": int(random), "price": double(random)})
}

fn refund(random: &mut Rng) -> Value {
    json!({
        "@class": "com.acme.Zoo$RefundEvent",
        "kind": maybe(random, text), "at": long(random), "orderId": long(random), "reason": maybe(random, text),
        "attempt": random.i16(..), "ratio": float(random), "flag": random.i8(..), "mark": character(random),
    })
}

fn envelope(random: &mut Rng) -> Value {
    json!({
        "@class": "com.acme.Zoo$Envelope",
        "type": maybe(random, text),
        "data": maybe(random, |random| map(random, |random| any(random, 2))),
        "extra": maybe(random, |random| list(random, |random| any(random, 2))),
        "payload": maybe(random, |random| any(random, 2)),
    })
}

fn ledger(random: &mut Rng) -> Value {
    let hex: String = (0..32).map(|_| random.digit(16)).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    json!({
        "@class": "com.acme.Zoo$Ledger",
        // A number that fits into a double, because JSON lines are compared as doubles.
        "amount": maybe(random, float), "ref": parts.join("-"), "when": maybe(random, long),
        "big": maybe(random, long), "note": null,
    })
}

fn nested(random: &mut Rng) -> Value {
    json!({
        "@class": "com.acme.Zoo$Nested",
        "grid": maybe(random, |random| list(random, |random| list(random, text))),
        "groups": maybe(random, |random| map(random, |random| list(random, int))),
        "names": maybe(random, |random| Value::from(vec![format!("p{}", random.u32(..)), "q".into()])),
        "ints": maybe(random, |random| list(random, int)),
        "words": maybe(random, |random| list(random, |random| maybe(random, text))),
        "longs": maybe(random, |random| list(random, long)),
        "lines": maybe(random, |random| list(random, line)),
        "linked": maybe(random, |random| list(random, int)),
        "tree": maybe(random, |random| map(random, text)),
    })
}

fn boxes(random: &mut Rng) -> Value {
    json!({
        "@class": "com.acme.Zoo$Boxes",
        "i": maybe(random, int), "l": maybe(random, long), "d": maybe(random, double), "f": maybe(random, float),
        "b": maybe(random, |random| random.bool().into()), "s": maybe(random, |random| random.i16(..).into()),
        "y": maybe(random, |random| random.i8(..).into()), "c": maybe(random, character),
    })
}
