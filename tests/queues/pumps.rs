//! `Client::pump` moves what is due in queues of any name.

use redelay::ErrorKind;
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{SELDOM, ms, patient_builder, soon, still_builder};

/// What Redisson writes: an id of 16 bytes, the length of the payload, and the payload.
fn entry(n: u8) -> Vec<u8> {
    [&[16][..], &[n; 16], &1_u64.to_le_bytes(), &[n]].concat()
}

fn offer(server: &Server, tag: &[u8], n: u8) {
    let key = |prefix: &[u8]| [prefix, tag].concat();
    server.cmd([&b"ZADD"[..], &key(b"redisson_delay_queue_timeout:"), n.to_string().as_bytes(), &entry(n)]);
    server.cmd([&b"RPUSH"[..], &key(b"redisson_delay_queue:"), &entry(n)]);
}

const NAMES: [(&[u8], &[u8]); 4] =
    [(b"q", b"{q}"), (b"{shop}q", b"{shop}q"), (b"\xff\0q", b"{\xff\0q}"), (b"{q}", b"{q}")];

#[tokio::test]
async fn a_queue_of_any_name_is_transferred() {
    for (name, tag) in NAMES {
        let server = Server::start();
        // It sweeps at once, and not again during the test.
        let client = patient_builder(&server).sweep_interval(SELDOM).connect().await.unwrap();
        for n in 1..=3 {
            offer(&server, tag, n);
        }
        let pump = client.pump(name);
        until_async("they are moved", || async { server.list(name).len() == 3 }).await;
        assert_eq!(server.list(name), [[1], [2], [3]]);
        until_async("they are counted", || async { pump.stats().transferred == 3 }).await;
        assert!(pump.stats().failure.is_none());
        assert_eq!(client.stats().transferring_queues, 1);
        drop(pump);
        until_async("it has ended", || async { client.stats().transferring_queues == 0 }).await;
    }
}

#[tokio::test]
async fn what_is_due_is_transferred_once() {
    let server = Server::start();
    let client = still_builder(&server).transfer_batch(2).connect().await.unwrap();
    let pump = client.pump("q");
    soon(pump.transfer()).await.unwrap();
    for n in 1..=9 {
        offer(&server, b"{q}", n);
    }
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "4102444800000", "later"]);
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "5", "junk"]);
    soon(pump.transfer()).await.unwrap();
    assert_eq!((pump.stats().transferred, pump.stats().quarantined), (9, 1));
    assert_eq!((server.list("q").len(), server.list("redelay:quarantine:{q}").len()), (9, 2));
    // A key of another type: nothing has changed.
    server.cmd(["DEL", "q"]);
    server.cmd(["SET", "q", "7"]);
    offer(&server, b"{q}", 1);
    let error = soon(pump.transfer()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(pump.stats().failure.unwrap().message.contains("WRONGTYPE"));
    server.cmd(["DEL", "q"]);
    soon(pump.transfer()).await.unwrap();
    assert!(pump.stats().failure.is_none());
    client.shutdown().await;
    assert!(soon(pump.transfer()).await.unwrap_err().is_closed());
}

/// Nothing more may be transferred after the first calls.
#[tokio::test]
async fn an_error_says_what_was_transferred_before() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let client = still_builder(&proxy).transfer_batch(1).connect().await.unwrap();
    for n in 1..=250 {
        offer(&server, b"{q}", n);
    }
    let pump = client.pump("q");
    proxy.delay(ms(10));
    let transferring = tokio::spawn(async move { pump.transfer().await });
    until_async("some are transferred", || async { server.list("q").len() > 2 }).await;
    server.cmd(["ACL", "SETUSER", "default", "-rpush"]);
    let error = soon(transferring).await.unwrap().unwrap_err();
    let before = server.list("q").len();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert!(error.to_string().contains(&format!("({before} entries were transferred before)")), "{error}");
}
