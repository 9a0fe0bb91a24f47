//! The plan of a type: what to write at each place. Made once from its shape, so that writing a value looks
//! nothing up.

use std::collections::HashMap;

use serde::de::DeserializeOwned;

use super::super::output::{Name, WrittenClass};
use super::super::{scalar, value};
use crate::CodecError;
use crate::java::known_classes::{Class, ClassKind, Layout, known};
use crate::java::per_type::{Last, PerType};
use crate::java::shape::{EnumShape, Form, Kind, Node, NodeId, Shape, Variant};
use crate::kryo::numbered::Numbered;
use crate::shown::type_of;

/// A type, as it is written.
pub(in super::super) struct Plan {
    /// The first is the type itself.
    sites: &'static [Site],
    structs: Vec<StructPlan>,
    /// The names of all classes that the type itself names.
    pub(in super::super) classes: Vec<Name>,
}

/// Which of [`Plan::sites`].
type SiteId = usize;

/// A place in the type, and what is in front of the value there.
pub(super) struct Site {
    pub(super) prefix: Prefix,
    /// The class of what is declared here.
    pub(super) class: WrittenClass,
    pub(super) content: Content,
}

/// What is in front of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Prefix {
    /// Its class, or null.
    Class,
    /// A byte that says whether it is null.
    Flag,
    /// Nothing: a null is this byte, by which no value begins.
    Null(u8),
    /// Nothing, and there is no null.
    Nothing,
    /// Nothing. The end of the list says whether there was a null.
    Element,
}

pub(super) enum Content {
    Boolean,
    Byte,
    Short,
    Character,
    Integer,
    Long,
    Float,
    Double,
    Text,
    /// A text for which Kryo has another form.
    TextOf(&'static Class),
    Bytes,
    /// A type of [`java`](crate::java) that hands itself over.
    Scalar,
    /// Any value; it hands itself over.
    Value,
    Optional(SiteId),
    List(ListPlan),
    Map(MapPlan),
    /// Which of [`Plan::structs`].
    Struct(usize),
    Enum(EnumPlan),
    Choice(Vec<VariantPlan>),
}

/// A list or array.
pub(super) struct ListPlan {
    pub(super) each: ElementForm,
    pub(super) element: SiteId,
    /// The byte that an element of the declared class is if it is null.
    pub(super) null: Option<u8>,
    pub(super) layout: Layout,
}

/// How a list says the classes of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementForm {
    /// Of a `byte[]`.
    Byte,
    /// Of an array.
    Array,
    /// Of an `EnumSet`. An empty one is of this class, any other of the class of its first constant.
    Constant(WrittenClass),
    /// All are of the class that the field declares.
    Declared,
    /// All are of one class, which is written once.
    Same,
    /// ElementForm has a class; where it is the same one, this is to be written once.
    Any,
}

pub(super) struct MapPlan {
    pub(super) key: SiteId,
    pub(super) value: SiteId,
    /// In its prefix is a comparator.
    pub(super) sorted: bool,
}

pub(super) struct StructPlan {
    pub(super) class: &'static str,
    /// As they are declared in Rust.
    pub(super) fields: Vec<FieldPlan>,
    /// This is Java's order, too.
    pub(super) is_sorted: bool,
    /// The field that is none of the class.
    pub(super) rest: Option<&'static str>,
}

pub(super) struct FieldPlan {
    pub(super) name: &'static str,
    /// Its number in Java's order.
    pub(super) place: usize,
    pub(super) site: &'static Site,
}

pub(super) struct EnumPlan {
    pub(super) variants: &'static [&'static str],
    /// The class of each constant, where they have bodies.
    pub(super) bodies: Vec<WrittenClass>,
}

/// A class of several that may be at a place.
pub(super) struct VariantPlan {
    pub(super) name: &'static str,
    pub(super) site: SiteId,
    /// The byte that a value of the class itself is if it is null.
    null: Option<u8>,
}

/// An array of bytes as a list.
pub(super) static BYTES: ListPlan =
    ListPlan { each: ElementForm::Byte, element: 0, null: None, layout: Layout::Plain };

static PLANS: PerType<Plan> = PerType::new(&LAST);

thread_local! {
    static LAST: Last<Plan> = const { Last::new(None) };
}

impl Plan {
    /// The plan of a type; made when first asked for.
    ///
    /// # Errors
    /// When there is something in the type that has no counterpart in Java, or that cannot be asked.
    #[inline]
    pub(in super::super) fn of<T: DeserializeOwned + 'static>() -> Result<&'static Plan, CodecError> {
        PLANS.of::<T>(|| {
            let shape = Shape::without_aliases::<T>()?;
            match shape.nodes.iter().find_map(|node| serialized_by_java(&node.kind)) {
                Some(class) => Err(CodecError::new(format!(
                    "`{}` cannot be written as Kryo 5: Redisson leaves the class `{class}` to Java's own serialization",
                    type_of::<T>()
                ))),
                None => Ok(Plan::new(shape)),
            }
        })
    }

