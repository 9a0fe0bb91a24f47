//! Signals that concern a terminal. SIGINT and SIGTERM end every command, and are handled where it begins.

use std::io;

/// What a signal asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Signal {
    /// SIGHUP, SIGQUIT: the command ends as with SIGTERM.
    End,
    /// SIGTSTP: others get the terminal.
    Stop,
    /// SIGCONT: others had it.
    Continue,
}

#[cfg(unix)]
pub(super) struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let number = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
        let all = [
            (Signal::End, SignalKind::hangup()),
            (Signal::End, SignalKind::quit()),
            (Signal::Stop, number(rustix::process::Signal::TSTP)),
            (Signal::Continue, number(rustix::process::Signal::CONT)),
        ];
        all.into_iter().map(|(what, kind)| Ok((what, signal(kind)?))).collect::<io::Result<_>>().map(Self)
    }

    pub(super) async fn next(&mut self) -> Signal {
        let each = self.0.iter_mut().map(|(what, signal)| {
            Box::pin(async move {
                signal.recv().await;
                *what
            })
        });
        futures::future::select_all(each).await.0
    }
}

/// Asks all processes of the job to stop, this one included.
#[cfg(unix)]
pub(super) fn stop_job() {
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
}

/// Stops this process until something continues it. Not by SIGTSTP: that has a handler here, and does nothing
/// in a session without a shell.
#[cfg(unix)]
pub(super) fn stop() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}

#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn next(&mut self) -> Signal {
        std::future::pending().await
    }
}

#[cfg(not(unix))]
pub(super) fn stop_job() {}

#[cfg(not(unix))]
pub(super) fn stop() {}
