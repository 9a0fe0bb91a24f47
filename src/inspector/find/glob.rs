//! Patterns as those of `KEYS`, for names. Pure.

/// Whether a name matches a pattern, as [`Inspector::queues`](super::super::Inspector::queues) has it.
///
/// # Examples
/// ```
/// use redelay::inspector::matches;
///
/// assert!(matches(b"shop:*", b"shop:orders"));
/// assert!(!matches(br"shop:\*", b"shop:orders"));
/// ```
#[must_use]
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // Where to go on if the rest does not match: behind the last `*`, with one byte more for it.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        let matched = match (pattern.split_first(), name.split_first()) {
            (Some((b'*', rest)), _) => {
                again = Some((rest, name));
                Some((rest, name))
            }
            (None, None) => return true,
            (Some(_), Some((byte, behind))) => one(pattern, *byte).map(|rest| (rest, behind)),
            _ => None,
        };
        (pattern, name) = match (matched, again) {
            (Some(next), _) => next,
            (None, Some((behind, [_, shorter @ ..]))) => {
                again = Some((behind, shorter));
                (behind, shorter)
            }
            _ => return false,
        };
    }
}

/// The rest of the pattern, if its beginning matches this byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (first, rest) = pattern.split_first()?;
    match (first, rest) {
        (b'?', rest) => Some(rest),
        (b'\\', [next, rest @ ..]) => (*next == byte).then_some(rest),
        (b'[', rest) => class(rest, byte),
        (first, rest) => (*first == byte).then_some(rest),
    }
}

/// The same for what is between brackets. Without an end it goes to the end of the pattern, as in Redis.
fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (is_negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut is_in = false;
    loop {
        rest = match rest {
            [b']', rest @ ..] => return (is_in != is_negated).then_some(rest),
            [] => return (is_in != is_negated).then_some(rest),
            [b'\\', next, rest @ ..] => {
                is_in |= *next == byte;
                rest
            }
            [from, b'-', to, rest @ ..] if *to != b']' => {
                is_in |= (*from.min(to)..=*from.max(to)).contains(&byte);
                rest
            }
            [next, rest @ ..] => {
                is_in |= *next == byte;
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "orders", true),
            ("", "", true),
            ("", "a", false),
            ("orders", "orders", true),
            ("orders", "order", false),
            ("shop:*", "shop:orders", true),
            ("shop:*", "shop", false),
            ("*:orders", "a:b:orders", true),
            ("*a*b*", "xaxxbx", true),
            ("*a*b*", "xbxxax", false),
            ("o?ders", "orders", true),
            ("o?ders", "oders", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[c-a]x", "bx", true),
            ("[ab", "a", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            (r"[\]]", "]", true),
            ("[a-]", "-", true),
            ("{q}", "{q}", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_do_not_take_long() {
        let pattern = "*a".repeat(1_000);
        assert!(!matches(pattern.as_bytes(), "a".repeat(900).as_bytes()));
    }

    proptest! {
        #[test]
        fn any_pattern_ends(pattern: Vec<u8>, name: Vec<u8>) {
            let _ = matches(&pattern, &name);
        }

        #[test]
        fn a_name_matches_itself(name: Vec<u8>) {
            let pattern: Vec<u8> = name.iter().flat_map(|byte| [b'\\', *byte]).collect();
            prop_assert!(matches(&pattern, &name));
        }
    }
}
