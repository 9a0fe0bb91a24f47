//! Schedules whose runs do not overlap, on eight processes that handle them slowly. A plan that is made from
//! a seed kills processes, some of them in the middle of a run, starts others, and cuts their connections.
//!
//! Each process writes when it begins and ends a run into a list, and so does the plan what it does. The
//! server knows the order, and adds its time. A run may be handled twice, but no other run begins before it
//! has ended once. And none is held back for long: whatever was written last, the next line follows in time.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use fastrand::Rng;
use redelay::codec;
use redelay::delayed_queue::Overlap;
use redelay_fixture::{Program, Proxy, Server, redis};
use redelay_support::{MINUTE, SCHEDULES, builder, ms};

use crate::never_stuck::variable;
use crate::on_threads::each_seed;

/// The plans of a run. `REDELAY_PLANS=200` runs 200.
const PLANS: u64 = 12;
const AT_A_TIME: usize = 3;
const PROCESSES: usize = 8;
const STEPS: usize = 20;

// All times are in ms.
const INTERVAL: u64 = 100;
const LEASE: u64 = 500;
/// A run is handled for less than this.
const HANDLED: u64 = 250;
/// The pause of a run that has failed.
const RETRY: u64 = 50;
/// How long after the end of a lease another receiver has the message: docs/guarantees.md, for a process that
/// has died among others with the same lease.
const RECOVERY: u64 = 1_000;
/// How long after its death others find what a process that waited for a message had popped: the same.
const MISPLACED: u64 = 6_000;
/// How often it is looked whether the run before one that waits is done: each second, and within two after a
/// connection was lost.
const LOOK: u64 = 2_000;

/// Appends a line to the list, with the server's time in front of it.
const NOTE: &str = "local time = redis.call('TIME')
return redis.call('RPUSH', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000) .. ' ' .. ARGV[1])";

/// What a busy machine needs in addition. Without a soak it is shorter than the pause between two sweeps, on
/// which nothing may depend.
fn patience() -> u64 {
    if variable("REDELAY_SOAK").is_some() { 500 } else { 50_000 }
}

/// A process that handles the runs. A plan below starts it.
#[tokio::test]
#[ignore = "a part of another test, in a process of its own"]
async fn service() {
    let [url, log, name, overlap] =
        ["URL", "LOG", "NAME", "OVERLAP"].map(|name| std::env::var(name).expect("started by a test"));
    let overlap = if overlap == "queue" { Overlap::Queue } else { Overlap::Skip };
    let client = builder(&url).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    let schedule = client.delayed_queue(&ready).schedule("s").every(ms(INTERVAL)).no_overlap(overlap);
    while schedule.upsert("run").await.is_err() {}
    // No plan cuts this connection: what is not in the log has not happened.
    let mut log = redis::Client::open(log).unwrap().get_connection().unwrap();
    let mut note = |what: &str, run: &str| {
        let line = format!("{what} {name} {run}");
        let _: usize = redis::cmd("EVAL").arg(NOTE).arg(1).arg("log").arg(line).query(&mut log).unwrap();
    };
    let receiver = ready.receiver().lease(ms(LEASE)).max_losses(1_000);
    loop {
        let Ok(delivery) = receiver.receive().await else { continue };
        let Some(run) = delivery.job_id().map(|id| String::from_utf8_lossy(id).into_owned()) else {
            note("nameless", "");
            continue;
        };
        note("begin", &run);
        tokio::time::sleep(ms(fastrand::u64(0..HANDLED))).await;
        if fastrand::u8(..8) == 0 {
            note("fail", &run);
            let _ = delivery.retry_after(ms(RETRY)).await;
        } else {
            note("end", &run);
            if delivery.ack().await.is_ok() {
                note("ack", &run);
            }
        }
    }
}

/// What a log tells.
#[derive(Debug, Default)]
struct Told {
    begun: usize,
    ended: usize,
    /// The last run that has begun.
    last: String,
    /// Whether that has not ended.
    is_running: bool,
    /// Whether it was acknowledged.
    is_done: bool,
    /// Whether there was a fault since the begin.
    is_disturbed: bool,
    /// The process that handles it.
    handler: Option<String>,
    /// How many processes were killed that handled it.
    losses: u32,
    killed: HashSet<String>,
    /// How many processes were killed in the middle of any run.
    hits: usize,
    /// When the last one of them was, if no run has begun since.
    hit: Option<u64>,
    /// The longest time from there to the next begin.
    after_hit: u64,
    /// The longest time between two lines, in parts of what is allowed, without a busy machine.
    longest: f64,
}

