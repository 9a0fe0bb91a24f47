//! Text from a payload in a message: short, and on one line.

use std::any::type_name;

/// In characters: as much as a message quotes of a payload. Class names are shorter.
const MOST: usize = 100;

/// In bytes: no message is longer.
pub(crate) const LONGEST: usize = 1000;

/// As much of a text as a message quotes. Anybody may have written it, and a log line is neither for
/// megabytes nor for line breaks.
#[cfg(feature = "_java")]
pub(crate) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    within(short, 4 * MOST)
}

/// The same of a message in the words of a type's own `Deserialize`, which may quote what it likes.
pub(crate) fn shortened(message: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    let mut short: String = message.chars().take(MOST).map(escaped).collect();
    if message.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

/// Shortens a message to this number of bytes. Its middle is left out, because the place comes last.
pub(crate) fn within(message: String, most: usize) -> String {
    if message.len() <= most {
        return message;
    }
    let whole = |at: &usize| message.is_char_boundary(*at);
    let head = (0..=most * 2 / 3).rev().find(whole).unwrap_or_default();
    let tail = (message.len() - most / 3 + '…'.len_utf8()..).find(whole).unwrap_or_default();
    format!("{}…{}", &message[..head], &message[tail..])
}

/// The name of a type in a message.
pub(crate) fn type_of<T>() -> String {
    within(type_name::<T>().to_owned(), 2 * MOST)
}

#[cfg(all(test, feature = "_java"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(shown("com.acme.Order$Line"), "com.acme.Order$Line");
        assert_eq!(shown("a\n\u{1b}[31mb"), "a\\n\\u{1b}[31mb");
        assert_eq!(shown(&"é".repeat(100)), "é".repeat(100));
        assert_eq!(shown(&"é".repeat(1_000_000)), "é".repeat(100) + "…");
        assert_eq!(shown(&"\n".repeat(300)), "\\n".repeat(100) + "…");
        assert!(shown(&"\u{10ffff}".repeat(300)).len() <= 400);
        assert_eq!(shortened(&"x".repeat(100)), "x".repeat(100));
        assert_eq!(shortened(&"é".repeat(2000)), "é".repeat(100) + "…");
        assert_eq!(within("é".repeat(6), 12), "é".repeat(6));
        assert_eq!(within("é".repeat(30) + " at offset 7", 40), "é".repeat(13) + "…t offset 7");
    }
}
