//! Tables with a column for each of several systems, or for each way to use one of them.

use serde::{Deserialize, Serialize};

use crate::spread::{Better, Spread, spread};
use crate::system::System;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Contest {
    pub(crate) name: String,
    /// How it was measured, for the reader.
    pub(crate) about: String,
    pub(crate) rows: Vec<Line>,
}

/// A row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    /// The first one is compared with all others.
    pub(crate) columns: Vec<Column>,
    pub(crate) goals: Vec<Aim>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) of: String,
    /// The values, round by round.
    pub(crate) rounds: Vec<f64>,
}

/// A goal of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aim {
    AtLeast {
        of: String,
        least: f64,
    },
    AtMost {
        of: String,
        most: f64,
    },
    /// Better than another column by this factor.
    Times {
        of: String,
        than: String,
        least: f64,
    },
    /// At most this many times the value of another column.
    AtMostTimes {
        of: String,
        than: String,
        most: f64,
    },
}

impl Line {
    pub(crate) fn new(what: impl Into<String>, unit: &str, better: Better, columns: Vec<Column>) -> Self {
        Self { what: what.into(), unit: unit.to_owned(), better, columns, goals: Vec::new() }
    }

    pub(crate) fn aim(mut self, aim: Aim) -> Self {
        self.goals.push(aim);
        self
    }

    pub(crate) fn of(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.of == name)
    }

    /// How many times better a column was than another one. Only values of the same round are compared,
    /// because the machine may have been slower in another round.
    pub(crate) fn times(&self, of: &Column, than: &Column) -> Spread {
        spread(of.rounds.iter().zip(&than.rounds).map(|(of, than)| match self.better {
            Better::More => of / than,
            Better::Less => than / of,
        }))
    }

    /// How many times the value of another column a column has, in the same round.
    fn part(of: &Column, than: &Column) -> f64 {
        spread(of.rounds.iter().zip(&than.rounds).map(|(of, than)| of / than)).median
    }

    /// The value reached for this goal, and whether it is enough. `None` if a system of it was not measured.
    pub(crate) fn reached(&self, aim: &Aim) -> Option<(f64, bool)> {
        let median = |of: &str| Some(self.of(of)?.spread().median);
        Some(match aim {
            Aim::AtLeast { of, least } => (median(of)?, median(of)? >= *least),
            Aim::AtMost { of, most } => (median(of)?, median(of)? <= *most),
            Aim::Times { of, than, least } => {
                let times = self.times(self.of(of)?, self.of(than)?).median;
                (times, times >= *least)
            }
            Aim::AtMostTimes { of, than, most } => {
                let part = Self::part(self.of(of)?, self.of(than)?);
                (part, part <= *most)
            }
        })
    }
}

/// A column for each system.
pub(crate) fn columns(systems: &[System], rounds: impl IntoIterator<Item = Vec<f64>>) -> Vec<Column> {
    let names = systems.iter().map(|system| system.name().to_owned());
    names.zip(rounds).map(|(of, rounds)| Column { of, rounds }).collect()
}

impl Column {
    pub(crate) fn spread(&self) -> Spread {
        spread(self.rounds.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(better: Better) -> Line {
        let column = |of: &str, rounds: [f64; 3]| Column { of: of.into(), rounds: rounds.into() };
        Line::new(
            "what",
            "unit",
            better,
            vec![column("a", [30.0, 80.0, 10.0]), column("b", [10.0, 20.0, 20.0])],
        )
    }

    #[test]
    fn columns_are_compared_round_by_round() {
        let times = |line: &Line| line.times(&line.columns[0], &line.columns[1]).median;
        assert_eq!(times(&line(Better::More)), 3.0);
        assert_eq!(times(&line(Better::Less)), 1.0 / 3.0);
    }

    #[test]
    fn aims_are_reached_missed_or_of_a_system_that_is_not_there() {
        let line = line(Better::More);
        let times = |than: &str, least| Aim::Times { of: "a".into(), than: than.into(), least };
        assert_eq!(line.reached(&times("b", 3.0)), Some((3.0, true)));
        assert_eq!(line.reached(&times("b", 3.5)), Some((3.0, false)));
        assert_eq!(line.reached(&times("c", 1.0)), None);
        assert_eq!(line.reached(&Aim::AtLeast { of: "b".into(), least: 21.0 }), Some((20.0, false)));
        assert_eq!(line.reached(&Aim::AtMost { of: "b".into(), most: 20.0 }), Some((20.0, true)));
        let part = |than: &str, most| Aim::AtMostTimes { of: "a".into(), than: than.into(), most };
        assert_eq!(line.reached(&part("b", 3.0)), Some((3.0, true)));
        assert_eq!(line.reached(&part("b", 2.9)), Some((3.0, false)));
        assert_eq!(line.reached(&part("c", 1.0)), None);
    }
}
