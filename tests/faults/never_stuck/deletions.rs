//! Keys that somebody deletes: what only they had may be lost, and the ledger learns what else docs/keys.md
//! allows after that.

use std::time::{Duration, Instant, SystemTime};

use redelay_fixture::Server;
use redelay_support::ms;
use tokio::time::sleep;

use super::faults::name;
use super::plan::Key;
use crate::deliveries::read;
use crate::ledger::{Ledger, number, payload_of};

/// Deletes a key, or all with a name of this form. Returns how many there were, and what is lost with them:
/// ids of messages, payloads, and entries.
const DELETE: &str = "local form, kind = KEYS[1], ARGV[1]
    local found = string.find(form, '*', 1, true) and redis.call('KEYS', form) or {form}
    local ids, payloads, entries = {}, {}, {}
    local is_hash = kind == 'Messages' or kind == 'DeadMessages' or kind == 'Popped'
    local all = is_hash and redis.call('HGETALL', form)
    if kind == 'Inbox' then
        payloads = redis.call('LRANGE', form, 0, -1)
    elseif kind == 'Messages' then
        for i = 2, #all, 2 do table.insert(payloads, string.sub(all[i], 25)) end
    elseif kind == 'Leases' then
        for _, member in ipairs(redis.call('ZRANGE', form, 0, -1)) do table.insert(ids, string.sub(member, 1, 16)) end
    elseif kind == 'DeadMessages' then
        for i = 2, #all, 2 do table.insert(payloads, cmsgpack.unpack(all[i])[8]) end
    elseif kind == 'Popped' then
        for i = 2, #all, 2 do
            local how, _, popped = unpack(cmsgpack.unpack(all[i]))
            for at = 1, #popped, how == 'poll' and 2 or 1 do
                table.insert(how == 'poll' and entries or payloads, popped[at])
            end
        end
    end
    local count = 0
    for _, key in ipairs(found) do
        count = count + redis.call('DEL', key)
    end
    return {count, ids, payloads, entries}";

/// The keys that plans delete, in the reports.
pub(crate) const DELETED: [&str; 13] = [
    "inboxes deleted",
    "messages deleted",
    "leases deleted",
    "retries deleted",
    "receipts of receivers deleted",
    "lists of dead letters deleted",
    "dead letters deleted",
    "control deleted",
    "jobs deleted",
    "copies of what was popped deleted",
    "receipts of offers deleted",
    "receipts of returns deleted",
    "throttles deleted",
];

impl Key {
    /// Which of [`DELETED`] it is.
    pub(super) fn deleted(self) -> &'static str {
        let first = match self {
            Self::Inbox => "inboxes",
            Self::Messages => "messages",
            Self::Leases => "leases",
            Self::Retries => "retries",
            Self::Receipts => "receipts of receivers",
            Self::Dead => "lists of dead",
            Self::DeadMessages => "dead",
            Self::Control => "control",
            Self::Jobs => "jobs",
            Self::Popped => "copies",
            Self::Offered => "receipts of offers",
            Self::Returned => "receipts of returns",
            Self::Throttles => "throttles",
            Self::Target | Self::TimeoutSet | Self::OrderedList | Self::Quarantine => "none of redelay's",
        };
        DELETED.into_iter().find(|deleted| deleted.starts_with(first)).expect("a side key")
    }

    /// Whether somebody needs it after a lost reply only.
    pub(crate) fn is_receipt(self) -> bool {
        matches!(self, Self::Receipts | Self::Popped | Self::Offered | Self::Returned)
    }
}

/// Some keys are there for a moment only.
const PATIENCE: Duration = Duration::from_secs(1);

/// Waits until there is such a key, or for a moment.
pub(crate) async fn until_there(server: &Server, key: Key) {
    let begun = Instant::now();
    while server.get::<Vec<Vec<u8>>, _>(["KEYS", name(key)]).is_empty() && begun.elapsed() < PATIENCE {
        sleep(ms(2)).await;
    }
}

/// Returns how many keys there were.
pub(crate) fn delete(server: &Server, key: Key, ledger: &Ledger) -> usize {
    let begun = SystemTime::now();
    if key == Key::Receipts {
        ledger.record().deliveries.lose_receipts();
    }
    type Lost = (usize, Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<Vec<u8>>);
    let (count, ids, payloads, entries): Lost =
        server.get(["EVAL", DELETE, "1", name(key), &format!("{key:?}")]);
    let mut record = ledger.record();
    record.deleted.extend(payloads.iter().map(|payload| number(payload)));
    record.deleted.extend(entries.iter().filter_map(|entry| payload_of(entry)));
    record.deliveries.unleased.extend(ids.iter().map(|id| read(id)));
    match key {
        Key::Offered => record.receipt_losses.push((begun, SystemTime::now())),
        Key::Returned => record.returns_deleted += count,
        Key::Receipts => record.deliveries.have_lost_receipts(),
        _ => {}
    }
    count
}
