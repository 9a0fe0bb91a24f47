//! What Java services put into their queues: a value of each shape, and the codecs that write it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use indexmap::IndexMap;
use redisson_codec::java::{self, Date, Instant, LocalDate, LocalDateTime, LocalTime, Value};
use redisson_codec::{CborJackson, Codec, Json, JsonJackson, Kryo5, Mapper, MsgPackJackson};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::shop::*;

/// The codecs, by the names of the files of vectors. The last is the same as the one before, with the mapper
/// that writes no classes.
pub const CODECS: [&str; 9] = [
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

/// Whether a codec loses something that another one keeps: MessagePack has no trailing zeros, so 9.90 is 9.9.
/// Without classes, a `Long` of an `Object` is an `Integer`.
pub fn loses(codec: &str) -> bool {
    ["msgpack-jackson", "typed-json", "typed-json, mapper"].contains(&codec)
}

/// The table of `tests/codecs/shapes/table.md`: of each shape, the sign of each codec. `=` is Java's bytes,
/// `~` others, `✗` a refusal, and `–` what Java does not write.
pub fn signs() -> BTreeMap<(String, &'static str), char> {
    let table = include_str!("../../../crates/redisson-codec/tests/codecs/shapes/table.md");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let signs = cells[2..].iter().filter_map(|cell| cell.chars().next());
        CODECS
            .into_iter()
            .zip(signs)
            .map(|(codec, sign)| ((cells[1].to_owned(), codec), sign))
            .collect::<Vec<_>>()
    })
    .collect()
}

/// A value of a shape, which is the same in all codecs.
pub trait Shape: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static> Shape for T {}

/// What is done with each value in each codec.
pub trait Each {
    fn payload<T: Shape, C: Codec<T>>(&mut self, shape: &'static str, codec: &'static str, by: C, value: T);
}

/// Calls it for each shape in each of [`CODECS`].
pub fn each(each: &mut impl Each) {
    let mut all = All(each);
    plain_values(&mut all);
    objects(&mut all);
    times(&mut all);
    several_classes(&mut all);
    maps(&mut all);
}

struct All<'a, E>(&'a mut E);

