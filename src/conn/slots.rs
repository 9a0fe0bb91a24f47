//! Which server serves each slot. Pure.
//!
//! One server is described by the same table as a cluster: it serves all slots.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

use super::address::Address;
use super::reply::Shape;
use super::slot::{LAST, Slot};
use super::{OpError, Reply};

/// The most servers of a cluster. Redis suggests no more than this.
const MOST: usize = 1_000;

/// Which server serves each slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// In the order of their slots, without overlaps.
    ranges: Vec<Range>,
    /// All servers, replicas included.
    servers: Vec<Address>,
}

/// Slots in a row that a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
    server: Address,
    /// Of two servers that claim a slot, the one with the higher epoch has it.
    epoch: u64,
}

impl Table {
    /// One server for all slots.
    pub(super) fn of_one(server: Address) -> Self {
        let ranges = vec![Range { first: 0, last: LAST, server: server.clone(), epoch: 0 }];
        Self { ranges, servers: vec![server] }
    }

    /// Reads the replies to `CLUSTER SLOTS` and `CLUSTER NODES` of the server at `asked`. Without the second
    /// one, all epochs are equal.
    pub(super) fn of_replies(slots: Reply, nodes: Option<&str>, asked: &Address) -> Result<Self, OpError> {
        let epochs = nodes.map(epochs).unwrap_or_default();
        let (mut table, mut servers) = (Self::default(), BTreeSet::new());
        for range in slots.into_array()? {
            let mut range = range.into_array()?.into_iter();
            let mut slot = || match range.next() {
                Some(Reply::Int(slot)) => u16::try_from(slot).ok().filter(|slot| *slot <= LAST),
                _ => None,
            };
            let (Some(first), Some(last)) = (slot(), slot()) else { return Err(Shape("a slot").into()) };
            for (i, server) in range.enumerate() {
                let Some((server, id)) = server_of(server, asked) else { continue };
                if servers.len() >= MOST && !servers.contains(&server) {
                    continue;
                }
                // The first one is the master.
                if i == 0 && first <= last {
                    let epoch = epochs.get(&id[..]).copied().unwrap_or_default();
                    table.ranges.push(Range { first, last, server: server.clone(), epoch });
                }
                servers.insert(server);
            }
        }
        table.ranges.sort_unstable_by_key(|range| range.first);
        table.ranges.dedup_by(|next, range| next.first <= range.last);
        // In order: two servers name them in different ones.
        table.servers = servers.into_iter().collect();
        Ok(table)
    }

    /// The server of a slot.
    pub(super) fn server_of(&self, slot: Slot) -> Option<&Address> {
        self.range_of(slot).map(|at| &self.ranges[at].server)
    }

    fn range_of(&self, slot: Slot) -> Option<usize> {
        let slot = slot.number();
        let at = self.ranges.partition_point(|range| range.last < slot);
        self.ranges.get(at).filter(|range| range.first <= slot).map(|_| at)
    }

    /// The servers that serve slots.
    pub(super) fn masters(&self) -> BTreeSet<&Address> {
        self.ranges.iter().map(|range| &range.server).collect()
    }

    /// One slot of each of them.
    pub(super) fn slots_of_masters(&self) -> Vec<Slot> {
        let first: BTreeMap<_, _> =
            self.ranges.iter().rev().map(|range| (&range.server, range.first)).collect();
        first.into_values().filter_map(Slot::numbered).collect()
    }

    pub(super) fn servers(&self) -> &[Address] {
        &self.servers
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether each slot has the same server in both.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        let is_same = |(one, other): (&Range, &Range)| {
            (one.first, one.last, &one.server) == (other.first, other.last, &other.server)
        };
        self.ranges.len() == other.ranges.len() && self.ranges.iter().zip(&other.ranges).all(is_same)
    }

