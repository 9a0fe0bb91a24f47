//! The Rust type of a Java type at a place.

use super::writer::{Outcome, Wanted, Writer};
use crate::classes::hierarchy::Layout;
use crate::classes::model::JavaType;
use crate::classes::predefined::{OBJECT, short};
use crate::classes::primitive::Primitive;
use crate::java::base::{is_collection, is_map};
use crate::java::known_classes::{ClassKind as Library, known};
use crate::java::type_hint::{MODULES, PREFIX};

/// Where a type stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The class of the field.
    pub(super) owner: &'a str,
    /// In a record, where Kryo does not keep type arguments.
    pub(super) is_record: bool,
    /// The value is a part of the struct, and not behind a `Vec`.
    pub(super) is_inline: bool,
}

/// A type as it is written.
pub(super) struct Written {
    pub(super) text: String,
    /// The module of `#[serde(with = "java::…")]`.
    pub(super) with: Option<&'static str>,
    pub(super) comment: Option<String>,
}

impl Written {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), with: None, comment: None }
    }

    fn with(text: impl Into<String>, with: &'static str) -> Self {
        Self { text: text.into(), with: Some(with), comment: None }
    }
}

/// What is below these, if the class says no more, and the module for it.
const BELOW: [(&str, &str); 11] = [
    ("java.util.Set", "hash_set"),
    ("java.util.AbstractSet", "hash_set"),
    ("java.util.SortedSet", "tree_set"),
    ("java.util.NavigableSet", "tree_set"),
    ("java.util.EnumSet", "enum_set"),
    ("java.util.Queue", "linked_list"),
    ("java.util.Deque", "array_deque"),
    ("java.util.SortedMap", "tree_map"),
    ("java.util.NavigableMap", "tree_map"),
    ("java.util.concurrent.ConcurrentMap", "concurrent_hash_map"),
    ("java.time.ZoneId", "zone_id"),
];

fn module(class: &str) -> Option<&'static str> {
    let of_class = |(_, name): &&(&str, &str)| name.strip_prefix(PREFIX) == Some(class);
    let own = MODULES.iter().find(of_class).map(|(module, _)| *module);
    own.or_else(|| BELOW.iter().find(|(name, _)| *name == class).map(|(_, module)| *module))
}

/// Lists and maps that need no module.
const PLAIN: [&str; 8] = [
    "java.util.Collection",
    "java.util.SequencedCollection",
    "java.util.AbstractCollection",
    "java.util.List",
    "java.util.AbstractList",
    "java.util.ArrayList",
    "java.util.Map",
    "java.util.HashMap",
];

fn primitive(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Boolean => "bool",
        Primitive::Byte => "i8",
        Primitive::Short => "i16",
        Primitive::Char => "u16",
        Primitive::Int => "i32",
        Primitive::Long => "i64",
        Primitive::Float => "f32",
        Primitive::Double => "f64",
    }
}

