//! The shape of a Rust type in Java's terms, inferred once from its `Deserialize`.
//!
//! serde tells a codec what a type needs only during deserialization, and says nothing about a `None`. So
//! before the first value is read or written, the type is [probed](super::probe) place by place. `infer.rs`
//! puts the answers together.

mod infer;

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use super::known_classes::Class;
use super::per_type::{Last, PerType};
use crate::CodecError;
#[cfg(feature = "kryo")]
use crate::shown::{LONGEST, type_of, within};

/// A type's shape. The first node is that of the type itself.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) nodes: Vec<Node>,
    pub(crate) structs: Vec<StructShape>,
    pub(crate) enums: Vec<EnumShape>,
    pub(crate) choices: Vec<Choice>,
    /// Where two names are of one field or constant, and which, if any are.
    #[cfg_attr(not(feature = "kryo"), allow(dead_code, reason = "Jackson has names"))]
    alias: Option<String>,
}

/// Which of [`Shape::nodes`].
pub(crate) type NodeId = usize;

/// One place in a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// An `Option`. Of what is a primitive type otherwise, this makes it the boxed one.
    pub(crate) nullable: bool,
    /// Declared as `Object`, or as another class with subclasses.
    pub(crate) object: bool,
    pub(crate) kind: Kind,
    /// A field of this class cannot hold a subclass, so the class is not written.
    pub(crate) is_final: bool,
}

impl Node {
    /// A primitive type where it is a field or in an array, and a box of it anywhere else.
    #[inline]
    pub(crate) fn is_primitive(&self) -> bool {
        let kind = matches!(
            self.kind,
            Kind::Boolean
                | Kind::Byte
                | Kind::Short
                | Kind::Character
                | Kind::Integer
                | Kind::Long
                | Kind::Float
                | Kind::Double
        );
        kind && !self.nullable && !self.object
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Byte,
    Short,
    /// `u16` or `char`.
    Character,
    Integer,
    Long,
    Float,
    Double,
    String,
    /// `byte[]`: bytes, or a list of `u8`.
    Bytes,
    /// A scalar or an object of [`java`](super), which goes through the [`value_slot`](super::value_slot).
    Scalar(&'static Class),
    /// A text, of this class.
    Text(&'static Class),
    /// Any value. It goes through the [`value_slot`](super::value_slot).
    Value,
    /// `java.util.Optional`; the node is that of the inside.
    Optional(NodeId),
    Array(NodeId),
    Collection(&'static Class, NodeId),
    /// Of an enum, which is the node.
    EnumSet(&'static Class, NodeId),
    Map(&'static Class, NodeId, NodeId),
    /// Which of [`Shape::structs`].
    Struct(usize),
    /// Which of [`Shape::enums`].
    Enum(usize),
    /// One of several classes. Which of [`Shape::choices`].
    Choice(usize),
}

/// A Java class with fields.
#[derive(Debug)]
pub(crate) struct StructShape {
    /// The Java class.
    pub(crate) class: String,
    pub(crate) form: Form,
    /// As they are declared in Rust.
    pub(crate) fields: Vec<Field>,
    /// The fields in Java's order, which is by name.
    #[cfg_attr(not(feature = "kryo"), allow(dead_code, reason = "Jackson has its own order"))]
    pub(crate) sorted: Vec<usize>,
    /// The fields in Jackson's order, which annotations change.
    #[cfg_attr(not(feature = "_jackson"), allow(dead_code, reason = "Kryo has no annotations"))]
    pub(crate) ordered: Vec<usize>,
    /// The field that has the properties of all other names: `@JsonAnyGetter`.
    #[cfg_attr(not(feature = "_jackson"), allow(dead_code, reason = "Kryo has no annotations"))]
    pub(crate) any: Option<usize>,
    /// The field that has the properties which the struct does not know, and which is none of the class.
    pub(crate) rest: Option<usize>,
    /// How many fields come first in Jackson's order, whatever their names.
    #[cfg_attr(not(feature = "_jackson"), allow(dead_code, reason = "Kryo has no annotations"))]
    pub(crate) pinned: usize,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// The first of those that serde reads as one field, by `alias`: mostly the field itself.
    #[cfg_attr(not(feature = "_jackson"), allow(dead_code, reason = "Kryo has no names"))]
    pub(crate) first: usize,
    pub(crate) node: NodeId,
    /// Jackson writes its nulls: `@JsonInclude(ALWAYS)`.
    #[cfg_attr(not(feature = "_jackson"), allow(dead_code, reason = "Kryo has no annotations"))]
    pub(crate) nulls: bool,
}

/// An enum of unit variants.
#[derive(Debug)]
pub(crate) struct EnumShape {
    /// The Java class.
    pub(crate) class: String,
    pub(crate) form: Form,
    pub(crate) variants: &'static [&'static str],
    /// Of each constant, the first of those that serde reads as one.
    #[cfg_attr(not(feature = "classes"), allow(dead_code, reason = "it has effect on the bodies only"))]
    pub(crate) firsts: Vec<usize>,
    /// Of each constant, the class of its body, if it has one. javac numbers the bodies, not the constants.
    pub(crate) bodies: Vec<Option<String>>,
}

/// An enum with data: a place in which objects of several classes may be, of which each variant has one.
#[derive(Debug)]
pub(crate) struct Choice {
    /// What Java declares there: the base class, an interface, `java.lang.Object`.
    pub(crate) class: String,
    /// How Jackson says which of them an object is, if not by its class.
    pub(crate) tag: Option<Tag>,
    pub(crate) variants: Vec<Variant>,
}

/// A class that may be there.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The variant's serde name.
    pub(crate) name: &'static str,
    pub(crate) node: NodeId,
}

/// Where Jackson writes the name of a type that is not the name of its class: `@JsonTypeInfo(use = Id.NAME)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// `As.PROPERTY`: in this property of the object.
    Property(String),
    /// `As.WRAPPER_OBJECT`: in front of the object, as the only property of another one.
    Object,
    /// `As.WRAPPER_ARRAY`: in front of the object, in a list of two.
    Array,
}

#[cfg(feature = "_jackson")]
impl Tag {
    /// The property that has the name.
    pub(crate) fn property(&self) -> Option<&str> {
        match self {
            Tag::Property(property) => Some(property),
            Tag::Object | Tag::Array => None,
        }
    }
}

#[cfg(any(test, feature = "kryo"))]
impl EnumShape {
    /// The class of a constant: the enum's or, with a body, its own.
    pub(crate) fn class_of(&self, ordinal: usize) -> &str {
        self.bodies.get(ordinal).and_then(Option::as_deref).unwrap_or(&self.class)
    }
}

/// What the word in front of a class says: `#[serde(rename = "record com.acme.Point")]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// No word: a class that may have subclasses, or an enum whose constants have no bodies.
    #[default]
    Plain,
    /// `final`: a class without subclasses.
    Final,
    /// `record`: a Java record, which is final.
    Record,
    /// `abstract`: an enum whose constants have bodies, and therefore classes of their own. `abstract(B, D)`:
    /// these have.
    Abstract,
}

/// What the serde name of a type says of its class: words, and then the class.
#[derive(Default)]
struct Named<'a> {
    form: Form,
    /// The constants in `abstract(…)`.
    bodies: Option<&'a str>,
    tag: Option<Tag>,
    /// The properties in `order(…)`.
    order: Option<&'a str>,
    /// The properties in `nulls(…)`, or all.
    nulls: Option<Option<&'a str>>,
    /// The property in `any(…)`.
    any: Option<&'a str>,
    /// The field in `rest(…)`.
    rest: Option<&'a str>,
    class: &'a str,
}

impl<'a> Named<'a> {
    /// Whether it says something of the properties of an object.
    fn has_properties(&self) -> bool {
        self.order.is_some() || self.nulls.is_some() || self.any.is_some() || self.rest.is_some()
    }

