//! What a type writes where nothing declares its class: Redisson reads it, and what it writes then is the
//! same value.

use std::fmt::Debug;

use codec::java::{self, BigDecimal, BigInteger, Date, Uuid, Value};
use codec::{CborJackson, Json, JsonJackson, Kryo5, MsgPackJackson};
use fastrand::Rng;
use redelay::codec::{self, Codec};
use redelay_compat_values::vectors::rows;
use redelay_compat_values::zoo::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::peer::{Peer, java_codecs};
use crate::report;

/// With each codec, and what is refused here need not be read there.
pub(crate) struct Both {
    java: Peer,
    pub(crate) compared: usize,
    pub(crate) refused: usize,
}

impl Both {
    pub(crate) fn new(redisson: &str) -> Self {
        Self { java: java_codecs(redisson), compared: 0, refused: 0 }
    }

    pub(crate) fn one<T: Debug + PartialEq, C: Codec<T>>(&mut self, name: &str, codec: &C, value: &T) {
        let Ok(payload) = codec.encode(value) else {
            self.refused += 1;
            return;
        };
        let own = codec.decode(&payload).unwrap_or_else(|error| panic!("{name}: {error}: {value:?}"));
        assert_eq!(own, *value, "{name}: Rust reads what Rust wrote");
        let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
        let answer = self.java.ask(&[name, &hex]);
        let text = payload.escape_ascii();
        assert!(!answer.starts_with('!'), "{name}: Redisson does not read {text}: {answer}");
        let byte = |at| u8::from_str_radix(&answer[at..at + 2], 16).unwrap();
        let again: Vec<u8> = (0..answer.len()).step_by(2).map(byte).collect();
        let read = codec.decode(&again).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
        assert_eq!(read, *value, "{name}: Redisson reads {text}, and writes {}", again.escape_ascii());
        self.compared += 1;
    }

    pub(crate) fn each<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(&mut self, value: &T) {
        self.one("kryo5", &Kryo5, value);
        self.jackson(value);
    }

    pub(crate) fn jackson<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(
        &mut self,
        value: &T,
    ) {
        self.one("json-jackson", &JsonJackson, value);
        self.one("cbor-jackson", &CborJackson, value);
        self.one("msgpack-jackson", &MsgPackJackson, value);
    }
}

fn list<T>(random: &mut Rng, mut element: impl FnMut(&mut Rng) -> T) -> Vec<T> {
    (0..random.usize(0..4)).map(|_| element(random)).collect()
}

fn maybe<T>(random: &mut Rng, value: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    random.bool().then(|| value(random))
}

fn map<T>(random: &mut Rng, mut value: impl FnMut(&mut Rng) -> T) -> Entries<String, T> {
    // Of one entry, since a `HashMap` has an order of its own.
    Entries((0..random.usize(0..2)).map(|at| (format!("k{at}"), value(random))).collect())
}

fn text(random: &mut Rng) -> String {
    (0..random.usize(0..6))
        .map(|_| *random.choice(&['a', 'Z', '"', '\\', '\n', 'é', '🚀', '.', '[']).unwrap())
        .collect()
}

fn mixed(random: &mut Rng) -> Mixed {
    *random.choice(&[Mixed::A, Mixed::B, Mixed::C, Mixed::D]).unwrap()
}

/// In Java's order, and without doubles. Jackson cannot write an empty one.
fn mixed_set(random: &mut Rng, empty: bool) -> Vec<Mixed> {
    let mut set = list(random, mixed);
    if !empty {
        set.push(Mixed::B);
    }
    set.sort();
    set.dedup();
    set
}

/// Exact in MessagePack, too.
fn amount(random: &mut Rng) -> BigDecimal {
    BigDecimal::new(random.i64(-1000..1000), 0)
}

fn money(random: &mut Rng) -> Money {
    Money { amount: maybe(random, amount) }
}

fn tag(random: &mut Rng) -> Tag {
    Tag { name: maybe(random, text) }
}

fn mixes(random: &mut Rng, empty: bool) -> Mixes {
    Mixes {
        one: maybe(random, mixed),
        open: maybe(random, mixed),
        array: maybe(random, |random| list(random, |random| maybe(random, mixed))),
        list: maybe(random, |random| list(random, |random| maybe(random, mixed))),
        map: maybe(random, |random| map(random, |random| Some(mixed(random)))),
        set: maybe(random, |random| mixed_set(random, empty)),
        keys: maybe(random, |random| Entries(vec![(mixed(random), Some(random.i32(..)))])),
    }
}

fn loose<L, M>(
    random: &mut Rng,
    mut open: impl FnMut(&mut Rng) -> L,
    mut open_map: impl FnMut(&mut Rng) -> M,
) -> Loose<L, M> {
    Loose {
        open: maybe(random, |random| list(random, &mut open)),
        open_map: maybe(random, |random| map(random, &mut open_map)),
        prices: maybe(random, |random| list(random, money)),
        tags: maybe(random, |random| map(random, tag)),
        any: maybe(random, |random| list(random, |random| value(random, 2))),
    }
}

