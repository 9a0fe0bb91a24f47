//! Pause and limits that change at random under faults. They hold as far as the server's leases show, and in
//! the end nothing waits for ever.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use redelay::blocking_queue::RateLimit;
use redelay_fixture::{Server, redis};
use redelay_support::{CONTROL, LEASES, ms};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::plan::{Plan, kinds};
use super::rig::{self, BOUND};
use super::{MANY, run, run_all, some_seeds};
use crate::ledger::{Offered, outcome};

type Queues = redelay_support::Queues<i64>;

/// The plans of a run without the variables of `never_stuck`.
const SEEDS: Range<u64> = 0..45;

/// The most messages in flight that plans set, each of them once: so between two looks that find the same
/// one, it has held.
const MOST: Range<u64> = 1..17;

/// Those of one run.
pub(super) struct Limits {
    changing: JoinHandle<Rng>,
    watching: JoinHandle<Watched>,
    /// Ends the changes, and then the looks.
    stop: CancellationToken,
    end: CancellationToken,
    clients: Vec<Queues>,
    resumes: Resumes,
}

/// What was seen of the limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    /// Looks at which there was a limit, as many messages in flight as it allows, and a pause.
    pub(crate) limited: usize,
    pub(crate) full: usize,
    pub(crate) paused: usize,
    /// What no limit allows.
    wrong: Vec<String>,
}

/// Odd while a resume is under way, or if it may come late.
#[derive(Clone, Debug, Default)]
struct Resumes(Arc<AtomicU64>);

impl Limits {
    pub(super) fn start(server: &Server, clients: &[Queues], seed: u64) -> Self {
        let (stop, end, resumes) = (CancellationToken::new(), CancellationToken::new(), Resumes::default());
        let clients = clients.to_vec();
        let changing = change(clients.clone(), resumes.clone(), stop.clone(), Rng::with_seed(seed));
        let url = server.url();
        let watching = spawn_blocking({
            let (end, resumes) = (end.clone(), resumes.clone());
            move || watch(&url, &resumes, &end)
        });
        Self { changing: tokio::spawn(changing), watching, stop, end, clients, resumes }
    }

    /// After all faults: the last changes. Without limits, or with such that let everything through in time.
    ///
    /// # Errors
    /// Fails with a sentence that says what went wrong.
    pub(super) async fn resume(&mut self) -> Result<(), String> {
        self.stop.cancel();
        let mut random = (&mut self.changing).await.expect("it goes on whatever happens");
        let ready = &random.choice(&self.clients).expect("one at least").ready;
        let (most, rate) = if random.bool() {
            (None, None)
        } else {
            (Some(MOST.end), Some(RateLimit::new(2000, Duration::from_secs(1)).burst(10)))
        };
        let resumed = async {
            self.resumes.begin();
            while ready.set_max_in_flight(most).await.is_err()
                || ready.set_rate_limit(rate).await.is_err()
                || ready.resume().await.is_err()
            {
                sleep(ms(10)).await;
            }
        };
        timeout(BOUND, resumed).await.map_err(|_| format!("no resume within {BOUND:?}"))
    }

    /// # Errors
    /// Fails with what no limit allows.
    pub(super) async fn judge(self) -> Result<Watched, String> {
        self.end.cancel();
        let watched = self.watching.await.expect("it goes on whatever happens");
        if watched.wrong.is_empty() { Ok(watched) } else { Err(watched.wrong.join("\n")) }
    }
}

impl Resumes {
    fn begin(&self) {
        self.0.fetch_or(1, Ordering::SeqCst);
    }

