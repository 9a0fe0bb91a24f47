//! Types as they stand in class files: `Ljava/util/List<Ljava/lang/String;>;`.

use super::model::JavaType;
use super::predefined::OBJECT;
use super::primitive::Primitive;
use crate::signature::is_name_letter;

/// How deep the type arguments of a type nest.
pub(super) const MOST_LEVELS: usize = 32;

type Outcome<T> = Result<T, String>;

/// The generic part of a class.
pub(super) struct ClassSignature {
    pub(super) parameters: Vec<String>,
    pub(super) superclass: JavaType,
    pub(super) interfaces: Vec<JavaType>,
}

/// A name with dots. Java's virtual machine takes nearly all characters, which compilers do not make, and
/// which would be printed as they are.
pub(super) fn name(text: &str) -> Outcome<String> {
    let is_usual = |char: char| is_name_letter(char) || char == '/';
    match text.chars().find(|char| !is_usual(*char)) {
        None if !text.is_empty() => Ok(text.replace('/', ".")),
        Some(char) => Err(format!("a name with the character {}", char.escape_unicode())),
        None => Err("an empty name".to_owned()),
    }
}

/// The type of a field.
pub(super) fn field_signature(text: &str) -> Outcome<JavaType> {
    let mut input = Input { text, at: 0, levels: 0 };
    let kind = input.any()?;
    input.end()?;
    Ok(kind)
}

pub(super) fn class_signature(text: &str) -> Outcome<ClassSignature> {
    let mut input = Input { text, at: 0, levels: 0 };
    let mut parameters = Vec::new();
    if input.skip('<') {
        while !input.skip('>') {
            parameters.push(input.name(&[':'])?);
            while input.skip(':') {
                // The bound of the class may be empty, where interfaces follow.
                if !matches!(input.peek(), Some(':')) {
                    input.reference()?;
                }
            }
        }
    }
    let superclass = input.reference()?;
    let mut interfaces = Vec::new();
    while input.peek().is_some() {
        interfaces.push(input.reference()?);
    }
    Ok(ClassSignature { parameters, superclass, interfaces })
}

struct Input<'a> {
    text: &'a str,
    at: usize,
    levels: usize,
}

impl Input<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip(&mut self, char: char) -> bool {
        let found = self.peek() == Some(char);
        self.at += if found { char.len_utf8() } else { 0 };
        found
    }

    fn wrong(&self, expected: &str) -> String {
        format!("a type without {expected} in its character {}", self.at)
    }

    fn end(&self) -> Outcome<()> {
        if self.at == self.text.len() { Ok(()) } else { Err(self.wrong("an end")) }
    }

    /// A name in front of one of these characters, which is left.
    fn name(&mut self, ends: &[char]) -> Outcome<String> {
        let rest = &self.text[self.at..];
        match rest.find(ends) {
            Some(length @ 1..) => {
                self.at += length;
                name(&rest[..length])
            }
            _ => Err(self.wrong("a name")),
        }
    }

    fn any(&mut self) -> Outcome<JavaType> {
        let first = self.peek().and_then(|char| u8::try_from(char).ok());
        match first.and_then(Primitive::of_descriptor) {
            Some(primitive) => {
                self.at += 1;
                Ok(JavaType::Primitive(primitive))
            }
            None => self.reference(),
        }
    }

    fn reference(&mut self) -> Outcome<JavaType> {
        self.levels += 1;
        if self.levels > MOST_LEVELS {
            return Err(format!("a type of more than {MOST_LEVELS} levels"));
        }
        let kind = if self.skip('[') {
            JavaType::Array(Box::new(self.any()?))
        } else if self.skip('T') {
            let name = self.name(&[';'])?;
            self.skip(';');
            JavaType::Variable(name)
        } else if self.skip('L') {
            self.class()?
        } else {
            return Err(self.wrong("a class"));
        };
        self.levels -= 1;
        Ok(kind)
    }

    fn class(&mut self) -> Outcome<JavaType> {
        let mut name = self.name(&['<', ';', '.'])?;
        loop {
            let arguments = if self.skip('<') { self.arguments()? } else { Vec::new() };
            if self.skip(';') {
                return Ok(JavaType::Class { name, arguments });
            }
            // A class inside of a generic one.
            if !self.skip('.') {
                return Err(self.wrong("a ;"));
            }
            name = name + "$" + &self.name(&['<', ';', '.'])?;
        }
    }

    fn arguments(&mut self) -> Outcome<Vec<JavaType>> {
        let mut arguments = Vec::new();
        while !self.skip('>') {
            let is_bound = self.skip('+') || self.skip('-');
            arguments.push(if self.skip('*') {
                JavaType::class(OBJECT)
            } else {
                match self.reference()? {
                    // Kryo takes the class of a bound, without its type arguments.
                    JavaType::Class { name, .. } if is_bound => JavaType::class(name),
                    kind => kind,
                }
            });
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read() {
        for (signature, java) in [
            ("I", "int"),
            ("[[J", "long[][]"),
            ("Ljava/lang/String;", "String"),
            ("Ljava/util/Map<Ljava/lang/String;[Lcom/acme/A$B;>;", "Map<String, com.acme.A$B[]>"),
            ("Ljava/util/List<TT;>;", "List<T>"),
            ("Ljava/util/List<*>;", "List<Object>"),
            ("Ljava/util/List<+Ljava/util/List<TT;>;>;", "List<List>"),
            ("Lcom/acme/Outer<TT;>.Inner<Ljava/lang/Long;>;", "com.acme.Outer$Inner<Long>"),
        ] {
            assert_eq!(field_signature(signature).unwrap().to_string(), java);
        }
        let class = class_signature(
            "<T:Ljava/lang/Object;U::Ljava/util/List<TT;>;>Lcom/acme/A<TU;>;Ljava/util/Set<TT;>;",
        );
        let class = class.unwrap();
        assert_eq!(class.parameters, ["T", "U"]);
        assert_eq!(class.superclass.to_string(), "com.acme.A<U>");
        assert_eq!(class.interfaces[0].to_string(), "Set<T>");
    }

    #[test]
    fn what_is_no_type() {
        for wrong in ["", "V", "L", "L;", "Ljava", "Ljava/util/List<", "[", "TT", "II", "Ljava/util/List<>"] {
            assert!(field_signature(wrong).is_err(), "{wrong}");
        }
        assert!(field_signature(&"[".repeat(1000)).unwrap_err().contains("32 levels"));
    }
}