    fn of(name: &'a str) -> Self {
        let mut named = Named { class: name, ..Named::default() };
        while named.word() {}
        named
    }

    /// The same, unless a word in front of the class is not known: it would be written as a part of the
    /// class.
    fn checked(name: &'a str) -> Result<Self, String> {
        let named = Self::of(name);
        match named.class.rsplit_once(' ') {
            None => Ok(named),
            Some((words, class)) => Err(format!(
                "`{words}` in front of `{class}` is not known: the words are `final`, `record`, `abstract(…)`, \
                 `tag(…)`, `wrapper-object`, `wrapper-array`, `order(…)`, `nulls(…)`, `any(…)` and `rest(…)`"
            )),
        }
    }

    /// Takes a word off the class, if one is there.
    fn word(&mut self) -> bool {
        // The list of a word may have spaces in it.
        let end = if self.class.find('(') < self.class.find(' ') { self.class.find(") ") } else { None };
        let Some((word, rest)) =
            end.map(|end| end + 1).or(self.class.find(' ')).map(|at| self.class.split_at(at))
        else {
            return false;
        };
        let list = word.split_once('(').and_then(|(word, list)| Some((word, list.strip_suffix(')')?)));
        match list {
            Some(("abstract", list)) => (self.form, self.bodies) = (Form::Abstract, Some(list)),
            Some(("tag", property)) => self.tag = Some(Tag::Property(property.to_owned())),
            Some(("order", list)) => self.order = Some(list),
            Some(("nulls", list)) => self.nulls = Some(Some(list)),
            Some(("any", property)) => self.any = Some(property),
            Some(("rest", field)) => self.rest = Some(field),
            Some(_) => return false,
            None => match word {
                "abstract" => self.form = Form::Abstract,
                "final" => self.form = Form::Final,
                "record" => self.form = Form::Record,
                "wrapper-object" => self.tag = Some(Tag::Object),
                "wrapper-array" => self.tag = Some(Tag::Array),
                "nulls" => self.nulls = Some(None),
                _ => return false,
            },
        }
        self.class = &rest[1..];
        true
    }
}

static SHAPES: PerType<Shape> = PerType::new(&LAST);

thread_local! {
    static LAST: Last<Shape> = const { Last::new(None) };
}

impl Shape {
    /// The shape of a type. Inferred on first use.
    ///
    /// # Errors
    /// When there is something in the type that has no counterpart in Java, or that cannot be asked.
    pub(crate) fn of<T: DeserializeOwned + 'static>() -> Result<&'static Shape, CodecError> {
        SHAPES.of::<T>(Shape::infer::<T>)
    }

