//! The keys of one queue: Redisson's, byte for byte, and redelay's.
//!
//! | content | key |
//! |---|---|
//! | target: the list that takers read | the name itself |
//! | timeout set: entry → due, epoch ms | `redisson_delay_queue_timeout:` + tag |
//! | ordered list: entries in the order of the offers | `redisson_delay_queue:` + tag |
//! | announcements | channel `redisson_delay_queue_channel:` + tag |
//! | transfers, for other clients | channel `redelay:moved:` + tag |
//! | quarantine: malformed entries | `redelay:quarantine:` + tag |
//! | claims: what each pop took, until its reply has arrived | `redelay:popped:` + tag |
//! | receipt of an offer | `redelay:offered:` + tag + `:` + id |
//! | a write that replicas confirm, with all writes before it | `redelay:confirmed:` + tag |
//! | receipt of payloads that were returned to their list | `redelay:returned:` + tag + `:` + id |
//! | retries that are due earlier, for other receivers | channel `redelay:receivers:` + tag |
//! | inbox, messages, leases, retries, receipts, dead letters, control of receivers | `redelay:inbox:` … + tag; behind a second colon if the name has a brace |
//! | jobs, what travels with them, throttles; schedules and their records | `redelay:jobs:` … + tag, like those |
//! | due entries may be missing in the ordered list | `redelay:rebuild:` + tag |
//! | the number of partitions of a partitioned queue | `redelay:partitions:` + tag |
//! | scratch: absent before and after each script | `redelay:scratch:` + tag |
//!
//! All names have the same hash tag, so the keys share a cluster slot if the name allows it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;

use super::id;

/// The prefix of the channels on which transfers are published.
pub(crate) const MOVED: &str = "redelay:moved:";

/// The names of the keys and channels of one queue. Cheap to clone. Two are equal if their targets are equal,
/// because all other names derive from the target.
#[derive(Clone, Debug)]
pub(crate) struct Keys(Arc<Names>);

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.0.target == other.0.target
    }
}

impl Eq for Keys {}

impl Hash for Keys {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// A map by queues.
pub(crate) type MapByKeys<V> = HashMap<Keys, V, BuildHasherDefault<Hashed>>;
/// A set of queues.
pub(crate) type SetOfKeys = HashSet<Keys, BuildHasherDefault<Hashed>>;

/// For what has hashed itself, as [`Keys`] have: a take looks up its list some twenty times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.rotate_left(8) ^ number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// All names are slices of one buffer, because there may be ten thousand queues.
#[derive(Debug)]
struct Names {
    /// Of the target, with a secret of this process.
    hash: u64,
    target: Bytes,
    tag: Bytes,
    timeout_set: Bytes,
    ordered_list: Bytes,
    quarantine: Bytes,
    claims: Bytes,
    scratch: Bytes,
    channel: Bytes,
    moved: Bytes,
}

impl Keys {
    /// `name` is the name after mapping. Redisson maps first, and looks for the brace in the result.
    pub(crate) fn new(name: impl AsRef<[u8]>) -> Self {
        let name = name.as_ref();
        // Any '{' counts, even one that makes no valid hash tag: "a{b" gets no braces.
        let [open, close]: [&[u8]; 2] = if name.contains(&b'{') { [b"", b""] } else { [b"{", b"}"] };
        let prefixes = [
            "redisson_delay_queue_timeout:",
            "redisson_delay_queue:",
            "redelay:quarantine:",
            "redelay:popped:",
            "redelay:scratch:",
            "redisson_delay_queue_channel:",
            MOVED,
        ];
        let all: Bytes =
            prefixes.map(|prefix| [prefix.as_bytes(), open, name, close].concat()).concat().into();
        let tag = open.len() + name.len() + close.len();
        let mut end = 0;
        let [timeout_set, ordered_list, quarantine, claims, scratch, channel, moved] =
            prefixes.map(|prefix| {
                let start = end;
                end += prefix.len() + tag;
                all.slice(start..end)
            });
        let tag = moved.slice(MOVED.len()..);
        let target = tag.slice(open.len()..open.len() + name.len());
        static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let hash = SECRET.hash_one(&target);
        let names = Names {
            hash,
            target,
            tag,
            timeout_set,
            ordered_list,
            quarantine,
            claims,
            scratch,
            channel,
            moved,
        };
        Self(Arc::new(names))
    }

