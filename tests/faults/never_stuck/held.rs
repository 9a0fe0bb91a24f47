//! Jobs that hold their ids until they are done, under faults: an id has one live message at most, nothing is
//! lost or delivered that was refused, each message has the id and the header of its offer, and in the end
//! every id is free.
//!
//! A call that may end a job is noted when it begins, and what it has ended when it is answered: in between,
//! and for ever if there is no answer, the id may be free.

mod book;
mod failovers;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::future::FutureExt;
use redelay::Worker;
use redelay::client::ClientBuilder;
use redelay::delayed_queue::{Cancelled, Offered};
use redelay::worker::{Backoff, Context, Outcome};
use redelay_fixture::Server;
use redelay_support::{CONFIRMED, CONTROL, JOBS, MORE_NOTES, NOTES, Queues, RECEIPTS, builder, keys, ms};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::book::{Book, DEEDS, Ended, Ending, OWN};
use super::faults::{Hits, Way};
use super::jobs;
use super::plan::{Fault, Key, Silence, Step, kinds};
use super::redisson::{Redisson, Running};
use super::rig::BOUND;
use super::{MANY, run, run_all, some_seeds, summarize};
use crate::ledger::Ledger;
use crate::workload::COMMAND_TIMEOUT;

/// The plans of a run without the variables of `never_stuck`.
const SEEDS: Range<u64> = 0..45;
const BESIDE_REDISSON: Range<u64> = 0..12;
/// The clock is set this many seconds ahead or back. Of two such times, one is less than ten minutes ahead of
/// the other: beyond that, the id of what is ready is free.
const FARTHEST: i64 = 290;
/// The header that says which payload it is.
const HEADER: &str = "number";

#[derive(Clone, Copy, Debug)]
enum Role {
    Offers,
    Works,
    Cancels,
    /// Takes bare payloads, as Java does.
    Takes,
    /// Requeues or removes dead letters.
    Operates,
}

/// One run. Each client has one role, and some of them transfer.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    ids: usize,
    lease: Duration,
    clients: Vec<(Role, bool)>,
    /// Its payloads have no ids.
    redisson: Option<Redisson>,
    steps: Vec<Step>,
}

/// What happens to the connections of the clients, and not to those of Redisson.
fn is_between(step: &Step) -> bool {
    use Fault::{BlackHole, Cut, Delay, ForgetIdle, HangUp, LoseReplies, Refuse, Strand, Truncate};
    matches!(
        step.fault,
        Cut | Refuse | BlackHole | Strand | HangUp | ForgetIdle | LoseReplies | Truncate(_) | Delay(_)
    )
}

impl Plan {
    fn of_seed(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut clients =
            vec![(Role::Offers, random.bool()), (Role::Works, true), (Role::Works, random.bool())];
        for role in [Role::Offers, Role::Works, Role::Cancels, Role::Cancels, Role::Takes, Role::Operates] {
            if random.bool() {
                clients.push((role, random.bool()));
            }
        }
        let steps = (0..random.usize(2..=5)).map(|number| fault(&mut random, number)).collect();
        Self {
            seed,
            ids: random.usize(1..=5),
            lease: ms(random.u64(400..4000)),
            clients,
            redisson: None,
            steps,
        }
    }

    fn sets_clock(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.fault, Fault::SetClock(_)))
    }

    fn beside_redisson(seed: u64) -> Self {
        let mut plan = Self::of_seed(seed);
        let mut random = Rng::with_seed(!seed);
        let redisson = Redisson::random(&mut random);
        if redisson.moves && random.bool() {
            // Nobody else does.
            plan.clients.iter_mut().for_each(|(_, moves)| *moves = false);
        }
        plan.redisson = Some(redisson);
        // Otherwise, it repeats its calls, and what it takes may be taken at any later time.
        if random.u8(0..3) > 0 {
            for number in 0..plan.steps.len() {
                while !is_between(&plan.steps[number]) {
                    plan.steps[number] = fault(&mut random, number);
                }
            }
        }
        // Its entries are due by its own clock: on a server whose clock is behind, later than a plan waits.
        for step in &mut plan.steps {
            if let Fault::SetClock(seconds) = &mut step.fault {
                *seconds = seconds.abs();
            }
        }
        plan
    }
}

