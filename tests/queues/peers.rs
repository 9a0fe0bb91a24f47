//! Many processes transfer one queue: it costs little more than one.

use futures::future::join_all;
use redelay::codec;
use redelay_fixture::{Server, until_async};

use redelay_support::{ms, patient_builder};

/// Entries that become due one by one, in a thousandth of a second each.
const ENTRIES: usize = 1_500;

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_processes_call_for_each_entry_about_once() {
    let server = Server::start();
    let url = server.url();
    let clients = join_all((0..16).map(|_| patient_builder(&url).connect())).await;
    let queues: Vec<_> = clients
        .iter()
        .map(|client| {
            let client = client.as_ref().expect("a client");
            client.delayed_queue(&client.blocking_queue("q", codec::Long))
        })
        .collect();
    // Valkey 9.1 counts the subscribers of a channel wrongly from 16 on.
    let subscribed = || server.get::<String, _>(["CLIENT", "LIST"]).matches(" sub=1 ").count();
    until_async("all transfer", || async { subscribed() == 16 }).await;
    let numbers: Vec<i64> = (0..ENTRIES as i64).collect();
    let offers = numbers.iter().map(|n| (n, ms(1_000 + *n as u64)));
    queues[0].offer_all(offers).await.expect("offers");
    let [scripts, messages] = ["evalsha", "publish"].map(|command| server.command_calls(command));
    until_async("all are moved", || async { server.list("q").len() == ENTRIES }).await;
    let scripts = server.command_calls("evalsha") - scripts;
    let messages = server.command_calls("publish") - messages;
    println!("{scripts} scripts and {messages} messages for {ENTRIES} entries");
    // 1.03 and 0.05 for an entry, unless the machine is busy. Fifteen processes get each message.
    assert!(scripts <= 16 * ENTRIES as u64 / 10, "{scripts}");
    assert!(messages <= ENTRIES as u64 / 5, "{messages}");
}
