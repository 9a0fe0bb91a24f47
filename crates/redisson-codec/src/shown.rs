//! Text from a payload in a message: short, and on one line.

/// In characters. Class names are shorter.
#[cfg(feature = "_java")]
const MOST: usize = 200;

/// As much of a text as a message quotes. Anybody may have written it, and a log line is neither for
/// megabytes nor for line breaks.
#[cfg(feature = "_java")]
pub(crate) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

/// The same of a whole message in the words of a type's own `Deserialize`, which may quote what it likes.
pub(crate) fn shortened(message: String) -> String {
    const MOST: usize = 1000;
    match message.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

#[cfg(all(test, feature = "_java"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(shown("com.acme.Order$Line"), "com.acme.Order$Line");
        assert_eq!(shown("a\n\u{1b}[31mb"), "a\\n\\u{1b}[31mb");
        assert_eq!(shown(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(shown(&"é".repeat(1_000_000)), "é".repeat(200) + "…");
        assert_eq!(shown(&"\n".repeat(300)), "\\n".repeat(200) + "…");
        assert_eq!(shortened("x".repeat(1000)), "x".repeat(1000));
        assert_eq!(shortened("é".repeat(2000)), "é".repeat(1000) + "…");
    }
}
