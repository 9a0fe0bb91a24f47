//! The plan of a type: what to write at each place. Made once for each format from its shape, so that writing
//! a value looks nothing up. Class names and property names are stored as encoded bytes.

use std::collections::HashMap;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::CodecError;
use crate::jackson::format::{Format, Group};
use crate::jackson::mapper::Typing;
use crate::jackson::value;
use crate::java::known_classes::{Class, ClassKind};
use crate::java::per_type::{Last, PerType};
use crate::java::shape::{EnumShape, Form, Kind, Node, NodeId, Shape, Tag, Variant};

/// The name of the property that is an object's class.
pub(in crate::jackson) const CLASS: &str = "@class";

/// The name that Jackson has for a set of an enum.
pub(in crate::jackson) fn enum_set_class(element: &str) -> String {
    format!("java.util.EnumSet<{element}>")
}

/// The class of a text, as Jackson names it.
pub(in crate::jackson) fn written_class(class: &'static str) -> &'static str {
    if class == "java.time.ZoneRegion" { "java.time.ZoneId" } else { class }
}

/// A type, as it is written in one format.
#[derive(Debug)]
pub(in crate::jackson) struct Plan {
    /// The first is the type itself.
    sites: Vec<Site>,
    structs: Vec<StructPlan>,
}

/// Which of [`Plan::sites`].
pub(super) type SiteId = usize;

/// A place in the type.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) content: Content,
    /// The class of what is declared here as it is written: in front of the value or, of an object or a map,
    /// as the first property.
    pub(super) class: Option<Encoded>,
    /// What is around an object or a map, instead.
    pub(super) around: Option<Around>,
    /// Here even a final class is written, since something is declared that has others below it.
    pub(super) open: bool,
    /// For messages.
    pub(super) kind: &'static Kind,
}

/// Bytes that are written often. To copy parts of a fixed length needs no call of `memcpy`.
#[derive(Debug)]
pub(super) struct Encoded {
    parts: Box<[[u8; PART]]>,
    length: usize,
}

/// Most names of fields fit into one, and most names of classes into two.
const PART: usize = 32;

impl Encoded {
    fn new(bytes: &[u8]) -> Self {
        let part = |bytes: &[u8]| {
            let mut part = [0; PART];
            part[..bytes.len()].copy_from_slice(bytes);
            part
        };
        Self { parts: bytes.chunks(PART).map(part).collect(), length: bytes.len() }
    }

    #[inline]
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.length;
        for part in &self.parts {
            out.extend_from_slice(part);
        }
        out.truncate(end);
    }
}

/// What is around an object that says its class outside of it.
#[derive(Debug)]
pub(super) struct Around {
    pub(super) before: Box<[u8]>,
    pub(super) behind: Box<[u8]>,
}

