//! [`Classes`]: what Java classes look like, read from `.class` files or from text.
//!
//! A payload of Kryo has neither the names nor the types of the fields of an object. So a struct that does not
//! fit its class often reads other values without an error: two `Long` fields swap, a text begins a byte too
//! late. The class itself says what is right:
//!
//! * [`check`] compares a struct with its class, for a test.
//! * [`Kryo5::with_classes`](crate::Kryo5::with_classes) reads any payload of these classes as a
//!   [`Value`](crate::java::Value), with the names of the fields.
//! * [`Classes::rust`] prints the Rust types of a class.
//!
//! ```
//! use redisson_codec::classes::{Classes, check};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! #[serde(rename = "com.acme.Stock", rename_all = "camelCase")]
//! struct Stock {
//!     article: Option<i64>,
//!     wharehouse_id: Option<i64>,
//!     count: Option<i64>,
//! }
//!
//! let classes: Classes = "class com.acme.Stock { Long article; Long warehouseId; int count; }".parse()?;
//! let differences = check::<Stock>(&classes).unwrap_err().to_string();
//! assert_eq!(
//!     differences,
//!     "com.acme.Stock.count: `int` in Java, `Integer` here: a field that is never null has no `Option`\n\
//!      com.acme.Stock.wharehouseId: no field of the class; is it `warehouseId`?\n\
//!      com.acme.Stock.warehouseId: missing here: a `Long` in Java"
//! );
//! # Ok::<(), redisson_codec::CodecError>(())
//! ```
//!
//! # Text
//! A description in text is the part of Java that says what is in an object. Names of `java.lang`, `java.util`,
//! `java.time` and `java.math` need no package, and what has no meaning here, such as `public`, is skipped:
//!
//! ```
//! # use redisson_codec::classes::Classes;
//! let classes: Classes = r#"
//!     abstract class com.acme.Task<T> { String id; List<T> more; transient int tries; }
//!     class com.acme.Mail extends com.acme.Task<Long> { com.acme.Way way; }
//!     record com.acme.Line { String sku; int quantity; }
//!     enum com.acme.Way { SMTP, PIGEON {} }   // {}: this constant has a body
//! "#.parse()?;
//! assert_eq!(classes.names().count(), 4);
//! # Ok::<(), redisson_codec::CodecError>(())
//! ```
//!
//! # Limits
//! Anybody may have written a class file. Reading one never panics, and takes at most 8 MiB of memory: names and
//! types of more than 256 KiB in one class are refused, and so are types that nest deeper than 32 levels. Each
//! error has an offset.

mod check;
mod class_file;
mod code;
mod compared;
mod hierarchy;
mod rust;
mod signature;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::CodecError;

pub use check::{Differences, check};
pub(crate) use hierarchy::{Hierarchy, Layout};

/// What Java classes look like: their fields, superclasses and constants.
///
/// Parses from [text](self#text), and prints it.
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
pub struct Classes(BTreeMap<String, JavaClass>);

impl Classes {
    /// No class.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the class of a `.class` file, and returns its name. It takes the place of one of the same name.
    ///
    /// # Errors
    /// When it is no class file, or has more than the [limits](self#limits).
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::Classes;
    ///
    /// assert!(Classes::new().add_class_file(b"PK\x03\x04").is_err());
    /// ```
    pub fn add_class_file(&mut self, bytes: &[u8]) -> Result<String, CodecError> {
        let class = class_file::read(bytes)
            .map_err(|why| CodecError::new(format!("expected a class file: {why}")))?;
        let name = class.name.clone();
        self.0.insert(name.clone(), class);
        Ok(name)
    }

    /// Adds the classes of a [text](self#text).
    ///
    /// # Errors
    /// When the text is no such description. Then nothing is added.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::Classes;
    ///
    /// let error = Classes::new().add_text("class com.acme.Line { String; }").unwrap_err();
    /// assert_eq!(error.to_string(), "expected the name of a field at line 1, offset 28, found `;`");
    /// ```
    pub fn add_text(&mut self, text: &str) -> Result<(), CodecError> {
        let classes = text::read(text).map_err(CodecError::new)?;
        self.0.extend(classes.into_iter().map(|class| (class.name.clone(), class)));
        Ok(())
    }

