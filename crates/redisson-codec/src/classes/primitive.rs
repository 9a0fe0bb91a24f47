//! Java's primitive types.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Primitive {
    Boolean,
    Byte,
    Short,
    Char,
    Int,
    Long,
    Float,
    Double,
}

/// Name, descriptor, and the class of its objects.
pub(super) const PRIMITIVES: [(Primitive, &str, u8, &str); 8] = [
    (Primitive::Boolean, "boolean", b'Z', "java.lang.Boolean"),
    (Primitive::Byte, "byte", b'B', "java.lang.Byte"),
    (Primitive::Short, "short", b'S', "java.lang.Short"),
    (Primitive::Char, "char", b'C', "java.lang.Character"),
    (Primitive::Int, "int", b'I', "java.lang.Integer"),
    (Primitive::Long, "long", b'J', "java.lang.Long"),
    (Primitive::Float, "float", b'F', "java.lang.Float"),
    (Primitive::Double, "double", b'D', "java.lang.Double"),
];

impl Primitive {
    pub(super) fn facts(self) -> (&'static str, u8, &'static str) {
        let (_, name, descriptor, class) = PRIMITIVES[self as usize];
        (name, descriptor, class)
    }

    pub(super) fn name(self) -> &'static str {
        self.facts().0
    }

    /// The class of its objects.
    pub(crate) fn boxed(self) -> &'static str {
        self.facts().2
    }

    pub(super) fn of_descriptor(byte: u8) -> Option<Self> {
        PRIMITIVES.iter().find(|(_, _, descriptor, _)| *descriptor == byte).map(|(found, ..)| *found)
    }

    pub(super) fn of_class(class: &str) -> Option<Self> {
        PRIMITIVES.iter().find(|(_, _, _, boxed)| *boxed == class).map(|(found, ..)| *found)
    }
}