#[derive(Debug)]
pub(super) enum Content {
    /// Of any size.
    Integer,
    Character,
    /// A text of a class that is not `String`.
    TextOf,
    /// The same of a class of `java.time`.
    Time(&'static str),
    /// A type of [`java`](crate::java) that hands itself over.
    Scalar(&'static Class),
    Bytes,
    Optional(SiteId),
    List(Group, SiteId),
    /// A `char[]`, which is one text.
    Characters,
    /// The site is that of the values.
    Map(SiteId),
    /// The same, whose entries are properties of the object around it.
    Properties(SiteId),
    /// The same, whose entries are among the other properties.
    Rest(SiteId),
    /// Which of [`Plan::structs`].
    Struct(usize),
    Enum,
    /// The same at the root, where the class is left out for the constants with bodies, whose classes are
    /// final.
    Constant(&'static EnumShape),
    /// One of several classes: the name of each variant.
    Choice(Vec<(&'static str, SiteId)>),
    /// Anything that the value itself determines completely.
    Plain,
}

#[derive(Debug)]
pub(super) struct StructPlan {
    pub(super) class: &'static str,
    /// As they are declared in Rust.
    pub(super) fields: Vec<FieldPlan>,
    /// How many of them come first, whatever their names.
    pub(super) pinned: usize,
}

#[derive(Debug)]
pub(super) struct FieldPlan {
    pub(super) name: &'static str,
    /// The name as it is written.
    pub(super) key: Encoded,
    /// Its number in Java's order.
    pub(super) place: usize,
    pub(super) site: SiteId,
    /// Its nulls are written.
    pub(super) nulls: bool,
}

/// The position of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Position {
    Root,
    Field,
    /// Of a list, set or map, which hold references only.
    Element,
    Array,
    /// Of an `EnumSet`, whose class says that of its constants.
    Constant,
}

/// For each pair of a format and a type.
static PLANS: PerType<Plan> = PerType::new(&LAST);
/// The same for mappers of an application.
static PROPERTY: PerType<Plan> = PerType::new(&LAST_PROPERTY);
static WRAPPER: PerType<Plan> = PerType::new(&LAST_WRAPPER);
static NOWHERE: PerType<Plan> = PerType::new(&LAST_NOWHERE);

thread_local! {
    static LAST: Last<Plan> = const { Last::new(None) };
    static LAST_PROPERTY: Last<Plan> = const { Last::new(None) };
    static LAST_WRAPPER: Last<Plan> = const { Last::new(None) };
    static LAST_NOWHERE: Last<Plan> = const { Last::new(None) };
}

impl Plan {
    /// The plan of a type in a format; made when first asked for.
    ///
    /// # Errors
    /// When there is something in the type that has no counterpart in Java, or that cannot be asked.
    #[inline]
    pub(in crate::jackson) fn of<F: Format, T: DeserializeOwned + 'static>(
        typing: Typing,
    ) -> Result<&'static Plan, CodecError> {
        match typing {
            Typing::Redisson => {
                PLANS.of::<(F, T)>(|| Ok(Plan::new::<F>(Shape::of::<T>()?, Typing::Redisson)))
            }
            Typing::Property => {
                PROPERTY.of::<(F, T)>(|| Ok(Plan::new::<F>(Shape::of::<T>()?, Typing::Property)))
            }
            Typing::Wrapper => {
                WRAPPER.of::<(F, T)>(|| Ok(Plan::new::<F>(Shape::of::<T>()?, Typing::Wrapper)))
            }
            Typing::Nowhere => {
                NOWHERE.of::<(F, T)>(|| Ok(Plan::new::<F>(Shape::of::<T>()?, Typing::Nowhere)))
            }
        }
    }

    fn new<F: Format>(shape: &'static Shape, typing: Typing) -> Plan {
        let structs = shape.structs.iter().map(|found| StructPlan {
            class: &found.class,
            fields: Vec::new(),
            pinned: 0,
        });
        let structs = structs.collect();
        let plan = Plan { sites: Vec::new(), structs };
        let mut planner = Planner::<F> { shape, typing, plan, known: HashMap::new(), format: PhantomData };
        planner.site(shape.root(), Position::Root, true);
        planner.plan
    }

    #[inline]
    pub(super) fn root(&self) -> &Site {
        self.site(0)
    }

    #[inline]
    pub(super) fn site(&self, site: SiteId) -> &Site {
        &self.sites[site]
    }

    #[inline]
    pub(super) fn class(&self, at: usize) -> &StructPlan {
        &self.structs[at]
    }
}

/// Whether a list or map is of a final class: what `List.of` and the like make. A field declares another.
fn is_final_collection(class: &Class) -> bool {
    class.name.starts_with("java.util.ImmutableCollections$")
}

struct Planner<F> {
    shape: &'static Shape,
    typing: Typing,
    plan: Plan,
    /// So that an enum that holds itself comes to an end: its node, its position, and whether it is open and
    /// untyped.
    known: HashMap<(NodeId, Position, bool, bool), SiteId>,
    format: PhantomData<F>,
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

impl<F: Format> Planner<F> {
    /// Of a list or map that is `untyped` nothing says what the elements are, so that each is written as an
    /// `Object`. That is the payload itself, whatever is declared as `Object`, and what is in such a list.
    fn site(&mut self, id: NodeId, position: Position, untyped: bool) -> SiteId {
        let node = &self.shape.nodes[id];
        let object = (node.object || node.kind == Kind::Value) && position != Position::Root;
        self.site_of(id, position, untyped, object || untyped && position == Position::Element)
    }

    /// The same at a place that may be `open` because of what is declared there.
    fn site_of(&mut self, id: NodeId, position: Position, untyped: bool, open: bool) -> SiteId {
        if let Some(&known) = self.known.get(&(id, position, untyped, open)) {
            return known;
        }
        let site = self.plan.sites.len();
        self.known.insert((id, position, untyped, open), site);
        let node = &self.shape.nodes[id];
        let kind = &node.kind;
        let (class, around) = match self.is_named(node, position, open) {
            false => (None, None),
            true if self.typing == Typing::Wrapper && matches!(kind, Kind::Struct(_) | Kind::Map(..)) => {
                let before = written(|out| F::class(out, &self.shape.class_name(id)));
                (None, Some(Around { before: before.into(), behind: F::BEHIND.into() }))
            }
            true => (Some(self.class(id)), None),
        };
        self.plan.sites.push(Site { content: Content::Plain, class, around, open, kind });
        self.plan.sites[site].content = self.content(node, position, open, untyped || open);
        site
    }

    fn content(&mut self, node: &'static Node, position: Position, open: bool, untyped: bool) -> Content {
        match node.kind {
            Kind::Byte | Kind::Short | Kind::Integer | Kind::Long => Content::Integer,
            Kind::Character => Content::Character,
            Kind::Text(class) if value::is_time(class.name) => Content::Time(class.name),
            Kind::Text(_) => Content::TextOf,
            Kind::Bytes => Content::Bytes,
            Kind::Optional(inside) => Content::Optional(self.site(inside, position, untyped)),
            Kind::Collection(class, element) => {
                let bare = position == Position::Root && is_final_collection(class);
                let group = if bare { Group::Bare } else { Group::List };
                Content::List(group, self.site(element, Position::Element, untyped))
            }
            Kind::EnumSet(_, element) => {
                Content::List(Group::List, self.site(element, Position::Constant, untyped))
            }
            Kind::Array(element) if self.is_char(element) => Content::Characters,
            Kind::Array(element) => {
                let group = if open || !self.is_final(element) { Group::List } else { Group::Bare };
                Content::List(group, self.site(element, Position::Array, untyped))
            }
            Kind::Map(_, _, value) => Content::Map(self.site(value, Position::Element, untyped)),
            Kind::Struct(at) => {
                self.fields(at);
                Content::Struct(at)
            }
            Kind::Enum(at) if position == Position::Root => Content::Constant(&self.shape.enums[at]),
            Kind::Enum(_) => Content::Enum,
            Kind::Choice(at) => {
                let choice = &self.shape.choices[at];
                // Where an `Object` is declared, the annotation of the base class has no effect.
                let tag = choice.tag.as_ref().filter(|_| !open);
                let open = open || position != Position::Root;
                let site = |variant: &'static Variant| {
                    let site = self.site_of(variant.node, position, untyped, open);
                    match tag {
                        None => (variant.name, site),
                        Some(tag) => (variant.name, self.tagged(site, tag, variant.name)),
                    }
                };
                Content::Choice(choice.variants.iter().map(site).collect())
            }
            Kind::Scalar(class) if matches!(class.kind, ClassKind::Scalar(_)) => Content::Scalar(class),
            Kind::Boolean | Kind::Float | Kind::Double | Kind::String | Kind::Scalar(_) | Kind::Value => {
                Content::Plain
            }
        }
    }

    /// The site of an object that has another name for its class.
    fn tagged(&mut self, site: SiteId, tag: &Tag, name: &str) -> SiteId {
        let Content::Struct(at) = self.plan.sites[site].content else { return site };
        let (class, around) = match tag {
            Tag::Property(property) => {
                let class = written(|out| {
                    F::key(out, property);
                    F::text(out, name);
                });
                (Some(Encoded::new(&class)), None)
            }
            Tag::Array => {
                let before = written(|out| F::class(out, name)).into();
                (None, Some(Around { before, behind: F::BEHIND.into() }))
            }
            Tag::Object => {
                let mut before = Vec::new();
                let open = F::open(&mut before, Group::Object, 1);
                F::key(&mut before, name);
                let end = before.len();
                F::close(&mut before, open, 1);
                let behind = before.split_off(end).into();
                (None, Some(Around { before: before.into(), behind }))
            }
        };
        let (content, kind) = (Content::Struct(at), self.plan.sites[site].kind);
        self.plan.sites.push(Site { content, class, around, open: true, kind });
        self.plan.sites.len() - 1
    }

    /// The site of a map whose entries are properties of an object, among or behind the others.
    fn properties(&mut self, map: NodeId, value: NodeId, is_rest: bool) -> SiteId {
        let value = self.site(value, Position::Element, false);
        let content = if is_rest { Content::Rest(value) } else { Content::Properties(value) };
        let kind = &self.shape.nodes[map].kind;
        self.plan.sites.push(Site { content, class: None, around: None, open: false, kind });
        self.plan.sites.len() - 1
    }

    fn fields(&mut self, at: usize) {
        let class = &self.shape.structs[at];
        self.plan.structs[at].pinned = class.pinned;
        for (number, field) in class.fields.iter().enumerate() {
            // A struct that holds itself comes here again before it is done.
            if number == self.plan.structs[at].fields.len() {
                let any = class.any.or(class.rest) == Some(number);
                let key = if any { Vec::new() } else { written(|out| F::key(out, field.name)) };
                let key = Encoded::new(&key);
                let place = class.ordered.iter().position(|at| *at == number).unwrap_or_default();
                let (name, nulls) = (field.name, field.nulls && !any);
                self.plan.structs[at].fields.push(FieldPlan { name, key, place, site: 0, nulls });
                let site = match self.shape.nodes[field.node].kind {
                    Kind::Map(_, _, value) if any => self.properties(field.node, value, class.rest.is_some()),
                    _ => self.site(field.node, Position::Field, false),
                };
                self.plan.structs[at].fields[number].site = site;
            }
        }
    }

    /// Whether the class of what is declared here is written.
    fn is_named(&self, node: &Node, position: Position, open: bool) -> bool {
        match node.kind {
            _ if self.typing == Typing::Nowhere => false,
            Kind::Collection(class, _) | Kind::Map(class, ..) => {
                position != Position::Root || !is_final_collection(class)
            }
            Kind::EnumSet(..) => true,
            Kind::Long if self.typing != Typing::Redisson => open,
            Kind::Byte | Kind::Short => open,
            // By Redisson's doing, since it is a final class.
            Kind::Long => open || node.nullable || !matches!(position, Position::Field | Position::Array),
            Kind::Text(class) => open || !class.is_final,
            Kind::Array(element) => open || !self.is_final(element),
            Kind::Struct(at) => open || self.shape.structs[at].form == Form::Plain,
            Kind::Enum(_) if position == Position::Constant => false,
            Kind::Enum(at) => open || self.shape.enums[at].form == Form::Abstract,
            Kind::Scalar(class) => match class.kind {
                ClassKind::Scalar(scalar) => open || !value::is_last_scalar(scalar, self.typing),
                _ => false,
            },
            // Whether it is depends on the value.
            _ => false,
        }
    }

    fn class(&self, id: NodeId) -> Encoded {
        let name = self.shape.class_name(id);
        let class = written(|out| match self.shape.nodes[id].kind {
            Kind::Struct(_) | Kind::Map(..) => {
                F::key(out, CLASS);
                F::text(out, &name);
            }
            Kind::Text(class) => F::class(out, written_class(class.name)),
            Kind::EnumSet(_, element) => F::class(out, &enum_set_class(&self.shape.class_name(element))),
            _ => F::class(out, &name),
        });
        Encoded::new(&class)
    }

    fn is_char(&self, element: NodeId) -> bool {
        let node = &self.shape.nodes[element];
        node.kind == Kind::Character && !node.nullable && !node.object
    }

    /// Whether an array of these has no class in front.
    fn is_final(&self, element: NodeId) -> bool {
        let node = &self.shape.nodes[element];
        match node.kind {
            Kind::Array(element) => self.is_final(element),
            // By Redisson's doing.
            Kind::Long if self.typing == Typing::Redisson => !node.nullable && !node.object,
            _ => self.shape.is_final(element),
        }
    }
}
