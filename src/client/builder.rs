//! The options of a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::Client;
use crate::conn::{Conn, Options};
use crate::engine::{Engine, NameMapper, Settings};
use crate::error::{Error, Result};
use crate::transfer;
use crate::wire::entry;

/// No option is longer, so that no sum of times overflows.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// A transfer call reads and finds all entries of a batch before it moves the first, and holds them in memory.
const LARGEST_BATCH: u32 = 100_000;
/// Nobody else is served while a call runs.
const LONGEST_BUDGET: Duration = Duration::from_secs(1);

/// The options of a [`Client`]. Each setter says its default, and why it is that.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::Client;
/// # async fn example() -> redelay::Result<()> {
/// let client = Client::builder()
///     .url("redis://localhost")
///     .client_name("billing")
///     .name_prefix("shop:")
///     .command_timeout(Duration::from_secs(2))
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct Builder {
    url: String,
    client_name: String,
    name_mapper: NameMapper,
    connect_timeout: Duration,
    command_timeout: Duration,
    transfer: bool,
    transfer_batch: u32,
    transfer_budget: Duration,
    sweep_interval: Duration,
    max_payload: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            url: "redis://localhost:6379".into(),
            client_name: "redelay".into(),
            name_mapper: Arc::new(str::to_owned),
            connect_timeout: Duration::from_secs(10),
            command_timeout: Duration::from_secs(5),
            transfer: true,
            transfer_batch: 5_000,
            transfer_budget: Duration::from_millis(40),
            sweep_interval: Duration::from_secs(60),
            max_payload: 512 * 1024 * 1024 - entry::HEADER,
        }
    }
}

