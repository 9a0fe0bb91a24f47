//! Shared by the tests of `Json` and `MsgPack`, which accept any serde type.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Small {
    pub(crate) a: i32,
    pub(crate) b: Option<String>,
}

/// A value with every kind of content, of any depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Tree {
    Leaf,
    Number(f64),
    Pair(i64, u64),
    Named { name: String, tags: Option<Vec<String>>, counts: BTreeMap<String, i32>, small: Small },
    Next(Box<Tree>),
    Many(Vec<Tree>),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Strict {
    pub(crate) a: Status,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Status {
    New,
    Paid,
    Shipped,
    Closed,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Never {}

pub(crate) fn trees() -> impl Strategy<Value = Tree> {
    let small = (any::<i32>(), any::<Option<String>>()).prop_map(|(a, b)| Small { a, b });
    let maps = prop::collection::btree_map(any::<String>(), any::<i32>(), 0..4);
    let named = (any::<String>(), any::<Option<Vec<String>>>(), maps, small);
    let leaf = prop_oneof![
        Just(Tree::Leaf),
        any::<f64>().prop_map(Tree::Number),
        any::<(i64, u64)>().prop_map(|(a, b)| Tree::Pair(a, b)),
        named.prop_map(|(name, tags, counts, small)| Tree::Named { name, tags, counts, small }),
    ];
    leaf.prop_recursive(8, 32, 4, |tree| {
        prop_oneof![
            tree.clone().prop_map(|tree| Tree::Next(Box::new(tree))),
            prop::collection::vec(tree, 0..4).prop_map(Tree::Many),
        ]
    })
}

/// Payloads with one changed byte, so that decoding gets to the bytes behind it.
pub(crate) fn damaged(payload: Vec<u8>, at: prop::sample::Index, byte: u8) -> Vec<u8> {
    let mut payload = payload;
    let at = at.index(payload.len());
    payload[at] = byte;
    payload
}

/// No error shows any part of the value.
#[track_caller]
pub(crate) fn refused<T: Debug>(codec: &impl Codec<T>, payload: &[u8], says: &str) {
    let error = error(codec.decode(payload));
    assert!(error.contains(says), "{error}");
    assert!(!error.contains("SECRET"), "{error}");
}
