//! A search of the documentation for the name of a method in Redisson finds its counterpart:
//! `docs/from-redisson.md` names both, and the sources have the former as an alias of the latter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The aliases of each public method of a handle, by the name of the method.
fn aliases(handle: &str) -> BTreeMap<String, BTreeSet<String>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folder =
        fs::read_dir(src.join(handle)).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = folder.chain([src.join(handle).with_extension("rs")]).filter(|file| file.is_file());
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let mut aliases = BTreeSet::new();
        for line in fs::read_to_string(file).expect("a source").lines().map(str::trim) {
            if let Some(alias) = line.strip_prefix("#[doc(alias = \"") {
                aliases.extend(alias.split('"').next().map(str::to_owned));
            } else if let Some(item) = line.strip_prefix("pub ") {
                let aliases = std::mem::take(&mut aliases);
                if let Some(method) = item.trim_start_matches("async ").strip_prefix("fn ") {
                    all.entry(name(method)).or_default().extend(aliases);
                }
            }
        }
    }
    all
}

/// `a` of `a(b)` and of `a`.
fn name(call: &str) -> String {
    call.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// The names in a cell of a table.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(|call| name(call.trim_start_matches("Iterator."))).collect()
}

#[test]
fn the_methods_of_redisson_are_aliases_of_their_counterparts() {
    let text = include_str!("../../docs/from-redisson.md");
    let (delayed, blocking) = ("delayed_queue", "blocking_queue");
    // The table, the column of the counterpart, and whose it is.
    let tables = [
        ("RDelayedQueue", 2, vec![delayed]),
        ("RBlockingQueue", 2, vec![blocking]),
        ("RBlockingDeque", 2, vec![blocking]),
        ("RExpirable and RObject", 3, vec![delayed, blocking]),
    ];
    let (mut missing, mut compared) = (Vec::new(), 0);
    for (title, column, handles) in tables {
        let section =
            text.split(&format!("\n## {title}\n")).nth(1).and_then(|rest| rest.split("\n## ").next());
        let rows = section.expect("the section").lines().filter(|line| line.starts_with("| `"));
        for cells in rows.map(|row| row.split('|').collect::<Vec<_>>()) {
            let here = names(cells[column]);
            // Without a counterpart; other methods may be named as a hint.
            if cells[column].trim_start().starts_with('–') {
                continue;
            }
            for handle in &handles {
                let aliases = aliases(handle);
                for there in names(cells[1]) {
                    compared += 1;
                    let is_alias = |method| aliases.get(method).is_some_and(|all| all.contains(&there));
                    if !here.iter().any(|method| *method == there || is_alias(method)) {
                        missing.push(format!("{handle}: `{there}` is no alias of any of {here:?}"));
                    }
                }
            }
        }
    }
    assert!(compared > 80, "only {compared} methods were compared");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
