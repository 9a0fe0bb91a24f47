//! A delayed queue on Redis: offer a message now, and a worker handles it when it is due. The wire format is
//! that of Java Redisson's `RDelayedQueue` and `RBlockingQueue`, so Rust and Java services can share one live
//! queue.
//!
//! | consume with | delivery |
//! |---|---|
//! | [`Worker`] | at-least-once: runs an async function for each message, with retries, dead letters and a graceful stop |
//! | [`BlockingQueue::receiver`] | at-least-once, in your own loop |
//! | [`BlockingQueue::take`] | at-most-once, as in Java: once it returns, the payload exists only in your process, and a crash loses it |
//!
//! ```no_run
//! use std::time::Duration;
//! use redelay::{Client, Worker, codec};
//!
//! # async fn example() -> redelay::Result<()> {
//! let client = Client::connect("redis://localhost").await?;
//! let orders = client.blocking_queue::<String>("orders", codec::String); // RBlockingQueue
//! let delayed = client.delayed_queue(&orders); // RDelayedQueue
//!
//! delayed.offer("order 1", Duration::from_secs(30)).await?;
//! Worker::new(&orders).concurrency(64).run(cancel_if_unpaid).await?; // until Ctrl-C or SIGTERM
//! # Ok(())
//! # }
//!
//! async fn cancel_if_unpaid(order: String) -> std::io::Result<()> {
//!     println!("is {order} paid?"); // 30 seconds later
//!     Ok(()) // Acknowledged. After an `Err` or a panic it is tried again.
//! }
//! ```
//!
//! # Where to read on
//!
//! | about | read |
//! |---|---|
//! | handling messages, what a handler may return | [`Worker`], [`Context`](worker::Context), [`Outcome`](worker::Outcome), [`Backoff`](worker::Backoff) |
//! | receiving and settling by hand | [`Receiver`], [`Delivery`] |
//! | messages that failed too often; those in flight | [`DeadLetters`](admin::DeadLetters), [`Unsettled`](admin::Unsettled) |
//! | looking into any queue, also those that only Java uses | [`Inspector`](inspector::Inspector) |
//! | taking, lost connections | [`BlockingQueue`] |
//! | offering, cancelling, rescheduling | [`DelayedQueue`], [`Offer`](delayed_queue::Offer), [`Ticket`](delayed_queue::Ticket) |
//! | jobs by id: replace, debounce, throttle, unique until done, headers, expiry | [`Offer::id`](delayed_queue::Offer::id), [`JobOffer`](delayed_queue::JobOffer), [`Job`](delayed_queue::Job) |
//! | recurring jobs: cron, intervals | [`Schedule`](delayed_queue::Schedule) |
//! | one queue over several servers | [`PartitionedQueue`] |
//! | pausing a queue, limits for all processes | [`BlockingQueue::pause`], [`BlockingQueue::set_max_in_flight`], [`RateLimit`](blocking_queue::RateLimit), [`DelayedQueue::set_max_pending`] |
//! | ending a service | [`Client::stop_taking`], [`Client::shutdown`] |
//! | each kind of error, and what to do about it | [`ErrorKind`] |
//! | codecs, and how to write one | [`codec`] |
//!
//! | guide | about |
//! |---|---|
//! | [`docs/tour.md`](guide/tour/index.html) | one service as code: ids, retries, dead letters, metrics, shutdown |
//! | [`docs/guarantees.md`](guide/guarantees/index.html) | storing, delivery, leases, crashes, cancel safety, lost connections |
//! | [`docs/recipes.md`](guide/recipes/index.html) | workers, shutdown, idempotent handlers, retries, dead letters, cancel unless paid, jobs by id, recurring jobs, pause and limits, several queues |
//! | [`docs/testing.md`](guide/testing/index.html) | testing your code: handlers, servers, what is pending, faults of the network |
//! | [`docs/patterns.md`](guide/patterns/index.html) | well-known delayed queues, and how to build them with redelay; when to use which |
//! | [`docs/deployment.md`](guide/deployment/index.html) | `redis.conf`, permissions, TLS, Sentinel, Cluster; which managed services and proxies work |
//! | [`docs/scaling.md`](guide/scaling/index.html) | memory, throughput, connections; one queue, partitions, or more masters |
//! | [`docs/deprecated.md`](guide/deprecated/index.html) | what the deprecation of Redisson's `RDelayedQueue` means, and what to do |
//! | [`docs/from-redisson.md`](guide/from_redisson/index.html) | every method of Redisson's queues, and its name here |
//! | [`docs/migrating.md`](guide/migrating/index.html) | moving a service from Java and back |
//! | [`docs/codecs.md`](guide/codecs/index.html) | the counterpart of each Redisson codec; Java classes as structs |
//! | [`docs/java-classes.md`](guide/java_classes/index.html) | pairs of a Java class and its struct, with payloads; what breaks if the struct is wrong |
//! | [`docs/keys.md`](guide/keys/index.html) | every key, channel and byte layout |
//! | [`docs/operate.md`](guide/operate/index.html) | the command `redelay`, which looks into any queue |
//! | [`docs/observability.md`](guide/observability/index.html) | stats, events and spans |
//! | [`docs/troubleshooting.md`](guide/troubleshooting/index.html) | symptoms, causes and fixes |
//!
//! Runnable programs are in the folder
//! [`examples`](https://docs.rs/crate/redelay/latest/source/examples/). The comment at the top of each says
//! how to run it.
//!
//! # The path of a message
//!
//! | step | who runs it | on the server |
//! |---|---|---|
//! | offer | the caller; concurrent offers share a call | a script adds the entry to the timeout set and the ordered list, and announces it if it is the new head |
//! | transfer | one background task per client, when the head is due | a script removes what is due from both, and appends the payloads to the target |
//! | take | one background task per client, on behalf of all its takers | `BLPOP` while takers wait; a script for what is ready already, which keeps a copy until the reply has arrived |
//! | receive | one background task per [`Receiver`] | a script moves messages to redelay's own keys, with leases; `BLMOVE` while receives wait |
//! | settle, extend | the same task, in the same calls | the script deletes the message, moves it to the retries or the dead letters, or extends its lease |
//!
//! Every process that holds a [`DelayedQueue`], or takes or receives from a [`BlockingQueue`], moves due
//! entries to the ready list, unless [`ClientBuilder::transfer`](client::ClientBuilder::transfer)`(false)`
//! turned that off. So does every Redisson that holds an `RDelayedQueue`. One of them
//! calls the script; the others call it only if that is late.
//!
//! | word | means |
//! |---|---|
//! | payload | the bytes of a value, as the codec writes them |
//! | entry | a payload packed with an id, while it is pending |
//! | due | the time at which a payload becomes ready, in epoch milliseconds by the server's clock |
//! | timeout set | the sorted set of pending entries by due time |
//! | ordered list | the list of pending entries in the order of the offers |
//! | head | the earliest due time of a queue |
//! | announcement | the pub/sub message that names a new head |
//! | transfer | moving what is due to the target |
//! | target | the list of ready payloads, which takers read |
//! | receiver | takes messages of a queue, at least once |
//! | worker | runs a handler for each message |
//! | message | a payload that a receiver has claimed, with an id, until it is acknowledged |
//! | delivery | a message in the hands of a program, until it is settled: acknowledged, retried, snoozed, released or rejected |
//! | lease | the time during which a delivery holds. It is extended in the background; when it ends, the message is delivered again |
//! | attempt | the number of a delivery: 1, plus one for each failure and each lease that ended |
//! | dead letter | a message that has no attempt left, or was rejected. It is kept until it is requeued or removed |
//!
//! # Observability
//!
//! [`Client::stats`] and [`DelayedQueue::stats`] return counters and gauges for a client and for a queue.
//! With the feature `tracing`, a client emits events and spans with stable names. `docs/observability.md`
//! lists them. `docs/troubleshooting.md` says what to do when something is wrong.
//!
//! # Features
//!
//! | feature | default | enables |
//! |---|---|---|
//! | `json` | yes | `codec::Json` |
//! | `tracing` | yes | events and spans for the `tracing` crate, target `redelay` |
//! | `msgpack` | no | `codec::MsgPack` |
//! | `kryo` | no | `codec::Kryo5`, `codec::java` |
//! | `classes` | no | `codec::classes`: the fields of Java classes, from `.class` files or text |
//! | `json-jackson` | no | `codec::JsonJackson`, `codec::java` |
//! | `cbor-jackson` | no | `codec::CborJackson`, `codec::java` |
//! | `msgpack-jackson` | no | `codec::MsgPackJackson`, `codec::java` |
//! | `lz4` | no | `codec::Lz4V2` |
//! | `snappy` | no | `codec::SnappyV2` |
//! | `zstd` | no | `codec::ZStd` |
//! | `detect` | no | `codec::detect`, which finds out which codec wrote a payload, and all codecs |
//! | `uuid-1` | no | conversions of types in `codec::java` to and from those of `uuid` 1 |
//! | `jiff-1` | no | conversions of types in `codec::java` to and from those of `jiff` 1 |
//! | `num-bigint-0-5` | no | conversions of types in `codec::java` to and from those of `num-bigint` 0.5 |
//! | `bigdecimal-0-4` | no | conversions of types in `codec::java` to and from those of `bigdecimal` 0.4 |
//! | `cron` | no | [`Schedule::cron`](delayed_queue::Schedule::cron): schedules by cron expressions in time zones |
//! | `tracing-opentelemetry-0-34` | no | The trace of an offer by id travels with the job, for layers of `tracing-opentelemetry` 0.34 |
//! | `tower` | no | [`from_service`](worker::from_service): services of the `tower` crate as handlers of a [`Worker`] |
//! | `tls` | no | `rediss://`, `rediss-sentinel://` and `rediss-cluster://` through rustls, by default with the system's root certificates |
//! | `java` | no | the group `kryo`, `json-jackson`, `cbor-jackson`, `msgpack-jackson` |
//! | `compression` | no | the group `lz4`, `snappy`, `zstd` |
//! | `full` | no | all of the above, but for `tracing-opentelemetry-0-34` and the conversions (`uuid-1` and the like) |
#![cfg_attr(docsrs, feature(doc_cfg))]

