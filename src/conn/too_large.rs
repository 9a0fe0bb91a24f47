//! Arguments that are larger than the server accepts. It closes the connection without a word, or with one that names no limit.
//!
//! Nothing limits the sum of the arguments. The server reads them one by one, and its buffer holds the one that it reads.

use std::time::Duration;

use super::{Command, Conn, OpError, Reply};

/// No server has smaller limits.
const LARGE: usize = 1 << 20;
/// How long the server may take to tell its limits, with a new connection.
const TELL: Duration = Duration::from_secs(2);
/// After so many lost connections in a row, the call is blamed.
pub(crate) const BLAMED: u32 = 3;

/// How many bytes the largest argument of a call has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(usize);

impl Size {
    pub(super) fn of(command: &Command) -> Self {
        Self(command.args.iter().map(|arg| arg.len()).max().unwrap_or(0))
    }

    /// Whether this error of the call may mean that it was too large.
    pub(super) fn may_explain(self, error: &OpError) -> bool {
        let is_cut_off = match error {
            OpError::Unknown(cause) => cause.is_closed(),
            OpError::Server(why) => why.contains("Protocol error"),
            _ => false,
        };
        is_cut_off && self.0 >= LARGE
    }

    /// The error of a call whose connection was lost, if the server does not tell its limits.
    pub(super) fn suspected(self, error: OpError) -> OpError {
        let OpError::Unknown(cause) = error else { return error };
        let text = format!(
            "{cause}, while an argument of {} bytes was sent: it {SUSPECTED} (client-query-buffer-limit, proto-max-bulk-len); {ADVICE}",
            self.0
        );
        OpError::Unknown(cause.instead(text))
    }
}

const SUSPECTED: &str = "may be larger than the server accepts";

impl OpError {
    /// Whether the call may have been too large. After [`BLAMED`] such errors no retry helps.
    pub(crate) fn may_be_too_large(&self) -> bool {
        matches!(self, Self::Unknown(cause) if cause.says(SUSPECTED))
    }
}

const ADVICE: &str =
    "raise the limit, or send smaller payloads; `max_payload` refuses large ones before they are sent";

impl Conn {
    /// What the server's limits make of this error of a call: it was refused, or that is only suspected.
    pub(super) async fn blaming_size(&self, error: OpError, size: Size) -> OpError {
        match self.is_too_large(size).await {
            Some(Some(refused)) => refused,
            Some(None) => error,
            None => size.suspected(error),
        }
    }

    /// The error of a call that the server did not execute because an argument is larger than one of its limits. `None` if the
    /// server does not tell them.
    async fn is_too_large(&self, size: Size) -> Option<Option<OpError>> {
        let bytes = size.0;
        for limit in ["proto-max-bulk-len", "client-query-buffer-limit"] {
            let reply = self.call_within(Command::new("CONFIG").arg("GET").arg(limit), TELL).await;
            let most = reply.ok().and_then(number)?;
            if bytes as u64 > most {
                let why = format!(
                    "an argument has {bytes} bytes, more than the {most} of the server's {limit}; {ADVICE}"
                );
                return Some(Some(OpError::Server(why)));
            }
        }
        Some(None)
    }
}

/// The value in the reply of `CONFIG GET`.
fn number(reply: Reply) -> Option<u64> {
    let [_, value] = reply.into_parts().ok()?;
    std::str::from_utf8(&value.into_bytes().ok()?).ok()?.parse().ok()
}
