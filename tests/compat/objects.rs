//! Random objects of every class of the zoo, written by one peer and read by the other, in both directions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Generates the JSON of the peers' lines.
pub(crate) struct Objects(pub(crate) fastrand::Rng);

const TEXTS: [&str; 9] = [
    "",
    "a",
    "hi",
    "order",
    "Zoë",
    "客户订单",
    "🚀 go",
    "tab\there",
    "quote\"s, and more than 32 bytes of ASCII",
];

impl Objects {
    fn text(&mut self) -> Value {
        match self.0.u8(..8) {
            0 => "x".repeat(self.0.usize(..200)).into(),
            1 => "ñ".repeat(self.0.usize(..100)).into(),
            _ => (*self.0.choice(&TEXTS).unwrap_or(&"")).into(),
        }
    }

    fn or_null(&mut self, value: impl FnOnce(&mut Self) -> Value) -> Value {
        if self.0.u8(..5) == 0 { Value::Null } else { value(self) }
    }

    fn list(&mut self, mut value: impl FnMut(&mut Self) -> Value) -> Value {
        (0..self.0.usize(..4)).map(|_| value(self)).collect()
    }

    fn map(&mut self, mut value: impl FnMut(&mut Self) -> Value) -> Value {
        let entries: BTreeMap<String, Value> =
            (0..self.0.usize(..4)).map(|at| (format!("{}{at}", TEXTS[at + 2]), value(self))).collect();
        serde_json::to_value(entries).expect("texts are keys")
    }

    fn double(&mut self) -> f64 {
        f64::from(self.0.i32(-1_000_000..1_000_000)) / 8.0
    }

    /// A value that plain JSON represents unambiguously: longs are beyond the range of an int.
    pub(crate) fn any(&mut self, depth: u8) -> Value {
        match self.0.u8(..if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => self.0.bool().into(),
            2 => self.0.i32(..).into(),
            3 => (self.0.i64(..) | 1 << 40).into(),
            4 => (self.double() + 0.0625).into(),
            5 => self.text(),
            6 => self.list(|objects| objects.any(depth - 1)),
            _ => self.map(|objects| objects.any(depth - 1)),
        }
    }

    fn line(&mut self) -> Value {
        json!({"sku": self.or_null(Self::text), "quantity": self.0.i32(..), "price": self.double()})
    }

    fn bytes(&mut self) -> Value {
        let four = ["", "AA==", "AQID", "//8=", "AQIDBAUGBwg="];
        (*self.0.choice(&four).unwrap_or(&"")).into()
    }

    fn decimal(&mut self) -> Value {
        // At most 15 digits, so that a double can distinguish them.
        (self.0.i64(-10_000_000_000_000..10_000_000_000_000) as f64 / 100.0).into()
    }

    pub(crate) fn object(&mut self) -> Value {
        match self.0.u8(..9) {
            0 => json!({
                "@class": "com.acme.Zoo$Order", "id": self.0.i64(..), "customer": self.or_null(Self::text),
                "items": self.0.i32(..), "total": self.double(), "paid": self.0.bool(),
                "couponId": self.or_null(|objects| objects.0.i64(..).into()),
                "rank": self.or_null(|objects| objects.0.i32(..).into()),
                "status": self.or_null(|objects| ["NEW", "PAID", "SHIPPED", "CLOSED"][objects.0.usize(..4)].into()),
                "address": self.or_null(|objects| json!({
                    "street": objects.or_null(Self::text), "zip": objects.0.i32(..), "city": objects.or_null(Self::text),
                })),
                "lines": self.or_null(|objects| objects.list(|objects| objects.or_null(Self::line))),
                "tags": self.or_null(|objects| objects.list(|objects| objects.or_null(Self::text))),
                "counts": self.or_null(|objects| objects.map(|objects| objects.or_null(|objects| objects.0.i32(..).into()))),
                "blob": self.or_null(Self::bytes),
            }),
            1 => json!({
                "@class": "com.acme.Zoo$RefundEvent", "kind": self.or_null(Self::text), "at": self.0.i64(..),
                "orderId": self.0.i64(..), "reason": self.or_null(Self::text), "attempt": self.0.i16(..),
                "ratio": f64::from(self.0.i16(..)) / 4.0, "flag": self.0.i8(..), "mark": (["a", "é", "客"][self.0.usize(..3)]),
            }),
            2 => json!({
                "@class": "com.acme.Zoo$Envelope", "type": self.or_null(Self::text),
                "data": self.or_null(|objects| objects.map(|objects| objects.any(2))),
                "extra": self.or_null(|objects| objects.list(|objects| objects.any(2))), "payload": self.any(3),
            }),
            3 => json!({
                "@class": "com.acme.Zoo$Ledger", "amount": self.or_null(Self::decimal),
                "ref": self.or_null(|objects| {
                    let [high, low] = [objects.0.u64(..), objects.0.u64(..)];
                    let hex = format!("{high:016x}{low:016x}");
                    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]).into()
                }),
                "when": self.or_null(|objects| objects.0.i64(-1 << 40..1 << 42).into()),
                "big": self.or_null(|objects| objects.0.i64(..).into()), "note": self.or_null(Self::text),
            }),
            4 => json!({
                "@class": "com.acme.Zoo$Nested",
                "grid": self.or_null(|objects| {
                    objects.list(|objects| objects.or_null(|objects| objects.list(|objects| objects.or_null(Self::text))))
                }),
                "groups": self.or_null(|objects| objects.map(|objects| objects.list(|objects| objects.0.i32(..).into()))),
                "names": Value::Null,
                "ints": self.or_null(|objects| objects.list(|objects| objects.0.i32(..).into())),
                "words": self.or_null(|objects| objects.list(|objects| objects.or_null(Self::text))),
                "longs": self.or_null(|objects| objects.list(|objects| objects.0.i64(..).into())),
                "lines": self.or_null(|objects| objects.list(|objects| objects.or_null(Self::line))),
                "linked": self.or_null(|objects| objects.list(|objects| objects.or_null(|objects| objects.0.i32(..).into()))),
                "tree": self.or_null(|objects| objects.map(|objects| objects.or_null(Self::text))),
            }),
            5 => json!({
                "@class": "com.acme.Zoo$Boxes", "i": self.or_null(|objects| objects.0.i32(..).into()),
                "l": self.or_null(|objects| objects.0.i64(..).into()), "d": self.or_null(|objects| objects.double().into()),
                "f": self.or_null(|objects| (f64::from(objects.0.i16(..)) / 8.0).into()),
                "b": self.or_null(|objects| objects.0.bool().into()),
                "s": self.or_null(|objects| objects.0.i16(..).into()), "y": self.or_null(|objects| objects.0.i8(..).into()),
                "c": self.or_null(|_| "Q".into()),
            }),
            6 => json!({
                "@class": "com.acme.Zoo$Point", "x": self.0.i32(..), "y": self.0.i32(..), "label": self.or_null(Self::text),
            }),
            7 => json!({"@class": "lab.Small", "a": self.0.i32(..), "b": self.or_null(Self::text)}),
            _ => loop {
                // A queue cannot contain null.
                let value = self.any(3);
                if !value.is_null() {
                    return value;
                }
            },
        }
    }
}
