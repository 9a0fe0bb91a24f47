//! The tables, for people: Markdown.

use std::fmt::Write;
use std::path::Path;

use crate::redisson::Settings;
use crate::results::{Better, Goal, Results, Row, Spread, Table};
use crate::tuning::Tuning;
use crate::worker::System;

/// `folder` is where the report will be; what a person has written about it is in its `notes.md`.
pub(crate) fn markdown(results: &Results, folder: &Path) -> String {
    let mut text = String::from("# redelay beside Redisson\n\n");
    text += "Made by `make bench`; nobody has edited it. Each cell is the median of all rounds, with the least and the \
             most of them. The ratio is how many times better redelay was, from within each round.\n\n";
    machine(results, &mut text);
    if folder.join("notes.md").exists() {
        text += "\nWhat is behind the numbers, and why a goal is missed: [notes.md](notes.md).\n";
    }
    goals(results, &mut text);
    tuning(results, &mut text);
    for plot in &results.plots {
        write!(text, "\n![{}]({})\n", plot.title, plot.file).expect("a string");
    }
    results.tables.iter().for_each(|table| self::table(table, &mut text));
    text
}

fn machine(results: &Results, text: &mut String) {
    let machine = &results.machine;
    let rows = [
        ("command", &format!("`{}`", machine.command)),
        ("effort", &machine.effort),
        ("date", &machine.date),
        ("commit", &machine.commit),
        ("processor", &format!("{}, {} cores", machine.processor, machine.cores)),
        ("memory", &machine.memory),
        ("system", &machine.system),
        ("server", &machine.server),
        ("Rust", &machine.rust),
        ("Java", &machine.java),
        ("Redisson", &machine.redisson),
    ];
    *text += "| | |\n|---|---|\n";
    for (name, value) in rows {
        writeln!(text, "| {name} | {value} |").expect("a string");
    }
}

fn tuning(results: &Results, text: &mut String) {
    let Tuning { best, worker_threads, redisson } = &results.tuning;
    let chosen = |is: bool| if is { "chosen" } else { "" };
    *text += "\n## Settings\n\nThose with which each system offered the most, with 64 in flight, before anything was measured. \
              redelay has one connection for all commands, and its defaults; what a service chooses is how many threads Tokio has. \
              Redisson has a pool, and connections for its takers besides.\n\n";
    *text += "| redelay: Tokio's worker threads | offers/s | |\n|---|---|---|\n";
    for (threads, offers) in worker_threads {
        let chosen = chosen(*threads == best.worker_threads);
        writeln!(text, "| {threads} | {} | {chosen} |", number(*offers)).expect("a string");
    }
    *text += "\n| Redisson: `connectionPoolSize` | `nettyThreads` | offers/s | |\n|---|---|---|---|\n";
    for (settings, offers) in redisson {
        let Settings { connections, netty_threads } = settings;
        let chosen = chosen(*settings == best.redisson);
        writeln!(text, "| {connections} | {netty_threads} | {} | {chosen} |", number(*offers))
            .expect("a string");
    }
}

fn goals(results: &Results, text: &mut String) {
    let rows = results.tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let mut lines = String::new();
    for (table, row) in rows {
        for goal in &row.goals {
            let (reached, enough) = row.reached(*goal);
            let wanted = match goal {
                Goal::Ratio(least) => format!("at least {} × Redisson", number(*least)),
                Goal::OfLimit(least) => format!("at least {} of the limit", number(*least)),
                Goal::AtMost(most) => format!("at most {}", number(*most)),
            };
            let verdict = if enough { "reached" } else { "**missed**" };
            writeln!(lines, "| {}: {} | {wanted} | {} | {verdict} |", table.name, row.what, number(reached))
                .expect("a string");
        }
    }
    if !lines.is_empty() {
        write!(text, "\n## Goals\n\n| what | goal | median | |\n|---|---|---|---|\n{lines}")
            .expect("a string");
    }
}

fn table(table: &Table, text: &mut String) {
    let limits = table.rows.iter().any(|row| !row.limit.is_empty());
    let limit = if limits { " limit |" } else { "" };
    write!(text, "\n## {}\n\n{}\n\n", table.name, table.about).expect("a string");
    writeln!(text, "| | redelay | Redisson | ratio |{limit} unit |").expect("a string");
    writeln!(text, "|---|---|---|---|{}---|", if limits { "---|" } else { "" }).expect("a string");
    for row in &table.rows {
        let [redelay, redisson] = System::BOTH.map(|system| shown(row.of(system)));
        let note = if row.note.is_empty() { String::new() } else { format!("; {}", row.note) };
        let limit = match (limits, row.limit.is_empty()) {
            (false, _) => String::new(),
            (true, true) => " |".to_owned(),
            (true, false) => format!(" {} |", shown(crate::results::spread(row.limit.iter().copied()))),
        };
        let ratio = ratio(row);
        writeln!(text, "| {} | {redelay} | {redisson} | {ratio} |{limit} {}{note} |", row.what, row.unit)
            .expect("a string");
    }
}

/// Says so in words where redelay was worse.
pub(crate) fn ratio(row: &Row) -> String {
    let ratio = row.ratio();
    let worse = match row.better {
        _ if ratio.median >= 1.0 || ratio.median.is_nan() => "",
        Better::More => " **slower**",
        Better::Less => " **worse**",
    };
    format!("{}{worse}", shown(ratio))
}

fn shown(spread: Spread) -> String {
    let Spread { median, least, most } = spread;
    if least == most || median.is_nan() {
        number(median)
    } else {
        format!("{} ({}–{})", number(median), number(least), number(most))
    }
}

/// Three digits that count, and a comma at each thousand.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "–".to_owned();
    }
    if value.is_infinite() {
        return "∞".to_owned();
    }
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    if digits > 0 {
        // From one on, no more than two behind the point; trailing zeros say nothing.
        let text = format!("{value:.*}", (digits as usize).min(6));
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let unit = 10_f64.powi(-digits);
    let whole = format!("{:.0}", (value / unit).round() * unit);
    let mut text = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::Sides;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let shown =
            [0.0, 0.004_321, 0.5, 1.0, 2.345, 98.76, 987.6, 23_456.0, 1_000_000.0, -1_234.0].map(number);
        let wanted = ["0", "0.00432", "0.5", "1", "2.35", "98.8", "988", "23,500", "1,000,000", "-1,230"];
        assert_eq!(shown, wanted);
        assert_eq!([f64::NAN, f64::INFINITY].map(number), ["–", "∞"]);
    }

    #[test]
    fn a_slower_redelay_is_called_slower() {
        let row = |better| Row::new("what", "unit", better, vec![Sides { redelay: 50.0, redisson: 100.0 }]);
        assert_eq!(ratio(&row(Better::More)), "0.5 **slower**");
        assert_eq!(ratio(&row(Better::Less)), "2");
    }
}
