//! The workers on BullMQ, asynq and apalis-redis: how they are built and started. Their sources are in
//! `peers`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::system::System;

/// What is on this machine, and what is not.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Peers {
    pub(crate) present: Vec<System>,
    /// Name and version of each that is present.
    pub(crate) versions: Vec<(String, String)>,
    /// A sentence about each that is skipped.
    pub(crate) skipped: Vec<String>,
}

/// Builds the workers of those systems whose tools are installed. That of apalis takes two minutes, too long
/// for a tiny run.
pub(crate) fn build(is_tiny: bool) -> Peers {
    let mut peers = Peers::default();
    for (system, folder, tools) in [
        (System::BullMq, "bullmq", &["node", "npm"][..]),
        (System::Asynq, "asynq", &["go"][..]),
        (System::Apalis, "apalis", &["cargo"][..]),
    ] {
        let missing = tools.iter().find(|tool| version_of(tool).is_none());
        let built = match missing {
            _ if is_tiny && system == System::Apalis => Err("a tiny run does not build it".to_owned()),
            Some(tool) => Err(format!("{tool} is not installed")),
            None => run(folder),
        };
        match built {
            Ok(()) => {
                peers.present.push(system);
                peers.versions.push((system.name().to_owned(), version(system)));
            }
            Err(why) => {
                let skipped = format!("{} is skipped: {why}", system.name());
                eprintln!("{skipped}");
                peers.skipped.push(skipped);
            }
        }
    }
    peers
}

fn run(folder: &str) -> Result<(), String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/build.sh");
    let output = Command::new("sh").arg(script).arg(folder).output().expect("sh");
    let text = String::from_utf8_lossy(&output.stderr);
    let why = text.lines().find(|line| !line.starts_with("npm warn")).unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(format!("it does not build: {why}")) }
}

pub(crate) fn command(system: System, url: &str) -> Command {
    let mut command = match system {
        System::BullMq => {
            let mut node = Command::new("node");
            node.arg(built("bullmq/main.js"));
            node
        }
        System::Asynq => Command::new(built("asynq")),
        System::Apalis => Command::new(built("apalis-peer")),
        System::Redelay | System::Redisson => unreachable!("{} is no peer", system.name()),
    };
    command.arg(url);
    command
}

fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers").join(name)
}

/// The version of a system, and of what runs it.
fn version(system: System) -> String {
    match system {
        System::BullMq => {
            let manifest: serde_json::Value =
                serde_json::from_str(include_str!("../peers/bullmq/package.json")).expect("a manifest");
            let of = |name: &str| manifest["dependencies"][name].as_str().unwrap_or_default().to_owned();
            let node = version_of("node").unwrap_or_default();
            format!("{}, ioredis {}, node {node}", of("bullmq"), of("ioredis"))
        }
        System::Asynq => {
            let line =
                include_str!("../peers/asynq/go.mod").lines().find(|line| line.contains("hibiken/asynq"));
            let asynq = line.and_then(|line| line.split_whitespace().last()).unwrap_or_default();
            format!("{asynq}, {}", version_of("go").unwrap_or_default())
        }
        System::Apalis => {
            let of = |name: &str| {
                let manifest = include_str!("../peers/apalis/Cargo.toml");
                let line = manifest.lines().find(|line| line.starts_with(&format!("{name} = ")));
                line.and_then(|line| line.split('"').nth(1))
                    .unwrap_or_default()
                    .trim_start_matches('=')
                    .to_owned()
            };
            format!("{}, apalis {}", of("apalis-redis"), of("apalis"))
        }
        System::Redelay | System::Redisson => unreachable!("{} is no peer", system.name()),
    }
}

/// What a tool says of its version. `None` if there is no such tool.
fn version_of(tool: &str) -> Option<String> {
    let argument = if tool == "go" { "version" } else { "--version" };
    let output = Command::new(tool).arg(argument).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
