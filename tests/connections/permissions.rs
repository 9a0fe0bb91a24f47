//! Every call without every single permission: the answer is true, and everything is where it was or where it
//! belongs.

mod held_jobs;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use redelay::delayed_queue::Overlap;
use redelay::{BlockingQueue, Client, DelayedQueue, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    HOUR, ORDERED_LIST, QUARANTINE, SELDOM, TARGET, TIMEOUT_SET, everything, lasting, ms, part, pending,
    soon, still_builder, woken,
};

/// Every command that any script or call of redelay uses, except those without which nothing works at all:
/// they are read from the sources, so that none is forgotten. Of those, what belongs to this part.
fn commands() -> BTreeSet<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut commands) = (vec![sources], BTreeSet::new());
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).expect("a folder") {
            let path = file.expect("a file").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).expect("a text");
            match path.extension().and_then(OsStr::to_str) {
                // The script that looks for permissions uses none of them.
                Some("lua") if !path.ends_with("permissions.lua") => {
                    commands.extend(quoted(&source, "'", "'"))
                }
                Some("rs") if !path.ends_with("tests.rs") => {
                    commands.extend(quoted(&source, "Command::new(\"", "\")"));
                }
                _ => {}
            }
        }
    }
    // Which one depends on the end of the list.
    commands.extend(["blpop", "brpop"].map(str::to_owned));
    let indispensable = ["client", "eval", "info", "ping"];
    let of_sentinels = ["sentinel"];
    let options = ["bylex", "byscore", "count", "limit", "maxlen", "rank", "rev", "withscores"];
    indispensable
        .iter()
        .chain(&of_sentinels)
        .chain(&options)
        .for_each(|word| assert!(commands.remove(*word), "{word}"));
    assert!(
        commands.len() > 30 && commands.contains("lset") && commands.contains("rpoplpush"),
        "{commands:?}"
    );
    commands
        .into_iter()
        .zip(0..)
        .filter(|(_, number)| part().has(*number))
        .map(|(command, _)| command)
        .collect()
}

/// The words in capitals between these two, in small letters.
fn quoted<'a>(source: &'a str, before: &'a str, behind: &'a str) -> impl Iterator<Item = String> + 'a {
    let word = move |piece: &'a str| piece.split_once(behind).map(|(word, _)| word);
    let words = source.match_indices(before).filter_map(move |(at, _)| word(&source[at + before.len()..]));
    let is_command = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    words.filter(is_command).map(str::to_lowercase)
}

/// What pops took.
const POPPED: &str = "redelay:popped:{q}";

/// The queue `q` of a user whose permissions change.
struct Rig {
    server: Server,
    client: Client,
    ready: BlockingQueue<String>,
    delayed: DelayedQueue<String>,
    /// The same queue for a user with every permission, who transfers nothing.
    free: (BlockingQueue<String>, DelayedQueue<String>),
}

