//! The table of the handles for operators in `src/admin.rs`, compared with their methods: each has each verb
//! that the table names, and no other; and its rows can be copied, compared and serialized.

/// A handle and its source.
const HANDLES: [(&str, &str); 5] = [
    ("DeadLetters", include_str!("../../src/admin/dead_letters.rs")),
    ("Unsettled", include_str!("../../src/admin/unsettled.rs")),
    ("UnconfirmedPops", include_str!("../../src/admin/unconfirmed_pops.rs")),
    ("Quarantine", include_str!("../../src/admin/quarantine.rs")),
    ("Schedules", include_str!("../../src/delayed_queue/schedule/stored.rs")),
];

/// The cells of the row of a handle, or of the head.
fn row(first: &str) -> Vec<&'static str> {
    let docs = include_str!("../../src/admin.rs");
    let row = docs.lines().find(|line| line.starts_with(&format!("//! | {first}")));
    row.unwrap_or_else(|| panic!("no row `{first}`"))
        .trim_matches(['/', '!', ' ', '|'])
        .split(" | ")
        .collect()
}

/// What is between backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_handle_has_every_verb_that_has_a_meaning() {
    let head = row("handle");
    for (handle, source) in HANDLES {
        let cells = row(&format!("[`{handle}`]"));
        assert_eq!(cells.len(), head.len(), "{handle}");
        let begins = [format!("\nimpl {handle} {{"), format!("\nimpl<T: 'static> {handle}<T> {{")];
        let methods = begins.iter().find_map(|begin| Some(source.split_once(begin)?.1)).expect("methods");
        let has = |verb: &str| methods.contains(&format!("pub async fn {verb}("));
        for (verbs, cell) in head.iter().zip(&cells).skip(3) {
            for verb in names(verbs) {
                match *cell {
                    "yes" => assert!(has(verb), "{handle} has no `{verb}`"),
                    cell => {
                        assert!(!has(verb), "{handle} has `{verb}`");
                        let others: Vec<_> = names(cell).collect();
                        assert!(!others.is_empty(), "{handle}: what takes the place of `{verb}`?");
                        assert!(
                            cell.starts_with("no: ") || others.iter().all(|other| has(other)),
                            "{handle}: {cell}"
                        );
                    }
                }
            }
        }
        let name = names(cells[1]).next().expect("a row type");
        let (before, _) = source.split_once(&format!("pub struct {name}")).expect("a row type");
        let attributes: Vec<_> = before.lines().rev().take_while(|line| line.starts_with('#')).collect();
        let has = |what| attributes.iter().any(|line| line.contains(what));
        assert!(has("Serialize") && has("Clone") && has("non_exhaustive"), "{name}: {attributes:?}");
        assert!(has("PartialEq") || source.contains(&format!("impl PartialEq for {name}")), "{name}");
    }
}
