//! The Java classes of the shapes as Rust types, one for each class.

use redelay_compat_values::zoo::Entries;
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.OrderTimeoutMessage", rename_all = "camelCase")]
pub(super) struct OrderTimeoutMessage {
    pub(super) order_no: Option<String>,
    pub(super) user_id: Option<i64>,
    pub(super) activity_id: Option<i64>,
    pub(super) quantity: Option<i32>,
    pub(super) message_create_time: Option<i64>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.LinkStats", rename_all = "camelCase")]
pub(super) struct LinkStats {
    pub(super) full_short_url: Option<String>,
    pub(super) remote_addr: Option<String>,
    pub(super) os: Option<String>,
    pub(super) browser: Option<String>,
    pub(super) device: Option<String>,
    pub(super) network: Option<String>,
    pub(super) uv: Option<String>,
    pub(super) uv_first_flag: Option<bool>,
    pub(super) uip_first_flag: Option<bool>,
    pub(super) keys: Option<String>,
    pub(super) current_date: Option<java::Date>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SkuStockKey", rename_all = "camelCase")]
pub(super) struct SkuStockKey {
    pub(super) sku: Option<i64>,
    pub(super) activity_id: Option<i64>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.PayTimeout", rename_all = "camelCase")]
pub(super) struct PayTimeout {
    pub(super) order_id: Option<i64>,
    pub(super) message_id: Option<String>,
    pub(super) expire_time: Option<java::LocalDateTime>,
    pub(super) day: Option<java::LocalDate>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.RefundStatus", rename_all = "UPPERCASE")]
pub(super) enum RefundStatus {
    Created,
    Audited,
    Paid,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.RefundTask")]
pub(super) struct RefundTask {
    pub(super) id: i64,
    pub(super) amount: Option<java::BigDecimal>,
    pub(super) status: Option<RefundStatus>,
    pub(super) urgent: bool,
    pub(super) retry: i32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.util.concurrent.TimeUnit", rename_all = "UPPERCASE")]
pub(super) enum TimeUnit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
    Days,
}

/// `class DelayMessage<T> { T data; … }`
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.DelayMessage", rename_all = "camelCase")]
#[serde(bound(serialize = "T: Serialize", deserialize = "T: Deserialize<'de>"))]
pub(super) struct DelayMessage<T> {
    pub(super) topic: Option<String>,
    #[serde(with = "java::object")]
    pub(super) data: Option<T>,
    pub(super) delay: Option<i64>,
    pub(super) add_time: Option<java::Date>,
    pub(super) time_unit: Option<TimeUnit>,
    pub(super) retry_count: i32,
}

/// `class DelayJob { Map jobParams; Class aClass; }`: nothing declares what is in the map.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.DelayJob", rename_all = "camelCase")]
pub(super) struct DelayJob {
    #[serde(with = "java::object")]
    pub(super) job_params: Option<HashMap<String, java::Value>>,
    #[serde(with = "java::class_name")]
    pub(super) a_class: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.CancelMessage", rename_all = "camelCase")]
pub(super) struct CancelMessage {
    pub(super) id: Option<String>,
    pub(super) send_time: Option<i64>,
    pub(super) order_id: Option<i64>,
    pub(super) reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.EmailTask", rename_all = "camelCase")]
pub(super) struct EmailTask {
    pub(super) task_id: Option<String>,
    pub(super) execute_at: i64,
    pub(super) to: Option<String>,
    pub(super) subject: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SmsTask", rename_all = "camelCase")]
pub(super) struct SmsTask {
    pub(super) task_id: Option<String>,
    pub(super) execute_at: i64,
    pub(super) phone: Option<String>,
    pub(super) template: Option<i32>,
}

/// `abstract class BaseTask`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.BaseTask")]
pub(super) enum BaseTask {
    Email(EmailTask),
    Sms(SmsTask),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.TaskEnvelope", rename_all = "camelCase")]
pub(super) struct TaskEnvelope {
    pub(super) queue_name: Option<String>,
    pub(super) task: Option<BaseTask>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.HttpStep", rename_all = "camelCase")]
pub(super) struct HttpStep {
    pub(super) url: Option<String>,
    pub(super) timeout_ms: i32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SleepStep")]
pub(super) struct SleepStep {
    pub(super) millis: i64,
}

/// `interface Step`
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Step")]
pub(super) enum Step {
    Http(HttpStep),
    Sleep(SleepStep),
}

/// `class Workflow { String name; List<Step> steps; Map<String, BaseTask> tasks; BaseTask[] fallbacks; }`
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Workflow")]
pub(super) struct Workflow {
    pub(super) name: Option<String>,
    pub(super) steps: Option<Vec<Step>>,
    #[serde(with = "java::linked_hash_map")]
    pub(super) tasks: Option<Entries<String, BaseTask>>,
    #[serde(with = "java::array")]
    pub(super) fallbacks: Option<Vec<Option<BaseTask>>>,
}

/// What an `Object` is here.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.lang.Object")]
pub(super) enum Payload {
    Item(CartItem),
    Id(i64),
    Text(String),
    When(java::Date),
    Map(HashMap<String, java::Value>),
}

/// `class ObjEnvelope { String type; Object payload; }`
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.ObjEnvelope")]
pub(super) struct ObjEnvelope {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) payload: Option<Payload>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.example.shop.OrderExpired", rename_all = "camelCase")]
pub(super) struct OrderExpired {
    pub(super) order_id: Option<i64>,
    pub(super) reason: Option<String>,
    pub(super) attempt: i32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.example.shop.OrderExpiredAt", rename_all = "camelCase")]
pub(super) struct OrderExpiredAt {
    pub(super) order_id: Option<i64>,
    pub(super) at: Option<java::Instant>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.CartItem")]
pub(super) struct CartItem {
    pub(super) sku: Option<String>,
    pub(super) num: Option<i32>,
    pub(super) price: Option<java::BigDecimal>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Cart", rename_all = "camelCase")]
pub(super) struct Cart {
    pub(super) user_id: Option<i64>,
    pub(super) items: Option<Vec<CartItem>>,
    #[serde(with = "java::set")]
    pub(super) coupons: Option<Vec<String>>,
    pub(super) ext: Option<HashMap<String, String>>,
    pub(super) ids: Option<Vec<i64>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.DelayedOrder", rename_all = "camelCase")]
pub(super) struct DelayedOrder {
    pub(super) order_id: Option<String>,
    pub(super) expire: i64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.OrderEntity", rename_all = "camelCase")]
pub(super) struct OrderEntity {
    pub(super) id: Option<i64>,
    pub(super) order_no: Option<String>,
    pub(super) member_id: Option<i64>,
    pub(super) total_amount: Option<java::BigDecimal>,
    pub(super) pay_amount: Option<java::BigDecimal>,
    pub(super) status: Option<i32>,
    pub(super) deleted: Option<bool>,
    pub(super) create_time: Option<java::LocalDateTime>,
    pub(super) update_time: Option<java::LocalDateTime>,
    pub(super) pay_time: Option<java::LocalDateTime>,
    pub(super) remark: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "abstract(ALI, BANK) com.example.shop.Channel", rename_all = "UPPERCASE")]
pub(super) enum Channel {
    Wx,
    Ali,
    Bank,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.PayQuery", rename_all = "camelCase")]
pub(super) struct PayQuery {
    pub(super) pay_no: Option<String>,
    pub(super) channel: Option<Channel>,
    #[serde(with = "java::optional")]
    pub(super) note: Option<String>,
    #[serde(with = "java::array")]
    pub(super) delays: Option<Vec<i32>>,
}

/// A map of another class than those of Java's library.
macro_rules! map {
    ($name:ident $class:literal) => {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename = $class)]
        pub(super) struct $name(pub(super) Entries<String, java::Value>);
    };
}

map!(AnonymousMap "com.example.shop.Shapes$1");
map!(JsonObject "com.alibaba.fastjson2.JSONObject");
map!(JsonObject1 "com.alibaba.fastjson.JSONObject");
map!(MapOf "java.util.ImmutableCollections$Map1");
map!(Unmodifiable "java.util.Collections$UnmodifiableMap");

/// What `List.of` makes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.util.ImmutableCollections$ListN")]
pub(super) struct ListOf(pub(super) Vec<String>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Shapes$Inner")]
pub(super) struct Inner {
    pub(super) id: Option<i64>,
    pub(super) name: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Shapes$NonStatic")]
pub(super) struct NonStatic {
    pub(super) id: Option<i64>,
}