impl Rig {
    async fn start(transfer: bool) -> Self {
        let server = Server::start();
        server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "allkeys", "allchannels", "+@all"]);
        let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
        let client = Client::builder().url(url).transfer(transfer).sweep_interval(Duration::from_secs(1));
        let client = client.connect().await.expect("a connection");
        let (ready, delayed) = queues(&client);
        let free = still_builder(&server).connect().await.expect("a connection");
        let free = queues(&free);
        Self { server, client, ready, delayed, free }
    }

    /// Three payloads are pending, three are ready, one malformed entry is quarantined, and another is the
    /// last of the ordered list.
    async fn fill(&self) {
        self.server.cmd(["FLUSHALL"]);
        for payload in ["pending 1", "pending 2", "pending 3"] {
            self.free.1.offer(payload, HOUR).await.unwrap();
        }
        for payload in ["ready 1", "ready 2", "ready 3"] {
            self.free.0.put(payload).await.unwrap();
        }
        self.server.cmd(["RPUSH", QUARANTINE, "7", "malformed"]);
        self.server.cmd(["SCRIPT", "FLUSH"]);
    }

    /// Transfers the head, whose payload is "one". The clients here transfer nothing.
    fn transfer_by_hand(&self) {
        self.transfer_by_hand_of("one");
    }

    /// Transfers the head, whose payload is this.
    fn transfer_by_hand_of(&self, payload: &str) {
        let entries: Vec<Vec<u8>> = self.server.get(["ZRANGE", TIMEOUT_SET, "0", "0"]);
        self.server.cmd([&b"ZREM"[..], TIMEOUT_SET.as_bytes(), &entries[0]]);
        self.server.cmd([&b"LREM"[..], ORDERED_LIST.as_bytes(), b"1", &entries[0]]);
        self.server.cmd(["LPUSH", TARGET, payload]);
    }

    fn forbid(&self, command: &str) {
        self.server.cmd(["ACL", "SETUSER", "user", &format!("-{command}")]);
    }

    fn permit(&self) {
        self.server.cmd(["ACL", "SETUSER", "user", "+@all"]);
    }

    /// The payloads of the queue, wherever they are.
    async fn payloads(&self) -> Vec<String> {
        let mut payloads = self.free.0.read_all().await.unwrap();
        let pending = self.free.1.read_all().await.unwrap();
        let times = self.server.zset(TIMEOUT_SET);
        let entries: BTreeSet<_> = self.server.list(ORDERED_LIST).into_iter().collect();
        for (entry, _) in &times {
            assert!(entries.contains(entry), "an entry has a time, and no place in the list");
        }
        assert_eq!(times.len(), entries.len(), "an entry has a place in the list, and no time");
        payloads.extend(pending);
        payloads.sort();
        payloads
    }
}

fn queues(client: &Client) -> (BlockingQueue<String>, DelayedQueue<String>) {
    let ready = client.blocking_queue(TARGET, codec::String);
    let delayed = client.delayed_queue(&ready);
    (ready, delayed)
}

/// What a call answered: the payloads that it took out and those that it stored.
type Outcome = redelay::Result<(Vec<String>, Vec<String>)>;

/// Makes each call without each permission. A refusal must have changed nothing; after anything else, each
/// payload is in one place.
async fn each<F: AsyncFn(&Rig) -> Outcome>(call: F) {
    let rig = Rig::start(false).await;
    let mut refused = BTreeSet::new();
    for command in &commands() {
        rig.fill().await;
        let (before, payloads) = (lasting(&rig.server), rig.payloads().await);
        rig.forbid(command);
        let outcome = call(&rig).await;
        rig.permit();
        match outcome {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Refused, "without {command}: {error}");
                let text = error.to_string();
                assert!(names_a_permission(&text), "{text}");
                assert!(
                    lasting(&rig.server) == before,
                    "without {command}: {text}, but something has changed"
                );
                refused.insert(command.clone());
            }
            Ok((taken, stored)) => {
                let mut expected = payloads;
                expected.extend(stored);
                expected.sort();
                // What was on its way to a taker that waits no more is put back.
                until_async(&format!("each payload is in one place, without {command}"), async || {
                    let mut now = rig.payloads().await;
                    now.extend(taken.clone());
                    now.sort();
                    now == expected
                })
                .await;
            }
        }
        until_async("no claim is left", async || {
            everything(&rig.server).iter().all(|(key, _)| !key.starts_with(b"redelay:popped:"))
        })
        .await;
    }
    assert!(
        part().is_one_of_several() || !refused.is_empty(),
        "the call needs no permission: the test tests nothing"
    );
}

/// As the servers say it.
fn names_a_permission(error: &str) -> bool {
    ["NOPERM", "can't run this command", "no permissions to run"].iter().any(|part| error.contains(part))
}

fn stored(payloads: &[&str]) -> Outcome {
    Ok((Vec::new(), payloads.iter().map(|payload| (*payload).to_owned()).collect()))
}

fn taken(payloads: impl IntoIterator<Item = String>) -> Outcome {
    Ok((payloads.into_iter().collect(), Vec::new()))
}

fn all(decoded: Vec<redelay::Result<String>>) -> Vec<String> {
    decoded.into_iter().map(Result::unwrap).collect()
}

