//! `docs/testing.md` shows the service of `examples/testing`, and its tests, which run.

use super::tour::{program, shown};

/// The blocks in Rust, one after the other, are the service and its tests behind their descriptions.
#[test]
fn the_page_shows_the_tests_that_run() {
    let service = program(include_str!("../../examples/testing/src/lib.rs"));
    let tests = program(include_str!("../../examples/testing/tests/orders.rs"));
    let run = format!("{service}\n{tests}");
    let shown = shown(include_str!("../../docs/testing.md"));
    for (shown, run) in shown.lines().zip(run.lines()) {
        assert_eq!(shown, run, "docs/testing.md is not as examples/testing");
    }
    assert_eq!(shown.lines().count(), run.lines().count());
}
