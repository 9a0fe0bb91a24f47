//! The Java classes of the shapes as Rust types, one for each class. `docs/java-classes.md` shows them.

use indexmap::IndexMap;
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.OrderTimeoutMessage", rename_all = "camelCase")]
pub struct OrderTimeoutMessage {
    pub order_no: Option<String>,
    pub user_id: Option<i64>,
    pub activity_id: Option<i64>,
    pub quantity: Option<i32>,
    pub message_create_time: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.LinkStats", rename_all = "camelCase")]
pub struct LinkStats {
    pub full_short_url: Option<String>,
    pub remote_addr: Option<String>,
    pub os: Option<String>,
    pub browser: Option<String>,
    pub device: Option<String>,
    pub network: Option<String>,
    pub uv: Option<String>,
    pub uv_first_flag: Option<bool>,
    pub uip_first_flag: Option<bool>,
    pub keys: Option<String>,
    pub current_date: Option<java::Date>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SkuStockKey", rename_all = "camelCase")]
pub struct SkuStockKey {
    pub sku: Option<i64>,
    pub activity_id: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.PayTimeout", rename_all = "camelCase")]
pub struct PayTimeout {
    pub order_id: Option<i64>,
    pub message_id: Option<String>,
    pub expire_time: Option<java::LocalDateTime>,
    pub day: Option<java::LocalDate>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.RefundStatus", rename_all = "UPPERCASE")]
pub enum RefundStatus {
    Created,
    Audited,
    Paid,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.RefundTask")]
pub struct RefundTask {
    pub id: i64,
    pub amount: Option<java::BigDecimal>,
    pub status: Option<RefundStatus>,
    pub urgent: bool,
    pub retry: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.util.concurrent.TimeUnit", rename_all = "UPPERCASE")]
pub enum TimeUnit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
    Days,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.DelayMessage", rename_all = "camelCase")]
#[serde(bound(serialize = "T: Serialize", deserialize = "T: Deserialize<'de>"))]
pub struct DelayMessage<T> {
    pub topic: Option<String>,
    #[serde(with = "java::object")]
    pub data: Option<T>,
    pub delay: Option<i64>,
    pub add_time: Option<java::Date>,
    pub time_unit: Option<TimeUnit>,
    pub retry_count: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.DelayJob", rename_all = "camelCase")]
pub struct DelayJob {
    #[serde(with = "java::object")]
    pub job_params: Option<HashMap<String, java::Value>>,
    #[serde(with = "java::class_name")]
    pub a_class: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.CancelMessage", rename_all = "camelCase")]
pub struct CancelMessage {
    pub id: Option<String>,
    pub send_time: Option<i64>,
    pub order_id: Option<i64>,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.EmailTask", rename_all = "camelCase")]
pub struct EmailTask {
    pub task_id: Option<String>,
    pub execute_at: i64,
    pub to: Option<String>,
    pub subject: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SmsTask", rename_all = "camelCase")]
pub struct SmsTask {
    pub task_id: Option<String>,
    pub execute_at: i64,
    pub phone: Option<String>,
    pub template: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.BaseTask")]
pub enum BaseTask {
    Email(EmailTask),
    Sms(SmsTask),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.TaskEnvelope", rename_all = "camelCase")]
pub struct TaskEnvelope {
    pub queue_name: Option<String>,
    pub task: Option<BaseTask>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.HttpStep", rename_all = "camelCase")]
pub struct HttpStep {
    pub url: Option<String>,
    pub timeout_ms: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SleepStep")]
pub struct SleepStep {
    pub millis: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Step")]
pub enum Step {
    Http(HttpStep),
    Sleep(SleepStep),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Workflow")]
pub struct Workflow {
    pub name: Option<String>,
    pub steps: Option<Vec<Step>>,
    #[serde(with = "java::linked_hash_map")]
    pub tasks: Option<IndexMap<String, BaseTask>>,
    #[serde(with = "java::array")]
    pub fallbacks: Option<Vec<Option<BaseTask>>>,
}

/// What these services put into an `Object`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.lang.Object")]
pub enum Payload {
    Item(CartItem),
    Id(i64),
    Text(String),
    When(java::Date),
    Map(HashMap<String, java::Value>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.ObjEnvelope")]
pub struct ObjEnvelope {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub payload: Option<Payload>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.example.shop.OrderExpired", rename_all = "camelCase")]
pub struct OrderExpired {
    pub order_id: Option<i64>,
    pub reason: Option<String>,
    pub attempt: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.example.shop.OrderExpiredAt", rename_all = "camelCase")]
pub struct OrderExpiredAt {
    pub order_id: Option<i64>,
    pub at: Option<java::Instant>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.CartItem")]
pub struct CartItem {
    pub sku: Option<String>,
    pub num: Option<i32>,
    pub price: Option<java::BigDecimal>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Cart", rename_all = "camelCase")]
pub struct Cart {
    pub user_id: Option<i64>,
    pub items: Option<Vec<CartItem>>,
    #[serde(with = "java::hash_set")]
    pub coupons: Option<Vec<String>>,
    pub ext: Option<HashMap<String, String>>,
    pub ids: Option<Vec<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.DelayedOrder", rename_all = "camelCase")]
pub struct DelayedOrder {
    pub order_id: Option<String>,
    pub expire: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.OrderEntity", rename_all = "camelCase")]
pub struct OrderEntity {
    pub id: Option<i64>,
    pub order_no: Option<String>,
    pub member_id: Option<i64>,
    pub total_amount: Option<java::BigDecimal>,
    pub pay_amount: Option<java::BigDecimal>,
    pub status: Option<i32>,
    pub deleted: Option<bool>,
    pub create_time: Option<java::LocalDateTime>,
    pub update_time: Option<java::LocalDateTime>,
    pub pay_time: Option<java::LocalDateTime>,
    pub remark: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "abstract(ALI, BANK) com.example.shop.Channel", rename_all = "UPPERCASE")]
pub enum Channel {
    Wx,
    Ali,
    Bank,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.PayQuery", rename_all = "camelCase")]
pub struct PayQuery {
    pub pay_no: Option<String>,
    pub channel: Option<Channel>,
    #[serde(with = "java::optional")]
    pub note: Option<String>,
    #[serde(with = "java::array")]
    pub delays: Option<Vec<i32>>,
}

/// What `new HashMap<>() {{ … }}` in `Shapes` makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Shapes$1")]
pub struct AnonymousMap(pub IndexMap<String, java::Value>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.alibaba.fastjson2.JSONObject")]
pub struct JsonObject(pub IndexMap<String, java::Value>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.alibaba.fastjson.JSONObject")]
pub struct JsonObject1(pub IndexMap<String, java::Value>);

/// What `Map.of` makes of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.util.ImmutableCollections$Map1")]
pub struct MapOf(pub IndexMap<String, java::Value>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.util.Collections$UnmodifiableMap")]
pub struct Unmodifiable(pub IndexMap<String, java::Value>);

/// What `List.of` makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.util.ImmutableCollections$ListN")]
pub struct ListOf(pub Vec<String>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Shapes$Inner")]
pub struct Inner {
    pub id: Option<i64>,
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Shapes$NonStatic")]
pub struct NonStatic {
    pub id: Option<i64>,
}
