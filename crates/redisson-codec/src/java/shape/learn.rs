//! Asks a type, place by place, and puts together what it answers.

use std::any::type_name;
use std::collections::HashMap;

use serde::de::DeserializeOwned;

use super::{EnumShape, Field, Form, Kind, Node, NodeId, Shape, StructShape};
use crate::CodecError;
use crate::java::class::{ClassKind, class};
use crate::java::marker::{Marker, marker};
use crate::java::trace::{Seen, Step, look};

impl Shape {
    pub(super) fn learn<T: DeserializeOwned>() -> Result<Shape, CodecError> {
        let mut learner = Learner {
            look: look::<T>,
            path: Vec::new(),
            shape: Shape { nodes: Vec::new(), structs: Vec::new(), enums: Vec::new() },
            structs: HashMap::new(),
        };
        match learner.place() {
            Ok(_) => {
                let mut shape = learner.shape;
                for node in 0..shape.nodes.len() {
                    shape.nodes[node].is_final = shape.is_final(node);
                }
                Ok(shape)
            }
            Err(why) => {
                let place = learner.place_name();
                let kind = type_name::<T>();
                Err(CodecError::new(format!("`{kind}` cannot be a Java value: at {place}, {why}")))
            }
        }
    }
}

/// Longer than any type that is meant; what generic types that hold larger ones of themselves never end at.
const MAX_PATH: usize = 100;

struct Learner {
    look: fn(&[Step]) -> Result<Seen, String>,
    path: Vec<Step>,
    shape: Shape,
    /// By the name of the Rust type, so that a type that holds itself comes to an end.
    structs: HashMap<(&'static str, &'static str), usize>,
}

impl Learner {
    fn look(&self) -> Result<Seen, String> {
        if self.path.len() > MAX_PATH {
            return Err("it goes on without end".to_owned());
        }
        (self.look)(&self.path)
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
        let (mut nullable, mut object, mut said) = (false, false, None);
        let kind = loop {
            let seen = self.look()?;
            match seen {
                Seen::Option => {
                    if nullable {
                        return Err("an `Option` of an `Option` would be null twice".to_owned());
                    }
                    nullable = true;
                    self.path.push(Step::Some);
                }
                Seen::Newtype(name) => {
                    match marker(name) {
                        None => {}
                        Some(Marker::Value) => break Kind::Value,
                        Some(Marker::Object) => object = true,
                        Some(Marker::Class(class)) if matches!(class.kind, ClassKind::Scalar(_)) => {
                            break Kind::Scalar(class);
                        }
                        Some(Marker::Class(class)) if class.kind == ClassKind::Optional => {
                            self.path.push(Step::Newtype);
                            break self.optional()?;
                        }
                        Some(marker) => said = Some(marker),
                    }
                    self.path.push(Step::Newtype);
                }
                seen => break self.kind(seen, said)?,
            }
        };
        Ok(Node { nullable, object, kind, is_final: false })
    }

    /// An empty `Optional` is not a null, so the `Option` in it is its own.
    fn optional(&mut self) -> Result<Kind, String> {
        match self.look()? {
            Seen::Option => Ok(Kind::Optional(self.at(Step::Some)?)),
            _ => Err("`optional` goes with an `Option`".to_owned()),
        }
    }

