//! redelay beside a real Redisson on the same servers. Either of them offers, transfers and takes, in every
//! combination.

mod class_trees;
mod doctor;
mod jobs;
mod objects;
mod payloads;
mod places;
mod pump;
mod random;
mod rebuilds;
mod receiving;
mod servers;
mod shapes;
mod two_versions;

use objects::Objects;
use peer::{Lang, Peer, Setup};
use redelay_fixture::{Server, until, until_within};
use redelay_support::peer;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

const BOTH: [Lang; 2] = [Lang::Rust, Lang::Java];
const HOUR: &str = "3600000";
/// Names that Redisson treats differently. All work on a single server.
const NAMES: [&str; 5] = ["orders", "{tag}orders", "a{b", "очередь", "a b:*?[x]"];

const CHANNEL: &str = "redisson_delay_queue_channel:{q}";

/// The server's clock in epoch ms.
fn now(server: &Server) -> f64 {
    let (seconds, micros): (f64, f64) = server.get(["TIME"]);
    seconds * 1000.0 + micros / 1000.0
}

/// Whether everything pending is overdue by `millis`, by the server's clock. False if nothing is pending.
fn overdue(server: &Server, millis: f64) -> bool {
    // The clock is read first: entries that are pending afterwards were pending then.
    let now = now(server);
    let last = server.zset("redisson_delay_queue_timeout:{q}").last().map_or(f64::MAX, |(_, due)| *due);
    now > last + millis
}

/// Three peers of each language, so that every role has its own process.
struct Cast {
    offerers: [Peer; 2],
    movers: [Peer; 2],
    takers: [Peer; 2],
    /// Whether Redisson has lost a wake-up.
    has_lost_one: bool,
}

impl Cast {
    fn start(setup: &Setup) -> Self {
        let pair = || BOTH.map(|lang| setup.start(lang));
        Self { offerers: pair(), movers: pair(), takers: pair(), has_lost_one: false }
    }

    /// Offers, transfers and takes `count` values with mixed delays, in these languages.
    fn play(&mut self, queue: &str, [offer, transfer, take]: [Lang; 3], count: usize) {
        let roles = format!("{offer:?} offers, {transfer:?} moves, {take:?} takes on {queue:?}");
        // Shown if a peer gives no answer.
        println!("{roles}");
        let mover = &mut self.movers[transfer as usize];
        mover.open(queue);
        // An entry far in the future, so that later offers are announced only if they are the new head.
        let offerer = &mut self.offerers[offer as usize];
        offerer.tell(&["offer", queue, "\"far\"", HOUR]);
        let mut expected = Vec::new();
        for n in 0..count {
            // Decreasing delays, far apart: each entry is a new head, and payloads are taken in the order of
            // due times.
            let delay = (count - n) * 25;
            offerer.tell(&["offer", queue, &format!("\"v{n} é\""), &delay.to_string()]);
            expected.insert(0, json!(format!("v{n} é")));
        }
        let taken = self.drained(queue, transfer, take, count);
        let offerer = &mut self.offerers[offer as usize];
        let mut taken: Vec<Value> =
            serde_json::from_str(&taken).unwrap_or_else(|_| panic!("{roles}: {taken}"));
        // Offers take time, too, so only the set of payloads is certain.
        let by_text = |value: &Value| value.to_string();
        taken.sort_by_key(by_text);
        expected.sort_by_key(by_text);
        assert_eq!(taken, expected, "{roles}");
        // With replicas, Redisson reads from one of them, which may be behind for a moment.
        let begun = Instant::now();
        let mut left = offerer.ask(&["readall", queue]);
        while left != "[\"far\"]" && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
            left = offerer.ask(&["readall", queue]);
        }
        assert_eq!(left, "[\"far\"]", "{roles}");
        offerer.tell(&["clear", queue]);
        self.movers[transfer as usize].tell(&["destroy", queue]);
    }

    /// Takes `count` payloads. Redisson sometimes loses a wake-up: an announcement arrives while a transfer
    /// is running. It looks again if the queue is opened again. Only one play may need that: if redelay
    /// announced nothing, each would.
    fn drained(&mut self, queue: &str, transfer: Lang, take: Lang, count: usize) -> String {
        let taker = &mut self.takers[take as usize];
        taker.send(&["drain", queue, &count.to_string()]);
        if transfer == Lang::Java && !self.has_lost_one {
            if let Some(answer) = taker.answer_within(Duration::from_secs(120)) {
                return answer;
            }
            self.has_lost_one = true;
            report("Redisson has lost a wake-up");
            let mover = &mut self.movers[transfer as usize];
            mover.tell(&["destroy", queue]);
            mover.open(queue);
        }
        taker.answer()
    }

    fn quit(self) {
        self.offerers.into_iter().chain(self.movers).chain(self.takers).for_each(Peer::quit);
    }
}

