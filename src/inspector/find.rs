//! Finding the queues of a server: by their pending keys, by redelay's keys, and by those who listen.

pub(super) mod glob;
pub(super) mod names;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{self, BoxStream, Stream};
use tokio::time::sleep;

use super::Inspector;
use super::leftovers::{self, Left, Leftover};
use super::look::failed;
use super::scan::{BEGIN, PAUSE, scan};
use super::unknown::{Unknown, Unknowns, refuses_key};
use crate::conn::{Command, Conn, OpError, Reply};
use crate::error::Result;
use names::{Found, KEYS};

/// How many names are looked at in one pipeline.
const PIPELINE: usize = 200;
const ATTEMPT: &str = "`inspector().queues`";

/// The names of queues, as they are found. [`Inspector::queues`] returns this stream. Each name comes once.
pub struct Queues {
    names: BoxStream<'static, Result<Bytes>>,
    unknown: Arc<Mutex<Unknowns>>,
    calls: Arc<AtomicU64>,
    left: Arc<Mutex<Left>>,
}

impl Queues {
    /// What the server has refused to say: without the permission for `PUBSUB CHANNELS`, queues are not found
    /// that are empty and have live clients. Complete when the stream has ended.
    ///
    /// # Examples
    /// ```no_run
    /// # use futures::TryStreamExt;
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let mut queues = inspector.queues("shop:*");
    /// let names: Vec<_> = (&mut queues).try_collect().await?;
    /// println!("{} queues; not known: {:?}", names.len(), queues.unknown());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn unknown(&self) -> Vec<Unknown> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).to_vec()
    }

    /// How many commands the search has sent so far, without those that ask for the types of keys.
    ///
    /// # Examples
    /// ```no_run
    /// # use futures::TryStreamExt;
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let mut queues = inspector.queues("*");
    /// let names: Vec<_> = (&mut queues).try_collect().await?;
    /// println!("{} queues, found with {} calls", names.len(), queues.calls());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The keys that should have been deleted, if [`queues_and_leftovers`](Inspector::queues_and_leftovers)
    /// looks for them. Complete when the stream has ended.
    ///
    /// # Examples
    /// ```no_run
    /// # use futures::TryStreamExt;
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let mut queues = inspector.queues_and_leftovers("*");
    /// let names: Vec<_> = (&mut queues).try_collect().await?;
    /// println!("{} queues, {:?}", names.len(), queues.leftovers());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn leftovers(&self) -> Vec<Leftover> {
        leftovers::of_queues(self.left.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Stream for Queues {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.names.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queues").finish_non_exhaustive()
    }
}

