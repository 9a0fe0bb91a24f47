//! The results, as they are written to `results.json`. The tables and the plots are made from them alone.

use serde::{Deserialize, Serialize};

use crate::contest::Contest;
use crate::machine::Machine;
use crate::peers::Peers;
use crate::repeat::Repeat;
use crate::tuning::Tuning;
use crate::worker::{Sides, System};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// Results of older versions have none.
    #[serde(default)]
    pub(crate) peers: Peers,
    pub(crate) tuning: Tuning,
    /// The turns in which a system failed. Results of older versions have none.
    #[serde(default)]
    pub(crate) repeated: Vec<Repeat>,
    /// The measurements that failed. Nothing of them is here.
    #[serde(default)]
    pub(crate) failed: Vec<String>,
    pub(crate) tables: Vec<Table>,
    #[serde(default)]
    pub(crate) contests: Vec<Contest>,
    pub(crate) plots: Vec<Plot>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// How it was measured, for the reader.
    pub(crate) about: String,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    /// The values of both systems, round by round.
    pub(crate) rounds: Vec<Sides<f64>>,
    /// The upper limit, if another program measures it.
    pub(crate) limit: Vec<f64>,
    pub(crate) goals: Vec<Goal>,
    pub(crate) note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Better {
    More,
    Less,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// At least this many times better than Redisson.
    Ratio(f64),
    /// At least this part of the limit.
    OfLimit(f64),
    /// At least this value, independent of Redisson.
    AtLeast(f64),
    /// At most this value, independent of Redisson.
    AtMost(f64),
}

/// Median, minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// A plot, with a line for each system and label.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plot {
    pub(crate) file: String,
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) log: bool,
    /// Up to this value, a message counts as early. Only an axis of lateness has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) early: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) system: Option<System>,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, unit: &str, better: Better, rounds: Vec<Sides<f64>>) -> Self {
        let (what, unit) = (what.into(), unit.to_owned());
        Self { what, unit, better, rounds, limit: Vec::new(), goals: Vec::new(), note: String::new() }
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goals.push(goal);
        self
    }

    pub(crate) fn of(&self, system: System) -> Spread {
        spread(self.rounds.iter().map(|round| *round.get(system)))
    }

    /// How many times better redelay was, round by round. Only turns of the same round are compared, because
    /// the machine may have been slower in another round.
    pub(crate) fn ratio(&self) -> Spread {
        spread(self.rounds.iter().map(|round| match self.better {
            Better::More => round.redelay / round.redisson,
            Better::Less => round.redisson / round.redelay,
        }))
    }

    /// The value reached for this goal, and whether it is enough.
    pub(crate) fn reached(&self, goal: Goal) -> (f64, bool) {
        match goal {
            Goal::Ratio(least) => (self.ratio().median, self.ratio().median >= least),
            Goal::OfLimit(least) => {
                let (own, limit) =
                    (self.of(System::Redelay).median, spread(self.limit.iter().copied()).median);
                let part = if self.better == Better::More { own / limit } else { limit / own };
                (part, part >= least)
            }
            Goal::AtLeast(least) => {
                let reached = self.of(System::Redelay).median;
                (reached, reached >= least)
            }
            Goal::AtMost(most) => {
                let reached = self.of(System::Redelay).median;
                (reached, reached <= most)
            }
        }
    }
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

    fn row(better: Better, rounds: &[(f64, f64)]) -> Row {
        let rounds = rounds.iter().map(|&(redelay, redisson)| Sides { redelay, redisson }).collect();
        Row::new("what", "unit", better, rounds)
    }

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

    #[test]
    fn a_ratio_above_one_means_that_redelay_was_better() {
        assert_eq!(row(Better::More, &[(300.0, 100.0), (100.0, 50.0), (40.0, 10.0)]).ratio().median, 3.0);
        assert_eq!(row(Better::Less, &[(1.0, 8.0)]).ratio().median, 8.0);
        assert_eq!(row(Better::Less, &[(10.0, 5.0)]).ratio().median, 0.5);
    }

    #[test]
    fn goals_are_reached_or_missed() {
        let mut row = row(Better::More, &[(90.0, 30.0)]);
        row.limit = vec![100.0];
        assert_eq!(row.reached(Goal::Ratio(3.0)), (3.0, true));
        assert_eq!(row.reached(Goal::Ratio(4.0)), (3.0, false));
        assert_eq!(row.reached(Goal::OfLimit(0.9)), (0.9, true));
        assert_eq!(row.reached(Goal::AtLeast(2.0)), (90.0, true));
        assert_eq!(row.reached(Goal::AtMost(2.0)), (90.0, false));
    }
}
