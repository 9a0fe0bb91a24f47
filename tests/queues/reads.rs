//! What only reads: no call has more work than a bound, none says that something may have been executed, and
//! what stays in a queue is read although others change it meanwhile.

use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures::future::BoxFuture;
use redelay::{BlockingQueue, Client, DelayedQueue, ErrorKind, codec};
use redelay_fixture::redis::{self, FromRedisValue};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{HOUR, ms, part, patient_builder, soon, still_builder, still_text_queues};

/// The most elements that any command of a call reads.
const MOST: usize = 10_016;

/// Fills every structure of the queue `q` with so many elements, whose payloads have so many bytes.
const FILL: &str = "
local words = {}
for k = 1, #KEYS do words[k] = {} end
local function add(k, ...)
    for _, word in ipairs({...}) do table.insert(words[k], word) end
end
local P = string.rep('x', ARGV[3] - 16)
for n = ARGV[1], ARGV[1] + ARGV[2] - 1 do
    local id, text = string.format('%016d', n), P .. string.format('%016d', n)
    local entry = string.char(16) .. id .. struct.pack('<L', ARGV[3]) .. text
    add(1, text)
    add(2, entry)
    add(3, 32503680000000 + n, entry)
    add(4, n, 'malformed' .. text)
    add(5, id .. id, cmsgpack.pack({'LPOP', 1, {text}}))
    add(6, id, struct.pack('>BI4HHHHI4c1I2I4', 1, 1, 0, 0, 9, 9, 30000, 'k', 0, 1) .. text)
    if n % 2 == 0 then
        add(7, 32503680000000, id .. struct.pack('>I4', 1))
    else
        add(8, 32503680000000, id)
    end
    add(9, 1, id)
    add(10, id, cmsgpack.pack({'lost', '', 1, 1, 1, 1, 1, text}))
    add(11, '+inf', id)
    add(12, id, 'every 60000\\nmissed once\\nlast 1\\npaused\\n\\n' .. text)
    add(13, id, struct.pack('>I2I4I2I4', 0, 1, 0, 1) .. entry)
end
local commands = {'RPUSH', 'RPUSH', 'ZADD', 'RPUSH', 'HSET', 'HSET', 'ZADD', 'ZADD', 'ZADD', 'HSET', 'ZADD', 'HSET', 'HSET'}
for k, command in ipairs(commands) do redis.call(command, KEYS[k], unpack(words[k])) end";

pub(super) fn fill(server: &Server, count: usize, bytes: usize) {
    let keys = [
        "q",
        "redisson_delay_queue:{q}",
        "redisson_delay_queue_timeout:{q}",
        "redelay:quarantine:{q}",
        "redelay:popped:{q}",
        "redelay:messages:{q}",
        "redelay:leases:{q}",
        "redelay:retries:{q}",
        "redelay:dead:{q}",
        "redelay:dead-messages:{q}",
        "redelay:schedules:{q}",
        "redelay:schedule-records:{q}",
        "redelay:jobs:{q}",
    ];
    for from in (0..count).step_by(1000) {
        let number = keys.len().to_string();
        let args = [from, (count - from).min(1000), bytes].map(|arg| arg.to_string());
        server.cmd(["EVAL", FILL, &number].into_iter().chain(keys).chain(args.iter().map(|arg| &**arg)));
    }
}

pub(super) type Read<'a> = (&'static str, Box<dyn Fn() -> BoxFuture<'a, redelay::Result<()>> + 'a>);

fn without_value<'a, T>(
    read: impl Future<Output = redelay::Result<T>> + Send + 'a,
) -> BoxFuture<'a, redelay::Result<()>> {
    Box::pin(async { read.await.map(drop) })
}

