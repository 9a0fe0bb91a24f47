//! Events and spans have the names and fields that `docs/observability.md` promises. Each change of state is
//! reported once, and nothing is reported while all is well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use redelay::{Client, codec};
use redelay_fixture::{ClientKind, Cluster, Failover, Proxy, Sentinels, Server, until_async};
use redelay_support::{
    CHANNEL, HOUR, Listener, MINUTE, ORDERED_LIST, Recorded, SCHEDULE_RECORDS, SCHEDULES, SELDOM,
    TIMEOUT_SET, ms, soon,
};
use tokio_test::{assert_pending, task};
use tracing::Level;

use super::architecture::files;

/// What `docs/observability.md` promises of an event or a span.
struct Promise {
    level: &'static str,
    fields: BTreeSet<&'static str>,
    /// What an event prints: one of these.
    messages: Vec<&'static str>,
}

fn documented() -> BTreeMap<&'static str, Promise> {
    let rows =
        include_str!("../../docs/observability.md").lines().filter(|line| line.starts_with("| `redelay."));
    let row = |row: &'static str| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2);
        let promise = Promise {
            level: cells[2],
            fields: quoted(cells[3]).collect(),
            messages: quoted(cells[4]).collect(),
        };
        (cells[1].trim_matches('`'), promise)
    };
    rows.map(row).collect()
}

#[test]
fn every_event_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documented = documented();
    let (mut named, mut unknown) = (0, Vec::new());
    for file in ["docs", "crates"].iter().flat_map(|folder| files(&root.join(folder))) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let words = text.split(|letter: char| !(letter.is_alphanumeric() || "._".contains(letter)));
        let words = words.map(|word| word.trim_end_matches('.'));
        // Those of `redelay.queue` are metrics.
        let is_event = |word: &&str| {
            let parts: Vec<_> = word.split('.').collect();
            matches!(parts[..], ["redelay", of, what] if of != "queue" && what == what.to_lowercase())
        };
        for word in words.filter(is_event) {
            named += 1;
            if !documented.contains_key(word) {
                unknown.push(format!("{}: {word}", file.display()));
            }
        }
    }
    assert!(named > 50, "only {named} are found");
    assert!(unknown.is_empty(), "there are no such events: {unknown:#?}");
}

