//! Nanoseconds per encode and decode.

use std::hint::black_box;
use std::time::{Duration, Instant};

use redelay::codec::{self, Codec};

use crate::bench::{Bench, Measured};
use crate::job::{Job, Reply};
use crate::order::Order;
use crate::results::{Goal, Row, Table};
use crate::spread::Better;
use crate::system::System;
use crate::worker::Worker;

/// The codecs of both systems, each with a plain library to compare with: the one it is built on, or
/// serde_json.
const CODECS: [(&str, Option<&str>); 5] = [
    ("kryo5", Some("serde_json")),
    ("json-jackson", Some("serde_json")),
    ("json", Some("serde_json")),
    ("msgpack", Some("rmp_serde")),
    ("string", None),
];

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let (millis, rounds) = (bench.effort.millis / 2, bench.effort.rounds);
    let mut rows = Vec::new();
    for (name, plain) in CODECS {
        for encode in [true, false] {
            let what = format!("{} {name}", if encode { "encode" } else { "decode" });
            let turn = format!("codecs: {what}");
            let nanos = |worker: &mut Worker, codec: &str| {
                let reply = worker.ask(&Job::Codec { codec: codec.into(), encode, millis })?;
                Ok(1e9 / reply.per_second())
            };
            // The first run is not counted: a virtual machine compiles the code during it.
            bench.turn_shared(System::Redisson, &turn, |_, worker| nanos(worker, name));
            let measured = bench.alternate_shared(&turn, rounds, |_, worker| nanos(worker, name));
            let mut row = Row::new(what, "ns", Better::Less, measured);
            if let Some(plain) = plain {
                let mut limit =
                    || bench.turn_shared(System::Redelay, &turn, |_, worker| nanos(worker, plain));
                row.limit = (0..rounds).map(|_| limit()).collect();
                row.note = format!("the limit is plain {plain}");
                if name == "kryo5" {
                    row = row.goal(Goal::OfLimit(1.0));
                }
            }
            rows.push(row);
        }
    }
    let about = "An order with two lines, and a string of 100 letters, on one thread. Kryo5 is Redisson's default codec. \
                 Redisson's MessagePack is Jackson's, in its codec for typed JSON.";
    Measured {
        tables: vec![Table { name: "codecs".into(), about: about.into(), rows }],
        ..Measured::default()
    }
}

/// Runs one codec in one direction, in the worker.
pub(crate) fn run(name: &str, encode: bool, time: Duration) -> Reply {
    let order = Order::example();
    let text = "x".repeat(100);
    match name {
        "kryo5" => both(&codec::Kryo5, &order, encode, time),
        "json-jackson" => both(&codec::JsonJackson, &order, encode, time),
        "json" => both(&codec::Json, &order, encode, time),
        "msgpack" => both(&codec::MsgPack, &order, encode, time),
        "string" => both(&codec::String, &text, encode, time),
        "serde_json" => {
            let payload = serde_json::to_vec(&order).expect("JSON");
            if encode {
                repeat(time, || serde_json::to_vec(black_box(&order)))
            } else {
                repeat(time, || serde_json::from_slice::<Order>(black_box(&payload)))
            }
        }
        "rmp_serde" => {
            let payload = rmp_serde::to_vec_named(&order).expect("MessagePack");
            if encode {
                repeat(time, || rmp_serde::to_vec_named(black_box(&order)))
            } else {
                repeat(time, || rmp_serde::from_slice::<Order>(black_box(&payload)))
            }
        }
        _ => panic!("no such codec: {name}"),
    }
}

fn both<T>(codec: &impl Codec<T>, value: &T, encode: bool, time: Duration) -> Reply {
    let payload = codec.encode(value).expect("a payload");
    if encode {
        repeat(time, || codec.encode(black_box(value)))
    } else {
        repeat(time, || codec.decode(black_box(&payload)))
    }
}

fn repeat<R>(time: Duration, mut call: impl FnMut() -> R) -> Reply {
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < time {
        for _ in 0..100 {
            black_box(call());
        }
        count += 100;
    }
    Reply { count, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() }
}
