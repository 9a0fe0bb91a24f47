//! Signals to a process in which a worker runs.

use redelay::{Worker, codec};
use redelay_fixture::{Program, Server, until};
use redelay_support::{HOUR, LEASES, builder, number_queues, soon};

use super::receivers::{count, is_drained};

/// A handler ends when it gets something from this list.
const END: &str = "end";

/// A worker in a process of its own. The tests below start it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part of another test, in a process of its own"]
async fn works_until_a_signal() {
    let url = std::env::var("URL").expect("started by a test");
    let client = builder(&url).connect().await.unwrap();
    let queue = client.blocking_queue::<i64>("q", codec::Long);
    let end = client.blocking_queue::<i64>(END, codec::Long);
    let handler = move |_: i64| {
        let end = end.clone();
        async move { end.take().await.map(drop) }
    };
    let stopped = Worker::new(&queue).concurrency(3).grace(HOUR).run(handler).await.unwrap();
    println!("{stopped:?}");
    client.shutdown().await;
}

/// Whether a receiver waits on the server for a message.
fn somebody_waits(server: &Server) -> bool {
    let clients: String = server.get(["CLIENT", "LIST"]);
    clients.lines().any(|client| {
        let is_blocked = |field: &str| field.strip_prefix("flags=").is_some_and(|flags| flags.contains('b'));
        client.contains(" cmd=blmove ") && client.split(' ').any(is_blocked)
    })
}

/// The worker handles two messages, and a third slot waits.
fn start(server: &Server) -> Program {
    let program = Program::start_ignored_test("signals::works_until_a_signal", &[("URL", &server.url())]);
    until("two handlers run, and a slot waits", || {
        count(server, "ZCARD", LEASES) == 2 && somebody_waits(server)
    });
    program
}

fn until_it_ends(program: &Program) -> String {
    until("it ends", || !program.is_running());
    let output = program.output();
    assert!(output.contains("test result: ok. 1 passed"), "{output}");
    output
}

#[tokio::test]
async fn sigterm_lets_handlers_finish() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    let program = start(&server);
    program.terminate();
    until("it receives no more", || !somebody_waits(&server));
    ready.put(&3).await.unwrap();
    assert!(program.is_running() && count(&server, "ZCARD", LEASES) == 2, "the handlers have the grace");
    server.cmd(["RPUSH", END, "1", "2"]);
    let output = until_it_ends(&program);
    assert!(
        output.contains(
            "Stopped { acknowledged: 2, failed: 0, rejected: 0, lost: 0, snoozed: 0, released: 0, cancelled: 0 }"
        ),
        "{output}"
    );
    assert_eq!(server.list("q"), [b"3"], "nothing begins after the signal");
    server.cmd(["DEL", "q"]);
    assert!(is_drained(&server));
}

#[tokio::test]
async fn a_second_sigint_skips_the_wait() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    let program = start(&server);
    program.interrupt();
    until("it receives no more", || !somebody_waits(&server));
    assert!(program.is_running() && count(&server, "ZCARD", LEASES) == 2, "the handlers have the grace");
    program.interrupt();
    let output = until_it_ends(&program);
    assert!(
        output.contains(
            "Stopped { acknowledged: 0, failed: 0, rejected: 0, lost: 0, snoozed: 0, released: 2, cancelled: 0 }"
        ),
        "{output}"
    );
    // They need not wait for the ends of the leases, and nothing is counted.
    let receiver = ready.receiver();
    for _ in 0..2 {
        let again = soon(receiver.receive()).await.unwrap();
        assert_eq!(again.attempt(), 1);
        again.ack().await.unwrap();
    }
    assert!(is_drained(&server));
}