#[tokio::test]
async fn jobs() {
    each(async |rig| {
        rig.delayed.offer("offered", HOUR).id("a").throttle(HOUR).await?;
        stored(&["offered"])
    })
    .await;
    each(async |rig| {
        let replaced = rig.free.1.offer("one", HOUR).id("a").await;
        replaced.expect("nothing is missing");
        match rig.delayed.offer("two", HOUR).id("a").replace().await {
            Ok(_) => stored(&["two"]),
            Err(error) => {
                rig.free.1.job("a").cancel().await.expect("nothing is missing");
                // Only the hash was there before.
                Err(error)
            }
        }
    })
    .await;
}

/// A removal that is refused changes nothing.
#[tokio::test]
async fn removals_of_jobs() {
    type Call = for<'a> fn(&'a Rig) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;
    let calls: [(bool, Call); 7] = [
        (false, |rig| Box::pin(async { rig.delayed.remove("one").await.and_then(|_| stored(&[])) })),
        (false, |rig| Box::pin(async { taken(all(rig.delayed.poll_many(9).await?)) })),
        (false, |rig| Box::pin(async { taken(rig.delayed.poll_last_and_offer_first_to("other").await?) })),
        (false, |rig| {
            Box::pin(async {
                rig.delayed.clear().await?;
                taken(["one", "pending 1", "pending 2", "pending 3"].map(str::to_owned))
            })
        }),
        (true, |rig| Box::pin(async { rig.ready.remove("one").await.and_then(|_| stored(&[])) })),
        (true, |rig| {
            Box::pin(async { rig.ready.remove_all(&["one".to_owned()]).await.and_then(|_| stored(&[])) })
        }),
        (true, |rig| {
            Box::pin(async {
                rig.ready.clear().await?;
                taken(["one", "ready 1", "ready 2", "ready 3"].map(str::to_owned))
            })
        }),
    ];
    for (is_ready, call) in calls {
        each(async |rig| {
            let due = if is_ready { SystemTime::UNIX_EPOCH } else { SystemTime::now() + HOUR };
            let offer = rig.free.1.offer_at("one", due).id("a").header("n", "v").until_done();
            offer.await.expect("nothing is missing");
            if is_ready {
                rig.transfer_by_hand();
            }
            let outcome = call(rig).await;
            if outcome.is_err() {
                let cancelled = rig.free.1.job("a").cancel().await.expect("nothing is missing");
                assert!(cancelled.is_removed(), "{outcome:?}");
                rig.server.cmd(["DEL", "redelay:control:{q}"]);
            }
            match outcome {
                Ok((payloads, _)) if !payloads.is_empty() => Ok((payloads, vec!["one".to_owned()])),
                outcome => outcome,
            }
        })
        .await;
    }
}

/// Those that hold their ids.
#[tokio::test]
async fn held_jobs() {
    const SECOND: Duration = Duration::from_secs(1);
    each(async |rig| {
        rig.delayed.offer("offered", HOUR).id("a").until_done().await?;
        stored(&["offered"])
    })
    .await;
    // What it replaces or cancels is pending, ready, waiting for a retry, or a dead letter.
    for state in ["pending", "ready", "waiting", "dead"] {
        let begin = async |rig: &Rig| {
            let offer = rig.free.1.offer("one", if state == "pending" { HOUR } else { SECOND / 1000 });
            offer.id("a").until_done().await.expect("nothing is missing");
            if state != "pending" {
                rig.free.1.job("a").run_now().await.expect("nothing is missing");
                rig.transfer_by_hand();
            }
            if state == "waiting" || state == "dead" {
                let one = rig.free.0.receiver().receive().await.expect("nothing is missing");
                assert_eq!(one.job_id(), Some(&b"a"[..]));
                let ended =
                    if state == "dead" { one.reject("no use").await } else { one.retry_after(HOUR).await };
                ended.expect("nothing is missing");
            }
        };
        let end = async |rig: &Rig, error: &redelay::Error| {
            let cancelled = rig.free.1.job("a").cancel().await.expect("nothing is missing");
            assert!(cancelled.is_removed(), "{state}: {error}");
            for key in ["redelay:control:{q}", "redelay:receipts:{q}"] {
                rig.server.cmd(["DEL", key]);
            }
        };
        each(async |rig| {
            begin(rig).await;
            let replaced = rig.delayed.offer("two", HOUR).id("a").until_done().replace().await;
            match replaced {
                Ok(_) => stored(&["two"]),
                Err(error) => {
                    end(rig, &error).await;
                    Err(error)
                }
            }
        })
        .await;
        each(async |rig| {
            begin(rig).await;
            if let Err(error) = rig.delayed.job("a").cancel().await {
                end(rig, &error).await;
                return Err(error);
            }
            stored(&[])
        })
        .await;
    }
}

