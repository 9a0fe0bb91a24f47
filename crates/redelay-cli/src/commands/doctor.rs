//! `redelay doctor`: asks, and prints what `crate::doctor` finds in the answers.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use redelay::inspector::{Cursor, Leftover, LeftoverKind, ListedEntry, Overview, PendingEntry, Role, Server};
use redelay::{Error, ErrorKind};
use tokio::time::sleep;
use tokio::try_join;

use crate::connect::Session;
use crate::doctor::codes::Code;
use crate::doctor::finding::{self, Finding};
use crate::doctor::look::{Look, Refused};
use crate::doctor::report::{self, Reported, Subject};
use crate::doctor::walk::{Walk, hash_of};
use crate::doctor::{self, pending, server};
use crate::escape;
use crate::failure::Failure;
use crate::human;
use crate::out::Out;
use crate::state;
use crate::wanted::{Wanted, twin};

/// The pauses between the looks: Redisson repeats a transfer that has failed after 5 s.
const BETWEEN: [Duration; 2] = [Duration::from_millis(2_200), Duration::from_millis(3_800)];
/// How many entries are read at a time, and the pause after them: a page takes the server about 1 ms.
const PAGE: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(25);
/// How many queues are looked at at a time.
const AT_A_TIME: usize = 4;
/// From this number of ready payloads on, the next looks ask whether a client takes them.
const MANY: u64 = 100;
/// From this number of receipts on, those that processes have left are a finding.
const RECEIPTS: u64 = 100;

pub(crate) async fn run(
    session: Result<Session, Failure>,
    patterns: Vec<OsString>,
    out: &Out,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let words: Vec<Vec<u8>> = patterns.into_iter().map(OsString::into_encoded_bytes).collect();
    let is_all = words == [b"*"];
    let (wanted, mut doctor) = match session {
        Ok(session) => (Wanted::new(&session, &words), Doctor::new(session).await?),
        Err(failure) => {
            let code = match &failure {
                Failure::TooOld(_) => Code::S05,
                // A server that cannot save refuses a PING, and with it each connection of a client.
                Failure::NoConnection(why) if why.contains("MISCONF") => Code::S04,
                _ => return Err(failure),
            };
            let finding = Finding::new(code, failure.to_string());
            let subject = Subject::Server("server".into());
            return print(0, &[Reported { subject, finding }], 1, begun, out);
        }
    };
    let looked = match doctor.examine(&wanted, is_all).await {
        Ok(looked) => looked,
        // The server says why.
        Err(Failure::NoConnection(why) | Failure::Negative(why) | Failure::Other(why))
            if report::is_negative(&doctor.found) =>
        {
            let text = format!("the queues are unknown: {why}");
            let code = doctor.found.iter().map(|one| one.finding.code).min().unwrap_or(Code::S08);
            doctor.add_of_server(None, Finding::unknown(code, text));
            Looked { queues: 0, absent: Vec::new(), is_nowhere: false }
        }
        Err(failure) => return Err(failure),
    };
    report::sort(&mut doctor.found);
    let absent = looked.absent.first().map(|name| {
        format!(
            "there is no queue `{}`: it has nothing in it, and no client has it open",
            escape::bytes(name)
        )
    });
    let nowhere = || "no queue matches; in a name, put a `\\` before `*`, `?`, `[` and `\\`".to_owned();
    let missing = absent.or_else(|| looked.is_nowhere.then(nowhere));
    let printed = match missing.is_some() && looked.queues == 0 && doctor.found.is_empty() {
        // "Nothing is wrong" would be no answer to a name that means nothing.
        true => Ok(()),
        false => print(looked.queues, &doctor.found, doctor.servers.len(), begun, out),
    };
    match (missing, printed) {
        // With another failure, there is the line of this one.
        (Some(why), Ok(()) | Err(Failure::Negative(_))) => {
            // The code of a finding would say that it is there.
            Err(Failure::Usage(format!("{why}; redelay ls lists those that there are")))
        }
        (_, printed) => printed,
    }
}

