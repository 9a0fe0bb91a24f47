//! The Lua scripts, one file each, and how they are called.
//!
//! Every try of a call has a number, its *tag*, which its reply repeats. Two things would otherwise hand a reply to the wrong
//! caller: a server or a proxy that sends one reply too many; and the client library, which takes an array of three or
//! four strings that begins with `message`, `subscribe` or the like for a pub/sub message, and drops it. (It changes such
//! an array within another one, too, so a list of strings that others wrote is never nested.)

use bytes::Bytes;
use tokio::time::Instant;

use crate::conn::{Command, Conn, OpError, Reply, line_of, without_position};
use crate::wire::keys::{Keys, MessageKeys};

/// How long the server keeps a receipt, by which a retry after a lost reply learns what the first try did. It must be
/// longer than an outage of the server, and than its clock may jump meanwhile: a failover can bring another clock.
pub(crate) const REMEMBERED_MS: u32 = 24 * 3_600_000;

/// The most bytes of payloads that one call of a script takes, about: the one with which it exceeds them is the last.
const TAKEN_BYTES: usize = 1_048_576;

/// One script: its source, the SHA-1 of the text that the server gets, and the number of its keys.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    sha1: &'static str,
    keys: usize,
}

/// Each script with the number of its keys, its SHA-1 and its files: parts first, the script itself last.
macro_rules! scripts {
    ($($name:ident: $keys:literal, $sha1:literal, [$($file:literal),+];)+) => {
        $(pub(crate) static $name: Script = Script {
            source: concat!($(include_str!(concat!("scripts/", $file, ".lua"))),+),
            sha1: $sha1,
            keys: $keys,
        };)+

        #[cfg(test)]
        const ALL: &[(&str, &Script, &[&str])] = &[$((stringify!($name), &$name, &[$($file),+])),+];
    };
}

