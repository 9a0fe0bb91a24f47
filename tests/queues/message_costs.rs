//! What a message costs the server with takers, in commands and not in time.

use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, Queues, ms, patient_builder, soon};

use super::receiver_costs::usual;

/// What the client does by itself, as the test of an idle connection, may come in the middle of a message. So
/// some are counted, and the cheaper ones show what a message costs.
const MESSAGES: usize = 9;

/// The scripts, the blocking pops, and all commands since the start, with those that scripts run.
fn calls(server: &Server) -> [u64; 3] {
    let info = server.info("commandstats");
    // Two are those of this test.
    let own = ["cmdstat_info:", "cmdstat_quit:"];
    let all = info
        .lines()
        .filter(|line| line.starts_with("cmdstat_") && !own.iter().any(|own| line.starts_with(own)));
    let calls = all.filter_map(|line| line.split("calls=").nth(1)?.split(',').next()?.parse::<u64>().ok());
    [server.command_calls("evalsha"), server.command_calls("blpop"), calls.sum()]
}

#[tokio::test]
async fn a_message_that_comes_alone_costs_two_scripts_and_one_blocking_pop() {
    let server = Server::start();
    let builder = patient_builder(&server).check_interval(HOUR).sweep_interval(HOUR);
    let Queues { client: _client, ready, delayed } = Queues::of_numbers(builder).await;
    let mut counts = [(); 3].map(|()| Vec::new());
    // The first one loads the scripts.
    for number in 0..=MESSAGES as i64 {
        let before = calls(&server);
        let take = tokio::spawn({
            let ready = ready.clone();
            async move { ready.take().await.unwrap() }
        });
        until_async("it waits", || async { server.blocked_clients() == 1 }).await;
        delayed.offer(&number, ms(30)).await.unwrap();
        assert_eq!(soon(take).await.unwrap(), number);
        let after = calls(&server);
        if number > 0 {
            counts
                .iter_mut()
                .zip(after.iter().zip(before))
                .for_each(|(all, (after, before))| all.push(after - before));
        }
    }
    let [scripts, pops, commands] = counts.map(usual);
    println!("{scripts} scripts, {pops} blocking pops, {commands} commands");
    // An offer and a transfer.
    assert_eq!((scripts, pops), (2, 1));
    // Six of the offer with its script, eleven of the transfer, the pop, and the receipt of the offer before,
    // which this one deletes.
    assert!(commands <= 20, "{commands} commands");
}