    /// Whether it names a server for a slot that another one had before the one that `other` names.
    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        let contradicts = |range: &Range| {
            let overlaps = |other: &&Range| range.first <= other.last && other.first <= range.last;
            // Two servers have the same epoch only if one of them was named by another one (`MOVED`), or if
            // no epochs are known.
            let is_older =
                |other: &Range| range.epoch < other.epoch || range.epoch == other.epoch && range.epoch > 0;
            let mut others = other.ranges.iter().filter(overlaps);
            others.any(|other| range.server != other.server && is_older(other))
        };
        self.ranges.iter().any(contradicts)
    }

    /// Notes that a server says who serves a slot now. The next answer knows more.
    pub(super) fn moved(&mut self, slot: Slot, server: Address) {
        // With its name, if it has one.
        let server = match self.servers.iter().find(|other| **other == server).cloned() {
            Some(known) => known,
            None if self.servers.len() >= MOST => return,
            None => server,
        };
        let known = self.ranges.iter().find(|range| range.server == server);
        let mut epoch = known.map(|range| range.epoch).unwrap_or_default();
        let number = slot.number();
        if let Some(at) = self.range_of(slot) {
            let old = self.ranges.remove(at);
            epoch = epoch.max(old.epoch);
            let before = (old.first < number).then(|| Range { last: number - 1, ..old.clone() });
            let behind = (number < old.last).then(|| Range { first: number + 1, ..old });
            self.ranges.extend(before.into_iter().chain(behind));
        }
        if !self.servers.contains(&server) {
            self.servers.push(server.clone());
        }
        self.ranges.push(Range { first: number, last: number, server, epoch });
        self.ranges.sort_unstable_by_key(|range| range.first);
    }
}

/// The configuration epochs of the servers, by their ids: the seventh word of each line.
fn epochs(nodes: &str) -> HashMap<&[u8], u64> {
    let epoch = |line: &'_ str| -> Option<u64> { line.split(' ').nth(6)?.parse().ok() };
    let id = |line: &'_ str| line.split(' ').next().map(str::len);
    nodes.lines().filter_map(|line| Some((&line.as_bytes()[..id(line)?], epoch(line)?))).collect()
}

