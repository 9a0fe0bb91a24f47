//! Probes a type place by place and puts its shape together.

mod names;

use std::collections::HashMap;

use serde::de::DeserializeOwned;

use names::{bodies, own_class, place};

use super::{Choice, EnumShape, Field, Form, Kind, Named, Node, NodeId, Shape, StructShape, Tag, Variant};
use crate::CodecError;
use crate::java::known_classes::{Class, ClassKind, Layout, class};
use crate::java::probe::{Requested, Step, probe};
use crate::java::type_hint::{TypeHint, type_hint};
use crate::shown::{LONGEST, type_of, within};

impl Shape {
    pub(super) fn infer<T: DeserializeOwned>() -> Result<Shape, CodecError> {
        let mut inference = Inference {
            probe: probe::<T>,
            path: Vec::new(),
            shape: Shape {
                nodes: Vec::new(),
                structs: Vec::new(),
                enums: Vec::new(),
                choices: Vec::new(),
                alias: None,
            },
            structs: HashMap::new(),
            choices: HashMap::new(),
            complete: Vec::new(),
        };
        match inference.place() {
            Ok(_) => {
                let mut shape = inference.shape;
                for node in 0..shape.nodes.len() {
                    shape.nodes[node].is_final = shape.is_final(node);
                }
                Ok(shape)
            }
            Err(why) => {
                let (kind, place) = (type_of::<T>(), within(inference.place_name(), 400));
                let message = format!("`{kind}` cannot be a Java value: at {place}, {why}");
                Err(CodecError::new(within(message, LONGEST)))
            }
        }
    }
}

const FIXED: &str = "what `Collections.empty…` and `singleton…` make has a fixed length: use a list or map";

const PROPERTIES: &str = "`order(…)`, `nulls`, `any(…)` and `rest(…)` go with a struct";

const TAG: &str = "`tag(…)` and `wrapper-…` go with an enum of structs, and a `Value` for all others";

/// Longer than the path of any sensible type. A generic type that contains a larger instance of itself has no
/// end.
const MAX_PATH: usize = 100;

struct Inference {
    probe: fn(&[Step]) -> Result<Requested, String>,
    path: Vec<Step>,
    shape: Shape,
    /// By the name of the Rust type, so that a type that holds itself comes to an end.
    structs: HashMap<(&'static str, &'static str), usize>,
    /// The same of enums with data.
    choices: HashMap<(&'static str, &'static str), usize>,
    /// Of [`Shape::choices`], those whose variants are all known.
    complete: Vec<usize>,
}

impl Inference {
    fn request(&self) -> Result<Requested, String> {
        if self.path.len() > MAX_PATH {
            return Err("it goes on without end".to_owned());
        }
        (self.probe)(&self.path)
    }

    /// The node of what is at a step from here. The path is left as it is on failure, for the message.
    fn at(&mut self, step: Step) -> Result<NodeId, String> {
        self.path.push(step);
        let node = self.place()?;
        self.path.pop();
        Ok(node)
    }

    /// The node of what is here.
    fn place(&mut self) -> Result<NodeId, String> {
        let id = self.shape.nodes.len();
        self.shape.nodes.push(Node { nullable: false, object: false, kind: Kind::Value, is_final: false });
        let depth = self.path.len();
        let node = self.node()?;
        self.path.truncate(depth);
        self.shape.nodes[id] = node;
        Ok(id)
    }