fn fault(random: &mut Rng, number: usize) -> Step {
    loop {
        let mut step = jobs::fault(random, number);
        match random.u8(0..10) {
            0 => {
                use Silence::{Channels, Heads, Publish, Transfers};
                step.fault = Fault::Silence([Publish, Channels, Heads, Transfers][random.usize(0..4)]);
            }
            1 => step.fault = Fault::SetClock(random.i64(-FARTHEST..=FARTHEST)),
            _ => {}
        }
        // Whoever deletes the ids frees them, and the place of what is refused is not known.
        if !matches!(step.fault, Fault::Delete(_) | Fault::WrongType(Key::Jobs)) {
            return step;
        }
    }
}

struct Play {
    queues: Queues<i64>,
    book: Book,
    ids: usize,
    lease: Duration,
    /// Whether what was cancelled or replaced cannot come back, as from a taker.
    removals_last: bool,
    stop: CancellationToken,
}

impl Play {
    async fn go_on(self, role: Role, mut random: Rng) {
        if matches!(role, Role::Works) {
            return self.work(random, false).await;
        }
        // Workers are quick: a taker that asks seldom gets nothing.
        let pause = if matches!(role, Role::Takes) { 5 } else { 40 };
        while !self.stop.is_cancelled() {
            let id = random.usize(0..self.ids).to_string();
            match role {
                Role::Offers => self.offer(&id, &mut random).await,
                Role::Cancels => self.cancel(&id).await,
                Role::Takes => self.take().await,
                _ => self.operate(&mut random).await,
            }
            sleep(ms(random.u64(0..pause))).await;
        }
    }

    async fn offer(&self, id: &str, random: &mut Rng) {
        let number = self.book.number(Some(id));
        let offer = self.queues.delayed.offer(&number, ms(random.u64(0..60))).id(id).until_done();
        let mut offer = offer.header(HEADER, number.to_string());
        match random.u8(0..8) {
            // A letter still holds the id.
            0 => offer = offer.expires_after(ms(random.u64(60..150))),
            1 => {
                self.book.may_end(number);
                offer = offer.expires_after(ms(random.u64(60..150))).discard_if_expired();
            }
            _ => {}
        }
        let (replaces, begun) = (random.bool(), Instant::now());
        let answer = if replaces {
            let ending = Ending::OfId(id.to_owned(), number);
            let has_ended = |offered: &Offered| matches!(offered, Offered::Replaced(_));
            self.book.ending(ending, offer.replace(), |answer| Ended::of(answer, has_ended)).await
        } else {
            offer.keep().await
        };
        match answer {
            Ok(Offered::Stored(_)) => {
                self.book.did("stored");
                self.book.stored(number);
            }
            Ok(Offered::Replaced(_)) => {
                self.book.did("replaced");
                if self.removals_last && self.book.removed(id, begun) {
                    self.book.did("certainly replaced");
                }
                self.book.stored(number);
            }
            Ok(other) => {
                self.book.did(if other == Offered::Running { "running" } else { "kept" });
                self.book.refused(number);
            }
            Err(error) if error.is_outcome_unknown() => {}
            Err(_) => self.book.refused(number),
        }
    }

    async fn cancel(&self, id: &str) {
        let begun = Instant::now();
        let ending = Ending::OfId(id.to_owned(), -1);
        let ended = |answer: &_| Ended::of(answer, |cancelled| *cancelled != Cancelled::NotFound);
        match self.book.ending(ending, self.queues.delayed.job(id).cancel(), ended).await {
            Ok(Cancelled::Removed) => {
                self.book.did("cancelled");
                if self.removals_last && self.book.removed(id, begun) {
                    self.book.did("certainly removed");
                }
            }
            Ok(Cancelled::Requested) => self.book.did("cancel requested"),
            _ => {}
        }
    }

