//! `redelay exporter`: what is in the queues, for Prometheus.

mod gauges;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use redelay::inspector::{Inspector, Overview, Server};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinError;

use crate::args::Exporting;
use crate::connect::Session;
use crate::escape;
use crate::failure::Failure;
use crate::http::{self, Page, Pages};
use crate::out::Out;
use crate::state::{is_silence, is_unanswered};
use crate::wanted::{Wanted, not_searched};
use gauges::{Look, OfQueue};

/// What is due within this time is counted.
const SOON: Duration = Duration::from_secs(60);
/// Of how many queues that is asked at a time.
const AT_A_TIME: usize = 50;

/// The queues that were found.
#[derive(Clone, Default)]
struct Found {
    names: BTreeSet<Bytes>,
    left_out: usize,
}

/// Looks at the queues.
struct Exporter {
    inspector: Inspector,
    found: Mutex<Found>,
    interval: Duration,
    /// Whether the last look has failed, which was said.
    is_failing: AtomicBool,
    out: Out,
    last: Last,
}

/// The last answer, and when it was made. It is locked while the next one is made.
type Last = Arc<AsyncMutex<Option<(Instant, Bytes)>>>;

pub(crate) async fn run(session: &Session, exporting: Exporting, out: &Out) -> Result<(), Failure> {
    let words: Vec<Vec<u8>> = exporting.patterns.into_iter().map(OsString::into_encoded_bytes).collect();
    let (listener, address) = http::listen(exporting.listen).await?;
    let servers = session.servers(out).await?;
    let wanted = Wanted::new(session, &words);
    let most = exporting.most as usize;
    let exporter = Arc::new(Exporter {
        inspector: session.inspector.clone(),
        found: Mutex::default(),
        interval: exporting.interval,
        is_failing: AtomicBool::new(false),
        out: out.clone(),
        last: Last::default(),
    });
    let (found, not_searched) = find(&session.inspector, &wanted, most).await?;
    // A permission that every look needs is named at once.
    if let Err(error) = session.inspector.overview(&found.names.iter().collect::<Vec<_>>()).await {
        out.note(&Failure::passes(error)?);
        exporter.is_failing.store(true, Ordering::Relaxed);
    }
    exporter.set(found);
    not_searched.iter().for_each(|why| out.note(why));
    let line = format!("{} · metrics at http://{address}/metrics", servers.line());
    if out.is_json {
        out.note(&line);
    } else {
        out.line(&line)?;
    }
    let never = tokio::select! {
        never = http::serve(listener, pages(&exporter)) => never,
        end = search(&exporter, &wanted, most, exporting.search) => end?,
    };
    match never {}
}

fn pages(exporter: &Arc<Exporter>) -> Pages {
    let exporter = exporter.clone();
    Arc::new(move |path| {
        let exporter = exporter.clone();
        let page = async move {
            let (last, interval) = (exporter.last.clone(), exporter.interval);
            let body = latest(last, interval, async move { exporter.look().await.text() }).await;
            let (is_ok, body) = (body.is_ok(), body.unwrap_or_default());
            Page { is_ok, content_type: "text/plain; version=0.0.4; charset=utf-8", body }
        };
        (path == "/metrics").then(|| page.boxed())
    })
}

/// The metrics, as they were at most the interval ago. The look goes on if the client breaks off: the next
/// one gets its answer. A client that breaks off while another one looks leaves nothing behind.
async fn latest(
    last: Last,
    interval: Duration,
    look: impl Future<Output = String> + Send + 'static,
) -> Result<Bytes, JoinError> {
    let mut last = last.lock_owned().await;
    if let Some((_, text)) = last.as_ref().filter(|(at, _)| at.elapsed() < interval) {
        return Ok(text.clone());
    }
    let look = async move {
        let text = Bytes::from(look.await);
        *last = Some((Instant::now(), text.clone()));
        text
    };
    tokio::spawn(look).await
}

