//! Objects of described classes, as a [`Value`](crate::java::Value) with the names of their fields.
//!
//! Where a field declares `List<Long>`, Kryo leaves out the class of the elements, because `Long` is final.
//! So what is written depends on types that were declared further out. This follows Kryo's `DefaultGenerics`:
//! the type of a field is pushed when its value is written, and the serializer of the value takes the type
//! arguments.

mod plan;
mod read;
mod write;

use std::borrow::Cow;
use std::sync::Arc;

use crate::classes::{Classes, Hierarchy, JavaType};
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::numbered::Numbered;
use crate::shown::shown;
use plan::{ObjectPlan, Plan};

pub(super) use plan::Plans;
pub(super) use read::{element as read_element, object as read_object};
pub(super) use write::{element as write_element, value as write_value};

/// Descriptions, and the type arguments that are known at a place in a payload.
pub(super) struct Described {
    plans: Arc<Plans>,
    /// The last one of a name is valid.
    bound: Vec<Bound>,
}

/// What a type parameter is.
struct Bound {
    /// The class that declares it.
    by: String,
    name: String,
    class: String,
}

/// A declared type, as Kryo keeps it.
#[derive(Clone, Debug)]
enum Generic {
    Primitive(Numbered),
    /// A class that has a number. All of them are final.
    Numbered(Numbered),
    Class {
        class: String,
        /// Whether no other one can be at the place, if that is known.
        is_final: Option<bool>,
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
    pub(super) fn new(plans: Arc<Plans>) -> Box<Self> {
        Box::new(Self { plans, bound: Vec::new() })
    }

    /// The class of a declared type, if it is known here.
    fn class_of<'g>(&self, generic: &'g Generic) -> Option<Cow<'g, str>> {
        match generic {
            Generic::Primitive(_) => None,
            Generic::Numbered(number) => Some(number.name().into()),
            Generic::Array(element) => self.class_of(element).map(|class| array_of(&class).into()),
            Generic::Class { class, .. } => Some(class.into()),
            Generic::Variable { by, name } => {
                let bound = self.bound.iter().rev().find(|bound| bound.by == *by && bound.name == *name);
                bound.map(|bound| bound.class.clone().into())
            }
        }
    }

    /// The class of a place, if no other one can be there, so that it is not written.
    fn final_class<'g>(&self, declared: &'g Generic) -> Outcome<Option<Cow<'g, str>>> {
        let Some(class) = self.class_of(declared) else { return Ok(None) };
        let is_final = match declared {
            Generic::Numbered(_) => Some(true),
            Generic::Class { is_final, .. } => *is_final,
            _ => self.is_final(&class),
        };
        match is_final {
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
        self.plans.classes.is_final(class)
    }

    /// Binds the type parameters of a class to the arguments with which a place declares it, until
    /// [`unbind`](Self::unbind).
    fn bind(&mut self, class: &ObjectPlan, arguments: &[Generic]) -> usize {
        let before = self.bound.len();
        let count = arguments.len();
        if count == 0 || class.own_parameters > count || count > class.parameters.len() {
            return before;
        }
        for (argument, chain) in arguments.iter().zip(&class.parameters) {
            let Some(class) = self.class_of(argument) else { continue };
            for (by, name) in chain {
                self.bound.push(Bound {
                    by: by.clone(),
                    name: name.clone(),
                    class: class.clone().into_owned(),
                });
            }
        }
        before
    }

    fn unbind(&mut self, before: usize) {
        self.bound.truncate(before);
    }

    /// The byte by which a value of this class says itself that it is null, if it does.
    pub(super) fn null_of(&self, class: &str) -> Option<u8> {
        match self.plans.of(class).ok()??.as_ref() {
            Plan::Enum(_) | Plan::Collection(_) | Plan::Map(_) => Some(0),
            Plan::Object(_) => None,
        }
    }

    /// The names of the constants of an enum.
    pub(super) fn constants(&self, class: &str) -> Option<Vec<String>> {
        match self.plans.of(class).ok()??.as_ref() {
            Plan::Enum(constants) => Some(constants.clone()),
            _ => None,
        }
    }
}

impl Generic {
    /// The type of a field that a class of the hierarchy declares. Records have no type arguments.
    fn of(classes: &Classes, hierarchy: &Hierarchy<'_>, by: usize, kind: &JavaType) -> Self {
        let class_of = |class: String, arguments| match numbered(&class) {
            Some(number) => Generic::Numbered(number),
            None => Generic::Class { is_final: classes.is_final(&class), class, arguments },
        };
        match kind {
            JavaType::Primitive(primitive) => match numbered(primitive.boxed()) {
                Some(number) => Generic::Primitive(number),
                None => class_of(primitive.boxed().to_owned(), Vec::new()),
            },
            JavaType::Variable(name) => match hierarchy.variable(by, name) {
                Some((by, kind)) => Generic::of(classes, hierarchy, by, &kind),
                None => Generic::Variable { by: hierarchy.0[by].name.clone(), name: name.clone() },
            },
            JavaType::Class { name, arguments } => {
                let arguments = arguments.iter().map(|kind| Generic::of(classes, hierarchy, by, kind));
                class_of(name.clone(), arguments.collect())
            }
            JavaType::Array(element) => match (kind.erased(), Generic::of(classes, hierarchy, by, element)) {
                (Some(class), _) => class_of(class, Vec::new()),
                (None, Generic::Class { class, .. }) => class_of(array_of(&class), Vec::new()),
                (None, Generic::Numbered(number)) => class_of(array_of(number.name()), Vec::new()),
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
