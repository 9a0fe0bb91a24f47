//! Schedules whose runs do not overlap, on eight processes that handle them slowly. A plan that is made from
//! a seed kills processes in the middle of a run, starts others, and cuts their connections.
//!
//! Each process writes when it begins and ends a run into a list, so the server knows the order. A run may be
//! handled twice, but no other run begins before it has ended once.

use std::time::Duration;

use fastrand::Rng;
use redelay::delayed_queue::Overlap;
use redelay::{Client, codec};
use redelay_fixture::{Program, Proxy, Server, until_within};
use redelay_support::{MINUTE, SCHEDULES, ms};

use crate::on_threads::each_seed;

/// The plans of a run. `REDELAY_PLANS=200` runs 200.
const PLANS: u64 = 12;
const AT_A_TIME: usize = 3;
const PROCESSES: usize = 8;
const STEPS: usize = 20;
const INTERVAL: Duration = Duration::from_millis(100);
const LEASE: Duration = Duration::from_millis(500);

/// A process that handles the runs. A plan below starts it.
#[tokio::test]
#[ignore = "a part of another test, in a process of its own"]
async fn service() {
    let [url, overlap] = ["URL", "OVERLAP"].map(|name| std::env::var(name).expect("started by a test"));
    let overlap = if overlap == "queue" { Overlap::Queue } else { Overlap::Skip };
    let client = Client::builder().url(url).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    let log = client.blocking_queue("log", codec::String);
    let schedule = client.delayed_queue(&ready).schedule("s").every(INTERVAL).no_overlap(overlap);
    while schedule.upsert("run").await.is_err() {}
    let receiver = ready.receiver().lease(LEASE);
    loop {
        let Ok(delivery) = receiver.receive().await else { continue };
        let Some(run) = delivery.job_id().map(|id| String::from_utf8_lossy(id).into_owned()) else {
            continue;
        };
        // What cannot be written has not begun: the lease of this delivery ends, or it is given back.
        if log.put(&format!("begin {run}")).await.is_err() {
            continue;
        }
        tokio::time::sleep(ms(fastrand::u64(0..250))).await;
        if log.put(&format!("end {run}")).await.is_ok() {
            let _ = delivery.ack().await;
        }
    }
}

/// How many runs have ended. Fails if a run has begun before an earlier one had ended.
fn ended(server: &Server) -> Result<usize, String> {
    let (mut running, mut ended) = (None::<String>, 0);
    let log: Vec<String> =
        server.list("log").into_iter().map(|line| String::from_utf8(line).expect("text")).collect();
    for (number, line) in log.iter().enumerate() {
        match line.trim_start_matches(|byte: char| !byte.is_ascii_lowercase()).split_once(' ') {
            Some(("begin", run)) => {
                if running.as_deref().is_some_and(|running| running != run) {
                    return Err(format!("{run} overlaps with {running:?}\n{}", log[..=number].join("\n")));
                }
                running = Some(run.to_owned());
            }
            Some(("end", run)) => {
                ended += 1;
                if running.as_deref() == Some(run) {
                    running = None;
                }
            }
            _ => return Err(format!("an unknown line: {line}")),
        }
    }
    Ok(ended)
}

/// Runs a plan. Returns what it has done.
async fn run(seed: u64) -> Result<String, String> {
    let mut random = Rng::with_seed(seed);
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let overlap = if seed.is_multiple_of(2) { "queue" } else { "skip" };
    let url = proxy.url();
    let start = || Program::start_ignored_test("lone_runs::service", &[("URL", &url), ("OVERLAP", overlap)]);
    let mut services: Vec<Program> = (0..PROCESSES).map(|_| start()).collect();
    let (mut kills, mut cuts) = (0, 0);
    for _ in 0..STEPS {
        match random.u32(..10) {
            // Dropping it kills it. One of them is in the middle of a run.
            0..7 => {
                services[random.usize(..PROCESSES)] = start();
                kills += 1;
            }
            7..9 => {
                proxy.cut();
                cuts += 1;
            }
            _ => server.flush_scripts(),
        }
        tokio::time::sleep(ms(random.u64(..200))).await;
        ended(&server)?;
    }
    let before = ended(&server)?;
    // No run is lost, and none holds the others back for ever.
    until_within(2 * MINUTE, "the runs go on", || ended(&server).is_ok_and(|now| now >= before + 5));
    let all = ended(&server)?;
    assert!(server.zset(SCHEDULES)[0].1.is_finite());
    Ok(format!("{all} runs, {kills} kills, {cuts} cuts, {overlap}"))
}

#[test]
fn runs_do_not_overlap_and_go_on() {
    each_seed(AT_A_TIME, PLANS, 5 * MINUTE, "lone_runs", run);
}
