//! Descriptions as text, which looks like Java.

use std::fmt;
use std::str::FromStr;

use super::memory::{ALLOCATION, MOST, beyond_memory};
use super::model::{ClassKind, Classes, JavaClass, JavaConstant, JavaField, JavaType};
use super::predefined::{OBJECT, long};
use super::primitive::PRIMITIVES;
use super::signature::MOST_LEVELS;
use crate::CodecError;
use crate::shown::shown;
use crate::signature::is_name_letter;

type Outcome<T> = Result<T, String>;

impl Classes {
    /// Adds the classes of a [text](super#text).
    ///
    /// # Errors
    /// When the text is no such description. Then nothing is added.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::Classes;
    ///
    /// let error = Classes::new().add_text("class com.acme.Line { String; }").unwrap_err();
    /// assert_eq!(error.to_string(), "expected the name of a field at line 1, offset 28, found `;`");
    /// ```
    pub fn add_text(&mut self, text: &str) -> Result<(), CodecError> {
        self.add(read(text).map_err(CodecError::new)?)
    }
}

impl FromStr for Classes {
    type Err = CodecError;

    fn from_str(text: &str) -> Result<Self, CodecError> {
        let mut classes = Classes::new();
        classes.add_text(text)?;
        Ok(classes)
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all().try_for_each(|class| print(class, f))
    }
}

/// Reads the classes of a text.
fn read(text: &str) -> Outcome<Vec<JavaClass>> {
    let mut input = Input { text, at: 0, parameters: Vec::new(), memory: 0 };
    let mut classes = Vec::new();
    while input.peek().is_some() {
        classes.push(input.class()?);
    }
    Ok(classes)
}

struct Input<'a> {
    text: &'a str,
    at: usize,
    /// The type parameters of the class that is being read.
    parameters: Vec<String>,
    /// How many bytes the classes take so far.
    memory: usize,
}

/// How long a text in quotes is, without the last one.
fn quoted(text: &str, quote: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, char)| {
        let ends = !is_escaped && quote.starts_with(*char);
        is_escaped = !is_escaped && *char == '\\';
        ends
    });
    end.map_or(text.len(), |(end, _)| end)
}

fn is_name(char: char) -> bool {
    is_name_letter(char) || char == '.'
}

