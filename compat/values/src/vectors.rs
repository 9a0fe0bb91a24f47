//! The rows of the vector files.

use serde_json::Value;

/// A Java value, and the payload that its codec wrote.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub class: String,
    /// For a value that Jackson cannot write: `!` and the name of the exception.
    pub json: Value,
    pub payload: Vec<u8>,
}

impl Row {
    pub fn has_json(&self) -> bool {
        !self.json.as_str().is_some_and(|json| json.starts_with('!'))
    }
}

pub fn rows(file: &str) -> Vec<Row> {
    let path = format!("{}/../../crates/redisson-codec/tests/vectors/{file}.tsv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let rows: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).map(row).collect();
    assert!(!rows.is_empty(), "{path} has no rows");
    rows
}

fn row(line: &str) -> Row {
    let columns: Vec<_> = line.split('\t').collect();
    let [name, class, json, hex] = columns[..] else { panic!("not 4 columns: {line}") };
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    Row {
        name: name.into(),
        class: class.into(),
        json: serde_json::from_str(json).unwrap_or_else(|_| json.into()),
        payload: (0..hex.len()).step_by(2).map(byte).collect(),
    }
}
