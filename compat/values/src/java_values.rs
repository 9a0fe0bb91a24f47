//! The codecs for arbitrary Java objects, with values that are JSON on the lines of the peers.

use std::fmt::Debug;

use base64::prelude::*;
use redisson_codec::java::{Constant, Value};
use redisson_codec::{Codec, CodecError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::zoo::{self, *};

/// Plain JSON becomes String, Integer (Long or BigInteger if needed), Double, Boolean, ArrayList,
/// LinkedHashMap and null. An object with an `@class` of [`zoo`] becomes an object of that class.
#[derive(Debug)]
pub struct JavaValues<C>(pub C);

const CLASS: &str = "@class";

trait Java:
    Codec<Value>
    + Codec<Order>
    + Codec<Address>
    + Codec<Line>
    + Codec<RefundEvent>
    + Codec<Envelope>
    + Codec<Ledger>
    + Codec<Times>
    + Codec<Nested>
    + Codec<Boxes>
    + Codec<Point>
    + Codec<Status>
    + Codec<Level>
    + Codec<Small>
{
}

impl<C> Java for C where
    C: Codec<Value>
        + Codec<Order>
        + Codec<Address>
        + Codec<Line>
        + Codec<RefundEvent>
        + Codec<Envelope>
        + Codec<Ledger>
        + Codec<Times>
        + Codec<Nested>
        + Codec<Boxes>
        + Codec<Point>
        + Codec<Status>
        + Codec<Level>
        + Codec<Small>
{
}

/// Calls a function of a type for the class of that name.
macro_rules! by_class {
    ($class:expr, $function:ident($($argument:expr),*)) => {
        match $class {
            "com.acme.Zoo$Order" => Some($function::<Order, C>($($argument),*)),
            "com.acme.Zoo$Address" => Some($function::<Address, C>($($argument),*)),
            "com.acme.Zoo$Line" => Some($function::<Line, C>($($argument),*)),
            "com.acme.Zoo$RefundEvent" => Some($function::<RefundEvent, C>($($argument),*)),
            "com.acme.Zoo$Envelope" => Some($function::<Envelope, C>($($argument),*)),
            "com.acme.Zoo$Ledger" => Some($function::<Ledger, C>($($argument),*)),
            "com.acme.Zoo$Times" => Some($function::<Times, C>($($argument),*)),
            "com.acme.Zoo$Nested" => Some($function::<Nested, C>($($argument),*)),
            "com.acme.Zoo$Boxes" => Some($function::<Boxes, C>($($argument),*)),
            "com.acme.Zoo$Point" => Some($function::<Point, C>($($argument),*)),
            "com.acme.Zoo$Status" => Some($function::<Status, C>($($argument),*)),
            // Each constant has its own class.
            "com.acme.Zoo$Level" | "com.acme.Zoo$Level$1" | "com.acme.Zoo$Level$2" => {
                Some($function::<Level, C>($($argument),*))
            }
            "lab.Small" => Some($function::<Small, C>($($argument),*)),
            _ => None,
        }
    };
}

const CLASSES: [&str; 13] = [
    "com.acme.Zoo$Order",
    "com.acme.Zoo$Address",
    "com.acme.Zoo$Line",
    "com.acme.Zoo$RefundEvent",
    "com.acme.Zoo$Envelope",
    "com.acme.Zoo$Ledger",
    "com.acme.Zoo$Times",
    "com.acme.Zoo$Nested",
    "com.acme.Zoo$Boxes",
    "com.acme.Zoo$Point",
    "com.acme.Zoo$Status",
    "com.acme.Zoo$Level",
    "lab.Small",
];

impl<C: Java + Debug> Codec<Json> for JavaValues<C> {
    fn encode(&self, json: &Json) -> Result<Vec<u8>, CodecError> {
        let Some(class) = json.get(CLASS).and_then(Json::as_str) else {
            return self.0.encode(&plain(json));
        };
        by_class!(class, encode(&self.0, json))
            .unwrap_or_else(|| Err(CodecError::new(format!("no class {class}"))))
    }

    fn decode(&self, payload: &[u8]) -> Result<Json, CodecError> {
        match Codec::<Value>::decode(&self.0, payload) {
            Ok(value) => match by_class!(value.class(), decode(value.class(), &self.0, payload)) {
                Some(read) => read,
                None => Ok(plain_json(&value)),
            },
            // Kryo writes no field names, so the class has to be known.
            Err(error) => {
                let class = CLASSES.into_iter().find(|class| error.to_string().contains(class));
                class
                    .and_then(|class| by_class!(class, decode(class, &self.0, payload)))
                    .unwrap_or(Err(error))
            }
        }
    }
}

fn encode<T: DeserializeOwned, C: Codec<T>>(codec: &C, json: &Json) -> Result<Vec<u8>, CodecError> {
    codec.encode(&zoo::from_json(json).map_err(CodecError::new)?)
}

fn decode<T: Serialize, C: Codec<T>>(class: &str, codec: &C, payload: &[u8]) -> Result<Json, CodecError> {
    let mut json = zoo::to_json(&codec.decode(payload)?);
    if json.is_object() {
        json[CLASS] = class.into();
    }
    Ok(json)
}

/// A value as the plain JSON that Jackson writes without class names.
fn plain_json(value: &Value) -> Json {
    match value {
        Value::Bytes(bytes) => BASE64_STANDARD.encode(bytes).into(),
        Value::BigInteger(number) => number.to_string().parse().map_or(Json::Null, Json::Number),
        Value::BigDecimal(number) => number.to_string().parse().map_or(Json::Null, Json::Number),
        Value::Collection(list) => list.elements.iter().map(plain_json).collect(),
        Value::Array(array) => array.elements.iter().map(plain_json).collect(),
        Value::Map(map) => {
            let entry = |(key, value): &(Value, Value)| {
                let key = plain_json(key);
                (key.as_str().map_or_else(|| key.to_string(), str::to_owned), plain_json(value))
            };
            map.entries.iter().map(entry).collect()
        }
        Value::EnumSet(set) => {
            let name = |constant: &Constant| match constant {
                Constant::Ordinal(at) => match STATUS.get(*at as usize) {
                    Some(name) if &*set.element == "com.acme.Zoo$Status" => (*name).into(),
                    _ => (*at).into(),
                },
                Constant::Name(name) => name.as_str().into(),
                _ => Json::Null,
            };
            set.constants.iter().map(name).collect()
        }
        Value::Optional(Some(inside)) => plain_json(inside),
        _ => serde_json::to_value(value).unwrap_or(Json::Null),
    }
}

/// The names of the constants. In a set, Kryo writes only their numbers.
const STATUS: [&str; 4] = ["NEW", "PAID", "SHIPPED", "CLOSED"];

fn plain(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => i32::try_from(value).map_or(Value::Long(value), Value::Integer),
            (_, Some(value)) => Value::BigInteger(i128::from(value).into()),
            _ => number.as_f64().map_or(Value::Null, Value::Double),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(elements) => Value::list(elements.iter().map(plain)),
        Json::Object(entries) => Value::map(entries.iter().map(|(key, value)| (key.as_str(), plain(value)))),
    }
}