    /// Adds all classes of another description.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::Classes;
    ///
    /// let mut classes = Classes::new();
    /// classes.extend("enum com.acme.Way { SMTP }".parse()?);
    /// assert_eq!(classes.names().count(), 1);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    pub fn extend(&mut self, other: Classes) {
        self.0.extend(other.0);
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
        self.0.keys().map(String::as_str)
    }

    /// The Rust types of a class: of itself, and of those that its fields need. They are written for the
    /// codecs of [`java`](crate::java), and a comment says where a person has to decide.
    ///
    /// # Errors
    /// When the class, or one below it, is not described.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::Classes;
    ///
    /// let classes: Classes = "class com.acme.Line { String sku; long soldAt; }".parse()?;
    /// let rust = classes.rust("com.acme.Line")?;
    /// assert!(rust.contains("#[serde(rename = \"com.acme.Line\", rename_all = \"camelCase\")]"));
    /// assert!(rust.contains("    pub sold_at: i64,\n"));
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    pub fn rust(&self, class: &str) -> Result<String, CodecError> {
        rust::types(self, class).map_err(CodecError::new)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&JavaClass> {
        self.0.get(name)
    }

    /// All classes below this one, sorted by name.
    fn below<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a JavaClass> {
        self.0.values().filter(move |class| class.name != name && self.is_below(&class.name, name))
    }

    /// Whether a class is this one, or extends or implements it, as far as the classes are described.
    pub(crate) fn is_below(&self, class: &str, base: &str) -> bool {
        let mut seen = vec![class];
        let mut at = 0;
        while let Some(&class) = seen.get(at) {
            if class == base {
                return true;
            }
            at += 1;
            for above in self.get(class).into_iter().flat_map(JavaClass::above) {
                if !seen.contains(&above) {
                    seen.push(above);
                }
            }
        }
        false
    }
}

impl FromStr for Classes {
    type Err = CodecError;

    fn from_str(text: &str) -> Result<Self, CodecError> {
        let mut classes = Classes::new();
        classes.add_text(text)?;
        Ok(classes)
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.values().try_for_each(|class| text::print(class, f))
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Primitive {
    Boolean,
    Byte,
    Short,
    Char,
    Int,
    Long,
    Float,
    Double,
}

/// Name, descriptor, and the class of its objects.
const PRIMITIVES: [(Primitive, &str, u8, &str); 8] = [
    (Primitive::Boolean, "boolean", b'Z', "java.lang.Boolean"),
    (Primitive::Byte, "byte", b'B', "java.lang.Byte"),
    (Primitive::Short, "short", b'S', "java.lang.Short"),
    (Primitive::Char, "char", b'C', "java.lang.Character"),
    (Primitive::Int, "int", b'I', "java.lang.Integer"),
    (Primitive::Long, "long", b'J', "java.lang.Long"),
    (Primitive::Float, "float", b'F', "java.lang.Float"),
    (Primitive::Double, "double", b'D', "java.lang.Double"),
];

impl Primitive {
    fn facts(self) -> (&'static str, u8, &'static str) {
        let (_, name, descriptor, class) = PRIMITIVES[self as usize];
        (name, descriptor, class)
    }

    fn name(self) -> &'static str {
        self.facts().0
    }

    /// The class of its objects.
    pub(crate) fn boxed(self) -> &'static str {
        self.facts().2
    }

    fn of_descriptor(byte: u8) -> Option<Self> {
        PRIMITIVES.iter().find(|(_, _, descriptor, _)| *descriptor == byte).map(|(found, ..)| *found)
    }

    fn of_class(class: &str) -> Option<Self> {
        PRIMITIVES.iter().find(|(_, _, _, boxed)| *boxed == class).map(|(found, ..)| *found)
    }
}

pub(crate) const OBJECT: &str = "java.lang.Object";

impl JavaType {
    pub(crate) fn class(name: impl Into<String>) -> Self {
        JavaType::Class { name: name.into(), arguments: Vec::new() }
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
                f.write_str(text::short(name))?;
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
    fn above(&self) -> impl Iterator<Item = &str> {
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