impl Writer<'_> {
    /// The type of a field. Only primitive types are not an `Option`.
    pub(super) fn field_type(&mut self, kind: &JavaType, place: Place<'_>) -> Outcome<Written> {
        if let JavaType::Primitive(kind) = kind {
            return Ok(Written::new(primitive(*kind)));
        }
        let written = self.reference(kind, place)?;
        Ok(match written.text == "java::Value" {
            true => written,
            false => Written { text: format!("Option<{}>", written.text), ..written },
        })
    }

    /// The type of an element of a list.
    fn element(&mut self, kind: &JavaType, place: Place<'_>) -> Outcome<String> {
        self.inner(kind, Place { is_inline: false, ..place })
    }

    /// A type that has no attributes.
    fn inner(&mut self, kind: &JavaType, place: Place<'_>) -> Outcome<String> {
        let written = self.reference(kind, place)?;
        Ok(match written.with {
            Some(module) => format!("java::{module}::Of<{}>", written.text),
            None => written.text,
        })
    }

    fn reference(&mut self, kind: &JavaType, place: Place<'_>) -> Outcome<Written> {
        match kind {
            JavaType::Primitive(kind) => Ok(Written::new(primitive(*kind))),
            JavaType::Variable(_) => Ok(Written::new("java::Value")),
            JavaType::Array(element) => match &**element {
                JavaType::Primitive(Primitive::Byte) => Ok(Written::new("Vec<u8>")),
                JavaType::Primitive(kind) => Ok(Written::with(format!("Vec<{}>", primitive(*kind)), "array")),
                element => {
                    let inner = self.element(element, place)?;
                    Ok(match inner == "java::Value" {
                        // An array of other classes may be there.
                        true => self.any("Object[]", "the payload names the class"),
                        false => Written::with(format!("Vec<Option<{inner}>>"), "array"),
                    })
                }
            },
            JavaType::Class { name, arguments } => self.class(name, arguments, place),
        }
    }

    fn class(&mut self, name: &str, arguments: &[JavaType], place: Place<'_>) -> Outcome<Written> {
        if let Some(kind) = Primitive::of_class(name) {
            return Ok(Written::new(primitive(kind)));
        }
        if name == "java.lang.String" {
            return Ok(Written::new("String"));
        }
        if self.classes.get(name).is_some() {
            return self.own(name, arguments, place);
        }
        let scalar = name.rsplit('.').next().unwrap_or(name);
        match known(name).map(|class| class.kind) {
            Some(Library::Scalar(_)) if scalar == "UUID" => return Ok(Written::new("java::Uuid")),
            Some(Library::Scalar(_)) => return Ok(Written::new(format!("java::{scalar}"))),
            Some(Library::Enum(_)) => {
                let wanted = Wanted { class: name.to_owned(), arguments: Vec::new(), is_place: false };
                return Ok(Written::new(self.want(wanted)));
            }
            Some(Library::Optional) => {
                let inner = match arguments.first() {
                    Some(kind) => self.inner(kind, place)?,
                    None => "java::Value".to_owned(),
                };
                // A null is not an empty one.
                return Ok(Written::new(format!("java::optional::Of<Option<{inner}>>")));
            }
            _ => {}
        }
        let is_plain = PLAIN.contains(&name);
        match (if is_plain { None } else { module(name) }, arguments) {
            (with, [element]) if is_collection(name) && (is_plain || with.is_some()) => {
                let text = format!("Vec<{}>", self.element(element, place)?);
                Ok(Written { text, with, comment: None })
            }
            (with, [key, value]) if is_map(name) && (is_plain || with.is_some()) => {
                if !self.is_key(key) {
                    return Ok(self.any(name, "its keys are no keys of a `HashMap`"));
                }
                let is_enum = match key {
                    JavaType::Class { name, .. } => known(name).is_some() || self.classes.get(name).is_some(),
                    _ => true,
                };
                let map = if with == Some("tree_map") && !is_enum { "BTreeMap" } else { "HashMap" };
                let key = self.element(key, place)?;
                let text = format!("{map}<{key}, {}>", self.element(value, place)?);
                Ok(Written { text, with, comment: None })
            }
            (Some(with), []) if !is_collection(name) && !is_map(name) => Ok(Written::with("String", with)),
            (Some(with @ "class_name"), _) => Ok(Written::with("String", with)),
            _ if is_collection(name) || is_map(name) => Ok(self.any(name, "the payload names what is in it")),
            _ if name == OBJECT => Ok(self.any(name, "if a class of yours can be here, an enum with data")),
            _ if name.starts_with("java.") => Ok(self.any(name, "the payload names the class")),
            _ => Err(format!("the class `{name}`, which a field declares, is not described")),
        }
    }

    /// Whether values of this class can be the keys of a map.
    fn is_key(&self, kind: &JavaType) -> bool {
        let JavaType::Class { name, .. } = kind else { return false };
        let is_float = ["java.lang.Float", "java.lang.Double"].contains(&name.as_str());
        let is_enum = matches!(known(name).map(|class| class.kind), Some(Library::Enum(_)))
            || matches!(self.classes.layout(name), Ok(Some(Layout::Enum(_))));
        is_enum
            || name == "java.lang.String"
            || name == "java.util.UUID"
            || Primitive::of_class(name).is_some() && !is_float
    }

    fn any(&self, class: &str, why: &str) -> Written {
        Written { comment: Some(format!("{}: {why}", short(class))), ..Written::new("java::Value") }
    }

    /// A class of the application.
    fn own(&mut self, name: &str, arguments: &[JavaType], place: Place<'_>) -> Outcome<Written> {
        let layout = self.classes.layout(name)?;
        let text = self.of_place(name, if place.is_record { &[] } else { arguments });
        Ok(match layout {
            // What is in it is not declared there.
            Some(Layout::Collection(_) | Layout::Map(_)) => {
                let is_final = self.classes.is_final(name) == Some(true);
                let comment = || "a `final` list or map: Kryo writes no class, and no Rust type is like this";
                Written {
                    comment: is_final.then(comment).map(str::to_owned),
                    ..Written::with(text, "object")
                }
            }
            _ if place.is_inline && self.reaches(name, place.owner) => Written::new(format!("Box<{text}>")),
            _ => Written::new(text),
        })
    }

    /// Whether an object of a class may have one of another class in it, but for lists and maps.
    fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen = vec![from.to_owned()];
        let mut at = 0;
        while let Some(class) = seen.get(at).cloned() {
            at += 1;
            for object in self.objects(&class) {
                if object == to {
                    return true;
                }
                let Ok(Some(Layout::Object(hierarchy))) = self.classes.layout(&object) else { continue };
                for declared in hierarchy.fields() {
                    inline_classes(&declared.field.kind, &mut |class| {
                        if !seen.iter().any(|known| known == class) && self.classes.get(class).is_some() {
                            seen.push(class.to_owned());
                        }
                    });
                }
            }
        }
        false
    }
}

/// The classes that a type has in it, also as type arguments.
fn inline_classes(kind: &JavaType, found: &mut impl FnMut(&str)) {
    if let JavaType::Class { name, arguments } = kind {
        found(name);
        if !is_collection(name) && !is_map(name) {
            arguments.iter().for_each(|kind| inline_classes(kind, found));
        }
    }
}
