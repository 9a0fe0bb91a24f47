//! A real NATS server with JetStream.

use std::iter;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use async_nats::jetstream;
use redelay_fixture::{Port, Program, until};
use tempfile::TempDir;

/// As `scripts/servers.sh` has it.
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers/nats-2.12/nats-server");

/// A server with its own port and folder. Dropping it kills the process.
pub(crate) struct Nats {
    process: Mutex<Option<Program>>,
    port: Port,
    dir: TempDir,
}

impl Nats {
    pub(crate) fn start() -> Self {
        let nats =
            Self { process: Mutex::new(None), port: Port::reserve(), dir: tempfile::tempdir().unwrap() };
        nats.start_again();
        nats
    }

    /// After [`kill_9`](Self::kill_9), with the same port and folder. Returns when it takes connections.
    pub(crate) fn start_again(&self) {
        let (port, folder) = (self.port.number().to_string(), self.dir.path().to_str().unwrap());
        let arguments = ["--addr", "127.0.0.1", "--port", &port, "--jetstream", "--store_dir", folder];
        let process = Program::start(binary(), &arguments, &[]);
        until("the NATS server is ready", || {
            assert!(process.is_running(), "it ended: {}", process.output());
            process.output().contains("Server is ready")
        });
        *self.process.lock().unwrap() = Some(process);
    }

    /// Sends `SIGKILL`, and waits until the server has ended.
    pub(crate) fn kill_9(&self) {
        *self.process.lock().unwrap() = None;
    }

    /// A client that connects again as often as it must, every 50 ms.
    pub(crate) async fn connect(&self) -> jetstream::Context {
        let options = async_nats::ConnectOptions::new();
        let options = options.reconnect_delay_callback(|_| Duration::from_millis(50));
        let client = options.connect(format!("127.0.0.1:{}", self.port.number())).await.unwrap();
        let mut broker = jetstream::new(client);
        // A publish that the killed server did not answer need not wait for 5 s.
        broker.set_timeout(Duration::from_secs(1));
        broker
    }
}

/// The server that `scripts/servers.sh` builds, or else the one on `PATH` or in Debian's package.
fn binary() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let mut found = iter::once(PathBuf::from(BUILT)).chain(folders.map(|folder| folder.join("nats-server")));
    found.find(|file| file.is_file()).expect("no nats-server; run scripts/servers.sh, which installs it")
}
