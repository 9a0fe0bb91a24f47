//! What a pump prints as JSON.

use serde::Serialize;

use crate::queue::Name;

/// What it does, as a document.
#[derive(Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum Event {
    Started {
        patterns: Vec<String>,
        notice: &'static str,
    },
    /// From now on, this queue is transferred for.
    Pumps {
        #[serde(flatten)]
        name: Name,
    },
    /// Nothing has been pending in it for long, so that it is transferred for again when that changes; or the
    /// other queue with the same pending keys is in use, too.
    Leaves {
        #[serde(flatten)]
        name: Name,
    },
    /// `--once`: what was due in it.
    Moved {
        #[serde(flatten)]
        name: Name,
        transferred: u64,
        quarantined: u64,
    },
}
