//! What `top` asks the server: for the names of the queues now and then, and for the numbers of those in
//! sight, and some others, once in an interval. It costs as much as `ls` at the beginning, and then less.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use futures::stream::{self, ReadyChunks, StreamExt, TryStreamExt};
use redelay::inspector::{Overview, Queues};
use tokio::time::{Instant, sleep_until};

use super::super::list::rows::Rows;
use super::state::{Event, Next, State};
use crate::connect::{Servers, Session, refused, some_of};
use crate::failure::Failure;
use crate::human;
use crate::out::Out;
use crate::payload::Reader;
use crate::queue;
use crate::state::is_unanswered;
use crate::table::Cell;
use crate::wanted::not_searched;

/// The least time between two searches. One that took longer than a twentieth of it is followed by a longer
/// pause.
const PAUSE: Duration = Duration::from_secs(30);
const SHARE: u32 = 20;
/// How many names one frame shows at once.
const NAMES: usize = 1_000;
/// Of how many queues the payloads are read in one look, and at a time.
const READERS: usize = 50;
/// The most entries of the queue that is open.
const ENTRIES: usize = 100;

/// Searches for queues, with pauses.
pub(super) struct Search<'a> {
    session: &'a Session,
    pattern: &'a [u8],
    /// The search that is under way, and since when.
    names: Option<(ReadyChunks<Queues>, Instant)>,
    due: Instant,
}

impl<'a> Search<'a> {
    pub(super) fn new(session: &'a Session, pattern: &'a [u8]) -> Self {
        Self { session, pattern, names: None, due: Instant::now() }
    }

    /// What it finds next. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Event, Failure> {
        let (names, begun) = match &mut self.names {
            Some(names) => names,
            None => {
                sleep_until(self.due).await;
                let names = self.session.inspector.queues(self.session.pattern(self.pattern));
                self.names.insert((names.ready_chunks(NAMES), Instant::now()))
            }
        };
        let found = names.next().await.map(|found| found.into_iter().collect::<redelay::Result<_>>());
        if let Some(Ok(found)) = found {
            return Ok(Event::Found(found));
        }
        self.due = Instant::now() + PAUSE.max(begun.elapsed() * SHARE);
        let (calls, unknown) = (names.get_ref().calls(), names.get_ref().unknown());
        let is_complete = matches!(not_searched(names.get_ref()), Ok(None));
        self.names = None;
        match found {
            Some(Err(error)) => Err(error.into()),
            _ => Ok(Event::Searched { calls, refusal: unknown.first().map(queue::refusal), is_complete }),
        }
    }
}

/// Asks about queues, one look at a time.
pub(super) struct Look<'a> {
    session: &'a Session,
    /// They may be others after a failover.
    servers: Rc<RefCell<Servers>>,
    out: &'a Out,
    under_way: Option<LocalBoxFuture<'a, Event>>,
}

impl<'a> Look<'a> {
    pub(super) fn new(session: &'a Session, servers: Servers, out: &'a Out) -> Self {
        Self { session, servers: Rc::new(RefCell::new(servers)), out, under_way: None }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    pub(super) fn begin(&mut self, state: &mut State) {
        let (names, unread) = (state.asks(), state.unread());
        let (open, lines) = (state.open.clone(), usize::from(state.size.1).min(ENTRIES));
        let (session, servers, out) = (self.session, self.servers.clone(), self.out);
        self.under_way = Some(Box::pin(async move {
            let look = async {
                let overviews = session.inspector.overview(&names).await?;
                let mut answering = overviews.iter().filter(|overview| !is_unanswered(overview));
                let has_other = answering.any(|overview| !servers.borrow().has(&overview.server));
                if has_other && let Ok(others) = session.ask_servers().await {
                    *servers.borrow_mut() = others;
                }
                let title = servers.borrow().line();
                let next = match overviews.iter().find(|overview| Some(&overview.name) == open.as_ref()) {
                    Some(queue) => {
                        let now = servers.borrow().clock(&queue.server);
                        Some((queue.name.clone(), next(session, queue, now, lines, out).await?))
                    }
                    None => None,
                };
                let mut left = READERS;
                let read = stream::iter(overviews).map(|overview| {
                    let is_unread = left > 0 && unread.contains(&overview.name);
                    left -= usize::from(is_unread);
                    async move {
                        let reader = if is_unread { Some(session.reader(&overview).await?) } else { None };
                        Ok::<_, Failure>((overview, reader))
                    }
                });
                Ok::<_, Failure>(Event::Looked(read.buffered(READERS).try_collect().await?, next, title))
            };
            look.await.unwrap_or_else(|failure: Failure| Event::Failed(failure.to_string()))
        }));
    }

    /// The answer, when there is one. Cancel safe.
    pub(super) async fn answer(&mut self) -> Event {
        match &mut self.under_way {
            Some(look) => {
                let event = look.await;
                self.under_way = None;
                event
            }
            None => std::future::pending().await,
        }
    }
}

/// What is due next in a queue.
async fn next(
    session: &Session,
    queue: &Overview,
    now: SystemTime,
    most: usize,
    out: &Out,
) -> Result<Next, Failure> {
    let read = async |after, most| session.inspector.pending(&queue.name, after, most).await;
    let entries = match some_of(read, |entry| entry.entry.len(), most, queue.pending).await {
        Ok(entries) => entries,
        Err(error) => {
            return Ok(Next { entries: Vec::new(), refusal: Some(refused("what is due", error)?) });
        }
    };
    let sample: Vec<Bytes> = entries.iter().filter_map(|entry| entry.payload.clone()).take(10).collect();
    let reader: Reader =
        session.reader_of(session.own_name(&queue.name), sample.iter().map(|payload| &payload[..]));
    let rows = Rows { now, out, is_masked: session.is_masked() };
    let cells = |row: super::super::list::rows::Row| {
        let payload = row.payload.as_ref().map(|payload| reader.read(payload));
        let payload =
            payload.map(|shown| [shown.codec, human::count(shown.bytes as u64), shown.text].map(Cell::from));
        row.cells.into_iter().chain(payload.into_iter().flatten()).collect()
    };
    Ok(Next { entries: entries.iter().map(|entry| cells(rows.pending(entry))).collect(), refusal: None })
}
