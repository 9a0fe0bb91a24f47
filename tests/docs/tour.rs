//! `docs/tour.md` shows the program of `examples/tour`, whose tests run it.

/// The blocks in Rust, one after the other.
pub(super) fn shown(page: &str) -> String {
    let blocks = page.split("\n```rust").skip(1).map(|rest| {
        let block = rest.split_once('\n').expect("a block").1;
        block.split("\n```").next().expect("its end")
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

/// A file behind its description.
pub(super) fn program(file: &str) -> &str {
    let (description, program) = file.split_once("\n\n").expect("a description and a program");
    assert!(description.lines().all(|line| line.starts_with("//! ")), "{description}");
    program
}

#[test]
fn the_tour_shows_the_program_that_runs() {
    let shown = shown(include_str!("../../docs/tour.md"));
    let program = program(include_str!("../../examples/tour/src/main.rs"));
    for (shown, run) in shown.lines().zip(program.lines()) {
        assert_eq!(shown, run, "docs/tour.md is not as examples/tour");
    }
    assert_eq!(shown.lines().count(), program.lines().count());
}
