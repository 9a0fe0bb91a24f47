//! The picture of the README, `demo.svg`: what [`View`] draws of a moment that is made up here.
//! `REDELAY_BLESS=1` writes it.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use crate::event::{Dead, Event, Queue, Sizes, Unsettled};
use crate::ledger::Stage;
use crate::model::{Model, Phase};
use crate::order::{Order, Side, Taker};
use crate::theme::Theme;
use crate::view::View;

const SIZE: (u16, u16) = (94, 23);
const NOW: Duration = Duration::from_millis(9_600);

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn order(id: u32, item: &str) -> Order {
    Order { id, item: item.into() }
}

/// Order 31 was in the hands of B, which has just been killed; 29 waits for a retry; 17 is a dead letter.
fn moment() -> Model {
    let mut model = Model::new();
    let offer = |model: &mut Model, order: Order, due: Duration| {
        let id = order.id;
        model.apply(millis(0), Event::Offering { order, by: Side::Rust, due });
        model.apply(millis(0), Event::Became { id, stage: Stage::Stored });
    };
    let consumers = [Taker::Consumer(0), Taker::Consumer(1), Taker::Consumer(2)];
    (0..3).for_each(|number| model.apply(millis(0), Event::ConsumerStarted(number)));
    for id in 1..=28 {
        let due = millis(300 + 200 * u64::from(id));
        offer(&mut model, order(id, "green tea"), due);
        let (at, by) =
            (due + Duration::from_micros(1_100 + u64::from(id % 9) * 100), consumers[id as usize % 3]);
        model.apply(at, Event::Begun { id, by, attempt: 1 });
        model.apply(at, if id == 17 { Event::Failed { id } } else { Event::Done { id, by } });
    }
    let coming =
        [(38, "lemonade", 150), (41, "espresso", 610), (33, "water", 1_380), (40, "green tea", 1_900)];
    let later =
        [(36, "cappuccino", 2_770), (42, "lemonade", 3_640), (39, "espresso", 4_220), (43, "water", 5_610)];
    for (id, item, left) in coming.into_iter().chain(later) {
        offer(&mut model, order(id, item), NOW + millis(left));
    }
    model.apply(millis(7_000), Event::Rescheduled { id: 39, due: NOW + millis(4_220), sure: true });

    let mut in_flight = Vec::new();
    for (id, item, taker, attempt, left) in [
        (30, "espresso", 0, 2, 2_300),
        (31, "hot chocolate", 1, 1, 1_400),
        (32, "cappuccino", 2, 1, 2_800),
        (34, "lemonade", 0, 1, 2_600),
        (35, "green tea", 1, 1, 1_700),
    ] {
        let order = order(id, item);
        offer(&mut model, order.clone(), millis(8_900));
        model.apply(millis(8_901), Event::Begun { id, by: consumers[taker], attempt });
        in_flight.push(Unsettled { order, attempt, remaining: millis(left) });
    }
    let waiting = vec![
        Unsettled { order: order(29, "water"), attempt: 2, remaining: millis(700) },
        Unsettled { order: order(37, "espresso"), attempt: 3, remaining: millis(1_600) },
    ];
    let dead =
        vec![Dead { order: order(17, "green tea"), failed: 3, lost: 0, error: "the cup broke".into() }];
    let sizes = Sizes {
        timeout_set: 8,
        ordered_list: 8,
        in_flight: in_flight.len(),
        waiting: waiting.len(),
        dead: dead.len(),
        ..Sizes::default()
    };
    model.apply(NOW, Event::Queue(Queue { connected: true, sizes, in_flight, waiting, dead }));
    model.apply(NOW, Event::ConsumerGone { number: 1, killed: true });
    model.attended(NOW);
    model
}

fn drawn((width, height): (u16, u16), model: &Model) -> Buffer {
    let view =
        View { theme: Theme::coloured(), server: "localhost:6379".into(), queue: "demo".into(), java: false };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory");
    terminal.draw(|frame| view.draw(frame, model, Phase::Offering, NOW)).expect("it is drawn");
    terminal.backend().buffer().clone()
}

/// The size of a character, and the border around all of them.
const CELL: (usize, usize) = (9, 18);
const BORDER: usize = 14;
const GROUND: &str = "#16181d";

fn colour(cell: &Cell) -> &'static str {
    match cell.fg {
        Color::Green => "#7fd88f",
        Color::Yellow => "#e8c660",
        Color::Red => "#ff7b72",
        Color::Cyan => "#5fc7d8",
        _ if cell.modifier.contains(Modifier::DIM) => "#868c98",
        _ => "#dfe3ea",
    }
}

