//! The state as lines of a terminal. Pure.

use anstyle::AnsiColor;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::state::{LEAST, Queue, State};
use crate::escape;
use crate::human;
use crate::queue;
use crate::state::State as Health;
use crate::table::{self, Cell, Column};

/// The columns of what is due next.
const NEXT: [Column; 6] = [
    Column::text("DUE").goes(4),
    Column::text("IN"),
    Column::long("ID"),
    Column::long("CODEC").goes(3),
    Column::number("BYTES"),
    Column::long("PAYLOAD"),
];
const FACTS: [Column; 2] = [Column::text(""), Column::long("")];
/// Which facts are on the right, where there is less room.
const SHORT: std::ops::RangeInclusive<usize> = 3..=10;
/// The columns of these.
const RIGHT: u16 = 30;

/// What a narrow terminal has no room for comes last.
const KEYS: [(&str, &str); 7] = [
    ("enter", "open"),
    ("/", "filter"),
    ("s", "sort"),
    ("space", "pause"),
    ("q", "quit"),
    ("r", "reverse"),
    ("↑↓", "move"),
];
const OPEN_KEYS: [(&str, &str); 4] = [("esc", "back"), ("v", "payloads"), ("space", "pause"), ("q", "quit")];

pub(super) fn draw(state: &State, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!(
            "redelay top needs {}×{}; this terminal has {}×{}. q quits.",
            LEAST.0, LEAST.1, area.width, area.height
        );
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let lines = match &state.open {
        None => table_lines(state, area.width.into()),
        Some(_) => Vec::new(),
    };
    put(frame, 0, head(state));
    for (at, line) in (1..).zip(lines) {
        put(frame, at, line);
    }
    if let Some(name) = &state.open {
        draw_queue(state, name, frame);
    }
    put(frame, area.height - 1, foot(state));
}

/// Puts a line at this height.
fn put(frame: &mut Frame<'_>, at: u16, line: Line<'_>) {
    let area = frame.area();
    if at < area.height {
        frame.render_widget(line, Rect::new(0, at, area.width, 1));
    }
}

fn head(state: &State) -> Line<'static> {
    let mut spans = vec![Span::styled(state.title.clone(), Modifier::BOLD)];
    if state.is_paused {
        spans.push(" · ".into());
        spans.push(Span::styled("paused", Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD)));
    }
    Line::from(spans)
}

fn table_lines(state: &State, width: usize) -> Vec<Line<'static>> {
    let (names, cursor) = state.in_sight();
    let all = state.queues.len() as u64;
    let mut about = vec![match state.calls {
        Some(calls) => format!(
            "{}, found with {}",
            human::counted(all, "queue", "queues"),
            human::counted(calls, "call", "calls")
        ),
        None => format!("{}, still searching", human::counted(all, "queue", "queues")),
    }];
    if !state.filter.is_empty() {
        let passing = human::count(state.sorted().len() as u64);
        about.push(format!("{passing} with \"{}\"", escape::text(&state.filter)));
    }
    let reversed = if state.is_reversed { ", reversed" } else { "" };
    about.push(format!("by {}{reversed}", state.sort.text()));
    about.push(format!("every {}", human::span(state.interval)));
    let mut lines = vec![Line::from(about.join(" · "))];
    if names.is_empty() {
        let nothing = match (state.calls, state.filter.is_empty()) {
            (None, _) => "",
            (Some(_), true) => "no queues",
            (Some(_), false) => "no queue has that in its name",
        };
        lines.extend([Line::default(), Line::from(nothing)]);
        return lines;
    }
    let rows: Vec<Vec<Cell>> = names.iter().map(|name| row(state, name)).collect();
    let pieces = table::pieces(&queue::COLUMNS, &rows, Some(width));
    for (at, pieces) in pieces.into_iter().enumerate() {
        let line = line(pieces);
        lines.push(match at.checked_sub(1) {
            None => line.style(Modifier::BOLD),
            Some(at) if Some(at) == cursor => line.style(Modifier::REVERSED),
            Some(_) => line,
        });
    }
    lines
}

fn row(state: &State, name: &[u8]) -> Vec<Cell> {
    match state.queues.get(name) {
        Some(Queue { overview: Some(overview), reader }) => {
            let mut row = queue::row(name, overview, &reader.clone().unwrap_or_default());
            row[0] = state.name(name).into();
            row
        }
        _ => vec![state.name(name).into(), "…".into()],
    }
}

