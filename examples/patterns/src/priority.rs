//! Queues of different priorities, and one worker.

use redelay::{BlockingQueue, Worker};

/// While `urgent` has a message, no other one begins.
pub fn strict(urgent: &BlockingQueue<i64>, orders: &BlockingQueue<i64>) -> Worker<i64> {
    Worker::strict([urgent, orders]).concurrency(64)
}

/// While both have messages, six of `urgent` are handled for one of `orders`. None of them starves.
pub fn weighted(urgent: &BlockingQueue<i64>, orders: &BlockingQueue<i64>) -> Worker<i64> {
    Worker::weighted([(urgent, 6), (orders, 1)]).concurrency(64)
}
