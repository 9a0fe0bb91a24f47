//! Tables for a terminal. Pure.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What is between two columns.
const GAP: usize = 2;
/// A column that may shrink keeps at least this number of characters.
const LEAST: usize = 6;
/// The same while other columns can still be left out.
const ENOUGH: usize = 16;

/// A column: its head, and how its cells stand.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) kind: Kind,
    /// A narrow terminal has no room for it: the lowest goes first. `None` if it stays.
    goes: Option<u8>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Text,
    /// To the right.
    Number,
    /// Text that a narrow terminal shortens.
    Long,
}

impl Column {
    pub(crate) const fn text(head: &'static str) -> Self {
        Self { head, kind: Kind::Text, goes: None }
    }

    pub(crate) const fn number(head: &'static str) -> Self {
        Self { head, kind: Kind::Number, goes: None }
    }

    pub(crate) const fn long(head: &'static str) -> Self {
        Self { head, kind: Kind::Long, goes: None }
    }

    /// The same, but it may be left out: of several, the lowest first.
    pub(crate) const fn goes(self, turn: u8) -> Self {
        Self { goes: Some(turn), ..self }
    }
}

/// A cell. Its text is one line without escapes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::new() }
    }
}

/// The lines of a table, the heads first. `width` is that of the terminal, if there is one.
pub(crate) fn lines(columns: &[Column], rows: &[Vec<Cell>], width: Option<usize>) -> Vec<String> {
    let line = |pieces: Vec<Cell>| {
        let mut out = String::new();
        for Cell { text, style } in pieces {
            match style == Style::new() || text.is_empty() {
                true => out.push_str(&text),
                false => out.push_str(&format!("{style}{text}{style:#}")),
            }
        }
        out.truncate(out.trim_end().len());
        out
    };
    pieces(columns, rows, width).into_iter().map(line).collect()
}

/// The same as pieces of one style, which stand side by side.
pub(crate) fn pieces(columns: &[Column], rows: &[Vec<Cell>], width: Option<usize>) -> Vec<Vec<Cell>> {
    let heads = columns.iter().map(|column| Cell::from(column.head)).collect();
    let all: Vec<&Vec<Cell>> = std::iter::once(&heads).chain(rows).collect();
    let natural = (0..columns.len())
        .map(|at| all.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width()).max().unwrap_or(0));
    let mut widths: Vec<usize> = natural.collect();
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    if let Some(width) = width {
        leave_out(columns, &mut shown, &widths, width);
        shrink(columns, &shown, &mut widths, width);
    }
    all.iter().map(|row| line(columns, row, &shown, &widths, width)).collect()
}

/// The width of the gaps between this number of columns.
fn gaps(columns: usize) -> usize {
    GAP * columns.saturating_sub(1)
}

/// Leaves columns out, until the others fit.
fn leave_out(columns: &[Column], shown: &mut Vec<usize>, widths: &[usize], width: usize) {
    let least = |at: &usize| match columns[*at].kind {
        Kind::Long => widths[*at].min(ENOUGH),
        _ => widths[*at],
    };
    while shown.iter().map(least).sum::<usize>() + gaps(shown.len()) > width {
        let going = shown.iter().filter_map(|at| Some((columns[*at].goes?, *at))).min();
        let Some((_, going)) = going else { return };
        shown.retain(|at| *at != going);
    }
}

/// Shortens the longest of the columns that may be, until all fit.
fn shrink(columns: &[Column], shown: &[usize], widths: &mut [usize], width: usize) {
    loop {
        let all: usize = shown.iter().map(|at| widths[*at]).sum();
        let long = |at: &usize| columns[*at].kind == Kind::Long && widths[*at] > LEAST;
        let longest = shown.iter().copied().filter(long).max_by_key(|at| widths[*at]);
        match longest {
            Some(longest) if all + gaps(shown.len()) > width => widths[longest] -= 1,
            _ => return,
        }
    }
}