/// The queue that is open: its numbers, what they mean, and what is due next.
fn draw_queue(state: &State, name: &[u8], frame: &mut Frame<'_>) {
    let area = frame.area();
    put(frame, 1, Line::styled(state.name(name), Modifier::BOLD));
    let Some(Queue { overview: Some(overview), reader }) = state.queues.get(name) else {
        return put(frame, 3, Line::from("…"));
    };
    let facts = queue::facts(overview, &reader.clone().unwrap_or_default());
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (at, fact) in facts.into_iter().enumerate() {
        if SHORT.contains(&at) { right.push(fact) } else { left.push(fact) }
    }
    let wide = area.width - RIGHT;
    let height = left.len().max(right.len());
    for (x, width, facts) in [(0, wide - 2, left), (wide, RIGHT, right)] {
        let pieces = table::pieces(&FACTS, &facts, Some(width.into()));
        for (y, pieces) in (2..area.height - 1).zip(pieces.into_iter().skip(1)) {
            frame.render_widget(line(pieces), Rect::new(x, y, width, 1));
        }
    }
    let mut y = 2 + u16::try_from(height).unwrap_or(u16::MAX);
    if let Some(advice) = Health::of(overview).advice(overview)
        && y + 3 < area.height
    {
        let text = Paragraph::new(advice).wrap(Wrap { trim: true });
        frame.render_widget(text, Rect::new(0, y + 1, area.width, 2));
        y += 3;
    }
    let (columns, shown) = if state.has_values { (&NEXT[..], 6) } else { (&NEXT[..5], 5) };
    let entries: Vec<Vec<Cell>> =
        state.next.entries.iter().map(|entry| entry.iter().take(shown).cloned().collect()).collect();
    if entries.is_empty() {
        return;
    }
    let pieces = table::pieces(columns, &entries, Some(area.width.into()));
    for (at, (y, pieces)) in (y + 1..area.height - 1).zip(pieces).enumerate() {
        let line = line(pieces);
        put(frame, y, if at == 0 { line.style(Modifier::BOLD) } else { line });
    }
}

/// What is wrong, what is typed, or the keys.
fn foot(state: &State) -> Line<'static> {
    if state.is_typing {
        return Line::from(format!("/{}█", escape::text(&state.filter)));
    }
    if let Some(failure) = &state.failure {
        return Line::styled(format!("no answer: {}", escape::text(failure)), Color::Red);
    }
    if let Some(refusal) = state.refusal() {
        return Line::styled(escape::text(&refusal), Color::Yellow);
    }
    let keys = if state.open.is_some() { &OPEN_KEYS[..] } else { &KEYS };
    let mut spans = Vec::new();
    for (key, does) in keys {
        spans.push(Span::styled(*key, Modifier::BOLD));
        spans.push(Span::raw(format!(" {does}  ")));
    }
    Line::from(spans)
}

fn line(pieces: Vec<Cell>) -> Line<'static> {
    let span = |cell: Cell| Span::styled(cell.text, style(cell.style));
    Line::from_iter(pieces.into_iter().map(span))
}

