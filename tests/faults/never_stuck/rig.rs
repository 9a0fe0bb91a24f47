//! Runs a plan: the load, the faults one after the other, and the wait until everything is delivered.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use redelay_fixture::{Proxy, Server, until_async, until_async_within};
use redelay_support::{CHANNEL, INBOX, MINUTE, ORDERED_LIST, QUARANTINE, Queues, TARGET, TIMEOUT_SET};
use tokio::time::{sleep, timeout};

use super::clock::now_millis;
use super::faults::{Hits, Way};
use super::limits::{Limits, Watched};
use super::plan::{FARTHEST, Plan};
use crate::deliveries::{receipts, unsettled};
use crate::ledger::{Ledger, Offered, Price};
use crate::workload::{Load, until_empty};

/// Within this time after the end of the last fault, everything is delivered, including new offers; and if
/// consumers have more to do than they can in this time, something is.
///
/// It follows from the timeouts. A client gives up a pop on a silent connection 3 s after its block of 10 s,
/// and a silent subscriber 3 s after the ping that it sends every 10 s. The next connection has 3 s for its
/// handshake. The longest pause between connection attempts is 5 s, though no fault here lasts long enough
/// for it. The rest is for a busy machine. Nothing may depend on a sweep, which follows only after a minute;
/// except in a plan that keeps announcements from clients, where it follows [`SOON`](super::plan::SOON).
pub(crate) const BOUND: Duration = Duration::from_secs(55);

/// How long a plan without faults goes on.
const UNDISTURBED: Duration = Duration::from_millis(700);

/// The figures of a successful run.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) acknowledged: usize,
    pub(crate) unknown: usize,
    pub(crate) refused: usize,
    pub(crate) taken: usize,
    /// The number of deliveries, and what was done with them.
    pub(crate) received: usize,
    pub(crate) deeds: BTreeMap<&'static str, usize>,
    /// Receipts that receivers have left behind. On a busy machine, the end of a receiver may come too early
    /// for that.
    pub(crate) receipts: usize,
    pub(crate) lost: usize,
    /// Whether the server itself may have lost what is missing.
    pub(crate) forgot: bool,
    pub(crate) dead_pops: usize,
    /// From the end of the last fault until everything was delivered, new offers included.
    pub(crate) recovery: Duration,
    pub(crate) faults: usize,
    pub(crate) hits: Hits,
    pub(crate) limits: Watched,
    /// `ZMSCORE`s since the server was started last. Without receivers, only a rebuild of the list has any.
    pub(crate) zmscores: u64,
}

/// Whether a plan ends within [`BOUND`], or later if payloads arrive all the time: a few slow consumers may
/// have a long backlog.
async fn ends_in_time(end: impl Future<Output = ()>, arrivals: impl Fn() -> usize) -> bool {
    let (begun, mut end) = (Instant::now(), pin!(end));
    loop {
        let before = arrivals();
        if timeout(BOUND, &mut end).await.is_ok() {
            return true;
        } else if arrivals() == before || begun.elapsed() > 5 * BOUND {
            return false;
        }
    }
}

/// # Errors
/// Fails with a sentence that says what went wrong.
pub(crate) async fn run(plan: &Plan) -> Result<Report, String> {
    let way = Way::of_plan(plan);
    let mut load = Load::start(&plan.crew, &way.url()).await;
    let mut hits = Hits::default();
    let mut limits = plan.changes_limits.then(|| Limits::start(&way.server, &load.members, plan.crew.seed));
    if plan.steps.is_empty() {
        sleep(UNDISTURBED).await;
    }
    for step in &plan.steps {
        sleep(step.after).await;
        way.suffer(step.fault, step.lasts, &load.ledger, &mut hits).await;
    }
    if let Some(limits) = &mut limits {
        limits.resume().await?;
    }
    let due = if !plan.sets_clock() {
        Due::All
    } else if plan.catches_up {
        let most_ahead = load.ledger.record().clock.most_ahead();
        way.set_clock(most_ahead + FARTHEST + 10, &load.ledger);
        Due::All
    } else {
        Due::Soon
    };

    let price = Price {
        forgot: plan.forgets(),
        refused: plan.refuses(),
        exact: plan.steps.is_empty(),
        dead_pops: plan.demotions() * load.takers(),
        ..Price::default()
    };
    let mut report = finish_when(&way.server, Some(&way.proxy), &mut load, price, due).await?;
    (report.faults, report.hits) = (plan.steps.len(), hits);
    if let Some(limits) = limits {
        report.limits = limits.judge().await?;
    }
    let quarantined: usize = way.server.get(["LLEN", QUARANTINE]);
    if plan.ends_empty() && !plan.forgets() && quarantined != 2 * plan.poisons() {
        return Err(format!("{quarantined} in the quarantine, two each of {} poisons", plan.poisons()));
    }
    Ok(report)
}

/// After all faults have ended: waits until everything is delivered, ends all clients, and checks the record.
///
/// # Errors
/// Fails with a sentence that says what went wrong.
pub(crate) async fn finish(server: &Server, proxy: &Proxy, load: &mut Load) -> Result<Report, String> {
    finish_when(server, Some(proxy), load, Price::default(), Due::All).await
}

/// The same after this number of demotions. Each client closes its connections then, and its library may have
/// read the reply to a pop that nobody sees any more.
///
/// # Errors
/// Fails with a sentence that says what went wrong.
pub(crate) async fn finish_demoted(
    server: &Server,
    proxy: &Proxy,
    load: &mut Load,
    demotions: usize,
) -> Result<Report, String> {
    let price = Price { dead_pops: demotions * load.takers(), ..Price::default() };
    finish_when(server, Some(proxy), load, price, Due::All).await
}