fn print(
    queues: usize,
    found: &[Reported],
    servers: usize,
    begun: Instant,
    out: &Out,
) -> Result<(), Failure> {
    if out.is_json {
        found.iter().try_for_each(|one| out.json(&one.document()))?;
    } else {
        report::lines(found, servers).iter().try_for_each(|line| out.line(line))?;
        let summary = report::summary(queues, found);
        out.line(&format!("{summary}. It took {:.1} s.", begun.elapsed().as_secs_f64()))?;
    }
    // The findings are the message.
    if report::is_negative(found) { Err(Failure::Negative(String::new())) } else { Ok(()) }
}

/// How many queues were looked at, and which were asked for and are not there.
struct Looked {
    queues: usize,
    absent: Vec<Vec<u8>>,
    /// Whether patterns were given that mean nothing.
    is_nowhere: bool,
}

struct Doctor {
    session: Session,
    servers: Vec<Server>,
    found: Vec<Reported>,
}

impl Doctor {
    /// With what the servers say of themselves.
    async fn new(session: Session) -> Result<Self, Failure> {
        // A server that is silent is waited for once.
        let (settings, servers) =
            try_join!(session.inspector.server_settings(), session.inspector.servers())?;
        let mut doctor = Self { session, servers, found: Vec::new() };
        for server in doctor.servers.clone() {
            let own = settings.iter().find(|settings| settings.address == server.address);
            for finding in server::findings(&server, &own.cloned().unwrap_or_default()) {
                doctor.add_of_server(Some(&server.address), finding);
            }
        }
        let sentinels = server::sentinels(&doctor.session.inspector.sentinels().await);
        for (address, finding) in server::clocks(&doctor.servers).into_iter().chain(sentinels) {
            doctor.add_of_server(Some(&address), finding);
        }
        Ok(doctor)
    }

    fn add_of_server(&mut self, address: Option<&str>, finding: Finding) {
        let first = self.servers.first().map_or("server", |server| &server.address);
        let subject = Subject::Server(address.unwrap_or(first).to_owned());
        self.found.push(Reported { subject, finding });
    }

    fn add(&mut self, name: &[u8], finding: Finding) {
        let subject = Subject::Queue(self.session.own_name(name).to_vec());
        self.found.push(Reported { subject, finding });
    }

    /// Looks at the queues that are meant.
    async fn examine(&mut self, wanted: &Wanted, is_all: bool) -> Result<Looked, Failure> {
        let (names, left, has_searched) = if wanted.patterns.is_empty() {
            (wanted.names.iter().cloned().collect(), self.leftovers().await?, false)
        } else {
            self.find(wanted).await?
        };
        let mut looks = self.look_at(&names).await?;
        let is_there = |look: &Look| !look.keys.is_empty() || !state::is_absent(&look.overview);
        let absent: Vec<Vec<u8>> = looks
            .iter()
            .filter(|looks| !is_there(&looks[0]) && wanted.names.contains(&looks[0].overview.name))
            .map(|looks| self.session.own_name(&looks[0].overview.name).to_vec())
            .collect();
        looks.retain(|looks| is_there(&looks[0]));
        self.add_leftovers(left, wanted);
        // A queue may have nothing but such keys.
        let has_some = |name: &Vec<u8>| {
            self.found.iter().any(|one| matches!(&one.subject, Subject::Queue(found) if found == name))
        };
        let absent = absent.into_iter().filter(|name| !has_some(name)).collect();
        let is_nowhere = looks.is_empty() && has_searched && !is_all && !self.has_queue();
        if looks.is_empty() && is_all {
            self.look_elsewhere();
        }
        self.look_again(&mut looks).await?;
        for looks in &looks {
            for finding in doctor::judge(looks).findings {
                self.add(&looks[0].overview.name, finding);
            }
        }
        Ok(Looked { queues: looks.len(), absent, is_nowhere })
    }

