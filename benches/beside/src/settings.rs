//! The settings that are tuned.

use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

use crate::redisson;

/// The settings of both systems.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Threads of the Tokio runtime that redelay is used in; redelay itself has no setting for this.
    pub(crate) worker_threads: usize,
    pub(crate) redisson: redisson::Settings,
}

impl Settings {
    /// The default settings.
    pub(crate) fn defaults() -> Self {
        Self { worker_threads: cores(), redisson: redisson::DEFAULTS }
    }

    pub(crate) fn with_takers(self, takers: usize) -> Self {
        Self { redisson: self.redisson.with_takers(takers), ..self }
    }
}

pub(crate) fn cores() -> usize {
    available_parallelism().map_or(2, usize::from)
}
