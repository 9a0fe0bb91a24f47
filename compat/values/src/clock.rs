//! The class of `compat/java/src/main/java/com/acme/Clock.java`.

use redisson_codec::java::{self, Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime, Uuid, Value};
use serde::{Deserialize, Serialize};

use crate::zoo::Entries;

/// With any value, or a type of its own, where an `Object` is declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Clock", rename_all = "camelCase")]
#[serde(bound(serialize = "T: Serialize", deserialize = "T: Deserialize<'de>"))]
pub struct Clock<T = Value> {
    pub local: Option<LocalDateTime>,
    pub day: Option<LocalDate>,
    pub time: Option<LocalTime>,
    pub instant: Option<Instant>,
    pub gap: Option<Duration>,
    pub date: Option<Date>,
    #[serde(with = "java::object")]
    pub open: Option<T>,
    pub list: Option<Vec<LocalDateTime>>,
    pub map: Option<Entries<String, Instant>>,
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<LocalDate>>>,
    pub longs: Option<Vec<i64>>,
    #[serde(with = "java::array")]
    pub boxes: Option<Vec<Option<i64>>>,
    pub uuid: Option<Uuid>,
    #[serde(with = "java::offset_date_time")]
    pub offset: Option<String>,
    #[serde(with = "java::zoned_date_time")]
    pub zoned: Option<String>,
    #[serde(with = "java::offset_time")]
    pub offset_time: Option<String>,
    #[serde(with = "java::year")]
    pub year: Option<String>,
    #[serde(with = "java::year_month")]
    pub year_month: Option<String>,
    #[serde(with = "java::month_day")]
    pub month_day: Option<String>,
    #[serde(with = "java::period")]
    pub period: Option<String>,
    #[serde(with = "java::zone_id")]
    pub zone: Option<String>,
    #[serde(with = "java::zone_offset")]
    pub zone_offset: Option<String>,
}