/// Any. Redisson reads a null in a map, but leaves it out when it writes the map again.
fn value(random: &mut Rng, depth: usize) -> Value {
    match random.u8(0..if depth == 0 { 11 } else { 14 }) {
        0 => Value::Null,
        1 => random.bool().into(),
        2 => random.i8(..).into(),
        3 => random.i16(..).into(),
        4 => random.i32(..).into(),
        5 => random.i64(..).into(),
        6 => Value::Double(f64::from(random.i32(..)) / 8.0),
        7 => text(random).into(),
        8 => Value::Bytes(list(random, |random| random.u8(..))),
        9 => Uuid::from_bytes(random.u128(..).to_be_bytes()).into(),
        10 => Date::from_millis(random.i64(-1 << 50..1 << 50)).into(),
        11 => Value::list(list(random, |random| value(random, depth - 1))),
        12 => match value(random, depth - 1) {
            Value::Null => Value::map::<Value>([]),
            value => Value::map([("k", value)]),
        },
        _ => {
            let elements = list(random, |random| value(random, depth - 1));
            Value::Array(Box::new(java::Array::new("[Ljava.lang.Object;", elements)))
        }
    }
}

/// Of one seed; `make soak` takes random ones.
#[test]
fn redisson_reads_what_nothing_declares() {
    let mut random = Rng::with_seed(redelay_support::seed());
    let random = &mut random;
    let mut both = Both::new("4.7.0");
    for _ in 0..150 {
        both.one("kryo5", &Kryo5, &mixes(random, true));
        both.jackson(&mixes(random, false));
        both.one("kryo5", &Kryo5, &java::enum_set::Of(mixed_set(random, true)));
        both.jackson(&java::enum_set::Of(mixed_set(random, false)));
        both.each(&list(random, |random| maybe(random, mixed)));
        both.each(&list(random, |random| maybe(random, money)));
        both.each(&list(random, tag));
        both.each(&list(random, |random| list(random, money)));
        both.each(&list(random, |random| map(random, tag)));
        both.each(&map(random, |random| list(random, tag)));
        both.each(&list(random, |random| maybe(random, |random| random.i16(..))));
        both.each(&list(random, |random| random.i8(..)));
        both.each(&list(random, |random| random.i64(..)));
        both.each(&list(random, |random| maybe(random, |random| random.f32())));
        both.each(&list(random, |random| random.f64()));
        both.each(&list(random, |_| Status::Shipped));
        both.each(&list(random, |_| Level::High));
        both.each(&list(random, |random| list(random, |random| random.u8(..))));
        both.each(&list(random, |random| java::array::Of(list(random, |random| random.i32(..)))));
        both.each(&list(random, |random| java::array::Of(list(random, tag))));
        both.each(&list(random, |random| java::uri::Of(format!("x:{}", random.u8(..)))));
        both.each(&map(random, |random| random.i16(..)));
        both.each(&loose(random, money, tag));
        both.each(&loose(random, |random| list(random, money), |random| list(random, tag)));
        both.each(&loose(random, |random| random.i16(..), |random| random.i64(..)));
        both.each(&Value::list([value(random, 4)]));
    }
    let Both { compared, refused, .. } = both;
    report(&format!("{compared} values came back from Redisson, {refused} were refused here"));
    assert!(compared > 10_000 && refused < compared / 10);
}

/// Each row is what Redisson makes of it again, so that the vectors say what it reads, too.
#[test]
fn redisson_reads_its_own_places() {
    let java = &mut java_codecs("4.7.0");
    for codec in ["kryo5", "json-jackson", "cbor-jackson", "msgpack-jackson"] {
        for row in rows(&format!("{codec}-places")) {
            let hex: String = row.payload.iter().map(|byte| format!("{byte:02x}")).collect();
            let answer = java.ask(&[codec, &hex]);
            // Nothing names the class of an array of records: what Redisson writes there, it does not read.
            let read = answer == hex || row.name == "array.money" && answer.starts_with('!');
            assert!(read, "{codec} {}: {answer}", row.name);
        }
    }
}

/// Redisson reads the texts, and writes the numbers.
#[test]
fn amounts_are_exact_both_ways() {
    const CODEC: &str = "typed-json:com.acme.Zoo$Amounts";

    let mut both = Both::new("4.7.0");
    for row in rows("typed-json-amounts") {
        let amounts: Amounts = Json.decode(&row.payload).unwrap();
        both.one(CODEC, &Json, &amounts);
        let hex: String = Json.encode(&amounts).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        let again = both.java.ask(&[CODEC, &hex]);
        let expected: String = row.payload.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(again, expected, "{}", row.name);
    }
    let mut random = Rng::with_seed(1);
    for _ in 0..300 {
        let digits: Vec<u8> = (0..random.usize(1..60)).map(|_| random.u8(..)).collect();
        let big = BigInteger::from_be_bytes(&digits);
        // Jackson writes no exponent, so that zeros in front of the point are digits afterwards.
        let amount = BigDecimal::new(big.clone(), random.i32(0..40));
        let amounts = Some(vec![Some(amount.clone()), None]);
        both.one(CODEC, &Json, &Amounts { amount: Some(amount), big: Some(big), amounts, bigs: None });
    }
    assert_eq!(both.refused, 0);
}
