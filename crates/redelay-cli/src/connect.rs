//! The connection of a command: by `--url`, a profile, or `REDELAY_URL`.

use std::env;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use bytes::Bytes;
use redelay::client::{ClientConfig, TlsConfig};
use redelay::codec::{Kryo5, WithClasses};
use redelay::inspector::{Cursor, Inspector, Overview, Role, Server};
use redelay::{Client, Error, ErrorKind};

use crate::args::Connection;
use crate::classes;
use crate::escape;
use crate::failure::Failure;
use crate::human;
use crate::mask::Mask;
use crate::out::Out;
use crate::payload::Reader;
use crate::profile::{self, PasswordCommand, Profile};
use crate::queue;
use crate::state;

/// How many payloads of a queue say which codec it has.
const SAMPLE: usize = 10;
/// The most bytes of a payload behind which more are read for that.
const SHORT: usize = 16_384;

/// What a command looks through.
pub(crate) struct Session {
    pub(crate) inspector: Inspector,
    profile: Profile,
    /// The name of the profile, if one was asked for.
    label: Option<String>,
    classes: Option<WithClasses>,
    /// Whether all servers of a cluster are asked.
    is_cluster: bool,
}

impl Session {
    /// For a command that only looks.
    pub(crate) async fn open(connection: &Connection) -> Result<Self, Failure> {
        Ok(Self::with_client(connection, false).await?.0)
    }

    /// The same with the client that it looks through.
    pub(crate) async fn with_client(
        connection: &Connection,
        transfers: bool,
    ) -> Result<(Self, Client), Failure> {
        let (profile, url) = choose(connection)?;
        let timeout = connection.timeout;
        let mut config = ClientConfig::default();
        let is_cluster = url.split("://").next().is_some_and(|scheme| scheme.ends_with("-cluster"));
        config.url = Some(url);
        config.user = profile.user.clone();
        config.client_name = Some("redelay-cli".into());
        config.tls = profile.tls.as_ref().map(tls);
        if let Some(command) = &profile.password_command {
            config.password = Some(password("password_command", command).await?);
        }
        config.sentinel_user = profile.sentinel_user.clone();
        if let Some(command) = &profile.sentinel_password_command {
            config.sentinel_password = Some(password("sentinel_password_command", command).await?);
        }
        let client = config.builder()?.transfer(transfers).connect_timeout(timeout).command_timeout(timeout);
        let client = client.connect().await?;
        let session = Self {
            inspector: client.inspector(),
            profile,
            label: connection.profile.clone(),
            classes: None,
            is_cluster,
        };
        Ok((session, client))
    }

    /// With the classes that these files and the profile describe.
    pub(crate) fn with_classes(self, files: &[PathBuf], out: &Out) -> Result<Self, Failure> {
        let files: Vec<_> = self.profile.classes.iter().chain(files).cloned().collect();
        let classes = classes::load(&files, out)?.map(|classes| Kryo5.with_classes(classes));
        Ok(Self { classes, ..self })
    }

    /// The name of a queue on the server, or a pattern of such names.
    pub(crate) fn name(&self, name: &[u8]) -> Bytes {
        [self.profile.name_prefix.as_bytes(), name].concat().into()
    }

    /// A pattern of names on the server. What has a meaning in a pattern has none in the prefix.
    pub(crate) fn pattern(&self, pattern: &[u8]) -> Vec<u8> {
        let prefix = escape::pattern(self.profile.name_prefix.as_bytes());
        [&prefix[..], pattern].concat()
    }

    /// Whether the profile hides values.
    pub(crate) fn is_masked(&self) -> bool {
        !self.profile.mask.is_empty()
    }

