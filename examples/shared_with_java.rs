//! One queue, two languages. Run both programs with one server: each order goes to the program that asks
//! first.
//!
//!     cargo run --example shared_with_java
//!
//! It needs a Redis or Valkey at REDIS_URL, or at redis://localhost. Without the Java program, it takes its
//! own orders. Both programs end when no order has come for a while. The Java program, with Redisson on the
//! class path:
//!
//!     public class Orders {
//!         public static class Order {
//!             public long orderId;
//!             public String item;
//!         }
//!
//!         public static void main(String[] args) throws Exception {
//!             Config config = new Config();
//!             config.useSingleServer().setAddress("redis://localhost:6379");
//!             RedissonClient redisson = Redisson.create(config);
//!             RBlockingQueue<Order> ready =
//!                 redisson.getBlockingQueue("example:orders", new TypedJsonJacksonCodec(Order.class));
//!             RDelayedQueue<Order> delayed = redisson.getDelayedQueue(ready);
//!             Order order = new Order();
//!             order.orderId = 100;
//!             order.item = "tea, from Java";
//!             delayed.offer(order, 2, TimeUnit.SECONDS);
//!             for (Order next; (next = ready.poll(5, TimeUnit.SECONDS)) != null; ) {
//!                 System.out.println("Java took order " + next.orderId + ": " + next.item);
//!             }
//!             redisson.shutdown();
//!         }
//!     }

use std::time::Duration;

use redelay::{Client, codec};
use serde::{Deserialize, Serialize};

/// The JSON names are those of the Java class, whose fields Jackson writes under their own names.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: i64,
    item: String,
}

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let ready = client.blocking_queue::<Order>("example:orders", codec::Json);
    let delayed = client.delayed_queue(&ready);
    for order_id in 1..=5 {
        let order = Order { order_id, item: "coffee, from Rust".into() };
        delayed.offer(&order, Duration::from_millis(500 * order_id as u64)).await?;
    }
    while let Some(order) = ready.poll_timeout(Duration::from_secs(3)).await? {
        println!("Rust took order {}: {}", order.order_id, order.item);
    }
    client.shutdown().await;
    Ok(())
}
