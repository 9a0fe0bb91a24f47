//! Changed and random payloads, which Redisson did not write, for the Jackson codecs and the compressions.

use codec::java::{LocalDateTime, Value};
use codec::{CborJackson, JsonJackson, Lz4V2, Mapper, MsgPackJackson, SnappyV2, ZStd};

use super::hostile::{made_up, survives};
use super::*;
use redelay_compat_values::annotated::{Always, Extra, Ordered};
use redelay_compat_values::clock::Clock;
use redelay_compat_values::tasks::{Job, Moves, Payments, Shapes, Task};
use redelay_compat_values::zoo::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// As one of these types.
macro_rules! types {
    ($codec:expr) => {
        &[
            |payload| survives::<Value>(&$codec, payload),
            |payload| survives::<Order>(&$codec, payload),
            |payload| survives::<RefundEvent>(&$codec, payload),
            |payload| survives::<Envelope>(&$codec, payload),
            |payload| survives::<Ledger>(&$codec, payload),
            |payload| survives::<Nested>(&$codec, payload),
            |payload| survives::<Boxes>(&$codec, payload),
            |payload| survives::<Level>(&$codec, payload),
            |payload| survives::<Vec<Value>>(&$codec, payload),
            |payload| survives::<Job>(&$codec, payload),
            |payload| survives::<Task>(&$codec, payload),
            |payload| survives::<Payments>(&$codec, payload),
            |payload| survives::<Shapes>(&$codec, payload),
            |payload| survives::<Moves>(&$codec, payload),
        ]
    };
}

const JSON: &[u8] = b"[]{},:\"\\0-.eEntf";

/// Short ones, because long payloads consist mostly of one text.
fn short(file: &str) -> Vec<Vec<u8>> {
    rows(file).into_iter().map(|row| row.payload).filter(|payload| payload.len() < 800).collect()
}

fn payloads(codec: &str) -> Vec<Vec<u8>> {
    [short(codec), short(&format!("{codec}-classes"))].concat()
}

#[test]
fn made_up_json() {
    made_up(&payloads("json-jackson"), JSON, types!(JsonJackson));
}

#[test]
fn made_up_json_of_other_mappers() {
    fn by<T: Serialize + DeserializeOwned + 'static>(payload: &[u8]) {
        let patterns = || Mapper::new().wrapper_array().local_date_time("yyyy-MM-dd HH:mm:ss.SSS").unwrap();
        // Each payload is one for any of them.
        let mapper = match payload.len() % 4 {
            0 => Mapper::new().java_time(),
            1 => Mapper::new().java_time_as_text(),
            2 => patterns(),
            _ => Mapper::new().without_classes(),
        };
        survives::<T>(&JsonJackson.with_mapper(mapper), payload);
    }

    let files = ["mapper-numbers", "mapper-text", "mapper-patterns"];
    let payloads: Vec<_> = files.into_iter().flat_map(short).collect();
    made_up(
        &payloads,
        JSON,
        &[
            by::<Value>,
            by::<Clock<LocalDateTime>>,
            by::<Clock>,
            by::<Job>,
            by::<Payments>,
            by::<Ordered>,
            by::<Always>,
            by::<Extra>,
        ],
    );
}

#[test]
fn made_up_cbor() {
    let meaning = [
        0x00, 0x20, 0x40, 0x5f, 0x60, 0x7f, 0x80, 0x82, 0x9f, 0xa0, 0xbf, 0xc2, 0xc3, 0xc4, 0xf6, 0xfb, 0xff,
    ];
    made_up(&payloads("cbor-jackson"), &meaning, types!(CborJackson));
}

#[test]
fn made_up_msgpack() {
    let meaning = [
        0x00, 0x80, 0x90, 0x92, 0xa0, 0xc0, 0xc1, 0xc4, 0xc7, 0xcb, 0xcf, 0xd3, 0xd9, 0xdc, 0xdd, 0xde, 0xdf,
    ];
    made_up(&payloads("msgpack-jackson"), &meaning, types!(MsgPackJackson));
}

#[test]
fn made_up_compressed() {
    const MEANING: [u8; 9] = [0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0xf0, 0xfe, 0xff];
    made_up(&short("lz4v2-kryo5"), &MEANING, &[|payload| survives::<Vec<u8>>(&Lz4V2(codec::Bytes), payload)]);
    made_up(
        &short("snappyv2-kryo5"),
        &MEANING,
        &[|payload| survives::<Vec<u8>>(&SnappyV2(codec::Bytes), payload)],
    );
    made_up(&short("zstd-kryo5"), &MEANING, &[|payload| survives::<Vec<u8>>(&ZStd(codec::Bytes), payload)]);
}
