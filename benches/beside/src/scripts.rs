//! Scripts of redelay, for clients that are not redelay.

use crate::server::{channel, ordered_list, timeout_set};

/// The text of a script, by its name in `src/scripts.rs`.
pub(crate) fn text(name: &str) -> String {
    redelay_support::script(name)
}

/// The call that offers one entry with this delay, ms, as the words of a command. Its receipt is not deleted.
pub(crate) fn offer(digest: &str, queue: &str, receipt: &str, delay: u64, entry: &[u8]) -> Vec<Vec<u8>> {
    let keys = [
        timeout_set(queue),
        ordered_list(queue),
        channel(queue),
        format!("redelay:offered:{{{queue}}}:{receipt}"),
        format!("redelay:control:{{{queue}}}"),
    ];
    let mut words = call(digest, &keys);
    words.extend(["now", "60000", "0"].map(Vec::from));
    words.push(delay.to_string().into_bytes());
    words.push(entry.to_vec());
    words
}

/// The call that transfers what is due, of a process that shares the queue with no other.
pub(crate) fn transfer(digest: &str, queue: &str) -> Vec<Vec<u8>> {
    let own = |name: &str| format!("redelay:{name}:{{{queue}}}");
    let mut keys = vec![timeout_set(queue), ordered_list(queue), queue.to_owned()];
    keys.extend(["quarantine", "moved", "scratch", "jobs", "rebuild"].map(own));
    let mut words = call(digest, &keys);
    // Entries at most, the budget in µs, the client, the cursor, and the time without messages to peers.
    words.extend(["1000", "20000", "ladder", "0", "0"].map(Vec::from));
    words
}

/// The call of a receiver: it acknowledges these deliveries, and claims this number of messages. The tokens
/// of later calls are greater.
pub(crate) fn receive(digest: &str, queue: &str, token: u128, acks: &[Vec<u8>], most: usize) -> Vec<Vec<u8>> {
    let own = |name: &str| format!("redelay:{name}:{{{queue}}}");
    let of_messages = [
        "inbox",
        "messages",
        "leases",
        "retries",
        "receipts",
        "dead",
        "dead-messages",
        "control",
        "receivers",
    ];
    let mut keys = vec![queue.to_owned()];
    keys.extend(of_messages.map(own));
    keys.push(timeout_set(queue));
    keys.extend(["jobs", "job-notes", "more-job-notes"].map(own));
    let mut words = call(digest, &keys);
    // Nothing else is to be done.
    words.extend([b"ladder".to_vec(), token.to_be_bytes().into(), policy(), Vec::new()]);
    let counts = [most as u32, acks.len() as u32, 0, 0, 0, 0, 7];
    // The most dead letters, their age, the last answer and the pause since then.
    words.push([&counts.map(u32::to_be_bytes).concat()[..], &[0; 4 * 8]].concat());
    words.extend(acks.iter().cloned());
    words
}

/// Ten attempts, five lost leases, a lease of 30 s, dead letters stay.
fn policy() -> Vec<u8> {
    [&10_u16.to_be_bytes()[..], &5_u16.to_be_bytes(), &30_000_u32.to_be_bytes(), b"k"].concat()
}

fn call(digest: &str, keys: &[String]) -> Vec<Vec<u8>> {
    let head = ["EVALSHA".to_owned(), digest.to_owned(), keys.len().to_string()];
    head.into_iter().chain(keys.iter().cloned()).map(String::into_bytes).collect()
}
