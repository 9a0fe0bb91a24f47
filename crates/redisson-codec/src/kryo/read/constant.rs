//! The constants of an enum.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, VariantAccess, Visitor};

use super::changed;
use super::prefix::ReadContext;
use crate::java::shape::{EnumShape, Kind, NodeId};
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::input::{ClassRef, Input};

/// Written again, it would be of a class that Java does not have.
#[cold]
pub(super) fn wrong_class(
    input: &Input<'_>,
    declared: &EnumShape,
    ordinal: usize,
    found: ClassRef,
    at: usize,
) -> Failure {
    let (expected, found) = (declared.class_of(ordinal), input.shown(found));
    let constant = declared.variants[ordinal];
    Failure::new(format!(
        "expected the class `{expected}` of the constant {constant} at offset {at}, found `{found}`: `abstract(…)` names \
         the constants that have bodies"
    ))
}

impl ReadContext<'_, '_> {
    /// Refuses an `EnumSet` of another class than it would be written with: that of the constant which comes
    /// next, or of the enum's first one if it has none.
    pub(super) fn check_set(&mut self, element: NodeId, class: ClassRef, has_any: bool) -> Outcome<()> {
        let Kind::Enum(at) = self.node(element).kind else { return Ok(()) };
        let start = self.input.at;
        let ordinal = if has_any { (self.input.varint()? as usize).wrapping_sub(1) } else { 0 };
        self.input.at = start;
        let declared = &self.shape.enums[at];
        let is_other = ordinal < declared.variants.len()
            && !self.any_class
            && !self.input.is_named(class, declared.class_of(ordinal));
        match is_other {
            true => Err(wrong_class(&self.input, declared, ordinal, class, start)),
            false => Ok(()),
        }
    }
}

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
