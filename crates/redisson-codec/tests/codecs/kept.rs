//! What a codec does not understand it keeps and writes back unchanged, or refuses. It never writes other
//! bytes than Java.

use codec::java::{self, Value};
use codec::{CborJackson, Json, JsonJackson, Kryo5, Mapper, MsgPack, MsgPackJackson, ZStd};
use redelay_compat_values::tasks::{Sms, Task};
use redelay_compat_values::zoo::{Entries, Mixed, Mixes, Status};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Node;

use prop::collection::vec;

use super::*;

/// Classes of Java's library of each kind, and others.
const CLASSES: [&str; 62] = [
    "com.acme.Money",
    "com.acme.Zoo$Order",
    "com.acme.Box<java.lang.String>",
    "[Lcom.acme.Base;",
    "[[Lcom.acme.Base;",
    "[Ljava.lang.Object;",
    "[Ljava.lang.String;",
    "[Ljava.lang.Integer;",
    "[Ljava.lang.Long;",
    "[Ljava.math.BigDecimal;",
    "[I",
    "[J",
    "[S",
    "[F",
    "[D",
    "[Z",
    "[B",
    "[C",
    "[[I",
    "[?",
    "[",
    "java.lang.Object",
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Short",
    "java.lang.Character",
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Float",
    "java.lang.Double",
    "java.lang.String",
    "java.lang.Class",
    "java.math.BigInteger",
    "java.math.BigDecimal",
    "java.math.RoundingMode",
    "java.util.UUID",
    "java.util.Date",
    "java.util.Locale",
    "java.util.Optional",
    "java.util.ArrayList",
    "java.util.TreeSet",
    "java.util.HashMap",
    "java.util.TreeMap",
    "java.util.EnumMap",
    "java.util.BitSet",
    "java.util.RegularEnumSet",
    "java.util.EnumSet<com.acme.Color>",
    "java.util.Collections$UnmodifiableMap",
    "java.util.Collections$SingletonList",
    "java.util.ImmutableCollections$ListN",
    "java.util.regex.Pattern",
    "java.util.concurrent.atomic.AtomicInteger",
    "java.util.concurrent.atomic.AtomicLong",
    "java.util.concurrent.atomic.AtomicBoolean",
    "java.sql.Timestamp",
    "java.sql.Time",
    "java.net.URI",
    "java.time.Instant",
    "java.time.LocalDate",
    "java.time.OffsetDateTime",
    "java.time.ZoneRegion",
    "java.time.DayOfWeek",
];

const TEXTS: [&str; 14] = [
    "",
    "x",
    "AB",
    "NaN",
    "AQID",
    "AQI",
    "MONDAY",
    "2024-02-29",
    "2024-02-29T12:34:56Z",
    "2024-02-29T12:34:56",
    "12345678-90ab-cdef-8234-567890abcdef",
    "java.lang.String",
    "Europe/Berlin",
    "https://x",
];

