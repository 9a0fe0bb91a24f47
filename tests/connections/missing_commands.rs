//! Servers that lack commands, as managed services and proxies do, and users who may not run them: redelay
//! does without, or its error names the command.

use std::time::{Duration, Instant};

use redelay::{Client, Error, ErrorKind, codec};
use redelay_fixture::{Proxy, Server};
use redelay_support::{HOUR, builder, ms, soon};

/// Commands and subcommands without which everything works, and the word that stands for each on the wire.
const DISPENSABLE: [(&str, &str); 8] = [
    ("info", "INFO"),
    ("client", "CLIENT"),
    ("client|id", "ID"),
    ("client|setname", "SETNAME"),
    ("client|info", "INFO"),
    ("client|kill", "KILL"),
    ("client|unblock", "UNBLOCK"),
    ("subscribe", "SUBSCRIBE"),
];

/// Everything that a program does with a queue.
async fn works(url: &str, without: &str) {
    let client = Client::builder().url(url).sweep_interval(Duration::from_secs(1)).connect().await;
    let client = client.unwrap_or_else(|error| panic!("without {without}: {error:?}"));
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    let other = client.blocking_queue("other", codec::Long);
    let begin = |queue: &redelay::BlockingQueue<i64>| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.take().await })
    };
    let first = begin(&other);
    tokio::time::sleep(ms(50)).await;
    // A pop that blocks on the one list is not for the other.
    let second = begin(&ready);
    delayed.offer(&1, ms(20)).await.unwrap_or_else(|error| panic!("without {without}: {error:?}"));
    let begun = Instant::now();
    assert_eq!(soon(second).await.unwrap().unwrap(), 1, "without {without}");
    println!("without {without}: {:?}", begun.elapsed());
    // A taker that gives up takes nothing with it.
    first.abort();
    assert_eq!(other.poll_timeout(ms(10)).await.unwrap(), None, "without {without}");
    other.put(&2).await.unwrap();
    assert_eq!(soon(other.take()).await.unwrap(), 2, "without {without}");
    let receiver = ready.receiver();
    delayed.offer(&3, ms(20)).await.unwrap();
    soon(receiver.receive()).await.unwrap().ack().await.unwrap();
    delayed.offer(&4, HOUR).await.unwrap();
    assert_eq!(ready.stats().await.unwrap().pending, 1, "without {without}");
    soon(client.shutdown()).await;
}

/// As if the server had never heard of it.
#[tokio::test]
async fn commands_that_the_server_does_not_know() {
    let server = Server::start();
    for (command, word) in DISPENSABLE {
        let proxy = Proxy::start(server.port());
        let (from, to) = (format!("{word}\r\n"), format!("{}X\r\n", &word[..word.len() - 1]));
        proxy.rewrite_commands(from, to);
        server.cmd(["FLUSHALL"]);
        works(&proxy.url(), command).await;
    }
}

#[tokio::test]
async fn commands_that_the_user_may_not_run() {
    let server = Server::start();
    for (command, _) in DISPENSABLE {
        let rules = ["reset", "on", ">secret", "allkeys", "allchannels", "+@all", &format!("-{command}")];
        if server.try_cmd(["ACL", "SETUSER", "user"].into_iter().chain(rules)).is_err() {
            // Redis before 7.0 cannot withdraw single subcommands.
            continue;
        }
        server.cmd(["FLUSHALL"]);
        works(&format!("redis://user:secret@127.0.0.1:{}", server.port()), command).await;
    }
}

#[tokio::test]
async fn commands_that_were_renamed() {
    for command in ["CLIENT", "SUBSCRIBE", "PUBLISH", "CONFIG", "COMMAND", "ROLE", "WAIT", "TYPE"] {
        for name in ["\"\"", "another"] {
            let server = Server::builder().config(format!("rename-command {command} {name}")).start();
            works(&server.url(), command).await;
        }
    }
}

