//! [`Value`]: any Java value.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::marker::VALUE;
use super::{
    BigDecimal, BigInteger, Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime, Uuid, handover,
};

/// Any Java value, with the class that it has there: for payloads whose classes one does not want to declare, and for
/// fields that Java declares as `Object`.
///
/// What was decoded is encoded to the same bytes again. For other serde formats it is plain data: a map is a map, a date
/// its text, and the classes are gone.
///
/// # Examples
/// ```
/// use redelay::codec::java::Value;
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
    /// A class that is its text, such as `java.net.URI` or `java.time.OffsetDateTime`.
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
    /// In Jackson's formats, a value that stands without the class which it would have as an `Object`: a `Long`, `Float`
    /// or `byte[]` where a field declares it. For Kryo it is what is inside.
    Bare(Box<Value>),
}

/// The Java name of a class, such as `java.util.ArrayList`.
pub type ClassName = Cow<'static, str>;

/// In a [`Value`]: what is its text, which is the one that the class in Java reads and prints.
///
/// That of a `java.time.ZonedDateTime` has no offset when it comes from Kryo, which does not write it: it follows from the
/// zone. A `Year` always has 4 digits, and a sign where it has more.
///
/// # Examples
/// ```
/// # #[cfg(feature = "kryo")] {
/// use redelay::codec::java::{Text, Value};
/// use redelay::codec::{Codec, Kryo5};
///
/// let payload = b"\x01\x00java.time.OffsetDateTim\xe5\xe8\x0f\x01\x02\x03\xfb\x08";
/// let value: Value = Kryo5.decode(payload)?;
/// let text = "2024-01-02T03:04+02:00".to_owned();
/// assert_eq!(value, Value::Text(Box::new(Text { class: "java.time.OffsetDateTime".into(), text })));
/// assert_eq!(Kryo5.encode(&value)?, payload);
/// # }
/// # Ok::<(), redelay::codec::CodecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The class, such as `java.net.URI`.
    pub class: ClassName,
    /// The text.
    pub text: String,
}

/// In a [`Value`]: a constant of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enum {
    /// The class.
    pub class: ClassName,
    /// Which constant.
    pub constant: Constant,
}

/// Which constant of an enum: Kryo writes its number, Jackson its name. Those of `java.time.DayOfWeek`, `Month`,
/// `ChronoUnit`, `TimeUnit` and `RoundingMode` have names with Kryo, too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Constant {
    /// Counted from 0 in the order of declaration.
    Ordinal(u32),
    /// The name.
    Name(String),
}

/// In a [`Value`]: a list, set or queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// The class, such as `java.util.ArrayList`.
    pub class: ClassName,
    /// The class of the comparator of a sorted one, if it has one.
    pub comparator: Option<ClassName>,
    /// The elements.
    pub elements: Vec<Value>,
}

/// In a [`Value`]: `java.util.RegularEnumSet` or `java.util.JumboEnumSet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumSet {
    /// The class of the set.
    pub class: ClassName,
    /// The class of the enum.
    pub element: ClassName,
    /// The constants in it.
    pub constants: Vec<Constant>,
}

/// In a [`Value`]: a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// The class, such as `java.util.LinkedHashMap`.
    pub class: ClassName,
    /// The class of the comparator of a sorted one, if it has one.
    pub comparator: Option<ClassName>,
    /// The entries, in order.
    pub entries: Vec<(Value, Value)>,
}

/// In a [`Value`]: an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The class, such as `[I` for `int[]` or `[Ljava.lang.String;` for `String[]`. Empty where a payload of Jackson's
    /// does not say it.
    pub class: ClassName,
    /// The elements; those of an `int[]` are [`Value::Integer`].
    pub elements: Vec<Value>,
}

/// In a [`Value`]: an object with fields.
///
/// Kryo has the names of fields only in classes of Java's library: an `AtomicInteger` has a `value`, a
/// `java.sql.Timestamp` a `time`, a `Pattern` a `pattern` and `flags`.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The class. Empty where a payload of Jackson's does not say it, as of a record.
    pub class: ClassName,
    /// The fields, in the order in which they are written.
    pub fields: Vec<(String, Value)>,
}

