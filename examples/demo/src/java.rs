//! The other side: a Java process with Redisson on the same queue, behind the line protocol of `compat/java`.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use redelay::codec::{self, Codec};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout};

use crate::event::Event;
use crate::ledger::Stage;
use crate::order::{Order, Side, Taker};
use crate::server::Server;
use crate::shop::{DELAYS, Shop};

const OFFER_EVERY: Duration = Duration::from_millis(400);

pub(crate) struct Java {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    queue: String,
}

impl Java {
    /// `build` is what `compat/java/build.sh` has built for a version of Redisson.
    pub(crate) async fn start(build: &Path, url: &str, queue: &str) -> io::Result<Self> {
        let address = address(url).ok_or_else(|| io::Error::other("Java needs redis://, and database 0"))?;
        let class_path = format!("{}:{}", build.join("classes").display(), build.join("lib/*").display());
        let mut child = Command::new("java")
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"])
            // What it would log belongs into no picture. What fails is answered, too.
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
            .args(["-cp", &class_path, "Peer", &address, "json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes to the Java process"));
        };
        let mut java = Self { child, input, output: BufReader::new(output).lines(), queue: queue.to_owned() };
        java.line().await?;
        java.ask(&["open", queue]).await?;
        Ok(java)
    }

    /// Offers and takes until the process ends.
    pub(crate) async fn run(mut self, shop: Arc<Shop>) {
        if let Err(error) = self.work(&shop).await {
            shop.note(format!("the Java process: {error}"));
        }
        let _ = self.child.kill().await;
    }

    async fn work(&mut self, shop: &Shop) -> io::Result<()> {
        let mut next_offer = Instant::now();
        let queue = self.queue.clone();
        loop {
            if shop.is_offering() && Instant::now() >= next_offer {
                next_offer = Instant::now() + OFFER_EVERY;
                self.offer(shop).await?;
            }
            // Redisson waits whole seconds. An order may arrive at once.
            let answer = self.ask(&["poll", &queue, "1000"]).await?;
            match answer.strip_prefix('!') {
                Some(failure) => shop.note(format!("Java: {failure}")),
                None if answer == "null" => {}
                None => {
                    let order: Order = codec::Json.decode(answer.as_bytes()).map_err(io::Error::other)?;
                    let (id, by) = (order.id, Taker::Java);
                    shop.report(Event::Begun { id, by, attempt: 1 });
                    // Java's `poll` has no acknowledgement: what it has taken is gone from Redis.
                    shop.report(Event::Done { id, by });
                }
            }
        }
    }

    async fn offer(&mut self, shop: &Shop) -> io::Result<()> {
        let (order, delay) = (shop.next_order(), Duration::from_millis(fastrand::u64(DELAYS)));
        let json = codec::Json.encode(&order).map_err(io::Error::other)?;
        let (id, due) = (order.id, shop.now() + delay);
        shop.report(Event::Offering { order, by: Side::Java, due });
        let (queue, millis) = (self.queue.clone(), delay.as_millis().to_string());
        let answer = self.ask(&["offer", &queue, &String::from_utf8_lossy(&json), &millis]).await?;
        let stage = if answer == "ok" {
            Stage::Stored
        } else {
            // Redisson does not say whether it was done.
            shop.note(format!("Java: {}", answer.trim_start_matches('!')));
            Stage::Unsure
        };
        shop.report(Event::Became { id, stage });
        Ok(())
    }

    async fn ask(&mut self, fields: &[&str]) -> io::Result<String> {
        self.input.write_all((fields.join("\t") + "\n").as_bytes()).await?;
        self.line().await
    }

    async fn line(&mut self) -> io::Result<String> {
        let line = timeout(Duration::from_secs(20), self.output.next_line()).await??;
        line.ok_or_else(|| io::Error::other("it has ended"))
    }
}

/// The URL as Redisson wants it: with a port.
fn address(url: &str) -> Option<String> {
    let Server { port, .. } = Server::parse(url)?;
    let rest = url.strip_prefix("redis://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let with_port = authority.ends_with(&format!(":{port}"));
    let default_port = if with_port { String::new() } else { format!(":{port}") };
    matches!(path, "" | "0").then(|| format!("redis://{authority}{default_port}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_for_redisson() {
        let address = |url| super::address(url);
        assert_eq!(address("redis://localhost").as_deref(), Some("redis://localhost:6379"));
        assert_eq!(address("redis://:secret@h:7000/0").as_deref(), Some("redis://:secret@h:7000"));
        assert_eq!(address("redis://h:7000/1"), None);
        assert_eq!(address("rediss://h:7000"), None);
    }
}
