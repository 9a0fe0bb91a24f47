//! Sentinels: servers that name the master of a group of servers. Each connection of the client is led to the master that they
//! name, and to the next one when they name another.
//!
//! The client library's own sentinel mode is not used. It asks when it connects and never again, so it stays with an old master
//! that still accepts writes, which are lost.
//!
//! Each sentinel is followed on a connection of its own, so one that does not answer delays nothing. It announces a new master
//! on the channel `+switch-master`, and is asked once a second, in case the announcement is lost. The answer with the highest
//! configuration epoch counts: a sentinel that was cut off names an old master.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fred::interfaces::{EventInterface, PubsubInterface};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::address::Address;
use super::pushed::{Push, Pushed};
use super::role::Role;
use super::slots::Table;
use super::topology::{EVERY, FRESH, PATIENCE, Topology};
use super::{Command, Link, OpError, Options, Reply, Shared};
use crate::pacing::jittered;
use crate::telemetry::events;

/// How long a connection to a sentinel may take.
pub(super) const CONNECT: Duration = Duration::from_secs(3);
/// How many questions after which a sentinel is asked for the others.
const OTHERS: u32 = 30;
/// A sentinel that is not in the URL is forgotten if it has not answered for this long. Another one may name it again.
const FORGET: Duration = Duration::from_secs(60);
/// The most sentinels that are followed.
const MOST: usize = 32;

/// What a sentinel answers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    /// Counts the failovers.
    epoch: u64,
    master: Address,
}

/// The master that the sentinels name.
#[derive(Clone, Debug)]
pub(super) struct Master {
    name: Arc<str>,
    topology: Topology,
    answers: Arc<Mutex<Answers>>,
}

/// The last answers of the sentinels, and the one that counts.
#[derive(Debug, Default)]
struct Answers {
    of: HashMap<Address, (Answer, Instant)>,
    latest: Option<Answer>,
}

impl Master {
    pub(super) fn new(name: String) -> Self {
        let topology =
            Topology::new(format!("no sentinel names the master `{name}`"), "no sentinel has answered");
        Self { name: name.into(), topology, answers: Arc::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns whether it names another master than before.
    fn answered(&self, sentinel: &Address, answer: Answer) -> bool {
        let now = Instant::now();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let Answers { of, latest: present } = &mut *answers;
        of.insert(sentinel.clone(), (answer, now));
        of.retain(|_, (_, at)| now - *at < FRESH);
        let answers: Vec<&Answer> = of.values().map(|(answer, _)| answer).collect();
        let Some(latest) = latest(&answers, present.as_ref()) else { return false };
        let old = present.replace(latest.clone());
        if old.as_ref().is_some_and(|old| old.master == latest.master) {
            return false;
        }
        self.topology.update(|table| {
            *table = Some(Table::of_one(latest.master.clone()));
            true
        });
        if let Some(old) = &old {
            events::master_changed(&self.name, &old.master, &latest.master);
        }
        old.is_some()
    }
}

/// The answer with the highest epoch. If several have it, and differ, the present one stays.
fn latest<'a>(answers: &[&'a Answer], present: Option<&Answer>) -> Option<&'a Answer> {
    let epoch = answers.iter().map(|answer| answer.epoch).max()?;
    let mut latest = answers.iter().filter(|answer| answer.epoch == epoch);
    latest.clone().find(|answer| Some(**answer) == present).or_else(|| latest.next()).copied()
}

/// Follows all sentinels, those that are given and those that they know. Ends with the handle.
pub(super) fn follow(
    sentinels: Vec<Address>,
    options: Options,
    master: Master,
    shared: Shared,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let (others, mut learned) = mpsc::unbounded_channel();
        let mut followed = HashSet::new();
        let mut following = FuturesUnordered::new();
        sentinels.iter().for_each(|sentinel| drop(others.send(sentinel.clone())));
        loop {
            tokio::select! {
                // The sender is in this task.
                Some(sentinel) = learned.recv() => {
                    if followed.len() < MOST && followed.insert(sentinel.clone()) {
                        let sentinel = Sentinel {
                            is_given: sentinels.contains(&sentinel),
                            options: options.at(&sentinel),
                            address: sentinel,
                            master: master.clone(),
                            others: others.clone(),
                            shared: shared.clone(),
                        };
                        following.push(AbortOnDropHandle::new(tokio::spawn(sentinel.follow())));
                    }
                }
                Some(forgotten) = following.next() => drop(forgotten.map(|sentinel| followed.remove(&sentinel))),
            }
        }
    }))
}

/// A sentinel that is followed.
struct Sentinel {
    address: Address,
    /// Whether the URL names it.
    is_given: bool,
    options: Options,
    master: Master,
    /// Where to tell of others.
    others: mpsc::UnboundedSender<Address>,
    shared: Shared,
}

impl Sentinel {
    /// Returns when the sentinel is to be forgotten.
    async fn follow(self) -> Address {
        let mut answered = Instant::now();
        while self.is_given || answered.elapsed() < FORGET {
            match Link::open_once(&self.options, Role::Sentinel, &self.shared, None).await {
                Ok(link) => self.ask_on(&link, &mut answered).await,
                Err(error) => self.master.topology.failed(format!("{}: {error}", self.address)),
            }
            sleep(jittered(EVERY)).await;
        }
        self.address
    }

