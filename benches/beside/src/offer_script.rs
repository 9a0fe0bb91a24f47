//! The script of offers, for clients that are not redelay.

use crate::server::{channel, ordered_list, timeout_set};

/// The script, with the numbers of its keys in place of their names. Only a queue with a limit needs more.
pub(crate) fn text() -> String {
    let keys = ["timeout_set", "ordered_list", "channel", "receipt", "control"];
    keys.iter()
        .zip(1..)
        .fold(include_str!("../../../src/scripts/offer.lua").to_owned(), |text, (key, number)| {
            text.replace(&format!("KEYS.{key}"), &format!("KEYS[{number}]"))
        })
}

/// The call that offers one entry, as the words of a command. Its receipt is not deleted.
pub(crate) fn call(digest: &str, queue: &str, receipt: &str, entry: &[u8]) -> Vec<Vec<u8>> {
    let keys = [
        timeout_set(queue),
        ordered_list(queue),
        channel(queue),
        format!("redelay:offered:{{{queue}}}:{receipt}"),
        format!("redelay:control:{{{queue}}}"),
    ];
    let head = ["EVALSHA".to_owned(), digest.to_owned(), keys.len().to_string()];
    let delay = crate::job::NOT_SOON.to_string();
    let arguments = ["now", "60000", "0", &delay].map(str::to_owned);
    let words = head.into_iter().chain(keys).chain(arguments);
    words.map(String::into_bytes).chain([entry.to_vec()]).collect()
}
