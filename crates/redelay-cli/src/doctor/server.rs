//! What is wrong with servers, by what they say of themselves. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use redelay::inspector::{Role, Sentinel, Server, ServerSettings};

use crate::human;
use crate::state::is_silence;

use super::codes::{Code, Severity};
use super::finding::Finding;
use super::look::Refused;

/// The clocks of servers may differ by less than this, in ms.
const CLOCKS: f64 = 50.0;
/// This number of cached scripts is too many. Valkey keeps no more of those that `EVAL` has sent.
const SCRIPTS: u64 = 500;
/// Clients test an idle connection after 30 s. A server with at least this timeout never closes it.
const IDLE: Duration = Duration::from_secs(60);

/// What is wrong with a server.
pub(crate) fn findings(server: &Server, settings: &ServerSettings) -> Vec<Finding> {
    if let Some(silence) = server.unknown.iter().chain(&settings.unknown).find(|unknown| is_silence(unknown))
    {
        return vec![Finding::new(Code::S08, format!("a server does not answer: {}", silence.why))];
    }
    let mut found = memory(server);
    found.extend(persistence(server, settings));
    found.extend(replication(server, settings));
    found.extend(cluster(settings));
    if let Some(timeout) = settings.idle_timeout.filter(|timeout| !timeout.is_zero() && *timeout < IDLE) {
        found.push(Finding::new(Code::S06, format!("after {} without a command", human::span(timeout))));
    }
    if let (Some(clients), Some(most)) = (server.clients, server.max_clients)
        && clients.saturating_mul(10) > most.saturating_mul(9)
    {
        let text = format!("{} connections of at most {}", human::count(clients), human::count(most));
        found.push(Finding::new(Code::S12, text));
    }
    if let Some(scripts) = server.cached_scripts.filter(|scripts| *scripts >= SCRIPTS) {
        found.push(Finding::new(Code::S12, format!("{} cached scripts", human::count(scripts))));
    }
    found.extend(unknown(server, settings));
    found
}

fn memory(server: &Server) -> Vec<Finding> {
    let mut found = Vec::new();
    let policy = server.eviction_policy.as_deref();
    if let Some(policy) = policy.filter(|policy| *policy != "noeviction") {
        let evicted = server.evicted_keys.filter(|keys| *keys > 0);
        let evicted = evicted.map_or_else(String::new, |keys| {
            format!("; it has deleted {} so far", human::counted(keys, "key", "keys"))
        });
        found.push(Finding::new(Code::S01, format!("maxmemory-policy is {policy}{evicted}")));
    }
    if let (Some(used), Some(most)) = (server.used_memory, server.max_memory)
        && used.saturating_mul(5) > most.saturating_mul(4)
    {
        let text = format!("{} bytes of {}", human::count(used), human::count(most));
        found.push(Finding::new(Code::S02, text));
    }
    found
}

fn persistence(server: &Server, settings: &ServerSettings) -> Vec<Finding> {
    let mut found = Vec::new();
    if server.has_append_only_file == Some(false) && settings.save.as_deref() == Some("") {
        found.push(Finding::new(Code::S03, "it writes neither snapshots nor an append-only file"));
    }
    if server.saving_fails == Some(true) {
        found.push(Finding::new(Code::S04, "the last snapshot, or the last write to the append-only file"));
    }
    found
}

fn replication(server: &Server, settings: &ServerSettings) -> Vec<Finding> {
    let mut found = Vec::new();
    if server.role == Some(Role::Replica) {
        let text = match server.is_linked {
            Some(false) => "this is a replica, and it is not connected to its master",
            _ => "this is a replica: what it shows may be old",
        };
        found.push(Finding::new(Code::S07, text));
    }
    if let (Some(good), Some(least)) = (server.good_replicas, settings.min_replicas)
        && good < least
    {
        let text = format!(
            "{} of {} that must follow",
            human::counted(good, "replica", "replicas"),
            human::count(least)
        );
        found.push(Finding::new(Code::S07, text));
    }
    found
}

fn cluster(settings: &ServerSettings) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(cluster) = &settings.cluster {
        let slots = |count| human::counted(count, "slot", "slots");
        if !cluster.is_ok || cluster.slots_without_server > 0 {
            let text = format!("{} without a server", slots(cluster.slots_without_server));
            found.push(Finding::new(Code::S08, text));
        }
        if !cluster.moving_slots.is_empty() {
            let text = format!("{} half moved", slots(cluster.moving_slots.len() as u64));
            found.push(Finding::new(Code::S08, text));
        }
    }
    if settings.requires_full_coverage == Some(true) {
        found.push(Finding::new(Code::S09, "cluster-require-full-coverage is yes"));
    }
    found
}

/// What it has refused to say, where it matters.
fn unknown(server: &Server, settings: &ServerSettings) -> Vec<Finding> {
    let matters = |what: &str| match what {
        "save" => server.has_append_only_file != Some(true),
        "min_replicas" => server.good_replicas.is_some(),
        _ => true,
    };
    let all = server.unknown.iter().chain(&settings.unknown).filter(|unknown| matters(&unknown.what));
    let is_absent = |why: &str| why.contains("unknown command") && why.to_lowercase().contains("config");
    let (absent, refused): (Vec<_>, Vec<_>) = all.partition(|unknown| is_absent(&unknown.why));
    let mut found = super::finding::unknown(&refused.into_iter().filter_map(Refused::of).collect::<Vec<_>>());
    let says_nothing = settings.unknown.iter().all(|unknown| unknown.what != "cluster");
    if server.is_in_cluster == Some(true)
        && settings.address == server.address
        && settings.cluster.is_none()
        && says_nothing
    {
        let text = "only the slots of this server are looked at: write redis-cluster://…";
        found.push(Finding::unknown(Code::S08, text));
    }
    if !absent.is_empty() {
        found.push(Finding::new(Code::S14, "persistence and the timeout of connections are unknown"));
    }
    debug_assert!(found.iter().all(|finding| finding.severity == Severity::Unknown));
    found
}

