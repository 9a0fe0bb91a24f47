//! The scripts, for tests that call them without the client.

use std::fs;
use std::path::Path;

/// The script of this name, as `src/scripts.rs` puts it together, with its comments and without the tag.
#[must_use]
pub fn script(name: &str) -> String {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src");
    let table = fs::read_to_string(src.join("scripts.rs")).expect("the table of scripts");
    let row = table.split_once(&format!("\n    {name}: ")).expect("a script").1;
    let mut lists = row.split('[').skip(1).map(|list| list.split(']').next().expect("a list"));
    let (keys, files) = (lists.next().expect("the keys"), lists.next().expect("the files"));
    let file = |file: &str| src.join("scripts").join(file.trim().trim_matches('"')).with_extension("lua");
    let text: String = files.split(',').map(|name| fs::read_to_string(file(name)).expect("a file")).collect();
    with_numbers(&text, &keys.split(',').map(str::trim).collect::<Vec<_>>())
}

/// The text with `KEYS[1]` in place of `KEYS.` and the first of these names, and so on.
#[must_use]
pub fn with_numbers(text: &str, names: &[&str]) -> String {
    let mut numbered: Vec<_> = names.iter().zip(1..).collect();
    // A name may begin with another one.
    numbered.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    numbered.iter().fold(text.to_owned(), |text, (name, number)| {
        text.replace(&format!("KEYS.{name}"), &format!("KEYS[{number}]"))
    })
}
