//! [`Mapper`]: what an `ObjectMapper` of an application does in another way than Redisson's own.

#![cfg_attr(
    not(feature = "json-jackson"),
    allow(dead_code, unreachable_pub, reason = "only that codec has settings")
)]

use std::marker::PhantomData;
use std::sync::Arc;

use super::pattern::Pattern;
use crate::{AnyClass, CodecError};

/// An `ObjectMapper` of an application: `new JsonJacksonCodec(mapper)` or `new TypedJsonJacksonCodec(type,
/// mapper)` in Java, [`JsonJackson::with_mapper`](crate::JsonJackson::with_mapper) here. It starts as
/// Redisson's own mapper. Each method is a setting of the Java side; without it the payloads of such a mapper
/// are refused, or other bytes are written.
///
/// # Examples
/// A mapper that writes classes in front of objects, and times by a pattern:
/// ```
/// use redisson_codec::java::LocalDateTime;
/// use redisson_codec::{Codec, JsonJackson, Mapper};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Debug, PartialEq)]
/// #[serde(rename = "com.acme.Order", rename_all = "camelCase")]
/// struct Order {
///     user_id: Option<i64>,
///     paid: Option<LocalDateTime>,
/// }
///
/// let mapper = Mapper::new().wrapper_array().local_date_time("yyyy-MM-dd HH:mm:ss")?;
/// let codec = JsonJackson.with_mapper(mapper);
/// let payload = br#"["com.acme.Order",{"paid":"2024-02-29 12:34:56","userId":77}]"#;
/// let order: Order = codec.decode(payload)?;
/// assert_eq!(order.paid, "2024-02-29T12:34:56".parse().ok());
/// assert_eq!(codec.encode(&order)?, payload);
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[doc(alias = "ObjectMapper")]
#[derive(Clone, Debug, Default)]
pub struct Mapper {
    pub(super) typing: Typing,
    pub(super) times: Times,
    pub(super) local_date_time: Option<Pattern>,
    pub(super) local_date: Option<Pattern>,
    pub(super) local_time: Option<Pattern>,
    /// The format has bytes and numbers that JSON writes as texts.
    pub(super) is_binary: bool,
}

/// Where the classes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Typing {
    /// In the property `@class` of an object, and in front of other values, as Redisson's own mapper has
    /// them: `Long` and `UUID` are no final classes.
    #[default]
    Redisson,
    /// The same, with all final classes.
    Property,
    /// In front of all values.
    Wrapper,
    /// Nowhere.
    Nowhere,
}

impl Typing {
    /// Whether the class of an object is a property of it.
    pub(super) fn is_property(self) -> bool {
        matches!(self, Self::Redisson | Self::Property)
    }
}

/// How times are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Times {
    /// Not at all, but for `java.util.Date`.
    #[default]
    Refused,
    Numbers,
    Texts,
}

/// Redisson's own.
pub(super) static REDISSON: Mapper = Mapper::redisson(false);

/// The same in CBOR and MessagePack.
#[cfg(any(feature = "cbor-jackson", feature = "msgpack-jackson"))]
pub(super) static BINARY: Mapper = Mapper::redisson(true);

impl Mapper {
    const fn redisson(is_binary: bool) -> Self {
        Self {
            typing: Typing::Redisson,
            times: Times::Refused,
            local_date_time: None,
            local_date: None,
            local_time: None,
            is_binary,
        }
    }

