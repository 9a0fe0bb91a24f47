//! The feature tables of the documentation against `Cargo.toml`.

use std::collections::BTreeSet;

const CARGO: &str = include_str!("../Cargo.toml");

/// The public features: those in `[features]`, apart from `default` and the internal ones.
fn declared() -> BTreeSet<&'static str> {
    let section = CARGO.split("\n[features]\n").nth(1).expect("a section of features");
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    names.filter(|name| *name != "default" && !name.starts_with(['_', '#'])).collect()
}

/// The cells in the column `feature` of every table.
fn documented<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut features = BTreeSet::new();
    let mut column = None;
    for line in lines.map(str::trim) {
        if !line.starts_with('|') {
            column = None;
            continue;
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        match column {
            None => column = Some(cells.iter().position(|cell| *cell == "feature").expect("such a column")),
            Some(at) => features.extend(cells[at].split(' ').next().and_then(|cell| cell.strip_prefix('`'))),
        }
    }
    features.into_iter().map(|name| name.trim_end_matches('`')).collect()
}

#[test]
fn the_readme_has_every_feature() {
    assert_eq!(documented(include_str!("../README.md").lines()), declared());
}

#[test]
fn the_crate_documentation_has_every_feature() {
    let lines = include_str!("../src/lib.rs").lines();
    assert_eq!(documented(lines.filter_map(|line| line.strip_prefix("//!"))), declared());
}
