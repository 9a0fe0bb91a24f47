//! What nests as deep as one likes: whatever is written is read again.

use std::collections::BTreeMap;

use codec::java::{self, Array, BigDecimal, Collection, Constant, Date, Enum, Text, Value};
use codec::{CborJackson, Json, JsonJackson, Kryo5, MsgPack, MsgPackJackson};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::*;

/// Levels of every kind, and at the end something that is a level or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Chain", default)]
struct Chain {
    next: Option<Box<Chain>>,
    list: Option<Vec<Chain>>,
    map: Option<BTreeMap<String, Chain>>,
    #[serde(with = "java::array")]
    array: Option<Vec<Chain>>,
    #[serde(with = "java::object")]
    open: Option<Vec<Chain>>,
    long: Option<i64>,
    amount: Option<BigDecimal>,
    bytes: Option<Vec<u8>>,
    #[serde(with = "java::object")]
    chars: Option<java::array::Of<Vec<char>>>,
    #[serde(with = "java::object")]
    short: Option<i16>,
    longs: Option<Vec<i64>>,
    value: Option<Value>,
}

/// Refuses what it cannot read, and is not too strict.
fn levels<T: Debug + PartialEq>(codec: &(impl Codec<T> + Debug), least: usize, nested: impl Fn(usize) -> T) {
    let mut deepest = 0;
    for levels in (1..least - 1).step_by(13).chain(least..140) {
        let value = nested(levels);
        match codec.encode(&value) {
            Ok(payload) => {
                deepest = levels;
                let read =
                    codec.decode(&payload).unwrap_or_else(|error| panic!("{codec:?} {levels}: {error}"));
                assert_eq!(read, value, "{codec:?} {levels}");
            }
            Err(error) => {
                assert!(error.to_string().contains("more than 127 levels"), "{codec:?} {levels}: {error}")
            }
        }
    }
    assert!((least..130).contains(&deepest), "{codec:?} writes {deepest} levels");
}

fn typed<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(
    least: usize,
    nested: impl Fn(usize) -> T + Copy,
) {
    levels(&Json, least, nested);
    levels(&MsgPack, least, nested);
    java(least, nested);
}

fn java<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(
    least: usize,
    nested: impl Fn(usize) -> T + Copy,
) {
    levels(&Kryo5, least, nested);
    levels(&JsonJackson, least, nested);
    levels(&CborJackson, least, nested);
    levels(&MsgPackJackson, least, nested);
}

#[test]
fn structs() {
    type Around = fn(Chain) -> Chain;
    let around: [(usize, Around); 5] = [
        (120, |inside| Chain { next: Some(Box::new(inside)), ..Chain::default() }),
        (40, |inside| Chain { list: Some(vec![inside]), ..Chain::default() }),
        (60, |inside| Chain { map: Some(BTreeMap::from([("k".to_owned(), inside)])), ..Chain::default() }),
        (40, |inside| Chain { array: Some(vec![inside]), ..Chain::default() }),
        (40, |inside| Chain { open: Some(vec![inside]), ..Chain::default() }),
    ];
    let ends = [
        Chain::default(),
        Chain { long: Some(5), ..Chain::default() },
        Chain { amount: Some(BigDecimal::new(15, 1)), ..Chain::default() },
        Chain { bytes: Some(vec![1]), ..Chain::default() },
        Chain { chars: Some(java::array::Of(vec!['a'])), ..Chain::default() },
        Chain { short: Some(5), ..Chain::default() },
        Chain { longs: Some(vec![5]), ..Chain::default() },
    ];
    for (least, around) in around {
        for end in &ends {
            typed(least, |levels| (1..levels).fold(end.clone(), |inside, _| around(inside)));
        }
    }
}

#[test]
fn values() {
    let list = |class: &'static str, inside| Value::Collection(Box::new(Collection::new(class, [inside])));
    let array =
        |inside| Value::Array(Box::new(Array::new("[Ljava.lang.Object;", [inside, Value::from("x")])));
    let mut ends = vec![
        Value::Integer(1),
        Value::from("x"),
        Value::Long(1),
        Value::Float(1.5),
        Value::Bytes(vec![1]),
        Value::Date(Date::from_millis(5)),
        Value::BigInteger(5.into()),
        Value::Text(Box::new(Text::new("java.net.URI", "a:b"))),
        Value::list([]),
        Value::map([("k", Value::Short(1))]),
        Value::Array(Box::new(Array::new("[I", [Value::Integer(1)]))),
    ];
    let constant = Constant::Name("DAYS".to_owned());
    ends.push(Value::Enum(Box::new(Enum::new("java.util.concurrent.TimeUnit", constant))));
    for end in &ends {
        java(60, |levels| (0..levels).fold(end.clone(), |inside, _| Value::list([inside])));
        java(60, |levels| (0..levels).fold(end.clone(), |inside, _| list("java.util.LinkedList", inside)));
        java(60, |levels| (0..levels).fold(end.clone(), |inside, _| array(inside)));
        java(120, |levels| (0..levels).fold(end.clone(), |inside, _| Value::map([("k", inside)])));
        java(60, |levels| {
            let inside = (0..levels).fold(end.clone(), |inside, _| Value::list([inside]));
            Chain { value: Some(inside), ..Chain::default() }
        });
    }
}

#[test]
fn enums_of_rust() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Nest {
        End,
        Next(Box<Nest>),
        Pair(Box<Nest>, i32),
        Named { inside: Box<Nest> },
        Some(Option<Box<Nest>>),
    }
    for (least, around) in [
        (100, (|inside| Nest::Next(Box::new(inside))) as fn(Nest) -> Nest),
        (60, |inside| Nest::Pair(Box::new(inside), 1)),
        (60, |inside| Nest::Named { inside: Box::new(inside) }),
        (100, |inside| Nest::Some(Some(Box::new(inside)))),
    ] {
        let nested = |levels: usize| (1..levels).fold(Nest::End, |inside, _| around(inside));
        levels(&Json, least, nested);
        levels(&MsgPack, least, nested);
    }
}
