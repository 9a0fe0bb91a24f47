//! Whether a place of a Rust type is what a field of a class is.

use super::hierarchy::Hierarchy;
use super::model::{Classes, JavaType};
use super::predefined::{OBJECT, short};
use super::primitive::Primitive;
use crate::java::base::{Base, base, is_collection, is_map};
use crate::java::known_classes::{ClassKind as Library, known};
use crate::java::shape::{Kind, Node, NodeId, Shape};

/// What is compared.
#[derive(Clone, Copy)]
pub(super) struct Compared<'a> {
    pub(super) shape: &'a Shape,
    pub(super) classes: &'a Classes,
    /// It is the class of the whole payload.
    pub(super) is_root: bool,
}

/// The type of a field, with the type parameters that the class itself says.
pub(super) fn java_name(hierarchy: &Hierarchy<'_>, by: usize, kind: &JavaType) -> JavaType {
    match kind {
        JavaType::Primitive(_) => kind.clone(),
        JavaType::Variable(name) => match hierarchy.variable(by, name) {
            Some((by, kind)) => java_name(hierarchy, by, &kind),
            None => kind.clone(),
        },
        JavaType::Array(element) => JavaType::Array(Box::new(java_name(hierarchy, by, element))),
        JavaType::Class { name, arguments } => JavaType::Class {
            name: name.clone(),
            arguments: arguments.iter().map(|kind| java_name(hierarchy, by, kind)).collect(),
        },
    }
}

/// What is different, for a message.
pub(super) fn mismatch(check: &Compared<'_>, place: NodeId, java: &JavaType) -> Option<String> {
    let node = &check.shape.nodes[place];
    let different = || Some(format!("`{java}` in Java, `{}` here", short(&check.shape.class_name(place))));
    match java {
        JavaType::Primitive(primitive) => match (primitive_of(node), node.is_primitive()) {
            (Some(found), true) if found == *primitive => None,
            (Some(found), false) if found == *primitive && node.nullable => Some(format!(
                "`{java}` in Java, `{}` here: a field that is never null has no `Option`",
                short(found.boxed())
            )),
            (Some(found), true) => Some(format!("`{java}` in Java, `{}` here", found.name())),
            _ => different(),
        },
        // Where a field declares the class, that says what it is.
        JavaType::Variable(_) if !check.is_root => None,
        JavaType::Variable(_) => open(node),
        JavaType::Array(element) => match &node.kind {
            _ if node.object => Some(format!("`{java}` in Java, and `java::object` here")),
            Kind::Value => {
                let class = java.erased();
                let is_final = class.and_then(|class| check.classes.is_final(&class)) == Some(true);
                if is_final { different() } else { None }
            }
            Kind::Bytes if **element == JavaType::Primitive(Primitive::Byte) => None,
            Kind::Array(inner) => element_of(check, *inner, element, "array"),
            _ => different(),
        },
        JavaType::Class { name, arguments } => class(check, place, name, arguments).unwrap_or_else(different),
    }
}

/// A place that declares `Object`, an interface or a base class.
fn open(node: &Node) -> Option<String> {
    let is_open = node.object || matches!(node.kind, Kind::Value | Kind::Choice(_)) || !node.is_final;
    (!is_open).then(|| {
        "`Object` in Java, so the payload has the class: use `java::object`, an enum with data, or \
         `java::Value`"
            .to_owned()
    })
}

/// `Some(None)`: it fits. `None`: it is another type.
fn class(check: &Compared<'_>, place: NodeId, name: &str, arguments: &[JavaType]) -> Option<Option<String>> {
    let node = &check.shape.nodes[place];
    if let Some(primitive) = Primitive::of_class(name) {
        return match primitive_of(node) {
            Some(found) if found == primitive && node.is_primitive() => Some(Some(format!(
                "`{}` in Java, `{}` here: it can be null, so it is an `Option`",
                short(name),
                primitive.name()
            ))),
            Some(found) if found == primitive => Some(None),
            _ => None,
        };
    }
    let is = |fits: bool| fits.then_some(None);
    let final_object = || {
        let is_wrong = node.object && check.classes.is_final(name) == Some(true);
        is_wrong.then(|| "final in Java, so without `java::object`".to_owned())
    };
    match &node.kind {
        _ if name == "java.lang.String" => (node.kind == Kind::String).then(final_object),
        _ if base(name) == Some(Base::Object) => Some(open(node)),
        Kind::Value => match check.classes.is_final(name) {
            Some(true) => None,
            _ => Some(None),
        },
        Kind::Optional(inner) if name == "java.util.Optional" => {
            let inner = || element_of(check, *inner, arguments.first()?, "`Optional`");
            Some(final_object().or_else(inner))
        }
        Kind::Scalar(class) => (class.name == name).then(final_object),
        Kind::Text(class) if class.name == "java.time.ZoneRegion" => is(name == "java.time.ZoneId"),
        Kind::Text(class) => (class.name == name).then(final_object),
        Kind::Collection(class, element) if is_collection(name) => {
            Some(list(check, node, name, class.name, &[(*element, arguments.first())]))
        }
        Kind::EnumSet(_, element)
            if ["java.util.EnumSet", "java.util.Set", "java.util.Collection"].contains(&name) =>
        {
            Some(arguments.first().and_then(|kind| element_of(check, *element, kind, "set")))
        }
        Kind::Map(class, key, value) if is_map(name) => {
            let inner = [(*key, arguments.first()), (*value, arguments.get(1))];
            Some(list(check, node, name, class.name, &inner))
        }
        Kind::Collection(class, _) | Kind::Map(class, ..) => is(class.name == name),
        Kind::Enum(at) => is(check.shape.enums[*at].class == name && !node.object),
        Kind::Choice(at) => is(check.shape.choices[*at].class == name),
        Kind::Struct(at) => {
            let class = &check.shape.structs[*at].class;
            if class == name {
                // The class in front of it is there in both, unless it is final.
                return Some(final_object());
            }
            if !check.classes.is_below(class, name) {
                return None;
            }
            Some(
                (node.is_final && !node.object).then(|| {
                    format!("`{}` in Java, which `{class}` extends: use `java::object`", short(name))
                }),
            )
        }
        _ => None,
    }
}

