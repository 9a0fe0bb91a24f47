//! The options of a client.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::Client;
#[cfg(feature = "tls")]
use super::Tls;
use crate::conn::{Conn, Credentials, LONGEST, Options, Provider, Replicas, Settings as ConnSettings};
use crate::engine::{Engine, NameMapper, Settings};
use crate::error::{Error, Result};
use crate::transfer;
use crate::wire::entry;

/// A transfer call reads and finds all entries of a batch before it moves the first, and holds them in
/// memory.
const LARGEST_BATCH: u32 = 100_000;
/// The server runs nothing else during a call.
const LONGEST_BUDGET: Duration = Duration::from_secs(1);
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// Five signs of life of an idle receiver.
const SHORTEST_SILENCE: Duration = Duration::from_secs(30);

/// The options of a [`Client`].
///
/// Each setter documents its unit, default and limits. [`connect`](Self::connect) checks them.
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
pub struct ClientBuilder {
    url: String,
    credentials: Credentials,
    sentinel_credentials: Option<(String, String)>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    client_name: String,
    name_mapper: NameMapper,
    connect_timeout: Duration,
    command_timeout: Duration,
    transfer: bool,
    transfer_batch: u32,
    transfer_budget: Duration,
    sweep_interval: Duration,
    check_interval: Duration,
    release_after: Option<Duration>,
    max_payload: usize,
    replicas: Option<Replicas>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            url: "redis://localhost:6379".into(),
            credentials: Credentials::OfUrl,
            sentinel_credentials: None,
            #[cfg(feature = "tls")]
            tls: None,
            client_name: "redelay".into(),
            name_mapper: Arc::new(str::to_owned),
            connect_timeout: Duration::from_secs(10),
            command_timeout: Duration::from_secs(5),
            transfer: true,
            transfer_batch: 5_000,
            transfer_budget: Duration::from_millis(40),
            sweep_interval: Duration::from_secs(60),
            check_interval: Duration::from_secs(5),
            release_after: Some(Duration::from_secs(3600)),
            max_payload: 512 * 1024 * 1024 - entry::HEADER,
            replicas: None,
        }
    }
}

/// # Server
impl ClientBuilder {
    /// Sets the address of the server, of the sentinels that name it, or of servers of a cluster; see
    /// [`Client::connect`] for the forms. Default: `redis://localhost:6379`.
    ///
    /// A user needs a password, if only an empty one: `redis://joe:@host`. Without the colon,
    /// [`connect`](Self::connect) fails: other clients take `joe@` for a user or for a password.
    /// `redis://:secret@host` is a password of the default user.
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

    /// Sets the user and the password, as they are: without percent-encoding. They replace those of the URL.
    /// An empty user is the server's default user. Default: those of the URL, or none.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let password = std::env::var("REDIS_PASSWORD")?;
    /// let client = Client::builder().url("redis://redis.internal").credentials("billing", password).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Credentials::User(user.into(), password.into());
        self
    }

    /// Sets the user and the password for the sentinels of a `redis-sentinel://` URL, as they are. The
    /// credentials of the URL are those of the servers. An empty user is the sentinel's default user.
    /// Default: none.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder()
    ///     .url("redis-sentinel://sentinel-1,sentinel-2,sentinel-3/orders")
    ///     .credentials("billing", std::env::var("REDIS_PASSWORD")?)
    ///     .sentinel_credentials("", std::env::var("SENTINEL_PASSWORD")?)
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sentinel_credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.sentinel_credentials = Some((user.into(), password.into()));
        self
    }

    /// Sets the password of the URL's user, or of the server's default user if the URL has none. It is used
    /// as it is: without percent-encoding. Default: the password of the URL, or none.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let password = std::env::var("REDIS_PASSWORD")?;
    /// let client = Client::builder().url("redis://billing@redis.internal").password(password).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.credentials = Credentials::Password(password.into());
        self
    }

    /// Sets an async function that returns the user and the password: for tokens that expire and passwords
    /// that rotate. It replaces the credentials of the URL. An empty user is the server's default user.
    /// Default: none.
    ///
    /// The function is called whenever a connection is opened, reconnections of each kind of connection
    /// included. Calls may run at the same time, so cache a token that is expensive to get. An open
    /// connection stays open when the password changes.
    ///
    /// A call that returns an error, or takes longer than [`connect_timeout`](Self::connect_timeout) (30 s at
    /// most), is a failed attempt. While the client connects, it repeats failed attempts within the connect
    /// timeout, also after the server refused the credentials. The last one ends [`connect`](Self::connect)
    /// with [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) and the function's error as its source,
    /// or with [`ErrorKind::Credentials`](crate::ErrorKind::Credentials). Later, each connection repeats
    /// failed attempts without limit, with pauses of up to a second; with Sentinel or in a cluster, of up to
    /// 0.2 s.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder()
    ///     .url("redis://redis.internal")
    ///     .credentials_provider(|| async {
    ///         let token = tokio::fs::read_to_string("/run/secrets/redis-token").await?;
    ///         std::io::Result::Ok(("billing".to_owned(), token.trim().to_owned()))
    ///     })
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn credentials_provider<F, Fut, E>(mut self, provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<(String, String), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.credentials = Credentials::Provider(Provider::new(provider));
        self
    }

    /// Sets the TLS options of a URL that begins with `rediss`: a private authority, a client certificate,
    /// another server name. Requires the feature `tls`. Default: no options, which suits a server whose
    /// certificate is signed by one of the system's authorities.
    ///
    /// The system's root certificates are those of the operating system. The environment variables
    /// `SSL_CERT_FILE` (a PEM file) and `SSL_CERT_DIR` (a directory of PEM files) replace them, so a private
    /// authority can also be trusted without changing the program.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::client::Tls;
    /// # use redelay::Client;
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let tls = Tls::new().root_certificate_pem(std::fs::read("/etc/redis/ca.pem")?);
    /// let client = Client::builder().url("rediss://redis.internal:6380").tls(tls).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the name of the connections on the server (`CLIENT LIST`). Visible ASCII characters only.
    /// Default: `redelay`.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().client_name("billing").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }
}

