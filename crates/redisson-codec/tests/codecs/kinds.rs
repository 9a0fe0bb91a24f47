//! The bytes that Kryo writes for each way to declare a field: final classes, records, enums with bodies,
//! arrays of arrays, and type arguments, which Kryo uses in some places and ignores in others.
//!
//! The Java classes are `lab.Kinds.Holder` and so on, with the fields and types of the structs here:
//! `List<Fin> fins; List<Color> colors; Set<Level> levels; … Map<String, Map<String, List<Integer>>> deep;
//! …`.
// As deep as the Java types.
#![allow(clippy::type_complexity)]

use codec::Kryo5;
use codec::java::{self, Date, Uuid, Value};
use serde::{Deserialize, Serialize};

use super::*;
use redelay_compat_values::zoo::Entries;

type List<T> = Option<Vec<Option<T>>>;
type Strings = Option<Vec<String>>;
type Array<T> = java::array::Of<Vec<T>>;
type Lists<T> = Entries<String, Option<Vec<Option<T>>>>;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Kinds$Color", rename_all = "UPPERCASE")]
enum Color {
    Red,
    Green,
    Blue,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "abstract lab.Kinds$Level", rename_all = "UPPERCASE")]
enum Level {
    Low,
    High,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "final lab.Kinds$Fin")]
