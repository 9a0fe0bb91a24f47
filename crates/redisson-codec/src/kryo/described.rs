//! Objects of described classes, as a [`Value`](crate::java::Value) with the names of their fields.
//!
//! Where a field declares `List<Long>`, Kryo leaves out the class of the elements, because `Long` is final.
//! So what is written depends on types that were declared further out. This follows Kryo's `DefaultGenerics`:
//! the type of a field is pushed when its value is written, and the serializer of the value takes the type
//! arguments.

mod read;
mod write;

use std::sync::Arc;

use crate::classes::{Classes, Hierarchy, JavaType, Layout, Primitive};
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::numbered::Numbered;
use crate::shown::shown;

pub(super) use read::{element as read_element, object as read_object};
pub(super) use write::{element as write_element, value as write_value};

/// Descriptions, and the type arguments that are known at a place in a payload.
#[derive(Clone)]
pub(super) struct Described {
    classes: Arc<Classes>,
    /// The last one of a name is valid.
    bound: Vec<Bound>,
}

/// What a type parameter is.
#[derive(Clone)]
struct Bound {
    /// The class that declares it.
    by: String,
    name: String,
    class: String,
}

/// A declared type, as Kryo keeps it.
#[derive(Clone, Debug)]
enum Generic {
    Primitive(Primitive),
    Class {
        class: String,
        arguments: Vec<Generic>,
    },
    /// The parameter of a class.
    Variable {
        by: String,
        name: String,
    },
    /// An array of one of these that is not known without the place.
    Array(Box<Generic>),
}

impl Described {
    pub(super) fn new(classes: Arc<Classes>) -> Box<Self> {
        Box::new(Self { classes, bound: Vec::new() })
    }

    /// The class of a declared type, if it is known here.
    fn class_of(&self, generic: &Generic) -> Option<String> {
        match generic {
            Generic::Primitive(_) => None,
            Generic::Array(element) => self.class_of(element).map(|class| array_of(&class)),
            Generic::Class { class, .. } => Some(class.clone()),
            Generic::Variable { by, name } => {
                let bound = self.bound.iter().rev().find(|bound| bound.by == *by && bound.name == *name);
                bound.map(|bound| bound.class.clone())
            }
        }
    }

    /// The class of a place, if no other one can be there, so that it is not written.
    fn final_class(&self, declared: &Generic) -> Outcome<Option<String>> {
        let Some(class) = self.class_of(declared) else { return Ok(None) };
        match self.classes.is_final(&class) {
            Some(true) => Ok(Some(class)),
            Some(false) => Ok(None),
            None => Err(Failure::new(format!(
                "the class `{}`, which a field declares, is not described",
                shown(&class)
            ))),
        }
    }

    /// Whether the elements of an array of this class have no class of their own. `None` if it is not known.
    pub(super) fn is_final(&self, class: &str) -> Option<bool> {
        self.classes.is_final(class)
    }

    /// Binds the type parameters of a class to the arguments with which a place declares it, until
    /// [`unbind`](Self::unbind).
    fn bind(&mut self, hierarchy: &Hierarchy<'_>, arguments: &[Generic]) -> usize {
        let before = self.bound.len();
        let parameters = hierarchy.parameters();
        let own = hierarchy.0.first().map_or(0, |class| class.parameters.len());
        if arguments.is_empty() || own > arguments.len() || arguments.len() > parameters.len() {
            return before;
        }
        for (argument, chain) in arguments.iter().zip(parameters) {
            let Some(class) = self.class_of(argument) else { continue };
            for (by, name) in chain {
                let by = hierarchy.0[by].name.clone();
                self.bound.push(Bound { by, name: name.to_owned(), class: class.clone() });
            }
        }
        before
    }

    fn unbind(&mut self, before: usize) {
        self.bound.truncate(before);
    }

    /// The byte by which a value of this class says itself that it is null, if it does.
    pub(super) fn null_of(&self, class: &str) -> Option<u8> {
        match self.classes.layout(class) {
            Ok(Some(Layout::Enum(_) | Layout::Collection(_) | Layout::Map(_))) => Some(0),
            _ => None,
        }
    }

    /// The names of the constants of an enum.
    pub(super) fn constants(&self, class: &str) -> Option<Vec<String>> {
        match self.classes.layout(class) {
            Ok(Some(Layout::Enum(class))) => {
                Some(class.constants.iter().map(|constant| constant.name.clone()).collect())
            }
            _ => None,
        }
    }
}

impl Generic {
    /// The type of a field that a class of the hierarchy declares. Records have no type arguments.
    fn of(hierarchy: &Hierarchy<'_>, by: usize, kind: &JavaType) -> Self {
        match kind {
            JavaType::Primitive(primitive) => Generic::Primitive(*primitive),
            JavaType::Variable(name) => match hierarchy.variable(by, name) {
                Some((by, kind)) => Generic::of(hierarchy, by, &kind),
                None => Generic::Variable { by: hierarchy.0[by].name.clone(), name: name.clone() },
            },
            JavaType::Class { name, arguments } => Generic::Class {
                class: name.clone(),
                arguments: arguments.iter().map(|kind| Generic::of(hierarchy, by, kind)).collect(),
            },
            JavaType::Array(element) => match (kind.erased(), Generic::of(hierarchy, by, element)) {
                (Some(class), _) => Generic::Class { class, arguments: Vec::new() },
                (None, Generic::Class { class, .. }) => {
                    Generic::Class { class: array_of(&class), arguments: Vec::new() }
                }
                (None, element) => Generic::Array(Box::new(element)),
            },
        }
    }

    fn arguments(&self) -> &[Generic] {
        match self {
            Generic::Class { arguments, .. } => arguments,
            _ => &[],
        }
    }
}

/// The class of an array of this class.
fn array_of(class: &str) -> String {
    match class.starts_with('[') {
        true => format!("[{class}"),
        false => format!("[L{class};"),
    }
}

/// A class that has a number.
fn numbered(class: &str) -> Option<Numbered> {
    (2..=10).filter_map(Numbered::of).find(|numbered| numbered.name() == class)
}
