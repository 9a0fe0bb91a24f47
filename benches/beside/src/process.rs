//! What a running process uses.

use std::fs;
use std::time::Duration;

use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

/// The CPU time that a process has used, in user and system mode. `/proc` has it in units of 10 ms, which is
/// more than a hundred messages cost.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let clock = clock_getcpuclockid(Pid::from_raw(pid as i32));
    let used = clock.and_then(|clock| clock.now()).expect("a running process");
    Duration::from(used).as_secs_f64()
}

/// The resident memory of a process in bytes. A process that has ended has none.
pub(crate) fn memory(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0)
}
