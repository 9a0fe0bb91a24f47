//! The plots, in SVG.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::results::{Line, Plot};
use crate::worker::System;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SIZE: (u32, u32) = (860, 500);
/// Colours that people with colour blindness can distinguish.
const REDELAY: RGBColor = RGBColor(0, 114, 178);
const REDISSON: RGBColor = RGBColor(213, 94, 0);
const BULLMQ: RGBColor = RGBColor(0, 158, 115);
const ASYNQ: RGBColor = RGBColor(204, 121, 167);
const OTHER: RGBColor = RGBColor(110, 110, 110);

pub(crate) fn draw(plot: &Plot, folder: &Path) -> Result<()> {
    let file = folder.join(&plot.file);
    let area = SVGBackend::new(&file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let points = || plot.lines.iter().flat_map(|line| line.points.iter().copied());
    let x = range(points().map(|point| point.0), plot.x.log);
    let y = range(points().map(|point| point.1), plot.y.log);
    match (plot.x.log, plot.y.log) {
        (true, true) => lines(plot, &area, x.log_scale(), y.log_scale())?,
        (true, false) => lines(plot, &area, x.log_scale(), y)?,
        (false, true) => lines(plot, &area, x, y.log_scale())?,
        (false, false) => lines(plot, &area, x, y)?,
    }
    area.present()?;
    Ok(())
}

fn lines<X, Y>(plot: &Plot, area: &Area, x: X, y: Y) -> Result<()>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .caption(&plot.title, ("sans-serif", 20))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(78)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .light_line_style(BLACK.mix(0.05))
        .x_desc(&plot.x.name)
        .y_desc(&plot.y.name)
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    for (number, line) in plot.lines.iter().enumerate() {
        let earlier = plot.lines[..number].iter().filter(|earlier| earlier.system == line.system).count();
        let style = style(line, earlier);
        let points = line.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite());
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(&line.label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        if line.points.len() <= 10 {
            let marks = line.points.iter().map(|point| Circle::new(*point, 3, style.filled()));
            chart.draw_series(marks)?;
        }
    }
    chart
        .configure_series_labels()
        .position(if falls(plot) { SeriesLabelPosition::LowerLeft } else { SeriesLabelPosition::LowerRight })
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(())
}

/// Whether the lines end low, where they would cross the legend.
fn falls(plot: &Plot) -> bool {
    let fall = |line: &Line| Some(line.points.last()?.1 - line.points.first()?.1);
    plot.lines.iter().filter_map(fall).sum::<f64>() < 0.0
}

/// One colour for each system. Further lines of the same system are paler.
fn style(line: &Line, earlier: usize) -> ShapeStyle {
    let colour = match line.system {
        Some(System::Redelay) => REDELAY,
        Some(System::Redisson) => REDISSON,
        Some(System::BullMq) => BULLMQ,
        Some(System::Asynq) => ASYNQ,
        None => OTHER,
    };
    colour.mix([1.0, 0.55, 0.3][earlier.min(2)]).stroke_width(2)
}

fn range(values: impl Iterator<Item = f64>, log: bool) -> Range<f64> {
    let values = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
    let (least, most) =
        values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    match (least > most, log) {
        (true, _) => 1.0..10.0,
        (false, true) => least / 1.3..most * 1.3,
        (false, false) => 0.0..most * 1.05,
    }
}

fn label(value: &f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{}M", value / 1e6),
        size if size >= 1e3 => format!("{}k", value / 1e3),
        _ => format!("{}", (value * 1e3).round() / 1e3),
    }
}
