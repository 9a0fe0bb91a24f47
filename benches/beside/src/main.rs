//! redelay and Java Redisson in turns, on one server: `make bench`. BullMQ and asynq join where messages are
//! acknowledged, and where the cost of a message grows; apalis-redis where due times in whole seconds are
//! enough.
//!
//! | file | what it does |
//! |---|---|
//! | `offer.rs`, `lateness.rs`, `drain.rs`, `take.rs`, `end_to_end.rs`, `idle.rs`, `codecs.rs`, `jobs.rs`, `cost.rs`, `many.rs` | one measurement each |
//! | `alternatives.rs` and its folder | redelay beside a sorted set that is polled, and beside timers of the process |
//! | `ladder.rs` and its folder | one call in flight: what each layer costs, from a bare socket to Redisson |
//! | `acknowledged.rs` and its folder | receivers and workers: one measurement each |
//! | `cluster.rs` and its folder | a cluster of three masters beside one server, and partitions |
//! | `load.rs` | messages that are offered and handled, and what each costs |
//! | `bench.rs` | shared by all of them: a server, workers, taking turns |
//! | `repeat.rs` | repeats a turn in which a system failed |
//! | `warm_up.rs` | what workers do before anything is counted |
//! | `system.rs` | the systems |
//! | `worker.rs`, `job.rs` | a process that does the jobs it receives, on any system |
//! | `process.rs` | the CPU time and memory of a process |
//! | `redelay.rs` | the worker on redelay: this program, started again |
//! | `redisson.rs` | the worker on Redisson: `compat/java/src/main/java/redelay/bench` |
//! | `peers.rs` | the workers on BullMQ, asynq and apalis-redis: `peers` |
//! | `tuning.rs`, `settings.rs` | which settings suit each system best on this machine |
//! | `redis_benchmark.rs` | the upper limit of the server |
//! | `scripts.rs` | scripts of redelay, for that and for the ladder |
//! | `server.rs` | the server, and its counters |
//! | `results.rs`, `contest.rs`, `spread.rs` | numbers, medians, ratios, goals |
//! | `report.rs`, `plot.rs`, `machine.rs` | the report |
//! | `options.rs`, `effort.rs` | what is measured, and how much of it |
//!
//! A turn whose worker fails is repeated with a new one (`repeat.rs`). Anything else that fails panics with a
//! sentence, and ends its measurement: half a measurement is none. The other measurements go on, and the
//! report says which one is missing.

mod acknowledged;
mod alternatives;
mod bench;
mod cluster;
mod codecs;
mod contest;
mod cost;
mod drain;
mod effort;
mod end_to_end;
mod idle;
mod job;
mod jobs;
mod ladder;
mod lateness;
mod load;
mod machine;
mod many;
mod offer;
mod options;
mod order;
mod peers;
mod plot;
mod process;
mod redelay;
mod redis_benchmark;
mod redisson;
mod repeat;
mod report;
mod results;
mod scripts;
mod server;
mod settings;
mod spread;
mod system;
mod take;
mod tuning;
mod warm_up;
mod worker;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bench::{Bench, Measured};
use machine::Machine;
use options::{Options, Task};
use peers::Peers;
use results::Results;
use server::Server;