#[tokio::test]
async fn schedules() {
    each(async |rig| {
        rig.delayed.schedule("s").every(SELDOM).upsert("run").await?;
        stored(&["run"])
    })
    .await;
    each(async |rig| {
        rig.free.1.schedule("s").every(SELDOM).upsert("one").await.expect("nothing is missing");
        match rig.delayed.schedule("s").every(SELDOM).upsert("two").await {
            Ok(_) => stored(&["two"]),
            Err(error) => {
                rig.free.1.schedule("s").remove().await.expect("nothing is missing");
                Err(error)
            }
        }
    })
    .await;
}

#[tokio::test]
async fn runs_that_do_not_overlap() {
    each(async |rig| {
        let alone = |name: &str| rig.free.1.schedule(name).every(SELDOM).no_overlap(Overlap::Skip);
        alone("a").upsert("run").await.expect("nothing is missing");
        match rig.delayed.schedule("a").trigger().await {
            Ok(triggered) => {
                assert!(triggered);
                stored(&["run"])
            }
            Err(error) => {
                rig.free.1.schedule("a").remove().await.expect("nothing is missing");
                Err(error)
            }
        }
    })
    .await;
}

#[tokio::test]
async fn offers() {
    each(async |rig| {
        rig.delayed.offer("offered", HOUR).await?;
        stored(&["offered"])
    })
    .await;
    each(async |rig| {
        let (one, two) = ("one".to_owned(), "two".to_owned());
        rig.delayed.offer_all([(&one, HOUR), (&two, ms(1))]).await?;
        stored(&["one", "two"])
    })
    .await;
    each(async |rig| {
        rig.ready.put("put").await?;
        stored(&["put"])
    })
    .await;
}

#[tokio::test]
async fn questions() {
    each(async |rig| {
        assert!(rig.delayed.contains("pending 2").await?);
        stored(&[])
    })
    .await;
    each(async |rig| {
        assert!(rig.ready.contains("ready 2").await?);
        stored(&[])
    })
    .await;
}

#[tokio::test]
async fn times_to_live() {
    each(async |rig| {
        assert!(rig.delayed.expire(HOUR).await?);
        stored(&[])
    })
    .await;
    each(async |rig| {
        assert!(rig.ready.expire(HOUR).await?);
        stored(&[])
    })
    .await;
}

#[tokio::test]
async fn tickets() {
    each(async |rig| {
        let ticket = rig.free.1.offer("ticket", HOUR).await.unwrap();
        let cancelled = rig.delayed.cancel(&ticket).await;
        if cancelled.is_err() {
            assert!(rig.free.1.cancel(&ticket).await.unwrap());
        }
        assert!(cancelled?);
        stored(&[])
    })
    .await;
    each(async |rig| {
        let ticket = rig.free.1.offer("ticket", HOUR).await.unwrap();
        let rescheduled = rig.delayed.reschedule(&ticket, HOUR * 2).await;
        if rescheduled.is_err() {
            assert!(rig.free.1.cancel(&ticket).await.unwrap());
        }
        assert!(rescheduled?);
        stored(&["ticket"])
    })
    .await;
}

