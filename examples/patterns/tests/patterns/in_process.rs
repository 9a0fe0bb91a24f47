use std::time::Instant;

use redelay_fixture::Server;
use redelay_patterns::in_process::expire;
use redelay_support::{builder, ms, soon};

#[tokio::test]
async fn sessions_come_in_the_order_in_which_they_expire() {
    let server = Server::start();
    let client = builder(&server).connect().await.unwrap();
    let sessions = [("anna", 2500), ("bert", 1200), ("carl", 0)];
    let sessions = sessions.map(|(name, delay)| (name.to_owned(), ms(delay)));
    let begun = Instant::now();
    assert_eq!(soon(expire(&client, &sessions)).await.unwrap(), ["carl", "bert", "anna"]);
    assert!(begun.elapsed() >= ms(2500), "{:?}", begun.elapsed());
}
