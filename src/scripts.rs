//! The Lua scripts, one file each, and how they are called.
//!
//! Every try of a call has a number, its *tag*, which its reply repeats. Two things would otherwise hand a
//! reply to the wrong caller: a server or a proxy that sends one reply too many; and the client library,
//! which takes an array of three or four strings that begins with `message`, `subscribe` or the like for a
//! pub/sub message, and drops it. (It changes such an array within another one, too, so a list of strings
//! that others wrote is never nested.)

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::conn::{Command, Conn, Digits, OpError, Reply, line_of, without_position};
use crate::wire::keys::Keys;

/// How long the server keeps a receipt, by which a retry after a lost reply learns what the first try did. It
/// must be longer than an outage of the server, and than its clock may jump meanwhile: a failover can bring
/// another clock.
pub(crate) const REMEMBERED_MS: u32 = 24 * 3_600_000;

/// The most bytes of payloads that one call of a script takes, about: the one with which it exceeds them is
/// the last.
const TAKEN_BYTES: usize = 1_048_576;
/// About how many bytes a call returns to the server. What cannot be sent in time is sent again and again.
const SENT_BYTES: usize = 131_072;

/// A place in a sorted set: a score as the server wrote it, and a member. Both are empty in front of the
/// first one.
pub(crate) type SetCursor = [Bytes; 2];

/// One script: its source, the SHA-1 of the text that the server gets, and the names of its keys, in order.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    sha1: &'static str,
    keys: &'static [&'static str],
}

/// Each script with its SHA-1, the names of its keys, and its files: parts first, the script itself last.
///
/// One key of each script that removes something is always absent: the scratch key, a receipt, or a channel.
/// So a server of a cluster refuses to run it while it hands its slot over. Otherwise a key that the script
/// empties would end it there, half-way.
macro_rules! scripts {
    ($($name:ident: $sha1:literal, [$($key:ident),*], [$($file:literal),+];)+) => {
        $(pub(crate) static $name: Script = Script {
            source: concat!($(include_str!(concat!("scripts/", $file, ".lua"))),+),
            sha1: $sha1,
            keys: &[$(stringify!($key)),*],
        };)+

        #[cfg(all(test, workspace))]
        const ALL: &[(&str, &Script, &[&str])] = &[$((stringify!($name), &$name, &[$($file),+])),+];
    };
}

