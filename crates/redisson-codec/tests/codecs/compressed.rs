//! `Lz4V2`, `SnappyV2` and `ZStd`: payloads that Redisson compressed, and payloads that are refused.

use std::collections::HashMap;

use codec::{Lz4V2, SnappyV2, ZStd};

use super::*;

type Texts = &'static dyn Codec<String>;
type Blobs = &'static dyn Codec<Vec<u8>>;

/// The codecs by the names in the vectors: around text, and around any payload.
const ALL: [(&str, Texts, Blobs); 3] = [
    ("lz4v2", &Lz4V2(codec::String), &Lz4V2(codec::Bytes)),
    ("snappyv2", &SnappyV2(codec::String), &SnappyV2(codec::Bytes)),
    ("zstd", &ZStd(codec::String), &ZStd(codec::Bytes)),
];

#[test]
fn texts_of_redisson() {
    for (file, texts, _) in ALL {
        for row in rows(&format!("{file}-string")) {
            let value = row.json.as_str().unwrap().to_owned();
            assert_eq!(texts.decode(&row.payload).unwrap(), value, "{file} {}", row.name);
            assert_eq!(texts.decode(&texts.encode(&value).unwrap()).unwrap(), value);
        }
    }
}

#[test]
fn kryo_of_redisson() {
    let plain: HashMap<_, _> = rows("kryo5").into_iter().map(|row| (row.name, row.payload)).collect();
    for (file, _, blobs) in ALL {
        for row in rows(&format!("{file}-kryo5")) {
            let inner = blobs.decode(&row.payload).unwrap();
            assert_eq!(inner, plain[&row.name], "{file} {}", row.name);
        }
    }
}

#[test]
fn every_truncation_and_bit_flip() {
    for (file, _, blobs) in ALL {
        let rows = [rows(&format!("{file}-string")), rows(&format!("{file}-kryo5"))].concat();
        for Row { payload, name, .. } in rows.into_iter().filter(|row| row.payload.len() < 500) {
            for end in 0..payload.len() {
                let error = error(blobs.decode(&payload[..end]));
                assert!(
                    error.contains("expected") && error.contains("offset"),
                    "{file} {name} to {end}: {error}"
                );
            }
            for bit in 0..payload.len() * 8 {
                let mut payload = payload.clone();
                payload[bit / 8] ^= 1 << (bit % 8);
                let _ = blobs.decode(&payload);
            }
            assert!(blobs.decode(&[&payload[..], b"\0"].concat()).is_err(), "{file} {name} and a byte");
        }
    }
}

#[test]
fn lengths_that_nothing_is_behind() {
    let lz4 = |payload: &[u8]| error(Lz4V2(codec::Bytes).decode(payload) as Result<Vec<u8>, _>);
    assert_eq!(lz4(b"\0\0"), "expected 4 bytes of length at offset 0 and LZ4, found 2 bytes");
    assert_eq!(
        lz4(b"\x80\0\0\0\x10a"),
        "expected at most 67108864 bytes behind LZ4, found -2147483648 announced at offset 0"
    );
    assert_eq!(
        lz4(b"\x03\0\0\0\x10a"),
        "expected an LZ4 block of 50331648 bytes at offset 4, found 2 bytes, which cannot hold as many"
    );
    assert_eq!(lz4(b"\0\0\0\x02\x10a"), "expected 2 bytes behind LZ4, as announced at offset 0, found 1");
    let snappy = |payload: &[u8]| error(SnappyV2(codec::Bytes).decode(payload) as Result<Vec<u8>, _>);
    assert_eq!(snappy(b""), "expected one Snappy block at offset 0, found 0 bytes");
    assert_eq!(
        snappy(b"\x80\x80\x80\x10\0a"),
        "expected a Snappy block of 33554432 bytes at offset 0, found 6 bytes, which cannot hold as many"
    );
    let zstd = |payload: &[u8]| error(ZStd(codec::Bytes).decode(payload) as Result<Vec<u8>, _>);
    assert!(zstd(b"\x03\0\0\0\x28\xb5\x2f\xfd").starts_with("expected one Zstandard frame at offset 4: "));
}