struct Fin {
    a: i32,
    b: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Kinds$Open")]
struct Open {
    a: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record lab.Kinds$Rec")]
struct Rec {
    tags: Strings,
    n: i32,
    boxed: Option<i32>,
    fin: Option<Fin>,
    open: Option<Open>,
    #[serde(with = "java::array")]
    ls: Option<Vec<i64>>,
    color: Option<Color>,
}

/// The struct with the collection classes of the row `holder.full`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Kinds$Holder", rename_all = "camelCase")]
struct Holder {
    fins: List<Fin>,
    colors: List<Color>,
    #[serde(with = "java::linked_hash_set")]
    levels: Option<Vec<Level>>,
    level: Option<Level>,
    fin: Option<Fin>,
    rec: Option<Rec>,
    by_color: Option<Entries<Color, Option<Fin>>>,
    opt: Option<java::optional::Of<Strings>>,
    #[serde(with = "java::array")]
    boxes: List<i32>,
    #[serde(with = "java::array")]
    matrix: List<Array<i32>>,
    #[serde(with = "java::array")]
    words: List<Array<Option<String>>>,
    #[serde(with = "java::array")]
    objs: Option<Vec<Value>>,
    arrays: Option<Vec<Array<i32>>>,
    #[serde(with = "java::object")]
    any: Option<Fin>,
    #[serde(with = "java::object")]
    text: Option<String>,
    opts: Option<Vec<Option<java::optional::Of<Option<String>>>>>,
    #[serde(with = "java::linked_hash_map")]
    deep: Option<Entries<String, java::linked_hash_map::Of<Lists<i32>>>>,
    cube: Option<Vec<Vec<Vec<String>>>>,
    #[serde(with = "java::array")]
    ids: List<Uuid>,
    dates: List<Date>,
    blobs: List<Vec<u8>>,
    #[serde(with = "java::array")]
    fin_arr: List<Fin>,
    #[serde(with = "java::array")]
    open_mat: List<Array<Option<Open>>>,
    recs: List<Rec>,
    #[serde(with = "java::array")]
    bs: Option<Vec<bool>>,
    #[serde(with = "java::array")]
    cs: Option<Vec<char>>,
    #[serde(with = "java::array")]
    ds: Option<Vec<f64>>,
    #[serde(with = "java::array")]
    ss: Option<Vec<i16>>,
    #[serde(with = "java::array")]
    fs: Option<Vec<f32>>,
    #[serde(with = "java::array")]
    list_arr: Option<Vec<Strings>>,
    im: Option<Entries<i32, i64>>,
    opens: List<Open>,
    #[serde(with = "java::tree_set")]
    ts: Strings,
    #[serde(with = "java::array_deque")]
    q: Option<Vec<i32>>,
    #[serde(with = "java::array")]
    bb: List<i8>,
}

#[test]
fn each_kind_of_field() {
    for row in rows("kryo5-kinds") {
        let Some(kind) = row.name.strip_prefix("holder.") else { continue };
        let holder: Holder =
            Kryo5.decode(&row.payload).unwrap_or_else(|error| panic!("{}: {error}", row.name));
        if kind != "immutable" && kind != "mixed" {
            assert_eq!(Kryo5.encode(&holder).unwrap(), row.payload, "{}", row.name);
        }
        // Written with the struct's collection classes, it has the same content.
        let again: Holder = Kryo5.decode(&Kryo5.encode(&holder).unwrap()).unwrap();
        assert_eq!(again, holder, "{}", row.name);
    }
}

/// `lab.Moments`, with a field of each class of `java.time` that is a text in Rust.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "lab.Moments")]
pub(super) struct Moments {
    #[serde(with = "java::zoned_date_time")]
    pub(super) zoned: Option<String>,
    #[serde(with = "java::offset_date_time")]
    pub(super) at: Option<String>,
    #[serde(with = "java::offset_time")]
    pub(super) time: Option<String>,
    #[serde(with = "java::zone_offset")]
    pub(super) offset: Option<String>,
    #[serde(with = "java::zone_id")]
    pub(super) zone: Option<String>,
    #[serde(with = "java::year")]
    pub(super) year: Option<String>,
    #[serde(with = "java::year_month")]
    pub(super) month: Option<String>,
    #[serde(with = "java::month_day")]
    pub(super) day: Option<String>,
    #[serde(with = "java::period")]
    pub(super) period: Option<String>,
    #[serde(with = "java::locale")]
    pub(super) locale: Option<String>,
    /// A `Class<?>`.
    pub(super) kind: Option<java::class_name::Of<String>>,
    pub(super) weekday: Option<DayOfWeek>,
    pub(super) all: Option<Vec<Option<java::offset_date_time::Of<String>>>>,
    #[serde(with = "java::array")]
    pub(super) years: Option<Vec<Option<java::year::Of<String>>>>,
    pub(super) gaps: Option<Entries<java::year_month::Of<String>, java::period::Of<String>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.time.DayOfWeek", rename_all = "UPPERCASE")]
pub(super) enum DayOfWeek {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

#[test]
fn times_that_are_texts_in_a_struct() {
    let row = |name: &str| rows("kryo5-kinds").into_iter().find(|row| row.name == name).unwrap();
    let some = |text: &str| Some(text.to_owned());
    let at = "2024-02-29T12:34:56.789+02:00";
    let moments = Moments {
        zoned: some("2024-02-29T12:34:56.789[Europe/Berlin]"),
        at: some(at),
        time: some("01:00Z"),
        offset: some("+02:00"),
        zone: some("Europe/Berlin"),
        year: some("2024"),
        month: some("2024-02"),
        day: some("--02-29"),
        period: some("P1Y-2M"),
        locale: some("de_DE"),
        kind: Some("java.lang.String".to_owned().into()),
        weekday: Some(DayOfWeek::Monday),
        all: Some([Some(at), None, Some(at)].map(|at| at.map(|at| at.to_owned().into())).into()),
        years: Some(vec![Some("2024".to_owned().into()), None]),
        gaps: Some(Entries(vec![("2024-02".to_owned().into(), "P1Y-2M".to_owned().into())])),
    };
    for (name, moments) in [("moments.full", moments), ("moments.null", Moments::default())] {
        let payload = row(name).payload;
        assert_eq!(Codec::<Moments>::decode(&Kryo5, &payload).unwrap(), moments, "{name}");
        assert_eq!(Kryo5.encode(&moments).unwrap(), payload, "{name}");
    }
    // Other crates print the offset as well.
    let text = "2024-02-29T12:34:56.789+01:00[Europe/Berlin]";
    let payload = Kryo5.encode(&Moments { zoned: some(text), ..Moments::default() }).unwrap();
    let read: Moments = Kryo5.decode(&payload).unwrap();
    assert_eq!(read.zoned.as_deref(), Some("2024-02-29T12:34:56.789[Europe/Berlin]"));
    // A `ZoneId` may be a `ZoneOffset`: one that Java wrote, and a zone name that Java reads as an offset.
    for payload in [
        [
            &b"\x01\x00lab.Moment\xf3\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"[..],
            b"\x01\x01java.time.ZoneOffse\xf4\x08\x00",
        ],
        [
            &b"\x01\x00lab.Moment\xf3\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"[..],
            b"\x01\x01java.time.ZoneRegio\xee+02:0\xb0\x00",
        ],
    ] {
        let read: Moments = Kryo5.decode(&payload.concat()).unwrap();
        assert_eq!(read.zone.as_deref(), Some("+02:00"));
    }
    let wrong = error(Kryo5.encode(&Moments { year: some("MMXXIV"), ..Moments::default() }));
    assert!(wrong.contains("expected the text of a `java.time.Year`, such as 2024"), "{wrong}");
}

#[test]
fn jackson_has_no_times_that_are_texts() {
    use codec::JsonJackson;

    let none = br#"{"@class":"lab.Moments"}"#;
    assert_eq!(JsonJackson.encode(&Moments::default()).unwrap(), none);
    assert_eq!(Codec::<Moments>::decode(&JsonJackson, none).unwrap(), Moments::default());
    let moments = Moments { year: Some("2024".to_owned()), ..Moments::default() };
    let refused = error(JsonJackson.encode(&moments));
    assert!(
        refused.contains("a java.time.Year is not written: Redisson's own mapper has no module"),
        "{refused}"
    );
    let year = Value::Text(Box::new(java::Text::new("java.time.Year", "2024")));
    let refused = error(JsonJackson.encode(&Value::list([year])));
    assert!(
        refused.contains("a java.time.Year is not written: Redisson's own mapper has no module"),
        "{refused}"
    );
    // Another mapper may have written it.
    let read = br#"{"@class":"lab.Moments","year":"2024"}"#;
    assert_eq!(Codec::<Moments>::decode(&JsonJackson, read).unwrap(), moments);
    // There, a locale and an enum are texts.
    let json = r#"{"@class":"lab.Moments","locale":"de_DE","weekday":"MONDAY"}"#;
    let moments: Moments = JsonJackson.decode(json.as_bytes()).unwrap();
    assert_eq!(moments.locale.as_deref(), Some("de_DE"));
    assert_eq!(JsonJackson.encode(&moments).unwrap(), json.as_bytes());
}

#[test]
fn fields_of_kryo_are_not_those_of_jackson() {
    for name in ["atomicref", "optint", "sqltime", "bitset", "simpleentry"] {
        let row = rows("kryo5-kinds").into_iter().find(|row| row.name == name).unwrap();
        let value: Value = Kryo5.decode(&row.payload).unwrap();
        let refused = error(codec::JsonJackson.encode(&value));
        assert!(refused.contains(&row.class) && refused.contains("those of Kryo only"), "{refused}");
    }
    // These are a number or a boolean behind the class name.
    for (name, json) in [
        ("atomicint.neg", r#"["java.util.concurrent.atomic.AtomicInteger",-2]"#),
        ("atomiclong.neg", r#"["java.util.concurrent.atomic.AtomicLong",-9223372036854775808]"#),
        ("atomicbool", r#"["java.util.concurrent.atomic.AtomicBoolean",true]"#),
        ("timestamp.now", r#"["java.sql.Timestamp",1700000000123]"#),
        ("sqldate.day", r#"["java.sql.Date",1700000000000]"#),
    ] {
        let row = rows("kryo5-kinds").into_iter().find(|row| row.name == name).unwrap();
        let value: Value = Kryo5.decode(&row.payload).unwrap();
        assert_eq!(codec::JsonJackson.encode(&value).unwrap(), json.as_bytes());
        assert_eq!(Codec::<Value>::decode(&codec::JsonJackson, json.as_bytes()).unwrap(), value);
    }
    for wrong in [
        r#"["java.util.concurrent.atomic.AtomicInteger",3000000000]"#,
        r#"["java.util.concurrent.atomic.AtomicLong",1.5]"#,
    ] {
        let kept: Value = codec::JsonJackson.decode(wrong.as_bytes()).unwrap();
        assert!(matches!(kept, Value::Classed(_)), "{kept:?}");
        assert_eq!(codec::JsonJackson.encode(&kept).unwrap(), wrong.as_bytes());
    }
}

/// The third column is the printed value, or why its bytes are kept.
#[test]
fn values_of_the_library() {
    for row in rows("kryo5-kinds") {
        let (name, shown) = (&row.name, row.json.as_str().unwrap());
        let read: Result<Value, _> = Kryo5.decode(&row.payload);
        let value = read.unwrap_or_else(|error| panic!("{name}: {error}"));
        if shown.starts_with('!') {
            assert!(matches!(value, Value::Opaque(_)), "{name}: {value:?}");
            assert_eq!(Kryo5.encode(&value).unwrap(), row.payload, "{name}");
            continue;
        }
        assert_eq!(value.class(), row.class, "{name}");
        assert_eq!(value.to_string(), shown, "{name}");
        assert_eq!(Kryo5.encode(&value).unwrap(), row.payload, "{name}");
    }
}

/// The same class with each word in front, as a payload and in a field.
mod words {
    use super::*;

    macro_rules! line {
        ($name:ident $class:literal) => {
            #[derive(Debug, PartialEq, Serialize, Deserialize)]
            #[serde(rename = $class)]
            struct $name {
                quantity: i32,
                sku: Option<String>,
                tags: Option<Vec<String>>,
            }

            impl $name {
                fn new(tags: Option<Vec<String>>) -> Self {
                    Self { quantity: 7, sku: Some("a".into()), tags }
                }
            }
        };
    }

    line! { Plain "lab.Line" }
    line! { Final "final lab.Line" }
    line! { Record "record lab.Line" }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "lab.Order")]
    struct Order<L> {
        line: L,
    }

    #[test]
    fn as_the_payload_itself_each_reads_the_others_unless_it_has_a_list() {
        let payload = Kryo5.encode(&Plain::new(None)).unwrap();
        assert_eq!(payload, Kryo5.encode(&Final::new(None)).unwrap());
        assert_eq!(payload, Kryo5.encode(&Record::new(None)).unwrap());
        let tags = || Some(vec!["b".to_owned(), "c".to_owned()]);
        let payload = Kryo5.encode(&Plain::new(tags())).unwrap();
        assert_eq!(payload, Kryo5.encode(&Final::new(tags())).unwrap());
        // The elements of a record's lists are written with their classes.
        let of_record = Kryo5.encode(&Record::new(tags())).unwrap();
        assert!(Codec::<Plain>::decode(&Kryo5, &of_record).is_err());
        assert!(Codec::<Record>::decode(&Kryo5, &payload).is_err());
    }

    #[test]
    fn in_a_field_a_final_class_is_written_without_its_name() {
        let plain = Kryo5.encode(&Order { line: Plain::new(None) }).unwrap();
        let sealed = Kryo5.encode(&Order { line: Final::new(None) }).unwrap();
        assert_eq!(sealed, Kryo5.encode(&Order { line: Record::new(None) }).unwrap());
        assert!(Codec::<Order<Final>>::decode(&Kryo5, &plain).is_err());
        assert!(Codec::<Order<Plain>>::decode(&Kryo5, &sealed).is_err());
    }
}

/// Jackson's formats have values without the class that they would have as an `Object`.
#[test]
fn kryo_writes_what_a_bare_value_holds() {
    let bare = || Value::Bare(Box::new(Value::Long(5)));
    let array = |element| Value::Array(Box::new(java::Array::new("[J", [element])));
    for around in [|value| Value::list([value]), array, |value| Value::map([("k", value)])] {
        assert_eq!(Kryo5.encode(&around(bare())).unwrap(), Kryo5.encode(&around(Value::Long(5))).unwrap());
    }
}

#[cfg(feature = "json")]
#[test]
fn a_number_of_json_has_as_many_digits_as_one_of_kryo_at_most() {
    for quote in ["", "\""] {
        let read = |digits| {
            let text = format!("{quote}{}{quote}", "9".repeat(digits));
            codec::Json.decode(text.as_bytes()).map(|number: java::BigInteger| number.to_string().len())
        };
        assert_eq!(read(1_000).unwrap(), 1_000);
        let error = read(160_001).unwrap_err().to_string();
        assert!(error.contains("a number of 160001 characters"), "{error}");
    }
}