    async fn take(&self) {
        // It may take any, also if its reply is lost.
        let ended = |answer: &redelay::Result<Vec<redelay::Result<i64>>>| match answer {
            Ok(taken) => Ended::These(taken.iter().flatten().copied().collect()),
            // The pop may go on.
            Err(_) => Ended::Unknown,
        };
        let taken = self.book.ending(Ending::Any(3), self.queues.ready.poll_many(3), ended).await;
        for _ in taken.unwrap_or_default() {
            self.book.did("taken");
        }
    }

    async fn operate(&self, random: &mut Rng) {
        let letters = self.queues.ready.dead_letters();
        if random.bool() {
            let _ = letters.requeue_all(9).await;
            return;
        }
        for letter in letters.read(None, 9).await.unwrap_or_default() {
            let Ok(number) = self.queues.ready.decode(&letter.payload) else { continue };
            let ended = |answer: &_| Ended::of(answer, |is_removed| *is_removed);
            let removed = self.book.ending(Ending::One(number), letters.remove(letter.id), ended).await;
            if matches!(removed, Ok(true)) {
                self.book.did("letter removed");
            }
        }
    }

    /// Handles messages until the stop; the last worker of a run does all that there is.
    async fn work(&self, random: Rng, is_last: bool) {
        let (book, random) = (self.book.clone(), Arc::new(Mutex::new(random)));
        let handler = move |number: i64, context: Context| {
            let book = book.clone();
            let (what, pause) = {
                let mut random = random.lock().expect("nobody panics meanwhile");
                (if is_last { 0 } else { random.u32(0..10) }, ms(random.u64(0..80)))
            };
            async move {
                // Only after its first yield does a worker tell a handler that its lease is over.
                yield_now().await;
                let is_over = context.cancelled().now_or_never().is_some();
                book.handled(number, context.job_id(), context.header(HEADER), is_over);
                if !is_last {
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = context.cancelled() => book.did("told to end"),
                    }
                }
                match what {
                    0..6 => {
                        book.may_end(number);
                        book.did("acknowledged");
                        Outcome::Done
                    }
                    6..9 => {
                        book.did("failed");
                        Outcome::Retry("no luck".into())
                    }
                    _ => {
                        book.did("rejected");
                        Outcome::Reject("no use".into())
                    }
                }
            }
        };
        let worker = Worker::new(&self.queues.ready).lease(self.lease).concurrency(4);
        let worker = worker.max_attempts(3).backoff(Backoff::fixed(ms(20)));
        let _ = worker.run_until(self.stop.clone().cancelled_owned(), handler).await;
    }
}

/// What Redisson does. Unless `is_between` holds, it may repeat a poll that brought nothing.
async fn go_on_beside(
    mut redisson: Running,
    book: Book,
    is_between: bool,
    stop: CancellationToken,
    mut random: Rng,
) {
    while !stop.is_cancelled() {
        if redisson.does.offers {
            let number = book.number(None);
            let (value, delay) = (number.to_string(), random.u64(0..60).to_string());
            if redisson.ask(&["offer", "q", &value, &delay]).await == "ok" {
                book.did("offered by Redisson");
                book.stored(number);
            }
        }
        if redisson.does.takes {
            let ended = |answer: &String| match answer.as_str() {
                "null" if is_between => Ended::Nothing,
                "null" => Ended::Unknown,
                answer if answer.starts_with('!') => Ended::Unknown,
                number => Ended::These(vec![number.parse().expect("a number")]),
            };
            let poll = redisson.ask(&["poll", "q", "100"]);
            let answer = book.ending(Ending::Any(1), poll, ended).await;
            if answer != "null" && !answer.starts_with('!') {
                book.did("taken by Redisson");
            }
        }
        sleep(ms(random.u64(0..100))).await;
    }
}

