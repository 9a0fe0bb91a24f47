//! Sentinels: servers that name the master of a group of servers. Each connection of the client is led to the
//! master that they name, and to the next one when they name another.
//!
//! The client library's own sentinel mode is not used. It asks when it connects and never again, so it stays
//! with an old master that still accepts writes, which are lost.
//!
//! Each sentinel is followed on a connection of its own, so one that does not answer delays nothing. It
//! announces a new master on the channel `+switch-master`, and is asked once a second, in case the
//! announcement is lost. `master` says which answer counts.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::address::Address;
use super::client::FredClient;
use super::master::{Master, NamedMaster};
use super::options::{Lookup, Sentinels};
use super::purpose::Purpose;
use super::pushed::{Push, Pushed};
use super::shared::Shared;
use super::topology::{EVERY, PATIENCE};
use super::{Command, Conn, ConnectError, Link, OpError, Options, Reply};
use crate::pacing::jittered;

/// How many questions after which a sentinel is asked for the others.
const OTHERS: u32 = 30;
/// A sentinel that is not in the URL is forgotten if it has not answered for this long. Another one may name
/// it again.
const FORGET: Duration = Duration::from_secs(60);
/// The most sentinels that are followed.
const MOST: usize = 32;

/// Follows all sentinels, those that are given and those that they know. Ends with the handle.
pub(super) fn follow(group: Arc<Sentinels>, master: Master, shared: &Shared) -> AbortOnDropHandle<()> {
    let shared = shared.without_topology();
    AbortOnDropHandle::new(tokio::spawn(async move {
        let Sentinels { addresses: sentinels, options, .. } = &*group;
        let (others, mut learned) = mpsc::unbounded_channel();
        let mut followed = HashSet::new();
        let mut following = FuturesUnordered::new();
        sentinels.iter().for_each(|sentinel| drop(others.send(sentinel.clone())));
        loop {
            tokio::select! {
                // The sender is in this task.
                Some(sentinel) = learned.recv() => {
                    if followed.len() < MOST && followed.insert(sentinel.clone()) {
                        let sentinel = FollowedSentinel {
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
                Some(forgotten) = following.next() => {
                    let _ = forgotten.map(|sentinel| followed.remove(&sentinel));
                }
            }
        }
    }))
}

/// A sentinel that is followed.
struct FollowedSentinel {
    address: Address,
    /// Whether the URL names it.
    is_given: bool,
    options: Options,
    master: Master,
    /// Where to name others.
    others: mpsc::UnboundedSender<Address>,
    shared: Shared,
}

impl FollowedSentinel {
    /// Returns when the sentinel is to be forgotten.
    async fn follow(self) -> Address {
        let mut answered = Instant::now();
        while self.is_given || answered.elapsed() < FORGET {
            match Link::open_once(&self.options, Purpose::Sentinel, &self.shared, None).await {
                Ok(link) => self.ask_on(&link, &mut answered).await,
                Err(error) => self.master.topology().failed(&self.address, error.into()),
            }
            sleep(jittered(EVERY)).await;
        }
        self.address
    }

    /// Asks again and again, until the link has ended, or the sentinel has not answered for long.
    async fn ask_on(&self, link: &Arc<Link>, answered: &mut Instant) {
        let mut messages = Pushed::of(link, FredClient::messages);
        let mut is_new = true;
        for question in 0_u32.. {
            let doubted = self.master.topology().doubted();
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
                Err(error) => self.master.topology().failed(&self.address, error.into_cause()),
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
                () = self.master.topology().next_question(doubted) => {}
            }
        }
    }

    async fn ask(&self, link: &Link) -> Result<NamedMaster, OpError> {
        let about =
            |what: &'static str| Command::new("SENTINEL").arg(what).arg(self.master.name().to_owned());
        let fields = Fields::of(link.call(&about("MASTER"), PATIENCE).await?)?;
        // The sentinel that leads a failover counts it in the epoch when the new master is promoted, and
        // gives the new address here. In the fields, it still has the old one for a second, until it
        // announces the new one.
        let address = link.call(&about("GET-MASTER-ADDR-BY-NAME"), PATIENCE).await?.into_strings()?;
        match (Address::of(&address), fields.number("config-epoch")) {
            (Some(master), Some(epoch)) => Ok(NamedMaster { epoch, master }),
            _ => Err(OpError::Server("the answer has no address".into())),
        }
    }

    async fn learn_others(&self, link: &Link) -> Result<(), OpError> {
        for other in others(link, self.master.name()).await? {
            let _ = self.others.send(other);
        }
        Ok(())
    }
}

/// The other sentinels that a sentinel knows.
async fn others(link: &Link, master: &str) -> Result<Vec<Address>, OpError> {
    let question = Command::new("SENTINEL").arg("SENTINELS").arg(master.to_owned());
    let replies = link.call(&question, PATIENCE).await?.into_array()?;
    let others = replies.into_iter().map(|reply| Ok(Fields::of(reply)?.address()));
    others.filter_map(Result::transpose).collect()
}

/// What a sentinel says, and why it does not.
#[derive(Debug)]
pub(crate) struct Opinion {
    pub(crate) sentinel: String,
    /// The master that it names; `None` if it knows none of this name.
    pub(crate) master: Result<Option<String>, OpError>,
    /// Whether enough sentinels answer it for a failover.
    pub(crate) quorum: Result<bool, OpError>,
}

impl Conn {
    /// Asks each sentinel, those of the URL and those that they know, on a separate connection. Empty if the
    /// URL names none.
    pub(crate) async fn opinions(&self) -> Vec<Opinion> {
        let Lookup::Sentinels(group) = &self.base.options.lookup else { return Vec::new() };
        let shared = self.base.shared.without_topology();
        let (mut opinions, mut asked) = (Vec::new(), HashSet::new());
        let mut next = group.addresses.clone();
        while !next.is_empty() {
            next.retain(|sentinel| asked.len() < MOST && asked.insert(sentinel.clone()));
            let answers = join_all(next.iter().map(|sentinel| opinion(group, sentinel, &shared))).await;
            next = Vec::new();
            for (opinion, others) in answers {
                opinions.push(opinion);
                next.extend(others);
            }
        }
        opinions
    }
}

/// Asks a sentinel. Returns the others that it knows, too.
async fn opinion(group: &Sentinels, sentinel: &Address, shared: &Shared) -> (Opinion, Vec<Address>) {
    let opinion = |master, quorum| Opinion { sentinel: sentinel.to_string(), master, quorum };
    let link = match Link::open_once(&group.options.at(sentinel), Purpose::Sentinel, shared, None).await {
        Ok(link) => link,
        Err(error) => {
            let error = match error {
                ConnectError::Credentials(why) | ConnectError::Refused(why) => OpError::Server(why),
                error => OpError::NotExecuted(error.into()),
            };
            return (opinion(Err(error.clone()), Err(error)), Vec::new());
        }
    };
    let about = |what: &'static str| Command::new("SENTINEL").arg(what).arg(group.master.clone());
    let master = async {
        let address = link.call(&about("GET-MASTER-ADDR-BY-NAME"), PATIENCE).await?;
        Ok(Address::of(&address.into_strings().unwrap_or_default()).map(|address| address.to_string()))
    };
    let quorum = async {
        match link.call(&about("CKQUORUM"), PATIENCE).await {
            Ok(_) => Ok(true),
            Err(OpError::Server(why)) if why.starts_with("NOQUORUM") => Ok(false),
            Err(error) => Err(error),
        }
    };
    let (master, quorum, others) = futures::join!(master, quorum, others(&link, &group.master));
    (opinion(master, quorum), others.unwrap_or_default())
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
