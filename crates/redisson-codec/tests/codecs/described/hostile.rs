//! Class files and payloads of strangers.

use std::sync::LazyLock;

use codec::detect::{Format, Kind};
use serde_json::json;

use super::super::hostile::{made_up, survives};
use super::*;

/// Whatever is read prints as text that is read again, and nothing takes long.
fn class_file(bytes: &[u8]) {
    let mut classes = Classes::new();
    match classes.add_class_file(bytes) {
        Ok(name) => {
            let _ = classes.to_rust(&name);
            let text = classes.to_string();
            // What no compiler writes need not be read, or be the same.
            if let Ok(again) = text.parse::<Classes>() {
                assert_eq!(again.to_string().parse::<Classes>().unwrap(), again);
            }
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("offset ") && error.len() < 1000, "{error}");
            assert!(!error.contains(char::is_control), "{error}");
        }
    }
}

#[test]
fn made_up_class_files() {
    let files: Vec<_> = class_files().into_values().collect();
    let meaning = [0, 1, 3, 5, 7, 9, 12, 0xb3, 0xbb, 0xaa, 0xc4, b'L', b'T', b'<', b';', b'[', 0xff];
    made_up(&files, &meaning, &[class_file]);
}

#[test]
fn made_up_payloads_of_described_classes() {
    static CODEC: LazyLock<WithClasses> = LazyLock::new(codec);
    let payloads: Vec<_> = ["kryo5", "kryo5-places", "../classes/generic", "shapes-kryo5"]
        .into_iter()
        .flat_map(rows)
        .map(|row| row.payload)
        .collect();
    let meaning = [0, 1, 2, 3, 4, 5, 9, 0x80, 0x81, 0x82, 0xff];
    made_up(&payloads, &meaning, &[|payload| survives::<Value>(&*CODEC, payload)]);
}

/// A class file with a pool of these constants, and then these bytes.
fn with_pool(constants: &[&[u8]], rest: &[u8]) -> Vec<u8> {
    let count = (constants.len() + 1) as u16;
    let head = [&[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61][..], &count.to_be_bytes()].concat();
    [&head[..], &constants.concat(), rest].concat()
}

fn text(text: &[u8]) -> Vec<u8> {
    [&[1][..], &(text.len() as u16).to_be_bytes(), text].concat()
}

/// A thousand fields of a type of 60 KiB would take more than 60 MiB, and a million of nodes a GiB.
#[test]
fn few_bytes_are_not_many_names() {
    let name = text(b"A");
    let long = text(&[&b"L"[..], &[b'x'; 60_000], b";"].concat());
    let deep = text(&[&b"[".repeat(60_000)[..], b"I"].concat());
    let field: &[u8] = &[0, 0, 0, 1, 0, 3, 0, 0];
    let fields = |kind: &[u8]| {
        let rest = [&[0, 0, 0, 2, 0, 0, 0, 0, 0x03, 0xe8][..], &field.repeat(1000), &[0, 0, 0, 0]].concat();
        with_pool(&[&name, &[7, 0, 1], kind], &rest)
    };
    for (kind, why) in [(&long, "names and types of more than 65536 bytes"), (&deep, "more than 32 levels")] {
        let error = Classes::new().add_class_file(&fields(kind)).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("offset"), "{error}");
    }
    let short = text(b"I");
    let mut classes = Classes::new();
    classes.add_class_file(&fields(&short)).unwrap();
    assert_eq!(classes.to_string().lines().count(), 1002);
}

