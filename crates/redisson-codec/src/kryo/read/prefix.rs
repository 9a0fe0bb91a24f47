//! [`Prefix`]: what is in front of a value. Its class, if the payload names it, and whether it is null.

use super::super::input::{ClassRef, Input};
use super::super::{scalar, value};
use crate::java::known_classes::{Class, ClassKind, TextPart};
use crate::java::shape::{Choice, EnumShape, Form, Kind, Node, NodeId, Shape, Variant};
use crate::java_serialization::Typed;
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::numbered::Numbered;

/// What a place of a type needs to be read.
pub(in super::super) struct ReadContext<'a, 'de> {
    pub(in super::super) input: Input<'de>,
    pub(in super::super) shape: &'a Shape,
    /// Take structs and enums of other classes, too.
    pub(in super::super) any_class: bool,
}

/// What is in front of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Prefix {
    /// Its class, or null.
    Class,
    /// A null, or something else that is not one.
    Nullable(Found),
    /// Nothing.
    Nothing(Found),
    /// No value either: it is null.
    Null,
}

/// The class of a value, as far as its layout depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// The declared one.
    Declared,
    /// A collection or map.
    Known(&'static Class),
    /// Any; that of a constant, which may have a body; or one of several.
    Any(ClassRef),
    /// One of which nothing is known, and the value is all that follows.
    Opaque(ClassRef),
    /// Java's own serialization wrote the value.
    Serialized(ClassRef),
}

/// Which classes fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// The declared one.
    Exact,
    /// And what Java's library has instead of it.
    Library,
    /// And, for structs and enums, all others.
    Any,
}