    fn node(&mut self) -> Result<Node, String> {
        let (mut nullable, mut object, mut hint, mut named) = (false, false, None, None);
        let kind = loop {
            let requested = self.request()?;
            match requested {
                Requested::Option => {
                    if nullable {
                        return Err("an `Option` of an `Option` would be null twice".to_owned());
                    }
                    nullable = true;
                    self.path.push(Step::Some);
                }
                Requested::Newtype(name) => {
                    match type_hint(name) {
                        // Others are only the names of Rust's types.
                        None => named = named.or(Some(name).filter(|name| name.contains('.'))),
                        Some(TypeHint::Value) => break Kind::Value,
                        Some(TypeHint::Object) => object = true,
                        Some(TypeHint::Class(class))
                            if matches!(class.kind, ClassKind::Scalar(_) | ClassKind::Fields(_)) =>
                        {
                            break Kind::Scalar(class);
                        }
                        Some(TypeHint::Class(class)) if class.kind == ClassKind::Optional => {
                            self.path.push(Step::Newtype);
                            break self.optional()?;
                        }
                        Some(other) => hint = Some(other),
                    }
                    self.path.push(Step::Newtype);
                }
                requested => {
                    let hint = match (hint, named) {
                        (None, Some(name)) => own_class(name, requested)?,
                        (hint, _) => hint,
                    };
                    break self.kind(requested, hint)?;
                }
            }
        };
        Ok(Node { nullable, object, kind, is_final: false })
    }

    /// An empty `Optional` is not a null, so the `Option` in it is its own.
    fn optional(&mut self) -> Result<Kind, String> {
        match self.request()? {
            Requested::Option => Ok(Kind::Optional(self.at(Step::Some)?)),
            _ => Err("`optional` goes with an `Option`".to_owned()),
        }
    }

    fn kind(&mut self, requested: Requested, hint: Option<TypeHint>) -> Result<Kind, String> {
        let kind = match (&requested, hint) {
            (Requested::Seq, Some(TypeHint::Array)) => {
                let element = self.at(Step::Element)?;
                let node = &self.shape.nodes[element];
                match node.kind {
                    Kind::Byte if !node.nullable => Kind::Bytes,
                    _ => Kind::Array(element),
                }
            }
            (Requested::Bytes, Some(TypeHint::Array)) => Kind::Bytes,
            (Requested::Seq, Some(TypeHint::Class(class))) => {
                let element = self.at(Step::Element)?;
                match class.kind {
                    ClassKind::Collection(Layout::Empty | Layout::Singleton) => return Err(FIXED.to_owned()),
                    ClassKind::Collection(_) => Kind::Collection(class, element),
                    ClassKind::EnumSet => match self.shape.nodes[element] {
                        Node { nullable: false, object: false, kind: Kind::Enum(_), .. } => {
                            Kind::EnumSet(class, element)
                        }
                        _ => return Err("the elements of an EnumSet are enums".to_owned()),
                    },
                    _ => return Err(format!("a list is not a {}", class.name)),
                }
            }
            (
                Requested::Map,
                Some(TypeHint::Class(Class {
                    kind: ClassKind::Map(Layout::Empty | Layout::Singleton), ..
                })),
            ) => return Err(FIXED.to_owned()),
            (Requested::Map, Some(TypeHint::Class(class))) if matches!(class.kind, ClassKind::Map(_)) => {
                Kind::Map(class, self.at(Step::Key)?, self.at(Step::Value)?)
            }
            (Requested::Str, Some(TypeHint::Class(class))) if matches!(class.kind, ClassKind::Text(_)) => {
                Kind::Text(class)
            }
            (_, Some(TypeHint::Class(class))) => return Err(format!("{requested} is not a {}", class.name)),
            (_, Some(_)) => return Err(format!("{requested} is not an array")),
            (Requested::Seq, None) => {
                self.path.push(Step::Element);
                // The only place of a `u8`.
                if matches!(self.request(), Ok(Requested::U8)) {
                    Kind::Bytes
                } else {
                    self.path.pop();
                    Kind::Collection(class("java.util.ArrayList"), self.at(Step::Element)?)
                }
            }
            (Requested::Map, None) => {
                Kind::Map(class("java.util.HashMap"), self.at(Step::Key)?, self.at(Step::Value)?)
            }
            (_, None) => self.plain(requested)?,
        };
        Ok(kind)
    }

