//! Error messages of serde, without the values they quote.

use std::fmt::Display;

use crate::CodecError;
use crate::shown::{LONGEST, shortened, type_of, within};
use crate::signature::{Signature, is_name, of_another_codec};

/// In bytes: as much as a message of serde has. What it lists are names in the type.
const MOST: usize = 500;

/// The message of a serde error without the value it quotes.
///
/// serde quotes the value in full: `invalid type: string "…", expected i32`. A payload may contain what must
/// not be logged, so only the kind of the value stays, and the name of an unknown field. A message in the
/// words of the type's own `Deserialize` is only shortened.
pub(crate) fn without_values(error: &impl Display) -> String {
    const QUOTING: [&str; 4] = ["invalid type: ", "invalid value: ", "unknown variant ", "unknown field "];
    // The expectation comes last; the value itself may contain these words.
    const REST: [&str; 2] = [", expected ", ", there are no "];
    const NAMING: [&str; 3] = ["missing field `", "duplicate field `", "invalid length "];

    let text = error.to_string();
    if let Some(name) = unknown_field(&text) {
        let rest = text.rfind(", expected ").or(text.rfind(", there are no ")).unwrap_or(text.len());
        return within(format!("unknown field `{name}`{}", &text[rest..]), MOST);
    }
    if QUOTING.iter().any(|start| text.starts_with(start))
        && let Some(value) = text.find(['"', '`'])
        && let Some(rest) = REST.iter().filter_map(|rest| text.rfind(rest)).max()
        && value < rest
    {
        return within(format!("{}{}", text[..value].trim_end(), &text[rest..]), MOST);
    }
    match NAMING.iter().any(|start| text.starts_with(start)) {
        true => within(text, MOST),
        false => shortened(&text),
    }
}

/// The name of a field that a type does not know, if it looks like one: then it is no value.
fn unknown_field(text: &str) -> Option<&str> {
    const LONGEST_NAME: usize = 100;
    let (name, _) = text.strip_prefix("unknown field `")?.split_once('`')?;
    (name.len() <= LONGEST_NAME && is_name(name)).then_some(name)
}

/// The error for a payload that is no value of a type, with the other codec that it looks like.
#[cold]
pub(crate) fn unreadable<T>(format: &str, why: &str, payload: &[u8], own: &[Signature]) -> CodecError {
    let (kind, other) = (type_of::<T>(), of_another_codec(payload, own));
    let why = within(format!("expected `{kind}` as {format}: {why}"), LONGEST - other.len());
    CodecError::new(why + &other)
}
