//! What the variants of a [`Value`] hold.

use std::borrow::Cow;

use super::Value;

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
/// let text = Text::new("java.time.OffsetDateTime", "2024-01-02T03:04+02:00");
/// assert_eq!(value, Value::Text(Box::new(text)));
/// assert_eq!(Kryo5.encode(&value)?, payload);
/// # }
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Text {
    /// The class, such as `java.net.URI`.
    pub class: ClassName,
    /// The text.
    pub text: String,
}

impl Text {
    /// An object of this class, with this text.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::{Text, Value};
    ///
    /// let uri = Value::Text(Box::new(Text::new("java.net.URI", "https://acme.com")));
    /// assert_eq!(uri.class(), "java.net.URI");
    /// ```
    pub fn new(class: impl Into<ClassName>, text: impl Into<String>) -> Self {
        Self { class: class.into(), text: text.into() }
    }
}

/// In a [`Value`]: a constant of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enum {
    /// The class.
    pub class: ClassName,
    /// Which constant.
    pub constant: Constant,
}

impl Enum {
    /// A constant of this class.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::{Constant, Enum, Value};
    ///
    /// let paid = Enum::new("com.acme.Status", Constant::Name("PAID".into()));
    /// assert_eq!(Value::Enum(Box::new(paid)).to_string(), "Status.PAID");
    /// ```
    pub fn new(class: impl Into<ClassName>, constant: Constant) -> Self {
        Self { class: class.into(), constant }
    }
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
#[non_exhaustive]
pub struct Collection {
    /// The class, such as `java.util.ArrayList`.
    pub class: ClassName,
    /// The class of the comparator of a sorted collection, if it has one.
    pub comparator: Option<ClassName>,
    /// The elements.
    pub elements: Vec<Value>,
}

impl Collection {
    /// A list, set or queue of this class, without a comparator.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::{Collection, Value};
    ///
    /// let set = Collection::new("java.util.HashSet", [Value::Integer(1)]);
    /// assert_eq!(set.elements.len(), 1);
    /// ```
    pub fn new(class: impl Into<ClassName>, elements: impl IntoIterator<Item = Value>) -> Self {
        Self { class: class.into(), comparator: None, elements: elements.into_iter().collect() }
    }
}

/// In a [`Value`]: `java.util.RegularEnumSet` or `java.util.JumboEnumSet`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnumSet {
    /// The class of the set.
    pub class: ClassName,
    /// The class of the enum.
    pub element: ClassName,
    /// The constants in it.
    pub constants: Vec<Constant>,
}

impl EnumSet {
    /// A set of constants of the class `element`.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::{Constant, EnumSet};
    ///
    /// let paid = Constant::Name("PAID".into());
    /// let set = EnumSet::new("java.util.RegularEnumSet", "com.acme.Status", [paid]);
    /// assert_eq!(set.constants.len(), 1);
    /// ```
    pub fn new(
        class: impl Into<ClassName>,
        element: impl Into<ClassName>,
        constants: impl IntoIterator<Item = Constant>,
    ) -> Self {
        Self { class: class.into(), element: element.into(), constants: constants.into_iter().collect() }
    }
}

/// In a [`Value`]: a map.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Map {
    /// The class, such as `java.util.LinkedHashMap`.
    pub class: ClassName,
    /// The class of the comparator of a sorted collection, if it has one.
    pub comparator: Option<ClassName>,
    /// The entries, in order.
    pub entries: Vec<(Value, Value)>,
}

impl Map {
    /// A map of this class, without a comparator.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::{Map, Value};
    ///
    /// let map = Map::new("java.util.TreeMap", [(Value::from("a"), Value::Integer(1))]);
    /// assert_eq!(Value::Map(Box::new(map)).get("a"), Some(&Value::Integer(1)));
    /// ```
    pub fn new(class: impl Into<ClassName>, entries: impl IntoIterator<Item = (Value, Value)>) -> Self {
        Self { class: class.into(), comparator: None, entries: entries.into_iter().collect() }
    }
}

/// In a [`Value`]: an array.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Array {
    /// The class, such as `[I` for `int[]` or `[Ljava.lang.String;` for `String[]`. Empty if a Jackson
    /// payload does not name it.
    pub class: ClassName,
    /// The elements; those of an `int[]` are [`Value::Integer`].
    pub elements: Vec<Value>,
}

impl Array {
    /// An array of this class.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::{Array, Value};
    ///
    /// let array = Array::new("[I", [Value::Integer(1), Value::Integer(2)]);
    /// assert_eq!(array.elements.len(), 2);
    /// ```
    pub fn new(class: impl Into<ClassName>, elements: impl IntoIterator<Item = Value>) -> Self {
        Self { class: class.into(), elements: elements.into_iter().collect() }
    }
}

/// In a [`Value`]: an object with fields.
///
/// In Kryo, only objects of Java's library have known field names: an `AtomicInteger` has a `value`, a
/// `java.sql.Timestamp` a `time`, a `Pattern` a `pattern` and `flags`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Object {
    /// The class. Empty if a Jackson payload does not name it, as for a record.
    pub class: ClassName,
    /// The fields, in the order in which they are written.
    pub fields: Vec<(String, Value)>,
}

impl Object {
    /// An object of this class, with these fields in this order.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::{Object, Value};
    ///
    /// let order = Object::new("com.acme.Order", [("id", Value::Long(7))]);
    /// assert_eq!(Value::Object(Box::new(order)).get("id"), Some(&Value::Long(7)));
    /// ```
    pub fn new(
        class: impl Into<ClassName>,
        fields: impl IntoIterator<Item = (impl Into<String>, Value)>,
    ) -> Self {
        Self {
            class: class.into(),
            fields: fields.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        }
    }
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
/// let classed = Classed::new("com.acme.Money", Value::Integer(5));
/// assert_eq!(value, Value::Classed(Box::new(classed)));
/// assert_eq!(JsonJackson.encode(&value)?, payload);
/// # }
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Classed {
    /// The class.
    pub class: ClassName,
    /// The value behind its name.
    pub value: Value,
}

impl Classed {
    /// A value behind the name of this class.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::{Classed, Value};
    ///
    /// let money = Classed::new("com.acme.Money", Value::Integer(5));
    /// assert_eq!(Value::Classed(Box::new(money)).class(), "com.acme.Money");
    /// ```
    pub fn new(class: impl Into<ClassName>, value: Value) -> Self {
        Self { class: class.into(), value }
    }
}

/// In a [`Value`]: an object of a class of which the codec knows nothing. It is encoded with the same bytes.
///
/// Kryo does not write how long an object is, so this can only be a whole payload: one that is read as a
/// [`Value`], or as an enum with a variant of it, and whose class, or that of something in it, is unknown, or
/// which is too deep. In the second case the class is that of a list, map or array. See
/// [Several classes in one place](crate::java#several-classes-in-one-place).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opaque {
    /// The class.
    pub class: ClassName,
    /// The bytes behind the class in the payload.
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