/// Lines and bars are drawn as shapes: characters of a font would leave gaps.
fn shape(symbol: &str, x: usize, y: usize) -> Option<String> {
    let (width, height) = CELL;
    let (middle, centre) = (x + width / 2, y + height / 2);
    let (right, bottom) = (x + width, y + height);
    Some(match symbol {
        "─" => format!("M{x} {centre}H{right}"),
        "│" => format!("M{middle} {y}V{bottom}"),
        "╭" => format!("M{middle} {bottom}V{}Q{middle} {centre} {right} {centre}", centre + 4),
        "╮" => format!("M{x} {centre}Q{middle} {centre} {middle} {}V{bottom}", centre + 4),
        "╰" => format!("M{middle} {y}V{}Q{middle} {centre} {right} {centre}", centre - 4),
        "╯" => format!("M{x} {centre}Q{middle} {centre} {middle} {}V{y}", centre - 4),
        _ => return None,
    })
}

fn svg(buffer: &Buffer) -> String {
    let (width, height) = (usize::from(buffer.area.width) * CELL.0, usize::from(buffer.area.height) * CELL.1);
    let (width, height) = (width + 2 * BORDER, height + 2 * BORDER);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" \
         font-size=\"15\">\n<rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"{GROUND}\"/>\n"
    );
    let mut lines = String::new();
    for (row, cells) in buffer.content.chunks(buffer.area.width.into()).enumerate() {
        let y = BORDER + row * CELL.1;
        let mut column = 0;
        while column < cells.len() {
            let first = &cells[column];
            let x = BORDER + column * CELL.0;
            if let Some(shape) = shape(first.symbol(), x, y) {
                lines += &shape;
                column += 1;
                continue;
            }
            let alike = |cell: &&Cell| {
                (cell.fg, cell.modifier) == (first.fg, first.modifier)
                    && shape(cell.symbol(), 0, 0).is_none()
                    && (cell.symbol() == "▇") == (first.symbol() == "▇")
            };
            let run: Vec<_> = cells[column..].iter().take_while(alike).collect();
            column += run.len();
            let length = run.len() * CELL.0;
            let reversed = first.modifier.contains(Modifier::REVERSED);
            let fill = if reversed { GROUND } else { colour(first) };
            let text: String = run.iter().map(|cell| cell.symbol()).collect();
            if text.starts_with('▇') {
                let (y, height) = (y + 4, CELL.1 - 7);
                let _ = writeln!(
                    svg,
                    r#"<rect x="{x}" y="{y}" width="{length}" height="{height}" fill="{fill}"/>"#
                );
                continue;
            }
            if reversed {
                let (height, ground) = (CELL.1, colour(first));
                let _ = writeln!(
                    svg,
                    r#"<rect x="{x}" y="{y}" width="{length}" height="{height}" fill="{ground}"/>"#
                );
            }
            if text.trim().is_empty() {
                continue;
            }
            // Without the blanks around, since their widths differ between fonts.
            let blanks = text.chars().take_while(|char| *char == ' ').count();
            let text = text.trim();
            let (x, length) = (x + blanks * CELL.0, text.chars().count() * CELL.0);
            let weight = if first.modifier.contains(Modifier::BOLD) { r#" font-weight="bold""# } else { "" };
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(
                svg,
                r#"<text x="{x}" y="{}" textLength="{length}" fill="{fill}"{weight} xml:space="preserve">{text}</text>"#,
                y + 14,
            );
        }
    }
    svg + &format!("<path d=\"{lines}\" fill=\"none\" stroke=\"#59606c\"/>\n</svg>\n")
}

#[test]
fn the_picture_of_the_readme_is_what_is_drawn() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo.svg");
    let svg = svg(&drawn(SIZE, &moment()));
    if std::env::var_os("REDELAY_BLESS").is_some() {
        fs::write(&path, &svg).expect("it is written");
    }
    assert!(fs::read_to_string(path).is_ok_and(|written| written == svg), "REDELAY_BLESS=1 writes demo.svg");
}

/// What a person must find within seconds, at every usual size.
#[test]
fn each_size_shows_what_happens() {
    for size in [(120, 40), (80, 24), (46, 24)] {
        let buffer = drawn(size, &moment());
        let rows: Vec<String> =
            buffer.content.chunks(size.0.into()).map(|row| row.iter().map(Cell::symbol).collect()).collect();
        let shown = rows.join("\n");
        for text in [
            "lost 0, handled twice 0",
            "Try to lose",
            "pending: 8",
            "in flight, attempt, lease: 5",
            "A  2nd  2.3 s ▇",
            "B† 1st  1.4 s ▇",
            "waiting for a retry: 2",
            "2nd in 0.7 s ▇",
            "dead letters: 1",
            "3 failed",
            "B killed",
            "kill -9: B held 2; others get them in 3 s",
            " k kill",
            "  f fail",
        ] {
            assert!(shown.contains(text), "{size:?} does not show `{text}`:\n{shown}");
        }
        let mut model = moment();
        model.dead_letters_only = true;
        let buffer = drawn(size, &model);
        let shown: String = buffer.content.iter().map(Cell::symbol).collect();
        assert!(shown.contains("3 failed: the cup broke") && !shown.contains("pending: 8"), "{size:?}");
    }
}