/// Masters whose clocks differ from that of the first one: their addresses, and by how much.
pub(crate) fn clocks(servers: &[Server]) -> Vec<(String, Finding)> {
    let ahead = |server: &Server| {
        let trip = server.round_trip?.as_secs_f64() * 1e3;
        Some((server.ahead_ms?, trip))
    };
    let known = servers.iter().enumerate().find_map(|(at, server)| Some((at, server, ahead(server)?)));
    let Some((at, one, (first, trip))) = known else { return Vec::new() };
    let differs = |server: &Server| {
        let (other, own_trip) = ahead(server)?;
        let by = (other - first).abs();
        let text = format!("by {by:.0} ms from that of {}", one.address);
        (by > CLOCKS + trip + own_trip).then(|| (server.address.clone(), Finding::new(Code::S10, text)))
    };
    servers[at + 1..].iter().filter_map(differs).collect()
}

/// What is wrong with sentinels: their addresses, and what.
pub(crate) fn sentinels(sentinels: &[Sentinel]) -> Vec<(String, Finding)> {
    let mut found = Vec::new();
    for sentinel in sentinels {
        let address = &sentinel.address;
        let finding = |text: String| (address.clone(), Finding::new(Code::S15, format!("{address} {text}")));
        let silence = sentinel.unknown.iter().find(|unknown| is_silence(unknown));
        let is_refused = |what| sentinel.unknown.iter().any(|unknown| unknown.what == what);
        if let Some(silence) = silence {
            found.push(finding(format!("does not answer: {}", silence.why)));
        } else if sentinel.master.is_none() && !is_refused("master") {
            // So it has no answer to the other question.
            found.push(finding("knows no master of this name".into()));
        } else {
            let refused: Vec<Refused> = sentinel.unknown.iter().filter_map(Refused::of).collect();
            let unknown = super::finding::unknown(&refused);
            found.extend(unknown.into_iter().map(|finding| (address.clone(), finding)));
            if sentinel.has_quorum == Some(false) {
                found.push(finding("is not in touch with enough others to replace the master".into()));
            }
        }
    }
    let named: BTreeSet<&String> = sentinels.iter().filter_map(|sentinel| sentinel.master.as_ref()).collect();
    if named.len() > 1 {
        let names = sentinels
            .iter()
            .filter_map(|sentinel| Some(format!("{} names {}", sentinel.address, sentinel.master.as_ref()?)));
        let text = names.collect::<Vec<_>>().join(", ");
        found.push((sentinels[0].address.clone(), Finding::new(Code::S15, text)));
    }
    found
}

/// What a server has refused of others between two looks.
pub(crate) fn refusals(before: &Server, after: &Server) -> Option<Finding> {
    let count = after.refused_commands?.checked_sub(before.refused_commands?).filter(|count| *count > 0)?;
    let text = human::counted(count, "command was refused", "commands were refused");
    Some(Finding::new(Code::S11, format!("{text} in a moment for want of a permission (NOPERM)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(server: &Server, settings: &ServerSettings) -> Vec<Code> {
        findings(server, settings).iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn memory_is_judged_by_its_limit() {
        let mut server = Server::default();
        (server.used_memory, server.max_memory) = (Some(81), Some(100));
        assert_eq!(codes(&server, &ServerSettings::default()), [Code::S02]);
        server.used_memory = Some(80);
        assert_eq!(codes(&server, &ServerSettings::default()), []);
        server.max_memory = None;
        assert_eq!(codes(&server, &ServerSettings::default()), []);
    }

    #[test]
    fn connections_that_are_tested_in_time_are_not_closed() {
        for (timeout, expected) in
            [(0, &[][..]), (1, &[Code::S06]), (59, &[Code::S06]), (60, &[]), (300, &[])]
        {
            let mut settings = ServerSettings::default();
            settings.idle_timeout = Some(Duration::from_secs(timeout));
            assert_eq!(codes(&Server::default(), &settings), expected, "{timeout} s");
        }
    }

    #[test]
    fn clocks_differ_by_more_than_the_way_takes() {
        let server = |ahead, trip| {
            let mut server = Server::default();
            server.address = format!("{ahead}");
            (server.ahead_ms, server.round_trip) = (Some(ahead), Some(Duration::from_millis(trip)));
            server
        };
        let of =
            |servers: &[Server]| clocks(servers).into_iter().map(|(address, _)| address).collect::<Vec<_>>();
        assert_eq!(of(&[server(0.0, 1), server(40.0, 1), server(-60.0, 1)]), ["-60"]);
        assert_eq!(of(&[server(0.0, 100), server(140.0, 1)]), Vec::<String>::new());
        assert_eq!(of(&[Server::default(), server(900.0, 1)]), Vec::<String>::new());
    }

    #[test]
    fn without_a_permission_persistence_is_unknown_unless_there_is_a_file() {
        let mut server = Server::default();
        server.has_append_only_file = Some(false);
        let mut settings = ServerSettings::default();
        assert_eq!(codes(&server, &settings), []);
        settings.save = Some(String::new());
        assert_eq!(codes(&server, &settings), [Code::S03]);
        server.has_append_only_file = Some(true);
        assert_eq!(codes(&server, &settings), []);
    }
}