/// Payloads as trees of JSON. A number is one that each format has, in the form in which Java writes it.
fn nodes() -> impl Strategy<Value = Node> {
    let class = || prop::sample::select(&CLASSES[..]);
    let leaf = prop_oneof![
        Just(Node::Null),
        any::<bool>().prop_map(Node::from),
        any::<i8>().prop_map(Node::from),
        any::<i64>().prop_map(Node::from),
        (-8i32..8).prop_map(|number| Node::from(f64::from(number) + 0.5)),
        prop::sample::select(&TEXTS[..]).prop_map(Node::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |node| {
        let names = prop::sample::select(&["a", "b", "pattern", "flags", "value", "time", "zip", "@id"][..]);
        let entries = vec((names, node.clone()), 0..4);
        let object = |class: Option<&str>, entries: Vec<(&str, Node)>| {
            let mut object = serde_json::Map::new();
            object.extend(class.map(|class| ("@class".to_owned(), class.into())));
            object.extend(entries.into_iter().map(|(name, node)| (name.to_owned(), node)));
            Node::Object(object)
        };
        let pair = |class: &str, node| Node::Array(vec![class.into(), node]);
        prop_oneof![
            entries.clone().prop_map(move |entries| object(None, entries)),
            (class(), entries.clone()).prop_map(move |(class, entries)| object(Some(class), entries)),
            (class(), node.clone()).prop_map(move |(class, node)| pair(class, node)),
            (class(), vec(node.clone(), 0..4))
                .prop_map(move |(class, nodes)| pair(class, Node::Array(nodes))),
            (class(), entries).prop_map(move |(class, entries)| pair(class, object(None, entries))),
            vec(node, 0..4).prop_map(Node::Array),
        ]
    })
}

/// Whether a list is a pair: a class, and its value.
fn is_pair(nodes: &[Node]) -> bool {
    match nodes {
        [Node::String(class), Node::String(_)] if class.starts_with('[') => matches!(&class[..], "[B" | "[C"),
        [Node::String(_), Node::Object(_) | Node::Null] => false,
        [Node::String(class), _] => class.contains('.') || class.starts_with('['),
        _ => false,
    }
}

/// Whether a list behind a class may be such a pair, too, which Java does not write.
fn is_either(node: &Node) -> bool {
    match node {
        Node::Array(nodes) => match &nodes[..] {
            [_, Node::Array(inside)] if is_pair(nodes) && is_pair(inside) => true,
            nodes => nodes.iter().any(is_either),
        },
        Node::Object(entries) => entries.values().any(is_either),
        _ => false,
    }
}

/// As Jackson writes CBOR: lists behind a class and objects have no length in front, others have.
fn cbor(node: &Node, out: &mut Vec<u8>) {
    let text = |text: &str, out: &mut Vec<u8>| {
        match text.len() {
            length @ 0..24 => out.push(0x60 + length as u8),
            length => out.extend([0x78, length as u8]),
        }
        out.extend(text.as_bytes());
    };
    match node {
        Node::Array(nodes) => match &nodes[..] {
            [class, inside] if is_pair(nodes) => {
                out.push(0x9f);
                cbor(class, out);
                match inside {
                    Node::Array(inside) if !is_pair(inside) => {
                        out.push(0x9f);
                        inside.iter().for_each(|node| cbor(node, out));
                        out.push(0xff);
                    }
                    inside => cbor(inside, out),
                }
                out.push(0xff);
            }
            _ => {
                out.push(0x80 + nodes.len() as u8);
                nodes.iter().for_each(|node| cbor(node, out));
            }
        },
        Node::Object(entries) => {
            out.push(0xbf);
            for (key, node) in entries {
                text(key, out);
                cbor(node, out);
            }
            out.push(0xff);
        }
        Node::String(value) => text(value, out),
        other => {
            let value: Value = JsonJackson.decode(other.to_string().as_bytes()).unwrap();
            out.extend(CborJackson.encode(&value).unwrap());
        }
    }
}

#[track_caller]
fn kept<T: Debug>(codec: &impl Codec<T>, payload: &[u8]) -> Result<(), TestCaseError> {
    let shown = payload.escape_ascii();
    let value = codec.decode(payload).map_err(|error| TestCaseError::fail(format!("{error}: {shown}")))?;
    let written =
        codec.encode(&value).map_err(|error| TestCaseError::fail(format!("{error}: {shown}: {value:?}")))?;
    prop_assert_eq!(written.escape_ascii().to_string(), shown.to_string(), "{:?}", value);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_value_keeps_what_stands_behind_a_class(node in nodes()) {
        let json = node.to_string().into_bytes();
        kept::<Value>(&JsonJackson, &json)?;
        kept::<Value>(&JsonJackson.with_any_class(), &json)?;
        kept::<Value>(&JsonJackson.with_mapper(Mapper::new().wrapper_array()), &json)?;
        kept::<Value>(&JsonJackson.with_mapper(Mapper::new().java_time()), &json)?;
        kept::<Value>(&JsonJackson.with_mapper(Mapper::new().wrapper_array().java_time_as_text()), &json)?;
        kept::<Value>(&JsonJackson.with_mapper(Mapper::new().without_classes()), &json)?;
        kept::<Value>(&MsgPackJackson, &MsgPack.encode(&node).unwrap())?;
        // CBOR has forms of its own for these, and Java writes no others.
        if !node.to_string().contains("java.math.Big") && !is_either(&node) {
            let mut payload = Vec::new();
            cbor(&node, &mut payload);
            kept::<Value>(&CborJackson, &payload)?;
        }
    }
}

/// One payload for each reason not to understand it.
#[test]
fn a_value_keeps_odd_content() {
    for json in [
        r#"["[I",["x",1.5,null]]"#,
        r#"["[I",7]"#,
        r#"["[I",[5000000000]]"#,
        r#"["[C",[1]]"#,
        r#"["[Ljava.lang.Integer;",["x",1.5,null,{"@class":"com.acme.Fax"}]]"#,
        r#"["[Lcom.acme.Base;",[{"@class":"com.acme.Other","x":1},5,"x",null,["java.lang.Long",7]]]"#,
        r#"["java.util.EnumSet<com.acme.Color>",["RED",5,null]]"#,
        r#"["java.util.UUID",[1,2]]"#,
        r#"["java.util.Date",{"time":5}]"#,
        r#"["java.lang.Long",[5]]"#,
        r#"{"@class":"java.util.regex.Pattern","pattern":"x","flags":5}"#,
        r#"{"@class":"java.util.concurrent.atomic.AtomicInteger","value":5}"#,
        r#"["java.util.concurrent.atomic.AtomicInteger","x"]"#,
        r#"["java.util.HashMap",[1,2]]"#,
    ] {
        kept::<Value>(&JsonJackson, json.as_bytes()).unwrap();
    }
}

/// Jackson writes the keys of a map of an application as numbers, too.
#[test]
fn a_value_keeps_numbers_that_are_keys() {
    let text = |text: &str| [&[0x60 + text.len() as u8][..], text.as_bytes()].concat();
    let entries = [&[0x01][..], &text("a"), &[0x39, 0x01, 0x2b], &text("b"), &text("c"), &text("d")].concat();
    let class = [text("@class"), text("com.acme.Sparse")].concat();
    for class in [&b""[..], &class] {
        let map = [&[0xbf][..], class, &entries, &[0xff]].concat();
        kept::<Value>(&CborJackson, &map).unwrap();
        kept::<Value>(&CborJackson, &[&[0xbf][..], &text("x"), &map, &[0xff]].concat()).unwrap();
    }
}

/// Of the whole payload, Kryo keeps what it cannot read.
#[test]
fn a_value_of_kryo_keeps_an_unknown_class() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Other")]
    struct Other {
        number: i32,
        next: Option<Box<Other>>,
    }
    let other = |number| Other { number, next: Some(Box::new(Other { number: 7, next: None })) };
    let alone = Kryo5.encode(&other(1)).unwrap();
    kept::<Value>(&Kryo5, &alone).unwrap();
    let value: Value = Kryo5.decode(&alone).unwrap();
    assert!(matches!(&value, Value::Opaque(opaque) if opaque.class == "com.acme.Other"), "{value:?}");
    // Also among values that are known: nothing says where it ends.
    for payload in [
        Kryo5.encode(&vec![other(1), other(2)]).unwrap(),
        Kryo5.encode(&Entries(vec![("a".to_owned(), other(1)), ("b".to_owned(), other(2))])).unwrap(),
        Kryo5.encode(&java::array::Of::from(vec![Some(other(1)), None])).unwrap(),
        Kryo5.encode(&Opaques { extra: other(3) }).unwrap(),
    ] {
        kept::<Value>(&Kryo5, &payload).unwrap();
        kept::<Value>(&ZStd(Kryo5), &ZStd(Kryo5).encode(&Kryo5.decode(&payload).unwrap() as &Value).unwrap())
            .unwrap();
    }
    // Java's own serialization inside.
    for row in rows("shapes-kryo5").iter().chain(&rows("kryo5")).chain(&rows("kryo5-classes")) {
        kept::<Value>(&Kryo5, &row.payload).unwrap();
    }
    // But not what is broken, or what no class is.
    for (payload, why) in [
        (&b"\x01\x00java.util.ArrayLis\xf4\x03"[..], "it ends at offset"),
        (b"\x01\x00no clas\xf3\x03", "the fields of the class `no class`"),
        (b"\x0c\x00", "class id 12"),
    ] {
        assert!(error(Codec::<Value>::decode(&Kryo5, payload)).contains(why));
    }
    // Nor in a field, where something follows it.
    let field = Kryo5.encode(&Opaques { extra: other(3) }).unwrap();
    let why = error(Codec::<Holder>::decode(&Kryo5, &field));
    assert!(why.contains("at Holder.extra: ") && why.contains("the class `com.acme.Other`"), "{why}");

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Holder")]
    struct Opaques {
        #[serde(with = "java::object")]
        extra: Other,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Holder")]
    struct Holder {
        extra: Value,
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Task")]
enum AnyTask {
    Sms(Sms),
    Other(Value),
}

#[test]
fn odd_elements_of_an_array() {
    for (array, is_task) in [
        (r#"["[Lcom.acme.Tasks$Task;",[]]"#, true),
        (r#"["[Lcom.acme.Tasks$Task;",[{"@class":"com.acme.Tasks$Sms","id":"a"},null]]"#, true),
        (
            r#"["[Lcom.acme.Tasks$Task;",[null,{"@class":"com.acme.Fax","number":7,"pages":["java.util.ArrayList",["a"]]}]]"#,
            false,
        ),
        (
            r#"["[Lcom.acme.Tasks$Task;",[{"@class":"com.acme.Fax"},5,"x",["java.lang.Long",7],["com.acme.Money",1.5]]]"#,
            false,
        ),
    ] {
        let mut payload = Vec::new();
        cbor(&array.parse().unwrap(), &mut payload);
        let msgpack = MsgPack.encode(&array.parse::<Node>().unwrap()).unwrap();
        kept::<Value>(&JsonJackson, array.as_bytes()).unwrap();
        kept::<java::array::Of<Vec<Option<AnyTask>>>>(&JsonJackson, array.as_bytes()).unwrap();
        kept::<java::array::Of<Vec<Option<AnyTask>>>>(&CborJackson, &payload).unwrap();
        kept::<java::array::Of<Vec<Option<AnyTask>>>>(&MsgPackJackson, &msgpack).unwrap();
        let tasks = Codec::<java::array::Of<Vec<Option<Task>>>>::decode(&JsonJackson, array.as_bytes());
        assert_eq!(tasks.is_ok(), is_task, "{array}");
        if let Err(error) = tasks {
            let error = error.to_string();
            assert!(
                error.contains("]: expected the class `com.acme.Tasks$Email`, `com.acme.Tasks$Sms`"),
                "{error}"
            );
        }
    }
    // The elements of an `Object[]` have their classes in Kryo, too.
    let objects = |elements| Value::Array(Box::new(java::Array::new("[Ljava.lang.Object;", elements)));
    let known =
        objects(vec![Value::Integer(1), Value::from("x"), Value::Null, Value::list([Value::Long(2)])]);
    kept::<Value>(&Kryo5, &Kryo5.encode(&known).unwrap()).unwrap();
    let tasks =
        java::array::Of::from(vec![Some(Task::Sms(Sms { id: None, template: Some(1), cost: None })), None]);
    kept::<Value>(&Kryo5, &Kryo5.encode(&tasks).unwrap()).unwrap();
    kept::<java::array::Of<Vec<Option<AnyTask>>>>(&Kryo5, &Kryo5.encode(&tasks).unwrap()).unwrap();
}

/// The same enum as `Mixed`, of which it is not said that `B` and `D` have bodies.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Mixed")]
enum NoBodies {
    A,
    B,
    C,
    D,
}

/// And one of which the wrong one is said to have one.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "abstract(A) com.acme.Zoo$Mixed")]
enum WrongBody {
    A,
    B,
    C,
    D,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Mixes")]
struct MixesOf<T: Eq + std::hash::Hash> {
    one: Option<T>,
    #[serde(with = "java::object")]
    open: Option<T>,
    #[serde(with = "java::array")]
    array: Option<Vec<Option<T>>>,
    list: Option<Vec<Option<T>>>,
    #[serde(with = "java::linked_hash_map")]
    map: Option<Entries<String, Option<T>>>,
    #[serde(with = "java::enum_set")]
    set: Option<Vec<T>>,
    #[serde(with = "java::linked_hash_map")]
    keys: Option<Entries<T, Option<i32>>>,
}

/// Refused, or written with the same bytes.
fn never_other_bytes<T: Debug + Serialize + DeserializeOwned + 'static>(
    codec: &impl Codec<T>,
    row: &Row,
) -> Option<String> {
    match codec.decode(&row.payload) {
        Err(error) => Some(error.to_string()),
        Ok(value) => {
            assert_eq!(
                codec.encode(&value).unwrap().escape_ascii().to_string(),
                row.payload.escape_ascii().to_string()
            );
            None
        }
    }
}

macro_rules! enums_without_the_word {
    ($test:ident $codec:ident $file:literal $is_kryo:literal) => {
        #[test]
        fn $test() {
            let mut refused = Vec::new();
            let mut wrong = Vec::new();
            for row in rows($file) {
                let kind = row.name.rsplit_once('.').map_or(&row.name[..], |(kind, _)| kind);
                match kind {
                    "mixed" => {
                        refused.extend(never_other_bytes::<NoBodies>(&$codec, &row));
                        wrong.extend(never_other_bytes::<WrongBody>(&$codec, &row));
                        assert_eq!(never_other_bytes::<Mixed>(&$codec, &row), None);
                    }
                    "mixes" => {
                        refused.extend(never_other_bytes::<MixesOf<NoBodies>>(&$codec, &row));
                        wrong.extend(never_other_bytes::<MixesOf<WrongBody>>(&$codec, &row));
                        assert_eq!(never_other_bytes::<Mixes>(&$codec, &row), None);
                    }
                    "mixedlist" => {
                        refused.extend(never_other_bytes::<Vec<Option<NoBodies>>>(&$codec, &row));
                        wrong.extend(never_other_bytes::<Vec<Option<WrongBody>>>(&$codec, &row));
                    }
                    "mixedarray" => {
                        refused.extend(never_other_bytes::<java::array::Of<Vec<NoBodies>>>(&$codec, &row));
                    }
                    _ => {}
                }
            }
            assert!(refused.len() >= 5, "{refused:#?}");
            assert!(wrong.len() >= 2, "{wrong:#?}");
            // Where a final class is declared, Kryo has none in front of it.
            let is_known = |error: &&String| !$is_kryo || error.contains("the class `com.acme.Zoo$Mixed");
            for error in refused.iter().chain(&wrong).filter(is_known) {
                assert!(error.contains("`abstract(…)`"), "{error}");
            }
            for error in refused {
                assert!(
                    !error.contains("expected the class `com.acme.Zoo$Mixed`, found `com.acme.Zoo$Mixed`"),
                    "{error}"
                );
            }
        }
    };
}

enums_without_the_word! { enums_without_the_word_in_json JsonJackson "json-jackson-places" false }
enums_without_the_word! { enums_without_the_word_in_cbor CborJackson "cbor-jackson-places" false }
enums_without_the_word! { enums_without_the_word_in_msgpack MsgPackJackson "msgpack-jackson-places" false }
enums_without_the_word! { enums_without_the_word_in_kryo Kryo5 "kryo5-places" true }

/// The other way round: an enum of which it is said, and has none.
#[test]
fn enums_with_a_needless_word() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "abstract com.acme.Zoo$Status", rename_all = "UPPERCASE")]
    enum AllBodies {
        New,
        Paid,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Holder")]
    struct Holder<T> {
        one: T,
        list: Vec<T>,
    }
    let payload = JsonJackson.encode(&Holder { one: Status::New, list: vec![Status::Paid] }).unwrap();
    let why = error(Codec::<Holder<AllBodies>>::decode(&JsonJackson, &payload));
    assert!(why.contains("at Holder.list[0]: ") && why.contains("`abstract(…)`"), "{why}");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "com.acme.Order")]
struct Strict {
    id: i64,
    note: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Order")]
struct Newer {
    extra: Option<i32>,
    id: i64,
    note: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Order")]
struct Last {
    id: i64,
    note: Option<String>,
    zip: i32,
}

#[test]
fn unknown_properties_are_refused_if_the_struct_says_so() {
    let newer = Newer { extra: Some(1), id: 7, note: None };
    macro_rules! refused {
        ($($codec:expr => $place:literal;)*) => {$(
            let payload = $codec.encode(&newer).unwrap();
            let why = error(Codec::<Strict>::decode(&$codec, &payload));
            assert!(why.contains("unknown field `extra`, expected `id` or `note`") && why.contains($place), "{why}");
            let same = Strict { id: 7, note: Some("x".into()) };
            let again: Strict = $codec.decode(&$codec.encode(&same).unwrap()).unwrap();
            assert_eq!(again, same);
        )*};
    }
    refused! {
        JsonJackson => "at offset";
        JsonJackson.with_mapper(Mapper::new().wrapper_array()) => "at offset";
        JsonJackson.with_mapper(Mapper::new().without_classes()) => "at offset";
        CborJackson => "at offset";
        MsgPackJackson => "at offset";
        Json => "column";
        MsgPack => "offset";
    }
    // Kryo has no names. What it can see is that something follows.
    let payload = Kryo5.encode(&Last { id: 7, note: None, zip: 5 }).unwrap();
    let why = error(Codec::<Strict>::decode(&Kryo5, &payload));
    assert!(why.ends_with("1 bytes follow it at offset 18"), "{why}");
    let same = Strict { id: 7, note: Some("x".into()) };
    let again: Strict = Kryo5.decode(&Kryo5.encode(&same).unwrap()).unwrap();
    assert_eq!(again, same);
}

/// The name that stands for the class is no property of the object.
#[test]
fn a_tag_is_no_unknown_property() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "tag(type) com.acme.Payment")]
    enum Payment {
        #[serde(rename = "order")]
        Order(Strict),
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, rename = "com.acme.Payments")]
    struct Payments {
        one: Payment,
    }
    let payload = br#"{"@class":"com.acme.Payments","one":{"type":"order","id":["java.lang.Long",7]}}"#;
    let payments = Payments { one: Payment::Order(Strict { id: 7, note: None }) };
    let found: Payments = JsonJackson.decode(&JsonJackson.encode(&payments).unwrap()).unwrap();
    assert_eq!(found, payments);
    let found: Payments = JsonJackson.decode(payload).unwrap();
    assert_eq!(found, payments);
    // It is one in another place.
    let why = error(Codec::<Strict>::decode(&JsonJackson, br#"{"type":"order","id":7}"#));
    assert!(why.contains("unknown field `type`"), "{why}");
}

/// `rest` has the properties that the struct does not know, and they are written where Java has them.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "rest(rest) com.acme.Order")]
struct Keeping {
    id: Option<i64>,
    note: Option<String>,
    #[serde(with = "java::linked_hash_map")]
    rest: Entries<String, Value>,
    zip: i32,
}

#[test]
fn unknown_properties_are_kept() {
    for json in [
        r#"{"@class":"com.acme.Order","zip":5}"#,
        r#"{"@class":"com.acme.Order","id":["java.lang.Long",7],"note":"x","zip":5}"#,
        r#"{"@class":"com.acme.Order","extra":1,"zip":5}"#,
        r#"{"@class":"com.acme.Order","address":{"@class":"com.acme.Address","city":"x"},"id":["java.lang.Long",7],"lines":["java.util.ArrayList",[{"@class":"com.acme.Line","n":1}]],"none":null,"note":"x","tags":[1,2],"zip":5,"zz":["java.math.BigDecimal",9.90]}"#,
        r#"{"@class":"com.acme.Order","@id":1,"Zip":2,"rest":{"@class":"java.util.HashMap","a":1},"zip":5,"é":1}"#,
    ] {
        kept::<Keeping>(&JsonJackson, json.as_bytes()).unwrap();
        let node: Node = json.parse().unwrap();
        if !json.contains("9.90") {
            kept::<Keeping>(&MsgPackJackson, &MsgPack.encode(&node).unwrap()).unwrap();
            let mut payload = Vec::new();
            cbor(&node, &mut payload);
            kept::<Keeping>(&CborJackson, &payload).unwrap();
        }
    }
    let found: Keeping = JsonJackson.decode(br#"{"@class":"com.acme.Order","extra":1,"zip":5}"#).unwrap();
    assert_eq!(found.rest, Entries(vec![("extra".into(), Value::Integer(1))]));
    let wrapped = JsonJackson.with_mapper(Mapper::new().wrapper_array());
    kept::<Keeping>(
        &wrapped,
        br#"["com.acme.Order",{"@class":"x","address":["com.acme.Address",{"city":"x"}],"zip":5}]"#,
    )
    .unwrap();
    let bare = JsonJackson.with_mapper(Mapper::new().without_classes());
    kept::<Keeping>(&bare, br#"{"address":{"city":"x"},"id":7,"tags":[1],"zip":5}"#).unwrap();
}

/// Kryo has no property that the class has not, and the field is none of the class.
#[test]
fn kryo_has_no_unknown_properties() {
    let keeping = |rest| Keeping { id: Some(7), note: None, rest: Entries(rest), zip: 5 };
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Order")]
    struct Plain {
        id: Option<i64>,
        note: Option<String>,
        zip: i32,
    }
    let payload = Kryo5.encode(&Plain { id: Some(7), note: None, zip: 5 }).unwrap();
    assert_eq!(Kryo5.encode(&keeping(vec![])).unwrap(), payload);
    let found: Keeping = Kryo5.decode(&payload).unwrap();
    assert_eq!(found, keeping(vec![]));
    let why = error(Kryo5.encode(&keeping(vec![("a".into(), Value::Null)])));
    assert!(
        why.ends_with("the field `rest` has properties that the class does not have: Kryo writes no names"),
        "{why}"
    );
}

#[test]
fn what_rest_goes_with() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "rest(more) com.acme.Order")]
    struct NoMap {
        more: Vec<i32>,
    }
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "rest(others) com.acme.Order")]
    struct NoField {
        more: i32,
    }
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Order")]
    struct Flat {
        #[serde(flatten)]
        more: std::collections::HashMap<String, i32>,
    }
    fn refused<T: Debug + Serialize + DeserializeOwned + 'static>(why: &str) {
        for error in [error(Codec::<T>::decode(&Kryo5, b"")), error(Codec::<T>::decode(&JsonJackson, b""))] {
            assert!(error.contains(why), "{error}");
        }
    }
    refused::<NoMap>("`rest(more)` goes with a map");
    refused::<NoField>("`rest(…)` names `others`, which is no field");
    refused::<Flat>("`rest(…)`");
}

