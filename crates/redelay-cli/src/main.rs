//! `redelay`: looks into delayed queues on Redis, those of Java Redisson and those of redelay.
//!
//! `args` is the command line, and `commands` has a file for each command. A command reads through a
//! `Session` (`connect`, `profile`) and writes to `Out`. What it prints is made by pure functions: `queue`
//! and `state` of a queue in numbers, `doctor` of what is wrong, `payload` and `mask` of a payload, which
//! `decoder` may read, `classes` of the Java classes of payloads, `table`, `human` and `escape` of text.

mod args;
mod classes;
mod commands;
mod connect;
mod decoder;
mod doctor;
mod escape;
mod failure;
mod http;
mod human;
mod mask;
mod out;
mod payload;
mod profile;
mod queue;
mod state;
mod table;
mod wanted;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use failure::Failure;

/// A command that was interrupted.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let end = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let end = runtime.block_on(run(arguments));
            // Nothing that is left has to end properly: it only reads, or moves an entry with one script.
            runtime.shutdown_background();
            end
        }
        Err(error) => Err(Failure::Other(format!("no runtime can be started: {error}"))),
    };
    match end {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let text = failure.to_string();
            if !text.is_empty() {
                // Without stderr, nothing reads it.
                let _ = writeln!(std::io::stderr().lock(), "redelay: {text}");
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Returns the exit code of a command that has no failure to report.
async fn run(arguments: Arguments) -> Result<u8, Failure> {
    // A program of `--decoder` is in a process group of its own, which a terminal that is closed does not
    // end. Without one, that signal is left to the system: with `nohup`, the command goes on.
    let decodes = match &arguments.command {
        Command::List { decoder, .. } | Command::Inspect { decoder, .. } => decoder.decoder.is_some(),
        _ => false,
    };
    let signal = async {
        tokio::select! {
            () = signal() => {}
            () = end_of_terminal(), if decodes => {}
        }
    };
    let code = match &arguments.command {
        // They block, and then the signal ends them as it ends any program, without a handler. It must end
        // the program of `--decoder`, too, for which `inspect` waits.
        Command::Inspect { .. }
        | Command::JavaStruct { .. }
        | Command::Completions { .. }
        | Command::Man { .. } => {
            return tokio::select! {
                biased;
                end = commands::run(arguments) => end.map(|()| 0),
                () = signal => Ok(INTERRUPTED),
            };
        }
        Command::Watch { .. } => 0,
        // What it had not moved yet is still due.
        Command::Pump(pumping) if !pumping.once => 0,
        #[cfg(feature = "exporter")]
        Command::Exporter(_) => 0,
        #[cfg(feature = "top")]
        Command::Top { .. } => 0,
        _ => INTERRUPTED,
    };
    tokio::select! {
        // First, so that no signal comes before its handler.
        biased;
        () = signal => Ok(code),
        end = commands::run(arguments) => end.map(|()| 0),
    }
}

/// Waits for SIGHUP or SIGQUIT.
async fn end_of_terminal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = (signal(SignalKind::hangup()), signal(SignalKind::quit()));
        if let (Ok(mut hangup), Ok(mut quit)) = signals {
            tokio::select! {
                _ = hangup.recv() => {}
                _ = quit.recv() => {}
            }
            return;
        }
    }
    std::future::pending().await
}

/// Waits for SIGINT or SIGTERM.
async fn signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        if let (Ok(mut interrupt), Ok(mut terminate)) = signals {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
