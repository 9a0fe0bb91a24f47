//! `redelay pump`: transfers for queues of others. `once` moves what is due now, and `pumped` has the
//! queues that are transferred for as long as the program runs.

mod event;
mod health;
mod once;
mod pumped;
mod twins;

use std::convert::Infallible;
use std::ffi::OsString;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use redelay::inspector::{Happening, Inspector};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::args::{Connection, Pumping};
use crate::connect::Session;
use crate::escape;
use crate::failure::Failure;
use crate::out::Out;
use crate::wanted::{Wanted, not_searched};
use event::Event;
use health::Health;
use pumped::Pumped;
use twins::BATCH;

/// How often it looks whether transfers fail.
const CHECKS_EVERY: Duration = Duration::from_secs(1);

/// The longest name in an announcement, in bytes. A user who may only publish can invent names.
const LONGEST: usize = 4096;

/// What it says of itself on its first line.
const NOTICE: &str = "Due entries move by the server's clock, also where that of a Redisson is behind. Entries \
    that cannot be read, at which a Redisson would stand still, go to the quarantine. Payloads are moved as \
    they are.";

/// What was found.
enum Found {
    /// These queues, by their keys.
    Names(Vec<Bytes>),
    /// This queue, into which something was offered.
    Announced(Bytes),
    /// All keys were searched.
    All,
    /// They could not be searched, or not listened for.
    Not(String),
}

pub(crate) async fn run(connection: &Connection, pumping: Pumping, out: &Out) -> Result<(), Failure> {
    let words: Vec<Vec<u8>> = pumping.patterns.into_iter().map(OsString::into_encoded_bytes).collect();
    let health = match pumping.health {
        Some(address) => Some(crate::http::listen(address).await?),
        None => None,
    };
    let (session, client) = Session::with_client(connection, !pumping.once).await?;
    let servers = session.servers(out).await?;
    let wanted = Wanted::new(&session, &words);
    let patterns: Vec<String> = words.iter().map(|word| escape::bytes(word)).collect();
    if out.is_json {
        if !pumping.once {
            out.json(&Event::Started { patterns, notice: NOTICE })?;
        }
    } else {
        out.line(&format!("{} · pumps {}. {NOTICE}", servers.line(), patterns.join(" ")))?;
    }
    if pumping.once {
        return once::run(&session, &client, &wanted, out).await;
    }
    let pages = Health::default();
    if let Some((listener, address)) = health {
        out.note(&format!("its health is at http://{address}/health"));
        tokio::spawn(crate::http::serve(listener, pages.pages()));
    }
    let pumped = Pumped::new(&session, client.clone(), &wanted, pumping.most as usize, out);
    let (sender, found) = mpsc::channel(16);
    let again = Notify::new();
    let end = tokio::select! {
        end = search(&session.inspector, &wanted, pumping.search, &again, &sender) => end,
        end = listen(&session.inspector, &wanted, &again, &sender) => end,
        end = transfer(pumped, found, &pages) => end,
    };
    end.map(|never| match never {})
}

/// Searches all keys now and then, and whenever announcements were missed.
async fn search(
    inspector: &Inspector,
    wanted: &Wanted,
    every: Duration,
    again: &Notify,
    found: &mpsc::Sender<Found>,
) -> Result<Infallible, Failure> {
    while !wanted.patterns.is_empty() {
        let mut queues = wanted.search(inspector);
        let end = {
            let mut batches = std::pin::pin!(wanted.of(&mut queues).try_chunks(BATCH));
            loop {
                match batches.try_next().await {
                    Ok(Some(names)) => send(found, Found::Names(names)).await,
                    Ok(None) => break None,
                    Err(error) => break Some(Failure::passes(error.1)?),
                }
            }
        };
        let end = match end {
            Some(why) => Some(why),
            None => not_searched(&queues)?,
        };
        let end = end.map_or(Found::All, Found::Not);
        send(found, end).await;
        // Not at once, however often announcements are missed.
        tokio::time::sleep(every.min(CHECKS_EVERY)).await;
        let _ = timeout(every, again.notified()).await;
    }
    // Queues that are named are there, or will be.
    loop {
        send(found, Found::All).await;
        tokio::time::sleep(every).await;
    }
}

/// Listens for queues that were not there when the keys were searched.
async fn listen(
    inspector: &Inspector,
    wanted: &Wanted,
    again: &Notify,
    found: &mpsc::Sender<Found>,
) -> Result<Infallible, Failure> {
    if wanted.patterns.is_empty() {
        std::future::pending::<()>().await;
    }
    let mut happenings = inspector.watch("*");
    let mut is_first = true;
    while let Some(happening) = happenings.try_next().await? {
        match happening {
            Happening::Announced { queue, .. } if queue.len() <= LONGEST && wanted.matches(&queue) => {
                send(found, Found::Announced(queue)).await;
            }
            // The search that has begun with the program finds what was announced before.
            Happening::Listening if !std::mem::take(&mut is_first) => again.notify_one(),
            _ => {}
        }
    }
    Err(Failure::NoConnection("the server sends no more announcements".into()))
}

async fn send(found: &mpsc::Sender<Found>, what: Found) {
    // The receiver lives as long as this.
    let _ = found.send(what).await;
}

/// Transfers for what is found.
async fn transfer(
    mut pumped: Pumped<'_>,
    mut found: mpsc::Receiver<Found>,
    health: &Health,
) -> Result<Infallible, Failure> {
    let mut checks = interval(CHECKS_EVERY);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(found) = found.recv() => match found {
                Found::Names(names) => pumped.found(names, false).await?,
                Found::Announced(name) => pumped.found(vec![name], true).await?,
                Found::All => pumped.searched().await?,
                Found::Not(why) => pumped.not_searched(why),
            },
            _ = checks.tick() => {
                pumped.check()?;
                health.set(pumped.report());
            }
        }
    }
}
