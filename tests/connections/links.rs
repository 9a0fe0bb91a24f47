//! Connections that are given up, refused or demoted: nothing is lost or doubled with them, and nothing needs a restart.

#[path = "links/announcements.rs"]
mod announcements;
#[path = "links/reconnections.rs"]
mod reconnections;
#[path = "links/stranded.rs"]
mod stranded;

use std::future::Future;
use std::time::Duration;

use redelay::{BlockingQueue, Builder, Client, DelayedQueue, codec};
use redelay_fixture::{Proxy, Server, Version};

const MINUTE: Duration = Duration::from_secs(60);
const TIMEOUT_SET: &str = "redisson_delay_queue_timeout:{q}";

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The handles of one client.
struct Queues {
    client: Client,
    ready: BlockingQueue<i64>,
    delayed: DelayedQueue<i64>,
}

async fn connected(builder: Builder) -> Queues {
    let client = builder.connect().await.expect("a connection");
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    Queues { client, ready, delayed }
}

/// A client that moves nothing has one connection, for commands, until somebody takes.
async fn behind(proxy: &Proxy) -> Queues {
    connected(
        Client::builder().url(proxy.url()).client_name("behind").transfer(false).command_timeout(ms(1000)),
    )
    .await
}

/// Much longer than anything here takes; for what would otherwise hang.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(MINUTE, future).await.expect("within a minute")
}

/// All servers that are supported, as far as they are installed.
fn each_version() -> impl Iterator<Item = Server> {
    let versions = [Version::Redis62, Version::Redis70, Version::Valkey91].into_iter();
    versions
        .filter(|version| version.is_installed())
        .map(|version| Server::builder().version(version).start())
}
