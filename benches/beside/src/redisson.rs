//! The worker on Java Redisson: how it is built and started. Its source is in
//! `compat/java/src/main/java/redelay/bench`.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

pub(crate) const VERSION: &str = "4.7.0";

/// Builds the worker if its sources have changed.
pub(crate) fn build() {
    let script = java().join("build.sh");
    let status = Command::new("sh").arg(script).arg(VERSION).status().expect("sh");
    assert!(status.success(), "the Java side does not build; scripts/java.sh installs what it needs");
}

/// The settings that a user of Redisson would tune. All others keep their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// `connectionPoolSize`. With fewer connections, each has more commands in its pipeline.
    pub(crate) connections: usize,
    /// `nettyThreads`.
    pub(crate) netty_threads: usize,
}

pub(crate) const DEFAULTS: Settings = Settings { connections: 64, netty_threads: 32 };

impl Settings {
    /// Each waiting taker needs a connection of its own.
    pub(crate) fn with_takers(self, takers: usize) -> Self {
        Self { connections: self.connections + takers, ..self }
    }
}

pub(crate) fn command(url: &str, settings: Settings, partitions: usize) -> Command {
    let built = java().join("target").join(VERSION);
    let path = format!("{}:{}", built.join("classes").display(), built.join("lib/*").display());
    let mut command = Command::new("java");
    command.args(["-Xmx2g", "-cp", &path, "redelay.bench.Bench", url]);
    command.args([settings.connections, settings.netty_threads, partitions].map(|number| number.to_string()));
    command
}

/// The first line of `java -version`.
pub(crate) fn java_version() -> String {
    let output = Command::new("java").arg("-version").output().expect("java");
    String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()
}

fn java() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../compat/java"))
}
