//! What others wrote, as text that cannot drive a terminal. Every name, payload and error passes through
//! here.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text of these bytes in one line. Control characters, marks of direction and what has no width are
/// escaped, and so are bytes that are not UTF-8: `\n`, `\x1b`, `\u{202e}`, `\xff`. Everything else, a
/// backslash included, is as it was.
pub(crate) fn bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|char| push(&mut out, char));
        chunk.invalid().iter().for_each(|byte| put(&mut out, format_args!("\\x{byte:02x}")));
    }
    out
}

/// The same of a text.
pub(crate) fn text(text: &str) -> String {
    bytes(text.as_bytes())
}

/// JSON in one line, and the same value: what [`bytes`] escapes is only in strings, where JSON has escapes of
/// its own, or is space between them.
pub(crate) fn json(json: &str) -> Cow<'_, str> {
    if !json.chars().any(is_unsafe) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for char in json.chars() {
        match char {
            '\t' | '\n' | '\r' => {}
            char if is_unsafe(char) => char
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| put(&mut out, format_args!("\\u{unit:04x}"))),
            char => out.push(char),
        }
    }
    Cow::Owned(out)
}

/// A word as a shell reads it: as it is, in quotes, or with escapes that bash and zsh know.
pub(crate) fn word(word: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.@/+:#".contains(byte);
    let plain = std::str::from_utf8(word).unwrap_or_default();
    if !word.is_empty() && word.iter().all(is_plain) && !b"-#".contains(&word[0]) {
        return plain.to_owned();
    }
    if plain.len() == word.len() && text(plain) == plain && !plain.contains('\'') {
        return format!("'{plain}'");
    }
    let escaped = |byte: &u8| match byte {
        b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    format!("$'{}'", word.iter().map(escaped).collect::<String>())
}

/// A word of which `redelay` must not think that it is an option.
pub(crate) fn argument(argument: &[u8]) -> String {
    let end_of_options = if argument.starts_with(b"-") { "-- " } else { "" };
    format!("{end_of_options}{}", word(argument))
}

/// A pattern that matches this name only.
pub(crate) fn pattern(name: &[u8]) -> Vec<u8> {
    let escaped = |byte: &u8| if b"*?[]\\".contains(byte) { vec![b'\\', *byte] } else { vec![*byte] };
    name.iter().flat_map(escaped).collect()
}

fn push(out: &mut String, char: char) {
    match char {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        char if !is_unsafe(char) => out.push(char),
        char if char.is_ascii() => put(out, format_args!("\\x{:02x}", u32::from(char))),
        char => put(out, format_args!("\\u{{{:x}}}", u32::from(char))),
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A `String` takes everything.
    let _ = out.write_fmt(text);
}

/// Whether a character moves the cursor, changes the direction of others, or cannot be seen.
fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_drives_a_terminal_is_escaped() {
        for (wrote, shown) in [
            (&b"orders"[..], "orders"),
            ("очередь {x} \\n".as_bytes(), "очередь {x} \\n"),
            (b"a\nb\tc\rd", "a\\nb\\tc\\rd"),
            (b"\x1b[2J\x07", "\\x1b[2J\\x07"),
            ("\u{9b}31m\u{7f}".as_bytes(), "\\u{9b}31m\\x7f"),
            ("\u{202e}gpj\u{200b}\u{feff}".as_bytes(), "\\u{202e}gpj\\u{200b}\\u{feff}"),
            (b"\xff\x00ok", "\\xff\\x00ok"),
        ] {
            assert_eq!(bytes(wrote), shown);
        }
    }

    #[test]
    fn words_of_a_shell() {
        for (wrote, shown) in [
            (&b"orders"[..], "orders"),
            (b"", "''"),
            (b"{q}; rm -rf ~", "'{q}; rm -rf ~'"),
            (b"a'; b\\", r"$'a\'; b\\'"),
            (b"a\n\xff", r"$'a\x0a\xff'"),
            (b"-x", "-- '-x'"),
        ] {
            assert_eq!(argument(wrote), shown);
        }
    }

    #[test]
    fn json_stays_the_same_value_in_one_line() {
        let wrote = "{\n  \"a\\n\": \"\u{202e}\u{e0041}\u{9b}\"\r\n}";
        let line = json(wrote);
        assert_eq!(line, "{  \"a\\n\": \"\\u202e\\udb40\\udc41\\u009b\"}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&line), value(wrote));
        assert!(matches!(json(r#"{"a":"ü"}"#), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn nothing_unsafe_is_left(wrote: Vec<u8>) {
            let shown = bytes(&wrote);
            prop_assert!(!shown.chars().any(is_unsafe));
            prop_assert_eq!(bytes(shown.as_bytes()), shown, "what is shown needs no more");
        }

        #[test]
        fn nothing_unsafe_is_left_of_text(wrote in "\\PC*|\\PC*[\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}-\u{2070}]+\\PC*") {
            prop_assert!(!text(&wrote).chars().any(is_unsafe));
            let line = serde_json::to_string(&wrote).unwrap();
            let shown = json(&line);
            prop_assert!(!shown.chars().any(is_unsafe));
            prop_assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), wrote);
        }

        #[test]
        fn printable_ascii_is_as_it_was(wrote in "[ -~]*") {
            prop_assert_eq!(text(&wrote), wrote);
        }
    }
}
