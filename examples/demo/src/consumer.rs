//! A consumer: a process of its own, with a worker. It writes what its handlers do as lines, and reads which
//! of them are to fail. It stops at the end of its input. Both sides of these lines are here.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redelay::worker::{Backoff, Context};
use redelay::{Client, Worker, codec};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::order::Order;

/// How long the orders of a killed consumer wait for another one. The default is 30 s; a demo cannot wait
/// that long.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(2);
pub(crate) const ATTEMPTS: u32 = 3;
/// Orders that one consumer handles at a time.
const SLOTS: usize = 4;
/// How long a handler takes, in milliseconds.
const WORK: std::ops::Range<u64> = 500..1200;

/// What a handler does, as a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Begun { id: u32, attempt: u32 },
    Done { id: u32 },
    Failed { id: u32 },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begun { id, attempt } => write!(f, "begun {id} {attempt}"),
            Self::Done { id } => write!(f, "done {id}"),
            Self::Failed { id } => write!(f, "failed {id}"),
        }
    }
}

impl Report {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let what = words.next()?;
        let mut number = || words.next()?.parse().ok();
        let id = number()?;
        match what {
            "begun" => Some(Self::Begun { id, attempt: number()? }),
            "done" => Some(Self::Done { id }),
            "failed" => Some(Self::Failed { id }),
            _ => None,
        }
    }

    fn print(self) {
        // Where nobody reads any more, the end of the input follows.
        let _ = writeln!(std::io::stdout().lock(), "{self}");
    }
}

/// The orders in hand; what is sent makes their handlers fail.
#[derive(Clone, Default)]
struct Hands(Arc<Mutex<HashMap<u32, oneshot::Sender<()>>>>);

impl Hands {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, oneshot::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn handle(self, order: Order, context: Context) -> Result<(), &'static str> {
        let id = order.id;
        let (sender, fail) = oneshot::channel();
        self.lock().insert(id, sender);
        Report::Begun { id, attempt: context.attempt() }.print();
        let failed = tokio::select! {
            () = sleep(Duration::from_millis(fastrand::u64(WORK))) => false,
            Ok(()) = fail => true,
        };
        self.lock().remove(&id);
        if failed {
            Report::Failed { id }.print();
            return Err("the cup broke");
        }
        Report::Done { id }.print();
        Ok(())
    }

    /// Until the end of the input.
    async fn obey(self) {
        let mut lines = BufReader::new(stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let fail = line.parse().ok().and_then(|id: u32| self.lock().remove(&id));
            if let Some(fail) = fail {
                let _ = fail.send(());
            }
        }
    }
}

/// The program of the process. Its connections have the name of the queue, so that `x` finds them.
pub(crate) async fn run(url: &str, queue: &str) -> redelay::Result<ExitCode> {
    let client = Client::builder().url(url).client_name(queue).connect().await?;
    let orders = client.blocking_queue::<Order>(queue, codec::Json);
    let hands = Hands::default();
    Worker::new(&orders)
        .concurrency(SLOTS)
        .lease(LEASE)
        .max_attempts(ATTEMPTS)
        .backoff(Backoff::fixed(RETRY_AFTER))
        .run_until(hands.clone().obey(), move |order, context| hands.clone().handle(order, context))
        .await?;
    client.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn what_is_printed_is_read() {
        for report in [
            Report::Begun { id: 7, attempt: 2 },
            Report::Done { id: 4_294_967_295 },
            Report::Failed { id: 0 },
        ] {
            assert_eq!(Report::parse(&report.to_string()), Some(report));
        }
        for line in ["", "begun 7", "done x", "lost 1"] {
            assert_eq!(Report::parse(line), None, "{line}");
        }
    }
}
