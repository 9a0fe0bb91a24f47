//! Probes a type's `Deserialize`: what does it request at one place? No value is ever made up.
//!
//! The probe is a deserializer that follows a path of steps, each of which the type requests by itself: a
//! field of a struct, the elements of a list. At the end of the path it fails, and the error is what the type
//! requested there.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

/// A step into a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A field of a struct.
    Field(&'static str),
    /// A variant of an enum.
    Variant(&'static str),
    /// The name of a field or variant. Nothing is behind it.
    Name(&'static str),
    /// The elements of a list.
    Element,
    /// The keys of a map.
    Key,
    /// The values of a map.
    Value,
    /// The inside of an `Option`.
    Some,
    /// The inside of a newtype.
    Newtype,
}

/// What a type requests from a deserializer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requested {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    F32,
    F64,
    Char,
    Str,
    Bytes,
    Option,
    Seq,
    Map,
    /// A variant without data.
    Unit,
    /// A variant with one value.
    Data,
    Newtype(&'static str),
    Struct {
        name: &'static str,
        rust: &'static str,
        fields: &'static [&'static str],
    },
    Enum {
        name: &'static str,
        rust: &'static str,
        variants: &'static [&'static str],
    },
    /// Which field or variant a name stands for: the hash of what `serde_derive` reads names into.
    Name(u64),
    /// Why it is none of these.
    Unsupported(&'static str),
}

impl fmt::Display for Requested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Requested::Str | Requested::Char => "a text",
            Requested::Bytes => "an array of bytes",
            Requested::Option => "an `Option`",
            Requested::Seq => "a list",
            Requested::Map => "a map",
            Requested::Unit | Requested::Data | Requested::Name(_) | Requested::Unsupported(_) => "this",
            Requested::Newtype(_) => "a newtype",
            Requested::Struct { .. } => "a struct",
            Requested::Enum { .. } => "an enum",
            Requested::Bool => "a `bool`",
            _ => "a number",
        })
    }
}

/// What `T` requests at the end of the path.
pub(crate) fn probe<T: DeserializeOwned>(path: &[Step]) -> Result<Requested, String> {
    match T::deserialize(Probe { path }) {
        Err(Answer::Requested(requested)) => Ok(requested),
        Err(Answer::Failed(why)) => Err(format!("its `Deserialize` cannot be asked: {why}")),
        Ok(_) => Err("its `Deserialize` makes a value of nothing".to_owned()),
    }
}

/// Every run ends with an error, which normally is the answer.
#[derive(Debug)]
enum Answer {
    Requested(Requested),
    Failed(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Answer {}

impl Error for Answer {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Answer::Failed(message.to_string())
    }
}

#[derive(Clone, Copy)]
struct Probe<'p> {
    path: &'p [Step],
}

impl<'p> Probe<'p> {
    /// The path behind this step; at its end, the answer.
    fn step(self, requested: Requested) -> Result<(Step, Probe<'p>), Answer> {
        match self.path {
            [] => Err(Answer::Requested(requested)),
            [step, path @ ..] => Ok((*step, Probe { path })),
        }
    }

    fn end<T>(self, requested: Requested) -> Result<T, Answer> {
        match self.path {
            [] => Err(Answer::Requested(requested)),
            _ => Err(changed()),
        }
    }
}

fn changed() -> Answer {
    Answer::Failed("it asks for something else each time".to_owned())
}

