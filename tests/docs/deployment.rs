//! What `docs/deployment.md` says about privacy, and about the users of sentinels.

use std::collections::HashMap;

use redelay::delayed_queue::Offered;
use redelay::{Client, ErrorKind, codec};
use redelay_fixture::{Cluster, Failover, Sentinels, Server, redis, until_async};
use redelay_support::{HOUR, MINUTE, ms, soon};
use tokio::task::block_in_place;

/// The words of a shell command.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in command.replace("\\\n", " ").chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, _) if letter.is_whitespace() => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)))
            }
            _ => word.push(letter),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// A server starts with these lines. Redis knows comments at the beginning of a line only.
#[test]
fn the_settings_of_a_server() {
    let text = include_str!("../../docs/deployment.md");
    let block = text.split("## redis.conf\n\n```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let lines: Vec<_> = block.expect("the settings").lines().collect();
    let server = lines.iter().fold(Server::builder(), |server, line| server.config(*line)).start();
    let set: Vec<String> = server.get(["CONFIG", "GET", "maxmemory*"]);
    for value in ["noeviction".to_owned(), (4_u64 << 30).to_string()] {
        assert!(set.contains(&value), "{set:?}");
    }
    assert!(lines.iter().all(|line| !line.split(' ').skip(1).any(|word| word == "#")), "{lines:#?}");
}

/// The commands that erase everything of the queue `orders`.
fn documented() -> Vec<Vec<String>> {
    let text = include_str!("../../docs/deployment.md");
    let block =
        text.split("To erase everything of a queue at once").nth(1).and_then(|rest| rest.split("```").nth(1));
    let commands = block.expect("the commands").split("redis-cli ").skip(1);
    commands.map(words).collect()
}

#[tokio::test]
async fn what_erases_everything_leaves_nothing() {
    let server = Server::start();
    let client = Client::builder().url(server.url()).transfer(false).connect().await.unwrap();
    let ready = client.blocking_queue("orders", codec::String);
    let delayed = client.delayed_queue(&ready);
    // Dead letters, a message in flight, one that waits, a copy of what a dead process popped.
    ready
        .offer_all(["secret 1", "secret 2", "secret 3", "secret 4"].map(str::to_owned).iter())
        .await
        .unwrap();
    let receiver = ready.receiver();
    soon(receiver.receive()).await.unwrap().reject("secret").await.unwrap();
    soon(receiver.receive()).await.unwrap().snooze(HOUR).await.unwrap();
    let _held = soon(receiver.receive()).await.unwrap();
    server.cmd(["HSET", "redelay:popped:{orders}", "of a dead process", "secret"]);
    server.cmd(["RPUSH", "redelay:quarantine:{orders}", "1", "secret"]);
    // Pending entries, jobs, throttles.
    delayed.offer("secret 5", HOUR).await.unwrap();
    delayed.offer("secret 6", HOUR).id("secret").throttle(HOUR).await.unwrap();
    for n in 0..100 {
        let offered = delayed.offer(&format!("secret {n}"), HOUR).throttle(HOUR).await.unwrap();
        assert!(matches!(offered, Offered::Stored(_)));
    }
    ready.pause().await.unwrap();
    assert!(ready.stats().await.unwrap().is_paused);
    client.shutdown().await;
    assert_eq!(ready.len().await.unwrap_err().kind(), ErrorKind::Closed);

    let left = || -> Vec<String> {
        let text = |key: Vec<u8>| String::from_utf8_lossy(&key).into_owned();
        // These contain no payload, and no id.
        let is_receipt = |key: &String| {
            ["offered", "returned"].iter().any(|what| key.starts_with(&format!("redelay:{what}:")))
        };
        server.keys().into_iter().map(text).filter(|key| !is_receipt(key)).collect()
    };
    assert!(left().len() > 110, "{:?}", left());
    for command in documented() {
        server.cmd(command);
    }
    assert_eq!(left(), Vec::<String>::new());
}

/// The permissions on the sentinels are enough, and none of them is idle.
#[tokio::test]
async fn a_user_of_the_sentinels() {
    let text = include_str!("../../docs/deployment.md");
    let command = text.split("redis-cli -p 26379 ").nth(1).and_then(|rest| rest.split("```").next());
    let user = words(command.expect("the command"));
    let group = Sentinels::start();
    let sentinels = [0, 1, 2].map(|i| group.sentinel(i));
    let connect = || {
        let builder = Client::builder().url(group.url()).sentinel_credentials("billing", "secret");
        builder.connect_timeout(ms(4000)).connect()
    };
    for necessary in ["+sentinel|master", "+sentinel|get-master-addr-by-name"] {
        let others: Vec<_> = user.iter().filter(|word| *word != necessary).collect();
        assert!(others.len() < user.len());
        sentinels.iter().for_each(|sentinel| drop(sentinel.cmd(["ACL", "DELUSER", "billing"])));
        sentinels.iter().for_each(|sentinel| drop(sentinel.cmd(&others)));
        let error = connect().await.unwrap_err();
        assert!(error.is_unavailable() && error.to_string().contains("NOPERM"), "{error}");
    }
    sentinels.iter().for_each(|sentinel| drop(sentinel.cmd(["ACL", "DELUSER", "billing"])));
    sentinels.iter().for_each(|sentinel| drop(sentinel.cmd(&user)));
    let builder = Client::builder().url(group.url()).sentinel_credentials("billing", "secret");
    let client = builder.connect_timeout(10 * MINUTE).connect().await.unwrap();
    for sentinel in sentinels {
        until_async("it has subscribed", || async {
            let clients: String = sentinel.get(["CLIENT", "LIST"]);
            clients.lines().any(|client| client.contains("name=redelay ") && client.contains(" sub=1 "))
        })
        .await;
    }
    let ready = client.blocking_queue("q", codec::Long);
    let new = group.failover();
    until_async("a payload there", || async { ready.put(&1).await.is_ok() && !new.list("q").is_empty() })
        .await;
    client.shutdown().await;
}

/// The permissions for a queue are enough in a cluster, with those that the section on clusters adds: nothing
/// else is refused, before a failover and after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_of_a_cluster() {
    let text = include_str!("../../docs/deployment.md");
    let within = |from: &str, to: &str| text.split(from).nth(1).and_then(|rest| rest.split(to).next());
    let user = words(
        within("A user for one queue `q` needs no more than this:\n\n```sh\nredis-cli ", "```").unwrap(),
    );
    let section = within("\n## Cluster\n", "\n## ").unwrap();
    let more = section.split("On the servers, add `").nth(1).and_then(|rest| rest.split('`').next());
    let more = words(more.expect("the permissions that a cluster adds"));
    assert!(more.iter().any(|word| word.starts_with("+cluster|")), "{more:?}");
    let confirming = within("\n## Writes that replicas confirm\n", "\n## ").unwrap();
    assert!(confirming.contains("On Redis 6.2, add `+wait` to"));
    let cluster = block_in_place(Cluster::start);
    cluster.be_patient(true);
    for server in cluster.servers() {
        server.cmd(user.iter().chain(&more));
        if server.version().major < 7 {
            server.cmd(["ACL", "SETUSER", "worker", "+wait"]);
        }
        server.cmd(["ACL", "LOG", "RESET"]);
    }
    let builder = || Client::builder().url(cluster.url()).credentials("worker", "secret");
    let confirming = builder().replicas(1, MINUTE).command_timeout(MINUTE).connect().await.unwrap();
    goes_the_whole_way(&confirming).await;
    confirming.shutdown().await;
    let client = builder().connect().await.unwrap();
    goes_the_whole_way(&client).await;
    let slot = cluster.slot_of("q");
    let new = block_in_place(|| cluster.failover(slot, Failover::Planned));
    goes_the_whole_way(&client).await;
    assert!(new.clients_named("redelay") > 0);
    client.shutdown().await;
    for server in cluster.servers() {
        let log: Vec<HashMap<String, redis::Value>> = server.get(["ACL", "LOG", "100"]);
        // It may not know the version.
        let is_info =
            |entry: &HashMap<String, redis::Value>| format!("{:?}", entry["object"]).contains("info");
        let refused: Vec<_> = log.iter().filter(|entry| !is_info(entry)).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
}

/// An offer and a take, an offer, a receive and its acknowledgement.
async fn goes_the_whole_way(client: &Client) {
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    soon(async { delayed.offer(&1, ms(20)).await }).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
    soon(async { delayed.offer(&2, ms(20)).await }).await.unwrap();
    let delivery = soon(ready.receiver().receive()).await.unwrap();
    assert_eq!(*delivery.value(), 2);
    soon(delivery.ack()).await.unwrap();
}
