//! Jobs by id under faults: each job that was stored is delivered once, or replaced, or cancelled, and in the
//! end every id is free. The plans are like those of `never_stuck`; an order of the calls has to explain
//! their answers.

mod history;
mod work;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use fastrand::Rng;
use redelay::client::ClientBuilder;
use redelay_fixture::{Server, until_async};
use redelay_support::{
    CHANNEL, CLAIMS, CONTROL, INBOX, JOBS, MINUTE, ORDERED_LIST, Queues, RECEIPTS, TARGET, TIMEOUT_SET,
    builder, keys,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::faults::{Hits, KEYS_DELETED, Way};
use super::plan::{Fault, Injected, Key, Kind, Step, kinds, some_of, step};
use super::rig::BOUND;
use super::{MANY, run, run_all, some_seeds, summarize};
use crate::deliveries::unsettled;
use crate::ledger::{self, Ledger};
use crate::workload::{COMMAND_TIMEOUT, until_empty};
use work::{Book, DEEDS, Taker, Work};

/// The plans of a run without the variables of `never_stuck`.
const SEEDS: Range<u64> = 0..60;

/// One run.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    /// The ids that most calls use, so that they meet.
    ids: Vec<Vec<u8>>,
    clients: Vec<Member>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Member {
    batch: u32,
    budget: Duration,
    moves: bool,
    workers: usize,
    takers: Vec<Taker>,
}

/// What happens to a key or to commands happens to those that jobs use.
const KEYS: [Key; 4] = [Key::Target, Key::TimeoutSet, Key::OrderedList, Key::Jobs];
const DELETED: [Key; 3] = [Key::Jobs, Key::Jobs, Key::Throttles];
const COMMANDS: [&str; 24] = [
    "del", "eval", "evalsha", "get", "hdel", "hget", "hlen", "hmget", "hset", "llen", "lrange", "lrem",
    "lset", "ltrim", "pttl", "rpush", "set", "time", "zadd", "zrange", "zrem", "zscore", "@hash", "@write",
];

impl Plan {
    fn of_seed(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut ids: Vec<Vec<u8>> =
            vec![b"1".into(), b"order-17".into(), [0xff; 16].into(), vec![b'{'; 36], (1..=255).collect()];
        random.shuffle(&mut ids);
        ids.truncate(random.usize(1..=4));
        let count = random.usize(1..=3);
        let mut clients: Vec<_> = (0..count).map(|_| member(&mut random)).collect();
        clients[0].workers = clients[0].workers.max(1);
        let last = clients.last_mut().expect("one at least");
        last.moves = true;
        last.takers.push([Taker::Polls, Taker::PollsMany, Taker::Receives][random.usize(0..3)]);
        let steps = (0..random.usize(2..=6)).map(|number| fault(&mut random, number)).collect();
        Self { seed, ids, clients, steps }
    }
}

fn member(random: &mut Rng) -> Member {
    use Taker::{Polls, PollsMany, PollsPending, Receives};
    let taker = |random: &mut Rng| [Polls, PollsMany, PollsPending, Receives, Receives][random.usize(0..5)];
    Member {
        batch: [1, 2, 10, 1000][random.usize(0..4)],
        budget: Duration::from_micros([1, 100, 10_000][random.usize(0..3)]),
        moves: random.bool(),
        workers: random.usize(0..=3),
        takers: (0..random.usize(0..=2)).map(|_| taker(random)).collect(),
    }
}

/// One that a plan without sweeps recovers from, and not a silence that only the watchdogs notice.
pub(super) fn fault(random: &mut Rng, number: usize) -> Step {
    loop {
        let mut step = step(random, number);
        // Longer than a command may take, in many of them: its outcome is unknown then.
        step.lasts = Duration::from_millis(random.u64(10..600));
        if random.bool() {
            step.fault = lost_replies(random);
        }
        match &mut step.fault {
            Fault::Strand | Fault::SetClock(_) | Fault::Poison(_) | Fault::Silence(_) => continue,
            Fault::Inject(Injected::Transfer(_)) => continue,
            Fault::WrongType(key) => *key = KEYS[random.usize(0..KEYS.len())],
            Fault::Delete(key) => *key = DELETED[random.usize(0..DELETED.len())],
            Fault::Forbid(commands) => *commands = some_of(random, &COMMANDS),
            _ => {}
        }
        return step;
    }
}

/// A fault after which clients send calls again that the server may have executed.
fn lost_replies(random: &mut Rng) -> Fault {
    [
        Fault::LoseReplies,
        Fault::LoseReplies,
        Fault::Kill(Kind::Commands),
        Fault::Cut,
        Fault::HangUp,
        Fault::BlackHole,
        Fault::Truncate(random.usize(0..400)),
        Fault::KillServer,
    ][random.usize(0..8)]
}

/// The figures of a successful run.
#[derive(Clone, Debug)]
struct Report {
    deeds: BTreeMap<&'static str, usize>,
    /// Ids that a sweep had to find.
    stale: usize,
    hits: Hits,
    recovery: Duration,
}

fn connecting(member: &Member, url: &str) -> ClientBuilder {
    let builder = builder(&url).client_name("member");
    let builder = builder.command_timeout(COMMAND_TIMEOUT).transfer(member.moves);
    builder.transfer_batch(member.batch).transfer_budget(member.budget)
}

async fn play(plan: &Plan) -> Result<Report, String> {
    let (way, book, stop) = (Way::new(true, false), Book::default(), CancellationToken::new());
    let (mut working, mut taking, mut clients) = (JoinSet::new(), JoinSet::new(), Vec::new());
    let mut random = Rng::with_seed(plan.seed);
    for member in &plan.clients {
        let queues = Queues::of_numbers(connecting(member, &way.url())).await;
        clients.push(queues.client.clone());
        let work = Work { queues, book: book.clone(), ids: plan.ids.clone() };
        for _ in 0..member.workers {
            working.spawn(work.clone().go_on(stop.clone(), random.fork()));
        }
        for taker in &member.takers {
            taking.spawn(work.clone().take(*taker, random.fork()));
        }
    }
    let mut hits = Hits::default();
    for step in &plan.steps {
        sleep(step.after).await;
        let begun = Instant::now();
        if matches!(step.fault, Fault::Inject(Injected::Reply(_))) {
            book.mislead();
        }
        way.suffer(step.fault, step.lasts, &Ledger::default(), &mut hits).await;
        if step.fault == Fault::Delete(Key::Jobs) {
            book.forgets_ids(begun);
        }
    }
    let begun = Instant::now();
    stop.cancel();
    while let Some(ended) = working.join_next().await {
        ended.expect("a worker goes on whatever happens");
    }
    // Nothing disturbs this client.
    let queues = Queues::of_numbers(builder(&way.server).transfer(false)).await;
    let last = Work { queues, book: book.clone(), ids: plan.ids.clone() };
    let delivering = deliver(&way.server, &last);
    if timeout(BOUND, delivering).await.is_err() {
        return Err(format!(
            "not all was delivered within {BOUND:?}: {}\n{}",
            whereabouts(&way.server),
            book.refusals()
        ));
    }
    let recovery = begun.elapsed();
    for client in &clients {
        client.shutdown().await;
    }
    while let Some(ended) = taking.join_next().await {
        ended.expect("a taker goes on whatever happens");
    }
    way.proxy.cut();
    // A client that ends may give back what it has polled or received, or leave a pop unconfirmed; and a call
    // whose outcome is unknown may have come late.
    let (ready, pending) = (way.server.list(TARGET), way.server.list(ORDERED_LIST));
    if pending.len() != way.server.zset(TIMEOUT_SET).len() {
        return Err(format!("{} in the ordered list: {}", pending.len(), whereabouts(&way.server)));
    }
    book.has(ready.iter().map(|payload| ledger::number(payload)));
    book.has(pending.iter().filter_map(|entry| ledger::payload_of(entry)));
    way.server.cmd(["DEL", TARGET, ORDERED_LIST, TIMEOUT_SET]);
    let unconfirmed = Ledger::default().unconfirmed(&way.server);
    book.has(unconfirmed.into_iter().filter(|number| !book.has_seen(*number)));

    let stale = sweep(&way.server).await?;
    last.use_each_id().await;
    book.judge().map_err(|why| format!("{why}\nrefused:\n{}", book.refusals()))?;
    last.queues.client.shutdown().await;
    let throttles = || async { keys(&way.server).iter().any(|key| key.starts_with(b"redelay:throttle:")) };
    until_async("the throttles end", || async { !throttles().await }).await;
    let mut left = keys(&way.server);
    left.retain(|key| ![CONTROL, RECEIPTS].map(str::as_bytes).contains(&&key[..]));
    if !left.is_empty() {
        let left: Vec<_> = left.iter().map(|key| key.escape_ascii().to_string()).collect();
        return Err(format!("left over: {left:?}"));
    }
    Ok(Report { deeds: book.deeds(), stale, hits, recovery })
}

/// Nobody finds a job by its id whose id was deleted.
const ALL_DUE: &str = "for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
        redis.call('ZADD', KEYS[1], 1, entry)
    end
    redis.call('PUBLISH', KEYS[2], 1)";

/// Makes everything due, and waits until it has arrived.
async fn deliver(server: &Server, last: &Work) {
    let has_arrived = async || {
        until_empty(server).await;
        let is_settled =
            || async { server.get::<usize, _>(["LLEN", INBOX]) == 0 && unsettled(server, MINUTE).is_empty() };
        until_async("what was received is settled", is_settled).await;
        let unconfirmed = || Ledger::default().unconfirmed(server);
        let have_come = || async {
            last.book.is_misled() || unconfirmed().iter().all(|number| last.book.has_seen(*number))
        };
        until_async("what was popped arrives", have_come).await;
    };
    // A call of unknown outcome may come late.
    loop {
        last.run_all_now().await;
        if last.book.has_forgotten_ids() {
            server.cmd(["EVAL", ALL_DUE, "2", TIMEOUT_SET, CHANNEL]);
        }
        if timeout(Duration::from_secs(1), has_arrived()).await.is_ok() {
            return;
        }
    }
}

/// Returns how many ids were left without a job. A sweep finds them all.
///
/// # Errors
/// Fails with a sentence that says what went wrong.
async fn sweep(server: &Server) -> Result<usize, String> {
    let stale: usize = server.get(["HLEN", JOBS]);
    // Otherwise, half a minute is between two passes.
    server.cmd(["HDEL", CONTROL, "jobs", "jobs-at"]);
    let sweeping = Queues::of_numbers(builder(server).sweep_interval(Duration::from_secs(1))).await;
    let are_gone = || async { server.get::<usize, _>(["EXISTS", JOBS]) == 0 };
    let swept = timeout(BOUND, until_async("no id is left", are_gone)).await;
    sweeping.client.shutdown().await;
    swept.map_err(|_| format!("ids are left without jobs: {}", whereabouts(server)))?;
    Ok(stale)
}

fn whereabouts(server: &Server) -> String {
    let keys = server.keys().iter().map(|key| key.escape_ascii().to_string()).collect::<Vec<_>>();
    let pending = server.zset(TIMEOUT_SET).len();
    let jobs: Vec<Vec<u8>> = server.get(["HKEYS", JOBS]);
    let jobs: Vec<_> = jobs.iter().map(|id| id.escape_ascii().to_string()).collect();
    let control: Vec<(String, String)> = server.get(["HGETALL", CONTROL]);
    let claims: Vec<Vec<u8>> = server.get(["HGETALL", CLAIMS]);
    let claims: Vec<_> = claims.iter().map(|part| part.escape_ascii().to_string()).collect();
    format!(
        "{pending} pending, {control:?}, jobs {jobs:?}, {} ready, claims {claims:?}, {:?}; keys {keys:?}",
        server.list(TARGET).len(),
        unsettled(server, MINUTE)
    )
}

#[test]
fn seeded_plans() {
    let begun = Instant::now();
    let (good, bad) = run_all(some_seeds(SEEDS, |seed| kinds(&Plan::of_seed(seed).steps)), |seed| {
        let plan = Plan::of_seed(seed);
        run("jobs::seeded_plans", seed, &plan, play(&plan))
    });
    let plans = good.len() + bad.len();
    println!("{plans} plans with jobs in {:.0?}", begun.elapsed());
    let count = |deed| good.iter().map(|report| report.deeds.get(deed).copied().unwrap_or_default()).sum();
    let deeds: [usize; DEEDS.len()] = DEEDS.map(count);
    DEEDS.iter().zip(deeds).for_each(|(deed, count)| println!("{count} {deed}"));
    let stale: usize = good.iter().map(|report| report.stale).sum();
    println!("{stale} ids that a sweep found");
    if let Some(longest) = good.iter().map(|report| report.recovery).max() {
        println!("all delivered after {longest:.1?} at most; {BOUND:?} are allowed");
    }
    assert!(bad.is_empty(), "{} of {plans} plans failed: {bad:?}", bad.len());
    let hits = summarize(good.iter().map(|report| &report.hits));
    if plans >= MANY {
        assert!(deeds.iter().all(|count| *count > 0), "something was never done");
        let deleted = hits.iter().find(|hit| hit.what == KEYS_DELETED).expect("it is in the list");
        assert!(deleted.hitting > 0, "no key was deleted");
    }
}
