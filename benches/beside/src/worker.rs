//! A worker process, in the view of the harness: the same for both systems.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::job::{Job, Reply};
use crate::peers;
use crate::redisson;
use crate::repeat::{Failure, Outcome};
use crate::tuning::Settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum System {
    Redelay,
    Redisson,
    BullMq,
    Asynq,
    Apalis,
}

impl System {
    /// Those that are compared in everything that is not acknowledged.
    pub(crate) const BOTH: [Self; 2] = [Self::Redelay, Self::Redisson];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redelay => "redelay",
            Self::Redisson => "Redisson",
            Self::BullMq => "BullMQ",
            Self::Asynq => "asynq",
            Self::Apalis => "apalis-redis",
        }
    }

    /// Due times and retries of apalis-redis have whole seconds, and it recovers after five minutes.
    pub(crate) fn has_milliseconds(self) -> bool {
        self != Self::Apalis
    }
}

/// One value for each of redelay and Redisson.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sides<T> {
    pub(crate) redelay: T,
    pub(crate) redisson: T,
}

impl<T> Sides<T> {
    pub(crate) fn map<U>(&self, mut map: impl FnMut(&T) -> U) -> Sides<U> {
        Sides { redelay: map(&self.redelay), redisson: map(&self.redisson) }
    }

    pub(crate) fn get(&self, system: System) -> &T {
        match system {
            System::Redelay => &self.redelay,
            System::Redisson => &self.redisson,
            System::BullMq | System::Asynq | System::Apalis => unreachable!("{} has no side", system.name()),
        }
    }
}

/// A worker process. It ends when this value is dropped, and when the harness ends, because its input ends
/// then.
pub(crate) struct Worker {
    system: System,
    child: Child,
    jobs: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn start(system: System, url: &str, settings: Settings) -> Outcome<Self> {
        Self::start_with_partitions(system, url, settings, 1)
    }

    /// Each of its queues has this number of partitions.
    pub(crate) fn start_with_partitions(
        system: System,
        url: &str,
        settings: Settings,
        partitions: usize,
    ) -> Outcome<Self> {
        let mut worker = Self::spawn(system, url, settings, partitions);
        worker.end()?;
        Ok(worker)
    }

    /// Starts all of them at once, since a Java virtual machine is slow to start.
    pub(crate) fn start_many(
        system: System,
        url: &str,
        settings: Settings,
        number: usize,
    ) -> Outcome<Vec<Self>> {
        let mut workers: Vec<_> = (0..number).map(|_| Self::spawn(system, url, settings, 1)).collect();
        workers.iter_mut().try_for_each(|worker| worker.end().map(drop))?;
        Ok(workers)
    }

    fn spawn(system: System, url: &str, settings: Settings, partitions: usize) -> Self {
        let command = match system {
            System::Redelay => own(&["--worker", url, &partitions.to_string()], settings),
            System::Redisson => redisson::command(url, settings.redisson, partitions),
            System::BullMq | System::Asynq | System::Apalis => peers::command(system, url),
        };
        Self::run(system, command)
    }

    /// A worker on an alternative to redelay, see `alternatives`.
    pub(crate) fn start_alternative(url: &str, interval: u64, settings: Settings) -> Outcome<Self> {
        Self::start_own(&["--alternative", url, &interval.to_string()], settings)
    }

    /// A client that does less than redelay, see `ladder`.
    pub(crate) fn start_rung(url: &str, rung: &str, settings: Settings) -> Outcome<Self> {
        Self::start_own(&["--rung", rung, url], settings)
    }

    fn start_own(args: &[&str], settings: Settings) -> Outcome<Self> {
        let mut worker = Self::run(System::Redelay, own(args, settings));
        worker.end()?;
        Ok(worker)
    }

    fn run(system: System, mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("the worker on {} does not start: {error}", system.name()));
        let jobs = child.stdin.take();
        let replies = BufReader::new(child.stdout.take().expect("a piped output"));
        Self { system, child, jobs, replies }
    }

    pub(crate) fn system(&self) -> System {
        self.system
    }

    pub(crate) fn ask(&mut self, job: &Job) -> Outcome<Reply> {
        self.begin(job)?;
        self.end()
    }

    /// Sends a job. [`Worker::end`] returns its reply.
    pub(crate) fn begin(&mut self, job: &Job) -> Outcome<()> {
        let mut line = serde_json::to_vec(job).expect("a job is JSON");
        line.push(b'\n');
        let jobs = self.jobs.as_mut().expect("open until it is dropped");
        let sent = jobs.write_all(&line).and_then(|()| jobs.flush());
        sent.map_err(|error| self.failure(&format!("does not read its jobs: {error}")))
    }

    pub(crate) fn end(&mut self) -> Outcome<Reply> {
        let mut line = String::new();
        let read = self.replies.read_line(&mut line);
        read.map_err(|error| self.failure(&format!("does not answer: {error}")))?;
        if line.is_empty() {
            return Err(self.failure("has ended"));
        }
        let reply: Reply = serde_json::from_str(&line).expect("an answer is JSON");
        match &reply.error {
            Some(error) => Err(self.failure(&format!("failed: {error}"))),
            None => Ok(reply),
        }
    }

    pub(crate) fn failure(&self, why: &str) -> Failure {
        Failure { system: self.system, why: why.to_owned() }
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.child.id())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in bytes.
    pub(crate) fn memory(&self) -> Outcome<f64> {
        memory(self.child.id()).ok_or_else(|| self.failure("has ended"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        // The worker may be in the middle of a job.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program, started again.
fn own(args: &[&str], settings: Settings) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    // Tokio reads this variable.
    command.args(args).env("TOKIO_WORKER_THREADS", settings.worker_threads.to_string());
    command
}

/// The CPU time that a process has used, in user and system mode. `/proc` has it in units of 10 ms, which is
/// more than a hundred messages cost.
fn cpu_seconds(pid: u32) -> f64 {
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