    /// Whether something was found of a queue.
    fn has_queue(&self) -> bool {
        self.found.iter().any(|one| matches!(one.subject, Subject::Queue(_)))
    }

    /// The queues that are meant, the keys that should have been deleted, and whether all keys were searched.
    async fn find(&mut self, wanted: &Wanted) -> Result<(Vec<Bytes>, Vec<Leftover>, bool), Failure> {
        let mut queues = wanted.search_with_leftovers(&self.session.inspector);
        let mut names: BTreeSet<Bytes> = wanted.of(&mut queues).try_collect().await?;
        names.extend(wanted.names.iter().cloned());
        let refused: Vec<Refused> = queues.unknown().iter().filter_map(Refused::of).collect();
        for finding in finding::unknown(&refused) {
            self.add_of_server(None, finding);
        }
        Ok((names.into_iter().collect(), queues.leftovers(), refused.is_empty()))
    }

    /// Looks once at each queue.
    async fn look_at(&self, names: &[Bytes]) -> Result<Vec<Vec<Look>>, Failure> {
        let overviews = self.session.inspector.overview(names).await?;
        let all: HashSet<&Bytes> = names.iter().collect();
        let is_second = |name: &Bytes| {
            let twin = twin(name).filter(|_| name.starts_with(b"{"));
            twin.is_some_and(|twin| all.contains(&twin))
        };
        stream::iter(overviews)
            .map(async |overview| {
                let is_second_of_two = is_second(&overview.name);
                let look = self.look(overview, None, &[]).await?;
                sleep(PAUSE).await;
                Ok(vec![Look { is_second_of_two, ..look }])
            })
            .buffered(AT_A_TIME)
            .try_collect()
            .await
    }

    /// Looks again at those of which one look is not enough.
    async fn look_again(&mut self, looks: &mut [Vec<Look>]) -> Result<(), Failure> {
        let has_refused = self.servers.iter().any(|server| server.refused_commands > Some(0));
        // Again, because questions of this look may have been refused, too.
        let before = if has_refused { self.session.inspector.servers().await? } else { Vec::new() };
        for (round, pause) in BETWEEN.into_iter().enumerate() {
            let open: Vec<_> = looks
                .iter_mut()
                .filter_map(|looks| {
                    Some((doctor::judge(looks).open, looks)).filter(|(open, _)| !open.is_empty())
                })
                .collect();
            let watches = round == 0 && has_refused;
            if open.is_empty() && !watches {
                return Ok(());
            }
            sleep(pause).await;
            let after = if watches { self.session.inspector.servers().await? } else { Vec::new() };
            let names: Vec<&Bytes> = open.iter().map(|(_, looks)| &looks[0].overview.name).collect();
            let overviews = self.session.inspector.overview(&names).await?;
            for ((open, looks), overview) in open.into_iter().zip(overviews) {
                let look = self.look(overview, looks.last(), &open).await?;
                looks.push(look);
                sleep(PAUSE).await;
            }
            for (before, after) in before.iter().zip(&after) {
                if let Some(finding) = server::refusals(before, after) {
                    self.add_of_server(Some(&after.address), finding);
                }
            }
        }
        Ok(())
    }

