//! Connecting a client: to one server, to the master that sentinels name, or to a cluster.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::commands::Commands;
use super::info::{OLDEST_SERVER, field, parse_version, product};
use super::master::Master;
use super::options::Lookup;
use super::shared::Shared;
use super::topology::Topology;
use super::{Base, Command, Conn, ConnectError, OpError, Options, Servers, sentinel};
use crate::pacing::pause_after;
use crate::telemetry::events;

impl Conn {
    /// Connects and checks the server's version. Keeps trying while no server answers, within
    /// `connect_timeout`.
    ///
    /// Compiled once: see [`client`](super::client).
    #[inline(never)]
    pub(crate) fn connect(options: Options) -> BoxFuture<'static, Result<Self, ConnectError>> {
        Box::pin(Self::connect_now(options))
    }

    async fn connect_now(options: Options) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.connect_timeout;
        let (servers, shared, sentinels) = match &options.lookup {
            Lookup::Url => {
                let shared = Shared::new(None);
                (Servers::One(Commands::open(&options, &shared, deadline).await?), shared, None)
            }
            Lookup::Sentinels(group) => {
                let master = Master::new(group.master.clone());
                let shared = Shared::new(Some(master.topology().clone()));
                let sentinels = sentinel::follow(group.clone(), master, &shared);
                (Servers::One(Commands::open(&options, &shared, deadline).await?), shared, Some(sentinels))
            }
            Lookup::Cluster(seeds) => {
                let unknown = "the servers of the cluster are not known".to_owned();
                let topology = Topology::new(unknown, "none has answered");
                let shared = Shared::new(Some(topology.clone()));
                let cluster = Cluster::connect(&options, seeds, topology, &shared, deadline).await?;
                (Servers::Cluster(Arc::new(cluster)), shared, None)
            }
        };
        let command_timeout = options.command_timeout;
        let base = Base { options, servers, shared, runtime: Handle::current(), sentinels };
        let conn = Self { base: Arc::new(base), slot: None, command_timeout, long: None };
        conn.check_version(deadline).await?;
        Ok(conn)
    }

    async fn check_version(&self, deadline: Instant) -> Result<(), ConnectError> {
        let reply = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let conn = self.with_timeout(self.command_timeout.min(left));
            let reply = conn.call(&Command::new("INFO").arg("server").only_reads()).await;
            // A server that is busy may need more than one command timeout.
            let is_busy = matches!(reply, Err(OpError::Unknown(_) | OpError::NotExecuted(_)));
            if !is_busy || Instant::now() >= deadline {
                break reply;
            }
            sleep(pause_after(0)).await;
        };
        let info = match reply {
            Ok(reply) => reply.into_bytes().unwrap_or_default(),
            // A server may lack INFO, or the user the permission, and still serve queues. There is
            // nothing to check then.
            Err(OpError::Server(_)) => Bytes::new(),
            Err(error) => return Err(ConnectError::failed(error.into_cause())),
        };
        let info = String::from_utf8_lossy(&info);
        // Valkey has the second name.
        if ["redis_mode", "server_mode"].iter().any(|mode| field(&info, mode) == Some("sentinel")) {
            let why = format!(
                "{0} is a sentinel; write redis-sentinel://{0}/ and the name of the master",
                self.address()
            );
            return Err(ConnectError::Url(why));
        }
        match parse_version(&info) {
            Some((version, found)) if found < OLDEST_SERVER => Err(ConnectError::OldServer(version)),
            _ => {
                events::connected(&self.server(), &product(&info));
                Ok(())
            }
        }
    }
}