    fn end(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Changes a limit of the queue again and again.
async fn change(clients: Vec<Queues>, resumes: Resumes, stop: CancellationToken, mut random: Rng) -> Rng {
    let mut most: Vec<u64> = MOST.collect();
    random.shuffle(&mut most);
    while !stop.is_cancelled() {
        let ready = &random.choice(&clients).expect("one at least").ready;
        let changed = match random.u8(0..10) {
            0..2 => ready.pause().await,
            2..5 => {
                resumes.begin();
                let resumed = ready.resume().await;
                if !matches!(outcome(&resumed), Offered::Unknown) {
                    resumes.end();
                }
                resumed
            }
            5..8 => match most.pop() {
                Some(most) => ready.set_max_in_flight(Some(most)).await,
                None => ready.set_max_in_flight(None).await,
            },
            8 => {
                let rate = RateLimit::new(random.u32(20..1000), Duration::from_secs(1));
                ready.set_rate_limit(Some(rate.burst(random.u32(1..20)))).await
            }
            _ => ready.set_rate_limit(None).await,
        };
        outcome(&changed);
        sleep(ms(random.u64(5..100))).await;
    }
    random
}

/// What one look finds.
struct Look {
    resumes: u64,
    most: Option<usize>,
    is_paused: bool,
    leases: HashSet<Vec<u8>>,
}

/// Looks until the end, as far as the server answers.
fn watch(url: &str, resumes: &Resumes, end: &CancellationToken) -> Watched {
    let client = redis::Client::open(url).expect("an address");
    let mut watched = Watched::default();
    while !end.is_cancelled() {
        if let Ok(mut connection) = client.get_connection_with_timeout(ms(300)) {
            let _ = connection.set_read_timeout(Some(ms(1000)));
            let mut last = None;
            while !end.is_cancelled()
                && let Ok(look) = look(&mut connection, resumes)
            {
                if let Some(last) = &last {
                    compare(last, &look, resumes.now(), &mut watched);
                }
                last = Some(look);
                thread::sleep(ms(2));
            }
        }
        thread::sleep(ms(5));
    }
    watched
}

fn look(connection: &mut redis::Connection, resumes: &Resumes) -> redis::RedisResult<Look> {
    let resumes = resumes.now();
    let mut all = redis::pipe();
    all.atomic().cmd("HMGET").arg(CONTROL).arg("most").arg("paused");
    all.cmd("ZRANGE").arg(LEASES).arg(0).arg(-1);
    let ((most, paused), leases): ((Option<usize>, Option<String>), _) = all.query(connection)?;
    Ok(Look { resumes, most, is_paused: paused.is_some(), leases })
}

fn compare(last: &Look, next: &Look, resumes: u64, watched: &mut Watched) {
    let (before, after) = (last.leases.len(), next.leases.len());
    if let Some(most) = next.most
        && last.most == next.most
    {
        watched.limited += 1;
        watched.full += usize::from(after >= most);
        // A new limit does not take away what is in flight.
        if after > most.max(before) {
            watched.wrong.push(format!("{after} in flight after {before}, and {most} are allowed"));
        }
    }
    if last.is_paused && next.is_paused && last.resumes == resumes && resumes.is_multiple_of(2) {
        watched.paused += 1;
        let new = next.leases.difference(&last.leases).count();
        if new > 0 {
            watched.wrong.push(format!("{new} received from a queue that is paused"));
        }
    }
}

#[test]
fn seeded_plans() {
    let begun = Instant::now();
    let (good, bad) = run_all(some_seeds(SEEDS, |seed| kinds(&Plan::of_seed(seed).steps)), |seed| {
        let plan = Plan::of_seed(seed).with_limits();
        run("limits::seeded_plans", seed, &plan, rig::run(&plan))
    });
    let plans = good.len() + bad.len();
    let sum = |of: fn(&Watched) -> usize| good.iter().map(|report| of(&report.limits)).sum::<usize>();
    let (limited, full, paused) = (sum(|seen| seen.limited), sum(|seen| seen.full), sum(|seen| seen.paused));
    println!(
        "{plans} plans with limits in {:.0?}, {} deliveries; seen: {limited} times with a limit, {full} times full, {paused} \
         times paused; all delivered after {:.1?} at most",
        begun.elapsed(),
        good.iter().map(|report| report.received).sum::<usize>(),
        good.iter().map(|report| report.recovery).max().unwrap_or_default(),
    );
    assert!(bad.is_empty(), "{} of {plans} plans failed: {bad:?}", bad.len());
    if plans >= MANY {
        assert!(full > 0 && paused > 0, "no limit was ever reached, or no pause seen");
    }
}
