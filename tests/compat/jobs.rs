//! Jobs by id beside Redisson, to which a job is an entry like any other.

use std::time::Duration;

use redelay::delayed_queue::{Cancelled, JobOffer, Offered};
use redelay::{Client, DelayedQueue, codec};
use redelay_fixture::{Server, until, until_within};
use redelay_support::{HOUR, JOBS, ORDERED_LIST, TIMEOUT_SET, ms};

use crate::overdue;
use crate::peer::{Peer, Setup};

/// Ids of each length that means something to somebody, and with bytes that mean something elsewhere.
fn ids() -> Vec<Vec<u8>> {
    const UUID: [u8; 16] = 0x0199_3f0c_5e1a_7b33_a5dd_0d40_3b68_a4ea_u128.to_be_bytes();
    let mut both_formats = UUID;
    // The entry has the length that an entry of Redisson 3.21.0 with these bytes would have.
    both_formats[7..15].copy_from_slice(&(9 + value(0).len() as u64).to_le_bytes());
    vec![
        b"1".into(),
        [0].into(),
        // Redisson's own ids have eight bytes. In the format of 3.21.0 they are numbers.
        b"order-17".into(),
        0.123_f64.to_le_bytes().into(),
        UUID.into(),
        both_formats.into(),
        b"01993f0c-5e1a-7b33-a5dd-0d403b68a4ea".into(),
        b"{q}".into(),
        b"}{".into(),
        b"a\tb\r\n\0c".into(),
        [0xff; 255].into(),
        (1..=255).collect(),
    ]
}

fn value(number: usize) -> String {
    format!("v{number:02} é")
}

fn job(delayed: &DelayedQueue<String>, value: &str, delay: Duration, id: &[u8], is_held: bool) -> JobOffer {
    let offer = delayed.offer(value, delay).id(id);
    if is_held { offer.until_done().header("n", "1") } else { offer }
}

/// Offers a job for each id, with payloads that are in the order of the due times.
async fn offer_jobs(delayed: &DelayedQueue<String>, are_held: bool, delay: impl Fn(usize) -> Duration) {
    for (number, id) in ids().iter().enumerate() {
        let offered = job(delayed, &value(number), delay(number), id, are_held).await.expect("an answer");
        assert!(matches!(offered, Offered::Stored(_)), "{}: {offered:?}", id.escape_ascii());
    }
}

/// No job of these ids is pending, and each id is free.
async fn are_free(delayed: &DelayedQueue<String>, how: &str) {
    for (number, id) in ids().iter().enumerate() {
        let what = format!("{how}, {}", id.escape_ascii());
        let job = delayed.job(id);
        // The calls find what Redisson has left one by one, so each comes first for some id.
        let is_pending = match number % 6 {
            0 => job.get().await.map(|job| job.is_some()),
            1 => job.exists().await,
            2 => job.cancel().await.map(Cancelled::is_removed),
            3 => job.reschedule(HOUR).await,
            4 => job.run_now().await,
            _ => Ok(false),
        };
        assert!(!is_pending.expect("an answer"), "{what}");
        let offer = delayed.offer("next", HOUR).id(id);
        let offer = match number % 4 {
            0 => offer.keep(),
            1 => offer.replace(),
            2 => offer.keep_earliest(),
            _ => offer.debounce(HOUR),
        };
        let offered = offer.await.expect("an answer");
        assert!(matches!(offered, Offered::Stored(_)), "{what}: {offered:?}");
        assert!(job.cancel().await.expect("an answer").is_removed(), "{what}");
    }
    assert_eq!(delayed.len().await.expect("an answer"), 0, "{how}");
}

/// A client that transfers nothing.
async fn still(server: &Server) -> Client {
    Client::builder().url(server.url()).transfer(false).connect().await.expect("a connection")
}

fn queue(client: &Client, name: &str) -> DelayedQueue<String> {
    client.delayed_queue(&client.blocking_queue(name, codec::String))
}

