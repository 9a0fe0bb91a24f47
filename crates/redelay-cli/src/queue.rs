//! A queue in numbers, as `ls`, `show` and `top` print it. Pure.

use std::time::Duration;

use redelay::blocking_queue::RateLimit;
use redelay::inspector::{Overview, Unknown};
use serde::Serialize;

use crate::escape;
use crate::failure::missing_permission;
use crate::human;
use crate::payload::{Codec, Reader, UNKNOWN, hex};
use crate::state::{State, is_silence, is_unanswered};
use crate::table::{Cell, Column};

/// A queue as a document. What is `null` is not known or does not exist; `unknown` says which is not known.
#[derive(Debug, Serialize)]
pub(crate) struct Queue {
    #[serde(flatten)]
    name: Name,
    server: String,
    state: State,
    pending: Option<u64>,
    list_len: Option<u64>,
    overdue: Option<u64>,
    overdue_for_ms: Option<f64>,
    next_due_in_ms: Option<f64>,
    ready: Option<u64>,
    in_flight: Option<u64>,
    waiting: Option<u64>,
    dead_letters: Option<u64>,
    quarantined: Option<u64>,
    unconfirmed_pops: Option<u64>,
    schedules: Option<u64>,
    is_paused: Option<bool>,
    max_in_flight: Option<u64>,
    max_pending: Option<u64>,
    rate_limit: Option<RateLimit>,
    transferring_processes: Option<u64>,
    receivers: Option<u64>,
    received_ago_ms: Option<f64>,
    /// Of a sample of its payloads; `null` if the server refuses to show them.
    codecs: Option<Vec<Codec>>,
    unknown: Vec<UnknownField>,
}

/// A field that is `null` because the server has not said it.
#[derive(Debug, Serialize)]
struct UnknownField {
    /// Its name; `server` for all of them.
    what: String,
    why: String,
    permission: Option<String>,
}

impl UnknownField {
    fn all(unknown: &Unknown) -> impl Iterator<Item = Self> {
        fields(&unknown.what).into_iter().map(move |what| Self {
            what: what.to_owned(),
            why: unknown.why.clone(),
            permission: unknown.permission.clone(),
        })
    }

    /// That of the codecs, of which the reader knows none.
    fn codecs(why: &str) -> Self {
        // As for the others, that of a command.
        let permission = missing_permission(why).filter(|right| right.starts_with('+'));
        Self { what: "codecs".to_owned(), why: why.to_owned(), permission }
    }
}

/// The fields of a document that need an answer of the server.
fn fields(answer: &str) -> Vec<&str> {
    match answer {
        "next_due_in" => vec!["overdue_for_ms", "next_due_in_ms"],
        "is_paused" => vec!["is_paused", "max_in_flight", "max_pending", "rate_limit", "received_ago_ms"],
        field => vec![field],
    }
}

/// The name of a queue in a document; `null` if that is about no queue.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Name {
    /// What is not UTF-8 is escaped.
    queue: Option<String>,
    /// The bytes, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_hex: Option<String>,
}

impl Name {
    pub(crate) fn new(name: &[u8]) -> Self {
        match std::str::from_utf8(name) {
            Ok(text) => Self { queue: Some(text.to_owned()), queue_hex: None },
            Err(_) => Self { queue: Some(escape::bytes(name)), queue_hex: Some(hex(name)) },
        }
    }
}

fn millis(span: Option<Duration>) -> Option<f64> {
    span.map(|span| span.as_secs_f64() * 1e3)
}

impl Queue {
    pub(crate) fn new(name: &[u8], queue: &Overview, reader: &Reader) -> Self {
        // A server that does not answer has shown no payload.
        let codecs = reader.codecs().filter(|_| !is_unanswered(queue));
        let refusal = reader.refusal.as_ref().filter(|_| codecs.is_none());
        let unknown = queue.unknown.iter().flat_map(UnknownField::all);
        let unknown = unknown.chain(refusal.map(|why| UnknownField::codecs(why))).collect();
        Self {
            name: Name::new(name),
            server: queue.server.clone(),
            state: State::of(queue),
            pending: queue.pending,
            list_len: queue.list_len,
            overdue: queue.overdue,
            overdue_for_ms: millis(queue.overdue_for),
            next_due_in_ms: millis(queue.next_due_in),
            ready: queue.ready,
            in_flight: queue.in_flight,
            waiting: queue.waiting,
            dead_letters: queue.dead_letters,
            quarantined: queue.quarantined,
            unconfirmed_pops: queue.unconfirmed_pops,
            schedules: queue.schedules,
            is_paused: queue.is_paused,
            max_in_flight: queue.max_in_flight,
            max_pending: queue.max_pending,
            rate_limit: queue.rate_limit,
            transferring_processes: queue.transferring_processes,
            receivers: queue.receivers,
            received_ago_ms: millis(queue.received_ago),
            codecs,
            unknown,
        }
    }
}

