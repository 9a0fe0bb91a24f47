//! `docs/schemas.json`: every document of every command is as it says, and the table of `docs/operate.md` is
//! made from it.
//!
//! The file allows what later versions add. Here, a document may have nothing that the file does not have.
//!
//! The check knows the few words that the file uses. A program for all of JSON Schema would be a dependency
//! of the tests for nothing else.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use redelay_fixture::Server;
use serde_json::{Map, Value};

use super::{fill, redelay};

const BEGIN: &str =
    "<!-- made from schemas.json: REDELAY_BLESS=1 cargo test --package redelay-cli --test cli schemas -->\n";
const END: &str = "<!-- the end of what is made -->\n";

fn schemas() -> Value {
    serde_json::from_str(include_str!("../../../../docs/schemas.json")).expect("the schemas")
}

/// What a schema says of properties, those of the schemas that it includes among them.
fn properties(all: &Value, schema: &Value) -> Map<String, Value> {
    let included = schema["allOf"].as_array().into_iter().flatten();
    let mut properties: Map<_, _> =
        included.flat_map(|other| properties(all, resolved(all, other))).collect();
    properties.extend(schema["properties"].as_object().cloned().unwrap_or_default());
    properties
}

fn resolved<'a>(all: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
    name.map_or(schema, |name| all.pointer(name).unwrap_or_else(|| panic!("no schema {name}")))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Fails where a value is not as the schema says. Notes which properties it has, by their paths.
fn check(all: &Value, schema: &Value, value: &Value, at: &str, seen: &mut BTreeSet<String>) {
    let kinds = match &schema["type"] {
        Value::String(one) => vec![&**one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &str| kinds.contains(&kind) || kind == "integer" && kinds.contains(&"number");
    assert!(kinds.is_empty() || is(kind(value)), "{at} is of the type {}: {value}", kind(value));
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{at} is {value}");
    }
    if schema["format"] == "date-time"
        && let Some(text) = value.as_str()
    {
        assert!(text.len() == 24 && text.ends_with('Z') && text.contains('T'), "{at} is {value}");
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        check(all, &schema["items"], item, &format!("{at}[{n}]"), seen);
    }
    let known = properties(all, schema);
    let Some(object) = value.as_object().filter(|_| !known.is_empty()) else { return };
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(object.contains_key(name.as_str().expect("a name")), "{at} has no {name}: {value}");
    }
    for (name, value) in object {
        let Some(schema) = known.get(name) else { panic!("{at} has an unknown `{name}`: {value}") };
        seen.insert(name.clone());
        check(all, schema, value, &format!("{at}.{name}"), seen);
    }
}

/// The documents that a command prints are all as its schema says. Returns which properties they have.
#[track_caller]
fn fit(all: &Value, name: &str, documents: &[Value]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for document in documents {
        check(all, &all["$defs"][name], document, name, &mut seen);
        if name == "ls" {
            says_what_is_unknown(document);
        }
    }
    seen
}

/// The fields of a queue that are `null` for one reason only.
const KNOWN: [&str; 14] = [
    "pending",
    "list_len",
    "overdue",
    "ready",
    "in_flight",
    "waiting",
    "dead_letters",
    "quarantined",
    "unconfirmed_pops",
    "schedules",
    "is_paused",
    "transferring_processes",
    "receivers",
    "codecs",
];

/// `unknown` names fields that are `null`, and each that can be `null` for this reason only.
#[track_caller]
fn says_what_is_unknown(queue: &Value) {
    let unknown = queue["unknown"].as_array().expect("a list");
    let names: Vec<&str> = unknown.iter().map(|one| one["what"].as_str().expect("a name")).collect();
    let is_null = |name: &str| queue.get(name).is_some_and(Value::is_null);
    if names.contains(&"server") {
        assert!(KNOWN.into_iter().all(is_null), "{queue}");
        return;
    }
    for name in &names {
        assert!(is_null(name), "{name} in {queue}");
    }
    for name in KNOWN.into_iter().filter(|name| is_null(name)) {
        assert!(names.contains(&name), "{name} in {queue}");
    }
}

