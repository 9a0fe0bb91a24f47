//! The server's clock is set forward and back, by a preloaded library.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use redelay_fixture::{Builder, Server, until, until_async_within};
use redelay_support::{MINUTE, TIMEOUT_SET, keys, number_queues};
use tempfile::TempDir;

use super::rig::BOUND;

/// Sets the clock of one server.
pub(crate) struct Dial {
    offset: File,
    _dir: TempDir,
}

impl Dial {
    /// Starts the server, and returns it with its dial.
    pub(crate) fn start(builder: Builder) -> (Server, Self) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("offset");
        fs::write(&path, 0_i64.to_ne_bytes()).unwrap();
        let offset = File::options().write(true).open(&path).unwrap();
        let builder = builder.env("LD_PRELOAD", text(library())).env("CLOCK_OFFSET", text(&path));
        (builder.start(), Self { offset, _dir: dir })
    }

    /// Sets it to this number of seconds from the true time.
    pub(crate) fn set(&self, server: &Server, ahead: i64) {
        self.offset.write_all_at(&ahead.to_ne_bytes(), 0).unwrap();
        // Valkey caches the time briefly, so a script right after the jump may see the old time.
        let expected = || millis() + ahead * 1000;
        until("the server goes by this clock", || {
            (expected()..=expected() + 500).contains(&(now_millis(server) + 50))
        });
    }
}

/// A server whose clock can be set.
pub(crate) struct Clock {
    pub(crate) server: Server,
    dial: Dial,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let (server, dial) = Dial::start(Server::builder());
        let clock = Self { server, dial };
        clock.set(7200);
        clock.set(0);
        clock
    }

    /// Seconds from the true time.
    pub(crate) fn set(&self, ahead: i64) {
        self.dial.set(&self.server, ahead);
    }

    /// The time as a script sees it.
    fn now(&self) -> i64 {
        now_millis(&self.server) / 1000
    }
}

/// The time as a script sees it, epoch ms.
pub(super) fn now_millis(server: &Server) -> i64 {
    let (seconds, micros): (i64, i64) = server.get(["EVAL", "return redis.call('TIME')", "0"]);
    seconds * 1000 + micros / 1000
}

/// The true time, epoch ms.
fn millis() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970");
    now.as_millis() as i64
}

/// The library that is preloaded. It is compiled once for each process.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (source, library) = (dir.path().join("clock.c"), dir.path().join("clock.so"));
        fs::write(&source, include_str!("clock.c")).unwrap();
        // Every machine that can link Rust programs has it.
        let mut compiler = Command::new("cc");
        let compiled =
            compiler.args(["-shared", "-fPIC", "-O1", "-o", text(&library), text(&source)]).status();
        assert!(compiled.expect("there is a C compiler").success(), "the clock does not compile");
        // Servers load it whenever they start. The other processes of a test run may use the same file.
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clock.so");
        fs::rename(library, &kept).unwrap();
        kept
    })
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
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
    for tries in 1.. {
        offer(20, Duration::from_millis(200)).await;
        clock.set(0);
        if !clock.server.zset(TIMEOUT_SET).is_empty() {
            break;
        }
        // On a busy machine, it was due before.
        assert!(tries < 10, "it was due each time");
        assert_eq!(take().await, 20);
        clock.set(3600);
    }
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