macro_rules! ends {
    ($($method:ident $requested:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Answer> {
            self.end($requested)
        }
    )*};
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Answer;

    ends! {
        deserialize_bool Requested::Bool;
        deserialize_i8 Requested::I8;
        deserialize_i16 Requested::I16;
        deserialize_i32 Requested::I32;
        deserialize_i64 Requested::I64;
        deserialize_u8 Requested::U8;
        deserialize_u16 Requested::U16;
        deserialize_f32 Requested::F32;
        deserialize_f64 Requested::F64;
        deserialize_char Requested::Char;
        deserialize_str Requested::Str;
        deserialize_string Requested::Str;
        deserialize_bytes Requested::Bytes;
        deserialize_byte_buf Requested::Bytes;
        deserialize_u32 Requested::Unsupported("`u32` has no Java type: use `i32` or `i64`");
        deserialize_u64 Requested::Unsupported("`u64` has no Java type: use `i64` or `java::BigInteger`");
        deserialize_i128 Requested::Unsupported("`i128` has no Java type: use `java::BigInteger`");
        deserialize_u128 Requested::Unsupported("`u128` has no Java type: use `java::BigInteger`");
        deserialize_unit Requested::Unsupported("`()` has no Java type");
        deserialize_any Requested::Unsupported(
            "it takes whatever is there (an untagged or tagged enum, a JSON value): use `java::Value`"
        );
        deserialize_identifier Requested::Unsupported("`flatten` has no counterpart in Java: `rest(…)` keeps unknown properties");
        deserialize_ignored_any Requested::Unsupported("it takes whatever is there: use `java::Value`");
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Answer> {
        match self.step(Requested::Option)? {
            (Step::Some, inside) => visitor.visit_some(inside),
            _ => Err(changed()),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Answer> {
        match self.step(Requested::Newtype(name))? {
            (Step::Newtype, inside) => visitor.visit_newtype_struct(inside),
            _ => Err(changed()),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, _: V) -> Result<V::Value, Answer> {
        self.end(Requested::Struct { name, rust: std::any::type_name::<V::Value>(), fields: &[] })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Answer> {
        let rust = std::any::type_name::<V::Value>();
        match self.step(Requested::Struct { name, rust, fields })? {
            (step @ (Step::Field(name) | Step::Name(name)), inside) => {
                visitor.visit_map(Entry { key: Some(name), inside, step })
            }
            _ => Err(changed()),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Answer> {
        match self.step(Requested::Seq)? {
            (Step::Element, inside) => visitor.visit_seq(Entry { key: None, inside, step: Step::Element }),
            _ => Err(changed()),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Answer> {
        match self.step(Requested::Map)? {
            (step @ (Step::Key | Step::Value), inside) => {
                visitor.visit_map(Entry { key: None, inside, step })
            }
            _ => Err(changed()),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Answer> {
        let rust = std::any::type_name::<V::Value>();
        match self.step(Requested::Enum { name, rust, variants })? {
            (step @ (Step::Variant(name) | Step::Name(name)), inside) => {
                visitor.visit_enum(Variant { name, inside, step })
            }
            _ => Err(changed()),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Answer> {
        self.end(Requested::Unsupported(
            "a tuple or array of fixed length has no Java type: use a struct or a `Vec`",
        ))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, Answer> {
        self.end(Requested::Unsupported("a tuple struct has no Java class: name its fields"))
    }

    // The Jackson and Kryo codecs say the same, so a type that checks this makes the same choice.
    fn is_human_readable(&self) -> bool {
        true
    }
}

/// The one element, entry or field on the path.
struct Entry<'p> {
    /// The name of a field.
    key: Option<&'static str>,
    inside: Probe<'p>,
    step: Step,
}

impl<'de> SeqAccess<'de> for Entry<'_> {
    type Error = Answer;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Answer> {
        seed.deserialize(self.inside).map(Some)
    }
}

impl<'de> MapAccess<'de> for Entry<'_> {
    type Error = Answer;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Answer> {
        match (self.key, self.step) {
            (Some(name), step) => identifier(seed, name, step).map(Some),
            (None, Step::Key) => seed.deserialize(self.inside).map(Some),
            // Only for maps that do not ask for whole entries, as those of std do.
            (None, _) => seed.deserialize(BorrowedStrDeserializer::new("")).map(Some),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Answer> {
        seed.deserialize(self.inside)
    }

    fn next_entry_seed<K: DeserializeSeed<'de>, T: DeserializeSeed<'de>>(
        &mut self,
        key: K,
        value: T,
    ) -> Result<Option<(K::Value, T::Value)>, Answer> {
        match self.step {
            Step::Key => Err(key.deserialize(self.inside).err().unwrap_or_else(changed)),
            // No key has to be made up.
            _ => Err(value.deserialize(self.inside).err().unwrap_or_else(changed)),
        }
    }
}

/// What a type reads a name into. `serde_derive` makes it an enum `__Field` with a variant for each field,
/// which an `alias` shares: at the end of the path, that is the answer. What a `Deserialize` by hand reads
/// names into does not show which of them mean the same.
fn identifier<'de, S: DeserializeSeed<'de>>(
    seed: S,
    name: &'static str,
    step: Step,
) -> Result<S::Value, Answer> {
    let identifier = seed.deserialize(BorrowedStrDeserializer::new(name))?;
    match step {
        Step::Name(_) if std::any::type_name::<S::Value>().ends_with("::__Field") => {
            let mut hash = DefaultHasher::new();
            std::mem::discriminant(&identifier).hash(&mut hash);
            Err(Answer::Requested(Requested::Name(hash.finish())))
        }
        _ => Ok(identifier),
    }
}

/// The one variant on the path.
struct Variant<'p> {
    name: &'static str,
    inside: Probe<'p>,
    step: Step,
}

impl<'de, 'p> EnumAccess<'de> for Variant<'p> {
    type Error = Answer;
    type Variant = Data<'p>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Data<'p>), Answer> {
        Ok((identifier(seed, self.name, self.step)?, Data(self.inside)))
    }
}

struct Data<'p>(Probe<'p>);

const FIELDS: Answer = Answer::Requested(Requested::Unsupported(
    "a variant with fields has no class: give it a struct that has the name of the class",
));

impl<'de> VariantAccess<'de> for Data<'_> {
    type Error = Answer;

    fn unit_variant(self) -> Result<(), Answer> {
        self.0.end(Requested::Unit)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Answer> {
        match self.0.step(Requested::Data)? {
            (Step::Newtype, inside) => seed.deserialize(inside),
            _ => Err(changed()),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Answer> {
        Err(FIELDS)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Answer> {
        Err(FIELDS)
    }
}
