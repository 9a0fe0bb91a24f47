//! Delayed queues on Redis, wire-compatible with Java Redisson's `RDelayedQueue` and `RBlockingQueue`: Rust services
//! share live queues with Java services, and neither side notices.
//!
//! ```no_run
//! use std::time::Duration;
//! use redelay::{Client, codec};
//!
//! # async fn example() -> redelay::Result<()> {
//! let client = Client::connect("redis://localhost").await?;
//! let ready = client.blocking_queue::<String>("orders", codec::String); // RBlockingQueue
//! let delayed = client.delayed_queue(&ready); // RDelayedQueue
//!
//! delayed.offer(&"order 1".to_owned(), Duration::from_secs(30)).await?;
//! let order = ready.take().await?; // 30 seconds later
//! # Ok(())
//! # }
//! ```
//!
//! # Where to read on
//!
//! * Taking, cancellation and what a lost connection can cost: [`BlockingQueue`]; offering, tickets: [`DelayedQueue`].
//! * The end of a service: [`Client::shutdown`]. What to do about an error: [`ErrorKind`].
//! * Payloads, and codecs of one's own: [`codec`]; Java classes as structs: `docs/codecs.md` in the repository.
//! * Method by method against Redisson, and the rights that a user needs on the server: `docs/from-redisson.md` in the
//!   repository; programs to run are in `examples`.
//!
//! # The way of one message
//!
//! | step | who runs it | room | on the server |
//! |---|---|---|---|
//! | offer | the caller, with others | `delayed_queue/offer.rs` | `scripts/offer.lua` |
//! | transfer | one task per client | `transfer.rs` | `scripts/transfer.lua` |
//! | take | the task that owns every pop | `pops.rs` | `BLPOP`, `LPOP` |
//!
//! An *entry* is a *payload* (an encoded value) packed with an id; while it is pending it is in the *timeout set*,
//! under its *due* time, and in the *ordered list*. The earliest due time is the *head*. A *transfer* moves what is due
//! to the *target*, the list that takers read.
//!
//! # Watching
//!
//! [`Client::stats`] and [`DelayedQueue::stats`] tell in numbers how a client and a queue are. The names of events and
//! spans are in `docs/watching.md`, and what to do when something is wrong in `docs/troubleshooting.md`.
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `json` | yes | `codec::Json` |
//! | `kryo` | yes | `codec::Kryo5` and `codec::java` |
//! | `msgpack` | yes | `codec::MsgPack` |
//! | `tracing` | yes | events and spans for the `tracing` crate, target `redelay` |
//! | `tls` | no | `rediss://`, through rustls with the system's root certificates |
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
#[cfg(all(doctest, feature = "java"))]
#[doc = include_str!("../docs/codecs.md")]
struct CodecExamples;
#[cfg(doctest)]
#[doc = include_str!("../docs/watching.md")]
struct WatchingExamples;
#[cfg(doctest)]
#[doc = include_str!("../docs/troubleshooting.md")]
struct TroubleshootingExamples;

// The public handles.
mod blocking_queue;
mod client;
mod delayed_queue;
// What they share.
mod engine;
mod queue;
// The background tasks of a client.
mod early_polls;
mod pops;
mod transfer;
// The server: scripts, connections, layout.
mod conn;
mod scripts;
mod wire;
// Shared by all of the above.
mod outbox;
mod pacing;
mod telemetry;

/// Codecs: values to payloads and back. This is the crate `redisson-codec`.
pub use redisson_codec as codec;
mod error;

pub use blocking_queue::{BlockingQueue, PayloadStream};
pub use client::{Builder, Client};
pub use delayed_queue::{DelayedQueue, Quarantined, Ticket};
pub use error::{Error, ErrorKind, Result};
pub use telemetry::{ClientStats, LastError, QueueStats};
pub use wire::entry::EntryFormat;
