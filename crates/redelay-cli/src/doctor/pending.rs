//! What one look says of the pending entries, the ready payloads and the keys of a queue. Pure.

use crate::human;
use crate::state;

use super::codes::Code;
use super::finding::Finding;
use super::look::Look;
use super::walk::hash_of;

/// A queue that moves may have this number of due entries.
const BACKLOG: u64 = 1_000;
/// A taker of Java leaves no trace, so fewer ready payloads may be on their way to one.
const MANY: u64 = 100;
const WEEK: std::time::Duration = std::time::Duration::from_secs(7 * 86_400);

fn entries(count: u64) -> String {
    human::counted(count, "entry", "entries")
}

fn is_some(count: Option<u64>) -> Option<u64> {
    count.filter(|count| *count > 0)
}

pub(crate) fn findings(look: &Look) -> Vec<Finding> {
    let mut found = types(look);
    found.extend(gone(look));
    found.extend(ready(look));
    found.extend(partition(look));
    found.extend(full(look));
    if !look.is_second_of_two {
        found.extend(shared(look));
        found.extend(still(look));
        found.extend(pairs(look));
        found.extend(formats(look));
        found.extend(times(look));
    }
    let (set, list) = (look.key("timeout set"), look.key("ordered list"));
    let tag = of_tag(&look.overview.name);
    let name = |prefix: &str| vec![[prefix.as_bytes(), &tag[..]].concat()];
    let pending = [
        (
            "TIMEOUT_SET",
            set.map_or_else(|| name("redisson_delay_queue_timeout:"), |key| vec![key.key.to_vec()]),
        ),
        ("ORDERED_LIST", list.map_or_else(|| name("redisson_delay_queue:"), |key| vec![key.key.to_vec()])),
        ("QUARANTINE", name("redelay:quarantine:")),
    ];
    for finding in &mut found {
        if let Some(names) = &mut finding.names {
            names.extend(pending.clone());
        }
    }
    found
}

/// The name in braces, unless it has some.
fn of_tag(name: &[u8]) -> Vec<u8> {
    if name.contains(&b'{') { name.to_vec() } else { [b"{", name, b"}"].concat() }
}

fn types(look: &Look) -> Vec<Finding> {
    let mut found = Vec::new();
    for key in look.keys.iter().filter(|key| key.what != "other target" && key.kind != key.expected) {
        let is_of_redisson = ["target", "timeout set", "ordered list"].contains(&key.what);
        let code = if is_of_redisson { Code::Q16 } else { Code::Q17 };
        let text = format!("the {} is a {}, and should be a {}", key.what, key.kind, key.expected);
        let finding = Finding::new(code, text).name("KEY", vec![key.key.to_vec()]);
        found.push(finding.name("ASIDE", vec![[&key.key[..], b".aside"].concat()]));
    }
    let expires = |what: &str| look.key(what).and_then(|key| key.expires_in);
    if let Some(left) = expires("timeout set").into_iter().chain(expires("ordered list")).min() {
        let text = format!("the server deletes pending entries in {}", human::span(left));
        found.push(Finding::new(Code::Q20, text));
    }
    if look.is_in_cluster && !is_in_one_slot(&look.overview.name) {
        let text = "the keys of a queue of this name are in several slots of a cluster";
        found.push(Finding::new(Code::Q18, text));
    }
    found
}

/// Whether a cluster has all keys of a queue of this name in one slot.
fn is_in_one_slot(name: &[u8]) -> bool {
    match name.iter().position(|byte| *byte == b'{') {
        None => !name.is_empty() && !name.contains(&b'}'),
        Some(open) => {
            let close = name[open + 1..].iter().position(|byte| *byte == b'}');
            close.is_some_and(|length| length > 0)
        }
    }
}

fn shared(look: &Look) -> Option<Finding> {
    let (own, other) = (look.key("target")?, look.key("other target")?);
    let are_lists = own.kind == "list" && other.kind == "list";
    let text = format!(
        "the targets {} and {} have the same timeout set and ordered list",
        crate::escape::bytes(&own.key),
        crate::escape::bytes(&other.key)
    );
    are_lists.then(|| Finding::new(Code::Q19, text))
}

/// Entries that are due, and who moves them.
fn still(look: &Look) -> Option<Finding> {
    let overview = &look.overview;
    let odd = look.details.negative.unwrap_or(0) + look.details.in_seconds.unwrap_or(0);
    let late = is_some(look.details.late.map(|late| late.saturating_sub(odd)))?;
    let have = human::counted(late, "entry has", "entries have");
    let span = overview.overdue_for.filter(|_| odd == 0);
    let span = span.map_or_else(String::new, |span| format!(" for up to {}", human::span(span)));
    let due = format!("{have} been due{span}");
    match overview.transferring_processes {
        // A replica does not know.
        _ if look.is_on_replica => None,
        Some(0) => Some(Finding::new(Code::Q01, format!("{due}, and no process is subscribed"))),
        // It moves, or is said to be still: whatever the looks agree on.
        processes => {
            let who = match processes {
                Some(1) => "one process is subscribed".to_owned(),
                Some(count) => format!("{} processes are subscribed", human::count(count)),
                None => "who is subscribed is unknown".to_owned(),
            };
            Some(Finding::new(Code::Q02, format!("{due}, {who}, and nothing moves")).evidence(look.head))
        }
    }
}

