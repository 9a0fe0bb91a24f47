//! What the tests of a service need that uses [redelay]: private servers, faults of the network, and
//! assertions. A chapter of redelay's documentation, `docs/testing.md`, shows tests with it.
//!
//! | to | use |
//! |---|---|
//! | test a handler without a server | [`Context::for_test`](redelay::worker::Context::for_test), [`run_once`], [`run_once_with`] |
//! | have a server for each test | [`Server`], [`Cluster`], [`Sentinels`] |
//! | check what was offered, and when it is due | [`assert_pending`] |
//! | not wait for a due time | [`make_due`] |
//! | let the network fail | [`Proxy`] |
//! | wait for a condition | [`until`], [`until_async`] |
//!
//! The servers are real: nothing here imitates Redis or a queue. Each listens on `127.0.0.1` at a port of its
//! own, keeps its files in a temporary folder, and ends with the test. Tests may run in parallel, also in
//! several processes. The `redis-server` on `PATH` is started, or else the `valkey-server`; the environment
//! variable `REDELAY_SERVER` names another one, by its path or as a file on `PATH`.
//!
//! A failure is a panic with a sentence, because a panic is a failed test.
//!
//! Methods of servers and proxies block the thread: a start takes some milliseconds, but that of a
//! [`Cluster`] or of [`Sentinels`] takes seconds, as do their failovers. If other tasks must run meanwhile,
//! call them by `tokio::task::block_in_place`, which needs `#[tokio::test(flavor = "multi_thread")]`.
//! [`until`] and [`until_within`] block the thread until the condition is true, so that a `#[tokio::test]`
//! needs [`until_async`].
//!
//! Linux is tested. The crate needs a Unix; on others than Linux, the server of a test process that is killed
//! goes on.
//!
//! # Examples
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use redelay::{Client, codec};
//! use redelay_testing::{Server, assert_pending, make_due};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let server = Server::start();
//! let client = Client::connect(&server.url()).await?;
//! let due = client.blocking_queue("orders", codec::Long);
//! let orders = client.delayed_queue(&due);
//!
//! orders.offer(&17, Duration::from_secs(1_800)).await?;
//! let (at, minute) = (SystemTime::now() + Duration::from_secs(1_800), Duration::from_secs(60));
//! assert_pending(&orders, &17, at, minute).await;
//! make_due(&orders).await;
//! assert_eq!(due.take().await?, 17);
//! # redelay::Result::Ok(())
//! # }).unwrap();
//! ```

mod binary;
mod builder;
mod cluster;
mod exchange;
mod handlers;
mod pending;
// Public for redelay's own tests only.
#[cfg_attr(not(feature = "_own"), expect(unreachable_pub))]
mod port;
#[cfg_attr(not(feature = "_own"), expect(unreachable_pub))]
mod process;
mod proxy;
mod sentinels;
mod server;
mod startup;
mod until;
#[cfg(feature = "_own")]
mod version;

pub use builder::ServerBuilder;
pub use cluster::{Cluster, Failover};
pub use handlers::{run_once, run_once_with};
pub use pending::{assert_pending, make_due};
pub use proxy::Proxy;
pub use sentinels::Sentinels;
pub use server::Server;
pub use until::{until, until_async, until_async_within, until_within};

#[cfg(feature = "_own")]
pub use {
    port::Port,
    process::Process,
    redis,
    sentinels::SentinelsBuilder,
    server::{ClientKind, replication_offset},
    version::{Product, Release, Version},
};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
