//! A producer offers orders, each with a delay of its own; a consumer takes each when it is due.
//!
//!     make demo                      (with a server of its own)
//!     cargo run --example demo       (with the one at REDIS_URL, or at redis://localhost)
//!
//! Shows every order as it arrives and how late it is, by one monotonic clock: from the moment the offer began, plus
//! the delay, until the order is decoded. Two trips to the server are in it, the scheduler of this machine, and this
//! program's own work. At the end: what was lost or doubled, and what is left in Redis. Takes about 9 seconds.

mod view;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use fred::interfaces::ClientLike;
use fred::types::{ClusterHash, CustomCommand, config::Config};
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use view::View;

const ORDERS: usize = 100;
const ITEMS: [&str; 6] = ["espresso", "cappuccino", "green tea", "lemonade", "hot chocolate", "water"];

#[derive(Serialize, Deserialize)]
struct Order {
    id: usize,
    item: String,
    delay: Duration,
    /// Since the program began.
    due: Duration,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    // A name of this run, so that nobody else's orders are taken.
    let name = format!("demo-{}", std::process::id());
    let ready = client.blocking_queue::<Order>(&name, codec::Json);
    let delayed = client.delayed_queue(&ready);

    let view = View::new();
    view.title(url.rsplit('@').next().unwrap_or_default());
    let offering = async {
        offer(&delayed, &view).await?;
        view.keys("all offered; in Redis now", &keys(&url, &name).await?);
        Ok::<(), Box<dyn Error>>(())
    };
    let taken = tokio::select! {
        both = async { tokio::join!(offering, take(&ready, &view)) } => { both.0?; both.1? }
        _ = tokio::signal::ctrl_c() => {
            delayed.clear().await?;
            ready.clear().await?;
            view.interrupted();
            return Ok(ExitCode::from(130));
        }
    };
    client.shutdown().await;
    let all_once = view.summary(&taken);
    view.keys("left in Redis", &keys(&url, &name).await?);
    Ok(if all_once { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn offer(delayed: &DelayedQueue<Order>, view: &View) -> redelay::Result<()> {
    for id in 1..=ORDERS {
        let item = ITEMS[fastrand::usize(..ITEMS.len())].to_owned();
        let delay = Duration::from_millis(fastrand::u64(200..6000));
        let order = Order { id, item, delay, due: view.begun.elapsed() + delay };
        delayed.offer(&order, delay).await?;
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Takes until all have come, and a moment longer, in which nothing should. Returns ids and lateness.
async fn take(ready: &BlockingQueue<Order>, view: &View) -> redelay::Result<Vec<(usize, Duration)>> {
    let mut taken = Vec::new();
    loop {
        let patience = Duration::from_millis(if taken.len() < ORDERS { 7000 } else { 300 });
        let Some(order) = ready.poll_timeout(patience).await? else { return Ok(taken) };
        // Nothing is early: the server's clock decides, and it began to count after ours.
        let late = view.begun.elapsed().saturating_sub(order.due);
        taken.push((order.id, late));
        view.arrival(&order, late, taken.len());
    }
}

/// The keys with this queue's name in them. redelay keeps its connections to itself, so this opens one.
async fn keys(url: &str, name: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let redis = fred::clients::Client::new(Config::from_url(url)?, None, None, None);
    redis.init().await?;
    let scan = CustomCommand::new_static("SCAN", ClusterHash::FirstKey, false);
    let (mut keys, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let args = vec![cursor, "MATCH".into(), format!("*{name}*"), "COUNT".into(), "1000".into()];
        let found: Vec<String>;
        (cursor, found) = redis.custom(scan.clone(), args).await?;
        keys.extend(found);
        if cursor == "0" {
            keys.sort();
            redis.quit().await?;
            return Ok(keys);
        }
    }
}
