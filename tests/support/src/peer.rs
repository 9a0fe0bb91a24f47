//! The two peers as processes. Each line is a command, and each answer is a line.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// No answer takes longer than this, even from a cold virtual machine on a busy computer.
const PATIENCE: Duration = Duration::from_secs(600);

/// What makes a virtual machine start faster. Where there is no archive of classes, it starts without one. No
/// warning comes between two answers.
const JVM: [&str; 5] =
    ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m", "-Xlog:disable"];

/// The language of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lang {
    /// redelay.
    Rust,
    /// Redisson.
    Java,
}

/// The settings of a peer.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The server.
    pub url: &'a str,
    /// The name of a codec, as the peers have them.
    pub codec: &'a str,
    /// The version of Redisson.
    pub redisson: &'a str,
    /// What the mapper of names puts in front of them.
    pub prefix: &'a str,
    /// Whether redelay writes entries in the format of Redisson 3.21.0.
    pub legacy: bool,
}

impl<'a> Setup<'a> {
    /// Texts, and the latest Redisson.
    pub fn new(url: &'a str) -> Self {
        Self { url, codec: "string", redisson: "4.7.0", prefix: "", legacy: false }
    }

    /// Starts a peer.
    pub fn start(&self, lang: Lang) -> Peer {
        match lang {
            Lang::Rust => self.rust(),
            Lang::Java => self.java(),
        }
    }

    /// Starts redelay's.
    pub fn rust(&self) -> Peer {
        self.redelay(rust_peer())
    }

    /// Starts this program, which redelay's peer of some commit is.
    pub fn redelay(&self, program: &Path) -> Peer {
        let mut command = Command::new(program);
        command.args([self.url, self.codec]).env("REDELAY_MAPPER", self.prefix);
        if self.legacy {
            command.env("REDELAY_FORMAT", "legacy");
        }
        Peer::spawn(command, program.display().to_string())
    }

    /// Starts Redisson's.
    pub fn java(&self) -> Peer {
        let build = java_build().join("target").join(self.redisson);
        let mut command = Command::new("java");
        // Redisson logs what it does not decode, which it is asked to here.
        let quiet = (self.codec == "shapes")
            .then_some("-Dorg.slf4j.simpleLogger.log.org.redisson.client.handler=off");
        command
            .args(JVM)
            .arg(format!("-XX:SharedArchiveFile={}/peer.jsa", build.display()))
            .arg(format!("-Dredelay.mapper={}", self.prefix))
            .args(quiet)
            .arg("-cp")
            .arg(format!("{0}/peer.jar:{0}/lib/*", build.display()))
            .args(["Peer", self.url, self.codec]);
        Peer::spawn(command, format!("java {}", self.redisson))
    }
}

/// Redisson's codecs without a server: they read each payload on a line, and write it again.
pub fn java_codecs(redisson: &str) -> Peer {
    let build = java_build().join("target").join(redisson);
    let mut command = Command::new("java");
    command
        .args(JVM)
        .arg(format!("-XX:SharedArchiveFile={}/peer.jsa", build.display()))
        .arg("-cp")
        .arg(format!("{0}/peer.jar:{0}/lib/*", build.display()))
        .args(["redelay.compat.Vectors", "again"]);
    Peer::spawn(command, "java codecs".into())
}

/// A running peer. It ends with the test.
#[derive(Debug)]
pub struct Peer {
    who: String,
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Peer {
    fn spawn(mut command: Command, who: String) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap_or_else(|error| {
                panic!("cannot start the {who} peer ({error}); scripts/java.sh installs Java")
            });
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, answers) = channel();
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let stdin = child.stdin.take();
        let peer = Self { who, child, stdin, answers };
        assert_eq!(peer.answer(), "ready", "{}", peer.who);
        peer
    }

    /// Sends a command and returns its answer.
    pub fn ask(&mut self, fields: &[&str]) -> String {
        self.send(fields);
        self.answer()
    }

    /// Sends a command whose answer is `ok`.
    pub fn tell(&mut self, fields: &[&str]) {
        let answer = self.ask(fields);
        assert_eq!(answer, "ok", "{} answers {fields:?}", self.who);
    }

    /// Opens a delayed queue. These tests run many virtual machines at once, so Redisson may exceed its own
    /// 7.5 s for a subscription. Then this tries again.
    pub fn open(&mut self, queue: &str) {
        let tries = 4;
        let opened = (0..tries).any(|_| {
            let answer = self.ask(&["open", queue]);
            assert!(answer == "ok" || answer.starts_with("!timeout"), "{} answers {answer}", self.who);
            answer == "ok"
        });
        assert!(opened, "{} does not open {queue}, in {tries} tries", self.who);
    }

    /// Sends a command; [`Peer::answer`] reads its answer later.
    pub fn send(&mut self, fields: &[&str]) {
        let stdin = self.stdin.as_mut().expect("still open");
        writeln!(stdin, "{}", fields.join("\t")).and_then(|()| stdin.flush()).expect("a living peer");
    }

    /// The next answer, or `None` if it takes longer than `most`.
    pub fn answer_within(&self, most: Duration) -> Option<String> {
        self.answers.recv_timeout(most).ok()
    }

    /// The next answer.
    pub fn answer(&self) -> String {
        self.answer_while(|| false)
    }

    /// The same, for an answer that may take longer as long as this holds.
    pub fn answer_while(&self, may_take_longer: impl Fn() -> bool) -> String {
        loop {
            let is_last = !may_take_longer();
            match self.answers.recv_timeout(PATIENCE) {
                Ok(line) => return line,
                Err(RecvTimeoutError::Timeout) if !is_last => {}
                Err(error) => panic!("the {} peer gives no answer ({error})", self.who),
            }
        }
    }

    /// Ends the peer with the protocol's command. Its exit code must be 0.
    pub fn quit(mut self) {
        self.send(&["quit"]);
        let status = self.child.wait().expect("an exit code");
        assert!(status.success(), "the {} peer ended with {status}", self.who);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program of `compat/rust`.
fn rust_peer() -> &'static Path {
    static PEER: OnceLock<PathBuf> = OnceLock::new();
    PEER.get_or_init(|| built("redelay-peer"))
}

/// The command `redelay`.
pub fn command() -> &'static Path {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND.get_or_init(|| built("redelay"))
}

/// A program, built with the profile of this test, unless `tests/run.py` has done it. With all packages and
/// features, and with an example, which needs what tests need: otherwise, the dependencies would be built
/// once more with fewer features.
fn built(program: &str) -> PathBuf {
    // <target>/<profile>/deps/<test>-<hash>
    let exe = std::env::current_exe().expect("a path");
    let profile = exe.ancestors().nth(2).expect("a profile folder");
    let target = profile.parent().expect("a target folder");
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--quiet", "--workspace", "--all-features", "--example", "offer_take"])
        .args(["--bin", program, "--target-dir"])
        .arg(target);
    // With the variables that cargo sets for a test, `ring` and all that depends on it would be compiled
    // again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            build.env_remove(&name);
        }
    }
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let status = build.current_dir(root()).status().expect("cargo");
    assert!(status.success(), "{program} does not build");
    profile.join(program)
}

/// The folder of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of the Java peer, built for every version.
fn java_build() -> &'static Path {
    static BUILD: OnceLock<PathBuf> = OnceLock::new();
    BUILD.get_or_init(|| {
        let folder = root().join("compat/java");
        let status = Command::new("sh").arg(folder.join("build.sh")).status().expect("sh");
        assert!(status.success(), "the Java peer does not build; scripts/java.sh installs what it needs");
        folder
    })
}
