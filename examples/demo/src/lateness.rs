//! How late orders arrive: percentiles and a histogram.

use std::time::Duration;

/// Upper bounds of the histogram's rows in milliseconds; the last row has none.
const BOUNDS: [f64; 5] = [1.0, 2.0, 5.0, 20.0, 100.0];

/// What the rows of [`Lateness::histogram`] are called.
pub(crate) const LABELS: [&str; BOUNDS.len() + 1] = ["< 1 ms", "< 2", "< 5", "< 20", "< 100", "more"];

/// All that were measured, in milliseconds, ascending.
#[derive(Debug, Default)]
pub(crate) struct Lateness(Vec<f64>);

impl Lateness {
    pub(crate) fn add(&mut self, late: Duration) {
        let late = millis(late);
        let at = self.0.partition_point(|other| *other <= late);
        self.0.insert(at, late);
    }

    /// The value that this share of all does not exceed; none before the first.
    pub(crate) fn percentile(&self, share: f64) -> Option<f64> {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied()
    }

    /// How many are in each row.
    pub(crate) fn histogram(&self) -> [usize; LABELS.len()] {
        let mut rows = [0; LABELS.len()];
        for late in &self.0 {
            rows[BOUNDS.iter().position(|bound| late < bound).unwrap_or(BOUNDS.len())] += 1;
        }
        rows
    }

    /// `p50 1.2, p99 3.4, max 5.6 ms`
    pub(crate) fn line(&self) -> String {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| match self.percentile(share) {
            Some(value) => format!("{value:.1}"),
            None => "–".to_owned(),
        });
        format!("p50 {p50}, p99 {p99}, max {max} ms")
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(micros: impl IntoIterator<Item = u64>) -> Lateness {
        let mut lateness = Lateness::default();
        micros.into_iter().for_each(|late| lateness.add(Duration::from_micros(late)));
        lateness
    }

    #[test]
    fn percentiles_by_rank() {
        let lateness = of((1..=200).rev().map(|n| n * 1000));
        assert_eq!(lateness.percentile(0.5), Some(100.0));
        assert_eq!(lateness.percentile(0.99), Some(198.0));
        assert_eq!(lateness.percentile(1.0), Some(200.0));
        assert_eq!(lateness.line(), "p50 100.0, p99 198.0, max 200.0 ms");
    }

    #[test]
    fn nothing_measured_yet() {
        assert_eq!(Lateness::default().percentile(0.5), None);
        assert_eq!(Lateness::default().line(), "p50 –, p99 –, max – ms");
    }

    #[test]
    fn a_bound_belongs_to_the_row_above_it() {
        assert_eq!(of([0, 999, 1_000, 4_999, 5_000, 99_999, 100_000]).histogram(), [2, 1, 1, 1, 1, 1]);
    }
}