/// Every public method that only reads.
pub(super) fn reads<'a>(
    ready: &'a BlockingQueue<String>,
    delayed: &'a DelayedQueue<String>,
    absent: &'a [String],
) -> Vec<Read<'a>> {
    macro_rules! reads {
        ($($name:literal: $call:expr;)+) => {
            vec![$(($name, Box::new(move || without_value($call)) as Box<dyn Fn() -> BoxFuture<'a, _> + 'a>)),+]
        };
    }
    reads! {
        "ready.len": ready.len();
        "ready.is_empty": ready.is_empty();
        "ready.read_all": ready.read_all();
        "ready.peek": ready.peek();
        "ready.peek_last": ready.peek_last();
        "ready.stats": ready.stats();
        "ready.contains": ready.contains(&absent[0]);
        "ready.contains_all": ready.contains_all(absent);
        "ready.is_paused": ready.is_paused();
        "delayed.len": delayed.len();
        "delayed.is_empty": delayed.is_empty();
        "delayed.read_all": delayed.read_all();
        "delayed.peek": delayed.peek();
        "delayed.stats": delayed.stats();
        "delayed.contains": delayed.contains(&absent[0]);
        "delayed.contains_all": delayed.contains_all(absent);
        "quarantine.len": async move { delayed.quarantine().len().await };
        "quarantine.is_empty": async move { delayed.quarantine().is_empty().await };
        "quarantine.read": async move { delayed.quarantine().read(None, usize::MAX).await };
        "job.get": async move { delayed.job("0000000000000007").get().await };
        "job.exists": async move { delayed.job("0000000000000007").exists().await };
        "schedules.len": async move { delayed.schedules().len().await };
        "schedules.is_empty": async move { delayed.schedules().is_empty().await };
        "schedules.read": async move { delayed.schedules().read(None, 5000).await };
        "schedule.get": async move { delayed.schedule("0000000000000007").get().await };
        "schedule.next_runs": async move { delayed.schedule("0000000000000007").next_runs(3).await };
        "dead_letters.len": async move { ready.dead_letters().len().await };
        "dead_letters.is_empty": async move { ready.dead_letters().is_empty().await };
        "dead_letters.read": async move { ready.dead_letters().read(None, 5000).await };
        "unsettled.len": async move { ready.unsettled().len().await };
        "unsettled.is_empty": async move { ready.unsettled().is_empty().await };
        "unsettled.in_flight": async move { ready.unsettled().in_flight(None, 5000).await };
        "unsettled.waiting": async move { ready.unsettled().waiting(None, 5000).await };
        "unconfirmed_pops.len": async move { ready.unconfirmed_pops(Duration::ZERO).len().await };
        "unconfirmed_pops.is_empty": async move { ready.unconfirmed_pops(Duration::ZERO).is_empty().await };
        "unconfirmed_pops.read": async move { ready.unconfirmed_pops(Duration::ZERO).read(None, 5000).await };
    }
}

/// The commands that the server executes from now on, each with those that its script executes.
pub(super) struct Monitor {
    commands: mpsc::Receiver<Vec<Vec<String>>>,
}

impl Monitor {
    /// Until `ECHO over`.
    pub(super) fn start(server: &Server) -> Self {
        let mut connection = server.redis();
        connection.send_packed_command(&redis::cmd("MONITOR").get_packed_command()).unwrap();
        connection.recv_response().unwrap();
        let (sender, commands) = mpsc::channel();
        thread::spawn(move || {
            let mut calls: Vec<Vec<String>> = Vec::new();
            while let Ok(line) = connection.recv_response() {
                let line = String::from_redis_value(line).unwrap();
                let Some((from, command)) = line.split_once("] ") else { continue };
                if command.eq_ignore_ascii_case("\"ECHO\" \"over\"") {
                    break;
                }
                let mut call =
                    if from.ends_with("lua") { calls.pop().unwrap_or_default() } else { Vec::new() };
                // The arguments that count are short, but for those that are counted.
                let most = if command.to_lowercase().starts_with("\"hmget") { usize::MAX } else { 300 };
                call.push(command.chars().take(most).collect());
                calls.push(call);
            }
            let _ = sender.send(calls);
        });
        Self { commands }
    }

    pub(super) fn end(self, server: &Server) -> Vec<Vec<String>> {
        server.cmd(["ECHO", "over"]);
        self.commands.recv_timeout(Duration::from_secs(60)).expect("the commands")
    }
}

