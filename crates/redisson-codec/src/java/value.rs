//! [`Value`]: any Java value.

mod display;
mod plain;

use std::borrow::Cow;

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

/// The Java name of a class, such as `java.util.ArrayList`.
pub type ClassName = Cow<'static, str>;

/// In a [`Value`]: an object that is written as its text, the one that the class prints and parses in Java.
///
/// The text of a `java.time.ZonedDateTime` from a Kryo payload has no offset: Kryo does not write it, because
/// it follows from the zone. A `Year` has at least 4 digits, and a sign where it has more.
///
/// # Examples
/// ```
/// # #[cfg(feature = "kryo")] {
/// use redisson_codec::java::{Text, Value};
/// use redisson_codec::{Codec, Kryo5};
///
/// let payload = b"\x01\x00java.time.OffsetDateTim\xe5\xe8\x0f\x01\x02\x03\xfb\x08";
/// let value: Value = Kryo5.decode(payload)?;
/// let text = "2024-01-02T03:04+02:00".to_owned();
/// assert_eq!(value, Value::Text(Box::new(Text { class: "java.time.OffsetDateTime".into(), text })));
/// assert_eq!(Kryo5.encode(&value)?, payload);
/// # }
/// # Ok::<(), redisson_codec::CodecError>(())
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

/// A constant of an enum. Kryo writes its number, Jackson its name. The constants of `java.time.DayOfWeek`,
/// `Month`, `ChronoUnit`, `TimeUnit` and `RoundingMode` have names in Kryo, too.
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
    /// The class of the comparator of a sorted collection, if it has one.
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
    /// The class of the comparator of a sorted collection, if it has one.
    pub comparator: Option<ClassName>,
    /// The entries, in order.
    pub entries: Vec<(Value, Value)>,
}

/// In a [`Value`]: an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The class, such as `[I` for `int[]` or `[Ljava.lang.String;` for `String[]`. Empty if a Jackson
    /// payload does not name it.
    pub class: ClassName,
    /// The elements; those of an `int[]` are [`Value::Integer`].
    pub elements: Vec<Value>,
}

/// In a [`Value`]: an object with fields.
///
/// In Kryo, only objects of Java's library have known field names: an `AtomicInteger` has a `value`, a
/// `java.sql.Timestamp` a `time`, a `Pattern` a `pattern` and `flags`.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The class. Empty if a Jackson payload does not name it, as for a record.
    pub class: ClassName,
    /// The fields, in the order in which they are written.
    pub fields: Vec<(String, Value)>,
}

/// In a [`Value`]: what a Jackson payload has behind the name of a class, where the codec cannot tell what it
/// is. It is encoded with the same bytes.
///
/// # Examples
/// ```
/// # #[cfg(feature = "json-jackson")] {
/// use redisson_codec::java::{Classed, Value};
/// use redisson_codec::{Codec, JsonJackson};
///
/// let payload = br#"["com.acme.Money",5]"#;
/// let value: Value = JsonJackson.decode(payload)?;
/// let classed = Classed { class: "com.acme.Money".into(), value: Value::Integer(5) };
/// assert_eq!(value, Value::Classed(Box::new(classed)));
/// assert_eq!(JsonJackson.encode(&value)?, payload);
/// # }
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Classed {
    /// The class.
    pub class: ClassName,
    /// What is behind it.
    pub value: Value,
}

/// In a [`Value`]: an object of a class of which the codec knows nothing. It is encoded with the same bytes.
///
/// Kryo does not write how long an object is, so this can only be a whole payload: one that is read as a
/// [`Value`], or as an enum with a variant of it, and whose class, or that of something in it, is unknown, or
/// which is too deep. In the second case the class is that of a list, map or array. See
/// [Several classes in one place](super#several-classes-in-one-place).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// The class.
    pub class: ClassName,
    /// What is behind the class in the payload.
    pub bytes: Vec<u8>,
}

/// In a [`Value`]: an object that Java's own serialization wrote within a Kryo payload. Redisson leaves
/// `Collections.unmodifiable…`, `synchronized…` and `checked…`, `EnumMap` and exceptions to it. It is encoded
/// with the same bytes.
///
/// The methods of [`Value`] that look inside, such as [`Value::elements`], see what it is.
///
/// # Examples
/// ```
/// # #[cfg(feature = "kryo")] {
/// use redisson_codec::java::Value;
/// use redisson_codec::{Codec, Kryo5};
///
/// // `new EnumMap<>(Status.class)`
/// let payload = b"\x01\x00java.util.EnumMa\xf0\xac\xed\x00\x05sr\x00\x11java.util.EnumMap\x06]}\xf7\xbe\x90|\xa1\
///     \x03\x00\x01L\x00\x07keyTypet\x00\x11Ljava/lang/Class;xpvr\x00\x0fcom.acme.Status\0\0\0\0\0\0\0\0\
///     \x12\x00\x00xr\x00\x0ejava.lang.Enum\0\0\0\0\0\0\0\0\x12\x00\x00xpw\x04\x00\x00\x00\x00x";
/// let value: Value = Kryo5.decode(payload)?;
/// let Value::Serialized(map) = &value else { panic!("{value}") };
/// assert_eq!((map.class(), map.value().unwrap().to_string()), ("java.util.EnumMap", "EnumMap{}".to_owned()));
/// assert_eq!(Kryo5.encode(&value)?, payload);
/// # }
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Serialized {
    class: String,
    value: Option<Value>,
    bytes: Vec<u8>,
    /// Of the stream before it, which it goes on with.
    follows: Option<u64>,
}

impl Serialized {
    #[cfg(feature = "kryo")]
    pub(crate) fn new(class: String, value: Option<Value>, bytes: Vec<u8>, follows: Option<u64>) -> Self {
        Self { class, value, bytes, follows }
    }

    /// The class of which the Kryo payload says that the object is.
    #[must_use]
    pub fn class(&self) -> &str {
        &self.class
    }

    /// What it is. `None` if it contains itself, nests deeper than 127 levels, has half of a surrogate pair
    /// in a text, or repeats an object so often that its value would be much larger than its bytes.
    ///
    /// An object of an application is a [`Value::Object`], with the fields that its class writes. What a
    /// method `writeObject` writes in addition is a field of this name. A constant of an enum has its name.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// What Java's own serialization wrote. If it wrote several objects of a class in a payload, those behind
    /// the first may refer to it, and have no header.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[cfg(feature = "kryo")]
    pub(crate) fn follows(&self) -> Option<u64> {
        self.follows
    }

    #[cfg(feature = "_jackson")]
    pub(crate) fn into_value(self) -> Option<Value> {
        self.value
    }
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
