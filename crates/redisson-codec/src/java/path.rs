//! [`Path`]: where in a type a payload could not be read, or a value not be written.

use super::shape::{Kind, NodeId, Shape};
use crate::shown::within;

/// In bytes. A type that holds itself may be deep.
const LONGEST: usize = 200;

/// The steps to a place in a type, such as `Cart.items[1].price`. It is put together from the inside out,
/// while an error returns, so that reading without an error knows nothing of it.
#[derive(Debug, Default)]
pub(crate) struct Path {
    /// The innermost first.
    steps: Vec<Step>,
    /// The class of the outermost object.
    root: String,
    /// What Java declares at the innermost place.
    declared: Option<String>,
}

/// A step into a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Field(&'static str),
    /// An element, or the value of an entry.
    Element(usize),
    /// The key of an entry.
    Key(usize),
}

impl Path {
    /// Adds what is around the place so far, which is the node.
    #[cold]
    pub(crate) fn enter(&mut self, shape: &Shape, node: NodeId, step: Step) {
        self.declared.get_or_insert_with(|| declared(shape, node));
        self.step(step);
    }

    /// The same for a field of an object of this class.
    #[cold]
    pub(crate) fn enter_field(&mut self, shape: &Shape, class: &str, name: &'static str, node: NodeId) {
        self.declared.get_or_insert_with(|| declared(shape, node));
        self.step_of(class, name);
    }

    /// The same, where what Java declares is of no interest, as while writing.
    #[cold]
    pub(crate) fn step(&mut self, step: Step) {
        self.root.clear();
        self.steps.push(step);
    }

    /// The same for a field of an object of this class.
    #[cold]
    pub(crate) fn step_of(&mut self, class: &str, name: &'static str) {
        self.step(Step::Field(name));
        self.root = class.rsplit('.').next().unwrap_or_default().to_owned();
    }

    /// With the reason behind it. What Java declares there is in front of that, if it is to be, and if the
    /// reason does not say it.
    pub(crate) fn in_front_of(&self, why: &str, with_class: bool) -> String {
        if self.steps.is_empty() {
            return why.to_owned();
        }
        let mut path = self.root.clone();
        for step in self.steps.iter().rev() {
            path += &match step {
                Step::Field(name) => format!(".{name}"),
                Step::Element(at) => format!("[{at}]"),
                Step::Key(at) => format!("[{at}].key"),
            };
        }
        let path = within(path, LONGEST);
        match &self.declared {
            Some(declared) if with_class && !says_class(why, declared) => {
                format!("at {path}: expected `{declared}`: {why}")
            }
            _ => format!("at {path}: {why}"),
        }
    }
}

/// Whether a reason says itself what was expected.
fn says_class(why: &str, declared: &str) -> bool {
    why.starts_with("expected the class ") || why.contains(declared)
}

/// What Java declares at a place.
fn declared(shape: &Shape, node: NodeId) -> String {
    let place = &shape.nodes[node];
    let primitive = match place.kind {
        Kind::Boolean => "boolean",
        Kind::Byte => "byte",
        Kind::Short => "short",
        Kind::Character => "char",
        Kind::Integer => "int",
        Kind::Long => "long",
        Kind::Float => "float",
        Kind::Double => "double",
        _ => "",
    };
    match place.is_primitive() {
        true => primitive.to_owned(),
        false => within(shape.class_name(node).into_owned(), LONGEST),
    }
}
