//! A Redisson beside the clients of a plan: a process of its own, with connections of its own.

use fastrand::Rng;
use redelay_support::peer::{Peer, Setup};
use tokio::task::spawn_blocking;

const VERSIONS: [&str; 3] = ["4.7.0", "3.50.0", "3.21.0"];

/// What it does on the queue `q`, which has numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Redisson {
    version: &'static str,
    pub(super) offers: bool,
    pub(super) moves: bool,
    pub(super) takes: bool,
}

impl Redisson {
    pub(super) fn random(random: &mut Rng) -> Self {
        let version = VERSIONS[random.usize(0..VERSIONS.len())];
        let [offers, moves, takes] = [(); 3].map(|()| random.bool());
        let does_something = offers || moves || takes;
        Self { version, offers, moves: moves || !does_something, takes }
    }

    /// Waits until it works. A virtual machine takes its time, which is not that of a plan.
    pub(super) fn start(self, url: &str) -> Running {
        let mut peer = Setup { redisson: self.version, codec: "long", ..Setup::new(url) }.java();
        if self.moves {
            peer.open("q");
        }
        Running { does: self, peer: Some(peer) }
    }
}

/// It ends with this.
pub(super) struct Running {
    pub(super) does: Redisson,
    peer: Option<Peer>,
}

impl Running {
    pub(super) async fn ask(&mut self, fields: &[&str]) -> String {
        let mut peer = self.peer.take().expect("one call after the other");
        let fields: Vec<String> = fields.iter().map(|&field| field.to_owned()).collect();
        let asking = spawn_blocking(move || {
            let answer = peer.ask(&fields.iter().map(String::as_str).collect::<Vec<_>>());
            (peer, answer)
        });
        let (peer, answer) = asking.await.expect("an answer");
        self.peer = Some(peer);
        answer
    }
}
