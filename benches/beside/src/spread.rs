//! What is said of the values of several rounds, or of many messages.

use serde::{Deserialize, Serialize};

/// Which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Better {
    More,
    Less,
}

/// Median, minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// Median, minimum and maximum. The median of an even number of values is the mean of the two in the middle.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>) -> Spread {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else {
        return Spread { median: f64::NAN, least: f64::NAN, most: f64::NAN };
    };
    let middle = values.len() / 2;
    let median =
        if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
    Spread { median, least: *least, most: *most }
}

/// The quantile of sorted values, by nearest rank.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.max(1) - 1).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(spread([3.0, 1.0, 2.0]), Spread { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(spread([4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert!(spread([]).median.is_nan());
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        let found = [0.0, 0.5, 0.99, 0.999, 1.0].map(|part| quantile(&values, part));
        assert_eq!(found, [1.0, 500.0, 990.0, 999.0, 1000.0]);
    }
}
