//! Concurrent offers share one call.
//!
//! A call costs client and server several times what one more entry in it costs. So while others are on their
//! way, an offer spawns a task that yields once and takes along every offer made in the meantime. It waits
//! neither for a reply nor for time to pass: the size of a batch follows from the load. An offer that is
//! alone makes its call itself: see `lone`.
//!
//! | event | consequence |
//! |---|---|
//! | the queue has no room for all | the first ones are sent again, as many as there is room for |
//! | the script rejects the arguments, because of one offer | each offer is sent again, alone; nothing was written |
//! | the server refuses (type, permission, memory) | every offer gets that error |
//! | the reply is lost | the call is sent again: see `store` |
//! | a caller is dropped, or the client's runtime does not run | see `batch` and `lone` |

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use tokio::sync::oneshot;

use super::batch::{self, OpenBatch, Requests};
use super::lone::{CallId, LastCall, LoneCall, may_run_here};
use super::store::{self, Store, Stored, When};
use crate::conn::{Conn, OpError, Reply};
use crate::engine::AtStop;
use crate::pacing::yield_once;
use crate::scripts::{self, Call, REMEMBERED_MS};
use crate::transfer::Transfer;
use crate::wire::keys::Keys;

/// The most entries in one call: the server serves no other client meanwhile.
const ENTRIES: usize = 256;
/// The most bytes in one call, unless it has only one entry.
const BYTES: usize = 1 << 18;

/// A time and an entry. The answer says what the time counted from.
type Offers = OpenBatch<(u64, Bytes), Stored>;
type OfferRequest = batch::BatchRequest<(u64, Bytes), Stored>;

/// The offers to one queue that are about to be sent. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Batcher {
    store: Store,
    /// To start the transfer of what is due at once, or was not announced. `None`: this client does not
    /// transfer.
    transfer: Option<Transfer>,
    after: Arc<Offers>,
    at: Arc<Offers>,
    last: Arc<LastCall>,
}

impl Batcher {
    pub(super) fn new(conn: Conn, keys: Keys, transfer: Option<Transfer>, at_stop: AtStop) -> Self {
        let store = Store::new(conn, keys, at_stop);
        Self { store, transfer, after: Arc::default(), at: Arc::default(), last: Arc::default() }
    }

    /// The same with another command timeout, and with separate batches.
    pub(super) fn with_timeout(&self, timeout: Duration) -> Self {
        let store = self.store.with_timeout(timeout);
        Self { store, after: Arc::default(), at: Arc::default(), last: Arc::default(), ..self.clone() }
    }

    /// This client has set or removed the limit of pending entries.
    pub(super) fn on_limit(&self, is_limited: bool) {
        self.store.on_limit(is_limited);
    }

    /// Stores one entry: in a call with other offers, or in its own if there are none. Returns its due time,
    /// epoch ms.
    pub(super) async fn store(&self, when: When, time: u64, entry: Bytes) -> Result<u64, OpError> {
        let lone = if may_run_here(&self.store) { self.last.begin_alone() } else { None };
        let stored = match lone {
            Some(call) => {
                let batcher = self.clone();
                let call = async move {
                    let stored = batcher.send(when, &[(time, entry)]).await;
                    batcher.last.end(call);
                    stored
                };
                LoneCall::new(&self.store, call).await?
            }
            None => {
                let open = match when {
                    When::After => &self.after,
                    When::At => &self.at,
                };
                let conn = self.store.conn();
                let start = |requests| {
                    let flush = self.clone().flush(when, requests, self.last.begin());
                    drop(conn.runtime().spawn(flush));
                };
                open.ask((time, entry), conn.command_timeout(), start).await?
            }
        };
        Ok(stored.due(time))
    }

    /// Stores all entries in one call, without other offers. Returns their due times, epoch ms.
    pub(super) async fn store_all(&self, when: When, entries: &[(u64, Bytes)]) -> Result<Vec<u64>, OpError> {
        let stored = self.send(when, entries).await?;
        Ok(entries.iter().map(|(time, _)| stored.due(*time)).collect())
    }

    /// Makes a call that offers jobs, with as many tries as it takes.
    pub(super) async fn offer_jobs(
        &self,
        timeout: Option<Duration>,
        when: When,
        call: impl Fn(&Bytes, String, bool) -> Call,
    ) -> Result<Vec<Reply>, OpError> {
        let store = timeout.map_or_else(|| self.store.clone(), |timeout| self.store.with_timeout(timeout));
        let looks = store.looks_for_limit();
        let call = |receipt: &Bytes, base| call(receipt, base, looks);
        // In a box, or the futures of callers become so deep that the compiler refuses some.
        let result = Box::pin(store.once(when, call, Some)).await;
        if let (Some(transfer), Err(OpError::Unknown(_) | OpError::Unconfirmed(_))) =
            (&self.transfer, &result)
        {
            transfer.head_unknown(store.keys());
        }
        if let Some(limited) = result.iter().flatten().nth(2).cloned().and_then(store::is_limited) {
            store.on_limit(limited);
        }
        result
    }