    fn new(shape: &'static Shape) -> Plan {
        let fields = shape.structs.iter().map(|_| Vec::new()).collect();
        let mut planner =
            Planner { shape, sites: Vec::new(), fields, classes: Vec::new(), known: HashMap::new() };
        planner.site(shape.root(), Prefix::Class, false);
        let sites: &'static [Site] = planner.sites.leak();
        let structs = shape.structs.iter().zip(planner.fields).map(|(class, known)| {
            let place = |field| class.sorted.iter().position(|at| *at == field).unwrap_or_default();
            let field = |(at, site): (usize, &SiteId)| FieldPlan {
                name: class.fields[at].name,
                place: place(at),
                site: &sites[*site],
            };
            StructPlan {
                class: &class.class,
                fields: known
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| Some(*at) != class.rest)
                    .map(field)
                    .collect(),
                is_sorted: class.sorted.is_sorted(),
                rest: class.rest.map(|at| class.fields[at].name),
            }
        });
        Plan { sites, structs: structs.collect(), classes: planner.classes }
    }

    /// The value of a whole payload.
    #[inline]
    pub(super) fn root(&'static self) -> &'static Site {
        self.site(0)
    }

    #[inline]
    pub(super) fn site(&'static self, site: SiteId) -> &'static Site {
        &self.sites[site]
    }

    #[inline]
    pub(super) fn class(&'static self, at: usize) -> &'static StructPlan {
        &self.structs[at]
    }

    /// The byte that a value of this class itself is if it is null, at a place where others may be, too.
    pub(super) fn null_of(&self, place: &Site, class: WrittenClass, name: &str) -> Option<u8> {
        match &place.content {
            Content::Enum(_) => Some(0),
            Content::Choice(variants) => {
                self.null_of_variant(variants, class).unwrap_or_else(|| value::null_of(name))
            }
            _ => value::null_of(name),
        }
    }

    /// The same of a class that is one of the variants.
    fn null_of_variant(&self, variants: &[VariantPlan], class: WrittenClass) -> Option<Option<u8>> {
        variants.iter().find_map(|variant| {
            let site = &self.sites[variant.site];
            match &site.content {
                Content::Enum(constants) if constants.bodies.contains(&class) => Some(Some(0)),
                Content::Choice(variants) => self.null_of_variant(variants, class),
                _ => (site.class == class).then_some(variant.null),
            }
        })
    }
}

struct Planner {
    shape: &'static Shape,
    sites: Vec<Site>,
    /// Of each struct of the shape.
    fields: Vec<Vec<SiteId>>,
    classes: Vec<Name>,
    /// So that a type that holds itself comes to an end.
    known: HashMap<(NodeId, Prefix, bool), SiteId>,
}

impl Planner {
    /// `generic` is whether Kryo knows the type arguments here, as declared by a field.
    fn site(&mut self, node: NodeId, prefix: Prefix, generic: bool) -> SiteId {
        if let Some(&known) = self.known.get(&(node, prefix, generic)) {
            return known;
        }
        let id = self.sites.len();
        self.known.insert((node, prefix, generic), id);
        let class = self.class(node);
        self.sites.push(Site { prefix, class, content: Content::Value });
        self.sites[id].content = self.content(node, generic);
        id
    }

    fn content(&mut self, at: NodeId, generic: bool) -> Content {
        let shape = self.shape;
        // An `Object` says nothing of the elements of the list that it is.
        let generic = generic && !shape.nodes[at].object;
        match shape.nodes[at].kind {
            Kind::Boolean => Content::Boolean,
            Kind::Byte => Content::Byte,
            Kind::Short => Content::Short,
            Kind::Character => Content::Character,
            Kind::Integer => Content::Integer,
            Kind::Long => Content::Long,
            Kind::Float => Content::Float,
            Kind::Double => Content::Double,
            Kind::String => Content::Text,
            Kind::Text(class) => Content::TextOf(class),
            Kind::Bytes => Content::Bytes,
            Kind::Scalar(_) => Content::Scalar,
            Kind::Value => Content::Value,
            Kind::Optional(inside) => Content::Optional(self.site(inside, Prefix::Class, false)),
            Kind::Array(element) => {
                let node = &shape.nodes[element];
                let prefix = match &node.kind {
                    // The class of an array is final, whatever its elements.
                    Kind::Array(_) | Kind::Bytes if !node.object => Prefix::Null(0),
                    _ => self.declared(element),
                };
                self.list(ElementForm::Array, element, prefix, false, Layout::Plain)
            }
            Kind::EnumSet(_, element) => {
                // That of the first constant in the set, or of the enum's if there is none.
                let class = match self.constants(element) {
                    Some(constants) => self.named(constants.class_of(0)),
                    None => self.class(element),
                };
                self.list(ElementForm::Constant(class), element, Prefix::Nothing, false, Layout::Plain)
            }
            Kind::Collection(class, element) => {
                let node = &shape.nodes[element];
                let (each, prefix) = if generic && node.is_final {
                    (ElementForm::Declared, Prefix::Element)
                } else if matches!(node.kind, Kind::Value | Kind::Choice(_)) || self.is_abstract(element) {
                    (ElementForm::Any, Prefix::Class)
                } else {
                    (ElementForm::Same, Prefix::Element)
                };
                self.list(each, element, prefix, generic, layout(class))
            }
            Kind::Map(class, key, value) => {
                let prefix = |planner: &Self, node| match planner.reference(node) {
                    _ if !generic => Prefix::Class,
                    Prefix::Null(_) | Prefix::Flag if layout(class) == Layout::Immutable => Prefix::Nothing,
                    prefix => prefix,
                };
                let (key_prefix, value_prefix) = (prefix(self, key), prefix(self, value));
                let key = self.site(key, key_prefix, generic);
                let value = self.site(value, value_prefix, generic);
                Content::Map(MapPlan { key, value, sorted: layout(class) == Layout::Sorted })
            }
            Kind::Struct(at) => {
                self.fields(at);
                Content::Struct(at)
            }
            Kind::Enum(at) => {
                let constants = &shape.enums[at];
                let bodies = match constants.form {
                    Form::Abstract => 0..constants.variants.len(),
                    _ => 0..0,
                };
                let bodies = bodies.map(|ordinal| self.named(constants.class_of(ordinal))).collect();
                Content::Enum(EnumPlan { variants: constants.variants, bodies })
            }
            Kind::Choice(at) => {
                let variant = |variant: &Variant| VariantPlan {
                    name: variant.name,
                    site: self.site(variant.node, Prefix::Class, false),
                    null: null(&shape.nodes[variant.node]),
                };
                Content::Choice(shape.choices[at].variants.iter().map(variant).collect())
            }
        }
    }

    fn list(
        &mut self,
        each: ElementForm,
        element: NodeId,
        prefix: Prefix,
        generic: bool,
        layout: Layout,
    ) -> Content {
        let null = null(&self.shape.nodes[element]);
        Content::List(ListPlan { each, element: self.site(element, prefix, generic), null, layout })
    }

    fn fields(&mut self, at: usize) {
        let class = &self.shape.structs[at];
        for (number, field) in class.fields.iter().enumerate() {
            // A struct that holds itself comes here again before it is done.
            if number == self.fields[at].len() {
                self.fields[at].push(0);
                let prefix = self.declared(field.node);
                // Kryo keeps the type arguments of the fields of classes, but not of those of records.
                let site = self.site(field.node, prefix, class.form != Form::Record);
                self.fields[at][number] = site;
            }
        }
    }

    /// What is in front of a field, or an element of an array.
    fn declared(&self, node: NodeId) -> Prefix {
        if self.shape.nodes[node].is_primitive() { Prefix::Nothing } else { self.reference(node) }
    }

    /// What is in front of an object where its class is declared.
    fn reference(&self, node: NodeId) -> Prefix {
        let node = &self.shape.nodes[node];
        match null(node) {
            _ if !node.is_final => Prefix::Class,
            Some(null) => Prefix::Null(null),
            None => Prefix::Flag,
        }
    }

    fn constants(&self, node: NodeId) -> Option<&'static EnumShape> {
        match self.shape.nodes[node].kind {
            Kind::Enum(at) => Some(&self.shape.enums[at]),
            _ => None,
        }
    }

    fn is_abstract(&self, node: NodeId) -> bool {
        self.constants(node).is_some_and(|constants| constants.form == Form::Abstract)
    }

    /// The class of what is declared at a place. The constants of an enum with bodies say their own.
    fn class(&mut self, node: NodeId) -> WrittenClass {
        let number = match &self.shape.nodes[node].kind {
            Kind::Boolean => Numbered::Boolean,
            Kind::Byte => Numbered::Byte,
            Kind::Short => Numbered::Short,
            Kind::Character => Numbered::Character,
            Kind::Integer => Numbered::Integer,
            Kind::Long => Numbered::Long,
            Kind::Float => Numbered::Float,
            Kind::Double => Numbered::Double,
            Kind::String => Numbered::String,
            _ => return self.named(&self.shape.class_name(node)),
        };
        WrittenClass::Numbered(number as u8)
    }

    fn named(&mut self, class: &str) -> WrittenClass {
        let classes = &mut self.classes;
        let known = classes.iter().position(|known| known.text() == class);
        WrittenClass::Named(known.unwrap_or_else(|| {
            classes.push(Name::new(class));
            classes.len() - 1
        }))
    }
}

/// The byte that a value itself is if it is null.
fn null(node: &Node) -> Option<u8> {
    match &node.kind {
        Kind::String => Some(0x80),
        Kind::Bytes | Kind::Array(_) | Kind::Enum(_) => Some(0),
        Kind::Scalar(class) | Kind::Text(class) | Kind::Collection(class, _) | Kind::Map(class, ..) => {
            scalar::null(class)
        }
        _ => None,
    }
}

/// The class of a list or map, if it is one of the library that Kryo has no serializer for.
fn serialized_by_java(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::Collection(class, _) | Kind::Map(class, ..) => {
            (class.name.starts_with("java.") && known(class.name).is_none()).then_some(class.name)
        }
        _ => None,
    }
}

fn layout(class: &Class) -> Layout {
    match class.kind {
        ClassKind::Collection(layout) | ClassKind::Map(layout) => layout,
        _ => Layout::Plain,
    }
}
