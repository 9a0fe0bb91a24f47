//! Replies that the server has not sent to this command.

use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::soon;

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