scripts! {
    OFFER: 4, "dbf183cdd2132b7c70217df266f7193b77e8070d", ["offer"];
    TRANSFER: 7, "d1824bbb2739d4d864d1bc44b86e097d44d22f03", [
        "parts/entry", "parts/permitted", "parts/clock", "transfer/find", "transfer/take_out", "transfer/jobs", "transfer/move", "transfer/few",
        "transfer"
    ];
    OFFER_JOBS: 6, "1410b9d93ba3138c8e2f4cb2c5805fad04a2c818", [
        "parts/permitted", "parts/job", "parts/nearer_end", "offer_jobs"
    ];
    CANCEL_JOBS: 4, "727998b88e22143502a3f3aa1625d035aaff67ba", [
        "parts/clock", "parts/permitted", "parts/job", "parts/nearer_end", "cancel_jobs"
    ];
    READ_JOB: 2, "a3835eba6136aa5a5406a3ad85182af12293b59f", ["parts/job", "read_job"];
    AGREE: 2, "04a5c9faa4e0c0419a79083f60d8fc33ec520cae", ["parts/letter", "parts/scan", "agree"];
    SWEEP_JOBS: 5, "8f158bedb3cc7ae5f1e8a5f674f5d3a372ebbd97", ["parts/clock", "parts/job", "sweep_jobs"];
    RESCHEDULE_JOB: 3, "a58ffadc7c2cfbeefdaae876b7da90f4b9089d3e", ["parts/job", "reschedule_job"];
    READ_SCHEDULES: 2, "2d534c312bb326cbbf2fbdf829fa40cd83288a5e", ["read_schedules"];
    CHANGE_SCHEDULE: 7, "0440d5741eb84056a61fa8f6106bf01790d3e042", ["parts/permitted", "parts/job", "change_schedule"];
    CANCEL: 3, "93ef6c42ca5be56059c504d14535b674133d2902", ["parts/permitted", "cancel"];
    RESCHEDULE: 2, "e9efff77b097054feb4b0b2351148139e60aec5c", ["reschedule"];
    POLL: 5, "c41d74e42a8a89baba7fd517e766acf96b11dbdc", ["parts/entry", "parts/permitted", "parts/claims", "poll"];
    RESTORE_ENTRIES: 5, "f3e7d380d072d0b6f7f76bee7ee261a5c260e631", ["parts/permitted", "parts/restore", "restore_entries"];
    CLAIM_IDS: 1, "ec60e70dd85ca2792f7ee218a985010cd6debcf9", ["parts/scan", "claim_ids"];
    READ_CLAIMS: 1, "92cbc7bdaa145e5f0204d4e51a3faff09549c2a4", ["parts/stored_claim", "read_claims"];
    REQUEUE_CLAIM: 6, "162d6b55ed07e278c811f716a6207b3471eea105", [
        "parts/stored_claim", "parts/permitted", "parts/restore", "requeue_claim"
    ];
    CONTAINS: 1, "d9a3981e63be1b50f20f338bb98271379d649ca5", ["parts/entry", "parts/search", "contains"];
    CONTAINS_READY: 1, "61510b0a6de46cc5e140209184145f58c7f8d039", ["parts/raw_payload", "parts/search", "contains"];
    REMOVE: 3, "1d615e43263041413be283f5c85a2fa4825f7c39", ["parts/entry", "parts/search", "parts/permitted", "remove"];
    REMOVE_READY: 2, "5c76916fe64434e2dedb111adc044e83cfb027ab", ["parts/search", "parts/permitted", "remove_ready"];
    RANGE: 1, "040b28445e81cde4eb64208bfdf24dc1de5bb210", ["range"];
    POLL_LAST_AND_OFFER_FIRST_TO: 5, "f11d127693199823921b9750d0bfdda2f85affde", [
        "parts/entry", "parts/permitted", "poll_last_and_offer_first_to"
    ];
    OVERDUE: 0, "822b4e005e6181158dd7e78e6d89bf3dfaa2e979", ["overdue"];
    PERMISSIONS: 0, "3061e7c34b44239d74e83258be8202c3d7fc7505", ["permissions"];
    EXPIRE: 2, "e4b68d2504e8ba21e327322d34f280d8b44d2c26", ["expire"];
    RECEIVE: 10, "06f5ac599d07e73fbc58f64f04b6406ea255c888", [
        "parts/scan", "receive/record", "receive/dead", "receive/settle", "receive/recover", "receive/limits",
        "receive/claim", "receive"
    ];
    READ_MESSAGES: 2, "aecc745174679a77e4c6d5f5cfa8cc12978ee87c", ["read_messages"];
    READ_DEAD: 2, "511916e1287da7d60e99a06700aed5987f1a0517", ["parts/letter", "read_dead"];
    REQUEUE_DEAD: 6, "7de7a5bda38b9ce52aeff1fd2721be380abe36c4", [
        "parts/permitted", "parts/letter", "receive/record", "requeue_dead"
    ];
    REMOVE_DEAD: 3, "935074a4127b7abeda002c55c3994001623b7ac6", ["parts/permitted", "remove_dead"];
    REMOVE_MESSAGE: 5, "64d6ea8596b659b71a9965e76d06119c2f9ab0cd", ["parts/permitted", "receive/record", "remove_message"];
    RELEASE_ALL: 7, "bfd49922cb5f3428c50b10134973deff1a542348", ["parts/permitted", "receive/record", "release_all"];
    TAKE: 2, "41703d8d8f0b1018a80dfac49e80e6b1cf4b08e2", ["parts/claims", "take"];
    RETURN_TO_LIST: 3, "bb9914750b8cc99495a32ed412aa7f7ab4b24c4f", ["parts/permitted", "return_to_list"];
    STATS: 9, "993e75e3c774ff9987e74ba9fc311ea92eb837e2", ["stats"];
    REQUEUE_QUARANTINED: 5, "7c06db551bbdb16f89944d62aceaa3293eba5894", [
        "parts/quarantine_pairs", "parts/permitted", "requeue_quarantined"
    ];
    REMOVE_QUARANTINED: 2, "c43a790595859bed6d55f0825b22f90622ac0bd6", [
        "parts/quarantine_pairs", "parts/permitted", "remove_quarantined"
    ];
}

