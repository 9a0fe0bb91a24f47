//! What Kryo writes for each way to declare a field: final classes, records, enums with bodies, arrays of arrays, and type
//! arguments, which it keeps in some places and forgets in others.
//!
//! The Java classes are `lab.Kinds.Holder` and so on, with the fields and types of the structs here:
//! `List<Fin> fins; List<Color> colors; Set<Level> levels; … Map<String, Map<String, List<Integer>>> deep; …`.
// As deep as what they are of in Java.
#![allow(clippy::type_complexity)]

use codec::Kryo5;
use codec::java::{self, Date, Uuid, Value};
use serde::{Deserialize, Serialize};

use super::zoo::Entries;
use super::*;

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

/// In which the classes of collections are those of the row `holder.full`.
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
        // Written with the classes that the struct names, it says the same.
        let again: Holder = Kryo5.decode(&Kryo5.encode(&holder).unwrap()).unwrap();
        assert_eq!(again, holder, "{}", row.name);
    }
}

#[test]
fn values_of_the_library() {
    let mut unknown = Vec::new();
    for row in rows("kryo5-kinds") {
        let read: Result<Value, _> = Kryo5.decode(&row.payload);
        match read {
            Ok(value) => {
                assert_eq!(value.class(), row.class, "{}", row.name);
                assert_eq!(Kryo5.encode(&value).unwrap(), row.payload, "{}", row.name);
            }
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("not known"), "{}: {error}", row.name);
                unknown.push(row.name);
            }
        }
    }
    println!("{unknown:?}");
}
