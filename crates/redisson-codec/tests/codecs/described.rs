//! Payloads of described classes as a `Value`. `tests/classes` has the class files, which `scripts/vectors.sh`
//! makes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use redisson_codec::classes::{Classes, check};
use redisson_codec::java::{self, Value};
use redisson_codec::{Kryo5, WithClasses};
use serde::{Deserialize, Serialize};

use super::*;

pub(crate) fn class_files() -> BTreeMap<String, Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/classes");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let classes = files.filter(|file| file.extension().is_some_and(|extension| extension == "class"));
    let name = |file: &PathBuf| file.file_stem().unwrap().to_str().unwrap().to_owned();
    classes.map(|file| (name(&file), std::fs::read(&file).unwrap())).collect()
}

pub(crate) fn classes() -> Classes {
    let mut classes = Classes::new();
    for (name, file) in class_files() {
        assert_eq!(classes.add_class_file(&file).unwrap(), name);
    }
    classes
}

fn codec() -> WithClasses {
    Kryo5.with_classes(classes())
}

#[test]
fn descriptions_are_the_same_as_text() {
    let classes = classes();
    let text = classes.to_string();
    assert_eq!(text.parse::<Classes>().unwrap().to_string(), text);
    for words in [
        "enum com.acme.Generic$Mixed {\n    A, B {}, C {}, D;\n}\n",
        "class com.example.shop.CancelMessage extends com.example.shop.BaseMessage {\n    Long orderId;\n    String reason;\n}\n",
        "record com.example.shop.OrderExpired {\n    Long orderId;\n    String reason;\n    int attempt;\n}\n",
        "interface com.example.shop.Step {\n}\n",
        "class com.example.shop.HttpStep implements com.example.shop.Step, java.io.Serializable {\n",
        "    Page<? extends Number> wild;",
    ] {
        // A wildcard is its bound.
        let words =
            words.replace("    Page<? extends Number> wild;", "    com.acme.Generic$Page<Number> wild;");
        assert!(text.contains(&words), "{words} in {text}");
    }
}

/// Every payload of Kryo 5 that Redisson wrote: with the names of fields, and the same bytes again.
#[test]
fn every_payload_is_read_with_its_names() {
    let (codec, mut read, mut refused) = (codec(), 0, Vec::new());
    for file in ["kryo5", "kryo5-classes", "kryo5-kinds", "kryo5-places", "shapes-kryo5", "kryo5-generic"] {
        for row in rows(file) {
            match codec.decode(&row.payload) {
                Ok(value) => {
                    read += 1;
                    assert_eq!(codec.encode(&value).unwrap(), row.payload, "{file} {}: {value}", row.name);
                    if row.class.contains("acme") && row.has_json() && row.json.is_object() {
                        same_names(&row, &value);
                    }
                }
                Err(error) => refused.push(format!("{file} {}: {error}", row.name)),
            }
        }
    }
    println!("{}", refused.join("\n"));
    assert_eq!((read, refused.len()), (0, 0));
}

/// The fields are those of the value's plain JSON.
fn same_names(row: &Row, value: &Value) {
    let Value::Object(object) = value else { return };
    for (name, found) in &object.fields {
        let Some(json) = row.json.get(name) else { continue };
        assert_eq!(json.is_null(), *found == Value::Null, "{}: {name} of {value}", row.name);
        if let Some(number) = found.as_i64() {
            assert_eq!(json.as_i64(), Some(number), "{}: {name} of {value}", row.name);
        }
        if let (Some(text), true) = (found.as_str(), json.is_string()) {
            assert_eq!(json.as_str(), Some(text), "{}: {name} of {value}", row.name);
        }
    }
}
