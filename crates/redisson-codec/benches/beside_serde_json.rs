//! The Java codecs beside `serde_json`, in turns: `make bench-codecs`. An argument is a part of the names of
//! the rows to measure.
//!
//! A ratio is that of two times in one round, and what is printed is the median over all rounds. So what else
//! the machine does changes little.

use std::fmt::Debug;
use std::hint::black_box;
use std::time::{Duration, Instant};

use redisson_codec::classes::Classes;
use redisson_codec::java::{BigDecimal, Date, Value};
use redisson_codec::{CborJackson, Codec, CodecError, JsonJackson, Kryo5, MsgPackJackson, ZStd};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 400;

/// Of one measurement in a round.
const SLICE: Duration = Duration::from_micros(100);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.Reminder", rename_all = "camelCase")]
struct Reminder {
    user_id: i64,
    order_id: Option<i64>,
    channel: String,
    text: String,
    attempt: i32,
    urgent: bool,
    note: Option<String>,
}

/// That of `benches/beside`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.Order", rename_all = "camelCase")]
struct Order {
    order_id: i64,
    customer: String,
    currency: String,
    total: f64,
    paid: bool,
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.Order$Line")]
struct Line {
    item: String,
    quantity: i32,
    price: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.Invoice", rename_all = "camelCase")]
struct Invoice {
    id: i64,
    customer: String,
    created: Date,
    due: Date,
    total: BigDecimal,
    positions: Vec<Position>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.Position")]
struct Position {
    sku: String,
    count: i32,
    price: BigDecimal,
}

/// A list of tasks of several classes, and the same list where one class is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.Batch")]
struct Batch<T> {
    id: i64,
    tasks: Vec<T>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.Task")]
enum Task {
    Email(Email),
    Sms(Sms),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.EmailTask")]
struct Email {
    to: String,
    subject: String,
    attempt: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.SmsTask")]
struct Sms {
    phone: String,
    text: String,
    attempt: i32,
}

const CLASSES: &str = "
    class redelay.bench.Reminder {
        long userId; Long orderId; String channel; String text; int attempt; boolean urgent; String note;
    }
    class redelay.bench.Order {
        long orderId; String customer; String currency; double total; boolean paid; List<redelay.bench.Order$Line> lines;
    }
    class redelay.bench.Order$Line { String item; int quantity; double price; }
    class redelay.bench.Invoice {
        long id; String customer; java.util.Date created; java.util.Date due; java.math.BigDecimal total;
        List<redelay.bench.Position> positions;
    }
    class redelay.bench.Position { String sku; int count; java.math.BigDecimal price; }
    class redelay.bench.Batch { long id; List<redelay.bench.Task> tasks; }
    interface redelay.bench.Task {}
    class redelay.bench.EmailTask implements redelay.bench.Task { String to; String subject; int attempt; }
    class redelay.bench.SmsTask implements redelay.bench.Task { String phone; String text; int attempt; }
";

/// The most that a row may take, as many times as `serde_json`: to encode, and to decode.
type Goal = (f64, f64);

const KRYO: Goal = (1.0, 1.0);
const JSON: Goal = (1.3, 1.8);
const CBOR: Goal = (1.3, 2.5);
const MSGPACK: Goal = (1.1, 2.0);
const VALUE: Goal = (2.5, 2.5);
const ZSTD: Goal = (5.0, 5.0);
/// What one of several classes may take, as many times as a declared one.
const POLYMORPHIC: Goal = (1.3, 1.3);

/// One direction of a codec, and how often it runs in a slice.
struct Job<'a> {
    run: Box<dyn FnMut() + 'a>,
    count: u32,
    /// Nanoseconds of one call, in each round.
    nanos: Vec<f64>,
}

impl<'a> Job<'a> {
    fn new<R>(mut call: impl FnMut() -> R + 'a) -> Self {
        let run = Box::new(move || drop(black_box(call())));
        Self { run, count: 1, nanos: Vec::new() }
    }

    fn time(&mut self) -> Duration {
        let begun = Instant::now();
        for _ in 0..self.count {
            (self.run)();
        }
        begun.elapsed()
    }

    /// Finds the count that takes as long as a slice. A single time may be that of another program.
    fn prepare(&mut self) {
        while (0..5).any(|_| self.time() < SLICE) {
            self.count *= 2;
        }
    }

