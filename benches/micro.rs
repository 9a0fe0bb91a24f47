//! Benchmarks of single modules that do no input or output: `make micro`.
//!
//! The modules of entries and of the schedule are private, so this program compiles their sources into
//! itself.

// They contain their unit tests, which do not run here.
#[allow(unused, unreachable_pub)]
#[path = "../src"]
mod private {
    pub(crate) mod wire {
        pub(crate) mod entry;
        pub(crate) mod id;
    }
    pub(crate) mod transfer {
        pub(crate) mod schedule;
    }
}

use std::time::Duration;

use divan::{Bencher, black_box, counter::BytesCount};
use redelay::codec::{self, Codec};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use private::transfer::schedule::{Moved, Next, TransferSchedule};
use private::wire::entry::{self, EntryFormat};

fn main() {
    divan::main();
}

/// Bytes of a payload.
const SIZES: [usize; 2] = [100, 4096];
const QUEUES: [u64; 3] = [1, 100, 10_000];

#[divan::bench(args = SIZES)]
fn pack(bencher: Bencher, size: usize) {
    let payload = vec![b'x'; size];
    bencher.counter(BytesCount::new(size)).bench(|| entry::pack(EntryFormat::Current, black_box(&payload)));
}

#[divan::bench(args = SIZES)]
fn unpack(bencher: Bencher, size: usize) {
    let entry = entry::pack(EntryFormat::Current, &vec![b'x'; size]);
    bencher.bench(|| entry::payload(black_box(&entry)).map(<[u8]>::len));
}

/// A schedule of this number of queues, each with something due in an hour.
fn busy(queues: u64) -> (TransferSchedule, Instant) {
    let now = Instant::now();
    let mut schedule = TransferSchedule::new(Duration::from_secs(60), 6);
    for queue in 0..queues {
        schedule.open(queue, now);
        schedule.announced(queue, now + Duration::from_secs(3_600));
    }
    (schedule, now)
}

#[divan::bench(args = QUEUES)]
fn announce(bencher: Bencher, queues: u64) {
    let (mut schedule, now) = busy(queues);
    let mut due = now + Duration::from_secs(3_000);
    let mut queue = 0;
    bencher.bench_local(|| {
        // Each earlier than the last one: a new head.
        due -= Duration::from_nanos(1);
        queue = (queue + 1) % queues;
        schedule.announced(black_box(queue), due);
    });
}

/// From one wake-up to the next.
#[divan::bench(args = QUEUES)]
fn wake(bencher: Bencher, queues: u64) {
    let (mut schedule, mut now) = busy(queues);
    bencher.bench_local(|| {
        loop {
            match schedule.next(now) {
                Next::Run(queue) => {
                    let head = Some(now + Duration::from_secs(3_600));
                    return schedule.finished(queue, now, Moved { head, transferred: true, clock: 0 });
                }
                Next::Sleep(until) => now = until,
                Next::Idle => unreachable!("there are queues"),
            }
        }
    });
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: i64,
    customer: String,
    total: f64,
    items: Vec<String>,
}

fn order() -> Order {
    let items = ["coffee, ground, 500 g", "mug, blue"].map(str::to_owned).to_vec();
    Order { order_id: 4_711_000_815, customer: "Grace Brewster Hopper".into(), total: 61.25, items }
}

fn encode<T>(bencher: Bencher, codec: impl Codec<T>, value: T) {
    bencher.bench_local(|| codec.encode(black_box(&value)));
}

fn decode<T>(bencher: Bencher, codec: impl Codec<T>, value: T) {
    let payload = codec.encode(&value).expect("a value with a payload");
    bencher.bench_local(|| codec.decode(black_box(&payload)));
}

/// One group for each codec: encode, decode.
macro_rules! codecs {
    ($($name:ident: $codec:expr, $value:expr;)+) => {$(
        #[divan::bench_group]
        mod $name {
            use super::*;

            #[divan::bench]
            fn encode(bencher: Bencher) {
                super::encode(bencher, $codec, $value);
            }

            #[divan::bench]
            fn decode(bencher: Bencher) {
                super::decode(bencher, $codec, $value);
            }
        }
    )+};
}

codecs! {
    json: codec::Json, order();
    json_jackson: codec::JsonJackson, order();
    msgpack: codec::MsgPack, order();
    string: codec::String, "x".repeat(100);
}
