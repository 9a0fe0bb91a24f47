//! `JsonJackson`, `CborJackson` and `MsgPackJackson`: payloads that Redisson wrote, as structs and as values,
//! and payloads that are refused.

use std::collections::{BTreeMap, HashMap, HashSet};

use codec::java::{self, Value};
use codec::{CborJackson, JsonJackson, MsgPackJackson};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::*;
use redelay_compat_values::zoo::{self, *};

/// An enum of another package, of which only the constants are known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Order$Status", rename_all = "UPPERCASE")]
enum LabStatus {
    New,
    Paid,
    Closed,
}

/// Removes nulls, because Redisson leaves them out of objects and maps.
fn without_nulls(json: serde_json::Value) -> serde_json::Value {
    match json {
        serde_json::Value::Object(entries) => {
            let kept = entries.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key, without_nulls(value))).collect()
        }
        serde_json::Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// Decodes to the value, which is the JSON beside it, and encodes to the same bytes.
#[track_caller]
fn as_a<T: Debug + PartialEq + Serialize>(codec: impl Codec<T>, row: &Row) {
    let name = &row.name;
    let value: T = codec.decode(&row.payload).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(without_nulls(zoo::to_json(&value)), without_nulls(row.json.clone()), "decode {name}");
    assert_eq!(codec.encode(&value).unwrap(), row.payload, "encode {name}");
    // A truncated payload is never a value, except for a JSON number.
    for end in 0..row.payload.len() {
        let cut = codec.decode(&row.payload[..end]);
        assert!(cut.is_err() || row.json.is_number(), "{name} cut to {end}");
    }
    for bit in 0..row.payload.len().min(100) * 8 {
        let mut payload = row.payload.clone();
        payload[bit / 8] ^= 1 << (bit % 8);
        let _ = codec.decode(&payload);
    }
}

macro_rules! of_redisson {
    ($test:ident $codec:ident $file:literal) => {
        #[test]
        fn $test() {
            fn is<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(row: &Row) {
                as_a::<T>($codec, row);
            }

            for row in rows($file) {
                match &row.class[..] {
                    "com.acme.Zoo$Order" => is::<Order>(&row),
                    "com.acme.Zoo$RefundEvent" => is::<RefundEvent>(&row),
                    "com.acme.Zoo$Envelope" => is::<Envelope>(&row),
                    "com.acme.Zoo$Ledger" => is::<Ledger>(&row),
                    "com.acme.Zoo$Times" => is::<Times>(&row),
                    "com.acme.Zoo$Nested" => is::<Nested>(&row),
                    "com.acme.Zoo$Boxes" => is::<Boxes>(&row),
                    "com.acme.Zoo$Point" => is::<Point>(&row),
                    "com.acme.Zoo$Status" => is::<Status>(&row),
                    "com.acme.Zoo$Level$2" => is::<Level>(&row),
                    "lab.Small" => is::<Small>(&row),
                    "lab.Order$Status" => is::<LabStatus>(&row),
                    "java.lang.String" => is::<String>(&row),
                    "java.lang.Integer" => is::<i32>(&row),
                    "java.lang.Long" => is::<i64>(&row),
                    "java.lang.Double" => is::<f64>(&row),
                    "java.lang.Float" => is::<f32>(&row),
                    "java.lang.Short" => is::<i16>(&row),
                    "java.lang.Boolean" => is::<bool>(&row),
                    "java.lang.Character" => is::<char>(&row),
                    "[Ljava.lang.String;" => is::<java::array::Of<Vec<String>>>(&row),
                    "[I" => is::<java::array::Of<Vec<i32>>>(&row),
                    "java.util.ArrayList" => is::<Vec<Value>>(&row),
                    "java.util.LinkedHashMap" if row.name != "linkedmap.mixed" => {
                        is::<java::linked_hash_map::Of<Entries<String, Value>>>(&row);
                    }
                    "java.util.HashMap" => is::<Entries<Value, Value>>(&row),
                    "java.util.TreeMap" => is::<java::tree_map::Of<Entries<String, i32>>>(&row),
                    "java.util.LinkedList" => is::<java::linked_list::Of<Vec<Value>>>(&row),
                    "java.util.RegularEnumSet" => is::<java::enum_set::Of<Vec<Status>>>(&row),
                    // Only as values. The tests below have their other forms.
                    "[B"
                    | "java.math.BigDecimal"
                    | "java.math.BigInteger"
                    | "java.util.Collections$SingletonList"
                    | "java.util.ImmutableCollections$List12"
                    | "java.util.LinkedHashMap" => {}
                    class => panic!("{} is of the class {class}", row.name),
                }
                // With any class.
                let value: Value = $codec.decode(&row.payload).unwrap();
                assert_eq!($codec.encode(&value).unwrap(), row.payload, "{} as {value}", row.name);
            }
        }
    };
}

