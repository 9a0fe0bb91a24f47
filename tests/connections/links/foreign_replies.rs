//! Replies that the server has not sent to this command.

use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{ms, soon};
use tokio::time::sleep;

use super::behind;

/// A connection that has answered something else may do so again, so it is replaced; nothing is taken for a
/// payload.
#[tokio::test]
async fn a_pop_from_another_list_ends_its_connection() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = behind(&proxy).await;
    for extra in ["*2\r\n+other\r\n+1\r\n", "*2\r\n+q\r\n*0\r\n", "+1\r\n", ":1\r\n"] {
        let (taken, ()) = tokio::join!(soon(queues.ready.take()), async {
            until_async("it waits", || async { server.blocked_clients() == 1 }).await;
            let before = proxy.accepted();
            proxy.inject(extra);
            until_async("its connection is replaced", || async { proxy.accepted() > before }).await;
            server.cmd(["RPUSH", "q", "5"]);
        });
        assert_eq!(taken.unwrap(), 5, "{extra:?}");
    }
}

/// Errors have no tags. This one cannot belong to the text of a script. So what the call has popped is asked
/// for again.
#[tokio::test]
async fn the_text_of_a_script_is_not_unknown() {
    const UNKNOWN: &str = "-NOSCRIPT No matching script.\r\n";
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = behind(&proxy).await;
    // Nothing else is on its way.
    assert_eq!(queues.ready.poll().await.unwrap(), None);
    until_async("the client is idle", || async {
        let before = proxy.commands();
        sleep(ms(100)).await;
        proxy.commands() == before
    })
    .await;
    server.flush_scripts();
    server.cmd(["RPUSH", "q", "5"]);
    // The server reads what comes, and executes it later.
    server.cmd(["CLIENT", "PAUSE", "60000", "WRITE"]);
    let (polled, ()) = tokio::join!(soon(queues.ready.poll()), async {
        until_async("the call waits", || async { server.blocked_clients() > 0 }).await;
        let before = proxy.commands();
        proxy.inject(UNKNOWN);
        until_async("the text is sent", || async { proxy.commands() > before }).await;
        proxy.inject(UNKNOWN);
        server.cmd(["CLIENT", "UNPAUSE"]);
    });
    assert_eq!(polled.unwrap(), Some(5));
    assert!(queues.ready.is_empty().await.unwrap());
}
