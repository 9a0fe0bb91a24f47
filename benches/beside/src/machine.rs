//! The machine and the software of a run, and the command that repeats it.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

use crate::effort::Effort;
use crate::redisson;
use crate::server::Server;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory: String,
    pub(crate) system: String,
    pub(crate) server: String,
    pub(crate) rust: String,
    pub(crate) java: String,
    pub(crate) redisson: String,
    pub(crate) commit: String,
    pub(crate) command: String,
    pub(crate) effort: String,
    pub(crate) date: String,
}

impl Machine {
    pub(crate) fn here(server: &Server, effort: &Effort, command: String) -> Self {
        let changes = !output("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty();
        let commit = output("git", &["rev-parse", "--short=12", "HEAD"]);
        Self {
            processor: line_of("/proc/cpuinfo", "model name"),
            cores: available_parallelism().map_or(1, usize::from),
            memory: line_of("/proc/meminfo", "MemTotal"),
            system: output("uname", &["-sr"]),
            server: server.version(),
            rust: output("rustc", &["--version"]),
            java: redisson::java_version(),
            redisson: redisson::VERSION.to_owned(),
            commit: if changes { format!("{commit}, with changes") } else { commit },
            command,
            effort: effort.name.to_owned(),
            date: output("date", &["-u", "+%Y-%m-%d"]),
        }
    }
}

/// The output of a program. Empty if there is no such program.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

fn line_of(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
    line.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}