/// The columns of `ls`.
pub(crate) const COLUMNS: [Column; 10] = [
    Column::long("QUEUE"),
    Column::number("PENDING"),
    Column::text("NEXT DUE").goes(4),
    Column::text("OVERDUE").goes(7),
    Column::number("READY").goes(6),
    Column::number("IN FLIGHT").goes(2),
    Column::number("DEAD").goes(5),
    Column::text("MOVED BY").goes(3),
    Column::long("CODEC").goes(1),
    Column::text("STATE"),
];

/// The row of a queue in `ls`.
pub(crate) fn row(name: &[u8], queue: &Overview, reader: &Reader) -> Vec<Cell> {
    let state = State::of(queue);
    vec![
        escape::bytes(name).into(),
        number(queue.pending).into(),
        next_due(queue).into(),
        overdue(queue).into(),
        number(queue.ready).into(),
        number(queue.in_flight).into(),
        number(queue.dead_letters).into(),
        number(queue.transferring_processes).into(),
        reader.codec().into(),
        Cell { text: state.text().into(), style: state.style() },
    ]
}

fn number(number: Option<u64>) -> String {
    number.map_or(UNKNOWN.into(), human::count)
}

fn next_due(queue: &Overview) -> String {
    match queue.next_due_in {
        Some(left) => human::until(left),
        None if is_unknown(queue, "next_due_in") => UNKNOWN.into(),
        None => String::new(),
    }
}

fn is_unknown(queue: &Overview, what: &str) -> bool {
    queue.unknown.iter().any(|unknown| unknown.what == what)
}

/// How many are overdue, and for how long.
fn overdue(queue: &Overview) -> String {
    match (queue.overdue, queue.overdue_for) {
        (Some(count), Some(for_long)) if count > 0 => {
            format!("{}, {}", human::count(count), human::span(for_long))
        }
        (count, _) => number(count),
    }
}

/// The lines of `show`: what, and how much.
pub(crate) fn facts(queue: &Overview, reader: &Reader) -> Vec<Vec<Cell>> {
    let state = State::of(queue);
    let pending = match queue.next_due_in {
        Some(left) if !left.is_zero() => {
            format!("{}, the next one {}", number(queue.pending), human::until(left))
        }
        _ => number(queue.pending),
    };
    let pending = match (queue.pending, queue.list_len) {
        (Some(pending), Some(list)) if pending != list => {
            format!("{pending} in the timeout set, {list} in the ordered list")
        }
        _ => pending,
    };
    let receivers = match (queue.receivers, queue.received_ago) {
        (Some(count), Some(ago)) => {
            format!("{}, the last one active {} ago", human::count(count), human::span(ago))
        }
        (count, _) => number(count),
    };
    let facts: [(&str, Cell); 15] = [
        ("STATE", Cell { text: state.text().into(), style: state.style() }),
        ("PENDING", pending.into()),
        ("OVERDUE", overdue(queue).into()),
        ("READY", number(queue.ready).into()),
        ("IN FLIGHT", number(queue.in_flight).into()),
        ("WAITING", number(queue.waiting).into()),
        ("DEAD", number(queue.dead_letters).into()),
        ("QUARANTINED", number(queue.quarantined).into()),
        ("UNCONFIRMED POPS", number(queue.unconfirmed_pops).into()),
        ("SCHEDULES", number(queue.schedules).into()),
        ("PAUSED", queue.is_paused.map_or(UNKNOWN, |paused| if paused { "yes" } else { "no" }).into()),
        ("LIMITS", limits(queue).into()),
        ("MOVED BY", processes(queue.transferring_processes).into()),
        ("RECEIVERS", receivers.into()),
        ("CODEC", reader.codec().into()),
    ];
    facts.into_iter().map(|(what, cell)| vec![what.into(), cell]).collect()
}

fn processes(count: Option<u64>) -> String {
    count.map_or(UNKNOWN.into(), |count| human::counted(count, "process", "processes"))
}

fn limits(queue: &Overview) -> String {
    if is_unknown(queue, "is_paused") {
        return UNKNOWN.into();
    }
    let in_flight = queue.max_in_flight.map(|most| format!("at most {} in flight", human::count(most)));
    let pending = queue.max_pending.map(|most| format!("at most {} pending", human::count(most)));
    let rate = queue.rate_limit.as_ref().map(|rate| {
        format!("at most {} in {}, {} at once", rate.messages, human::span(rate.per), rate.burst)
    });
    let limits: Vec<String> = in_flight.into_iter().chain(rate).chain(pending).collect();
    if limits.is_empty() { "none".into() } else { limits.join("; ") }
}

/// What the server has refused to say of a queue.
pub(crate) fn refusals(queue: &Overview, reader: &Reader) -> Vec<String> {
    let codec = reader.refusal.iter().map(|why| with_permission("a codec is unknown", why, None));
    queue.unknown.iter().map(refusal).chain(codec).collect()
}

