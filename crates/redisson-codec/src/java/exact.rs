//! Numbers of any length, and decimal seconds, from formats that know nothing of Java, with all their digits.
//!
//! `serde_json` hands over a double for each number with a fraction and each beyond 64 bits, so that `9.90`
//! becomes 9.9, and 12345678901234567.89 another number. But it gives the text of a number to a type that
//! asks for its `RawValue`.

use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// The most characters of a number: as many digits as one of Kryo may have. To read one takes more than
/// linear time.
const LONGEST: usize = 160_000;

/// Reads a number, or a text that is one.
pub(super) fn read<'de, V: Visitor<'de>, D: Deserializer<'de>>(
    input: D,
    visitor: V,
) -> Result<V::Value, D::Error> {
    // Such a format may have got its doubles from a text, as `serde_json` has inside of `flatten`. Elsewhere
    // a double is what was written.
    let from_text = input.is_human_readable();
    let visitor = Exact { visitor, from_text };
    #[cfg(feature = "json")]
    if let Some(name) = raw::name() {
        return input.deserialize_newtype_struct(name, visitor);
    }
    input.deserialize_any(visitor)
}

struct Exact<V> {
    visitor: V,
    from_text: bool,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Exact<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    /// Of any format but `serde_json`.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, input: D) -> Result<V::Value, D::Error> {
        input.deserialize_any(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, input: A) -> Result<V::Value, A::Error> {
        #[cfg(feature = "json")]
        return self.visit_str(&raw::text(input)?);
        #[cfg(not(feature = "json"))]
        return self.visitor.visit_map(input);
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        if text.len() > LONGEST {
            let why = format!("a number of {} characters, more than the {LONGEST} that are read", text.len());
            return Err(E::custom(why));
        }
        self.visitor.visit_str(text)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<V::Value, E> {
        self.visitor.visit_i64(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<V::Value, E> {
        self.visitor.visit_u64(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<V::Value, E> {
        // Each decimal of this many digits has a double of its own.
        if self.from_text && digits(number) > f64::DIGITS as usize {
            return Err(E::custom(
                "a number that came as a double, which may have lost digits: send it as a text",
            ));
        }
        self.visitor.visit_f64(number)
    }
}

/// How many digits it takes to write the number down.
fn digits(number: f64) -> usize {
    let text = format!("{number:e}");
    text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count()
}

/// `serde_json::value::RawValue`, of which only its name is not public.
#[cfg(feature = "json")]
mod raw {
    use std::fmt;

    use serde::Deserialize;
    use serde::de::value::MapAccessDeserializer;
    use serde::de::{Deserializer, Error, MapAccess, Visitor};
    use serde_json::value::RawValue;

    /// The text of a number, or what is in a JSON text.
    pub(super) fn text<'de, A: MapAccess<'de>>(input: A) -> Result<String, A::Error> {
        let raw = Box::<RawValue>::deserialize(MapAccessDeserializer::new(input))?;
        match raw.get().as_bytes().first() {
            Some(b'"') => {
                serde_json::from_str(raw.get()).map_err(|_| A::Error::custom("half of a surrogate pair"))
            }
            Some(b'-' | b'0'..=b'9') => Ok(raw.get().to_owned()),
            _ => Err(A::Error::custom("expected a number or a text")),
        }
    }

    /// The name by which it is asked for.
    pub(super) fn name() -> Option<&'static str> {
        match <&RawValue>::deserialize(Name) {
            Err(Asked(name)) => name,
            Ok(_) => None,
        }
    }

    struct Name;

    #[derive(Debug)]
    struct Asked(Option<&'static str>);

    impl fmt::Display for Asked {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("asked for")
        }
    }

    impl std::error::Error for Asked {}

    impl Error for Asked {
        fn custom<T: fmt::Display>(_: T) -> Self {
            Asked(None)
        }
    }

    impl<'de> Deserializer<'de> for Name {
        type Error = Asked;

        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            name: &'static str,
            _: V,
        ) -> Result<V::Value, Asked> {
            Err(Asked(Some(name)))
        }

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Asked> {
            Err(Asked(None))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }
}