scripts! {
    OFFER: "8f9b7d9906013ccc9d066dc802da39d044f5a62e",
        [timeout_set, ordered_list, channel, receipt, control],
        ["parts/max_pending", "offer"];
    TRANSFER: "3a9de0055f9df9e05fae04fff5eab3c645ec502e",
        [timeout_set, ordered_list, target, quarantine, channel, scratch, jobs, rebuild],
        ["parts/now", "transfer/begin", "parts/entry", "transfer/jobs", "transfer/few", "parts/clock", "parts/permitted",
         "transfer/find", "transfer/take_out", "transfer/move", "transfer/rebuild", "transfer"];
    OFFER_JOBS: "607fd301d3156c22cf8197523f816bd985c4315f",
        [timeout_set, ordered_list, channel, receipt, jobs, scratch, control, notes, rebuild],
        ["parts/max_pending", "parts/job_bytes", "offer_jobs/begin", "parts/permitted", "parts/field", "parts/job", "parts/nearer_end", "parts/list_again",
         "parts/unthrottled", "parts/unheld", "offer_jobs"];
    OFFER_THROTTLED: "0502f8c139bd6c06b75a53311c4dd275461b4dae",
        [timeout_set, ordered_list, channel, receipt, jobs, scratch, control, notes, rebuild],
        ["parts/max_pending", "parts/job_bytes", "offer_jobs/begin", "parts/permitted", "parts/field", "parts/job", "parts/nearer_end", "parts/list_again",
         "parts/throttled", "parts/unheld", "offer_jobs"];
    OFFER_HELD: "44dedc06942a2e2df90aa521f0082f4b9a4e6ffa",
        [timeout_set, ordered_list, channel, receipt, jobs, scratch, control, target, inbox, messages, retries, dead,
         dead_messages, notes, more_notes, rebuild],
        ["parts/max_pending", "parts/job_bytes", "offer_jobs/begin", "parts/entry", "parts/permitted", "parts/field", "parts/job", "parts/note", "parts/holder",
         "parts/held_offers", "parts/nearer_end", "parts/list_again", "parts/throttled", "offer_jobs"];
    CANCEL_JOBS: "38ce4fa080dd30013bb05c27dbb7058d4cb54e50",
        [timeout_set, ordered_list, jobs, scratch, notes, target, inbox, messages, retries, dead, dead_messages, receivers, more_notes],
        ["parts/entry", "parts/now", "parts/clock", "parts/permitted", "parts/job_bytes", "parts/field", "parts/job", "parts/note", "parts/holder", "parts/nearer_end",
         "cancel_jobs"];
    JOB_STATES: "599a41a685d478f08d6e3148445c28a8d2d17501",
        [timeout_set, jobs, notes, target, inbox, messages, retries, dead, dead_messages, more_notes],
        ["parts/entry", "parts/now", "parts/clock", "parts/job_bytes", "parts/field", "parts/job", "parts/note", "parts/holder", "parts/letter",
         "receive/record", "job_states"];
    READ_JOB: "6ae2885c4010dfb287d7a141a7f2d80c1b17c0cd", [timeout_set, jobs], ["parts/job_bytes", "parts/field", "parts/job", "read_job"];
    AGREE: "fd86419d5069bb69885ef0790cd99c5e8ddd55ba", [set, hash, control, scratch], ["parts/letter", "parts/scan", "agree"];
    SWEEP_JOBS: "78c4058e2d59ad757b028803c98c2a39bad0f97f",
        [timeout_set, jobs, control, dead, dead_messages, notes, target, inbox, messages, more_notes, scratch],
        ["parts/entry", "parts/now", "parts/clock", "parts/job_bytes", "parts/field", "parts/job", "parts/note", "parts/scan", "parts/apart", "sweep_jobs"];
    RESCHEDULE_JOB: "a975eb7c01876355593c359bc666d31793d5aaf9",
        [timeout_set, channel, jobs, notes, target, inbox, messages, retries, dead, dead_messages, receivers, more_notes, ordered_list, rebuild],
        ["parts/entry", "parts/job_bytes", "parts/field", "parts/job", "parts/note", "parts/holder", "parts/list_again", "parts/reschedule", "reschedule_job"];
    READ_SCHEDULES: "d10a520b667e41839b39bef82db03a2325b158ac", [schedules, records], ["read_schedules"];
    CHANGE_SCHEDULE: "3945c3973b33050ee3cf9e89dafe135b307a398d",
        [timeout_set, ordered_list, channel, jobs, scratch, schedules, records, notes, more_notes, control, target, inbox],
        ["parts/entry", "parts/permitted", "parts/job_bytes", "parts/field", "parts/job", "parts/note", "parts/held_offers",
         "parts/max_pending", "change_schedule"];
    CANCEL: "3bbedfd316d3669aa8679e6998dc0747eede48cb",
        [timeout_set, ordered_list, scratch, jobs, notes, more_notes],
        ["parts/permitted", "parts/job_bytes", "parts/field", "parts/note", "parts/forget", "cancel"];
    RESCHEDULE: "26d2fa9e7aa24a6f7ef3e6336b022a9f76c27eb0", [timeout_set, channel, jobs, notes, more_notes, ordered_list, rebuild], ["parts/job_bytes", "parts/field", "parts/job", "parts/note", "parts/list_again", "parts/reschedule", "reschedule"];
    POLL: "486102ec7be87f078981b26dfb7ee22cefd3cd7b",
        [timeout_set, ordered_list, quarantine, claims, scratch, jobs],
        ["parts/entry", "parts/permitted", "parts/claims", "poll"];
    FORGET_JOBS: "70b5c4a25dc52334c47388069c7d69cbe7954b0a",
        [timeout_set, jobs, notes, more_notes, scratch],
        ["parts/job_bytes", "parts/field", "parts/note", "forget_jobs"];
    RESTORE_ENTRIES: "cfc2595b9808d8d158358487b7ee132030f51b42",
        [timeout_set, ordered_list, channel, receipt, scratch],
        ["parts/permitted", "parts/restore", "restore_entries"];
    FIELDS: "81be34c4da31080dc37c8727c8bb7e27079404c9", [hash], ["parts/scan", "fields"];
    READ_CLAIMS: "70c4fd558c98bfaab189fef90851572b92cc6e88", [claims], ["parts/stored_claim", "read_claims"];
    REQUEUE_CLAIM: "87f9b4df4e4421dd289c526afc2dc3f7d9ac0c97",
        [claims, target, timeout_set, ordered_list, channel, scratch],
        ["parts/stored_claim", "parts/permitted", "parts/restore", "requeue_claim"];
    CONTAINS: "7579c473dc3221a4d91d02136889e7627aeef4b2", [list], ["parts/entry", "parts/search", "contains"];
    CONTAINS_READY: "ef1be40e5d9e1c912e46b22568b1929cb20c34f5",
        [list],
        ["parts/raw_payload", "parts/search", "contains"];
    REMOVE: "37f94cdb12884d9cd0a09598d0af69faf202a831",
        [timeout_set, list, scratch, jobs, notes, more_notes],
        ["parts/entry", "parts/search", "parts/permitted", "parts/job_bytes", "parts/field", "parts/note", "parts/forget", "remove"];
    REMOVE_READY: "948307f95cb1caf1e71354fec56e3026d1ec57d0",
        [list, scratch, timeout_set, jobs, notes, more_notes],
        ["parts/search", "parts/permitted", "parts/job_bytes", "parts/field", "parts/note", "parts/travelling", "parts/forget_ready", "remove_ready"];
    REMOVE_FIRST: "ad12a54095d9d5f224439fde5bf7a4dc8b922b6d",
        [target, timeout_set, jobs, notes, more_notes, scratch],
        ["parts/job_bytes", "parts/field", "parts/note", "parts/travelling", "parts/forget_ready", "remove_first"];
    CLEAR: "ded46913561dc360f6d1cff73f567ff4fea8a87f",
        [timeout_set, ordered_list, scratch, jobs, notes, more_notes],
        ["parts/permitted", "parts/job_bytes", "parts/field", "parts/note", "parts/forget", "clear"];
    CLEAR_READY: "5f2b9df574d791cc1b9bfcea3c2a88d14c3c5e85",
        [target, timeout_set, jobs, notes, more_notes, scratch],
        ["parts/job_bytes", "parts/field", "parts/note", "parts/travelling", "parts/forget_ready", "clear_ready"];
    LEN: "a17b1e228a8128502277d9ba151228ddf2e30eba", [timeout_set, ordered_list, rebuild], ["len"];
    RANGE: "52d6eaed489346d0b597845ee030a4dbf28ffbe3", [list], ["parts/page", "range"];
    POLL_LAST_AND_OFFER_FIRST_TO: "e230d40b0e2af1adc7679588659b7df5ad89875f",
        [timeout_set, ordered_list, quarantine, destination, scratch, jobs, notes, more_notes],
        ["parts/entry", "parts/permitted", "parts/job_bytes", "parts/field", "parts/note", "parts/forget", "poll_last_and_offer_first_to"];
    OVERDUE: "eb2b0b878ccbfed9a5bf7e39c7d029759c65f302", [], ["overdue"];
    PERMISSIONS: "1bc5eabc05786d72a63363f8928708233dc2f4a3", [], ["permissions"];
    EXPIRE: "3e0bd7f87fab20b86fecbcd3bffe9a43522be919", [timeout_set, ordered_list], ["expire"];
    RECEIVE: "1d3118005131532e1b88143dfac3cb0dab0760a8",
        [target, inbox, messages, leases, retries, receipts, dead, dead_messages, control, channel, timeout_set, jobs,
         notes, more_notes],
        ["receive/begin", "receive/acknowledge", "receive/many", "parts/job_bytes", "parts/field", "parts/note", "parts/travelling",
         "receive/record", "receive/many_jobs", "parts/scan", "parts/apart", "receive/jobs", "receive/make_ready", "receive/dead",
         "receive/settle", "receive/recover", "receive/limits", "receive/claim", "receive"];
    READ_MESSAGES: "18b4058f0fb9bfce126cb76fd4c19360183801c2",
        [set, messages],
        ["parts/behind", "read_messages"];
    READ_IN_FLIGHT: "09e7aed5eb235d6bddb74e5c92738ff0940f3002", [messages, leases], ["read_in_flight"];
    READ_DEAD: "9006eecaa88e995bcf95e9ff118acc132df78eb7",
        [set, dead_messages],
        ["parts/behind", "parts/letter", "read_dead"];
    REQUEUE_DEAD: "ccfc3a94ea8955dc13cd814b8b5eca65f4c54b6f",
        [dead, dead_messages, messages, retries, scratch, channel, jobs, notes, more_notes],
        ["parts/permitted", "parts/letter", "parts/job_bytes", "parts/field", "parts/note", "receive/record", "receive/jobs", "requeue_dead"];
    REMOVE_DEAD: "c16904476ab43a5cd3f0cb00f06ae23b8b9bf8cb",
        [dead, dead_messages, scratch],
        ["parts/permitted", "remove_dead"];
    REMOVE_MESSAGE: "a017c8069741b1628378c4afb7029e38733b0ebf",
        [messages, leases, retries, scratch, channel, jobs, notes, more_notes],
        ["parts/permitted", "parts/job_bytes", "parts/field", "parts/note", "receive/record", "receive/jobs", "remove_message"];
    RELEASE_ALL: "92dffc4c4cfef247b3663dd876f6abb0073c2bd6",
        [target, inbox, messages, leases, retries, control, scratch, jobs, notes, more_notes],
        ["parts/permitted", "parts/job_bytes", "parts/field", "parts/note", "receive/record", "receive/jobs", "receive/make_ready", "release_all"];
    TAKE: "1bb3a2aa309a88cb5b613129bc3fa914c9031221", [target, claims, scratch], ["parts/claims", "take"];
    TAKE_ANY: "4f582e70d8778fe2cc3fd35b026dc2ac7d79dcf9", [], ["take_any"];
    RETURN_TO_LIST: "db61acea842bebbc0a8c68759f9f38181964c0d7",
        [target, receipt, scratch],
        ["parts/permitted", "return_to_list"];
    STATS: "993e75e3c774ff9987e74ba9fc311ea92eb837e2",
        [timeout_set, ordered_list, target, quarantine, claims, leases, retries, dead, control],
        ["stats"];
    READ_QUARANTINE: "120ce96644420792f49eb150571b537dbbbab558",
        [quarantine],
        ["parts/quarantine_pairs", "parts/page", "read_quarantine"];
    REQUEUE_QUARANTINED: "fc9bd522959bd6b6617581cfc2800a5cd647a195",
        [timeout_set, ordered_list, quarantine, channel, scratch],
        ["parts/quarantine_pairs", "parts/permitted", "requeue_quarantined"];
    REMOVE_QUARANTINED: "df5e3e15936bdabbf0ef2ec8620603283f57280c",
        [quarantine, scratch],
        ["parts/quarantine_pairs", "parts/permitted", "remove_quarantined"];
}