/// What surrounds the source of each script. The tag is the last argument, and not one of the script's own. It becomes the
/// first element of a reply that is an array; any other reply is put into an array of its own, behind the tag. So is an
/// array of one array, which would look like that.
const TAG_BEFORE: &str = "local tag = tonumber(table.remove(ARGV)) local function script()";
const TAG_BEHIND: &str = "end local reply = script()
if type(reply) ~= 'table' or #reply == 1 and type(reply[1]) == 'table' then return {tag, {reply}} end
if not reply.err then table.insert(reply, 1, tag) end
return reply";

/// Whether a call that takes may have left payloads because these were so long.
pub(crate) fn is_full(lengths: impl Iterator<Item = usize>) -> bool {
    lengths.sum::<usize>() > TAKEN_BYTES
}

impl Script {
    /// A call, executed at most once unless it is made [`idempotent`](Call::idempotent).
    pub(crate) fn on(&'static self, keys: &[&Bytes]) -> Call {
        debug_assert_eq!(keys.len(), self.keys, "number of keys");
        Call {
            script: self,
            command: Command::script(self.sha1).script_keys(keys.iter().copied().cloned()),
            idempotent: false,
            only_reads: false,
        }
    }

    /// What is sent to the server: the source without comments, indentation and blank lines, between two lines that
    /// add the tag to its reply. It is needed once per script and server, so it is not kept. A test checks that no string
    /// in the source contains `--`.
    fn text(&self) -> String {
        let code = |line: &'static str| line.split("--").next().unwrap_or_default().trim();
        let lines = self.source.lines().map(code).filter(|code| !code.is_empty());
        let lines = [TAG_BEFORE].into_iter().chain(lines).chain([TAG_BEHIND]);
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Script {
    /// The server's error without the place in the script, and with the command that the server lacks, or that Redis 6.2 forbids: it
    /// does not name that one.
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
            // It is one of those that the script tries out, or whose errors it handles.
            names.extend(text.lines().flat_map(called));
            names.sort_unstable();
            names.dedup();
        }
        format!("{error}: {}", names.join(", "))
    }
}

/// The commands in this line of a script.
fn called(line: &str) -> impl Iterator<Item = &str> {
    let is_call = line.contains("call('") || line.contains("ensure_permitted(");
    let quoted = line.split('\'').skip(1).step_by(2).filter(move |_| is_call);
    let is_command = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    const OPTIONS: [&str; 7] = ["WITHSCORES", "LIMIT", "COUNT", "MAXLEN", "RANK", "BYSCORE", "REV"];
    quoted.filter(is_command).filter(|word| !OPTIONS.contains(word))
}

/// One call of a script.
#[derive(Debug)]
pub(crate) struct Call {
    script: &'static Script,
    command: Command,
    idempotent: bool,
    only_reads: bool,
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
    pub(crate) fn number(self, number: impl ToString) -> Self {
        self.arg(number.to_string())
    }

    #[must_use]
    pub(crate) fn args(self, args: impl IntoIterator<Item = Bytes>) -> Self {
        Self { command: self.command.args(args), ..self }
    }

    /// Declares that executing it twice has the effect of executing it once. It is then sent again after a lost reply.
    #[must_use]
    pub(crate) fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Declares that it changes nothing. So it is idempotent, and an error may say that nothing was executed.
    #[must_use]
    pub(crate) fn only_reads(mut self) -> Self {
        self.only_reads = true;
        self.idempotent()
    }

    pub(crate) fn is_read(&self) -> bool {
        self.only_reads
    }

    /// Sends the text, for a script that is needed once.
    pub(crate) async fn run_once(&self, conn: &Conn) -> Result<Reply, OpError> {
        self.send(conn, &self.command.script_text(self.script.text()), &mut false).await
    }

    /// Sends the SHA-1; and the text, if the server does not know the script.
    pub(crate) async fn run(&self, conn: &Conn) -> Result<Reply, OpError> {
        self.run_noting(conn, &mut false).await
    }

