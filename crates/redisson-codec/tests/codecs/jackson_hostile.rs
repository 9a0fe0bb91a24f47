//! Changed and random payloads, which Redisson did not write, for the Jackson codecs and the compressions.

use codec::java::{LocalDateTime, Value};
use codec::{CborJackson, JsonJackson, Lz4V2, Mapper, MsgPackJackson, SnappyV2, ZStd};

use super::hostile::{made_up, survives};
use super::*;
use redelay_compat_values::annotated::{Always, Extra, Ordered};
use redelay_compat_values::clock::Clock;
use redelay_compat_values::tasks::{Job, Moves, Payments, Shapes, Task};
use redelay_compat_values::zoo::*;

macro_rules! survive {
    ($codec:expr, $payload:expr) => {{
        let (codec, payload) = (&$codec, $payload);
        survives::<Value>(codec, payload);
        survives::<Order>(codec, payload);
        survives::<RefundEvent>(codec, payload);
        survives::<Envelope>(codec, payload);
        survives::<Ledger>(codec, payload);
        survives::<Nested>(codec, payload);
        survives::<Boxes>(codec, payload);
        survives::<Level>(codec, payload);
        survives::<Vec<Value>>(codec, payload);
        survives::<Job>(codec, payload);
        survives::<Task>(codec, payload);
        survives::<Payments>(codec, payload);
        survives::<Shapes>(codec, payload);
        survives::<Moves>(codec, payload);
    }};
}

/// Short ones, because long payloads consist mostly of one text.
fn short(file: &str) -> Vec<Vec<u8>> {
    rows(file).into_iter().map(|row| row.payload).filter(|payload| payload.len() < 800).collect()
}

fn payloads(codec: &str) -> Vec<Vec<u8>> {
    [short(codec), short(&format!("{codec}-classes"))].concat()
}

const COUNT: usize = 10_000;

#[test]
fn made_up_json() {
    made_up(&payloads("json-jackson"), COUNT, b"[]{},:\"\\0-.eEntf", |payload| {
        survive!(JsonJackson, payload)
    });
}

#[test]
fn made_up_json_of_other_mappers() {
    let patterns = Mapper::new().wrapper_array().local_date_time("yyyy-MM-dd HH:mm:ss.SSS").unwrap();
    let codecs = [
        Mapper::new().java_time(),
        Mapper::new().java_time_as_text(),
        patterns,
        Mapper::new().without_classes(),
    ]
    .map(|mapper| JsonJackson.with_mapper(mapper));
    let files = ["mapper-numbers", "mapper-text", "mapper-patterns"];
    let payloads: Vec<_> = files.into_iter().flat_map(short).collect();
    made_up(&payloads, COUNT, b"[]{},:\"\\0-.eEntf", |payload| {
        for codec in &codecs {
            survives::<Value>(codec, payload);
            survives::<Clock<LocalDateTime>>(codec, payload);
            survives::<Clock>(codec, payload);
            survives::<Job>(codec, payload);
            survives::<Payments>(codec, payload);
            survives::<Ordered>(codec, payload);
            survives::<Always>(codec, payload);
            survives::<Extra>(codec, payload);
        }
    });
}

#[test]
fn made_up_cbor() {
    let meaning = [
        0x00, 0x20, 0x40, 0x5f, 0x60, 0x7f, 0x80, 0x82, 0x9f, 0xa0, 0xbf, 0xc2, 0xc3, 0xc4, 0xf6, 0xfb, 0xff,
    ];
    made_up(&payloads("cbor-jackson"), COUNT, &meaning, |payload| survive!(CborJackson, payload));
}

#[test]
fn made_up_msgpack() {
    let meaning = [
        0x00, 0x80, 0x90, 0x92, 0xa0, 0xc0, 0xc1, 0xc4, 0xc7, 0xcb, 0xcf, 0xd3, 0xd9, 0xdc, 0xdd, 0xde, 0xdf,
    ];
    made_up(&payloads("msgpack-jackson"), COUNT, &meaning, |payload| survive!(MsgPackJackson, payload));
}

#[test]
fn made_up_compressed() {
    const MEANING: [u8; 9] = [0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0xf0, 0xfe, 0xff];
    made_up(&short("lz4v2-kryo5"), COUNT, &MEANING, |payload| {
        survives::<Vec<u8>>(&Lz4V2(codec::Bytes), payload)
    });
    made_up(&short("snappyv2-kryo5"), COUNT, &MEANING, |payload| {
        survives::<Vec<u8>>(&SnappyV2(codec::Bytes), payload)
    });
    made_up(&short("zstd-kryo5"), COUNT, &MEANING, |payload| {
        survives::<Vec<u8>>(&ZStd(codec::Bytes), payload)
    });
}
