//! The keys of one queue, exactly as Redisson names them, and redelay's own side keys beside them.
//!
//! | what | key |
//! |---|---|
//! | target: the list that takers read | the name itself |
//! | timeout set: entry → due, epoch ms | `redisson_delay_queue_timeout:` + tag |
//! | ordered list: entries in order of insertion | `redisson_delay_queue:` + tag |
//! | wake-up channel | `redisson_delay_queue_channel:` + tag |
//! | what other clients are told of each transfer | channel `redelay:moved:` + tag |
//! | quarantine: entries nobody can read | `redelay:quarantine:` + tag |
//! | claim: what one pop took, until its reply has arrived | `redelay:popped:` + tag + `:` + token |
//! | marker of payloads that were given back | `redelay:returned:` + tag + `:` + token |
//!
//! All carry the same hash tag, so they share a cluster slot whenever the name allows it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

/// How the channels begin that tell of transfers.
pub(crate) const MOVED: &str = "redelay:moved:";

/// The names of everything that belongs to one queue. Cheap to clone; equal when the target is, which names the rest.
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
        self.0.target.hash(state);
    }
}

/// All are parts of one buffer: there may be ten thousand queues.
#[derive(Debug)]
struct Names {
    target: Bytes,
    tag: Bytes,
    timeout_set: Bytes,
    ordered_list: Bytes,
    quarantine: Bytes,
    channel: Bytes,
    moved: Bytes,
}

impl Keys {
    /// `name` is the name after mapping: Redisson maps first and looks for the brace in the result.
    pub(crate) fn new(name: &str) -> Self {
        // Any '{' counts, even one that makes no valid hash tag: "a{b" stays bare.
        let [open, close] = if name.contains('{') { ["", ""] } else { ["{", "}"] };
        let prefixes = [
            "redisson_delay_queue_timeout:",
            "redisson_delay_queue:",
            "redelay:quarantine:",
            "redisson_delay_queue_channel:",
            MOVED,
        ];
        let all: Bytes = prefixes.map(|prefix| format!("{prefix}{open}{name}{close}")).concat().into();
        let tag = open.len() + name.len() + close.len();
        let mut end = 0;
        let [timeout_set, ordered_list, quarantine, channel, moved] = prefixes.map(|prefix| {
            let start = end;
            end += prefix.len() + tag;
            all.slice(start..end)
        });
        let tag = moved.slice(MOVED.len()..);
        let target = tag.slice(open.len()..open.len() + name.len());
        Self(Arc::new(Names { target, tag, timeout_set, ordered_list, quarantine, channel, moved }))
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

    /// Where new heads are announced.
    pub(crate) fn channel(&self) -> &Bytes {
        &self.0.channel
    }

    /// Where transfers are told of; Redisson does not listen there.
    pub(crate) fn moved(&self) -> &Bytes {
        &self.0.moved
    }

    /// A fresh key that remembers what one pop took.
    pub(crate) fn popped(&self) -> Bytes {
        self.side("popped")
    }

    /// A fresh key that remembers that payloads have been given back.
    pub(crate) fn returned(&self) -> Bytes {
        self.side("returned")
    }

    fn side(&self, what: &str) -> Bytes {
        let token = Uuid::now_v7().simple().to_string();
        [b"redelay:", what.as_bytes(), b":", &self.0.tag, b":", token.as_bytes()].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows measured on Redisson 4.7.0, 3.50.0 and 3.21.0: mapped name, ordered list.
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
            assert!(keys.popped().starts_with(format!("redelay:popped:{tag}:").as_bytes()));
            assert_eq!(keys.quarantine(), format!("redelay:quarantine:{tag}").as_bytes());
        }
    }
}
