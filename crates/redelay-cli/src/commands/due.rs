//! `redelay due`.

use std::time::{Duration, SystemTime};

use redelay::inspector::DueCount;
use serde::Serialize;

use crate::connect::Session;
use crate::failure::Failure;
use crate::human;
use crate::out::Out;
use crate::queue::Name;

/// The longest bar.
const BAR: usize = 40;
/// What is in front of a bar.
const FRONT: usize = 24;

/// A span of time as a document.
#[derive(Serialize)]
struct Span {
    #[serde(flatten)]
    name: Name,
    /// Its end; `null` for what is due later than all spans. The first one is what is due already.
    until: Option<String>,
    count: u64,
}

pub(crate) async fn run(
    session: &Session,
    name: &[u8],
    step: Duration,
    count: usize,
    out: &Out,
) -> Result<(), Failure> {
    session.servers(out).await?;
    session.queue(name).await?;
    let spans = session.inspector.due(session.name(name), step, count).await?;
    if out.is_json {
        let until = |at: SystemTime| human::rfc_3339(at);
        return spans.iter().try_for_each(|span| {
            out.json(&Span { name: Name::new(name), until: span.until.and_then(until), count: span.count })
        });
    }
    lines(&spans, step, out.width).iter().try_for_each(|line| out.line(line))
}

/// The lines for people: how long from now on, how many, and a bar.
fn lines(spans: &[DueCount], step: Duration, width: Option<usize>) -> Vec<String> {
    let longest = width.map_or(BAR, |width| width.saturating_sub(FRONT).min(BAR));
    let within = spans.iter().filter(|span| span.until.is_some());
    let most = within.map(|span| span.count).max().unwrap_or(0).max(1);
    let line = |(at, span): (usize, &DueCount)| {
        let (label, bar) = match (at, span.until) {
            (_, None) => ("later".to_owned(), 0),
            (0, _) => ("now".to_owned(), span.count),
            (at, _) => (human::span(step.saturating_mul(u32::try_from(at).unwrap_or(u32::MAX))), span.count),
        };
        let bar = "█".repeat((bar * longest as u64).div_ceil(most) as usize);
        format!("{label:>10}  {:>10} {bar}", human::count(span.count)).trim_end().to_owned()
    };
    // What is due already is worth a line only if there is something.
    spans.iter().enumerate().filter(|(at, span)| *at > 0 || span.count > 0).map(line).collect()
}
