//! The servers of a cluster: who serves which slot, and one connection for commands to each master.
//!
//! The client library's own cluster mode is not used. One of its replies `ASK` ends its client, and one dead
//! master stops the commands to all others.
//!
//! Each master is asked for the slots once a second on its own connection, and more often while there are
//! signs of a change; so a master that does not answer delays nothing. If none answers, all servers are tried
//! that were ever named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::address::Address;
use super::commands::Commands;
use super::open::{SERVERS, may_pass};
use super::purpose::Purpose;
use super::shared::Shared;
use super::slot::Slot;
use super::slots::Table;
use super::topology::{FRESH, PATIENCE, Topology};
use super::{Command, ConnectError, Link, OpError, Options};
use crate::pacing::pause_after;
use crate::telemetry::events;

/// A server that is silent for this long may have been replaced.
const SILENT: Duration = Duration::from_millis(300);
/// For how long a silent server is a sign of a change.
const IN_DOUBT_OF_SILENCE: Duration = Duration::from_secs(60);
/// After this time without an answer, other servers than the masters are tried.
const UNANSWERED: Duration = Duration::from_secs(1);
/// How long after one seed the next one is tried.
const NEXT_SEED: Duration = Duration::from_millis(250);
/// With this number of remembered servers, those that are no longer named are forgotten.
const KNOWN: usize = 1_000;
/// The most seeds or known servers that are tried at a time.
const TRIES: usize = 16;

/// Tells the servers of a cluster apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ServerId(u32);

/// A server that serves slots, and the connection to it for commands.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) id: ServerId,
    pub(super) commands: Commands,
    _asking: AbortOnDropHandle<()>,
}

/// The masters by their slots. Ends with the handle.
pub(super) struct Cluster {
    topology: Topology,
    masters: watch::Receiver<Masters>,
    /// Until the client is closed.
    following: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Clone, Debug, Default)]
struct Masters {
    table: Table,
    all: BTreeMap<Address, Arc<Shard>>,
}

impl Masters {
    /// The master of a slot; or any, but one that is connected if there is one.
    fn choose(&self, slot: Option<Slot>) -> Option<&Arc<Shard>> {
        match slot {
            Some(slot) => self.all.get(self.table.server_of(slot)?),
            None => {
                let mut masters = self.all.values();
                masters.clone().find(|master| master.commands.is_connected()).or_else(|| masters.next())
            }
        }
    }

    /// Those that may serve a slot.
    fn candidates(&self, slot: Option<Slot>) -> Vec<Arc<Shard>> {
        match slot {
            Some(_) => self.choose(slot).cloned().into_iter().collect(),
            None => self.all.values().cloned().collect(),
        }
    }

