//! What a class is for Kryo, with what it inherits.

use super::model::{ClassKind, Classes, JavaClass, JavaField, JavaType};
use super::predefined::{WITHOUT_FIELDS, known_java};
use super::primitive::Primitive;
use crate::java::base::{Base, base, groups};
use crate::java::known_classes::{ClassKind as Library, Layout as LibraryLayout, known};

/// How many classes a class may have above it. Java's own have six at most.
const MOST: usize = 64;

/// How many dimensions an array has in Java at most.
const MOST_DIMENSIONS: usize = 255;

/// Of an enum whose bodies have other numbers than their order says.
pub(super) const OTHER_NUMBERS: &str =
    "javac has also numbered an anonymous class among the arguments: no Rust type is like this enum";

/// How the objects of a class are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout<'c> {
    /// Their fields.
    Object(Hierarchy<'c>),
    /// Which constant: the enum, which is not the class of a constant with a body.
    Enum(&'c JavaClass),
    Collection(LibraryLayout),
    Map(LibraryLayout),
}

/// A class and those above it that have fields, from the class upwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy<'c>(pub(crate) Vec<&'c JavaClass>);

/// A field, and the class in [`Hierarchy`] that declares it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared<'c> {
    pub(crate) field: &'c JavaField,
    pub(crate) by: usize,
}

impl<'c> Hierarchy<'c> {
    /// The fields that Kryo writes, in its order.
    pub(crate) fn fields(&self) -> Vec<Declared<'c>> {
        let of = |(by, class): (usize, &&'c JavaClass)| {
            let class: &'c JavaClass = class;
            class.fields.iter().filter(|field| !field.is_transient).map(move |field| Declared { field, by })
        };
        let mut fields: Vec<_> = self.0.iter().enumerate().flat_map(of).collect();
        // Java compares UTF-16.
        fields.sort_by(|a, b| a.field.name.encode_utf16().cmp(b.field.name.encode_utf16()));
        fields
    }

    /// The class of a type parameter of one of these classes, if the classes below say it, and which of them
    /// does: the type parameters in an array are that one's. A class has no type arguments, because Kryo
    /// forgets them.
    pub(crate) fn variable(&self, by: usize, name: &str) -> Option<(usize, JavaType)> {
        let has_arguments = |class: &&JavaClass| match &class.superclass {
            Some(JavaType::Class { arguments, .. }) => !arguments.is_empty(),
            _ => false,
        };
        // Kryo gives up at a class that extends another one without type arguments.
        if !self.0[..by].iter().all(has_arguments) {
            return None;
        }
        let dimensions = |class: &JavaClass| match &class.superclass {
            Some(JavaType::Class { arguments, .. }) => arguments.iter().map(JavaType::dimensions).max(),
            _ => None,
        };
        if self.0[..by].iter().filter_map(|class| dimensions(class)).sum::<usize>() > MOST_DIMENSIONS {
            return None;
        }
        let mut name = name;
        for at in (0..by).rev() {
            let Some(JavaType::Class { arguments, .. }) = &self.0[at].superclass else { return None };
            let place = self.0[at + 1].parameters.iter().position(|parameter| parameter == name)?;
            match arguments.get(place)? {
                JavaType::Variable(other) => name = other,
                JavaType::Class { name, .. } => return Some((at, JavaType::class(name))),
                other => return Some((at, other.clone())),
            }
        }
        None
    }

    /// Each type parameter of these classes, and those of the classes above that it is passed to, as Kryo
    /// lists them: the first belong to the class itself.
    pub(crate) fn parameters(&self) -> Vec<Vec<(usize, &'c str)>> {
        let mut all = Vec::new();
        for (by, class) in self.0.iter().enumerate() {
            for parameter in &class.parameters {
                let mut chain: Vec<(usize, &'c str)> = vec![(by, parameter)];
                let mut at = by;
                while let (Some(above), Some(JavaType::Class { arguments, .. })) =
                    (self.0.get(at + 1), &self.0[at].superclass)
                {
                    let last = chain[chain.len() - 1].1;
                    let place = arguments
                        .iter()
                        .position(|argument| matches!(argument, JavaType::Variable(name) if name == last));
                    let Some(passed) = place.and_then(|place| above.parameters.get(place)) else { break };
                    at += 1;
                    chain.push((at, passed));
                }
                all.push(chain);
            }
        }
        all
    }
}

impl Classes {
    /// How the objects of a class are written. `None` if it is not described.
    ///
    /// # Errors
    /// When it is something else, or something above it is not described.
    pub(crate) fn layout<'c>(&'c self, name: &str) -> Result<Option<Layout<'c>>, String> {
        let Some(class) = self.get(name) else {
            // The class of a constant with a body, whose file was not given.
            let base =
                name.rsplit_once('$').filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
            let base = base.and_then(|(base, _)| self.get(base));
            return Ok(base.filter(|class| class.is_enum()).map(Layout::Enum));
        };
        let mut hierarchy = Vec::new();
        let mut class = class;
        loop {
            hierarchy.push(class);
            if hierarchy.len() > MOST {
                return Err(format!("the class `{name}` has more than {MOST} classes above it"));
            }
            let Some(superclass) = class.superclass_name() else { break };
            if let Some(layout) = Self::of_library(superclass) {
                return Ok(Some(layout));
            }
            if superclass == "java.lang.Throwable"
                || superclass.ends_with("Exception") && known_java(superclass)
            {
                return Err(format!("Java's own serialization writes the exception `{name}`"));
            }
            class = match self.get(superclass) {
                Some(class) => class,
                None if WITHOUT_FIELDS.contains(&superclass) => break,
                None => {
                    return Err(format!(
                        "the class `{superclass}`, which `{name}` extends, is not described"
                    ));
                }
            };
        }
        if class.is_enum() {
            return Ok(Some(Layout::Enum(class)));
        }
        // A collection by its interfaces.
        let above = self.with_above(name);
        if let Some((base, _)) = groups().find(|(base, _)| above.contains(base)) {
            return Ok(Self::of_library(base));
        }
        Ok(Some(Layout::Object(Hierarchy(hierarchy))))
    }

    fn of_library(class: &str) -> Option<Layout<'static>> {
        match (known(class).map(|class| class.kind), base(class)) {
            (Some(Library::Collection(layout)), _) => Some(Layout::Collection(layout)),
            (Some(Library::Map(layout)), _) => Some(Layout::Map(layout)),
            (_, Some(Base::Collection)) => Some(Layout::Collection(LibraryLayout::Plain)),
            (_, Some(Base::Map)) => Some(Layout::Map(LibraryLayout::Plain)),
            _ => None,
        }
    }

    /// Whether a place that declares this class can hold no other one. `None` if it is not known.
    pub(crate) fn is_final(&self, class: &str) -> Option<bool> {
        if let Some(element) = class.strip_prefix('[') {
            return match element.strip_prefix('L') {
                Some(element) => self.is_final(element.strip_suffix(';')?),
                None if element.starts_with('[') => self.is_final(element),
                None => Some(true),
            };
        }
        if class == "java.lang.String" || Primitive::of_class(class).is_some() {
            return Some(true);
        }
        match (known(class), self.get(class)) {
            (Some(class), _) => Some(class.is_final),
            (None, Some(class)) => Some(class.is_final || class.kind == ClassKind::Record),
            (None, None) => known_java(class).then_some(false),
        }
    }
}