    pub(crate) fn target(&self) -> &Bytes {
        &self.0.target
    }

    pub(crate) fn timeout_set(&self) -> &Bytes {
        &self.0.timeout_set
    }

    pub(crate) fn ordered_list(&self) -> &Bytes {
        &self.0.ordered_list
    }

    pub(crate) fn quarantine(&self) -> &Bytes {
        &self.0.quarantine
    }

    /// The channel of announcements.
    pub(crate) fn channel(&self) -> &Bytes {
        &self.0.channel
    }

    /// The channel on which transfers are published. Redisson does not subscribe to it.
    pub(crate) fn moved(&self) -> &Bytes {
        &self.0.moved
    }

    /// The hash of what pops took, by their ids, until their replies have arrived.
    pub(crate) fn claims(&self) -> &Bytes {
        &self.0.claims
    }

    /// The key that exists while due entries may be missing in the ordered list.
    pub(crate) fn rebuild(&self) -> Bytes {
        [b"redelay:rebuild:", &self.0.tag[..]].concat().into()
    }

    /// A new key for the outcome of one offer.
    pub(crate) fn offered(&self) -> Bytes {
        self.side("offered")
    }

    /// The key that is written before replicas are waited for.
    pub(crate) fn confirmed(&self) -> Bytes {
        [b"redelay:confirmed:", &self.0.tag[..]].concat().into()
    }

    /// A new key that records that payloads were returned.
    pub(crate) fn returned(&self) -> Bytes {
        self.side("returned")
    }

    /// The same, of this name.
    pub(crate) fn returned_as(&self, name: &str) -> Bytes {
        [b"redelay:returned:", &self.0.tag[..], b":", name.as_bytes()].concat().into()
    }

    /// The key on which scripts try out their permissions. It is absent before and after.
    pub(crate) fn scratch(&self) -> &Bytes {
        &self.0.scratch
    }

    /// The keys of receivers.
    pub(crate) fn of_messages(&self) -> MessageKeys {
        MessageKeys {
            inbox: self.named("inbox"),
            messages: self.named("messages"),
            leases: self.named("leases"),
            retries: self.named("retries"),
            receipts: self.named("receipts"),
            dead: self.named("dead"),
            dead_messages: self.named("dead_messages"),
            control: self.named("control"),
            channel: self.named("receivers"),
            jobs: self.jobs(),
            notes: self.named("notes"),
            more_notes: self.named("more_notes"),
        }
    }

    /// The hash of jobs, by their ids.
    pub(crate) fn jobs(&self) -> Bytes {
        self.named("jobs")
    }

    /// The hash of what travels with jobs, by their payloads, and the sorted set of what travels with others
    /// of equal payloads.
    pub(crate) fn notes(&self) -> [Bytes; 2] {
        ["notes", "more_notes"].map(|name| self.named(name))
    }

    /// The sorted set of schedules by their next runs, and the hash of their records.
    pub(crate) fn schedules(&self) -> [Bytes; 2] {
        ["schedules", "records"].map(|name| self.named(name))
    }

    /// The key that the scripts about jobs and schedules call by this name.
    ///
    /// # Panics
    /// If no key of a queue has this name: a mistake in this program, which the first call shows.
    pub(crate) fn named(&self, name: &str) -> Bytes {
        match name {
            "timeout_set" => self.timeout_set().clone(),
            "ordered_list" => self.ordered_list().clone(),
            "target" => self.target().clone(),
            "channel" => self.channel().clone(),
            "scratch" => self.scratch().clone(),
            "rebuild" => self.rebuild(),
            "jobs" => self.marked("redelay:jobs:"),
            "notes" => self.marked("redelay:job-notes:"),
            "more_notes" => self.marked("redelay:more-job-notes:"),
            "schedules" => self.marked("redelay:schedules:"),
            "records" => self.marked("redelay:schedule-records:"),
            "inbox" => self.marked("redelay:inbox:"),
            "messages" => self.marked("redelay:messages:"),
            "leases" => self.marked("redelay:leases:"),
            "retries" => self.marked("redelay:retries:"),
            "receipts" => self.marked("redelay:receipts:"),
            "dead" => self.marked("redelay:dead:"),
            "dead_messages" => self.marked("redelay:dead-messages:"),
            "control" => self.marked("redelay:control:"),
            "receivers" => self.marked("redelay:receivers:"),
            _ => panic!("no key of a queue has the name {name}"),
        }
    }

