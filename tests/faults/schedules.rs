//! Schedules: each run is stored once, whatever happens to the processes that store them and to their
//! connections.
//!
//! Eight processes share the schedules of a queue. A plan that is made from a seed kills and starts them,
//! stops and continues them, and cuts their connections. Two versions of the processes upsert different
//! schedules. At the end, the number of payloads is that of the runs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use redelay::delayed_queue::{Missed, Schedule};
use redelay::{DelayedQueue, codec};
use redelay_fixture::{Program, Proxy, Server, until_async};
use redelay_support::{MINUTE, Queues, SCHEDULE_RECORDS, SCHEDULES, builder, still_builder};

use crate::on_threads::each_seed;

/// The plans of a run. `REDELAY_PLANS=200` runs 200.
const PLANS: u64 = 30;
const AT_A_TIME: usize = 3;
const PROCESSES: usize = 8;
/// The interval of each schedule, ms.
const INTERVALS: [u64; 3] = [100, 250, 1000];
const STEPS: usize = 25;

fn schedule(delayed: &DelayedQueue<String>, interval: u64, version: u32) -> Schedule<String> {
    // The versions make up for different numbers, so that their schedules differ.
    delayed
        .schedule(format!("every {interval}"))
        .every(Duration::from_millis(interval))
        .missed(Missed::UpTo(999 + version % 2))
}

/// A process of a service: it upserts its schedules, and stays. A plan below starts it.
#[tokio::test]
#[ignore = "a part of another test, in a process of its own"]
async fn service() {
    let [url, version] = ["URL", "VERSION"].map(|name| std::env::var(name).expect("started by a test"));
    let version: u32 = version.parse().unwrap();
    let client = builder(&url).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::String));
    loop {
        let mut all = Ok(());
        for interval in INTERVALS {
            let upserted =
                schedule(&delayed, interval, version).upsert(&format!("{interval} v{version}")).await;
            all = all.and(upserted.map(drop));
        }
        if all.is_ok() {
            std::future::pending::<()>().await;
        }
    }
}

/// Runs a plan. Returns what each schedule has done.
async fn run(seed: u64) -> Result<String, String> {
    let mut random = Rng::with_seed(seed);
    // It logs every command, for `changes_of`.
    let server =
        Server::builder().config("slowlog-log-slower-than 0").config("slowlog-max-len 1000000").start();
    let proxy = Proxy::start(server.port());
    let url = proxy.url();
    let Queues { client, delayed, .. } = Queues::of_texts(still_builder(&server)).await;
    let mut first = Vec::new();
    for interval in INTERVALS {
        let next = schedule(&delayed, interval, 0).upsert(&format!("{interval} v0")).await;
        let next = millis(next.unwrap().expect("a run"));
        // On a busy machine it is further ahead, and a service might store an earlier one.
        until_async("it is the next one", || async { millis(SystemTime::now()) + interval >= next }).await;
        first.push(next);
    }
    let start = |random: &mut Rng| {
        let version = random.u32(1..=2).to_string();
        Program::start_ignored_test("schedules::service", &[("URL", &url), ("VERSION", &version)])
    };
    let mut services: Vec<Program> = (0..PROCESSES).map(|_| start(&mut random)).collect();
    let records = || server.get::<Vec<Vec<u8>>, _>(["HVALS", SCHEDULE_RECORDS]);
    let is_changed = |record: &Vec<u8>| {
        let record = String::from_utf8_lossy(record);
        record.contains(" v1") || record.contains(" v2")
    };
    until_async("a service has changed a schedule", || async { records().iter().any(is_changed) }).await;
    let mut stopped = [false; PROCESSES];
    for _ in 0..STEPS {
        let one = random.usize(..PROCESSES);
        match random.u32(..10) {
            // Dropping it kills it.
            0..4 => {
                services[one] = start(&mut random);
                stopped[one] = false;
            }
            4..7 if !stopped[one] => {
                services[one].freeze();
                stopped[one] = true;
            }
            4..7 => {
                services[one].thaw();
                stopped[one] = false;
            }
            7 => proxy.cut(),
            8 => {
                proxy.hold_replies(true);
                tokio::time::sleep(Duration::from_millis(random.u64(..50))).await;
                proxy.cut();
                proxy.hold_replies(false);
            }
            _ => {
                server.flush_scripts();
            }
        }
        tokio::time::sleep(Duration::from_millis(random.u64(..200))).await;
    }
    drop(services);
    // Somebody who lives stores what was missed.
    let living = Queues::of_texts(still_builder(&server).transfer(true)).await;
    let mut story = Vec::new();
    let mut expected = Vec::new();
    for (interval, first) in INTERVALS.into_iter().zip(first) {
        let schedule = schedule(&delayed, interval, 0);
        until_async("the schedule runs", || async {
            let next = schedule.get().await.unwrap().expect("a schedule").next_run;
            next.is_some_and(|next| next > SystemTime::now() - Duration::from_millis(500))
        })
        .await;
        schedule.pause().await.unwrap();
        let last = millis(schedule.get().await.unwrap().expect("a schedule").last_run.expect("a run"));
        expected.push((interval, (last - first) / interval + 1));
    }
    assert_eq!(server.zset(SCHEDULES).iter().map(|(_, next)| *next).fold(0.0, f64::max), f64::INFINITY);
    until_async("all runs are moved", || async { living.delayed.is_empty().await.unwrap() }).await;
    let payloads = living.ready.read_all().await.unwrap();
    let mut changes = 0;
    for (interval, expected) in expected {
        let found: Vec<_> =
            payloads.iter().filter(|text| text.starts_with(&format!("{interval} v"))).collect();
        let versions =
            ["v1", "v2"].map(|version| found.iter().filter(|text| text.ends_with(version)).count());
        let what = format!(
            "every {interval} ms: {} payloads, {versions:?} of the versions, for {expected} runs",
            found.len()
        );
        if found.len() as u64 != expected {
            return Err(format!("{what}\n{}", changes_of(&server, interval)));
        }
        changes += versions.iter().sum::<usize>();
        story.push(what);
    }
    if changes == 0 {
        return Err("no service has changed a schedule".into());
    }
    living.client.shutdown().await;
    client.shutdown().await;
    Ok(story.join("; "))
}

/// All changes of a schedule that were tried, the last one first: times, and arguments of the script.
fn changes_of(server: &Server, interval: u64) -> String {
    type Logged = (u64, u64, u64, Vec<Vec<u8>>, String, String);
    let name = format!("every {interval}");
    let logged: Vec<Logged> = server.get(["SLOWLOG", "GET", "-1"]);
    let changes = logged.iter().filter_map(|(_, second, _, words, client, _)| {
        // EVALSHA, the script, the number of keys, and these.
        let arguments = words.get(13..)?;
        let text =
            arguments.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" | ");
        (words[2] == b"10" && words[8] == SCHEDULES.as_bytes() && arguments[0] == name.as_bytes())
            .then(|| format!("{second} {client}: {text}"))
    });
    changes.collect::<Vec<_>>().join("\n")
}

fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// Case 55.
#[test]
fn each_run_of_a_schedule_is_stored_once() {
    each_seed(AT_A_TIME, PLANS, 10 * MINUTE, "each_run", run);
}