of_redisson! { json_of_redisson JsonJackson "json-jackson" }
of_redisson! { cbor_of_redisson CborJackson "cbor-jackson" }
of_redisson! { msgpack_of_redisson MsgPackJackson "msgpack-jackson" }

#[test]
fn compressions_go_around_these_too() {
    for row in rows("json-jackson") {
        let codec = codec::Lz4V2(JsonJackson);
        let value: Value = JsonJackson.decode(&row.payload).unwrap();
        assert_eq!(Codec::<Value>::decode(&codec, &codec.encode(&value).unwrap()).unwrap(), value);
    }
}

/// The payload is the JSON that Redisson writes for such a field. The other formats have the same content.
#[track_caller]
pub(super) fn both<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(value: T, json: &str) {
    assert_eq!(String::from_utf8(JsonJackson.encode(&value).unwrap()).unwrap(), json);
    let read: T = JsonJackson.decode(json.as_bytes()).unwrap();
    assert_eq!(read, value);
    let read: T = CborJackson.decode(&CborJackson.encode(&value).unwrap()).unwrap();
    assert_eq!(read, value);
    let read: T = MsgPackJackson.decode(&MsgPackJackson.encode(&value).unwrap()).unwrap();
    assert_eq!(read, value);
    // The same payload as a value, which is written alike.
    let read: Value = JsonJackson.decode(json.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(JsonJackson.encode(&read).unwrap()).unwrap(), json);
    let cbor = CborJackson.encode(&value).unwrap();
    let read: Value = CborJackson.decode(&cbor).unwrap();
    assert_eq!(CborJackson.encode(&read).unwrap(), cbor, "{read:?}");
    let msgpack = MsgPackJackson.encode(&value).unwrap();
    let read: Value = MsgPackJackson.decode(&msgpack).unwrap();
    assert_eq!(MsgPackJackson.encode(&read).unwrap(), msgpack);
}

