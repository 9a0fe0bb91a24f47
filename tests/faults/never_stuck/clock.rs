//! The server's clock is set forward and back, by a preloaded library.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use redelay_fixture::{Server, until, until_async_within};
use redelay_support::{MINUTE, TIMEOUT_SET, keys, number_queues};
use tempfile::TempDir;

use super::rig::BOUND;

/// A server whose clock can be set.
pub(crate) struct Clock {
    pub(crate) server: Server,
    offset: File,
    _dir: TempDir,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().expect("a path in UTF-8").to_owned();
        let (source, library) = (path("clock.c"), path("clock.so"));
        fs::write(&source, include_str!("clock.c")).unwrap();
        // Every machine that can link Rust programs has it.
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o", &library, &source]).status();
        assert!(compiled.expect("there is a C compiler").success(), "the clock does not compile");
        fs::write(path("offset"), 0_i64.to_ne_bytes()).unwrap();
        let offset = File::options().write(true).open(path("offset")).unwrap();
        let builder = Server::builder().env("LD_PRELOAD", library).env("CLOCK_OFFSET", path("offset"));
        let clock = Self { server: builder.start(), offset, _dir: dir };
        clock.set(7200);
        clock.set(0);
        clock
    }

    /// Seconds from the true time.
    pub(crate) fn set(&self, offset: i64) {
        self.offset.write_all_at(&offset.to_ne_bytes(), 0).unwrap();
        // Valkey caches the time briefly, so a script right after the jump may see the old time.
        let expected =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64 + offset;
        until("the server goes by this clock", || (self.now() - expected).abs() < 600);
    }

    /// The time as a script sees it.
    fn now(&self) -> i64 {
        self.server.get(["EVAL", "return tonumber(redis.call('TIME')[1])", "0"])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_of_the_server_jumps_both_ways() {
    let clock = Clock::start();
    let (client, ready, delayed) = number_queues(&clock.server).await;
    let take = async || match tokio::time::timeout(BOUND, ready.take()).await {
        Ok(taken) => taken.unwrap(),
        Err(_) => panic!("at {}, pending {:?}", clock.now(), clock.server.zset(TIMEOUT_SET)),
    };
    let offer = async |number: i64, delay: Duration| delayed.offer(&number, delay).await.unwrap();

    // Whatever the clock shows, an entry is delivered when its delay is over.
    for (number, offset) in (0..).zip([0, 3600, -3600, 86_400, -86_400, 0]) {
        clock.set(offset);
        let begun = Instant::now();
        offer(number, Duration::from_millis(50)).await;
        assert_eq!(take().await, number);
        println!("clock {offset:+} s: delivered after {:.0?}", begun.elapsed());
    }

    // Forward: entries that the jump made due are delivered.
    offer(10, 30 * MINUTE).await;
    clock.set(3600);
    assert_eq!(take().await, 10);

    // Back: an entry that was almost due is due in an hour, and the client does not keep asking for it.
    offer(20, Duration::from_millis(200)).await;
    clock.set(0);
    let scripts = || clock.server.command_calls("evalsha");
    let (begun, before) = (Instant::now(), scripts());
    assert_eq!(ready.poll_timeout(Duration::from_secs(3)).await.unwrap(), None);
    let (waited, calls) = (begun.elapsed().as_secs() + 1, scripts() - before);
    assert!(calls < 20 * waited, "{calls} scripts in {waited} s");
    offer(21, Duration::from_millis(10)).await;
    assert_eq!(take().await, 21);
    clock.set(3600);
    assert_eq!(take().await, 20);
    until_async_within(BOUND, "nothing is left", || async { keys(&clock.server).is_empty() }).await;
    client.shutdown().await;
}