/// What the server has refused to say, and the permission that the user lacks.
pub(crate) fn refusal(unknown: &Unknown) -> String {
    let what = if is_silence(unknown) { "no answer".into() } else { format!("{} is unknown", unknown.what) };
    with_permission(&what, &unknown.why, unknown.permission.clone())
}

fn with_permission(what: &str, why: &str, permission: Option<String>) -> String {
    let right = permission.or_else(|| missing_permission(why));
    let right = right.map(|right| format!(" (the missing permission: {right})")).unwrap_or_default();
    format!("{what}: {why}{right}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::Mask;
    use crate::state::known;
    use crate::table;

    fn queue() -> Overview {
        known(|queue| {
            queue.pending = Some(1_203_154);
            queue.list_len = queue.pending;
            queue.next_due_in = Some(Duration::from_millis(20));
            queue.transferring_processes = Some(3);
        })
    }

    fn text(row: &[Cell]) -> Vec<&str> {
        row.iter().map(|cell| &*cell.text).collect()
    }

    #[test]
    fn the_rows_of_ls() {
        let reader = Reader::new(None, Mask::default(), [&b"\x03hell\xef"[..]]);
        let row_of =
            |queue: &Overview, reader| table::lines(&COLUMNS, &[row(b"orders", queue, reader)], None);
        let shown = row_of(&queue(), &reader);
        assert_eq!(
            shown[0],
            "QUEUE     PENDING  NEXT DUE  OVERDUE  READY  IN FLIGHT  DEAD  MOVED BY  CODEC  STATE"
        );
        assert!(
            shown[1]
                .starts_with("orders  1,203,154  in 20 ms  0            0          0     0  3         kryo5")
        );
        let mut late = queue();
        late.pending = Some(37);
        (late.overdue, late.overdue_for) = (Some(37), Some(Duration::from_secs(252)));
        late.next_due_in = Some(Duration::ZERO);
        let mut reader = Reader::default();
        reader.refusal = Some("NOPERM".into());
        let row = row(b"refunds", &late, &reader);
        assert_eq!(
            text(&row),
            ["refunds", "37", "now", "37, 4 m 12 s", "0", "0", "0", "3", "?", "stands still"]
        );
    }

    #[test]
    fn what_is_refused_is_a_question_mark() {
        let reader = Reader::default();
        let empty = row(b"q", &Overview::default(), &reader);
        assert_eq!(text(&empty), ["q", "?", "", "?", "?", "?", "?", "?", "", "unknown"]);
        assert!(facts(&Overview::default(), &reader).iter().any(|fact| fact[1].text == "?"));
    }

    #[test]
    fn what_is_unknown_is_named_by_its_field() {
        let mut reader = Reader::default();
        reader.refusal = Some("NOPERM User looks has no permissions to run the 'lrange' command".into());
        let json = serde_json::to_value(Queue::new(b"q", &Overview::default(), &reader)).unwrap();
        let [codecs] = &json["unknown"].as_array().unwrap()[..] else { panic!("{json}") };
        assert_eq!((&codecs["what"], &codecs["permission"]), (&"codecs".into(), &"+lrange".into()));
        assert!(json["codecs"].is_null(), "{json}");
        for answer in ["pending", "next_due_in", "is_paused"] {
            for field in fields(answer) {
                assert!(json.get(field).is_some_and(serde_json::Value::is_null), "{field} in {json}");
            }
        }
        assert_eq!(fields("server"), ["server"]);
    }

    #[test]
    fn names_are_text_and_bytes() {
        let json = |name: &[u8]| serde_json::to_string(&Name::new(name)).unwrap();
        assert_eq!(json("q\n{ü}".as_bytes()), r#"{"queue":"q\n{ü}"}"#);
        assert_eq!(json(b"\xff\x00"), r#"{"queue":"\\xff\\x00","queue_hex":"ff00"}"#);
        assert_eq!(serde_json::to_string(&Name::default()).unwrap(), r#"{"queue":null}"#);
    }

    #[test]
    fn the_facts_of_show() {
        let mut queue = queue();
        queue.list_len = Some(7);
        queue.max_in_flight = Some(10);
        queue.max_pending = Some(5_000);
        queue.rate_limit = Some(RateLimit::new(1_000, Duration::from_secs(3_600)));
        queue.received_ago = Some(Duration::from_secs(3));
        queue.receivers = Some(2);
        let facts = facts(&queue, &Reader::default());
        let fact = |what: &str| {
            let found = facts.iter().find(|fact| fact[0].text == what).unwrap();
            found[1].text.clone()
        };
        assert_eq!(fact("PENDING"), "1203154 in the timeout set, 7 in the ordered list");
        assert_eq!(
            fact("LIMITS"),
            "at most 10 in flight; at most 1000 in 1 h, 1 at once; at most 5,000 pending"
        );
        assert_eq!(fact("RECEIVERS"), "2, the last one active 3 s ago");
        assert_eq!(fact("MOVED BY"), "3 processes");
    }
}
