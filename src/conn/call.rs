//! Calling a command: once, or again while its reply is lost. What an error of the server leaves out is found
//! out.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::too_large::Size;
use super::{Command, Conn, Link, OpError, Reply, Servers};
use crate::pacing::Retries;
use crate::wire::time;

impl Conn {
    /// Runs a command: at most once, or until it is answered within the command timeout if it may be
    /// repeated. If a try was lost, no error says that nothing was executed, unless the command only reads.
    ///
    /// Dropping the future does not cancel a command that was sent: it runs, and its reply is lost. So a
    /// command that takes an element out of Redis is called by a task that is never dropped half-way (see
    /// `pops`).
    pub(crate) async fn call(&self, command: &Command) -> Result<Reply, OpError> {
        let mut lost = false;
        let result = self.call_noting(command, &mut lost).await;
        result.map_err(|error| if lost && !command.is_read() { error.after_a_lost_try() } else { error })
    }

    /// The same. Returns the error of the last try, and notes whether one was lost and repeated, which the
    /// server may have executed, or may still execute.
    pub(crate) async fn call_noting(&self, command: &Command, lost: &mut bool) -> Result<Reply, OpError> {
        let deadline = Instant::now() + self.command_timeout;
        let mut retries = Retries::until(deadline);
        let mut within = self.command_timeout;
        loop {
            // In boxes, as is what is rare, so that the futures of callers stay small.
            let error = match self.call_within(command, within).await {
                Err(error) if Size::of(command).may_explain(&error) => {
                    Box::pin(self.blaming_size(error, Size::of(command), deadline)).await
                }
                Err(error @ OpError::Server(_)) => {
                    return Err(
                        Box::pin(self.naming_keys(error, command.name, command.keys(), deadline)).await
                    );
                }
                Err(error) => error,
                reply => return reply,
            };
            if !command.may_be_repeated() || !matches!(error, OpError::Unknown(_)) {
                return Err(error);
            }
            *lost = true;
            if !retries.pause().await {
                return Err(error);
            }
            within = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        }
    }

    /// The server's clock, epoch µs.
    pub(crate) async fn time(&self) -> Result<i64, OpError> {
        let [seconds, micros] = self.call(&Command::new("TIME").only_reads()).await?.into_parts()?;
        let (seconds, micros) = (seconds.into_bytes()?, micros.into_bytes()?);
        time::server_clock(&seconds, &micros).ok_or_else(|| self.desynchronised())
    }

    /// Ends the pop that this other connection blocks on. It has no effect before the server has received the
    /// pop.
    ///
    /// Redis 7.0.15 that is paused for writes, as in a failover, holds the pop back, and crashes when such a
    /// client is to be unblocked. It holds a script back, too, and with it the commands that follow on its
    /// connection.
    pub(crate) async fn unblock(&self, blocked: &Link) {
        // Ids are those of one server. On another one, this would end another client's pop.
        let address = blocked.address();
        let beside = match &self.base.servers {
            Servers::One(commands) => Some(commands.link.clone()).filter(|link| link.address() == address),
            Servers::Cluster(cluster) => cluster.at(&address),
        };
        let id = blocked.session().and_then(|session| session.client_id);
        let Some((commands, id)) = beside.zip(id) else { return };
        if commands.session().is_none() || blocked.address() != address {
            return;
        }
        // Nothing may come between the two commands.
        if timeout(self.base.options.command_timeout, commands.in_use()).await.is_err() {
            return;
        }
        let hold = Command::new("EVAL").arg("return 0").number(0);
        let unblock = Command::new("CLIENT").arg("UNBLOCK").number(id).arg("TIMEOUT");
        let call = |command| commands.call(command, self.base.options.command_timeout);
        let _ = futures::future::join(call(&hold), call(&unblock)).await;
    }
}