    /// The same for Kryo, which has fields and constants without names, by their numbers.
    ///
    /// # Errors
    /// Also when a field or constant has several names.
    #[cfg(feature = "kryo")]
    pub(crate) fn without_aliases<T: DeserializeOwned + 'static>() -> Result<&'static Shape, CodecError> {
        let shape = Shape::of::<T>()?;
        match &shape.alias {
            None => Ok(shape),
            Some(alias) => {
                let message = format!("`{}` cannot be a value of Kryo 5: {alias}", type_of::<T>());
                Err(CodecError::new(within(message, LONGEST)))
            }
        }
    }

    /// The node of the type itself.
    pub(crate) fn root(&self) -> NodeId {
        0
    }

    /// The Java class that is declared at a place, for messages and for arrays.
    pub(crate) fn class_name(&self, node: NodeId) -> Cow<'_, str> {
        let name = match &self.nodes[node].kind {
            Kind::Boolean => "java.lang.Boolean",
            Kind::Byte => "java.lang.Byte",
            Kind::Short => "java.lang.Short",
            Kind::Character => "java.lang.Character",
            Kind::Integer => "java.lang.Integer",
            Kind::Long => "java.lang.Long",
            Kind::Float => "java.lang.Float",
            Kind::Double => "java.lang.Double",
            Kind::String => "java.lang.String",
            Kind::Bytes => "[B",
            Kind::Value => "java.lang.Object",
            Kind::Optional(_) => "java.util.Optional",
            Kind::Array(_) => return Cow::Owned(self.array_class(node)),
            Kind::Scalar(class)
            | Kind::Text(class)
            | Kind::Collection(class, _)
            | Kind::EnumSet(class, _)
            | Kind::Map(class, ..) => class.name,
            Kind::Struct(at) => &self.structs[*at].class,
            Kind::Enum(at) => &self.enums[*at].class,
            Kind::Choice(at) => &self.choices[*at].class,
        };
        Cow::Borrowed(name)
    }

    /// What a place with several classes may hold, for messages: "`a`, `b` or `c`".
    pub(crate) fn classes(&self, choice: &Choice) -> String {
        const MOST: usize = 8;
        let variants =
            || choice.variants.iter().filter(|variant| self.nodes[variant.node].kind != Kind::Value);
        let count = variants().count();
        let name = |variant: &Variant| match choice.tag {
            Some(_) => format!("`{}`", variant.name),
            None => format!("`{}`", self.class_name(variant.node)),
        };
        let names: Vec<_> = variants().take(MOST).map(name).collect();
        match (&names[..], count.saturating_sub(MOST)) {
            ([one], 0) => one.clone(),
            ([first @ .., last], 0) => format!("{} or {last}", first.join(", ")),
            (_, more) => format!("{} or {more} more", names.join(", ")),
        }
    }

    /// The class of an array: `[I`, `[Ljava.lang.String;`.
    pub(crate) fn array_class(&self, node: NodeId) -> String {
        let Kind::Array(element) = self.nodes[node].kind else { return "[B".to_owned() };
        let node = &self.nodes[element];
        let element = match &node.kind {
            Kind::Boolean if node.is_primitive() => "Z",
            Kind::Short if node.is_primitive() => "S",
            Kind::Character if node.is_primitive() => "C",
            Kind::Integer if node.is_primitive() => "I",
            Kind::Long if node.is_primitive() => "J",
            Kind::Float if node.is_primitive() => "F",
            Kind::Double if node.is_primitive() => "D",
            _ if node.object => "Ljava.lang.Object;",
            Kind::Bytes => "[B",
            Kind::Array(_) => return format!("[{}", self.array_class(element)),
            Kind::Collection(class, _) if class.name == "java.util.ArrayList" => "Ljava.util.List;",
            Kind::Map(class, ..) if class.name == "java.util.HashMap" => "Ljava.util.Map;",
            Kind::Text(class) if class.name == "java.time.ZoneRegion" => "Ljava.time.ZoneId;",
            _ => return format!("[L{};", self.class_name(element)),
        };
        format!("[{element}")
    }

    /// Whether nothing else than this class can be where it is declared, so that it need not be written.
    pub(crate) fn is_final(&self, node: NodeId) -> bool {
        let node = &self.nodes[node];
        if node.object {
            return false;
        }
        match &node.kind {
            Kind::Scalar(class) | Kind::Text(class) => class.is_final,
            Kind::Value | Kind::Collection(..) | Kind::EnumSet(..) | Kind::Map(..) | Kind::Choice(_) => false,
            Kind::Array(element) => self.is_final(*element),
            Kind::Struct(at) => matches!(self.structs[*at].form, Form::Final | Form::Record),
            Kind::Enum(at) => self.enums[*at].form != Form::Abstract,
            _ => true,
        }
    }
}
