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

    pub(super) async fn start(self, url: String) -> Running {
        let start = move || Setup { redisson: self.version, codec: "long", ..Setup::new(&url) }.java();
        let peer = Some(spawn_blocking(start).await.expect("it starts"));
        let mut running = Running { does: self, peer };
        if self.moves {
            // It may be told once more if the server is away.
            while running.ask(&["open", "q"]).await != "ok" {}
        }
        running
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