    fn addresses(&self) -> Vec<String> {
        self.all.keys().map(ToString::to_string).collect()
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("topology", &self.topology).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Connects. Keeps trying while no server answers, until the deadline.
    pub(super) async fn connect(
        options: &Options,
        seeds: &Arc<[Address]>,
        topology: Topology,
        shared: &Shared,
        deadline: Instant,
    ) -> Result<Self, ConnectError> {
        let table = first_answer(options, seeds, shared, deadline).await?;
        let answers = Answers {
            seeds: seeds.clone(),
            topology: topology.clone(),
            last: Mutex::new(Instant::now()),
            named: Mutex::default(),
        };
        topology.update(|present| present.replace(table).is_none());
        let (sender, masters) = watch::channel(Masters::default());
        let mut following = Following {
            options: options.clone(),
            shared: shared.clone(),
            answers: Arc::new(answers),
            masters: sender,
            ids: 0,
        };
        let mut tables = topology.tables();
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
        Ok(Self { topology, masters, following })
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The master of a slot, or any.
    pub(super) fn master(&self, slot: Option<Slot>) -> Option<Arc<Shard>> {
        self.masters.borrow().choose(slot).cloned()
    }

    /// The connection for commands to the server at this address.
    pub(super) fn at(&self, address: &Address) -> Option<Arc<Link>> {
        Some(self.masters.borrow().all.get(address)?.commands.link.clone())
    }

    /// The master of a slot, or any, as soon as it is connected.
    pub(super) async fn serving(&self, slot: Option<Slot>, within: Duration) -> Result<Arc<Shard>, OpError> {
        if let Some(master) = self.master(slot).filter(|master| master.commands.is_connected()) {
            return Ok(master);
        }
        let mut masters = self.masters.clone();
        let serving = async {
            loop {
                let candidates = masters.borrow_and_update().candidates(slot);
                tokio::select! {
                    // No masters are published after the end of the runtime.
                    changed = masters.changed() => changed.map_err(|_| OpError::Closed)?,
                    served = first_connected(candidates) => return served,
                }
            }
        };
        match timeout(within, serving).await {
            Ok(serving) => serving,
            Err(_) => Err(match (self.master(slot), slot) {
                (Some(master), _) => master.commands.link.no_connection(),
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
        self.masters.borrow().addresses()
    }

    /// One slot of each master.
    pub(super) fn slots_of_masters(&self) -> Vec<Slot> {
        self.masters.borrow().table.slots_of_masters()
    }

    /// Whether all masters are connected.
    pub(super) fn is_connected(&self) -> bool {
        let masters = self.masters.borrow();
        !masters.all.is_empty() && masters.all.values().all(|master| master.commands.is_connected())
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
        join_all(masters.values().map(|master| master.commands.close())).await;
    }
}

/// Keeps a connection for commands to each master.
struct Following {
    options: Options,
    shared: Shared,
    answers: Arc<Answers>,
    masters: watch::Sender<Masters>,
    /// The last id.
    ids: u32,
}

impl Following {
    /// Connects to new masters, and leaves those that are none any more.
    fn apply(&mut self, table: Option<Table>) {
        let Some(table) = table else { return };
        self.answers.remember(&table);
        let mut old = self.masters.borrow().all.clone();
        let mut all = BTreeMap::new();
        for address in table.masters() {
            let master = old.remove(address).or_else(|| self.master(address));
            all.extend(master.map(|master| (address.clone(), master)));
        }
        let masters = Masters { table, all };
        if !old.is_empty() {
            self.shared.counters.failed_over(old.len());
            let gone: Vec<_> = old.keys().map(ToString::to_string).collect();
            events::masters_changed(&gone.join(", "), &masters.addresses().join(", "));
        }
        // Before the old connections end: what ends with them is sent again to the new ones.
        self.masters.send_replace(masters);
        for (address, master) in old {
            master.commands.abandon();
            self.shared.counters.left(&address.to_string());
        }
    }

    fn master(&mut self, address: &Address) -> Option<Arc<Shard>> {
        let shared = self.shared.for_another_server();
        let options = self.options.at(address);
        // Fails only if the library refuses the options, with which the first connection was made.
        let commands = Commands::begin(&options, &shared).ok()?;
        self.ids += 1;
        let link = Arc::downgrade(&commands.link);
        let asking = ask_again_and_again(link, address.clone(), self.answers.clone());
        let asking = AbortOnDropHandle::new(tokio::spawn(asking));
        Some(Arc::new(Shard { id: ServerId(self.ids), commands, _asking: asking }))
    }

    /// Asks other servers than the masters while no master answers. Cancel safe.
    async fn search(&self) {
        let mut failures = 0;
        loop {
            while self.answers.age() < UNANSWERED {
                sleep(UNANSWERED / 4).await;
            }
            let mut servers = self.answers.known();
            fastrand::shuffle(&mut servers);
            let asking = futures::stream::iter(servers).map(|server| async move {
                let table = ask_once(&self.options, &server, &self.shared).await;
                (server, table)
            });
            let mut asking = pin!(asking.buffer_unordered(TRIES));
            while let Some((server, table)) = asking.next().await {
                match table {
                    Ok(table) => self.answers.add(table),
                    Err(error) => self.answers.topology.failed(&server, error.into()),
                }
                if self.answers.age() < UNANSWERED {
                    return;
                }
            }
            sleep(pause_after(failures)).await;
            failures += 1;
        }
    }
}

/// What the servers say of the slots, and when the last one did.
struct Answers {
    seeds: Arc<[Address]>,
    topology: Topology,
    last: Mutex<Instant>,
    /// The servers that were named since the start, or since there were too many.
    named: Mutex<BTreeSet<Address>>,
}

impl Answers {
    fn age(&self) -> Duration {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// All servers that may belong to the cluster, in any order.
    fn known(&self) -> Vec<Address> {
        let mut known = self.named.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.extend(self.seeds.iter().cloned());
        known.into_iter().collect()
    }

    /// Notes who is named. A replica that joins does not change the table, so no new masters are searched
    /// for.
    fn remember(&self, table: &Table) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() >= KNOWN {
            named.clear();
        }
        named.extend(table.servers().iter().cloned());
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
            if is_fresh && present.as_ref().is_some_and(|present| answer.is_older_than(present)) {
                return false;
            }
            *last = Instant::now();
            let old = present.replace(answer);
            old != *present
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
            let mut asking = pin!(ask(&link, &address, |table| {
                answers.remember(table);
                topology.agrees_with(table)
            }));
            let answer = match timeout(SILENT, &mut asking).await {
                Ok(answer) => answer,
                Err(_) => {
                    // If no other server replaces it, the others are not asked so often indefinitely.
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
                Err(error) => topology.failed(&address, error.into_cause()),
            }
        }
        drop(link);
        topology.next_question(doubted).await;
    }
}

/// Asks a server for the slots. `None` if it says what is known.
async fn ask(
    link: &Link,
    address: &Address,
    is_known: impl Fn(&Table) -> bool,
) -> Result<Option<Table>, OpError> {
    let about = async |what: &'static str| link.call(&Command::new("CLUSTER").arg(what), PATIENCE).await;
    let slots = about("SLOTS").await?;
    if is_known(&Table::of_replies(slots.clone(), None, address)?) {
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
    let link = Link::open_once(&options, Purpose::Question, &shared, None).await?;
    let answer = ask(&link, server, |_| false).await.map(Option::unwrap_or_default);
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
    seeds: &[Address],
    shared: &Shared,
    deadline: Instant,
) -> Result<Table, ConnectError> {
    let mut failures = 0;
    loop {
        let mut asking: FuturesUnordered<_> = (0_u32..)
            .zip(seeds)
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
                Err(why) if error.is_none() || !may_pass(&why, options) => error = Some(why),
                Err(_) => {}
            }
        }
        let error = error.unwrap_or_else(|| ConnectError::Url("it names no server".into()));
        let pause = pause_after(failures);
        if !may_pass(&error, options) || Instant::now() + pause >= deadline {
            return Err(error);
        }
        if failures == 0 {
            events::connecting_failing(&options.server(), &error.to_string());
        }
        failures += 1;
        sleep(pause).await;
    }
}

/// Waits until one of these masters is connected. While there is none, or all were replaced, that does not
/// happen.
async fn first_connected(masters: Vec<Arc<Shard>>) -> Result<Arc<Shard>, OpError> {
    let mut connecting: FuturesUnordered<_> = masters
        .into_iter()
        .map(|master| async move { (master.commands.link.connected().await, master) })
        .collect();
    while let Some((connected, master)) = connecting.next().await {
        match connected {
            Ok(_) => return Ok(master),
            Err(OpError::Closed) => return Err(OpError::Closed),
            Err(_) => {}
        }
    }
    pending().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::Reply;

    /// The answer of a server that one server has all slots, since this epoch.
    fn answer(port: u16, epoch: u64) -> Table {
        let server = Reply::Array(vec![
            Reply::Bytes("10.0.0.1".into()),
            Reply::Int(port.into()),
            Reply::Bytes("id".into()),
        ]);
        let slots = Reply::Array(vec![Reply::Array(vec![Reply::Int(0), Reply::Int(16_383), server])]);
        let nodes = format!("id 10.0.0.1:{port}@1 master - 0 0 {epoch} connected 0-16383");
        Table::of_replies(slots, Some(&nodes), &Address::new("asked", 1)).unwrap()
    }

    fn answers() -> Answers {
        let topology = Topology::new("nobody knows".into(), "no answer");
        let seeds = [Address::new("seed", 1)].into();
        Answers { seeds, topology, last: Mutex::new(Instant::now()), named: Mutex::default() }
    }

    impl Answers {
        fn port(&self) -> Option<u16> {
            Some(self.topology.server_of(Slot::ANY)?.port)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_older_answer_counts_when_no_newer_one_is_fresh() {
        let answers = answers();
        answers.add(answer(1, 5));
        assert_eq!(answers.port(), Some(1));
        answers.add(answer(2, 6));
        assert_eq!(answers.port(), Some(2));
        // It was cut off, and overrules nobody.
        tokio::time::advance(FRESH / 2).await;
        answers.add(answer(1, 5));
        assert_eq!((answers.port(), answers.age()), (Some(2), FRESH / 2));
        // The other confirms what it has said.
        answers.confirm();
        tokio::time::advance(FRESH / 2).await;
        answers.add(answer(1, 5));
        assert_eq!(answers.port(), Some(2));
        // No other server answers. A newly created cluster starts with low epochs.
        tokio::time::advance(FRESH / 2).await;
        answers.add(answer(1, 5));
        assert_eq!((answers.port(), answers.age()), (Some(1), Duration::ZERO));
        assert_eq!(answers.topology.changes(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_knows_no_slots_says_nothing() {
        let answers = answers();
        answers.add(answer(1, 5));
        tokio::time::advance(FRESH * 2).await;
        answers.add(Table::default());
        assert_eq!((answers.port(), answers.age()), (Some(1), FRESH * 2));
    }

    #[tokio::test(start_paused = true)]
    async fn the_seeds_and_whoever_was_named_may_be_asked() {
        let answers = answers();
        answers.remember(&answer(1, 5));
        answers.remember(&answer(2, 6));
        assert_eq!(answers.known().len(), 3);
        // All of them are forgotten when there are too many.
        (1..=KNOWN as u16).for_each(|port| answers.remember(&answer(port, 7)));
        answers.remember(&answer(9_999, 8));
        let known = answers.known();
        assert!(known.len() < KNOWN && known.iter().any(|server| server.port == 9_999));
    }
}