impl Inspector {
    /// Finds queues whose names match a pattern: `*` any bytes, `?` one byte, `[ab]` and `[a-z]` one of
    /// these, `\` takes the next one as it is. `*` alone matches all.
    ///
    /// A queue is found if something is pending, if redelay keeps something of it, or if a client holds its
    /// delayed queue now. A queue of which only the ready list is left cannot be told from any other list.
    ///
    /// `{orders}` and `orders` have the same keys of pending entries, and are found as `orders` while the
    /// list `{orders}` is empty. If Java's name is `{orders}`, use that name instead.
    ///
    /// It looks at all keys of the database, 500 at a time, with a pause of 1 ms. In a cluster it asks each
    /// master; the queues of one that does not answer are not found, and [`Queues::unknown`] says so.
    ///
    /// # Errors
    /// The stream ends with [`Unavailable`](crate::ErrorKind::Unavailable), or
    /// [`Refused`](crate::ErrorKind::Refused) without the permissions `SCAN` and `TYPE`, if no server can be
    /// searched.
    ///
    /// # Examples
    /// ```no_run
    /// # use futures::TryStreamExt;
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let mut queues = inspector.queues("*");
    /// while let Some(name) = queues.try_next().await? {
    ///     println!("{}", String::from_utf8_lossy(&name));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn queues(&self, pattern: impl AsRef<[u8]>) -> Queues {
        self.search(pattern.as_ref(), false)
    }

    /// The same as [`queues`](Self::queues) and [`leftovers`](Self::leftovers), with one search of all keys:
    /// [`Queues::leftovers`] has what was found. Leftovers are those of all queues.
    ///
    /// # Errors
    /// Those of [`queues`](Self::queues). Without the permissions `PTTL` and `TIME`, [`Queues::unknown`] says
    /// so.
    ///
    /// # Examples
    /// ```no_run
    /// # use futures::TryStreamExt;
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let mut queues = inspector.queues_and_leftovers("*");
    /// while let Some(name) = queues.try_next().await? {
    ///     println!("{}", String::from_utf8_lossy(&name));
    /// }
    /// println!("{:?}", queues.leftovers());
    /// # Ok(())
    /// # }
    /// ```
    pub fn queues_and_leftovers(&self, pattern: impl AsRef<[u8]>) -> Queues {
        self.search(pattern.as_ref(), true)
    }

    fn search(&self, pattern: &[u8], looks_for_leftovers: bool) -> Queues {
        let left = Arc::<Mutex<Left>>::default();
        let unknown = Arc::<Mutex<Unknowns>>::default();
        let calls = Arc::<AtomicU64>::default();
        let search = Search {
            servers: self.conn.each_server().into(),
            cursor: BEGIN,
            has_asked_for_channels: false,
            has_searched: false,
            conn: self.conn.clone(),
            pattern: pattern.to_vec(),
            seen: HashSet::new(),
            tags: Vec::new(),
            ready: VecDeque::new(),
            unknown: unknown.clone(),
            calls: calls.clone(),
            left: looks_for_leftovers.then(|| left.clone()),
            now: None,
        };
        let names = stream::unfold(Some(search), |search| async move {
            let mut search = search?;
            match search.next().await {
                Ok(Some(name)) => Some((Ok(name), Some(search))),
                Ok(None) => None,
                Err(error) => Some((Err(failed(ATTEMPT, error)), None)),
            }
        });
        Queues { names: Box::pin(names), unknown, calls, left }
    }
}

/// A search that is under way.
struct Search {
    /// Those that are still to be searched, the present one first.
    servers: VecDeque<Conn>,
    cursor: Bytes,
    has_asked_for_channels: bool,
    /// Whether all keys of one of them were searched.
    has_searched: bool,
    /// For what concerns keys.
    conn: Conn,
    pattern: Vec<u8>,
    /// The names that were found, and the tags.
    seen: HashSet<Bytes>,
    /// Those of which it is not known yet whose they are.
    tags: Vec<Bytes>,
    ready: VecDeque<Bytes>,
    unknown: Arc<Mutex<Unknowns>>,
    calls: Arc<AtomicU64>,
    /// What should have been deleted, if it is looked for; and the clock of the present server, epoch ms.
    left: Option<Arc<Mutex<Left>>>,
    now: Option<i64>,
}

impl Search {
    async fn next(&mut self) -> std::result::Result<Option<Bytes>, OpError> {
        loop {
            if let Some(name) = self.ready.pop_front() {
                return Ok(Some(name));
            }
            if self.tags.len() >= PIPELINE || self.servers.is_empty() && !self.tags.is_empty() {
                self.resolve().await?;
            } else if let Some(server) = self.servers.front().cloned() {
                self.search(&server).await?;
            } else {
                return Ok(None);
            }
        }
    }

    /// Takes the next step on a server. One that does not answer does not hide the queues of the others.
    async fn search(&mut self, server: &Conn) -> std::result::Result<(), OpError> {
        match self.step(server).await {
            Err(error) if self.has_searched || self.servers.len() > 1 => {
                let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
                unknown.not_searched(&server.address(), error);
                drop(unknown);
                self.leave();
                Ok(())
            }
            end => end,
        }
    }

    /// Goes on with the next server.
    fn leave(&mut self) {
        self.servers.pop_front();
        self.cursor = BEGIN;
        self.has_asked_for_channels = false;
        self.now = None;
    }

