//! The purposes of connections.

/// The purpose of a connection. It decides which timeouts can work on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Every command has a timeout, and a silent server is noticed by it.
    Commands,
    /// As `Commands`, to a server that may be no master: its settings are not those of the client's servers.
    Question,
    /// A command may block for any time. The owner of the link watches the time.
    Blocking,
    /// Receives messages. The owner of the link sends pings.
    Subscriber,
    /// As `Commands`. The server notifies it when a key changes that was read on it.
    Tracker,
    /// As `Commands`, to a sentinel. It receives messages, too.
    Sentinel,
}

impl Purpose {
    /// Whether nothing that is sent on it writes, so that a demoted server refuses nothing.
    pub(super) fn only_listens(self) -> bool {
        matches!(self, Self::Subscriber | Self::Tracker)
    }

    /// The name in events and errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Commands | Self::Question => "commands",
            Self::Blocking => "pops",
            Self::Subscriber => "announcements",
            Self::Tracker => "lists",
            Self::Sentinel => "a sentinel",
        }
    }
}
