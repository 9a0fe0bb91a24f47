//! The codecs that write any Java object, for values that are JSON on the lines.

use std::fmt::Debug;

use redelay::codec::java::Value;
use redelay::codec::{Codec, CodecError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::zoo::{self, *};

/// Plain JSON is String, Integer (Long, BigInteger where it must), Double, Boolean, ArrayList, LinkedHashMap and null; an
/// object that names its `@class` is one of that class, as far as it is in [`zoo`].
#[derive(Debug)]
pub(crate) struct JavaValues<C>(pub(crate) C);

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
            "lab.Small" => Some($function::<Small, C>($($argument),*)),
            _ => None,
        }
    };
}

const CLASSES: [&str; 11] = [
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
                None => serde_json::to_value(&value).map_err(CodecError::new),
            },
            // The fields of a class are in no payload of Kryo's, so that it must be known.
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
    json[CLASS] = class.into();
    Ok(json)
}

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
