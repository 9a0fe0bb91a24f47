// REDELAY_BLESS=1 writes this file: what `Classes::to_rust` prints.

pub(super) mod cart {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Cart", rename_all = "camelCase")]
pub struct Cart {
    #[serde(with = "java::hash_set")]
    pub coupons: Option<Vec<String>>,
    pub ext: Option<HashMap<String, String>>,
    pub ids: Option<Vec<i64>>,
    pub items: Option<Vec<CartItem>>,
    pub user_id: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.CartItem")]
pub struct CartItem {
    pub num: Option<i32>,
    pub price: Option<java::BigDecimal>,
    pub sku: Option<String>,
}
}

pub(super) mod cancel_message {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.CancelMessage", rename_all = "camelCase")]
pub struct CancelMessage {
    pub id: Option<String>,
    pub order_id: Option<i64>,
    pub reason: Option<String>,
    pub send_time: Option<i64>,
}
}

pub(super) mod delay_job {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.DelayJob", rename_all = "camelCase")]
pub struct DelayJob {
    #[serde(with = "java::class_name")]
    pub a_class: Option<String>,
    // Map: the payload names what is in it
    pub job_params: java::Value,
}
}

pub(super) mod delay_message {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.DelayMessage", rename_all = "camelCase")]
pub struct DelayMessage {
    pub add_time: Option<java::Date>,
    // Object: if a class of yours can be here, an enum with data
    pub data: java::Value,
    pub delay: Option<i64>,
    pub retry_count: i32,
    pub time_unit: Option<TimeUnit>,
    pub topic: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
}

pub(super) mod delayed_order {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.DelayedOrder", rename_all = "camelCase")]
pub struct DelayedOrder {
    pub expire: i64,
    pub order_id: Option<String>,
}
}

pub(super) mod base_task {
use serde::{Deserialize, Serialize};

/// One of several classes, as the class `com.example.shop.BaseTask` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.BaseTask")]
pub enum BaseTask {
    EmailTask(EmailTask),
    SmsTask(SmsTask),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.EmailTask", rename_all = "camelCase")]
pub struct EmailTask {
    pub execute_at: i64,
    pub subject: Option<String>,
    pub task_id: Option<String>,
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SmsTask", rename_all = "camelCase")]
pub struct SmsTask {
    pub execute_at: i64,
    pub phone: Option<String>,
    pub task_id: Option<String>,
    pub template: Option<i32>,
}
}

pub(super) mod link_stats {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.LinkStats", rename_all = "camelCase")]
pub struct LinkStats {
    pub browser: Option<String>,
    pub current_date: Option<java::Date>,
    pub device: Option<String>,
    pub full_short_url: Option<String>,
    pub keys: Option<String>,
    pub network: Option<String>,
    pub os: Option<String>,
    pub remote_addr: Option<String>,
    pub uip_first_flag: Option<bool>,
    pub uv: Option<String>,
    pub uv_first_flag: Option<bool>,
}
}

pub(super) mod obj_envelope {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.ObjEnvelope")]
pub struct ObjEnvelope {
    // Object: if a class of yours can be here, an enum with data
    pub payload: java::Value,
    pub r#type: Option<String>,
}
}

pub(super) mod order_entity {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.OrderEntity", rename_all = "camelCase")]
pub struct OrderEntity {
    pub create_time: Option<java::LocalDateTime>,
    pub deleted: Option<bool>,
    pub id: Option<i64>,
    pub member_id: Option<i64>,
    pub order_no: Option<String>,
    pub pay_amount: Option<java::BigDecimal>,
    pub pay_time: Option<java::LocalDateTime>,
    pub remark: Option<String>,
    pub status: Option<i32>,
    pub total_amount: Option<java::BigDecimal>,
    pub update_time: Option<java::LocalDateTime>,
}
}

pub(super) mod order_expired {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.example.shop.OrderExpired", rename_all = "camelCase")]
pub struct OrderExpired {
    pub attempt: i32,
    pub order_id: Option<i64>,
    pub reason: Option<String>,
}
}

pub(super) mod order_expired_at {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.example.shop.OrderExpiredAt", rename_all = "camelCase")]
pub struct OrderExpiredAt {
    pub at: Option<java::Instant>,
    pub order_id: Option<i64>,
}
}

pub(super) mod order_timeout_message {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.OrderTimeoutMessage", rename_all = "camelCase")]
pub struct OrderTimeoutMessage {
    pub activity_id: Option<i64>,
    pub message_create_time: Option<i64>,
    pub order_no: Option<String>,
    pub quantity: Option<i32>,
    pub user_id: Option<i64>,
}
}

pub(super) mod pay_query {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.PayQuery", rename_all = "camelCase")]
pub struct PayQuery {
    pub channel: Option<Channel>,
    #[serde(with = "java::array")]
    pub delays: Option<Vec<i32>>,
    pub note: Option<java::optional::Of<Option<String>>>,
    pub pay_no: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "abstract(ALI, BANK) com.example.shop.Channel", rename_all = "UPPERCASE")]
pub enum Channel {
    Wx,
    Ali,
    Bank,
}
}

pub(super) mod pay_timeout {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.PayTimeout", rename_all = "camelCase")]
pub struct PayTimeout {
    pub day: Option<java::LocalDate>,
    pub expire_time: Option<java::LocalDateTime>,
    pub message_id: Option<String>,
    pub order_id: Option<i64>,
}
}

pub(super) mod refund_task {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.RefundTask")]
pub struct RefundTask {
    pub amount: Option<java::BigDecimal>,
    pub id: i64,
    pub retry: i32,
    pub status: Option<RefundStatus>,
    pub urgent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.RefundStatus", rename_all = "UPPERCASE")]
pub enum RefundStatus {
    Created,
    Audited,
    Paid,
}
}

pub(super) mod inner {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Shapes$Inner")]
pub struct Inner {
    pub id: Option<i64>,
    pub name: Option<String>,
}
}

pub(super) mod non_static {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Shapes$NonStatic")]
pub struct NonStatic {
    pub id: Option<i64>,
}
}

pub(super) mod sku_stock_key {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SkuStockKey", rename_all = "camelCase")]
pub struct SkuStockKey {
    pub activity_id: Option<i64>,
    pub sku: Option<i64>,
}
}

pub(super) mod task_envelope {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.TaskEnvelope", rename_all = "camelCase")]
pub struct TaskEnvelope {
    pub queue_name: Option<String>,
    pub task: Option<BaseTask>,
}

/// One of several classes, as the class `com.example.shop.BaseTask` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.BaseTask")]
pub enum BaseTask {
    EmailTask(EmailTask),
    SmsTask(SmsTask),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.EmailTask", rename_all = "camelCase")]
pub struct EmailTask {
    pub execute_at: i64,
    pub subject: Option<String>,
    pub task_id: Option<String>,
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SmsTask", rename_all = "camelCase")]
pub struct SmsTask {
    pub execute_at: i64,
    pub phone: Option<String>,
    pub task_id: Option<String>,
    pub template: Option<i32>,
}
}

pub(super) mod workflow {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Workflow")]
pub struct Workflow {
    #[serde(with = "java::array")]
    pub fallbacks: Option<Vec<Option<BaseTask>>>,
    pub name: Option<String>,
    pub steps: Option<Vec<Step>>,
    pub tasks: Option<HashMap<String, BaseTask>>,
}

/// One of several classes, as the class `com.example.shop.BaseTask` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.BaseTask")]
pub enum BaseTask {
    EmailTask(EmailTask),
    SmsTask(SmsTask),
}

/// One of several classes, as the interface `com.example.shop.Step` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.Step")]
pub enum Step {
    Http(HttpStep),
    Sleep(SleepStep),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.EmailTask", rename_all = "camelCase")]
pub struct EmailTask {
    pub execute_at: i64,
    pub subject: Option<String>,
    pub task_id: Option<String>,
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SmsTask", rename_all = "camelCase")]
pub struct SmsTask {
    pub execute_at: i64,
    pub phone: Option<String>,
    pub task_id: Option<String>,
    pub template: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.HttpStep", rename_all = "camelCase")]
pub struct HttpStep {
    pub timeout_ms: i32,
    pub url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.example.shop.SleepStep")]
pub struct SleepStep {
    pub millis: i64,
}
}

pub(super) mod order {
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Order", rename_all = "camelCase")]
pub struct Order {
    pub address: Option<Address>,
    pub blob: Option<Vec<u8>>,
    pub counts: Option<HashMap<String, i32>>,
    pub coupon_id: Option<i64>,
    pub customer: Option<String>,
    pub id: i64,
    pub items: i32,
    pub lines: Option<Vec<Line>>,
    pub paid: bool,
    pub rank: Option<i32>,
    pub status: Option<Status>,
    pub tags: Option<Vec<String>>,
    pub total: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Address")]
pub struct Address {
    pub city: Option<String>,
    pub street: Option<String>,
    pub zip: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Line")]
pub struct Line {
    pub price: f64,
    pub quantity: i32,
    pub sku: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Status", rename_all = "UPPERCASE")]
pub enum Status {
    New,
    Paid,
    Shipped,
    Closed,
}
}

pub(super) mod refund_event {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$RefundEvent", rename_all = "camelCase")]
pub struct RefundEvent {
    pub at: i64,
    pub attempt: i16,
    pub flag: i8,
    pub kind: Option<String>,
    pub mark: u16,
    pub order_id: i64,
    pub ratio: f32,
    pub reason: Option<String>,
}
}

pub(super) mod ledger {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Ledger")]
pub struct Ledger {
    pub amount: Option<java::BigDecimal>,
    pub big: Option<java::BigInteger>,
    pub note: Option<java::optional::Of<Option<String>>>,
    pub r#ref: Option<java::Uuid>,
    pub when: Option<java::Date>,
}
}

pub(super) mod times {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Times")]
pub struct Times {
    pub day: Option<java::LocalDate>,
    pub gap: Option<java::Duration>,
    pub instant: Option<java::Instant>,
    pub local: Option<java::LocalDateTime>,
}
}

pub(super) mod nested {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Nested")]
pub struct Nested {
    pub grid: Option<Vec<Vec<String>>>,
    pub groups: Option<HashMap<String, Vec<i32>>>,
    #[serde(with = "java::array")]
    pub ints: Option<Vec<i32>>,
    #[serde(with = "java::array")]
    pub lines: Option<Vec<Option<Line>>>,
    #[serde(with = "java::linked_list")]
    pub linked: Option<Vec<i32>>,
    #[serde(with = "java::array")]
    pub longs: Option<Vec<i64>>,
    #[serde(with = "java::hash_set")]
    pub names: Option<Vec<String>>,
    #[serde(with = "java::tree_map")]
    pub tree: Option<BTreeMap<String, String>>,
    #[serde(with = "java::array")]
    pub words: Option<Vec<Option<String>>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Line")]
pub struct Line {
    pub price: f64,
    pub quantity: i32,
    pub sku: Option<String>,
}
}

pub(super) mod boxes {
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Boxes")]
pub struct Boxes {
    pub b: Option<bool>,
    pub c: Option<u16>,
    pub d: Option<f64>,
    pub f: Option<f32>,
    pub i: Option<i32>,
    pub l: Option<i64>,
    pub s: Option<i16>,
    pub y: Option<i8>,
}
}

pub(super) mod mixes {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Zoo$Mixes")]
pub struct Mixes {
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<Mixed>>>,
    pub keys: Option<HashMap<Mixed, i32>>,
    pub list: Option<Vec<Mixed>>,
    pub map: Option<HashMap<String, Mixed>>,
    pub one: Option<Mixed>,
    // Object: if a class of yours can be here, an enum with data
    pub open: java::Value,
    #[serde(with = "java::enum_set")]
    pub set: Option<Vec<Mixed>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "abstract(B, D) com.acme.Zoo$Mixed")]
pub enum Mixed {
    A,
    B,
    C,
    D,
}
}

pub(super) mod job {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Job", rename_all = "camelCase")]
pub struct Job {
    // Object: if a class of yours can be here, an enum with data
    pub any: java::Value,
    pub anys: Option<Vec<java::Value>>,
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<Task>>>,
    pub by_name: Option<HashMap<String, Task>>,
    pub props: Option<HashMap<String, java::Value>>,
    pub step: Option<Step>,
    #[serde(with = "java::array")]
    pub step_array: Option<Vec<Option<Step>>>,
    pub steps: Option<Vec<Step>>,
    pub task: Option<Task>,
    pub tasks: Option<Vec<Task>>,
}

/// One of several classes, as the class `com.acme.Tasks$Task` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Task")]
pub enum Task {
    Email(Email),
    Letter(Letter),
    Sms(Sms),
}

/// One of several classes, as the interface `com.acme.Tasks$Step` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Step")]
pub enum Step {
    Go(Go),
    Retry(Retry),
    Stop(Stop),
    Wait(Wait),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Email")]
pub struct Email {
    pub id: Option<String>,
    pub next: Option<Box<Task>>,
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Letter")]
pub struct Letter {
    pub id: Option<String>,
    pub lines: Option<Vec<String>>,
    pub millis: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "final com.acme.Tasks$Sms")]
pub struct Sms {
    pub cost: Option<java::BigDecimal>,
    pub id: Option<String>,
    pub template: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Go")]
pub struct Go {
    pub speed: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "abstract(OFTEN) com.acme.Tasks$Retry", rename_all = "UPPERCASE")]
pub enum Retry {
    Once,
    Often,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Stop", rename_all = "UPPERCASE")]
pub enum Stop {
    Now,
    Later,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.acme.Tasks$Wait")]
pub struct Wait {
    pub millis: i64,
    pub why: Option<String>,
}
}

pub(super) mod batch {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.acme.Tasks$Batch", rename_all = "camelCase")]
pub struct Batch {
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<Task>>>,
    pub by_name: Option<HashMap<String, Task>>,
    pub tasks: Option<Vec<Task>>,
}

/// One of several classes, as the class `com.acme.Tasks$Task` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Task")]
pub enum Task {
    Email(Email),
    Letter(Letter),
    Sms(Sms),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Email")]
pub struct Email {
    pub id: Option<String>,
    pub next: Option<Box<Task>>,
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Letter")]
pub struct Letter {
    pub id: Option<String>,
    pub lines: Option<Vec<String>>,
    pub millis: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "final com.acme.Tasks$Sms")]
pub struct Sms {
    pub cost: Option<java::BigDecimal>,
    pub id: Option<String>,
    pub template: Option<i32>,
}
}

pub(super) mod clock {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Clock", rename_all = "camelCase")]
pub struct Clock {
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<java::LocalDate>>>,
    #[serde(with = "java::array")]
    pub boxes: Option<Vec<Option<i64>>>,
    pub date: Option<java::Date>,
    pub day: Option<java::LocalDate>,
    pub gap: Option<java::Duration>,
    pub instant: Option<java::Instant>,
    pub list: Option<Vec<java::LocalDateTime>>,
    pub local: Option<java::LocalDateTime>,
    pub longs: Option<Vec<i64>>,
    pub map: Option<HashMap<String, java::Instant>>,
    #[serde(with = "java::month_day")]
    pub month_day: Option<String>,
    #[serde(with = "java::offset_date_time")]
    pub offset: Option<String>,
    #[serde(with = "java::offset_time")]
    pub offset_time: Option<String>,
    // Object: if a class of yours can be here, an enum with data
    pub open: java::Value,
    #[serde(with = "java::period")]
    pub period: Option<String>,
    pub time: Option<java::LocalTime>,
    pub uuid: Option<java::Uuid>,
    #[serde(with = "java::year")]
    pub year: Option<String>,
    #[serde(with = "java::year_month")]
    pub year_month: Option<String>,
    #[serde(with = "java::zone_id")]
    pub zone: Option<String>,
    #[serde(with = "java::zone_offset")]
    pub zone_offset: Option<String>,
    #[serde(with = "java::zoned_date_time")]
    pub zoned: Option<String>,
}
}

pub(super) mod fields {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Fields", rename_all = "camelCase")]
pub struct Fields {
    pub any: Option<Page>,
    pub by_name: Option<HashMap<String, PageOfTag>>,
    pub longs: Option<PageOfLong>,
    pub nested: Option<PageOfList>,
    pub opens: Option<PageOfOpen>,
    pub pages: Option<Vec<PageOfLong>>,
    pub raw: Option<Page>,
    pub tags: Option<PageOfTag>,
    pub wild: Option<PageOfNumber>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Page", rename_all = "camelCase")]
pub struct Page {
    // Object: if a class of yours can be here, an enum with data
    pub any: java::Value,
    // Object[]: the payload names the class
    pub array: java::Value,
    pub by_name: Option<HashMap<String, java::Value>>,
    // Object: if a class of yours can be here, an enum with data
    pub first: java::Value,
    pub items: Option<Vec<java::Value>>,
    pub next: Option<Box<Page>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Page", rename_all = "camelCase")]
pub struct PageOfTag {
    // Object: if a class of yours can be here, an enum with data
    pub any: java::Value,
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<Tag>>>,
    pub by_name: Option<HashMap<String, Tag>>,
    pub first: Option<Tag>,
    pub items: Option<Vec<Tag>>,
    pub next: Option<Box<PageOfTag>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Page", rename_all = "camelCase")]
pub struct PageOfLong {
    // Object: if a class of yours can be here, an enum with data
    pub any: java::Value,
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<i64>>>,
    pub by_name: Option<HashMap<String, i64>>,
    pub first: Option<i64>,
    pub items: Option<Vec<i64>>,
    pub next: Option<Box<PageOfLong>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Page", rename_all = "camelCase")]
pub struct PageOfList {
    // Object: if a class of yours can be here, an enum with data
    pub any: java::Value,
    // Object[]: the payload names the class
    pub array: java::Value,
    pub by_name: Option<HashMap<String, java::Value>>,
    // List: the payload names what is in it
    pub first: java::Value,
    pub items: Option<Vec<java::Value>>,
    pub next: Option<Box<PageOfList>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Page", rename_all = "camelCase")]
pub struct PageOfOpen {
    // Object: if a class of yours can be here, an enum with data
    pub any: java::Value,
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<AnyOpen>>>,
    pub by_name: Option<HashMap<String, AnyOpen>>,
    pub first: Option<AnyOpen>,
    pub items: Option<Vec<AnyOpen>>,
    pub next: Option<Box<PageOfOpen>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Page", rename_all = "camelCase")]
pub struct PageOfNumber {
    // Object: if a class of yours can be here, an enum with data
    pub any: java::Value,
    // Object[]: the payload names the class
    pub array: java::Value,
    pub by_name: Option<HashMap<String, java::Value>>,
    // Number: the payload names the class
    pub first: java::Value,
    pub items: Option<Vec<java::Value>>,
    pub next: Option<Box<PageOfNumber>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "final com.acme.Generic$Tag")]
pub struct Tag {
    pub name: Option<String>,
}

/// One of several classes, as the class `com.acme.Generic$Open` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Open")]
pub enum AnyOpen {
    Open(Open),
    Twice(Twice),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Open")]
pub struct Open {
    pub number: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Twice")]
pub struct Twice {
    pub number: Option<String>,
    // Two fields have the name `number`: Kryo cannot be read into a struct.
}
}

pub(super) mod bases {
use redisson_codec::java;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Bases", rename_all = "camelCase")]
pub struct Bases {
    pub base: Option<BaseOfLong>,
    pub list: Option<Vec<BaseOfLong>>,
    pub mid: Option<AnyMidOfLong>,
    pub sub: Option<AnySub>,
    pub sub_mid: Option<SubMid>,
}

/// One of several classes, as the class `com.acme.Generic$Base` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Base")]
pub enum BaseOfLong {
    MidOfLong(MidOfLong),
    Sub(Sub),
    SubMid(SubMid),
    SubSubOfLong(SubSubOfLong),
}

/// One of several classes, as the class `com.acme.Generic$Mid` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Mid")]
pub enum AnyMidOfLong {
    MidOfLong(MidOfLong),
    SubMid(SubMid),
}

/// One of several classes, as the class `com.acme.Generic$Sub` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Sub")]
pub enum AnySub {
    Sub(Sub),
    SubSub(SubSub),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$SubMid")]
pub struct SubMid {
    pub id: Option<String>,
    pub ids: Option<Vec<String>>,
    pub mine: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Mid")]
pub struct MidOfLong {
    pub id: Option<i64>,
    pub ids: Option<Vec<i64>>,
    pub mine: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Sub")]
pub struct Sub {
    pub id: Option<i64>,
    pub ids: Option<Vec<i64>>,
    pub own: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$SubSub")]
pub struct SubSubOfLong {
    pub id: Option<i64>,
    pub ids: Option<Vec<i64>>,
    pub own: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$SubSub")]
pub struct SubSub {
    // Object: if a class of yours can be here, an enum with data
    pub id: java::Value,
    pub ids: Option<Vec<java::Value>>,
    pub own: Option<String>,
}
}

pub(super) mod rec {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.acme.Generic$Rec")]
pub struct Rec {
    pub longs: Option<Vec<i64>>,
    pub map: Option<HashMap<String, i64>>,
    pub number: i32,
    pub open: Option<AnyOpen>,
    pub page: Option<Page>,
    pub tag: Option<Tag>,
}

/// One of several classes, as the class `com.acme.Generic$Open` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Open")]
pub enum AnyOpen {
    Open(Open),
    Twice(Twice),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Page", rename_all = "camelCase")]
pub struct Page {
    // Object: if a class of yours can be here, an enum with data
    pub any: java::Value,
    // Object[]: the payload names the class
    pub array: java::Value,
    pub by_name: Option<HashMap<String, java::Value>>,
    // Object: if a class of yours can be here, an enum with data
    pub first: java::Value,
    pub items: Option<Vec<java::Value>>,
    pub next: Option<Box<Page>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "final com.acme.Generic$Tag")]
pub struct Tag {
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Open")]
pub struct Open {
    pub number: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Twice")]
pub struct Twice {
    pub number: Option<String>,
    // Two fields have the name `number`: Kryo cannot be read into a struct.
}
}

pub(super) mod holder {
use redisson_codec::java;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Holder", rename_all = "camelCase")]
pub struct Holder {
    #[serde(with = "java::hash_set")]
    pub amounts: Option<Vec<java::BigDecimal>>,
    pub by_way: Option<HashMap<Way, i64>>,
    #[serde(with = "java::array")]
    pub deep: Option<Vec<Option<java::array::Of<Vec<Option<Tag>>>>>>,
    pub exact: f64,
    pub flag: bool,
    pub grid: Option<Vec<Vec<i64>>>,
    pub lines: Option<HashMap<i64, Vec<Tag>>>,
    pub lists: Option<Vec<java::object::Of<Names>>>,
    pub mark: u16,
    pub mixed: Option<Mixed>,
    pub mixed_list: Option<Vec<Mixed>>,
    // a `final` list or map: Kryo writes no class, and no Rust type is like this
    #[serde(with = "java::object")]
    pub names: Option<Names>,
    // Number: the payload names the class
    pub number: java::Value,
    #[serde(with = "java::array")]
    pub numbers: Option<Vec<Option<java::array::Of<Vec<i64>>>>>,
    #[serde(with = "java::array")]
    pub opens: Option<Vec<Option<AnyOpen>>>,
    pub optional: Option<java::optional::Of<Option<Tag>>>,
    #[serde(with = "java::object")]
    pub props: Option<Props>,
    pub ratio: f32,
    #[serde(with = "java::enum_set")]
    pub set: Option<Vec<Way>>,
    pub small: i16,
    #[serde(with = "java::tree_map")]
    pub sorted: Option<BTreeMap<String, Tag>>,
    #[serde(with = "java::array")]
    pub tags: Option<Vec<Option<Tag>>>,
    pub tiny: i8,
    #[serde(with = "java::object")]
    pub tree: Option<Tree>,
    pub trees: Option<Vec<java::object::Of<Tree>>>,
    pub way: Option<Way>,
    #[serde(with = "java::array")]
    pub way_array: Option<Vec<Option<Way>>>,
    pub ways: Option<Vec<Way>>,
    pub wild: Option<Vec<java::Value>>,
    pub wild_tags: Option<Vec<Tag>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Way", rename_all = "UPPERCASE")]
pub enum Way {
    Smtp,
    Pigeon,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "final com.acme.Generic$Tag")]
pub struct Tag {
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Names")]
pub struct Names(pub Vec<java::Value>);

// javac has also numbered an anonymous class among the arguments: no Rust type is like this enum
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "abstract(B, C) com.acme.Generic$Mixed")]
pub enum Mixed {
    A,
    B,
    C,
    D,
}

/// One of several classes, as the class `com.acme.Generic$Open` is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Open")]
pub enum AnyOpen {
    Open(Open),
    Twice(Twice),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Props")]
pub struct Props(pub HashMap<String, java::Value>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Tree")]
pub struct Tree(pub HashMap<String, java::Value>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Open")]
pub struct Open {
    pub number: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Generic$Twice")]
pub struct Twice {
    pub number: Option<String>,
    // Two fields have the name `number`: Kryo cannot be read into a struct.
}
}
