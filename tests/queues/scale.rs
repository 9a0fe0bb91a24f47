//! Ten thousand queues in one client: few connections, almost no cost when idle, and a busy queue beside
//! quiet ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use redelay::{BlockingQueue, Client, codec};
use redelay_fixture::{Server, until_async, until_async_within};
use redelay_support::{MINUTE, alone, part, still_builder};

const QUEUES: usize = 10_000;

/// The private memory of this process, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// The commands that clients have sent. The server also counts those of scripts: a look counts what is due in
/// a hundred queues.
fn commands(server: &Server) -> u64 {
    let stats = server.info("stats");
    let count = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:")).unwrap();
    let count: u64 = count.trim().parse().unwrap();
    count - server.command_calls("zcount") - server.command_calls("time")
}

fn names() -> impl Iterator<Item = String> {
    (0..QUEUES).map(|n| format!("orders:customer:{n:05}"))
}

/// How many connections of takers block on one server of a cluster.
const PARKED: u64 = 64;

fn queues(client: &Client) -> Vec<BlockingQueue<i64>> {
    names().map(|name| client.blocking_queue(&name, codec::Long)).collect()
}

/// The 99th percentile and the maximum.
fn p99(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() * 99 / 100], times[times.len() - 1])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_queues_cost_next_to_nothing() {
    // The measurement covers the whole process.
    if !alone("scale::idle_queues_cost_next_to_nothing") {
        return;
    }
    let server = Server::start();
    let client = Client::connect(&server.url()).await.unwrap();
    let begun = Instant::now();
    let all = queues(&client);
    let (some, others) = all.split_at(QUEUES / 5);
    let mut delayed: Vec<_> = some.iter().map(|queue| client.delayed_queue(queue)).collect();
    // For entries that are due, and for schedules.
    let looks = || async { server.command_calls("evalsha").min(server.command_calls("exists")) as usize };
    until_async("some are looked at", || async { looks().await >= some.len() }).await;
    // The first queues have made everything that is shared.
    let before = memory();
    delayed.extend(others.iter().map(|queue| client.delayed_queue(queue)));
    until_async("all are looked at", || async { looks().await >= QUEUES }).await;
    println!("{QUEUES} queues: open in {:?}", begun.elapsed());
    let each = memory().saturating_sub(before) / others.len();
    println!("{each} bytes of memory for each of them");
    // About 1,800; in a cluster, where the looks at twenty slots overlap, up to 300 more.
    assert!(each <= 3072);
    // A look is a script for each of 20 slots of a cluster, every 5 s.
    let most = if server.is_cluster() { 20.0 } else { 5.0 };
    // On a busy machine, the last of the opening is in the first periods.
    for period in 1.. {
        let before = commands(&server);
        // The period of the count.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let rate = (commands(&server) - before) as f64 / 4.0;
        println!("{rate:.1} commands a second when idle");
        if rate <= most {
            break;
        }
        assert!(period < 10, "{rate} commands a second");
    }
    assert!(server.clients_named("redelay") <= 4);
    drop(delayed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_takers_wait_at_once_and_a_busy_queue_starves_none() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let queues = queues(&client);
    let begun = Instant::now();
    let mut takers: FuturesUnordered<_> = queues
        .iter()
        .enumerate()
        .map(|(n, queue)| {
            let queue = queue.clone();
            tokio::spawn(async move { (n, queue.take().await, Instant::now()) })
        })
        .collect();
    until_async("all wait", || async {
        // Recently served lists have their own pop. In a cluster, some slots have.
        let blocked = if server.is_cluster() { PARKED } else { 2 };
        server.blocked_clients() == blocked && client.stats().takers == QUEUES as u64
    })
    .await;
    println!("{QUEUES} takers wait after {:?}", begun.elapsed());
    assert!(server.clients_named("redelay") as u64 <= if server.is_cluster() { PARKED + 2 } else { 4 });

    let busy = client.blocking_queue("busy", codec::Long);
    let stop = tokio_util::sync::CancellationToken::new();
    let taking = tokio::spawn({
        let (busy, stop) = (busy.clone(), stop.clone());
        async move {
            let mut taken = 0_u64;
            let begun = Instant::now();
            loop {
                tokio::select! {
                    _ = busy.take() => taken += 1,
                    () = stop.cancelled() => return taken as f64 / begun.elapsed().as_secs_f64(),
                }
            }
        }
    });
    let putting = tokio::spawn({
        let (busy, stop) = (busy.clone(), stop.clone());
        async move {
            while !stop.is_cancelled() {
                busy.put(&1).await.unwrap();
            }
        }
    });
    let mut late = Vec::new();
    for n in (0..QUEUES).step_by(QUEUES / part().share(300)) {
        let put = Instant::now();
        queues[n].put(&(n as i64)).await.unwrap();
        let (taker, value, at) = takers.next().await.unwrap().unwrap();
        assert_eq!((taker, value.unwrap()), (n, n as i64));
        late.push(at - put);
    }
    stop.cancel();
    putting.await.unwrap();
    let number = late.len();
    let (most, last) = p99(late);
    println!(
        "{:.0} a second from the busy queue; {number} from quiet ones, p99 {most:?}, last {last:?}",
        taking.await.unwrap()
    );
    drop(takers);
    client.shutdown().await;
}

/// Thousands of payloads that are due at the same time, each in a queue of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_in_each_of_ten_thousand_queues_costs_few_commands() {
    let server = Server::start();
    if server.is_cluster() {
        // No pop covers queues of several slots there.
        return;
    }
    let client = still_builder(&server).connect().await.unwrap();
    let taken = Arc::new(AtomicUsize::new(0));
    let takers: Vec<_> = queues(&client)
        .into_iter()
        .map(|queue| {
            let taken = taken.clone();
            tokio::spawn(async move {
                let value = queue.take().await.unwrap();
                taken.fetch_add(1, Ordering::Relaxed);
                (value, queue.take().await)
            })
        })
        .collect();
    let all_wait = || async { server.blocked_clients() == 2 && client.stats().takers == QUEUES as u64 };
    until_async("all wait", all_wait).await;
    let calls = || (server.command_calls("blpop"), server.command_calls("evalsha"));
    let before = calls();
    let begun = Instant::now();
    let push_all =
        "for n = 0, ARGV[1] - 1 do redis.call('RPUSH', string.format('orders:customer:%05d', n), n) end";
    server.cmd(["EVAL", push_all, "0", &QUEUES.to_string()]);
    until_async_within(MINUTE * 5, "all have got theirs", || async {
        taken.load(Ordering::Relaxed) == QUEUES
    })
    .await;
    let took = begun.elapsed();
    until_async("all wait again", all_wait).await;
    let after = calls();
    let (blocking, others) = (after.0 - before.0, after.1 - before.1);
    println!("{QUEUES} payloads after {took:?}, with {blocking} blocking pops and {others} scripts");
    // A blocking pop names up to all of the queues.
    assert!(blocking <= QUEUES as u64 / 20);
    assert!(others <= 3 * QUEUES as u64);
    client.stop_taking().await;
    for (n, taker) in takers.into_iter().enumerate() {
        let (value, closed) = taker.await.unwrap();
        assert_eq!((value, closed.unwrap_err().is_closed()), (n as i64, true));
    }
}