impl<'a, 'de> ReadContext<'a, 'de> {
    #[inline]
    pub(super) fn node(&self, node: NodeId) -> &'a Node {
        let shape: &'a Shape = self.shape;
        &shape.nodes[node]
    }

    /// Reads what is in front of a value; `None` is a null.
    #[inline]
    pub(super) fn prefix(&mut self, node: NodeId, prefix: Prefix) -> Outcome<Option<Found>> {
        match prefix {
            Prefix::Nothing(found) => Ok(Some(found)),
            prefix => self.some_prefix(node, prefix),
        }
    }

    fn some_prefix(&mut self, node: NodeId, prefix: Prefix) -> Outcome<Option<Found>> {
        match prefix {
            Prefix::Nothing(found) => Ok(Some(found)),
            Prefix::Null => Ok(None),
            Prefix::Class => match self.input.class()? {
                None => Ok(None),
                // Which variant has this class is looked for when it is read, and only then.
                Some(class) if matches!(self.node(node).kind, Kind::Choice(_)) => Ok(Some(Found::Any(class))),
                Some(class) => self.check(node, class).map(Some),
            },
            Prefix::Nullable(found) => {
                let present = match self.null(node, found) {
                    Some(null) => {
                        let present = self.input.peek()? != null;
                        if !present {
                            self.input.byte()?;
                        }
                        present
                    }
                    None => self.input.boolean()?,
                };
                Ok(present.then_some(found))
            }
        }
    }

    /// The byte by which the value itself says that it is null, if it does.
    fn null(&self, node: NodeId, found: Found) -> Option<u8> {
        match (&self.node(node).kind, found) {
            (Kind::Value, Found::Any(class)) => value::null(&self.input, class),
            (Kind::Choice(at), Found::Any(class)) => {
                let (variant, found) = self.variant(&self.shape.choices[*at], class)?;
                self.null(variant.node, found)
            }
            (Kind::String, _) => Some(0x80),
            (Kind::Bytes | Kind::Array(_) | Kind::Enum(_), _) => Some(0),
            (Kind::Scalar(class) | Kind::Text(class), _) => scalar::null(class),
            (Kind::Collection(declared, _) | Kind::Map(declared, ..), found) => {
                let class = if let Found::Known(class) = found { class } else { declared };
                scalar::null(class)
            }
            _ => None,
        }
    }

    /// Whether a value of this class can be what is declared here.
    pub(super) fn check(&self, node: NodeId, class: ClassRef) -> Outcome<Found> {
        let fit = if self.any_class { Fit::Any } else { Fit::Library };
        self.found(node, class, fit).ok_or_else(|| self.unexpected_class(node, class))
    }

    #[cold]
    pub(super) fn unexpected_class(&self, node: NodeId, class: ClassRef) -> Failure {
        let (found, at) = (self.input.shown(class), self.input.at);
        Failure::new(match self.node(node).kind {
            Kind::Choice(choice) => {
                let choice = &self.shape.choices[choice];
                let any = choice.variants.iter().any(|variant| self.node(variant.node).kind == Kind::Value);
                let end = if any { ", of which it is not known where it ends" } else { "" };
                let expected = self.shape.classes(choice);
                format!("expected the class {expected}, found `{found}`{end}, before offset {at}")
            }
            Kind::Enum(constants) if found.starts_with(&self.shape.enums[constants].class) => {
                let class = &self.shape.enums[constants].class;
                format!(
                    "a constant of `{class}` has the class `{found}` before offset {at}, which no variant has: \
                     `abstract(…)` names the constants that have bodies"
                )
            }
            _ => {
                let expected = self.shape.class_name(node);
                format!("expected the class `{expected}`, found `{found}`, before offset {at}")
            }
        })
    }

    /// The variant for this class. One of exactly this class comes before those that also take others.
    pub(super) fn variant(&self, choice: &'a Choice, class: ClassRef) -> Option<(&'a Variant, Found)> {
        [Fit::Exact, Fit::Library].into_iter().find_map(|fit| {
            let of = |variant: &'a Variant| match self.node(variant.node).kind {
                Kind::Value if fit == Fit::Exact => None,
                Kind::Value => Some((variant, self.any_value(class)?)),
                _ => Some((variant, self.found(variant.node, class, fit)?)),
            };
            choice.variants.iter().find_map(of)
        })
    }

    /// What a value of this class is for the variant that takes all others. Of an unknown class, it has an
    /// end that can be found only if it is the whole payload.
    fn any_value(&self, class: ClassRef) -> Option<Found> {
        let known = match class {
            ClassRef::Numbered(_) => true,
            ClassRef::Named(_) => {
                self.input.known(class).is_some()
                    || self.input.class_name(class).starts_with('[')
                    || self.input.is_serialized(class)
            }
        };
        match known {
            true => Some(Found::Any(class)),
            false => self.input.is_behind_first_class().then_some(Found::Opaque(class)),
        }
    }

    /// What a value of this class is at a place, if it fits there.
    fn found(&self, node: NodeId, class: ClassRef, fit: Fit) -> Option<Found> {
        let numbered =
            |number| if class == ClassRef::Numbered(number) { Some(Found::Declared) } else { None };
        let named = |name: &str| self.input.is_named(class, name).then_some(Found::Declared);
        let one_of = |declared: &'static Class, fits: fn(ClassKind) -> bool| match class {
            ClassRef::Named(_) if self.input.is_serialized(class) => (fit != Fit::Exact
                || self.input.is_named(class, declared.name))
            .then_some(Found::Serialized(class)),
            ClassRef::Named(_) if self.input.is_named(class, declared.name) => Some(Found::Known(declared)),
            ClassRef::Named(_) if fit == Fit::Exact => None,
            ClassRef::Named(_) => match self.input.known(class) {
                Some(known) => fits(known.kind).then_some(Found::Known(known)),
                // One of an application, which is written like others.
                None => (fit == Fit::Any && fits(declared.kind)).then_some(Found::Known(declared)),
            },
            ClassRef::Numbered(_) => None,
        };
        match &self.node(node).kind {
            Kind::Boolean => numbered(Numbered::Boolean),
            Kind::Byte => numbered(Numbered::Byte),
            Kind::Short => numbered(Numbered::Short),
            Kind::Character => numbered(Numbered::Character),
            Kind::Integer => numbered(Numbered::Integer),
            Kind::Long => numbered(Numbered::Long),
            Kind::Float => numbered(Numbered::Float),
            Kind::Double => numbered(Numbered::Double),
            Kind::String => numbered(Numbered::String),
            Kind::Bytes => named("[B"),
            // A `ZoneId` is one of two classes.
            Kind::Text(declared) if declared.name == "java.time.ZoneRegion" => {
                one_of(declared, |kind| kind == ClassKind::Text(&[TextPart::Offset]))
            }
            Kind::Scalar(declared) | Kind::Text(declared) => named(declared.name),
            Kind::Optional(_) => named("java.util.Optional"),
            Kind::Value if fit == Fit::Exact => None,
            Kind::Value => Some(Found::Any(class)),
            Kind::Choice(at) => {
                let choice = &self.shape.choices[*at];
                let mut nodes = choice.variants.iter().map(|variant| variant.node);
                let fits = match fit {
                    Fit::Exact => nodes.any(|node| self.found(node, class, fit).is_some()),
                    _ => self.variant(choice, class).is_some(),
                };
                fits.then_some(Found::Any(class))
            }
            Kind::Array(_) => named(&self.shape.array_class(node)),
            Kind::Collection(declared, _) | Kind::EnumSet(declared, _) => {
                one_of(declared, |kind| matches!(kind, ClassKind::Collection(_) | ClassKind::EnumSet))
            }
            Kind::Map(declared, ..) => one_of(declared, |kind| matches!(kind, ClassKind::Map(_))),
            Kind::Struct(at) => {
                let named = named(&self.shape.structs[*at].class);
                let other = || fit == Fit::Any && matches!(class, ClassRef::Named(_));
                let found = named.or_else(|| other().then_some(Found::Declared))?;
                Some(if self.input.is_serialized(class) { Found::Serialized(class) } else { found })
            }
            Kind::Enum(at) => {
                let declared = &self.shape.enums[*at];
                let known = self.is_enum(declared, class) || fit == Fit::Any;
                let found = match declared.form {
                    // Which constants have this class is seen when the constant is read.
                    Form::Abstract if !self.any_class => Found::Any(class),
                    _ => Found::Declared,
                };
                (known && matches!(class, ClassRef::Named(_))).then_some(found)
            }
        }
    }

    /// A value that Java's own serialization wrote.
    #[cold]
    pub(super) fn serialized(&mut self, node: NodeId, class: ClassRef) -> Outcome<Typed<'a, Failure>> {
        let start = self.input.at;
        self.input.deeper()?;
        let read = self.input.serialized(class)?;
        self.input.shallower();
        let value = read.value.map_err(|why| Failure::new(format!("{why}, at offset {start}")))?;
        Ok(Typed::new(self.shape, node, value, self.any_class))
    }

    /// Refuses an `EnumSet` whose elements are no enum: it has the numbers of the constants only.
    #[cold]
    pub(super) fn no_enum(&self, element: NodeId) -> Failure {
        let (expected, at) = (self.shape.class_name(element), self.input.at);
        Failure::new(format!("expected elements of `{expected}` at offset {at}, found an `EnumSet`"))
    }

    /// A constant with a body has a class of its own: `Level$1`.
    fn is_enum(&self, declared: &EnumShape, class: ClassRef) -> bool {
        if declared.form != Form::Abstract {
            return self.input.is_named(class, &declared.class);
        }
        (0..declared.variants.len()).any(|ordinal| self.input.is_named(class, declared.class_of(ordinal)))
    }

    #[cold]
    pub(super) fn unexpected_null(&self, node: NodeId) -> Failure {
        let expected = self.shape.class_name(node);
        Failure::new(format!("expected `{expected}`, found a null before offset {}", self.input.at))
    }

    /// The prefix of a field or element with a declared class.
    #[inline]
    pub(super) fn declared(&self, node: NodeId) -> Prefix {
        let declared = self.node(node);
        if declared.is_final { Prefix::Nullable(Found::Declared) } else { Prefix::Class }
    }
}