    fn measure(&mut self) {
        let nanos = self.time().as_nanos() as f64 / f64::from(self.count);
        self.nanos.push(nanos);
    }
}

/// A codec with a payload.
struct Row<'a> {
    name: String,
    /// The row to compare with.
    beside: usize,
    goal: Option<Goal>,
    encode: Job<'a>,
    decode: Job<'a>,
}

#[derive(Default)]
struct Rows<'a> {
    rows: Vec<Row<'a>>,
}

impl<'a> Rows<'a> {
    fn add<T: 'a, E: Debug + 'a>(
        &mut self,
        name: String,
        beside: Option<usize>,
        goal: Option<Goal>,
        value: T,
        encode: impl Fn(&T) -> Result<Vec<u8>, E> + 'a,
        decode: impl Fn(&[u8]) -> Result<T, E> + 'a,
    ) -> usize {
        let payload = encode(&value).expect("a payload");
        let encode = Job::new(move || encode(black_box(&value)).expect("a payload"));
        let decode = Job::new(move || decode(black_box(&payload)).expect("a value"));
        let beside = beside.unwrap_or(self.rows.len());
        self.rows.push(Row { name, beside, goal, encode, decode });
        self.rows.len() - 1
    }

    fn codec<T: 'a>(
        &mut self,
        name: String,
        beside: usize,
        goal: Option<Goal>,
        value: T,
        codec: impl Codec<T> + Clone + 'a,
    ) -> usize {
        let other = codec.clone();
        let (encode, decode) =
            (move |value: &T| codec.encode(value), move |bytes: &[u8]| other.decode(bytes));
        self.add::<T, CodecError>(name, Some(beside), goal, value, encode, decode)
    }

    fn serde_json<T: Serialize + DeserializeOwned + 'a>(&mut self, payload: &str, value: T) -> usize {
        let name = format!("{payload}: serde_json");
        self.add(
            name,
            None,
            None,
            value,
            |value| serde_json::to_vec(value),
            |bytes| serde_json::from_slice(bytes),
        )
    }

    /// All codecs for a value, and for the [`Value`] that is read from its payload.
    fn codecs<T>(&mut self, payload: &str, value: &T) -> [usize; 5]
    where
        T: Clone + Serialize + DeserializeOwned + 'static,
    {
        let plain = self.serde_json(payload, value.clone());
        let rows = [
            plain,
            self.codec(format!("{payload}: Kryo5"), plain, Some(KRYO), value.clone(), Kryo5),
            self.codec(format!("{payload}: JsonJackson"), plain, Some(JSON), value.clone(), JsonJackson),
            self.codec(format!("{payload}: CborJackson"), plain, Some(CBOR), value.clone(), CborJackson),
            self.codec(
                format!("{payload}: MsgPackJackson"),
                plain,
                Some(MSGPACK),
                value.clone(),
                MsgPackJackson,
            ),
        ];
        let described = Kryo5.with_classes(CLASSES.parse::<Classes>().expect("descriptions"));
        let any = described.decode(&Kryo5.encode(value).expect("a payload")).expect("a value");
        assert!(matches!(any, Value::Object(_)), "{payload} is described: {any}");
        self.codec(format!("{payload}: Value of Kryo5 with classes"), plain, Some(VALUE), any, described);
        self.value(payload, plain, value, JsonJackson, "JsonJackson");
        self.value(payload, plain, value, CborJackson, "CborJackson");
        self.value(payload, plain, value, MsgPackJackson, "MsgPackJackson");
        rows
    }

    fn value<T, C>(&mut self, payload: &str, plain: usize, value: &T, codec: C, name: &str)
    where
        C: Codec<T> + Codec<Value> + Clone + 'a,
    {
        let any: Value = codec.decode(&codec.encode(value).expect("a payload")).expect("a value");
        self.codec(format!("{payload}: Value of {name}"), plain, Some(VALUE), any, codec);
    }

    /// The rows with these words in their names, and those that they are compared with.
    fn wanted(&self, words: &str) -> Vec<bool> {
        let is_wanted = |row: &Row<'_>| row.name.contains(words);
        let is_beside = |at| self.rows.iter().any(|row| row.beside == at && is_wanted(row));
        (0..self.rows.len())
            .map(is_beside)
            .zip(&self.rows)
            .map(|(beside, row)| beside || is_wanted(row))
            .collect()
    }

    /// Measures these rows in turns.
    fn measure(&mut self, wanted: &[bool]) {
        let mut rows: Vec<_> = self.rows.iter_mut().zip(wanted).filter(|(_, wanted)| **wanted).collect();
        for (row, _) in &mut rows {
            row.encode.prepare();
            row.decode.prepare();
        }
        for _ in 0..ROUNDS {
            for (row, _) in &mut rows {
                row.encode.measure();
                row.decode.measure();
            }
        }
    }