    /// The same. Notes whether a try was lost, which the server may have executed, or may still execute.
    pub(crate) async fn run_noting(&self, conn: &Conn, lost: &mut bool) -> Result<Reply, OpError> {
        let mut lost_now = false;
        let result = match self.send(conn, &self.command, &mut lost_now).await {
            // Nothing was executed by this try, so the text may follow. From then on the server knows the script.
            Err(OpError::Server(why)) if why.starts_with("NOSCRIPT") => {
                let text = self.script.text();
                let conn = conn.for_long(text.len());
                self.send(&conn, &self.command.script_text(text), &mut lost_now).await
            }
            result => result,
        };
        *lost |= lost_now;
        result.map_err(|error| if lost_now && !self.only_reads { error.after_a_lost_try() } else { error })
    }

    async fn send(&self, conn: &Conn, command: &Command, lost: &mut bool) -> Result<Reply, OpError> {
        let reply = if self.idempotent {
            conn.call_repeatedly(command, lost).await
        } else {
            conn.call(command).await
        };
        match reply {
            Ok(reply) => Ok(untagged(reply.into_array()?)),
            Err(OpError::Server(why)) => Err(OpError::Server(self.script.explained(&why))),
            Err(error) => Err(error),
        }
    }

    /// What a reply of this call says of a refusal, with the names of the keys of another type, or of the command. The caller has
    /// time until `deadline`.
    pub(crate) async fn explained(&self, conn: &Conn, why: String, deadline: Instant) -> String {
        match conn.naming_keys(OpError::Server(why), "EVALSHA", self.command.keys(), deadline).await {
            OpError::Server(why) => self.script.explained(&why),
            error => error.to_string(),
        }
    }
}

