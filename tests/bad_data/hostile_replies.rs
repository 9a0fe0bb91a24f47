//! A server, or somebody between it and the client, that answers anything: no panic, bounded memory, and when
//! it answers properly again, everything works again.
//!
//! Real clients talk to a real server through a relay, which mutates the replies on the connections of one
//! role.
//!
//! | variable | says |
//! |---|---|
//! | `REDELAY_FUZZ=1000000` | mutate so many replies in each role (`make fuzz-replies`); a few thousand without it |
//! | `REDELAY_SEED=17` | mutate with this seed; the usual one is always the same, and with `REDELAY_FUZZ` a random one |
//!
//! What is not tried here: more than 64 levels of arrays, and replies without end. See "Why is the size of a
//! reply not bounded?" in docs/design/connections.md.

mod load;
mod mutation;
mod relay;
mod unbounded;

use std::fs;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use load::Crew;
use redelay_fixture::Server;
use redelay_support::part;
use relay::{Relay, Role};
use tokio::time::timeout;

/// The threads of the clients have names that begin so.
const THREADS: &str = "hostile";
/// Much more than what is in flight, and much less than what a hostile server could fill.
const MEMORY: usize = 512 << 20;
/// Until the last connection that a hostile reply has silenced is given up, and replaced.
const HEALED: Duration = Duration::from_secs(60);

static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let other = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if thread::current().name().is_some_and(|name| name.starts_with(THREADS)) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            other(info);
        }));
    });
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}: it should be a number")))
}

/// The highest memory of this process since `forget_peak`, where the system says it.
fn peak() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? << 10)
}

fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn attack(role: Role, usual: usize) {
    // One after the other: memory is counted for the whole process.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    count_panics();
    // Most of the time, a client waits for its next connection: hence many of them.
    let (count, clients) = match variable("REDELAY_FUZZ") {
        Some(count) => (count as usize, 24),
        None => (part().share(usual), 6),
    };
    let usual = if variable("REDELAY_FUZZ").is_some() { fastrand::u64(..) } else { 1 };
    let seed = variable("REDELAY_SEED").unwrap_or(usual);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name(THREADS)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    forget_peak();
    let panics = PANICS.load(Ordering::SeqCst);
    let (replies, before, took) = runtime.block_on(async {
        let server = Server::start();
        let relay = Relay::start(server.port(), role, seed).await;
        let crew = Crew::start(&relay, role, clients).await;
        let (before, begun) = (peak(), Instant::now());
        relay.attack(true);
        relay.mutated(count).await;
        relay.attack(false);
        let took = begun.elapsed();
        let healed = timeout(HEALED, crew.works()).await;
        assert!(healed.is_ok(), "{role:?}, seed {seed}: not everything works again");
        let ended = timeout(HEALED, crew.end()).await;
        assert!(ended.is_ok(), "{role:?}, seed {seed}: a shutdown hangs");
        (relay.count(), before, took)
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    let (peak, panics) = (peak(), PANICS.load(Ordering::SeqCst) - panics);
    let [least, most] = [before, peak].map(|bytes| bytes.unwrap_or(0) >> 20);
    println!(
        "{role:?}: {replies} replies in {took:.1?}, seed {seed}; {least} MB before, {most} MB at most; {panics} panics"
    );
    assert_eq!(panics, 0, "{role:?}, seed {seed}");
    if let (Some(before), Some(peak)) = (before, peak) {
        assert!(peak < before + MEMORY, "{role:?}, seed {seed}: {before} bytes before, {peak} at most");
    }
}

#[test]
fn while_connecting() {
    attack(Role::Connect, 2_000);
}

#[test]
fn to_commands() {
    attack(Role::Commands, 6_000);
}

#[test]
fn to_blocking_pops() {
    attack(Role::Pops, 4_000);
}

#[test]
fn to_the_subscriber() {
    attack(Role::Subscriber, 6_000);
}