#[tokio::test]
async fn removals() {
    each(async |rig| {
        assert!(rig.delayed.remove("pending 2").await?);
        taken(["pending 2".to_owned()])
    })
    .await;
    each(async |rig| {
        let some = ["pending 1", "pending 3"].map(str::to_owned);
        assert!(rig.delayed.remove_all(&some).await?);
        taken(some)
    })
    .await;
    each(async |rig| {
        let some = ["ready 1", "ready 3"].map(str::to_owned);
        assert!(rig.ready.remove_all(&some).await?);
        taken(some)
    })
    .await;
    each(async |rig| {
        assert!(rig.delayed.retain_all(&["pending 2".to_owned()]).await?);
        taken(["pending 1", "pending 3"].map(str::to_owned))
    })
    .await;
    each(async |rig| {
        assert!(rig.ready.retain_all(&["ready 2".to_owned()]).await?);
        taken(["ready 1", "ready 3"].map(str::to_owned))
    })
    .await;
}

/// Either of two commands is enough.
#[tokio::test]
async fn clearing() {
    let rig = Rig::start(false).await;
    for forbidden in [&["unlink"][..], &["del"], &["unlink", "del"]] {
        rig.fill().await;
        let before = lasting(&rig.server);
        forbidden.iter().for_each(|command| rig.forbid(command));
        let cleared = [rig.delayed.clear().await, rig.ready.clear().await];
        rig.permit();
        if forbidden.len() == 1 {
            assert!(cleared.into_iter().all(Result::unwrap));
            assert_eq!(rig.payloads().await, Vec::<String>::new());
            continue;
        }
        for refused in cleared {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(names_a_permission(&error.to_string()), "{error}");
        }
        assert!(lasting(&rig.server) == before, "something has changed");
    }
}

#[tokio::test]
async fn polls_of_what_is_pending() {
    each(async |rig| taken(all(rig.delayed.poll_many(2).await?))).await;
    each(async |rig| {
        rig.server.cmd(["RPUSH", ORDERED_LIST, "malformed, too"]);
        rig.server.cmd(["ZADD", TIMEOUT_SET, "9", "malformed, too"]);
        let polled = rig.delayed.poll_many(5).await;
        rig.server.cmd(["LREM", ORDERED_LIST, "0", "malformed, too"]);
        rig.server.cmd(["ZREM", TIMEOUT_SET, "malformed, too"]);
        taken(all(polled?))
    })
    .await;
    each(async |rig| {
        let polled = rig.delayed.poll_last_and_offer_first_to("other").await?;
        taken(polled)
    })
    .await;
}

#[tokio::test]
async fn polls_of_what_is_ready() {
    each(async |rig| taken(rig.ready.poll().await?)).await;
    each(async |rig| taken(rig.ready.poll_last().await?)).await;
    each(async |rig| taken(all(rig.ready.poll_many(2).await?))).await;
    each(async |rig| taken(rig.ready.poll_last_and_offer_first_to("other").await?)).await;
    each(async |rig| taken(rig.ready.poll_from_any(ms(100), &["other"]).await?.map(|(_, payload)| payload)))
        .await;
}

#[tokio::test]
async fn two_takers() {
    each(async |rig| {
        let (first, second) = tokio::join!(
            tokio::time::timeout(ms(500), rig.ready.take()),
            tokio::time::timeout(ms(500), rig.ready.take()),
        );
        let answers = [first, second].into_iter().flatten();
        let (taken_here, errors): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
        if let (Some(Err(error)), true) = (errors.into_iter().next(), taken_here.is_empty()) {
            return Err(error);
        }
        taken(taken_here.into_iter().flatten())
    })
    .await;
}

#[tokio::test]
async fn takers_of_two_lists() {
    each(async |rig| {
        let poll = || rig.ready.poll_from_any(ms(100), &["other"]);
        let alone = poll().await?;
        // Two together have a script and a blocking pop: one of them suffices.
        let (first, second) = tokio::join!(poll(), poll());
        let polled = [alone, first.expect("polled"), second.expect("polled")];
        taken(polled.into_iter().flatten().map(|(_, payload)| payload))
    })
    .await;
}

#[tokio::test]
async fn the_quarantine() {
    each(async |rig| {
        let entry = rig.delayed.quarantine().read(None, 1).await?.remove(0);
        assert!(rig.delayed.quarantine().requeue(&entry).await?);
        assert!(rig.server.list(QUARANTINE).is_empty());
        rig.server.cmd(["ZREM", TIMEOUT_SET, "malformed"]);
        rig.server.cmd(["LREM", ORDERED_LIST, "0", "malformed"]);
        stored(&[])
    })
    .await;
    each(async |rig| {
        let entry = rig.delayed.quarantine().read(None, 1).await?.remove(0);
        assert!(rig.delayed.quarantine().remove(&entry).await?);
        stored(&[])
    })
    .await;
    each(async |rig| {
        assert_eq!(rig.delayed.quarantine().remove_all(usize::MAX).await?, 1);
        stored(&[])
    })
    .await;
}