impl Told {
    /// What follows from a line.
    ///
    /// # Errors
    /// Fails if it begins a run before an earlier one has ended.
    fn tell(&mut self, at: u64, line: &str) -> Result<(), String> {
        let mut words = line.split(' ');
        let (what, who, run) = (words.next(), words.next().unwrap_or_default(), words.next());
        let run = run.unwrap_or_default();
        let is_last = run == self.last;
        match what {
            Some("begin") => {
                if !is_last {
                    if self.is_running {
                        return Err(format!("{run} overlaps with {}", self.last));
                    }
                    (self.last, self.losses) = (run.to_owned(), 0);
                }
                self.begun += 1;
                (self.is_running, self.is_done, self.is_disturbed) = (true, false, false);
                self.handler = Some(who.to_owned());
                if let Some(hit) = self.hit.take() {
                    self.after_hit = self.after_hit.max(at.saturating_sub(hit));
                }
                // It may have been on its way when the process was killed.
                if self.killed.contains(who) {
                    self.lose(at);
                }
            }
            Some("end" | "fail") => {
                self.ended += usize::from(what == Some("end"));
                self.is_running &= !is_last || what != Some("end");
                if self.handler.as_deref() == Some(who) {
                    self.handler = None;
                }
            }
            Some("ack") => self.is_done |= is_last,
            Some("kill") => {
                self.is_disturbed = true;
                self.killed.insert(who.to_owned());
                if self.handler.as_deref() == Some(who) {
                    self.lose(at);
                }
            }
            Some("cut" | "flush") => self.is_disturbed = true,
            _ => return Err(format!("an unknown line: {line}")),
        }
        Ok(())
    }

    fn lose(&mut self, at: u64) {
        self.handler = None;
        self.losses += 1;
        self.hits += 1;
        self.hit = Some(at);
    }

    /// In which time another line follows.
    fn allowed(&self) -> u64 {
        // After the first loss, a message waits for longer.
        let pause = |losses: u32| if losses < 2 { 0 } else { LEASE << (losses - 1).min(20) };
        let recovered = |losses: u32| LEASE + RECOVERY + pause(losses);
        match (&self.handler, self.is_running) {
            // It may also lose its lease.
            (Some(_), _) => HANDLED + recovered(self.losses + 1),
            (None, true) => RETRY + recovered(self.losses),
            // It may not be acknowledged, and the next one may be in a process that was killed.
            (None, false) => {
                let again = if self.is_done { 0 } else { recovered(self.losses + 1) };
                let misplaced = if self.is_disturbed { MISPLACED } else { 0 };
                again.max(misplaced) + LOOK + INTERVAL
            }
        }
    }

    /// Time passes without a line.
    ///
    /// # Errors
    /// Fails if it is too long.
    fn wait(&mut self, time: u64, patience: u64) -> Result<(), String> {
        let allowed = self.allowed();
        self.longest = self.longest.max(time as f64 / allowed as f64);
        if time <= allowed + patience {
            return Ok(());
        }
        Err(format!("no run for {time} ms, where {allowed} are allowed, and {patience} to a busy machine"))
    }
}

/// Reads a log up to `now`, by the server's clock.
///
/// # Errors
/// Fails if runs overlap, or if one was held back for too long.
fn told(log: &[String], now: u64, patience: u64) -> Result<Told, String> {
    let mut told = Told::default();
    let mut before = None;
    for (number, line) in log.iter().enumerate() {
        let (at, what) = line.split_once(' ').expect("a time, and more");
        let at = at.parse().expect("a number");
        let waited = before.map_or(Ok(()), |before| told.wait(u64::saturating_sub(at, before), patience));
        let read = waited.and_then(|()| told.tell(at, what));
        read.map_err(|why| format!("{why}\n{}", log[..=number].join("\n")))?;
        before = Some(at);
    }
    if let Some(before) = before {
        let waited = told.wait(now.saturating_sub(before), patience);
        waited.map_err(|why| format!("{why}\n{}\nuntil {now}", log.join("\n")))?;
    }
    Ok(told)
}

fn read(server: &Server) -> Result<Told, String> {
    let (seconds, micros): (u64, u64) = server.get(["TIME"]);
    let log = server.list("log").into_iter().map(|line| String::from_utf8(line).expect("text"));
    told(&log.collect::<Vec<_>>(), seconds * 1000 + micros / 1000, patience())
}

/// Waits until the log says this.
///
/// # Errors
/// Fails if a run is held back for too long, or overlaps.
async fn until_told(server: &Server, is_so: impl Fn(&Told) -> bool) -> Result<Told, String> {
    loop {
        let told = read(server)?;
        if is_so(&told) {
            return Ok(told);
        }
        tokio::time::sleep(ms(10)).await;
    }
}

fn note(server: &Server, line: &str) {
    server.cmd(["EVAL", NOTE, "1", "log", line]);
}

/// How many processes all plans have killed in the middle of a run.
static HITS: AtomicUsize = AtomicUsize::new(0);