/// Prints a result, even of passing tests. The output of `println!` is shown for failing ones only.
fn report(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Every assignment of the three roles to the two languages.
fn all_roles() -> impl Iterator<Item = [Lang; 3]> {
    BOTH.into_iter()
        .flat_map(|a| BOTH.into_iter().flat_map(move |b| BOTH.into_iter().map(move |c| [a, b, c])))
}

#[test]
fn offer_transfer_and_take_in_either_language() {
    let server = Server::start();
    let mut cast = Cast::start(&Setup::new(&server.url()));
    for name in NAMES {
        for roles in all_roles() {
            cast.play(name, roles, 8);
        }
    }
    until("nothing is left", || server.keys().is_empty());
    cast.quit();
}

#[test]
fn the_same_behind_a_name_mapper() {
    let server = Server::start();
    let url = server.url();
    let mut cast = Cast::start(&Setup { prefix: "app:", ..Setup::new(&url) });
    for name in ["orders", "{tag}orders"] {
        for roles in all_roles() {
            cast.play(name, roles, 4);
        }
    }
    cast.offerers[0].tell(&["offer", "orders", "\"x\"", HOUR]);
    let list: Vec<u8> = b"redisson_delay_queue:{app:orders}".into();
    assert!(server.keys().contains(&list));
    cast.quit();
}

#[test]
fn the_same_with_redisson_3_50() {
    let server = Server::start();
    let url = server.url();
    let mut cast = Cast::start(&Setup { redisson: "3.50.0", ..Setup::new(&url) });
    for roles in all_roles() {
        cast.play("orders", roles, 8);
    }
    cast.quit();
}

#[test]
fn every_codec_in_both_directions() {
    let server = Server::start();
    let url = server.url();
    let object = r#"{"id":7,"name":"Zoë 🚀","tags":["a",""],"price":12.5,"none":null,"deep":{"yes":true}}"#;
    let order = r#"{"@class":"com.acme.Zoo$Order","id":1,"customer":"Zoë 🚀","items":2,"total":12.5,"paid":true,"couponId":5,"rank":null,"status":"PAID","address":{"street":"s","zip":1,"city":null},"lines":[{"sku":"k","quantity":1,"price":0.5}],"tags":["a",null],"counts":{"a":1},"blob":"AQID"}"#;
    let ledger = r#"{"@class":"com.acme.Zoo$Ledger","amount":12345.5,"ref":"607f660c-c854-1833-65dd-0d403b68a4ea","when":5,"big":7,"note":null}"#;
    let plain: &[&str] = &[object, "[1,2,3]", "\"text\"", "42", "true", "0.1"];
    let java: &[&str] = &[
        "\"text\"",
        "42",
        "5000000000",
        "0.5",
        "true",
        "[1,[\"a\",null,2.5]]",
        r#"{"a":{"b":[1]},"c":true}"#,
        order,
        ledger,
    ];
    let rows: Vec<(&str, &[&str])> = vec![
        ("string", &["\"hello\"", "\"\"", "\"Zoë 🚀 客户\""]),
        ("bytes", &["\"\"", "\"00\"", "\"fffe0080\""]),
        ("long", &["0", "-1", "9223372036854775807", "-9223372036854775808"]),
        ("int", &["0", "2147483647", "-2147483648"]),
        ("double", &["0.0", "1.5", "-1e300", "1e-5", "12345678.9"]),
        ("json", plain),
        ("msgpack", plain),
        ("kryo5", java),
        ("json-jackson", java),
        ("cbor-jackson", java),
        ("msgpack-jackson", java),
        ("lz4v2+kryo5", java),
        ("snappyv2+string", &["\"hello\"", "\"\"", "\"Zoë 🚀 客户\""]),
        ("zstd+json-jackson", java),
    ];
    for (codec, values) in rows {
        let setup = Setup { codec, ..Setup::new(&url) };
        let mut peers = BOTH.map(|lang| setup.start(lang));
        for [from, to] in [[0, 1], [1, 0]] {
            for value in values {
                peers[from].tell(&["put", codec, value]);
                let taken = peers[to].ask(&["poll", codec, "5000"]);
                let read =
                    |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| panic!("{text}"));
                assert_eq!(read(&taken), read(value), "{codec}: {from} to {to}");
            }
        }
        peers.into_iter().for_each(Peer::quit);
    }
}