    /// Asks again and again, until the link has ended, or the sentinel has not answered for long.
    async fn ask_on(&self, link: &Arc<Link>, answered: &mut Instant) {
        let mut messages = Pushed::of(link, |client| client.message_rx());
        let mut is_new = true;
        for question in 0_u32.. {
            let doubted = self.master.topology.doubted();
            if is_new && messages.session().is_some() {
                is_new = false;
                // If it fails, the questions go on.
                let _ = timeout(PATIENCE, link.client().subscribe("+switch-master")).await;
            }
            match self.ask(link).await {
                Ok(answer) => {
                    *answered = Instant::now();
                    if self.master.answered(&self.address, answer) {
                        self.shared.counters.failed_over(1);
                    }
                }
                Err(error) => self.master.topology.failed(format!("{}: {error}", self.address)),
            }
            if answered.elapsed() >= FORGET {
                return;
            }
            if question % OTHERS == 0 {
                // Without an answer, there are those that are known.
                let _ = self.learn_others(link).await;
            }
            tokio::select! {
                message = messages.next() => match message {
                    Some(Push::Message(_) | Push::Missed) => {}
                    Some(Push::Session) => is_new = true,
                    None => return,
                },
                () = self.master.topology.next_question(doubted) => {}
            }
        }
    }

    async fn ask(&self, link: &Link) -> Result<Answer, OpError> {
        let about = |what: &'static str| Command::new("SENTINEL").arg(what).arg(self.master.name.to_string());
        let fields = Fields::of(link.call(&about("MASTER"), PATIENCE).await?)?;
        // The sentinel that leads a failover counts it in the epoch when the new master is promoted, and gives the new address
        // here. In the fields, it still has the old one for a second, until it announces the new one.
        let address = link.call(&about("GET-MASTER-ADDR-BY-NAME"), PATIENCE).await?.into_strings()?;
        match (Address::of(&address), fields.number("config-epoch")) {
            (Some(master), Some(epoch)) => Ok(Answer { epoch, master }),
            _ => Err(OpError::Server("the answer has no address".into())),
        }
    }

    async fn learn_others(&self, link: &Link) -> Result<(), OpError> {
        let question = Command::new("SENTINEL").arg("SENTINELS").arg(self.master.name.to_string());
        for reply in link.call(&question, PATIENCE).await?.into_array()? {
            if let Some(other) = Fields::of(reply)?.address() {
                let _ = self.others.send(other);
            }
        }
        Ok(())
    }
}

/// What a sentinel says of a server: names and texts.
struct Fields(Vec<String>);

impl Fields {
    fn of(reply: Reply) -> Result<Self, OpError> {
        let texts = reply.into_strings()?;
        Ok(Self(texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.chunks_exact(2).find(|field| field[0] == name).map(|field| field[1].as_str())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn address(&self) -> Option<Address> {
        Address::of(&[self.text("ip")?, self.text("port")?])
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::super::slot::Slot;
    use super::*;

    fn answer(epoch: u64, port: u16) -> Answer {
        Answer { epoch, master: Address::new("h", port) }
    }

    #[test]
    fn the_answer_with_the_highest_epoch_counts() {
        let (old, new, other) = (answer(3, 1), answer(4, 2), answer(4, 3));
        assert_eq!(latest(&[], Some(&old)), None);
        assert_eq!(latest(&[&old, &new], Some(&old)), Some(&new));
        assert_eq!(latest(&[&new, &old], Some(&new)), Some(&new));
        assert_eq!(latest(&[&new, &other], Some(&other)), Some(&other));
        assert_eq!(latest(&[&other, &new], Some(&new)), Some(&new));
        // The sentinels were set up from scratch.
        assert_eq!(latest(&[&old], Some(&new)), Some(&old));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sentinel_that_names_an_old_master_is_overruled_while_the_others_answer() {
        let master = Master::new("main".into());
        let sentinel = |port| Address::new("s", port);
        master.answered(&sentinel(1), answer(4, 2));
        master.answered(&sentinel(2), answer(3, 1));
        let named = || master.topology.server_of(Slot::ANY).map(|address| address.port);
        assert_eq!(named(), Some(2));
        let mut lead = master.topology.lead(Slot::ANY);
        assert_eq!(lead.next().await.unwrap().port, 2);
        assert!(lead.is_outdated().now_or_never().is_none());
        master.answered(&sentinel(3), answer(5, 7));
        assert!(lead.is_outdated().now_or_never().is_some());
        tokio::time::advance(FRESH).await;
        master.answered(&sentinel(2), answer(3, 1));
        assert_eq!(named(), Some(1));
    }

    /// An answer may come at any moment.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn answers_and_connections_do_not_wait_for_each_other() {
        let master = Master::new("main".into());
        let answering = tokio::task::spawn_blocking({
            let master = master.clone();
            move || {
                let sentinel = Address::new("s", 1);
                (1..100_000).for_each(|epoch| {
                    master.answered(&sentinel, answer(epoch, epoch as u16 | 1));
                });
            }
        });
        let leading = async {
            let mut lead = master.topology.lead(Slot::ANY);
            while !answering.is_finished() {
                assert!(lead.next().await.unwrap().port > 0);
            }
        };
        timeout(Duration::from_secs(60), leading).await.expect("no deadlock");
    }
}
