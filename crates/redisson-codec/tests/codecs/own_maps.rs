//! Maps and lists of an application's classes: a newtype that has the name of the class.

use codec::java::{self, Value};
use codec::{JsonJackson, Kryo5};
use redelay_compat_values::zoo::Entries;
use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tags")]
struct Tags(Vec<String>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Props")]
struct Props(Entries<String, Value>);

/// The name of a newtype around anything else has no meaning.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.OrderId")]
struct OrderId(i64);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Order")]
struct Order {
    id: OrderId,
    #[serde(with = "java::object")]
    tags: Option<Tags>,
    #[serde(with = "java::object")]
    props: Option<Props>,
}

fn props() -> Entries<String, Value> {
    Entries(vec![("k".to_owned(), Value::Long(1))])
}

#[test]
fn classes_of_their_own() {
    let order = Order { id: OrderId(7), tags: Some(Tags(vec!["a".into()])), props: Some(Props(props())) };
    let json = r#"{"@class":"com.acme.Order","id":7,"props":{"@class":"com.acme.Props","k":["java.lang.Long",1]},"tags":["com.acme.Tags",["a"]]}"#;
    assert_eq!(JsonJackson.encode(&order).unwrap(), json.as_bytes());
    assert_eq!(Codec::<Order>::decode(&JsonJackson, json.as_bytes()).unwrap(), order);
    let kryo = b"\x01\x00com.acme.Orde\xf2\x0e\x01\x01com.acme.Prop\xf3\x02\x03\x82k\x09\x02\x01\x02com.acme.Tag\xf3\x82\x03\x00\x82a";
    assert_eq!(Kryo5.encode(&order).unwrap().escape_ascii().to_string(), kryo.escape_ascii().to_string());
    assert_eq!(Codec::<Order>::decode(&Kryo5, kryo).unwrap(), order);
}

#[test]
fn any_class_of_a_map_or_list() {
    let map = Kryo5.encode(&Props(props())).unwrap();
    assert!(error(Codec::<Entries<String, Value>>::decode(&Kryo5, &map)).contains("found `com.acme.Props`"));
    let read: Entries<String, Value> = Kryo5.with_any_class().decode(&map).unwrap();
    assert_eq!(read, props());
    let list = Kryo5.encode(&Tags(vec!["a".into()])).unwrap();
    let read: Vec<String> = Kryo5.with_any_class().decode(&list).unwrap();
    assert_eq!(read, ["a"]);
    // A map is no list.
    let date = Kryo5.encode(&java::Date::from_millis(5)).unwrap();
    assert!(
        error(Codec::<Vec<String>>::decode(&Kryo5.with_any_class(), &date))
            .contains("found `java.util.Date`")
    );
}

#[test]
fn what_java_serializes_itself() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "java.util.Collections$UnmodifiableMap")]
    struct Unmodifiable(Entries<String, Value>);

    let row = rows("shapes-kryo5").into_iter().find(|row| row.name == "33-unmodifiable").unwrap();
    let read: Unmodifiable = Kryo5.decode(&row.payload).unwrap();
    assert_eq!(read.0.0, [("orderId".to_owned(), Value::Long(1001))]);
    let why = error(Kryo5.encode(&Unmodifiable(props())));
    assert!(
        why.ends_with("leaves the class `java.util.Collections$UnmodifiableMap` to Java's own serialization"),
        "{why}"
    );
}
