//! The sink: tasks become offers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, UNIX_EPOCH};

use apalis_core::task::Task;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Sink, StreamExt};
use redelay::Error;

use crate::RedelayBackend;

/// Offers on their way, before a sink waits.
const MOST: usize = 64;
/// The latest time of a task, epoch s, that every system can express: in the year 9999.
const LATEST: u64 = 253_402_300_799;

/// Offers whose replies have not been read.
#[derive(Default)]
pub(crate) struct Offers(FuturesUnordered<BoxFuture<'static, Result<(), Error>>>);

impl Offers {
    /// Until all are stored, or one is not.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_until(0, cx)
    }

    fn poll_until(&mut self, most: usize, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while self.0.len() > most {
            if let Some(Err(error)) = ready!(self.0.poll_next_unpin(cx)) {
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: Send + 'static> Sink<Task<T>> for RedelayBackend<T> {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.get_mut().offers.poll_until(MOST - 1, cx)
    }

    fn start_send(self: Pin<&mut Self>, task: Task<T>) -> Result<(), Error> {
        let (value, context) = task.take();
        let offer = match context.run_at() {
            Some(at) => self.delayed.offer_at(&value, UNIX_EPOCH + Duration::from_secs(at.min(LATEST))),
            None => self.delayed.offer(&value, Duration::ZERO),
        };
        let Some(id) = context.idempotency_key() else {
            self.offers.0.push(offer.into_future().map(|stored| stored.map(drop)).boxed());
            return Ok(());
        };
        let job =
            context.metadata().iter().fold(offer.id(id).keep(), |job, (name, value)| job.header(name, value));
        self.offers.0.push(job.into_future().map(|stored| stored.map(drop)).boxed());
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.get_mut().offers.poll(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_flush(cx)
    }
}
