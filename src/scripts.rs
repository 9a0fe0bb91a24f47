//! The Lua scripts, one file each, and how they are called.
//!
//! On every connection, the client library takes an array of three or four strings that begins with `message`,
//! `subscribe` or the like for a pub/sub message: it drops that reply, and hands the next one to the wrong caller.
//! So a script whose reply begins with strings that others wrote puts a number in front of them.

use bytes::Bytes;
use tokio::time::sleep;

use crate::conn::{Command, Conn, OpError, Reply};
use crate::pacing::backoff;

/// How long the server keeps a claim or a receipt, by which a retry after a lost reply learns what the first try did.
/// It must be longer than an outage of the server.
pub(crate) const REMEMBERED_MS: u32 = 3_600_000;

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
    OFFER: 3, "3ac5d514306396a1ba1af8aa5292d3482b3c3f67", ["offer"];
    TRANSFER: 5, "1784e3f50a80e9dbe364e9343ee8d55c7bda6cd1", [
        "parts/entry", "parts/lists",
        "transfer/clock", "transfer/find", "transfer/take_out", "transfer/move", "transfer"
    ];
    CANCEL: 2, "d6d3cfdce7e9e8e60c5ae0ad5a329cdc9a669dec", ["cancel"];
    RESCHEDULE: 2, "9cad94fe1ab64ea8f88416ef89f02f7598b1423c", ["reschedule"];
    POLL: 4, "9eccc5441d324e5cf85991e3dba992df7a5d0659", ["parts/entry", "poll"];
    RESTORE_ENTRIES: 4, "5b497b1481f04f2c3edb8a84c5dbfa569aad3137", ["restore_entries"];
    CONTAINS: 1, "61c780c34eeee7d445a3f7c55302f6c0027d3efe", ["parts/entry", "parts/lists", "contains"];
    CONTAINS_READY: 1, "a8fa983dfe551399dd6a73bae06e003f4cd90cc8", ["parts/raw_payload", "parts/lists", "contains"];
    REMOVE: 2, "3a54b4e58e51b3ec6a4a9221256b6256de91b663", ["parts/entry", "parts/lists", "remove"];
    REMOVE_READY: 1, "84a9b0e81af7d3e47e002c8cc4cd50ddfec8541a", ["parts/lists", "remove_ready"];
    RANGE: 1, "0fb43b5fab691aea6a0614ec0f72949dda5ec1d3", ["parts/with_count", "range"];
    POLL_LAST_AND_OFFER_FIRST_TO: 4, "8f82037a993c6f96133ff3454debc7444f86aae5", [
        "parts/entry", "poll_last_and_offer_first_to"
    ];
    EXPIRE: 2, "688318865c36a569b54a2163593b9a94a6ef1614", ["expire"];
    TAKE: 3, "d1b5c0240c7a2b1aa67b3ebd79acb00df678a3d2", ["parts/with_count", "take"];
    RETURN_TO_LIST: 2, "9b6897f74aa8bb0d3a1238e2cd370bab341b2a70", ["return_to_list"];
    STATS: 4, "ae1f79c2c34091648d38c33793093ebdfa647779", ["stats"];
    REQUEUE_QUARANTINED: 4, "031be4fef3b24a2deea26c244035e6ea1bbf59c7", [
        "parts/quarantine_pairs", "requeue_quarantined"
    ];
    REMOVE_QUARANTINED: 1, "46ae9d7a903ef26faa547f6ff36a85dc0453fd33", [
        "parts/quarantine_pairs", "remove_quarantined"
    ];
}

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

    /// What is sent to the server: the source without comments, indentation and blank lines. It is needed once per
    /// script and server, so it is not kept. A test checks that no string in the source contains `--`.
    fn text(&self) -> String {
        let code = |line: &'static str| line.split("--").next().unwrap_or_default().trim();
        let lines: Vec<_> = self.source.lines().map(code).filter(|code| !code.is_empty()).collect();
        lines.join("\n")
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

    /// Repeats a call that may be executed twice until the server has answered, however long that takes. It fails for
    /// lack of a connection only if the call has certainly not been executed.
    pub(crate) async fn run_until_answered(self, conn: &Conn) -> Result<Reply, OpError> {
        let mut attempts = 0;
        loop {
            match self.clone().run(conn).await {
                Err(OpError::Unknown(_)) => {}
                Err(OpError::NotExecuted(_)) if attempts > 0 => {}
                result => return result,
            }
            sleep(backoff(attempts)).await;
            attempts += 1;
        }
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
        let command = Command::new(name)
            .arg(script)
            .number(self.keys.len())
            .args(self.keys.iter().cloned())
            .args(self.args.iter().cloned());
        if self.idempotent { conn.call_idempotent(command).await } else { conn.call(command).await }
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
            let keys = header.lines().next().expect("a line");
            let named = (1..=9).take_while(|number| keys.contains(&format!("   {number} "))).count();
            assert_eq!(named, script.keys, "the header of {name} names other keys than it is given");
            let used = (1..=9).rev().find(|number| header.contains(&format!("KEYS[{number}]")));
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
        for within in ["", "parts/", "transfer/"] {
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
