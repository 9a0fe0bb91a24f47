//! `docs/patterns.md` shows the programs of `examples/patterns`, whose tests run them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A reader sees such a program at a glance.
const MOST_LINES: usize = 25;

/// The blocks in Rust.
fn blocks(page: &str) -> Vec<&str> {
    let fences = page.split("\n```rust").skip(1);
    fences
        .map(|rest| rest.split_once('\n').expect("a block").1.split("\n```").next().expect("its end"))
        .collect()
}

/// Each file is the description of its pattern, and a block of the page in full. So what is shown is what is
/// run.
#[test]
fn the_page_shows_the_programs_that_run() {
    let page = include_str!("../../docs/patterns.md");
    let shown: BTreeSet<&str> = blocks(page).into_iter().collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/patterns/src");
    let mut run = BTreeSet::new();
    for file in fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path()) {
        if file.ends_with("lib.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source");
        let (description, program) = text.split_once("\n\n").expect("a description and a program");
        assert!(
            description.lines().all(|line| line.starts_with("//! ")),
            "{}: {description}",
            file.display()
        );
        assert!(shown.contains(program.trim_end()), "{} is not as docs/patterns.md has it", file.display());
        run.insert(program.trim_end().to_owned());
    }
    for block in &shown {
        assert!(run.contains(*block), "docs/patterns.md shows what is not in examples/patterns:\n{block}");
        assert!(block.lines().count() <= MOST_LINES, "{} lines:\n{block}", block.lines().count());
    }
    assert_eq!(shown.len(), 8);
}
