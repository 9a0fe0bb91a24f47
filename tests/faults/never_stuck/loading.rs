//! A server that answers `LOADING` while it reads its append-only file.

use std::thread;

use redelay_fixture::{Proxy, Server, redis, until_async};

use super::rig::finish;
use crate::workload::{Crew, Load};

/// A setting for Redis's own tests makes the server take 50 µs to load each of them. Meanwhile it serves
/// clients after every thousandth.
const COMMANDS: usize = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_loading() {
    let server = Server::builder().appendonly(true).config("key-load-delay 50").start();
    let proxy = Proxy::start(server.port());
    let mut load = Load::start(&Crew::of_two(), &proxy.url()).await;
    let mut fill = redis::pipe();
    for n in 0..COMMANDS {
        fill.cmd("INCRBY").arg("filler").arg(n).ignore();
    }
    fill.exec(&mut server.redis()).unwrap();
    load.goes_on(100).await;
    server.kill_9();
    // Returns when the server has loaded everything.
    thread::scope(|scope| {
        scope.spawn(|| server.start_again());
    });
    let refused = || async { server.info("errorstats").contains("errorstat_LOADING") };
    until_async("clients have received LOADING", refused).await;
    load.goes_on(100).await;
    println!("{:?}", finish(&server, &proxy, &mut load).await.unwrap());
}
