//! [`check`]: the differences between a struct and its class.

use std::fmt;

use serde::de::DeserializeOwned;

use super::compared::{Compared, java_name, mismatch};
use super::hierarchy::{Hierarchy, Layout, OTHER_NUMBERS};
use super::model::{ClassKind, Classes, JavaClass};
use crate::CodecError;
use crate::java::known_classes::known;
use crate::java::shape::{Choice, EnumShape, Form, Kind, Shape, StructShape};

/// What is different between a Rust type and the classes that it stands for. Returned by [`check`].
///
/// Prints a line for each difference, also as `Debug`, so that `check::<Order>(&classes).unwrap()` shows
/// them.
#[derive(Clone, PartialEq, Eq)]
pub struct Differences(Vec<String>);

impl Differences {
    /// A line for each.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::{Classes, check};
    ///
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename = "com.acme.Line")]
    /// struct Line {
    ///     count: Option<i64>,
    /// }
    ///
    /// let classes: Classes = "class com.acme.Line { Integer count; }".parse()?;
    /// let differences = check::<Line>(&classes).unwrap_err();
    /// assert_eq!(differences.lines(), ["com.acme.Line.count: `Integer` in Java, `Long` here"]);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl fmt::Debug for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Differences {}

/// Compares a Rust type with the classes that its structs and enums name: fields that are missing, misspelt
/// or too many, other types, `Integer` for `int`, other constants, and the word in front of the class. For a
/// test.
///
/// Kryo needs all of this to be right. Jackson reads a struct that has less than the class, too.
///
/// # Errors
/// The differences, and the classes that are not described.
///
/// # Examples
/// ```
/// use redisson_codec::classes::{Classes, check};
///
/// #[derive(serde::Deserialize)]
/// #[serde(rename = "com.acme.Line")]
/// struct Line {
///     sku: Option<String>,
///     count: i32,
/// }
///
/// let classes: Classes = "class com.acme.Line { String sku; int count; }".parse()?;
/// check::<Line>(&classes).unwrap();
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
pub fn check<T: DeserializeOwned + 'static>(classes: &Classes) -> Result<(), Differences> {
    let shape = Shape::of::<T>().map_err(|error: CodecError| Differences(vec![error.to_string()]))?;
    let mut checked = Check { shape, classes, is_root: false, lines: Vec::new() };
    let root = &shape.nodes[shape.root()].kind;
    for (at, found) in shape.structs.iter().enumerate() {
        checked.is_root = *root == Kind::Struct(at);
        checked.structure(found);
    }
    shape.enums.iter().for_each(|shape| checked.enumeration(shape));
    shape.choices.iter().for_each(|choice| checked.choice(choice));
    checked.lines.sort();
    checked.lines.dedup();
    if checked.lines.is_empty() { Ok(()) } else { Err(Differences(checked.lines)) }
}

struct Check<'a> {
    shape: &'a Shape,
    classes: &'a Classes,
    /// It is the class of the whole payload that is checked.
    is_root: bool,
    lines: Vec<String>,
}

