//! The Rust types of a class, as text.

mod items;
mod names;
#[cfg(test)]
mod tests;
mod types;
mod writer;

use super::model::Classes;
use crate::CodecError;
use writer::{MOST, Writer};

impl Classes {
    /// The Rust types of a class: of itself, and of those that its fields need. They are written for the
    /// codecs of [`java`](crate::java), and a comment says where a person has to decide.
    ///
    /// # Errors
    /// When the class, one below it, or one of an application that a field declares is not described, or when
    /// it needs more than 1,000 types.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::Classes;
    ///
    /// let classes: Classes = "class com.acme.Line { String sku; long soldAt; }".parse()?;
    /// let rust = classes.to_rust("com.acme.Line")?;
    /// assert!(rust.contains("#[serde(rename = \"com.acme.Line\", rename_all = \"camelCase\")]"));
    /// assert!(rust.contains("    pub sold_at: i64,\n"));
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    pub fn to_rust(&self, class: &str) -> Result<String, CodecError> {
        types(self, class).map_err(CodecError::new)
    }
}

/// The types of a class, and of all that its fields need.
fn types(classes: &Classes, class: &str) -> Result<String, String> {
    let mut writer = Writer { classes, wanted: Vec::new(), names: Vec::new(), text: String::new() };
    if classes.get(class).is_none() {
        return Err(format!("the class `{class}` is not described"));
    }
    writer.of_place(class, &[]);
    let mut at = 0;
    while let Some(wanted) = writer.wanted.get(at).cloned() {
        writer.item(&wanted)?;
        at += 1;
        if writer.wanted.len() > MOST {
            return Err(format!("`{class}` needs more than {MOST} Rust types"));
        }
    }
    let uses_maps = writer.text.contains("HashMap<");
    let uses_java = writer.text.contains("java::");
    let mut all = String::new();
    if uses_java {
        all += "use redisson_codec::java;\n";
    }
    all += "use serde::{Deserialize, Serialize};\n";
    match (writer.text.contains("BTreeMap<"), uses_maps) {
        (true, true) => all += "use std::collections::{BTreeMap, HashMap};\n",
        (true, false) => all += "use std::collections::BTreeMap;\n",
        (false, true) => all += "use std::collections::HashMap;\n",
        (false, false) => {}
    }
    Ok(all + &writer.text)
}
