//! The plots, in SVG: one for light pages and one for dark ones.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use crate::results::{Axis, Line, Plot};
use crate::system::System;

/// Twice as wide as high. GitHub shows it at this width, so the text has the size of the page's.
const SIZE: (f64, f64) = (860.0, 430.0);
const LEFT: f64 = 62.0;
/// The labels of the lines are there.
const RIGHT: f64 = 640.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = 376.0;
/// The width of the zone of messages that are early.
const EARLY: f64 = 84.0;
/// The distance of labels of one line and of two.
const STEPS: [f64; 2] = [19.0, 35.0];
/// The most characters of a label of one line.
const WIDTH: usize = 14;
/// Lines with more points have no marks.
const MARKS: usize = 10;
/// Of the second and the third line of a system.
const DASHES: [&str; 3] = ["", " stroke-dasharray='7 4'", " stroke-dasharray='2 3'"];

struct Theme {
    suffix: &'static str,
    ground: &'static str,
    text: &'static str,
    faint: &'static str,
    grid: &'static str,
    /// Colours that people with colour blindness can distinguish: redelay, Redisson, BullMQ, asynq,
    /// apalis-redis, others.
    systems: [&'static str; 6],
}

const LIGHT: Theme = Theme {
    suffix: "",
    ground: "#ffffff",
    text: "#1f2328",
    faint: "#59636e",
    grid: "#e4e8ec",
    systems: ["#0072b2", "#d55e00", "#009e73", "#b5548c", "#b38600", "#6e6e6e"],
};
const DARK: Theme = Theme {
    suffix: "-dark",
    ground: "#0d1117",
    text: "#e6edf3",
    faint: "#9198a1",
    grid: "#272d36",
    systems: ["#56b4e9", "#ff8f4a", "#2fc79a", "#e39cc5", "#f0c84b", "#a8adb3"],
};

pub(crate) fn draw(plot: &Plot, folder: &Path) -> io::Result<()> {
    for theme in [LIGHT, DARK] {
        fs::write(folder.join(file(plot, theme.suffix)), svg(plot, &theme))?;
    }
    Ok(())
}

/// A plot in a page, for readers of either theme.
pub(crate) fn picture(plot: &Plot) -> String {
    let dark = file(plot, DARK.suffix);
    format!(
        "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"{dark}\"><img alt=\"{}\" src=\"{}\"></picture>",
        plot.title, plot.file
    )
}

fn file(plot: &Plot, suffix: &str) -> String {
    plot.file.replace(".svg", &format!("{suffix}.svg"))
}

/// From values to pixels.
struct Scale {
    log: bool,
    values: (f64, f64),
    pixels: (f64, f64),
    /// Values below are in the zone beside the scale.
    early: Option<f64>,
}

impl Scale {
    fn new(axis: &Axis, values: impl Iterator<Item = f64>, (mut from, to): (f64, f64)) -> Self {
        let is_drawn = |value: &f64| {
            value.is_finite() && axis.early.map_or(!axis.log || *value > 0.0, |early| *value > early)
        };
        let (least, most) = values
            .filter(is_drawn)
            .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
        if axis.early.is_some() {
            from += EARLY;
        }
        let values = match (least > most, axis.log) {
            (true, _) => (1.0, 10.0),
            (false, true) => (axis.early.unwrap_or(least / 1.25), most * 1.25),
            (false, false) => (0.0, most * 1.04),
        };
        Self { log: axis.log, values, pixels: (from, to), early: axis.early }
    }

    fn at(&self, value: f64) -> f64 {
        match self.early {
            Some(early) if value <= early => self.pixels.0 - EARLY / 2.0,
            _ => self.on_scale(value),
        }
    }

    fn on_scale(&self, value: f64) -> f64 {
        let (from, to) = self.pixels;
        let place = |value: f64| if self.log { value.ln() } else { value };
        let (least, most) = (place(self.values.0), place(self.values.1));
        from + (to - from) * (place(value) - least) / (most - least)
    }