/// The stats that `docs/observability.md` lists, and those of the structs.
#[test]
fn all_stats_are_documented() {
    let table = include_str!("../../docs/observability.md").split("| of a client | ").nth(1);
    let table = table.and_then(|rest| rest.split("\n\n").next()).expect("the table");
    let mut documented = [BTreeSet::new(), BTreeSet::new()];
    for cells in table.lines().skip(2).map(|row| row.split('|').collect::<Vec<_>>()) {
        let names = |cell: &'static str| cell.split('`').skip(1).step_by(2);
        documented[0].extend(names(cells[1]));
        documented[1].extend(names(cells[2]).chain(names(cells[3])));
    }
    let fields = |stats: serde_json::Value| -> BTreeSet<String> {
        let names = |stats: &serde_json::Value| stats.as_object().expect("a struct").clone();
        let all = names(&stats);
        let inner = all.get("receiving").map(names).unwrap_or_default();
        all.keys().chain(inner.keys()).map(|name| name.trim_end_matches("_ms").to_owned()).collect()
    };
    let [client, queue] =
        documented.map(|names| names.into_iter().map(str::to_owned).collect::<BTreeSet<_>>());
    assert_eq!(client, fields(serde_json::to_value(redelay::stats::ClientStats::default()).unwrap()));
    assert_eq!(queue, fields(serde_json::to_value(redelay::stats::QueueStats::default()).unwrap()));
}

/// Everything recorded is documented, with its level, its fields and, for an event, its message.
#[track_caller]
fn is_documented(recorded: &[Recorded]) {
    let documented = documented();
    for recorded in recorded {
        let Promise { level, fields, messages } =
            documented.get(recorded.name).unwrap_or_else(|| panic!("{recorded:?} is not documented"));
        assert_eq!(recorded.level.to_string().to_lowercase(), *level, "{recorded:?}");
        let found: BTreeSet<_> =
            recorded.fields.keys().copied().filter(|field| *field != "message").collect();
        if recorded.is_span {
            assert!(found.is_subset(fields), "{recorded:?}");
        } else {
            assert_eq!(found, *fields, "{recorded:?}");
            assert!(messages.contains(&&*recorded.fields["message"]), "{recorded:?}");
        }
    }
}

#[tokio::test]
async fn nothing_is_reported_while_all_is_well() {
    let (listener, _listening) = Listener::up_to(Level::INFO);
    let server = Server::builder().appendonly(true).start();
    let client = Client::connect(&server.url()).await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    for n in 0..20 {
        delayed.offer(&n, ms(n as u64 % 3)).await.unwrap();
        soon(ready.take()).await.unwrap();
    }
    assert_eq!(ready.poll_last_timeout(ms(5)).await.unwrap(), None);
    let waiting = tokio::spawn(async move { ready.take().await });
    until_async("a taker waits", || async { server.blocked_clients() > 0 }).await;
    client.shutdown().await;
    assert!(waiting.await.unwrap().unwrap_err().is_closed());
    assert!(client.stats().last_error.is_none(), "{:?}", client.stats().last_error);
    // One line says that it has connected.
    let all = listener.all();
    assert!(all.len() == 1 && all[0].name == "redelay.connected", "{all:?}");
    is_documented(&all);
}

#[tokio::test]
async fn spans_of_offers_transfers_and_takes() {
    let (listener, _listening) = Listener::start();
    let server = Server::builder().appendonly(true).start();
    let client = Client::builder().url(server.url()).name_prefix("shop:").connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    delayed.offer_all([(&1, ms(1)), (&2, HOUR)]).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
    let moved = |recorded: &Recorded| recorded.fields.get("transferred").is_some_and(|moved| moved == "1");
    until_async("the transfer is recorded", || async {
        listener.named("redelay.transfer").iter().any(moved)
    })
    .await;

    let transfers = listener.named("redelay.transfer");
    let transfer = transfers.into_iter().find(moved).unwrap();
    assert_eq!((&*transfer.fields["queue"], &*transfer.fields["quarantined"]), ("shop:q", "0"));
    let next: f64 = transfer.fields["next_due_in_ms"].parse().unwrap();
    assert!(next > 3_500_000.0 && next <= 3_600_001.0, "{next}");
    let offers = listener.named("redelay.offer");
    let offer = &offers[0].fields;
    assert_eq!(
        (&*offer["messaging.destination.name"], &*offer["messaging.batch.message_count"]),
        ("shop:q", "2")
    );
    assert_eq!((&*offer["otel.kind"], &*offer["messaging.operation.type"]), ("producer", "send"));
    assert!(offers.len() == 1 && offers[0].is_over);
    let takes = listener.named("redelay.take");
    assert_eq!((&*takes[0].fields["queue"], &*takes[0].fields["queues"]), ("shop:q", "1"));
    assert!(takes.len() == 1 && takes[0].is_over);
    assert_eq!(listener.events().len(), listener.named("redelay.connected").len(), "{:?}", listener.events());

    let mut waiting = task::spawn(ready.poll_from_any(HOUR, &["p"]));
    assert_pending!(waiting.poll());
    let take = listener.named("redelay.take").pop().unwrap();
    assert_eq!((&*take.fields["queue"], &*take.fields["queues"]), ("shop:q", "2"));
    assert!(!take.is_over);
    drop(waiting);
    assert!(listener.named("redelay.take").pop().unwrap().is_over);
    is_documented(&listener.all());
}

#[tokio::test]
async fn spans_of_deliveries() {
    let (listener, _listening) = Listener::start();
    let server = Server::start();
    let client = Client::builder().url(server.url()).name_prefix("shop:").connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let receiver = ready.receiver();
    ready.offer_all(&[1, 2]).await.unwrap();
    let mut deliveries = soon(receiver.receive_many(10)).await.unwrap();
    let receive = &listener.named("redelay.receive")[0];
    assert_eq!(receive.fields["messaging.batch.message_count"], "2");
    assert_eq!(receive.fields["messaging.destination.name"], "shop:q");
    assert!(receive.is_over);

    let first = deliveries.remove(0).unwrap();
    let id = first.id();
    first.instrument(async { tracing::info!(name: "inside", target: "redelay", "ships it") }).await;
    assert_eq!(listener.named("inside")[0].parent, Some("redelay.process"));
    let process = || {
        listener
            .named("redelay.process")
            .into_iter()
            .find(|span| span.fields["messaging.message.id"] == id.to_string())
    };
    let open = process().unwrap();
    assert!(!open.is_over && !open.fields.contains_key("outcome"));
    assert_eq!((&*open.fields["attempt"], &*open.fields["messaging.message.body.size"]), ("1", "1"));
    first.ack().await.unwrap();
    let over = process().unwrap();
    assert!(over.is_over);
    assert_eq!(over.fields["outcome"], "acknowledged");
    let settles = listener.named("redelay.settle");
    assert_eq!((settles.len(), settles[0].parent), (1, Some("redelay.process")));
    assert_eq!(settles[0].fields["messaging.operation.name"], "ack");
    assert_eq!(settles[0].fields["messaging.message.id"], id.to_string());
    assert!(settles[0].is_over && !settles[0].fields.contains_key("error.type"));

    // The server forgets the lease.
    server.cmd(["DEL", "redelay:leases:{shop:q}"]);
    assert!(deliveries.remove(0).unwrap().retry().await.is_err());
    let settle = listener.named("redelay.settle").pop().unwrap();
    assert_eq!(
        (&*settle.fields["messaging.operation.name"], &*settle.fields["error.type"]),
        ("retry", "LeaseLost")
    );

    drop(soon(receiver.receive()).await.unwrap());
    let outcomes: Vec<_> =
        listener.named("redelay.process").iter().map(|span| span.fields["outcome"].clone()).collect();
    assert_eq!(outcomes, ["acknowledged", "failed", "dropped"]);
    let ours: Vec<_> = listener.all().into_iter().filter(|recorded| recorded.name != "inside").collect();
    is_documented(&ours);
}

/// What receivers report.
async fn receivers(server: &Server, listener: &Listener) {
    let messages = |name: &str| -> u64 {
        listener.named(name).iter().map(|recorded| recorded.fields["messages"].parse::<u64>().unwrap()).sum()
    };
    let client = Client::connect(&server.url()).await.unwrap();
    let (ready, other) =
        (client.blocking_queue("r", codec::Long), client.blocking_queue("other", codec::Long));
    ready.offer_all(&[1, 2, 3, 4, 5]).await.unwrap();

    // Dead letters, of which one is kept.
    let receiver = ready.receiver().lease(ms(200)).max_attempts(1).keep_dead_letters(1, None);
    for _ in 0..3 {
        soon(receiver.receive()).await.unwrap().retry().await.unwrap();
    }
    until_async("all but one removed", || async { messages("redelay.dead_letters.removed") == 2 }).await;
    assert_eq!(messages("redelay.dead_letters"), 3);
    assert_eq!(listener.named("redelay.dead_letters")[0].fields["queue"], "r");
    drop(receiver);

    // A key of another type. It is said once, however often the receiver tries.
    server.cmd(["SET", "wrong", "of another type"]);
    let wrong = client.blocking_queue("wrong", codec::Long);
    let receiver = wrong.receiver();
    for _ in 0..3 {
        assert!(soon(receiver.receive()).await.is_err());
    }
    server.cmd(["DEL", "wrong"]);
    wrong.put(&7).await.unwrap();
    soon(receiver.receive()).await.unwrap().ack().await.unwrap();
    assert_eq!(listener.named("redelay.receives.failing").len(), 1);
    let failing = &listener.named("redelay.receives.failing")[0];
    assert_eq!(failing.fields["queue"], "wrong");
    assert!(failing.fields["error"].contains("WRONGTYPE"));
    assert_eq!(listener.named("redelay.receives.recovered").len(), 1);
    drop(receiver);

    // A lease that nobody extends.
    let receiver = ready.receiver().lease(ms(200)).extend_for(Duration::ZERO);
    let delivery = soon(receiver.receive()).await.unwrap();
    until_async("taken back", || async { messages("redelay.leases.ended") == 1 }).await;
    assert!(delivery.ack().await.is_err());
    soon(receiver.receive()).await.unwrap().ack().await.unwrap();

    // A server that is far away, once for several slow calls in a row.
    let proxy = Proxy::start(server.port());
    let distant = Client::connect(&proxy.url()).await.unwrap();
    let receiver = distant.blocking_queue::<i64>("distant", codec::Long).receiver().lease(ms(600));
    assert!(receiver.try_receive().await.unwrap().is_none());
    proxy.delay(ms(300));
    for _ in 0..5 {
        assert!(receiver.try_receive().await.unwrap().is_none());
    }
    let far = listener.named("redelay.receiver.far");
    assert_eq!((far.len(), &*far[0].fields["queue"]), (1, "distant"));
    assert!(far[0].fields["round_trip_ms"].parse::<u64>().unwrap() >= 300, "{far:?}");
    drop((receiver, distant, proxy));

    // A job that is too late.
    let expired = client.blocking_queue("expired", codec::Long);
    // Its client transfers while it has this handle.
    let delayed = client.delayed_queue(&expired);
    delayed.offer(&6, Duration::ZERO).id("6").expires_after(ms(1)).await.unwrap();
    until_async("it is ready", || async { server.list("expired").len() == 1 }).await;
    tokio::time::sleep(ms(2)).await;
    assert!(expired.receiver().try_receive().await.unwrap().is_none());
    let jobs = listener.named("redelay.jobs.expired");
    assert_eq!((jobs.len(), &*jobs[0].fields["queue"], &*jobs[0].fields["jobs"]), (1, "expired", "1"));

    // A handler that blocks.
    let blocked = client.blocking_queue("blocked", codec::Long);
    blocked.put(&6).await.unwrap();
    let receiver = blocked.receiver().lease(Duration::from_secs(1));
    let delivery = soon(receiver.receive()).await.unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    until_async("late", || async { !listener.named("redelay.runtime.blocked").is_empty() }).await;
    let late = listener.named("redelay.runtime.blocked")[0].fields["late_ms"].parse::<u64>().unwrap();
    assert!((500..60_000).contains(&late), "{late}");
    drop((delivery, receiver));

    // Dead letters that cannot be sent.
    server.cmd(["SET", "other", "of another type"]);
    let receiver = ready.receiver().dead_letters_to(&other);
    soon(receiver.receive()).await.unwrap().reject("no").await.unwrap();
    until_async("not sent", || async { !listener.named("redelay.forward.failing").is_empty() }).await;
    assert!(listener.named("redelay.forward.failing")[0].fields["error"].contains("WRONGTYPE"));
    server.cmd(["DEL", "other"]);
    assert_eq!(soon(other.take()).await.unwrap(), 5);

    // Dead letters whose content somebody has deleted.
    ready.put(&7).await.unwrap();
    soon(ready.receiver().receive()).await.unwrap().reject("no").await.unwrap();
    let letters = ready.dead_letters().len().await.unwrap();
    server.cmd(["DEL", "redelay:dead-messages:{r}"]);
    assert_eq!(ready.dead_letters().remove_all(usize::MAX).await.unwrap(), 0);
    let disagreed = &listener.named("redelay.keys.disagreed")[0];
    assert_eq!(
        ["what", "gone", "restored"].map(|field| &*disagreed.fields[field]),
        ["dead", &letters.to_string(), "0"]
    );

    // What is no dead letter.
    server.cmd(["HSET", "redelay:dead-messages:{r}", "somebody", "else's"]);
    assert_eq!(ready.dead_letters().remove_all(usize::MAX).await.unwrap(), 0);
    let foreign = listener.named("redelay.keys.foreign");
    assert_eq!(foreign.len(), 1, "{foreign:?}");
    assert_eq!(["what", "fields"].map(|field| &*foreign[0].fields[field]), ["dead", "1"]);

    // Receivers that are gone.
    client.shutdown().await;
    let watching = Client::builder().url(server.url()).sweep_interval(Duration::from_secs(1));
    let watching = watching.release_abandoned_after(Duration::from_secs(30)).connect().await.unwrap();
    let (seconds, _): (u64, u64) = server.get(["TIME"]);
    let ago = |past: u64| ((seconds - past) * 1000).to_string();
    server.cmd(["HSET", "redelay:control:{blocked}", "seen", &ago(40), "silent", &ago(31)]);
    let _delayed = watching.delayed_queue(&watching.blocking_queue("blocked", codec::Long));
    until_async("given back", || async { messages("redelay.abandoned.released") == 1 }).await;
    watching.shutdown().await;
}

/// What a failover reports.
async fn sentinels(listener: &Listener) {
    let group = Sentinels::start();
    let client = Client::connect(&group.url()).await.unwrap();
    let address = |server: &Server| format!("127.0.0.1:{}", server.port());
    let old = address(group.master());
    let new = address(group.failover());
    until_async("the client is led there", || async { !listener.named("redelay.master.changed").is_empty() })
        .await;
    until_async("it is connected", || async { client.stats().connected }).await;
    // A sentinel that is gone.
    group.sentinel(0).kill_9();
    let is_of_sentinel = |recorded: &Recorded| recorded.fields["connection"] == "a sentinel";
    until_async("its loss is noticed", || async {
        listener.named("redelay.connection.lost").iter().any(is_of_sentinel)
    })
    .await;
    let changed = listener.named("redelay.master.changed");
    assert_eq!(changed.len(), 1, "{changed:?}");
    let fields = ["master", "from", "to"].map(|field| &*changed[0].fields[field]);
    assert_eq!(fields, ["main", &*old, &*new]);
    client.shutdown().await;
}

/// What the failover of a master of a cluster reports.
async fn cluster(listener: &Listener) {
    let cluster = Cluster::start();
    cluster.be_patient(true);
    let client = Client::connect(&cluster.url()).await.unwrap();
    let slot = cluster.slot_of("q");
    let address = |server: &Server| format!("127.0.0.1:{}", server.port());
    let old = address(cluster.master_of(slot));
    let new = address(cluster.failover(slot, Failover::Planned));
    until_async("the client is led there", || async { client.stats().masters.contains(&new) }).await;
    let changed = listener.named("redelay.cluster.changed");
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(changed[0].fields["gone"], old);
    let masters: BTreeSet<_> = changed[0].fields["masters"].split(", ").map(str::to_owned).collect();
    let stats = client.stats();
    assert_eq!((masters, stats.failovers), (stats.masters.into_iter().collect(), 1));
    let queue = client.blocking_queue("q", codec::Long);
    assert_eq!(queue.stats().await.unwrap().server, new);
    client.shutdown().await;
}

/// Everything documented is reported once per change of state, and nothing else is reported.
#[tokio::test]
async fn everything_documented_is_reported() {
    let (listener, _listening) = Listener::start();
    let times = |name: &str| listener.named(name).len();
    let server = Server::start();
    let all = ["ACL", "SETUSER", "worker", "on", ">secret", "+@all", "allkeys"];
    server.cmd(all.iter().chain(&["allchannels"]));
    let url = format!("redis://worker:secret@127.0.0.1:{}", server.port());
    let client = Client::connect(&url).await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);

    // A transfer that fails, again and again.
    server.cmd(["SET", "q", "of another type"]);
    delayed.offer(&1, ms(0)).await.unwrap();
    until_async("failures", || async { client.stats().failed_transfers > 3 }).await;
    assert_eq!(times("redelay.transfer.failing"), 1);
    let failing = &listener.named("redelay.transfer.failing")[0];
    assert_eq!(failing.fields["queue"], "q");
    assert!(failing.fields["error"].contains("WRONGTYPE"));
    assert_eq!(times("redelay.transfer.recovered"), 0);
    server.cmd(["DEL", "q"]);
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
    until_async("recovery", || async { times("redelay.transfer.recovered") == 1 }).await;

    // A due time that was changed by hand, so that nobody hears of it.
    delayed.offer(&1, HOUR).await.unwrap();
    let (entry, _) = server.zset(TIMEOUT_SET).swap_remove(0);
    server.cmd([b"ZADD".as_slice(), TIMEOUT_SET.as_bytes(), b"1", &entry]);
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
    until_async("it is reported", || async { times("redelay.transfer.stalled") == 1 }).await;
    assert_eq!(listener.named("redelay.transfer.stalled")[0].fields["queue"], "q");
    assert_eq!(client.stats().stalled_transfers, 1);

    // A permission that is taken away. If a transfer comes before the look, it is refused, which says more,
    // and the queue is not looked at.
    loop {
        let refused = times("redelay.transfer.failing");
        server.cmd(["ACL", "SETUSER", "worker", "-zcount"]);
        until_async("it is noticed", || async {
            times("redelay.check.failing") == 1 || times("redelay.transfer.failing") > refused
        })
        .await;
        server.cmd(["ACL", "SETUSER", "worker", "+zcount"]);
        if times("redelay.check.failing") == 1 {
            break;
        }
        until_async("it is transferred again", || async {
            times("redelay.transfer.recovered") == times("redelay.transfer.failing")
        })
        .await;
    }
    delayed.offer(&1, ms(0)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1);

    // Entries that cannot be read.
    for n in 1..=3_u64 {
        server.cmd(["ZADD", TIMEOUT_SET, "1", &format!("junk {n}")]);
        server.cmd(["RPUSH", ORDERED_LIST, &format!("junk {n}")]);
        server.cmd(["PUBLISH", CHANNEL, "1"]);
        until_async("set aside", || async { client.stats().quarantined == n }).await;
    }
    assert_eq!(times("redelay.quarantined"), 1);
    assert_eq!(listener.named("redelay.quarantined")[0].fields["entries"], "1");

    // A payload that cannot be put back.
    let mut take = task::spawn(ready.take());
    assert_pending!(take.poll());
    until_async("a taker waits", || async { server.blocked_clients() == 1 }).await;
    ready.put(&2).await.unwrap();
    until_async("handed over", || std::future::ready(take.is_woken())).await;
    server.cmd(["SET", "q", "of another type"]);
    drop(take);
    until_async("not put back", || async { times("redelay.return_to_list.failing") == 1 }).await;
    server.cmd(["DEL", "q"]);
    until_async("put back", || async { server.list("q") == [b"2"] }).await;
    assert_eq!(soon(ready.take()).await.unwrap(), 2);

    // A schedule of a newer version.
    server.cmd(["HSET", SCHEDULE_RECORDS, "s", "from 3 to 4\n\npayload"]);
    server.cmd(["ZADD", SCHEDULES, "5", "s"]);
    delayed.schedule("other").every(SELDOM).upsert(&0).await.unwrap();
    until_async("it does not run", || async { times("redelay.schedule.failing") == 1 }).await;
    let failing = &listener.named("redelay.schedule.failing")[0].fields;
    assert_eq!((&*failing["queue"], &*failing["schedule"]), ("q", "s"));
    assert!(delayed.schedule("other").remove().await.unwrap());
    assert_eq!(failing["message"], "a schedule does not run");
    server.cmd(["DEL", SCHEDULES, SCHEDULE_RECORDS]);
    // Schedules that cannot be read at all.
    let unreadable = ["redelay:schedules:{unreadable}", "redelay:schedule-records:{unreadable}"];
    server.cmd(["ZADD", unreadable[0], "5", "s"]);
    server.cmd(["SET", unreadable[1], "of another type"]);
    let queue = client.delayed_queue(&client.blocking_queue("unreadable", codec::Long));
    until_async("none is read", || async { times("redelay.schedule.failing") == 2 }).await;
    let failing = &listener.named("redelay.schedule.failing")[1].fields;
    assert_eq!((&*failing["queue"], &*failing["schedule"]), ("unreadable", ""));
    assert_eq!(failing["message"], "schedules cannot be read");
    server.cmd(["DEL", unreadable[0], unreadable[1]]);
    drop(queue);

    // Lost connections.
    let waiting = tokio::spawn({
        let ready = ready.clone();
        async move { ready.take().await }
    });
    until_async("a taker waits", || async { server.blocked_clients() == 1 }).await;
    server.kill_clients(ClientKind::Normal);
    server.kill_clients(ClientKind::Pubsub);
    until_async("all back", || async { times("redelay.connection.recovered") == 3 }).await;
    let lost = listener.named("redelay.connection.lost");
    let connections: BTreeSet<_> =
        lost.iter().map(|recorded| recorded.fields["connection"].clone()).collect();
    assert_eq!(lost.len(), 3, "{lost:?}");
    assert_eq!(connections, ["announcements", "commands", "pops"].map(String::from).into());
    assert_eq!(client.stats().reconnects, 3);
    until_async("pops that failed", || async { times("redelay.pops.failing") == 1 }).await;

    // A user who has lost the permission to subscribe.
    server.cmd(all.iter().chain(&["resetchannels"]));
    // Redis 7 and Valkey end the connection of a subscriber who has lost the permission. Redis 6.2 does not.
    server.kill_clients(ClientKind::Pubsub);
    until_async("refused", || async { times("redelay.announcements.failing") == 1 }).await;
    server.cmd(all.iter().chain(&["allchannels"]));
    until_async("heard again", || async { times("redelay.announcements.recovered") == 1 }).await;
    assert_eq!(times("redelay.announcements.failing"), 1);
    // A refused subscriber opens a new connection for each retry. That is not a lost connection.
    assert_eq!((times("redelay.connection.lost"), client.stats().reconnects), (4, 4));

    delayed.offer(&3, ms(1)).await.unwrap();
    assert_eq!(soon(waiting).await.unwrap().unwrap(), 3);
    until_async("pops that do not fail", || async { times("redelay.pops.recovered") == 1 }).await;

    // A payload that cannot be put back before the client ends.
    let builder = Client::builder().url(&url).connect_timeout(MINUTE).command_timeout(ms(1000));
    let brief = builder.transfer(false).connect().await.unwrap();
    let queue = brief.blocking_queue("q", codec::Long);
    let mut take = task::spawn(queue.take());
    assert_pending!(take.poll());
    until_async("a taker waits", || async { server.blocked_clients() == 1 }).await;
    ready.put(&4).await.unwrap();
    until_async("handed over", || std::future::ready(take.is_woken())).await;
    server.cmd(["SET", "q", "of another type"]);
    brief.shutdown().await;
    assert_eq!(listener.named("redelay.payloads.lost")[0].fields["payloads"], "1");
    server.cmd(["DEL", "q"]);
    drop(take);
    client.shutdown().await;

    receivers(&server, &listener).await;

    // A password that is another one from now on.
    let client = Client::connect(&url).await.unwrap();
    server.cmd(["ACL", "SETUSER", "worker", "resetpass", ">other"]);
    server.kill_clients(ClientKind::Normal);
    until_async("refused", || async { times("redelay.connection.refused") == 1 }).await;
    assert!(listener.named("redelay.connection.refused")[0].fields["error"].starts_with("WRONGPASS"));
    server.cmd(["ACL", "SETUSER", "worker", "resetpass", ">secret"]);
    until_async("back", || async { client.stats().connected }).await;
    client.shutdown().await;

    // A server that deletes what it has no memory for.
    server.cmd(["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    drop(Client::connect(&url).await.unwrap());
    assert_eq!(listener.named("redelay.eviction")[0].fields["policy"], "allkeys-lru");
    server.cmd(["CONFIG", "SET", "maxmemory-policy", "noeviction"]);

    // A user without some permissions. Redis 6.2 cannot tell beforehand.
    if server.version().major > 6 {
        server.cmd(["ACL", "SETUSER", "worker", "-hset", "-ltrim", "-get"]);
        let client = Client::connect(&url).await.unwrap();
        let _queue = client.blocking_queue("q", codec::Long);
        until_async("it is looked at", || async { times("redelay.permissions.missing") == 1 }).await;
        let missing = &listener.named("redelay.permissions.missing")[0].fields["missing"];
        // The key of a receipt is another one each time.
        assert!(missing.contains("offer needs GET on redelay:offered:{q}:*;"), "{missing}");
        assert!(
            missing.contains("take needs HSET") && missing.contains("cancel and remove needs LTRIM"),
            "{missing}"
        );
    }

    // A server that does not exist.
    let nobody = Client::builder().url("redis://127.0.0.1:1").connect_timeout(ms(2000)).connect().await;
    assert!(nobody.unwrap_err().is_unavailable());
    assert_eq!(times("redelay.connection.failing"), 1);
    assert_eq!(listener.named("redelay.connection.failing")[0].fields["server"], "127.0.0.1:1");
    sentinels(&listener).await;
    cluster(&listener).await;
    let recorded = listener.all();
    is_documented(&recorded);
    let names: BTreeSet<_> = recorded.iter().map(|recorded| recorded.name).collect();
    let mut expected: BTreeSet<_> = documented().into_keys().collect();
    if server.version().major == 6 {
        expected.remove("redelay.permissions.missing");
    }
    assert_eq!(names, expected);
}
