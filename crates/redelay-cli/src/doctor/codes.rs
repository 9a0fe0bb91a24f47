//! What can be wrong: one table, from which the findings, `--json` and `docs/operate.md` are made. Pure.

use std::fmt;

use serde::{Serialize, Serializer};

/// How bad a finding is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    Error,
    Warning,
    Unknown,
    Information,
}

impl Severity {
    pub(crate) fn letter(self) -> &'static str {
        match self {
            Self::Error => "E",
            Self::Warning => "W",
            Self::Unknown => "?",
            Self::Information => "I",
        }
    }
}

/// What can be wrong.
pub(crate) struct Row {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    /// In a few words. A finding begins with it.
    pub(crate) title: &'static str,
    /// How it is seen.
    pub(crate) seen: &'static str,
    /// What it means, and what to do. `QUEUE` and the like stand for names, and what is in backticks and
    /// begins with `redelay` or `redis-cli` is a command.
    pub(crate) fix: &'static str,
    /// How many looks must agree.
    pub(crate) looks: usize,
    /// What it may cause, and what is not reported beside it.
    pub(crate) hides: &'static [Code],
}

macro_rules! rows {
    ($($code:ident $severity:ident $looks:literal $title:literal, $seen:literal, $fix:literal, hides [$($hidden:ident)*];)*) => {
        /// The code of a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Code { $($code),* }

        /// All of them, in the order of their codes.
        pub(crate) const ROWS: &[Row] = &[$(Row {
            code: Code::$code,
            severity: Severity::$severity,
            title: $title,
            seen: $seen,
            fix: $fix,
            looks: $looks,
            hides: &[$(Code::$hidden),*],
        }),*];
    };
}

