//! Where the queues are: one server, or the masters of a cluster.

use redelay_fixture::redis::Connection;
use redelay_fixture::{Cluster, Server};

use crate::job::payload;
use crate::server::{Counters, clear, fill};

/// The queue of all measurements. Of its 16 partitions, three masters have 4, 6 and 6.
pub(super) const QUEUE: &str = "shared";

/// The servers, which no other measurement uses. They run with the same configuration.
enum Servers {
    One(Server),
    Cluster(Cluster),
}

pub(super) struct Place {
    pub(super) name: &'static str,
    servers: Servers,
    /// One to each master, in the order of the slots.
    masters: Vec<Connection>,
}

impl Place {
    pub(super) fn one_server() -> Self {
        Self::of("one server", Servers::One(Server::start()))
    }

    pub(super) fn cluster(name: &'static str, masters: usize) -> Self {
        Self::of(name, Servers::Cluster(Cluster::without_replicas(masters)))
    }

    fn of(name: &'static str, servers: Servers) -> Self {
        let masters: Vec<_> = match &servers {
            Servers::One(server) => vec![server.redis()],
            Servers::Cluster(cluster) => cluster.servers().iter().map(Server::redis).collect(),
        };
        for master in &masters {
            master.set_read_timeout(None).expect("a socket");
        }
        Self { name, servers, masters }
    }

    pub(super) fn url(&self) -> String {
        match &self.servers {
            Servers::One(server) => server.url(),
            Servers::Cluster(cluster) => cluster.url(),
        }
    }

    pub(super) fn masters(&self) -> usize {
        self.masters.len()
    }

    pub(super) fn clear(&mut self) {
        self.masters.iter_mut().for_each(clear);
    }

    /// Those of each master.
    pub(super) fn counters(&mut self) -> Vec<Counters> {
        self.masters.iter_mut().map(Counters::read).collect()
    }

    /// What all masters together have done since then.
    pub(super) fn since(&mut self, before: &[Counters]) -> Counters {
        let each = self.counters().into_iter().zip(before).map(|(now, before)| now.since(*before));
        each.fold(Counters::default(), Counters::and)
    }

    /// Puts messages that are ready into the partitions, the same number into each.
    pub(super) fn fill(&mut self, partitions: usize, count: u64) {
        let payload = payload(0, 100);
        for partition in 0..partitions {
            let queue = format!("{QUEUE}#{partition}");
            let master = self.master_of(&queue);
            fill(&mut self.masters[master], &queue, count / partitions as u64, &payload);
        }
    }

    /// How many of this number of partitions each master has.
    pub(super) fn partitions_of_masters(&self, partitions: usize) -> Vec<usize> {
        let mut numbers = vec![0; self.masters.len()];
        (0..partitions).for_each(|partition| numbers[self.master_of(&format!("{QUEUE}#{partition}"))] += 1);
        numbers
    }

    fn master_of(&self, queue: &str) -> usize {
        match &self.servers {
            Servers::One(_) => 0,
            Servers::Cluster(cluster) => {
                let port = cluster.master_of(cluster.slot_of(queue)).port();
                let is_it = |server: &Server| server.port() == port;
                cluster.servers().iter().position(is_it).expect("a server of the cluster")
            }
        }
    }
}