    /// The name of a queue as its owners have it.
    pub(crate) fn own_name<'a>(&self, name: &'a [u8]) -> &'a [u8] {
        name.strip_prefix(self.profile.name_prefix.as_bytes()).unwrap_or(name)
    }

    /// How the payloads of a queue are read: by a sample of up to 10, of the pending ones and then of the
    /// ready ones.
    pub(crate) async fn reader(&self, queue: &Overview) -> Result<Reader, Failure> {
        let (sample, refusal) = self.sample(queue).await?;
        let name = self.own_name(&queue.name);
        let mut reader = self.reader_of(name, sample.iter().map(|payload| &payload[..]));
        reader.refusal = refusal;
        Ok(reader)
    }

    /// The sample, and what the server has refused of it. Long payloads are not read for this.
    pub(crate) async fn sample(&self, queue: &Overview) -> Result<(Vec<Bytes>, Option<String>), Failure> {
        let (mut sample, mut refusal) = (Vec::new(), None);
        if state::is_unanswered(queue) {
            return Ok((sample, refusal));
        }
        if queue.pending != Some(0) {
            let read = async |after, most| self.inspector.pending(&queue.name, after, most).await;
            match some_of(read, |entry| entry.entry.len(), SAMPLE, queue.pending).await {
                Ok(entries) => sample.extend(entries.into_iter().filter_map(|entry| entry.payload)),
                Err(error) => refusal = Some(words_of_refusal(error)?),
            }
        }
        if sample.len() < SAMPLE && queue.ready != Some(0) {
            let read = async |after, most| self.inspector.ready(&queue.name, after, most).await;
            match some_of(read, |ready| ready.payload.len(), SAMPLE - sample.len(), queue.ready).await {
                Ok(ready) => sample.extend(ready.into_iter().map(|ready| ready.payload)),
                Err(error) => refusal = Some(words_of_refusal(error)?),
            }
        }
        Ok((sample, refusal))
    }

    /// A reader of payloads of a queue, by this sample.
    pub(crate) fn reader_of<'a>(&self, name: &[u8], sample: impl IntoIterator<Item = &'a [u8]>) -> Reader {
        let reader = Reader::new(self.profile.codec_of(name), Mask::new(&self.profile.mask), sample);
        reader.with_classes(self.classes.clone())
    }

    /// Looks at a queue that must be there.
    pub(crate) async fn queue(&self, name: &[u8]) -> Result<Overview, Failure> {
        let overviews = self.inspector.overview(&[self.name(name)]).await?;
        let absent = |server: &str| {
            Failure::Negative(format!(
                "there is no queue `{}` on {server}: it has nothing in it, and no client has it open; redelay ls lists those that there are",
                escape::bytes(name)
            ))
        };
        match overviews.into_iter().next() {
            Some(queue) if state::is_absent(&queue) => Err(absent(&queue.server)),
            Some(queue) => Ok(queue),
            None => Err(absent("the server")),
        }
    }

    /// What the servers say of themselves.
    pub(crate) async fn ask_servers(&self) -> Result<Servers, Failure> {
        let servers = self.inspector.servers().await?;
        Ok(Servers { servers, asked: Instant::now(), label: self.label.clone() })
    }

    /// The servers that are asked. Says if one of them does not answer, is a replica, or is one of a cluster
    /// whose others are not asked.
    pub(crate) async fn servers(&self, out: &Out) -> Result<Servers, Failure> {
        let servers = self.ask_servers().await?;
        for server in &servers.servers {
            server.unknown.iter().filter(|unknown| state::is_silence(unknown)).for_each(|unknown| {
                out.note(&queue::refusal(unknown));
            });
            if server.is_in_cluster == Some(true) && !self.is_cluster {
                out.note(&format!(
                    "{} belongs to a cluster, of which only its own slots are looked at: write redis-cluster://…",
                    server.address
                ));
            }
            if server.role.is_none()
                && let Some(unknown) = server.unknown.iter().find(|unknown| unknown.what == "product")
            {
                let mut unknown = unknown.clone();
                unknown.what = format!("whether {} is a replica", server.address);
                out.note(&queue::refusal(&unknown));
            }
            if server.role == Some(Role::Replica) {
                let link = match server.is_linked {
                    Some(false) => ", and not connected to its master",
                    _ => "",
                };
                out.note(&format!(
                    "{} is a replica{link}: what it shows may be old; connect to the master to be sure",
                    server.address
                ));
            }
        }
        Ok(servers)
    }
}