    fn kind(&mut self, seen: Seen, said: Option<Marker>) -> Result<Kind, String> {
        let kind = match (&seen, said) {
            (Seen::Seq, Some(Marker::Array)) => {
                let element = self.at(Step::Element)?;
                let node = &self.shape.nodes[element];
                match node.kind {
                    Kind::Byte if !node.nullable => Kind::Bytes,
                    _ => Kind::Array(element),
                }
            }
            (Seen::Bytes, Some(Marker::Array)) => Kind::Bytes,
            (Seen::Seq, Some(Marker::Class(class))) => {
                let element = self.at(Step::Element)?;
                match class.kind {
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
            (Seen::Map, Some(Marker::Class(class))) if matches!(class.kind, ClassKind::Map(_)) => {
                Kind::Map(class, self.at(Step::Key)?, self.at(Step::Value)?)
            }
            (Seen::Str, Some(Marker::Class(class))) if matches!(class.kind, ClassKind::Text(_)) => {
                Kind::Text(class)
            }
            (_, Some(Marker::Class(class))) => return Err(format!("{seen} is not a {}", class.name)),
            (_, Some(_)) => return Err(format!("{seen} is not an array")),
            (Seen::Seq, None) => {
                self.path.push(Step::Element);
                // The only place of a `u8`.
                if matches!(self.look(), Ok(Seen::U8)) {
                    Kind::Bytes
                } else {
                    self.path.pop();
                    Kind::Collection(class("java.util.ArrayList"), self.at(Step::Element)?)
                }
            }
            (Seen::Map, None) => {
                Kind::Map(class("java.util.HashMap"), self.at(Step::Key)?, self.at(Step::Value)?)
            }
            (_, None) => self.plain(seen)?,
        };
        Ok(kind)
    }

    fn plain(&mut self, seen: Seen) -> Result<Kind, String> {
        Ok(match seen {
            Seen::Bool => Kind::Boolean,
            Seen::I8 => Kind::Byte,
            Seen::I16 => Kind::Short,
            Seen::U16 | Seen::Char => Kind::Character,
            Seen::I32 => Kind::Integer,
            Seen::I64 => Kind::Long,
            Seen::F32 => Kind::Float,
            Seen::F64 => Kind::Double,
            Seen::Str => Kind::String,
            Seen::Bytes => Kind::Bytes,
            Seen::U8 => return Err("a lone `u8` is no Java type: a byte there is an `i8`".to_owned()),
            Seen::Struct { name, rust, fields } => Kind::Struct(self.class(name, rust, fields)?),
            Seen::Enum { name, variants } => Kind::Enum(self.constants(name, variants)?),
            Seen::Unsupported(what) => return Err(what.to_owned()),
            Seen::Option | Seen::Newtype(_) | Seen::Seq | Seen::Map | Seen::Unit => {
                return Err(format!("{seen} is no Java value"));
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
        let (form, class) = Form::of(name);
        if form == Form::Abstract {
            return Err("`abstract` goes with an enum".to_owned());
        }
        let at = self.shape.structs.len();
        self.structs.insert((name, rust), at);
        let mut sorted: Vec<usize> = (0..fields.len()).collect();
        // Java compares UTF-16.
        sorted.sort_by(|&a, &b| fields[a].encode_utf16().cmp(fields[b].encode_utf16()));
        let class = class.to_owned();
        self.shape.structs.push(StructShape { class, form, fields: Vec::new(), sorted });
        for name in fields {
            let node = self.at(Step::Field(name))?;
            self.shape.structs[at].fields.push(Field { name, node });
        }
        Ok(at)
    }

    fn constants(&mut self, name: &'static str, variants: &'static [&'static str]) -> Result<usize, String> {
        let (form, class) = Form::of(name);
        for variant in variants {
            self.path.push(Step::Variant(variant));
            if !matches!(self.look()?, Seen::Unit) {
                return Err("a Java enum has no data in its constants".to_owned());
            }
            self.path.pop();
        }
        let at = self.shape.enums.iter().position(|known| known.class == class && known.variants == variants);
        Ok(at.unwrap_or_else(|| {
            self.shape.enums.push(EnumShape { class: class.to_owned(), form, variants });
            self.shape.enums.len() - 1
        }))
    }

    /// Like `Order.lines[].price`.
    fn place_name(&self) -> String {
        let mut text = match (self.look)(&[]) {
            Ok(Seen::Struct { name, .. }) => format!("`{}", Form::of(name).1),
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
                Step::Some | Step::Newtype => {}
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
        refused::<Order<Shaped>>("com.acme.Order.lines[].Data", "no data in its constants");
        refused::<Order<Untagged>>("com.acme.Order.lines[]", "use `java::Value`");
        refused::<Order<Flat>>("com.acme.Order.lines[].key", "`flatten` has no counterpart");
        refused::<Option<Option<i32>>>("the value", "null twice");
        refused::<java::tree_map::Of<Vec<i32>>>("the value", "a list is not a java.util.TreeMap");
    }
}
