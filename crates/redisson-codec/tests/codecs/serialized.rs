//! Java's own serialization within Kryo, compared with what Redisson 4.7.0 wrote.

use std::collections::{BTreeMap, BTreeSet};

use codec::java::{self, BigDecimal, Date, Value};
use codec::{JsonJackson, Kryo5};
use redelay_compat_values::zoo::{Entries, Level, Status};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::hostile::{made_up, survives};
use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Kept$Link")]
struct Link {
    name: Option<String>,
    number: i32,
    big: Option<i64>,
    status: Option<Status>,
    cost: Option<BigDecimal>,
    at: Option<Date>,
    #[serde(with = "java::array")]
    sizes: Option<Vec<i32>>,
    tags: Option<Vec<String>>,
    next: Option<Box<Link>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Kept$LongLink")]
struct LongLink {
    name: Option<String>,
    last: bool,
    next: Option<Box<Link>>,
}

/// A class and one below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Kept$Link")]
enum AnyLink {
    Link(Link),
    Long(LongLink),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Kept$Shelf", rename_all = "camelCase")]
struct Shelf {
    map: Option<BTreeMap<String, i32>>,
    #[serde(with = "java::tree_map")]
    sorted_map: Option<BTreeMap<String, i64>>,
    list: Option<Vec<Option<AnyLink>>>,
    #[serde(with = "java::hash_set")]
    set: Option<BTreeSet<String>>,
    #[serde(with = "java::tree_set")]
    sorted_set: Option<BTreeSet<String>>,
    collection: Option<Vec<f64>>,
    by_status: Option<Entries<Status, i32>>,
    by_level: Option<Entries<Level, String>>,
    open: Value,
}

fn row(name: &str) -> Row {
    rows("kryo5-serialized").into_iter().find(|row| row.name == name).unwrap()
}

fn value(name: &str) -> Value {
    Kryo5.decode(&row(name).payload).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A value as plain JSON, as Java prints it.
fn plain(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn each_is_read_and_written_back() {
    for row in rows("kryo5-serialized") {
        if row.class.starts_with("com.acme.") {
            continue;
        }
        let value: Value = Kryo5.decode(&row.payload).unwrap_or_else(|error| panic!("{}: {error}", row.name));
        println!("{}: {value}", row.name);
        assert_eq!(Kryo5.encode(&value).unwrap(), row.payload, "{}", row.name);
    }
}

fn link() -> Link {
    Link {
        name: Some("a".into()),
        number: 7,
        big: Some(8),
        status: Some(Status::Paid),
        cost: "1.50".parse().ok(),
        at: Some(Date::from_millis(1_709_210_096_789)),
        sizes: Some(vec![1, 2]),
        tags: Some(vec!["x".into(), "y".into()]),
        next: Some(Box::new(Link {
            name: Some("b".into()),
            number: 0,
            big: None,
            status: None,
            cost: None,
            at: None,
            sizes: None,
            tags: None,
            next: None,
        })),
    }
}

#[test]
fn in_the_fields_of_a_class() {
    let shelf: Shelf = Kryo5.decode(&row("shelf.views").payload).unwrap();
    assert_eq!(shelf.map, Some(BTreeMap::from([("a".into(), 1)])));
    assert_eq!(shelf.sorted_map, Some(BTreeMap::from([("a".into(), 1), ("b".into(), 2)])));
    let long = LongLink { name: Some("l".into()), last: true, next: None };
    assert_eq!(shelf.list, Some(vec![Some(AnyLink::Link(link())), None, Some(AnyLink::Long(long))]));
    assert_eq!(shelf.set, Some(BTreeSet::from(["x".into()])));
    assert_eq!(shelf.sorted_set, Some(BTreeSet::from(["x".into(), "y".into()])));
    assert_eq!(shelf.collection, Some(vec![1.5]));
    assert_eq!(shelf.by_status, Some(Entries(vec![(Status::New, 1), (Status::Paid, 2)])));
    assert_eq!(shelf.by_level, Some(Entries(vec![(Level::High, "h".into())])));
    assert_eq!(shelf.open.elements(), Some(&[Value::Integer(1), Value::Long(2)][..]));
    // What is written has the declared classes. The `Value` goes on with the stream of the list, which is no
    // more.
    let why = error(Kryo5.encode(&shelf));
    assert!(why.contains("refers to another one, which is not before it"), "{why}");
    let shelf = Shelf { open: Value::Null, ..shelf };
    let again: Shelf = Kryo5.decode(&Kryo5.encode(&shelf).unwrap()).unwrap();
    assert_eq!(again, shelf);
    let plain: Shelf = Kryo5.decode(&row("shelf.plain").payload).unwrap();
    assert_eq!(plain.by_status, Some(Entries(vec![(Status::New, 1)])));
    let none: Shelf = Kryo5.decode(&row("shelf.null").payload).unwrap();
    assert_eq!(Kryo5.encode(&none).unwrap(), row("shelf.null").payload);
}

#[test]
fn as_a_whole_payload() {
    let list: Vec<String> = Kryo5.decode(&row("list").payload).unwrap();
    assert_eq!(list, ["a", "b"]);
    let nested: Vec<Vec<i32>> = Kryo5.decode(&row("list.nested").payload).unwrap();
    assert_eq!(nested, [[1]]);
    let map: BTreeMap<String, i32> = Kryo5.decode(&row("synchronized.map").payload).unwrap();
    assert_eq!(map, BTreeMap::from([("a".into(), 1)]));
    let lists: Vec<Vec<String>> = Kryo5.decode(&row("in.list").payload).unwrap();
    assert_eq!(lists, [vec!["a".to_owned()], vec!["a".into(), "b".into()], vec![]]);
    let links: Vec<Link> = Kryo5.decode(&row("inside.link").payload).unwrap();
    assert_eq!(links, [link()]);
    let array: Vec<java::array::Of<Vec<Option<Link>>>> = Kryo5.decode(&row("inside.links").payload).unwrap();
    assert_eq!(array[0].0, [Some(link()), None]);
    let times: Vec<java::zoned_date_time::Of<String>> = Kryo5.decode(&row("inside.zoned").payload).unwrap();
    assert_eq!(times[0].0, "2024-02-29T12:34:56.789+01:00[Europe/Berlin]");
    let sets: Vec<Vec<Status>> = Kryo5.decode(&row("inside.enum.set").payload).unwrap();
    assert_eq!(sets, [[Status::New, Status::Paid]]);
    let bytes: Vec<Vec<u8>> = Kryo5.decode(&row("inside.bytes").payload).unwrap();
    assert_eq!(bytes, [[1, 2, 255]]);
    let pattern: Vec<java::Pattern> = Kryo5.decode(&row("inside.pattern").payload).unwrap();
    assert_eq!(pattern, [java::Pattern { pattern: "a".into(), flags: 8 }]);
}

#[test]
fn of_another_class() {
    let wrong = |why: String, words: &str| assert!(why.contains(words), "{why}");
    wrong(
        error(Codec::<Vec<String>>::decode(&Kryo5, &row("map").payload)),
        "expected the class `java.util.ArrayList`, found `java.util.Collections$UnmodifiableMap`, before offset",
    );
    wrong(
        error(Codec::<Vec<i64>>::decode(&Kryo5, &row("list").payload)),
        "expected the class `java.lang.Long`, found `java.lang.String`, before offset",
    );
    wrong(
        error(Codec::<Vec<String>>::decode(&Kryo5, &row("inside.null").payload)),
        "expected `java.lang.String`, found a null, before offset",
    );
    wrong(
        error(Codec::<Vec<LongLink>>::decode(&Kryo5, &row("inside.link").payload)),
        "expected the class `com.acme.Kept$LongLink`, found `com.acme.Kept$Link`, before offset",
    );
    let any: Vec<LongLink> = Kryo5.with_any_class().decode(&row("inside.link.long").payload).unwrap();
    assert!(any[0].last);
}

/// As Redisson 3.21.0 wrote it.
#[test]
fn without_java_s_serialization() {
    let payload = b"\x01\x00java.util.Collections$UnmodifiableLis\xf4\x83\x03\x00\x82a\x82b";
    let list: Vec<String> = Kryo5.with_any_class().decode(payload).unwrap();
    assert_eq!(list, ["a", "b"]);
    let payload = b"\x01\x00java.util.Collections$UnmodifiableMa\xf0\x02\x03\x82a\x02\x02";
    let map: BTreeMap<String, i32> = Kryo5.with_any_class().decode(payload).unwrap();
    assert_eq!(map, BTreeMap::from([("a".into(), 1)]));
}

/// An object behind the first goes on with its stream, so that it can be only where it was.
#[test]
fn several_in_a_payload() {
    let Value::Collection(mut list) = value("in.list") else { panic!() };
    assert_eq!(plain(&list.elements[1]), json!(["a", "b"]));
    list.elements.truncate(2);
    assert!(Kryo5.encode(&Value::Collection(list.clone())).is_ok());
    list.elements.swap(0, 1);
    let why = error(Kryo5.encode(&Value::Collection(list.clone())));
    assert!(why.contains("refers to another one, which is not before it"), "{why}");
    list.elements[0] = list.elements[1].clone();
    let why = error(Kryo5.encode(&Value::Collection(list)));
    assert!(why.contains("a second object of the class"), "{why}");
    let why = error(Kryo5.encode(&value("in.list").elements().unwrap()[1]));
    assert!(why.contains("refers to another one, which is not before it"), "{why}");
    assert!(Kryo5.encode(&value("in.list").elements().unwrap()[0]).is_ok());
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Kept$Maybe", rename_all = "camelCase")]
struct Maybe {
    an_int: Option<java::OptionalInt>,
    a_long: Option<java::OptionalLong>,
    a_double: Option<java::OptionalDouble>,
    pattern: Option<java::Pattern>,
}

#[test]
fn small_classes_of_the_library() {
    let maybe = |name: &str| -> Maybe {
        let row = row(name);
        let maybe = Kryo5.decode(&row.payload).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(Kryo5.encode(&maybe).unwrap(), row.payload, "{name}");
        maybe
    };
    assert_eq!(maybe("maybe.null"), Maybe { an_int: None, a_long: None, a_double: None, pattern: None });
    assert_eq!(
        maybe("maybe"),
        Maybe {
            an_int: Some(java::OptionalInt(Some(-5))),
            a_long: Some(java::OptionalLong(Some(1 << 40))),
            a_double: Some(java::OptionalDouble(Some(1.5))),
            pattern: Some(java::Pattern { pattern: "[a-z]+".into(), flags: 40 }),
        }
    );
    assert_eq!(maybe("maybe.none").a_double, Some(java::OptionalDouble(None)));
    both_ways(&Kryo5, &row("optional.int"), java::OptionalInt(Some(5)));
    both_ways(&Kryo5, &row("optional.none"), java::OptionalInt(None));
    both_ways(&Kryo5, &row("pattern"), java::Pattern { pattern: "a.*b".into(), flags: 2 });
    let json = serde_json::to_string(&maybe("maybe")).unwrap();
    assert_eq!(json, r#"{"anInt":-5,"aLong":1099511627776,"aDouble":1.5,"pattern":"[a-z]+"}"#);
}

/// As Redisson 4.7.0 writes them.
#[test]
fn the_same_in_json() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Filter")]
    struct Filter {
        em: Option<BTreeMap<String, i32>>,
        list: Option<Vec<java::Pattern>>,
        #[serde(with = "java::object")]
        open: Option<java::Pattern>,
        pattern: Option<java::Pattern>,
    }

    let json = br#"{"@class":"com.acme.Filter","em":{"@class":"java.util.EnumMap<java.lang.Thread$State,java.lang.Object>","NEW":1},"list":["java.util.ArrayList",["b"]],"open":["java.util.regex.Pattern","c"],"pattern":"a"}"#;
    let pattern = |pattern: &str| java::Pattern { pattern: pattern.into(), flags: 0 };
    let filter: Filter = JsonJackson.decode(json).unwrap();
    let em = Some(BTreeMap::from([("NEW".to_owned(), 1)]));
    let expected =
        Filter { em, list: Some(vec![pattern("b")]), open: Some(pattern("c")), pattern: Some(pattern("a")) };
    assert_eq!(filter, expected);
    let written = String::from_utf8(JsonJackson.encode(&filter).unwrap()).unwrap();
    assert_eq!(
        written,
        String::from_utf8_lossy(json).replace("EnumMap<java.lang.Thread$State,java.lang.Object>", "HashMap")
    );
    let value: Value = JsonJackson.decode(json).unwrap();
    assert_eq!(JsonJackson.encode(&value).unwrap(), json);
    // What Kryo kept is written to JSON as what it is.
    let kept = String::from_utf8(JsonJackson.encode(&value_of_map()).unwrap()).unwrap();
    assert_eq!(kept, r#"{"@class":"java.util.Collections$UnmodifiableMap","a":1,"b":2}"#);
}

fn value_of_map() -> Value {
    value("map")
}

/// A stream of Java's own serialization, as the object of this class in Kryo.
fn stream(class: &str, object: &[u8]) -> Vec<u8> {
    let (name, last) = class.split_at(class.len() - 1);
    [b"\x01\x00", name.as_bytes(), &[last.as_bytes()[0] | 0x80], b"\xac\xed\x00\x05", object].concat()
}

/// A class with these fields.
fn class(name: &str, flags: u8, fields: &[&str]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat();
    let mut class =
        [&b"r"[..], &text(name), &[0; 8], &[flags], &(fields.len() as u16).to_be_bytes()].concat();
    for field in fields {
        let (kind, name) = field.split_at(1);
        class.extend([kind.as_bytes(), &text(name)].concat());
        if kind == "L" {
            class.extend([&b"t"[..], &text("Ljava/lang/Object;")].concat());
        }
    }
    class.push(b'x');
    class
}

fn list_of(count: u32) -> Vec<u8> {
    let count = count.to_be_bytes();
    [&b"s"[..], &class("java.util.ArrayList", 3, &["Isize"]), b"p", &count, b"w\x04", &count].concat()
}

const LIST: &str = "java.util.Collections$UnmodifiableList";

fn view_of(object: &[u8]) -> Vec<u8> {
    stream(LIST, &[&b"s"[..], &class(LIST, 2, &["Lc"]), b"p", object].concat())
}

/// What has no value is kept and written back.
#[test]
fn what_has_no_value() {
    let without_value = |payload: &[u8], why: &str| {
        let value: Value = Kryo5.decode(payload).unwrap();
        let Value::Serialized(object) = &value else { panic!("{value}") };
        assert_eq!((object.class(), object.value()), (LIST, None));
        assert_eq!(Kryo5.encode(&value).unwrap(), payload);
        assert!(error(JsonJackson.encode(&value)).contains(LIST));
        let error = error(Codec::<Vec<Value>>::decode(&Kryo5, payload));
        assert!(error.contains(why) && error.ends_with("at offset 40"), "{error}");
    };
    // A list that contains itself: the class of the view and its text are 0 and 1, the list is 4.
    let around_itself = [&list_of(1)[..], b"q\x00\x7e\x00\x04x"].concat();
    without_value(&view_of(&around_itself), "an object that contains itself");
    without_value(
        &view_of(&[&list_of(1)[..], b"t\x00\x03\xed\xa0\xbdx"].concat()),
        "half of a surrogate pair",
    );
    // A chain of 10,000 lists: each has the class 3.
    let chain = (1..10_000).fold(list_of(1), |mut chain, _| {
        chain.extend(b"sq\x00\x7e\x00\x03\x00\x00\x00\x01w\x04\x00\x00\x00\x01");
        chain
    });
    without_value(&view_of(&[&chain[..], b"p", &b"x".repeat(10_000)].concat()), "too many levels");
    // Each list of two is the one before, twice: two to the power of 100 elements.
    let mut doubled = list_of(2);
    for level in 0..100_u32 {
        doubled.extend(b"sq\x00\x7e\x00\x03\x00\x00\x00\x02w\x04\x00\x00\x00\x02");
        if level == 99 {
            doubled.extend(b"pp");
        }
    }
    for level in (0..100_u32).rev() {
        doubled.extend([&b"xq"[..], &(0x7e_0005 + level).to_be_bytes()].concat());
    }
    doubled.push(b'x');
    without_value(&view_of(&doubled), "objects that are there too often");
    let copies = [
        &b"s"[..],
        &class("java.util.Collections$CopiesList", 2, &["In", "Lelement"]),
        b"p\x7f\xff\xff\xffp",
    ];
    without_value(&view_of(&copies.concat()), "objects that are there too often");
}

/// A list of these objects, the first of which is written in full.
fn list_with(first: &[u8], element: &[u8], count: u32) -> Vec<u8> {
    view_of(&[&list_of(count)[..], first, &element.repeat(count as usize - 1), b"x"].concat())
}

/// What is there once in the payload, and often in memory.
#[test]
fn few_bytes_are_not_much_memory() {
    let object = |payload: &[u8]| match Kryo5.decode(payload).unwrap() {
        Value::Serialized(object) => object,
        value => panic!("{value}"),
    };
    let mut wrong = Vec::new();
    let mut refused = |what: &str, payload: &[u8]| {
        if object(payload).value().is_some() {
            wrong.push(what.to_owned());
        }
    };
    let text = |text: &str| [&b"t"[..], &(text.len() as u16).to_be_bytes(), text.as_bytes()].concat();
    let again = |handle: u32| [&b"q"[..], &handle.to_be_bytes()].concat();
    // The class of the list is 3, the list is 4, and its elements begin at 5.
    let names: Vec<_> = (0..1000).map(|at| format!("Bfield{at}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let wide = [&b"s"[..], &class("com.acme.Wide", 2, &names), b"p", &[7; 1000]].concat();
    assert!(object(&list_with(&wide, &again(0x7e_0006), 10)).value().is_some());
    refused("fields", &list_with(&wide, &again(0x7e_0006), 1000));
    let long = "x".repeat(60_000);
    // An enum: the class is 5, its base 6, the constant 7 and its name 8.
    let base = class("java.lang.Enum", 18, &[]);
    let status = class("com.acme.Status", 18, &[]);
    let status = [&status[..], &base, b"p"].concat();
    let first = [&b"~"[..], &status, &text(&long)].concat();
    let element = [&b"~"[..], &again(0x7e_0005), &again(0x7e_0008)].concat();
    assert!(object(&list_with(&first, &element, 100)).value().is_some());
    refused("enum", &list_with(&first, &element, 1000));
    // One of these: the class is 5, the type of the field 6, the object 7 and the text 8.
    for (name, field) in [("java.net.URI", "Lstring"), ("java.util.Currency", "LcurrencyCode")] {
        let first = [&b"s"[..], &class(name, 2, &[field]), b"p", &text(&long)].concat();
        let element = [&b"s"[..], &again(0x7e_0005), &again(0x7e_0008)].concat();
        assert!(object(&list_with(&first, &element, 100)).value().is_some());
        refused(name, &list_with(&first, &element, 1000));
    }
    let pattern = class("java.util.regex.Pattern", 2, &["Iflags", "Lpattern"]);
    let first = [&b"s"[..], &pattern, b"p\0\0\0\x07", &text(&long)].concat();
    let element = [&b"s"[..], &again(0x7e_0005), b"\0\0\0\x07", &again(0x7e_0008)].concat();
    assert!(object(&list_with(&first, &element, 100)).value().is_some());
    refused("pattern", &list_with(&first, &element, 1000));
    // The value is looked up among all fields, whenever the object is there again.
    let fields: Vec<_> = (0..20_000).map(|at| format!("Bf{at}")).chain(["Ivalue".into()]).collect();
    let fields: Vec<_> = fields.iter().map(String::as_str).collect();
    let wide = [&b"s"[..], &class("java.lang.Integer", 2, &fields), b"p", &[0; 20_004]].concat();
    assert!(object(&list_with(&wide, &again(0x7e_0006), 100)).value().is_some());
    refused("many fields", &list_with(&wide, &again(0x7e_0006), 2000));
    assert!(wrong.is_empty(), "{wrong:?} have a value");
}

#[test]
fn what_is_no_stream() {
    let wrong = |payload: &[u8], words: &str| {
        let error = error(Codec::<Value>::decode(&Kryo5, payload));
        assert!(error.contains(words) && error.contains("offset "), "{error}");
    };
    let value = |object: &[u8]| view_of(&[object, b"x"].concat());
    wrong(&view_of(b""), "it ends at offset");
    wrong(&value(b"\x00"), "no value at offset");
    wrong(&value(b"q\x00\x7e\x00\x63"), "a reference to nothing at offset");
    wrong(&value(b"q\x00\x00\x00\x00"), "a reference to nothing at offset");
    wrong(&value(b"t\xff\xffx"), "it ends at offset");
    wrong(&value(b"|\x7f\xff\xff\xff\xff\xff\xff\xff"), "it ends at offset");
    wrong(&value(&[&b"u"[..], &class("[I", 2, &[]), b"p\x7f\xff\xff\xff"].concat()), "it ends at offset");
    wrong(
        &value(&[&b"u"[..], &class("[Ljava.lang.Object;", 2, &[]), b"p\x7f\xff\xff\xff"].concat()),
        "2147483647 elements are announced at offset",
    );
    wrong(
        &value(&[&b"u"[..], &class("com.acme.A", 2, &[]), b"p\x00\x00\x00\x00"].concat()),
        "no array at offset",
    );
    // A class above itself, and one too many above each other.
    wrong(
        &value(&[&b"s"[..], &class("com.acme.A", 2, &[]), b"q\x00\x7e\x00\x02"].concat()),
        "no class at offset",
    );
    let many = [&b"s"[..], &class("com.acme.A", 2, &[]).repeat(100), b"p"].concat();
    wrong(&value(&many), "more than 64 classes above each other at offset");
    wrong(
        &value(&[&b"s"[..], &class("com.acme.A", 4, &[]), b"p"].concat()),
        "whose end cannot be found at offset",
    );
    wrong(&value(&[&b"s"[..], &class("com.acme.A", 2, &["La", "Ib"]), b"p"].concat()), "no field at offset");
    wrong(&value(&[&b"s"[..], &class("com.acme.A", 2, &["Va"]), b"p"].concat()), "no field at offset");
    wrong(&value(b"y"), "no value at offset");
}

/// What is looked up for each object takes no longer if names are long and many.
#[test]
fn long_names() {
    let name = |number: usize| format!("com.acme.{}{number}", "x".repeat(15_000));
    let classes: Vec<_> = (0..60).flat_map(|number| class(&name(number), 2, &[])).collect();
    let elements = b"sq\x00\x7e\x00\x05".repeat(100_000);
    let count = (100_001_u32).to_be_bytes();
    let list = [
        &b"s"[..],
        &class("java.util.ArrayList", 3, &["Isize"]),
        b"p",
        &count,
        b"w\x04",
        &count,
        b"s",
        &classes,
        b"p",
        &elements,
        b"x",
    ];
    let payload = view_of(&list.concat());
    let begun = std::time::Instant::now();
    let value: Value = Kryo5.decode(&payload).unwrap();
    println!("{:?}", begun.elapsed());
    assert_eq!(Kryo5.encode(&value).unwrap(), payload);
    assert!(begun.elapsed() < std::time::Duration::from_secs(60));
}

/// An exception, and then one of another class, which goes on with its stream.
#[test]
fn exceptions() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Failed", rename_all = "camelCase")]
    struct Failed {
        detail_message: Option<String>,
        code: i32,
    }

    let throwable = class("java.lang.Throwable", 3, &["Lcause", "LdetailMessage"]);
    let failed = |name: &str, base: &[u8], itself: u32, message: &[u8]| {
        let itself = itself.to_be_bytes();
        [&b"s"[..], &class(name, 2, &["Icode"]), base, b"q", &itself, message, b"x\x00\x00\x00\x07"].concat()
    };
    let first = failed("com.acme.Failed", &[&throwable[..], b"p"].concat(), 0x7e_0004, b"t\x00\x01m");
    let payload = stream("com.acme.Failed", &first);
    let value: Value = Kryo5.decode(&payload).unwrap();
    assert_eq!(value.to_string(), r#"Failed{cause: null, detailMessage: "m", code: 7}"#);
    assert_eq!(Kryo5.encode(&value).unwrap(), payload);
    let read: Failed = Kryo5.decode(&payload).unwrap();
    assert_eq!(read, Failed { detail_message: Some("m".into()), code: 7 });
    let second = failed("com.acme.Other", b"q\x00\x7e\x00\x01", 0x7e_0007, b"p");
    let two = [
        &b"\x01\x00java.util.ArrayLis\xf4\x03\x01\x01com.acme.Faile\xe4\xac\xed\x00\x05"[..],
        &first,
        b"\x01\x02com.acme.Othe\xf2",
        &second,
    ];
    let value: Value = Kryo5.decode(&two.concat()).unwrap();
    assert_eq!(
        value.elements().unwrap()[1].to_string(),
        r#"Other{cause: null, detailMessage: null, code: 7}"#
    );
    assert_eq!(Kryo5.encode(&value).unwrap(), two.concat());
}

fn survive(payload: &[u8]) {
    survives::<Value>(&Kryo5, payload);
    survives::<Shelf>(&Kryo5, payload);
    survives::<Vec<Link>>(&Kryo5, payload);
    survives::<Vec<Vec<String>>>(&Kryo5, payload);
    survives::<Vec<Value>>(&Kryo5, payload);
    survives::<BTreeMap<String, i32>>(&Kryo5, payload);
    survives::<Maybe>(&Kryo5, payload);
    // Each error of the reader says where.
    if let Err(error) = Codec::<Value>::decode(&Kryo5, payload) {
        let error = error.to_string();
        assert!(error.contains("offset "), "{error}: {payload:02x?}");
    }
}

fn payloads() -> Vec<Vec<u8>> {
    rows("kryo5-serialized")
        .into_iter()
        .map(|row| row.payload)
        .filter(|payload| payload.len() < 3000)
        .collect()
}

#[test]
fn cut_off_anywhere() {
    for payload in payloads() {
        for end in 0..payload.len() {
            survive(&payload[..end]);
        }
    }
}

#[test]
fn made_up_streams() {
    let meaning = [0, 1, 2, 3, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x7c, 0x7e, 0x7f, 0xff];
    made_up(&payloads(), &meaning, &[survive]);
}
