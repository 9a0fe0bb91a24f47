//! Plain lines: for a pipe, a dumb terminal, and the summary after the picture.

use std::io::{self, Write};
use std::time::Duration;

use crate::model::Model;

const EVERY: Duration = Duration::from_secs(1);

/// `make demo` builds quickly, and so without optimizations.
const BUILD: &str = if cfg!(debug_assertions) { ", in a debug build" } else { "" };

/// A line a second, and each note once.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    next: Duration,
    last_note: Option<Duration>,
}

impl Plain {
    pub(crate) fn show(&mut self, model: &Model, now: Duration) -> io::Result<()> {
        let mut lines = Vec::new();
        if now < self.next {
            return Ok(());
        }
        self.next = now + EVERY;
        if let Some((at, note)) = &model.note
            && self.last_note != Some(*at)
        {
            self.last_note = Some(*at);
            lines.push(format!("{:>5.1} s  {note}", at.as_secs_f64()));
        }
        lines.push(status(model, now));
        print(&lines)
    }
}

fn status(model: &Model, now: Duration) -> String {
    let (counts, sizes) = (model.ledger.counts(), &model.sizes);
    let late = model.lateness.percentile(0.99).map(|late| format!("  late by p99 {late:.1} ms"));
    format!(
        "{:>5.1} s  offered {:>3}, pending {:>2}, taken {:>3}: lost {}, twice {}{}",
        now.as_secs_f64(),
        counts.offered,
        sizes.timeout_set,
        counts.taken,
        model.lost,
        counts.twice,
        late.unwrap_or_default(),
    )
}

/// What is said at the end.
pub(crate) fn summary(model: &Model, stopped: bool, java: bool) -> Vec<String> {
    let counts = model.ledger.counts();
    let mut lines = vec![format!(
        "{} orders offered, {} taken, {} cancelled, {} rescheduled: lost {}, twice {}",
        counts.offered, counts.taken, counts.cancelled, counts.rescheduled, model.lost, counts.twice
    )];
    if java {
        let [offered, taken] = [counts.offered_by_java, counts.taken_by_java];
        lines.push(format!("of these, Java has offered {offered} and taken {taken}"));
    }
    if counts.taken > 0 {
        lines.push(format!("late by {}{BUILD}", model.lateness.line()));
    }
    let (consumers, connections) = (model.consumers_killed, model.connections_killed);
    if consumers + connections > 0 {
        lines.push(format!("survived: {consumers} killed consumers, {connections} killed connections"));
    }
    lines.extend(model.explanation());
    if counts.unwanted > 0 {
        lines.push(format!("{} arrived although they were cancelled or refused", counts.unwanted));
    }
    if counts.unsure > 0 {
        lines.push(format!("{} replies were lost: nobody knows whether these orders exist", counts.unsure));
    }
    if counts.refused > 0 {
        lines.push(format!("{} offers failed, and are not stored", counts.refused));
    }
    if stopped {
        lines.push(format!("stopped early: {} open orders are cleared", model.ledger.open().len()));
    }
    lines
}

/// Unlike `println!`, a reader that is gone is an error and no panic.
pub(crate) fn print(lines: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::ledger::Stage;
    use crate::order::{Order, Side, Taker};

    #[test]
    fn a_summary() {
        let mut model = Model::new();
        let due = Duration::from_secs(1);
        for id in [1, 2] {
            let order = Order { id, item: "tea".into() };
            model.apply(Duration::ZERO, Event::Offering { order, by: Side::Java, due });
            model.apply(Duration::ZERO, Event::Became { id, stage: Stage::Stored });
        }
        model.apply(due + Duration::from_millis(2), Event::Taken { id: 1, by: Taker::Consumer(0) });
        assert_eq!(
            summary(&model, true, true),
            [
                "2 orders offered, 1 taken, 0 cancelled, 0 rescheduled: lost 0, twice 0",
                "of these, Java has offered 2 and taken 0",
                &format!("late by p50 2.0, p99 2.0, max 2.0 ms{BUILD}"),
                "stopped early: 1 open orders are cleared",
            ]
        );
    }
}
