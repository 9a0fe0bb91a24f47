//! A [`Value`] in the formats that know nothing of Java: plain data.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Collection, Constant, Map, Value};
use crate::java::type_hint::VALUE;
use crate::java::value_slot;
use crate::memory;

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_newtype_struct(VALUE, &Inside(self))
    }
}

/// What other formats see: plain data.
struct Inside<'a>(&'a Value);

impl Serialize for Inside<'_> {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        if value_slot::store_if_requested(|| self.0.clone()) {
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
            Value::Classed(value) => Inside(&value.value).serialize(output),
            Value::Opaque(value) => output.serialize_bytes(&value.bytes),
            Value::Serialized(object) => match object.value() {
                Some(value) => Inside(value).serialize(output),
                None => output.serialize_bytes(object.bytes()),
            },
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
        match value_slot::take_supplied() {
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

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        memory::take(value.len()).map_err(E::custom)?;
        Ok(value.into())
    }

    fn visit_bytes<E: serde::de::Error>(self, value: &[u8]) -> Result<Value, E> {
        memory::take(value.len()).map_err(E::custom)?;
        Ok(Value::Bytes(value.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        // In a box.
        memory::take(size_of::<Collection>()).map_err(A::Error::custom)?;
        let mut elements = Vec::new();
        while let Some(Within(element)) = input.next_element()? {
            memory::push(&mut elements, element).map_err(A::Error::custom)?;
        }
        Ok(Value::list(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        memory::take(size_of::<Map>()).map_err(A::Error::custom)?;
        let mut entries = Vec::new();
        while let Some((Within(key), Within(value))) = input.next_entry()? {
            memory::push(&mut entries, (key, value)).map_err(A::Error::custom)?;
        }
        Ok(Value::map(entries))
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, _: A) -> Result<Value, A::Error> {
        Err(A::Error::custom("an enum is no plain value"))
    }
}
