//! `Kryo5`: payloads that Redisson wrote, as structs and as values, and payloads that are refused.

use codec::Kryo5;
use codec::java::{self, Value};
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

/// Decodes to the value, which is the JSON beside it, and encodes to the same bytes.
#[track_caller]
fn as_a<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(row: &Row) {
    let name = &row.name;
    let value: T = Kryo5.decode(&row.payload).unwrap_or_else(|error| panic!("{name}: {error}"));
    if row.has_json() {
        assert_eq!(zoo::to_json(&value), row.json, "decode {name}");
        // Plain JSON does not say whether a number is a `Long`, nor how many digits it had.
        if row.class.starts_with("com.acme.")
            && !row.class.ends_with("Ledger")
            && !row.class.ends_with("Envelope")
        {
            let parsed: T = zoo::from_json(&row.json).unwrap();
            assert_eq!(zoo::to_json(&parsed), row.json, "{name} from its JSON");
        }
    }
    assert_eq!(Kryo5.encode(&value).unwrap(), row.payload, "encode {name}");
}

/// Whether a row is of a class that a `Value` knows.
fn is_known(row: &Row) -> bool {
    !row.class.starts_with("com.acme.") && !row.class.starts_with("lab.")
}

#[test]
fn structs_of_redisson() {
    let mut others = 0;
    for row in kryo_rows() {
        match row.class.as_str() {
            "com.acme.Zoo$Order" => as_a::<Order>(&row),
            "com.acme.Zoo$RefundEvent" => as_a::<RefundEvent>(&row),
            "com.acme.Zoo$Envelope" => as_a::<Envelope>(&row),
            "com.acme.Zoo$Ledger" => as_a::<Ledger>(&row),
            "com.acme.Zoo$Times" => as_a::<Times>(&row),
            "com.acme.Zoo$Nested" => as_a::<Nested>(&row),
            "com.acme.Zoo$Boxes" => as_a::<Boxes>(&row),
            "com.acme.Zoo$Point" => as_a::<Point>(&row),
            "com.acme.Zoo$Status" => as_a::<Status>(&row),
            "com.acme.Zoo$Level$2" => as_a::<Level>(&row),
            "lab.Small" => as_a::<Small>(&row),
            "lab.Order$Status" => as_a::<LabStatus>(&row),
            "java.lang.String" => as_a::<String>(&row),
            "java.lang.Integer" => as_a::<i32>(&row),
            "java.lang.Long" => as_a::<i64>(&row),
            "java.lang.Double" => as_a::<f64>(&row),
            "java.lang.Float" => as_a::<f32>(&row),
            "java.lang.Short" => as_a::<i16>(&row),
            "java.lang.Boolean" => as_a::<bool>(&row),
            "java.lang.Character" => as_a::<char>(&row),
            "[Ljava.lang.String;" => as_a::<java::array::Of<Vec<String>>>(&row),
            "[I" => as_a::<java::array::Of<Vec<i32>>>(&row),
            "java.util.ArrayList" => as_a::<Vec<Value>>(&row),
            "java.util.LinkedHashMap" => as_a::<java::linked_hash_map::Of<Entries<String, Value>>>(&row),
            "java.util.HashMap" => as_a::<Entries<Value, Value>>(&row),
            "java.util.TreeMap" => as_a::<java::tree_map::Of<Entries<String, i32>>>(&row),
            "java.util.LinkedList" => as_a::<java::linked_list::Of<Vec<Value>>>(&row),
            "java.util.RegularEnumSet" => as_a::<java::enum_set::Of<Vec<Status>>>(&row),
            _ => others += 1,
        }
    }
    // Those that have no struct are read as values.
    assert!(others < 12, "{others}");
}

fn kryo_rows() -> Vec<Row> {
    rows("kryo5")
}

#[test]
fn values_of_redisson() {
    for row in kryo_rows() {
        let read: Result<Value, _> = Kryo5.decode(&row.payload);
        let value = read.unwrap_or_else(|error| panic!("{}: {error}", row.name));
        if !is_known(&row) {
            assert!(matches!(value, Value::Opaque(_)), "{}: {value:?}", row.name);
        }
        assert_eq!(value.class(), row.class, "{}", row.name);
        assert_eq!(Kryo5.encode(&value).unwrap(), row.payload, "encode {}", row.name);
        if row.class.starts_with("java.lang.")
            || row.class.starts_with("java.util.") && row.name != "set.status"
        {
            assert_eq!(serde_json::to_value(&value).unwrap(), row.json, "{}", row.name);
        }
    }
}

