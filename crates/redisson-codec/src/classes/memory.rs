//! How much memory descriptions take, which is limited.

use super::model::{JavaClass, JavaConstant, JavaField, JavaType};

/// The most bytes that all classes of a description take.
pub(super) const MOST: usize = 256 << 20;

/// What an allocation takes on top.
pub(super) const ALLOCATION: usize = 16;

fn text(text: &str) -> usize {
    text.len() + ALLOCATION
}

fn list<T>(list: &Vec<T>, of: impl Fn(&T) -> usize) -> usize {
    list.capacity() * size_of::<T>() + ALLOCATION + list.iter().map(of).sum::<usize>()
}

impl JavaType {
    /// Apart from the type itself.
    pub(super) fn memory(&self) -> usize {
        match self {
            JavaType::Primitive(_) => 0,
            JavaType::Class { name, arguments } => text(name) + list(arguments, JavaType::memory),
            JavaType::Variable(name) => text(name),
            JavaType::Array(element) => size_of::<JavaType>() + ALLOCATION + element.memory(),
        }
    }
}

impl JavaClass {
    pub(super) fn memory(&self) -> usize {
        let field = |field: &JavaField| text(&field.name) + field.kind.memory();
        let constant =
            |constant: &JavaConstant| text(&constant.name) + constant.body.as_deref().map_or(0, text);
        // Its name is there twice: it is found by its name.
        2 * text(&self.name)
            + size_of::<(String, JavaClass)>()
            + self.superclass.as_ref().map_or(0, JavaType::memory)
            + list(&self.parameters, |parameter| text(parameter))
            + list(&self.interfaces, JavaType::memory)
            + list(&self.fields, field)
            + list(&self.constants, constant)
    }
}