type Measurement = (&'static str, fn(&mut Bench) -> Measured);

const MEASUREMENTS: [Measurement; 23] = [
    ("offer", offer::measure),
    ("ladder", ladder::measure),
    ("lateness", lateness::measure),
    ("drain", drain::measure),
    ("take", take::measure),
    ("end-to-end", end_to_end::measure),
    ("idle", idle::measure),
    ("codecs", codecs::measure),
    ("jobs", jobs::measure),
    ("cost", cost::measure),
    ("many", many::measure),
    ("alternatives", alternatives::measure),
    ("receive", acknowledged::receive::measure),
    ("receive-end-to-end", acknowledged::end_to_end::measure),
    ("delayed-jobs", acknowledged::delayed::measure),
    ("retries", acknowledged::retries::measure),
    ("idle-workers", acknowledged::idle_workers::measure),
    ("idle-receivers", acknowledged::idle_receivers::measure),
    ("heartbeats", acknowledged::heartbeats::measure),
    ("recovery", acknowledged::recovery::measure),
    ("memory", acknowledged::memory::measure),
    ("beside-java", acknowledged::beside_java::measure),
    ("cluster", cluster::measure),
];

/// Those in which the peers take part.
const WITH_PEERS: [&str; 9] = [
    "cost",
    "receive",
    "receive-end-to-end",
    "delayed-jobs",
    "retries",
    "idle-workers",
    "heartbeats",
    "recovery",
    "memory",
];

/// The delay that a check of the harness adds to each reply to redelay: longer than Redisson is ever late.
const SLOWED: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    match options::parse(lexopt::Parser::from_env(), &MEASUREMENTS.map(|(name, _)| name)) {
        Ok(Task::Help) => println!("{}", options::HELP),
        Ok(Task::Work(url, partitions)) => redelay::work(&url, partitions),
        Ok(Task::Alternative(url, interval)) => alternatives::work::work(&url, interval),
        Ok(Task::Rung(rung, url)) => ladder::rung::work(rung, &url),
        Ok(Task::Report(file, options)) => {
            let text = fs::read_to_string(file).expect("a file of results");
            write(&serde_json::from_str(&text).expect("results"), &options);
        }
        Ok(Task::Measure(options)) => {
            let results = measure(&options);
            print!("{}", write(&results, &options));
            if options.self_check {
                return check(&results);
            }
            if !results.failed.is_empty() {
                return ExitCode::FAILURE;
            }
        }
        Err(error) => {
            eprintln!("{error}\n\n{}", options::HELP);
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn measure(options: &Options) -> Results {
    redisson::build();
    let wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let measurements: Vec<_> = MEASUREMENTS.into_iter().filter(|(name, _)| wanted(name)).collect();
    let with_peers = measurements.iter().any(|(name, _)| WITH_PEERS.contains(name));
    let peers =
        if with_peers { peers::build(options.effort.name == effort::TINY.name) } else { Peers::default() };
    let server = Server::start(options.self_check.then_some(SLOWED));
    let machine = Machine::here(&server, &options.effort, options.command());
    let mut bench = Bench::start(options.effort, server, peers.present.clone(), measurements.len() as u64);
    let (tuning, tables) = (bench.tuning.clone(), Vec::new());
    let (repeated, failed, contests, plots) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut all = Results { machine, peers, tuning, repeated, failed, tables, contests, plots };
    for (name, measure) in measurements {
        // An hour of measurements must not be lost because one of them fails. The panic has said why.
        match catch_unwind(AssertUnwindSafe(|| measure(&mut bench))) {
            Ok(measured) => {
                all.tables.extend(measured.tables);
                all.contests.extend(measured.contests);
                all.plots.extend(measured.plots);
            }
            Err(_) => all.failed.push(name.to_owned()),
        }
        all.repeated = bench.repeated();
        // Neither must they be if somebody ends the run, or the machine does.
        write_json(&options.out, &all);
        bench.progress.inc(1);
        if bench.progress.is_hidden() {
            eprintln!("{name}: done after {:.0?}", bench.elapsed());
        }
    }
    bench.progress.finish_and_clear();
    all
}

/// Writes the results. Returns the report.
fn write(results: &Results, options: &Options) -> String {
    write_to(&options.out, "report.md", results);
    if let Some(folder) = &options.publish {
        write_to(folder, "README.md", results);
    }
    report::markdown(results, &options.out)
}

fn write_json(folder: &Path, results: &Results) {
    fs::create_dir_all(folder).expect("a folder for the results");
    let json = serde_json::to_string_pretty(results).expect("results are JSON");
    fs::write(folder.join("results.json"), json + "\n").expect("a file of results");
}

fn write_to(folder: &Path, report: &str, results: &Results) {
    write_json(folder, results);
    fs::write(folder.join(report), report::markdown(results, folder)).expect("a report");
    for plot in &results.plots {
        plot::draw(plot, folder).unwrap_or_else(|error| panic!("{}: {error}", plot.file));
    }
}

/// Checks that the report says of a slowed redelay that it is slower.
fn check(results: &Results) -> ExitCode {
    let rows = results.tables.iter().flat_map(|table| &table.rows);
    let slowed = rows.filter(|row| row.unit == "offers/s" || row.what.starts_with("p50"));
    let mut all = true;
    println!("\neach reply to redelay was delayed by {SLOWED:?}:\n");
    for row in slowed {
        let seen = row.ratio().median < 1.0;
        all &= seen;
        println!("{} {}: {}", if seen { "seen    " } else { "NOT SEEN" }, row.what, report::ratio(row));
    }
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