    async fn step(&mut self, server: &Conn) -> std::result::Result<(), OpError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if !self.has_asked_for_channels {
            self.has_asked_for_channels = true;
            let channels = Command::new("PUBSUB").arg("CHANNELS").arg(names::CHANNELS);
            let channels = server.call(&channels.only_reads()).await;
            let known = self.known("channels", "PUBSUB CHANNELS", channels)?;
            for channel in known.map(Reply::into_strings).transpose()?.into_iter().flatten() {
                self.add(names::of_channel(&channel));
            }
            return Ok(());
        }
        let keys = scan(server, KEYS, &mut self.cursor).await?;
        self.add_leftovers(server, &keys).await?;
        for key in keys {
            self.add(names::of_key(&key));
        }
        if self.cursor == BEGIN {
            self.has_searched = true;
            self.leave();
        } else {
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Notes those of these keys that should have been deleted. What the server refuses is not asked again.
    async fn add_leftovers(&mut self, server: &Conn, keys: &[Bytes]) -> std::result::Result<(), OpError> {
        let Some(left) = self.left.clone() else { return Ok(()) };
        if self.now.is_none() {
            let now = self.known("leftovers", "TIME", server.time().await)?;
            self.now = now.map(|micros| micros / 1_000);
        }
        let Some(now) = self.now else {
            self.left = None;
            return Ok(());
        };
        let mut found = std::mem::take(&mut *left.lock().unwrap_or_else(PoisonError::into_inner));
        let answer = leftovers::add(server, now, keys, &mut found).await;
        *left.lock().unwrap_or_else(PoisonError::into_inner) = found;
        if self.known("leftovers", "PTTL", answer)?.is_none() {
            self.left = None;
        }
        Ok(())
    }

    fn known<T>(
        &self,
        what: &str,
        command: &str,
        answer: std::result::Result<T, OpError>,
    ) -> std::result::Result<Option<T>, OpError> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).known(what, command, answer)
    }

    fn add(&mut self, found: Option<Found>) {
        match found {
            Some(Found::Name(name)) => self.add_name(name),
            Some(Found::Tag(tag)) => {
                let may_match = [&tag, &plain(&tag)].iter().any(|name| glob::matches(&self.pattern, name));
                if may_match && self.seen.insert(tag.clone()) {
                    self.tags.push(tag);
                }
            }
            None => {}
        }
    }

    fn add_name(&mut self, name: Bytes) {
        // A tag is a name with braces around it, so it is marked.
        let mark = Bytes::from([b" ", &name[..]].concat());
        if self.seen.insert(mark) && glob::matches(&self.pattern, &name) {
            self.ready.push_back(name);
        }
    }

    /// Finds out whose these tags are: `{q}` is that of `q`, and that of `{q}`.
    async fn resolve(&mut self) -> std::result::Result<(), OpError> {
        let tags = std::mem::take(&mut self.tags);
        let braced = self.are_lists(&tags).await?;
        // Names in braces are rare.
        let mut doubtful = Vec::new();
        for (tag, has_braces) in tags.into_iter().zip(braced) {
            let plain = plain(&tag);
            if has_braces {
                self.add_name(tag);
                doubtful.push(plain);
            } else {
                self.add_name(plain);
            }
        }
        let lists = self.are_lists(&doubtful).await?;
        for (plain, _) in doubtful.into_iter().zip(lists).filter(|(_, is_list)| *is_list) {
            self.add_name(plain);
        }
        Ok(())
    }

    /// Which of these keys are lists, as far as their servers answer.
    async fn are_lists(&self, keys: &[Bytes]) -> std::result::Result<Vec<bool>, OpError> {
        let types = keys.iter().map(async |key| {
            match self.conn.call(&Command::new("TYPE").arg(key.clone()).only_reads()).await {
                Ok(kind) => Ok(kind.into_bytes()? == "list"),
                // In a cluster, a slot may be on its way from one server to another.
                Err(OpError::NotExecuted(_) | OpError::Unknown(_)) => Ok(false),
                // A key of others. The rest can be found.
                Err(OpError::Server(why)) if refuses_key(&why) => Ok(false),
                Err(error) => Err(error),
            }
        });
        join_all(types).await.into_iter().collect()
    }
}

/// The name in the braces of a tag.
fn plain(tag: &Bytes) -> Bytes {
    tag.slice(1..tag.len() - 1)
}