impl Value {
    /// A `java.util.ArrayList`.
    ///
    /// # Examples
    /// ```
    /// use redelay::codec::java::Value;
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
    /// use redelay::codec::java::Value;
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
    /// use redelay::codec::java::Value;
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
            Value::Bare(value) => value.class(),
        }
    }

    /// The value of a field of an object, or of a text key of a map.
    ///
    /// # Examples
    /// ```
    /// use redelay::codec::java::Value;
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
            _ => None,
        }
    }

    /// The elements of a list, set or array.
    ///
    /// # Examples
    /// ```
    /// use redelay::codec::java::Value;
    ///
    /// assert_eq!(Value::list([Value::Null]).elements(), Some(&[Value::Null][..]));
    /// ```
    #[must_use]
    pub fn elements(&self) -> Option<&[Value]> {
        match self {
            Value::Collection(collection) => Some(&collection.elements),
            Value::Array(array) => Some(&array.elements),
            _ => None,
        }
    }

    /// The text of a string.
    ///
    /// # Examples
    /// ```
    /// use redelay::codec::java::Value;
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
    /// use redelay::codec::java::Value;
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

/// Readable, and short: the classes of lists, maps and texts are left out where they are the usual ones.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Boolean(value) => value.fmt(f),
            Value::Byte(value) => write!(f, "(byte) {value}"),
            Value::Short(value) => write!(f, "(short) {value}"),
            Value::Character(value) => match char::from_u32((*value).into()) {
                Some(value) => write!(f, "{value:?}"),
                None => write!(f, "'\\u{value:04x}'"),
            },
            Value::Integer(value) => value.fmt(f),
            Value::Long(value) => write!(f, "{value}L"),
            Value::Float(value) => write!(f, "{value:?}f"),
            Value::Double(value) => write!(f, "{value:?}"),
            Value::String(value) => write!(f, "{value:?}"),
            Value::Bytes(value) => {
                f.write_str("0x")?;
                value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::BigInteger(value) => value.fmt(f),
            Value::BigDecimal(value) => value.fmt(f),
            Value::Uuid(value) => value.fmt(f),
            Value::Date(value) => {
                let millis = value.millis();
                let nanos = millis.rem_euclid(1000) as u32 * 1_000_000;
                match Instant::new(millis.div_euclid(1000), nanos) {
                    Some(instant) => instant.fmt(f),
                    None => write!(f, "Date({millis})"),
                }
            }
            Value::Instant(value) => value.fmt(f),
            Value::LocalDate(value) => value.fmt(f),
            Value::LocalTime(value) => value.fmt(f),
            Value::LocalDateTime(value) => value.fmt(f),
            Value::Duration(value) => value.fmt(f),
            Value::Optional(None) => f.write_str("Optional.empty"),
            Value::Optional(Some(value)) => write!(f, "Optional({value})"),
            Value::Text(value) => value.text.fmt(f),
            Value::Enum(value) => write!(f, "{}.{}", short(&value.class), value.constant),
            Value::Collection(value) => {
                class(f, &value.class, &["java.util.ArrayList"])?;
                list(f, "[", &value.elements, "]", |f, element| element.fmt(f))
            }
            Value::EnumSet(value) => {
                f.write_str(short(&value.element))?;
                list(f, "[", &value.constants, "]", |f, constant| constant.fmt(f))
            }
            Value::Array(value) => {
                array(f, &value.class)?;
                list(f, "{", &value.elements, "}", |f, element| element.fmt(f))
            }
            Value::Map(value) => {
                class(f, &value.class, &["java.util.LinkedHashMap", "java.util.HashMap"])?;
                list(f, "{", &value.entries, "}", |f, (key, value)| write!(f, "{key}: {value}"))
            }
            Value::Object(value) => {
                f.write_str(short(&value.class))?;
                list(f, "{", &value.fields, "}", |f, (name, value)| write!(f, "{name}: {value}"))
            }
            Value::Bare(value) => value.fmt(f),
        }
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::Ordinal(ordinal) => write!(f, "{ordinal}"),
            Constant::Name(name) => f.write_str(name),
        }
    }
}

