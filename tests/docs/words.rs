//! One word for one thing: the names of types, and words that CONTRIBUTING.md keeps out of the guides.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::architecture::{REDELAY, production_code};
use super::crate_page::build::guides;

/// Types of one module that may share a name: one with and without a feature, and the states of two futures.
const SHARED: [(&str, &str); 2] = [("telemetry", "Span"), ("delayed_queue", "State")];

/// The name of the type that a line defines, if it does. Types in the implementation of a trait are none.
fn defines(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line,
    };
    let name = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| line.strip_prefix(word))?;
    name.split(|letter: char| !letter.is_alphanumeric()).next()
}

/// A type that a file defines. Those in a module of the same file are not seen.
struct Defined {
    module: String,
    name: String,
    is_public: bool,
    file: String,
}

fn all_types() -> Vec<Defined> {
    let mut types = Vec::new();
    for (module, file, code) in production_code(&REDELAY) {
        for line in code.lines() {
            let Some(name) = defines(line) else { continue };
            let (module, name, file) = (module.clone(), name.to_owned(), file.display().to_string());
            types.push(Defined { module, name, is_public: line.starts_with("pub "), file });
        }
    }
    types
}

#[test]
fn no_two_types_of_a_module_share_a_name() {
    let mut types: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for Defined { module, name, file, .. } in all_types() {
        types.entry((module, name)).or_default().push(file);
    }
    assert!(types.len() > 300, "only {} types are found", types.len());
    types.retain(|(module, name), files| files.len() > 1 && !SHARED.contains(&(&**module, &**name)));
    assert!(types.is_empty(), "types of a module share a name: {types:#?}");
}

/// A reader would take it for the public one.
#[test]
fn no_type_has_the_name_of_a_public_one() {
    let types = all_types();
    let public: BTreeSet<&str> = types.iter().filter(|one| one.is_public).map(|one| &*one.name).collect();
    assert!(public.len() > 60, "only {} public types are found", public.len());
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in types.iter().filter(|one| public.contains(&*one.name)) {
        files.entry(&one.name).or_default().push(&one.file);
    }
    files.retain(|_, files| files.len() > 1);
    assert!(files.is_empty(), "types have the name of a public one: {files:#?}");
}

#[test]
fn definitions_are_found() {
    assert_eq!(defines("pub(super) struct Wait<T> {"), Some("Wait"));
    assert_eq!(defines("type Changed = u64;"), Some("Changed"));
    assert_eq!(defines("pub enum Kind {"), Some("Kind"));
    assert_eq!(defines("    type Output = u64;"), None);
    assert_eq!(defines("structured();"), None);
}

/// Words that CONTRIBUTING.md keeps out of what users read.
const AVOIDED: [&str; 6] = ["nobody", "somebody", "everybody", "for ever", "all the same", "rights"];

#[test]
fn guides_have_the_words_of_the_field() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guides = guides(&root.join("docs")).into_iter().map(|name| format!("docs/{name}.md"));
    let names = |folder: &str| {
        let entries =
            fs::read_dir(root.join(folder)).expect("a folder").map(|entry| entry.expect("an entry"));
        entries.map(|entry| entry.file_name().display().to_string())
    };
    let packages = names("crates").map(|package| format!("crates/{package}/README.md"));
    let examples = names("examples").map(|example| format!("examples/{example}"));
    let examples = examples.filter(|file| file.ends_with(".rs"));
    let others = ["README.md", "examples/demo/README.md"].map(str::to_owned);
    let all: Vec<String> = guides.chain(packages).chain(examples).chain(others).collect();
    assert!(all.len() > 25, "only {} guides are found", all.len());
    let mut found = Vec::new();
    for file in all {
        let text = fs::read_to_string(root.join(&file)).expect("a guide");
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            let has = |word: &str| {
                let ends = |(at, _)| !line[at + word.len()..].starts_with(char::is_alphabetic);
                line.match_indices(word).any(ends)
            };
            let avoided = AVOIDED.iter().filter(|word| has(word));
            found.extend(avoided.map(|word| format!("{file}:{}: {word}", number + 1)));
        }
    }
    assert!(found.is_empty(), "CONTRIBUTING.md has plainer words: {found:#?}");
}