/// # Names
impl ClientBuilder {
    /// Sets a prefix for every queue name: the usual case of Redisson's `NameMapper`. Default: none, as in
    /// Redisson.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().name_prefix("shop:").connect().await?;
    /// // In Redis `shop:orders`. Its pending entries are in `redisson_delay_queue:{shop:orders}`.
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// # Ok(())
    /// # }
    /// ```
    pub fn name_prefix(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.name_mapper(move |name| format!("{prefix}{name}"))
    }

    /// Sets a function that maps each queue name to its name on the server: Redisson's `NameMapper`, which
    /// must be the same in all services. As in Redisson, the mapped name decides whether the other keys get
    /// braces. Default: no change, as in Redisson.
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
}

/// # Timeouts
impl ClientBuilder {
    /// Sets how long [`connect`](Self::connect) retries while no server answers (default 10 s, above zero).
    /// Services and their server often start together.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// // A command line tool that fails at once if no server is running.
    /// let client = Client::builder().connect_timeout(Duration::from_millis(500)).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets how long a command may take, including the wait for a connection and any retries (default 5 s,
    /// above zero). It does not limit calls that wait for a payload. A connection on which the server is
    /// silent for this long is replaced; for 8 s more while the text of a script is on its way.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().command_timeout(Duration::from_secs(1)).connect().await?;
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// orders.put(&7).await?; // Fails after one second at most.
    /// orders.take().await?; // Waits for any time.
    /// # Ok(())
    /// # }
    /// ```
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout.min(LONGEST);
        self
    }
}

/// # Transfer
impl ClientBuilder {
    /// Sets whether this client transfers due entries (default true). Each queue needs at least one client
    /// that does, or a Redisson; several do not interfere with each other.
    ///
    /// Jobs by id and schedules need a redelay client that transfers and keeps running, also beside a
    /// Redisson: only its sweeps remove the ids of jobs that Redisson has moved.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example() -> redelay::Result<()> {
    /// // A short-lived producer. The workers, or a Redisson, transfer the entries.
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

