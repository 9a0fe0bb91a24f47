//! Commands that go on while sentinels replace the master.

use std::time::Duration;

use redelay_fixture::{Program, Sentinels, Terminal, until, until_within};

use super::{Ran, page, program};

/// On a busy machine, each look takes long.
const LONGEST: Duration = Duration::from_secs(600);

#[test]
fn what_goes_on_follows_the_new_master() {
    let all = Sentinels::start();
    let url = all.url();
    // Whether the server has accepted it: it may have become a replica.
    let offer = |server: &redelay_fixture::Server, id: &str| {
        let entry = format!("\x01{id}\x01\0\0\0\0\0\0\0{id}");
        let is_offered = server
            .try_cmd(["ZADD", "redisson_delay_queue_timeout:{orders}", "1795252457299", &entry])
            .is_ok();
        is_offered && server.try_cmd(["RPUSH", "redisson_delay_queue:{orders}", &entry]).is_ok()
    };
    assert!(offer(all.master(), "a"));
    let environment = [("REDIS_URL", &*url), ("HOME", "/nonexistent")];
    let start = |words: &[&str]| Program::start(env!("CARGO_BIN_EXE_redelay"), words, &environment);
    // It ends if its first search fails, and the others if their first questions do.
    let pump = start(&["--timeout=1m", "pump", "--health", "127.0.0.1:0"]);
    let is_well =
        || page(&pump, "its health is at http://", "/health").is_some_and(|(status, _)| status == 200);
    let watch = start(&["--timeout=1m", "watch"]);
    let has_said = |words: &str| {
        let output = watch.output();
        assert!(watch.is_running(), "it goes on: {output}");
        output.contains(words)
    };
    #[cfg(feature = "exporter")]
    let exporter = start(&["--timeout=1m", "exporter", "--listen", "127.0.0.1:0", "--interval", "1s"]);
    #[cfg(feature = "exporter")]
    let is_up = |ready: &str| {
        let metrics =
            page(&exporter, "metrics at http://", "/metrics").map(|(_, text)| text).unwrap_or_default();
        metrics.contains("redelay_up 1") && metrics.contains(ready)
    };
    let mut terminal = Terminal::new(120, 30);
    let mut command = program();
    let mut top =
        terminal.start(command.env("REDIS_URL", &url).args(["--timeout=1m", "top", "--interval", "1s"]));
    let old = all.master().port();
    terminal.shows(&format!("127.0.0.1:{old} "));
    // `top` ends if its first search fails.
    terminal.shows(", found with ");
    until("it is moved", || {
        assert!(pump.is_running(), "it goes on: {}", pump.output());
        all.master().list("orders").len() == 1
    });
    until("it listens", || has_said("listening; "));
    until("it is well", is_well);
    #[cfg(feature = "exporter")]
    until_within(LONGEST, "it is up", || is_up("redelay_queue_ready{queue=\"orders\"} 1"));
    until("the replicas have it", || all.replicas().iter().all(|replica| replica.list("orders").len() == 1));

    all.master().kill_9();
    let mut new = all.wait_for_other_master(old);
    // On a busy machine, the sentinels may replace this one, too, and what only it had is gone.
    let mut offered_to = None;
    until_within(LONGEST, "it is moved on the new master", || {
        new = all.master();
        if offered_to != Some(new.port()) && offer(new, "b") {
            offered_to = Some(new.port());
        }
        new.list("orders").contains(&b"b".to_vec())
    });
    until("it is well", is_well);
    #[cfg(feature = "exporter")]
    until_within(LONGEST, "it is up", || {
        is_up(&format!("redelay_queue_ready{{queue=\"orders\"}} {}", new.list("orders").len()))
    });
    terminal.shows(&format!("127.0.0.1:{} ", new.port()));
    until("it listens to the new master", || {
        new.cmd(["PUBLISH", "redisson_delay_queue_channel:{orders}", "4102444800000"]);
        has_said("orders: the next one is due")
    });
    let ls = program().env("REDIS_URL", &url).args(["--timeout=1m", "ls"]).output().unwrap();
    assert!(Ran::new(&ls).ok().contains(&format!("127.0.0.1:{} ", new.port())));
    terminal.press("q");
    assert!(top.wait().unwrap().success());
    for program in [pump, watch] {
        program.interrupt();
        until("it ends", || program.exit_code().is_some());
        assert_eq!(program.exit_code(), Some(0));
    }
}
