//! The service as a process beside a real server.

use redelay_fixture::{Program, Server, until_async};

#[tokio::test]
async fn it_is_ready_while_the_server_is_there_and_ends_on_sigterm() {
    let server = Server::start();
    let environment = [("REDIS_URL", &*server.url()), ("ADDRESS", "127.0.0.1:0")];
    let program = Program::start(env!("CARGO_BIN_EXE_redelay-axum"), &[], &environment);
    let address = || program.output().lines().find(|line| line.starts_with("http://")).map(str::to_owned);
    until_async("it listens", || async { address().is_some() }).await;
    let (base, http) = (address().unwrap(), reqwest::Client::new());
    let get = async |path: &str| {
        let response = http.get(format!("{base}{path}")).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };

    until_async("the worker transfers", || async {
        get("/ready").await.1.contains(r#""transferring_queues":1"#)
    })
    .await;
    let (status, health) = get("/ready").await;
    assert!(status == 200 && health.contains(r#""connected":true"#), "{health}");
    assert_eq!(http.put(format!("{base}/orders/7")).send().await.unwrap().status().as_u16(), 201);
    until_async("it is handled", || async { program.output().contains("order 7 is due") }).await;

    server.stop();
    until_async("it is not ready", || async { get("/ready").await.0 == 503 }).await;
    assert_eq!(get("/live").await.0, 200, "a restart would not help");
    server.start_again();
    until_async("it is ready again", || async { get("/ready").await.0 == 200 }).await;

    program.terminate();
    until_async("it has ended", || async { !program.is_running() }).await;
    assert_eq!(program.exit_code(), Some(0));
    let output = program.output();
    assert!(output.contains("acknowledged: 1"), "{output}");
}