    fn print(&self, wanted: &[bool]) {
        println!("| | encode, ns | decode, ns | ratios | goals | |\n|---|---|---|---|---|---|");
        for (row, _) in self.rows.iter().zip(wanted).filter(|(_, wanted)| **wanted) {
            let beside = &self.rows[row.beside];
            let ratios = (ratio(&row.encode, &beside.encode), ratio(&row.decode, &beside.decode));
            let (goal, missed) = match row.goal {
                Some(goal) => (
                    format!("{} / {}", goal.0, goal.1),
                    if ratios.0 > goal.0 || ratios.1 > goal.1 { "missed" } else { "" },
                ),
                None => (String::new(), ""),
            };
            println!(
                "| {} | {:.0} | {:.0} | {:.2} / {:.2} | {goal} | {missed} |",
                row.name,
                median(row.encode.nanos.clone()),
                median(row.decode.nanos.clone()),
                ratios.0,
                ratios.1,
            );
        }
    }
}

fn ratio(one: &Job<'_>, other: &Job<'_>) -> f64 {
    median(one.nanos.iter().zip(&other.nanos).map(|(one, other)| one / other).collect())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn main() {
    let mut rows = Rows::default();

    let reminder = Reminder {
        user_id: 4_711,
        order_id: Some(88_000_815),
        channel: "email".into(),
        text: "Your order is waiting for payment".into(),
        attempt: 2,
        urgent: true,
        note: None,
    };
    let [plain, ..] = rows.codecs("reminder", &reminder);
    rows.codec("reminder: ZStd(Kryo5)".into(), plain, Some(ZSTD), reminder.clone(), ZStd(Kryo5));
    rows.codec("reminder: ZStd(JsonJackson)".into(), plain, Some(ZSTD), reminder, ZStd(JsonJackson));

    let line = |item: &str, quantity, price| Line { item: item.into(), quantity, price };
    let order = Order {
        order_id: 4_711_000_815,
        customer: "Grace Brewster Hopper".into(),
        currency: "EUR".into(),
        total: 61.25,
        paid: false,
        lines: vec![line("coffee, ground, 500 g", 4, 8.75), line("mug, blue", 2, 13.125)],
    };
    rows.codecs("order", &order);

    let position = |sku: &str, count, price: &str| Position {
        sku: sku.into(),
        count,
        price: price.parse().expect("a number"),
    };
    let invoice = Invoice {
        id: 4_711_000_815,
        customer: "Grace Brewster Hopper".into(),
        created: Date::from_millis(1_709_210_096_789),
        due: Date::from_millis(1_711_888_496_789),
        total: "61.27".parse().expect("a number"),
        positions: vec![
            position("COF-500", 4, "8.75"),
            position("MUG-BLU", 2, "13.12"),
            position("SHIP", 1, "0.03"),
        ],
    };
    rows.codecs("invoice", &invoice);

    let email =
        |to: &str, attempt| Email { to: to.into(), subject: "Your order is on its way".into(), attempt };
    let sms = Sms { phone: "+1 555 0100".into(), text: "Your order is on its way".into(), attempt: 1 };
    let tasks = vec![
        Task::Email(email("grace@example.com", 1)),
        Task::Sms(sms),
        Task::Email(email("ada@example.com", 2)),
    ];
    rows.codecs("tasks", &Batch { id: 7, tasks });

    // The same bytes, of one class that is declared and of one among several.
    let emails =
        vec![email("grace@example.com", 1), email("joan@example.com", 1), email("ada@example.com", 2)];
    let any = Batch { id: 7, tasks: emails.iter().cloned().map(Task::Email).collect() };
    let declared = rows.codecs("emails", &Batch { id: 7, tasks: emails });
    let goal = Some(POLYMORPHIC);
    rows.codec("emails as tasks: Kryo5".into(), declared[1], goal, any.clone(), Kryo5);
    rows.codec("emails as tasks: JsonJackson".into(), declared[2], goal, any.clone(), JsonJackson);
    rows.codec("emails as tasks: CborJackson".into(), declared[3], goal, any.clone(), CborJackson);
    rows.codec("emails as tasks: MsgPackJackson".into(), declared[4], goal, any, MsgPackJackson);

    // Cargo passes `--bench`.
    let words = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = rows.wanted(&words.unwrap_or_default());
    rows.measure(&wanted);
    rows.print(&wanted);
}
