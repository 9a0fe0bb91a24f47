//! What is offered, and by whom it is offered and handled.

use std::fmt;

use serde::{Deserialize, Serialize};

const ITEMS: [&str; 6] = ["espresso", "cappuccino", "green tea", "lemonade", "hot chocolate", "water"];

/// The payload, as JSON; Java reads and writes the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: u32,
    pub(crate) item: String,
}

impl Order {
    pub(crate) fn random(id: u32) -> Self {
        Self { id, item: ITEMS[fastrand::usize(..ITEMS.len())].to_owned() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Rust,
    Java,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rust => "Rust",
            Self::Java => "Java",
        })
    }
}

/// Who handles: a numbered consumer, or the Java process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taker {
    Consumer(usize),
    Java,
}

impl Taker {
    pub(crate) fn side(self) -> Side {
        match self {
            Self::Consumer(_) => Side::Rust,
            Self::Java => Side::Java,
        }
    }
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Consumer(number) => f.pad(&letter(*number).to_string()),
            Self::Java => f.pad("Java"),
        }
    }
}

/// Consumers are called A, B, C.
pub(crate) fn letter(consumer: usize) -> char {
    (b'A' + (consumer % 26) as u8) as char
}

/// `1st`, `2nd`
pub(crate) fn ordinal(n: u32) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn ordinals() {
        let all = [1, 2, 3, 4, 11, 12, 21, 111].map(ordinal);
        assert_eq!(all, ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "111th"]);
    }
}
