//! Announcements that arrive faster than the client reads them, so that the server ends the subscriber's
//! connection.

use std::fs;

use redelay_fixture::{Proxy, Server};
use redelay_support::CHANNEL;

use super::rig::finish;
use crate::workload::{Crew, Load};

/// The server writes the messages of a script when the script has ended, so no subscriber can keep up. The
/// messages are small: with messages of 100,000 bytes, Valkey 9.1 ended no connection.
const FLOOD: &str = "for _ = 1, 2000 do redis.call('PUBLISH', KEYS[1], string.rep('x', 1000)) end";
#[tokio::test(flavor = "multi_thread")]
async fn the_buffer_of_a_subscriber_overflows() {
    let server = Server::builder().config("client-output-buffer-limit pubsub 1mb 0 0").start();
    let proxy = Proxy::start(server.port());
    let mut load = Load::start(&Crew::of_two(), &proxy.url()).await;
    let ended = || {
        let log = fs::read_to_string(server.dir().join("server.log")).unwrap();
        log.matches("overcoming of output buffer limits").count()
    };
    for round in 0.. {
        if ended() >= 20 {
            break;
        }
        assert!(round < 1000, "the server has ended {} subscribers only", ended());
        load.goes_on(20).await;
        server.cmd(["EVAL", FLOOD, "1", CHANNEL]);
    }
    println!("{} subscribers ended; {:?}", ended(), finish(&server, &proxy, &mut load).await.unwrap());
}
