//! What is offered, and by whom it is offered and taken.

use std::fmt;

use serde::{Deserialize, Serialize};

const ITEMS: [&str; 6] = ["espresso", "cappuccino", "green tea", "lemonade", "hot chocolate", "water"];

/// The payload, as JSON; Java reads and writes the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// Who takes: a numbered consumer of this process, or the Java process.
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

/// Consumers are called A, B, C.
pub(crate) fn letter(consumer: usize) -> char {
    (b'A' + (consumer % 26) as u8) as char
}
