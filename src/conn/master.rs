//! The master that the sentinels name.
//!
//! The answer with the highest configuration epoch counts: a sentinel that was cut off names an old master.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::address::Address;
use super::slots::Table;
use super::topology::{FRESH, Topology};
use crate::telemetry::events;

/// What a sentinel answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedMaster {
    /// Counts the failovers.
    pub(super) epoch: u64,
    pub(super) master: Address,
}

/// The master that the sentinels name.
#[derive(Clone, Debug)]
pub(super) struct Master {
    name: Arc<str>,
    topology: Topology,
    answers: Arc<Mutex<NamedMasters>>,
}

/// The last answers of the sentinels, and the one that counts.
#[derive(Debug, Default)]
struct NamedMasters {
    of: HashMap<Address, (NamedMaster, Instant)>,
    latest: Option<NamedMaster>,
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
    pub(super) fn answered(&self, sentinel: &Address, answer: NamedMaster) -> bool {
        let now = Instant::now();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let NamedMasters { of, latest: present } = &mut *answers;
        of.insert(sentinel.clone(), (answer, now));
        of.retain(|_, (_, at)| now - *at < FRESH);
        let answers: Vec<&NamedMaster> = of.values().map(|(answer, _)| answer).collect();
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
fn latest<'a>(answers: &[&'a NamedMaster], present: Option<&NamedMaster>) -> Option<&'a NamedMaster> {
    let epoch = answers.iter().map(|answer| answer.epoch).max()?;
    let mut latest = answers.iter().filter(|answer| answer.epoch == epoch);
    latest.clone().find(|answer| Some(**answer) == present).or_else(|| latest.next()).copied()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::timeout;

    use super::super::slot::Slot;
    use super::*;

    fn answer(epoch: u64, port: u16) -> NamedMaster {
        NamedMaster { epoch, master: Address::new("h", port) }
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
        timeout(std::time::Duration::from_secs(60), leading).await.expect("no deadlock");
    }
}
