//! Structs that do not fit their classes.

use std::collections::HashMap;

use redisson_codec::java;
use serde::Deserialize;

use super::*;

#[track_caller]
fn differences<T: DeserializeOwned + 'static>(text: &str) -> Vec<String> {
    match check::<T>(&text.parse().unwrap()) {
        Ok(()) => Vec::new(),
        Err(differences) => differences.lines().to_vec(),
    }
}

/// Two `Long` fields whose values would be swapped, and an `int` that is missing.
#[test]
fn what_the_payload_cannot_show() {
    #[derive(Deserialize)]
    #[serde(rename = "a.Stock", rename_all = "camelCase")]
    #[allow(dead_code)]
    struct Stock {
        sku: Option<i64>,
        ware_house: Option<i64>,
        text: Option<String>,
    }
    let found = differences::<Stock>(
        "class a.Stock { Long sku; Long activity; int count; String text; transient int x; }",
    );
    assert_eq!(
        found,
        [
            "a.Stock.activity: missing here: `Long` in Java",
            "a.Stock.count: missing here: `int` in Java",
            "a.Stock.wareHouse: no field of the class",
        ]
    );
    assert_eq!(
        differences::<Stock>("class a.Stock { Long sku, warehouse; String text; }"),
        [
            "a.Stock.wareHouse: no field of the class; is it `warehouse`?",
            "a.Stock.warehouse: missing here: `Long` in Java",
        ]
    );
    assert_eq!(
        differences::<Stock>("class a.Stok { Long sku; }"),
        ["a.Stock: the class is not described; is it `a.Stok`?"]
    );
    let fits =
        "class a.Base<T> { T sku; } class a.Stock extends a.Base<Long> { Long wareHouse; String text; }";
    assert!(differences::<Stock>(fits).is_empty());
    let transient = differences::<Stock>("class a.Stock { Long sku, wareHouse; transient String text; }");
    assert_eq!(transient, ["a.Stock.text: transient in Java: it is in no payload of Kryo"]);
}

/// What `rest(…)` names is no field of the class.
#[test]
fn a_struct_that_keeps_unknown_properties() {
    #[derive(Deserialize)]
    #[serde(rename = "rest(more) a.Stock")]
    #[allow(dead_code)]
    struct Stock {
        sku: Option<i64>,
        more: HashMap<String, java::Value>,
    }
    assert!(differences::<Stock>("class a.Stock { Long sku; }").is_empty());
}

/// The class has one name of each field and constant, and Jackson reads others.
#[test]
fn a_struct_with_two_names_of_one_field() {
    #[derive(Deserialize)]
    #[serde(rename = "a.Stock")]
    #[allow(dead_code)]
    struct Stock {
        #[serde(alias = "number", alias = "article")]
        sku: Option<i64>,
        state: Option<State>,
    }
    #[derive(Deserialize)]
    #[serde(rename = "a.State", rename_all = "UPPERCASE")]
    #[allow(dead_code)]
    enum State {
        #[serde(alias = "THERE")]
        In,
        Out,
    }
    let enums = "enum a.State { IN, OUT; }";
    assert!(
        differences::<Stock>(&format!("class a.Stock {{ Long sku; a.State state; }} {enums}")).is_empty()
    );
    let found = differences::<Stock>(&format!("class a.Stock {{ Long size; a.State state; }} {enums}"));
    assert!(found.contains(&"a.Stock.size: missing here: `Long` in Java".to_owned()), "{found:?}");
    assert!(found.iter().any(|line| line.starts_with("a.Stock.sku: no field of the class")), "{found:?}");
}

#[derive(Deserialize)]
#[serde(rename = "a.Way", rename_all = "UPPERCASE")]
#[allow(dead_code)]
enum Way {
    Smtp,
    Pigeon,
}

#[derive(Deserialize)]
#[serde(rename = "a.Line")]
#[allow(dead_code)]
struct Line {
    sku: Option<String>,
}

