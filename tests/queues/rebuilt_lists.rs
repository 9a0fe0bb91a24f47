//! Long ordered lists whose entries are nearly all due: the list is rebuilt from the others, and then entries
//! are moved from the timeout set. Counts are asserted, no times.

use std::collections::BTreeSet;
use std::time::Duration;

use redelay::delayed_queue::Offered;
use redelay::{Client, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    HOUR, Mover, ORDERED_LIST, QUARANTINE, REBUILD, TARGET, TIMEOUT_SET, fill_at_random, fill_with_lengths,
    ms, part, patient_builder, script,
};

/// The transfer script of a server on which the time of each call is over when it begins: the processor was
/// busy with something else.
fn starved() -> String {
    let clock = "local function spent()";
    let text = script("TRANSFER");
    assert!(text.contains(clock));
    text.replace(clock, "local function spent() do return 1e9 end")
}

fn mover(script: impl Into<String>) -> Mover {
    Mover::new(script, 40_000)
}

/// Calls until it has begun to rebuild the list.
fn begin(server: &Server) -> Mover {
    let mut mover = mover(starved());
    assert!(mover.call(server) > 0, "the first one is moved at once");
    assert!(is_marked(server), "the list is not rebuilt");
    mover
}

fn is_marked(server: &Server) -> bool {
    server.get(["EXISTS", REBUILD])
}

fn length(server: &Server, command: &str, key: &str) -> usize {
    server.get([command, key])
}

/// The payloads in the target.
fn target(server: &Server) -> Vec<usize> {
    let payloads = server.list(TARGET);
    payloads.into_iter().map(|payload| String::from_utf8(payload).unwrap().parse().unwrap()).collect()
}

/// What the list has except what is due.
fn others(server: &Server) -> Vec<Vec<u8>> {
    let due: BTreeSet<Vec<u8>> = server.get(["ZRANGEBYSCORE", TIMEOUT_SET, "-inf", "2000000000"]);
    let mut list = server.list(ORDERED_LIST);
    list.retain(|entry| !due.contains(entry));
    list
}

fn client(server: &Server) -> redelay::client::ClientBuilder {
    patient_builder(&server)
}

/// Those of some cases that this part has. Each case runs with one of several servers.
fn of_this_part<T>(cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    cases.into_iter().zip(0..).filter(|(_, number)| part().has(*number)).map(|(case, _)| case)
}

/// Through a client, as users see it.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_moved_in_due_order_and_the_rest_of_the_list_stays() {
    if !part().has(1) {
        return;
    }
    const ALL: usize = 60_000;
    const DUE: usize = 59_000;
    let server = Server::start();
    fill_at_random(&server, ALL, DUE);
    // What has no due time; an entry that is in the list twice; one that is in the set only; a malformed one.
    for n in 0..100 {
        server.cmd([
            if n % 2 == 0 { "LPUSH" } else { "RPUSH" },
            ORDERED_LIST,
            &format!("without a score {n}"),
        ]);
    }
    let twice: Vec<Vec<u8>> = server.get(["ZRANGE", TIMEOUT_SET, "30000", "30000"]);
    server.cmd([b"RPUSH", ORDERED_LIST.as_bytes(), &twice[0]]);
    let unlisted: Vec<Vec<u8>> = server.get(["ZRANGE", TIMEOUT_SET, "100", "100"]);
    server.cmd([b"LREM", ORDERED_LIST.as_bytes(), b"1", &unlisted[0]]);
    server.cmd(["ZADD", TIMEOUT_SET, "1", "malformed"]);
    server.cmd(["RPUSH", ORDERED_LIST, "malformed"]);
    let rest = others(&server);
    server.cmd(["CONFIG", "RESETSTAT"]);
    let client = client(&server).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    let is_moved = || async { delayed.stats().await.unwrap().pending as usize == ALL - DUE };
    until_async("all is moved", is_moved).await;
    assert_eq!(target(&server), (0..DUE).collect::<Vec<_>>());
    assert_eq!(server.list(ORDERED_LIST), rest);
    assert_eq!(server.list(QUARANTINE), [b"1".to_vec(), b"malformed".to_vec()]);
    until_async("the mark is removed", || async { !is_marked(&server) }).await;
    assert_eq!(delayed.len().await.unwrap(), rest.len());
    // Nothing is taken out of the middle.
    assert_eq!(server.command_calls("lset"), 0);
}

