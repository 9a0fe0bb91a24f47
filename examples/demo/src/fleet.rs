//! The consumers' processes: each is started, read, killed, and started again.

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::consumer::Report;
use crate::event::Event;
use crate::model::CONSUMERS;
use crate::order::Taker;
use crate::shop::Shop;

/// As long as a supervisor may take.
const BACK_AFTER: Duration = Duration::from_secs(2);

/// What a consumer's process is to suffer.
#[derive(Clone, Copy, Debug)]
enum Blow {
    Kill,
    Fail(u32),
}

pub(crate) struct Fleet {
    blows: Vec<UnboundedSender<Blow>>,
    keepers: JoinSet<()>,
}

impl Fleet {
    pub(crate) fn start(shop: &Arc<Shop>, url: &str) -> Self {
        let (mut blows, mut keepers) = (Vec::new(), JoinSet::new());
        for number in 0..CONSUMERS {
            let (sender, receiver) = unbounded_channel();
            blows.push(sender);
            keepers.spawn(keep(shop.clone(), url.to_owned(), number, receiver));
        }
        Self { blows, keepers }
    }

    /// `kill -9`
    pub(crate) fn kill(&self, number: usize) {
        let _ = self.blows[number].send(Blow::Kill);
    }

    /// Fails the attempt that this consumer has in hand.
    pub(crate) fn fail(&self, number: usize, order: u32) {
        let _ = self.blows[number].send(Blow::Fail(order));
    }

    /// Lets handlers end.
    pub(crate) async fn stop(mut self) {
        self.blows.clear();
        // What is not done then is killed with its keeper.
        let _ = timeout(Duration::from_secs(20), async { while self.keepers.join_next().await.is_some() {} })
            .await;
    }
}

/// Runs one consumer again and again, until no blow can come any more.
async fn keep(shop: Arc<Shop>, url: String, number: usize, mut blows: UnboundedReceiver<Blow>) {
    loop {
        let end = match Process::start(&url, &shop.name) {
            Ok(process) => {
                shop.report(Event::ConsumerStarted(number));
                process.attend(&shop, number, &mut blows).await
            }
            Err(error) => Err(error),
        };
        let killed = match end {
            Ok(End::Stopped) => return,
            Ok(End::Killed) => true,
            Err(error) => {
                shop.note(format!("a consumer's process: {error}"));
                false
            }
        };
        shop.report(Event::ConsumerGone { number, killed });
        sleep(BACK_AFTER).await;
        // Meant for the process that is gone.
        while blows.try_recv().is_ok() {}
        if blows.is_closed() {
            return;
        }
    }
}

enum End {
    /// As it was asked to.
    Stopped,
    Killed,
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    reports: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(url: &str, queue: &str) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--consumer", queue])
            // Not an argument: every user of the machine sees those, and a password may be in it.
            .env("REDIS_URL", url)
            // Ctrl-C is for the demo.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (input @ Some(_), Some(output)) => {
                Ok(Self { child, input, reports: BufReader::new(output).lines() })
            }
            _ => Err(io::Error::other("it has no pipes")),
        }
    }

    async fn attend(
        mut self,
        shop: &Shop,
        number: usize,
        blows: &mut UnboundedReceiver<Blow>,
    ) -> io::Result<End> {
        let mut killed = false;
        loop {
            tokio::select! {
                line = self.reports.next_line() => match line? {
                    Some(line) => report(shop, number, &line),
                    // The rest of what it has written was read before its end.
                    None => break,
                },
                blow = blows.recv(), if self.input.is_some() => match (blow, &mut self.input) {
                    (Some(Blow::Kill), _) => {
                        killed = true;
                        self.child.start_kill()?;
                    }
                    // One that is gone is found by the end of its lines.
                    (Some(Blow::Fail(order)), Some(input)) => {
                        let _ = input.write_all(format!("{order}\n").as_bytes()).await;
                    }
                    _ => self.input = None,
                },
            }
        }
        let status = self.child.wait().await?;
        match self.input {
            None => Ok(End::Stopped),
            Some(_) if killed => Ok(End::Killed),
            Some(_) => Err(io::Error::other(format!("it has ended: {status}"))),
        }
    }
}

fn report(shop: &Shop, number: usize, line: &str) {
    let by = Taker::Consumer(number);
    match Report::parse(line) {
        Some(Report::Begun { id, attempt }) => shop.report(Event::Begun { id, by, attempt }),
        Some(Report::Done { id }) => shop.report(Event::Done { id, by }),
        Some(Report::Failed { id }) => shop.report(Event::Failed { id }),
        None => shop.note(format!("a consumer writes: {line}")),
    }
}