/// Each side reads hundreds of objects that the other side wrote: those of one seed; `make soak` takes
/// thousands of random ones.
#[test]
fn objects_of_every_class_in_both_directions() {
    const AT_ONCE: usize = 100;

    let batches = if redelay_support::is_soak() { 20 } else { 7 };
    let server = Server::start();
    let url = server.url();
    let seed = redelay_support::seed();
    for codec in ["kryo5"] {
        let mut objects = Objects(fastrand::Rng::with_seed(seed));
        let setup = Setup { codec, ..Setup::new(&url) };
        let mut peers = BOTH.map(|lang| setup.start(lang));
        for [from, to] in [[0, 1], [1, 0]] {
            for _ in 0..batches {
                let sent: Vec<Value> = (0..AT_ONCE).map(|_| objects.object()).collect();
                sent.iter().for_each(|value| peers[from].send(&["put", "objects", &value.to_string()]));
                sent.iter().for_each(|value| assert_eq!(peers[from].answer(), "ok", "{codec}: {value}"));
                sent.iter().for_each(|_| peers[to].send(&["poll", "objects", "5000"]));
                for value in sent {
                    let read = peers[to].answer();
                    let read: Value =
                        serde_json::from_str(&read).unwrap_or_else(|_| panic!("{codec}: {value} is {read}"));
                    assert_eq!(read, value, "{codec}: {from} to {to}");
                }
            }
        }
        peers.into_iter().for_each(Peer::quit);
    }
}