    /// Redisson's own mapper, to be changed.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new());
    /// assert_eq!(codec.encode(&5i64)?, JsonJackson.encode(&5i64)?);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::redisson(false)
    }

    /// `mapper.activateDefaultTyping(validator, DefaultTyping.NON_FINAL)` in a
    /// `TypedJsonJacksonCodec(Object.class, mapper)`: the class of an object is in front of it, not in its
    /// property `@class`. `Long` and `UUID` are classes like others.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    /// use std::collections::HashMap;
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new().wrapper_array());
    /// let map = HashMap::from([("a".to_owned(), 5i64)]);
    /// assert_eq!(codec.encode(&map)?, br#"["java.util.HashMap",{"a":["java.lang.Long",5]}]"#);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn wrapper_array(self) -> Self {
        Self { typing: Typing::Wrapper, ..self }
    }

    /// `mapper.activateDefaultTyping(validator, DefaultTyping.NON_FINAL, As.PROPERTY)` in a
    /// `TypedJsonJacksonCodec(Object.class, mapper)`: the class of an object is its property `@class`, as
    /// Redisson's own mapper has it, but `Long` and `UUID` are classes like others.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// #[serde(rename = "com.acme.Order")]
    /// struct Order {
    ///     user: Option<i64>,
    /// }
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new().class_property());
    /// let order = Order { user: Some(7) };
    /// assert_eq!(codec.encode(&order)?, br#"{"@class":"com.acme.Order","user":7}"#);
    /// let redisson = JsonJackson.encode(&order)?;
    /// assert_eq!(redisson, br#"{"@class":"com.acme.Order","user":["java.lang.Long",7]}"#);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn class_property(self) -> Self {
        Self { typing: Typing::Property, ..self }
    }

    /// `new TypedJsonJacksonCodec(Order.class)`, or such a codec with a mapper: no classes at all. Unlike
    /// [`Json`](crate::Json), this writes the bytes that Redisson writes: sorted, without nulls, `byte[]` as
    /// base64.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Order {
    ///     user: i64,
    ///     note: Option<String>,
    ///     blob: Vec<u8>,
    /// }
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new().without_classes());
    /// let order = Order { user: 7, note: None, blob: vec![1, 2, 3] };
    /// assert_eq!(codec.encode(&order)?, br#"{"blob":"AQID","user":7}"#);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn without_classes(self) -> Self {
        Self { typing: Typing::Nowhere, ..self }
    }

    /// `mapper.registerModule(new JavaTimeModule())`: the times of `java.time` are numbers,
    /// `[2024,2,29,12,34]` or decimal seconds.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::LocalDate;
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new().java_time());
    /// assert_eq!(codec.encode(&LocalDate::new(2024, 2, 29).unwrap())?, b"[2024,2,29]");
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn java_time(self) -> Self {
        Self { times: Times::Numbers, ..self }
    }

    /// The same with `mapper.disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS)`: the times of
    /// `java.time` and `java.util.Date` are texts. A `Duration` is a number.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::Date;
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new().java_time_as_text());
    /// assert_eq!(codec.encode(&Date::from_millis(5))?, br#"["java.util.Date","1970-01-01T00:00:00.005+00:00"]"#);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn java_time_as_text(self) -> Self {
        Self { times: Times::Texts, ..self }
    }

    /// `addSerializer(LocalDateTime.class, new
    /// LocalDateTimeSerializer(DateTimeFormatter.ofPattern(pattern)))`, with the letters `yMdHmsSu` of such a
    /// pattern, texts in `'` and other characters. The same as `@JsonFormat(pattern = "…")` on each field of
    /// this type.
    ///
    /// # Errors
    /// When the pattern has another letter, or lacks a part of the time.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::Mapper;
    ///
    /// assert!(Mapper::new().local_date_time("yyyy-MM-dd'T'HH:mm:ss.SSS").is_ok());
    /// assert!(Mapper::new().local_date_time("yyyy-MM-dd").is_err());
    /// ```
    pub fn local_date_time(self, pattern: &str) -> Result<Self, CodecError> {
        Ok(Self { local_date_time: Some(Pattern::new(pattern, "yMdH")?), ..self.with_times() })
    }

    /// The same for `LocalDate`.
    ///
    /// # Errors
    /// As for [`local_date_time`](Self::local_date_time).
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::LocalDate;
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new().local_date("dd.MM.yyyy")?);
    /// assert_eq!(codec.encode(&LocalDate::new(2024, 2, 29).unwrap())?, br#""29.02.2024""#);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    pub fn local_date(self, pattern: &str) -> Result<Self, CodecError> {
        Ok(Self { local_date: Some(Pattern::new(pattern, "yMd")?), ..self.with_times() })
    }

    /// The same for `LocalTime`.
    ///
    /// # Errors
    /// As for [`local_date_time`](Self::local_date_time).
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::LocalTime;
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new().local_time("HH:mm")?);
    /// assert_eq!(codec.encode(&LocalTime::new(1, 2, 3, 0).unwrap())?, br#""01:02""#);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    pub fn local_time(self, pattern: &str) -> Result<Self, CodecError> {
        Ok(Self { local_time: Some(Pattern::new(pattern, "H")?), ..self.with_times() })
    }

    /// Serializers of one's own come with the module, which writes the other types as numbers.
    fn with_times(self) -> Self {
        match self.times {
            Times::Refused => self.java_time(),
            _ => self,
        }
    }
}

/// A codec with an `ObjectMapper` of an application. Returned by
/// [`JsonJackson::with_mapper`](crate::JsonJackson::with_mapper).
///
/// # Examples
/// ```
/// use redisson_codec::java::Instant;
/// use redisson_codec::{Codec, JsonJackson, Mapper};
///
/// let codec = JsonJackson.with_mapper(Mapper::new().java_time());
/// let instant: Instant = codec.decode(b"1709210096.789000000")?;
/// assert_eq!(instant.to_string(), "2024-02-29T12:34:56.789Z");
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct WithMapper<C> {
    pub(super) mapper: Arc<Mapper>,
    codec: PhantomData<C>,
}

impl<C> WithMapper<C> {
    pub(super) fn new(mapper: Mapper) -> Self {
        Self { mapper: Arc::new(mapper), codec: PhantomData }
    }

    /// Returns a codec that does not check the class names in a payload.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new().wrapper_array()).with_any_class();
    /// let texts: Vec<String> = codec.decode(br#"["com.acme.MyList",["a"]]"#)?;
    /// assert_eq!(texts, ["a"]);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn with_any_class(self) -> AnyClass<Self> {
        AnyClass(self)
    }
}
