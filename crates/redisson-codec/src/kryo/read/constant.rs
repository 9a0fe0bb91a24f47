//! The constants of an enum.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, VariantAccess, Visitor};

use super::changed;
use crate::kryo::failure::{Failure, Outcome};

/// A constant of an enum.
pub(super) struct ConstantReader(pub(super) &'static str);

impl<'de> EnumAccess<'de> for ConstantReader {
    type Error = Failure;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Outcome<(V::Value, Self)> {
        Ok((seed.deserialize(BorrowedStrDeserializer::<'_, Failure>::new(self.0))?, self))
    }
}

impl<'de> VariantAccess<'de> for ConstantReader {
    type Error = Failure;

    fn unit_variant(self) -> Outcome<()> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Outcome<T::Value> {
        Err(changed())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Outcome<V::Value> {
        Err(changed())
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Outcome<V::Value> {
        Err(changed())
    }
}
