//! A variant of an enum with its value, as codecs hand it to the type.

use std::marker::PhantomData;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, VariantAccess, Visitor};

/// A variant, and where its value is read from.
pub(crate) struct VariantReader<D> {
    pub(crate) name: &'static str,
    pub(crate) value: D,
}

impl<'de, D: Deserializer<'de>> EnumAccess<'de> for VariantReader<D> {
    type Error = D::Error;
    type Variant = DataReader<'de, D>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant), D::Error> {
        let name = seed.deserialize(BorrowedStrDeserializer::new(self.name))?;
        Ok((name, DataReader(self.value, PhantomData)))
    }
}

pub(crate) struct DataReader<'de, D>(D, PhantomData<&'de ()>);

fn changed<E: Error>() -> E {
    E::custom("its `Deserialize` asks for something else than it did at first")
}

impl<'de, D: Deserializer<'de>> VariantAccess<'de> for DataReader<'de, D> {
    type Error = D::Error;

    fn unit_variant(self) -> Result<(), D::Error> {
        Err(changed())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, D::Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, D::Error> {
        Err(changed())
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, D::Error> {
        Err(changed())
    }
}