    /// Multiples of 1, 2 and 5, or of 1 if there are too many.
    fn ticks(&self) -> Vec<f64> {
        let (least, most) = self.values;
        if self.log {
            let powers = least.log10().floor() as i32..=most.log10().ceil() as i32;
            let all = |digits: &[i32]| {
                let ticks =
                    powers.clone().flat_map(|power| digits.iter().map(move |digit| scaled(*digit, power)));
                ticks.filter(|tick| (least..=most).contains(tick)).collect::<Vec<_>>()
            };
            let ticks = all(&[1, 2, 5]);
            return if ticks.len() > 13 { all(&[1]) } else { ticks };
        }
        let power = most.log10().floor() as i32;
        let steps = (power - 1..=power).flat_map(|power| [1, 2, 5].map(|digit| scaled(digit, power)));
        let step = steps.into_iter().find(|step| most / step <= 7.0).unwrap_or(most);
        (0..).map(|n| f64::from(n) * step).take_while(|tick| *tick <= most).collect()
    }
}

/// Exact for positive powers, too.
fn scaled(digit: i32, power: i32) -> f64 {
    format!("{digit}e{power}").parse().expect("a number")
}

fn svg(plot: &Plot, theme: &Theme) -> String {
    let points = || plot.lines.iter().flat_map(|line| line.points.iter().copied());
    let x = Scale::new(&plot.x, points().map(|point| point.0), (LEFT, RIGHT));
    let y = Scale::new(&plot.y, points().map(|point| point.1), (BOTTOM, TOP));
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}' \
         font-family='-apple-system,Segoe UI,Helvetica,Arial,sans-serif' font-size='13' fill='{2}'>\n\
         <rect width='{0}' height='{1}' rx='6' fill='{3}'/>\n",
        SIZE.0, SIZE.1, theme.text, theme.ground
    );
    let _ =
        writeln!(svg, "<text x='18' y='27' font-size='16' font-weight='600'>{}</text>", escaped(&plot.title));
    let _ = writeln!(
        svg,
        "<text x='18' y='48' fill='{}'>{}; {}</text>",
        theme.faint,
        escaped(&plot.y.name),
        better(plot)
    );
    grid(&mut svg, plot, &x, &y, theme);
    for (number, line) in plot.lines.iter().enumerate() {
        draw_line(&mut svg, line, earlier(plot, number), &x, &y, theme);
    }
    labels(&mut svg, plot, &x, &y, theme);
    svg + "</svg>\n"
}

fn grid(svg: &mut String, plot: &Plot, x: &Scale, y: &Scale, theme: &Theme) {
    let Theme { faint, grid, .. } = theme;
    if plot.x.early.is_some() {
        let height = BOTTOM - TOP;
        let middle = LEFT + EARLY / 2.0;
        let _ = writeln!(svg, "<rect x='{LEFT}' y='{TOP}' width='{EARLY}' height='{height}' fill='{grid}'/>");
        let _ = writeln!(
            svg,
            "<text x='{middle}' y='{}' text-anchor='middle' fill='{faint}'>early</text>",
            BOTTOM + 19.0
        );
    }
    for tick in y.ticks() {
        let at = y.at(tick);
        let _ = writeln!(svg, "<path d='M{LEFT} {at:.1}H{RIGHT}' stroke='{grid}'/>");
        let _ = writeln!(
            svg,
            "<text x='{}' y='{:.1}' text-anchor='end' fill='{faint}'>{}</text>",
            LEFT - 8.0,
            at + 4.5,
            number(tick)
        );
    }
    for tick in x.ticks() {
        let at = x.on_scale(tick);
        let _ = writeln!(svg, "<path d='M{at:.1} {BOTTOM}v5' stroke='{faint}'/>");
        let _ = writeln!(
            svg,
            "<text x='{at:.1}' y='{}' text-anchor='middle' fill='{faint}'>{}</text>",
            BOTTOM + 19.0,
            number(tick)
        );
    }
    let _ = writeln!(svg, "<path d='M{LEFT} {BOTTOM}H{RIGHT}' stroke='{faint}'/>");
    let _ = writeln!(
        svg,
        "<text x='{}' y='{}' text-anchor='middle' fill='{faint}'>{}</text>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 41.0,
        escaped(&plot.x.name)
    );
}

fn draw_line(svg: &mut String, line: &Line, earlier: usize, x: &Scale, y: &Scale, theme: &Theme) {
    let (colour, dash) = (colour(line, theme), DASHES[earlier.min(2)]);
    let points = line.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    let points: Vec<_> = points.map(|point| (x.at(point.0), y.at(point.1))).collect();
    let mut path = String::new();
    for (n, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{x:.1} {y:.1}", if n == 0 { 'M' } else { 'L' });
    }
    let _ = writeln!(
        svg,
        "<path d='{path}' fill='none' stroke='{colour}' stroke-width='2.2' stroke-linejoin='round'{dash}/>"
    );
    if points.len() <= MARKS {
        for (x, y) in points {
            let _ = writeln!(svg, "<circle cx='{x:.1}' cy='{y:.1}' r='3.2' fill='{colour}'/>");
        }
    }
}