/// The figures of a successful run.
#[derive(Clone, Debug)]
struct Report {
    redisson: Option<Redisson>,
    deeds: HashMap<&'static str, usize>,
    hits: Hits,
    recovery: Duration,
}

async fn play(plan: &Plan, way: Way, redisson: Option<Running>) -> Result<Report, String> {
    let (book, stop) = (Book::default(), CancellationToken::new());
    let (mut playing, mut clients) = (JoinSet::new(), Vec::new());
    let mut random = Rng::with_seed(plan.seed);
    let is_taker = |(role, _): &(Role, bool)| matches!(role, Role::Takes);
    let removals_last =
        !plan.redisson.is_some_and(|redisson| redisson.takes) && !plan.clients.iter().any(is_taker);
    if let Some(redisson) = redisson {
        let is_between = plan.steps.iter().all(is_between);
        playing.spawn(go_on_beside(redisson, book.clone(), is_between, stop.clone(), random.fork()));
    }
    for (role, moves) in &plan.clients {
        let connecting = builder(&way.url()).client_name("member");
        let connecting = connecting.transfer(*moves);
        let connecting = connecting.command_timeout(COMMAND_TIMEOUT).sweep_interval(Duration::from_secs(1));
        let queues = Queues::of_numbers(connecting).await;
        clients.push(queues.clone());
        let (book, stop) = (book.clone(), stop.clone());
        let player = Play { queues, book, ids: plan.ids, lease: plan.lease, removals_last, stop };
        playing.spawn(player.go_on(*role, random.fork()));
    }
    // It knows how the clock was set.
    let (mut hits, ledger) = (Hits::default(), Ledger::default());
    for step in &plan.steps {
        // Half a minute is between two sweeps otherwise.
        way.server.cmd(["HDEL", CONTROL, "jobs-at"]);
        sleep(step.after).await;
        way.suffer(step.fault, step.lasts, &ledger, &mut hits).await;
    }
    let begun = Instant::now();
    stop.cancel();
    while let Some(ended) = playing.join_next().await {
        ended.expect("a player goes on whatever happens");
    }
    for queues in &clients {
        if queues.ready.stats().await.is_ok_and(|stats| stats.receiving.expired > 0) {
            book.did("expired");
        }
        queues.client.shutdown().await;
    }
    way.proxy.cut();
    // Nothing disturbs the last one.
    let last = builder(&way.server);
    finish(last, &way.server, &book, plan.ids, plan.lease).await?;
    let recovery = begun.elapsed();
    let deeds = book.pages().deeds.clone();
    Ok(Report { redisson: plan.redisson, deeds, hits, recovery })
}

