//! A list whose elements survive the process that works on them.

use std::time::Duration;

use futures::StreamExt;
use redelay::{BlockingQueue, Delivery};

/// `BRPOPLPUSH orders processing`, the work, `LREM processing`; and no process looks for the orders of dead
/// ones.
pub async fn work<F>(orders: &BlockingQueue<String>, lease: Duration, ship: F)
where
    F: AsyncFn(&Delivery<String>) -> std::io::Result<()>,
{
    let mut orders = orders.receiver().lease(lease).into_stream();
    while let Some(order) = orders.next().await {
        let settled = async {
            let order = order?;
            match ship(&order).await {
                Ok(()) => order.ack().await,
                Err(error) => order.with_error(error).retry().await,
            }
        };
        if let Err(error) = settled.await {
            eprintln!("{error}"); // The stream goes on. An order that is not settled comes again.
        }
    }
}