impl Builder {
    /// Where the server is; see [`Client::connect`] for the forms. Defaults to `redis://localhost:6379`, where a server on
    /// the same machine listens.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().url("redis://billing:p%40ss@redis.internal:6380/2").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = url.into();
        self
    }

    /// How the connections are named on the server (`CLIENT LIST`). Defaults to `redelay`, so that they can be told
    /// from others.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// Puts a prefix before every queue name: the usual case of Redisson's `NameMapper`. Defaults to none, as there.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().name_prefix("shop:").connect().await?;
    /// // In Redis `shop:orders`; what is pending is under `redisson_delay_queue:{shop:orders}`.
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// # Ok(())
    /// # }
    /// ```
    pub fn name_prefix(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.name_mapper(move |name| format!("{prefix}{name}"))
    }

    /// Maps every queue name to the name that is used on the server: Redisson's `NameMapper`, which must be the same
    /// in all services. The result decides about the braces of the other keys, as in Redisson. Defaults to no change, as there.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().name_mapper(|name| format!("shop:{name}:v2")).connect().await?;
    /// let orders = client.blocking_queue("orders", codec::Long); // In Redis `shop:orders:v2`.
    /// # Ok(())
    /// # }
    /// ```
    pub fn name_mapper(mut self, map: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.name_mapper = Arc::new(map);
        self
    }

    /// How long [`Builder::connect`] keeps trying while no server answers. Defaults to 10 s: services and their
    /// server often start together.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// // A command line tool that says at once that nothing is running.
    /// let client = Client::builder().connect_timeout(Duration::from_millis(500)).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout.min(LONGEST);
        self
    }

    /// How long a command may take, the wait for a connection included; what blocks by nature is not limited by it.
    /// Defaults to 5 s: longer than a failover or a slow command usually takes, and short enough to be told.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().command_timeout(Duration::from_secs(1)).connect().await?;
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// orders.put(&7).await?; // Fails after a second at most,
    /// orders.take().await?; // and this one still waits for as long as it takes.
    /// # Ok(())
    /// # }
    /// ```
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout.min(LONGEST);
        self
    }

    /// Whether this client moves due entries. Defaults to true, for a queue that nobody moves stands still; several
    /// clients do not get into each other's way. With false, some other client, or a Redisson, has to.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example() -> redelay::Result<()> {
    /// // Producers that come and go; the workers, or a Redisson, do the moving.
    /// let producer = Client::builder().transfer(false).connect().await?;
    /// let jobs = producer.delayed_queue(&producer.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&7, Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn transfer(mut self, transfer: bool) -> Self {
        self.transfer = transfer;
        self
    }

    /// The most due entries that one transfer call moves. As many are looked for together, in a list of more than fifty
    /// times as many up to four times as many, but no more than 2.5 MB of them, about. Defaults to 5,000: with fewer the
    /// list is read more often, more have to be held in each call. From 1 to 100,000.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// // No call moves more than 50.
    /// let client = Client::builder().transfer_batch(50).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn transfer_batch(mut self, entries: u32) -> Self {
        self.transfer_batch = entries;
        self
    }

    /// The time after which a transfer call ends, so that others get at the server; the next one follows at once, and
    /// goes on where this one ended. Defaults to 40 ms: with up to 100,000 entries of 100 bytes pending, in any
    /// order, a call then holds the server for 35 to 45 ms at most. With more than 250,000 it may be three times as long,
    /// since there is more to read through for each entry. Above zero, and a second at most.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// // On a server whose other users cannot wait for long: shorter calls, and more of them.
    /// let builder = Client::builder().transfer_budget(Duration::from_millis(2)).transfer_batch(500);
    /// let client = builder.connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn transfer_budget(mut self, budget: Duration) -> Self {
        self.transfer_budget = budget;
        self
    }

    /// How often a queue is looked at of which nothing was heard, each time with up to a quarter of jitter more.
    /// Defaults to 60 s: it only mends what no message, reply or reconnection told of. At least 1 s.
    pub fn sweep_interval(mut self, interval: Duration) -> Self {
        self.sweep_interval = interval.min(LONGEST);
        self
    }

    /// The largest payload that is sent, in bytes. Defaults to what a server takes as one string with its default
    /// `proto-max-bulk-len`: 512 MiB, less the header of an entry.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, ErrorKind, codec};
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().max_payload(64 * 1024).connect().await?;
    /// let files = client.blocking_queue("files", codec::Bytes);
    /// let error = files.put(&vec![0; 100_000]).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Invalid); // Nothing was sent.
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// Connects, and starts the background tasks, in the Tokio runtime from which it is called: the client belongs to it
    /// and ends with it. Time and I/O have to be enabled there, or it panics, as everything of Tokio does.
    ///
    /// # Errors
    /// * [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): the URL or an option cannot be used.
    /// * [`ErrorKind::Credentials`](crate::ErrorKind::Credentials): the server wants another user or password.
    /// * [`ErrorKind::UnsupportedServer`](crate::ErrorKind::UnsupportedServer): older than Redis 6.2.
    /// * [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable): no server answered within the connect timeout.
    ///
    /// # Cancel safety
    /// Cancel safe: a connection half made is closed.
    pub async fn connect(self) -> Result<Client> {
        if Handle::try_current().is_err() {
            let reason = "there is no Tokio runtime here; call it from within one, as in #[tokio::main]";
            return Err(Error::invalid("connect", reason));
        }
        self.check()?;
        let options =
            Options::new(&self.url, self.client_name.clone(), self.connect_timeout, self.command_timeout)
                .map_err(|error| Error::connect("", error))?;
        let server = options.server();
        let conn = Conn::connect(options).await.map_err(|error| Error::connect(&server, error))?;
        Ok(Client { engine: Engine::start(conn.clone(), self.settings()), conn })
    }

    fn check(&self) -> Result<()> {
        let refuse = |reason: &str| Err(Error::invalid("connect", reason));
        if self.transfer_batch == 0 {
            return refuse("transfer_batch is 0, so nothing would ever move; it must be at least 1");
        }
        if self.transfer_batch > LARGEST_BATCH {
            return refuse(
                "transfer_batch is beyond 100,000; the server would do nothing else for too long, 5,000 is usual",
            );
        }
        if self.transfer_budget.is_zero() {
            return refuse("transfer_budget is zero; it must be at least 1 microsecond");
        }
        if self.transfer_budget > LONGEST_BUDGET {
            return refuse(
                "transfer_budget is longer than a second, for which the server would serve nobody else; 40 ms is usual",
            );
        }
        if self.sweep_interval < Duration::from_secs(1) {
            return refuse(
                "sweep_interval is shorter than a second; it only mends what was lost, 60 s is usual",
            );
        }
        for (name, timeout) in
            [("command_timeout", self.command_timeout), ("connect_timeout", self.connect_timeout)]
        {
            if timeout.is_zero() {
                return refuse(&format!("{name} is zero, so nothing could succeed"));
            }
        }
        if !self.client_name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse("client_name may hold visible ASCII only, as CLIENT SETNAME demands");
        }
        Ok(())
    }

    fn settings(self) -> Settings {
        let transfer = transfer::Settings {
            batch: self.transfer_batch,
            budget: self.transfer_budget,
            sweep_interval: self.sweep_interval,
        };
        Settings {
            transfer: self.transfer.then_some(transfer),
            map_name: self.name_mapper,
            max_payload: self.max_payload,
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_struct("Builder")
            .field("client_name", &self.client_name)
            .field("connect_timeout", &self.connect_timeout)
            .field("command_timeout", &self.command_timeout)
            .field("transfer", &self.transfer)
            .field("transfer_batch", &self.transfer_batch)
            .field("transfer_budget", &self.transfer_budget)
            .field("sweep_interval", &self.sweep_interval)
            .field("max_payload", &self.max_payload)
            .finish_non_exhaustive()
    }
}