/// The name of each line at its end, with its last value. Where ends are close, the labels are moved apart.
fn labels(svg: &mut String, plot: &Plot, x: &Scale, y: &Scale, theme: &Theme) {
    let ends = plot.lines.iter().enumerate();
    let mut ends: Vec<_> = ends.filter_map(|(number, line)| Some((number, *line.points.last()?))).collect();
    ends.sort_by(|(_, a), (_, b)| b.1.total_cmp(&a.1).then(a.0.total_cmp(&b.0)));
    let all_equal = ends.windows(2).all(|pair| pair[0].1.1 == pair[1].1.1);
    let is_long = plot.lines.iter().any(|line| parts(&line.label).1.is_some());
    let wanted: Vec<_> = ends.iter().map(|(_, end)| y.at(end.1)).collect();
    let places = apart(&wanted, STEPS[usize::from(is_long)]);
    for ((number, end), place) in ends.iter().zip(places) {
        let line = &plot.lines[*number];
        let (colour, dash) = (colour(line, theme), DASHES[earlier(plot, *number).min(2)]);
        let (from, to) = ((x.at(end.0), y.at(end.1)), RIGHT + 16.0);
        if !all_equal {
            let _ = writeln!(
                svg,
                "<path d='M{:.1} {:.1}L{to} {place:.1}' stroke='{colour}' stroke-width='0.8' opacity='0.6' fill='none'/>",
                from.0 + 5.0,
                from.1
            );
        }
        let _ = writeln!(
            svg,
            "<path d='M{to} {place:.1}h22' stroke='{colour}' stroke-width='2.2' fill='none'{dash}/>"
        );
        let value = if all_equal { String::new() } else { rounded(end.1) };
        let (x, y) = (to + 27.0, place + 4.5);
        let (name, rest) = parts(&line.label);
        let _ = writeln!(
            svg,
            "<text x='{x}' y='{y:.1}' fill='{colour}'>{}<tspan dx='6' font-weight='600'>{value}</tspan></text>",
            escaped(name)
        );
        if let Some(rest) = rest {
            let (y, faint) = (y + 15.0, theme.faint);
            let _ = writeln!(
                svg,
                "<text x='{x}' y='{y:.1}' font-size='12' fill='{faint}'>{}</text>",
                escaped(rest)
            );
        }
    }
}

/// Places from top to bottom that are a step apart, near those that are wanted.
fn apart(wanted: &[f64], step: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::new();
    for wanted in wanted {
        places.push(places.last().map_or(*wanted, |last| wanted.max(last + step)).max(TOP));
    }
    let mut limit = BOTTOM;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - step;
    }
    places
}

/// How many lines of the same system are before this one.
fn earlier(plot: &Plot, number: usize) -> usize {
    plot.lines[..number].iter().filter(|earlier| earlier.system == plot.lines[number].system).count()
}

fn colour(line: &Line, theme: &Theme) -> &'static str {
    theme.systems[match line.system {
        Some(System::Redelay) => 0,
        Some(System::Redisson) => 1,
        Some(System::BullMq) => 2,
        Some(System::Asynq) => 3,
        Some(System::Apalis) => 4,
        None => 5,
    }]
}

/// Rates are to be high, and costs low.
fn better(plot: &Plot) -> &'static str {
    match () {
        () if plot.x.early.is_some() => "nearer to the left is better, but early is wrong",
        () if plot.y.name.contains("/s") => "higher is better",
        () => "lower is better",
    }
}

/// A label in one line or two.
fn parts(label: &str) -> (&str, Option<&str>) {
    match label.split_once(", ") {
        Some((name, rest)) if label.len() > WIDTH => (name, Some(rest)),
        _ => (label, None),
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{}M", value / 1e6),
        size if size >= 1e3 => format!("{}k", value / 1e3),
        _ => format!("{}", (value * 1e3).round() / 1e3),
    }
}

/// Two digits.
fn rounded(value: f64) -> String {
    let power = value.abs().max(1e-9).log10().floor() as i32 - 1;
    let unit = scaled(1, power);
    number((value / unit).round() * unit)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(log: bool) -> Axis {
        Axis { name: "takes/s".into(), log, early: None }
    }

    #[test]
    fn ticks_are_multiples_of_one_two_and_five() {
        let ticks = |log, values: [f64; 2]| Scale::new(&axis(log), values.into_iter(), (0.0, 100.0)).ticks();
        assert_eq!(ticks(true, [1e3, 1e5]), [1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5]);
        assert_eq!(ticks(true, [0.3, 2.0]), [0.5, 1.0, 2.0]);
        assert_eq!(ticks(true, [1.0, 1e6]), [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!(ticks(false, [0.0, 100.0]), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(false, [0.0, 160_000.0]), [0.0, 5e4, 1e5, 1.5e5]);
    }

    #[test]
    fn labels_are_apart_and_inside() {
        let places = apart(&[100.0, 101.0, 370.0, 374.0, 376.0], 19.0);
        assert_eq!(places, [100.0, 119.0, 338.0, 357.0, 376.0]);
    }

    #[test]
    fn early_messages_have_a_zone() {
        let early = Axis { early: Some(0.1), ..axis(true) };
        let scale = Scale::new(&early, [-3.0, 0.1, 1.0, 100.0].into_iter(), (0.0, 600.0));
        assert_eq!([-3.0, 0.0, 0.1].map(|value| scale.at(value)), [EARLY / 2.0; 3]);
        assert!(scale.at(0.100_001) >= EARLY);
        assert!(scale.ticks().iter().all(|tick| scale.on_scale(*tick) >= EARLY));
    }

    #[test]
    fn two_digits_of_a_value() {
        assert_eq!([141_234.0, 53.24, 0.1649, 2.0].map(rounded), ["140k", "53", "0.16", "2"]);
    }
}
