//! Payloads of described classes as a `Value`. `tests/classes` has the class files, which
//! `scripts/vectors.sh` makes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use redisson_codec::classes::{Classes, check};
use redisson_codec::java::{Constant, EnumSet, Value};
use redisson_codec::{Kryo5, WithClasses};
use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// With those whose files are not there.
fn codec() -> WithClasses {
    let mut classes = classes();
    classes.add_text(include_str!("described/classes.txt")).unwrap();
    Kryo5.with_classes(classes)
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
        "class com.example.shop.HttpStep implements com.example.shop.Step {\n",
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
    let (codec, mut read) = (codec(), 0);
    for file in
        ["kryo5", "kryo5-classes", "kryo5-kinds", "kryo5-places", "shapes-kryo5", "../classes/generic"]
    {
        for row in rows(file) {
            let value = codec.decode(&row.payload).unwrap();
            assert!(!matches!(value, Value::Opaque(_)), "{file} {}: {value}", row.name);
            assert_eq!(codec.encode(&value).unwrap(), row.payload, "{file} {}: {value}", row.name);
            if row.class.contains("acme") && row.has_json() && row.json.is_object() {
                same_names(&row, &value);
            }
            read += 1;
        }
    }
    assert_eq!(read, 648);
}

/// What the descriptions do not have, or have wrong, is read as without them, and written back.
#[test]
fn descriptions_never_take_a_value_away() {
    let all = classes().to_string();
    let mut kept = [0; 4];
    for file in
        ["kryo5", "kryo5-classes", "kryo5-places", "kryo5-serialized", "shapes-kryo5", "../classes/generic"]
    {
        for row in rows(file) {
            let alone: Value =
                Kryo5.decode(&row.payload).unwrap_or_else(|error| panic!("{file} {}: {error}", row.name));
            // None, all but this one, all but those it needs, and others than they are. With these, any value
            // may be read.
            let one = format!("class {} {{", row.class);
            for (descriptions, kept) in [
                String::new(),
                all.replace(&one, "class a.B {"),
                if all.contains(&one) { one.clone() + "}" } else { String::new() },
                all.replace("Long", "short"),
            ]
            .iter()
            .zip(&mut kept)
            {
                let codec = Kryo5.with_classes(descriptions.parse::<Classes>().unwrap());
                let value =
                    codec.decode(&row.payload).unwrap_or_else(|error| panic!("{}: {error}", row.name));
                let is_same = codec.encode(&value).is_ok_and(|written| written == row.payload);
                assert!(is_same || descriptions.contains("short"), "{file} {}: {value}", row.name);
                *kept += usize::from(matches!(value, Value::Opaque(_)) && value == alone);
            }
        }
    }
    println!("{kept:?}");
    assert!(kept.iter().all(|kept| *kept > 20), "{kept:?}");
}

/// As one that is in no set.
#[test]
fn a_set_has_the_constants_of_its_enum_only() {
    let classes: Classes = "enum com.acme.Color { RED, GREEN }".parse().unwrap();
    let codec = Kryo5.with_classes(classes);
    let set = |constants: Vec<Constant>| {
        Value::EnumSet(Box::new(EnumSet::new("java.util.RegularEnumSet", "com.acme.Color", constants)))
    };
    let named = |name: &str| Constant::Name(name.to_owned());
    let written = error(codec.encode(&set(vec![named("RED"), named("BLUE")])));
    assert!(written.contains("`com.acme.Color` has no such constant"), "{written}");
    let written = codec.encode(&set(vec![named("GREEN")])).unwrap();
    assert_eq!(codec.decode(&written).unwrap(), set(vec![named("GREEN")]));
    // As without descriptions.
    let others = set(vec![Constant::Ordinal(0), Constant::Ordinal(2)]);
    let written = codec.encode(&others).unwrap();
    assert_eq!(codec.decode(&written).unwrap(), others);
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

#[rustfmt::skip]
#[allow(dead_code, unreachable_pub, clippy::large_enum_variant, clippy::type_complexity, reason = "as it is printed")]
mod printed;

/// Reads each payload of the class into the printed type, and writes the same bytes; and compares the type
/// with the class.
fn printed_type<T: Debug + Serialize + DeserializeOwned + 'static>(class: &str, different: &mut Vec<String>) {
    let mut count = 0;
    for file in ["kryo5", "kryo5-classes", "kryo5-places", "shapes-kryo5", "../classes/generic"] {
        for row in rows(file).into_iter().filter(|row| row.class == class) {
            count += 1;
            let written = Codec::<T>::decode(&Kryo5, &row.payload).and_then(|value| Kryo5.encode(&value));
            match written {
                Ok(written) if written == row.payload => {}
                Ok(_) => different.push(format!("{file} {}", row.name)),
                Err(error) => different.push(format!("{file} {}: {error}", row.name)),
            }
        }
    }
    assert!(count > 0 || ["com.example.shop.BaseTask", "com.acme.Clock"].contains(&class), "{class}");
    if let Err(differences) = check::<T>(&classes()) {
        // What no Rust type is like.
        let others =
            |line: &&String| !["Generic$Twice", "Generic$Mixed"].iter().any(|name| line.contains(name));
        let others: Vec<_> = differences.lines().iter().filter(others).collect();
        assert!(others.is_empty(), "{class}: {differences}");
    }
}

