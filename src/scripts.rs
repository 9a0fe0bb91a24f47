//! The Lua scripts, one file each, and how they are called.
//!
//! Every call has a number, its *tag*, which its reply repeats. Two things would otherwise hand a reply to the wrong
//! caller: a server or a proxy that sends one reply too many; and the client library, which takes an array of three or
//! four strings that begins with `message`, `subscribe` or the like for a pub/sub message, and drops it. (It changes such
//! an array within another one, too, so a list of strings that others wrote is never nested.)

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;

use crate::conn::{Command, Conn, OpError, Reply};

/// How long the server keeps a receipt, by which a retry after a lost reply learns what the first try did. It must be
/// longer than an outage of the server, and than its clock may jump meanwhile: a failover can bring another clock.
pub(crate) const REMEMBERED_MS: u32 = 24 * 3_600_000;

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
    OFFER: 5, "a012979b3846b44f013fee4d599c2d5bdc539180", ["offer"];
    TRANSFER: 6, "86e202486a17cce06c0d0a9939bdb5369cfa1caf", [
        "parts/entry", "parts/lists", "parts/permitted",
        "transfer/clock", "transfer/find", "transfer/take_out", "transfer/move", "transfer"
    ];
    CANCEL: 3, "11458533b812c906748a582587c455fe7d8164cc", ["parts/permitted", "cancel"];
    RESCHEDULE: 2, "364cb42d88323385423989479ecf270094441b62", ["reschedule"];
    POLL: 5, "16229484c465c16f163daea40cb094837ab8b321", ["parts/entry", "parts/permitted", "parts/claims", "poll"];
    RESTORE_ENTRIES: 5, "4589c6e3cf745f7d3a21985b878e747c83495b0a", ["parts/permitted", "parts/restore", "restore_entries"];
    READ_CLAIMS: 1, "7368562fa8a9f55a0af20050664c5f6089ba8d9a", ["read_claims"];
    REQUEUE_CLAIM: 6, "bcdd40ca9fda8c9e70f04ea534d537afe5a6ec04", ["parts/permitted", "parts/restore", "requeue_claim"];
    CONTAINS: 1, "662c1fbc5afa4d3fa86bcca74c22a3d9f0893612", ["parts/entry", "parts/lists", "contains"];
    CONTAINS_READY: 1, "f16e926dc6e82c2011a033cb7473025d4d874601", ["parts/raw_payload", "parts/lists", "contains"];
    REMOVE: 3, "9501ff34fd2402321458f2b683cb5dbae35c77c3", ["parts/entry", "parts/lists", "parts/permitted", "remove"];
    REMOVE_READY: 2, "a3d1b316a3d65aa7c77afbb1aff7eb0c1f74169c", ["parts/lists", "parts/permitted", "remove_ready"];
    RANGE: 1, "62bea5c562db16e35f0d25e70cf64c6ba0c07763", ["range"];
    POLL_LAST_AND_OFFER_FIRST_TO: 5, "ab784bf61a95bf9092605b24c372a886b70a4815", [
        "parts/entry", "parts/permitted", "poll_last_and_offer_first_to"
    ];
    PERMISSIONS: 3, "115026cf661f2d3d9baf7aea8aa08ed741f382dd", ["permissions"];
    EXPIRE: 2, "604c049f2a6928e9009e157a09cf7e631f79e081", ["expire"];
    RECEIVE: 9, "a30078996348c7669a59d99fe58479272e05d184", [
        "receive/record", "receive/dead", "receive/settle", "receive/recover", "receive/claim", "receive"
    ];
    READ_MESSAGES: 2, "356d3795469b35e81325ef5ccb6f98ab3dff355b", ["read_messages"];
    READ_DEAD: 2, "3e4caa7401bcf690d70c1b5cd27bd5412e4b586b", ["read_dead"];
    REQUEUE_DEAD: 5, "ccd17306584849a9e5bf8e6e22269f174ea205b7", ["parts/permitted", "receive/record", "requeue_dead"];
    REMOVE_MESSAGE: 4, "d1f1ffe73a8f2a13bcd0110f78b940d71ba6c329", ["parts/permitted", "receive/record", "remove_message"];
    RELEASE_ALL: 7, "7db6f86c4094da881e131240d6f294d13dc0a149", ["parts/permitted", "receive/record", "release_all"];
    TAKE: 2, "2864298890859219836e41daa733cbf29d37f85e", ["parts/claims", "take"];
    RETURN_TO_LIST: 3, "06028177748999f9aa8125ff7f2639c39d3210b2", ["parts/permitted", "return_to_list"];
    STATS: 8, "caa2a65595ca2e35454c0f61343bb0d0cc49c2b5", ["stats"];
    REQUEUE_QUARANTINED: 5, "3edd8f0b52381e028f2873a939dc29a8f12d7f70", [
        "parts/quarantine_pairs", "parts/permitted", "requeue_quarantined"
    ];
    REMOVE_QUARANTINED: 2, "9f80e29d876c124af3f4922799472ef9b623ee87", [
        "parts/quarantine_pairs", "parts/permitted", "remove_quarantined"
    ];
}

