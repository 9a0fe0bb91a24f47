//! The picture: every pane, drawn from the model.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Paragraph};

use crate::lateness::LABELS;
use crate::layout::Panes;
use crate::ledger::{Counts, Hand};
use crate::model::{Consumer, Model, Phase};
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
        let promise = self.promise(model, &counts, phase, now, panes.promise.width);
        frame.render_widget(promise, panes.promise);
        frame.render_widget(self.what(panes.what.width), panes.what);
        if model.dead_letters_only {
            self.dead_letters(frame, panes.lists, model, " (d: back)");
        } else {
            self.lists(frame, &panes, model, now);
        }
        self.lateness(frame, panes.lateness, model);
        self.numbers(frame, panes.numbers, model, &counts);
        self.keys(frame, panes.keys, model);
        let note = model.current_note(now).unwrap_or_default();
        frame.render_widget(Line::styled(format!(" {note}"), self.theme.warning()), panes.note);
        frame.render_widget(self.help(panes.help.width), panes.help);
    }

    fn promise(
        &self,
        model: &Model,
        counts: &Counts,
        phase: Phase,
        now: Duration,
        width: u16,
    ) -> Line<'static> {
        let mut promise = format!(" lost {}, handled twice {} ", model.lost, counts.twice);
        if counts.unwanted > 0 {
            promise += &format!("({} after cancellation) ", counts.unwanted);
        }
        let style = if model.kept() { self.theme.good() } else { self.theme.bad() };
        let phase = match phase {
            Phase::Offering => {
                format!("{} s left", model.offers_until.saturating_sub(now).as_secs() + 1)
            }
            Phase::Paused => "paused".to_owned(),
            Phase::Draining | Phase::Over => "the last ones".to_owned(),
        };
        let mut line = Line::from(Span::styled(promise, style.patch(self.theme.bold())));
        line.push_span(Span::raw(format!("{:>5.1} s  {phase}", now.as_secs_f64())));
        let connection = if model.queue.connected { "" } else { " (no connection)" };
        let server = format!("  {}{connection}", self.server);
        // Whole or not at all.
        if line.width() + server.len() <= usize::from(width) {
            line.push_span(server);
        }
        line
    }

    fn what(&self, width: u16) -> Line<'static> {
        let long =
            " Orders wait until they are due; then three processes handle them. Try to lose one: k, f, x.";
        let medium = " Orders wait, then three processes handle them. Try to lose one: k, f, x.";
        Line::raw(fitting(width, &[long, medium, " Try to lose an order: press k, f or x."]))
    }

    fn lists(&self, frame: &mut Frame<'_>, panes: &Panes, model: &Model, now: Duration) {
        let rows = |pane: Rect| Rows {
            theme: self.theme,
            width: pane.width.saturating_sub(2).into(),
            sides: self.java,
        };
        let age = now.saturating_sub(model.asked);
        let sizes = model.queue.sizes;

        let pending: Vec<_> = model.ledger.open().into_iter().filter(|entry| entry.due > now).collect();
        let lines = pending.iter().map(|entry| rows(panes.pending).pending(entry, now));
        self.boxed(frame, panes.pending, format!("pending: {}", pending.len()), lines);

        let in_flight = model.queue.in_flight.iter().map(|message| {
            let hand = model.ledger.get(message.order.id).map_or(Hand::Free, |entry| entry.hand);
            rows(panes.in_flight).in_flight(message, hand, message.remaining.saturating_sub(age))
        });
        let ready = if sizes.ready > 0 { format!(" (and {} ready)", sizes.ready) } else { String::new() };
        let title = format!("in flight, attempt, lease: {}{ready}", sizes.in_flight);
        self.boxed(frame, panes.in_flight, title, in_flight);

        let waiting = model.queue.waiting.iter();
        let lines = waiting
            .map(|message| rows(panes.waiting).waiting(message, message.remaining.saturating_sub(age)));
        self.boxed(frame, panes.waiting, format!("waiting for a retry: {}", sizes.waiting), lines);

        self.dead_letters(frame, panes.dead, model, "");

        let lines = model.recent.iter().map(|past| rows(panes.done).past(past));
        self.boxed(frame, panes.done, "done, and how late they began".to_owned(), lines);
    }

    fn dead_letters(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, hint: &str) {
        let rows = Rows { theme: self.theme, width: area.width.saturating_sub(2).into(), sides: self.java };
        let lines = model.queue.dead.iter().map(|letter| rows.dead(letter));
        self.boxed(frame, area, format!("dead letters: {}{hint}", model.queue.sizes.dead), lines);
    }

    /// A box, or its lines alone where there is no space.
    fn boxed(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        title: String,
        lines: impl Iterator<Item = Line<'static>>,
    ) {
        let mut lines = Paragraph::new(lines.take(area.height.into()).collect::<Vec<_>>());
        if area.height > 2 {
            let block = Block::bordered().border_type(BorderType::Rounded).border_style(self.theme.dim());
            lines = lines.block(block.title_top(Line::styled(format!(" {title} "), self.theme.bold())));
        }
        frame.render_widget(lines, area);
    }

    fn lateness(&self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        let summary = model.lateness.line();
        if area.height < 6 {
            return frame.render_widget(Line::raw(format!(" late by {summary}")), area);
        }
        let histogram = model.lateness.histogram();
        let most = histogram.into_iter().max().unwrap_or(0).max(1);
        let space = usize::from(area.width).saturating_sub(2 + 8 + 6);
        let lines = LABELS.iter().zip(histogram).map(|(label, count)| {
            // A single one is seen, too.
            let bar = "█".repeat((count * space).div_ceil(most));
            let count = if count > 0 { format!(" {count}") } else { String::new() };
            vec![Span::raw(format!(" {label:<7}")), Span::styled(bar, self.theme.bar()), Span::raw(count)]
                .into()
        });
        self.boxed(frame, area, format!("late by {summary}"), lines);
    }

    fn numbers(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, counts: &Counts) {
        let Counts { offered, done, cancelled, rescheduled, twice, .. } = *counts;
        let (sizes, lost) = (model.queue.sizes, model.lost);
        if area.height < 6 {
            let mut line = vec![Span::raw(format!(" done {done} of {offered}, ready {:<3}", sizes.ready))];
            line.extend(self.consumers(model));
            return frame.render_widget(Line::from(line), area);
        }
        let sides = |java: usize, all: usize| {
            if self.java { format!("   Rust {}, Java {java}", all - java) } else { String::new() }
        };
        let mut consumers = vec![Span::raw(" consumers")];
        consumers.extend(self.consumers(model));
        let lines = [
            Line::raw(format!(" offered   {offered:>4}{}", sides(counts.offered_by_java, offered))),
            Line::raw(format!(" done      {done:>4}{}", sides(counts.done_by_java, done))),
            Line::raw(format!(" pending   {:>4}   ready         {:>3}", sizes.timeout_set, sizes.ready)),
            Line::raw(format!(" cancelled {cancelled:>4}   rescheduled   {rescheduled:>3}")),
            Line::raw(format!(" lost      {lost:>4}   handled twice {twice:>3}")),
            consumers.into(),
        ];
        self.boxed(frame, area, "numbers".to_owned(), lines.into_iter());
    }

    fn consumers(&self, model: &Model) -> impl Iterator<Item = Span<'static>> {
        model.consumers.iter().enumerate().flat_map(|(number, consumer)| {
            let name = letter(number);
            let shown = match consumer {
                Consumer::Starting => Span::styled(format!("{name} starts"), self.theme.dim()),
                Consumer::Alive => Span::styled(name.to_string(), self.theme.good()),
                Consumer::Gone => Span::styled(format!("{name} killed"), self.theme.bad()),
            };
            [Span::raw(" "), shown]
        })
    }

    /// The keys as `redis-cli` shows them.
    fn keys(&self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        let (queue, sizes) = (&self.queue, &model.queue.sizes);
        let keys = [
            (format!("{queue} "), sizes.ready, "ready: LLEN"),
            (format!("redisson_delay_queue_timeout:{{{queue}}} "), sizes.timeout_set, "by due time: ZCARD"),
            (format!("redisson_delay_queue:{{{queue}}} "), sizes.ordered_list, "by insertion: LLEN"),
        ];
        let width = keys[1].0.len();
        let lines = keys.map(|(key, size, what)| Line::raw(format!(" {key:<width$} {what:>18} {size:>4}")));
        frame.render_widget(Paragraph::new(lines.to_vec()).style(self.theme.dim()), area);
    }

    fn help(&self, width: u16) -> Line<'static> {
        let long = " k kill -9 a consumer  f fail a handler  d dead letters  x cut connections  \
                    c cancel  r reschedule  space pause  q quit";
        let medium = " k kill -9  f fail  d dead letters  x cut  c cancel  r later  ␣ pause  q quit";
        let short = " k kill  f fail  d dead  x cut  c r ␣  q quit";
        Line::styled(fitting(width, &[long, medium, short, " k f d x c r ␣ q"]), self.theme.dim())
    }
}

/// The longest of these texts that fits, or the last one.
fn fitting(width: u16, texts: &[&'static str]) -> &'static str {
    let fits = |text: &&&str| text.chars().count() <= usize::from(width);
    texts.iter().find(fits).or(texts.last()).copied().unwrap_or_default()
}
