//! `redelay doctor`: what is wrong with queues and servers, and what to do about it. Pure: the command asks
//! the server, and passes on what it has seen.
//!
//! `codes` has everything that can be wrong. `pending`, `receiving` and `server` find it in a `look`, and
//! `finding` says what several looks agree on. `report` prints it.

pub(crate) mod codes;
pub(crate) mod finding;
pub(crate) mod look;
pub(crate) mod pending;
mod receiving;
pub(crate) mod report;
pub(crate) mod server;
pub(crate) mod walk;

use finding::Judgement;
use look::Look;

/// What some looks at a queue say, the first one first.
pub(crate) fn judge(looks: &[Look]) -> Judgement {
    let of_look = |look: &Look| {
        let mut found = pending::findings(look);
        found.extend(receiving::findings(look));
        found
    };
    let mut judgement = finding::agreed(looks.iter().map(of_look).collect());
    let refused = looks.last().map(|look| finding::unknown(&look.refused));
    judgement.findings.extend(refused.unwrap_or_default());
    judgement
}