    fn plain(&mut self, requested: Requested) -> Result<Kind, String> {
        Ok(match requested {
            Requested::Bool => Kind::Boolean,
            Requested::I8 => Kind::Byte,
            Requested::I16 => Kind::Short,
            Requested::U16 | Requested::Char => Kind::Character,
            Requested::I32 => Kind::Integer,
            Requested::I64 => Kind::Long,
            Requested::F32 => Kind::Float,
            Requested::F64 => Kind::Double,
            Requested::Str => Kind::String,
            Requested::Bytes => Kind::Bytes,
            Requested::U8 => return Err("a lone `u8` is no Java type: a byte there is an `i8`".to_owned()),
            Requested::Struct { name, rust, fields } => Kind::Struct(self.class(name, rust, fields)?),
            Requested::Enum { name, rust, variants } => match self.has_data(variants)? {
                false => Kind::Enum(self.constants(name, variants)?),
                true => Kind::Choice(self.choice(name, rust, variants)?),
            },
            Requested::Unsupported(what) => return Err(what.to_owned()),
            Requested::Option
            | Requested::Newtype(_)
            | Requested::Seq
            | Requested::Map
            | Requested::Unit
            | Requested::Name(_)
            | Requested::Data => {
                return Err(format!("{requested} is no Java value"));
            }
        })
    }

