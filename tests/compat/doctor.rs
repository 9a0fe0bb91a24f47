//! `redelay doctor` beside a Redisson that is well, whose queues move meanwhile: it finds nothing.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use redelay_fixture::Server;

use super::peer::{self, Setup};
use super::{CHANNEL, HOUR};

#[test]
fn nothing_is_found_beside_a_redisson_that_is_well() {
    for version in ["4.7.0", "3.21.0"] {
        let server = Server::builder().appendonly(true).start();
        let url = server.url();
        let setup = Setup { redisson: version, codec: "kryo5", ..Setup::new(&url) };
        let (mut offers, mut takes) = (setup.java(), setup.java());
        for queue in ["q", "{tag}idle"] {
            offers.open(queue);
            offers.tell(&["offer", queue, "\"far\"", HOUR]);
        }
        let (mut taken, mut well) = (0, 0);
        for round in 1.. {
            let mut doctor = Command::new(peer::command());
            doctor.env("REDIS_URL", &url).env("HOME", "/nonexistent").args([
                "--timeout=1m",
                "doctor",
                "--json",
            ]);
            let mut doctor = doctor.stdout(Stdio::piped()).spawn().expect("the command");
            let mut longest = Duration::ZERO;
            while doctor.try_wait().expect("a process").is_none() || taken == 0 {
                let begun = Instant::now();
                offers.tell(&["offer", "q", &format!("\"payload {taken}\""), "15"]);
                while takes.ask(&["poll", "q", "500"]) == "null" {
                    // It has lost the wake-up, which `doctor` would report, and rightly so.
                    let (_, head) = server.zset("redisson_delay_queue_timeout:{q}").remove(0);
                    server.cmd(["PUBLISH", CHANNEL, &format!("{head:.0}")]);
                }
                taken += 1;
                longest = longest.max(begun.elapsed());
            }
            let output = doctor.wait_with_output().expect("its output");
            let found = String::from_utf8_lossy(&output.stdout);
            // The entries of the old one are of the old format, which is no fault.
            let is_fault = |line: &&str| version == "4.7.0" || !line.contains("\"code\":\"Q08\"");
            let faults: Vec<_> = found.lines().filter(is_fault).collect();
            let is_well = faults.is_empty() && output.status.success();
            // An entry that is overdue for longer is found, and rightly so.
            let is_quick = longest < Duration::from_secs(3);
            assert!(is_well || !is_quick && round < 12, "Redisson {version}, {longest:?} for one: {found}");
            well += usize::from(is_well);
            if well == 3 {
                break;
            }
        }
        offers.quit();
        takes.quit();
    }
}