/// Gives what receivers have left back to the target, a part of it, if they have been silent for this long.
pub(crate) fn release_all(keys: &Keys, of_messages: &MessageKeys, silent_ms: u128) -> Call {
    let MessageKeys { inbox, messages, leases, retries, control, .. } = of_messages;
    let keys = [keys.target(), inbox, messages, leases, retries, control, keys.scratch()];
    RELEASE_ALL.on(&keys).number(silent_ms)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::conn::{Credentials, Options, Settings};
    use sha1::{Digest, Sha1};

    #[test]
    fn digests_and_headers_are_true() {
        let mut wrong = Vec::new();
        for &(name, script, _) in ALL {
            let digest: String =
                Sha1::digest(script.text()).iter().map(|byte| format!("{byte:02x}")).collect();
            if digest != script.sha1 {
                wrong.push(format!("{name}: {digest}"));
            }
            let (parts, header) = script.source.rsplit_once("-- KEYS").expect("a header");
            let keys = header.split("-- ARGV").next().and_then(|keys| keys.split("-- Reply").next());
            let keys = keys.expect("a piece");
            let named = (1..=12).take_while(|number| keys.contains(&format!("   {number} "))).count();
            assert_eq!(named, script.keys, "the header of {name} names other keys than it is given");
            let used = (1..=12).rev().find(|number| header.contains(&format!("KEYS[{number}]")));
            assert!(used.unwrap_or(0) <= script.keys, "{name} uses a key it is not given");
            assert!(
                !parts.contains("KEYS") && !parts.contains("ARGV"),
                "a part of {name} uses KEYS or ARGV: only the script itself does"
            );
            let cost = header.split_once("-- Reply").and_then(|(_, header)| header.split_once("-- Cost"));
            let cost = cost.unwrap_or_else(|| panic!("the header of {name} is incomplete")).1;
            let cost: String = cost.lines().take_while(|line| !line.starts_with("local")).collect();
            let bounds = ["O(1)", "O(log n)", "at most", "Up to", "budget", "native scan", "as LRANGE"];
            assert!(bounds.iter().any(|bound| cost.contains(bound)), "{name} names no bound of its cost");
            assert!(!cost.contains("O(n"), "{name} has a cost without a bound");
        }
        assert!(wrong.is_empty(), "wrong digests; the right ones are:\n{}", wrong.join("\n"));
    }

    /// Any reply of a script arrives as it is, whatever its shape.
    #[tokio::test]
    async fn replies_have_the_shape_that_the_script_gave_them() {
        let array = Reply::Array;
        let text = |text: &'static str| Reply::Bytes(text.into());
        let server = redelay_fixture::Server::start();
        let settings = Settings {
            url: &server.url(),
            credentials: Credentials::OfUrl,
            sentinel_credentials: None,
            #[cfg(feature = "tls")]
            tls: None,
            client_name: "scripts".into(),
            connect_timeout: Duration::from_secs(60),
            command_timeout: Duration::from_secs(60),
            replicas: None,
        };
        let conn = &Conn::connect(Options::new(settings).expect("options")).await.expect("a connection");
        macro_rules! reply {
            ($source:literal) => {{
                static SCRIPT: Script = Script { source: $source, sha1: "", keys: 0 };
                SCRIPT.on(&[]).run_once(conn).await.expect("a reply")
            }};
        }
        assert_eq!(reply!("return 7"), Reply::Int(7));
        assert_eq!(reply!("return 'a'"), text("a"));
        assert_eq!(reply!("return false"), Reply::Nil);
        assert_eq!(reply!("return {}"), array(vec![]));
        assert_eq!(reply!("return {'a'}"), array(vec![text("a")]));
        assert_eq!(reply!("return {false}"), array(vec![Reply::Nil]));
        assert_eq!(reply!("return {1, {'a'}}"), array(vec![Reply::Int(1), array(vec![text("a")])]));
        assert_eq!(reply!("return {{}}"), array(vec![array(vec![])]));
        assert_eq!(reply!("return {{1}}"), array(vec![array(vec![Reply::Int(1)])]));
        assert_eq!(reply!("return {{1, 2}}"), array(vec![array(vec![Reply::Int(1), Reply::Int(2)])]));
        assert_eq!(reply!("return {{{1}}}"), array(vec![array(vec![array(vec![Reply::Int(1)])])]));
        assert_eq!(
            reply!("return {{1}, {2}}"),
            array(vec![array(vec![Reply::Int(1)]), array(vec![Reply::Int(2)])])
        );
    }

    /// What [`Script::text`] relies on.
    #[test]
    fn strings_contain_no_comment_and_no_line_break() {
        for &(name, script, _) in ALL {
            assert!(!script.source.contains("[[") && !script.source.contains("[="), "{name}: a long bracket");
            for line in script.source.lines() {
                let code = line.split("--").next().expect("a first piece");
                for quote in ['\'', '"'] {
                    assert!(code.matches(quote).count() % 2 == 0, "{name}: `--` within a string: {line}");
                }
                assert!(!code.ends_with('\\'), "{name}: a string of two lines: {line}");
            }
            let text = script.text();
            assert!(
                !text.contains("--") && !text.contains("\n\n") && !text.contains("\n "),
                "{name}: {text}"
            );
        }
    }

    #[test]
    fn every_file_is_used_and_every_part_says_what_it_provides() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scripts");
        let mut files = BTreeSet::new();
        for within in ["", "parts/", "transfer/", "receive/"] {
            for file in std::fs::read_dir(folder.join(within)).expect("a folder") {
                let name = file.expect("a file").file_name().into_string().expect("UTF-8");
                files.extend(name.strip_suffix(".lua").map(|name| format!("{within}{name}")));
            }
        }
        let used = ALL.iter().flat_map(|&(_, _, files)| files.iter().map(|file| (*file).to_owned()));
        assert_eq!(used.collect::<BTreeSet<_>>(), files);
        for part in files.iter().filter(|file| file.contains('/')) {
            let source = std::fs::read_to_string(folder.join(part).with_extension("lua")).expect("a file");
            let provides = source.lines().find_map(|line| line.strip_prefix("-- Provides  "));
            for name in provides.unwrap_or_else(|| panic!("{part} has no `-- Provides`")).split(", ") {
                let defined = source.lines().any(|line| {
                    let names = line.strip_prefix("local function ").or_else(|| line.strip_prefix("local "));
                    let names = names.and_then(|names| names.split(['(', '=']).next());
                    names.is_some_and(|names| names.split(", ").any(|defined| defined.trim() == name))
                });
                assert!(defined, "{part} says that it provides `{name}`");
            }
        }
    }
}