    async fn send(&self, when: When, entries: &[(u64, Bytes)]) -> Result<Stored, OpError> {
        let (keys, control) = (self.store.keys(), self.store.limit_key());
        let looks = self.store.looks_for_limit();
        let call = |receipt: &Bytes, base: String| {
            let args =
                entries.iter().flat_map(|(time, entry)| [Bytes::from(time.to_string()), entry.clone()]);
            let named = [keys.timeout_set(), keys.ordered_list(), keys.channel(), receipt, control];
            scripts::OFFER.on(&named).arg(base).number(REMEMBERED_MS).number(u8::from(looks)).args(args)
        };
        let result = self.store.once(when, call, Stored::of).await;
        match &result {
            Ok(stored) => stored.is_limited.into_iter().for_each(|limited| self.store.on_limit(limited)),
            Err(OpError::Full { .. }) => self.store.on_limit(true),
            Err(_) => {}
        }
        if let Some(transfer) = &self.transfer {
            match &result {
                Ok(stored) => stored.head.into_iter().for_each(|head| transfer.head(keys, head)),
                Err(OpError::Unknown(_) | OpError::Unconfirmed(_)) => transfer.head_unknown(keys),
                Err(_) => {}
            }
        }
        result
    }

    async fn flush(self, when: When, requests: Requests<(u64, Bytes), Stored>, call: CallId) {
        yield_once().await;
        let requests = requests.take().await;
        if requests.is_empty() {
            self.last.end(call);
        }
        let alone = (requests.len() == 1).then_some(call);
        join_all(chunks(requests).map(|chunk| self.send_chunk(when, chunk, alone))).await;
    }

    async fn send_chunk(&self, when: When, requests: Vec<OfferRequest>, alone: Option<CallId>) {
        let (entries, answers): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|request| (request.what, request.answer)).unzip();
        let mut result = self.send(when, &entries).await;
        let mut fitting = entries.len();
        let mut full = None;
        while let Err(error @ OpError::Full { room, .. }) = &result
            && (1..fitting).contains(room)
        {
            fitting = *room;
            full = Some(error.clone());
            result = self.send(when, &entries[..fitting]).await;
        }
        // Before the answer: its caller may offer again at once.
        alone.into_iter().for_each(|call| self.last.end(call));
        let answer = |answer: oneshot::Sender<_>, result| {
            // An error means that the caller was dropped.
            let _ = answer.send(result);
        };
        if entries.len() > 1 && matches!(result, Err(OpError::Rejected(_))) {
            // Nothing was written, perhaps because of another offer.
            let alone = entries.iter().zip(answers).map(|(entry, waiting)| async move {
                answer(waiting, self.send(when, std::slice::from_ref(entry)).await);
            });
            join_all(alone).await;
        } else {
            for (n, waiting) in answers.into_iter().enumerate() {
                let refused = full.clone().filter(|_| n >= fitting);
                let result = refused.map_or_else(|| result.clone(), Err);
                answer(waiting, result.map_err(OpError::of_one_offer));
            }
        }
    }
}

/// Splits requests into calls.
fn chunks(requests: Vec<OfferRequest>) -> impl Iterator<Item = Vec<OfferRequest>> {
    let mut requests = requests.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut chunk = vec![requests.next()?];
        let size = |request: &OfferRequest| request.what.1.len();
        let mut bytes = size(&chunk[0]);
        while chunk.len() < ENTRIES {
            let Some(request) = requests.next_if(|request| bytes + size(request) <= BYTES) else {
                break;
            };
            bytes += size(&request);
            chunk.push(request);
        }
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(sizes: &[usize]) -> Vec<OfferRequest> {
        let request = |size: &usize| OfferRequest {
            what: (0, Bytes::from(vec![0; *size])),
            answer: oneshot::channel().0,
        };
        sizes.iter().map(request).collect()
    }

    #[test]
    fn calls_are_bounded_by_entries_and_bytes() {
        let sizes = |requests| chunks(requests).map(|chunk| chunk.len()).collect::<Vec<_>>();
        assert_eq!(sizes(requests(&[10; 2 * ENTRIES + 1])), [ENTRIES, ENTRIES, 1]);
        assert_eq!(sizes(requests(&[BYTES / 2, BYTES / 2, 1])), [2, 1]);
        assert_eq!(sizes(requests(&[2 * BYTES, 1])), [1, 1]);
    }
}
