//! Calls that the server refuses: each of them is done or changes nothing.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use redelay::{Client, DelayedQueue, ErrorKind};
use redelay_fixture::{Server, until_async};
use redelay_support::{Queues, lasting, soon, still_builder, still_text_queues};

pub(crate) type Write = (&'static str, fn(DelayedQueue<String>) -> BoxFuture<'static, redelay::Result<()>>);

/// Calls, and the queue on which they write.
pub(crate) struct Writes {
    pub(crate) calls: &'static [Write],
    pub(crate) fill: fn(DelayedQueue<String>) -> BoxFuture<'static, ()>,
    /// The number of keys of a queue that is filled.
    pub(crate) keys: usize,
}

impl Writes {
    async fn filled(&self, server: &Server, delayed: &DelayedQueue<String>) {
        (self.fill)(delayed.clone()).await;
        until_async("the receipts are deleted", || async { lasting(server).len() == self.keys }).await;
    }

    /// A server of its own, and a queue that nobody transfers.
    pub(crate) async fn still(&self) -> (Server, Client, DelayedQueue<String>) {
        let server = Server::start();
        let (client, _ready, delayed) = still_text_queues(&server).await;
        self.filled(&server, &delayed).await;
        (server, client, delayed)
    }

    /// All calls, without the permission for one command at a time.
    pub(crate) async fn without_permissions(&self, commands: &[&str]) {
        let server = Server::start();
        let mut refused = BTreeSet::new();
        for command in commands {
            server.cmd(["FLUSHALL"]);
            server.cmd([
                "ACL",
                "SETUSER",
                "user",
                "reset",
                "on",
                ">secret",
                "allkeys",
                "allchannels",
                "+@all",
            ]);
            let Queues { client, delayed, .. } =
                Queues::of_texts(still_builder(&server).credentials("user", "secret")).await;
            self.filled(&server, &delayed).await;
            server.cmd(["ACL", "SETUSER", "user", &format!("-{command}")]);
            for (name, call) in self.calls {
                let before = lasting(&server);
                if let Err(error) = soon(call(delayed.clone())).await {
                    assert_eq!(error.kind(), ErrorKind::Refused, "{name} without {command}: {error}");
                    assert!(lasting(&server) == before, "{name} without {command} has written");
                    refused.insert(name);
                }
            }
            client.shutdown().await;
        }
        assert_eq!(refused.len(), self.calls.len(), "{refused:?}");
    }

    /// All calls but those that do not need the key, with a text in its place.
    pub(crate) async fn with_a_text_as(&self, key: &str, not_needed_by: &[&str]) {
        let (server, client, delayed) = self.still().await;
        server.cmd(["DEL", key]);
        server.cmd(["SET", key, "text"]);
        let before = lasting(&server);
        for (name, call) in self.calls.iter().filter(|(name, _)| !not_needed_by.contains(name)) {
            let error = soon(call(delayed.clone())).await.expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Refused, "{name}: {error}");
            assert!(error.to_string().contains("WRONGTYPE"), "{name}: {error}");
            assert!(lasting(&server) == before, "{name} with another {key} has written");
        }
        client.shutdown().await;
    }

    /// These calls, on a server that is full. Returns it, so that others can be tried.
    pub(crate) async fn without_memory(&self, names: &[&str]) -> (Server, Client, DelayedQueue<String>) {
        let (server, client, delayed) = self.still().await;
        server.cmd(["CONFIG", "SET", "maxmemory", "1"]);
        let before = lasting(&server);
        let calls: Vec<_> = self.calls.iter().filter(|(name, _)| names.contains(name)).collect();
        assert_eq!(calls.len(), names.len());
        for (name, call) in calls {
            let error = soon(call(delayed.clone())).await.expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Refused, "{name}: {error}");
            assert!(lasting(&server) == before, "{name} has written");
        }
        (server, client, delayed)
    }
}
