//! What Java services put into their queues, through a live Redisson and redelay, in each codec: each of the
//! two offers, and the other one takes, finds and removes it.

use std::collections::BTreeMap;

use redelay::codec::{Codec, CodecError};
use redelay::delayed_queue::EntryFormat;
use redelay::{BlockingQueue, Client, DelayedQueue};
use redelay_compat_values::shapes::{Each, Shape, each, loses, signs};
use redelay_compat_values::vectors::rows;
use redelay_fixture::Server;
use redelay_support::{HOUR, ms, soon};
use tokio::runtime::Runtime;

use crate::peer::{Peer, Setup};
use crate::{HOUR as HOUR_TEXT, report};

/// One value of any type in a queue: what the type of a shape makes of a payload.
struct Only<T, C> {
    codec: C,
    value: T,
    loses: bool,
}

/// What was read: the value, or the text of another one.
#[derive(Debug, PartialEq)]
enum Found {
    Same,
    Other(String),
}

impl<T: Shape, C: Codec<T>> Codec<Found> for Only<T, C> {
    fn encode(&self, _: &Found) -> Result<Vec<u8>, CodecError> {
        self.codec.encode(&self.value)
    }

    fn decode(&self, payload: &[u8]) -> Result<Found, CodecError> {
        let read = self.codec.decode(payload)?;
        let is_same = read == self.value
            || self.loses && self.codec.encode(&read)? == self.codec.encode(&self.value)?;
        Ok(if is_same { Found::Same } else { Found::Other(format!("{read:?}")) })
    }
}

/// How many payloads went which way.
#[derive(Debug, Default)]
struct Counts {
    taken_here: usize,
    found_here: usize,
    taken_by_java: usize,
    equal_in_java: usize,
    found_by_java: usize,
}

type Differs = &'static [(&'static str, &'static [&'static str])];

struct Live {
    runtime: Runtime,
    client: Client,
    java: Peer,
    format: EntryFormat,
    /// Empty for all.
    codecs: &'static [&'static str],
    /// What this version of Redisson writes in another way than 4.7.0: a shape in some codecs.
    differs: Differs,
    signs: BTreeMap<(String, &'static str), char>,
    classes: BTreeMap<String, String>,
    counts: Counts,
    wrong: Vec<String>,
}

impl Each for Live {
    fn payload<T: Shape, C: Codec<T>>(&mut self, shape: &'static str, codec: &'static str, by: C, value: T) {
        if self.codecs.is_empty() || self.codecs.contains(&codec) {
            let queue = match codec.strip_prefix("typed-json") {
                Some(_) => format!("typed-json:{}", self.classes[shape]),
                None => codec.to_owned(),
            };
            let only = Only { codec: by, value, loses: loses(codec) };
            let orders = self.client.blocking_queue::<Found>(&queue, only);
            let delayed = {
                let _inside = self.runtime.enter();
                self.client.delayed_queue(&orders).with_entry_format(self.format)
            };
            let sign = self.signs[&(shape.to_owned(), codec)];
            self.both(&Case { shape, codec, queue, sign, orders, delayed });
        }
    }
}

struct Case {
    shape: &'static str,
    codec: &'static str,
    queue: String,
    sign: char,
    orders: BlockingQueue<Found>,
    delayed: DelayedQueue<Found>,
}

