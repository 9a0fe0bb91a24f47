//! The rows of the lists: orders that wait, that are in flight, done, cancelled or dead.

use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::consumer::{LEASE, RETRY_AFTER};
use crate::event::{Dead, Unsettled};
use crate::lateness::millis;
use crate::ledger::{Entry, Finish, Hand};
use crate::model::{How, Past};
use crate::order::{Order, Taker, ordinal};
use crate::theme::Theme;

/// The longest delay of an offer: a full bar.
const FULL: Duration = Duration::from_secs(6);
const LONGEST_ITEM: usize = 13;

/// How a list is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) theme: Theme,
    pub(crate) width: usize,
    /// Whether to say which side an order is of.
    pub(crate) sides: bool,
}

impl Rows {
    /// `  17 espresso       1.23 s ▇▇▇▇`
    pub(crate) fn pending(self, entry: &Entry, now: Duration) -> Line<'static> {
        let side = if self.sides { format!("{:<5}", entry.by) } else { String::new() };
        let style = if self.sides { self.theme.side(entry.by) } else { Style::new() };
        let left = entry.due.saturating_sub(now);
        // Marked, since it has jumped down the list.
        let mark = if entry.rescheduled { "↓" } else { " " };
        let mut line = self.order(&entry.order, 9 + side.len() + 3);
        line.push(Span::styled(side, style));
        line.push(Span::raw(format!("{:>5.2} s ", left.as_secs_f64())));
        line.push(Span::styled(mark, self.theme.warning()));
        self.with_bar(line, left, FULL, self.theme.bar())
    }

    /// `  17 espresso      A 2nd 2.4 s ▇▇▇▇`: who has it, the attempt, and what is left of its lease.
    pub(crate) fn in_flight(self, message: &Unsettled, hand: Hand, left: Duration) -> Line<'static> {
        let (by, style) = match hand {
            Hand::With(taker) => (format!("{taker:<2}"), self.theme.good()),
            Hand::Orphaned(taker) => (format!("{taker}†"), self.theme.bad()),
            Hand::Free => ("  ".to_owned(), self.theme.dim()),
        };
        let mut line = self.order(&message.order, 14 + 3);
        line.push(Span::styled(by, style));
        line.push(Span::raw(" "));
        line.push(self.attempt(message.attempt));
        line.push(Span::raw(format!("{:>4.1} s ", left.as_secs_f64())));
        let bar = if matches!(hand, Hand::Orphaned(_)) { self.theme.bad_bar() } else { self.theme.bar() };
        self.with_bar(line, left, LEASE, bar)
    }

    /// `  17 espresso      2nd in 1.4 s ▇▇▇▇`
    pub(crate) fn waiting(self, message: &Unsettled, left: Duration) -> Line<'static> {
        let mut line = self.order(&message.order, 14 + 3);
        line.push(self.attempt(message.attempt));
        line.push(Span::raw(format!("in{:>4.1} s ", left.as_secs_f64())));
        self.with_bar(line, left, RETRY_AFTER, self.theme.warning())
    }

    /// `  17 espresso      3 failed, 0 lost: the cup broke`
    pub(crate) fn dead(self, letter: &Dead) -> Line<'static> {
        let Dead { failed, lost, error, .. } = letter;
        let mut line = self.order(&letter.order, 12);
        let lost = if *lost > 0 { format!(", {lost} lost") } else { String::new() };
        line.push(Span::styled(format!("{failed} failed{lost}"), self.theme.bad_bar()));
        line.push(Span::styled(format!(": {error}"), self.theme.dim()));
        line.into()
    }

    /// `  17 espresso       +1.2 ms A`
    pub(crate) fn past(self, past: &Past) -> Line<'static> {
        let way = if self.sides { 11 } else { 0 };
        let mut line = self.order(&past.order, way + 9 + 3);
        let (by, text, style) = match &past.how {
            How::Cancelled => (None, "cancelled".to_owned(), self.theme.dim()),
            How::Done { by, attempt, finish } => {
                let (text, style) = match finish {
                    Finish::Twice => ("TWICE".to_owned(), self.theme.warning()),
                    Finish::Unwanted => ("UNWANTED".to_owned(), self.theme.bad()),
                    Finish::Once { .. } if *attempt > 1 => (ordinal(*attempt), self.theme.warning()),
                    Finish::Once { late: Some(late) } => {
                        (format!("+{:.1} ms", millis(*late)), self.theme.late(millis(*late)))
                    }
                    Finish::Once { late: None } => ("done".to_owned(), self.theme.dim()),
                };
                (Some(*by), text, style)
            }
        };
        if self.sides {
            let to = by.map_or(String::new(), |by| format!("→{}", by.side()));
            let side = by.map_or(self.theme.dim(), |by| self.theme.side(by.side()));
            line.push(Span::styled(format!("{:<10} ", format!("{}{to}", past.offered_by)), side));
        }
        line.push(Span::styled(format!("{text:>9}"), style));
        if let Some(by @ Taker::Consumer(_)) = by {
            line.push(Span::styled(format!("  {by}"), self.theme.dim()));
        }
        line.into()
    }

    /// The number and the item, where `others` characters follow.
    fn order(self, order: &Order, others: usize) -> Vec<Span<'static>> {
        let width = self.width.saturating_sub(5 + 1 + others).clamp(1, LONGEST_ITEM);
        vec![
            Span::styled(format!("{:>4} ", order.id), self.theme.dim()),
            Span::raw(format!("{:<width$} ", order.item.chars().take(width).collect::<String>())),
        ]
    }

    fn attempt(self, attempt: u32) -> Span<'static> {
        let style = if attempt > 1 { self.theme.warning() } else { self.theme.dim() };
        Span::styled(format!("{:<4}", ordinal(attempt)), style)
    }

    fn with_bar(
        self,
        line: Vec<Span<'static>>,
        left: Duration,
        full: Duration,
        style: Style,
    ) -> Line<'static> {
        let mut line = Line::from(line);
        let space = self.width.saturating_sub(line.width());
        let filled = left.as_secs_f64() / full.as_secs_f64() * space as f64;
        line.push_span(Span::styled("▇".repeat((filled.ceil() as usize).min(space)), style));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Ledger, Stage};
    use crate::order::Side;

    fn rows(width: usize, sides: bool) -> Rows {
        Rows { theme: Theme::from_env(), width, sides }
    }

    fn order() -> Order {
        Order { id: 17, item: "hot chocolate".into() }
    }

    fn message(attempt: u32) -> Unsettled {
        Unsettled { order: order(), attempt, remaining: LEASE }
    }

    const A: Taker = Taker::Consumer(0);

    fn done(by: Taker, attempt: u32, finish: Finish) -> Past {
        Past { order: order(), offered_by: Side::Rust, how: How::Done { by, attempt, finish } }
    }

    #[test]
    fn a_row_fills_its_pane_and_no_more() {
        let mut ledger = Ledger::default();
        ledger.offering(order(), Side::Rust, Duration::from_secs(60));
        ledger.becomes(17, Stage::Stored);
        let once = Finish::Once { late: Some(Duration::from_micros(1234)) };
        for sides in [false, true] {
            for width in 28..80 {
                let rows = rows(width, sides);
                assert_eq!(rows.pending(ledger.open()[0], Duration::ZERO).width(), width, "{sides}");
                assert_eq!(rows.in_flight(&message(2), Hand::With(A), LEASE).width(), width, "{sides}");
                assert_eq!(rows.waiting(&message(2), RETRY_AFTER).width(), width, "{sides}");
                assert!(rows.past(&done(Taker::Java, 1, once)).width() <= width.max(33), "{sides} {width}");
            }
        }
    }

    #[test]
    fn texts() {
        let late = Some(Duration::from_millis(3));
        let once = done(Taker::Java, 1, Finish::Once { late });
        assert_eq!(rows(60, true).past(&once).to_string(), "  17 hot chocolate Rust→Java    +3.0 ms");
        let again = done(A, 2, Finish::Once { late });
        assert_eq!(rows(60, false).past(&again).to_string(), "  17 hot chocolate       2nd  A");
        let twice = done(A, 2, Finish::Twice);
        assert_eq!(rows(60, false).past(&twice).to_string(), "  17 hot chocolate     TWICE  A");
        let cancelled = Past { how: How::Cancelled, ..twice };
        assert_eq!(rows(60, true).past(&cancelled).to_string(), "  17 hot chocolate Rust       cancelled");
        let second = Duration::from_secs(1);
        let orphan = rows(38, false).in_flight(&message(2), Hand::Orphaned(A), second);
        assert_eq!(orphan.to_string(), "  17 hot chocolate A† 2nd  1.0 s ▇▇");
        let waiting = rows(38, false).waiting(&message(3), second);
        assert_eq!(waiting.to_string(), "  17 hot chocolate 3rd in 1.0 s ▇▇▇");
        let letter = Dead { order: order(), failed: 3, lost: 1, error: "the cup broke".into() };
        let dead = rows(60, false).dead(&letter);
        assert_eq!(dead.to_string(), "  17 hot chocolate 3 failed, 1 lost: the cup broke");
    }
}
