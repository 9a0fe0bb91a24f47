//! `JsonJackson`, `CborJackson` and `MsgPackJackson`: the bytes of a value depend on its type, the place
//! where it is declared, and the format. They are planned once for each combination. These tests are about
//! combinations that could be confused, and about types whose `Serialize` does not match their `Deserialize`.

use std::collections::BTreeMap;

use codec::java::{self, Value};
use codec::{CborJackson, JsonJackson, MsgPackJackson};
use serde::ser::{SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};

use super::jackson::both;
use super::*;
use redelay_compat_values::zoo::{Level, Point, Status};

fn json<T>(value: &T) -> String
where
    JsonJackson: Codec<T>,
{
    String::from_utf8(JsonJackson.encode(value).unwrap()).unwrap()
}

/// The same name in Java, and in Rust.
mod other {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "lab.Same")]
    pub(super) struct Same {
        pub(super) b: String,
        pub(super) a: Vec<i64>,
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Same")]
struct Same {
    a: i64,
    b: Option<i64>,
}

#[test]
fn types_of_one_name_in_every_format() {
    let (one, two) = (Same { a: 1, b: Some(2) }, other::Same { b: "x".into(), a: vec![3] });
    for _ in 0..3 {
        both(Same { ..one }, r#"{"@class":"lab.Same","a":1,"b":["java.lang.Long",2]}"#);
        let text = r#"{"@class":"lab.Same","a":["java.util.ArrayList",[["java.lang.Long",3]]],"b":"x"}"#;
        assert_eq!(json(&two), text);
        let cbor = b"\xbff@classhlab.Sameaa\x01ab\x9fnjava.lang.Long\x02\xff\xff";
        assert_eq!(CborJackson.encode(&one).unwrap(), cbor);
        let cbor =
            b"\xbff@classhlab.Sameaa\x9fsjava.util.ArrayList\x9f\x9fnjava.lang.Long\x03\xff\xff\xffabax\xff";
        assert_eq!(CborJackson.encode(&two).unwrap(), cbor);
        let msgpack = b"\x83\xa6@class\xa8lab.Same\xa1a\x01\xa1b\x92\xaejava.lang.Long\x02";
        assert_eq!(MsgPackJackson.encode(&one).unwrap(), msgpack);
        let msgpack = b"\x83\xa6@class\xa8lab.Same\xa1a\x92\xb3java.util.ArrayList\x91\x92\xaejava.lang.Long\x03\xa1b\xa1x";
        assert_eq!(MsgPackJackson.encode(&two).unwrap(), msgpack);
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Page")]
struct Page<T> {
    items: Vec<T>,
    first: T,
}

#[test]
fn generic_types() {
    fn page<T>(items: Vec<T>, first: T) -> Page<T> {
        Page { items, first }
    }
    let list = |items: &str, first: &str| {
        format!(r#"{{"@class":"lab.Page","first":{first},"items":["java.util.ArrayList",[{items}]]}}"#)
    };
    both(page(vec![1i32], 2), &list("1", "2"));
    both(page(vec![1i64], 2), &list(r#"["java.lang.Long",1]"#, "2"));
    both(
        page(vec![Some(1i64), None], Some(2)),
        &list(r#"["java.lang.Long",1],null"#, r#"["java.lang.Long",2]"#),
    );
    both(page(vec!["a".to_owned()], String::new()), &list(r#""a""#, r#""""#));
    both(
        page(vec![Level::Low], Level::High),
        &list(r#"["com.acme.Zoo$Level","LOW"]"#, r#"["com.acme.Zoo$Level","HIGH"]"#),
    );
    let point = |x| Point { x, y: 0, label: None };
    both(page(vec![point(1)], point(2)), &list(r#"{"x":1,"y":0}"#, r#"{"x":2,"y":0}"#));
    both(
        page(vec![page(vec![1i64], 2)], page(vec![], 3)),
        &list(&list(r#"["java.lang.Long",1]"#, "2"), &list("", "3")),
    );
}

#[test]
fn one_type_at_many_places() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "final lab.Places")]
    struct Places<T> {
        field: T,
        #[serde(with = "java::object")]
        open: T,
        list: Vec<T>,
        open_list: Vec<java::object::Of<T>>,
        #[serde(with = "java::array")]
        array: Vec<T>,
        #[serde(with = "java::array")]
        open_array: Vec<java::object::Of<T>>,
        map: BTreeMap<String, T>,
        maybe: Option<T>,
    }
    fn places<T>(new: impl Fn() -> T) -> Places<T> {
        Places {
            field: new(),
            open: new(),
            list: vec![new()],
            open_list: vec![java::object::Of(new())],
            array: vec![new()],
            open_array: vec![java::object::Of(new())],
            map: BTreeMap::from([("k".to_owned(), new())]),
            maybe: Some(new()),
        }
    }
    /// The value in a field, in a field of `Object`, in a list, in an array, in a map, in an `Option`.
    fn text([field, open, list, array, map, maybe]: [&str; 6]) -> String {
        format!(
            concat!(
                r#"{{"array":{array},"field":{field},"list":["java.util.ArrayList",[{list}]],"#,
                r#""map":{{"@class":"java.util.HashMap","k":{map}}},"maybe":{maybe},"open":{open},"#,
                r#""open_array":["[Ljava.lang.Object;",[{open}]],"open_list":["java.util.ArrayList",[{open}]]}}"#,
            ),
            array = array,
            field = field,
            list = list,
            map = map,
            maybe = maybe,
            open = open,
        )
    }
    let long = r#"["java.lang.Long",1]"#;
    both(places(|| 1i64), &text(["1", long, long, "[1]", long, long]));
    let short = r#"["java.lang.Short",1]"#;
    both(places(|| 1i16), &text(["1", short, "1", "[1]", "1", "1"]));
    both(places(|| true), &text(["true", "true", "true", "[true]", "true", "true"]));
    let status = r#"["com.acme.Zoo$Status","NEW"]"#;
    both(
        places(|| Status::New),
        &text([r#""NEW""#, status, r#""NEW""#, r#"["NEW"]"#, r#""NEW""#, r#""NEW""#]),
    );
    let level = r#"["com.acme.Zoo$Level","LOW"]"#;
    let levels = r#"["[Lcom.acme.Zoo$Level;",[["com.acme.Zoo$Level","LOW"]]]"#;
    both(places(|| Level::Low), &text([level, level, level, levels, level, level]));
    let (point, open) = (r#"{"x":1,"y":2}"#, r#"{"@class":"com.acme.Zoo$Point","x":1,"y":2}"#);
    both(
        places(|| Point { x: 1, y: 2, label: None }),
        &text([point, open, point, &format!("[{point}]"), point, point]),
    );
    let same = r#"{"@class":"lab.Same","a":1}"#;
    let sames = &format!(r#"["[Llab.Same;",[{same}]]"#);
    both(places(|| Same { a: 1, b: None }), &text([same, same, same, sames, same, same]));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Tree")]
struct Tree {
    value: i64,
    next: Option<Box<Tree>>,
    children: Vec<Option<Tree>>,
    #[serde(with = "java::object")]
    any: Option<Box<Tree>>,
    by_name: BTreeMap<String, Option<Tree>>,
}

#[test]
fn types_that_hold_themselves() {
    let leaf = |value| Tree { value, next: None, children: vec![], any: None, by_name: BTreeMap::new() };
    let text = |value, any: &str, names: &str, children: &str, next: &str| {
        format!(
            concat!(
                r#"{{"@class":"lab.Tree",{}"by_name":{{"@class":"java.util.HashMap"{}}},"#,
                r#""children":["java.util.ArrayList",[{}]],{}"value":{}}}"#,
            ),
            any, names, children, next, value
        )
    };
    let tree = Tree {
        value: 1,
        next: Some(Box::new(Tree { next: Some(Box::new(leaf(3))), ..leaf(2) })),
        children: vec![Some(leaf(4)), None],
        any: Some(Box::new(leaf(5))),
        by_name: BTreeMap::from([("b".into(), Some(leaf(6)))]),
    };
    let plain = |value| text(value, "", "", "", "");
    let expected = text(
        1,
        &format!(r#""any":{},"#, plain(5)),
        &format!(r#","b":{}"#, plain(6)),
        &format!("{},null", plain(4)),
        &format!(r#""next":{},"#, text(2, "", "", "", &format!(r#""next":{},"#, plain(3)))),
    );
    both(tree, &expected);
    // A null is left out of a map.
    let tree = Tree { by_name: BTreeMap::from([("a".into(), None), ("b".into(), None)]), ..leaf(1) };
    assert_eq!(json(&tree), plain(1));
}

/// Writes its fields in another order, twice, fewer than announced, or more than it reads.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "lab.Odd")]
struct Odd {
    a: i32,
    b: Option<i32>,
    c: Option<Vec<i32>>,
    #[serde(skip)]
    unknown: bool,
}

impl Serialize for Odd {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        let mut fields = output.serialize_struct("lab.Odd", 30)?;
        fields.serialize_field("c", &Some(vec![9; 20]))?;
        fields.serialize_field("b", &Some(8))?;
        fields.serialize_field("c", &self.c.as_deref().map(Unannounced))?;
        if self.unknown {
            fields.serialize_field("d", &1)?;
        }
        fields.serialize_field("a", &self.a)?;
        fields.serialize_field("b", &self.b)?;
        fields.end()
    }
}

/// A list of unknown length.
struct Unannounced<'a>(&'a [i32]);

impl Serialize for Unannounced<'_> {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        let mut elements = output.serialize_seq(None)?;
        self.0.iter().try_for_each(|element| elements.serialize_element(element))?;
        elements.end()
    }
}

#[test]
fn fields_that_come_as_they_like() {
    let odd = |b, c: Option<usize>| Odd { a: 1, b, c: c.map(|length| vec![0; length]), unknown: false };
    both(odd(None, None), r#"{"@class":"lab.Odd","a":1}"#);
    both(odd(Some(2), None), r#"{"@class":"lab.Odd","a":1,"b":2}"#);
    both(odd(Some(2), Some(2)), r#"{"@class":"lab.Odd","a":1,"b":2,"c":["java.util.ArrayList",[0,0]]}"#);
    both(odd(None, Some(0)), r#"{"@class":"lab.Odd","a":1,"c":["java.util.ArrayList",[]]}"#);
    for length in [15, 16, 17, 23, 24, 300, 70_000] {
        for odd in [odd(Some(2), Some(length)), odd(None, Some(length))] {
            let text = json(&odd);
            let list = vec![odd.clone(), odd.clone()];
            assert_eq!(json(&list), format!(r#"["java.util.ArrayList",[{text},{text}]]"#));
            for (codec, name) in [(&CborJackson as &dyn Codec<_>, "CBOR"), (&MsgPackJackson, "MessagePack")] {
                let back: Vec<Odd> = codec.decode(&codec.encode(&list).unwrap()).unwrap();
                assert_eq!(back, list, "{name}");
            }
        }
    }
    let unknown = Odd { unknown: true, ..odd(None, None) };
    let said = error(JsonJackson.encode(&unknown));
    assert_eq!(said, "the type writes the field `d`, and does not read it");
    // No trace of the half-written value is left.
    both(odd(None, None), r#"{"@class":"lab.Odd","a":1}"#);
}

/// An `int[]` and a map that announce a wrong length to serde.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename = "record lab.Lengths")]
struct Lengths {
    #[serde(with = "java::array")]
    ints: Vec<i32>,
    map: BTreeMap<i32, Option<i32>>,
}

impl Serialize for Lengths {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        struct Map<'a>(&'a BTreeMap<i32, Option<i32>>);

        impl Serialize for Map<'_> {
            fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                let mut entries = output.serialize_map(Some(17))?;
                self.0.iter().try_for_each(|(key, value)| entries.serialize_entry(key, value))?;
                entries.end()
            }
        }

        let mut fields = output.serialize_struct("record lab.Lengths", 2)?;
        fields.serialize_field("ints", &java::array::Of(Unannounced(&self.ints)))?;
        fields.serialize_field("map", &Map(&self.map))?;
        fields.end()
    }
}

#[test]
fn lengths_that_are_not_told() {
    let lengths = |count: i32| Lengths {
        ints: (0..count).map(|at| at % 2).collect(),
        map: (0..count).map(|at| (at, Some(1))).chain([(-1, None)]).collect(),
    };
    let hash_map = b"qjava.util.HashMap";
    let cbor = [&b"\xbfdints\x82\x00\x01cmap\xbff@class"[..], hash_map, b"\x00\x01\x01\x01\xff\xff"].concat();
    assert_eq!(CborJackson.encode(&lengths(2)).unwrap(), cbor);
    let msgpack = b"\x82\xa4ints\x92\x00\x01\xa3map\x83\xa6@class\xb1java.util.HashMap\xa10\x01\xa11\x01";
    assert_eq!(MsgPackJackson.encode(&lengths(2)).unwrap(), msgpack);
    assert_eq!(json(&lengths(2)), r#"{"ints":[0,1],"map":{"@class":"java.util.HashMap","0":1,"1":1}}"#);
    for (count, list, map) in [
        (0, &b"\x90"[..], &b"\x81"[..]),
        (14, b"\x9e", b"\x8f"),
        (15, b"\x9f", b"\xde\x00\x10"),
        (16, b"\xdc\x00\x10", b"\xde\x00\x11"),
        (70_000, b"\xdd\x00\x01\x11\x70", b"\xdf\x00\x01\x11\x71"),
    ] {
        let mut expected = lengths(count);
        expected.map.remove(&-1);
        let payload = MsgPackJackson.encode(&lengths(count)).unwrap();
        assert_eq!(payload[6..6 + list.len()], *list);
        let behind = 6 + list.len() + count as usize;
        assert_eq!(payload[behind..behind + 4 + map.len()], [b"\xa3map", map].concat());
        assert_eq!(Codec::<Lengths>::decode(&MsgPackJackson, &payload).unwrap(), expected);
        let payload = CborJackson.encode(&lengths(count)).unwrap();
        assert_eq!(Codec::<Lengths>::decode(&CborJackson, &payload).unwrap(), expected);
        assert_eq!(
            Codec::<Lengths>::decode(&JsonJackson, json(&lengths(count)).as_bytes()).unwrap(),
            expected
        );
    }
}

#[test]
fn objects_without_anything_in_them() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "record lab.Empty")]
    struct Empty {
        a: Option<i32>,
        b: Option<Box<Empty>>,
    }
    let empty = |b| Empty { a: None, b };
    both(empty(None), "{}");
    both(empty(Some(Box::new(empty(None)))), r#"{"b":{}}"#);
    both(
        vec![empty(None), empty(None)],
        r#"["java.util.ArrayList",[{"@class":"lab.Empty"},{"@class":"lab.Empty"}]]"#,
    );
    assert_eq!(CborJackson.encode(&empty(None)).unwrap(), b"\xbf\xff");
    assert_eq!(MsgPackJackson.encode(&empty(None)).unwrap(), b"\x80");
}

/// A struct of more than 64 fields, all but one of which are null.
#[test]
fn many_fields() {
    macro_rules! many {
        ($($field:ident)+) => {
            #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
            #[serde(rename = "lab.Many")]
            struct Many {
                $($field: Option<i32>,)+
            }
            const NAMES: &[&str] = &[$(stringify!($field)),+];
            fn only(name: &str) -> Many {
                Many { $($field: (name == stringify!($field)).then_some(7),)+ }
            }
        };
    }
    many! {
        z9 z8 z7 z6 z5 z4 z3 z2 z1 z0 a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9
        y9 y8 y7 y6 y5 y4 y3 y2 y1 y0 c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 d0 d1 d2 d3 d4 d5 d6 d7 d8 d9
        x9 x8 x7 x6 x5 x4 x3 x2 x1 x0
    }
    assert_eq!(NAMES.len(), 70);
    for name in NAMES {
        both(only(name), &format!(r#"{{"@class":"lab.Many","{name}":7}}"#));
    }
    both(Many::default(), r#"{"@class":"lab.Many"}"#);
    let all: Many = JsonJackson
        .decode(format!("{{{}}}", NAMES.map_join(|name| format!("\"{name}\":1"))).as_bytes())
        .unwrap();
    let mut sorted = NAMES.to_vec();
    sorted.sort_unstable();
    let text = sorted.map_join(|name| format!("\"{name}\":1"));
    both(all, &format!(r#"{{"@class":"lab.Many",{text}}}"#));
}

trait MapJoin {
    fn map_join(&self, text: impl Fn(&str) -> String) -> String;
}

impl MapJoin for [&str] {
    fn map_join(&self, text: impl Fn(&str) -> String) -> String {
        self.iter().map(|name| text(name)).collect::<Vec<_>>().join(",")
    }
}

/// Values that are written while another one is; one of them fails, and one is large.
#[test]
fn one_after_another() {
    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename = "lab.Outer")]
    struct Outer {
        inner: String,
        #[serde(with = "java::optional")]
        note: Option<String>,
    }

    impl Serialize for Outer {
        fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
            let mut fields = output.serialize_struct("lab.Outer", 2)?;
            fields.serialize_field("inner", &json(&Same { a: 1, b: None }))?;
            fields.serialize_field("note", &java::optional::Of(&self.note))?;
            fields.end()
        }
    }

    let outer = |note: Option<&str>| Outer { inner: String::new(), note: note.map(str::to_owned) };
    let written = r#"{"@class":"lab.Outer","inner":"{\"@class\":\"lab.Same\",\"a\":1}"}"#;
    let refused = "at [1].note: Redisson's Jackson codecs write no java.util.Optional";
    for _ in 0..3 {
        assert_eq!(json(&outer(None)), written);
        assert_eq!(error(JsonJackson.encode(&vec![outer(None), outer(Some("x"))])), refused);
        let large = vec![Same { a: 1, b: None }; 5_000];
        let text = json(&large);
        assert_eq!(text.len(), 5_000 * 28 + r#"["java.util.ArrayList",[]]"#.len() - 1);
        assert_eq!(Codec::<Vec<Same>>::decode(&JsonJackson, text.as_bytes()).unwrap(), large);
    }
}

/// A `Value` decides by itself what is written.
#[test]
fn values_between_fields() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "lab.Any")]
    struct Any {
        z: Value,
        a: Value,
    }
    let any = |z: Value, a: Value| Any { z, a };
    both(any(Value::from(1i64), Value::Null), r#"{"@class":"lab.Any","z":["java.lang.Long",1]}"#);
    both(any(Value::Null, Value::from("x")), r#"{"@class":"lab.Any","a":"x"}"#);
    both(any(Value::Null, Value::Null), r#"{"@class":"lab.Any"}"#);
    both(
        any(Value::list([Value::Null, Value::from(1)]), Value::from(1.5)),
        r#"{"@class":"lab.Any","a":1.5,"z":["java.util.ArrayList",[null,1]]}"#,
    );
}
