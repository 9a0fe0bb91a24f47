//! Arguments that are larger than the server accepts. It closes the connection without a word, or with one
//! that names no limit.
//!
//! Nothing limits the sum of the arguments. The server reads them one by one, and its buffer holds the one
//! that it reads.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::{Command, Conn, OpError, Reply};

/// No server has smaller limits, bytes.
pub(crate) const LARGE: usize = 1 << 20;
const LIMITS: [&str; 2] = ["proto-max-bulk-len", "client-query-buffer-limit"];
/// How long the server may take to say what an error is about, with a new connection.
const TELL: Duration = Duration::from_secs(2);
/// The same if the caller has no time left.
const AFTER: Duration = Duration::from_millis(200);

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

    /// What is known of the error of a call if the server does not say its limits.
    fn suspected(self, error: OpError) -> OpError {
        let bytes = self.0;
        let may_be = format!("it may be larger than the server accepts ({}); {ADVICE}", LIMITS.join(", "));
        match error {
            OpError::Unknown(cause) => {
                let text = format!("{cause}, while an argument of {bytes} bytes was sent: {may_be}");
                OpError::Unknown(cause.instead(text))
            }
            OpError::Server(why) => {
                OpError::TooLarge(format!("{why}: an argument has {bytes} bytes: {may_be}"))
            }
            error => error,
        }
    }
}

const ADVICE: &str =
    "raise the limit, or send smaller payloads; `max_payload` refuses large ones before they are sent";

impl Conn {
    /// How long the server may be asked what the error of a call is about, which has time until `deadline`.
    /// `None` if there is no time.
    pub(super) fn time_to_ask(&self, deadline: Instant) -> Option<Duration> {
        let left = deadline.saturating_duration_since(Instant::now());
        let within = if self.is_connected() { left.max(AFTER) } else { left };
        (!within.is_zero()).then(|| within.min(TELL))
    }

    /// What the server's limits make of this error of a call: it was refused, or that is only suspected. In
    /// an outage, the server does not answer, and the call ends as others do.
    pub(super) async fn blaming_size(&self, error: OpError, size: Size, deadline: Instant) -> OpError {
        let unanswered = |error| match error {
            // An outage sends no such error.
            OpError::Server(_) => size.suspected(error),
            error => error,
        };
        let Some(within) = self.time_to_ask(deadline) else { return unanswered(error) };
        // The connection that has brought the error may end only now, and with it the first try.
        let conn = self.with_timeout(within);
        let asks = LIMITS.map(|limit| Command::new("CONFIG").arg("GET").arg(limit).only_reads());
        let answers = join_all(asks.iter().map(|ask| conn.call(ask))).await;
        for (limit, most) in LIMITS.into_iter().zip(answers) {
            let most = match most {
                Ok(reply) => number(reply),
                Err(OpError::Server(_)) => None,
                Err(_) => return unanswered(error),
            };
            let Some(most) = most else { return size.suspected(error) };
            let bytes = size.0;
            if bytes as u64 > most {
                return OpError::TooLarge(format!(
                    "an argument has {bytes} bytes, more than the {most} of the server's {limit}; {ADVICE}"
                ));
            }
        }
        error
    }
}

/// The value in the reply of `CONFIG GET`.
fn number(reply: Reply) -> Option<u64> {
    let [_, value] = reply.into_parts().ok()?;
    std::str::from_utf8(&value.into_bytes().ok()?).ok()?.parse().ok()
}