/// Whatever its clock says, a call gets something done: many starved calls move everything.
#[test]
fn a_starved_server_moves_everything() {
    let cases = [(60_000, 60_000, 50), (60_000, 55_000, 50), (60_000, 20_000, 200)];
    for (all, due, most_calls) in of_this_part(cases) {
        let server = Server::start();
        fill_at_random(&server, all, due);
        let rest = others(&server);
        let mut mover = mover(starved());
        assert!(mover.call(&server) > 0, "the first call moves something");
        let (mut calls, mut moving) = (1, 1);
        while length(&server, "ZCARD", TIMEOUT_SET) > all - due {
            moving += usize::from(mover.call(&server) > 0);
            calls += 1;
            assert!(
                calls <= most_calls,
                "{due} of {all} due: {calls} calls, {moving} of which have moved something"
            );
        }
        println!("{due} of {all} due: {calls} calls, {moving} of which have moved something");
        assert_eq!(target(&server), (0..due).collect::<Vec<_>>());
        assert_eq!(server.list(ORDERED_LIST), rest);
    }
}

/// Moves what is due. Asserts that it takes no more calls than this. Returns whether due entries were missing
/// in the list meanwhile.
fn moves_all(server: &Server, script: &str, [all, due, most_calls]: [usize; 3]) -> bool {
    let rest = others(server);
    let mut mover = mover(script);
    let (mut calls, mut is_rebuilt) = (0, false);
    while length(server, "ZCARD", TIMEOUT_SET) > all - due {
        mover.call(server);
        calls += 1;
        let (pending, listed) = (length(server, "ZCARD", TIMEOUT_SET), length(server, "LLEN", ORDERED_LIST));
        is_rebuilt |= listed < pending;
        assert!(calls <= most_calls, "{pending} pending and {listed} listed after {calls} calls");
    }
    println!("{due} of {all} due: {calls} calls, rebuilt: {is_rebuilt}");
    assert_eq!(target(server), (0..due).collect::<Vec<_>>());
    assert_eq!(server.list(ORDERED_LIST), rest);
    is_rebuilt
}

/// The same, of a list with payloads of these lengths.
fn moves_lengths(script: &str, numbers: [usize; 3], bytes: &str) -> bool {
    let server = Server::start();
    fill_with_lengths(&server, numbers[0], numbers[1], bytes);
    print!("{bytes}: ");
    moves_all(&server, script, numbers)
}

/// The script with another limit.
fn with_limits(script: &str, name: &str, limits: &str) -> String {
    let line = format!("local {name}, {name}_BYTES = ");
    assert_eq!(script.matches(&line).count(), 1);
    script.replace(&line, &format!("{line}{limits} -- "))
}

#[test]
fn lists_of_many_bytes_are_no_reason_to_move_next_to_nothing() {
    let scripts = [script("TRANSFER"), starved()];
    // What is read as a whole, and whether the list may be rebuilt.
    let cases = [
        // Too many for a rebuild are not due. Each call reads the whole list, or has too many bytes for that.
        ([36_000, 12_000, 50], "400", None, true),
        // A rebuilt list has too many bytes to be read as a whole. At this place, these are no cases of Redis
        // 6.2, which takes five times as long.
        ([26_000, 20_000, 1_500], "300", Some("100000, 2 ^ 20"), true),
        ([36_000, 12_000, 200], "800", None, true),
        // Those that are not due are too long to be kept.
        ([26_000, 20_000, 200], "n < due and 100 or 2000", None, false),
    ];
    let cases = cases.into_iter().flat_map(|case| scripts.iter().map(move |script| (case, script.clone())));
    for ((numbers, bytes, whole, may_be_rebuilt), mut script) in of_this_part(cases) {
        if let Some(limits) = whole {
            script = with_limits(&script, "WHOLE", limits);
        }
        let is_rebuilt = moves_lengths(&script, numbers, bytes);
        assert!(may_be_rebuilt || !is_rebuilt, "it is rebuilt");
    }
}

/// Those that are measured before a rebuild are short, and the others are not. It is given up if what is kept
/// of the list has become too long.
#[test]
fn a_rebuild_that_is_given_up_is_no_reason_to_move_next_to_nothing() {
    let bytes = "n >= due and (n - due) % 60 ~= 0 and 2000 or 100";
    let starved = starved();
    let given_up = with_limits(&starved, "MUCH", "3000, 2 ^ 22");
    let unreadable = with_limits(&given_up, "WHOLE", "3000, 2 ^ 22");
    for (script, most_calls) in of_this_part([(starved, 100), (given_up, 100), (unreadable, 2_500)]) {
        assert!(moves_lengths(&script, [26_000, 20_000, most_calls], bytes), "it is not rebuilt");
    }
}