/// The form in which Redisson 4.7.0 writes such a class.
#[test]
fn fields_of_every_declaration() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "D$Fields", rename_all = "camelCase")]
    struct Fields {
        #[serde(with = "java::array")]
        boxed: Vec<Option<i64>>,
        #[serde(rename = "Lg", with = "java::array")]
        upper: Vec<java::array::Of<Vec<Option<i64>>>>,
        #[serde(with = "java::array")]
        lg: Vec<java::array::Of<Vec<i64>>>,
        #[serde(with = "java::array")]
        levels: Vec<Level>,
        level: Level,
        #[serde(with = "java::object")]
        open_level: Level,
        #[serde(with = "java::object")]
        open_status: Status,
        #[serde(with = "java::object")]
        open_short: i16,
        #[serde(with = "java::object")]
        open_byte: i8,
        #[serde(with = "java::object")]
        open_char: char,
        #[serde(with = "java::object")]
        open_float: f32,
        #[serde(with = "java::object")]
        open_long: i64,
        #[serde(with = "java::object")]
        open_int: i32,
        #[serde(with = "java::object")]
        open_bytes: Vec<u8>,
        #[serde(with = "java::object")]
        open_point: Point,
        #[serde(with = "java::object")]
        open_nan: f64,
        open_ints: java::object::Of<java::array::Of<Vec<i32>>>,
        #[serde(with = "java::array")]
        points: Vec<Point>,
        #[serde(with = "java::array")]
        chars: Vec<char>,
        #[serde(with = "java::array")]
        ints: Vec<Option<i32>>,
        floats: Vec<f32>,
        blobs: Vec<Option<Vec<u8>>>,
        longs: Vec<i64>,
        #[serde(with = "java::array")]
        dates: Vec<java::Date>,
        points_list: Vec<Point>,
        by_level: BTreeMap<String, i64>,
        by_flag: HashMap<bool, char>,
        by_id: Entries<java::Uuid, i32>,
        #[serde(with = "java::enum_set")]
        set: Vec<Level>,
        #[serde(with = "java::uri")]
        uri: Option<String>,
        unit: u16,
    }

    let id: java::Uuid = "00000000-0000-0001-0000-000000000002".parse().unwrap();
    let point = |x| Point { x, y: 0, label: None };
    let fields = Fields {
        boxed: vec![Some(1), None],
        upper: vec![java::array::Of(vec![Some(1)])],
        lg: vec![java::array::Of(vec![1])],
        levels: vec![Level::High],
        level: Level::High,
        open_level: Level::Low,
        open_status: Status::Paid,
        open_short: 1,
        open_byte: -1,
        open_char: 'c',
        open_float: 1.5,
        open_long: 7,
        open_int: 7,
        open_bytes: vec![1],
        open_point: point(1),
        open_nan: f64::INFINITY,
        open_ints: java::object::Of(java::array::Of(vec![1, 2])),
        points: vec![point(2)],
        chars: vec!['x', 'y'],
        ints: vec![Some(1), None],
        floats: vec![1.5],
        blobs: vec![Some(vec![1]), None],
        longs: vec![1],
        dates: vec![java::Date::from_millis(5)],
        points_list: vec![point(3)],
        by_level: BTreeMap::from([("HIGH".into(), 1)]),
        by_flag: HashMap::from([(true, 'c')]),
        by_id: Entries(vec![(id, 1)]),
        set: vec![Level::High],
        uri: Some("http://x".into()),
        unit: 65,
    };
    both(
        fields,
        concat!(
            r#"{"@class":"D$Fields","Lg":["[[Ljava.lang.Long;",[["[Ljava.lang.Long;",[["java.lang.Long",1]]]]],"#,
            r#""blobs":["java.util.ArrayList",["AQ==",null]],"#,
            r#""boxed":["[Ljava.lang.Long;",[["java.lang.Long",1],null]],"#,
            r#""byFlag":{"@class":"java.util.HashMap","true":"c"},"#,
            r#""byId":{"@class":"java.util.HashMap","00000000-0000-0001-0000-000000000002":1},"#,
            r#""byLevel":{"@class":"java.util.HashMap","HIGH":["java.lang.Long",1]},"#,
            r#""chars":"xy","#,
            r#""dates":["[Ljava.util.Date;",[["java.util.Date",5]]],"#,
            r#""floats":["java.util.ArrayList",[1.5]],"#,
            r#""ints":[1,null],"#,
            r#""level":["com.acme.Zoo$Level","HIGH"],"#,
            r#""levels":["[Lcom.acme.Zoo$Level;",[["com.acme.Zoo$Level","HIGH"]]],"#,
            r#""lg":[[1]],"#,
            r#""longs":["java.util.ArrayList",[["java.lang.Long",1]]],"#,
            r#""openByte":["java.lang.Byte",-1],"openBytes":["[B","AQ=="],"openChar":["java.lang.Character","c"],"#,
            r#""openFloat":["java.lang.Float",1.5],"openInt":7,"openInts":["[I",[1,2]],"#,
            r#""openLevel":["com.acme.Zoo$Level","LOW"],"openLong":["java.lang.Long",7],"#,
            r#""openNan":["java.lang.Double","Infinity"],"#,
            r#""openPoint":{"@class":"com.acme.Zoo$Point","x":1,"y":0},"#,
            r#""openShort":["java.lang.Short",1],"openStatus":["com.acme.Zoo$Status","PAID"],"#,
            r#""points":[{"x":2,"y":0}],"pointsList":["java.util.ArrayList",[{"x":3,"y":0}]],"#,
            r#""set":["java.util.EnumSet<com.acme.Zoo$Level>",["HIGH"]],"#,
            r#""unit":"A","uri":"http://x"}"#,
        ),
    );
}