impl Live {
    fn both(&mut self, case: &Case) {
        let Case { queue, sign, orders, delayed, .. } = case;
        let shape = format!("{:?}", case.shape);
        let differs =
            self.differs.iter().any(|(shape, codecs)| *shape == case.shape && codecs.contains(&case.codec));
        let offered = self.java.ask(&["put", queue, &shape]);
        if *sign == '–' {
            self.expect(case, "Java writes it", (offered == "ok") == differs, &offered);
            self.block_on(orders.clear()).expect("an empty queue");
            return;
        }
        // What Java makes of its own payload, which is not always an equal object.
        let own = self.java.ask(&["poll", queue, "5000"]);
        let same_bytes = *sign == '=' && !differs;
        // Java offers, and Rust finds, removes and takes.
        self.java.tell(&["offer", queue, &shape, HOUR_TEXT]);
        if *sign == '✗' {
            self.java.tell(&["clear", queue]);
            return;
        }
        let found = self
            .block_on(async { (delayed.contains(&Found::Same).await, delayed.remove(&Found::Same).await) });
        let is_found = matches!(found, (Ok(true), Ok(true)));
        self.expect(case, "Rust finds Java's", is_found == same_bytes, &format!("{found:?}"));
        self.counts.found_here += usize::from(is_found);
        self.java.tell(&["clear", queue]);
        self.java.tell(&["offer", queue, &shape, "1"]);
        let taken = self.block_on(async { soon(orders.take()).await });
        self.expect(case, "Rust takes Java's", matches!(taken, Ok(Found::Same)), &format!("{taken:?}"));
        self.counts.taken_here += 1;
        // Rust offers, and Java finds, removes and polls.
        self.block_on(async { delayed.offer(&Found::Same, HOUR).await }).expect("an offer");
        let found = ["contains", "remove"].map(|verb| self.java.ask(&[verb, queue, &shape]) == "true");
        self.expect(case, "Java finds Rust's", found == [same_bytes; 2], &format!("{found:?}"));
        self.counts.found_by_java += usize::from(found == [true; 2]);
        self.java.tell(&["clear", queue]);
        self.block_on(async { delayed.offer(&Found::Same, ms(1)).await }).expect("an offer");
        let polled = self.java.ask(&["poll", queue, "30000"]);
        self.expect(
            case,
            "Java polls Rust's",
            !same_bytes || polled == own,
            &format!("{polled} and not {own}"),
        );
        self.counts.taken_by_java += 1;
        self.counts.equal_in_java += usize::from(polled == shape);
    }

    fn block_on<O>(&self, future: impl Future<Output = O>) -> O {
        self.runtime.block_on(future)
    }

    fn expect(&mut self, case: &Case, what: &str, is_so: bool, found: &str) {
        if !is_so {
            self.wrong.push(format!("{} in {}: {what}: {found}", case.shape, case.codec));
        }
    }
}

/// Each shape in each codec, or in those that are named.
fn all_shapes(redisson: &str, codecs: &'static [&'static str], differs: Differs) -> Counts {
    let server = Server::start();
    let url = server.url();
    let java = Setup { codec: "shapes", redisson, ..Setup::new(&url) }.java();
    let runtime = Runtime::new().expect("a runtime");
    let client = runtime.block_on(Client::connect(&url)).expect("a connection");
    let format = if redisson == "3.21.0" { EntryFormat::Legacy } else { EntryFormat::Current };
    let classes = rows("shapes-kryo5").into_iter().map(|row| (row.name, row.class)).collect();
    let (signs, counts, wrong) = (signs(), Counts::default(), Vec::new());
    let mut live = Live { runtime, client, java, format, codecs, differs, signs, classes, counts, wrong };
    each(&mut live);
    let Live { runtime, client, java, counts, wrong, .. } = live;
    report(&format!("Redisson {redisson}: {counts:?}"));
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
    java.quit();
    runtime.block_on(client.shutdown());
    counts
}

/// Up to version 3, a UUID that is the whole payload does not name its class.
const JACKSON: &[&str] =
    &["json-jackson", "cbor-jackson", "msgpack-jackson", "json-jackson-jsr310", "json-jackson-iso"];

#[test]
fn every_shape_with_redisson_4_7() {
    let counts = all_shapes("4.7.0", &[], &[]);
    assert!(counts.taken_here > 300, "{counts:?}");
}

#[test]
fn every_shape_with_redisson_3_50() {
    let counts = all_shapes("3.50.0", &[], &[("30-uuid", JACKSON)]);
    assert!(counts.taken_here > 300, "{counts:?}");
}

/// A sample, in the entry format of that version.
#[test]
fn shapes_in_kryo_and_json_with_redisson_3_21() {
    let differs = &[("30-uuid", JACKSON), ("25-enum-bodies-array", &["json-jackson"])];
    let counts = all_shapes("3.21.0", &["kryo5", "json-jackson"], differs);
    assert!(counts.taken_here > 80, "{counts:?}");
}
