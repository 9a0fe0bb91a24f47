//! Errors name what is wrong, and do not repeat a payload that somebody has filled with megabytes.

use std::collections::HashMap;
use std::str::FromStr;

use codec::java::{self, Value};
use codec::{CborJackson, Json, JsonJackson, Kryo5, MsgPack, MsgPackJackson};
use redelay_compat_values::tasks::{Payment, Task};
use redelay_compat_values::zoo::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::*;

/// A type whose own `Deserialize` quotes what it finds.
#[derive(Debug, Deserialize)]
#[serde(rename = "lab.Quoting", try_from = "String")]
struct Quoting;

impl TryFrom<String> for Quoting {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Err(format!("expected something better than {text}"))
    }
}

impl serde::Serialize for Quoting {
    fn serialize<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_str("")
    }
}

fn is_short<T: Debug>(codec: &impl Codec<T>, payload: &[u8]) {
    let error = error(codec.decode(payload));
    assert!(error.len() <= 1024, "{} characters: {}", error.len(), &error[..300]);
    assert!(!error.contains(['\n', '\u{1b}']), "{error}");
}

/// Where the text is, in each format.
fn json<T>(template: &str)
where
    JsonJackson: Codec<T>,
    CborJackson: Codec<T>,
    MsgPackJackson: Codec<T>,
    T: Debug + DeserializeOwned,
{
    let text = format!("com.{}", "a\u{7f}\u{85}x.".repeat(50_000));
    let filled = template.replace("TEXT", &text);
    is_short::<T>(&JsonJackson, filled.as_bytes());
    let node = serde_json::Value::from_str(&filled).unwrap();
    is_short::<T>(&MsgPackJackson, &rmp(&node));
    is_short::<T>(&CborJackson, &cbor(&node));
}

fn rmp(node: &serde_json::Value) -> Vec<u8> {
    MsgPack.encode(node).unwrap()
}

fn cbor(node: &serde_json::Value) -> Vec<u8> {
    use serde_json::Value as Node;

    let head = |kind: u8, length: usize| [&[kind | 0x1a][..], &(length as u32).to_be_bytes()].concat();
    let text = |text: &str| [head(0x60, text.len()), text.as_bytes().to_vec()].concat();
    match node {
        Node::Null => vec![0xf6],
        Node::Bool(value) => vec![0xf4 + u8::from(*value)],
        Node::Number(number) => head(0, number.as_u64().unwrap_or_default() as usize),
        Node::String(value) => text(value),
        Node::Array(values) => [head(0x80, values.len()), values.iter().flat_map(cbor).collect()].concat(),
        Node::Object(entries) => {
            let all = entries.iter().flat_map(|(key, value)| [text(key), cbor(value)].concat()).collect();
            [head(0xa0, entries.len()), all].concat()
        }
    }
}

#[test]
fn of_the_jackson_codecs() {
    json::<Small>(r#"{"@class":"TEXT"}"#);
    json::<Vec<Small>>(r#"["TEXT",[]]"#);
    json::<Vec<Small>>(r#"["java.util.ArrayList",[{"@class":"TEXT"}]]"#);
    json::<HashMap<String, i32>>(r#"{"@class":"TEXT"}"#);
    json::<java::array::Of<Vec<i32>>>(r#"["[TEXT",[]]"#);
    json::<java::enum_set::Of<Vec<Status>>>(r#"["TEXT",[]]"#);
    json::<Status>(r#"["TEXT","NEW"]"#);
    json::<Status>(r#""TEXT""#);
    json::<Ledger>(r#"{"amount":["TEXT",1]}"#);
    json::<Ledger>(r#"{"amount":"TEXT"}"#);
    json::<i64>(r#"["TEXT",1]"#);
    json::<String>(r#"["TEXT","x"]"#);
    json::<Vec<u8>>(r#"["TEXT","x"]"#);
    json::<Vec<u8>>(r#""TEXT""#);
    json::<Times>(r#"{"instant":"TEXT"}"#);
    json::<Quoting>(r#""TEXT""#);
    json::<HashMap<i32, i32>>(r#"{"TEXT":1}"#);
    json::<Task>(r#"{"@class":"TEXT"}"#);
    json::<Task>(r#"["TEXT",5]"#);
    json::<Payment>(r#"{"type":"TEXT"}"#);
}

#[test]
fn of_values() {
    let class = format!("com.{}", "ax.".repeat(100_000));
    // When what was read is written in another format.
    let short = |written: Result<Vec<u8>, CodecError>| {
        let error = error(written);
        assert!(error.len() <= 1024, "{}", error.len());
    };
    for json in [
        format!(r#"["{class}",[]]"#),
        format!(r#"["[{class}",[1]]"#),
        format!(r#"{{"@class":"java.util.{}Map"}}"#, "x".repeat(100_000)),
        format!(r#"{{"@class":"{class}","a":1}}"#),
    ] {
        let value: Value = JsonJackson.decode(json.as_bytes()).unwrap();
        short(Kryo5.encode(&value));
    }
    let text = java::Text::new(class.clone(), "");
    short(Kryo5.encode(&Value::Text(Box::new(text))));
    let array = java::Array::new(format!("[{class}"), [Value::Integer(1)]);
    short(Kryo5.encode(&Value::Array(Box::new(array))));
    let constant = java::Constant::Ordinal(1);
    short(JsonJackson.encode(&Value::Enum(Box::new(java::Enum::new(class, constant)))));
}

#[test]
fn of_kryo() {
    let mut named = vec![0x01, 0x00];
    named.extend(std::iter::repeat_n(b'x', 299_999));
    named.push(b'x' | 0x80);
    is_short::<Small>(&Kryo5, &named);
    is_short::<Vec<i32>>(&Kryo5, &named);
    is_short::<Status>(&Kryo5, &named);
    is_short::<Level>(&Kryo5, &named);
    named[2] = b'[';
    is_short::<java::array::Of<Vec<i32>>>(&Kryo5, &named);
    is_short::<Quoting>(&Kryo5, &Kryo5.encode(&"x".repeat(300_000)).unwrap());
}

#[test]
fn of_formats_without_classes() {
    let long = "x".repeat(300_000);
    is_short::<Status>(&Json, format!("\"{long}\"").as_bytes());
    is_short::<i32>(&Json, format!("\"{long}\"").as_bytes());
    is_short::<Quoting>(&Json, format!("\"{long}\"").as_bytes());
    is_short::<java::BigDecimal>(&Json, format!("\"{long}\"").as_bytes());
    is_short::<Status>(&MsgPack, &MsgPack.encode(&long).unwrap());
    is_short::<Quoting>(&MsgPack, &MsgPack.encode(&long).unwrap());
    is_short::<String>(&codec::String, &[long.as_bytes(), b"\xff"].concat());
    is_short::<i64>(&codec::Long, long.as_bytes());
    is_short::<f64>(&codec::Double, long.as_bytes());
}
