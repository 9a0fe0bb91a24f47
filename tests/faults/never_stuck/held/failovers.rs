//! The same on a cluster whose masters are replaced, and whose slot moves. Offers wait for a replica, so what
//! was answered holds.

use fastrand::Rng;
use redelay_fixture::Cluster;
use redelay_support::{Queues, TARGET, builder, ms};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::clusters::{Fault, Step, suffer, until_in_step};
use super::book::Book;
use super::{Play, Role, finish};

const IDS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_held_across_failovers() {
    let cluster = block_in_place(Cluster::start);
    let slot = cluster.slot_of(TARGET);
    let connecting = || {
        let client = builder(&cluster);
        client.command_timeout(ms(1500)).replicas(1, ms(500))
    };
    let (book, stop, lease) = (Book::default(), CancellationToken::new(), ms(1500));
    let (mut playing, mut random) = (JoinSet::new(), Rng::with_seed(17));
    let mut clients = Vec::new();
    for role in [Role::Offers, Role::Offers, Role::Works, Role::Works, Role::Cancels, Role::Operates] {
        let queues = Queues::of_numbers(connecting()).await;
        clients.push(queues.client.clone());
        let (book, stop) = (book.clone(), stop.clone());
        // A cancel waits for no replica: it may be lost with the master.
        let player = Play { queues, book, ids: IDS, lease, removals_last: false, stop };
        playing.spawn(player.go_on(role, random.fork()));
    }
    for fault in [Fault::Planned, Fault::Forced, Fault::Moved, Fault::Killed, Fault::Frozen] {
        sleep(ms(700)).await;
        block_in_place(|| {
            until_in_step(&cluster, slot);
            suffer(&cluster, slot, Step { after: ms(0), fault, lasts: ms(300) });
        });
    }
    sleep(ms(700)).await;
    stop.cancel();
    while let Some(ended) = playing.join_next().await {
        ended.expect("a player goes on whatever happens");
    }
    for client in &clients {
        client.shutdown().await;
    }
    let deeds = book.pages().deeds.clone();
    println!("{deeds:?}");
    assert!(
        ["stored", "kept", "replaced", "acknowledged", "cancelled"]
            .iter()
            .all(|deed| deeds.contains_key(deed))
    );
    let master = block_in_place(|| {
        until_in_step(&cluster, slot);
        cluster.be_patient(true);
        cluster.master_of(slot)
    });
    let last = builder(&cluster);
    finish(last, master, &book, IDS, lease).await.unwrap();
}
