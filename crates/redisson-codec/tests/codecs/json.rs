//! `Json`: payloads that Redisson wrote, and payloads that are refused.

use std::collections::BTreeMap;

use codec::Json;
use serde::{Deserialize, Serialize};

use super::structured::{Never, Small, Status, Strict, Tree, damaged, refused, trees};
use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    id: i64,
    customer: Option<String>,
    items: i32,
    total: f64,
    paid: bool,
    coupon_id: Option<i64>,
    rank: Option<i32>,
    status: Option<Status>,
    address: Option<Address>,
    lines: Option<Vec<Line>>,
    tags: Option<Vec<String>>,
    counts: Option<BTreeMap<String, i32>>,
    blob: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Address {
    street: String,
    zip: i32,
    city: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    sku: String,
    quantity: i32,
    price: f64,
}

/// Compared as values, both ways: Redisson sorts properties, leaves nulls out, and escapes text beyond U+FFFF.
fn check<T: Debug + PartialEq + Serialize + for<'de> Deserialize<'de>>(file: &str) {
    for Row { name, json, payload, .. } in rows(file) {
        let value: T = Json.decode(&payload).unwrap();
        assert_eq!(value, T::deserialize(&json).unwrap(), "decode {name}");
        let encoded: Value = serde_json::from_slice(&Json.encode(&value).unwrap()).unwrap();
        assert_eq!(encoded, json, "encode {name}");
        assert_eq!(Json.decode(&payload).ok(), Some(without_nulls(json)), "decode {name} without a type");
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(k, v)| (k, without_nulls(v)))
            .collect(),
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

#[test]
fn orders_of_redisson() {
    check::<Order>("typed-json-order");
}

#[test]
fn small_ones_of_redisson() {
    check::<Small>("typed-json-small");
}

#[test]
fn strings_of_redisson() {
    check::<String>("typed-json-string");
}

#[test]
fn errors_say_where_and_quote_nothing() {
    let number = |payload: &[u8], says| refused::<i32>(&Json, payload, says);
    number(
        br#""SECRET, expected SECRET""#,
        "`i32` as JSON: invalid type: string, expected i32 at line 1 column 25",
    );
    number(b"1 SECRET", "trailing characters at line 1 column 3");
    number(b"", "EOF while parsing a value at line 1 column 0");
    number(b"5000000000", "invalid value: integer, expected i32 at line 1 column 10");
    let strict = |payload: &[u8], says| refused::<Strict>(&Json, payload, says);
    strict(br#"{"a":"SECRET`, there are no SECRET"}"#, "unknown variant, expected one of `NEW`, `PAID`");
    strict(br#"{"SECRET":1}"#, "unknown field, expected `a` at line 1 column 9");
    strict(b"{}", "missing field `a` at line 1 column 2");
    refused::<Never>(
        &Json,
        br#""SECRET, expected SECRET""#,
        "unknown variant, there are no variants at line 1",
    );
    refused::<String>(&Json, br#""SECRET\ud83d""#, "at line 1 column 14");
}

#[test]
fn deep_nesting_is_refused() {
    let deep = |level: &str| level.repeat(100_000).into_bytes();
    refused::<Value>(&Json, &deep("["), "recursion limit exceeded at line 1 column 128");
    refused::<Tree>(&Json, &deep(r#"{"Next":"#), "recursion limit exceeded");
    refused::<Small>(&Json, &[br#"{"c":"#, &deep("[")[..]].concat(), "");
}

proptest! {
    #[test]
    fn values_round_trip(tree in trees()) {
        prop_assert_eq!(&Codec::<Tree>::decode(&Json, &Json.encode(&tree)?)?, &tree);
    }

    #[test]
    fn any_bytes(payload: Vec<u8>, tree in trees(), at: prop::sample::Index, byte: u8) {
        for payload in [payload, damaged(Json.encode(&tree)?, at, byte)] {
            let _: Result<Value, _> = Json.decode(&payload);
            let _: Result<Tree, _> = Json.decode(&payload);
        }
    }
}