/// A few bytes of each can decompress to any size. Decoding stops at the limit.
#[test]
fn the_limit_is_what_is_decompressed() {
    fn check<C: Codec<Vec<u8>>>(codec: C, limited: [impl Codec<Vec<u8>>; 2]) {
        let zeros = vec![0; 1 << 20];
        let payload = codec.encode(&zeros).unwrap();
        assert!(payload.len() < 60_000, "{}", payload.len());
        let [enough, short] = limited;
        assert_eq!(enough.decode(&payload).unwrap(), zeros);
        assert_eq!(enough.encode(&zeros).unwrap(), payload);
        assert!(
            error(short.decode(&payload)).starts_with("expected at most 1048575 bytes behind "),
            "{}",
            error(short.decode(&payload))
        );
    }
    const MIB: usize = 1 << 20;
    check(Lz4V2(codec::Bytes), [MIB, MIB - 1].map(|limit| Lz4V2(codec::Bytes).with_limit(limit)));
    check(SnappyV2(codec::Bytes), [MIB, MIB - 1].map(|limit| SnappyV2(codec::Bytes).with_limit(limit)));
    check(ZStd(codec::Bytes), [MIB, MIB - 1].map(|limit| ZStd(codec::Bytes).with_limit(limit)));
    // The frame itself is larger than the size announced in front of it.
    let mut zstd: Vec<u8> = ZStd(codec::Bytes).encode(&vec![0; MIB]).unwrap();
    zstd[..4].copy_from_slice(&[0, 0, 0, 9]);
    assert_eq!(
        error(ZStd(codec::String).decode(&zstd)),
        "expected 9 bytes behind Zstandard, as announced at offset 0, found 10"
    );
}

/// A decompressor gives out nothing before its window is full, and the sender chooses the window.
#[test]
fn a_window_is_no_larger_than_the_limit_or_8_mib() {
    // 96 MiB, and a block of 128 KiB of one byte.
    let frame = [&b"\0\0\0\0\x28\xb5\x2f\xfd\x00\x84"[..], &b"\x02\x00\x10\x00".repeat(769)].concat();
    for refused in [ZStd(codec::Bytes).with_limit(1000).decode(&frame), ZStd(codec::Bytes).decode(&frame)] {
        assert!(error::<Vec<u8>>(refused).contains("indow"));
    }
}

#[test]
fn errors_of_the_codec_inside_are_its_own() {
    assert_eq!(
        error(Lz4V2(codec::Int).decode(&Lz4V2(codec::String).encode(&"7 pieces".into()).unwrap())),
        "expected an integer from -2147483648 to 2147483647 as decimal text, found the byte 0x20 at offset 1"
    );
}

proptest! {
    #[test]
    fn blobs_round_trip(bytes: Vec<u8>, text in "[ab]{0,300}", times in 1..2000usize) {
        for bytes in [bytes, text.repeat(times % 7).into_bytes(), text[..text.len().min(5)].repeat(times * 40).into()] {
            for (file, _, blobs) in ALL {
                prop_assert_eq!(&blobs.decode(&blobs.encode(&bytes)?)?, &bytes, "{}", file);
            }
        }
    }

    #[test]
    fn any_bytes(payload: Vec<u8>, text in "[abc]{0,99}", at: prop::sample::Index, byte: u8) {
        for (_, _, blobs) in ALL {
            let mut damaged = blobs.encode(&text.clone().into())?;
            let at = at.index(damaged.len());
            damaged[at] = byte;
            for payload in [&payload, &damaged, &[&[0, 0, 0, 99], &payload[..]].concat()] {
                let _ = blobs.decode(payload);
            }
        }
    }
}
