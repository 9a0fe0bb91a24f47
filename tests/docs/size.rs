//! The sizes that CONTRIBUTING.md sets: of files, and of lines of comments, which rustfmt leaves as they are.

use std::fs;
use std::path::Path;

use super::architecture::{
    APALIS, BESIDE, CLI, CODEC, METRICS, REDELAY, TESTING, files_of, production_code, sources,
};

/// Lines of code of a file: without comments, blank lines and tests.
const LINES: usize = 400;
/// Characters of a line of a comment, as `rustfmt.toml` says for code.
const WIDTH: usize = 110;

#[test]
fn files_are_short() {
    for package in [REDELAY, CODEC, CLI, TESTING, METRICS, APALIS, BESIDE] {
        for (_, file, code) in production_code(&package) {
            let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
            assert!(lines <= LINES, "{} has {lines} lines of code: split it", file.display());
        }
    }
}

/// The text of a comment that could be wrapped: neither a table nor an example, and of more than one word.
fn prose(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let text = ["///", "//!", "//", "--"].iter().find_map(|mark| text.strip_prefix(mark))?.trim();
    (!text.starts_with('|') && text.contains(' ')).then_some(text)
}

/// A reader decides by the front page.
#[test]
fn the_front_page_is_short() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let lines = fs::read_to_string(readme).expect("the README").lines().count();
    assert!(lines <= 140, "README.md has {lines} lines");
}

#[test]
fn comments_fit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "crates", "tests", "compat", "benches", "examples"] {
        sources(&root.join(folder), &mut files);
    }
    files.extend(files_of(&root.join("src/scripts"), "lua"));
    let (mut seen, mut wide) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        let mut is_example = false;
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().trim_start_matches(['/', '!']).trim_start().starts_with("```") {
                is_example = !is_example;
            } else if !is_example && prose(line).is_some() {
                seen += 1;
                if line.chars().count() > WIDTH {
                    wide.push(format!("{}:{}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(seen > 5_000, "this test no longer reads the sources");
    assert!(wide.is_empty(), "lines of comments are wider than {WIDTH}: {wide:#?}");
}
