//! [`Uuid`].

use std::fmt;
use std::str::FromStr;

use super::ParseError;
use super::value_slot::{Plain, scalar};

/// A `java.util.UUID`.
///
/// # Examples
/// ```
/// use redisson_codec::java::Uuid;
///
/// let id: Uuid = "607f660c-c854-1833-65dd-0d403b68a4ea".parse()?;
/// assert_eq!(Uuid::from_bytes(id.into_bytes()).to_string(), "607f660c-c854-1833-65dd-0d403b68a4ea");
/// # Ok::<(), redisson_codec::java::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// The UUID of these bytes, in the order in which they are printed.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, in the order in which they are printed.
    #[must_use]
    pub fn into_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for Uuid {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parse = || {
            let parts: Vec<&str> = text.split('-').collect();
            let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
            let digits = parts.concat();
            let valid = lengths == [8, 4, 4, 4, 12] && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let number = valid.then(|| u128::from_str_radix(&digits, 16).ok())??;
            Some(Self(number.to_be_bytes()))
        };
        parse().ok_or(ParseError::new("a UUID"))
    }
}

impl Plain for Uuid {}

scalar!(Uuid "redisson::java::java.util.UUID");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for text in ["00000000-0000-0000-0000-000000000000", "607f660c-c854-1833-65dd-0d403b68a4ea"] {
            assert_eq!(text.parse::<Uuid>().unwrap().to_string(), text);
        }
        for text in
            ["", "607f660c", "607f660cc854183365dd0d403b68a4ea", "+07f660c-c854-1833-65dd-0d403b68a4ea"]
        {
            assert!(text.parse::<Uuid>().is_err(), "{text}");
        }
    }
}
