//! The time that the server spends in the scripts of calls.

use futures::StreamExt;
use futures::stream;
use redelay::DelayedQueue;
use redelay_fixture::redis::{Connection, cmd};

use super::numbered::{CALLS, any, id, last};

/// Calls of each kind that takes long.
const LONG_CALLS: u64 = 20;
/// Calls in flight.
pub(super) const IN_FLIGHT: usize = 64;

/// The µs that the server has spent in scripts.
pub(super) fn spent(server: &mut Connection) -> f64 {
    let info: String = cmd("INFO").arg("commandstats").query(server).expect("INFO");
    let line = info.lines().find(|line| line.starts_with("cmdstat_evalsha:"));
    let usec = line.and_then(|line| line.split(',').find_map(|part| part.strip_prefix("usec=")));
    usec.map_or(0.0, |usec| usec.parse().expect("a number"))
}

/// The time that the server spends in scripts, in µs per call.
pub(super) async fn cost(
    server: &mut Connection,
    calls: u64,
    in_flight: usize,
    run: impl AsyncFn(u64),
) -> f64 {
    // The script is loaded.
    run(0).await;
    let before = spent(server);
    stream::iter(1..=calls).map(|number| run(number)).buffer_unordered(in_flight).collect::<()>().await;
    (spent(server) - before) / calls as f64
}

/// The cost of cancelling one of the last of `pending` jobs, and the cost of cancelling a random one.
pub(super) async fn cancels(
    server: &mut Connection,
    delayed: &DelayedQueue<String>,
    pending: u64,
) -> [f64; 2] {
    let cancel = async |number| {
        delayed.job(id(number)).cancel().await.map(drop).expect("an answer");
    };
    [
        cost(server, CALLS - 1, IN_FLIGHT, async |number| cancel(last(pending, number)).await).await,
        cost(server, LONG_CALLS, IN_FLIGHT, async |_| cancel(any(pending)).await).await,
    ]
}