/// Long lists are put into order in another way than short ones.
#[test]
fn long_lists_of_structs() {
    let line = |at: i32| Line { sku: Some(format!("sku-{at}")), quantity: at, price: at.into() };
    let address = |at: i32| Address { street: None, zip: at, city: Some("x".repeat(at as usize % 100)) };
    let lines: Vec<Line> = (0..2000).map(line).collect();
    let payload = Kryo5.encode(&lines).unwrap();
    assert_eq!(lines, Codec::<Vec<Line>>::decode(&Kryo5, &payload).unwrap());
    let last = Kryo5.encode(&lines[1999]).unwrap();
    let name = b"\x01\x00com.acme.Zoo$Lin\xe5";
    assert!(payload.ends_with(last.strip_prefix(name).unwrap()));
    // With classes in them, and between them.
    let both: Vec<(String, Vec<Address>)> =
        (0..500).map(|at| (at.to_string(), vec![address(at), address(at + 1)])).collect();
    let payload = Kryo5.encode(&Entries(both.clone())).unwrap();
    assert_eq!(Entries(both), Kryo5.decode(&payload).unwrap());
}

/// A struct without fields has no bytes, but it is not null.
#[test]
fn structs_without_fields_among_nulls() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "lab.Empty")]
    struct Empty;
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "lab.Braces")]
    struct Braces {}
    let list = vec![Some(Empty), None, Some(Empty)];
    let payload = Kryo5.encode(&list).unwrap();
    assert_eq!(payload, b"\x01\x00java.util.ArrayLis\xf4\x84\x01\x01lab.Empt\xf9\x01\x01\x00\x01");
    assert_eq!(list, Codec::<Vec<Option<Empty>>>::decode(&Kryo5, &payload).unwrap());
    let list = vec![None, Some(Braces {})];
    let payload = Kryo5.encode(&list).unwrap();
    assert_eq!(list, Codec::<Vec<Option<Braces>>>::decode(&Kryo5, &payload).unwrap());
}

/// A type whose `Serialize` is written by hand, and gives fields in another order, twice or not at all.
#[test]
fn fields_in_any_order() {
    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(rename = "lab.Odd")]
    struct Odd {
        c: Option<String>,
        a: i32,
        b: Option<i64>,
    }
    impl Serialize for Odd {
        fn serialize<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeStruct;
            let mut fields = output.serialize_struct("lab.Odd", 3)?;
            fields.serialize_field("b", &Some(7i64))?;
            fields.serialize_field("a", &self.a)?;
            fields.serialize_field("b", &self.b)?;
            if self.c.is_some() {
                fields.serialize_field("c", &self.c)?;
            }
            fields.end()
        }
    }
    let odd = |c: Option<&str>| Odd { c: c.map(str::to_owned), a: 1, b: Some(-1) };
    assert_eq!(Kryo5.encode(&odd(None)).unwrap(), b"\x01\x00lab.Od\xe4\x02\x01\x01\x80");
    let list = vec![odd(Some("a")), odd(None)];
    let payload = Kryo5.encode(&list).unwrap();
    assert!(payload.ends_with(b"\x00\x02\x01\x01\x82a\x02\x01\x01\x80"));
    assert_eq!(list, Codec::<Vec<Odd>>::decode(&Kryo5, &payload).unwrap());
}

/// The time that Kryo takes for Redisson's orders, relative to `serde_json`: `cargo test --release --test
/// codecs --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn speed() {
    let orders: Vec<Order> = kryo_rows()
        .iter()
        .filter(|row| row.class.ends_with("$Order"))
        .map(|row| Kryo5.decode(&row.payload).unwrap())
        .collect();
    let kryo: Vec<Vec<u8>> = orders.iter().map(|order| Kryo5.encode(order).unwrap()).collect();
    let json: Vec<Vec<u8>> = orders.iter().map(|order| serde_json::to_vec(order).unwrap()).collect();
    let time = |work: &mut dyn FnMut(usize)| {
        let mut best = f64::MAX;
        for _ in 0..30 {
            let start = std::time::Instant::now();
            (0..20).for_each(|_| (0..orders.len()).for_each(&mut *work));
            best = best.min(start.elapsed().as_secs_f64());
        }
        best / (20 * orders.len()) as f64 * 1e9
    };
    let mut sink = 0;
    let encode = time(&mut |at| sink += Kryo5.encode(&orders[at]).unwrap().len());
    let encode_json = time(&mut |at| sink += serde_json::to_vec(&orders[at]).unwrap().len());
    let decode =
        time(&mut |at| sink += Codec::<Order>::decode(&Kryo5, &kryo[at]).unwrap().items as usize & 1);
    let decode_json =
        time(&mut |at| sink += serde_json::from_slice::<Order>(&json[at]).unwrap().items as usize & 1);
    println!("encode {encode:.0} ns, {:.2} of serde_json's {encode_json:.0}", encode / encode_json);
    println!("decode {decode:.0} ns, {:.2} of serde_json's {decode_json:.0} ({sink})", decode / decode_json);
}
