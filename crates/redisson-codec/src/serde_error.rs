//! Error messages of serde, without the values they quote.

use std::fmt::Display;

use crate::shown::shortened;

/// The message of a serde error without the value it quotes.
///
/// serde quotes the value in full: `invalid type: string "…", expected i32`. A payload may contain what must
/// not be logged, so only the kind of the value stays. A message in the words of the type's own `Deserialize`
/// is only shortened.
pub(crate) fn without_values(error: &impl Display) -> String {
    const QUOTING: [&str; 4] = ["invalid type: ", "invalid value: ", "unknown variant ", "unknown field "];
    // The expectation comes last; the value itself may contain these words.
    const REST: [&str; 2] = [", expected ", ", there are no "];

    let text = error.to_string();
    if QUOTING.iter().any(|start| text.starts_with(start))
        && let Some(value) = text.find(['"', '`'])
        && let Some(rest) = REST.iter().filter_map(|rest| text.rfind(rest)).max()
        && value < rest
    {
        return shortened(format!("{}{}", text[..value].trim_end(), &text[rest..]));
    }
    shortened(text)
}
