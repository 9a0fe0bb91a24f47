//! Classes that have a number instead of a name.

/// The classes that Kryo registers by default, and the byte that Kryo writes for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Numbered {
    Integer = 2,
    String = 3,
    Float = 4,
    Boolean = 5,
    Byte = 6,
    Character = 7,
    Short = 8,
    Long = 9,
    Double = 10,
}

impl Numbered {
    pub(super) fn of(number: u32) -> Option<Self> {
        use Numbered::*;
        [Integer, String, Float, Boolean, Byte, Character, Short, Long, Double]
            .into_iter()
            .find(|class| *class as u32 == number)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Numbered::Integer => "java.lang.Integer",
            Numbered::String => "java.lang.String",
            Numbered::Float => "java.lang.Float",
            Numbered::Boolean => "java.lang.Boolean",
            Numbered::Byte => "java.lang.Byte",
            Numbered::Character => "java.lang.Character",
            Numbered::Short => "java.lang.Short",
            Numbered::Long => "java.lang.Long",
            Numbered::Double => "java.lang.Double",
        }
    }
}
