//! The Rust types of a class.
use super::Classes;
pub(super) fn types(_: &Classes, class: &str) -> Result<String, String> {
    Err(class.to_owned())
}
