//! What is not bounded, so that the documentation stays true: docs/design/connections.md, "Why is the size of
//! a reply not bounded?", and SECURITY.md say so.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use redelay::Client;
use redelay_fixture::{Program, until};
use redelay_support::ms;

/// Answers each connection with arrays within arrays, before anybody has logged in.
fn nesting_server(levels: usize) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 1000]);
            let _ = client.write_all(&[&b"*1\r\n".repeat(levels)[..], b":1\r\n"].concat());
        }
    });
    url
}

#[tokio::test]
async fn five_hundred_levels_are_an_error() {
    let url = nesting_server(500);
    let error = Client::builder().url(url).connect_timeout(ms(300)).connect().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}

/// For a process of its own, which does not survive it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs as a process of its own"]
async fn child() {
    let url = std::env::var("REDELAY_CHILD").expect("the address of the server");
    let connected = Client::builder().url(url).connect_timeout(ms(300)).connect().await;
    println!("survived: {connected:?}");
}

/// When this fails, the client library bounds the depth of replies. Then the documents can say so, and the
/// fuzzing above can nest deeper.
#[test]
fn fifty_kilobytes_of_nested_arrays_end_the_process() {
    let url = nesting_server(50_000 / 4);
    let child = Program::start_ignored_test("hostile_replies::unbounded::child", &[("REDELAY_CHILD", &url)]);
    until("the child ends", || !child.is_running());
    let output = child.output();
    assert!(output.contains("overflowed its stack") && !output.contains("survived"), "{output}");
}
