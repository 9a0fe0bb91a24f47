//! Which variant of an enum with data a node is: its class says that, or its tag.

use std::borrow::Cow;

use super::ValueReader;
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::mapper::Typing;
use crate::jackson::node::{Is, Key, Node};
use crate::jackson::value::{as_text, is_collection, is_map, split_class};
use crate::jackson::write::enum_set_class;
use crate::java::shape::{Choice, Form, Kind, NodeId, Shape, Tag, Variant};
use crate::shown::shown;

/// The variant for what is here, and its node.
pub(super) fn variant<'n, 'a>(
    reader: &ValueReader<'n, 'a>,
    choice: &'static Choice,
) -> Outcome<(&'static Variant, &'n Node<'a>)> {
    let (shape, node) = (reader.context.shape, reader.node);
    let class = class(reader);
    if let Some(tag) = &choice.tag {
        let tagged = tagged(node, tag);
        let named = |name: &str| {
            let is_it = |variant: &&Variant| variant.name == name && !is_other(shape, variant);
            choice.variants.iter().find(is_it)
        };
        let found = tagged.as_ref().and_then(|(name, _, inside)| Some((named(name)?, *inside)));
        match (found, tagged) {
            (Some(found), _) => return Ok(found),
            (None, Some((name, at, _))) if class.is_none() => {
                let other = choice.variants.iter().find(|variant| is_other(shape, variant));
                return other.map(|other| (other, node)).ok_or_else(|| unexpected(shape, choice, &name, at));
            }
            _ => {}
        }
    }
    if let Some((class, at)) = class {
        let variant = of_class(shape, choice, class).ok_or_else(|| unexpected(shape, choice, class, at));
        return Ok((variant?, node));
    }
    // An annotation names what is the payload itself, too.
    let variant = match choice.tag {
        None => without_class(reader, choice),
        Some(_) => choice.variants.iter().find(|variant| is_other(shape, variant)),
    };
    match variant {
        Some(variant) => Ok((variant, node)),
        None => {
            let (expected, found) = (shape.classes(choice), node.kind());
            let why = format!("expected the class {expected}, found {found} that does not name its class");
            Err(Failure::new(why).at(node.at))
        }
    }
}

/// Whether a variant takes what no other one does.
fn is_other(shape: &Shape, variant: &Variant) -> bool {
    shape.nodes[variant.node].kind == Kind::Value
}

/// The name that stands for the class by an annotation, its offset, and the object.
fn tagged<'n, 'a>(node: &'n Node<'a>, tag: &Tag) -> Option<(Cow<'n, str>, u32, &'n Node<'a>)> {
    match (tag, &node.is) {
        (Tag::Property(property), Is::Object(entries)) => {
            let is_tag = |key: &Key<'_>| matches!(key, Key::Text(key) if key == property);
            let (_, name) = entries.iter().find(|(key, _)| is_tag(key))?;
            Some((as_text(name)?.into(), name.at, node))
        }
        (Tag::Object, Is::Object(entries)) => match &entries[..] {
            [(name, inside)] => Some((name.text(), node.at, inside)),
            _ => None,
        },
        (Tag::Array, Is::Array(pair) | Is::Bare(pair)) => match &pair[..] {
            [name, inside] => Some((as_text(name)?.into(), name.at, inside)),
            _ => None,
        },
        _ => None,
    }
}

#[cold]
fn unexpected(shape: &Shape, choice: &Choice, found: &str, at: u32) -> Failure {
    let (expected, found) = (shape.classes(choice), shown(found));
    Failure::new(format!("expected the class {expected}, found `{found}`")).at(at)
}

/// The class that a node names.
fn class<'n>(reader: &ValueReader<'n, '_>) -> Option<(&'n str, u32)> {
    match &reader.node.is {
        _ if reader.context.mapper.typing == Typing::Nowhere => None,
        Is::Object(entries) => split_class(entries, reader.context.mapper.typing.is_property()).0,
        Is::Array(pair) | Is::Bare(pair) => {
            let [class, _] = &pair[..] else { return None };
            let name = as_text(class)?;
            (name.starts_with('[') || name.contains('.')).then_some((name, class.at))
        }
        _ => None,
    }
}

/// The class of what needs none.
fn implied_class(is: &Is<'_>) -> Option<&'static str> {
    Some(match is {
        Is::Bool(_) => "java.lang.Boolean",
        Is::Int(value) if i32::try_from(*value).is_ok() => "java.lang.Integer",
        Is::Int(_) => "java.lang.Long",
        Is::Big(_) => "java.math.BigInteger",
        Is::Number(_) | Is::Double(_) => "java.lang.Double",
        Is::Decimal(_) => "java.math.BigDecimal",
        Is::Float(_) => "java.lang.Float",
        Is::Text(_) => "java.lang.String",
        Is::Bytes(_) => "[B",
        Is::Null | Is::Array(_) | Is::Bare(_) | Is::Object(_) => return None,
    })
}

/// A variant of exactly this class comes before those that also take others.
fn of_class(shape: &Shape, choice: &'static Choice, class: &str) -> Option<&'static Variant> {
    let mut variants = choice.variants.iter();
    let exact = variants.find(|variant| is_class(shape, variant.node, class));
    exact.or_else(|| choice.variants.iter().find(|variant| takes(shape, variant.node, class)))
}

fn is_class(shape: &Shape, node: NodeId, class: &str) -> bool {
    match shape.nodes[node].kind {
        Kind::Value => false,
        Kind::Choice(at) => {
            shape.choices[at].variants.iter().any(|variant| is_class(shape, variant.node, class))
        }
        Kind::EnumSet(_, element) => class == enum_set_class(&shape.class_name(element)),
        _ => class == shape.class_name(node),
    }
}

fn takes(shape: &Shape, node: NodeId, class: &str) -> bool {
    match shape.nodes[node].kind {
        Kind::Value => true,
        Kind::Choice(at) => {
            shape.choices[at].variants.iter().any(|variant| takes(shape, variant.node, class))
        }
        Kind::Collection(..) => is_collection(class),
        Kind::Map(..) => is_map(class),
        _ => false,
    }
}

/// The variant for what names no class: of a scalar one that needs none, at the root the only one that has
/// none there, or any value.
fn without_class(reader: &ValueReader<'_, '_>, choice: &'static Choice) -> Option<&'static Variant> {
    let (shape, is) = (reader.context.shape, &reader.node.is);
    if let Some(class) = implied_class(is) {
        return of_class(shape, choice, class);
    }
    let mut last = choice.variants.iter().filter(|variant| match shape.nodes[variant.node].kind {
        Kind::Struct(at) => {
            shape.structs[at].form != Form::Plain && reader.root && matches!(is, Is::Object(_))
        }
        _ => false,
    });
    match (last.next(), last.next()) {
        (Some(only), None) => Some(only),
        _ => choice.variants.iter().find(|variant| is_other(shape, variant)),
    }
}
