//! The system calls of a process, counted by `strace`.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// `strace`, attached to all threads of a process.
pub(super) struct Counter {
    strace: Child,
    output: BufReader<ChildStderr>,
}

impl Counter {
    /// `None` if `strace` is not installed, or may not attach.
    pub(super) fn attach(pid: u32) -> Option<Self> {
        let mut strace = Command::new("strace")
            .args(["-f", "-c", "-U", "calls,name", "-p", &pid.to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let output = BufReader::new(strace.stderr.take().expect("a piped output"));
        let mut counter = Self { strace, output };
        // "strace: Process 17 attached with 5 threads"
        counter.next_line()?.contains(" attached").then_some(counter)
    }

    /// Detaches, and returns the number since it attached. `None` if the process has ended.
    pub(super) fn count(mut self) -> Option<f64> {
        let pid = Pid::from_raw(self.strace.id() as i32);
        kill(pid, Signal::SIGINT).expect("strace, which was not waited for");
        loop {
            // The last line of the summary: "   6532 total"
            if let Some(total) = self.next_line()?.strip_suffix(" total") {
                return total.trim().parse().ok();
            }
        }
    }

    fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(line.trim_end().to_owned())
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // It may have ended.
        let _ = kill(Pid::from_raw(self.strace.id() as i32), Signal::SIGINT);
        let _ = self.strace.wait();
    }
}
