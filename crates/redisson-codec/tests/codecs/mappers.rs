//! Object mappers of an application. What Redisson writes with each is in the vectors `mapper-…`;
//! `Mappers.java` has the mappers and the values.

use std::collections::BTreeMap;

use codec::java::{self, Date, Duration, Instant, LocalDate, LocalDateTime, Uuid, Value};
use codec::{JsonJackson, Mapper, WithMapper};
use redelay_compat_values::annotated::*;
use redelay_compat_values::clock::Clock;
use redelay_compat_values::tasks::*;
use redelay_compat_values::zoo::{Entries, Status};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::places::is;
use super::*;

fn numbers() -> WithMapper<JsonJackson> {
    JsonJackson.with_mapper(Mapper::new().java_time())
}

fn text() -> WithMapper<JsonJackson> {
    JsonJackson.with_mapper(Mapper::new().java_time_as_text())
}

fn wrapper() -> WithMapper<JsonJackson> {
    JsonJackson.with_mapper(Mapper::new().wrapper_array().java_time())
}

fn property() -> WithMapper<JsonJackson> {
    JsonJackson.with_mapper(Mapper::new().class_property().java_time())
}

fn patterns() -> WithMapper<JsonJackson> {
    let mapper = Mapper::new().wrapper_array().local_date_time("yyyy-MM-dd HH:mm:ss.SSS").unwrap();
    let mapper = mapper.local_date("d.M.uuuu").unwrap().local_time("H'h'mm").unwrap();
    JsonJackson.with_mapper(mapper)
}