    /// The key that exists while no other job of this id, or with a payload of this hash, is accepted.
    pub(crate) fn throttle(&self, what: &str, id: &[u8]) -> Bytes {
        [&self.marked("redelay:throttle:")[..], b":", what.as_bytes(), b":", id].concat().into()
    }

    /// The number of partitions of a queue that has any.
    pub(crate) fn partitions(&self) -> Bytes {
        self.marked("redelay:partitions:")
    }

    /// Whether the name itself has a brace.
    pub(crate) fn has_tag(&self) -> bool {
        self.0.tag.len() == self.0.target.len()
    }

    /// `q` and `{q}` have the same tag, but different targets. A second colon marks names that have a brace
    /// themselves.
    fn marked(&self, what: &str) -> Bytes {
        let mark = if self.has_tag() { ":" } else { "" };
        [what.as_bytes(), mark.as_bytes(), &self.0.tag].concat().into()
    }

    fn side(&self, what: &str) -> Bytes {
        [b"redelay:", what.as_bytes(), b":", &self.0.tag, b":", &id::text()].concat().into()
    }
}

/// The keys of the messages that receivers of a queue claimed.
#[derive(Clone, Debug)]
pub(crate) struct MessageKeys {
    /// The list to which parked receivers move payloads. No receiver has claimed them yet.
    pub(crate) inbox: Bytes,
    /// The hash of records, by message ids.
    pub(crate) messages: Bytes,
    /// The sorted set of deliveries that are not settled, by the ends of their leases, epoch ms.
    pub(crate) leases: Bytes,
    /// The sorted set of message ids that wait for their next delivery, by due time, epoch ms.
    pub(crate) retries: Bytes,
    /// The hash of the last calls of receivers.
    pub(crate) receipts: Bytes,
    /// The sorted set of the ids of dead letters, by time, epoch ms.
    pub(crate) dead: Bytes,
    /// The hash of dead letters, by message ids.
    pub(crate) dead_messages: Bytes,
    /// The hash of what concerns all receivers: their last sign of life, and the sweep.
    pub(crate) control: Bytes,
    /// The channel on which the due time of the first retry is published when it becomes earlier, epoch ms.
    pub(crate) channel: Bytes,
    /// The hash of jobs, by their ids.
    pub(crate) jobs: Bytes,
    /// The hash of what travels with jobs, by their payloads.
    pub(crate) notes: Bytes,
    /// The sorted set of what travels with others of equal payloads.
    pub(crate) more_notes: Bytes,
}

/// The type of a key of a queue, as `TYPE` names it.
pub(crate) fn type_of(key: &[u8]) -> &'static str {
    const SETS: &[&str] = &[
        "redisson_delay_queue_timeout:",
        "redelay:leases:",
        "redelay:retries:",
        "redelay:dead:",
        "redelay:more-job-notes:",
        "redelay:schedules:",
    ];
    const HASHES: &[&str] = &[
        "redelay:popped:",
        "redelay:messages:",
        "redelay:receipts:",
        "redelay:dead-messages:",
        "redelay:control:",
        "redelay:jobs:",
        "redelay:job-notes:",
        "redelay:schedule-records:",
    ];
    const STRINGS: &[&str] = &[
        "redelay:offered:",
        "redelay:returned:",
        "redelay:confirmed:",
        "redelay:throttle:",
        "redelay:partitions:",
        "redelay:rebuild:",
    ];
    [(SETS, "zset"), (HASHES, "hash"), (STRINGS, "string")]
        .into_iter()
        .find(|(prefixes, _)| prefixes.iter().any(|prefix| key.starts_with(prefix.as_bytes())))
        .map_or("list", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use super::*;

    /// Measured on Redisson 4.7.0, 3.50.0 and 3.21.0: mapped name, ordered list.
    const MEASURED: &[(&str, &str)] = &[
        ("q", "redisson_delay_queue:{q}"),
        ("{tag}q", "redisson_delay_queue:{tag}q"),
        ("a{b}c", "redisson_delay_queue:a{b}c"),
        ("a{b", "redisson_delay_queue:a{b"),
        ("a}b", "redisson_delay_queue:{a}b}"),
        ("", "redisson_delay_queue:{}"),
        ("{", "redisson_delay_queue:{"),
        ("}", "redisson_delay_queue:{}}"),
        ("{}q", "redisson_delay_queue:{}q"),
        ("x{}y{z}", "redisson_delay_queue:x{}y{z}"),
        ("a:b:c", "redisson_delay_queue:{a:b:c}"),
        ("очередь", "redisson_delay_queue:{очередь}"),
        ("a b", "redisson_delay_queue:{a b}"),
        ("q*?[x]", "redisson_delay_queue:{q*?[x]}"),
        ("app:q", "redisson_delay_queue:{app:q}"),
        ("app:{tag}q", "redisson_delay_queue:app:{tag}q"),
    ];

    #[test]
    fn names_as_redisson_makes_them() {
        for (name, ordered_list) in MEASURED {
            let keys = Keys::new(name);
            assert_eq!(keys.target(), name.as_bytes(), "target of {name:?}");
            assert_eq!(keys.ordered_list(), ordered_list.as_bytes(), "list of {name:?}");
            let tag = ordered_list.strip_prefix("redisson_delay_queue:").unwrap();
            assert_eq!(keys.timeout_set(), format!("redisson_delay_queue_timeout:{tag}").as_bytes());
            assert_eq!(keys.channel(), format!("redisson_delay_queue_channel:{tag}").as_bytes());
            assert_eq!(keys.moved(), format!("redelay:moved:{tag}").as_bytes());
            assert_eq!(keys.claims(), format!("redelay:popped:{tag}").as_bytes());
            assert_eq!(keys.scratch(), format!("redelay:scratch:{tag}").as_bytes());
            assert!(keys.offered().starts_with(format!("redelay:offered:{tag}:").as_bytes()));
            assert!(keys.returned().starts_with(format!("redelay:returned:{tag}:").as_bytes()));
            assert_eq!(keys.quarantine(), format!("redelay:quarantine:{tag}").as_bytes());
            assert_eq!(keys.rebuild(), format!("redelay:rebuild:{tag}").as_bytes());
        }
    }

    #[test]
    fn each_key_has_a_type() {
        let keys = Keys::new("a{b}");
        let MessageKeys { inbox, messages, leases, retries, receipts, dead, dead_messages, control, .. } =
            keys.of_messages();
        let [schedules, schedule_records] = keys.schedules();
        let [notes, more_notes] = keys.notes();
        let lists = [keys.target(), keys.ordered_list(), keys.quarantine(), keys.scratch(), &inbox];
        let sets = [keys.timeout_set(), &leases, &retries, &dead, &more_notes, &schedules];
        let hashes = [
            keys.claims(),
            &messages,
            &receipts,
            &dead_messages,
            &control,
            &keys.jobs(),
            &notes,
            &schedule_records,
        ];
        let strings = [
            keys.offered(),
            keys.returned(),
            keys.confirmed(),
            keys.throttle("id", b"7"),
            keys.partitions(),
            keys.rebuild(),
        ];
        assert!(lists.into_iter().all(|key| type_of(key) == "list"));
        assert!(sets.into_iter().all(|key| type_of(key) == "zset"));
        assert!(hashes.into_iter().all(|key| type_of(key) == "hash"));
        assert!(strings.iter().all(|key| type_of(key) == "string"));
    }

    #[test]
    fn keys_of_one_queue_are_equal_and_receipts_are_unique() {
        let (keys, other) = (Keys::new("q"), Keys::new("{q}"));
        assert!(keys == Keys::new("q") && keys != other);
        assert_ne!(keys.offered(), keys.offered());
        let hash = |keys: &Keys| {
            let mut hasher = DefaultHasher::new();
            keys.hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(hash(&keys), hash(&Keys::new("q")));
        assert_ne!(hash(&keys), hash(&other));
    }
}