rows! {
    Q01 Error 2 "no client transfers",
        "the head has been due for 1 s or more, and `PUBSUB NUMSUB` is 0",
        "Start a service that holds the delayed queue. Now: `redelay pump --once QUEUE`. From now on: `redelay pump QUEUE`. If the name in Java is in braces, write the braces, too",
        hides [Q03];
    Q02 Error 3 "stands still",
        "processes are subscribed, and the head is overdue and the same in three looks within 6 s",
        "Redisson loses a wake-up now and then. Now: `redelay pump --once QUEUE`. From now on: `redelay pump QUEUE`. If the name in Java is in braces, write the braces, too",
        hides [Q03];
    Q03 Warning 2 "many entries are overdue",
        "more than 1,000 entries are due, and the head moves",
        "More processes that transfer do not help: check the length of payloads, and the load of the server",
        hides [];
    Q04 Warning 2 "an entry is not in the ordered list",
        "the timeout set has it, and the ordered list does not, while no transfer moves a backlog; of a long queue, `ZCARD` and `LLEN`",
        "It is delivered, and size, contains and remove do not see it. Put it there: `redis-cli EVAL \"if redis.call('LLEN', KEYS[2]) > 10000 then return 'too long' end local has = {} for _, e in ipairs(redis.call('LRANGE', KEYS[2], 0, 9999)) do has[e] = 1 end for _, e in ipairs(redis.call('ZRANGE', KEYS[1], 0, 9999)) do if not has[e] then redis.call('RPUSH', KEYS[2], e) end end\" 2 TIMEOUT_SET ORDERED_LIST`",
        hides [];
    Q05 Error 2 "an entry is never delivered",
        "the ordered list has it, and the timeout set does not: it has no due time; of a long queue, `ZCARD` and `LLEN`",
        "Put it into the quarantine, and offer its payload again: `redis-cli EVAL \"for _, e in ipairs(redis.call('LRANGE', KEYS[2], 0, 9999)) do if not redis.call('ZSCORE', KEYS[1], e) then redis.call('LREM', KEYS[2], 1, e) redis.call('RPUSH', KEYS[3], '', e) end end\" 3 TIMEOUT_SET ORDERED_LIST QUARANTINE`",
        hides [];
    Q06 Warning 2 "an entry is twice in the ordered list",
        "in pages of the ordered list",
        "One of them stays when it is delivered. Remove the later one: `redis-cli EVAL \"if redis.call('LLEN', KEYS[1]) > 10000 then return 'too long' end local has = {} for _, e in ipairs(redis.call('LRANGE', KEYS[1], 0, 9999)) do if has[e] then redis.call('LREM', KEYS[1], -1, e) end has[e] = 1 end\" 1 ORDERED_LIST`",
        hides [];
    Q07 Error 1 "entries of both formats",
        "in pages of the timeout set: some are of Redisson ≤ 3.21.0, and some of a later one",
        "A Redisson stands still at those of the other format. A redelay client moves both: `redelay pump QUEUE`. End or update the older services: docs/migrating.md",
        hides [Q02 Q08];
    Q08 Information 1 "entries of the old format",
        "in pages of the timeout set: all are of Redisson ≤ 3.21.0",
        "A later Redisson cannot read them; a redelay client can: `redelay pump QUEUE`. Before you update Redisson: docs/migrating.md",
        hides [];
    Q09 Error 1 "malformed entries",
        "in pages of the timeout set: neither format",
        "A Redisson stands still at one, or delivers it twice. A redelay client puts it into the quarantine when it is due: `redelay pump QUEUE`",
        hides [Q02];
    Q10 Information 1 "bytes behind the payload",
        "in pages of the timeout set: an entry is longer than it says",
        "Redisson and redelay ignore them. Look for the program that writes them",
        hides [];
    Q11 Error 1 "a negative due time",
        "`ZCOUNT -inf (0`",
        "A Redisson spins, and transfers nothing. A redelay client transfers it: `redelay pump --once QUEUE`",
        hides [Q02 Q03];
    Q12 Error 1 "a due time beyond all times",
        "`ZCOUNT 1e15 +inf`",
        "A Redisson fails on it every 5 s when it is the head. Put it into the quarantine: `redis-cli EVAL \"for _, e in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '1e15', '+inf', 'LIMIT', 0, 1000)) do redis.call('RPUSH', KEYS[3], redis.call('ZSCORE', KEYS[1], e), e) redis.call('LREM', KEYS[2], 1, e) redis.call('ZREM', KEYS[1], e) end\" 3 TIMEOUT_SET ORDERED_LIST QUARANTINE`",
        hides [];
    Q13 Warning 1 "a due time with a fraction",
        "in pages of the timeout set",
        "A Redisson transfers it up to 5 s late. Round it up: `redis-cli EVAL \"local all = redis.call('ZRANGE', KEYS[1], 0, 9999, 'WITHSCORES') for i = 1, #all, 2 do local due = tonumber(all[i + 1]) if due % 1 > 0 then redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', math.ceil(due)), all[i]) end end\" 1 TIMEOUT_SET`",
        hides [];
    Q14 Warning 1 "a due time in seconds",
        "`ZCOUNT 1 1e11`",
        "It is delivered at once, as due in 1970. Before that: `redis-cli EVAL \"for _, e in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], 1, '1e11', 'LIMIT', 0, 1000)) do redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', redis.call('ZSCORE', KEYS[1], e) * 1000), e) end\" 1 TIMEOUT_SET`. Then correct its producer",
        hides [];
    Q15 Warning 1 "due in more than ten years",
        "`ZCOUNT` from ten years on",
        "A producer may have given microseconds. Cancel it, or give it another time: PendingEntry::ticket and DelayedQueue::reschedule",
        hides [];
    Q16 Error 1 "a key of another type",
        "`TYPE` of the timeout set, the ordered list or the target",
        "Each call that needs it is refused. Rename it, so that nothing of it is lost: `redis-cli RENAMENX KEY ASIDE`",
        hides [Q01 Q02 Q03 Q04 Q05 Q06 Q24 K04];
    Q17 Error 1 "a key of redelay has another type",
        "`TYPE` of redelay's keys",
        "Each call that needs it is refused. Rename it, so that nothing of it is lost: `redis-cli RENAMENX KEY ASIDE`",
        hides [Q30 Q31 Q32 Q33 Q34 Q36 Q39 Q40 K04];
    Q18 Error 1 "its keys are in several slots",
        "the name, in a cluster: braces that are not a pair, or nothing in them",
        "Scripts are refused. Choose a name without braces, or with a pair around something",
        hides [Q01 Q02 Q03 Q04 Q05 Q24 K04];
    Q19 Warning 1 "two queues share the pending keys",
        "`TYPE` of both targets: `q` and `{q}` exist",
        "A process moves what is due to the target of the name that it uses. Use one of the names only, and move the payloads of the other one",
        hides [];
    Q20 Error 1 "pending entries expire",
        "`PTTL` of the timeout set and of the ordered list",
        "The server will delete all of them. Unless that is wanted: `redis-cli PERSIST TIMEOUT_SET` and `redis-cli PERSIST ORDERED_LIST`",
        hides [];
    Q21 Warning 1 "long payloads",
        "in pages of the timeout set: an entry of more than 1 MiB",
        "Each is stored twice, and holds the server up when it moves. Keep such content elsewhere, and its address in the payload",
        hides [];
    Q22 Warning 1 "payloads of several codecs",
        "a sample of 10 payloads",
        "A consumer fails on those that its codec cannot read. `redelay list QUEUE` says which they are",
        hides [];
    Q23 Information 1 "a codec that redelay cannot read",
        "a sample of 10 payloads: Java serialization, JBoss Marshalling, Smile",
        "Java reads them. If a Rust program is to: use another codec",
        hides [];
    Q24 Warning 3 "no client takes",
        "100 payloads or more are ready, in three looks within 6 s neither fewer nor the first one taken, none is in flight, and no receiver was active for a minute",
        "Start a consumer. If the queue was given up, end the services that hold its delayed queue, or call DelayedQueue::destroy in them",
        hides [];
    Q26 Warning 1 "entries in the quarantine",
        "`LLEN`",
        "They cannot be read: `redelay list QUEUE quarantine`. Requeue or remove them: DelayedQueue::quarantine",
        hides [];
    Q27 Information 1 "the queue is paused",
        "the control hash",
        "Receivers get nothing until BlockingQueue::resume",
        hides [Q24 Q28 Q30 Q32 Q33];
    Q28 Warning 3 "a limit holds receivers back",
        "the control hash: at most 0 in flight; or as many as may be, and in three looks not fewer ready",
        "Change it: BlockingQueue::set_max_in_flight",
        hides [Q24];
    Q29 Warning 1 "the server's clock went back",
        "`back` in the control hash",
        "Leases and retries end later by as much. Receivers note when it is over; let the clock be set in small steps (NTP)",
        hides [];
    Q30 Error 2 "leases without a receiver",
        "`ZCOUNT` of the leases; no receiver was active for a minute",
        "Start a consumer. Or make the messages ready again: BlockingQueue::release_all",
        hides [];
    Q31 Error 2 "claims and messages differ",
        "1,000 fields and members each: a lease or a retry without a message, or a message without both",
        "A receiver of redelay puts it right within a minute, a lease when it has ended: start a consumer",
        hides [Q30 Q32];
    Q32 Error 2 "retries without a receiver",
        "`ZCOUNT` of the retries; no receiver was active for a minute",
        "Start a consumer. Or make the messages ready again: BlockingQueue::release_all",
        hides [];
    Q33 Error 3 "payloads stay in the inbox",
        "the first one is the same in three looks within 6 s, and no receiver was active for a minute",
        "The receiver that they were moved for has died. Start a consumer, or make them ready again: BlockingQueue::release_all",
        hides [];
    Q34 Information 1 "dead letters",
        "`ZCARD`",
        "`redelay list QUEUE dead` says why. Requeue or remove them: BlockingQueue::dead_letters",
        hides [];
    Q35 Error 3 "dead letters cannot be sent on",
        "a negative score in three looks within 6 s",
        "Their other queue refuses them, or no receiver lives. Start a consumer, and see its event redelay.forward.failing",
        hides [];
    Q36 Error 2 "lists of dead letters differ",
        "1,000 fields and members each of `dead` and `dead-messages`",
        "A client that transfers puts it right within a minute: `redelay pump QUEUE`. What is no letter is left alone: remove it",
        hides [];
    Q37 Error 1 "payloads that a crash has left",
        "ids of unconfirmed pops that are older than a minute",
        "A process has popped them, and died. Make them ready again: BlockingQueue::unconfirmed_pops, requeue_all",
        hides [];
    Q38 Information 1 "copies of popped payloads do not expire",
        "`PTTL`",
        "Clients lack the permission +pexpire. Grant it, and then: `redis-cli PEXPIRE KEY 604800000`",
        hides [];
    Q39 Error 2 "a schedule does not run",
        "`ZCOUNT` of the schedules: a next run that should have been stored a minute ago",
        "Start a service that holds the delayed queue; one with the feature `cron`, if it is a cron expression. If the queue is full: see Q44",
        hides [];
    Q40 Error 2 "schedules and their records differ",
        "1,000 fields and members each",
        "A client that transfers puts it right within a minute: `redelay pump QUEUE`",
        hides [Q39];
    Q41 Information 1 "ids of jobs that are gone",
        "100 fields: due an hour ago, and not pending",
        "They do no harm. A client that transfers removes them: `redelay pump QUEUE`",
        hides [];
    Q42 Error 1 "a partition beyond the number",
        "the number in its name, and the recorded number",
        "No client of the partitioned queue has it open. Take what is in it with a client of this very name",
        hides [];
    Q43 Information 1 "longer than what is checked",
        "`ZCARD` and `LLEN`: of a queue, the first 10,000 entries or 16 MiB are read",
        "The other entries are counted only",
        hides [];
    Q44 Warning 2 "the queue is full",
        "`ZCARD`, and `max_pending` in the control hash: as many entries are pending as may be",
        "Offers end with Full, and schedules do not run. Wait until entries become due, cancel some, or raise the limit: DelayedQueue::set_max_pending. `redelay list QUEUE` shows them. If entries are overdue: see Q01, Q02 and Q03",
        hides [];
    K01 Information 1 "receipts of lost replies",
        "`SCAN`: 100 receipts or more that are older than a minute",
        "Replies to offers were lost, or processes have died. Nothing to do: they expire within a day",
        hides [];
    K02 Error 1 "a throttle that does not expire",
        "`SCAN`, `PTTL`",
        "It refuses its id, or its payload, indefinitely. Delete it: `redis-cli UNLINK KEYS`",
        hides [];
    K03 Information 1 "a scratch key",
        "`SCAN`",
        "It does no harm, and is in the way of no script. Delete it: `redis-cli UNLINK KEYS`",
        hides [];
    K04 Warning 1 "keys of a queue that is gone",
        "nothing is in it, no client has it open, and no receiver was active for a week",
        "Delete them, unless a service will come back: `redis-cli UNLINK KEYS`",
        hides [];
    S01 Error 1 "the server may delete queues",
        "`INFO`: maxmemory_policy, evicted_keys",
        "It may delete a whole queue when its memory is full: `redis-cli CONFIG SET maxmemory-policy noeviction`",
        hides [];
    S02 Warning 1 "the memory is nearly full",
        "`INFO`: used_memory is more than 80 % of maxmemory",
        "Offers will be refused. Give it more memory",
        hides [];
    S03 Error 1 "no persistence",
        "`INFO`: aof_enabled; `CONFIG GET save`",
        "A restart loses everything: `redis-cli CONFIG SET appendonly yes`, and in its configuration file",
        hides [];
    S04 Error 1 "saving fails",
        "`INFO`: the status of the last snapshot, and of the last write to the append-only file",
        "See the log of the server and its disk. Then: `redis-cli BGSAVE`",
        hides [];
    S05 Error 1 "the server is too old",
        "it is older than 6.2",
        "Upgrade it",
        hides [];
    S06 Warning 1 "idle connections are closed",
        "`CONFIG GET timeout`, below 60 s",
        "Clients test an idle connection for commands after 30 s. If the server closes it sooner, they open it again and again: `redis-cli CONFIG SET timeout 0`, or 60 or more. Waiting takers and subscriptions are never closed",
        hides [];
    S07 Warning 1 "the server accepts no writes",
        "`INFO`: this is a replica; its link is down; or fewer replicas than min-replicas-to-write",
        "Connect to the master, restore the link, or start a replica",
        hides [];
    S08 Error 1 "the cluster is not whole",
        "`CLUSTER INFO`, `CLUSTER NODES`: slots without a server, or half moved; or a master does not answer",
        "Queues in these slots stand still: redis-cli --cluster fix",
        hides [];
    S09 Warning 1 "full coverage is required",
        "`CONFIG GET cluster-require-full-coverage`",
        "When one slot has no server, all queues stand still: `redis-cli CONFIG SET cluster-require-full-coverage no`, on each server",
        hides [];
    S10 Warning 1 "the clocks of servers differ",
        "`TIME` of each master, by more than 50 ms and the round trips",
        "What is due is delivered by the clock of its master. Let NTP set them",
        hides [];
    S11 Warning 1 "permissions are missing",
        "`INFO errorstats`: the server refuses commands of some client while doctor looks",
        "`redis-cli ACL LOG` says whose and which. docs/deployment.md has those that clients need",
        hides [];
    S12 Warning 1 "clients or scripts pile up",
        "`INFO`: more than 90 % of maxclients; 500 cached scripts or more",
        "Some program does not close its connections, or sends scripts with changing text",
        hides [];
    S13 Information 1 "keys in other databases",
        "`INFO keyspace`, and no queue in this database",
        "The queues may be there: `/3` at the end of the URL is database 3",
        hides [];
    S14 Unknown 1 "CONFIG does not exist",
        "the reply to `CONFIG GET`, as of managed services",
        "Ask the provider for persistence (save, appendonly) and timeout",
        hides [];
    S15 Warning 1 "sentinels are missing, or disagree",
        "each sentinel: the master that it names, and `SENTINEL CKQUORUM`",
        "A failover may not come about, or services may follow different masters. Start the sentinels that are missing, and compare what SENTINEL MASTER says on each",
        hides [];
}

