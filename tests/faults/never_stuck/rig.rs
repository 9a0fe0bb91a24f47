//! Runs a plan: the load, the faults one after the other, and the wait until everything is delivered.

use std::time::{Duration, Instant};

use redelay_fixture::{Proxy, Server, until_async_within};
use redelay_support::{CHANNEL, MINUTE, ORDERED_LIST, QUARANTINE, Queues, TARGET, TIMEOUT_SET};
use tokio::time::{sleep, timeout};

use super::faults::Way;
use super::plan::Plan;
use crate::ledger::{Ledger, Offered, Price, left};
use crate::workload::{Load, until_empty};

/// Within this time after the end of the last fault, everything is delivered, including new offers.
///
/// It follows from the timeouts. A client gives up a pop on a silent connection 3 s after its block of 10 s, and a
/// silent subscriber 3 s after the ping that it sends every 10 s. The next connection has 3 s for its handshake. The
/// longest pause between connection attempts is 5 s, though no fault here lasts long enough for it. The rest is for a
/// busy machine. Nothing may depend on a sweep, which follows only after a minute.
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
}

/// # Errors
/// Fails with a sentence that says what went wrong.
pub(crate) async fn run(plan: &Plan) -> Result<Report, String> {
    let server = Server::builder().appendonly(plan.is_durable).start();
    let proxy = Proxy::start(server.port());
    let way = Way { server, proxy };
    let mut load = Load::start(&plan.crew, &way.proxy.url()).await;
    for step in &plan.steps {
        sleep(step.after).await;
        way.suffer(step.fault, step.lasts).await;
    }

    let report = finish(&way.server, &way.proxy, &mut load, plan.forgets()).await?;
    let quarantined: usize = way.server.get(["LLEN", QUARANTINE]);
    if !plan.forgets() && quarantined != 2 * plan.poisons() {
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
    let begun = Instant::now();
    load.stop_offering().await;
    let delivered = async {
        until_empty(server).await;
        for queues in &load.members {
            probe(&load.ledger, queues).await;
        }
        until_empty(server).await;
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
    load.ledger.took(left(server, &[TARGET]));
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
    })
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
    let (subscribers, blocked) = (server.subscribers(CHANNEL), server.blocked_clients());
    format!(
        "{pending} pending ({listed} in the ordered list), {ready} ready, not delivered {lost:?}; \
         {subscribers} subscribers, {blocked} parked pops; keys {:?}",
        server.keys().iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>()
    )
}
