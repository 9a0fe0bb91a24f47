//! A program of the user's that reads payloads: bytes in, text out. What it does cannot be trusted, so its
//! time and its output have limits.

use std::convert::Infallible;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// A program that needs longer for a payload is ended.
const LONGEST: Duration = Duration::from_secs(10);
/// The most bytes that it may print.
const MOST: u64 = 1_048_576;

/// The program, as a line for `sh -c`.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    line: String,
    longest: Duration,
}

impl Decoder {
    pub(crate) fn new(line: String) -> Self {
        Self { line, longest: LONGEST }
    }

    /// What it prints of a payload, without line feeds at the end; or why it did not. Nothing of the payload
    /// and nothing of stderr gets into the reason.
    pub(crate) async fn decode(&self, payload: &[u8]) -> Result<String, String> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // What it starts is ended with it.
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn().map_err(|error| format!("it cannot be run: {error}"))?;
        let mut running = Running(child);
        match tokio::time::timeout(self.longest, running.decode(payload)).await {
            Err(_) => Err(format!("it took longer than {} s", self.longest.as_secs_f32())),
            Ok(Err(error)) => Err(format!("it cannot be run: {error}")),
            Ok(Ok((status, text))) => match String::from_utf8(text) {
                Ok(text) if text.len() as u64 > MOST => Err(too_much()),
                Err(error) if error.as_bytes().len() as u64 > MOST => Err(too_much()),
                _ if !status.is_some_and(|status| status.success()) => Err(failed(status)),
                Ok(text) => Ok(text.trim_end_matches(['\n', '\r']).to_owned()),
                Err(_) => Err("it printed no UTF-8".into()),
            },
        }
    }
}

fn too_much() -> String {
    format!("it printed more than {MOST} bytes")
}

fn failed(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "it has failed".into(), |status| format!("it has failed: {status}"))
}

/// It is killed when this is dropped, unless it has ended.
struct Running(Child);

impl Running {
    /// Its status, unless it has printed too much, and what it printed.
    async fn decode(&mut self, payload: &[u8]) -> io::Result<(Option<ExitStatus>, Vec<u8>)> {
        let (stdin, stdout) = (self.0.stdin.take(), self.0.stdout.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // It may have had enough before it has read everything.
                let _ = stdin.write_all(payload).await;
            }
            std::future::pending::<Infallible>().await
        };
        let read = async {
            let mut text = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(MOST + 1).read_to_end(&mut text).await?;
            }
            io::Result::Ok(text)
        };
        let text = tokio::select! {
            text = read => text?,
            never = write => match never {},
        };
        let status = if text.len() as u64 > MOST { None } else { Some(self.0.wait().await?) };
        Ok((status, text))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) =
            self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.0.start_kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn decoded(line: &str, payload: &[u8]) -> Result<String, String> {
        Decoder { line: line.into(), longest: Duration::from_secs(600) }.decode(payload).await
    }

    #[tokio::test]
    async fn bytes_in_text_out() {
        assert_eq!(decoded("tr a-z A-Z", b"hello\n").await.unwrap(), "HELLO");
        assert_eq!(decoded("cat >/dev/null; echo done", &[7; 1_000_000]).await.unwrap(), "done");
        assert_eq!(decoded("echo early", &[7; 1_000_000]).await.unwrap(), "early");
        let long = vec![b'x'; 1_000_000];
        assert_eq!(decoded("cat", &long).await.unwrap().len(), long.len());
    }

    #[tokio::test]
    async fn what_fails_says_why() {
        for (line, why) in [
            ("cat >/dev/null; exit 3", "it has failed: exit status: 3"),
            ("no-such-program-here", "it has failed: exit status: 127"),
            ("kill -9 $$", "it has failed: signal: 9 (SIGKILL)"),
            ("printf '\\377'", "it printed no UTF-8"),
            ("yes", "it printed more than 1048576 bytes"),
        ] {
            assert_eq!(decoded(line, b"secret").await, Err(why.into()), "{line}");
        }
    }

    /// The program, and what it has started.
    #[tokio::test]
    async fn what_takes_too_long_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let line = format!("sleep 600 & echo $! >{}; wait", file.display());
        let decoder = Decoder { line, longest: Duration::from_secs(1) };
        assert_eq!(decoder.decode(b"").await, Err("it took longer than 1 s".into()));
        let pid = std::fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        let is_running = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        redelay_fixture::until("it is gone", || !is_running());
    }
}
