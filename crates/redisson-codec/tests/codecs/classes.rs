//! Several classes in one place: enums with data. The Java classes are in `Tasks.java`, and what Redisson
//! writes of them is in the vectors.

use codec::java::{self, Value};
use codec::{CborJackson, JsonJackson, Kryo5, MsgPackJackson};
use proptest::test_runner::TestCaseResult;
use redelay_compat_values::annotated::*;
use redelay_compat_values::class_trees::{self, batches, jobs, moves, payments, shapes};
use redelay_compat_values::tasks::*;
use redelay_compat_values::zoo::Entries;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::objects::same;
use super::places::is;
use super::*;

macro_rules! of_redisson {
    ($test:ident $codec:ident $file:literal) => {
        #[test]
        fn $test() {
            fn as_a<T: Debug + Serialize + DeserializeOwned + 'static>(row: &Row) -> Option<String> {
                is::<T>(&$codec, row)
            }

            let mut wrong = Vec::new();
            for row in rows($file) {
                let kind = row.name.split_once('.').map_or(&row.name[..], |(kind, _)| kind);
                wrong.extend(match (kind, &row.name[..]) {
                    ("task", _) => as_a::<Task>(&row),
                    ("job", _) => as_a::<Job>(&row),
                    ("batch", _) => as_a::<Batch>(&row),
                    (_, "tasks.map") => as_a::<Entries<String, Task>>(&row),
                    (_, "tasks.array" | "tasks.array.none") => {
                        as_a::<java::array::Of<Vec<Option<Task>>>>(&row)
                    }
                    ("tasks", _) => as_a::<Vec<Option<Task>>>(&row),
                    ("payment", _) => as_a::<Payment>(&row),
                    (_, "payments.list") => as_a::<Vec<Payment>>(&row),
                    ("payments", _) => as_a::<Payments>(&row),
                    ("shape", _) => as_a::<Shape>(&row),
                    ("shapes", _) => as_a::<Shapes>(&row),
                    ("move", _) => as_a::<Move>(&row),
                    ("moves", _) => as_a::<Moves>(&row),
                    ("ordered", _) => as_a::<Ordered>(&row),
                    ("created", _) => as_a::<Created>(&row),
                    ("always", _) => as_a::<Always>(&row),
                    ("sometimes", _) => as_a::<Sometimes>(&row),
                    ("extra", _) => as_a::<Extra>(&row),
                    _ => panic!("{} is of no type", row.name),
                });
            }
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    };
}

of_redisson! { kryo_of_redisson Kryo5 "kryo5-classes" }
of_redisson! { json_of_redisson JsonJackson "json-jackson-classes" }
of_redisson! { cbor_of_redisson CborJackson "cbor-jackson-classes" }
of_redisson! { msgpack_of_redisson MsgPackJackson "msgpack-jackson-classes" }

/// A payload of another class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Fax")]
struct Fax {
    number: i64,
    pages: Vec<String>,
}

fn fax() -> Fax {
    Fax { number: 7, pages: vec!["a".into()] }
}

