//! Structs and enums.

use std::collections::BTreeSet;

use super::names::{self, distinct, field, snake_name, variant};
use super::types::{Place, Written};
use super::writer::{Outcome, Wanted, Writer};
use crate::classes::hierarchy::{Hierarchy, Layout, OTHER_NUMBERS};
use crate::classes::model::{ClassKind, JavaType};
use crate::classes::predefined::OBJECT;
use crate::java::known_classes::{ClassKind as Library, known};

impl Writer<'_> {
    /// Writes a type.
    pub(super) fn item(&mut self, wanted: &Wanted) -> Outcome<()> {
        let name = self.want(wanted.clone());
        if wanted.is_place {
            return self.choice(wanted, &name);
        }
        let class = &wanted.class;
        if let Some(Library::Enum(constants)) = known(class).map(|class| class.kind) {
            let constants: Vec<_> = constants.iter().map(|name| (*name).to_owned()).collect();
            self.constants(&name, class, &constants);
            return Ok(());
        }
        let classes = self.classes;
        match classes.layout(class)? {
            None => Err(format!("the class `{class}` is not described")),
            Some(Layout::Object(hierarchy)) => self.structure(&name, wanted, &hierarchy),
            Some(Layout::Enum(found)) => {
                let bodies: Vec<_> = found
                    .constants
                    .iter()
                    .filter(|constant| constant.body.is_some())
                    .map(|constant| constant.name.as_str())
                    .collect();
                let numbers = found.constants.iter().filter_map(|constant| constant.body.as_deref());
                if !numbers.enumerate().all(|(at, body)| *body == format!("{}${}", found.name, at + 1)) {
                    self.text += &format!("\n// {OTHER_NUMBERS}");
                }
                let word = match bodies.len() {
                    0 => String::new(),
                    count if count == found.constants.len() => "abstract ".to_owned(),
                    _ => format!("abstract({}) ", bodies.join(", ")),
                };
                let constants: Vec<_> =
                    found.constants.iter().map(|constant| constant.name.clone()).collect();
                self.constants(&name, &format!("{word}{}", found.name), &constants);
                Ok(())
            }
            Some(Layout::Collection(_)) => {
                self.derive(class);
                self.text += &format!("pub struct {name}(pub Vec<java::Value>);\n");
                Ok(())
            }
            Some(Layout::Map(_)) => {
                self.derive(class);
                self.text += &format!("pub struct {name}(pub HashMap<String, java::Value>);\n");
                Ok(())
            }
        }
    }

    fn derive(&mut self, serde_name: &str) {
        self.derive_with(&format!("rename = \"{serde_name}\""));
    }

    fn derive_with(&mut self, serde: &str) {
        self.text +=
            &format!("\n#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]\n#[serde({serde})]\n");
    }

    /// An enum with data: one of several classes.
    fn choice(&mut self, wanted: &Wanted, name: &str) -> Outcome<()> {
        let objects = self.objects(&wanted.class);
        if objects.is_empty() {
            return Err(format!(
                "no class that extends or implements `{}` is described: name its file, too",
                wanted.class
            ));
        }
        let kind = match self.classes.get(&wanted.class).map(|class| class.kind) {
            Some(ClassKind::Interface) => "interface",
            _ => "class",
        };
        self.text += &format!("\n/// One of several classes, as the {kind} `{}` is declared.", wanted.class);
        self.derive(&wanted.class);
        self.text += &format!("pub enum {name} {{\n");
        let mut variants = BTreeSet::new();
        for class in objects {
            let arguments = self.bound(&class, &wanted.arguments);
            let inner = self.want(Wanted { class, arguments, is_place: false });
            // Names are unique, and so are these, but for the end that they have in common.
            let short = inner.strip_suffix(name).filter(|short| !short.is_empty()).unwrap_or(&inner);
            let variant = if variants.contains(short) { &inner } else { short };
            let variant = distinct(variant.to_owned(), |name| variants.contains(name));
            self.text += &format!("    {variant}({inner}),\n");
            variants.insert(variant);
        }
        self.text += "}\n";
        Ok(())
    }

    fn constants(&mut self, name: &str, class: &str, constants: &[String]) {
        let rule = names::rule(constants);
        let serde = match rule {
            Some(rule) => format!("rename = \"{class}\", rename_all = \"{rule}\""),
            None => format!("rename = \"{class}\""),
        };
        self.text += "\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]\n";
        self.text += &format!("#[serde({serde})]\npub enum {name} {{\n");
        let mut variants = BTreeSet::new();
        for constant in constants {
            // With a rule, no two constants have the same variant.
            let variant = distinct(variant(constant), |name| variants.contains(name));
            if rule.is_none() && variant != *constant {
                self.text += &format!("    #[serde(rename = \"{constant}\")]\n");
            }
            self.text += &format!("    {variant},\n");
            variants.insert(variant);
        }
        self.text += "}\n";
    }

    fn structure(&mut self, name: &str, wanted: &Wanted, hierarchy: &Hierarchy<'_>) -> Outcome<()> {
        let class = hierarchy.0[0];
        let word = match class.kind {
            ClassKind::Record => "record ",
            _ if class.is_final => "final ",
            _ => "",
        };
        let fields = hierarchy.fields();
        let is_renamed = fields.iter().any(|declared| snake_name(&declared.field.name).is_renamed);
        let rule = if is_renamed { ", rename_all = \"camelCase\"" } else { "" };
        let mut body = String::new();
        let (mut seen, mut idents) = (BTreeSet::new(), BTreeSet::new());
        for declared in &fields {
            let java = &declared.field.name;
            if !seen.insert(java.clone()) {
                body += &format!(
                    "    // Two fields have the name `{java}`: Kryo cannot be read into a struct.\n"
                );
                continue;
            }
            let kind = self.resolved(hierarchy, declared.by, &declared.field.kind, &wanted.arguments);
            let is_record = class.kind == ClassKind::Record;
            let Written { text, with, comment } =
                self.field_type(&kind, Place { owner: &class.name, is_record, is_inline: true })?;
            if let Some(comment) = comment {
                body += &format!("    // {comment}\n");
            }
            let (name, rename) = field(java, is_renamed);
            let ident = distinct(name.clone(), |name| idents.contains(name));
            let rename = if ident == name { rename } else { Some(java.as_str()) };
            let attributes: Vec<_> = rename
                .map(|rename| format!("rename = \"{rename}\""))
                .into_iter()
                .chain(with.map(|with| format!("with = \"java::{with}\"")))
                .collect();
            if !attributes.is_empty() {
                body += &format!("    #[serde({})]\n", attributes.join(", "));
            }
            body += &format!("    pub {ident}: {text},\n");
            idents.insert(ident);
        }
        self.derive_with(&format!("rename = \"{word}{}\"{rule}", class.name));
        self.text += &format!("pub struct {name} {{\n{body}}}\n");
        Ok(())
    }

    /// The type of a field without type parameters. One that is known neither by the class nor by the place
    /// is `Object`.
    fn resolved(
        &self,
        hierarchy: &Hierarchy<'_>,
        by: usize,
        kind: &JavaType,
        arguments: &[JavaType],
    ) -> JavaType {
        match kind {
            JavaType::Primitive(_) => kind.clone(),
            JavaType::Array(element) => {
                JavaType::Array(Box::new(self.resolved(hierarchy, by, element, arguments)))
            }
            JavaType::Class { name, arguments: inner } => JavaType::Class {
                name: name.clone(),
                arguments: inner.iter().map(|kind| self.resolved(hierarchy, by, kind, arguments)).collect(),
            },
            JavaType::Variable(name) => {
                if let Some((by, kind)) = hierarchy.variable(by, name) {
                    return self.resolved(hierarchy, by, &kind, arguments);
                }
                let by_place = || {
                    let parameters = hierarchy.parameters();
                    let chain = parameters.iter().position(|chain| chain.contains(&(by, name)))?;
                    arguments.get(chain).cloned()
                };
                by_place().unwrap_or_else(|| JavaType::class(OBJECT))
            }
        }
    }
}
