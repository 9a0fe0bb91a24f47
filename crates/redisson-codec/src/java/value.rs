//! [`Value`]: any Java value.

mod display;
mod parts;
mod plain;

pub use parts::{
    Array, ClassName, Classed, Collection, Constant, Enum, EnumSet, Map, Object, Opaque, Serialized, Text,
};

use super::{BigDecimal, BigInteger, Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime, Uuid};

/// Any Java value, with its class. For payloads whose classes you do not want to declare, and for fields that
/// Java declares as `Object`.
///
/// All codecs that write Java objects share this type.
///
/// A decoded value encodes to the same bytes again. For other serde formats it is plain data: a map is a map,
/// a date is its text, and the classes are lost.
///
/// # Examples
/// ```
/// use redisson_codec::java::Value;
///
/// let order = Value::map([("id", Value::Long(7)), ("tags", Value::list([Value::from("new")]))]);
/// assert_eq!(order.get("id"), Some(&Value::Long(7)));
/// assert_eq!(order.to_string(), r#"{"id": 7L, "tags": ["new"]}"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `null`.
    Null,
    /// `java.lang.Boolean`.
    Boolean(bool),
    /// `java.lang.Byte`.
    Byte(i8),
    /// `java.lang.Short`.
    Short(i16),
    /// `java.lang.Character`: a unit of UTF-16.
    Character(u16),
    /// `java.lang.Integer`.
    Integer(i32),
    /// `java.lang.Long`.
    Long(i64),
    /// `java.lang.Float`.
    Float(f32),
    /// `java.lang.Double`.
    Double(f64),
    /// `java.lang.String`.
    String(String),
    /// `byte[]`.
    Bytes(Vec<u8>),
    /// `java.math.BigInteger`.
    BigInteger(BigInteger),
    /// `java.math.BigDecimal`.
    BigDecimal(BigDecimal),
    /// `java.util.UUID`.
    Uuid(Uuid),
    /// `java.util.Date`.
    Date(Date),
    /// `java.time.Instant`.
    Instant(Instant),
    /// `java.time.LocalDate`.
    LocalDate(LocalDate),
    /// `java.time.LocalTime`.
    LocalTime(LocalTime),
    /// `java.time.LocalDateTime`.
    LocalDateTime(LocalDateTime),
    /// `java.time.Duration`.
    Duration(Duration),
    /// `java.util.Optional`.
    Optional(Option<Box<Value>>),
    /// A class that is written as its text, such as `java.net.URI` or `java.time.OffsetDateTime`.
    Text(Box<Text>),
    /// A constant of an enum.
    Enum(Box<Enum>),
    /// A list, set or queue.
    Collection(Box<Collection>),
    /// A set of constants of an enum: `java.util.EnumSet`.
    EnumSet(Box<EnumSet>),
    /// A map.
    Map(Box<Map>),
    /// An array other than `byte[]`.
    Array(Box<Array>),
    /// An object with fields.
    Object(Box<Object>),
    /// In Jackson's formats, a class with something behind it that is no value of this class, or of which it
    /// is not known.
    Classed(Box<Classed>),
    /// In Kryo, an object of an unknown class that is a whole payload: its bytes.
    Opaque(Box<Opaque>),
    /// In Kryo, an object that Java's own serialization wrote, such as `Collections.unmodifiableList(…)`.
    Serialized(Box<Serialized>),
    /// In Jackson's formats, a value without the class that it would have as an `Object`: a `Long`, `Float`
    /// or `byte[]` where a field declares it. Kryo writes the value inside.
    Bare(Box<Value>),
}

impl Value {
    /// A `java.util.ArrayList`.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::Value;
    ///
    /// assert_eq!(Value::list([Value::Integer(1)]).class(), "java.util.ArrayList");
    /// ```
    pub fn list(elements: impl IntoIterator<Item = Value>) -> Self {
        let elements = elements.into_iter().collect();
        Value::Collection(Box::new(Collection {
            class: "java.util.ArrayList".into(),
            comparator: None,
            elements,
        }))
    }