impl<'a> Input<'a> {
    /// The next word or sign. Spaces and comments are skipped.
    fn peek(&mut self) -> Option<&'a str> {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let comment = match trimmed.get(..2) {
                Some("//") => trimmed.find('\n'),
                Some("/*") => trimmed[2..].find("*/").map(|end| 2 + end + 2),
                _ => break,
            };
            self.at += comment.unwrap_or(trimmed.len());
        }
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let length = match is_name(first) {
            true => rest.find(|char| !is_name(char)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        Some(&rest[..length])
    }

    fn skip(&mut self, token: &str) -> bool {
        let found = self.peek() == Some(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn wrong(&mut self, expected: &str) -> String {
        let found = self.peek().map_or("the end".to_owned(), |found| format!("`{}`", shown(found)));
        let line = self.text[..self.at].matches('\n').count() + 1;
        format!("expected {expected} at line {line}, offset {}, found {found}", self.at)
    }

    fn expect(&mut self, token: &str) -> Outcome<()> {
        if self.skip(token) { Ok(()) } else { Err(self.wrong(&format!("`{token}`"))) }
    }

    /// A name, which is kept.
    fn name(&mut self, of: &str) -> Outcome<&'a str> {
        match self.peek().filter(|name| name.starts_with(is_name)) {
            Some(name) => {
                self.at += name.len();
                self.count(size_of::<JavaField>() + ALLOCATION + name.len())?;
                Ok(name)
            }
            None => Err(self.wrong(of)),
        }
    }

    fn count(&mut self, bytes: usize) -> Outcome<()> {
        self.memory += bytes;
        match self.memory > MOST {
            true => Err(format!("{}, before offset {}", beyond_memory(), self.at)),
            false => Ok(()),
        }
    }

    /// Skips words like `public` and annotations, and says which of these words were among them.
    fn modifiers<const N: usize>(&mut self, wanted: [&str; N]) -> Outcome<[bool; N]> {
        const OTHERS: [&str; 6] = ["public", "protected", "private", "sealed", "volatile", "strictfp"];
        let mut found = [false; N];
        loop {
            if let Some(at) = wanted.iter().position(|word| self.skip(word)) {
                found[at] = true;
            } else if self.skip("@") {
                self.annotation()?;
            } else if !OTHERS.iter().any(|word| self.skip(word)) {
                return Ok(found);
            }
        }
    }

    /// Skips the name of an annotation, and what is in parentheses behind it.
    fn annotation(&mut self) -> Outcome<()> {
        if !self.peek().is_some_and(|name| name.starts_with(is_name)) {
            return Err(self.wrong("the name of an annotation"));
        }
        self.at += self.peek().map_or(0, str::len);
        let mut open = usize::from(self.skip("("));
        while open > 0 {
            match self.peek() {
                Some("(") => open += 1,
                Some(")") => open -= 1,
                Some(quote @ ("\"" | "'")) => self.at += quoted(&self.text[self.at..], quote),
                Some(_) => {}
                None => return Err(self.wrong("`)`")),
            }
            self.at += self.peek().map_or(0, str::len);
        }
        Ok(())
    }

    fn class(&mut self) -> Outcome<JavaClass> {
        let [is_final, is_abstract, _] = self.modifiers(["final", "abstract", "static"])?;
        let kinds = [
            ("class", ClassKind::Class),
            ("interface", ClassKind::Interface),
            ("record", ClassKind::Record),
            ("enum", ClassKind::Enum),
        ];
        let Some((_, kind)) = kinds.into_iter().find(|(word, _)| self.skip(word)) else {
            return Err(self.wrong("`class`, `interface`, `record` or `enum`"));
        };
        let name = self.name("the name of a class")?.to_owned();
        self.count(size_of::<JavaClass>())?;
        let mut class = JavaClass {
            name,
            kind,
            is_final: is_final || kind == ClassKind::Record,
            is_abstract: is_abstract || kind == ClassKind::Interface,
            parameters: Vec::new(),
            superclass: None,
            interfaces: Vec::new(),
            fields: Vec::new(),
            constants: Vec::new(),
        };
        self.parameters.clear();
        if self.skip("<") {
            while !self.skip(">") {
                let parameter = self.name("the name of a type parameter")?.to_owned();
                self.parameters.push(parameter);
                self.skip(",");
            }
        }
        if kind == ClassKind::Record && self.skip("(") {
            self.components(&mut class)?;
        }
        if self.skip("extends") {
            let mut above = self.list()?;
            match kind {
                ClassKind::Interface => class.interfaces = above,
                _ => class.superclass = above.pop().filter(|above| *above != JavaType::class(OBJECT)),
            }
        }
        if self.skip("implements") {
            class.interfaces = self.list()?;
        }
        self.expect("{")?;
        if kind == ClassKind::Enum {
            self.constants(&mut class)?;
            class.is_final = class.constants.iter().all(|constant| constant.body.is_none());
        }
        while !self.skip("}") {
            self.field(&mut class)?;
        }
        class.parameters = std::mem::take(&mut self.parameters);
        Ok(class)
    }

    fn list(&mut self) -> Outcome<Vec<JavaType>> {
        let mut list = vec![self.kind(0)?];
        while self.skip(",") {
            list.push(self.kind(0)?);
        }
        Ok(list)
    }

    fn constants(&mut self, class: &mut JavaClass) -> Outcome<()> {
        let mut bodies = 0;
        while !matches!(self.peek(), Some(";" | "}")) {
            let name = self.name("the name of a constant")?.to_owned();
            let body = if self.skip("{") {
                self.expect("}")?;
                bodies += 1;
                Some(format!("{}${bodies}", class.name))
            } else {
                None
            };
            class.constants.push(JavaConstant { name, body });
            if !self.skip(",") {
                break;
            }
        }
        if self.peek() != Some("}") {
            self.expect(";")?;
        }
        Ok(())
    }

    /// What is in parentheses behind the name of a record.
    fn components(&mut self, class: &mut JavaClass) -> Outcome<()> {
        while !self.skip(")") {
            let [] = self.modifiers([])?;
            let kind = self.kind(0)?;
            let name = self.name("the name of a field")?.to_owned();
            self.count(kind.memory())?;
            class.fields.push(JavaField { name, kind, is_transient: false });
            if !self.skip(",") && self.peek() != Some(")") {
                return Err(self.wrong("`,` or `)`"));
            }
        }
        Ok(())
    }

    fn field(&mut self, class: &mut JavaClass) -> Outcome<()> {
        let [is_static, is_transient, _] = self.modifiers(["static", "transient", "final"])?;
        let kind = self.kind(0)?;
        loop {
            let name = self.name("the name of a field")?.to_owned();
            if !is_static {
                self.count(kind.memory())?;
                class.fields.push(JavaField { name, kind: kind.clone(), is_transient });
            }
            if !self.skip(",") {
                return match self.peek() {
                    Some("(" | "=") => {
                        Err(self.wrong("`;`, as a field has no value here and methods are left out,"))
                    }
                    _ => self.expect(";"),
                };
            }
        }
    }

    fn kind(&mut self, level: usize) -> Outcome<JavaType> {
        if level == MOST_LEVELS {
            return Err(self.wrong(&format!("a type of at most {MOST_LEVELS} levels")));
        }
        let mut kind = self.class_or_primitive(level)?;
        let mut level = level;
        while self.skip("[") {
            self.expect("]")?;
            self.count(size_of::<JavaType>() + ALLOCATION)?;
            level += 1;
            if level == MOST_LEVELS {
                return Err(self.wrong(&format!("a type of at most {MOST_LEVELS} levels")));
            }
            kind = JavaType::Array(Box::new(kind));
        }
        Ok(kind)
    }

    fn class_or_primitive(&mut self, level: usize) -> Outcome<JavaType> {
        while self.skip("@") {
            self.annotation()?;
        }
        if self.skip("?") {
            self.count(size_of::<JavaType>() + ALLOCATION + OBJECT.len())?;
            // A wildcard is its bound, as in class files.
            if !self.skip("extends") && !self.skip("super") {
                return Ok(JavaType::class(OBJECT));
            }
            return Ok(match self.kind(level + 1)? {
                JavaType::Class { name, .. } => JavaType::class(name),
                kind => kind,
            });
        }
        let name = self.name("a type")?;
        if let Some((primitive, ..)) = PRIMITIVES.iter().find(|(_, found, ..)| *found == name) {
            return Ok(JavaType::Primitive(*primitive));
        }
        if self.parameters.iter().any(|parameter| parameter == name) {
            return Ok(JavaType::Variable(name.to_owned()));
        }
        let mut arguments = Vec::new();
        if self.skip("<") {
            loop {
                arguments.push(self.kind(level + 1)?);
                if !self.skip(",") {
                    break;
                }
            }
            self.expect(">")?;
        }
        Ok(JavaType::Class { name: long(name), arguments })
    }
}

/// Prints a class as it is read.
fn print(class: &JavaClass, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let word = match class.kind {
        ClassKind::Class if class.is_final => "final class",
        ClassKind::Class if class.is_abstract => "abstract class",
        ClassKind::Class => "class",
        ClassKind::Interface => "interface",
        ClassKind::Record => "record",
        ClassKind::Enum => "enum",
    };
    write!(f, "{word} {}", class.name)?;
    if !class.parameters.is_empty() {
        write!(f, "<{}>", class.parameters.join(", "))?;
    }
    if let Some(superclass) = &class.superclass {
        write!(f, " extends {superclass}")?;
    }
    let interfaces: Vec<_> = class.interfaces.iter().map(JavaType::to_string).collect();
    if !interfaces.is_empty() {
        let word = if class.kind == ClassKind::Interface { "extends" } else { "implements" };
        write!(f, " {word} {}", interfaces.join(", "))?;
    }
    writeln!(f, " {{")?;
    if class.kind == ClassKind::Enum {
        let constants: Vec<_> = class
            .constants
            .iter()
            .map(|constant| format!("{}{}", constant.name, if constant.body.is_some() { " {}" } else { "" }))
            .collect();
        writeln!(f, "    {};", constants.join(", "))?;
    }
    for field in &class.fields {
        let word = if field.is_transient { "transient " } else { "" };
        writeln!(f, "    {word}{} {};", field.kind, field.name)?;
    }
    writeln!(f, "}}")
}
