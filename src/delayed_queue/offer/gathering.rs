//! Offers that are made at the same time share one call.
//!
//! A call costs client and server several times what one more entry in it costs. So the first offer starts a task that lets
//! others run who can, and takes along what is offered meanwhile. It does not wait for replies or for time to
//! pass: an offer that is alone goes out at once, however far the server is, and how many go together follows from the load.
//!
//! | if … | then … |
//! |---|---|
//! | a caller is dropped | its entry goes along all the same, and nobody else takes notice: the call belongs to the task |
//! | the script refuses, for the sake of one | each is sent once more, alone; nothing was written |
//! | the server refuses (type, rights, memory) | that is everybody's answer |
//! | the reply is lost | each has a second try of its own: see `offer.rs` |

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::join_all;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::call::{self, When};
use crate::conn::{Conn, OpError};
use crate::pacing::yield_once;
use crate::wire::keys::Keys;

/// Entries of one call, at most: the server serves nobody else meanwhile.
const ENTRIES: usize = 256;
/// Their bytes, at most, unless it is one entry.
const BYTES: usize = 1 << 18;

/// The offers to one queue that are about to be sent; clones share them.
#[derive(Clone, Debug)]
pub(in crate::delayed_queue) struct Gathering {
    pub(super) conn: Conn,
    pub(super) keys: Keys,
    after: Arc<Next>,
    at: Arc<Next>,
}

/// The way to the task that goes next. One that is closed has gone.
type Next = Mutex<Option<UnboundedSender<Offer>>>;

#[derive(Debug)]
struct Offer {
    time: u64,
    entry: Bytes,
    answer: oneshot::Sender<Answer>,
}

/// What became of the call.
#[derive(Debug)]
pub(super) struct Answer {
    /// The server's, epoch ms.
    pub(super) clock: Result<u64, OpError>,
    /// Whether there were other offers in it.
    pub(super) shared: bool,
}

impl Gathering {
    pub(in crate::delayed_queue) fn new(conn: Conn, keys: Keys) -> Self {
        Self { conn, keys, after: Arc::default(), at: Arc::default() }
    }

    /// Stores an entry, in one try.
    pub(super) async fn store(&self, when: When, time: u64, entry: Bytes) -> Answer {
        let (answer, receiver) = oneshot::channel();
        self.add(when, Offer { time, entry, answer });
        receiver.await.unwrap_or_else(|_| {
            let clock = Err(OpError::Unknown("the runtime of the client is gone".into()));
            Answer { clock, shared: false }
        })
    }

    fn add(&self, when: When, offer: Offer) {
        let next = match when {
            When::After => &self.after,
            When::At => &self.at,
        };
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        let offer = match &*next {
            Some(going) => match going.send(offer) {
                Ok(()) => return,
                Err(SendError(offer)) => offer,
            },
            None => offer,
        };
        let (sender, offers) = unbounded_channel();
        // The receiver is here.
        let _ = sender.send(offer);
        *next = Some(sender);
        self.conn.runtime().spawn(self.clone().go(when, offers));
    }

    /// Takes along what is offered until others have run. Whoever waits is told if this is dropped, with its runtime.
    async fn go(self, when: When, mut offered: UnboundedReceiver<Offer>) {
        yield_once().await;
        offered.close();
        let mut offers = Vec::with_capacity(offered.len());
        while offered.recv_many(&mut offers, usize::MAX).await > 0 {}
        join_all(parts(offers).map(|part| self.send(when, part))).await;
    }

    async fn send(&self, when: When, offers: Vec<Offer>) {
        let shared = offers.len() > 1;
        let (entries, answers): (Vec<_>, Vec<_>) =
            offers.into_iter().map(|offer| ((offer.time, offer.entry), offer.answer)).unzip();
        let clock = call::first_try(&self.conn, &self.keys, when, &entries).await;
        for answer in answers {
            // Who is gone does not want to know.
            let _ = answer.send(Answer { clock: clock.clone(), shared });
        }
    }
}

/// In calls of a reasonable size.
fn parts(offers: Vec<Offer>) -> impl Iterator<Item = Vec<Offer>> {
    let mut offers = offers.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut part = vec![offers.next()?];
        let mut bytes = part[0].entry.len();
        while part.len() < ENTRIES {
            let Some(offer) = offers.next_if(|offer| bytes + offer.entry.len() <= BYTES) else { break };
            bytes += offer.entry.len();
            part.push(offer);
        }
        Some(part)
    })
}
