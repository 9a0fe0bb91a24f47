//! The worker on Java Redisson: how it is built and started. What it does is in
//! `compat/java/src/main/java/redelay/bench`.

use std::path::Path;
use std::process::Command;

pub(crate) const VERSION: &str = "4.7.0";

/// Builds it if its sources have changed.
pub(crate) fn build() {
    let script = java().join("build.sh");
    let status = Command::new("sh").arg(script).arg(VERSION).status().expect("sh");
    assert!(status.success(), "the Java side does not build; scripts/java.sh installs what it needs");
}

pub(crate) fn command(url: &str) -> Command {
    let built = java().join("target").join(VERSION);
    let path = format!("{}:{}", built.join("classes").display(), built.join("lib/*").display());
    let mut command = Command::new("java");
    // For a person who tries other settings: REDELAY_JAVA="-Dbench.pool=8".
    command.args(std::env::var("REDELAY_JAVA").unwrap_or_default().split_whitespace());
    command.args(["-Xmx2g", "-cp", &path, "redelay.bench.Bench", url]);
    command
}

/// What `java -version` says, the first line of it.
pub(crate) fn java_version() -> String {
    let output = Command::new("java").arg("-version").output().expect("java");
    String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()
}

fn java() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../compat/java"))
}