/// Java's virtual machine takes no method with longer code, and one initializer.
#[test]
fn long_code_of_an_enum() {
    let pool =
        [&text(b"A")[..], &[7, 0, 1], &text(b"LA;"), &text(b"<clinit>"), &text(b"Code"), &text(b"()V")];
    let file = |length: u32| {
        let (whole, code) = ((length + 12).to_be_bytes(), length.to_be_bytes());
        let field = [0x40, 0x18, 0, 1, 0, 3, 0, 0];
        let rest = [
            &[0x40, 0, 0, 2, 0, 0, 0, 0, 0, 1][..],
            &field,
            &[0, 1, 0, 8, 0, 4, 0, 6, 0, 1, 0, 5],
            &whole,
            &[0; 4],
            &code,
            &vec![0; length as usize],
            &[0; 6],
        ];
        with_pool(&pool, &rest.concat())
    };
    Classes::new().add_class_file(&file(65_535)).unwrap();
    let error = error(Classes::new().add_class_file(&file(65_536)));
    assert!(error.contains("code of more than 65535 bytes at offset"), "{error}");
}

/// Why a payload has no value with the names of its fields.
fn not_described(classes: &Classes, payload: &[u8]) -> String {
    error(Format::Plain(Kind::Kryo5).to_json_with_classes(payload, &Kryo5.with_classes(classes.clone())))
}

/// Classes above each other, in a circle or in a long line.
#[test]
fn classes_above_each_other() {
    let circle: Classes =
        "class a.A extends a.B { int a; } class a.B extends a.A { int b; }".parse().unwrap();
    let payload = b"\x01\x00a.\xc1\x02\x04";
    let error = not_described(&circle, payload);
    assert!(error.contains("more than 64 classes above it"), "{error}");
    assert!(circle.to_rust("a.A").is_err());
    let interfaces: Classes = "interface a.A extends a.B { } interface a.B extends a.A { }".parse().unwrap();
    assert!(interfaces.to_rust("a.A").is_err());
    let text: String =
        (0..500).map(|at| format!("class a.C{at} extends a.C{} {{ int c{at}; }}\n", at + 1)).collect();
    assert!(text.parse::<Classes>().unwrap().to_rust("a.C0").is_err());
}

/// An object that holds itself is as deep as any other.
#[test]
fn deep_objects() {
    let classes: Classes = "class a.Node { a.Node next; }".parse().unwrap();
    let codec = Kryo5.with_classes(classes.clone());
    let payload = [&b"\x01\x00a.Nod\xe5"[..], &b"\x01\x00".repeat(50_000)].concat();
    assert!(not_described(&classes, &payload).contains("more than 127 levels"));
    assert!(matches!(codec.decode(&payload).unwrap(), Value::Opaque(_)));
    let payload = [&b"\x01\x00a.Nod\xe5"[..], &b"\x01\x00".repeat(120), b"\x00"].concat();
    let value = codec.decode(&payload).unwrap();
    assert_eq!(codec.encode(&value).unwrap(), payload);
}

/// A class passes an array of its own parameter to the one above it, under the same name or another one.
#[test]
fn an_array_of_a_parameter_is_passed_on() {
    for text in [
        "class a.A<T> extends a.B<T[]> { } class a.B<T> { T x; } class a.C { a.A<Long> a; }",
        "class a.A<E> extends a.B<E[]> { } class a.B<T> { T x; } class a.C { a.A<Long> a; }",
    ] {
        let classes: Classes = text.parse().unwrap();
        let rust = classes.to_rust("a.C").unwrap();
        assert!(rust.contains("pub x: Option<Vec<Option<i64>>>"), "{rust}");
        let codec = Kryo5.with_classes(classes);
        for (payload, shown) in [
            // What is in an `a.A` is not known, so that its class is in the payload.
            (&b"\x01\x00a.\xc1\x03\x82a"[..], "A{x: \"a\"}"),
            (b"\x01\x00a.\xc3\x01\x01a.\xc1\x02\x01\x0a", "C{a: A{x: Long[]{5L}}}"),
        ] {
            let value = codec.decode(payload).unwrap();
            assert_eq!(value.to_string(), shown);
            assert_eq!(codec.encode(&value).unwrap(), payload);
        }
    }
    // As many dimensions as there can be, and more.
    let levels = "[]".repeat(30);
    for count in [8, 60] {
        let mut text: String = (0..count)
            .map(|at| format!("class a.C{at}<T> extends a.C{}<T{levels}> {{ }}\n", at + 1))
            .collect();
        text += &format!("class a.C{count}<T> {{ T x; }} class a.D {{ a.C0<Long> d; }}");
        let classes: Classes = text.parse().unwrap();
        let rust = classes.to_rust("a.D").unwrap();
        let dimensions = if count == 8 { 240 } else { 0 };
        assert_eq!(rust.matches("Vec<Option<").count(), dimensions, "{rust}");
        let payload = b"\x01\x00a.C\xb0\x03\x82a";
        assert_eq!(Kryo5.with_classes(classes).decode(payload).unwrap().to_string(), "C0{x: \"a\"}");
    }
}