#[test]
fn each_sees_what_the_other_has_pending() {
    let server = Server::start();
    let url = server.url();
    let setup = Setup::new(&url);
    let mut peers = BOTH.map(|lang| setup.start(lang));
    for [writer, reader] in [[0, 1], [1, 0]] {
        for value in ["\"a\"", "\"b\"", "\"c\"", "\"b\"", "\"é\""] {
            peers[writer].tell(&["offer", "q", value, HOUR]);
        }
        let reader = &mut peers[reader];
        assert_eq!(reader.ask(&["size", "q"]), "5");
        assert_eq!(reader.ask(&["readall", "q"]), r#"["a","b","c","b","é"]"#);
        assert_eq!(reader.ask(&["peek", "q"]), "\"a\"");
        assert_eq!(reader.ask(&["contains", "q", "\"é\""]), "true");
        assert_eq!(reader.ask(&["contains", "q", "\"x\""]), "false");
        assert_eq!(reader.ask(&["dpoll", "q"]), "\"a\"");
        assert_eq!(reader.ask(&["remove", "q", "\"b\""]), "true");
        assert_eq!(reader.ask(&["remove", "q", "\"x\""]), "false");
        let writer = &mut peers[writer];
        assert_eq!(writer.ask(&["readall", "q"]), r#"["c","b","é"]"#);
        assert_eq!(server.zset("redisson_delay_queue_timeout:{q}").len(), 3);
        writer.tell(&["clear", "q"]);
        assert_eq!(writer.ask(&["dpoll", "q"]), "null");
    }
    for peer in &mut peers {
        let answer = peer.ask(&["offer", "q", "\"a\"", "-1"]);
        assert!(answer.starts_with('!'), "a negative delay: {answer}");
        assert!(peer.ask(&["offer", "q", "{", "1"]).starts_with('!'));
        assert_eq!(peer.ask(&["size", "q"]), "0", "and it goes on");
    }
}

#[test]
fn redelay_announces_new_heads_only_and_in_plain_digits() {
    let server = Server::start();
    let mut peer = Setup::new(&server.url()).rust();
    let mut connection = server.redis();
    let mut channel = connection.as_pubsub();
    channel.subscribe(CHANNEL).expect("a subscription");
    let mut heads = Vec::new();
    for (delay, is_head) in
        [("50000", true), ("60000", false), ("40000", true), ("45000", false), ("0", true)]
    {
        peer.tell(&["offer", "q", "\"x\"", delay]);
        if is_head {
            let entries = server.zset("redisson_delay_queue_timeout:{q}");
            heads.push((entries[0].1 as u64).to_string());
        }
    }
    for head in heads {
        let message = channel.get_message().expect("a message");
        assert_eq!(message.get_payload::<String>().expect("text"), head);
    }
    channel.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
    assert!(channel.get_message().is_err(), "nothing else was announced");
}

/// Redisson has one timer, and sets it to the time that was announced last. A reply with a later head has the
/// same effect if it is handled after the announcement of an earlier one. A test can cause an announcement,
/// but not that race.
#[test]
fn a_redelay_on_the_queue_heals_redissons_lost_wake_ups() {
    let server = Server::start();
    let url = server.url();
    let setup = Setup::new(&url);
    let mut java = setup.java();
    java.open("q");
    until("Redisson listens", || server.subscribers(CHANNEL) == 1);
    // An entry due in 2 s, and then the announcement of a later time.
    let offer_and_mislead = |java: &mut Peer, value: &str, later: f64| {
        java.tell(&["offer", "q", value, "2000"]);
        let announced = now(&server) + later;
        server.cmd(["PUBLISH", CHANNEL, &format!("{announced:.0}")]);
        announced
    };

    let announced = offer_and_mislead(&mut java, "\"late\"", 8000.0);
    until_within(Duration::from_secs(20), "pending, though long due", || overdue(&server, 2000.0));
    assert_eq!(java.ask(&["take", "q"]), "\"late\"");
    assert!(now(&server) >= announced, "Redisson alone waits for what was announced");

    let mut rust = setup.rust();
    rust.open("q");
    until("both listen", || server.subscribers(CHANNEL) == 2);
    let announced = offer_and_mislead(&mut java, "\"in time\"", 3_600_000.0);
    assert_eq!(java.ask(&["take", "q"]), "\"in time\"");
    assert!(now(&server) < announced);
}

/// The entry format of Redisson up to 3.21.0, in all combinations.
mod legacy {
    use super::*;

    #[test]
    fn what_3_21_offers_redelay_lists_counts_removes_and_delivers() {
        let server = Server::start();
        let url = server.url();
        let mut old = Setup { redisson: "3.21.0", ..Setup::new(&url) }.java();
        let mut rust = Setup::new(&url).rust();
        for value in ["\"a\"", "\"b\"", "\"c\"", "\"d\""] {
            old.tell(&["offer", "q", value, HOUR]);
        }
        assert_eq!(rust.ask(&["size", "q"]), "4");
        assert_eq!(rust.ask(&["readall", "q"]), r#"["a","b","c","d"]"#);
        assert_eq!(rust.ask(&["peek", "q"]), "\"a\"");
        assert_eq!(rust.ask(&["contains", "q", "\"c\""]), "true");
        assert_eq!(rust.ask(&["remove", "q", "\"b\""]), "true");
        assert_eq!(rust.ask(&["dpoll", "q"]), "\"a\"");
        assert_eq!(old.ask(&["readall", "q"]), r#"["c","d"]"#);
        rust.open("q");
        old.tell(&["offerall", "q", "50", "100", "v"]);
        let taken: Vec<String> = serde_json::from_str(&rust.ask(&["drain", "q", "50"])).unwrap();
        assert_eq!(taken.len(), 50);
        assert_eq!(rust.ask(&["size", "q"]), "2");
    }

    #[test]
    fn what_redelay_writes_in_the_old_format_3_21_lists_moves_and_takes() {
        let server = Server::start();
        let url = server.url();
        let setup = Setup { redisson: "3.21.0", legacy: true, ..Setup::new(&url) };
        let (mut old, mut rust) = (setup.java(), setup.rust());
        // Of an empty queue. With an entry in it, Redisson may lose the wake-up for the ones that follow.
        old.open("q");
        for value in ["\"a\"", "\"b\"", "\"c\""] {
            rust.tell(&["offer", "q", value, HOUR]);
        }
        assert_eq!(old.ask(&["readall", "q"]), r#"["a","b","c"]"#);
        assert_eq!(old.ask(&["contains", "q", "\"b\""]), "true");
        assert_eq!(old.ask(&["remove", "q", "\"b\""]), "true");
        assert_eq!(old.ask(&["dpoll", "q"]), "\"a\"");
        rust.tell(&["offerall", "q", "50", "100", "v"]);
        let taken: Vec<String> = serde_json::from_str(&old.ask(&["drain", "q", "50"])).unwrap();
        assert_eq!(taken.len(), 50);
        assert_eq!(old.ask(&["readall", "q"]), r#"["c"]"#);
    }

    #[test]
    fn a_head_in_the_other_format_stops_redisson_until_a_redelay_joins() {
        for [reader, writer] in [["4.7.0", "3.21.0"], ["3.21.0", "4.7.0"]] {
            let server = Server::start();
            let url = server.url();
            let mut mover = Setup { redisson: reader, ..Setup::new(&url) }.java();
            let mut other = Setup { redisson: writer, ..Setup::new(&url) }.java();
            other.tell(&["offer", "q", "\"foreign\"", "50"]);
            mover.tell(&["offer", "q", "\"own\"", "100"]);
            mover.open("q");
            until_within(Duration::from_secs(20), "both long due", || overdue(&server, 2000.0));
            assert_eq!(mover.ask(&["len", "q"]), "0", "{reader} cannot read the head, and stands still");
            let mut rust = Setup::new(&url).rust();
            rust.open("q");
            assert_eq!(mover.ask(&["drain", "q", "2"]), r#"["foreign","own"]"#);
        }
    }

    #[test]
    fn both_redissons_moving_stop_each_other_until_a_redelay_joins() {
        let server = Server::start();
        let url = server.url();
        let mut new = Setup::new(&url).java();
        let mut old = Setup { redisson: "3.21.0", ..Setup::new(&url) }.java();
        for peer in [&mut new, &mut old] {
            peer.open("q");
        }
        for n in 0..10 {
            new.tell(&["offer", "q", &format!("\"new{n}\""), "500"]);
            old.tell(&["offer", "q", &format!("\"old{n}\""), "500"]);
        }
        until_within(Duration::from_secs(20), "all long due", || overdue(&server, 1000.0));
        let mut rust = Setup::new(&url).rust();
        rust.open("q");
        until("nothing is left pending", || server.zset("redisson_delay_queue_timeout:{q}").is_empty());
        // Redisson's script appends before it fails, and again with every retry, so it makes duplicates
        // itself.
        let mut taken = server.list("q");
        let delivered = taken.len();
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), 20, "each was delivered");
        report(&format!("Redisson's own doubles: {}", delivered - taken.len()));
    }
}