/// Each row as the type that is in its name, and as a `Value`.
fn of_redisson(codec: &WithMapper<JsonJackson>, file: &str) {
    fn as_a<T: Debug + Serialize + DeserializeOwned + 'static>(
        codec: &WithMapper<JsonJackson>,
        row: &Row,
    ) -> Option<String> {
        is::<T>(codec, row)
    }

    let mut wrong = Vec::new();
    for row in rows(file) {
        let kind = row.name.split_once('.').map_or(&row.name[..], |(kind, _)| kind);
        let lossy = file == "mapper-patterns" && ["local", "day"].contains(&kind);
        wrong.extend(match (kind, &row.name[..]) {
            ("local", _) => as_a::<Clock<LocalDateTime>>(codec, &row),
            ("day", _) => as_a::<Clock<LocalDate>>(codec, &row),
            ("instant", _) => as_a::<Clock<Instant>>(codec, &row),
            ("gap", _) => as_a::<Clock<Duration>>(codec, &row),
            ("date", "date.-62135596800000") if file == "mapper-text" => None,
            ("date", _) => as_a::<Clock<Date>>(codec, &row),
            ("longs", _) => as_a::<Clock<i64>>(codec, &row),
            (_, "open.0") => as_a::<Clock<Uuid>>(codec, &row),
            (_, "open.1") => as_a::<Clock<Status>>(codec, &row),
            (_, "open.2") => as_a::<Clock<java::array::Of<Vec<i64>>>>(codec, &row),
            (_, "open.3") => as_a::<Clock<java::array::Of<Vec<Option<i64>>>>>(codec, &row),
            (_, "open.5") => as_a::<Clock<f32>>(codec, &row),
            (_, "open.6") => as_a::<Clock<i16>>(codec, &row),
            (_, "open.8") => as_a::<Clock<Vec<i64>>>(codec, &row),
            (_, "open.9") => as_a::<Clock<Entries<String, i64>>>(codec, &row),
            (_, "open.10") => as_a::<Clock<Vec<u8>>>(codec, &row),
            ("open" | "text", _) => as_a::<Clock>(codec, &row),
            (_, "root.local") => as_a::<LocalDateTime>(codec, &row),
            (_, "root.day") => as_a::<LocalDate>(codec, &row),
            (_, "root.instant") => as_a::<Instant>(codec, &row),
            (_, "root.date") => as_a::<Date>(codec, &row),
            (_, "root.long") => as_a::<i64>(codec, &row),
            (_, "root.uuid") => as_a::<Uuid>(codec, &row),
            (_, "root.longs") => as_a::<Vec<i64>>(codec, &row),
            ("root", _) => as_a::<Value>(codec, &row),
            ("task", _) => as_a::<Task>(codec, &row),
            ("job", _) => as_a::<Job>(codec, &row),
            ("batch", _) => as_a::<Batch>(codec, &row),
            (_, "tasks.map") => as_a::<Entries<String, Task>>(codec, &row),
            (_, "tasks.array" | "tasks.array.none") => {
                as_a::<java::array::Of<Vec<Option<Task>>>>(codec, &row)
            }
            ("tasks", _) => as_a::<Vec<Option<Task>>>(codec, &row),
            ("payment", _) => as_a::<Payment>(codec, &row),
            (_, "payments.list") => as_a::<Vec<Payment>>(codec, &row),
            ("payments", _) => as_a::<Payments>(codec, &row),
            ("shape", _) => as_a::<Shape>(codec, &row),
            ("shapes", _) => as_a::<Shapes>(codec, &row),
            ("move", _) => as_a::<Move>(codec, &row),
            ("moves", _) => as_a::<Moves>(codec, &row),
            ("ordered", _) => as_a::<Ordered>(codec, &row),
            ("created", _) => as_a::<Created>(codec, &row),
            ("always", _) => as_a::<Always>(codec, &row),
            ("sometimes", _) => as_a::<Sometimes>(codec, &row),
            ("extra", _) => as_a::<Extra>(codec, &row),
            _ => panic!("{} is of no type", row.name),
        });
        // Java prints Julian days there.
        if row.name != "date.-62135596800000" || file != "mapper-text" {
            wrong.extend(is::<Value>(codec, &row).map(|why| format!("as a Value, {why}")));
        }
        if kind == "local" && !lossy {
            let read: Clock<LocalDateTime> = codec.decode(&row.payload).unwrap();
            let time = row.name.strip_prefix("local.").unwrap();
            assert_eq!(read.open.unwrap(), format!("2024-02-29T{time}").parse().unwrap());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn times_as_numbers() {
    of_redisson(&numbers(), "mapper-numbers");
}

#[test]
fn times_as_text() {
    of_redisson(&text(), "mapper-text");
}

#[test]
fn classes_in_front() {
    of_redisson(&wrapper(), "mapper-wrapper");
}

#[test]
fn classes_as_properties() {
    of_redisson(&property(), "mapper-property");
}

/// What default typing writes that is not written here is read into the same values.
#[test]
fn other_default_typings_are_read() {
    fn as_a<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(
        codec: &WithMapper<JsonJackson>,
        row: &Row,
        usual: &Row,
    ) -> Option<String> {
        let expected: T = numbers().decode(&usual.payload).unwrap();
        let read: Result<T, _> = codec.decode(&row.payload);
        let wrong = match read {
            Ok(read) if read == expected => return None,
            Ok(read) => format!("{read:?}"),
            Err(error) => error.to_string(),
        };
        Some(format!("{}: {wrong}\n    {}", row.name, String::from_utf8_lossy(&row.payload)))
    }

    let usual = rows("mapper-numbers");
    let mut wrong = Vec::new();
    for (file, codec) in [
        ("mapper-abstract", wrapper()),
        ("mapper-abstract-property", property()),
        ("mapper-everything", wrapper()),
        ("mapper-everything-property", property()),
    ] {
        let found = rows(file);
        assert_eq!(found.len(), usual.len());
        for (row, usual) in found.iter().zip(&usual) {
            let kind = row.name.split_once('.').map_or(&row.name[..], |(kind, _)| kind);
            assert_eq!(row.name, usual.name);
            wrong.extend(match (kind, &row.name[..]) {
                ("local" | "day" | "instant" | "gap" | "date" | "longs" | "text", _) => {
                    as_a::<Clock>(&codec, row, usual)
                }
                (_, "root.local") => as_a::<LocalDateTime>(&codec, row, usual),
                (_, "root.instant") => as_a::<Instant>(&codec, row, usual),
                (_, "root.date") => as_a::<Date>(&codec, row, usual),
                (_, "root.long") => as_a::<i64>(&codec, row, usual),
                (_, "root.uuid") => as_a::<Uuid>(&codec, row, usual),
                (_, "root.longs") => as_a::<Vec<i64>>(&codec, row, usual),
                ("job", _) => as_a::<Job>(&codec, row, usual),
                ("batch", _) => as_a::<Batch>(&codec, row, usual),
                (_, "tasks.map") => as_a::<Entries<String, Task>>(&codec, row, usual),
                (_, "tasks.array" | "tasks.array.none") => {
                    as_a::<java::array::Of<Vec<Option<Task>>>>(&codec, row, usual)
                }
                ("tasks", _) => as_a::<Vec<Option<Task>>>(&codec, row, usual),
                ("payment", _) => as_a::<Payment>(&codec, row, usual),
                ("payments", "payments.list") => as_a::<Vec<Payment>>(&codec, row, usual),
                ("payments", _) => as_a::<Payments>(&codec, row, usual),
                ("shape", _) => as_a::<Shape>(&codec, row, usual),
                ("shapes", _) => as_a::<Shapes>(&codec, row, usual),
                ("move", _) => as_a::<Move>(&codec, row, usual),
                ("moves", _) => as_a::<Moves>(&codec, row, usual),
                ("ordered", _) => as_a::<Ordered>(&codec, row, usual),
                ("created", _) => as_a::<Created>(&codec, row, usual),
                ("always", _) => as_a::<Always>(&codec, row, usual),
                ("sometimes", _) => as_a::<Sometimes>(&codec, row, usual),
                ("extra", _) => as_a::<Extra>(&codec, row, usual),
                _ => None,
            });
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn times_of_a_pattern() {
    of_redisson(&patterns(), "mapper-patterns");
}

/// A `Value` keeps what it does not understand.
#[test]
fn what_a_value_keeps() {
    for payload in [
        r#"["com.acme.Weird",5]"#,
        r#"["com.acme.Weird",5000000000]"#,
        r#"["com.acme.Weird",true]"#,
        r#"["com.acme.Weird",1.50]"#,
        r#"["com.acme.Weird","text"]"#,
        r#"["com.acme.Weird",[1,[2]]]"#,
        r#"{"@class":"com.acme.Weird","a":1}"#,
        r#"["java.lang.Long","text"]"#,
        r#"["java.lang.Integer",1.5]"#,
        r#"["java.util.UUID","none"]"#,
        r#"["java.util.UUID",[1]]"#,
        r#"["java.math.BigDecimal","1.50"]"#,
        r#"["java.util.Date","2024-02-29T12:34:56.789+00:00"]"#,
        r#"["java.util.Date","yesterday"]"#,
        r#"["java.util.Locale",5]"#,
        r#"["java.time.Instant",1709210096.789000000]"#,
        r#"["java.time.Instant","2024-02-29T12:34:56Z"]"#,
        r#"["java.time.LocalDate",[2024,2,29]]"#,
        r#"["java.time.LocalDate",[2024,2,30]]"#,
        r#"["java.time.LocalDateTime","2024-02-29T12:34"]"#,
        r#"["java.time.OffsetDateTime","2024-02-29T12:34+01:00"]"#,
        r#"["java.time.Year",2024]"#,
        r#"["java.util.concurrent.atomic.AtomicInteger","5"]"#,
    ] {
        let codecs = [JsonJackson.with_mapper(Mapper::new()), numbers(), text(), patterns()];
        for codec in codecs {
            let payload = match payload.strip_prefix(r#"{"@class":"com.acme.Weird","#) {
                Some(fields) if format!("{codec:?}").contains("Wrapper") => {
                    format!(r#"["com.acme.Weird",{{{fields}]"#)
                }
                _ => payload.to_owned(),
            };
            // The payload itself may be bare.
            let payload = format!(r#"["java.util.ArrayList",[{payload}]]"#);
            let value: Value = codec.decode(payload.as_bytes()).unwrap();
            let written = codec.encode(&value).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), payload, "{value:?} {codec:?}");
        }
    }
}

/// The class of a map that another mapper has written is not an entry of it.
#[test]
fn classes_in_maps_of_another_mapper() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.M")]
    struct WithMap {
        attrs: BTreeMap<String, String>,
    }
    let payload = br#"{"@class":"com.acme.M","attrs":{"@class":"java.util.HashMap","a":"x"}}"#;
    let value = WithMap { attrs: [("a".into(), "x".into())].into() };
    assert_eq!(Codec::<WithMap>::decode(&JsonJackson, payload).unwrap(), value);
    for mapper in [Mapper::new().wrapper_array(), Mapper::new().without_classes()] {
        let error =
            Codec::<WithMap>::decode(&JsonJackson.with_mapper(mapper), payload).unwrap_err().to_string();
        assert!(
            error.ends_with("found an `@class` in a map at offset 41; this looks like `JsonJackson`"),
            "{error}"
        );
    }
    // A key of this name that names no class of a map is one.
    let other = br#"{"attrs":{"@class":"com.acme.Order","a":"x"}}"#;
    let codec = JsonJackson.with_mapper(Mapper::new().without_classes());
    assert_eq!(Codec::<WithMap>::decode(&codec, other).unwrap().attrs["@class"], "com.acme.Order");
}
