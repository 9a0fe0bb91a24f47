//! The servers of a cluster: who serves which slot, and one connection for commands to each master.
//!
//! The client library's own cluster mode is not used. One of its replies `ASK` ends its client, and one dead master stops the
//! commands to all others.
//!
//! Each master is asked for the slots once a second on its own connection, and more often while there are signs of a change; so a
//! master that does not answer delays nothing. If none answers, all servers are tried that were ever named.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::future::{OptionFuture, join, join_all};
use futures::stream::FuturesUnordered;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::address::Address;
use super::connect::SERVERS;
use super::link::Role;
use super::options::Seeds;
use super::replicas::Confirmations;
use super::slots::{Slot, Table};
use super::topology::{Topology, jittered};
use super::{Command, ConnectError, Link, OpError, Options, Shared};
use crate::pacing::backoff;
use crate::telemetry::events;

/// How long a server may take to say who serves the slots.
const PATIENCE: Duration = Duration::from_secs(1);
/// A server that is silent for this long may have been replaced.
const SILENT: Duration = Duration::from_millis(300);
/// For how long a silent server is a sign of a change.
const IN_DOUBT_OF_SILENCE: Duration = Duration::from_secs(60);
/// How often a master is asked.
const EVERY: Duration = Duration::from_secs(1);
/// How often it is asked while there may be another one.
const IN_DOUBT: Duration = Duration::from_millis(100);
/// An answer overrules one with older epochs for this long.
const FRESH: Duration = Duration::from_secs(5);
/// After this time without an answer, other servers than the masters are tried.
const UNANSWERED: Duration = Duration::from_secs(1);
/// How long after one seed the next one is tried.
const NEXT_SEED: Duration = Duration::from_millis(250);
/// The most servers that are remembered when they are no longer named, about.
const KNOWN: usize = 1_000;
/// The most seeds or known servers that are tried at a time.
const TRIES: usize = 16;

/// Tells the servers of a cluster apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ServerId(u32);

/// A server that serves slots, and the connection to it for commands.
#[derive(Debug)]
pub(super) struct Master {
    pub(super) id: ServerId,
    pub(super) link: Arc<Link>,
    /// If replicas are to confirm writes.
    pub(super) confirmations: Option<Arc<Confirmations>>,
    address: Address,
    _asking: AbortOnDropHandle<()>,
}

impl Master {
    /// Another server has replaced it.
    fn abandon(&self) {
        self.link.abandon();
        self.confirmations.iter().for_each(|confirmations| confirmations.link().abandon());
    }

    async fn close(&self) {
        let confirmations = OptionFuture::from(self.confirmations.as_ref().map(|other| other.link().close()));
        join(self.link.close(), confirmations).await;
    }
}

/// The masters by their slots. Ends with the handle.
pub(super) struct Cluster {
    seeds: Arc<Seeds>,
    masters: watch::Receiver<Masters>,
    /// Until the client is closed.
    following: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Clone, Debug, Default)]
struct Masters {
    all: Vec<Arc<Master>>,
    /// The last slot of each range, the first one, and the master.
    ranges: Vec<(u16, u16, Arc<Master>)>,
}

impl Masters {
    fn of(&self, slot: Slot) -> Option<&Arc<Master>> {
        let at = self.ranges.partition_point(|(last, ..)| *last < slot.number());
        self.ranges.get(at).filter(|(_, first, _)| *first <= slot.number()).map(|(.., master)| master)
    }