impl Code {
    pub(crate) fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.code == self).expect("each code is that of a row")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Row {
    /// The parts of its fix: text, and commands.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let parts = self.fix.split('`').enumerate();
        let is_command = |part: &str| part.starts_with("redelay ") || part.starts_with("redis-cli ");
        parts.map(move |(at, part)| (part, at % 2 == 1 && is_command(part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- The findings of crates/redelay-cli/src/doctor/codes.rs. -->\n";
    const END: &str = "<!-- End of the findings. -->\n";

    /// The table of the documentation.
    fn markdown() -> String {
        let mut text =
            "| code | | finding | how it is seen | what it means, and what to do |\n|---|---|---|---|---|\n"
                .to_owned();
        for row in ROWS {
            let Row { code, severity, title, seen, fix, looks, .. } = row;
            let looks = if *looks > 1 { format!("; {looks} looks") } else { String::new() };
            text += &format!("| {code} | {} | {title} | {seen}{looks} | {fix} |\n", severity.letter());
        }
        text
    }

    #[test]
    fn the_documentation_has_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let (front, rest) = page.split_once(BEGIN).expect("where the table begins");
        let (table, rest) = rest.split_once(END).expect("where the table ends");
        if table != markdown() {
            if std::env::var_os("REDELAY_BLESS").is_some() {
                std::fs::write(path, format!("{front}{BEGIN}{}{END}{rest}", markdown())).expect("the page");
                return;
            }
            panic!("the table in docs/operate.md is another one: REDELAY_BLESS=1 writes it");
        }
    }

    #[test]
    fn a_cell_has_no_bar() {
        for row in ROWS {
            for text in [row.title, row.seen, row.fix] {
                assert!(!text.contains(['|', '\n']), "{}", row.code);
            }
        }
    }
}
