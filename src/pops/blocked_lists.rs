//! The lists of a cluster on which pops are blocked now, or which they look at in this moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::wire::keys::Keys;

#[derive(Clone, Debug, Default)]
pub(super) struct BlockedLists(Arc<Mutex<HashMap<Keys, usize>>>);

/// Some of them, until this is dropped.
pub(super) struct Blocking {
    lists: Vec<Keys>,
    blocked: BlockedLists,
}

impl BlockedLists {
    pub(super) fn enter(&self, lists: &[Keys]) -> Blocking {
        let mut pops = self.pops();
        lists.iter().for_each(|list| *pops.entry(list.clone()).or_default() += 1);
        Blocking { lists: lists.to_vec(), blocked: self.clone() }
    }

    /// Whether a pop is blocked on each of these lists.
    pub(super) fn has_all(&self, lists: &[Keys]) -> bool {
        let pops = self.pops();
        lists.iter().all(|list| pops.contains_key(list))
    }

    fn pops(&self) -> MutexGuard<'_, HashMap<Keys, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        let mut pops = self.blocked.pops();
        for list in &self.lists {
            if let Some(count) = pops.get_mut(list) {
                *count -= 1;
                if *count == 0 {
                    pops.remove(list);
                }
            }
        }
    }
}
