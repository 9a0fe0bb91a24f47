//! Enums whose variants have names by `@JsonTypeInfo`, and a variant for what has another name.

use codec::java::{self, Value};
use codec::{CborJackson, JsonJackson, MsgPackJackson};
use redelay_compat_values::tasks::{Card, Circle, Up};
use redelay_compat_values::zoo::Entries;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::places::is;
use super::*;

/// Each but for the first class. The name of the other variant is that of a class in the vectors, and has no
/// meaning.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "tag(type) com.acme.Tasks$Payment", rename_all = "lowercase")]
enum Payment {
    Card(Card),
    Cash(Value),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "wrapper-object com.acme.Tasks$Shape", rename_all = "lowercase")]
enum Shape {
    Circle(Circle),
    Dot(Value),
}

macro_rules! group {
    ($name:ident $class:literal $kind:ty) => {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename = $class)]
        struct $name {
            #[serde(with = "java::array")]
            array: Option<Vec<Option<$kind>>>,
            list: Option<Vec<Option<$kind>>>,
            map: Option<Entries<String, $kind>>,
            one: Option<$kind>,
            open: Value,
        }
    };
}

group! { Payments "com.acme.Tasks$Payments" Payment }
group! { Shapes "com.acme.Tasks$Shapes" Shape }

fn kept<C>(codec: C, file: &str)
where
    C: Codec<Payment> + Codec<Payments> + Codec<Shape> + Codec<Shapes>,
{
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in rows(file) {
        wrong.extend(match &row.name[..] {
            "payment.card" | "payment.cash" => is::<Payment>(&codec, &row),
            "payments" | "payments.null" => is::<Payments>(&codec, &row),
            "shape.circle" => is::<Shape>(&codec, &row),
            "shapes" => is::<Shapes>(&codec, &row),
            _ => continue,
        });
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // MessagePack has no form for one of the amounts.
    assert!(count >= 4, "{count}");
}

#[test]
fn what_has_no_variant_is_kept() {
    kept(JsonJackson, "json-jackson-classes");
    kept(CborJackson, "cbor-jackson-classes");
    kept(MsgPackJackson, "msgpack-jackson-classes");
}

#[test]
fn the_other_variant_takes_what_has_no_name() {
    fn read<T: DeserializeOwned + Serialize + 'static>(payload: &str) -> T {
        JsonJackson.decode(payload.as_bytes()).unwrap()
    }
    for payload in
        [r#"{"type":"voucher","code":"x"}"#, r#"{"code":"x"}"#, r#"{"@class":"com.acme.V","code":"x"}"#]
    {
        let payment: Payment = read(payload);
        let Payment::Cash(value) = &payment else { panic!("{payment:?}") };
        assert_eq!(value.get("code"), Some(&"x".into()));
        assert_eq!(JsonJackson.encode(&payment).unwrap(), payload.as_bytes());
    }
    assert!(matches!(read(r#"{"type":"card","number":"1"}"#), Payment::Card(_)));
}

/// CBOR would write another list.
#[test]
fn there_is_none_behind_a_wrapper_array() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "wrapper-array com.acme.Tasks$Move", rename_all = "lowercase")]
    enum Move {
        Up(Up),
        Down(Value),
    }
    let why = error(JsonJackson.encode(&Move::Down(Value::Null)));
    let says = "at `com.acme.Tasks$Move.down`, a `Value` is no variant of `wrapper-array`";
    assert!(why.contains(says), "{why}");
}