/// What surrounds the source of each script. The tag is the last argument, and not one of the script's own.
/// It becomes the first element of a reply that is an array; any other reply is put into a new array, behind
/// the tag. So is an array of one array, which would look like that.
const TAG_BEFORE: &str = "local tag = tonumber(table.remove(ARGV)) local function script()";
const TAG_BEHIND: &str = "end local reply = script()
if type(reply) ~= 'table' or #reply == 1 and type(reply[1]) == 'table' then return {tag, {reply}} end
if not reply.err then table.insert(reply, 1, tag) end
return reply";

/// Whether a call that takes may have left payloads because these were so long.
pub(crate) fn is_full(lengths: impl Iterator<Item = usize>) -> bool {
    lengths.sum::<usize>() > TAKEN_BYTES
}

/// What each call has of these: up to `most` of them, and few enough bytes for a slow link.
pub(crate) fn in_parts<T>(
    all: &[T],
    most: usize,
    bytes: impl Fn(&T) -> usize,
) -> impl DoubleEndedIterator<Item = &[T]> {
    let (mut parts, mut rest) = (Vec::new(), all);
    while !rest.is_empty() {
        let mut before = 0;
        let has_room = |one: &&T| {
            let is_full = before > SENT_BYTES;
            before += bytes(one);
            !is_full
        };
        let (part, others) = rest.split_at(rest.iter().take(most).take_while(has_room).count());
        parts.push(part);
        rest = others;
    }
    parts.into_iter()
}