impl Check<'_> {
    fn add(&mut self, place: &str, why: impl fmt::Display) {
        self.lines.push(format!("{place}: {why}"));
    }

    fn structure(&mut self, found: &StructShape) {
        let place = &found.class;
        let hierarchy = match self.classes.layout(place) {
            Ok(Some(Layout::Object(hierarchy))) => hierarchy,
            Ok(Some(Layout::Enum(_))) => return self.add(place, "an enum in Java, a struct here"),
            Ok(Some(_)) => return self.add(place, "a collection or map in Java: use a newtype around one"),
            Ok(None) if known(place).is_some() => return,
            Ok(None) => return self.not_described(place),
            Err(why) => return self.add(place, why),
        };
        let class = hierarchy.0[0];
        let expected = form(class);
        if found.form != expected {
            let (java, here) = (words(expected), words(found.form));
            self.add(place, format!("{java} in Java, {here} here"));
        }
        self.fields(found, &hierarchy);
    }

    fn fields(&mut self, found: &StructShape, hierarchy: &Hierarchy<'_>) {
        let Check { shape, classes, is_root, .. } = *self;
        let compared = Compared { shape, classes, is_root };
        let declared = hierarchy.fields();
        let names = |name: &str| format!("{}.{name}", found.class);
        // What `rest(…)` names has the properties that no field has.
        let fields = found.fields.iter().enumerate().filter(|(at, _)| Some(*at) != found.rest);
        for (_, field) in fields {
            // One of several names is enough: the others are of an `alias`.
            let mut names_of_it = found.fields.iter().filter(|other| other.first == field.first);
            if !names_of_it.any(|other| declared.iter().any(|declared| declared.field.name == other.name)) {
                let missing = declared.iter().map(|declared| declared.field.name.as_str());
                let missing = missing.filter(|name| !found.fields.iter().any(|field| field.name == *name));
                let transient = hierarchy.0.iter().flat_map(|class| &class.fields);
                let is_transient =
                    transient.clone().any(|other| other.is_transient && other.name == field.name);
                self.add(
                    &names(field.name),
                    match (is_transient, closest(field.name, missing)) {
                        (true, _) => "transient in Java: it is in no payload of Kryo".to_owned(),
                        (_, Some(other)) => format!("no field of the class; is it `{other}`?"),
                        _ => "no field of the class".to_owned(),
                    },
                );
            }
        }
        for (at, declared) in declared.iter().enumerate() {
            let name = &declared.field.name;
            let place = names(name);
            if at > 0 && hierarchy.fields()[at - 1].field.name == *name {
                self.add(
                    &place,
                    "two fields of this name, of the class and of one above it: no struct has that",
                );
                continue;
            }
            let kind = &declared.field.kind;
            match found.fields.iter().find(|field| field.name == name) {
                None => self.add(&place, format!("missing here: `{kind}` in Java")),
                Some(field) => {
                    let kind = java_name(hierarchy, declared.by, kind);
                    if let Some(why) = mismatch(&compared, field.node, &kind) {
                        self.add(&place, why);
                    }
                }
            }
        }
    }

    fn enumeration(&mut self, found: &EnumShape) {
        let place = &found.class;
        let class = match self.classes.layout(place) {
            Ok(Some(Layout::Enum(class))) => class,
            Ok(Some(_)) => return self.add(place, "no enum in Java"),
            Ok(None) => return self.library_enum(found),
            Err(why) => return self.add(place, why),
        };
        let names: Vec<_> = class.constants.iter().map(|constant| constant.name.as_str()).collect();
        self.constants(found, &names);
        for (at, variant) in found.variants.iter().enumerate() {
            let Some(constant) = class.constants.iter().find(|constant| constant.name == *variant) else {
                continue;
            };
            let here = found.bodies.get(at).and_then(Option::as_ref);
            if here.is_some() && constant.body.is_some() && here != constant.body.as_ref() {
                return self.add(&format!("{place}.{variant}"), OTHER_NUMBERS);
            }
            if here != constant.body.as_ref() {
                let bodies: Vec<_> = class
                    .constants
                    .iter()
                    .filter(|constant| constant.body.is_some())
                    .map(|constant| constant.name.as_str())
                    .collect();
                let word = match bodies.len() {
                    0 => {
                        "no constant has a body in Java, so no word belongs in front of the class".to_owned()
                    }
                    _ => format!("the constants with bodies are `abstract({}) {place}`", bodies.join(", ")),
                };
                return self.add(place, word);
            }
        }
    }

    fn library_enum(&mut self, found: &EnumShape) {
        match known(&found.class).map(|class| class.kind) {
            Some(crate::java::known_classes::ClassKind::Enum(names)) => self.constants(found, names),
            _ => self.not_described(&found.class),
        }
    }

    /// The same constants in the same order.
    fn constants(&mut self, found: &EnumShape, names: &[&str]) {
        let place = &found.class;
        let (mut same_names, mut here) = (names.to_vec(), found.variants.to_vec());
        same_names.sort_unstable();
        here.sort_unstable();
        if same_names == here && names != found.variants {
            self.add(place, format!("the constants in Java's order are {}", names.join(", ")));
        }
        let variants = || found.variants.iter().zip(&found.firsts);
        let is_known = |constant| variants().any(|(name, first)| first == constant && names.contains(name));
        for (variant, _) in variants().filter(|(_, first)| !is_known(*first)) {
            let missing = names.iter().copied().filter(|name| !found.variants.contains(name));
            self.add(
                &format!("{place}.{variant}"),
                match closest(variant, missing) {
                    Some(other) => format!("no constant of the enum; is it `{other}`?"),
                    None => "no constant of the enum".to_owned(),
                },
            );
        }
        for name in names.iter().filter(|name| !found.variants.contains(name)) {
            self.add(&format!("{place}.{name}"), "missing here");
        }
    }

    /// The variants are classes below the one that is declared, and all of them.
    fn choice(&mut self, choice: &Choice) {
        for variant in &choice.variants {
            let Kind::Struct(at) = self.shape.nodes[variant.node].kind else { continue };
            let class = &self.shape.structs[at].class;
            if self.classes.get(class).is_some() && !self.classes.is_below(class, &choice.class) {
                self.add(class, format!("it neither extends nor implements `{}`", choice.class));
            }
        }
        let kinds =
            || choice.variants.iter().map(|variant| (variant.node, &self.shape.nodes[variant.node].kind));
        if self.classes.get(&choice.class).is_none() || kinds().any(|(_, kind)| *kind == Kind::Value) {
            return;
        }
        let takes = |class: &str| {
            kinds().any(|(node, kind)| match kind {
                Kind::Choice(at) => self.classes.is_below(class, &self.shape.choices[*at].class),
                _ => self.shape.class_name(node) == class,
            })
        };
        let is_object = |class: &&JavaClass| {
            // The bodies of constants are classes, too.
            let is_enum = |above| self.classes.get(above).is_some_and(|above| above.kind == ClassKind::Enum);
            !class.is_abstract && !class.above().any(is_enum)
        };
        let below = self.classes.all().filter(|class| self.classes.is_below(&class.name, &choice.class));
        let missing: Vec<_> = below.filter(is_object).filter(|class| !takes(&class.name)).collect();
        for class in missing {
            self.add(&class.name, format!("no variant of the enum for `{}` takes it", choice.class));
        }
    }

    fn not_described(&mut self, class: &str) {
        let other = closest(class, self.classes.names()).map(|other| format!("; is it `{other}`?"));
        self.add(class, format!("the class is not described{}", other.unwrap_or_default()));
    }
}

fn form(class: &JavaClass) -> Form {
    match class.kind {
        ClassKind::Record => Form::Record,
        _ if class.is_final => Form::Final,
        _ => Form::Plain,
    }
}

fn words(form: Form) -> &'static str {
    match form {
        Form::Plain => "a class without `final`",
        Form::Final => "a `final` class",
        Form::Record => "a `record`",
        Form::Abstract => "an enum with bodies",
    }
}

/// The name that is most like this one, if it is like it at all.
fn closest<'a>(name: &str, others: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = name.chars().count() / 3 + 1;
    let distance = |other: &&'a str| distance(&name.to_lowercase(), &other.to_lowercase());
    others
        .map(|other| (distance(&other), other))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|found| found.1)
}

/// How many characters are put in, left out or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(200).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, a) in a.chars().take(200).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (at, b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[b.len()]
}