/// The examples of the documents, compiled with those of the API.
#[cfg(all(doctest, feature = "full"))]
mod documents {
    macro_rules! documents {
        ($($name:ident $file:literal)+) => {
            $(#[doc = include_str!(concat!("../", $file))] struct $name;)+
        };
    }
    documents! {
        Readme "README.md"
        Codecs "docs/codecs.md"
        Deployment "docs/deployment.md"
        Deprecated "docs/deprecated.md"
        FromRedisson "docs/from-redisson.md"
        Guarantees "docs/guarantees.md"
        JavaClasses "docs/java-classes.md"
        Keys "docs/keys.md"
        Migrating "docs/migrating.md"
        Observability "docs/observability.md"
        Operate "docs/operate.md"
        Patterns "docs/patterns.md"
        Recipes "docs/recipes.md"
        Scaling "docs/scaling.md"
        Testing "docs/testing.md"
        Tour "docs/tour.md"
        Troubleshooting "docs/troubleshooting.md"
    }
}

/// The guides: the files of the folder `docs`, with `build.rs`.
#[cfg(all(doc, not(doctest), guide))]
pub mod guide {
    macro_rules! guides {
        ($($module:ident $file:literal)+) => {
            $(#[doc = include_str!(concat!(env!("OUT_DIR"), "/", $file))] pub mod $module {})+
        };
    }
    guides! {
        codecs "codecs.md"
        deployment "deployment.md"
        deprecated "deprecated.md"
        from_redisson "from-redisson.md"
        guarantees "guarantees.md"
        java_classes "java-classes.md"
        keys "keys.md"
        migrating "migrating.md"
        observability "observability.md"
        operate "operate.md"
        patterns "patterns.md"
        recipes "recipes.md"
        scaling "scaling.md"
        testing "testing.md"
        tour "tour.md"
        troubleshooting "troubleshooting.md"
    }
}

// The public handles, in the order of the methods on the pages of the types.
pub mod client;

pub mod receiver;

pub mod blocking_queue;

pub mod delayed_queue;

mod partitioned_queue;

mod delivery;

pub mod worker;

pub mod admin;

pub mod inspector;

pub mod stats;
// What they share.
mod engine;
mod queue;
// The background tasks of a client.
mod announcements;
mod early_polls;
mod pops;
mod receiving;
mod transfer;
mod upkeep;
// The server: scripts, connections, layout.
mod agreement;
mod claims;
mod conn;
mod schedules;
mod scripts;
mod unreturned;
mod wire;
// Shared by all of the above.
mod driver;
mod error;
mod leases;
mod outbox;
mod pacing;
mod recurrence;
mod telemetry;

/// Codecs: values to payloads and back. This is the crate `redisson-codec`.
pub use redisson_codec as codec;

#[doc(inline)]
pub use blocking_queue::BlockingQueue;
#[doc(inline)]
pub use client::Client;
#[doc(inline)]
pub use delayed_queue::DelayedQueue;
pub use delivery::Delivery;
pub use error::{Error, ErrorKind, Result};
pub use partitioned_queue::PartitionedQueue;
#[doc(inline)]
pub use receiver::Receiver;
#[doc(inline)]
pub use worker::Worker;
