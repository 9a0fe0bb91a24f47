//! `redelay doctor`: what is wrong with queues and servers, and what to do about it. Pure: the command asks
//! the server, and passes on what it has seen.
//!
//! `table` has everything that can be wrong. `pending`, `messages` and `server` find it in a `look`, and
//! `finding` says what several looks agree on. `report` prints it.

pub(crate) mod finding;
pub(crate) mod look;
mod messages;
pub(crate) mod pending;
pub(crate) mod report;
pub(crate) mod server;
pub(crate) mod table;
pub(crate) mod walk;

use finding::Judgement;
use look::Look;

/// What some looks at a queue say, the first one first.
pub(crate) fn judge(looks: &[Look]) -> Judgement {
    let of_look = |look: &Look| {
        let mut found = pending::findings(look);
        found.extend(messages::findings(look));
        found
    };
    let mut judgement = finding::agreed(looks.iter().map(of_look).collect());
    let refused = looks.last().map(|look| finding::unknown(&look.refused));
    judgement.findings.extend(refused.unwrap_or_default());
    judgement
}