/// The same style of the other library.
fn style(style: anstyle::Style) -> Style {
    let bold = style.get_effects().contains(anstyle::Effects::BOLD);
    let plain = if bold { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
    match style.get_fg_color() {
        Some(anstyle::Color::Ansi(AnsiColor::Red)) => plain.fg(Color::Red),
        Some(anstyle::Color::Ansi(AnsiColor::Yellow)) => plain.fg(Color::Yellow),
        Some(anstyle::Color::Ansi(AnsiColor::Cyan)) => plain.fg(Color::Cyan),
        Some(anstyle::Color::Ansi(AnsiColor::Green)) => plain.fg(Color::Green),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use redelay::inspector::Overview;

    use super::super::state::{Event, Next};
    use super::*;
    use crate::mask::Mask;
    use crate::payload::Reader;
    use crate::state::known;

    fn overview(name: &str, pending: u64, change: impl FnOnce(&mut Overview)) -> Overview {
        known(|queue| {
            queue.name = Bytes::copy_from_slice(name.as_bytes());
            (queue.pending, queue.list_len) = (Some(pending), Some(pending));
            queue.transferring_processes = Some(1);
            queue.next_due_in = (pending > 0).then_some(Duration::from_millis(20));
            change(queue);
        })
    }

    /// Some queues, one of which stands still.
    fn state(width: u16, height: u16) -> State {
        let title = "127.0.0.1:6379 · Redis 7.0.15, master".to_owned();
        let mut state = State::new(title, Duration::from_secs(2), 5, (width, height));
        let queues = [
            overview("shop:orders", 1_203_154, |_| ()),
            overview("shop:refunds", 37, |queue| {
                (queue.overdue, queue.overdue_for) = (Some(37), Some(Duration::from_secs(252)));
                queue.next_due_in = Some(Duration::ZERO);
            }),
            overview("shop:a\n\x1b[2Jb", 0, |queue| queue.dead_letters = Some(5)),
        ];
        let mut names: Vec<_> = queues.iter().map(|queue| queue.name.clone()).collect();
        names.push("shop:new".into());
        state.on(Event::Found(names));
        state.on(Event::Searched { calls: 205, refusal: None, is_complete: true });
        let reader = || Some(Reader::new(None, Mask::default(), [&b"\x03hell\xef"[..]]));
        let title = state.title.clone();
        state.on(Event::Looked(queues.into_iter().map(|queue| (queue, reader())).collect(), None, title));
        state
    }

    fn press(state: &mut State, keys: &[KeyCode]) {
        for key in keys {
            state.on(Event::Key(KeyEvent::new(*key, KeyModifiers::NONE)));
        }
    }

    /// The lines of a frame.
    fn drawn(state: &State) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(state.size.0, state.size.1)).unwrap();
        terminal.draw(|frame| draw(state, frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..buffer.area.height).map(|y| line(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn a_table_of_80_columns() {
        let lines = drawn(&state(80, 24));
        let shown = [
            "127.0.0.1:6379 · Redis 7.0.15, master",
            "4 queues, found with 205 calls · by state · every 2 s",
            "QUEUE          PENDING  NEXT DUE  OVERDUE       READY  DEAD  STATE",
            "refunds             37  now       37, 4 m 12 s      0     0  stands still",
            "a\\n\\x1b[2Jb          0            0                 0     5  dead letters",
            "orders       1,203,154  in 20 ms  0                 0     0  ok",
            "new                  …",
        ];
        assert_eq!(lines[..shown.len()], shown);
        assert!(lines[7..23].iter().all(String::is_empty));
        assert_eq!(lines[23], "enter open  / filter  s sort  space pause  q quit  r reverse  ↑↓ move");
    }

    #[test]
    fn a_wide_terminal_has_all_columns() {
        let lines = drawn(&state(200, 50));
        assert_eq!(lines.len(), 50);
        assert_eq!(
            lines[2],
            "QUEUE          PENDING  NEXT DUE  OVERDUE       READY  IN FLIGHT  DEAD  MOVED BY  CODEC  STATE"
        );
    }

    #[test]
    fn a_small_terminal_is_told_so() {
        for (width, height) in [(46, 20), (59, 24), (80, 11), (1, 1)] {
            let text = drawn(&state(width, height)).join(" ");
            assert!(!text.contains("orders"), "{text}");
            if width > 40 {
                let says = format!("redelay top needs 60×12; this terminal has {width}×{height}. q quits.");
                assert_eq!(text.trim_end(), says);
            }
        }
        assert_eq!(drawn(&state(60, 12))[3].split(' ').next(), Some("refunds"));
    }

    #[test]
    fn a_queue_is_opened() {
        let mut state = state(80, 24);
        press(&mut state, &[KeyCode::Enter]);
        let entry = |payload: &str| {
            ["2026-11-25 14:03:10.220", "overdue 4 m 12 s", "9d1f03aa…", "kryo5", "12", payload]
                .map(Cell::from)
                .to_vec()
        };
        let next = Next { entries: vec![entry("{\"orderId\": 8112}"); 30], refusal: None };
        let name = state.open.clone().unwrap();
        let title = state.title.clone();
        state.on(Event::Looked(Vec::new(), Some((name, next)), title));
        let lines = drawn(&state);
        assert_eq!(lines[1], "refunds");
        assert_eq!(lines[2], "STATE      stands still                           READY             0");
        assert_eq!(lines[8], "CODEC      kryo5                                  SCHEDULES         0");
        let advice = [
            "37 entries have been due for up to 4 m 12 s, and the process that is subscribed",
            "does not move them: it may have lost a wake-up",
        ];
        assert_eq!(lines[11..13], advice);
        assert_eq!(lines[14], "DUE                      IN                ID         CODEC  BYTES");
        assert_eq!(lines[15], "2026-11-25 14:03:10.220  overdue 4 m 12 s  9d1f03aa…  kryo5     12");
        assert!(lines[22].starts_with("2026-"), "{lines:?}");
        assert_eq!(lines[23], "esc back  v payloads  space pause  q quit");
        assert!(!lines.concat().contains("orderId"), "payloads are shown to whom asks for them");
        press(&mut state, &[KeyCode::Char('v')]);
        assert!(drawn(&state).concat().contains("{\"orderId\": 8112}"));
        state.size = (60, 12);
        assert_eq!(drawn(&state)[11], "esc back  v payloads  space pause  q quit");
    }

    #[test]
    fn what_is_wrong_is_at_the_foot() {
        let mut state = state(80, 24);
        let foot = |state: &State| drawn(state).pop().unwrap();
        state.on(Event::Searched {
            calls: 1,
            refusal: Some("channels is unknown: NOPERM\x1b".into()),
            is_complete: true,
        });
        assert_eq!(foot(&state), "channels is unknown: NOPERM\\x1b");
        state.on(Event::Failed("the server does not answer".into()));
        assert_eq!(foot(&state), "no answer: the server does not answer");
        press(&mut state, &[KeyCode::Char('/'), KeyCode::Char('o'), KeyCode::Char('R')]);
        assert_eq!(foot(&state), "/oR█");
        press(&mut state, &[KeyCode::Enter, KeyCode::Char(' ')]);
        let lines = drawn(&state);
        assert!(lines[0].ends_with(" master · paused"));
        assert!(lines[1].contains(" · no queue has that") || lines[1].contains("0 with \"oR\""), "{lines:?}");
    }
}
