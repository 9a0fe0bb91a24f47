//! The client library's client: what is called on it, and what it reports.
//!
//! The calls that compile to much code are each behind a function that is compiled once. The body of an async
//! function is compiled again in each codegen unit that awaits it, and in the program that uses this crate,
//! along with everything that it awaits. Without these functions, a program of ten lines has the code that
//! connects twelve times.

use std::time::Duration;

use bytes::Bytes;
use fred::error::ErrorKind;
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface, TrackingInterface};
use fred::types::config::{Options as CallOptions, Server};
use fred::types::{ClusterHash, CustomCommand, Value};
use futures::future::{BoxFuture, FutureExt};
use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use super::library_error::Error;
use super::reply::Frame;

pub(super) use fred::types::Message;
pub(super) use fred::types::client::Invalidation;

/// A command on its way. It is large, and the futures around it would all have room for it, some of them
/// twice.
pub(super) type Executing = BoxFuture<'static, Result<Frame, Error>>;
/// The task that is a connection.
pub(super) type Connection = AbortOnDropHandle<Result<(), Error>>;
/// The report of a lost connection, and why it is lost.
pub(super) type Lost = (Error, Option<Server>);
/// The report of a new connection.
pub(super) type Back = Server;

/// What is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Channels,
    /// All channels that match, also those that nobody has used yet.
    Patterns,
}

/// A client of the library. It has one connection at a time.
#[derive(Clone)]
pub(super) struct FredClient(pub(super) fred::clients::Client);

impl FredClient {
    /// Runs a command, within this time or the client's own.
    #[inline(never)]
    pub(super) fn execute(self, name: &'static str, args: Vec<Bytes>, within: Option<Duration>) -> Executing {
        let (Self(client), is_blocking) = (self, name.starts_with('B'));
        let command = CustomCommand::new_static(name, ClusterHash::FirstKey, is_blocking);
        let Some(within) = within else {
            return Box::pin(async move { client.custom_raw(command, args).await });
        };
        let options = CallOptions { timeout: Some(within), ..CallOptions::default() };
        Box::pin(async move { client.with_options(&options).custom_raw(command, args).await })
    }

    /// Begins to connect. `init()` would leave its task behind, and with it a connection, when it is dropped
    /// half-way.
    #[inline(never)]
    pub(super) fn connect(&self) -> Connection {
        AbortOnDropHandle::new(self.0.connect())
    }

    /// Waits until this connection is made.
    pub(super) async fn connected(&self, connection: &mut Connection) -> Result<(), Error> {
        tokio::select! {
            connected = self.0.wait_for_connect() => connected,
            ended = connection => match ended {
                Ok(result) => result,
                Err(error) => Err(Error::new(ErrorKind::Unknown, error.to_string())),
            },
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.0.is_connected()
    }

    /// Replaces the connection. The library's future asks for that when it is polled first, and ends with
    /// the reconnection, which is reported elsewhere. Nothing is spawned: the runtime of a caller may end.
    #[inline(never)]
    pub(super) fn force_reconnection(self) {
        let _ = self.0.force_reconnection().now_or_never();
    }

    #[inline(never)]
    pub(super) fn quit(self) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move { self.0.quit().await })
    }

    /// The lost connections from here on.
    pub(super) fn losses(&self) -> broadcast::Receiver<Lost> {
        self.0.error_rx()
    }

    /// The new connections from here on, which follow lost ones.
    pub(super) fn reconnections(&self) -> broadcast::Receiver<Back> {
        self.0.reconnect_rx()
    }

    /// The messages from here on, on the channels that are subscribed to.
    pub(super) fn messages(&self) -> broadcast::Receiver<Message> {
        self.0.message_rx()
    }

    /// The notices from here on of keys that have changed.
    pub(super) fn invalidations(&self) -> broadcast::Receiver<Invalidation> {
        self.0.invalidation_rx()
    }

    /// Subscribes to a channel. The library does not wait for the server's answer.
    pub(super) async fn subscribe(&self, channel: &str) -> Result<(), Error> {
        self.0.subscribe(channel).await
    }

    /// Unsubscribes from channels or patterns, and subscribes to others. Returns whether the answer of the
    /// server is that of a `PING` that is sent with them.
    ///
    /// The library expects no reply to the others, and passes a refusal to the next command that has one.
    /// That command must be sent with them, in a pipeline: otherwise the refusal would be lost.
    pub(super) async fn resubscribe(
        &self,
        to: To,
        unwanted: Vec<String>,
        wanted: Vec<String>,
    ) -> Result<bool, Error> {
        let pipeline = self.0.pipeline();
        match to {
            To::Channels if !unwanted.is_empty() => pipeline.unsubscribe(unwanted).await?,
            To::Patterns if !unwanted.is_empty() => pipeline.punsubscribe(unwanted).await?,
            _ => {}
        }
        match to {
            To::Channels if !wanted.is_empty() => pipeline.subscribe(wanted).await?,
            To::Patterns if !wanted.is_empty() => pipeline.psubscribe(wanted).await?,
            _ => {}
        }
        let ping = CustomCommand::new_static("PING", ClusterHash::Random, false);
        pipeline.custom::<(), &str>(ping, vec![]).await?;
        Ok(match pipeline.last::<Value>().await? {
            // While subscribed it is `["pong", ""]`.
            Value::Array(parts) => parts.first().and_then(Value::as_bytes) == Some(b"pong"),
            pong => pong.as_bytes() == Some(b"PONG"),
        })
    }
}

/// The channel of a message, and what was published there.
pub(super) fn content(message: Message) -> (String, Bytes) {
    (message.channel.to_string(), message.value.into_bytes().unwrap_or_default())
}

/// The keys that have changed.
pub(super) fn changed_keys(notice: Invalidation) -> Vec<Bytes> {
    notice.keys.into_iter().map(|key| key.into_bytes()).collect()
}
