//! The results, as they are written to `results.json`. The tables and the plots are made from them alone.

use serde::{Deserialize, Serialize};

use crate::contest::Contest;
use crate::machine::Machine;
use crate::peers::Peers;
use crate::repeat::Repeat;
use crate::spread::{Better, Spread, spread};
use crate::system::{Sides, System};
use crate::tuning::Tuning;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(better: Better, rounds: &[(f64, f64)]) -> Row {
        let rounds = rounds.iter().map(|&(redelay, redisson)| Sides { redelay, redisson }).collect();
        Row::new("what", "unit", better, rounds)
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