/// Each of these has a field of itself with other type arguments.
#[test]
fn types_without_end() {
    for kind in ["T[]", "List<T>[]", "a.N<T>[]"] {
        let text = format!("class a.N<T> {{ a.N<{kind}> next; T x; }} class a.R {{ a.N<Long> n; }}");
        let classes: Classes = text.parse().unwrap();
        for class in ["a.N", "a.R"] {
            let rust = classes.to_rust(class).unwrap();
            assert!(rust.len() < 10_000, "{rust}");
        }
    }
    let classes: Classes = "
        class a.P<A, B, C, D, E, F, G> { a.P<B, A, C, D, E, F, G> x; a.P<B, C, D, E, F, G, A> y; }
        class a.R { a.P<Long, Integer, String, Short, Byte, Double, Float> p; }
    "
    .parse()
    .unwrap();
    assert!(error(classes.to_rust("a.R")).contains("more than 1000 Rust types"));
}

/// What Java's own serialization wrote is where a field declares type arguments, too.
#[test]
fn serialized_in_generic_fields() {
    let text = "class a.H { Collection<String> x; } class a.L { List<List<String>> x; }
        class a.M { Map<String, List<String>> x; } class a.E { Map<com.acme.Level, String> x; }";
    let codec = Kryo5.with_classes(text.parse::<Classes>().unwrap());
    let row = |name: &str| rows("kryo5-serialized").into_iter().find(|row| row.name == name).unwrap().payload;
    // Behind the number of the class.
    let list = row("list")[2..].to_vec();
    let stream = list.iter().position(|byte| *byte == 0xac).unwrap();
    let element = &list[stream..];
    let array_list = b"\x01\x01java.util.ArrayLis\xf4";
    let map = b"\x01\x01java.util.HashMa\xf0";
    for (payload, expected) in [
        ([&b"\x01\x00a.\xc8\x01\x01"[..], &list].concat(), json!(["a", "b"])),
        (
            [&b"\x01\x00a.\xcc"[..], array_list, b"\x82\x01\x02", &list[..stream], b"\x00", element].concat(),
            json!([["a", "b"]]),
        ),
        (
            [&b"\x01\x00a.\xcc"[..], array_list, b"\x83\x01\x02", &list[..stream], b"\x01\x00\x01", element]
                .concat(),
            json!([null, ["a", "b"]]),
        ),
        (
            [&b"\x01\x00a.\xcc"[..], array_list, b"\x03\x03\x82a\x01\x02", &list].concat(),
            json!(["a", ["a", "b"]]),
        ),
        ([&b"\x01\x00a.\xcd"[..], map, b"\x02\x82k\x01\x02", &list].concat(), json!({ "k": ["a", "b"] })),
    ] {
        let value = codec.decode(&payload).unwrap();
        assert_eq!(serde_json::to_value(&value).unwrap()["x"], expected, "{value}");
        assert_eq!(codec.encode(&value).unwrap(), payload);
    }
    let found = rows("kryo5-serialized").into_iter().filter(|row| row.class == "java.util.EnumMap");
    let mut count = 0;
    for row in found {
        count += 1;
        let payload = [&b"\x01\x00a.\xc5\x01\x01"[..], &row.payload[2..]].concat();
        let value = codec.decode(&payload).unwrap();
        assert_eq!(codec.encode(&value).unwrap(), payload, "{value}");
    }
    assert!(count > 0);
}