/// A collection or map: whether the class may be there, and what is in it.
fn list(
    check: &Compared<'_>,
    node: &Node,
    declared: &str,
    found: &str,
    inner: &[(NodeId, Option<&JavaType>)],
) -> Option<String> {
    if !may_be(declared, found) {
        return Some(format!("`{}` in Java, `{}` here", short(declared), short(found)));
    }
    for (place, kind) in inner {
        let element = &check.shape.nodes[*place];
        match kind {
            // Nothing declares what is in it, so classes stand in front of it.
            None if element.is_final && !node.object => {
                return Some(format!(
                    "`{}` without type arguments in Java: use `java::object`",
                    short(declared)
                ));
            }
            None => {}
            Some(kind) if node.object && *kind != &JavaType::class(OBJECT) && element.is_final => {
                return Some(format!(
                    "declared with its elements in Java, a `{kind}`: without `java::object`"
                ));
            }
            Some(kind) => {
                if let Some(why) = element_of(check, *place, kind, "elements") {
                    return Some(why);
                }
            }
        }
    }
    None
}

/// Whether a list, set or map of this class can be where another class is declared.
fn may_be(declared: &str, found: &str) -> bool {
    if declared == found {
        return true;
    }
    let is_concrete =
        known(declared).is_some_and(|class| matches!(class.kind, Library::Collection(_) | Library::Map(_)));
    let kind = |name: &str| match name.rsplit(['.', '$']).next().unwrap_or(name) {
        name if name.contains("Map") || name == "Properties" || name == "Hashtable" => "map",
        name if name.contains("Set") => "set",
        name if name.contains("Queue") || name.contains("Deque") => "queue",
        _ => "list",
    };
    let (of_declared, of_found) = (kind(declared), kind(found));
    match declared {
        _ if is_concrete => false,
        "java.util.Collection" | "java.util.AbstractCollection" | "java.lang.Iterable" => of_found != "map",
        "java.util.SequencedCollection" => of_found != "map",
        // A `LinkedList` is both.
        _ if of_declared == "queue" => of_found == "queue" || found == "java.util.LinkedList",
        "java.util.SortedSet"
        | "java.util.NavigableSet"
        | "java.util.SortedMap"
        | "java.util.NavigableMap" => {
            (found.contains("Tree") || found.contains("SkipList")) && of_declared == of_found
        }
        _ => of_declared == of_found,
    }
}

/// An element, which is an object even if its type is written like a primitive one.
fn element_of(check: &Compared<'_>, place: NodeId, kind: &JavaType, of: &str) -> Option<String> {
    let node = &check.shape.nodes[place];
    let found = match kind {
        JavaType::Class { name, .. } if Primitive::of_class(name).is_some() => {
            let is_array = of == "array" && node.is_primitive();
            let fits = primitive_of(node) == Primitive::of_class(name) && !is_array && !node.object;
            (!fits).then(|| {
                let here = check.shape.class_name(place);
                let primitive = primitive_of(node).filter(|_| is_array).map(Primitive::name);
                format!("`{kind}` in Java, `{}` here", primitive.unwrap_or(short(&here)))
            })
        }
        _ => mismatch(check, place, kind),
    };
    found.map(|why| format!("in the {of}, {why}"))
}

fn primitive_of(node: &Node) -> Option<Primitive> {
    if node.object {
        return None;
    }
    Some(match node.kind {
        Kind::Boolean => Primitive::Boolean,
        Kind::Byte => Primitive::Byte,
        Kind::Short => Primitive::Short,
        Kind::Character => Primitive::Char,
        Kind::Integer => Primitive::Int,
        Kind::Long => Primitive::Long,
        Kind::Float => Primitive::Float,
        Kind::Double => Primitive::Double,
        _ => return None,
    })
}