/// What surrounds the source of each script. The tag is the last argument, and not one of the script's own. It becomes the
/// first element of a reply that is an array; any other reply is put into an array of its own, behind the tag.
const TAG_BEFORE: &str = "local tag = tonumber(table.remove(ARGV)) local function script()";
const TAG_BEHIND: &str = "end local reply = script()
if type(reply) ~= 'table' then return {tag, {reply}} end
if not reply.err then table.insert(reply, 1, tag) end
return reply";

/// The number of the next call.
static TAG: AtomicU32 = AtomicU32::new(1);

impl Script {
    /// A call, executed at most once unless it is made [`idempotent`](Call::idempotent).
    pub(crate) fn on(&'static self, keys: &[&Bytes]) -> Call {
        debug_assert_eq!(keys.len(), self.keys, "number of keys");
        Call {
            script: self,
            keys: keys.iter().copied().cloned().collect(),
            args: Vec::new(),
            idempotent: false,
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

/// One call of a script.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    script: &'static Script,
    keys: Vec<Bytes>,
    args: Vec<Bytes>,
    idempotent: bool,
}

impl Call {
    #[must_use]
    pub(crate) fn arg(mut self, arg: impl Into<Bytes>) -> Self {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub(crate) fn number(self, number: impl ToString) -> Self {
        self.arg(number.to_string())
    }

    #[must_use]
    pub(crate) fn args(mut self, args: impl IntoIterator<Item = Bytes>) -> Self {
        self.args.extend(args);
        self
    }

    /// Declares that executing it twice has the effect of executing it once. It is then sent again after a lost reply.
    #[must_use]
    pub(crate) fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Sends the text, for a script that is needed once.
    pub(crate) async fn run_once(self, conn: &Conn) -> Result<Reply, OpError> {
        self.send(conn, "EVAL", self.script.text()).await
    }

    /// Sends the SHA-1; and the text, if the server does not know the script.
    pub(crate) async fn run(self, conn: &Conn) -> Result<Reply, OpError> {
        match self.send(conn, "EVALSHA", self.script.sha1).await {
            // Nothing was executed, so the text may follow. From then on the server knows the script.
            Err(OpError::Server(why)) if why.starts_with("NOSCRIPT") => {
                let text = self.script.text();
                self.send(&conn.for_long(text.len()), "EVAL", text).await
            }
            result => result,
        }
    }

    async fn send(
        &self,
        conn: &Conn,
        name: &'static str,
        script: impl Into<Bytes>,
    ) -> Result<Reply, OpError> {
        let tag = TAG.fetch_add(1, Ordering::Relaxed);
        let command = Command::new(name)
            .arg(script)
            .number(self.keys.len())
            .args(self.keys.iter().cloned())
            .args(self.args.iter().cloned())
            .number(tag)
            .tagged(tag.into());
        let reply =
            if self.idempotent { conn.call_idempotent(command).await } else { conn.call(command).await };
        Ok(untagged(reply?.into_array()?))
    }
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

    use super::*;
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
            assert!(
                header.contains("-- Reply") && header.contains("-- Cost"),
                "the header of {name} is incomplete"
            );
        }
        assert!(wrong.is_empty(), "wrong digests; the right ones are:\n{}", wrong.join("\n"));
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