/// As `Task`, with a variant for all other classes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Task")]
enum AnyTask {
    Sms(Sms),
    Other(Value),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Job")]
struct Holder<T> {
    tasks: Vec<T>,
}

macro_rules! unknown_classes {
    ($test:ident $codec:ident) => {
        #[test]
        fn $test() {
            let payload = $codec.encode(&fax()).unwrap();
            let why = error(Codec::<Task>::decode(&$codec, &payload));
            let expected = "expected the class `com.acme.Tasks$Email`, `com.acme.Tasks$Sms` or `com.acme.Tasks$Slow`, found `com.acme.Fax`";
            assert!(why.contains(expected) && why.contains(" offset "), "{why}");
            let other: AnyTask = $codec.decode(&payload).unwrap();
            assert!(matches!(&other, AnyTask::Other(value) if value.class() == "com.acme.Fax"), "{other:?}");
            assert_eq!($codec.encode(&other).unwrap(), payload);
            let sms = Sms { id: None, template: Some(1), cost: None };
            let payload = $codec.encode(&Task::Sms(sms.clone())).unwrap();
            assert_eq!(Codec::<AnyTask>::decode(&$codec, &payload).unwrap(), AnyTask::Sms(sms.clone()));
            let payload = $codec.encode(&vec![1i64]).unwrap();
            let other: AnyTask = $codec.decode(&payload).unwrap();
            assert_eq!(other, AnyTask::Other(Value::list([Value::Long(1)])));
            assert_eq!($codec.encode(&other).unwrap(), payload);
        }
    };
}

unknown_classes! { unknown_classes_in_kryo Kryo5 }
unknown_classes! { unknown_classes_in_json JsonJackson }
unknown_classes! { unknown_classes_in_cbor CborJackson }
unknown_classes! { unknown_classes_in_msgpack MsgPackJackson }

#[test]
fn unknown_classes_among_others() {
    let payload = JsonJackson.encode(&Holder { tasks: vec![fax(), fax()] }).unwrap();
    let holder: Holder<AnyTask> = JsonJackson.decode(&payload).unwrap();
    assert_eq!(JsonJackson.encode(&holder).unwrap(), payload);
    // Nothing says where the object ends.
    let payload = Kryo5.encode(&Holder { tasks: vec![fax()] }).unwrap();
    let why = error(Codec::<Holder<AnyTask>>::decode(&Kryo5, &payload));
    assert!(why.ends_with("expected the class `com.acme.Tasks$Sms`, found `com.acme.Fax`, of which it is not known where it ends, before offset 56"), "{why}");
    let opaque: AnyTask = Kryo5.decode(&Kryo5.encode(&fax()).unwrap()).unwrap();
    let why = error(Kryo5.encode(&Holder { tasks: vec![opaque] }));
    assert!(
        why.ends_with("an object of the unknown class `com.acme.Fax` can only be a whole payload"),
        "{why}"
    );
    let opaque: AnyTask = Kryo5.decode(&Kryo5.encode(&fax()).unwrap()).unwrap();
    let why = error(JsonJackson.encode(&opaque));
    assert_eq!(why, "Redisson's Jackson codecs write no com.acme.Fax");
}

#[test]
fn what_names_no_class() {
    let why = |payload: &str| error(Codec::<Job>::decode(&JsonJackson, payload.as_bytes()));
    for (payload, found) in [
        (r#"{"task":{}}"#, "found an object that does not name its class at offset 8"),
        (r#"{"task":7}"#, "found an integer that does not name its class at offset 8"),
        (r#"{"tasks":[["a",{}]]}"#, "found a list that does not name its class at offset 10"),
        (r#"{"task":{"@class":"java.lang.Long"}}"#, "found `java.lang.Long` at offset 18"),
    ] {
        assert!(why(payload).ends_with(found), "{}", why(payload));
    }
    let why = |payload: &str| error(Codec::<Payment>::decode(&JsonJackson, payload.as_bytes()));
    for (payload, found) in [
        (r#"{"type":"cheque"}"#, "expected the class `card` or `cash`, found `cheque` at offset 8"),
        (
            r#"{"kind":"card"}"#,
            "expected the class `card` or `cash`, found an object that does not name its class at offset 0",
        ),
        (
            r#"{"@class":"com.acme.Cheque"}"#,
            "expected the class `card` or `cash`, found `com.acme.Cheque` at offset 10",
        ),
    ] {
        assert!(why(payload).ends_with(found), "{}", why(payload));
    }
    // A record that is the whole payload names none.
    let wait: Step = JsonJackson.decode(br#"{"millis":5}"#).unwrap();
    assert_eq!(wait, Step::Wait(Wait { millis: 5, why: None }));
}

#[test]
fn enums_that_are_no_classes() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Twice {
        One(Go),
        Other(Go),
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Itself {
        One(Go),
        Other(Box<Itself>),
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Fields {
        One { speed: i32 },
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Nothing {
        One(Option<Go>),
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "tag(type) lab.Texts")]
    enum Texts {
        One(String),
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "final lab.Last")]
    enum Last {
        One(Go),
    }
    fn refused<T: Debug + Serialize + DeserializeOwned + 'static>(why: &str) {
        for error in [error(Codec::<T>::decode(&Kryo5, b"")), error(Codec::<T>::decode(&JsonJackson, b""))] {
            assert!(error.ends_with(why), "{error}");
        }
    }
    refused::<Twice>("two variants are of the class `com.acme.Tasks$Go`");
    refused::<Itself>("an enum that is a variant of itself");
    refused::<Fields>("a variant with fields has no class: give it a struct that has the name of the class");
    refused::<Nothing>("a variant is an object, and no `Option`");
    refused::<Texts>("`tag(…)` and `wrapper-…` go with an enum of structs, and a `Value` for all others");
    refused::<Last>("an enum with data is a class that others extend");
}

proptest! {
    #![proptest_config(class_trees::config(300))]

    #[test]
    fn trees_of_classes(job in jobs(), batch in batches()) {
        in_each_codec(&job)?;
        in_each_codec(&batch)?;
        in_each_codec(&job.tasks)?;
    }

    #[test]
    fn trees_of_classes_with_names(payments in payments(), shapes in shapes(), moves in moves()) {
        in_each_codec(&payments)?;
        in_each_codec(&shapes)?;
        in_each_codec(&moves)?;
    }
}

fn in_each_codec<T: Debug + PartialEq + Serialize + DeserializeOwned + 'static>(value: &T) -> TestCaseResult {
    same(&Kryo5, value)?;
    same(&JsonJackson, value)?;
    same(&CborJackson, value)?;
    same(&MsgPackJackson, value)
}

#[test]
fn the_wrong_word_for_an_enum() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Tasks$Retry", rename_all = "UPPERCASE")]
    enum NoBodies {
        Once,
        Often,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "abstract com.acme.Tasks$Retry", rename_all = "UPPERCASE")]
    enum AllBodies {
        Once,
        Often,
    }
    let why = error(Codec::<NoBodies>::decode(&Kryo5, &Kryo5.encode(&Retry::Often).unwrap()));
    let expected = "a constant of `com.acme.Tasks$Retry` has the class `com.acme.Tasks$Retry$1` before offset 24, which no \
                    variant has: `abstract(…)` names the constants that have bodies";
    assert!(why.ends_with(expected), "{why}");
    let why = error(Codec::<AllBodies>::decode(&Kryo5, &Kryo5.encode(&Retry::Once).unwrap()));
    assert!(why.contains("has the class `com.acme.Tasks$Retry` before offset 22"), "{why}");
}
