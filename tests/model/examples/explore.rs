//! scratch
use redelay_model::model::{Bounds, Faults};
use redelay_model::server::{Command, Protocol, Time};
use stateright::{Checker, HasDiscoveries, Model};

fn times(v: &str) -> Vec<Time> {
    v.split(',').filter(|v| !v.is_empty()).map(|v| v.parse().unwrap()).collect()
}

fn main() {
    let mut b = Bounds::new(Protocol::NOW);
    let mut stop = false;
    let mut threads = 2;
    let mut show_states = false;
    let mut only: Option<String> = None;
    b.kinds = Faults::default();
    for arg in std::env::args().skip(1) {
        let (k, v) = arg.split_once('=').unwrap_or((&arg, "1"));
        match k {
            "before" => b.protocol = Protocol { kills_old_connections: b.protocol.kills_old_connections, ..Protocol::BEFORE },
            "ideal" => b.protocol = Protocol { kills_old_connections: b.protocol.kills_old_connections, ..Protocol::WITHOUT_GAPS },
            "nokill" => b.protocol.kills_old_connections = false,
            "nowake" => b.protocol.own_offers_wake = false,
            "life" => b.protocol.life = Some(v.parse().unwrap()),
            "clients" => b.clients = v.parse().unwrap(),
            "offers" => b.offers = times(v),
            "together" => b.together = true,
            "pending" => b.pending = times(v),
            "ready" => b.ready = v.parse().unwrap(),
            "takes" => b.takes = v.parse().unwrap(),
            "polls" => b.polls = v.parse().unwrap(),
            "removals" => b.removals = v.parse().unwrap(),
            "reschedules" => b.reschedules = v.parse().unwrap(),
            "ticks" => b.ticks = v.parse().unwrap(),
            "schedules" => b.schedules = true,
            "peers" => b.peers = true,
            "faults" => b.faults = v.parse().unwrap(),
            "disconnect" => b.kinds.disconnect = true,
            "unsubscribe" => b.kinds.unsubscribe = true,
            "restart" => b.kinds.restart = true,
            "clock" => b.kinds.clock = Box::leak(times(v).into_boxed_slice()),
            "refuse" => {
                use Command::*;
                let all = [Set, Del, Zadd, Zrem, Zremrangebyrank, Rpush, Lpush, Lrem, Ltrim, Lset, Hset, Hdel, Announce, PublishMoved];
                let named: Vec<Command> = if v == "all" { all.to_vec() } else {
                    v.split(',').map(|n| *all.iter().find(|c| format!("{c:?}") == n).unwrap()).collect() };
                b.kinds.refuse = Box::leak(named.into_boxed_slice());
            }
            "symmetry" => b.symmetry = true,
            "stop" => { stop = true; threads = 1 }
            "only" => only = Some(v.to_owned()),
            "threads" => threads = v.parse().unwrap(),
            "states" => show_states = true,
            other => panic!("{other}"),
        }
    }
    let begun = std::time::Instant::now();
    let builder = b.checker().threads(threads);
    let builder = if stop { builder.finish_when(HasDiscoveries::AnyFailures) } else { builder };
    let checker = builder.spawn_bfs().join();
    println!("{} states, depth {}, {:.1?}", checker.unique_state_count(), checker.max_depth(), begun.elapsed());
    let mut examples = Vec::new();
    for (property, path) in checker.discoveries() {
        let fails = checker.discovery_classification(property).to_string();
        if fails == "example" { examples.push(property); continue; }
        if only.as_ref().is_some_and(|o| !property.contains(o.as_str())) { println!("  ({fails} {property})"); continue; }
        println!("  {fails} {property}");
        let last = path.last_state().clone();
        for action in path.into_actions() { println!("    {action:?}"); }
        if show_states { println!("{last:#?}"); }
    }
    println!("  seen: {examples:?}");
}