/// The timeout set against the ordered list.
fn pairs(look: &Look) -> Vec<Finding> {
    let mut found = Vec::new();
    let walk = &look.walk;
    let several = |count: usize, what: &str| {
        let have = human::counted(count as u64, "entry of", "entries of");
        format!("{have} the {what}")
    };
    // A transfer takes due entries out of the list before it moves them.
    let is_rebuilt = look.key("rebuild").is_some();
    let unlisted = walk.unlisted();
    if !unlisted.is_empty() && !is_rebuilt {
        let text = several(unlisted.len(), "timeout set") + " missing in the ordered list";
        found.push(Finding::new(Code::Q04, text).evidence(unlisted));
    }
    if !walk.without_score.is_empty() {
        let text =
            several(walk.without_score.len(), "ordered list") + " not in the timeout set: without a due time";
        found.push(Finding::new(Code::Q05, text).evidence(walk.without_score.clone()));
    }
    if !walk.twice.is_empty() {
        let text = several(walk.twice.len(), "ordered list");
        found.push(Finding::new(Code::Q06, text).evidence(walk.twice.clone()));
    }
    if let (true, true, Some(set), Some(list)) =
        (walk.is_cut, found.is_empty(), look.overview.pending, look.overview.list_len)
    {
        let code = if set > list { Code::Q04 } else { Code::Q05 };
        if set != list && !(is_rebuilt && set > list) {
            let text = format!(
                "{} in the timeout set, and {} in the ordered list",
                entries(set),
                human::count(list)
            );
            // So long a list must not be read in one script.
            let difference = hash_of(&[&set.wrapping_sub(list).to_be_bytes()]);
            found.push(Finding::new(code, text).evidence([difference]).without_fix());
        }
    }
    found
}

fn formats(look: &Look) -> Vec<Finding> {
    let walk = &look.walk;
    let mut found = Vec::new();
    let mut add = |code, count: usize, text: &dyn Fn(String) -> String| {
        if count > 0 {
            found.push(Finding::new(code, text(entries(count as u64))));
        }
    };
    if walk.current > 0 {
        let current = human::count(walk.current as u64);
        add(Code::Q07, walk.legacy, &|legacy| {
            format!("{legacy} of Redisson ≤ 3.21.0, and {current} of a later one")
        });
    } else {
        add(Code::Q08, walk.legacy, &|legacy| format!("{legacy} of Redisson ≤ 3.21.0"));
    }
    add(Code::Q09, walk.malformed, &|malformed| format!("{malformed} in neither format of Redisson"));
    add(Code::Q10, walk.trailing, &|trailing| format!("{trailing} with bytes behind the payload"));
    add(Code::Q13, walk.fractions, &|fractions| format!("{fractions} with a fraction of a millisecond"));
    let longest = human::count(walk.longest as u64);
    add(Code::Q21, walk.long, &|long| format!("{long} longer than 1 MiB, the longest of {longest} bytes"));
    let all = look.overview.pending.max(look.overview.list_len);
    if let Some(all) = all.filter(|_| walk.is_cut) {
        let text = format!("{} of {} were read", human::count(walk.read as u64), entries(all));
        found.push(Finding::new(Code::Q43, text));
    }
    match &look.codecs[..] {
        [] => {}
        [one] if is_foreign(&one.format.to_string()) => {
            let text = format!("the payloads are of {}", one.format);
            found.push(Finding::new(Code::Q23, text));
        }
        [_] => {}
        several => {
            let names: Vec<String> = several.iter().map(|codec| codec.format.to_string()).collect();
            let text = format!("a sample has payloads of {}", names.join(" and "));
            found.push(Finding::new(Code::Q22, text));
        }
    }
    found
}

/// Whether redelay cannot read what is written by this codec.
fn is_foreign(codec: &str) -> bool {
    ["java-serialization", "jboss-marshalling", "smile"].iter().any(|foreign| codec.contains(foreign))
}

