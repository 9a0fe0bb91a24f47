//! Runs a plan: the load, the faults one after the other, and the wait until everything is delivered.

use std::time::{Duration, Instant};

use redelay_fixture::{Proxy, Server, until_async_within};
use redelay_support::{CHANNEL, MINUTE, ORDERED_LIST, QUARANTINE, Queues, TARGET, TIMEOUT_SET};
use tokio::time::{sleep, timeout};

use super::clock::now_millis;
use super::faults::{Hits, Way};
use super::plan::{FARTHEST, Plan};
use crate::ledger::{Ledger, Offered, Price};
use crate::workload::{Load, until_empty};

/// Within this time after the end of the last fault, everything is delivered, including new offers.
///
/// It follows from the timeouts. A client gives up a pop on a silent connection 3 s after its block of 10 s, and a
/// silent subscriber 3 s after the ping that it sends every 10 s. The next connection has 3 s for its handshake. The
/// longest pause between connection attempts is 5 s, though no fault here lasts long enough for it. The rest is for a
/// busy machine. Nothing may depend on a sweep, which follows only after a minute; except in a plan that keeps announcements
/// from clients, where it follows [`SOON`](super::plan::SOON).
pub(crate) const BOUND: Duration = Duration::from_secs(25);

/// The figures of a successful run.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) acknowledged: usize,
    pub(crate) unknown: usize,
    pub(crate) refused: usize,
    pub(crate) taken: usize,
    pub(crate) lost: usize,
    /// Whether the server itself may have lost what is missing.
    pub(crate) forgot: bool,
    pub(crate) dead_pops: usize,
    /// From the end of the last fault until everything was delivered, new offers included.
    pub(crate) recovery: Duration,
    pub(crate) faults: usize,
    pub(crate) hits: Hits,
}

/// # Errors
/// Fails with a sentence that says what went wrong.
pub(crate) async fn run(plan: &Plan) -> Result<Report, String> {
    let way = Way::of_plan(plan);
    let mut load = Load::start(&plan.crew, &way.url()).await;
    let mut hits = Hits::default();
    for step in &plan.steps {
        sleep(step.after).await;
        way.suffer(step.fault, step.lasts, &load.ledger, &mut hits).await;
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

    let mut report = finish_when(&way.server, &way.proxy, &mut load, plan.forgets(), due).await?;
    (report.faults, report.hits) = (plan.steps.len(), hits);
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
pub(crate) async fn finish(
    server: &Server,
    proxy: &Proxy,
    load: &mut Load,
    forgot: bool,
) -> Result<Report, String> {
    finish_when(server, proxy, load, forgot, Due::All).await
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
    proxy: &Proxy,
    load: &mut Load,
    forgot: bool,
    due: Due,
) -> Result<Report, String> {
    let begun = Instant::now();
    load.stop_offering().await;
    let until_delivered = async || {
        match due {
            Due::All => until_empty(server).await,
            Due::Soon => until_nothing_due(server).await,
        }
        // A pop whose reply was lost is sent again, by a client that may still be connecting.
        let all_came = || async { load.ledger.unconfirmed(server).is_empty() };
        until_async_within(MINUTE, "what was popped arrives", all_came).await;
    };
    let delivered = async {
        until_delivered().await;
        for queues in &load.members {
            probe(&load.ledger, queues).await;
        }
        until_delivered().await;
    };
    if timeout(BOUND.saturating_sub(begun.elapsed()), delivered).await.is_err() {
        let stats: Vec<_> = load.members.iter().map(|queues| queues.client.stats()).collect();
        let left = whereabouts(server, &load.ledger);
        return Err(format!("not all was delivered within {BOUND:?}: {left}; {stats:#?}"));
    }
    let recovery = begun.elapsed();
    load.shut_down().await;

    // Ends all connections, so that every lost pop is counted.
    proxy.cut();
    load.ledger.took_what_is_left(server, &[TARGET]);
    let record = load.ledger.record();
    let price = Price { dead_pops: proxy.dead_pops(), forgot };
    let verdict = record.judge(price);
    if !verdict.is_good() {
        return Err(format!("{verdict}; {price:?}"));
    }
    Ok(Report {
        acknowledged: record.count(Offered::Acknowledged),
        unknown: record.count(Offered::Unknown) + record.count(Offered::Begun),
        refused: record.count(Offered::Refused),
        taken: record.taken.len(),
        lost: verdict.lost.len(),
        forgot,
        dead_pops: price.dead_pops,
        recovery,
        faults: 0,
        hits: Hits::default(),
    })
}

/// Waits until everything is taken that is due now or soon, by the server's clock.
async fn until_nothing_due(server: &Server) {
    const SOON: i64 = 3_000;
    let latest = now_millis(server) + SOON;
    let is_done = || async {
        let due: usize = server.get(["ZCOUNT", TIMEOUT_SET, "-inf", &latest.to_string()]);
        let [pending, listed]: [usize; 2] =
            [server.get(["ZCARD", TIMEOUT_SET]), server.get(["LLEN", ORDERED_LIST])];
        due == 0 && pending == listed && server.get::<usize, _>(["EXISTS", TARGET]) == 0
    };
    until_async_within(MINUTE, "what is due is moved and taken", is_done).await;
}

/// Offers until a taker has received one. The first may go to a pop whose client the server still believes to be
/// waiting.
async fn probe(ledger: &Ledger, queues: &Queues<i64>) {
    let mut probes = Vec::new();
    loop {
        let offer = ledger.offer(queues, Duration::from_millis(5)).await;
        probes.extend(offer.map(|(number, _)| number));
        let is_taken = || async { ledger.record().taken.iter().any(|number| probes.contains(number)) };
        let taken = until_async_within(MINUTE, "a probe is taken", is_taken);
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
    let (subscribers, blocked) = (server.subscribers(CHANNEL), server.blocked_clients());
    format!(
        "{pending} pending ({listed} in the ordered list), {ready} ready, not delivered {lost:?}; \
         in unconfirmed pops {unconfirmed:?}; {subscribers} subscribers, {blocked} parked pops; keys {:?}",
        server.keys().iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>()
    )
}