/// One field of each type, against a class with another type.
#[test]
fn types_that_differ() {
    macro_rules! fields {
        ($($kind:ty, $(#[$with:meta])* $java:literal, $wrong:literal => $why:literal;)*) => {$({
            #[derive(Deserialize)]
            #[serde(rename = "a.Order")]
            #[allow(dead_code)]
            struct Order {
                $(#[$with])*
                field: $kind,
            }
            let text = |java: &str| {
                format!("enum a.Way {{ SMTP, PIGEON }} class a.Line {{ String sku; }} class a.Order {{ {java} field; }}")
            };
            assert_eq!(differences::<Order>(&text($java)), [""; 0], $java);
            let found = differences::<Order>(&text($wrong));
            assert_eq!(found, [concat!("a.Order.field: ", $why)], "{} and {}", stringify!($kind), $wrong);
        })*};
    }
    fields! {
        i32, "int", "long" => "`long` in Java, `int` here";
        i32, "int", "Integer" => "`Integer` in Java, `int` here: it can be null, so it is an `Option`";
        Option<i64>, "Long", "long" => "`long` in Java, `Long` here: a field that is never null has no `Option`";
        Option<i64>, "Long", "Integer" => "`Integer` in Java, `Long` here";
        Option<String>, "String", "Object" =>
            "`Object` in Java, so the payload has the class: use `java::object`, an enum with data, or `java::Value`";
        java::Value, "Object", "String" => "`String` in Java, `Object` here";
        Option<Vec<i64>>, "List<Long>", "List<Integer>" => "in the elements, `Integer` in Java, `Long` here";
        Option<Vec<i64>>, "Collection<Long>", "Set<Long>" => "`Set` in Java, `ArrayList` here";
        Option<Vec<i64>>, "ArrayList<Long>", "List" => "`List` without type arguments in Java: use `java::object`";
        Option<Vec<i64>>, #[serde(with = "java::array")] "long[]", "Long[]" =>
            "in the array, `Long` in Java, `long` here";
        Option<Vec<u8>>, "byte[]", "List<Byte>" => "`List<Byte>` in Java, `[B` here";
        Option<Vec<String>>, #[serde(with = "java::hash_set")] "Set<String>", "List<String>" =>
            "`List` in Java, `HashSet` here";
        Option<HashMap<String, Line>>, "Map<String, a.Line>", "Map<Long, a.Line>" =>
            "in the elements, `Long` in Java, `String` here";
        Option<java::Date>, "Date", "Instant" => "`Instant` in Java, `Date` here";
        Option<String>, #[serde(with = "java::year")] "Year", "String" => "`String` in Java, `Year` here";
        Option<String>, #[serde(with = "java::optional")] "Optional<String>", "Optional<Long>" =>
            "in the `Optional`, `Long` in Java, `String` here";
        Option<java::Uuid>, #[serde(with = "java::object")] "Object", "UUID" =>
            "final in Java, so without `java::object`";
        Option<String>, #[serde(with = "java::object")] "Object", "String" =>
            "final in Java, so without `java::object`";
        Option<java::object::Of<java::year::Of<String>>>, "Object", "Year" =>
            "final in Java, so without `java::object`";
        Option<java::object::Of<java::optional::Of<Option<String>>>>, "Object", "Optional<String>" =>
            "final in Java, so without `java::object`";
        Option<Vec<java::object::Of<java::Uuid>>>, "List<Object>", "List<UUID>" =>
            "in the elements, final in Java, so without `java::object`";
        Option<Way>, "a.Way", "String" => "`String` in Java, `a.Way` here";
        Option<Line>, "a.Line", "a.Way" => "`a.Way` in Java, `a.Line` here";
    }
}

#[test]
fn words_constants_and_bodies() {
    assert!(differences::<Way>("enum a.Way { SMTP, PIGEON }").is_empty());
    assert_eq!(
        differences::<Way>("enum a.Way { PIGEON, SMTP }"),
        ["a.Way: the constants in Java's order are PIGEON, SMTP"]
    );
    assert_eq!(
        differences::<Way>("enum a.Way { SMTP, PIGEONS, FAX }"),
        [
            "a.Way.FAX: missing here",
            "a.Way.PIGEON: no constant of the enum; is it `PIGEONS`?",
            "a.Way.PIGEONS: missing here"
        ]
    );
    assert_eq!(
        differences::<Way>("enum a.Way { SMTP, PIGEON {} }"),
        ["a.Way: the constants with bodies are `abstract(PIGEON) a.Way`"]
    );
    assert_eq!(
        differences::<Line>("final class a.Line { String sku; }"),
        ["a.Line: a `final` class in Java, a class without `final` here"]
    );
    assert_eq!(
        differences::<Line>("record a.Line { String sku; }"),
        ["a.Line: a `record` in Java, a class without `final` here"]
    );
}

/// A class below the declared one, of which there may be objects.
#[test]
fn variants_that_are_missing() {
    #[derive(Deserialize)]
    #[serde(rename = "a.Mail")]
    #[allow(dead_code)]
    struct Mail {
        to: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(rename = "a.Middle")]
    #[allow(dead_code)]
    enum Middle {
        Mail(Mail),
    }
    #[derive(Deserialize)]
    #[serde(rename = "a.Task")]
    #[allow(dead_code)]
    enum Task {
        Mail(Mail),
        Way(Way),
    }
    #[derive(Deserialize)]
    #[serde(rename = "a.Task")]
    #[allow(dead_code)]
    enum Nested {
        Middle(Middle),
        Way(Way),
    }
    #[derive(Deserialize)]
    #[serde(rename = "a.Task")]
    #[allow(dead_code)]
    enum Open {
        Mail(Mail),
        Other(java::Value),
    }
    let with = |more: &str| {
        format!(
            "interface a.Task {{ }} abstract class a.Middle implements a.Task {{ String to; }}
             class a.Mail extends a.Middle {{ }} enum a.Way implements a.Task {{ SMTP, PIGEON }} {more}"
        )
    };
    let fax = with("class a.Fax extends a.Middle { }");
    let missing = ["a.Fax: no variant of the enum for `a.Task` takes it"];
    assert!(differences::<Task>(&with("")).is_empty());
    assert_eq!(differences::<Task>(&fax), missing);
    assert_eq!(differences::<Nested>(&fax), ["a.Fax: no variant of the enum for `a.Middle` takes it"]);
    assert!(differences::<Nested>(&with("class a.Other { }")).is_empty());
    assert!(differences::<Open>(&fax).is_empty());
}

/// What is copied from the source of a class.
#[test]
fn texts_with_annotations_and_comments() {
    let plain = "record a.Line { String sku; List<String> notes; } class a.Order { long id; a.Line line; }";
    let source = r#"
        /** A line of an {@link Order}. */
        @Value @JsonIgnoreProperties(ignoreUnknown = true, value = {"a)", "b\"", "c\\"}) // and so on
        public record a.Line(@NotNull @Size(max = ')') String sku, List<@Email(regexp = "(") String> notes) {}
        /* No more. */ @lombok.Data class a.Order {
            @Id private final long id;
            @JsonProperty("l") @ManyToOne(fetch = (LAZY)) a.Line line; /* the end
        */ }"#;
    let printed = |text: &str| text.parse::<Classes>().unwrap().to_string();
    assert_eq!(printed(source), printed(plain));
    for (text, why) in [
        ("class a.B { @( int a; }", "expected the name of an annotation at line 1, offset 13, found `(`"),
        ("class a.B { @A(\"x) int a; }", "expected `)` at line 1, offset 27, found the end"),
        ("class a.B { int a = 5; }", "methods are left out, at line 1, offset 18, found `=`"),
        ("class a.B { int a() { } }", "methods are left out, at line 1, offset 17, found `(`"),
        ("record a.B(int a b) { }", "expected `,` or `)` at line 1, offset 17, found `b`"),
        ("class a.B(int a) { }", "expected `{` at line 1, offset 9, found `(`"),
        ("class a.B { } /* and", ""),
    ] {
        let error = text.parse::<Classes>().map_or_else(|error| error.to_string(), |_| String::new());
        assert!(error.ends_with(why) && error.is_empty() == why.is_empty(), "{text}: {error}");
    }
}

/// Those with which the other tests read and write payloads.
#[test]
fn the_types_of_the_shapes_fit_their_classes() {
    use redelay_compat_values::shop::*;
    let classes = classes();
    macro_rules! fit {
        ($($kind:ty),*) => {$(check::<$kind>(&classes).unwrap();)*};
    }
    fit!(
        OrderTimeoutMessage,
        LinkStats,
        SkuStockKey,
        PayTimeout,
        RefundTask,
        DelayMessage<String>,
        DelayJob,
        CancelMessage,
        TaskEnvelope,
        Workflow,
        ObjEnvelope,
        OrderExpired,
        OrderExpiredAt,
        Cart,
        DelayedOrder,
        OrderEntity,
        PayQuery,
        Inner,
        NonStatic
    );
}