    fn class(
        &mut self,
        name: &'static str,
        rust: &'static str,
        fields: &'static [&'static str],
    ) -> Result<usize, String> {
        if let Some(&known) = self.structs.get(&(name, rust)) {
            return Ok(known);
        }
        let named = Named::checked(name)?;
        if named.form == Form::Abstract {
            return Err("`abstract` goes with an enum".to_owned());
        }
        if named.tag.is_some() {
            return Err(TAG.to_owned());
        }
        let listed = |word: &str, list: Option<&str>| match list {
            Some(list) => list.split(',').map(|name| place(word, name.trim(), fields)).collect(),
            None => Ok(Vec::new()),
        };
        let (first, nulls) = (listed("order", named.order)?, listed("nulls", named.nulls.flatten())?);
        let any = listed("any", named.any)?.first().copied();
        let rest = listed("rest", named.rest)?.first().copied();
        if any.is_some() && rest.is_some() {
            return Err("`any(…)` and `rest(…)` both have the other properties".to_owned());
        }
        let nulls = |field| named.nulls == Some(None) || nulls.contains(&field);
        let at = self.shape.structs.len();
        self.structs.insert((name, rust), at);
        let mut sorted: Vec<usize> = (0..fields.len()).filter(|at| Some(*at) != rest).collect();
        // Java compares UTF-16.
        sorted.sort_by(|&a, &b| fields[a].encode_utf16().cmp(fields[b].encode_utf16()));
        let others = any.or(rest);
        let mut seen = vec![false; fields.len()];
        let mut unseen = |at: &usize| Some(*at) != others && !std::mem::replace(&mut seen[*at], true);
        let mut ordered: Vec<usize> = first.into_iter().filter(&mut unseen).collect();
        let pinned = ordered.len();
        ordered.extend(sorted.iter().copied().filter(&mut unseen).chain(others));
        let (class, form) = (named.class.to_owned(), named.form);
        let fields_so_far = Vec::new();
        let class = StructShape { class, form, fields: fields_so_far, sorted, ordered, any, rest, pinned };
        self.shape.structs.push(class);
        let firsts = self.firsts("field", fields);
        for (at_field, name) in fields.iter().enumerate() {
            let node = self.at(Step::Field(name))?;
            let is_map = matches!(self.shape.nodes[node].kind, Kind::Map(..));
            let is_text_map = matches!(self.shape.nodes[node].kind,
                Kind::Map(_, key, _) if self.shape.nodes[key].kind == Kind::String);
            if Some(at_field) == any && !is_map {
                return Err(format!("`any({name})` goes with a map"));
            }
            if Some(at_field) == rest && !is_text_map {
                return Err(format!("`rest({name})` goes with a map of texts"));
            }
            self.shape.structs[at].fields.push(Field {
                name,
                first: firsts[at_field],
                node,
                nulls: nulls(at_field),
            });
        }
        Ok(at)
    }

    /// Of each name of a field or constant, the first one that means the same: mostly the name itself.
    fn firsts(&mut self, kind: &str, names: &[&'static str]) -> Vec<usize> {
        let mut known = HashMap::new();
        let mut first = |(at, name): (usize, &&'static str)| {
            self.path.push(Step::Name(name));
            let requested = self.request();
            self.path.pop();
            let Ok(Requested::Name(meaning)) = requested else { return at };
            let first = *known.entry(meaning).or_insert(at);
            if first != at && self.shape.alias.is_none() {
                let (place, other) = (within(self.place_name(), 400), names[first]);
                self.shape.alias = Some(format!(
                    "at {place}, `{other}` and `{name}` are one {kind} by `alias`, and Kryo would have two"
                ));
            }
            first
        };
        names.iter().enumerate().map(&mut first).collect()
    }

    /// Whether the variants of an enum have values.
    fn has_data(&mut self, variants: &'static [&'static str]) -> Result<bool, String> {
        let mut has_data = None;
        for variant in variants {
            self.path.push(Step::Variant(variant));
            let data = match self.request()? {
                Requested::Data => true,
                Requested::Unsupported(why) => return Err(why.to_owned()),
                _ => false,
            };
            if has_data.is_some_and(|others| others != data) {
                return Err("only some of the variants have data".to_owned());
            }
            has_data = Some(data);
            self.path.pop();
        }
        Ok(has_data.unwrap_or(false))
    }

    fn choice(
        &mut self,
        name: &'static str,
        rust: &'static str,
        variants: &'static [&'static str],
    ) -> Result<usize, String> {
        if let Some(&known) = self.choices.get(&(name, rust)) {
            return Ok(known);
        }
        let named = Named::checked(name)?;
        if named.has_properties() {
            return Err(PROPERTIES.to_owned());
        }
        let Named { form, class, tag, .. } = named;
        if form != Form::Plain {
            return Err("an enum with data is a class that others extend".to_owned());
        }
        let at = self.shape.choices.len();
        self.choices.insert((name, rust), at);
        self.shape.choices.push(Choice { class: class.to_owned(), tag: tag.clone(), variants: Vec::new() });
        for name in variants {
            self.path.push(Step::Variant(name));
            let node = self.at(Step::Newtype)?;
            match &self.shape.nodes[node] {
                Node { nullable: true, .. } => {
                    return Err("a variant is an object, and no `Option`".to_owned());
                }
                Node { kind: Kind::Choice(inner), .. } if !self.complete.contains(inner) => {
                    return Err("an enum that is a variant of itself".to_owned());
                }
                // CBOR has two forms of a list, of which a `Value` of one without a class keeps none.
                Node { kind: Kind::Value, .. } if tag == Some(Tag::Array) => {
                    return Err("a `Value` is no variant of `wrapper-array`".to_owned());
                }
                Node { kind, .. } if tag.is_some() && !matches!(kind, Kind::Struct(_) | Kind::Value) => {
                    return Err(TAG.to_owned());
                }
                _ => {}
            }
            self.path.pop();
            self.shape.choices[at].variants.push(Variant { name, node });
        }
        let choice = &self.shape.choices[at];
        for (number, variant) in choice.variants.iter().enumerate() {
            let class = self.shape.class_name(variant.node);
            if choice.variants[..number].iter().any(|other| self.shape.class_name(other.node) == class) {
                return Err(format!("two variants are of the class `{class}`"));
            }
        }
        self.complete.push(at);
        Ok(at)
    }

    fn constants(&mut self, name: &'static str, variants: &'static [&'static str]) -> Result<usize, String> {
        let named = Named::checked(name)?;
        if named.tag.is_some() {
            return Err(TAG.to_owned());
        }
        if named.has_properties() {
            return Err(PROPERTIES.to_owned());
        }
        let (form, class) = (named.form, named.class);
        let firsts = self.firsts("constant", variants);
        let bodies = bodies(&named, variants, &firsts)?;
        let is_known = |known: &EnumShape| {
            known.class == class && known.form == form && known.variants == variants && known.bodies == bodies
        };
        let at = self.shape.enums.iter().position(is_known);
        Ok(at.unwrap_or_else(|| {
            self.shape.enums.push(EnumShape { class: class.to_owned(), form, variants, firsts, bodies });
            self.shape.enums.len() - 1
        }))
    }

    /// Like `Order.lines[].price`.
    fn place_name(&self) -> String {
        let mut text = match (self.probe)(&[]) {
            Ok(Requested::Struct { name, .. } | Requested::Enum { name, .. }) => {
                format!("`{}", Named::of(name).class)
            }
            _ => "`the value".to_owned(),
        };
        for step in &self.path {
            match step {
                Step::Field(name) | Step::Variant(name) => {
                    text.push('.');
                    text.push_str(name);
                }
                Step::Element | Step::Value => text.push_str("[]"),
                Step::Key => text.push_str(".key"),
                Step::Some | Step::Newtype | Step::Name(_) => {}
            }
        }
        text.push('`');
        text
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::java;

    #[derive(Deserialize)]
    #[serde(rename = "com.acme.Node")]
    #[allow(dead_code)]
    struct Tree {
        value: i32,
        #[serde(rename = "Next")]
        next: Option<Box<Tree>>,
        more: Vec<Tree>,
    }

    #[derive(Deserialize)]
    #[serde(rename = "record com.acme.Page")]
    #[allow(dead_code)]
    struct Page<T> {
        items: Vec<T>,
    }

    #[derive(Deserialize)]
    #[serde(rename = "abstract com.acme.Level")]
    #[allow(dead_code)]
    enum Level {
        Low,
        High,
    }

    #[test]
    fn constants_with_bodies() {
        #[derive(Deserialize)]
        #[serde(rename = "abstract(B,D) com.acme.Mixed")]
        #[allow(dead_code)]
        enum Mixed {
            A,
            B,
            C,
            D,
        }
        #[derive(Deserialize)]
        #[serde(rename = "abstract(Low, Mid) com.acme.Level")]
        #[allow(dead_code)]
        enum Misspelt {
            Low,
            High,
        }
        let classes = |shape: &Shape| -> Vec<String> {
            (0..shape.enums[0].variants.len()).map(|at| shape.enums[0].class_of(at).to_owned()).collect()
        };
        let mixed = Shape::of::<Mixed>().unwrap();
        let names = ["com.acme.Mixed", "com.acme.Mixed$1", "com.acme.Mixed", "com.acme.Mixed$2"];
        assert_eq!(classes(mixed), names);
        assert_eq!(classes(Shape::of::<Level>().unwrap()), ["com.acme.Level$1", "com.acme.Level$2"]);
        refused::<Misspelt>("com.acme.Level", "`abstract(…)` names `Mid`, which is no constant of the enum");
    }

    #[test]
    fn words_that_are_not_known() {
        #[derive(Deserialize)]
        #[serde(rename = "fnal com.acme.Order")]
        #[allow(dead_code)]
        struct Misspelt {
            id: i64,
        }
        #[derive(Deserialize)]
        #[serde(rename = "final res(more) com.acme.Order")]
        #[allow(dead_code)]
        struct InAList {
            id: i64,
        }
        #[derive(Deserialize)]
        #[serde(rename = "final com.acme.Tags")]
        #[allow(dead_code)]
        struct Tags(Vec<String>);
        refused::<Tags>("the value", "no `final` goes in front of `com.acme.Tags`");
        refused::<Misspelt>(
            "fnal com.acme.Order",
            "`fnal` in front of `com.acme.Order` is not known: the words are `final`",
        );
        refused::<InAList>(
            "res(more) com.acme.Order",
            "`res(more)` in front of `com.acme.Order` is not known",
        );
    }

    fn kind<T: DeserializeOwned + 'static>() -> Kind {
        Shape::of::<T>().unwrap().nodes[0].kind.clone()
    }

    #[track_caller]
    fn refused<T: DeserializeOwned + 'static>(place: &str, why: &str) {
        let error = Shape::of::<T>().unwrap_err().to_string();
        assert!(error.contains(&format!("at `{place}`, ")) && error.contains(why), "{error}");
    }

    #[test]
    fn types_that_hold_themselves() {
        let shape = Shape::of::<Tree>().unwrap();
        let [tree] = &shape.structs[..] else { panic!("{shape:?}") };
        assert_eq!((&tree.class[..], tree.form), ("com.acme.Node", Form::Plain));
        let names: Vec<_> = tree.sorted.iter().map(|&at| tree.fields[at].name).collect();
        assert_eq!(names, ["Next", "more", "value"]);
        let next = &shape.nodes[tree.fields[1].node];
        assert_eq!(*next, Node { nullable: true, object: false, kind: Kind::Struct(0), is_final: false });
        assert!(std::ptr::eq(shape, Shape::of::<Tree>().unwrap()));
    }

    #[test]
    fn generic_types_of_one_name() {
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Both {
            lists: Page<Vec<i64>>,
            texts: Page<Option<String>>,
        }
        let shape = Shape::of::<Both>().unwrap();
        assert_eq!(shape.structs.len(), 3);
        assert_eq!(shape.structs[1].class, "com.acme.Page");
        assert!(shape.nodes[shape.structs[0].fields[0].node].is_final);
    }

    #[test]
    fn markers_and_options_in_either_order() {
        use java::linked_list::Of;
        let list = Kind::Collection(class("java.util.LinkedList"), 1);
        assert_eq!(kind::<Of<Vec<i32>>>(), list);
        assert_eq!(kind::<Of<Option<Vec<i32>>>>(), list);
        assert_eq!(kind::<Option<Of<Vec<i32>>>>(), list);
        assert_eq!(kind::<Vec<u8>>(), Kind::Bytes);
        assert_eq!(kind::<java::array::Of<Vec<i8>>>(), Kind::Bytes);
        assert_eq!(kind::<java::array::Of<Vec<i64>>>(), Kind::Array(1));
        assert_eq!(kind::<java::optional::Of<Option<String>>>(), Kind::Optional(1));
        assert_eq!(kind::<Option<java::Date>>(), Kind::Scalar(class("java.util.Date")));
        assert_eq!(kind::<java::uri::Of<String>>(), Kind::Text(class("java.net.URI")));
        assert_eq!(kind::<Level>(), Kind::Enum(0));
        assert_eq!(kind::<Vec<java::Value>>(), Kind::Collection(class("java.util.ArrayList"), 1));
        let shape = Shape::of::<Vec<java::object::Of<Level>>>().unwrap();
        assert!(shape.nodes[1].object && !shape.nodes[1].is_final);
    }

    #[test]
    fn two_names_of_one_field() {
        #[derive(Deserialize)]
        #[serde(rename = "com.acme.Order")]
        #[allow(dead_code)]
        struct Order {
            #[serde(alias = "number")]
            id: i64,
        }
        #[derive(Deserialize)]
        #[serde(rename = "com.acme.Order", deny_unknown_fields)]
        #[allow(dead_code)]
        struct Strict {
            price: i64,
            #[serde(alias = "number", alias = "nr")]
            id: i64,
        }
        #[derive(Deserialize)]
        #[serde(rename = "abstract(New) com.acme.Status")]
        #[allow(dead_code)]
        enum Status {
            Paid,
            #[serde(alias = "Made", alias = "New")]
            Created,
            #[serde(other)]
            Other,
        }
        #[derive(Deserialize)]
        #[serde(rename = "com.acme.Task")]
        #[allow(dead_code)]
        enum Task {
            #[serde(alias = "Later")]
            Order(Tree),
        }
        fn alias<T: DeserializeOwned + 'static>() -> &'static str {
            Shape::of::<T>().unwrap().alias.as_deref().unwrap()
        }
        let firsts = |shape: &Shape| -> Vec<_> {
            shape.structs[0].fields.iter().map(|field| shape.structs[0].fields[field.first].name).collect()
        };
        assert_eq!(
            alias::<Vec<Order>>(),
            "at `the value[]`, `id` and `number` are one field by `alias`, and Kryo would have two"
        );
        assert_eq!(firsts(Shape::of::<Order>().unwrap()), ["id", "id"]);
        assert!(alias::<Strict>().contains("at `com.acme.Order`, `id` and `nr` are one field"));
        assert_eq!(firsts(Shape::of::<Strict>().unwrap()), ["price", "id", "id", "id"]);
        assert!(alias::<Option<Status>>().contains("`Created` and `Made` are one constant by `alias`"));
        let status = &Shape::of::<Option<Status>>().unwrap().enums[0];
        assert_eq!(status.firsts, [0, 1, 1, 1, 4]);
        let body = Some("com.acme.Status$1".to_owned());
        assert_eq!(status.bodies, [None, body.clone(), body.clone(), body, None]);
        refused::<Task>("com.acme.Task", "two variants are of the class `com.acme.Node`");
    }

    /// What a `Deserialize` by hand reads names into need not say which is which.
    #[test]
    fn names_that_are_no_aliases() {
        struct ByHand<K>(std::marker::PhantomData<K>);
        impl<'de, K: Deserialize<'de>> Deserialize<'de> for ByHand<K> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_struct("com.acme.ByHand", &["a", "b"], ByHand(Default::default()))
            }
        }
        impl<'de, K: Deserialize<'de>> serde::de::Visitor<'de> for ByHand<K> {
            type Value = ByHand<K>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<ByHand<K>, A::Error> {
                while map.next_key::<K>()?.is_some() {
                    map.next_value::<i32>()?;
                }
                Ok(self)
            }
        }
        #[derive(Deserialize)]
        #[serde(from = "String")]
        enum Key {
            Field(#[allow(dead_code)] usize),
            Other,
        }
        impl From<String> for Key {
            fn from(name: String) -> Self {
                ["a", "b"].iter().position(|known| *known == name).map_or(Key::Other, Key::Field)
            }
        }
        let firsts = |shape: &Shape| -> Vec<_> {
            assert_eq!(shape.alias, None);
            shape.structs[0].fields.iter().map(|field| field.first).collect()
        };
        assert_eq!(firsts(Shape::of::<ByHand<String>>().unwrap()), [0, 1]);
        assert_eq!(firsts(Shape::of::<ByHand<Key>>().unwrap()), [0, 1]);
    }

    #[test]
    fn types_that_java_has_not() {
        #[derive(Deserialize)]
        #[serde(rename = "com.acme.Order")]
        #[allow(dead_code)]
        struct Order<T> {
            lines: Vec<Option<T>>,
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        enum Shaped {
            Unit,
            Data(i32),
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        #[allow(dead_code)]
        enum Untagged {
            Data(i32),
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Flat {
            #[serde(flatten)]
            page: Page<i32>,
        }
        refused::<Order<u32>>("com.acme.Order.lines[]", "`u32` has no Java type: use `i32` or `i64`");
        refused::<Order<u64>>("com.acme.Order.lines[]", "`u64` has no Java type");
        refused::<Order<u8>>("com.acme.Order.lines[]", "a byte there is an `i8`");
        refused::<Order<(i32, i32)>>("com.acme.Order.lines[]", "a tuple");
        refused::<Order<Shaped>>("com.acme.Order.lines[].Data", "only some of the variants have data");
        refused::<Order<Untagged>>("com.acme.Order.lines[]", "use `java::Value`");
        refused::<Order<Flat>>("com.acme.Order.lines[].key", "`flatten` has no counterpart");
        refused::<Option<Option<i32>>>("the value", "null twice");
        refused::<java::tree_map::Of<Vec<i32>>>("the value", "a list is not a java.util.TreeMap");
    }
}