/// What is due is delivered once: while the permission is missing, or when it is back.
async fn is_transferred_once(rig: &Rig, command: &str, is_malformed_among_them: bool) {
    rig.server.cmd(["FLUSHALL"]);
    rig.forbid(command);
    for payload in ["1", "2", "3"] {
        rig.free.1.offer(payload, ms(20)).await.unwrap();
    }
    rig.free.1.offer("later", HOUR).await.unwrap();
    if is_malformed_among_them {
        rig.server.cmd(["RPUSH", ORDERED_LIST, "malformed"]);
        rig.server.cmd(["ZADD", TIMEOUT_SET, "9", "malformed"]);
    }
    tokio::time::sleep(ms(150)).await;
    rig.permit();
    until_async(command, async || rig.free.0.len().await.unwrap() >= 3).await;
    tokio::time::sleep(ms(20)).await;
    let mut ready = rig.free.0.read_all().await.unwrap();
    ready.sort();
    assert_eq!(ready, ["1", "2", "3"], "without {command}");
    assert_eq!(rig.payloads().await, ["1", "2", "3", "later"], "without {command}");
    if is_malformed_among_them {
        // Nobody has announced it: if the transfer was quicker, a sweep finds it.
        until_async(command, async || !rig.server.list(QUARANTINE).is_empty()).await;
        assert_eq!(rig.server.list(QUARANTINE), [b"9".to_vec(), b"malformed".to_vec()], "without {command}");
    }
}

#[tokio::test]
async fn transfers() {
    let rig = Rig::start(true).await;
    for command in &commands() {
        is_transferred_once(&rig, command, false).await;
        is_transferred_once(&rig, command, true).await;
    }
    drop(rig.client);
}

/// The same payloads are ready already, in a list that expires.
#[tokio::test]
async fn a_transfer_that_is_taken_back_changes_nothing() {
    let rig = Rig::start(true).await;
    rig.forbid("zremrangebyrank");
    for payload in ["1", "x"] {
        rig.free.0.put(payload).await.unwrap();
    }
    rig.free.0.expire(HOUR).await.unwrap();
    for payload in ["1", "1", "2"] {
        rig.free.1.offer(payload, ms(20)).await.unwrap();
    }
    let before = lasting(&rig.server);
    let failed = rig.client.stats().failed_transfers;
    until_async("it was tried", async || rig.client.stats().failed_transfers >= failed + 3).await;
    assert!(lasting(&rig.server) == before, "{:?}", rig.server.list(TARGET));
    assert!(rig.server.get::<i64, _>(["PTTL", TARGET]) > 0);
    rig.permit();
    until_async("it is transferred", async || rig.free.0.len().await.unwrap() >= 5).await;
    assert_eq!(rig.free.0.read_all().await.unwrap(), ["1", "x", "1", "1", "2"]);
}

/// Due entries far behind in a list whose others are not due: each is overwritten, and one command removes
/// them.
#[tokio::test]
async fn transfers_from_the_middle_of_a_list() {
    const LATER: usize = 1_500; // more than a chunk of the search
    const DUE: usize = 40; // more than are removed one by one
    let rig = Rig::start(true).await;
    let payload = |n| format!("{n}");
    for command in &commands() {
        rig.server.cmd(["FLUSHALL"]);
        rig.forbid(command);
        let later: Vec<_> = (0..LATER).map(payload).collect();
        rig.free.1.offer_all(later.iter().map(|payload| (payload, HOUR))).await.unwrap();
        let due: Vec<_> = (LATER..LATER + DUE).map(payload).collect();
        rig.free.1.offer_all(due.iter().map(|payload| (payload, ms(20)))).await.unwrap();
        tokio::time::sleep(ms(100)).await;
        rig.permit();
        until_async(command, async || rig.free.0.len().await.unwrap() >= DUE).await;
        assert_eq!(rig.free.0.read_all().await.unwrap(), due, "without {command}");
        let mut all: Vec<_> = later.into_iter().chain(due).collect();
        all.sort();
        assert_eq!(rig.payloads().await, all, "without {command}");
    }
    assert!(rig.server.command_calls("lset") > DUE as u64, "the branch is reached");
}

