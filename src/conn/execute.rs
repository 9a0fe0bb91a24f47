//! The calls of the client library that compile to much code, each behind a function that is compiled once.
//!
//! The body of an async function is compiled again in each codegen unit that awaits it, and in the program that uses this crate,
//! along with everything that it awaits. Without these functions, a program of ten lines has the code that connects twelve times.

use std::time::Duration;

use bytes::Bytes;
use fred::clients::Client;
use fred::error::Error as FredError;
use fred::interfaces::ClientLike;
use fred::types::config::Options as CallOptions;
use fred::types::{CustomCommand, Resp3Frame};
use futures::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;

/// A command on its way. It is large, and the futures around it would all have room for it, some of them twice.
pub(super) type Executing = BoxFuture<'static, Result<Resp3Frame, FredError>>;

/// Runs a command, within this time or the client's own.
#[inline(never)]
pub(super) fn execute(
    client: Client,
    command: CustomCommand,
    args: Vec<Bytes>,
    within: Option<Duration>,
) -> Executing {
    let Some(within) = within else {
        return Box::pin(async move { client.custom_raw(command, args).await });
    };
    let options = CallOptions { timeout: Some(within), ..CallOptions::default() };
    Box::pin(async move { client.with_options(&options).custom_raw(command, args).await })
}

/// Begins to connect. `init()` would leave its task behind, and with it a connection, when it is dropped half-way.
#[inline(never)]
pub(super) fn connect(client: &Client) -> AbortOnDropHandle<Result<(), FredError>> {
    AbortOnDropHandle::new(client.connect())
}

/// Replaces the connection. The library's future ends with the reconnection, which it reports.
#[inline(never)]
pub(super) fn force_reconnection(client: Client) {
    tokio::spawn(async move { client.force_reconnection().await });
}

#[inline(never)]
pub(super) fn quit(client: Client) -> BoxFuture<'static, Result<(), FredError>> {
    Box::pin(async move { client.quit().await })
}