/// Redisson with two versions, and redelay.
fn peers(server: &Server) -> [(&'static str, Peer); 3] {
    let url = server.url();
    let java = |redisson| Setup { redisson, ..Setup::new(&url) }.java();
    [("4.7.0", java("4.7.0")), ("3.50.0", java("3.50.0")), ("rust", Setup::new(&url).rust())]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_of_jobs_looks_like_one_of_plain_payloads() {
    let server = Server::start();
    let client = still(&server).await;
    let jobs = queue(&client, "q");
    let plain = queue(&client, "beside");
    let quoted = |number| format!("\"{}\"", value(number));
    let [first, second, third, last] = [0, 1, 2, ids().len() - 1].map(quoted);
    let reads = ["size", "readall", "peek"].map(|command| vec![command]);
    let mut commands: Vec<Vec<&str>> = reads.clone().into();
    for value in [&*first, &second, &third, &last, "\"none\""] {
        commands.push(vec!["contains", value]);
    }
    for value in [&*third, &last, "\"twice\"", "\"twice\"", "\"twice\"", "\"none\""] {
        commands.push(vec!["remove", value]);
        commands.extend(reads.clone());
    }
    // Some are left for `clear`.
    commands.resize(commands.len() + ids().len() / 2, vec!["dpoll"]);
    commands.extend(reads.clone());
    commands.push(vec!["clear"]);
    commands.extend(reads.clone());
    commands.push(vec!["dpoll"]);
    let kinds = [false, true];
    for ((reader, mut peer), are_held) in
        kinds.into_iter().flat_map(|held| peers(&server).map(|peer| (peer, held)))
    {
        offer_jobs(&jobs, are_held, |_| HOUR).await;
        for number in 0..ids().len() {
            plain.offer(&value(number), HOUR).await.expect("it is stored");
        }
        for id in ["twice", "again"] {
            job(&jobs, "twice", HOUR, id.as_bytes(), are_held).await.expect("it is stored");
            plain.offer("twice", HOUR).await.expect("it is stored");
        }
        for command in &commands {
            let mut on = |queue| peer.ask(&[&command[..1], &[queue], &command[1..]].concat());
            let (answer, expected) = (on("q"), on("beside"));
            assert_eq!(answer, expected, "{reader}: {command:?}, held: {are_held}");
            assert!(!answer.starts_with('!'), "{reader}: {command:?}: {answer}");
        }
        assert!(server.list(ORDERED_LIST).is_empty() && server.zset(TIMEOUT_SET).is_empty(), "{reader}");
        peer.quit();
    }
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_free_whoever_moved_its_job_and_whoever_took_it() {
    let server = Server::start();
    let client = still(&server).await;
    let mut peers = peers(&server);
    for mover in 0..peers.len() {
        for taker in 0..peers.len() {
            let name = format!("{}-{}", peers[mover].0, peers[taker].0);
            let delayed = queue(&client, &name);
            peers[mover].1.open(&name);
            offer_jobs(&delayed, false, |number| ms(20 * number as u64)).await;
            let taken = peers[taker].1.ask(&["drain", &name, &ids().len().to_string()]);
            let mut taken: Vec<String> = serde_json::from_str(&taken).expect("texts");
            taken.sort();
            assert_eq!(taken, (0..ids().len()).map(value).collect::<Vec<_>>(), "{name}");
            let fields = || server.get::<usize, _>(["HLEN", &format!("redelay:jobs:{{{name}}}")]);
            let left = if peers[mover].0 == "rust" { 0 } else { ids().len() };
            until(&format!("{name}: a mover in Java leaves the fields"), || fields() == left);
            are_free(&delayed, &name).await;
            peers[mover].1.tell(&["destroy", &name]);
        }
    }
    peers.into_iter().for_each(|(_, peer)| peer.quit());
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_free_at_once_when_java_removes_its_job() {
    let server = Server::start();
    let client = still(&server).await;
    let delayed = queue(&client, "q");
    for (who, mut peer) in peers(&server) {
        for how in ["remove", "dpoll", "clear"] {
            offer_jobs(&delayed, false, |_| HOUR).await;
            match how {
                "clear" => peer.tell(&["clear", "q"]),
                "dpoll" => (0..ids().len()).for_each(|number| {
                    assert_eq!(peer.ask(&["dpoll", "q"]), format!("\"{}\"", value(number)), "{who}");
                }),
                _ => (0..ids().len()).for_each(|number| {
                    assert_eq!(
                        peer.ask(&["remove", "q", &format!("\"{}\"", value(number))]),
                        "true",
                        "{who}"
                    );
                }),
            }
            are_free(&delayed, &format!("{who}: {how}")).await;
            assert_eq!(server.get::<usize, _>(["EXISTS", JOBS]), 0, "{who}: {how}");
        }
        peer.quit();
    }
    client.shutdown().await;
}

/// Redisson 3.21.0 reads the first eight bytes as an id, and the next eight as the length of the payload.
#[tokio::test(flavor = "multi_thread")]
async fn redisson_3_21_does_not_read_jobs() {
    let server = Server::start();
    let url = server.url();
    let client = still(&server).await;
    let mut old = Setup { redisson: "3.21.0", ..Setup::new(&url) }.java();
    let rows: [(&str, &[u8]); 3] =
        [("q", b"order-17"), ("seven", b"order-7"), ("empty", &17_u128.to_be_bytes())];
    let queues = rows.map(|(name, _)| queue(&client, name));

    // Its calls.
    for (delayed, (name, id)) in queues.iter().zip(rows) {
        delayed.offer("job", HOUR).id(id).await.expect("it is stored");
        old.tell(&["offer", name, "\"own\"", "3600000"]);
    }
    assert_eq!(old.ask(&["size", "q"]), "2");
    for command in
        [&["readall", "q"][..], &["peek", "q"], &["contains", "q", "\"own\""], &["remove", "q", "\"own\""]]
    {
        assert!(old.ask(command).contains("data string too short"), "{command:?}");
        assert_eq!(old.ask(&["size", "q"]), "2", "{command:?}");
    }
    assert!(old.ask(&["dpoll", "q"]).contains("data string too short"));
    assert_eq!(old.ask(&["readall", "q"]), r#"["own"]"#, "it has removed the job, and then failed");
    assert_eq!(old.ask(&["readall", "seven"]), r#"["job","own"]"#, "the two formats are the same by chance");
    assert_eq!(old.ask(&["readall", "empty"]), r#"["","own"]"#, "to it, zeros in the id are the length");
    for delayed in &queues {
        delayed.clear().await.expect("they are removed");
    }

    // Its transfers.
    for (delayed, (name, id)) in queues.iter().zip(rows) {
        delayed.offer("job", ms(50)).id(id).await.expect("it is stored");
        old.tell(&["offer", name, "\"own\"", "100"]);
        old.open(name);
    }
    until("the others are moved", || ["seven", "empty"].iter().all(|name| old.ask(&["len", name]) == "2"));
    assert_eq!(old.ask(&["drain", "seven", "2"]), r#"["job","own"]"#);
    assert_eq!(old.ask(&["drain", "empty", "2"]), r#"["","own"]"#);
    until_within(Duration::from_secs(20), "both long due", || overdue(&server, 2000.0));
    assert_eq!(old.ask(&["len", "q"]), "0", "it stands still");
    let moving = Client::connect(&server.url()).await.expect("a connection");
    let _moves = queue(&moving, "q");
    assert_eq!(old.ask(&["drain", "q", "2"]), r#"["job","own"]"#);
    for (delayed, (name, id)) in queues.iter().zip(rows) {
        let offered = delayed.offer("next", HOUR).id(id).await.expect("an answer");
        assert!(matches!(offered, Offered::Stored(_)), "{name}: {offered:?}");
    }
    moving.shutdown().await;
    client.shutdown().await;
}
