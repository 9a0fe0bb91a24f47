//! The keys of the target `q`, written out, because Redisson and redelay have to agree on them.

use redelay_fixture::Server;

/// The list that takers pop from.
pub const TARGET: &str = "q";
/// The sorted set of pending entries by due time.
pub const TIMEOUT_SET: &str = "redisson_delay_queue_timeout:{q}";
/// The list of pending entries in the order of their offers.
pub const ORDERED_LIST: &str = "redisson_delay_queue:{q}";
/// The channel on which a new head is announced.
pub const CHANNEL: &str = "redisson_delay_queue_channel:{q}";
/// The list of quarantined entries, each after its score.
pub const QUARANTINE: &str = "redelay:quarantine:{q}";
/// The copies of what pops took, until their replies have arrived.
pub const CLAIMS: &str = "redelay:popped:{q}";
/// The key on which scripts try out their permissions. It is never there.
pub const SCRATCH: &str = "redelay:scratch:{q}";
/// The key that exists while due entries may be missing in the ordered list.
pub const REBUILD: &str = "redelay:rebuild:{q}";
/// The channel on which a transfer is announced to other redelay clients.
pub const MOVED: &str = "redelay:moved:{q}";

/// The hash of pending jobs by their ids.
pub const JOBS: &str = "redelay:jobs:{q}";
/// What travels with jobs.
pub const NOTES: &str = "redelay:job-notes:{q}";
/// The same of jobs with equal payloads.
pub const MORE_NOTES: &str = "redelay:more-job-notes:{q}";

/// The sorted set of schedules by their next runs.
pub const SCHEDULES: &str = "redelay:schedules:{q}";
/// The hash of their records.
pub const SCHEDULE_RECORDS: &str = "redelay:schedule-records:{q}";

/// The list of payloads that were moved for waiting receivers.
pub const INBOX: &str = "redelay:inbox:{q}";
/// The hash of the messages that receivers claimed.
pub const MESSAGES: &str = "redelay:messages:{q}";
/// The sorted set of deliveries by the ends of their leases.
pub const LEASES: &str = "redelay:leases:{q}";
/// The sorted set of messages by the due times of their next deliveries.
pub const RETRIES: &str = "redelay:retries:{q}";
/// The hash of the last calls of receivers.
pub const RECEIPTS: &str = "redelay:receipts:{q}";
/// The sorted set of dead letters.
pub const DEAD: &str = "redelay:dead:{q}";
/// The hash of their contents.
pub const DEAD_MESSAGES: &str = "redelay:dead-messages:{q}";
/// What is written before a replica is to confirm writes.
pub const CONFIRMED: &str = "redelay:confirmed:{q}";
/// The hash of what concerns all receivers.
pub const CONTROL: &str = "redelay:control:{q}";

/// Lets all leases have ended, as if their time were over.
///
/// # Panics
/// Panics if the server does not answer.
pub fn end_leases(server: &Server) {
    const END: &str = "for _, lease in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    redis.call('ZADD', KEYS[1], 1, lease)
end";
    server.cmd(["EVAL", END, "1", LEASES]);
}

/// All keys, except those by which the server remembers for a while what was offered, popped or returned.
#[must_use]
pub fn keys(server: &Server) -> Vec<Vec<u8>> {
    let passing = |key: &Vec<u8>| {
        ["popped", "offered", "returned"]
            .iter()
            .any(|what| key.starts_with(format!("redelay:{what}:").as_bytes()))
    };
    server.keys().into_iter().filter(|key| !passing(key)).collect()
}

/// All [`keys`], and their contents.
#[must_use]
pub fn lasting(server: &Server) -> Vec<(Vec<u8>, Vec<u8>)> {
    contents(server, keys(server))
}

/// All keys, and their contents.
#[must_use]
pub fn everything(server: &Server) -> Vec<(Vec<u8>, Vec<u8>)> {
    contents(server, server.keys())
}

fn contents(server: &Server, keys: Vec<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let dump = |key: Vec<u8>| {
        let dump = server.get([b"DUMP", key.as_slice()]);
        (key, dump)
    };
    keys.into_iter().map(dump).collect()
}
