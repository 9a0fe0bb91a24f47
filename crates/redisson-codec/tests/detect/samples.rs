//! Several payloads of one codec.

use std::collections::BTreeMap;

use redisson_codec::detect::{Detector, Kind};

use super::*;

const SAMPLES: usize = 400;

/// Of how many samples of this many payloads the codec is named, also if it is tied, and named first.
fn named(format: Format, rows: &[&Row], size: usize, random: &mut fastrand::Rng) -> [usize; 2] {
    let [mut right, mut first] = [0; 2];
    for _ in 0..SAMPLES {
        let mut queue = Detector::new();
        (0..size).for_each(|_| queue.add(&rows[random.usize(..rows.len())].payload));
        if let [verdict] = &queue.verdicts()[..] {
            first += usize::from(verdict.format == format);
            right += usize::from(verdict.format == format || verdict.tied.contains(&format));
        }
    }
    [right, first]
}

#[test]
fn ten_payloads_name_the_codec_of_a_queue() {
    let all = all_rows();
    let mut formats: BTreeMap<Format, Vec<&Row>> = BTreeMap::new();
    for (format, row) in &all {
        // `IntegerCodec` writes the `toString` of any object, also one that it cannot read. The objects in
        // the payloads for `MsgPack` have classes.
        let is_foreign = match format {
            Format::Plain(Kind::Int) => row.class == "java.math.BigInteger",
            Format::Plain(Kind::MsgPack) => row.class == "lab.Small",
            _ => row.payload.is_empty(),
        };
        if !is_foreign {
            formats.entry(*format).or_default().push(row);
        }
    }
    let mut random = fastrand::Rng::with_seed(31);
    println!("named, and first, of {SAMPLES} samples of 1, 3 and 10 payloads");
    for (format, rows) in formats {
        let [one, three, ten] = [1, 3, 10].map(|size| named(format, &rows, size, &mut random));
        println!("{format:<19} {one:>3?} {three:>3?} {ten:>3?}");
        assert_eq!(ten[0], SAMPLES, "{format}");
        assert!(three[0] * 100 >= SAMPLES * 99 || format.to_string() == "bytes", "{format}: {three:?}");
    }
}

fn verdicts(payloads: &[&[u8]]) -> Vec<String> {
    let mut queue = Detector::new();
    payloads.iter().for_each(|payload| queue.add(payload));
    queue.verdicts().iter().map(|verdict| format!("{verdict}: {}", verdict.payloads)).collect()
}

#[test]
fn what_cannot_read_one_payload_is_out() {
    assert_eq!(verdicts(&[]), [""; 0]);
    assert_eq!(verdicts(&[b""]), ["bytes (or string): 1"]);
    assert_eq!(verdicts(&[b"{}", b"{\"a\":1}"]), ["json (or json-jackson): 2"]);
    assert_eq!(verdicts(&[b"{}", b"{\"@class\":\"a.B\"}"]), ["json-jackson: 2"]);
    assert_eq!(verdicts(&[b"{}", b"hello"]), ["string: 2"]);
    assert_eq!(verdicts(&[b"17", b"1.5", b"x"]), ["string: 3"]);
    assert_eq!(verdicts(&[b"100", b"5000000000"]), ["long (or json-jackson, json, string): 2"]);
    assert_eq!(verdicts(&[b"\x01\x02\x03", b"\xff\x00"]), ["bytes: 2"]);
    assert_eq!(verdicts(&[b"", b"hello"]), ["string: 2"]);
}

#[test]
fn a_queue_of_two_codecs() {
    let kryo: &[u8] = b"\x01\x00com.acme.Orde\xf2\x0e";
    let jackson: &[u8] = b"{\"@class\":\"com.acme.Order\",\"id\":7}";
    assert_eq!(verdicts(&[kryo, jackson, kryo]), ["kryo5: 2", "json-jackson: 1"]);
    assert_eq!(verdicts(&[jackson, b"hello", jackson]), ["json-jackson: 2", "string: 1"]);
    assert_eq!(verdicts(&[kryo, b"\xff\xfe\xfd"]), ["kryo5: 1", "bytes: 1"]);
    // Without a signature, what reads anything is not better than two codecs.
    assert_eq!(
        verdicts(&[b"{\"a\":1}", b"\x03hell\xef", b"\x09\x10"]),
        ["kryo5: 2", "json (or json-jackson): 1"]
    );
}