    /// The master of a slot; or any, but one that is connected if there is one.
    fn choose(&self, slot: Option<Slot>) -> Option<&Arc<Master>> {
        match slot {
            Some(slot) => self.of(slot),
            None => self.all.iter().find(|master| master.link.session().is_some()).or(self.all.first()),
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("topology", &self.seeds.topology).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Connects. Keeps trying while no server answers, until the deadline.
    pub(super) async fn connect(
        options: &Options,
        seeds: &Arc<Seeds>,
        shared: &Shared,
        deadline: Instant,
    ) -> Result<Self, ConnectError> {
        let table = first_answer(options, seeds, shared, deadline).await?;
        let answers = Answers { topology: seeds.topology.clone(), last: Mutex::new(Instant::now()) };
        answers.topology.update(|present| present.replace(table).is_none());
        let (sender, masters) = watch::channel(Masters::default());
        let mut following = Following {
            options: options.clone(),
            shared: shared.clone(),
            seeds: seeds.clone(),
            answers: Arc::new(answers),
            masters: sender,
            known: BTreeSet::new(),
            ids: 0,
        };
        let mut tables = seeds.topology.tables();
        following.apply(tables.borrow_and_update().clone());
        let following = tokio::spawn(async move {
            loop {
                tokio::select! {
                    changed = tables.changed() => match changed {
                        Ok(()) => {
                            let table = tables.borrow_and_update().clone();
                            following.apply(table);
                        }
                        Err(_) => return,
                    },
                    () = following.search() => {}
                }
            }
        });
        let following = Mutex::new(Some(AbortOnDropHandle::new(following)));
        Ok(Self { seeds: seeds.clone(), masters, following })
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.seeds.topology
    }

    /// The master of a slot, or any.
    pub(super) fn master(&self, slot: Option<Slot>) -> Option<Arc<Master>> {
        self.masters.borrow().choose(slot).cloned()
    }

    /// The connection for commands to the server at this address.
    pub(super) fn at(&self, address: &Address) -> Option<Arc<Link>> {
        let masters = self.masters.borrow();
        masters.all.iter().find(|master| master.address == *address).map(|master| master.link.clone())
    }

    /// The master of a slot, or any, as soon as it is connected.
    pub(super) async fn serving(&self, slot: Option<Slot>, within: Duration) -> Result<Arc<Master>, OpError> {
        let master = self.master(slot);
        if let Some(master) = master.as_ref().filter(|master| master.link.session().is_some()) {
            return Ok(master.clone());
        }
        let mut masters = self.masters.clone();
        let serving = async {
            loop {
                let master = masters.borrow_and_update().choose(slot).cloned();
                tokio::select! {
                    // Nobody publishes masters after the end of the runtime.
                    changed = masters.changed() => changed.map_err(|_| OpError::Closed)?,
                    connected = connected(master.as_ref()) => match (connected, master) {
                        (Ok(()), Some(master)) => return Ok(master),
                        (Err(OpError::Closed), _) => return Err(OpError::Closed),
                        // It was replaced.
                        _ => masters.changed().await.map_err(|_| OpError::Closed)?,
                    },
                }
            }
        };
        match timeout(within, serving).await {
            Ok(serving) => serving,
            Err(_) => Err(match (self.master(slot), slot) {
                (Some(master), _) => master.link.no_connection(),
                (None, Some(slot)) => {
                    let why = format!("no server of the cluster serves slot {}", slot.number());
                    OpError::NotExecuted(why.into())
                }
                (None, None) => OpError::NotExecuted(self.topology().unknown()),
            }),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.masters.borrow().all.len()
    }

    pub(super) fn addresses(&self) -> Vec<String> {
        addresses(&self.masters.borrow().all)
    }

    /// Whether all masters are connected.
    pub(super) fn is_connected(&self) -> bool {
        let masters = self.masters.borrow();
        !masters.all.is_empty() && masters.all.iter().all(|master| master.link.session().is_some())
    }

    /// Closes the connections for commands.
    pub(super) async fn close(&self) {
        // It would look for servers that answer, and connect to new masters.
        let following = self.following.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(following) = following {
            following.abort();
            let _ = following.await;
        }
        let masters = self.masters.borrow().all.clone();
        join_all(masters.iter().map(|master| master.close())).await;
    }
}

/// Keeps a connection for commands to each master.
struct Following {
    options: Options,
    shared: Shared,
    seeds: Arc<Seeds>,
    answers: Arc<Answers>,
    masters: watch::Sender<Masters>,
    /// All servers that were ever named, up to a number.
    known: BTreeSet<Address>,
    /// The last id.
    ids: u32,
}

impl Following {
    /// Connects to new masters, and leaves those that are none any more.
    fn apply(&mut self, table: Option<Table>) {
        let Some(table) = table else { return };
        if self.known.len() < KNOWN {
            self.known.extend(table.servers().iter().cloned());
        }
        let old = self.masters.borrow().all.clone();
        let mut all = Vec::new();
        for address in table.masters() {
            let known = old.iter().find(|master| master.address == *address).cloned();
            all.extend(known.or_else(|| self.master(address)));
        }
        let ranges = table.ranges().filter_map(|(first, last, address)| {
            let master = all.iter().find(|master: &&Arc<Master>| master.address == *address)?;
            Some((last, first, master.clone()))
        });
        let ranges = ranges.collect();
        let gone = old.into_iter().filter(|master| !all.iter().any(|other| other.id == master.id));
        let gone: Vec<_> = gone.collect();
        if !gone.is_empty() {
            self.shared.counters.failed_over(gone.len());
            events::masters_changed(&addresses(&gone).join(", "), &addresses(&all).join(", "));
        }
        // Before the old connections end: what ends with them is sent again to the new ones.
        self.masters.send_replace(Masters { all, ranges });
        gone.iter().for_each(|master| master.abandon());
    }

    fn master(&mut self, address: &Address) -> Option<Arc<Master>> {
        let shared = self.shared.for_another_server();
        // Fails only if the library refuses the options, with which the first connection was made.
        let options = self.options.at(address);
        let link = Arc::new(Link::begin(&options, Role::Commands, &shared).ok()?);
        let confirmations = options.replicas.map(|replicas| {
            let link = Link::begin(&options, Role::Commands, &shared).ok()?;
            Some(Confirmations::new(link, replicas, options.command_timeout, Handle::current()))
        });
        self.ids += 1;
        let asking = ask_again_and_again(Arc::downgrade(&link), address.clone(), self.answers.clone());
        let asking = AbortOnDropHandle::new(tokio::spawn(asking));
        let (id, confirmations) = (ServerId(self.ids), confirmations.flatten());
        Some(Arc::new(Master { id, link, confirmations, address: address.clone(), _asking: asking }))
    }

    /// Asks other servers than the masters while no master answers. Cancel safe.
    async fn search(&self) {
        let mut failures = 0;
        loop {
            while self.answers.age() < UNANSWERED {
                sleep(UNANSWERED / 4).await;
            }
            let mut servers: Vec<_> = self.known.iter().chain(&self.seeds.addresses).cloned().collect();
            servers.sort_unstable();
            servers.dedup();
            fastrand::shuffle(&mut servers);
            let asking = futures::stream::iter(servers).map(|server| async move {
                let table = ask_once(&self.options, &server, &self.shared).await;
                (server, table)
            });
            let mut asking = std::pin::pin!(asking.buffer_unordered(TRIES));
            while let Some((server, table)) = asking.next().await {
                match table {
                    Ok(table) => self.answers.add(table),
                    Err(error) => self.answers.topology.failed(format!("{server}: {error}")),
                }
                if self.answers.age() < UNANSWERED {
                    return;
                }
            }
            sleep(backoff(failures)).await;
            failures += 1;
        }
    }
}

/// What the servers say of the slots, and when the last one did.
struct Answers {
    topology: Topology,
    last: Mutex<Instant>,
}

impl Answers {
    fn age(&self) -> Duration {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// A server says what is known.
    fn confirm(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// A server that was cut off has older epochs. It is overruled as long as another one has just answered.
    fn add(&self, answer: Table) {
        if answer.is_empty() {
            // It does not belong to the cluster any more.
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = last.elapsed() < FRESH;
        self.topology.update(|present| {
            match present {
                Some(present) if is_fresh && answer.is_older_than(present) => return false,
                Some(present) if *present == answer => {
                    *last = Instant::now();
                    return false;
                }
                _ => {}
            }
            *last = Instant::now();
            *present = Some(answer);
            true
        });
    }
}

/// Until the connection is closed.
async fn ask_again_and_again(link: Weak<Link>, address: Address, answers: Arc<Answers>) {
    let topology = answers.topology.clone();
    let mut silent_since = None;
    loop {
        let Some(link) = link.upgrade().filter(|link| !link.is_abandoned()) else { return };
        let doubted = topology.doubted();
        {
            let mut asking = std::pin::pin!(ask(&link, &address, &topology));
            let answer = match timeout(SILENT, &mut asking).await {
                Ok(answer) => answer,
                Err(_) => {
                    // For a server that nobody replaces, the others are not asked so often for ever.
                    if silent_since.get_or_insert_with(Instant::now).elapsed() < IN_DOUBT_OF_SILENCE {
                        topology.doubt();
                    }
                    asking.await
                }
            };
            if answer.is_ok() {
                silent_since = None;
            }
            match answer {
                Ok(Some(table)) => answers.add(table),
                Ok(None) => answers.confirm(),
                Err(OpError::Closed) => return,
                Err(error) => topology.failed(format!("{address}: {error}")),
            }
        }
        drop(link);
        let in_doubt = topology.is_in_doubt();
        tokio::select! {
            () = doubted, if !in_doubt => {}
            () = sleep(jittered(if in_doubt { IN_DOUBT } else { EVERY })) => {}
        }
    }
}

/// Asks a server for the slots. `None` if it says what is known.
async fn ask(link: &Link, address: &Address, topology: &Topology) -> Result<Option<Table>, OpError> {
    let about = |what: &'static str| link.call(Command::new("CLUSTER").arg(what), PATIENCE);
    let slots = about("SLOTS").await?;
    let table = Table::of_replies(slots.clone(), None, address)?;
    if topology.tables().borrow().as_ref().is_some_and(|present| present.agrees_with(&table)) {
        return Ok(None);
    }
    // For the epochs. A user may lack the permission: then all answers count alike.
    let nodes = about("NODES").await.ok().and_then(|nodes| nodes.into_bytes().ok());
    let nodes = nodes.as_ref().map(|nodes| String::from_utf8_lossy(nodes));
    Table::of_replies(slots, nodes.as_deref(), address).map(Some)
}

/// The same, on a connection of its own.
async fn ask_once(options: &Options, server: &Address, shared: &Shared) -> Result<Table, ConnectError> {
    let options = options.at(server);
    let shared = shared.for_another_server();
    let link = Link::open_once(&options, Role::Commands, &shared, None).await?;
    // Nothing is known that it could confirm.
    let nothing = Topology::new(String::new(), "");
    let answer = ask(&link, server, &nothing).await.map(Option::unwrap_or_default);
    link.close().await;
    match answer {
        Ok(table) if table.is_empty() => {
            let why = format!("{server} knows no server that serves slots");
            Err(ConnectError::Failed(why.into(), "is it a part of the cluster?"))
        }
        Ok(table) => Ok(table),
        Err(OpError::Server(why)) if why.contains("cluster support disabled") => Err(ConnectError::Url(
            format!("{server} is no server of a cluster ({why}); write redis://{server}"),
        )),
        Err(OpError::Server(why)) => {
            Err(ConnectError::Refused(format!("{server} refuses CLUSTER SLOTS: {why}")))
        }
        Err(error) => Err(ConnectError::Failed(error.into_cause(), SERVERS)),
    }
}

/// The answer of the seed that answers first.
async fn first_answer(
    options: &Options,
    seeds: &Seeds,
    shared: &Shared,
    deadline: Instant,
) -> Result<Table, ConnectError> {
    let mut failures = 0;
    loop {
        let mut asking: FuturesUnordered<_> = (0_u32..)
            .zip(&seeds.addresses)
            .map(|(number, seed)| async move {
                sleep(NEXT_SEED * number.min(TRIES as u32)).await;
                ask_once(options, seed, shared).await
            })
            .collect();
        let mut error = None;
        while let Some(answer) = asking.next().await {
            match answer {
                Ok(table) => return Ok(table),
                // What waiting does not change is worth more than that one of them is down.
                Err(why) if error.is_none() || !why.may_pass(options) => error = Some(why),
                Err(_) => {}
            }
        }
        let error = error.unwrap_or_else(|| ConnectError::Url("it names no server".into()));
        let pause = backoff(failures);
        if !error.may_pass(options) || Instant::now() + pause >= deadline {
            return Err(error);
        }
        if failures == 0 {
            events::connecting_failing(&options.server(), &error.to_string());
        }
        failures += 1;
        sleep(pause).await;
    }
}

/// Waits until there is a connection.
async fn connected(master: Option<&Arc<Master>>) -> Result<(), OpError> {
    match master {
        Some(master) => master.link.connected().await.map(drop),
        None => std::future::pending().await,
    }
}

fn addresses(masters: &[Arc<Master>]) -> Vec<String> {
    masters.iter().map(|master| master.address.to_string()).collect()
}