/// Without the package.
fn short(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

fn class(f: &mut fmt::Formatter<'_>, class: &str, usual: &[&str]) -> fmt::Result {
    if usual.contains(&class) { Ok(()) } else { f.write_str(short(class)) }
}

/// Like `int[]`, as Java's sources have it.
fn array(f: &mut fmt::Formatter<'_>, class: &str) -> fmt::Result {
    let element = class.trim_start_matches('[');
    f.write_str(match element {
        "B" => "byte",
        "C" => "char",
        "D" => "double",
        "F" => "float",
        "I" => "int",
        "J" => "long",
        "S" => "short",
        "Z" => "boolean",
        _ => short(element.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(element)),
    })?;
    (0..class.len() - element.len()).try_for_each(|_| f.write_str("[]"))
}

fn list<T>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: &[T],
    close: &str,
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    f.write_str(close)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_newtype_struct(VALUE, &Inside(self))
    }
}

/// What other formats see: plain data.
struct Inside<'a>(&'a Value);

impl Serialize for Inside<'_> {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        if handover::put(|| self.0.clone()) {
            return output.serialize_unit();
        }
        match self.0 {
            Value::Null | Value::Optional(None) => output.serialize_unit(),
            Value::Boolean(value) => value.serialize(output),
            Value::Byte(value) => value.serialize(output),
            Value::Short(value) => value.serialize(output),
            Value::Character(value) => String::from_utf16_lossy(&[*value]).serialize(output),
            Value::Integer(value) => value.serialize(output),
            Value::Long(value) => value.serialize(output),
            Value::Float(value) => value.serialize(output),
            Value::Double(value) => value.serialize(output),
            Value::String(value) => value.serialize(output),
            Value::Bytes(value) => output.serialize_bytes(value),
            Value::BigInteger(value) => value.serialize(output),
            Value::BigDecimal(value) => value.serialize(output),
            Value::Uuid(value) => value.serialize(output),
            Value::Date(value) => value.serialize(output),
            Value::Instant(value) => value.serialize(output),
            Value::LocalDate(value) => value.serialize(output),
            Value::LocalTime(value) => value.serialize(output),
            Value::LocalDateTime(value) => value.serialize(output),
            Value::Duration(value) => value.serialize(output),
            Value::Optional(Some(value)) => Inside(value).serialize(output),
            Value::Text(value) => value.text.serialize(output),
            Value::Enum(value) => value.constant.serialize(output),
            Value::Collection(value) => output.collect_seq(value.elements.iter().map(Inside)),
            Value::EnumSet(value) => output.collect_seq(&value.constants),
            Value::Array(value) => output.collect_seq(value.elements.iter().map(Inside)),
            Value::Map(value) => {
                output.collect_map(value.entries.iter().map(|(key, value)| (Inside(key), Inside(value))))
            }
            Value::Object(value) => {
                let mut map = output.serialize_map(Some(value.fields.len()))?;
                value
                    .fields
                    .iter()
                    .try_for_each(|(name, value)| map.serialize_entry(name, &Inside(value)))?;
                map.end()
            }
            Value::Bare(value) => Inside(value).serialize(output),
        }
    }
}

impl Serialize for Constant {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        match self {
            Constant::Ordinal(ordinal) => ordinal.serialize(output),
            Constant::Name(name) => name.serialize(output),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_newtype_struct(VALUE, Plain)
    }
}

/// Reads what was handed over or, in other formats, plain data.
struct Plain;

/// A [`Value`] within plain data.
struct Within(Value);

impl<'de> Deserialize<'de> for Within {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(Plain).map(Within)
    }
}

impl<'de> Visitor<'de> for Plain {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        match handover::take() {
            Some(value) => Ok(value),
            None => input.deserialize_any(self),
        }
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        input.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(i32::try_from(value).map_or(Value::Long(value), Value::Integer))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Ok(Value::BigInteger(i128::from(value).into())),
        }
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Value, E> {
        Ok(Value::Bytes(value.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(Within(element)) = input.next_element()? {
            elements.push(element);
        }
        Ok(Value::list(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((Within(key), Within(value))) = input.next_entry()? {
            entries.push((key, value));
        }
        Ok(Value::map(entries))
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, _: A) -> Result<Value, A::Error> {
        Err(A::Error::custom("an enum is no plain value"))
    }
}
