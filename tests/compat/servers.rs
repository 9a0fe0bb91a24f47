//! redelay and Redisson on the same cluster, and on a master that the same sentinels name: before and after failovers, and after
//! the slot of the queue has moved.

use redelay_fixture::{Cluster, Failover, Sentinels};

use super::peer::Setup;
use super::{Cast, all_roles, report};

/// Offers, transfers and takes in every combination of the two.
fn play_all(cast: &mut Cast, what: &str) {
    for name in ["orders", "{tag}orders"] {
        for roles in all_roles() {
            cast.play(name, roles, 4);
        }
    }
    report(what);
}

#[test]
fn a_cluster_with_failovers_and_a_slot_that_moves() {
    let cluster = Cluster::start();
    let slot = cluster.slot_of("orders");
    let mut cast = Cast::start(&Setup::new(&cluster.url()));
    play_all(&mut cast, "in a cluster");
    cluster.failover(slot, Failover::Planned);
    play_all(&mut cast, "after a planned failover");
    let old = cluster.master_of(slot);
    old.kill_9();
    cluster.wait_for_other_master(slot, old.port());
    play_all(&mut cast, "after the master was killed");
    let from = cluster.master_of(slot).port();
    let masters = cluster.servers()[..3].iter().filter(|server| server.is_running());
    let to = masters
        .clone()
        .find(|server| server.port() != from && cluster.is_master(server))
        .expect("another master");
    cluster.begin_move(slot, to);
    cluster.migrate_keys(slot);
    cluster.end_move(slot);
    play_all(&mut cast, "after the slot has moved");
    cast.quit();
}

#[test]
fn a_master_that_sentinels_name_with_a_failover() {
    let group = Sentinels::start();
    let mut cast = Cast::start(&Setup::new(&group.url()));
    play_all(&mut cast, "with sentinels");
    group.failover();
    play_all(&mut cast, "after their failover");
    cast.quit();
}