/// Due entries that are not listed, beside a list that no call reads as a whole.
#[test]
fn unlisted_entries_beside_a_long_list_are_moved() {
    if !part().has(2) {
        return;
    }
    let server = Server::start();
    fill_at_random(&server, 20_000, 0);
    let add = "for n = 0, 11999 do
        local payload = tostring(n)
        redis.call('ZADD', KEYS[1], 1000000000 + n,
            '\\8' .. struct.pack('>I4I4', 8, n) .. struct.pack('<L', #payload) .. payload)
    end";
    server.cmd(["EVAL", add, "1", TIMEOUT_SET]);
    let script = with_limits(&starved(), "WHOLE", "3000, 2 ^ 22");
    assert!(moves_all(&server, &script, [32_000, 12_000, 1_500]));
}

/// A call says whether due entries may be missing in the list.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_is_marked_until_the_backlog_is_moved() {
    let server = Server::start();
    fill_at_random(&server, 40_000, 39_000);
    let client = client(&server).transfer(false).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    let inspector = client.inspector();
    let mut mover = begin(&server);
    // The first call may end with the first entry.
    mover.call(&server);
    while length(&server, "ZCARD", TIMEOUT_SET) > 1_000 {
        assert!(is_marked(&server));
        let pending = length(&server, "ZCARD", TIMEOUT_SET);
        assert!(length(&server, "LLEN", ORDERED_LIST) < pending);
        assert_eq!(delayed.len().await.unwrap(), pending);
        let keys = inspector.keys("q").await.unwrap();
        assert!(keys.iter().any(|key| key.what == "rebuild" && key.expires_in.is_some()), "{keys:?}");
        mover.call(&server);
    }
    assert!(!is_marked(&server));
    assert_eq!(delayed.len().await.unwrap(), 1_000);
    // What Redisson moves meanwhile ends it, too.
    fill_at_random(&server, 40_000, 40_000);
    let mut mover = begin(&server);
    server.cmd(["DEL", TIMEOUT_SET, ORDERED_LIST]);
    assert_eq!(mover.call(&server), 0);
    assert!(!is_marked(&server));
}

/// What has left the list, and is due later then, is pending as any other entry.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_rescheduled_meanwhile_is_listed_again() {
    let server = Server::start();
    let client = client(&server).transfer(false).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    fill_at_random(&server, 40_000, 38_000);
    let mut tickets = Vec::new();
    for (n, id) in ["a", "b", "c", "d"].iter().enumerate() {
        delayed.offer(&(n as i64), Duration::ZERO).id(*id).await.unwrap();
    }
    for n in 4..6 {
        tickets.push(delayed.offer(&n, Duration::ZERO).await.unwrap());
    }
    let mut mover = begin(&server);
    while length(&server, "LLEN", ORDERED_LIST) > 2_000 {
        mover.call(&server);
    }
    assert!(delayed.job("a").reschedule(HOUR).await.unwrap());
    for offer in [delayed.offer(&1, HOUR).id("b"), delayed.offer(&2, HOUR).id("c").until_done()] {
        assert!(matches!(offer.replace().await.unwrap(), Offered::Replaced(_)));
    }
    assert!(delayed.job("d").reschedule(HOUR).await.unwrap());
    assert!(delayed.job("d").reschedule(HOUR).await.unwrap(), "it is listed once");
    assert!(delayed.reschedule(&tickets[0], HOUR).await.unwrap());
    assert!(delayed.cancel(&tickets[1]).await.unwrap());
    while mover.call(&server) > 0 {}
    assert!(!is_marked(&server));
    let times: BTreeSet<Vec<u8>> = server.get(["ZRANGE", TIMEOUT_SET, "0", "-1"]);
    let list = server.list(ORDERED_LIST);
    assert_eq!(times.len(), 2_005);
    assert_eq!(list.len(), 2_005, "none is listed twice");
    assert_eq!(times, list.into_iter().collect());
    client.shutdown().await;
}