/// Runs a plan. Returns what it has done.
async fn run(seed: u64) -> Result<String, String> {
    let mut random = Rng::with_seed(seed);
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let overlap = if seed.is_multiple_of(2) { "queue" } else { "skip" };
    let (url, log) = (proxy.url(), format!("redis://127.0.0.1:{}", server.port()));
    let start = |name: usize| {
        let name = name.to_string();
        let variables = [("URL", &*url), ("LOG", &log), ("NAME", &name), ("OVERLAP", overlap)];
        (name.clone(), Program::start_ignored_test("lone_runs::service", &variables))
    };
    let mut services: Vec<(String, Program)> = (0..PROCESSES).map(start).collect();
    let (mut kills, mut cuts) = (0, 0);
    // Starts another one in the place of one. Dropping that kills it.
    let mut replace = |service: &mut (String, Program)| {
        let (name, killed) = std::mem::replace(service, start(PROCESSES + kills));
        kills += 1;
        drop(killed);
        note(&server, &format!("kill {name}"));
    };
    for _ in 0..STEPS {
        match random.u32(..10) {
            0..5 => replace(&mut services[random.usize(..PROCESSES)]),
            // One that handles a run. The next one begins before anything else happens. With each loss, a run
            // waits for twice as long.
            5..7 => {
                let told = until_told(&server, |told| told.handler.is_some() && told.losses < 3).await?;
                let one = services.iter_mut().find(|(name, _)| told.handler.as_ref() == Some(name));
                replace(one.expect("it lives"));
                let begun = read(&server)?.begun;
                until_told(&server, |told| told.begun > begun).await?;
            }
            7..9 => {
                proxy.cut();
                note(&server, "cut");
                cuts += 1;
            }
            _ => {
                server.flush_scripts();
                note(&server, "flush");
            }
        }
        tokio::time::sleep(ms(random.u64(..200))).await;
        read(&server)?;
    }
    // No run is lost, and none holds the others back for ever.
    let before = read(&server)?.ended;
    let Told { ended, hits, after_hit, longest, .. } =
        until_told(&server, |told| told.ended >= before + 5).await?;
    assert!(server.zset(SCHEDULES)[0].1.is_finite());
    HITS.fetch_add(hits, Relaxed);
    Ok(format!(
        "{ended} runs, {kills} kills, {hits} of them in the middle of a run, which began again after \
         {after_hit} ms at most; {cuts} cuts, {overlap}; no pause was longer than {:.0} % of what is allowed",
        longest * 100.0
    ))
}

#[test]
fn runs_do_not_overlap_and_go_on() {
    each_seed(AT_A_TIME, PLANS, 5 * MINUTE, "lone_runs", run);
    let hits = HITS.load(Relaxed);
    println!("{hits} processes were killed in the middle of a run");
    assert!(hits > 0 || variable("REDELAY_SEED").is_some());
}

#[test]
fn a_log_tells_what_overlaps_and_what_is_late() {
    let read = |lines: &[(u64, &str)], now| {
        let log: Vec<String> = lines.iter().map(|(at, line)| format!("{at} {line}")).collect();
        told(&log, now, 100).map_err(|why| why.lines().next().unwrap_or_default().to_owned())
    };
    let begun = [(1_000, "begin 1 s@1"), (1_100, "kill 1")];
    let again = |at| [&begun[..], &[(at, "begin 2 s@1"), (at + 1, "kill 2"), (at + 2, "flush")]].concat();
    let told = read(&again(2_600), 2_700).unwrap();
    assert_eq!((told.begun, told.hits, told.after_hit, told.losses), (2, 2, 1_500, 2));
    let late = "ms, where 1550 are allowed, and 100 to a busy machine";
    assert_eq!(read(&again(2_751), 2_751).unwrap_err(), format!("no run for 1651 {late}"));
    assert_eq!(read(&begun, 2_851).unwrap_err(), format!("no run for 1751 {late}"));
    // After the second loss, it may wait for two leases.
    read(&again(2_600), 2_602 + 1_550 + 2 * LEASE + 100).unwrap();
    read(&again(2_600), 2_602 + 1_550 + 2 * LEASE + 101).unwrap_err();
    let other = |line| [&again(2_600)[..], &[(2_700, line), (2_800, "begin 3 s@2")]].concat();
    assert_eq!(read(&other("cut"), 2_800).unwrap_err(), "s@2 overlaps with s@1");
    assert_eq!(read(&other("fail 2 s@1"), 2_800).unwrap_err(), "s@2 overlaps with s@1");
    let told = read(&other("end 2 s@1"), 2_800).unwrap();
    assert_eq!((told.ended, told.begun, told.handler.as_deref()), (1, 3, Some("3")));
    let done = [(1_000, "begin 1 s@1"), (1_100, "end 1 s@1"), (1_110, "ack 1 s@1")];
    read(&done, 1_110 + LOOK + INTERVAL + 100).unwrap();
    read(&done, 1_110 + LOOK + INTERVAL + 101).unwrap_err();
}