/// Scores that are no times, or strange ones.
fn times(look: &Look) -> Vec<Finding> {
    let details = &look.details;
    let mut found = Vec::new();
    let mut add = |code, count: Option<u64>, what: &str| {
        if let Some(count) = is_some(count) {
            found.push(Finding::new(code, format!("{} {what}", entries(count)).trim_end()));
        }
    };
    add(Code::Q11, details.negative, "with a negative score");
    add(Code::Q12, details.beyond, "with a score of 10^15 or more");
    add(Code::Q14, details.in_seconds, "with a score that is a time in seconds, not in milliseconds");
    let distant = details.distant.map(|distant| distant.saturating_sub(details.beyond.unwrap_or(0)));
    add(Code::Q15, distant, "");
    if let Some(overdue) = look.overview.overdue.filter(|overdue| *overdue > BACKLOG) {
        found.push(Finding::new(Code::Q03, format!("{} are overdue", entries(overdue))));
    }
    found
}

/// No room for offers and runs of schedules.
fn full(look: &Look) -> Option<Finding> {
    let overview = &look.overview;
    let most = overview.max_pending.filter(|_| state::is_full(overview))?;
    let pending = human::counted(overview.pending?, "entry is", "entries are");
    Some(Finding::new(Code::Q44, format!("{pending} pending, and at most {} may be", human::count(most))))
}

fn ready(look: &Look) -> Option<Finding> {
    let overview = &look.overview;
    let ready = overview.ready.filter(|ready| *ready >= MANY)?;
    let is_idle = overview.in_flight == Some(0) && look.is_silent();
    let ready_are = human::counted(ready, "payload is", "payloads are");
    let moved = is_some(overview.transferring_processes);
    let moved = moved.map(|count| human::counted(count, "process transfers", "processes transfer"));
    let moved = moved.map_or_else(String::new, |moved| format!(", while {moved} more"));
    let text = format!("{ready_are} ready, and no receiver is active{moved}");
    is_idle.then(|| Finding::new(Code::Q24, text).evidence(look.first_ready).measure(Some(ready)))
}

/// Keys of redelay for a queue that no client uses.
fn gone(look: &Look) -> Option<Finding> {
    let overview = &look.overview;
    let is_used = look.is_on_replica || overview.received_ago.is_some_and(|ago| ago < WEEK);
    // What may hold payloads is left alone: also what only one of a pair of keys has.
    let harmless = ["control", "receipts", "jobs", "other target"];
    let is_harmless = look.keys.iter().all(|key| harmless.contains(&key.what));
    let keys: Vec<_> =
        look.keys.iter().filter(|key| key.what != "other target").map(|key| key.key.to_vec()).collect();
    let is_gone = state::is_unused(overview) && !is_used && is_harmless && !keys.is_empty();
    let text =
        format!("{} of redelay, and nothing else of it", human::counted(keys.len() as u64, "key", "keys"));
    is_gone.then(|| Finding::new(Code::K04, text).name("KEYS", keys))
}

/// `orders#7`, where there are fewer.
fn partition(look: &Look) -> Option<Finding> {
    let (_, number) = split(&look.overview.name)?;
    let partitions = look.partitions.filter(|partitions| number >= *partitions)?;
    let overview = &look.overview;
    let contents = [
        overview.pending,
        overview.ready,
        overview.in_flight,
        overview.waiting,
        overview.dead_letters,
        overview.quarantined,
    ];
    let count: u64 = contents.iter().flatten().sum();
    let text = format!(
        "{} in it, and there are {}",
        human::counted(count, "payload is", "payloads are"),
        human::counted(partitions, "partition", "partitions")
    );
    (count > 0).then(|| Finding::new(Code::Q42, text))
}

/// The partitioned queue and the number of a partition, if the name is that of one.
pub(crate) fn split(name: &[u8]) -> Option<(&[u8], u64)> {
    let at = name.iter().rposition(|byte| *byte == b'#')?;
    let number = std::str::from_utf8(&name[at + 1..]).ok()?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((&name[..at], number.parse().ok()?)).filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_cluster_divides() {
        for name in ["q", "app:q", "{tag}q", "app:{tag}q", "{q}", "{a}b}"] {
            assert!(is_in_one_slot(name.as_bytes()), "{name}");
        }
        for name in ["a{b", "a}b", "{}q", ""] {
            assert!(!is_in_one_slot(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn partitions_have_numbers() {
        assert_eq!(split(b"orders#7"), Some((&b"orders"[..], 7)));
        assert_eq!(
            (split(b"orders"), split(b"orders#"), split(b"orders#x"), split(b"a#+1")),
            (None, None, None, None)
        );
    }

    #[test]
    fn each_of_two_names_has_its_own_limit() {
        let overview = state::known(|queue| (queue.pending, queue.max_pending) = (Some(1), Some(1)));
        let look = Look { overview, is_second_of_two: true, ..Look::default() };
        let codes: Vec<_> = findings(&look).iter().map(|finding| finding.code).collect();
        assert_eq!(codes, [Code::Q44]);
    }

    #[test]
    fn what_is_unknown_is_no_finding() {
        assert_eq!(findings(&Look::default()), []);
    }
}
