//! What `docs/deployment.md` says about privacy, and about the users of sentinels.

use redelay::{Client, ErrorKind, Offered, codec};
use redelay_fixture::{Sentinels, Server, until_async};
use redelay_support::{HOUR, ms, soon};

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
    words
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
        builder.connect_timeout(ms(1500)).connect()
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
    let client = connect().await.unwrap();
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