impl<E: Each> All<'_, E> {
    /// The same value in all codecs.
    fn shape(&mut self, shape: &'static str, value: impl Shape) {
        for codec in CODECS {
            self.place(shape, codec, value.clone());
        }
    }

    fn place(&mut self, shape: &'static str, codec: &'static str, value: impl Shape) {
        match codec {
            "kryo5" => self.0.payload(shape, codec, Kryo5, value),
            "cbor-jackson" => self.0.payload(shape, codec, CborJackson, value),
            "msgpack-jackson" => self.0.payload(shape, codec, MsgPackJackson, value),
            "json-jackson" => self.0.payload(shape, codec, JsonJackson, value),
            "json-jackson-jsr310" => self.mapper(shape, codec, Mapper::new().java_time(), value),
            "json-jackson-iso" => self.mapper(shape, codec, Mapper::new().java_time_as_text(), value),
            "wrapper-array" => {
                let mapper = Mapper::new().wrapper_array().local_date_time("yyyy-MM-dd HH:mm:ss");
                self.mapper(shape, codec, mapper.expect("a pattern"), value);
            }
            "typed-json" => self.0.payload(shape, codec, Json, value),
            _ => self.mapper(shape, codec, Mapper::new().without_classes(), value),
        }
    }

    fn mapper(&mut self, shape: &'static str, codec: &'static str, mapper: Mapper, value: impl Shape) {
        self.0.payload(shape, codec, JsonJackson.with_mapper(mapper), value);
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

const WHEN: i64 = 1_709_210_096_789;

fn noon(nano: u32) -> LocalDateTime {
    let day = LocalDate::new(2024, 2, 29).expect("a day");
    LocalDateTime::new(day, LocalTime::new(12, 34, 56, nano).expect("a time"))
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

fn plain_values(all: &mut All<'_, impl Each>) {
    all.shape("01-string-id", "20240229123456789".to_owned());
    all.shape("02-json-string", r#"{"orderNo":"SO-1001","userId":77}"#.to_owned());
    all.shape("03-long-id", 1_763_912_345_678_901_234i64);
    all.shape("04-int-id", 4711i32);
    all.shape("22-list-long", vec![1001i64, 1002]);
    all.shape("22-list-string", vec!["a".to_owned(), "b".to_owned()]);
    all.shape("22-list-own", vec![item()]);
    all.shape("29-bytes", vec![1u8, 2, 3, 255]);
    all.shape("30-uuid", "12345678-90ab-cdef-8234-567890abcdef".parse::<java::Uuid>().expect("an id"));
    all.shape("31-enum-root", RefundStatus::Paid);
    all.shape("31-enum-body", Channel::Bank);
    all.shape("32-date", Date::from_millis(WHEN));
    all.shape("33-listof", ListOf(["a", "b", "c"].map(str::to_owned).to_vec()));
    all.shape("33-mapof", MapOf(IndexMap::from([("orderId".to_owned(), Value::Long(1001))])));
    all.shape("33-unmodifiable", Unmodifiable(IndexMap::from([("orderId".to_owned(), Value::Long(1001))])));
    all.shape("34-localdatetime", noon(0));
}

fn objects(all: &mut All<'_, impl Each>) {
    all.shape(
        "05-pojo-boxed",
        OrderTimeoutMessage {
            order_no: some("SO-1001"),
            user_id: Some(77),
            activity_id: None,
            quantity: Some(2),
            message_create_time: Some(WHEN),
        },
    );
    all.shape(
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
    all.shape("07-pojo-two-longs", SkuStockKey { sku: Some(9011), activity_id: Some(100_301) });
    all.shape(
        "09-pojo-bigdecimal-enum",
        RefundTask {
            id: 5,
            amount: "199.90".parse().ok(),
            status: Some(RefundStatus::Audited),
            urgent: true,
            retry: 3,
        },
    );
    all.shape(
        "15-inheritance",
        CancelMessage {
            id: some("c-1"),
            send_time: Some(WHEN),
            order_id: Some(1001),
            reason: some("timeout"),
        },
    );
    all.shape("20-record", OrderExpired { order_id: Some(1001), reason: some("timeout"), attempt: 2 });
    all.shape(
        "21-nested-lists",
        Cart {
            user_id: Some(77),
            items: Some(vec![item(), CartItem { sku: some("sku-2"), num: None, price: None }]),
            coupons: Some(vec!["NEW10".into()]),
            ext: Some([("src".to_owned(), "app".to_owned())].into()),
            ids: Some(vec![1, 2]),
        },
    );
    all.shape("23-delayed-final-fields", DelayedOrder { order_id: some("SO-1001"), expire: WHEN });
    all.shape(
        "25-enum-bodies-array",
        PayQuery {
            pay_no: some("P-1"),
            channel: Some(Channel::Bank),
            note: None,
            delays: Some(vec![5, 30, 300]),
        },
    );
    all.shape("27-static-inner", Inner { id: Some(5), name: some("n") });
    all.shape("27-inner", NonStatic { id: Some(5) });
}

fn times(all: &mut All<'_, impl Each>) {
    for codec in CODECS {
        // The pattern of this mapper has no milliseconds.
        let nano = if codec == "wrapper-array" { 0 } else { 789_000_000 };
        all.place("08-pojo-localdatetime", codec, pay_timeout(nano));
    }
    all.shape(
        "20-record-instant",
        OrderExpiredAt { order_id: Some(1001), at: Instant::new(1_709_210_096, 789_000_000) },
    );
    all.shape(
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

fn several_classes(all: &mut All<'_, impl Each>) {
    all.shape(
        "10-generic-string",
        DelayMessage {
            add_time: Some(Date::from_millis(WHEN)),
            time_unit: Some(TimeUnit::Minutes),
            retry_count: 0,
            ..delay_message("order-close", "SO-1001".to_owned())
        },
    );
    all.shape("11-generic-own", delay_message("cart", item()));
    all.shape("16-poly-root-email", BaseTask::Email(email()));
    all.shape("16-poly-root-sms", BaseTask::Sms(sms()));
    let envelope = |task| TaskEnvelope { queue_name: some("q"), task: Some(task) };
    all.shape("17-poly-field-email", envelope(BaseTask::Email(email())));
    all.shape("17-poly-field-sms", envelope(BaseTask::Sms(sms())));
    let http = HttpStep { url: some("http://x/y"), timeout_ms: 500 };
    all.shape(
        "18-poly-list-map-array",
        Workflow {
            name: some("w"),
            steps: Some(vec![
                Step::Http(http.clone()),
                Step::Sleep(SleepStep { millis: 2000 }),
                Step::Http(http),
            ]),
            tasks: Some(IndexMap::from([
                ("mail".to_owned(), BaseTask::Email(email())),
                ("sms".to_owned(), BaseTask::Sms(sms())),
            ])),
            fallbacks: Some(vec![Some(BaseTask::Sms(sms())), None, Some(BaseTask::Email(email()))]),
        },
    );
    let envelope = |kind, payload| ObjEnvelope { kind: some(kind), payload: Some(payload) };
    all.shape("19-object-own", envelope("cart", Payload::Item(item())));
    all.shape("19-object-long", envelope("id", Payload::Id(1001)));
    all.shape("19-object-map", envelope("map", Payload::Map([("k".to_owned(), Value::Long(1))].into())));
}

fn maps(all: &mut All<'_, impl Each>) {
    all.shape(
        "12-map-string-object",
        IndexMap::from([
            ("orderId".to_owned(), Value::Long(1001)),
            ("sn".into(), "SO-1001".into()),
            ("vip".into(), true.into()),
            ("status".into(), 2.into()),
        ]),
    );
    all.shape(
        "13-map-own-class",
        java::linked_hash_map::Of(IndexMap::from([
            ("type".to_owned(), Payload::Text("cart".into())),
            ("item".into(), Payload::Item(item())),
            ("when".into(), Payload::When(Date::from_millis(WHEN))),
        ])),
    );
    all.shape(
        "14-map-and-class",
        DelayJob {
            job_params: Some([("orderId".to_owned(), 1001.into())].into()),
            a_class: some("com.example.shop.CartItem"),
        },
    );
    let json_object =
        || IndexMap::from([("orderId".to_owned(), Value::Long(1001)), ("sn".into(), "SO-1001".into())]);
    all.shape("26-anon-map", AnonymousMap(json_object()));
    all.shape("28-fastjson2-object", JsonObject(json_object()));
    all.shape("28-fastjson1-object", JsonObject1(json_object()));
}