/// The address and id of a server: `[endpoint, port, id, [name, value, ...]]`.
fn server_of(server: Reply, asked: &Address) -> Option<(Address, Bytes)> {
    let mut parts = server.into_array().ok()?.into_iter();
    let endpoint = match parts.next()? {
        Reply::Bytes(host) => String::from_utf8(host.to_vec()).ok()?,
        _ => String::new(),
    };
    let port = match parts.next()? {
        Reply::Int(port) => u16::try_from(port).ok().filter(|port| *port > 0)?,
        _ => return None,
    };
    let id = parts.next().and_then(|id| id.into_bytes().ok()).unwrap_or_default();
    let more = parts.next().and_then(|more| more.into_strings().ok()).unwrap_or_default();
    let name = more.chunks_exact(2).find(|pair| pair[0] == "hostname").map(|pair| &pair[1]);
    let name = name.and_then(|name| String::from_utf8(name.to_vec()).ok()).filter(|name| !name.is_empty());
    // A server that does not know its own address is reached where it was asked.
    let host = if matches!(&*endpoint, "" | "?") { asked.host.clone() } else { endpoint };
    Some((Address { host, port, name }, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Address {
        Address::new("10.0.0.1", port)
    }

    fn slot(number: u16) -> Slot {
        Slot::numbered(number).expect("a slot")
    }

    fn text(text: &'static str) -> Reply {
        Reply::Bytes(text.into())
    }

    fn server(host: Reply, port: i64, id: &'static str) -> Reply {
        Reply::Array(vec![host, Reply::Int(port), text(id), Reply::Array(vec![])])
    }

    fn range(first: i64, last: i64, servers: Vec<Reply>) -> Reply {
        Reply::Array([Reply::Int(first), Reply::Int(last)].into_iter().chain(servers).collect())
    }

    fn table(ranges: &[(u16, u16, u16, u64)]) -> Table {
        let ranges: Vec<Range> = ranges
            .iter()
            .map(|(first, last, port, epoch)| Range {
                first: *first,
                last: *last,
                server: at(*port),
                epoch: *epoch,
            })
            .collect();
        let servers = ranges.iter().map(|range| range.server.clone()).collect();
        Table { ranges, servers }
    }

    fn ports(table: &Table, slots: &[u16]) -> Vec<Option<u16>> {
        slots.iter().map(|number| table.server_of(slot(*number)).map(|server| server.port)).collect()
    }

    #[test]
    fn replies_of_a_cluster_are_read() {
        let ip = || text("10.0.0.1");
        let named = Reply::Array(vec![
            ip(),
            Reply::Int(9),
            text("d"),
            Reply::Array(vec![text("hostname"), text("redis-9.example.org")]),
        ]);
        let slots = Reply::Array(vec![
            range(100, 16_383, vec![server(ip(), 2, "b")]),
            // Old servers give no id; one that does not know its address gives nil, an empty text or a
            // question mark.
            range(5, 5, vec![Reply::Array(vec![text("?"), Reply::Int(3)])]),
            range(0, 4, vec![server(Reply::Nil, 1, "a"), server(text(""), 7, "c"), named]),
        ]);
        let nodes = "a 10.0.0.1:1@10001,host myself,master - 0 0 12 connected 0-4\nb :2@1 master - 0 0 3 \
            connected\n\nx\n";
        let table = Table::of_replies(slots, Some(nodes), &Address::new("asked", 1)).unwrap();
        assert_eq!(
            ports(&table, &[0, 4, 5, 6, 99, 100, 16_383]),
            [Some(1), Some(1), Some(3), None, None, Some(2), Some(2)]
        );
        assert_eq!(table.server_of(slot(0)).unwrap().host, "asked");
        assert_eq!(table.ranges.iter().map(|range| range.epoch).collect::<Vec<_>>(), [12, 0, 3]);
        assert_eq!(table.masters().len(), 3);
        assert_eq!(table.servers().len(), 5);
        let name = table.servers().iter().find(|server| server.port == 9).unwrap().name.as_deref();
        assert_eq!(name, Some("redis-9.example.org"));
    }

    #[test]
    fn impossible_replies_are_no_tables() {
        let asked = Address::new("asked", 1);
        for reply in [
            Reply::Int(1),
            Reply::Array(vec![Reply::Int(1)]),
            Reply::Array(vec![range(-1, 4, vec![])]),
            Reply::Array(vec![range(0, 16_384, vec![])]),
            Reply::Array(vec![Reply::Array(vec![])]),
        ] {
            assert!(Table::of_replies(reply.clone(), None, &asked).is_err(), "{reply:?}");
        }
        // Ranges that overlap or are upside down, and servers without a port.
        let strange = Reply::Array(vec![
            range(7, 3, vec![server(text("h"), 1, "a")]),
            range(0, 9, vec![server(text("h"), 2, "b")]),
            range(5, 20, vec![server(text("h"), 3, "c")]),
            range(30, 40, vec![server(text("h"), 0, "d")]),
            range(50, 60, vec![server(text("h"), 70_000, "e"), Reply::Nil]),
        ]);
        let table = Table::of_replies(strange, Some("\n \n"), &asked).unwrap();
        assert_eq!(ports(&table, &[0, 9, 10, 35, 55]), [Some(2), Some(2), None, None, None]);
    }

    #[test]
    fn an_answer_is_older_if_another_server_has_had_one_of_its_slots_since() {
        let present = table(&[(0, 99, 1, 5), (100, 16_383, 2, 7)]);
        for (answer, is_older) in [
            (table(&[(0, 99, 1, 5), (100, 16_383, 2, 7)]), false),
            // It has not heard of the new epoch of the same server.
            (table(&[(0, 99, 1, 4), (100, 16_383, 2, 7)]), false),
            (table(&[(0, 99, 3, 6), (100, 16_383, 2, 7)]), false),
            (table(&[(0, 99, 3, 4), (100, 16_383, 2, 7)]), true),
            (table(&[(0, 99, 3, 5), (100, 16_383, 2, 7)]), true),
            // Newer in one place, older in another.
            (table(&[(0, 99, 3, 9), (100, 16_383, 1, 6)]), true),
            // A slot in the middle.
            (table(&[(0, 49, 1, 5), (50, 50, 3, 8), (51, 99, 1, 5), (100, 16_383, 2, 7)]), false),
            (table(&[(0, 49, 1, 5)]), false),
            (table(&[]), false),
        ] {
            assert_eq!(answer.is_older_than(&present), is_older, "{answer:?}");
        }
    }

    #[test]
    fn a_moved_slot_is_split_off() {
        for (number, parts) in [(0, 3), (50, 4), (99, 3), (16_383, 3)] {
            let mut moved = table(&[(0, 99, 1, 5), (100, 16_383, 2, 7)]);
            moved.moved(slot(number), at(3));
            assert_eq!(moved.ranges.len(), parts);
            assert_eq!(ports(&moved, &[number]), [Some(3)]);
            let others: Vec<u16> =
                [1, 49, 51, 98, 100, 16_382].into_iter().filter(|other| *other != number).collect();
            let expected: Vec<_> = others.iter().map(|slot| Some(if *slot < 100 { 1 } else { 2 })).collect();
            assert_eq!(ports(&moved, &others), expected);
        }
        let mut none = table(&[]);
        none.moved(slot(7), at(1));
        assert_eq!(ports(&none, &[6, 7, 8]), [None, Some(1), None]);
    }

    #[test]
    fn the_server_of_every_slot_is_found() {
        let table = Table::of_one(at(1));
        assert!((0..=LAST).all(|number| table.server_of(slot(number)).is_some()));
    }
}