/// The same for clients without a proxy, and without blocking pops of takers.
///
/// # Errors
/// Fails with a sentence that says what went wrong.
pub(crate) async fn finish_without_takers(
    server: &Server,
    load: &mut Load,
    price: Price,
) -> Result<Report, String> {
    finish_when(server, None, load, price, Due::All).await
}

/// What has to be delivered in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    All,
    /// What is due about now, by the server's clock. It was set, so other entries may be due much later.
    Soon,
}

async fn finish_when(
    server: &Server,
    proxy: Option<&Proxy>,
    load: &mut Load,
    price: Price,
    due: Due,
) -> Result<Report, String> {
    let begun = Instant::now();
    load.stop_offering().await;
    let until_delivered = async || {
        let soon = match due {
            Due::All => {
                until_empty(server).await;
                MINUTE
            }
            Due::Soon => {
                until_nothing_due(server).await;
                SOON
            }
        };
        let all_settled = || async { unsettled(server, soon).is_empty() };
        until_async("what was received is settled", all_settled).await;
        // A pop whose reply was lost is sent again, by a client that may still be connecting.
        let all_came = || async { load.ledger.unconfirmed(server).is_empty() };
        until_async("what was popped arrives", all_came).await;
    };
    let delivered = async {
        until_delivered().await;
        for queues in &load.members {
            probe(&load.ledger, queues).await;
        }
        until_delivered().await;
    };
    if !ends_in_time(delivered, || load.ledger.record().arrivals()).await {
        let stats: Vec<_> = load.members.iter().map(|queues| queues.client.stats()).collect();
        let left = whereabouts(server, &load.ledger);
        return Err(format!("not all was delivered within {BOUND:?}: {left}; {stats:#?}"));
    }
    let recovery = begun.elapsed();
    let left_pops = proxy.map_or(0, Proxy::left_pops);
    load.shut_down().await;

    // Ends all connections, so that every lost pop is counted.
    proxy.iter().for_each(|proxy| proxy.cut());
    load.ledger.took_what_is_left(server, &[TARGET, INBOX]);
    // A client that ends on a busy machine may leave a pop unconfirmed: the payload is still here.
    load.ledger.took_pending(load.ledger.unconfirmed(server));
    load.ledger.read_what_is_left(server);
    load.ledger.record().deliveries.moved_alone(load.transferred());
    let record = load.ledger.record();
    let price = Price { dead_pops: price.dead_pops + proxy.map_or(0, Proxy::dead_pops), ..price };
    let verdict = record.judge(price);
    if !verdict.is_good() {
        return Err(format!("{verdict}; {price:?}; left pops {left_pops}"));
    }
    Ok(Report {
        acknowledged: record.count(Offered::Acknowledged),
        unknown: record.count(Offered::Unknown) + record.count(Offered::Begun),
        refused: record.count(Offered::Refused),
        taken: record.taken.len(),
        lost: verdict.lost.len(),
        received: record.deliveries.count(),
        deeds: record.deliveries.deeds(),
        receipts: receipts(server),
        forgot: price.forgot,
        dead_pops: price.dead_pops,
        recovery,
        faults: 0,
        hits: Hits::default(),
        limits: Watched::default(),
        zmscores: server.command_calls("zmscore"),
    })
}

/// What is due within this time is delivered.
const SOON: Duration = Duration::from_secs(3);

/// Waits until everything is taken that is due now or soon, by the server's clock.
async fn until_nothing_due(server: &Server) {
    let latest = now_millis(server) + SOON.as_millis() as i64;
    let is_done = || async {
        let due: usize = server.get(["ZCOUNT", TIMEOUT_SET, "-inf", &latest.to_string()]);
        let [pending, listed]: [usize; 2] =
            [server.get(["ZCARD", TIMEOUT_SET]), server.get(["LLEN", ORDERED_LIST])];
        due == 0 && pending == listed && server.get::<usize, _>(["EXISTS", TARGET]) == 0
    };
    until_async_within(10 * MINUTE, "what is due is moved and taken", is_done).await;
}

/// Offers until a taker has received one. The first may go to a pop whose client the server still believes to
/// be waiting.
async fn probe(ledger: &Ledger, queues: &Queues<i64>) {
    let mut probes = Vec::new();
    loop {
        let offer = ledger.offer(queues, Duration::from_millis(5)).await;
        probes.extend(offer.map(|(number, _)| number));
        let is_taken = || async { ledger.record().has_any(&probes) };
        let taken = until_async("a probe is taken", is_taken);
        if timeout(Duration::from_secs(1), taken).await.is_ok() {
            return;
        }
    }
}

/// A summary of what is still pending or ready, for the error message.
fn whereabouts(server: &Server, ledger: &Ledger) -> String {
    let pending = server.zset(TIMEOUT_SET).len();
    let listed = server.list(ORDERED_LIST).len();
    let ready = server.list(TARGET).len();
    let lost = ledger.record().judge(Price::default()).lost;
    let unconfirmed = ledger.unconfirmed(server);
    let unsettled = unsettled(server, SOON);
    let (subscribers, blocked) = (server.subscribers(CHANNEL), server.blocked_clients());
    format!(
        "{pending} pending ({listed} in the ordered list), {ready} ready, not delivered {lost:?}; {unsettled:?}; \
         in unconfirmed pops {unconfirmed:?}; {subscribers} subscribers, {blocked} parked pops; keys {:?}",
        server.keys().iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>()
    )
}