/// How many elements a command reads.
pub(super) fn elements(command: &str) -> usize {
    let words: Vec<_> = command.split(' ').map(|word| word.trim_matches('"').to_lowercase()).collect();
    let number = |at: usize| words[at].parse::<i64>().unwrap();
    match &*words[0] {
        "zrange" | "zrangebyscore" | "zrevrangebyscore" if words.iter().any(|word| word == "limit") => {
            let at = words.iter().position(|word| word == "limit").unwrap();
            usize::try_from(number(at + 2)).expect(command)
        }
        "lrange" | "zrange" | "zrevrange" if !words.iter().any(|word| word == "byscore") => {
            let (first, last) = (number(2), number(3));
            assert!((first < 0) == (last < 0), "no end: {command}");
            usize::try_from(last - first + 1).unwrap()
        }
        "hscan" => number(4) as usize,
        "hmget" => words.len() - 2,
        "hget" | "lindex" => 1,
        "zrange" | "zrangebyscore" | "zrevrangebyscore" | "hgetall" | "hkeys" | "hvals" | "smembers"
        | "keys" | "sort" => panic!("no bound: {command}"),
        _ => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_read_of_a_long_queue_has_a_call_without_a_bound() {
    // Many times what a call reads, in the parts of several servers, too.
    let count = part().share(90_000);
    let server = Server::start();
    fill(&server, count, 100);
    let client = still_builder(&server).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    let delayed = client.delayed_queue(&ready);
    let absent = ["absent".to_owned(), "neither".to_owned()];
    for (name, read) in reads(&ready, &delayed, &absent) {
        let monitor = Monitor::start(&server);
        read().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let calls = monitor.end(&server);
        let most = most(&calls);
        println!("{name}: {} calls, {most} elements at most", calls.len());
        assert!(most <= MOST, "{name}: {most}");
        // The server compares it natively: 40 ms for a million.
        let scans =
            calls.iter().flatten().filter(|command| command.to_lowercase().starts_with("\"lpos")).count();
        assert_eq!(scans, usize::from(name == "ready.contains"), "{name}");
    }
    let all = ready.read_all().await.unwrap();
    assert!(all.len() == count && all.is_sorted(), "all of them, in their order");
    let all = delayed.read_all().await.unwrap();
    assert!(all.len() == count && all.is_sorted(), "all of them, in their order");
    assert_eq!(delayed.quarantine().read(None, usize::MAX).await.unwrap().len(), count);
    assert_eq!(delayed.quarantine().read(None, 3000).await.unwrap().len(), 3000);
    assert_eq!(ready.unconfirmed_pops(Duration::ZERO).read(None, 1500).await.unwrap().len(), 1500);
    for (there, answer) in [(&all[7], true), (&absent[0], false)] {
        assert_eq!(ready.contains_all([there, &all[9]]).await.unwrap(), answer);
        assert_eq!(delayed.contains_all([there, &all[9]]).await.unwrap(), answer);
        assert_eq!(delayed.contains(there).await.unwrap(), answer);
    }
}

/// How many elements the commands of each call read, at most.
pub(super) fn most(calls: &[Vec<String>]) -> usize {
    calls.iter().map(|call| call.iter().map(|command| elements(command)).sum()).max().unwrap_or_default()
}

/// How many bytes the server has received.
fn received(server: &Server) -> u64 {
    let stats = String::from_redis_value(server.cmd(["INFO", "stats"])).unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:"));
    line.unwrap().trim().parse().unwrap()
}

/// Redisson's `removeAll` and `retainAll`, of lists that take several calls.
#[tokio::test(flavor = "multi_thread")]
async fn removals_from_long_lists_work_in_parts() {
    const COUNT: usize = 25_000;
    let server = Server::start();
    fill(&server, COUNT, 100);
    let (_client, ready, delayed) = still_text_queues(&server).await;
    let all = ready.read_all().await.unwrap();
    let monitor = Monitor::start(&server);
    let some: Vec<_> = all.iter().step_by(10).cloned().collect();
    assert!(ready.remove_all(&some).await.unwrap());
    assert!(delayed.remove_all(&some).await.unwrap());
    assert!(!ready.remove_all(&some).await.unwrap());
    assert!(!delayed.remove_all(&some).await.unwrap());
    let left: Vec<_> =
        all.iter().enumerate().filter(|(n, _)| n % 10 != 0).map(|(_, value)| value.clone()).collect();
    assert!(ready.read_all().await.unwrap() == left);
    assert!(delayed.read_all().await.unwrap() == left);
    assert_eq!(delayed.stats().await.unwrap().pending as usize, left.len(), "of both structures");
    for there in [&left[3], &left[22_000]] {
        assert!(delayed.remove(there).await.unwrap());
        assert!(!delayed.remove(there).await.unwrap());
    }
    let few: Vec<_> = left[..600].iter().step_by(2).cloned().collect();
    let many: Vec<_> = left[600..20_600].to_vec();
    let sent = received(&server);
    for values in [&few, &many] {
        assert!(ready.remove_all(values).await.unwrap() && delayed.remove_all(values).await.unwrap());
    }
    let sent = received(&server) - sent;
    println!("{sent} bytes to remove {} payloads from both lists", many.len());
    assert!(sent < 2 * 2 * 100 * many.len() as u64, "they are sent more than once: {sent}");
    ready.offer_all(&many).await.unwrap();
    delayed.offer_all(many.iter().map(|value| (value, HOUR))).await.unwrap();
    let retained: Vec<_> = many.iter().step_by(3).cloned().collect();
    assert!(ready.retain_all(&retained).await.unwrap() && delayed.retain_all(&retained).await.unwrap());
    assert!(ready.read_all().await.unwrap() == retained);
    assert!(delayed.read_all().await.unwrap() == retained);
    assert!(!ready.retain_all(&retained).await.unwrap() && !delayed.retain_all(&retained).await.unwrap());
    let kept = [retained[5].clone(), retained[6_000].clone()];
    assert!(ready.retain_all(&kept).await.unwrap());
    assert!(delayed.retain_all(&kept).await.unwrap());
    assert!(ready.read_all().await.unwrap() == kept);
    assert!(delayed.read_all().await.unwrap() == kept);
    assert_eq!(delayed.stats().await.unwrap().pending, 2);
    assert!(delayed.clear().await.unwrap() && ready.clear().await.unwrap());
    let calls = monitor.end(&server);
    // What is removed is looked for among the jobs, too, a thousand at a time.
    assert!(most(&calls) <= 2 * MOST + 200, "{}", most(&calls));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_without_an_answer_changes_nothing_and_says_so() {
    let server = Server::start();
    fill(&server, 1000, 100);
    let proxy = Proxy::start(server.port());
    let connect = async |timeout| {
        let client = Client::builder().url(proxy.url()).transfer(false).command_timeout(timeout);
        let client = client.connect().await.unwrap();
        let ready = client.blocking_queue("q", codec::String);
        (client.clone(), ready.clone(), client.delayed_queue(&ready))
    };
    let absent = ["absent".to_owned(), "neither".to_owned()];
    let (_client, ready, delayed) = connect(ms(200)).await;
    for (name, read) in reads(&ready, &delayed, &absent) {
        until_async("it answers", || async { read().await.is_ok() }).await;
        proxy.hold_replies(true);
        let error = read().await.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
        assert!(!error.to_string().contains("may not"), "{name}: {error}");
        proxy.cut();
        proxy.hold_replies(false);
    }
    // Only the first reply is lost.
    let (_client, ready, delayed) = connect(Duration::from_secs(20)).await;
    for (name, read) in reads(&ready, &delayed, &absent) {
        read().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        proxy.hold_replies(true);
        let lose = async {
            until_async("a reply", || async { proxy.held() > 0 }).await;
            proxy.cut();
            proxy.hold_replies(false);
        };
        let (answer, ()) = tokio::join!(soon(read()), lose);
        answer.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Takers at the head, offers at the tail; transfers, cancels and removals in the middle.
#[tokio::test(flavor = "multi_thread")]
async fn what_stays_is_read_while_others_change_the_queue() {
    const COUNT: i64 = 12_000;
    let server = Server::start();
    let client = patient_builder(&server).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    let numbers: Vec<_> = (0..COUNT).collect();
    ready.offer_all(&numbers).await.unwrap();
    // Each tenth is due while they are read.
    let due = |n: i64| if n % 10 == 3 { ms(300 + n as u64 / 10) } else { HOUR };
    let tickets = delayed.offer_all(numbers.iter().map(|n| (n, due(*n)))).await.unwrap();
    // A page takes long enough for changes.
    let proxy = Proxy::start(server.port());
    let reader = Client::builder().url(proxy.url()).transfer(false).connect().await.unwrap();
    proxy.delay(ms(10));
    let (all_ready, all_pending) = (
        reader.blocking_queue("q", codec::Long),
        reader.delayed_queue(&reader.blocking_queue("q", codec::Long)),
    );
    let over = tokio::sync::Notify::new();
    let read = async {
        let mut read = Vec::new();
        for _ in 0..3 {
            read.push(tokio::try_join!(all_ready.read_all(), all_pending.read_all()).unwrap());
        }
        over.notify_one();
        read
    };
    let change = async {
        let (mut removed, mut cancelled) = (Vec::new(), Vec::new());
        for n in (0..COUNT).rev().step_by(7) {
            let (_, was_there, was_pending, _) = tokio::try_join!(
                ready.poll(),
                ready.remove(&n),
                delayed.cancel(&tickets[n as usize]),
                delayed.offer(&(COUNT + n), HOUR)
            )
            .unwrap();
            removed.extend(was_there.then_some(n));
            cancelled.extend(was_pending.then_some(n));
        }
        (removed, cancelled)
    };
    let (read, changed) = tokio::join!(read, async {
        tokio::select! {
            changed = change => Some(changed),
            () = over.notified() => None,
        }
    });
    println!("{}", if changed.is_some() { "they were done before" } else { "they changed it to the end" });
    let count = |values: &[i64]| {
        let mut counts = HashMap::new();
        values.iter().for_each(|value| *counts.entry(*value).or_insert(0) += 1);
        counts
    };
    let (left, pending) = (ready.read_all().await.unwrap(), delayed.read_all().await.unwrap());
    for (read_ready, read_pending) in &read {
        let (found_ready, found_pending) = (count(read_ready), count(read_pending));
        // Those that were there from the beginning, and are not due.
        for n in left.iter().filter(|n| **n < COUNT && *n % 10 != 3) {
            assert_eq!(found_ready.get(n), Some(&1), "{n} is ready");
        }
        for n in pending.iter().filter(|n| **n < COUNT) {
            assert_eq!(found_pending.get(n), Some(&1), "{n} is pending");
        }
        assert!(read_pending.len() > 6000 && read_ready.len() > 3000);
    }
}
