//! Commands and their arguments.

use std::fmt::{Display, Write};

use bytes::{Bytes, BytesMut};

use super::slot::Slot;

/// Whether a command is sent again after its reply was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeats {
    Never,
    /// To execute it twice has the effect of executing it once.
    Idempotent,
    /// It changes nothing, so an error may say that nothing was executed.
    OnlyReads,
}

/// An integer. Most of those that are sent have one digit.
pub(crate) trait Digits: Copy + Display + TryInto<usize> {}

impl<T: Copy + Display + TryInto<usize>> Digits for T {}

/// One command and its arguments, binary safe. Each try borrows it, and copies only the list of arguments, so
/// it is still there when an error is to be explained.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(super) name: &'static str,
    pub(super) args: Vec<Bytes>,
    pub(super) is_tagged: bool,
    repeats: Repeats,
    /// Room for numbers: one allocation for all of them, which the copies of the arguments share.
    room: BytesMut,
}

impl Command {
    pub(crate) fn new(name: &'static str) -> Self {
        let (args, room) = (Vec::with_capacity(4), BytesMut::new());
        Self { name, args, is_tagged: false, repeats: Repeats::Never, room }
    }

    /// A call of a script that the server knows. Each try has a number, its *tag*, as the last argument, and
    /// the reply is an array that begins with it: any other reply belongs to another command.
    pub(crate) fn script(sha1: &'static str) -> Self {
        let (mut args, room) = (Vec::with_capacity(32), BytesMut::with_capacity(128));
        args.extend([Bytes::from_static(sha1.as_bytes()), Bytes::from_static(b"0")]);
        Self { name: "EVALSHA", args, is_tagged: true, repeats: Repeats::Never, room }
    }

    /// More keys of a script, which has no other arguments yet.
    #[must_use]
    pub(crate) fn script_keys(mut self, keys: impl IntoIterator<Item = Bytes>) -> Self {
        self.args.extend(keys);
        self.args[1] = self.digits(self.args.len() - 2);
        self
    }

    /// The same call with the text of the script, for a server that does not know it.
    #[must_use]
    pub(crate) fn script_text(&self, text: String) -> Self {
        let mut command = Self { name: "EVAL", ..self.clone() };
        command.args[0] = text.into();
        command
    }

    #[must_use]
    pub(crate) fn arg(mut self, arg: impl Into<Bytes>) -> Self {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub(crate) fn number(mut self, number: impl Digits) -> Self {
        let digits = self.digits(number);
        self.arg(digits)
    }

    fn digits(&mut self, number: impl Digits) -> Bytes {
        if let Ok(digit @ 0..=9) = number.try_into() {
            return Bytes::from_static(&b"0123456789"[digit..=digit]);
        }
        let _ = write!(self.room, "{number}");
        self.room.split().freeze()
    }

    #[must_use]
    pub(crate) fn args(mut self, args: impl IntoIterator<Item = Bytes>) -> Self {
        self.args.extend(args);
        self
    }

    /// Declares that executing it twice has the effect of executing it once.
    #[must_use]
    pub(crate) fn idempotent(self) -> Self {
        Self { repeats: Repeats::Idempotent, ..self }
    }

    /// Declares that it changes nothing.
    #[must_use]
    pub(crate) fn only_reads(self) -> Self {
        Self { repeats: Repeats::OnlyReads, ..self }
    }

    /// Whether it may be sent again after a lost reply.
    pub(super) fn may_be_repeated(&self) -> bool {
        self.repeats != Repeats::Never
    }

    /// Whether it changes nothing.
    pub(crate) fn is_read(&self) -> bool {
        self.repeats == Repeats::OnlyReads
    }

    /// The slot of its keys, if it has any: all are of one queue.
    pub(super) fn slot(&self) -> Option<Slot> {
        let key = match self.name {
            "EVAL" | "EVALSHA" if self.args.get(1).is_some_and(|keys| keys == "0") => None,
            "EVAL" | "EVALSHA" => self.args.get(2),
            _ if self.has_no_key() => None,
            _ => self.args.first(),
        };
        key.map(|key| Slot::of(key))
    }

    /// Whether it is about a server, and not about a key.
    fn has_no_key(&self) -> bool {
        const KEYLESS: [&str; 11] = [
            "ACL", "CLIENT", "CLUSTER", "CONFIG", "INFO", "PING", "PUBSUB", "SCAN", "SENTINEL", "TIME",
            "WAIT",
        ];
        KEYLESS.contains(&self.name)
    }

    /// Its keys.
    pub(crate) fn keys(&self) -> &[Bytes] {
        match self.name {
            "EVAL" | "EVALSHA" => {
                let count = self.args.get(1).and_then(|count| std::str::from_utf8(count).ok()?.parse().ok());
                self.args.get(2..2 + count.unwrap_or(0)).unwrap_or_default()
            }
            "RPOPLPUSH" | "LMOVE" => self.args.get(..2).unwrap_or_default(),
            _ if self.has_no_key() => &[],
            _ => self.args.get(..1).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_decimal_digits() {
        let command = Command::script("sha1").number(0).number(9).number(10).number(-1);
        let command = command.number(u64::MAX).arg("text").number(1_u128 << 100);
        let expected =
            ["0", "9", "10", "-1", "18446744073709551615", "text", "1267650600228229401496703205376"];
        assert_eq!(command.args[2..], expected.map(Bytes::from));
        // A copy has its own room.
        assert_eq!(command.clone().number(77).args.last(), Some(&Bytes::from("77")));
    }
}