#[test]
fn printed_types_read_and_write_the_payloads() {
    let mut different = Vec::new();
    macro_rules! types {
        ($($module:ident $name:ident $class:literal;)*) => {
            $(
                printed_type::<printed::$module::$name>($class, &mut different);
            )*
        };
    }
    types! {
        cart Cart "com.example.shop.Cart";
        cancel_message CancelMessage "com.example.shop.CancelMessage";
        delay_job DelayJob "com.example.shop.DelayJob";
        delay_message DelayMessage "com.example.shop.DelayMessage";
        delayed_order DelayedOrder "com.example.shop.DelayedOrder";
        base_task BaseTask "com.example.shop.BaseTask";
        link_stats LinkStats "com.example.shop.LinkStats";
        obj_envelope ObjEnvelope "com.example.shop.ObjEnvelope";
        order_entity OrderEntity "com.example.shop.OrderEntity";
        order_expired OrderExpired "com.example.shop.OrderExpired";
        order_expired_at OrderExpiredAt "com.example.shop.OrderExpiredAt";
        order_timeout_message OrderTimeoutMessage "com.example.shop.OrderTimeoutMessage";
        pay_query PayQuery "com.example.shop.PayQuery";
        pay_timeout PayTimeout "com.example.shop.PayTimeout";
        refund_task RefundTask "com.example.shop.RefundTask";
        inner Inner "com.example.shop.Shapes$Inner";
        non_static NonStatic "com.example.shop.Shapes$NonStatic";
        sku_stock_key SkuStockKey "com.example.shop.SkuStockKey";
        task_envelope TaskEnvelope "com.example.shop.TaskEnvelope";
        workflow Workflow "com.example.shop.Workflow";
        order Order "com.acme.Zoo$Order";
        refund_event RefundEvent "com.acme.Zoo$RefundEvent";
        ledger Ledger "com.acme.Zoo$Ledger";
        times Times "com.acme.Zoo$Times";
        nested Nested "com.acme.Zoo$Nested";
        boxes Boxes "com.acme.Zoo$Boxes";
        mixes Mixes "com.acme.Zoo$Mixes";
        job Job "com.acme.Tasks$Job";
        batch Batch "com.acme.Tasks$Batch";
        clock Clock "com.acme.Clock";
        fields Fields "com.acme.Generic$Fields";
        bases Bases "com.acme.Generic$Bases";
        rec Rec "com.acme.Generic$Rec";
        holder Holder "com.acme.Generic$Holder";
    }
    println!("{}", different.join("\n"));
    let of_shapes: Vec<_> = different.iter().filter(|line| line.contains("shapes-")).collect();
    // What an `Object` holds, the class does not say; nor that a `Map` is a `LinkedHashMap`.
    assert_eq!(of_shapes.len(), 3, "{of_shapes:?}");
    for line in different.iter().filter(|line| line.contains(": ")) {
        let is_known = [
            // Elements that are null have an `Option`, which is left to the reader.
            "found a null before",
            "the fields of the class",
            "the elements of the array",
            // Bodies with other numbers, and a `final` list.
            "Generic$Mixed$3",
            "generic holder.own",
        ];
        assert!(is_known.iter().any(|known| line.contains(known)), "{line}");
    }
}

mod checked;
mod hostile;
