//! What is pending in a queue.

use redelay::DelayedQueue;
use redelay::inspector::{Inspector, PendingEntry};
use std::fmt::Debug;
use std::panic::Location;
use std::time::{Duration, SystemTime};

/// How many entries are read at a time.
const PAGE: usize = 1_000;

/// Asserts that this value is pending, and is due at this time, `tolerance` earlier or later. Other values
/// may be pending, too, and the same one with other due times.
///
/// `value` is anything that the values of the queue can be compared with: a `&str`, if they are a `String`.
///
/// The due time is by the server's clock. For `offer(&value, delay)`, `at` is `SystemTime::now() + delay`,
/// and the tolerance covers what passes from the offer to that line: on a busy machine, that may be seconds.
///
/// # Panics
/// Panics at the position of the call, with what is pending, if the value is not, or has another due time. So
/// it does if the queue cannot be read, or has a payload that its codec cannot decode.
///
/// # Cancel safety
/// Cancel safe: it only reads.
///
/// # Examples
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use redelay::{Client, codec};
/// use redelay_testing::{Server, assert_pending};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::start();
/// let client = Client::connect(&server.url()).await?;
/// let orders = client.delayed_queue(&client.blocking_queue("orders", codec::Long));
/// let (half_an_hour, minute) = (Duration::from_secs(1_800), Duration::from_secs(60));
/// orders.offer(&17, half_an_hour).await?;
/// assert_pending(&orders, &17, SystemTime::now() + half_an_hour, minute).await;
///
/// let notes = client.delayed_queue(&client.blocking_queue("notes", codec::String));
/// notes.offer("order 17", half_an_hour).await?;
/// assert_pending(&notes, "order 17", SystemTime::now() + half_an_hour, minute).await;
/// # redelay::Result::Ok(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn assert_pending<'a, T, V>(
    queue: &'a DelayedQueue<T>,
    value: &'a V,
    at: SystemTime,
    tolerance: Duration,
) -> impl Future<Output = ()> + 'a
where
    T: PartialEq<V> + Debug + 'static,
    V: Debug + ?Sized,
{
    let caller = Location::caller();
    async move {
        let mut pending = Vec::new();
        for entry in read(queue).await.unwrap_or_else(|error| panic!("{error} ({caller})")) {
            let (Some(payload), Some(due)) = (entry.payload, entry.due) else { continue };
            let found = queue.decode(&payload).unwrap_or_else(|error| panic!("{error} ({caller})"));
            if found == *value && is_near(due, at, tolerance) {
                return;
            }
            pending.push((found, due));
        }
        let pending: Vec<_> =
            pending.iter().map(|(value, due)| format!("{value:?} {}", beside(*due, at))).collect();
        panic!(
            "{value:?} is not pending with that due time, give or take {tolerance:?}; pending: {pending:?} ({caller})"
        );
    }
}

/// Makes everything due now that is pending in this queue, on the server and by its clock. Returns how much
/// it was. Then a worker or a taker of the queue gets it, as at its due time. The order is not kept.
///
/// It is for the private queues of tests, which are short: it reads all that is pending. A message that waits
/// for a retry is not pending: with [`Backoff::fixed`](redelay::worker::Backoff::fixed) and
/// [`Duration::ZERO`], a worker of a test does not let it wait.
///
/// # Panics
/// Panics at the position of the call if the queue cannot be read or changed.
///
/// # Cancel safety
/// Not cancel safe: if the future is dropped, only some may be due.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use redelay::{Client, codec};
/// use redelay_testing::{Server, make_due};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::start();
/// let client = Client::connect(&server.url()).await?;
/// let ready = client.blocking_queue("orders", codec::Long);
/// let orders = client.delayed_queue(&ready);
/// orders.offer(&17, Duration::from_secs(1_800)).await?;
/// assert_eq!(make_due(&orders).await, 1);
/// assert_eq!(ready.take().await?, 17);
/// # redelay::Result::Ok(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn make_due<T: 'static>(queue: &DelayedQueue<T>) -> impl Future<Output = usize> + '_ {
    let caller = Location::caller();
    async move {
        let mut made = 0;
        for entry in read(queue).await.unwrap_or_else(|error| panic!("{error} ({caller})")) {
            let Some(ticket) = entry.ticket() else { continue };
            let changed = queue.reschedule(&ticket, Duration::ZERO).await;
            // One that is not pending any more has become due by itself.
            made += usize::from(changed.unwrap_or_else(|error| panic!("{error} ({caller})")));
        }
        made
    }
}

/// All that is pending, in the order of the due times.
async fn read<T: 'static>(queue: &DelayedQueue<T>) -> redelay::Result<Vec<PendingEntry>> {
    let (inspector, name) = (Inspector::from(queue), queue.keys().target);
    let mut entries = Vec::<PendingEntry>::new();
    loop {
        let after = entries.last().map(Into::into);
        let page = inspector.pending(&name, after, PAGE).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

fn is_near(due: SystemTime, at: SystemTime, tolerance: Duration) -> bool {
    due.duration_since(at).unwrap_or_else(|earlier| earlier.duration()) <= tolerance
}

/// When it is due, beside the time that was expected.
fn beside(due: SystemTime, at: SystemTime) -> String {
    match due.duration_since(at) {
        Ok(later) => format!("{later:?} later"),
        Err(earlier) => format!("{:?} earlier", earlier.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_the_tolerance_are_near() {
        let (at, ms) = (SystemTime::UNIX_EPOCH + Duration::from_secs(60), Duration::from_millis);
        for near in [at, at + ms(5), at - ms(5)] {
            assert!(is_near(near, at, ms(5)));
        }
        for far in [at + ms(6), at - ms(6)] {
            assert!(!is_near(far, at, ms(5)));
        }
        assert_eq!(
            (beside(at + ms(6), at), beside(at - ms(6), at)),
            ("6ms later".into(), "6ms earlier".into())
        );
    }
}