    /// A `java.util.LinkedHashMap`.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::Value;
    ///
    /// assert_eq!(Value::map([("a", Value::Null)]).class(), "java.util.LinkedHashMap");
    /// ```
    pub fn map<K: Into<Value>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value)).collect();
        Value::Map(Box::new(Map { class: "java.util.LinkedHashMap".into(), comparator: None, entries }))
    }

    /// The Java class; `null` for a null.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::Value;
    ///
    /// assert_eq!(Value::Long(1).class(), "java.lang.Long");
    /// ```
    #[must_use]
    pub fn class(&self) -> &str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "java.lang.Boolean",
            Value::Byte(_) => "java.lang.Byte",
            Value::Short(_) => "java.lang.Short",
            Value::Character(_) => "java.lang.Character",
            Value::Integer(_) => "java.lang.Integer",
            Value::Long(_) => "java.lang.Long",
            Value::Float(_) => "java.lang.Float",
            Value::Double(_) => "java.lang.Double",
            Value::String(_) => "java.lang.String",
            Value::Bytes(_) => "[B",
            Value::BigInteger(_) => "java.math.BigInteger",
            Value::BigDecimal(_) => "java.math.BigDecimal",
            Value::Uuid(_) => "java.util.UUID",
            Value::Date(_) => "java.util.Date",
            Value::Instant(_) => "java.time.Instant",
            Value::LocalDate(_) => "java.time.LocalDate",
            Value::LocalTime(_) => "java.time.LocalTime",
            Value::LocalDateTime(_) => "java.time.LocalDateTime",
            Value::Duration(_) => "java.time.Duration",
            Value::Optional(_) => "java.util.Optional",
            Value::Text(text) => &text.class,
            Value::Enum(constant) => &constant.class,
            Value::Collection(collection) => &collection.class,
            Value::EnumSet(set) => &set.class,
            Value::Map(map) => &map.class,
            Value::Array(array) => &array.class,
            Value::Object(object) => &object.class,
            Value::Opaque(object) => &object.class,
            Value::Serialized(object) => object.class(),
            Value::Classed(classed) => &classed.class,
            Value::Bare(value) => value.class(),
        }
    }

    /// The value of a field of an object, or of a text key of a map.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::Value;
    ///
    /// let map = Value::map([("a", Value::Integer(1))]);
    /// assert_eq!(map.get("a"), Some(&Value::Integer(1)));
    /// assert_eq!(map.get("b"), None);
    /// ```
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(map) => {
                let is_key = |found: &Value| matches!(found, Value::String(found) if found == key);
                map.entries.iter().find_map(|(found, value)| is_key(found).then_some(value))
            }
            Value::Object(object) => {
                object.fields.iter().find_map(|(name, value)| (name == key).then_some(value))
            }
            Value::Serialized(object) => object.value()?.get(key),
            _ => None,
        }
    }

    /// The elements of a list, set or array.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::Value;
    ///
    /// assert_eq!(Value::list([Value::Null]).elements(), Some(&[Value::Null][..]));
    /// ```
    #[must_use]
    pub fn elements(&self) -> Option<&[Value]> {
        match self {
            Value::Collection(collection) => Some(&collection.elements),
            Value::Array(array) => Some(&array.elements),
            Value::Serialized(object) => object.value()?.elements(),
            _ => None,
        }
    }

    /// The text of a string.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::Value;
    ///
    /// assert_eq!(Value::from("a").as_str(), Some("a"));
    /// ```
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            Value::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The number of a `Byte`, `Short`, `Integer` or `Long`.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::Value;
    ///
    /// assert_eq!(Value::Short(-1).as_i64(), Some(-1));
    /// ```
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::Byte(number) => Some(number.into()),
            Value::Short(number) => Some(number.into()),
            Value::Integer(number) => Some(number.into()),
            Value::Long(number) => Some(number),
            Value::Bare(ref value) => value.as_i64(),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($kind:ty => $variant:ident;)*) => {$(
        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Value::$variant(value.into())
            }
        }
    )*};
}

from! {
    bool => Boolean;
    i8 => Byte;
    i16 => Short;
    i32 => Integer;
    i64 => Long;
    f32 => Float;
    f64 => Double;
    &str => String;
    String => String;
    BigInteger => BigInteger;
    BigDecimal => BigDecimal;
    Uuid => Uuid;
    Date => Date;
    Instant => Instant;
    LocalDate => LocalDate;
    LocalTime => LocalTime;
    LocalDateTime => LocalDateTime;
    Duration => Duration;
}