fn line(
    columns: &[Column],
    row: &[Cell],
    shown: &[usize],
    widths: &[usize],
    width: Option<usize>,
) -> Vec<Cell> {
    let mut out = Vec::new();
    let mut left = width.unwrap_or(usize::MAX);
    for at in shown.iter().copied().filter(|at| *at < row.len()) {
        let (cell, wide) = (&row[at], widths[at].min(left));
        let text = cut(&cell.text, wide);
        let space = Cell::from(" ".repeat(wide - text.width()));
        let text = Cell { text, style: cell.style };
        match columns[at].kind {
            Kind::Number => out.extend([space, text]),
            _ => out.extend([text, space]),
        }
        left -= wide;
        out.push(" ".repeat(GAP.min(left)).into());
        left -= GAP.min(left);
    }
    out
}

/// A text that is at most as wide: its end becomes `…` if it is not.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let Some(most) = width.checked_sub(1) else { return String::new() };
    let (mut out, mut taken) = (String::new(), 0);
    for char in text.chars() {
        taken += char.width().unwrap_or(0);
        if taken > most {
            break;
        }
        out.push(char);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: [Column; 3] = [Column::long("QUEUE"), Column::number("PENDING"), Column::text("STATE")];

    fn table(rows: &[[&str; 3]], width: Option<usize>) -> Vec<String> {
        let rows: Vec<Vec<Cell>> = rows.iter().map(|row| row.map(Cell::from).into()).collect();
        lines(&COLUMNS, &rows, width)
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["orders", "1,203,154", "ok"], ["очередь", "7", "stands still"], ["注文", "", ""]];
        assert_eq!(
            table(&rows, None),
            [
                "QUEUE      PENDING  STATE",
                "orders   1,203,154  ok",
                "очередь          7  stands still",
                "注文"
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_shortens_the_long_ones_first() {
        let rows = [["a-very-long-name-of-a-queue", "1,203,154", "ok"]];
        assert_eq!(table(&rows, Some(30)), ["QUEUE           PENDING  STATE", "a-very-long…  1,203,154  ok"]);
        assert_eq!(table(&rows, Some(12)), ["QUEUE   PEN…", "a-ver…  1,2…"]);
        assert_eq!(table(&rows, Some(0)), ["", ""]);
    }

    #[test]
    fn a_narrow_terminal_has_no_room_for_what_matters_less() {
        let columns = [COLUMNS[0], COLUMNS[1].goes(2), Column::text("CODEC").goes(1), COLUMNS[2]];
        let row = || ["a-long-name-of-a-queue", "1,203,154", "kryo5", "ok"].map(Cell::from).to_vec();
        let at = |width| lines(&columns, &[row()], Some(width))[1].clone();
        assert_eq!(at(60), "a-long-name-of-a-queue  1,203,154  kryo5  ok");
        assert_eq!(at(42), "a-long-name-of-a…  1,203,154  kryo5  ok");
        assert_eq!(at(38), "a-long-name-of-a-qu…  1,203,154  ok");
        assert_eq!(at(24), "a-long-name-of-a…  ok");
        assert_eq!(at(13), "a-lon…  ok");
    }

    #[test]
    fn a_style_takes_no_room() {
        let bold = Cell { text: "ok".into(), style: Style::new().bold() };
        let lines = lines(&COLUMNS, &[vec!["q".into(), "1".into(), bold]], Some(40));
        assert_eq!(lines[1], "q            1  \u{1b}[1mok\u{1b}[0m");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(rows: Vec<[String; 3]>, width in 0_usize..60) {
            let rows: Vec<Vec<Cell>> = rows
                .iter()
                .map(|row| row.iter().map(|text| Cell::from(crate::escape::text(text))).collect())
                .collect();
            for line in lines(&COLUMNS, &rows, Some(width)) {
                prop_assert!(line.width() <= width, "{line:?} is wider than {width}");
            }
        }
    }
}