impl Script {
    /// A call, executed at most once unless it is made [`idempotent`](Call::idempotent).
    pub(crate) fn on(&'static self, keys: &[&Bytes]) -> Call {
        debug_assert_eq!(keys.len(), self.keys.len(), "number of keys");
        Call { script: self, command: Command::script(self.sha1).script_keys(keys.iter().copied().cloned()) }
    }

    /// The same on the keys of this queue, by their names; `receipt` is the one that is not of the queue
    /// alone.
    pub(crate) fn of(&'static self, keys: &Keys, receipt: Option<&Bytes>) -> Call {
        let key = |name: &&str| match (*name, receipt) {
            ("receipt", Some(receipt)) => receipt.clone(),
            (name, _) => keys.named(name),
        };
        Call { script: self, command: Command::script(self.sha1).script_keys(self.keys.iter().map(key)) }
    }

    /// What is sent to the server: the source without comments, indentation and blank lines, between two
    /// lines that add the tag to its reply, and with `KEYS[1]` in place of `KEYS.timeout_set`. It is needed
    /// once per script and server, so it is not kept. A test checks that no string in the source contains
    /// `--`.
    fn text(&self) -> String {
        let code = |line: &'static str| line.split("--").next().unwrap_or_default().trim();
        let lines = self.source.lines().map(code).filter(|code| !code.is_empty());
        let lines = [TAG_BEFORE].into_iter().chain(lines).chain([TAG_BEHIND]);
        let named = lines.collect::<Vec<_>>().join("\n");
        let mut pieces = named.split("KEYS.");
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let is_behind = |letter: char| letter != '_' && !letter.is_ascii_lowercase();
            let (name, rest) = piece.split_at(piece.find(is_behind).unwrap_or(piece.len()));
            // A test checks that the script has each key.
            let number = self.keys.iter().position(|key| *key == name).map_or(0, |at| at + 1);
            text += &format!("KEYS[{number}]{rest}");
        }
        text
    }
}