/// `Json` and `MsgPack` have serde's own way.
#[test]
fn unknown_properties_are_kept_by_flatten_without_classes() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Flat {
        id: i64,
        #[serde(flatten)]
        rest: serde_json::Map<String, Node>,
    }
    kept::<Flat>(&Json, br#"{"id":7,"extra":[1,2.5,null],"zz":{"a":"x"}}"#).unwrap();
    let flat: Flat = Json.decode(br#"{"id":7,"extra":[1,null]}"#).unwrap();
    kept::<Flat>(&MsgPack, &MsgPack.encode(&flat).unwrap()).unwrap();
}

/// The example of the guide.
#[test]
fn a_field_for_the_other_properties() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "rest(more) com.acme.Order")]
    struct Order {
        id: Option<i32>,
        zip: Option<String>,
        more: std::collections::BTreeMap<String, Value>,
    }
    let payload = br#"{"@class":"com.acme.Order","id":7,"note":["java.lang.Long",1],"zip":"10115"}"#;
    let order: Order = JsonJackson.decode(payload).unwrap();
    assert_eq!(order.more["note"], Value::Long(1));
    assert_eq!(JsonJackson.encode(&order).unwrap(), payload);
    // Also if they come first, or if the struct says an order of its own.
    kept::<Order>(&JsonJackson, br#"{"@class":"com.acme.Order","a":1,"zz":{"@class":"com.acme.Order"}}"#)
        .unwrap();
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "order(zip) rest(more) com.acme.Order")]
    struct Ordered {
        more: std::collections::HashMap<String, Order>,
        id: Option<i32>,
        zip: Option<String>,
    }
    let nested = r#"{"@class":"com.acme.Order","zip":"1","a":{"@class":"com.acme.Order","b":5,"id":1},"id":7,"x":{"@class":"com.acme.Order"}}"#;
    kept::<Ordered>(&JsonJackson, nested.as_bytes()).unwrap();
}
