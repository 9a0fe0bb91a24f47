//! What is seen of the demo: coloured lines over a status line on a terminal, plain lines elsewhere.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use super::{ORDERS, Order};

pub(crate) struct View {
    pub(crate) begun: Instant,
    terminal: bool,
    taken: Cell<usize>,
}

impl View {
    pub(crate) fn new() -> Self {
        let dumb =
            std::env::var_os("NO_COLOR").is_some() || std::env::var("TERM").is_ok_and(|term| term == "dumb");
        Self {
            begun: Instant::now(),
            terminal: std::io::stdout().is_terminal() && !dumb,
            taken: Cell::new(0),
        }
    }

    pub(crate) fn title(&self, server: &str) {
        let title = format!("{ORDERS} orders over {server}, due 0.2 to 6 s after they are offered");
        self.line(&self.bold(&title));
        self.line(&self.dim("  at          order  item             delay        late"));
    }

    pub(crate) fn arrival(&self, order: &Order, late: Duration, taken: usize) {
        self.taken.set(taken);
        let millis = late.as_secs_f64() * 1000.0;
        let colour = match millis {
            ..10.0 => 32,
            ..100.0 => 33,
            _ => 31,
        };
        let late = self.paint(colour, &format!("{millis:>6.1} ms"));
        let at = self.dim(&format!("{:>6.3} s", self.begun.elapsed().as_secs_f64()));
        let delay = order.delay.as_secs_f64();
        self.line(&format!("  {at}  {:>7}  {:<15}  {delay:.3} s  {late}", order.id, order.item));
    }

    pub(crate) fn interrupted(&self) {
        self.taken.set(0);
        self.line("interrupted: the queue is cleared");
    }

    pub(crate) fn keys(&self, what: &str, keys: &[String]) {
        let none = if keys.is_empty() { " no key" } else { "" };
        self.line(&self.bold(&format!("{what}:{none}")));
        keys.iter().for_each(|key| self.line(&format!("  {key}")));
    }

    /// Returns whether every order came once.
    pub(crate) fn summary(&self, taken: &[(usize, Duration)]) -> bool {
        self.taken.set(0);
        let distinct = taken.iter().map(|(id, _)| id).collect::<HashSet<_>>().len();
        let (lost, twice) = (ORDERS - distinct, taken.len() - distinct);
        let mut late: Vec<f64> = taken.iter().map(|(_, late)| late.as_secs_f64() * 1000.0).collect();
        late.sort_by(f64::total_cmp);
        let rank = |part: f64| {
            let rank = (part * late.len() as f64).ceil() as usize;
            late.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
        };
        self.line(&self.bold(&format!("{ORDERS} offered, {distinct} taken, {lost} lost, {twice} twice")));
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(rank);
        self.line(&format!("late by: p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms"));
        lost == 0 && twice == 0
    }

    /// Prints a line, above the status line if there is one.
    fn line(&self, text: &str) {
        if !self.terminal {
            return println!("{text}");
        }
        let (taken, bars) = (self.taken.get(), self.taken.get() * 40 / ORDERS);
        let status =
            format!("  {}{}  {taken} of {ORDERS} taken", "━".repeat(bars), self.dim(&"━".repeat(40 - bars)));
        print!("\r\x1b[K{text}\n{}", if taken > 0 { status } else { String::new() });
        // A terminal that is gone is no reason to stop.
        let _ = std::io::stdout().flush();
    }

    fn bold(&self, text: &str) -> String {
        self.paint(1, text)
    }

    fn dim(&self, text: &str) -> String {
        self.paint(2, text)
    }

    fn paint(&self, code: u8, text: &str) -> String {
        if self.terminal { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
