//! scratch
use redelay_model::model::{Bounds, Faults};
use redelay_model::server::Protocol;
use stateright::{Checker, HasDiscoveries, Model};

fn run(name: &str, bounds: Bounds, stop: bool) {
    let begun = std::time::Instant::now();
    let builder = bounds.checker();
    let builder = if stop { builder.finish_when(HasDiscoveries::AnyFailures) } else { builder.threads(2) };
    let checker = builder.spawn_bfs().join();
    println!("{name}: {} states, depth {}, {:.1?}", checker.unique_state_count(), checker.max_depth(), begun.elapsed());
    for (property, path) in checker.discoveries() {
        let fails = checker.discovery_classification(property).to_string();
        if fails == "example" { continue; }
        println!("  {fails} {property}");
        for action in path.into_actions() { println!("    {action:?}"); }
    }
}

#[test]
fn a2() {
    let bounds = Bounds {
        polls: 1, faults: 1, clients: 2,
        kinds: Faults { disconnect: true, ..Faults::default() },
        ..Bounds::new(Protocol::BEFORE)
    };
    run("A2", bounds.clone(), true);
    run("A2 all", bounds.clone(), false);
    run("A2 now", Bounds { protocol: Protocol::NOW, ..bounds }, false);
}