/// A write is executed, and no retry of it would be confirmed: the error says at once what is missing.
#[tokio::test]
async fn replicas_cannot_be_asked_without_wait() {
    let renamed = Server::builder().config("rename-command WAIT \"\"").start();
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "allkeys", "allchannels", "+@all", "-wait"]);
    for builder in [builder(&renamed), builder(&server).credentials("user", "secret")] {
        let client = builder.replicas(1, ms(50)).command_timeout(HOUR).connect().await.unwrap();
        let ready = client.blocking_queue("q", codec::Long);
        let delayed = client.delayed_queue(&ready);
        let offered = soon(async { delayed.offer(&1, HOUR).await }).await;
        for error in [offered.unwrap_err(), soon(ready.put(&2)).await.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
            let text = error.to_string();
            assert!(
                text.contains("has executed the call") && text.contains("requires EVAL and WAIT"),
                "{text}"
            );
        }
        assert_eq!((delayed.len().await.unwrap(), ready.len().await.unwrap()), (1, 1));
        client.shutdown().await;
    }
}

#[track_caller]
fn names(error: &Error, word: &str) {
    let text = error.to_string();
    assert!(text.contains(word), "{text}");
    assert!(!text.contains("password"), "{text}");
    assert!(!text.contains("user_script"), "{text}");
}

/// Nothing works without these.
#[tokio::test]
async fn errors_name_the_command_that_is_missing() {
    let server = Server::start();
    for word in ["PING", "EVALSHA", "EVAL", "BLPOP", "LLEN"] {
        let proxy = Proxy::start(server.port());
        let to = format!("{}X", &word[..word.len() - 1]);
        proxy.rewrite_commands(format!("{word}\r\n"), format!("{to}\r\n"));
        server.flush_scripts();
        let connected = builder(&proxy).transfer(false).connect().await;
        let client = match connected {
            Ok(client) => client,
            Err(error) => {
                assert_eq!((word, error.kind()), ("PING", ErrorKind::Refused), "{error}");
                names(&error, &to);
                continue;
            }
        };
        let ready = client.blocking_queue("q", codec::Long);
        let delayed = client.delayed_queue(&ready);
        let error = match word {
            "BLPOP" => soon(ready.take()).await.unwrap_err(),
            "LLEN" => ready.len().await.unwrap_err(),
            _ => delayed.offer(&1, HOUR).await.unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        names(&error, &to);
    }
}

/// Redis repeats what was sent with a command that it does not know.
#[tokio::test]
async fn errors_repeat_neither_a_password_nor_a_payload() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "user", "on", ">hidden", "~*", "&*", "+@all"]);
    let proxy = Proxy::start(server.port());
    let connecting = || builder(&proxy).credentials("user", "hidden").transfer(false);
    proxy.rewrite_commands("AUTH\r\n", "AUTX\r\n");
    let error = connecting().connect().await.unwrap_err();
    names(&error, "AUTX");
    assert!(!format!("{error} {error:?}").contains("hidden"), "{error}");
    proxy.rewrite_nothing();
    proxy.rewrite_commands("LPOS\r\n", "LPOX\r\n");
    let client = connecting().connect().await.unwrap();
    let ready = client.blocking_queue::<String>("q", codec::String);
    let error = ready.contains("hidden").await.unwrap_err();
    names(&error, "LPOX");
    let noted = client.stats().last_error.map(|error| error.message).unwrap_or_default();
    assert!(noted.contains("LPOX") && !format!("{error} {noted}").contains("hidden"), "{error}; {noted}");
}

/// Redis does not say which command of a script it lacks, nor does Redis 6.2 say which one is forbidden.
#[tokio::test]
async fn errors_name_the_command_that_a_script_lacks() {
    for command in ["TIME", "ZADD", "RPUSH"] {
        let renamed = Server::builder().config(format!("rename-command {command} \"\"")).start();
        let server = Server::start();
        let forbidden = &format!("-{}", command.to_lowercase());
        server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "allkeys", "allchannels", "+@all", forbidden]);
        for url in [renamed.url(), format!("redis://user:secret@127.0.0.1:{}", server.port())] {
            let client = Client::builder().url(&url).transfer(false).connect().await.unwrap();
            let ready = client.blocking_queue("q", codec::Long);
            let delayed = client.delayed_queue(&ready);
            let error = delayed.offer(&1, HOUR).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.to_string().to_uppercase().contains(command), "{error}");
            names(&error, "");
            let noted = client.stats().last_error.map(|error| error.message).unwrap_or_default();
            assert!(!noted.contains("user_script"), "{noted}");
        }
    }
}
