//! Tables for a terminal. Pure.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What is between two columns.
const GAP: usize = 2;
/// A column that may shrink keeps so many characters.
const LEAST: usize = 6;

/// A column: its head, and how its cells stand.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) kind: Kind,
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
        Self { head, kind: Kind::Text }
    }

    pub(crate) const fn number(head: &'static str) -> Self {
        Self { head, kind: Kind::Number }
    }

    pub(crate) const fn long(head: &'static str) -> Self {
        Self { head, kind: Kind::Long }
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
    let heads = columns.iter().map(|column| Cell::from(column.head)).collect();
    let all: Vec<&Vec<Cell>> = std::iter::once(&heads).chain(rows).collect();
    let natural = (0..columns.len())
        .map(|at| all.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width()).max().unwrap_or(0));
    let mut widths: Vec<usize> = natural.collect();
    if let Some(width) = width {
        shrink(columns, &mut widths, width);
    }
    all.iter().map(|row| line(columns, row, &widths, width)).collect()
}

/// Shortens the longest of the columns that may be, until all fit.
fn shrink(columns: &[Column], widths: &mut [usize], width: usize) {
    let gaps = GAP * columns.len().saturating_sub(1);
    loop {
        let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
        let long = |at: &usize| columns[*at].kind == Kind::Long && widths[*at] > LEAST;
        let Some(longest) = (0..columns.len()).filter(long).max_by_key(|at| widths[*at]) else { return };
        if over == 0 {
            return;
        }
        widths[longest] -= 1;
    }
}

fn line(columns: &[Column], row: &[Cell], widths: &[usize], width: Option<usize>) -> String {
    let mut out = String::new();
    let mut left = width.unwrap_or(usize::MAX);
    let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or(0);
    for (at, (cell, wide)) in row.iter().zip(widths).enumerate().take(last + 1) {
        let text = cut(&cell.text, (*wide).min(left));
        let space = " ".repeat(wide.saturating_sub(text.width()).min(left - text.width()));
        let is_right = columns[at].kind == Kind::Number;
        if is_right {
            out.push_str(&space);
        }
        if cell.style == Style::new() {
            out.push_str(&text);
        } else {
            out.push_str(&format!("{}{text}{:#}", cell.style, cell.style));
        }
        if at == last {
            break;
        }
        if !is_right {
            out.push_str(&space);
        }
        left = left.saturating_sub(*wide);
        out.push_str(&" ".repeat(GAP.min(left)));
        left = left.saturating_sub(GAP);
        if left == 0 {
            break;
        }
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
