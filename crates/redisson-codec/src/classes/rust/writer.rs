//! Which types are to be written, and what they are called.

use super::names::{distinct, type_name};
use crate::classes::hierarchy::Layout;
use crate::classes::model::{Classes, JavaClass, JavaType};
use crate::classes::predefined::OBJECT;

pub(super) type Outcome<T> = Result<T, String>;

/// How many Rust types there are at most: a class may have a field of itself with ever other type arguments.
pub(super) const MOST: usize = 1000;

/// An array of more dimensions is an `Object`, where it is a type argument. So `N<T>` with a field `N<T[]>`
/// has an end.
const MOST_DIMENSIONS: usize = 4;

/// A Rust type that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) class: String,
    /// The type arguments with which a field declares the class, where Kryo keeps them.
    pub(super) arguments: Vec<JavaType>,
    /// An enum of all classes that may be where the class is declared.
    pub(super) is_place: bool,
}

pub(super) struct Writer<'c> {
    pub(super) classes: &'c Classes,
    pub(super) wanted: Vec<Wanted>,
    /// Of each of `wanted`.
    pub(super) names: Vec<String>,
    pub(super) text: String,
}

impl Writer<'_> {
    /// The name of a type, which is written later.
    pub(super) fn want(&mut self, wanted: Wanted) -> String {
        if let Some(at) = self.wanted.iter().position(|known| *known == wanted) {
            return self.names[at].clone();
        }
        let mut name = type_name(&wanted.class);
        if wanted.is_place && self.is_concrete(&wanted.class) {
            name = format!("Any{name}");
        }
        if !wanted.arguments.is_empty() {
            name += "Of";
            for argument in &wanted.arguments {
                name += &type_name(&argument.to_string().replace("[]", "Array"));
            }
        }
        let name = distinct(name, |name| self.names.iter().any(|taken| taken == name));
        self.wanted.push(wanted);
        self.names.push(name.clone());
        name
    }

    pub(super) fn is_concrete(&self, class: &str) -> bool {
        self.classes.get(class).is_some_and(|class| !class.is_abstract || class.is_enum())
    }

    /// The classes whose objects may be where a class is declared.
    pub(super) fn objects(&self, class: &str) -> Vec<String> {
        let own = self.classes.get(class).into_iter().chain(self.classes.below(class));
        let is_body = |class: &JavaClass| {
            class.is_enum()
                && class
                    .superclass_name()
                    .is_some_and(|above| self.classes.get(above).is_some_and(JavaClass::is_enum))
        };
        own.filter(|class| (!class.is_abstract || class.is_enum()) && !is_body(class))
            .map(|class| class.name.clone())
            .collect()
    }

    /// The type of a place that declares this class.
    pub(super) fn of_place(&mut self, class: &str, arguments: &[JavaType]) -> String {
        let is_enum = matches!(self.classes.layout(class), Ok(Some(Layout::Enum(_))));
        let is_place = !is_enum && self.objects(class) != [class];
        let arguments: Vec<_> = arguments.iter().map(erased).collect();
        // What is known of a class as `Object` is nothing.
        let is_known = arguments.iter().any(|kind| *kind != JavaType::class(OBJECT));
        let arguments = match is_known {
            true if is_place => arguments,
            true => self.bound(class, &arguments),
            false => Vec::new(),
        };
        self.want(Wanted { class: class.to_owned(), arguments, is_place })
    }

    /// The type arguments of a place that an object of this class takes.
    pub(super) fn bound(&self, class: &str, arguments: &[JavaType]) -> Vec<JavaType> {
        let Ok(Some(Layout::Object(hierarchy))) = self.classes.layout(class) else { return Vec::new() };
        let (own, parameters) = (hierarchy.0[0].parameters.len(), hierarchy.parameters());
        let fits = own <= arguments.len() && arguments.len() <= parameters.len();
        let is_unknown = |(by, name): &(usize, &str)| hierarchy.variable(*by, name).is_none();
        match fits && parameters.iter().flatten().any(is_unknown) {
            true => arguments.to_vec(),
            false => Vec::new(),
        }
    }
}

/// What Kryo keeps of a type argument inside of a class.
fn erased(kind: &JavaType) -> JavaType {
    match kind {
        JavaType::Class { name, .. } => JavaType::class(name.clone()),
        JavaType::Array(_) if kind.dimensions() > MOST_DIMENSIONS => JavaType::class(OBJECT),
        JavaType::Array(element) => match erased(element) {
            // As little is known of it as of an `Object`.
            element if element == JavaType::class(OBJECT) => element,
            element => JavaType::Array(Box::new(element)),
        },
        other => other.clone(),
    }
}
