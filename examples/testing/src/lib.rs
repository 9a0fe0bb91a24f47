//! The service of `docs/testing.md`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redelay::worker::{Context, Outcome};
use redelay::{BlockingQueue, DelayedQueue, Worker};

/// An order that is not paid within this time is cancelled.
pub const TO_PAY: Duration = Duration::from_secs(1_800);

/// What the handler changes.
#[derive(Debug, Default)]
pub struct Shop {
    /// Whether it refuses.
    pub is_closed: AtomicBool,
    /// The orders that were cancelled.
    pub cancelled: Mutex<BTreeSet<i64>>,
}

/// A customer has placed an order.
pub async fn place(orders: &DelayedQueue<i64>, order: i64) -> redelay::Result<()> {
    orders.offer(&order, TO_PAY).id(order.to_string()).await?;
    Ok(())
}

/// The handler.
pub async fn cancel(shop: Arc<Shop>, order: i64, context: Context) -> Outcome {
    if shop.is_closed.load(Ordering::SeqCst) {
        let error = format!("closed at attempt {}", context.attempt());
        return Outcome::RetryAfter(Duration::from_secs(60), error.into());
    }
    shop.cancelled.lock().expect("no panic").insert(order); // Idempotent: a second time changes nothing.
    Outcome::Done
}

/// The worker. `main` calls `run` with the handler, and a test `run_until`.
pub fn worker(due: &BlockingQueue<i64>) -> Worker<i64> {
    Worker::new(due).max_attempts(3)
}