/// Reads the first `most` of these, or fewer: it reads no further page after one that has a long one.
/// Their lengths are known only when they are read. So it begins with one, and then doubles what it has.
pub(crate) async fn some_of<T>(
    read: impl AsyncFn(Option<Cursor>, usize) -> redelay::Result<Vec<T>>,
    length: impl Fn(&T) -> usize,
    most: usize,
    there: Option<u64>,
) -> redelay::Result<Vec<T>>
where
    for<'a> Cursor: From<&'a T>,
{
    let most = there.map_or(most, |there| most.min(there as usize));
    let mut some: Vec<T> = Vec::new();
    while some.len() < most {
        let count = (some.len() + 1).min(most - some.len());
        let page = read(some.last().map(Cursor::from), count).await?;
        let is_end = page.len() < count || page.iter().any(|one| length(one) > SHORT);
        some.extend(page);
        if is_end {
            break;
        }
    }
    Ok(some)
}

/// The server's words, if it has refused something.
fn words_of_refusal(error: Error) -> Result<String, Failure> {
    match error.kind() {
        ErrorKind::Refused => Ok(error.to_string()),
        _ => Err(error.into()),
    }
}

/// What the server has refused, if that is the reason.
pub(crate) fn refused(what: &str, error: Error) -> Result<String, Failure> {
    match error.kind() {
        ErrorKind::Refused => Ok(format!("{what} is unknown: {}", Failure::from(error))),
        _ => Err(error.into()),
    }
}

/// What the servers say of themselves.
pub(crate) struct Servers {
    servers: Vec<Server>,
    asked: Instant,
    label: Option<String>,
}

impl Servers {
    /// The clock of the server of this address.
    pub(crate) fn clock(&self, address: &str) -> std::time::SystemTime {
        let own = self.servers.iter().find(|server| server.address == address);
        let clock = own.or(self.servers.first()).and_then(|server| server.clock);
        clock.map_or_else(std::time::SystemTime::now, |clock| clock + self.asked.elapsed())
    }

    /// Whether a server is one of them.
    pub(crate) fn has(&self, address: &str) -> bool {
        self.servers.iter().any(|server| server.address == address)
    }

    /// Whether one of them does not answer, which was said.
    pub(crate) fn are_incomplete(&self) -> bool {
        self.servers.iter().flat_map(|server| &server.unknown).any(state::is_silence)
    }

    /// Why one of them does not tell its clock.
    pub(crate) fn clock_refusal(&self) -> Option<String> {
        let mut unknown = self.servers.iter().flat_map(|server| &server.unknown);
        unknown.find(|unknown| unknown.what == "clock").map(queue::refusal)
    }

    /// `shop-prod · redis-1:6379 · Redis 7.0.15, master`.
    pub(crate) fn line(&self) -> String {
        let mut parts: Vec<String> = self.label.iter().cloned().collect();
        let is_known = |server: &&Server| server.product.is_some();
        if let Some(first) = self.servers.iter().find(is_known).or(self.servers.first()) {
            let others = self.servers.len() as u64 - 1;
            parts.push(match others {
                0 => first.address.clone(),
                others => format!("{} and {}", first.address, human::counted(others, "other", "others")),
            });
            let product = first.product.as_deref().unwrap_or("an unknown product");
            let role = match first.role {
                Some(Role::Master) => "master",
                Some(Role::Replica) => "REPLICA",
                _ => "role unknown",
            };
            parts.push(format!("{product}, {role}"));
        }
        escape::text(&parts.join(" · "))
    }
}