impl Script {
    /// How long a call takes at most until there is a reply or an error: with the SHA-1, and with the text.
    /// It puts the text together.
    pub(crate) fn longest(&self, conn: &Conn) -> Duration {
        let with_text = conn.for_long(self.text().len()).command_timeout();
        conn.command_timeout().saturating_add(with_text)
    }

    /// The server's error without the place in the script, and with the command that the server lacks, or
    /// that Redis 6.2 forbids: it does not name that one.
    fn explained(&self, why: &str) -> String {
        let error = without_position(why);
        let names_none = ["Unknown Redis command", "Unknown command", "can't run this command"];
        if !names_none.iter().any(|words| error.contains(words)) {
            return error.to_owned();
        }
        let text = self.text();
        let line = line_of(why).and_then(|line| text.lines().nth(line.checked_sub(1)?));
        let mut names: Vec<&str> = line.into_iter().flat_map(called).collect();
        if names.is_empty() {
            // It is one of those whose errors the script handles. What it tries out on its scratch key may be
            // more than it uses.
            names.extend(self.source.lines().filter(|line| !line.contains("KEYS.scratch")).flat_map(called));
            names.sort_unstable();
            names.dedup();
        }
        format!("{error}: {}", names.join(", "))
    }
}

/// The commands in this line of a script.
fn called(line: &str) -> impl Iterator<Item = &str> {
    let is_call = line.contains("call('");
    let quoted = line.split('\'').skip(1).step_by(2).filter(move |_| is_call);
    let is_command = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    const OPTIONS: [&str; 8] = ["WITHSCORES", "LIMIT", "COUNT", "MAXLEN", "RANK", "BYSCORE", "BYLEX", "REV"];
    quoted.filter(is_command).filter(|word| !OPTIONS.contains(word))
}

/// One call of a script.
#[derive(Debug)]
pub(crate) struct Call {
    script: &'static Script,
    command: Command,
}

impl Call {
    #[must_use]
    pub(crate) fn arg(self, arg: impl Into<Bytes>) -> Self {
        Self { command: self.command.arg(arg), ..self }
    }

    /// More keys than the script always has. They come before the arguments.
    #[must_use]
    pub(crate) fn keys(self, keys: impl IntoIterator<Item = Bytes>) -> Self {
        Self { command: self.command.script_keys(keys), ..self }
    }

