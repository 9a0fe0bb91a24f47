//! Worker processes, in the view of the harness: the same for all systems.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::job::{Job, Reply};
use crate::peers;
use crate::process::{cpu_seconds, memory};
use crate::redisson;
use crate::repeat::{Failure, Outcome};
use crate::settings::Settings;
use crate::system::System;

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

/// Gives the same job to all workers at the same time, and returns their replies.
pub(crate) fn ask_all(workers: &mut [Worker], job: &Job) -> Outcome<Vec<Reply>> {
    workers.iter_mut().try_for_each(|worker| worker.begin(job))?;
    workers.iter_mut().map(Worker::end).collect()
}

/// Waits until this number of payloads is collected, or until none has come for as long as `patience`.
/// Returns the number collected.
pub(crate) fn wait_for(workers: &mut [Worker], count: u64, patience: Duration) -> Outcome<u64> {
    wait_and_look(workers, count, patience, Duration::from_millis(10))
}

/// The same with this pause between two looks. Each costs the worker as much as a message or more.
pub(crate) fn wait_and_look(
    workers: &mut [Worker],
    count: u64,
    patience: Duration,
    pause: Duration,
) -> Outcome<u64> {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let collected = ask_all(workers, &Job::Collected)?.iter().map(|reply| reply.count).sum();
        if collected > last {
            (last, since) = (collected, Instant::now());
        }
        if collected >= count || since.elapsed() > patience {
            return Ok(collected);
        }
        sleep(pause);
    }
}
