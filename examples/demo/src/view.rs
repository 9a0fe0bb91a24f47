//! The picture: every pane, drawn from the model.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Paragraph};

use crate::lateness::LABELS;
use crate::layout::Panes;
use crate::ledger::Counts;
use crate::model::{Model, Phase};
use crate::order::letter;
use crate::rows::Rows;
use crate::theme::Theme;

/// What does not change during a run.
pub(crate) struct View {
    pub(crate) theme: Theme,
    /// Without a password.
    pub(crate) server: String,
    pub(crate) queue: String,
    pub(crate) java: bool,
}

impl View {
    pub(crate) fn draw(&self, frame: &mut Frame<'_>, model: &Model, phase: Phase, now: Duration) {
        let panes = Panes::new(frame.area());
        let counts = model.ledger.counts();
        frame.render_widget(self.promise(model, &counts, phase, now), panes.promise);
        self.orders(frame, &panes, model, now);
        self.lateness(frame, panes.lateness, model);
        self.numbers(frame, panes.numbers, model, &counts);
        self.keys(frame, panes.keys, model);
        let note = model.current_note(now).unwrap_or_default();
        frame.render_widget(Line::styled(note, self.theme.warning()), panes.note);
        frame.render_widget(self.help(panes.help.width), panes.help);
    }