    /// Looks at a queue. What does not change from one look to the next is taken from the earlier one.
    async fn look(&self, overview: Overview, earlier: Option<&Look>, open: &[Code]) -> Result<Look, Failure> {
        let inspector = &self.session.inspector;
        let name = overview.name.clone();
        let is_on_replica = self.is_on_replica(&overview.server);
        // S07 says that it is one, so who transfers is unknown.
        let is_told = |what: &str| is_on_replica && what == "transferring_processes";
        let unknown = overview.unknown.iter().filter(|unknown| !is_told(&unknown.what));
        let mut refused: Vec<Refused> = unknown.filter_map(Refused::of).collect();
        let keys = match inspector.keys(&name).await {
            // Nor would it answer the other questions.
            Err(error) if error.kind() == ErrorKind::Unavailable && self.servers.len() > 1 => {
                return Ok(Look { overview, refused, ..Look::default() });
            }
            keys => known(&mut refused, "keys", keys)?.unwrap_or_default(),
        };
        refused.extend(keys.iter().flat_map(|key| &key.unknown).filter_map(Refused::of));
        let details = known(&mut refused, "late", inspector.details(&name).await)?.unwrap_or_default();
        refused.extend(details.unknown.iter().filter_map(Refused::of));
        let is_there = |what: &[&str]| keys.iter().any(|key| what.contains(&key.what));
        let mut look = Look {
            is_on_replica,
            is_in_cluster: self.servers.iter().any(|server| server.is_in_cluster == Some(true)),
            ..Look::default()
        };
        if is_there(&["timeout set"]) {
            let head = known(&mut refused, "next_due_in", inspector.pending(&name, None, 1).await)?;
            let head = head.unwrap_or_default().into_iter().next();
            look.head = head.map(|head| hash_of(&[head.score.as_bytes(), &head.entry]));
        }
        if is_there(&["target"]) && overview.ready >= Some(MANY) {
            let first = known(&mut refused, "ready", inspector.ready(&name, None, 1).await)?;
            look.first_ready = first.unwrap_or_default().first().map(|first| hash_of(&[&first.payload]));
        }
        if is_there(&["inbox"]) {
            let first = known(&mut refused, "inbox", inspector.inbox(&name, None, 1).await)?;
            look.first_unclaimed = first.unwrap_or_default().first().map(|first| hash_of(&[&first.payload]));
        }
        if is_there(&PAIRS) {
            look.orphans =
                known(&mut refused, "orphans", inspector.orphans(&name).await)?.unwrap_or_default();
        }
        let walks =
            earlier.is_none() || open.iter().any(|code| [Code::Q04, Code::Q05, Code::Q06].contains(code));
        match earlier {
            Some(earlier) => {
                look.is_second_of_two = earlier.is_second_of_two;
                look.codecs = earlier.codecs.clone();
                look.partitions = earlier.partitions;
                look.walk = earlier.walk.clone();
                // What was refused then is refused still.
                refused.extend(earlier.refused.iter().cloned());
            }
            None => {
                let reader = self.session.reader(&overview).await?;
                look.codecs = reader.found().to_vec();
                if let Some(why) = &reader.refusal {
                    refused.extend(Refused::new("codecs", why));
                }
                if let Some((base, _)) = pending::split(&name) {
                    let number = known(&mut refused, "partitions", inspector.partitions(base).await)?;
                    look.partitions = number.flatten();
                }
            }
        }
        if walks && is_there(&["timeout set", "ordered list"]) {
            look.walk = self.walk(&name, &mut refused).await?;
        }
        Ok(Look { overview, keys, details, refused, ..look })
    }

    /// Reads the entries of a queue, page by page.
    async fn walk(&self, name: &Bytes, refused: &mut Vec<Refused>) -> Result<Walk, Failure> {
        let inspector = &self.session.inspector;
        let mut walk = Walk::default();
        // First the set: what is transferred meanwhile is in neither.
        let pending = async |after, most| known(refused, "walk", inspector.pending(name, after, most).await);
        let has_all_pending = pages(pending, |page: &[PendingEntry]| {
            page.iter().for_each(|entry| walk.add_pending(&entry.score, &entry.entry));
            walk.is_full()
        })
        .await?;
        walk.turn(has_all_pending);
        let listed =
            async |after, most| known(refused, "entries", inspector.entries(name, after, most).await);
        let has_all_listed = pages(listed, |page: &[ListedEntry]| {
            page.iter().for_each(|entry| walk.add_listed(&entry.entry, entry.score.is_some()));
            walk.is_full()
        })
        .await?;
        walk.turn(has_all_listed);
        walk.is_complete = has_all_pending && has_all_listed;
        Ok(walk)
    }

