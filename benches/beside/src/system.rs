//! The systems that are measured.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum System {
    Redelay,
    Redisson,
    BullMq,
    Asynq,
    Apalis,
}

impl System {
    /// Those that are compared in everything that is not acknowledged.
    pub(crate) const BOTH: [Self; 2] = [Self::Redelay, Self::Redisson];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redelay => "redelay",
            Self::Redisson => "Redisson",
            Self::BullMq => "BullMQ",
            Self::Asynq => "asynq",
            Self::Apalis => "apalis-redis",
        }
    }

    /// Due times and retries of apalis-redis have whole seconds, and it recovers after five minutes.
    pub(crate) fn has_milliseconds(self) -> bool {
        self != Self::Apalis
    }
}

/// One value for each of redelay and Redisson.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sides<T> {
    pub(crate) redelay: T,
    pub(crate) redisson: T,
}

impl<T> Sides<T> {
    pub(crate) fn map<U>(&self, mut map: impl FnMut(&T) -> U) -> Sides<U> {
        Sides { redelay: map(&self.redelay), redisson: map(&self.redisson) }
    }

    pub(crate) fn get(&self, system: System) -> &T {
        match system {
            System::Redelay => &self.redelay,
            System::Redisson => &self.redisson,
            System::BullMq | System::Asynq | System::Apalis => unreachable!("{} has no side", system.name()),
        }
    }
}
