//! One look at a queue: everything that was seen of it. Pure.

use redelay::codec::detect::Verdict;
use redelay::inspector::{Details, Orphans, Overview, QueueKey, Unknown};

use crate::failure::missing_permission;

use super::codes::Code;
use super::walk::Walk;

/// What was seen of a queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    pub(crate) overview: Overview,
    /// The keys that exist.
    pub(crate) keys: Vec<QueueKey>,
    pub(crate) details: Details,
    pub(crate) walk: Walk,
    pub(crate) orphans: Orphans,
    /// What stands for the head, for the first ready payload, and for the first one in the inbox.
    pub(crate) head: Option<u64>,
    pub(crate) first_ready: Option<u64>,
    pub(crate) first_unclaimed: Option<u64>,
    /// The codecs of a sample, unless the profile says it.
    pub(crate) codecs: Vec<Verdict>,
    /// The number of partitions that is recorded, if its name is that of a partition.
    pub(crate) partitions: Option<u64>,
    /// Who is subscribed to a replica says nothing.
    pub(crate) is_on_replica: bool,
    pub(crate) is_in_cluster: bool,
    /// Whether the queue with the same pending keys is looked at, too, and has the findings of these.
    pub(crate) is_second_of_two: bool,
    /// What the server has refused to say.
    pub(crate) refused: Vec<Refused>,
}

/// A question that the server has refused to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The first finding that depends on it.
    pub(crate) code: Code,
    /// The server's words.
    pub(crate) why: String,
    /// What `ACL SETUSER` has to grant.
    pub(crate) right: Option<String>,
}

impl Refused {
    /// `None` for a key of another type, which is a finding itself.
    pub(crate) fn new(what: &str, why: &str) -> Option<Self> {
        let refused = Self { code: depends_on(what), why: why.to_owned(), right: missing_permission(why) };
        (!why.contains("WRONGTYPE")).then_some(refused)
    }

    pub(crate) fn of(unknown: &Unknown) -> Option<Self> {
        let refused = Self::new(&unknown.what, &unknown.why)?;
        Some(Self { right: unknown.permission.clone().or(refused.right), ..refused })
    }
}

/// The first finding that depends on the answer to a question.
fn depends_on(what: &str) -> Code {
    match what {
        "pending" | "list_len" => Code::Q04,
        "entries" => Code::Q05,
        "walk" => Code::Q09,
        "negative" => Code::Q11,
        "beyond" => Code::Q12,
        "in_seconds" => Code::Q14,
        "distant" => Code::Q15,
        "keys" => Code::Q16,
        "len" => Code::Q17,
        "expires_in" => Code::Q20,
        "codecs" => Code::Q22,
        "ready" => Code::Q24,
        "quarantined" => Code::Q26,
        "is_paused" => Code::Q27,
        "clock_went_back" => Code::Q29,
        "in_flight" | "receivers" | "ended_leases" => Code::Q30,
        "orphans" => Code::Q31,
        "waiting" | "late_retries" => Code::Q32,
        "inbox" => Code::Q33,
        "dead_letters" => Code::Q34,
        "unsent_letters" => Code::Q35,
        "unconfirmed_pops" | "left_pops" => Code::Q37,
        "schedules" | "late_schedules" => Code::Q39,
        "partitions" => Code::Q42,
        "leftovers" => Code::K01,
        "save" => Code::S03,
        "idle_timeout" => Code::S06,
        "min_replicas" => Code::S07,
        "cluster" | "moving_slots" => Code::S08,
        "requires_full_coverage" => Code::S09,
        "product" => Code::S01,
        "clock" => Code::S10,
        "master" | "has_quorum" => Code::S15,
        // Overdue entries, and who transfers.
        _ => Code::Q01,
    }
}

impl Look {
    pub(crate) fn key(&self, what: &str) -> Option<&QueueKey> {
        self.keys.iter().find(|key| key.what == what)
    }
}

/// A receiver that lives is active more often.
const SILENT: std::time::Duration = std::time::Duration::from_secs(60);

impl Look {
    /// Whether no receiver was active of late, as far as the server says.
    pub(crate) fn is_silent(&self) -> bool {
        self.overview.is_paused.is_some() && self.overview.received_ago.is_none_or(|ago| ago > SILENT)
    }
}