    #[must_use]
    pub(crate) fn number(self, number: impl Digits) -> Self {
        Self { command: self.command.number(number), ..self }
    }

    #[must_use]
    pub(crate) fn args(self, args: impl IntoIterator<Item = Bytes>) -> Self {
        Self { command: self.command.args(args), ..self }
    }

    /// Declares that executing it twice has the effect of executing it once. It is then sent again after a
    /// lost reply.
    #[must_use]
    pub(crate) fn idempotent(self) -> Self {
        Self { command: self.command.idempotent(), ..self }
    }

    /// Declares that it changes nothing. So it is idempotent, and an error may say that nothing was executed.
    #[must_use]
    pub(crate) fn only_reads(self) -> Self {
        Self { command: self.command.only_reads(), ..self }
    }

    pub(crate) fn is_read(&self) -> bool {
        self.command.is_read()
    }

    /// Sends the text, for a script that is needed once.
    pub(crate) async fn run_once(&self, conn: &Conn) -> Result<Reply, OpError> {
        self.read(conn.call(&self.command.script_text(self.script.text())).await)
    }

    /// Sends the SHA-1; and the text, if the server does not know the script.
    pub(crate) async fn run(&self, conn: &Conn) -> Result<Reply, OpError> {
        self.run_noting(conn, &mut false).await
    }

    /// The same. Notes whether a try was lost, which the server may have executed, or may still execute.
    pub(crate) async fn run_noting(&self, conn: &Conn, lost: &mut bool) -> Result<Reply, OpError> {
        let mut lost_now = false;
        let result = match conn.call_noting(&self.command, &mut lost_now).await {
            // Nothing was executed by this try, so the text may follow. From then on the server knows the
            // script.
            Err(OpError::Server(why)) if why.starts_with("NOSCRIPT") => {
                let text = self.script.text();
                let conn = conn.for_long(text.len());
                conn.call_noting(&self.command.script_text(text), &mut lost_now).await
            }
            result => result,
        };
        *lost |= lost_now;
        self.read(result).map_err(|error| match lost_now && !self.is_read() {
            true => error.after_a_lost_try(),
            false => error,
        })
    }

    fn read(&self, result: Result<Reply, OpError>) -> Result<Reply, OpError> {
        match result {
            Ok(reply) => Ok(untagged(reply.into_array()?)),
            Err(OpError::Server(why)) => Err(OpError::Server(self.script.explained(&why))),
            Err(error) => Err(error),
        }
    }

    /// What a reply of this call says of a refusal, with the names of the keys of another type, or of the
    /// command. The caller has time until `deadline`.
    pub(crate) async fn explained(&self, conn: &Conn, why: String, deadline: Instant) -> String {
        match conn.naming_keys(OpError::Server(why), "EVALSHA", self.command.keys(), deadline).await {
            OpError::Server(why) => self.script.explained(&why),
            error => error.to_string(),
        }
    }
}

/// How many jobs one call is asked for.
const JOBS: usize = 100;

/// What `job_states.lua` says of each of these jobs: a word, a number, a time and a text.
pub(crate) async fn job_states(conn: &Conn, keys: &Keys, ids: &[Bytes]) -> Result<Vec<[Reply; 4]>, OpError> {
    let mut states = Vec::with_capacity(ids.len());
    while states.len() < ids.len() {
        let some = &ids[states.len()..];
        let call = JOB_STATES.of(keys, None).args(some.iter().take(JOBS).cloned());
        let parts = call.only_reads().run(conn).await?.into_array()?;
        let count = parts.len() / 4;
        if count == 0 || count > some.len() || parts.len() % 4 != 0 {
            return Err(conn.desynchronised());
        }
        let mut parts = parts.into_iter();
        let state = |_| std::array::from_fn(|_| parts.next().unwrap_or(Reply::Nil));
        states.extend((0..count).map(state));
    }
    Ok(states)
}

/// The reply of the script, behind its tag.
fn untagged(mut reply: Vec<Reply>) -> Reply {
    match reply.as_mut_slice() {
        [_, Reply::Array(other)] if other.len() == 1 => other.remove(0),
        _ => {
            reply.remove(0);
            Reply::Array(reply)
        }
    }
}

#[cfg(all(test, workspace))]
mod tests;
