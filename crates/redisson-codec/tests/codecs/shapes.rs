//! What Java services put into their queues, and which codecs read and write it: the table in
//! `shapes/table.md`.
//!
//! Each of the shapes has one Rust type for all codecs. Of each payload that Redisson wrote, the type must
//! have the right value, or refuse it. Where the table has `=`, the type writes the same bytes again; `~` is
//! other bytes, `✗` a refusal, and `–` what Java does not write. `REDELAY_BLESS=1` writes the table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use redelay_compat_values::shapes::{CODECS, Each, Shape, each, loses};

use super::*;

#[derive(Default)]
struct Table {
    /// Of each shape, a sign for each codec.
    signs: BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>,
    refusals: String,
}

impl Each for Table {
    fn payload<T: Shape, C: Codec<T>>(&mut self, shape: &'static str, codec: &'static str, by: C, value: T) {
        let row = rows(&format!("shapes-{}", codec.trim_end_matches(", mapper")))
            .into_iter()
            .find(|row| row.name == shape);
        let sign = match row {
            None => "–",
            Some(row) => match by.decode(&row.payload).and_then(|read| {
                let written = by.encode(&value)?;
                let same = read == value || loses(codec) && by.encode(&read)? == written;
                assert!(same, "{shape} in {codec}: {read:?}");
                Ok(written)
            }) {
                Ok(written) if written == row.payload => "=",
                Ok(_) => "~",
                Err(error) => {
                    let error = error.to_string();
                    let (_, why) = error.split_once(": ").unwrap_or_default();
                    let _ = writeln!(
                        self.refusals,
                        "* {shape}, {codec}: {}",
                        why.replace("redelay_compat_values::shop::", "")
                    );
                    "✗"
                }
            },
        };
        self.signs.entry(shape).or_default().insert(codec, sign);
    }
}

impl Table {
    fn text(&self) -> String {
        let mut text = format!("| shape | {} |\n|---|{}\n", CODECS.join(" | "), "---|".repeat(CODECS.len()));
        for (shape, signs) in &self.signs {
            let signs: Vec<_> = CODECS.iter().map(|codec| signs[codec]).collect();
            let _ = writeln!(text, "| {shape} | {} |", signs.join(" | "));
        }
        text + "\n" + &self.refusals
    }
}

#[test]
fn what_holds_for_each_shape() {
    let mut table = Table::default();
    each(&mut table);
    assert_eq!(table.signs.len(), rows("shapes-kryo5").len());
    let found = table.text();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/codecs/shapes/table.md");
    if std::env::var_os("REDELAY_BLESS").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
