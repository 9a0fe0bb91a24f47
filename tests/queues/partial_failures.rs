//! Calls that work in parts, and lose a permission after some of them: the error says how many were done.

use std::time::Duration;

use futures::future::BoxFuture;
use redelay::{BlockingQueue, DelayedQueue, ErrorKind};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    CLAIMS, DEAD, HOUR, ORDERED_LIST, QUARANTINE, Queues, RETRIES, SCHEDULES, TARGET, ms, soon,
    still_builder, still_text_queues,
};

use super::reads::fill;

/// How many elements each structure of the queue has: more than a call handles in three parts. A second part
/// may be executed before the permissions are lost.
const COUNT: usize = 5_000;

type Call = for<'a> fn(
    &'a BlockingQueue<String>,
    &'a DelayedQueue<String>,
    &'a [String],
) -> BoxFuture<'a, redelay::Result<()>>;

/// A call, a command that counts what it has not handled yet, and what the error says of the rest.
type Case = (&'static str, Call, &'static [&'static str], &'static str);

macro_rules! call {
    (|$ready:pat_param, $delayed:pat_param, $all:pat_param| $call:expr) => {
        |$ready, $delayed, $all| Box::pin(async move { $call.await.map(drop) })
    };
}

const READY: &[&str] = &["LLEN", TARGET];
const PENDING: &[&str] = &["LLEN", ORDERED_LIST];
const LETTERS: &[&str] = &["ZCARD", DEAD];
/// Each is two elements of the list.
const QUARANTINED: &[&str] = &["EVAL", "return redis.call('LLEN', KEYS[1]) / 2", "1", QUARANTINE];
const WAITING: &[&str] = &["ZCARD", RETRIES];
/// Those that are not due.
const EARLY: &[&str] = &["ZCOUNT", RETRIES, "32503680000000", "+inf"];
const POPS: &[&str] = &["HLEN", CLAIMS];

const CASES: &[Case] = &[
    ("ready.clear", call!(|ready, _, _| ready.clear()), READY, "payloads were removed"),
    ("clear", call!(|_, delayed, _| delayed.clear()), PENDING, "payloads were removed"),
    ("ready.retain_all", call!(|ready, _, _| ready.retain_all([])), READY, "payloads were removed"),
    ("retain_all", call!(|_, delayed, _| delayed.retain_all([])), PENDING, "payloads were removed"),
    ("ready.remove_all", call!(|ready, _, all| ready.remove_all(all)), READY, "payloads were removed"),
    ("remove_all", call!(|_, delayed, all| delayed.remove_all(all)), PENDING, "payloads were removed"),
    (
        "dead_letters.requeue_all",
        call!(|ready, _, _| ready.dead_letters().requeue_all(usize::MAX)),
        LETTERS,
        "dead letters were requeued",
    ),
    (
        "dead_letters.remove_all",
        call!(|ready, _, _| ready.dead_letters().remove_all(usize::MAX)),
        LETTERS,
        "dead letters were removed",
    ),
    (
        "quarantine.requeue_all",
        call!(|_, delayed, _| delayed.quarantine().requeue_all(usize::MAX)),
        QUARANTINED,
        "entries were requeued",
    ),
    (
        "quarantine.remove_all",
        call!(|_, delayed, _| delayed.quarantine().remove_all(usize::MAX)),
        QUARANTINED,
        "entries were removed",
    ),
    ("release_all", call!(|ready, _, _| ready.release_all()), WAITING, "messages were released"),
    (
        "unsettled.requeue_all",
        call!(|ready, _, _| ready.unsettled().requeue_all(usize::MAX)),
        EARLY,
        "messages were requeued",
    ),
    (
        "unsettled.remove_all",
        call!(|ready, _, _| ready.unsettled().remove_all(usize::MAX)),
        WAITING,
        "messages were removed",
    ),
    (
        "unconfirmed_pops.requeue_all",
        call!(|ready, _, _| ready.unconfirmed_pops(HOUR).requeue_all(usize::MAX)),
        POPS,
        "pops were requeued",
    ),
    (
        "unconfirmed_pops.remove_all",
        call!(|ready, _, _| ready.unconfirmed_pops(HOUR).remove_all(usize::MAX)),
        POPS,
        "pops were removed",
    ),
    (
        "schedules.remove_all",
        call!(|_, delayed, _| delayed.schedules().remove_all(usize::MAX)),
        &["ZCARD", SCHEDULES],
        "schedules were removed",
    ),
];

#[tokio::test]
async fn an_error_after_some_parts_says_how_many_were_done() {
    let server = Server::start();
    let user = |words: &[&str]| server.cmd(["ACL", "SETUSER", "user"].iter().chain(words));
    user(&["on", ">secret", "allkeys", "allchannels", "+@all"]);
    let proxy = Proxy::start(server.port());
    let (_client, _, offering) = still_text_queues(&server).await;
    let builder = still_builder(&proxy).credentials("user", "secret");
    let Queues { client: _of_user, ready, delayed } = Queues::of_texts(builder).await;
    let all: Vec<String> = (0..COUNT).map(|number| format!("{number:016}")).collect();
    for (name, call, count, what) in CASES {
        server.cmd(["FLUSHALL"]);
        // A call removes fewer payloads in a part while any of them may be a job. One of these is the last to
        // go, wherever it begins.
        offering.offer("job", HOUR).id("first").header("n", "v").await.unwrap();
        fill(&server, COUNT, 16);
        offering.offer("job", HOUR).id("last").header("n", "v").await.unwrap();
        let left = || server.get::<usize, _>(*count);
        let before = left();
        proxy.delay(ms(50));
        let lose_permissions = async {
            until_async("a part is done", || std::future::ready(left() < before)).await;
            // This thread is the client's, too, which sends nothing meanwhile.
            user(&["-ltrim", "-hdel"]);
        };
        let (outcome, ()) =
            soon(async { tokio::join!(call(&ready, &delayed, &all), lose_permissions) }).await;
        proxy.delay(Duration::ZERO);
        user(&["+@all"]);
        let error = outcome.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{name}: {error}");
        let done = format!("({} {what} before)", before - left());
        assert!(error.to_string().contains(&done), "{name}: {error}, and not {done}");
    }
}