/// A client does what there is, until every id is free. Then nothing is left on the server, and the book must
/// be right.
async fn finish(
    connecting: ClientBuilder,
    server: &Server,
    book: &Book,
    ids: usize,
    lease: Duration,
) -> Result<(), String> {
    let queues = Queues::of_numbers(connecting.sweep_interval(Duration::from_secs(1))).await;
    let stop = CancellationToken::new();
    let last = Play { queues, book: book.clone(), ids, lease, removals_last: false, stop: stop.clone() };
    let (ready, delayed) = (last.queues.ready.clone(), last.queues.delayed.clone());
    let ids: Vec<String> = (0..ids).map(|id| id.to_string()).collect();
    // A call of unknown outcome may come late. A sweep frees what others have taken: otherwise, half a minute
    // is between two passes.
    let done = async {
        loop {
            ready.dead_letters().requeue_all(usize::MAX).await.unwrap();
            ready.unconfirmed_pops(Duration::ZERO).remove_all(usize::MAX).await.unwrap();
            for id in &ids {
                delayed.job(id).run_now().await.unwrap();
            }
            server.cmd(["HDEL", CONTROL, "jobs", "jobs-at"]);
            let stats = ready.stats().await.unwrap();
            let of_receivers =
                stats.receiving.in_flight + stats.receiving.waiting + stats.receiving.dead_letters;
            let states = delayed.job_states(&ids).await.unwrap();
            let left: usize = server.get(["EXISTS", JOBS, NOTES, MORE_NOTES]);
            if of_receivers + stats.pending + stats.ready + left as u64 == 0
                && states.iter().all(Option::is_none)
            {
                return;
            }
            sleep(ms(50)).await;
        }
    };
    let finished = async {
        let result = timeout(BOUND, done).await;
        stop.cancel();
        result
    };
    let (finished, ()) = tokio::join!(finished, last.work(Rng::new(), true));
    finished.map_err(|_| format!("not all is done and free within {BOUND:?}: {}", whereabouts(server)))?;
    let (live, most) = book.live();
    if live.len() > most {
        return Err(format!("{live:?} were stored, and nothing has ended them, but {most} at most"));
    }
    last.queues.client.shutdown().await;
    let mut left = keys(server);
    left.retain(|key| ![CONTROL, RECEIPTS, CONFIRMED].map(str::as_bytes).contains(&&key[..]));
    if !left.is_empty() {
        let left: Vec<_> = left.iter().map(|key| key.escape_ascii().to_string()).collect();
        return Err(format!("left over: {left:?}"));
    }
    let pages = book.pages();
    if !pages.wrong.is_empty() {
        return Err(format!("{:#?}", pages.wrong));
    }
    Ok(())
}

fn whereabouts(server: &Server) -> String {
    let jobs: Vec<String> = server.get(["HKEYS", JOBS]);
    let keys = server.keys().iter().map(|key| key.escape_ascii().to_string()).collect::<Vec<_>>();
    format!("jobs {jobs:?}, keys {keys:?}")
}

#[test]
fn seeded_plans() {
    run_plans("seeded_plans", SEEDS, Plan::of_seed, OWN);
}

#[test]
fn plans_beside_redisson() {
    run_plans("plans_beside_redisson", BESIDE_REDISSON, Plan::beside_redisson, DEEDS.len());
}

fn run_plans(test: &str, all: Range<u64>, plan: fn(u64) -> Plan, deeds_of_all: usize) {
    let begun = Instant::now();
    let (good, bad) = run_all(some_seeds(all, |seed| kinds(&plan(seed).steps)), |seed| {
        let plan = plan(seed);
        let way = Way::new(true, plan.sets_clock());
        let redisson = plan.redisson.map(|redisson| redisson.start(&way.server.url()));
        run(&format!("held::{test}"), seed, &plan, play(&plan, way, redisson))
    });
    let plans = good.len() + bad.len();
    println!("{plans} plans with held jobs in {:.0?}", begun.elapsed());
    let count = |deed| good.iter().map(|report| report.deeds.get(deed).copied().unwrap_or_default()).sum();
    let deeds: [usize; DEEDS.len()] = DEEDS.map(count);
    DEEDS.iter().zip(deeds).for_each(|(deed, count)| println!("{count} {deed}"));
    if let Some(longest) = good.iter().map(|report| report.recovery).max() {
        println!("all done after {longest:.1?} at most; {BOUND:?} are allowed");
    }
    assert!(bad.is_empty(), "{} of {plans} plans failed: {bad:?}", bad.len());
    summarize(good.iter().map(|report| &report.hits));
    let offers = good.iter().filter(|report| report.redisson.is_some_and(|redisson| redisson.offers)).count();
    assert!(offers < 3 || count("offered by Redisson") > 0, "Redisson has offered nothing in {offers} plans");
    let takes = good.iter().filter(|report| report.redisson.is_some_and(|redisson| redisson.takes)).count();
    assert!(takes < 6 || count("taken by Redisson") > 0, "Redisson has taken nothing in {takes} plans");
    if plans >= MANY {
        let deeds = &deeds[..deeds_of_all];
        assert!(deeds.iter().all(|count| *count > 0), "something was never done: {deeds:?}");
    }
}
