//! The rows of the two lists: orders that wait, and orders that are ready, taken or cancelled.

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::lateness::millis;
use crate::ledger::{Arrival, Entry};
use crate::model::{Done, How};
use crate::order::{Side, Taker, letter};
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
        let left = entry.due.saturating_sub(now);
        let side = if self.sides { 5 } else { 0 };
        let item = self.width.saturating_sub(5 + side + 9 + 3).clamp(1, LONGEST_ITEM);
        let mut line = self.order(entry.order.id, &entry.order.item, item);
        if self.sides {
            line.push(Span::styled(format!("{:<5}", entry.by), self.theme.side(entry.by)));
        }
        line.push(Span::raw(format!("{:>5.2} s ", left.as_secs_f64())));
        // Marked, since it has jumped down the list.
        line.push(Span::styled(if entry.rescheduled { "↓" } else { " " }, self.theme.warning()));
        let bar = self.width.saturating_sub(5 + item + 1 + side + 9);
        let filled = left.as_secs_f64() / FULL.as_secs_f64() * bar as f64;
        line.push(Span::styled("▇".repeat((filled.ceil() as usize).min(bar)), self.theme.bar()));
        line.into()
    }

    /// Due, and not taken yet.
    pub(crate) fn ready(self, entry: &Entry) -> Line<'static> {
        let mut line = self.order(entry.order.id, &entry.order.item, self.item());
        line.push(Span::raw(self.way(entry.by, None)));
        line.push(Span::styled(format!("{:>9}", "ready"), self.theme.warning()));
        line.into()
    }

    /// `  17 espresso       +1.2 ms`
    pub(crate) fn done(self, done: &Done) -> Line<'static> {
        let mut line = self.order(done.order.id, &done.order.item, self.item());
        let (taker, text, style) = match &done.how {
            How::Cancelled => (None, "cancelled".to_owned(), self.theme.dim()),
            How::Taken { by, arrival } => {
                let (text, style) = match arrival {
                    Arrival::Once(Some(late)) => {
                        (format!("+{:.1} ms", millis(*late)), self.theme.late(millis(*late)))
                    }
                    Arrival::Once(None) => ("taken".to_owned(), self.theme.dim()),
                    Arrival::Twice => ("TWICE".to_owned(), self.theme.bad()),
                    Arrival::Unwanted => ("UNWANTED".to_owned(), self.theme.bad()),
                };
                (Some(*by), text, style)
            }
        };
        let taken_by = taker.map(Taker::side);
        let style_of_way = taken_by.map_or(self.theme.dim(), |side| self.theme.side(side));
        line.push(Span::styled(self.way(done.offered_by, taken_by), style_of_way));
        line.push(Span::styled(format!("{text:>9}"), style));
        let consumer = match taker {
            Some(Taker::Consumer(number)) => format!("  {}", letter(number)),
            _ => String::new(),
        };
        let mut line = Line::from(line);
        if line.width() + consumer.len() <= self.width {
            line.push_span(Span::styled(consumer, self.theme.dim()));
        }
        line
    }

    fn order(self, id: u32, item: &str, width: usize) -> Vec<Span<'static>> {
        vec![
            Span::styled(format!("{id:>4} "), self.theme.dim()),
            Span::raw(format!("{:<width$} ", item.chars().take(width).collect::<String>())),
        ]
    }

    fn item(self) -> usize {
        let way = if self.sides { 11 } else { 0 };
        self.width.saturating_sub(5 + 1 + way + 9).clamp(1, LONGEST_ITEM)
    }

    /// `Rust→Java`, while both sides are there.
    fn way(self, from: Side, to: Option<Side>) -> String {
        match (self.sides, to) {
            (false, _) => String::new(),
            (true, Some(to)) => format!("{from}→{to} "),
            (true, None) => format!("{from:<9} "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Ledger, Stage};
    use crate::order::Order;

    fn rows(width: usize, sides: bool) -> Rows {
        Rows { theme: Theme::from_env(), width, sides }
    }

    fn order() -> Order {
        Order { id: 17, item: "hot chocolate".into() }
    }

    #[test]
    fn a_row_fills_its_pane_and_no_more() {
        let mut ledger = Ledger::default();
        ledger.offering(order(), Side::Rust, Duration::from_secs(60));
        ledger.becomes(17, Stage::Stored);
        let arrival = Arrival::Once(Some(Duration::from_micros(1234)));
        let how = How::Taken { by: Taker::Java, arrival };
        let done = Done { order: order(), offered_by: Side::Rust, how };
        for sides in [false, true] {
            for width in 28..80 {
                let rows = rows(width, sides);
                let entry = ledger.open()[0];
                assert_eq!(rows.pending(entry, Duration::ZERO).width(), width, "{sides}");
                assert!(rows.ready(entry).width() <= width, "{sides} {width}");
                assert!(rows.done(&done).width() <= width, "{sides} {width}");
            }
        }
    }

    #[test]
    fn texts() {
        let how = How::Taken { by: Taker::Java, arrival: Arrival::Once(Some(Duration::from_millis(3))) };
        let done = Done { order: order(), offered_by: Side::Rust, how };
        assert_eq!(rows(60, true).done(&done).to_string(), "  17 hot chocolate Rust→Java   +3.0 ms");
        assert_eq!(rows(60, false).done(&done).to_string(), "  17 hot chocolate   +3.0 ms");
        let how = How::Taken { by: Taker::Consumer(1), arrival: Arrival::Twice };
        let twice = Done { how, ..done };
        assert_eq!(rows(60, false).done(&twice).to_string(), "  17 hot chocolate     TWICE  B");
        let cancelled = Done { how: How::Cancelled, ..twice };
        assert_eq!(rows(60, true).done(&cancelled).to_string(), "  17 hot chocolate Rust      cancelled");
    }
}