    fn promise(&self, model: &Model, counts: &Counts, phase: Phase, now: Duration) -> Line<'static> {
        let mut promise = format!(" lost {}, twice {} ", model.lost, counts.twice);
        if counts.unwanted > 0 {
            promise += &format!("({} after cancellation) ", counts.unwanted);
        }
        let style = if model.kept() { self.theme.good() } else { self.theme.bad() };
        let phase = match phase {
            Phase::Offering => {
                format!("offering, {} s left", model.offers_until.saturating_sub(now).as_secs() + 1)
            }
            Phase::Paused => "paused".to_owned(),
            Phase::Draining | Phase::Over => "the last ones".to_owned(),
        };
        let connection = if model.sizes.connected { "" } else { " (no connection)" };
        let rest = format!(" {:>4.1} s  {phase}  {}{connection}", now.as_secs_f64(), self.server);
        vec![Span::styled(promise, style.patch(self.theme.bold())), Span::raw(rest)].into()
    }

    fn orders(&self, frame: &mut Frame<'_>, panes: &Panes, model: &Model, now: Duration) {
        let (ready, pending): (Vec<_>, Vec<_>) =
            model.ledger.open().into_iter().partition(|entry| entry.due <= now);
        let rows = |pane: Rect| Rows {
            theme: self.theme,
            width: pane.width.saturating_sub(2).into(),
            sides: self.java,
        };
        let lines = pending.iter().take(panes.pending.height.into());
        let lines = lines.map(|entry| rows(panes.pending).pending(entry, now)).collect();
        self.boxed(frame, panes.pending, format!(" pending: {} ", pending.len()), String::new(), lines);

        let waiting = ready.iter().map(|entry| rows(panes.taken).ready(entry));
        let done = model.recent.iter().map(|done| rows(panes.taken).done(done));
        let lines = waiting.chain(done).take(panes.taken.height.into()).collect();
        self.boxed(frame, panes.taken, format!(" ready: {}, and taken ", ready.len()), String::new(), lines);
    }

    /// A box, or its lines alone where there is no space.
    fn boxed(&self, frame: &mut Frame<'_>, area: Rect, top: String, bottom: String, lines: Vec<Line<'_>>) {
        let mut lines = Paragraph::new(lines);
        if area.height > 2 {
            let block = Block::bordered().border_type(BorderType::Rounded).border_style(self.theme.dim());
            let [top, bottom] = [top, bottom].map(|text| Line::styled(text, self.theme.bold()));
            lines = lines.block(block.title_top(top).title_bottom(bottom));
        }
        frame.render_widget(lines, area);
    }

    fn lateness(&self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        let summary = model.lateness.line();
        if area.height < LABELS.len() as u16 {
            return frame.render_widget(Line::raw(format!(" late: {summary}")), area);
        }
        let histogram = model.lateness.histogram();
        let most = histogram.iter().copied().max().unwrap_or_default().max(1);
        let space = usize::from(area.width).saturating_sub(2 + 8 + 6);
        let lines = LABELS.iter().zip(histogram).map(|(label, count)| {
            // A single one is seen, too.
            let bar = "█".repeat((count * space).div_ceil(most));
            let count = if count > 0 { format!(" {count}") } else { String::new() };
            vec![Span::raw(format!(" {label:<7}")), Span::styled(bar, self.theme.bar()), Span::raw(count)]
                .into()
        });
        self.boxed(frame, area, " late by ".to_owned(), format!(" {summary} "), lines.collect());
    }

    fn numbers(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, counts: &Counts) {
        let Counts { offered, taken, cancelled, rescheduled, twice, .. } = *counts;
        let (pending, ready, lost) = (model.sizes.timeout_set, model.sizes.ready, model.lost);
        if area.height < 6 {
            let text = format!(" taken {taken}  pending {pending}  ready {ready}  offered {offered}");
            return frame.render_widget(Line::raw(text), area);
        }
        let sides = |java: usize, all: usize| {
            if self.java { format!("   Rust {}, Java {java}", all - java) } else { String::new() }
        };
        let lines = vec![
            Line::raw(format!(" offered   {offered:>4}{}", sides(counts.offered_by_java, offered))),
            Line::raw(format!(" taken     {taken:>4}{}", sides(counts.taken_by_java, taken))),
            Line::raw(format!(" pending   {pending:>4}   ready       {ready:>3}")),
            Line::raw(format!(" cancelled {cancelled:>4}   rescheduled {rescheduled:>3}")),
            Line::raw(format!(" lost      {lost:>4}   twice       {twice:>3}")),
            self.consumers(model),
        ];
        self.boxed(frame, area, " numbers ".to_owned(), String::new(), lines);
    }

    fn consumers(&self, model: &Model) -> Line<'static> {
        let mut line = vec![Span::raw(" consumers")];
        for (number, gone) in model.consumers_gone.iter().enumerate() {
            let name = letter(number);
            line.push(if *gone {
                Span::styled(format!(" {name} killed"), self.theme.bad())
            } else {
                Span::styled(format!(" {name}"), self.theme.good())
            });
        }
        line.into()
    }

    /// The keys as `redis-cli` shows them.
    fn keys(&self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        let (queue, sizes) = (&self.queue, &model.sizes);
        let keys = [
            (format!("{queue} "), sizes.ready, "ready: LLEN"),
            (format!("redisson_delay_queue_timeout:{{{queue}}} "), sizes.timeout_set, "by due time: ZCARD"),
            (format!("redisson_delay_queue:{{{queue}}} "), sizes.ordered_list, "by insertion: LLEN"),
        ];
        let lines: Vec<_> = if area.height >= 3 {
            let width = keys[1].0.len();
            keys.iter()
                .map(|(key, size, what)| Line::raw(format!(" {key:<width$} {what:>18} {size:>4}")))
                .collect()
        } else {
            let [ready, timeout_set] = [sizes.ready, sizes.timeout_set];
            vec![Line::raw(format!(" {queue} {ready}  …_timeout:{{{queue}}} {timeout_set}"))]
        };
        frame.render_widget(Paragraph::new(lines).style(self.theme.dim()), area);
    }

    fn help(&self, width: u16) -> Line<'static> {
        let long = "c cancel  r reschedule  k kill consumer  x kill connection  space pause  q quit";
        let medium = "c cancel  r reschedule  k, x kill  space pause  q quit";
        let short = "c cancel  r later  k,x kill  ␣ pause  q quit";
        let width = usize::from(width);
        let fitting = [long, medium, short].into_iter().find(|text| text.chars().count() <= width);
        Line::styled(fitting.unwrap_or("c r k x ␣ q"), self.theme.dim())
    }
}