/// A rebuild may empty the list. What is offered then must not stay in it when the timeout set expires.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_was_emptied_expires_like_the_timeout_set() {
    let server = Server::start();
    let client = client(&server).transfer(false).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    let expires = |key: &str| server.get::<i64, _>(["PTTL", key]) > 0;
    fill_at_random(&server, 40_000, 40_000);
    assert!(delayed.expire(HOUR).await.unwrap());
    let mut mover = begin(&server);
    while length(&server, "LLEN", ORDERED_LIST) > 0 {
        mover.call(&server);
    }
    assert!(expires(TIMEOUT_SET));
    delayed.offer(&1, HOUR).await.unwrap();
    assert!(!expires(ORDERED_LIST));
    mover.call(&server);
    assert!(is_marked(&server) && expires(ORDERED_LIST));
    while mover.call(&server) > 0 {}
    assert_eq!(delayed.len().await.unwrap(), 1);
    assert!(!is_marked(&server) && expires(TIMEOUT_SET) && expires(ORDERED_LIST));
    client.shutdown().await;
}

/// Clients of Java between two calls: each entry is delivered, or removed, once.
#[test]
fn others_change_the_queue_while_it_is_rebuilt() {
    const ALL: usize = 60_000;
    const DUE: usize = 58_000;
    let server = Server::start();
    let random = &mut fastrand::Rng::with_seed(1);
    fill_at_random(&server, ALL, DUE);
    let mut mover = begin(&server);
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    let payload = |entry: &[u8]| String::from_utf8(entry[17..].to_vec()).unwrap().parse::<usize>().unwrap();
    let entry = |n: usize| {
        let text = n.to_string();
        let length = (text.len() as u64).to_le_bytes();
        [&[8][..], &(7_u64 << 32 | n as u64).to_be_bytes(), &length, text.as_bytes()].concat()
    };
    let mut calls = 0;
    while length(&server, "ZCARD", TIMEOUT_SET) > length(&server, "LLEN", ORDERED_LIST) || calls < 5 {
        calls += 1;
        assert!(calls < 200, "it stands still");
        // `poll`, from both ends.
        for command in ["LPOP", "RPOP"] {
            for _ in 0..random.usize(..30) {
                let polled: Option<Vec<u8>> = server.get([command, ORDERED_LIST]);
                if let Some(polled) = polled {
                    gone.push(payload(&polled));
                    server.cmd([b"ZREM", TIMEOUT_SET.as_bytes(), &polled]);
                }
            }
        }
        // A transfer of Redisson.
        let due: Vec<Vec<u8>> =
            server.get(["ZRANGEBYSCORE", TIMEOUT_SET, "0", "2000000000", "LIMIT", "0", "100"]);
        for entry in &due {
            server.cmd([b"RPUSH", TARGET.as_bytes(), payload(entry).to_string().as_bytes()]);
            server.cmd([b"LREM", ORDERED_LIST.as_bytes(), b"1", entry]);
            server.cmd([b"ZREM", TIMEOUT_SET.as_bytes(), entry]);
        }
        // Offers of a client whose clock is late, and a poll that is given back.
        for n in 0..random.usize(..20) {
            let (number, push) = (ALL + new.len(), if n % 5 == 0 { "LPUSH" } else { "RPUSH" });
            let due = if n % 2 == 0 { "1500000000" } else { "400000000000000" };
            server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), due.as_bytes(), &entry(number)]);
            server.cmd([push.as_bytes(), ORDERED_LIST.as_bytes(), &entry(number)]);
            new.push(number);
        }
        // An entry that was not due is now.
        let later: Vec<Vec<u8>> = server.get(["ZRANGE", TIMEOUT_SET, "-1", "-1"]);
        for entry in &later {
            server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), b"XX", b"1000000000", entry]);
        }
        mover.call(&server);
    }
    while mover.call(&server) > 0 {}
    println!("{calls} calls, {} polled, {} offered", gone.len(), new.len());
    let times: BTreeSet<Vec<u8>> = server.get(["ZRANGE", TIMEOUT_SET, "0", "-1"]);
    let list: BTreeSet<_> = server.list(ORDERED_LIST).into_iter().collect();
    assert_eq!(list.len(), length(&server, "LLEN", ORDERED_LIST), "none is listed twice");
    assert_eq!(times, list, "what is not due is in both, and nothing else is");
    let mut all = target(&server);
    all.extend(gone);
    all.extend(list.iter().map(|entry| payload(entry)));
    all.sort_unstable();
    assert!(all == (0..ALL + new.len()).collect::<Vec<_>>(), "{} of {}", all.len(), ALL + new.len());
    assert!(!is_marked(&server));
}