/// A payload for a taker that is gone returns, at the latest when the permission is back. So does an entry.
#[tokio::test]
async fn dropped_takers() {
    let rig = Rig::start(false).await;
    for command in &commands() {
        rig.fill().await;
        let payloads = rig.payloads().await;
        let mut take = pending({
            let ready = rig.ready.clone();
            async move { ready.poll_many(2).await }
        });
        let mut poll = pending({
            let delayed = rig.delayed.clone();
            async move { delayed.poll_many(2).await }
        });
        soon(woken(&mut take)).await;
        soon(woken(&mut poll)).await;
        rig.forbid(command);
        drop((take, poll));
        tokio::time::sleep(ms(50)).await;
        rig.permit();
        until_async(command, async || {
            let now = tokio::join!(rig.free.0.len(), rig.free.1.len());
            (now.0.unwrap(), now.1.unwrap()) == (3, 3)
        })
        .await;
        assert_eq!(rig.payloads().await, payloads, "without {command}");
        assert_eq!(
            rig.free.0.read_all().await.unwrap(),
            ["ready 1", "ready 2", "ready 3"],
            "the order stays"
        );
        assert_eq!(rig.free.1.read_all().await.unwrap(), ["pending 1", "pending 2", "pending 3"]);
    }
}

/// Leaves the payload `popped` as a dead process does that had taken it this way.
async fn leave(rig: &Rig, kind: &str) {
    let mut popped = vec![b"popped".to_vec()];
    if kind == "poll" {
        let before = rig.server.zset(TIMEOUT_SET);
        let ticket = rig.free.1.offer("popped", HOUR).await.unwrap();
        let new = rig.server.zset(TIMEOUT_SET).into_iter().find(|entry| !before.contains(entry));
        let (entry, score) = new.expect("the entry");
        assert!(rig.free.1.cancel(&ticket).await.unwrap());
        popped = vec![entry, score.to_string().into_bytes()];
    }
    let script = "return redis.call('HSET', KEYS[1], '1', cmsgpack.pack({ARGV[1], 1, {unpack(ARGV, 2)}}))";
    let words = ["EVAL", script, "1", POPPED, kind].map(|word| word.as_bytes().to_vec());
    rig.server.cmd(words.into_iter().chain(popped));
}

/// What a dead process had popped is requeued as a whole or not at all.
#[tokio::test]
async fn unconfirmed_pops() {
    for kind in ["LPOP", "RPOP", "poll"] {
        each(async |rig| {
            leave(rig, kind).await;
            let requeued = rig.ready.unconfirmed_pops(ms(0)).requeue_all(usize::MAX).await;
            let left: usize = rig.server.get(["HLEN", POPPED]);
            rig.server.cmd(["DEL", POPPED]);
            assert_eq!(left, usize::from(requeued.is_err()), "{kind}");
            assert_eq!(requeued?, 1);
            stored(&["popped"])
        })
        .await;
    }
    each(async |rig| {
        leave(rig, "LPOP").await;
        let removed = rig.ready.unconfirmed_pops(ms(0)).remove_all(usize::MAX).await;
        let left: usize = rig.server.get(["HLEN", POPPED]);
        rig.server.cmd(["DEL", POPPED]);
        assert_eq!(left, usize::from(removed.is_err()));
        assert_eq!(removed?, 1);
        stored(&[])
    })
    .await;
    each(async |rig| {
        leave(rig, "LPOP").await;
        let read = rig.ready.unconfirmed_pops(ms(0)).read(None, 10).await;
        rig.server.cmd(["DEL", POPPED]);
        assert_eq!(read?[0].payloads, ["popped"]);
        stored(&[])
    })
    .await;
}
