//! Plain lines: for a pipe, a dumb terminal, and the summary after the picture.

use std::io::{self, Write};
use std::time::Duration;

use crate::model::Model;

const EVERY: Duration = Duration::from_secs(1);

/// `make demo` builds with optimizations; `cargo run` and tests do not.
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
    let (counts, sizes) = (model.ledger.counts(), &model.queue.sizes);
    let late = model.lateness.percentile(0.99).map(|late| format!("  late by p99 {late:.1} ms"));
    format!(
        "{:>5.1} s  offered {:>3}, pending {:>2}, in flight {:>2}, done {:>3}: lost {}, handled twice {}{}",
        now.as_secs_f64(),
        counts.offered,
        sizes.timeout_set,
        sizes.in_flight,
        counts.done,
        model.lost,
        counts.twice,
        late.unwrap_or_default(),
    )
}

/// What is said at the end.
pub(crate) fn summary(model: &Model, stopped: bool, java: bool) -> Vec<String> {
    let counts = model.ledger.counts();
    let mut lines = vec![
        format!(
            "{} orders: {} done, {} cancelled; dead letters: {}",
            counts.offered, counts.done, counts.cancelled, model.queue.sizes.dead
        ),
        format!("lost {}, handled twice {}", model.lost, counts.twice),
    ];
    if java {
        let [offered, done] = [counts.offered_by_java, counts.done_by_java];
        lines.push(format!("of these, Java offered {offered} and took {done}"));
    }
    if counts.done > 0 {
        lines.push(format!("late by {}{BUILD}", model.lateness.line()));
    }
    let Model { kills, orphans, failures, connections_killed, .. } = model;
    if kills + failures + connections_killed > 0 {
        lines.push(format!(
            "survived: {kills} kill -9, {failures} failures, {connections_killed} cut connections"
        ));
    }
    if *orphans > 0 {
        lines.push(format!("orders that killed consumers held, and others got: {orphans}"));
    }
    if counts.twice > 0 {
        lines.push("twice: a consumer was killed between its work and the acknowledgement".to_owned());
    }
    if counts.unwanted > 0 {
        lines.push(format!("{} arrived although they were cancelled or refused", counts.unwanted));
    }
    if counts.unsure > 0 {
        lines.push(format!("{} replies were lost: these orders may or may not exist", counts.unsure));
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
        let by = Taker::Consumer(0);
        model.apply(due + Duration::from_millis(2), Event::Begun { id: 1, by, attempt: 1 });
        model.apply(due + Duration::from_secs(1), Event::Done { id: 1, by });
        model.apply(due + Duration::from_secs(1), Event::Begun { id: 2, by, attempt: 1 });
        model.apply(due + Duration::from_secs(1), Event::ConsumerGone { number: 0, killed: true });
        assert_eq!(
            summary(&model, true, true),
            [
                "2 orders: 1 done, 0 cancelled; dead letters: 0",
                "lost 0, handled twice 0",
                "of these, Java offered 2 and took 0",
                &format!("late by p50 2.0, p99 1000.0, max 1000.0 ms{BUILD}"),
                "survived: 1 kill -9, 0 failures, 0 cut connections",
                "orders that killed consumers held, and others got: 1",
                "stopped early: 1 open orders are cleared",
            ]
        );
    }
}