/// Without what only a rebuild needs, entries are moved as before. Without anything else, nothing is moved.
#[test]
fn a_missing_permission_loses_nothing() {
    let needed = ["zmscore", "set", "del"];
    let others = ["lrange", "ltrim", "lpush", "lrem", "rpush", "zrange", "zremrangebyrank", "llen", "zcount"];
    for command in of_this_part(needed.into_iter().chain(others)) {
        for is_late in [false, true] {
            let server = Server::start();
            fill_at_random(&server, 30_000, 29_900);
            let mut mover = mover(starved());
            if is_late {
                mover = begin(&server);
            }
            let before = others_and_moved(&server);
            server.cmd(["ACL", "SETUSER", "default", &format!("-{command}")]);
            let mut calls = 0;
            let refused = loop {
                let reply = mover.try_call(&server);
                calls += 1;
                match reply {
                    Err(error) => break Some(error),
                    Ok(0) if mover.cursor == 0 => break None,
                    Ok(_) => assert!(calls < 500, "without {command}, it stands still"),
                }
            };
            server.cmd(["ACL", "SETUSER", "default", "+@all"]);
            match refused {
                Some(error) => {
                    assert!(!needed.contains(&command), "{command}: {error}");
                    assert!(
                        others_and_moved(&server) == before,
                        "{command}: it was refused, and has changed something"
                    );
                }
                None => assert_eq!(target(&server), (0..29_900).collect::<Vec<_>>(), "{command}"),
            }
        }
    }
}

fn others_and_moved(server: &Server) -> (Vec<Vec<u8>>, Vec<usize>, usize, usize) {
    (
        others(server),
        target(server),
        length(server, "ZCARD", TIMEOUT_SET),
        length(server, "LLEN", ORDERED_LIST),
    )
}

/// Commands are refused for lack of memory in the middle of it.
#[test]
fn a_full_server_is_drained() {
    let server = Server::start();
    fill_at_random(&server, 40_000, 39_000);
    let rest = others(&server);
    let mut mover = begin(&server);
    server.cmd(["CONFIG", "SET", "maxmemory", "1"]);
    while length(&server, "ZCARD", TIMEOUT_SET) > 1_000 {
        mover.call(&server);
    }
    assert_eq!(target(&server), (0..39_000).collect::<Vec<_>>());
    assert_eq!(server.list(ORDERED_LIST), rest);
    assert_eq!(server.command_calls("lset"), 0, "it was rebuilt");
}

/// Drains a queue by calls that are so short that there are many of them, while something goes wrong again
/// and again. Each entry is delivered once.
async fn drain(server: &Server, client: &Client, rounds: usize, fault: impl Fn()) {
    const ALL: usize = 60_000;
    const DUE: usize = 59_000;
    tokio::task::block_in_place(|| fill_at_random(server, ALL, DUE));
    let rest = others(server);
    let _moving = client.delayed_queue(&client.blocking_queue::<i64>("q", codec::Long));
    let pending = || length(server, "ZCARD", TIMEOUT_SET);
    let mut met = 0;
    for round in 1..=rounds {
        let before = pending();
        until_async("it goes on", || async { pending() < before || pending() == ALL - DUE }).await;
        met += usize::from(is_marked(server));
        println!("round {round}: {} pending, {} listed", pending(), length(server, "LLEN", ORDERED_LIST));
        tokio::task::block_in_place(&fault);
    }
    assert!(met > 0 || rounds == 0, "no fault has met a rebuild");
    until_async("all is moved", || async { pending() == ALL - DUE }).await;
    assert!(target(server) == (0..DUE).collect::<Vec<_>>(), "{} payloads", target(server).len());
    assert_eq!(server.list(ORDERED_LIST), rest);
    assert!(!is_marked(server), "nothing is missing in the list");
}

/// However short its time is, a call takes out what is due of 8,000 elements, or moves 500.
#[tokio::test(flavor = "multi_thread")]
async fn short_calls_get_something_done() {
    let server = Server::start();
    let client = client(&server).transfer_budget(ms(1)).connect().await.unwrap();
    drain(&server, &client, 0, || ()).await;
    let calls = server.command_calls("evalsha");
    println!("{calls} calls");
    assert!(calls < 200, "{calls} calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_loses_nothing() {
    let server = Server::builder().appendonly(true).start();
    let client = client(&server).transfer_budget(ms(1)).connect().await.unwrap();
    drain(&server, &client, 6, || {
        server.kill_9();
        server.start_again();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_replies_double_nothing() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let builder = patient_builder(&proxy);
    let client = builder.transfer_budget(ms(1)).connect().await.unwrap();
    drain(&server, &client, 12, || {
        proxy.hold_replies(true);
        std::thread::sleep(ms(20));
        proxy.cut();
        proxy.hold_replies(false);
    })
    .await;
}