/// The profile and the URL: of the command line, the environment and the configuration, in this order.
fn choose(connection: &Connection) -> Result<(Profile, String), Failure> {
    // The first is that of programs with `ClientConfig::from_env("REDELAY")`.
    let variable = ["REDELAY_URL", "REDIS_URL"]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|url| !url.is_empty()));
    let path = profile::path(|name| env::var_os(name));
    let profile = profile::load(connection.profile.as_deref(), path.as_deref())?.unwrap_or_default();
    if connection.url.as_deref().is_some_and(has_password) {
        return Err(Failure::Usage(
            "--url has a password, which every user of this machine sees in `ps`; put the URL into \
            REDELAY_URL, or use --profile with a password_command"
                .into(),
        ));
    }
    let variable = variable.filter(|_| connection.profile.is_none());
    let Some(url) = connection.url.clone().or(variable) else {
        let url = profile.url.clone();
        return Ok((profile, url.unwrap_or_else(|| "redis://localhost:6379".into())));
    };
    // The login of a profile is for its own server only. What it masks is masked everywhere.
    let profile = Profile {
        user: None,
        password_command: None,
        sentinel_user: None,
        sentinel_password_command: None,
        tls: None,
        ..profile
    };
    Ok((profile, url))
}

fn tls(files: &profile::Tls) -> TlsConfig {
    let mut tls = TlsConfig::default();
    tls.root_certificates.extend(files.ca.clone());
    tls.client_certificate = files.cert.clone();
    tls.client_key = files.key.clone();
    tls.server_name = files.server_name.clone();
    tls
}

/// Whether a URL has a password in it.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = rest.rsplit_once('@').map(|(user, _)| user);
    user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

/// What the command prints, without the line feed. Nothing of it gets into a message.
async fn password(key: &str, command: &PasswordCommand) -> Result<String, Failure> {
    let words = match command {
        PasswordCommand::Line(line) => vec!["sh".into(), "-c".into(), line.clone()],
        PasswordCommand::Words(words) => words.clone(),
    };
    let failed = |why: String| Failure::Usage(format!("the {key} of the profile {why}"));
    let [program, arguments @ ..] = &words[..] else { return Err(failed("is empty".into())) };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::inherit()).stderr(Stdio::inherit()).kill_on_drop(true);
    let output = command.output().await.map_err(|error| failed(format!("cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("has failed: {}", output.status)));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| failed("printed no UTF-8".into()))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A payload of this length.
    #[derive(Clone)]
    struct Payload(usize);

    impl From<&Payload> for Cursor {
        fn from(_: &Payload) -> Self {
            "7:#00".parse().unwrap()
        }
    }

    #[tokio::test]
    async fn nothing_is_read_behind_a_page_with_a_long_payload() {
        let long = SHORT + 1;
        for (lengths, there, counts) in [
            (&[SHORT; 20][..], None, &[1, 2, 4, 3][..]),
            (&[SHORT; 20], Some(4), &[1, 2, 1]),
            (&[SHORT; 2], None, &[1, 2]),
            (&[SHORT; 2], Some(0), &[]),
            (&[long; 20], Some(20), &[1]),
            (&[1, long, long, long, 1], None, &[1, 2]),
            (&[1, 1, 1, 1, long, 1, 1, 1], None, &[1, 2, 4]),
        ] {
            let payloads: Vec<_> = lengths.iter().copied().map(Payload).collect();
            let asked = RefCell::new(Vec::new());
            let read = async |after: Option<Cursor>, count| {
                let from: usize = asked.borrow().iter().sum();
                assert_eq!(after.is_some(), from > 0);
                asked.borrow_mut().push(count);
                Ok(payloads[from..payloads.len().min(from + count)].to_vec())
            };
            let some = some_of(read, |payload| payload.0, 10, there).await.unwrap();
            assert_eq!(*asked.borrow(), counts, "{lengths:?}");
            assert_eq!(some.len(), lengths.len().min(counts.iter().sum()), "{lengths:?}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_seen() {
        for (url, has) in [
            ("redis://localhost", false),
            ("redis://looks@localhost", false),
            ("redis://looks:@localhost", false),
            ("redis://:secret@localhost", true),
            ("rediss://looks:secret@localhost:6380/3", true),
            ("redis-cluster://looks:p@ss@a:1,b:2", true),
            ("redis+unix://:secret@/run/redis.sock", true),
            ("redis://[::1]:6379", false),
        ] {
            assert_eq!(has_password(url), has, "{url}");
        }
    }
}
