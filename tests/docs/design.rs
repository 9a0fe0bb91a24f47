//! The reasons in `docs/design`: each has its place in the index and its form, and the files that they name
//! exist.

use std::fs;
use std::path::{Path, PathBuf};

use super::architecture::files;

/// The most bytes of a topic, and the most words of an answer without its tables. A longer answer is two
/// questions.
const BYTES: usize = 15_000;
const WORDS: usize = 250;

/// The most words of the index and all topics. A newcomer reads them all: shorten another answer for a new
/// one.
const ALL_WORDS: usize = 9_750;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The name and text of each topic.
fn topics() -> Vec<(String, String)> {
    let read = |topic: PathBuf| {
        let name = topic.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(topic).expect("text"))
    };
    files(&root().join("docs/design")).into_iter().map(read).collect()
}

#[test]
fn the_index_links_to_every_topic() {
    let index = include_str!("../../DESIGN.md");
    let topics = topics();
    assert!(topics.len() > 10, "only {} topics", topics.len());
    for (name, text) in topics {
        assert!(index.contains(&format!("](docs/design/{name})")), "DESIGN.md does not link to {name}");
        assert!(text.len() <= BYTES, "{name} has {} bytes", text.len());
    }
}

#[test]
fn every_answer_begins_with_the_decision() {
    for (name, text) in topics() {
        for answer in text.split("\n## ").skip(1) {
            let (question, answer) = answer.split_once("\n\n").expect("an answer");
            assert!(question.ends_with('?'), "{name}: `{question}` is no question");
            assert!(
                answer.starts_with("**"),
                "{name}: the answer to `{question}` begins without the decision"
            );
            let lines = answer.lines().filter(|line| !line.starts_with('|'));
            let words: usize = lines.map(|line| line.split_whitespace().count()).sum();
            assert!(words <= WORDS, "{name}: the answer to `{question}` has {words} words");
        }
    }
}

#[test]
fn the_design_is_short() {
    // Marks of tables, and lines of drawings, are no words.
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let count = |text: &str| text.split_whitespace().filter(is_word).count();
    let index = count(include_str!("../../DESIGN.md"));
    let all = index + topics().iter().map(|(_, text)| count(text)).sum::<usize>();
    assert!(all <= ALL_WORDS, "DESIGN.md and docs/design have {all} words, {} too many", all - ALL_WORDS);
}

#[test]
fn the_files_that_the_design_names_exist() {
    let mut existing: Vec<_> =
        ["src", "tests", "docs"].iter().flat_map(|folder| files(&root().join(folder))).collect();
    existing.extend(
        ["build.rs", "CRATE.md", "SECURITY.md"]
            .map(|name| root().join(name))
            .into_iter()
            .filter(|file| file.exists()),
    );
    let index = ("DESIGN.md".to_owned(), include_str!("../../DESIGN.md").to_owned());
    let mut named = 0;
    for (topic, text) in topics().into_iter().chain([index]) {
        for name in text.split('`').skip(1).step_by(2) {
            let extension = name.rsplit_once('.').map(|(_, extension)| extension);
            if matches!(extension, Some("rs" | "lua" | "md")) {
                // `Path::ends_with` compares whole names.
                assert!(existing.iter().any(|file| file.ends_with(name)), "{topic} names `{name}`");
                named += 1;
            }
        }
    }
    assert!(named > 40, "only {named} files");
}
