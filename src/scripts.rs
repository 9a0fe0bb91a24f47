//! The Lua scripts, one file each, and how they are run.
//!
//! An array of three or four strings that begins with `message`, `subscribe` or the like is taken for an announcement
//! by the client library, on every connection: it swallows the reply, and gives the next one to the wrong caller. So
//! whatever answers with strings that others wrote puts a number in front of them.

use bytes::Bytes;
use tokio::time::sleep;

use crate::conn::{Command, Conn, OpError, Reply};
use crate::pacing::backoff;

/// How long the server remembers what a script did, for a second try after a lost reply: longer than it should be down.
pub(crate) const REMEMBERED_MS: u32 = 3_600_000;

/// One script: its text, the digest the server knows it by, and how many keys it takes.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    sha1: &'static str,
    keys: usize,
}

macro_rules! script {
    ($sha1:literal, $keys:literal, $($file:literal),+) => {
        Script { text: concat!($(include_str!(concat!("scripts/", $file, ".lua"))),+), sha1: $sha1, keys: $keys }
    };
}

pub(crate) static OFFER: Script = script!("3ee8f408fa0214e5803f4a2aac17ea82c18bdb4b", 3, "offer");
pub(crate) static TRANSFER: Script =
    script!("79c287fd4ffd6771d59c01aa77558a436f8e6da5", 5, "entry", "lists", "transfer");
pub(crate) static CANCEL: Script = script!("683a89b11b4c95b639ecd0069d12089ba96f5b02", 2, "cancel");
pub(crate) static RESCHEDULE: Script = script!("de83474d4e6c677c87d7f72e3df1b2599d69806c", 2, "reschedule");
pub(crate) static POLL: Script = script!("4953a4f1e2e04c655db1943d5a9108607b9110be", 4, "entry", "poll");
pub(crate) static RESTORE: Script = script!("95566423df258e2c1f5240ad27bd0d32fd49ed64", 4, "restore");
pub(crate) static CONTAINS: Script =
    script!("2724481a07c36cbdddff81554954c863d4de128f", 1, "entry", "lists", "contains");
pub(crate) static CONTAINS_READY: Script =
    script!("45f410939927b2b59c38e8ee747bf8b8206ab78f", 1, "plain", "lists", "contains");
pub(crate) static REMOVE_READY: Script =
    script!("9457628a90d095b78221ebe79fdc045426e9db6d", 1, "lists", "remove_ready");
pub(crate) static RANGE: Script = script!("91a220d8b3eb682e2be8f9cd69fa13793e6d76d0", 1, "counted", "range");
pub(crate) static REMOVE: Script =
    script!("eba6df0ac2e145964f78263fe1503b76454e3d14", 2, "entry", "lists", "remove");
pub(crate) static POLL_LAST_AND_OFFER_FIRST_TO: Script =
    script!("71bf06172db5cd075f97921946cae849fb81b1f6", 4, "entry", "poll_last_and_offer_first_to");
pub(crate) static EXPIRE: Script = script!("6f7fa641c7624fc3a2371c1b703e774f9d4d6dde", 2, "expire");
pub(crate) static TAKE: Script = script!("3b526044698c74bd9aa895df0f5074de4fb72a09", 3, "counted", "take");
pub(crate) static STATS: Script = script!("915703d570a420f1460a9f4f2e4fb8bde6453e82", 4, "stats");
pub(crate) static PUT_BACK: Script =
    script!("1e165179f686490629dfa50eb43a8d15339b87c9", 4, "pairs", "put_back");
pub(crate) static DROP_QUARANTINED: Script =
    script!("509ea0aab523f8119921af1d97381ebbd3dbc87a", 1, "pairs", "drop_quarantined");
pub(crate) static GIVE_BACK: Script = script!("9bcd1b4620f730b9e4461b9a56f14db797abec8c", 2, "give_back");

impl Script {
    /// Runs the script at most once, unless [`Call::again_is_harmless`] was said.
    pub(crate) fn on(&'static self, keys: &[&Bytes]) -> Call {
        debug_assert_eq!(keys.len(), self.keys, "number of keys");
        Call {
            script: self,
            keys: keys.iter().copied().cloned().collect(),
            args: Vec::new(),
            repeatable: false,
        }
    }
}

/// One run of a script, in the making.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    script: &'static Script,
    keys: Vec<Bytes>,
    args: Vec<Bytes>,
    repeatable: bool,
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

    /// Says that running it twice is as good as once, so that a lost reply is followed by another try.
    #[must_use]
    pub(crate) fn again_is_harmless(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Runs a script that may be run twice, until the server has said what became of it: for as long as that takes.
    /// Only a call that was certainly not executed fails for want of a connection.
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

    pub(crate) async fn run(self, conn: &Conn) -> Result<Reply, OpError> {
        match self.send(conn, "EVALSHA", self.script.sha1).await {
            // The server does not know the script: nothing was run, so the text may follow. It knows it from then on.
            Err(OpError::Server(why)) if why.starts_with("NOSCRIPT") => {
                self.send(conn, "EVAL", self.script.text).await
            }
            result => result,
        }
    }

    async fn send(&self, conn: &Conn, name: &'static str, script: &'static str) -> Result<Reply, OpError> {
        let command = Command::new(name)
            .arg(script)
            .number(self.keys.len())
            .args(self.keys.iter().cloned())
            .args(self.args.iter().cloned());
        if self.repeatable { conn.call_repeatable(command).await } else { conn.call(command).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha1::{Digest, Sha1};

    #[test]
    fn digests_and_headers_are_true() {
        let scripts = [
            ("offer", &OFFER),
            ("transfer", &TRANSFER),
            ("cancel", &CANCEL),
            ("reschedule", &RESCHEDULE),
            ("poll", &POLL),
            ("restore", &RESTORE),
            ("contains", &CONTAINS),
            ("contains, of ready ones", &CONTAINS_READY),
            ("remove_ready", &REMOVE_READY),
            ("range", &RANGE),
            ("remove", &REMOVE),
            ("poll_last_and_offer_first_to", &POLL_LAST_AND_OFFER_FIRST_TO),
            ("expire", &EXPIRE),
            ("take", &TAKE),
            ("give_back", &GIVE_BACK),
            ("stats", &STATS),
            ("put_back", &PUT_BACK),
            ("drop_quarantined", &DROP_QUARANTINED),
        ];
        let mut wrong = Vec::new();
        for (name, script) in scripts {
            let digest: String = Sha1::digest(script.text).iter().map(|byte| format!("{byte:02x}")).collect();
            if digest != script.sha1 {
                wrong.push(format!("{name}: {digest}"));
            }
            let header = script.text.rsplit("-- KEYS").next().expect("a header");
            let keys = header.lines().next().expect("a line");
            let named = (1..=9).take_while(|number| keys.contains(&format!("   {number} "))).count();
            assert_eq!(named, script.keys, "the header of {name} names other keys than it is given");
            let used = (1..=9).rev().find(|number| header.contains(&format!("KEYS[{number}]")));
            assert!(used.unwrap_or(0) <= script.keys, "{name} uses a key it is not given");
            assert!(
                header.contains("-- Reply") && header.contains("-- Cost"),
                "the header of {name} is incomplete"
            );
        }
        assert!(wrong.is_empty(), "digests that are not true:\n{}", wrong.join("\n"));
    }
}
