//! The classes of `compat/java/src/main/java/com/acme/Zoo.java` and `lab` as Rust structs: one of each kind
//! of class that a codec may meet. The tests of the codecs and the peer share them.
//!
//! [`to_json`] and [`from_json`] convert values to and from plain JSON, in which tests compare values and
//! peers exchange them: the JSON that Jackson writes without class names.

use std::fmt;
use std::marker::PhantomData;

use base64::prelude::*;
use redisson_codec::java::{
    self, BigDecimal, BigInteger, Date, Duration, Instant, LocalDate, LocalDateTime, Uuid, Value,
};
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Order", rename_all = "camelCase")]
pub struct Order {
    pub id: i64,
    pub customer: Option<String>,
    pub items: i32,
    pub total: f64,
    pub paid: bool,
    pub coupon_id: Option<i64>,
    pub rank: Option<i32>,
    pub status: Option<Status>,
    pub address: Option<Address>,
    pub lines: Option<Vec<Option<Line>>>,
    pub tags: Option<Vec<Option<String>>>,
    pub counts: Option<Entries<String, Option<i32>>>,
    pub blob: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Address")]
pub struct Address {
    pub street: Option<String>,
    pub zip: i32,
    pub city: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Line")]
pub struct Line {
    pub sku: Option<String>,
    pub quantity: i32,
    pub price: f64,
}

/// Includes the fields of its base class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$RefundEvent", rename_all = "camelCase")]
pub struct RefundEvent {
    pub kind: Option<String>,
    pub at: i64,
    pub order_id: i64,
    pub reason: Option<String>,
    pub attempt: i16,
    pub ratio: f32,
    pub flag: i8,
    pub mark: char,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Envelope")]
pub struct Envelope {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    #[serde(with = "java::linked_hash_map")]
    pub data: Option<Entries<String, Value>>,
    pub extra: Option<Vec<Value>>,
    pub payload: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Ledger")]
pub struct Ledger {
    pub amount: Option<BigDecimal>,
    #[serde(rename = "ref")]
    pub id: Option<Uuid>,
    pub when: Option<Date>,
    pub big: Option<BigInteger>,
    pub note: Option<java::optional::Of<Option<String>>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Times")]
pub struct Times {
    pub instant: Option<Instant>,
    pub local: Option<LocalDateTime>,
    pub day: Option<LocalDate>,
    pub gap: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Nested")]
pub struct Nested {
    pub grid: Option<Vec<Option<Vec<Option<String>>>>>,
    #[serde(with = "java::linked_hash_map")]
    pub groups: Option<Entries<String, Option<Vec<Option<i32>>>>>,
    #[serde(with = "java::linked_hash_set")]
    pub names: Option<Vec<Option<String>>>,
    #[serde(with = "java::array")]
    pub ints: Option<Vec<i32>>,
    #[serde(with = "java::array")]
    pub words: Option<Vec<Option<String>>>,
    #[serde(with = "java::array")]
    pub longs: Option<Vec<i64>>,
    #[serde(with = "java::array")]
    pub lines: Option<Vec<Option<Line>>>,
    #[serde(with = "java::linked_list")]
    pub linked: Option<Vec<Option<i32>>>,
    #[serde(with = "java::tree_map")]
    pub tree: Option<Entries<String, Option<String>>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Boxes")]
pub struct Boxes {
    pub i: Option<i32>,
    pub l: Option<i64>,
    pub d: Option<f64>,
    pub f: Option<f32>,
    pub b: Option<bool>,
    pub s: Option<i16>,
    pub y: Option<i8>,
    pub c: Option<char>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.acme.Zoo$Point")]
pub struct Point {
    pub x: i32,
    pub y: i32,
    pub label: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Status", rename_all = "UPPERCASE")]
pub enum Status {
    New,
    Paid,
    Shipped,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "abstract com.acme.Zoo$Level", rename_all = "UPPERCASE")]
pub enum Level {
    Low,
    High,
}

/// Only some of the constants have bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename = "abstract(B, D) com.acme.Zoo$Mixed")]
pub enum Mixed {
    A,
    B,
    C,
    D,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Mixes")]
pub struct Mixes {
    pub one: Option<Mixed>,
    #[serde(with = "java::object")]
    pub open: Option<Mixed>,
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<Mixed>>>,
    pub list: Option<Vec<Option<Mixed>>>,
    #[serde(with = "java::linked_hash_map")]
    pub map: Option<Entries<String, Option<Mixed>>>,
    #[serde(with = "java::enum_set")]
    pub set: Option<Vec<Mixed>>,
    #[serde(with = "java::linked_hash_map")]
    pub keys: Option<Entries<Mixed, Option<i32>>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.acme.Zoo$Money")]
pub struct Money {
    pub amount: Option<BigDecimal>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "final com.acme.Zoo$Tag")]
pub struct Tag {
    pub name: Option<String>,
}

/// Lists whose elements are declared, and such whose elements are not. `L` is in the field `open`, `M` in
/// `openMap`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Loose", rename_all = "camelCase")]
pub struct Loose<L, M> {
    #[serde(with = "java::object", bound(serialize = "L: Serialize", deserialize = "L: DeserializeOwned"))]
    pub open: Option<Vec<L>>,
    #[serde(with = "java::object", bound(serialize = "M: Serialize", deserialize = "M: DeserializeOwned"))]
    pub open_map: Option<Entries<String, M>>,
    pub prices: Option<Vec<Money>>,
    pub tags: Option<Entries<String, Tag>>,
    pub any: Option<Vec<Value>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Amounts")]
pub struct Amounts {
    pub amount: Option<BigDecimal>,
    pub big: Option<BigInteger>,
    pub amounts: Option<Vec<Option<BigDecimal>>>,
    pub bigs: Option<Entries<String, BigInteger>>,
}

/// `lab.Small`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Small")]
pub struct Small {
    pub a: i32,
    pub b: Option<String>,
}

/// A map in the order in which it was written, so that it is written in this order again.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries<K, V>(pub Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Entries<K, V> {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Entries<K, V> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct InOrder<K, V>(PhantomData<(K, V)>);

        impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for InOrder<K, V> {
            type Value = Entries<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Entries<K, V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = input.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        input.deserialize_map(InOrder(PhantomData))
    }
}

/// A value of one of the classes above as plain JSON.
pub fn to_json<T: Serialize>(value: &T) -> Json {
    let mut json = serde_json::to_value(value).expect("plain data");
    let of = |json: &mut Json, field: &str, change: &dyn Fn(&Json) -> Json| {
        if let Some(found) = json.get_mut(field).filter(|found| !found.is_null()) {
            *found = change(found);
        }
    };
    let kind = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
    match kind {
        "Order" => of(&mut json, "blob", &|bytes| {
            let bytes: Vec<u8> = serde_json::from_value(bytes.clone()).expect("bytes");
            BASE64_STANDARD.encode(&bytes).into()
        }),
        "Ledger" => ["amount", "big"].iter().for_each(|field| {
            of(&mut json, field, &|number| {
                number.as_str().and_then(|text| text.parse().ok()).expect("a number")
            });
        }),
        "Times" => {
            let parts = |json: &Json| times(json.as_str().expect("a time"));
            ["instant", "local", "day", "gap"].iter().for_each(|field| of(&mut json, field, &parts));
        }
        _ => {}
    }
    json
}

/// The value of this plain JSON.
///
/// Numbers that do not fit into a double are in quotes: see [`long_numbers_as_texts`].
pub fn from_json<T: DeserializeOwned>(json: &Json) -> serde_json::Result<T> {
    let mut json = json.clone();
    if let Some(blob) = json.get_mut("blob")
        && let Some(text) = blob.as_str()
    {
        *blob = BASE64_STANDARD.decode(text).map_err(serde_json::Error::custom)?.into();
    }
    let kind = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
    if kind == "Times" {
        let from = |json: &mut Json, field: &str, text: &dyn Fn(&Json) -> String| {
            if let Some(found) = json.get_mut(field).filter(|found| !found.is_null()) {
                *found = text(found).into();
            }
        };
        let seconds = |json: &Json| {
            let millis = json.as_i64().expect("milliseconds");
            (millis.div_euclid(1000), millis.rem_euclid(1000) as u32 * 1_000_000)
        };
        from(&mut json, "instant", &|json| {
            let (seconds, nanos) = seconds(json);
            Instant::new(seconds, nanos).expect("an instant").to_string()
        });
        from(&mut json, "gap", &|json| {
            let (seconds, nanos) = seconds(json);
            Duration::new(seconds, nanos).expect("a duration").to_string()
        });
        from(&mut json, "day", &|json| day(&numbers(json)).to_string());
        from(&mut json, "local", &|json| {
            let parts = numbers(json);
            let part = |at: usize| parts.get(at).copied().unwrap_or_default() as u32;
            let [hour, minute, second] = [part(3), part(4), part(5)].map(|part| part as u8);
            // Without nanoseconds, the last part is milliseconds.
            let time = java::LocalTime::new(hour, minute, second, part(6) * 1_000_000).expect("a time");
            LocalDateTime::new(day(&parts), time).to_string()
        });
    }
    serde_json::from_value(json)
}

fn numbers(json: &Json) -> Vec<i64> {
    serde_json::from_value(json.clone()).expect("numbers")
}

fn day(parts: &[i64]) -> LocalDate {
    LocalDate::new(parts[0] as i32, parts[1] as u8, parts[2] as u8).expect("a day")
}

/// Jackson writes times as numbers, in milliseconds with the peer's settings.
fn times(text: &str) -> Json {
    let millis = |seconds: i64, nanos: u32| (seconds * 1000 + i64::from(nanos / 1_000_000)).into();
    if let Ok(instant) = text.parse::<Instant>() {
        return millis(instant.seconds(), instant.nanos());
    }
    if let Ok(gap) = text.parse::<Duration>() {
        return millis(gap.seconds(), gap.nanos());
    }
    let day = |day: LocalDate| vec![i64::from(day.year()), day.month().into(), day.day().into()];
    match text.parse::<LocalDate>() {
        Ok(date) => day(date).into(),
        Err(_) => {
            let local: LocalDateTime = text.parse().expect("a local time");
            let (mut parts, time) = (day(local.date()), local.time());
            parts.extend([i64::from(time.hour()), time.minute().into()]);
            if time.second() > 0 || time.nano() > 0 {
                parts.push(time.second().into());
            }
            if time.nano() > 0 {
                parts.push((time.nano() / 1_000_000).into());
            }
            parts.into()
        }
    }
}

/// A JSON text with its long numbers in quotes, so that they lose no digits in a double.
pub fn long_numbers_as_texts(json: &str) -> String {
    let mut text = String::new();
    let (mut rest, mut quoted) = (json, false);
    while let Some(first) = rest.chars().next() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(rest.len());
        let length = match first {
            _ if !quoted && (first == '-' || first.is_ascii_digit()) && number > 0 => number,
            '\\' if quoted => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => first.len_utf8(),
        };
        let (part, more) = rest.split_at(length);
        quoted ^= part == "\"";
        if !quoted && part.len() > 1 && part.parse::<i64>().is_err() && part.parse::<f64>().is_ok() {
            text.push_str(&format!("\"{part}\""));
        } else {
            text.push_str(part);
        }
        rest = more;
    }
    text
}