#[test]
fn what_redisson_writes_at_the_root() {
    both(java::array::Of(vec![Point { x: 1, y: 2, label: None }]), r#"[{"x":1,"y":2}]"#);
    both(java::array::Of(vec![Some(1), None]), "[1,null]");
    both(java::array::Of(vec![java::array::Of(vec![1i64])]), "[[1]]");
    both(java::array::Of(vec![Some(1i64)]), r#"["[Ljava.lang.Long;",[["java.lang.Long",1]]]"#);
    both(java::array::Of(vec![Level::Low]), r#"["[Lcom.acme.Zoo$Level;",[["com.acme.Zoo$Level","LOW"]]]"#);
    both(vec![1u8, 2], r#""AQI=""#);
    both(HashSet::from([1i16]), r#"["java.util.ArrayList",[["java.lang.Short",1]]]"#);
    both(java::hash_set::Of(HashSet::from(["a".to_owned()])), r#"["java.util.HashSet",["a"]]"#);
    both(java::uri::Of("http://x".to_owned()), r#""http://x""#);
    both('\u{1}', "\"\\u0001\"");
}

#[test]
fn values_of_every_kind() {
    for json in [
        r#"["java.util.ArrayList",[["java.lang.Short",1],["java.lang.Float",1.5],["[I",[1]],null,["java.lang.Class","java.util.Optional"],["java.lang.Long",1],["[J",[5]],["[C","ab"],["[B","AQ=="],["java.lang.Byte",-1],["java.lang.Character","c"],["java.lang.Double","NaN"],["java.lang.Float","-Infinity"]]]"#,
        r#"["[Ljava.lang.Object;",[1,["java.lang.Long",2],"x",null]]"#,
        r#"["[[Ljava.lang.Object;",[["[Ljava.lang.Object;",[["java.lang.Long",1]]]]]"#,
        r#"["java.util.UUID","00000000-0000-0001-0000-000000000002"]"#,
        r#"["java.util.Date",7]"#,
        r#"["java.math.BigDecimal",1.5]"#,
        r#"["java.math.BigInteger",5]"#,
        r#"["java.util.Collections$UnmodifiableRandomAccessList",[1]]"#,
        r#"{"@class":"java.util.EnumMap<java.util.concurrent.TimeUnit,java.lang.Object>","DAYS":5}"#,
        r#"["java.util.EnumSet<java.util.concurrent.TimeUnit>",["DAYS"]]"#,
        r#"["java.util.concurrent.TimeUnit","DAYS"]"#,
        r#"{"@class":"java.util.LinkedHashMap","@class":"x"}"#,
        r#"{"@class":"com.acme.Deep","o":{"@class":"com.acme.Deep","l":["java.util.ArrayList",[{"x":1}]]},"n":12345678901}"#,
        "[1,[2,null,[]],{}]",
    ] {
        let value: Value =
            JsonJackson.decode(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(String::from_utf8(JsonJackson.encode(&value).unwrap()).unwrap(), json, "{value:?}");
        let again: Value = CborJackson.decode(&CborJackson.encode(&value).unwrap()).unwrap();
        assert_eq!(CborJackson.encode(&again).unwrap(), CborJackson.encode(&value).unwrap());
        let again: Value = MsgPackJackson.decode(&MsgPackJackson.encode(&value).unwrap()).unwrap();
        assert_eq!(MsgPackJackson.encode(&again).unwrap(), MsgPackJackson.encode(&value).unwrap());
    }
}

#[track_caller]
fn reads<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(json: &str, value: T) {
    let read: T = JsonJackson.decode(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(read, value, "{json}");
}

#[test]
fn with_and_without_classes() {
    let small = || Small { a: 7, b: Some("x".into()) };
    reads(r#"{"a":7,"b":"x"}"#, small());
    reads(r#" { "b" : "x" , "a" : 7 , "@class" : "lab.Small" } "#, small());
    reads(r#"{"@class":"lab.Small","a":7,"b":"x","more":{"b":[1,[2]]}}"#, small());
    reads(r#"{"@class":"lab.Small","a":["java.lang.Integer",7],"b":["java.lang.String","x"]}"#, small());
    reads("[1,2]", vec![1, 2]);
    reads(r#"["java.util.LinkedList",[1,2]]"#, vec![1i64, 2]);
    reads(r#"["java.util.ImmutableCollections$List12",[1,["java.lang.Integer",2]]]"#, vec![1, 2]);
    reads(r#"["java.util.Collections$UnmodifiableList",["x"]]"#, vec!["x".to_owned()]);
    reads(r#"["java.util.EnumSet<com.acme.Zoo$Status>",["NEW"]]"#, vec![Status::New]);
    reads(r#"["java.util.HashSet",[["com.acme.Zoo$Status","NEW"]]]"#, java::enum_set::Of(vec![Status::New]));
    reads(r#"{"@class":"java.util.TreeMap","1":["java.lang.Long",2]}"#, HashMap::from([(1, 2i64)]));
    reads(r#"{"1":2}"#, HashMap::from([("1".to_owned(), 2i64)]));
    reads("5", Some(5i64));
    reads("null", None::<i64>);
    reads("3", 3.0);
    reads("\"NaN\"", java::array::Of(vec!['N', 'a', 'N']));
    reads("1.5", "1.5".parse::<java::BigDecimal>().unwrap());
    reads(
        "\"607f660c-c854-1833-65dd-0d403b68a4ea\"",
        "607f660c-c854-1833-65dd-0d403b68a4ea".parse::<java::Uuid>().unwrap(),
    );
    reads("[1,2]", java::array::Of(vec![1, 2]));
    reads("[\"java.util.Arrays$ArrayList\",[[\"java.lang.Long\",1]]]", vec![Value::Long(1)]);
}

#[track_caller]
fn refused<T: Debug + Serialize + DeserializeOwned + 'static>(json: &str, says: &str) {
    let error = error(Codec::<T>::decode(&JsonJackson, json.as_bytes()));
    assert!(error.contains(says), "{error}");
    assert!(!error.contains("SECRET"), "{error}");
}

#[test]
fn errors_say_where_and_quote_nothing() {
    refused::<Small>(
        r#"{"@class":"lab.Large","a":7}"#,
        "::Small` as JSON of Redisson: expected the class `lab.Small`, found `lab.Large` at offset 10",
    );
    refused::<Small>(r#"{"a":"SECRET"}"#, "expected a java.lang.Integer, found text at offset 5");
    refused::<Small>(r#"{"a":5000000000}"#, "expected a java.lang.Integer, found an integer at offset 5");
    refused::<Small>(r#"{"b":"SECRET"}"#, "missing field `a` at offset 0");
    refused::<Small>(r#"{"a":null}"#, "expected a java.lang.Integer, found null at offset 5");
    refused::<Small>(r#"["SECRET"]"#, "expected an object, found a list at offset 0");
    refused::<Order>(
        r#"{"id":1,"lines":["java.util.ArrayList",[{"@class":"com.acme.Other"}]]}"#,
        "expected the class `com.acme.Zoo$Line`, found `com.acme.Other` at offset 50",
    );
    refused::<Status>("\"SECRET\"", "unknown variant, expected one of `NEW`, `PAID`");
    refused::<Status>(
        r#"["com.acme.Other","NEW"]"#,
        "expected the class `com.acme.Zoo$Status`, found `com.acme.Other`",
    );
    refused::<Vec<i32>>(
        r#"["com.acme.MyList",[1]]"#,
        "expected the class `java.util.ArrayList`, found `com.acme.MyList`",
    );
    refused::<HashMap<String, i32>>(
        r#"{"@class":"com.acme.M"}"#,
        "expected the class `java.util.HashMap`, found `com.acme.M`",
    );
    refused::<java::array::Of<Vec<i32>>>(r#"["[J",[1]]"#, "expected the class `[I`, found `[J` at offset 1");
    refused::<HashMap<i32, i32>>(r#"{"SECRET":1}"#, "at offset 10");
    refused::<Vec<u8>>("\"SECRET!\"", "expected bytes, found text at offset 0");
    refused::<Times>(r#"{"instant":true}"#, "expected a java.time.Instant, found a boolean at offset 11");
    refused::<Times>(r#"{"instant":"2024"}"#, "expected a java.time.Instant, found text at offset 11");
    refused::<Small>(
        r#"["lab.Small",{"a":7}]"#,
        "expected an object, found its class in front of it, as `Mapper::wrapper_array` reads it at offset 0",
    );
    refused::<Value>("[1,", "expected a JSON value at offset 3, found the end");
}

#[test]
fn any_class_is_read_when_wanted() {
    let any = JsonJackson.with_any_class();
    let small: Small = any.decode(br#"{"@class":"lab.Large","a":7}"#).unwrap();
    assert_eq!(small, Small { a: 7, b: None });
    assert_eq!(any.encode(&small).unwrap(), br#"{"@class":"lab.Small","a":7}"#);
    let list: Vec<i32> = any.decode(br#"["com.acme.MyList",[["java.lang.Long",1]]]"#).unwrap();
    assert_eq!(list, [1]);
    let map: HashMap<String, i32> = any.decode(br#"{"@class":"com.acme.M","a":1}"#).unwrap();
    assert_eq!(map["a"], 1);
    let array: java::array::Of<Vec<i32>> = any.decode(br#"["[J",[1]]"#).unwrap();
    assert_eq!(array.0, [1]);
}

/// As Redisson's mapper does.
#[test]
fn what_is_not_written() {
    let said = |result: Result<Vec<u8>, CodecError>| error(result);
    let times = Times { instant: java::Instant::new(0, 0), local: None, day: None, gap: None };
    assert_eq!(
        said(JsonJackson.encode(&times)),
        "at Zoo$Times.instant: a java.time.Instant is not written: Redisson's own mapper has no module for it; `JsonJackson::with_mapper` is for \
         one that has"
    );
    let note = Some(java::optional::Of(Some("x".to_owned())));
    let ledger = Ledger { amount: None, id: None, when: None, big: None, note };
    assert_eq!(
        said(CborJackson.encode(&ledger)),
        "at Zoo$Ledger.note: Redisson's Jackson codecs write no java.util.Optional"
    );
    let big: java::BigInteger = "18446744073709551616".parse().unwrap();
    assert_eq!(said(MsgPackJackson.encode(&big)), "a BigInteger beyond 64 bits has no MessagePack form");
    let exact: java::BigDecimal = "0.12345678901234567890".parse().unwrap();
    assert!(said(MsgPackJackson.encode(&exact)).contains("neither an integer nor a double"));
    let long: java::BigDecimal = "1E+1000".parse().unwrap();
    assert!(
        said(JsonJackson.encode(&long)).contains("1001 characters is more than the 1000 that Jackson reads")
    );
    let long: java::BigInteger = "9".repeat(1010).parse().unwrap();
    assert!(said(CborJackson.encode(&long)).contains("more than 1000 digits"));
    let beyond: java::BigInteger = "9".repeat(1001).parse().unwrap();
    let negative: java::BigInteger = format!("-{}", "9".repeat(1000)).parse().unwrap();
    for key in [
        Value::BigInteger(long.clone()),
        Value::BigInteger(beyond),
        Value::BigInteger(negative.clone()),
        Value::BigDecimal(java::BigDecimal::new(long, 1)),
        Value::BigDecimal(java::BigDecimal::new(negative, 1)),
    ] {
        let map = java::Map::new("java.util.HashMap", [(key, Value::Null)]);
        let error = said(JsonJackson.encode(&Value::Map(Box::new(map))));
        assert!(error.contains("a key of more than 1000 characters"), "{error}");
    }
    assert!(said(JsonJackson.encode(&'🚀')).contains("not one `char`"));
    assert!(said(JsonJackson.encode(&0xd83du16)).contains("half of a surrogate pair"));
}

/// A key has as many digits as a value at most, read and written.
#[test]
fn keys_of_many_digits() {
    let payload = |digits| format!("{{\"{}\":1}}", "9".repeat(digits));
    fn both<K: Eq + std::hash::Hash + Serialize + DeserializeOwned + 'static>(payload: &str) {
        let map: HashMap<K, i32> = JsonJackson.decode(payload.as_bytes()).unwrap();
        let written = JsonJackson.encode(&map).unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap().replace(r#""@class":"java.util.HashMap","#, ""),
            payload
        );
    }
    both::<java::BigInteger>(&payload(1000));
    both::<java::BigDecimal>(&payload(1000));
    let payload = payload(1001);
    for error in [
        error(Codec::<HashMap<java::BigInteger, i32>>::decode(&JsonJackson, payload.as_bytes())),
        error(Codec::<HashMap<java::BigDecimal, i32>>::decode(&JsonJackson, payload.as_bytes())),
    ] {
        assert!(error.contains("at most 1000 characters, found one of 1001"), "{error}");
    }
}

/// A `char` of Java is a unit of UTF-16, read and written.
#[test]
fn keys_of_one_character() {
    let read = |payload: &str| Codec::<HashMap<char, i32>>::decode(&JsonJackson, payload.as_bytes());
    let payload = r#"{"@class":"java.util.HashMap","ä":1}"#;
    let map = read(payload).unwrap();
    assert_eq!(map, HashMap::from([('ä', 1)]));
    assert_eq!(JsonJackson.encode(&map).unwrap(), payload.as_bytes());
    for key in ["🚀", "ab", ""] {
        let error = error(read(&format!(r#"{{"{key}":1}}"#)));
        assert!(error.contains("expected a key of one character"), "{error}");
    }
    let error = error(JsonJackson.encode(&HashMap::from([('🚀', 1)])));
    assert!(error.contains("not one `char`"), "{error}");
}

/// `@JsonAlias`: each name is read, and the field's own is written.
#[test]
fn two_names_of_one_field() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Order")]
    struct Order {
        #[serde(alias = "before", alias = "zip")]
        note: Option<String>,
        #[serde(alias = "nr")]
        id: i64,
        #[serde(alias = "any")]
        value: Value,
    }
    #[derive(Serialize, Deserialize)]
    #[serde(rename = "com.acme.Order")]
    struct Old<T> {
        zip: T,
        nr: i64,
        any: Value,
    }
    #[derive(Serialize, Deserialize)]
    #[serde(rename = "com.acme.Order")]
    struct New {
        note: Option<String>,
        id: i64,
        value: Value,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "rest(more) com.acme.Rest")]
    struct Rest {
        #[serde(alias = "all")]
        more: BTreeMap<String, Value>,
    }
    fn both<C: Codec<Order> + Codec<Old<Option<String>>> + Codec<New>>(codec: C) {
        for (note, value) in [(None, Value::Null), (Some("a".to_owned()), Value::Null), (None, 1.into())] {
            let old = codec.encode(&Old { zip: note.clone(), nr: 7, any: value.clone() }).unwrap();
            let new = codec.encode(&New { note: note.clone(), id: 7, value: value.clone() }).unwrap();
            let order = Order { note, id: 7, value };
            assert_eq!(Codec::<Order>::decode(&codec, &old).unwrap(), order);
            assert_eq!(Codec::<Order>::decode(&codec, &new).unwrap(), order);
            assert_eq!(codec.encode(&order).unwrap(), new);
        }
    }
    both(JsonJackson);
    both(CborJackson);
    both(MsgPackJackson);
    reads(r#"{"before":null,"id":7}"#, Order { note: None, id: 7, value: Value::Null });
    refused::<Order>(r#"{"note":"a","id":7,"zip":"b"}"#, "duplicate field `note`");
    reads(r#"{"all":1}"#, Rest { more: [("all".to_owned(), 1.into())].into() });
    reads("{}", Rest { more: BTreeMap::new() });
}

#[test]
fn two_names_of_one_constant() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "abstract(Paid) com.acme.Status")]
    enum Status {
        #[serde(alias = "Done", alias = "Settled")]
        Paid,
        Open,
    }
    for name in ["Done", "Paid", "Settled"] {
        reads(&format!("{name:?}"), Status::Paid);
    }
    assert_eq!(JsonJackson.encode(&Status::Paid).unwrap(), br#""Paid""#);
}

/// A character of `char[]` is a unit of UTF-16. Java writes all of them as one text.
#[test]
fn arrays_of_characters() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Note")]
    struct Note<T> {
        text: java::array::Of<Vec<T>>,
    }
    let payload = r#"{"@class":"com.acme.Note","text":"a\uD83D\uDE80"}"#.as_bytes();
    let note: Note<u16> = JsonJackson.decode(payload).unwrap();
    assert_eq!(note.text.0, "a🚀".encode_utf16().collect::<Vec<_>>());
    assert_eq!(JsonJackson.encode(&note).unwrap(), payload);
    let error_of_half = error(Codec::<Note<char>>::decode(&JsonJackson, payload));
    assert!(
        error_of_half.contains("at Note.text: ") && error_of_half.contains("use `u16`"),
        "{error_of_half}"
    );
    let payload = r#"["[C","a\uD83D\uDE80"]"#.as_bytes();
    let value: java::Value = JsonJackson.decode(payload).unwrap();
    assert_eq!(JsonJackson.encode(&value).unwrap(), payload);
    for (elements, why) in [
        (vec![java::Value::Character(0xd83d)], "half of a surrogate pair"),
        (vec![java::Value::from("x")], "no element of [C"),
    ] {
        let array = java::Value::Array(Box::new(java::Array::new("[C", elements)));
        let error = error(JsonJackson.encode(&array));
        assert!(error.contains(why), "{error}");
    }
    let error = error(JsonJackson.encode(&Note { text: java::array::Of(vec![0xd83du16]) }));
    assert!(error.contains("half of a surrogate pair"), "{error}");
}

/// As Redisson 4.7.0 writes a `LinkedHashMap` with one key: those of `Integer` and `Long` are numbers in
/// CBOR.
#[test]
fn keys_of_maps() {
    use java::{BigDecimal, BigInteger};
    let one = |key: Value| {
        let Value::Map(mut map) = Value::map([("", Value::Integer(1))]) else { unreachable!("a map") };
        map.entries[0].0 = key;
        Value::Map(map)
    };
    for (key, text, number) in [
        (Value::Float(1.5), "1.5", None),
        (Value::Float(f32::NAN), "NaN", None),
        (Value::Double(1.0), "1.0", None),
        (Value::BigInteger(BigInteger::from(5)), "5", None),
        (Value::BigDecimal(BigDecimal::new(150, 2)), "1.50", None),
        (Value::BigDecimal(BigDecimal::new(1, -3)), "1E+3", None),
        (Value::Short(3), "3", None),
        (Value::Character(65), "A", None),
        (Value::Integer(5), "5", Some(5)),
        (Value::Long(7), "7", Some(7)),
    ] {
        let map = one(key);
        let json = format!("{{\"@class\":\"java.util.LinkedHashMap\",\"{text}\":1}}");
        assert_eq!(String::from_utf8(JsonJackson.encode(&map).unwrap()).unwrap(), json);
        let key =
            number.map_or([&[0x60 + text.len() as u8], text.as_bytes()].concat(), |number| vec![number]);
        let cbor = [&b"\xbff@classwjava.util.LinkedHashMap"[..], &key, b"\x01\xff"].concat();
        assert_eq!(CborJackson.encode(&map).unwrap(), cbor, "{map}");
    }
    let integers = HashMap::from([(BigInteger::from(5), 1)]);
    let decimals = HashMap::from([(BigDecimal::new(150, 2), 1)]);
    reads(r#"{"@class":"java.util.HashMap","5":1}"#, integers.clone());
    reads(r#"{"@class":"java.util.HashMap","1.50":1}"#, decimals.clone());
    for codec in [&JsonJackson as &dyn Codec<_>, &CborJackson, &MsgPackJackson] {
        assert_eq!(codec.decode(&codec.encode(&integers).unwrap()).unwrap(), integers);
    }
    for codec in [&JsonJackson as &dyn Codec<_>, &CborJackson, &MsgPackJackson] {
        assert_eq!(codec.decode(&codec.encode(&decimals).unwrap()).unwrap(), decimals);
    }
    let map = BTreeMap::from([(-1, 5i64)]);
    let cbor = b"\xbff@classqjava.util.HashMap\x20\x9fnjava.lang.Long\x05\xff\xff";
    assert_eq!(CborJackson.encode(&map).unwrap(), cbor);
    assert_eq!(Codec::<BTreeMap<i32, i64>>::decode(&CborJackson, cbor).unwrap(), map);
}

/// A type of any depth.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Chain")]
struct Chain {
    next: Option<Box<Chain>>,
    list: Vec<Chain>,
}

#[test]
fn deep_nesting_is_refused() {
    let chain =
        |levels: usize| (0..levels).fold(None, |next, _| Some(Box::new(Chain { next, list: Vec::new() })));
    let deep = JsonJackson.encode(&chain(100)).unwrap();
    let read: Option<Box<Chain>> = JsonJackson.decode(&deep).unwrap();
    assert_eq!(read, chain(100));
    assert!(error(JsonJackson.encode(&chain(1000))).contains("more than 127 levels"));
    for payload in [&b"[".repeat(100_000), &br#"{"next":"#.repeat(100_000), &br#"{"list":["#.repeat(100_000)]
    {
        refused::<Option<Chain>>(str::from_utf8(payload).unwrap(), "expected at most 127 levels");
        refused::<Value>(str::from_utf8(payload).unwrap(), "expected at most 127 levels");
    }
}
