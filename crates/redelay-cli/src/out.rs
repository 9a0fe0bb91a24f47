//! Where a command writes: lines for people, or JSON, one document a line.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::escape;
use crate::failure::Failure;
use crate::human;
use crate::table::{self, Cell, Column};

/// The output of a command.
#[derive(Clone)]
pub(crate) struct Out {
    /// Whether it is JSON.
    pub(crate) is_json: bool,
    /// The columns of the terminal, if there is one.
    pub(crate) width: Option<usize>,
    zone: TimeZone,
}

impl Out {
    pub(crate) fn new(is_json: bool) -> Self {
        let width = io::stdout()
            .is_terminal()
            .then(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
            .flatten();
        Self { is_json, width, zone: TimeZone::system() }
    }

    /// Writes a line for people. It may have colours; everything else in it was escaped.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        Ok(writeln!(anstream::stdout().lock(), "{line}")?)
    }

    pub(crate) fn table(&self, columns: &[Column], rows: &[Vec<Cell>]) -> Result<(), Failure> {
        table::lines(columns, rows, self.width).iter().try_for_each(|line| self.line(line))
    }

    /// Writes what and how much, without heads.
    pub(crate) fn facts(&self, columns: &[Column], rows: &[Vec<Cell>]) -> Result<(), Failure> {
        let lines = table::lines(columns, rows, self.width);
        lines.iter().skip(1).try_for_each(|line| self.line(line))
    }

    /// Writes a document in one line.
    pub(crate) fn json(&self, document: &impl Serialize) -> Result<(), Failure> {
        let json = serde_json::to_string(document)
            .map_err(|error| Failure::Other(format!("the answer is no JSON: {error}")))?;
        Ok(writeln!(io::stdout().lock(), "{}", escape::json(&json))?)
    }

    /// Writes bytes as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Says something beside the answer, in a line on stderr.
    pub(crate) fn note(&self, note: &str) {
        // Without stderr, nothing reads it.
        let _ = writeln!(io::stderr().lock(), "redelay: {}", escape::text(note));
    }

    /// Says what the server has refused: each thing once, and not too many.
    pub(crate) fn refusals(&self, refusals: impl IntoIterator<Item = String>) {
        const MOST: usize = 10;
        let mut said = BTreeSet::new();
        for refusal in refusals {
            if !said.contains(&refusal) {
                if said.len() < MOST {
                    self.note(&refusal);
                }
                said.insert(refusal);
            }
        }
        if let Some(more) = said.len().checked_sub(MOST).filter(|more| *more > 0) {
            self.note(&format!("{} more answers are unknown", human::count(more as u64)));
        }
    }

    /// A time for people.
    pub(crate) fn time(&self, at: std::time::SystemTime) -> String {
        human::local(at, &self.zone)
    }
}