    /// Sets the maximum number of due entries that one script call transfers (default 5,000, from 1 to
    /// 100,000). Lower it only together with [`transfer_budget`](Self::transfer_budget), to shorten the time
    /// for which Redis is blocked; throughput drops.
    ///
    /// One call searches the ordered list for this many entries at once. In a list that is over 50 times
    /// longer it searches for up to four times as many, but for no more than about 2.5 MB of them.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// // No call transfers more than 50.
    /// let client = Client::builder().transfer_batch(50).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn transfer_batch(mut self, entries: u32) -> Self {
        self.transfer_batch = entries;
        self
    }

    /// Sets the time after which a transfer call ends, so that Redis serves other clients (default 40 ms,
    /// above zero, at most 1 s). If more entries are due, the next call follows at once and continues there.
    ///
    /// A call ends soon after this time. With more than 250,000 pending entries it may take three times as
    /// long, because there is more to read for each due entry. While a backlog of 10,000 or more is moved of
    /// which most is due, a call takes 10 to 60 ms whatever the budget, because it reads all that is not.
    /// `docs/scaling.md` has the longest calls that were measured.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// // For a server with latency-sensitive clients: more calls, and shorter ones.
    /// let builder = Client::builder().transfer_budget(Duration::from_millis(2)).transfer_batch(500);
    /// let client = builder.connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn transfer_budget(mut self, budget: Duration) -> Self {
        self.transfer_budget = budget;
        self
    }

    /// Sets how often the transfer of an idle queue runs without an announcement (default 60 s, at least 1 s,
    /// plus up to 25 % jitter; half a second for each queue of the client, if that is more). It is a safety
    /// net and rarely needs to be changed: clients check for overdue entries more often, see
    /// [`check_interval`](Self::check_interval).
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().sweep_interval(Duration::from_secs(600)).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sweep_interval(mut self, interval: Duration) -> Self {
        self.sweep_interval = interval.min(LONGEST);
        self
    }

    /// Sets how often a client that transfers asks each server whether entries are overdue that no client
    /// moves (default 5 s, at least 1 s): one script for up to 100 queues. It is a safety net for
    /// announcements that are lost without a trace; an entry that was not announced is late by up to this
    /// time and 5 s, and by one more interval for each further 100 queues of a server, or 20 slots of a
    /// cluster. The check also notices that
    /// the server's clock was set, and `Client::health` is as old as the last one. Where each command is paid
    /// for, set a longer one.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().check_interval(Duration::from_secs(60)).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn check_interval(mut self, interval: Duration) -> Self {
        self.check_interval = interval.min(LONGEST);
        self
    }

    /// Sets how long a queue may have no live [`Receiver`](crate::Receiver) before its unsettled messages
    /// return to the list, where every taker finds them, Java's too (default an hour, at least 30 s). `None`
    /// means never. A client that transfers for the queue notices this during its regular check of the queue.
    ///
    /// What goes back loses its id and its counts. So this should be longer than any deployment or outage
    /// takes: a payload that kills its process would start again with the first attempt.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// // Every queue here always has receivers.
    /// let client = Client::builder().release_abandoned_after(None).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn release_abandoned_after(mut self, silence: impl Into<Option<Duration>>) -> Self {
        self.release_after = silence.into().map(|silence| silence.min(LONGEST));
        self
    }
}

/// # Writes
impl ClientBuilder {
    /// Sets the maximum size of a payload in bytes (default 512 MiB minus the header of an entry). The
    /// default is the largest string that a server accepts with its default `proto-max-bulk-len`.
    /// `client-query-buffer-limit` limits it, too: 1 GiB by default.
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

    /// Makes offers, puts and settlements wait until this number of replicas has them (default: they do not
    /// wait).
    ///
    /// Redis copies writes to its replicas after it has answered. So writes that were acknowledged just
    /// before a failover may be lost. With this option, a call returns `Ok` when the master and `count`
    /// replicas have its effect, by `WAIT`. If too few replicas confirm it within `timeout`, an offer is
    /// tried again until the command timeout is over; what is not idempotent, such as `put`, is not. Then the
    /// error is
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) and says how many have confirmed it: the write is
    /// on the master, and may survive.
    ///
    /// The promoted server must have as many replicas, too. Until it does, calls end with
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown). So `replicas(1, …)` survives a failover without
    /// such errors if each master has two replicas.
    ///
    /// Use the number of replicas that may be promoted: with Sentinel, all of them. `timeout` is a
    /// millisecond at least, and not longer than the [command timeout](Self::command_timeout). Each client
    /// has one more connection to each master for this. A call takes about one more round trip, and
    /// concurrent calls share a `WAIT`.
    ///
    /// Receives and takes do not wait. After a failover, a message may be delivered again although it was
    /// settled, if the settlement returned an error.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// let builder = Client::builder().url("redis-cluster://redis-1,redis-2").replicas(1, Duration::from_millis(500));
    /// let client = builder.connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn replicas(mut self, count: u32, timeout: Duration) -> Self {
        self.replicas = Some(Replicas { count, timeout });
        self
    }
}

