//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;

use crate::effort::{Effort, FULL, QUICK, SELF_CHECK, TINY};
use crate::ladder::rung::Rung;

pub(crate) const HELP: &str = "\
Measures redelay in turns with Java Redisson, BullMQ, asynq and apalis-redis, on one server. Usually started by `make bench`.

  --quick          nine minutes instead of 90
  --tiny           seconds: shows whether the harness works
  --only NAME      one measurement; may be given more than once
  --self-check     slows redelay down, and fails unless the report shows it
  --out DIR        where results.json, report.md and the plots go; by default target/bench
  --publish DIR    writes them to this folder as well, for docs/benchmarks
  --report FILE    measures nothing; writes report and plots of this results.json again";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) effort: Effort,
    pub(crate) only: Vec<String>,
    pub(crate) self_check: bool,
    pub(crate) out: PathBuf,
    pub(crate) publish: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum Task {
    Help,
    /// Runs this process as a worker on the server with this URL. Each of its queues has this number of
    /// partitions.
    Work(String, usize),
    /// The same for an alternative that polls at this interval, ms; zero stands for timers of the process.
    Alternative(String, u64),
    /// The same for a rung of the ladder.
    Rung(Rung, String),
    Report(PathBuf, Options),
    Measure(Options),
}

pub(crate) fn parse(mut parser: lexopt::Parser, names: &[&str]) -> Result<Task, lexopt::Error> {
    let out = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/bench").into();
    let mut options = Options { effort: FULL, only: Vec::new(), self_check: false, out, publish: None };
    let mut report = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Help),
            Long("worker") => return Ok(Task::Work(parser.value()?.string()?, parser.value()?.parse()?)),
            Long("alternative") => {
                return Ok(Task::Alternative(parser.value()?.string()?, parser.value()?.parse()?));
            }
            Long("rung") => {
                let rung = Rung::of_argument(&parser.value()?.string()?).ok_or("no such rung")?;
                return Ok(Task::Rung(rung, parser.value()?.string()?));
            }
            Long("quick") => options.effort = QUICK,
            Long("tiny") => options.effort = TINY,
            Long("self-check") => {
                (options.self_check, options.effort) = (true, SELF_CHECK);
                options.only.extend(["offer".to_owned(), "lateness".to_owned()]);
            }
            Long("out") => options.out = parser.value()?.into(),
            Long("publish") => options.publish = Some(parser.value()?.into()),
            Long("report") => report = Some(parser.value()?.into()),
            Long("only") => {
                let name = parser.value()?.string()?;
                if !names.contains(&name.as_str()) {
                    return Err(format!("{name} is none of {}", names.join(", ")).into());
                }
                options.only.push(name);
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(match report {
        Some(file) => Task::Report(file, options),
        None => Task::Measure(options),
    })
}

impl Options {
    /// The command that repeats this run.
    pub(crate) fn command(&self) -> String {
        let mut command = "make bench".to_owned();
        if self.effort.name != FULL.name {
            command += &format!(" {}=1", self.effort.name.to_uppercase().replace('-', "_"));
        }
        if !self.self_check && !self.only.is_empty() {
            command += &format!(" ONLY=\"{}\"", self.only.join(" "));
        }
        command
    }
}