/// Searches for queues now and then.
async fn search(
    exporter: &Exporter,
    wanted: &Wanted,
    most: usize,
    every: Duration,
) -> Result<Infallible, Failure> {
    let out = &exporter.out;
    let mut is_failing = false;
    loop {
        tokio::time::sleep(every).await;
        match find(&exporter.inspector, wanted, most).await {
            Ok((found, None)) => {
                exporter.set(found);
                is_failing = false;
            }
            // Those that were found before are still there, as far as is known.
            Ok((_, Some(why))) => {
                if !std::mem::replace(&mut is_failing, true) {
                    out.note(&why);
                }
            }
            Err(refused @ Failure::Refused(_)) => return Err(refused),
            Err(failure) => {
                if !std::mem::replace(&mut is_failing, true) {
                    out.note(&failure.to_string());
                }
            }
        }
    }
}

/// The queues that are meant: those that are named, and the first ones of the others in the order of their
/// names, so that they stay the same. And why some were not searched for.
async fn find(
    inspector: &Inspector,
    wanted: &Wanted,
    most: usize,
) -> Result<(Found, Option<String>), Failure> {
    let mut found = Found::default();
    let mut queues = wanted.search(inspector);
    let mut names = stream::iter(wanted.names.clone()).map(Ok).boxed_local();
    if !wanted.patterns.is_empty() {
        names = names.chain(wanted.of(&mut queues)).boxed_local();
    }
    while let Some(name) = names.try_next().await? {
        if found.names.insert(name) && found.names.len() > most {
            found.left_out += 1;
            let last = found.names.iter().rev().find(|name| !wanted.names.contains(*name)).cloned();
            found.names.remove(&last.or_else(|| found.names.last().cloned()).unwrap_or_default());
        }
    }
    drop(names);
    Ok((found, not_searched(&queues)?))
}

impl Exporter {
    fn set(&self, found: Found) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    async fn look(&self) -> Look {
        let begun = Instant::now();
        let Found { names, left_out } = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let names: Vec<Bytes> = names.into_iter().collect();
        let (overviews, is_up) = futures::join!(self.inspector.overview(&names), self.is_up());
        let is_up = is_up && overviews.is_ok();
        let was_failing = self.is_failing.swap(overviews.is_err(), Ordering::Relaxed);
        let overviews = overviews.unwrap_or_else(|error| {
            if !was_failing {
                self.out.note(&Failure::from(error).to_string());
            }
            Vec::new()
        });
        let queues = stream::iter(overviews)
            .map(|overview| self.of_queue(overview))
            .buffered(AT_A_TIME)
            .collect::<Vec<_>>()
            .await;
        Look { is_up, took: begun.elapsed(), left_out, queues }
    }

    /// Whether all servers answer.
    async fn is_up(&self) -> bool {
        let is_silent = |server: &Server| server.unknown.iter().any(is_silence);
        self.inspector.servers().await.is_ok_and(|servers| !servers.iter().any(is_silent))
    }

    async fn of_queue(&self, overview: Overview) -> OfQueue {
        // A server that is silent is not asked again: the look would take too long for a scrape.
        let soon = if is_unanswered(&overview) {
            None
        } else {
            // What is due already, what is due soon, and the rest.
            let counts = self.inspector.due(&overview.name, SOON, 1).await;
            counts.ok().and_then(|counts| Some(counts.get(1)?.count))
        };
        let (label, hex) = match std::str::from_utf8(&overview.name) {
            Ok(name) => (name.to_owned(), None),
            Err(_) => (escape::bytes(&overview.name), Some(crate::payload::hex(&overview.name))),
        };
        OfQueue { label, hex, overview, soon }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_client_that_breaks_off_leaves_only_the_look() {
        let last = Last::default();
        let get = |look| latest(last.clone(), Duration::MAX, look);
        let (sender, answer) = oneshot::channel();
        let first = get(async { answer.await.unwrap() }.boxed());
        assert!(first.now_or_never().is_none(), "it looks");
        let references = Arc::strong_count(&last);
        for _ in 0..10 {
            let waits = get(async { unreachable!("another one looks") }.boxed());
            assert!(waits.now_or_never().is_none());
        }
        assert_eq!(Arc::strong_count(&last), references);
        sender.send("metrics".to_owned()).unwrap();
        let next = get(async { unreachable!("it has looked") }.boxed()).await;
        assert_eq!(next.unwrap(), "metrics");
    }
}
