//! What was measured between two looks at a histogram. Pure.

use std::time::Duration;

use redelay::stats::{HandlingStats, Histogram};

/// Times, in seconds, that stand for what was measured, and how many each of them stands for. Each is in the
/// bucket in which it was counted, and together they are as long as what was measured.
pub(crate) fn times(before: &Histogram, after: &Histogram) -> Vec<(f64, u64)> {
    let bounds: Vec<_> = Histogram::BOUNDS.iter().map(Duration::as_secs_f64).collect();
    let counts = after.counts.iter().zip(&before.counts).map(|(after, before)| after.saturating_sub(*before));
    let counts: Vec<u64> = counts.collect();
    let sum = after.sum.saturating_sub(before.sum).as_secs_f64();
    let low = |bucket: usize| if bucket == 0 { 0.0 } else { bounds[bucket - 1] };
    let sum_of = |time: &dyn Fn(usize) -> f64| -> f64 {
        counts.iter().enumerate().map(|(bucket, count)| *count as f64 * time(bucket)).sum()
    };
    // The last bucket has no bound. What is longer than the middle of the others is in it.
    let long = counts[bounds.len()];
    let middle = |bucket: usize| bounds.get(bucket).map_or(low(bucket), |high| (low(bucket) + high) / 2.0);
    let longest = match long {
        0 => 0.0,
        long => low(bounds.len()) + (sum - sum_of(&middle)).max(0.0) / long as f64,
    };
    // All others are as far from the lower bounds of their buckets, as a share of their widths.
    let widths = sum_of(&|bucket| bounds.get(bucket).map_or(0.0, |high| high - low(bucket)));
    let share = if long > 0 || widths == 0.0 { 0.5 } else { ((sum - sum_of(&low)) / widths).clamp(0.0, 1.0) };
    let time = |bucket: usize| match bounds.get(bucket) {
        Some(high) => (low(bucket) + share * (high - low(bucket))).min(*high),
        None => longest,
    };
    counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(bucket, count)| (time(bucket), *count))
        .collect()
}

/// The histograms of what became of deliveries, with their names.
pub(crate) fn outcomes(handling: &HandlingStats) -> [(&'static str, &Histogram); 5] {
    [
        ("acknowledged", &handling.acknowledged),
        ("failed", &handling.failed),
        ("snoozed", &handling.snoozed),
        ("released", &handling.released),
        ("rejected", &handling.rejected),
    ]
}

/// A time that may not be, in seconds: zero, if it is not.
pub(crate) fn seconds(time: Option<Duration>) -> f64 {
    time.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(times: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for millis in times {
            let time = Duration::from_millis(*millis);
            histogram.counts[Histogram::BOUNDS.partition_point(|bound| *bound < time)] += 1;
            histogram.sum += time;
        }
        histogram
    }

    #[test]
    fn times_are_in_their_buckets_and_add_up() {
        for (before, more) in [
            (&[][..], &[3][..]),
            (&[1, 30_000], &[5, 5, 5]),
            (&[7], &[1, 6, 30, 400, 9_999, 10_000]),
            (&[], &[1, 6, 30, 400, 12_000, 90_000]),
            (&[], &[20_000]),
            (&[3, 4], &[]),
        ] {
            let all: Vec<u64> = before.iter().chain(more).copied().collect();
            let times = times(&histogram(before), &histogram(&all));
            let mut counts = vec![0; Histogram::BOUNDS.len() + 1];
            for (time, count) in &times {
                let bucket = Histogram::BOUNDS.partition_point(|bound| bound.as_secs_f64() < *time);
                counts[bucket] += count;
            }
            assert_eq!(counts, histogram(more).counts, "{more:?}: {times:?}");
            let sum: f64 = times.iter().map(|(time, count)| time * *count as f64).sum();
            let expected = histogram(more).sum.as_secs_f64();
            assert!((sum - expected).abs() < 1e-6, "{more:?}: {times:?}");
        }
    }
}