/// # Connect
impl ClientBuilder {
    /// Connects and starts the background tasks.
    ///
    /// The client belongs to the Tokio runtime from which this is called, and ends with it.
    ///
    /// # Panics
    /// If time or I/O is not enabled in the Tokio runtime.
    ///
    /// # Errors
    /// * [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): the URL or an option is not valid.
    /// * [`ErrorKind::Credentials`](crate::ErrorKind::Credentials): the server requires another user or
    ///   password.
    /// * [`ErrorKind::Refused`](crate::ErrorKind::Refused): the server lacks a command without which there is
    ///   no connection, or the user may not run it.
    /// * [`ErrorKind::Tls`](crate::ErrorKind::Tls): the TLS handshake failed, because of a certificate for
    ///   example.
    /// * [`ErrorKind::UnsupportedServer`](crate::ErrorKind::UnsupportedServer): the server is older than
    ///   Redis 6.2.
    /// * [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable): no server answered within the connect
    ///   timeout.
    ///
    /// Only errors that may resolve on their own are retried within the connect timeout: `Unavailable`, and
    /// `Credentials` if there is a [credentials provider](Self::credentials_provider).
    ///
    /// # Cancel safety
    /// Cancel safe: an unfinished connection is closed.
    pub async fn connect(self) -> Result<Client> {
        if Handle::try_current().is_err() {
            let reason = "there is no Tokio runtime here; call it within one, as in #[tokio::main]";
            return Err(Error::invalid("connect", reason));
        }
        self.check().map_err(|reason| Error::invalid("connect", reason))?;
        let settings = ConnSettings {
            url: &self.url,
            credentials: self.credentials.clone(),
            sentinel_credentials: self.sentinel_credentials.clone(),
            #[cfg(feature = "tls")]
            tls: self.tls.as_ref().map(|tls| &tls.0),
            client_name: self.client_name.clone(),
            connect_timeout: self.connect_timeout,
            command_timeout: self.command_timeout,
            replicas: self.replicas,
        };
        let options = Options::new(settings).map_err(|error| Error::connect("", error))?;
        let server = options.server();
        let conn = Conn::connect(options).await.map_err(|error| Error::connect(&server, error))?;
        Ok(Client { engine: Engine::start(conn.clone(), self.settings()), conn })
    }

    /// The first option that is not valid, and why.
    fn check(&self) -> std::result::Result<(), &'static str> {
        let is_visible = self.client_name.bytes().all(|byte| byte.is_ascii_graphic());
        let rules = [
            (self.connect_timeout.is_zero(), "connect_timeout is zero; it must be longer, and 10 s is usual"),
            (self.command_timeout.is_zero(), "command_timeout is zero; it must be longer, and 5 s is usual"),
            (
                self.transfer_batch == 0,
                "transfer_batch is 0, so nothing would be transferred; it must be at least 1",
            ),
            (
                self.transfer_batch > LARGEST_BATCH,
                "transfer_batch is over 100,000, which would block Redis for too long; 5,000 is usual",
            ),
            (
                self.transfer_budget.is_zero(),
                "transfer_budget is zero; it must be longer, and 40 ms is usual",
            ),
            (
                self.transfer_budget > LONGEST_BUDGET,
                "transfer_budget is longer than 1 s, for which Redis would serve no other client; 40 ms is usual",
            ),
            (
                self.sweep_interval < SHORTEST_INTERVAL,
                "sweep_interval is shorter than 1 s; it is a safety net, and 60 s is usual",
            ),
            (
                self.check_interval < SHORTEST_INTERVAL,
                "check_interval is shorter than 1 s; it is a safety net, and 5 s is usual",
            ),
            (
                self.release_after.is_some_and(|silence| silence < SHORTEST_SILENCE),
                "release_abandoned_after is shorter than 30 s, and idle receivers give a sign of life every 6 s; an hour is usual",
            ),
            (
                self.replicas.is_some_and(|replicas| replicas.count == 0),
                "replicas(0, …) waits for nothing; it must be at least 1, or be left out",
            ),
            (
                self.replicas.is_some_and(|replicas| {
                    replicas.timeout < Duration::from_millis(1) || replicas.timeout > self.command_timeout
                }),
                "the timeout of replicas(…) must be at least 1 ms and not longer than command_timeout; 500 ms is usual",
            ),
            (
                !is_visible,
                "client_name has other than visible ASCII characters, which CLIENT SETNAME refuses",
            ),
        ];
        match rules.into_iter().find(|(is_broken, _)| *is_broken) {
            Some((_, reason)) => Err(reason),
            None => Ok(()),
        }
    }

    fn settings(self) -> Settings {
        let transfer = transfer::Settings {
            batch: self.transfer_batch,
            budget: self.transfer_budget,
            sweep_interval: self.sweep_interval,
            check_interval: self.check_interval,
            release_after: self.release_after,
        };
        Settings {
            transfers: self.transfer,
            transfer,
            map_name: self.name_mapper,
            max_payload: self.max_payload,
        }
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may contain a password.
        let mut debug = f.debug_struct("ClientBuilder");
        #[cfg(feature = "tls")]
        debug.field("tls", &self.tls);
        debug
            .field("credentials", &self.credentials)
            .field("client_name", &self.client_name)
            .field("connect_timeout", &self.connect_timeout)
            .field("command_timeout", &self.command_timeout)
            .field("transfer", &self.transfer)
            .field("transfer_batch", &self.transfer_batch)
            .field("transfer_budget", &self.transfer_budget)
            .field("sweep_interval", &self.sweep_interval)
            .field("check_interval", &self.check_interval)
            .field("release_after", &self.release_after)
            .field("max_payload", &self.max_payload)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}
