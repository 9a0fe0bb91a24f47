//! What Java services put into their queues, and which codecs read and write it: the table in
//! `shapes/table.md`.
//!
//! Each of the shapes has one Rust type for all codecs. Of each payload that Redisson wrote, the type must
//! have the right value, or refuse it. Where the table has `=`, the type writes the same bytes again; `~` is
//! other bytes, `✗` a refusal, and `–` what Java does not write. `REDELAY_BLESS=1` writes the table.

mod types;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use codec::java::{self, Date, Instant, LocalDate, LocalDateTime, LocalTime, Value};
use codec::{CborJackson, Json, JsonJackson, Kryo5, Mapper, MsgPackJackson};
use redelay_compat_values::zoo::Entries;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use types::*;

/// The columns of the table: the files of vectors. The last is the same with the mapper that writes no
/// classes.
const CODECS: [&str; 9] = [
    "kryo5",
    "json-jackson",
    "cbor-jackson",
    "msgpack-jackson",
    "json-jackson-jsr310",
    "json-jackson-iso",
    "wrapper-array",
    "typed-json",
    "typed-json, mapper",
];

#[derive(Default)]
struct Table {
    /// Of each shape, a sign for each codec.
    signs: BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>,
    refusals: String,
}

impl Table {
    /// The same value in all codecs.
    fn shape<T>(&mut self, shape: &'static str, value: T)
    where
        T: Debug + PartialEq + Serialize + DeserializeOwned + 'static,
    {
        for codec in CODECS {
            self.place(shape, codec, &value);
        }
    }

    fn place<T>(&mut self, shape: &'static str, codec: &'static str, value: &T)
    where
        T: Debug + PartialEq + Serialize + DeserializeOwned + 'static,
    {
        match codec {
            "kryo5" => self.check(shape, codec, &Kryo5, value),
            "cbor-jackson" => self.check(shape, codec, &CborJackson, value),
            "msgpack-jackson" => self.check(shape, codec, &MsgPackJackson, value),
            "json-jackson" => self.check(shape, codec, &JsonJackson, value),
            "json-jackson-jsr310" => self.mapper(shape, codec, Mapper::new().java_time(), value),
            "json-jackson-iso" => self.mapper(shape, codec, Mapper::new().java_time_as_text(), value),
            "wrapper-array" => {
                let mapper = Mapper::new().wrapper_array().local_date_time("yyyy-MM-dd HH:mm:ss");
                self.mapper(shape, codec, mapper.unwrap(), value);
            }
            "typed-json" => self.check(shape, codec, &Json, value),
            _ => self.mapper(shape, codec, Mapper::new().without_classes(), value),
        }
    }

    fn mapper<T>(&mut self, shape: &'static str, codec: &'static str, mapper: Mapper, value: &T)
    where
        T: Debug + PartialEq + Serialize + DeserializeOwned + 'static,
    {
        self.check(shape, codec, &JsonJackson.with_mapper(mapper), value);
    }

    fn check<T>(&mut self, shape: &'static str, codec: &'static str, by: &impl Codec<T>, value: &T)
    where
        T: Debug + PartialEq,
    {
        let row = rows(&format!("shapes-{}", codec.trim_end_matches(", mapper")))
            .into_iter()
            .find(|row| row.name == shape);
        let sign = match row {
            None => "–",
            Some(row) => match by.decode(&row.payload).and_then(|read| {
                let written = by.encode(value)?;
                // MessagePack has no trailing zeros: 9.90 is 9.9. Without classes, a `Long` of an `Object` is
                // an `Integer`.
                let loses = ["msgpack-jackson", "typed-json", "typed-json, mapper"].contains(&codec);
                let same = read == *value || loses && by.encode(&read)? == written;
                assert!(same, "{shape} in {codec}: {read:?}");
                Ok(written)
            }) {
                Ok(written) if written == row.payload => "=",
                Ok(_) => "~",
                Err(error) => {
                    let error = error.to_string();
                    let (_, why) = error.split_once(": ").unwrap_or_default();
                    let _ = writeln!(
                        self.refusals,
                        "* {shape}, {codec}: {}",
                        why.replace("codecs::shapes::types::", "")
                    );
                    "✗"
                }
            },
        };
        self.signs.entry(shape).or_default().insert(codec, sign);
    }

    fn text(&self) -> String {
        let mut text = format!("| shape | {} |\n|---|{}\n", CODECS.join(" | "), "---|".repeat(CODECS.len()));
        for (shape, signs) in &self.signs {
            let signs: Vec<_> = CODECS.iter().map(|codec| signs[codec]).collect();
            let _ = writeln!(text, "| {shape} | {} |", signs.join(" | "));
        }
        text + "\n" + &self.refusals
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn entries<K, V, const N: usize>(entries: [(K, V); N]) -> Entries<K, V> {
    Entries(entries.into())
}

const WHEN: i64 = 1_709_210_096_789;

fn noon(nano: u32) -> LocalDateTime {
    LocalDateTime::new(LocalDate::new(2024, 2, 29).unwrap(), LocalTime::new(12, 34, 56, nano).unwrap())
}

fn pay_timeout(nano: u32) -> PayTimeout {
    PayTimeout {
        order_id: Some(1001),
        message_id: some("m-1"),
        expire_time: Some(noon(nano)),
        day: LocalDate::new(2024, 2, 29),
    }
}

fn item() -> CartItem {
    CartItem { sku: some("sku-1"), num: Some(2), price: "9.90".parse().ok() }
}

fn email() -> EmailTask {
    EmailTask { task_id: some("t-1"), execute_at: WHEN, to: some("a@example.com"), subject: some("hi") }
}

fn sms() -> SmsTask {
    SmsTask {
        task_id: some("t-2"),
        execute_at: 1_709_210_097_000,
        phone: some("+4930123"),
        template: Some(12),
    }
}

fn delay_message<T>(topic: &str, data: T) -> DelayMessage<T> {
    DelayMessage {
        topic: some(topic),
        data: Some(data),
        delay: Some(30),
        add_time: None,
        time_unit: Some(TimeUnit::Seconds),
        retry_count: 1,
    }
}

fn plain_values(table: &mut Table) {
    table.shape("01-string-id", "20240229123456789".to_owned());
    table.shape("02-json-string", r#"{"orderNo":"SO-1001","userId":77}"#.to_owned());
    table.shape("03-long-id", 1_763_912_345_678_901_234i64);
    table.shape("04-int-id", 4711i32);
    table.shape("22-list-long", vec![1001i64, 1002]);
    table.shape("22-list-string", vec!["a".to_owned(), "b".to_owned()]);
    table.shape("22-list-own", vec![item()]);
    table.shape("29-bytes", vec![1u8, 2, 3, 255]);
    table.shape("30-uuid", "12345678-90ab-cdef-8234-567890abcdef".parse::<java::Uuid>().unwrap());
    table.shape("31-enum-root", RefundStatus::Paid);
    table.shape("31-enum-body", Channel::Bank);
    table.shape("32-date", Date::from_millis(WHEN));
    table.shape("33-listof", ListOf(["a", "b", "c"].map(str::to_owned).to_vec()));
    table.shape("33-mapof", MapOf(entries([("orderId".to_owned(), Value::Long(1001))])));
    // Kryo leaves it to Java's own serialization. A `Value` keeps what that wrote.
    let row = rows("shapes-kryo5").into_iter().find(|row| row.name == "33-unmodifiable").unwrap();
    let kept: Value = Kryo5.decode(&row.payload).unwrap();
    assert_eq!(kept.get("orderId"), Some(&Value::Long(1001)));
    table.place("33-unmodifiable", "kryo5", &kept);
    let unmodifiable = Unmodifiable(entries([("orderId".to_owned(), Value::Long(1001))]));
    CODECS[1..].iter().for_each(|codec| table.place("33-unmodifiable", codec, &unmodifiable));
    table.shape("34-localdatetime", noon(0));
}

fn objects(table: &mut Table) {
    table.shape(
        "05-pojo-boxed",
        OrderTimeoutMessage {
            order_no: some("SO-1001"),
            user_id: Some(77),
            activity_id: None,
            quantity: Some(2),
            message_create_time: Some(WHEN),
        },
    );
    table.shape(
        "06-pojo-strings-date",
        LinkStats {
            full_short_url: some("https://s.example/Ab3"),
            remote_addr: some("10.0.0.7"),
            os: some("Android"),
            browser: some("Chrome"),
            device: some("Mobile"),
            network: some("WIFI"),
            uv: some("u-1"),
            uv_first_flag: Some(true),
            uip_first_flag: Some(false),
            keys: None,
            current_date: Some(Date::from_millis(WHEN)),
        },
    );
    table.shape("07-pojo-two-longs", SkuStockKey { sku: Some(9011), activity_id: Some(100_301) });
    table.shape(
        "09-pojo-bigdecimal-enum",
        RefundTask {
            id: 5,
            amount: "199.90".parse().ok(),
            status: Some(RefundStatus::Audited),
            urgent: true,
            retry: 3,
        },
    );
    table.shape(
        "15-inheritance",
        CancelMessage {
            id: some("c-1"),
            send_time: Some(WHEN),
            order_id: Some(1001),
            reason: some("timeout"),
        },
    );
    table.shape("20-record", OrderExpired { order_id: Some(1001), reason: some("timeout"), attempt: 2 });
    table.shape(
        "21-nested-lists",
        Cart {
            user_id: Some(77),
            items: Some(vec![item(), CartItem { sku: some("sku-2"), num: None, price: None }]),
            coupons: Some(vec!["NEW10".into()]),
            ext: Some([("src".to_owned(), "app".to_owned())].into()),
            ids: Some(vec![1, 2]),
        },
    );
    table.shape("23-delayed-final-fields", DelayedOrder { order_id: some("SO-1001"), expire: WHEN });
    table.shape(
        "25-enum-bodies-array",
        PayQuery {
            pay_no: some("P-1"),
            channel: Some(Channel::Bank),
            note: None,
            delays: Some(vec![5, 30, 300]),
        },
    );
    table.shape("27-static-inner", Inner { id: Some(5), name: some("n") });
    table.shape("27-inner", NonStatic { id: Some(5) });
}

fn times(table: &mut Table) {
    for codec in CODECS {
        // The pattern of this mapper has no milliseconds.
        let nano = if codec == "wrapper-array" { 0 } else { 789_000_000 };
        table.place("08-pojo-localdatetime", codec, &pay_timeout(nano));
    }
    table.shape(
        "20-record-instant",
        OrderExpiredAt { order_id: Some(1001), at: Instant::new(1_709_210_096, 789_000_000) },
    );
    table.shape(
        "24-entity",
        OrderEntity {
            id: Some(1_763_912_345_678_901_234),
            order_no: some("SO-1001"),
            member_id: Some(77),
            total_amount: "19.80".parse().ok(),
            pay_amount: "0".parse().ok(),
            status: Some(0),
            deleted: Some(false),
            create_time: Some(noon(0)),
            update_time: None,
            pay_time: None,
            remark: some("备注 🚀"),
        },
    );
}

fn several_classes(table: &mut Table) {
    table.shape(
        "10-generic-string",
        DelayMessage {
            add_time: Some(Date::from_millis(WHEN)),
            time_unit: Some(TimeUnit::Minutes),
            retry_count: 0,
            ..delay_message("order-close", "SO-1001".to_owned())
        },
    );
    table.shape("11-generic-own", delay_message("cart", item()));
    table.shape("16-poly-root-email", BaseTask::Email(email()));
    table.shape("16-poly-root-sms", BaseTask::Sms(sms()));
    let envelope = |task| TaskEnvelope { queue_name: some("q"), task: Some(task) };
    table.shape("17-poly-field-email", envelope(BaseTask::Email(email())));
    table.shape("17-poly-field-sms", envelope(BaseTask::Sms(sms())));
    let http = HttpStep { url: some("http://x/y"), timeout_ms: 500 };
    table.shape(
        "18-poly-list-map-array",
        Workflow {
            name: some("w"),
            steps: Some(vec![
                Step::Http(http.clone()),
                Step::Sleep(SleepStep { millis: 2000 }),
                Step::Http(http),
            ]),
            tasks: Some(entries([
                ("mail".to_owned(), BaseTask::Email(email())),
                ("sms".to_owned(), BaseTask::Sms(sms())),
            ])),
            fallbacks: Some(vec![Some(BaseTask::Sms(sms())), None, Some(BaseTask::Email(email()))]),
        },
    );
    let envelope = |kind, payload| ObjEnvelope { kind: some(kind), payload: Some(payload) };
    table.shape("19-object-own", envelope("cart", Payload::Item(item())));
    table.shape("19-object-long", envelope("id", Payload::Id(1001)));
    table.shape("19-object-map", envelope("map", Payload::Map([("k".to_owned(), Value::Long(1))].into())));
}

fn maps(table: &mut Table) {
    table.shape(
        "12-map-string-object",
        entries([
            ("orderId".to_owned(), Value::Long(1001)),
            ("sn".into(), "SO-1001".into()),
            ("vip".into(), true.into()),
            ("status".into(), 2.into()),
        ]),
    );
    table.shape(
        "13-map-own-class",
        java::linked_hash_map::Of(entries([
            ("type".to_owned(), Payload::Text("cart".into())),
            ("item".into(), Payload::Item(item())),
            ("when".into(), Payload::When(Date::from_millis(WHEN))),
        ])),
    );
    table.shape(
        "14-map-and-class",
        DelayJob {
            job_params: Some([("orderId".to_owned(), 1001.into())].into()),
            a_class: some("com.example.shop.CartItem"),
        },
    );
    let json_object =
        || entries([("orderId".to_owned(), Value::Long(1001)), ("sn".into(), "SO-1001".into())]);
    table.shape("26-anon-map", AnonymousMap(json_object()));
    table.shape("28-fastjson2-object", JsonObject(json_object()));
    table.shape("28-fastjson1-object", JsonObject1(json_object()));
}

#[test]
fn what_holds_for_each_shape() {
    let mut table = Table::default();
    plain_values(&mut table);
    objects(&mut table);
    times(&mut table);
    several_classes(&mut table);
    maps(&mut table);
    assert_eq!(table.signs.len(), rows("shapes-kryo5").len());
    let found = table.text();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/codecs/shapes/table.md");
    if std::env::var_os("REDELAY_BLESS").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
