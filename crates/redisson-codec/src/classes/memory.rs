//! How much memory descriptions take, which is limited.

use super::model::{Classes, JavaClass, JavaConstant, JavaField, JavaType};
use crate::CodecError;

/// The most bytes that all classes of a description take.
pub(super) const MOST: usize = 256 << 20;

/// What an allocation takes on top.
pub(super) const ALLOCATION: usize = 16;

impl Classes {
    /// Adds classes, each of which takes the place of one of the same name.
    ///
    /// # Errors
    /// When all would take too much memory. Then nothing is added.
    pub(super) fn add(&mut self, classes: Vec<JavaClass>) -> Result<(), CodecError> {
        let more = classes.iter().map(JavaClass::memory).sum::<usize>();
        if more > MOST - self.memory {
            return Err(CodecError::new(beyond_memory()));
        }
        self.memory += more;
        for class in classes {
            let replaced = self.by_name.insert(class.name.clone(), class);
            self.memory -= replaced.as_ref().map_or(0, JavaClass::memory);
        }
        Ok(())
    }
}

/// Why classes are not added.
pub(super) fn beyond_memory() -> String {
    format!("the classes take more than {} MiB of memory", MOST >> 20)
}

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
    pub(crate) fn memory(&self) -> usize {
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