    fn is_on_replica(&self, address: &str) -> bool {
        self.servers.iter().any(|server| server.address == address && server.role == Some(Role::Replica))
    }

    /// The keys that should have been deleted.
    async fn leftovers(&mut self) -> Result<Vec<Leftover>, Failure> {
        let mut refused = Vec::new();
        let left = match self.session.inspector.leftovers().await {
            // The queues of the other servers are looked at nevertheless.
            Err(error) if error.kind() == ErrorKind::Unavailable && self.servers.len() > 1 => {
                refused.extend(Refused::new("leftovers", &error.to_string()));
                None
            }
            left => known(&mut refused, "leftovers", left)?,
        };
        for finding in finding::unknown(&refused) {
            self.add_of_server(None, finding);
        }
        Ok(left.unwrap_or_default())
    }

    /// Adds those of the queues that are meant.
    fn add_leftovers(&mut self, left: Vec<Leftover>, wanted: &Wanted) {
        for left in left.into_iter().filter(|left| wanted.matches(&left.queue)) {
            let keys = left.keys.iter().map(|key| key.to_vec()).collect();
            let (code, one, many) = match left.kind {
                LeftoverKind::Receipt if left.count < RECEIPTS => continue,
                LeftoverKind::Receipt => (Code::K01, "receipt", "receipts older than a minute"),
                LeftoverKind::Throttle => (Code::K02, "throttle without an end", "throttles without an end"),
                LeftoverKind::Scratch => (Code::K03, "scratch key", "scratch keys"),
                _ => continue,
            };
            let text = human::counted(left.count, one, many);
            self.add(&left.queue, Finding::new(code, text).name("KEYS", keys));
        }
    }

    /// Without queues, keys in other databases may be theirs.
    fn look_elsewhere(&mut self) {
        for server in self.servers.clone() {
            let others = server.databases.iter().filter(|(number, _)| *number != server.database);
            let others: Vec<String> =
                others.map(|(number, keys)| format!("{} in {number}", human::count(*keys))).collect();
            if !others.is_empty() {
                let finding = Finding::new(Code::S13, others.join(", "));
                self.add_of_server(Some(&server.address), finding);
            }
        }
    }
}

/// Reads page by page, with pauses, until `add` says that it has enough. Returns whether it has read to the
/// end: not if a page is refused.
async fn pages<R>(
    mut read: impl AsyncFnMut(Option<Cursor>, usize) -> Result<Option<Vec<R>>, Failure>,
    mut add: impl FnMut(&[R]) -> bool,
) -> Result<bool, Failure>
where
    for<'a> Cursor: From<&'a R>,
{
    let mut after = None;
    loop {
        let Some(page) = read(after, PAGE).await? else { return Ok(false) };
        let has_enough = add(&page);
        // A queue may grow as fast as it is read.
        let Some(last) = page.last().filter(|_| page.len() >= PAGE) else { return Ok(true) };
        after = Some(Cursor::from(last));
        sleep(PAUSE).await;
        if has_enough {
            return Ok(read(after, 1).await?.is_some_and(|more| more.is_empty()));
        }
    }
}

/// Keys that should have the same ids.
const PAIRS: [&str; 8] =
    ["messages", "leases", "retries", "dead", "dead-messages", "schedules", "schedule-records", "jobs"];

/// The answer, or a note that it is refused.
fn known<T>(refused: &mut Vec<Refused>, what: &str, answer: Result<T, Error>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(known) => Ok(Some(known)),
        Err(error) if error.kind() == ErrorKind::Refused => {
            refused.extend(Refused::new(what, &error.to_string()));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
