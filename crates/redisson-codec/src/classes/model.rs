//! What is known of a class.

use std::collections::BTreeMap;
use std::fmt;

use super::predefined::{OBJECT, short};
use super::primitive::Primitive;

/// What Java classes look like: their fields, superclasses and constants.
///
/// Parses from [text](super#text), and prints it.
///
/// # Examples
/// ```
/// use redisson_codec::classes::Classes;
///
/// let mut classes = Classes::new();
/// let error = classes.add_class_file(b"\xca\xfe\xba\xbe").unwrap_err().to_string();
/// assert_eq!(error, "expected a class file: it ends at offset 4");
/// classes.add_text("class com.acme.Line { String sku; Long count; }")?;
/// assert_eq!(classes.names().collect::<Vec<_>>(), ["com.acme.Line"]);
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    pub(super) by_name: BTreeMap<String, JavaClass>,
    /// How many bytes they take.
    pub(super) memory: usize,
}

impl Classes {
    /// No class.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &JavaClass> {
        self.by_name.values()
    }

    /// The names of the classes, sorted: `com.acme.Order`, and `com.acme.Order$Line` for a nested one.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::Classes;
    ///
    /// assert_eq!(Classes::new().names().next(), None);
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&JavaClass> {
        self.by_name.get(name)
    }

    /// All classes below this one, sorted by name.
    pub(super) fn below<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a JavaClass> {
        self.all().filter(move |class| class.name != name && self.is_below(&class.name, name))
    }

    /// Whether a class is this one, or extends or implements it, as far as the classes are described.
    pub(crate) fn is_below(&self, class: &str, base: &str) -> bool {
        self.with_above(class).contains(&base)
    }

    /// A class, and all that it extends and implements, as far as the classes are described.
    pub(super) fn with_above<'a>(&'a self, class: &'a str) -> Vec<&'a str> {
        let mut seen = vec![class];
        let mut at = 0;
        while let Some(&class) = seen.get(at) {
            at += 1;
            for above in self.get(class).into_iter().flat_map(JavaClass::above) {
                if !seen.contains(&above) {
                    seen.push(above);
                }
            }
        }
        seen
    }
}

/// A class, as far as its objects depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JavaClass {
    pub(crate) name: String,
    pub(crate) kind: ClassKind,
    pub(crate) is_final: bool,
    pub(crate) is_abstract: bool,
    /// The names of its type parameters.
    pub(crate) parameters: Vec<String>,
    /// `None` is `java.lang.Object`, or what follows from the kind.
    pub(crate) superclass: Option<JavaType>,
    pub(crate) interfaces: Vec<JavaType>,
    /// Its own ones, without static ones.
    pub(crate) fields: Vec<JavaField>,
    /// Of an enum.
    pub(crate) constants: Vec<JavaConstant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassKind {
    Class,
    Interface,
    Record,
    Enum,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JavaField {
    pub(crate) name: String,
    pub(crate) kind: JavaType,
    pub(crate) is_transient: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JavaConstant {
    pub(crate) name: String,
    /// The class of its body, if it has one.
    pub(crate) body: Option<String>,
}

/// A type as a field declares it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JavaType {
    Primitive(Primitive),
    /// A wildcard is its bound.
    Class {
        name: String,
        arguments: Vec<JavaType>,
    },
    /// A type parameter of the class.
    Variable(String),
    Array(Box<JavaType>),
}

impl JavaType {
    pub(crate) fn class(name: impl Into<String>) -> Self {
        JavaType::Class { name: name.into(), arguments: Vec::new() }
    }

    /// 0 if it is no array.
    pub(super) fn dimensions(&self) -> usize {
        match self {
            JavaType::Array(element) => 1 + element.dimensions(),
            _ => 0,
        }
    }

    /// The class without type arguments: `java.util.List`, `[I`, `[Ljava.lang.String;`. `None` for a type
    /// parameter and a primitive type.
    pub(crate) fn erased(&self) -> Option<String> {
        match self {
            JavaType::Primitive(_) | JavaType::Variable(_) => None,
            JavaType::Class { name, .. } => Some(name.clone()),
            JavaType::Array(element) => {
                let mut class = "[".to_owned();
                match &**element {
                    JavaType::Primitive(primitive) => class.push(primitive.facts().1.into()),
                    JavaType::Array(_) => class += &element.erased()?,
                    _ => {
                        class.push('L');
                        class += &element.erased()?;
                        class.push(';');
                    }
                }
                Some(class)
            }
        }
    }
}

impl fmt::Display for JavaType {
    /// As in Java, with the names of classes as short as they can be read again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JavaType::Primitive(primitive) => f.write_str(primitive.name()),
            JavaType::Variable(name) => f.write_str(name),
            JavaType::Array(element) => write!(f, "{element}[]"),
            JavaType::Class { name, arguments } => {
                f.write_str(short(name))?;
                for (at, argument) in arguments.iter().enumerate() {
                    write!(f, "{}{argument}", if at == 0 { "<" } else { ", " })?;
                }
                f.write_str(if arguments.is_empty() { "" } else { ">" })
            }
        }
    }
}

impl JavaClass {
    /// The names of the classes and interfaces that it extends and implements.
    pub(super) fn above(&self) -> impl Iterator<Item = &str> {
        let names = self.superclass.iter().chain(&self.interfaces).map(|above| match above {
            JavaType::Class { name, .. } => name.as_str(),
            _ => OBJECT,
        });
        let own = match self.kind {
            ClassKind::Record => "java.lang.Record",
            ClassKind::Enum => "java.lang.Enum",
            _ => OBJECT,
        };
        names.chain([own, OBJECT])
    }

    /// Its superclass, without type arguments.
    pub(crate) fn superclass_name(&self) -> Option<&str> {
        match self.superclass.as_ref()? {
            JavaType::Class { name, .. } => Some(name),
            _ => None,
        }
    }

    /// A constant of it, or of an enum of which it is the class of a constant.
    pub(crate) fn is_enum(&self) -> bool {
        self.kind == ClassKind::Enum
    }
}