/// The same, and together they have all of its properties.
#[track_caller]
pub(super) fn are_as_documented(name: &str, documents: &[Value], absent: &[&str]) {
    let all = schemas();
    let schema = &all["$defs"][name];
    assert!(!documents.is_empty(), "{name}");
    let seen = fit(&all, name, documents);
    let known: BTreeSet<String> = properties(&all, schema).into_iter().map(|(name, _)| name).collect();
    let gone: Vec<_> = known.difference(&seen).filter(|name| !absent.contains(&&***name)).collect();
    assert!(gone.is_empty(), "{name}: {gone:?} is printed no more");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_document_is_as_its_schema_says() {
    let server = Server::start();
    fill(&server).await;
    server.cmd([&b"ZADD"[..], b"redisson_delay_queue_timeout:{\xff}", b"7", b"junk"]);
    server.cmd(["HSET", "redelay:control:{orders}", "most", "7"]);
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{orders}", "inf", "junk"]);
    let run = |words: &[&str]| redelay(&server, words.iter().chain(&["--json"])).json();
    are_as_documented("ls", &run(&["ls"]), &[]);
    are_as_documented("ls", &run(&["show", "orders"]), &["queue_hex"]);
    are_as_documented("due", &run(&["due", "orders"]), &["queue_hex"]);
    for place in ["ready", "in-flight", "waiting", "dead", "quarantine", "schedules", "pops"] {
        let documents = run(&["list", "orders", place, "--decoder", "cat; [ $$ = 0 ]"]);
        are_as_documented(place, &documents, &["queue_hex"]);
    }
    let pending = run(&["list", "orders", "--limit", "1000", "--decoder", "exit 1"]);
    are_as_documented("pending", &pending, &["queue_hex"]);
    let malformed = pending.last().unwrap();
    assert!(malformed["id"].is_null() && malformed["entry_hex"] == "6a756e6b", "{malformed}");
    let findings = super::at(&server.url(), ["doctor", "--json"]);
    let findings: Vec<Value> = findings.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    are_as_documented("doctor", &findings, &[]);
    let entry = "08106890aa3e21912506000000000000000368656c6cef";
    let mut inspected = run(&["inspect", entry, "--decoder", "cat", "--codec", "json"]);
    // ["com.acme.Order",{"id":["java.lang.Long",7]}]
    let of_own_mapper =
        "5b22636f6d2e61636d652e4f72646572222c7b226964223a5b226a6176612e6c616e672e4c6f6e67222c375d7d5d";
    inspected.extend(run(&["inspect", of_own_mapper]));
    are_as_documented("inspect", &inspected, &[]);
    are_as_documented("inspect", &run(&["inspect", "ff"]), &[]);
}

/// A validator with this file accepts the documents of a later version that have more fields.
#[test]
fn the_schemas_allow_other_fields() {
    let file = include_str!("../../../../docs/schemas.json");
    for word in ["unevaluatedProperties", "additionalProperties"] {
        assert!(!file.contains(word), "{word}");
    }
}

/// What is unknown, masked or not applicable is `null`. Events have only what belongs to their `what`.
#[test]
fn only_the_bytes_of_a_name_may_be_absent() {
    let all = schemas();
    let commands = all["anyOf"].as_array().expect("schemas").iter().map(|schema| resolved(&all, schema));
    for command in commands.filter(|command| command["title"] != "`watch`" && command["title"] != "`pump`") {
        let required: BTreeSet<&str> =
            command["required"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
        let known = properties(&all, command);
        let optional: Vec<_> = known.keys().filter(|name| !required.contains(name.as_str())).collect();
        assert!(optional.iter().all(|name| *name == "queue_hex"), "{}: {optional:?}", command["title"]);
    }
}

/// Whatever goes wrong, nothing else is on stdout.
#[test]
fn documents_of_what_is_odd_wrong_or_unknown_are_as_their_schemas_say() {
    let server = Server::start();
    let names: [&[u8]; 5] = [b"a\nb\x1b[2J", b"\xff", b"{x} y", b"of wrong types", b"-n"];
    let key = |prefix: &str, name: &[u8]| {
        let tag = if name.contains(&b'{') { name.to_vec() } else { [b"{", name, b"}"].concat() };
        [prefix.as_bytes(), &tag].concat()
    };
    for name in names {
        server.cmd([&b"ZADD"[..], &key("redisson_delay_queue_timeout:", name), b"7", b"junk"]);
        server.cmd([&b"RPUSH"[..], &key("redisson_delay_queue:", name), b"other junk"]);
        server.cmd([&b"RPUSH"[..], name, b"\xff\0"]);
    }
    for prefix in ["control", "dead", "schedules", "popped", "quarantine"] {
        server.cmd([&b"SET"[..], &key(&format!("redelay:{prefix}:"), names[3]), b"1"]);
    }
    let all = schemas();
    let rights = super::rights::LOOKING;
    for change in ["", "-zcard", "-hmget -lrange", "-time", "-info", "-type", "-scan", "-pubsub", "-zrange"] {
        let words = format!("ACL SETUSER looks reset on >secret ~* {rights} {change}");
        server.cmd(words.split_whitespace());
        let url = server.url().replace("redis://", "redis://looks:secret@");
        let fits = |schema: &str, words: &[&OsStr]| {
            let ran = super::at(&url, words.iter().copied());
            let lines =
                ran.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")));
            fit(&all, schema, &lines.collect::<Vec<Value>>());
            let codes: &[i32] = if change.is_empty() { &[0, 1] } else { &[0, 1, 4] };
            assert!(codes.contains(&ran.code), "{change} {words:?}: {}{}", ran.out, ran.err);
            let says_why = ran.code == 0 || schema == "doctor" || ran.err.starts_with("redelay: ");
            assert!(says_why, "{change} {words:?}: {}{}", ran.out, ran.err);
        };
        fits("ls", &["ls", "--json"].map(OsStr::new));
        fits("doctor", &["doctor", "--json"].map(OsStr::new));
        for name in names.map(OsStr::from_bytes) {
            let word = OsStr::new;
            fits("ls", &[word("show"), word("--json"), word("--"), name]);
            fits("due", &[word("due"), word("--json"), word("--"), name]);
            for place in ["pending", "ready", "in-flight", "dead", "quarantine", "schedules", "pops"] {
                fits(place, &[word("list"), word("--json"), word("--"), name, word(place)]);
            }
        }
    }
}

/// The table of `docs/operate.md`. Rows and fields are in the order of lists: objects have none.
fn table() -> String {
    let all = schemas();
    let mut table = "| documents of | fields |\n|---|---|\n".to_owned();
    let code =
        |value: &Value| value.as_str().map_or_else(|| format!("`{value}`"), |text| format!("`{text}`"));
    let title = |schema: &Value| schema["title"].as_str().expect("a title").to_owned();
    let shared = ["name", "payload"].map(|name| &all["$defs"][name]);
    let commands = all["anyOf"].as_array().expect("schemas").iter().map(|schema| resolved(&all, schema));
    for schema in shared.into_iter().chain(commands) {
        let included = schema["allOf"].as_array().into_iter().flatten();
        let mut cell: Vec<String> =
            included.map(|other| format!("*{}*", title(resolved(&all, other)))).collect();
        let own = schema["properties"].as_object().expect("properties");
        let place = |name: &String| {
            let required = schema["required"].as_array();
            required
                .and_then(|required| required.iter().position(|other| other == name))
                .unwrap_or(usize::MAX)
        };
        let mut names: Vec<&String> = own.keys().collect();
        names.sort_by_key(|name| (place(name), *name));
        for name in names {
            let field = &own[name];
            let of = [field, &field["items"]].iter().find_map(|inner| inner["required"].as_array());
            let [of, values] = [of, field["enum"].as_array()]
                .map(|list| list.map(|list| list.iter().map(code).collect::<Vec<_>>().join(", ")));
            let description = field["description"].as_str().map(str::to_owned);
            let about: Vec<String> = values.into_iter().chain(description).chain(of).collect();
            let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(": ")) };
            cell.push(format!("`{name}`{about}"));
        }
        table.push_str(&format!("| {} | {} |\n", title(schema), cell.join(", ")));
    }
    table
}

#[test]
fn the_table_of_the_documentation_is_made_from_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (shown, after) = rest.split_once(END).expect("where the table ends");
    let table = table();
    if std::env::var_os("REDELAY_BLESS").is_some() {
        std::fs::write(path, [before, BEGIN, &table, END, after].concat()).expect("the page");
    } else {
        assert_eq!(shown, table, "run the test with REDELAY_BLESS=1");
    }
}
