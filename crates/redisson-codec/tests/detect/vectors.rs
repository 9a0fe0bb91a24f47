//! Each payload alone.

use std::collections::BTreeMap;
use std::path::Path;

use redisson_codec::detect::{self, Description, Format, Kind, Reason};

use redisson_codec::{Bytes, Codec, MsgPack, ZStd};

use super::*;

/// How the right candidates of some rows are placed.
#[derive(Clone, Copy, Default)]
struct Places {
    rows: usize,
    first: usize,
    alone: usize,
    tied: usize,
}

impl Places {
    fn row(self, name: &str) -> String {
        let Self { rows, first, alone, tied } = self;
        format!("| {name} | {rows} | {first} | {alone} | {tied} | {} |", rows - first - tied)
    }
}

#[test]
fn every_file_of_vectors_is_tried() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let files = std::fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path());
    let mut names: Vec<_> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, FILES.map(|(file, _)| file.to_owned()));
}

/// The guide has the table.
#[test]
fn the_right_codec_is_first_or_tied() {
    let (mut table, mut all): (BTreeMap<Format, Places>, _) = (BTreeMap::new(), Places::default());
    for (format, row) in all_rows() {
        let likeliest = likeliest(&detect::candidates(&row.payload));
        let place = likeliest.iter().position(|found| *found == format);
        for places in [table.entry(format).or_default(), &mut all] {
            places.rows += 1;
            places.first += usize::from(place == Some(0));
            places.alone += usize::from(place == Some(0) && likeliest.len() == 1);
            places.tied += usize::from(place > Some(0));
        }
        if place.is_none() {
            println!("{format} {} is {}", row.name, likeliest[0]);
        }
    }
    let mut lines: Vec<_> = table.iter().map(|(format, places)| places.row(&format!("`{format}`"))).collect();
    lines.push(all.row("**all**"));
    let lines = lines.join("\n");
    println!("{lines}");
    assert!(all.rows > 2000, "{} rows", all.rows);
    assert!((all.first + all.tied) * 1000 >= all.rows * 995);
    let guide = include_str!("../../../../docs/codecs.md");
    assert!(guide.contains(&lines), "docs/codecs.md has another table");
}

#[track_caller]
fn candidates(payload: &[u8]) -> Vec<String> {
    let candidates = detect::candidates(payload);
    candidates.iter().map(|found| format!("{} {:?}", found.format, found.reason)).collect()
}

#[test]
fn each_rule() {
    for (payload, found) in [
        (&b""[..], &["bytes Weak", "string Weak"][..]),
        (b"hello", &["string Decodes", "bytes Weak"]),
        // Two letters of which the first is the length of the second in CBOR.
        (b"ab", &["string Decodes", "cbor-jackson Decodes", "bytes Weak"]),
        (b"o\x07", &["bytes Weak", "string Weak"]),
        (b"\xff\xfe", &["bytes Weak"]),
        (b"{\"a\":1}", &["json Decodes", "json-jackson Decodes", "string Weak", "bytes Weak"]),
        (b" {\"@class\":\"com.acme.A\"}", &["json-jackson Magic", "json Weak", "string Weak", "bytes Weak"]),
        (b"[\"example.com\",\"x\"]", &["json Decodes", "json-jackson Decodes", "string Weak", "bytes Weak"]),
        (b"[\"com.acme.A\",{}]", &["json-jackson Magic", "json Weak", "string Weak", "bytes Weak"]),
        (b"{\"a\":", &["string Decodes", "bytes Weak"]),
        (b"\"\\ud800\"", &["string Decodes", "bytes Weak"]),
        (b"007", &["string Decodes", "long Weak", "int Weak", "double Weak", "bytes Weak"]),
        (b"NaN", &["double Decodes", "string Decodes", "bytes Weak"]),
        (b"true", &["json-jackson Decodes", "json Decodes", "string Decodes", "bytes Weak"]),
        (b"\x01\x00com.acme.\xc1", &["kryo5 Magic", "bytes Weak"]),
        (b"\x02\x0e", &["kryo5 RoundTrip", "bytes Weak", "string Weak"]),
        (b"\xac\xed\x00\x05t\x00\x01a", &["java-serialization Magic", "bytes Weak"]),
        (b":)\n\x01\x40a", &["smile Magic", "bytes Weak", "string Weak"]),
        (b"\x04\x4b\0\0\0\x01", &["jboss-marshalling Magic", "bytes Weak", "string Weak"]),
        (b"\x04\x3e\x05hello", &["jboss-marshalling Magic", "bytes Weak", "string Weak"]),
        (b"\x04\x3e\x05hello ", &["bytes Weak", "string Weak"]),
        (b"\x18\x2a", &["cbor-jackson RoundTrip", "bytes Weak", "string Weak"]),
        // As no encoder writes it.
        (b"\x18\x01", &["cbor-jackson Decodes", "bytes Weak", "string Weak"]),
        (b"\x91\xc3", &["msgpack RoundTrip", "msgpack-jackson RoundTrip", "bytes Weak"]),
        (b"\x05\x10hello", &["snappy+string Decodes", "bytes Weak", "string Weak", "snappy+bytes Weak"]),
        (b"\0\0\0\x02\x20\xff\xfe", &["lz4+bytes Decodes", "bytes Weak"]),
        (
            b"\0\0\0\x02\x20\x02\x0e",
            &["lz4+kryo5 RoundTrip", "bytes Weak", "string Weak", "lz4+bytes Weak", "lz4+string Weak"],
        ),
    ] {
        assert_eq!(candidates(payload), found, "{}", payload.escape_ascii());
    }
}

/// What fits in its length prefix and nothing else.
#[test]
fn a_length_in_front_must_come_out() {
    let lz4 = |payload: &[u8]| candidates(payload).iter().any(|found| found.starts_with("lz4"));
    assert!(lz4(b"\0\0\0\x05\x50hello"));
    assert!(!lz4(b"\0\0\0\x04\x50hello"));
    assert!(!lz4(b"\0\0\0\x05\x50hello "));
    assert!(!lz4(b"\x7f\xff\xff\xff\x50hello"));
}

#[test]
fn what_decompresses_to_too_much_is_not_recognised() {
    let of_length = |length: usize| candidates(&ZStd(Bytes).encode(&vec![0xff; length]).unwrap());
    assert_eq!(of_length(1 << 20), ["zstd+bytes Decodes", "bytes Weak"]);
    assert_eq!(of_length((1 << 20) + 1), ["bytes Weak"]);
}

#[test]
fn names_parse_as_they_print() {
    for (format, _) in all_rows() {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
    for wrong in ["", "kryo", "lz4", "lz4+", "lz4+lz4+kryo5", "gzip+json", "Kryo5", "kryo5 "] {
        assert!(wrong.parse::<Format>().is_err(), "{wrong}");
    }
    assert_eq!(Format::from(Kind::Smile).to_string(), "smile");
    assert!(
        Reason::Magic > Reason::RoundTrip
            && Reason::RoundTrip > Reason::Decodes
            && Reason::Decodes > Reason::Weak
    );
}

#[track_caller]
fn described(file: &str, name: &str) -> Description {
    let (_, format) = FILES.into_iter().find(|(found, _)| *found == file).unwrap();
    let row = rows(file).into_iter().find(|row| row.name == name).unwrap();
    format.parse::<Format>().unwrap().describe(&row.payload).unwrap()
}

/// An object whose fields nobody knows.
#[test]
fn classes_and_texts_of_what_cannot_be_read() {
    for file in ["shapes-kryo5", "shapes-marshalling", "shapes-smile"] {
        let email = described(file, "16-poly-root-email");
        assert_eq!(email.class.as_deref(), Some("com.example.shop.EmailTask"), "{file}");
        let texts = ["hi", "a@example.com"];
        let found = |text: &&str| email.strings.iter().any(|string| string.contains(*text));
        assert!(texts.iter().all(found), "{file}: {email}");
    }
    let refund = described("shapes-kryo5", "08-pojo-localdatetime");
    assert_eq!(refund.strings, ["m-1"], "{refund}");
}

/// The class of each row that is an object of an application, where the payload names it.
#[test]
fn the_class_of_every_object() {
    let mut found = 0;
    for (format, row) in all_rows() {
        let Some(described) = format.describe(&row.payload) else { continue };
        if !row.class.starts_with("java.") {
            let Some(class) = described.class else {
                assert!(
                    matches!(format, Format::Plain(Kind::Smile | Kind::JBossMarshalling)),
                    "{}",
                    row.name
                );
                continue;
            };
            found += 1;
            assert!(
                class == row.class || row.class.ends_with(']') || format != Format::Plain(Kind::Kryo5),
                "{}: {class}",
                row.name
            );
        }
    }
    println!("{found} objects have a class");
    assert!(found > 350, "{found}");
}

/// Whether a payload begins with a text of the guide, as `redis-cli` prints bytes. `…` is a few bytes.
fn begins(payload: &[u8], text: &str) -> bool {
    const FEW: usize = 6;
    match text.split_once('…') {
        Some((front, rest)) => {
            let behind = payload.strip_prefix(&bytes(front)[..]);
            behind.is_some_and(|behind| (1..=FEW.min(behind.len())).any(|few| begins(&behind[few..], rest)))
        }
        None => payload.starts_with(&bytes(text)),
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (byte, rest) = match part.as_bytes()[0] {
            b'x' => (u8::from_str_radix(&part[1..3], 16).unwrap(), &part[3..]),
            b'n' => (b'\n', &part[1..]),
            _ => (b'\t', &part[1..]),
        };
        bytes.push(byte);
        bytes.extend(rest.as_bytes());
    }
    bytes
}

/// What an error says of the first bytes, the table of the guide says, too.
#[test]
fn the_guide_says_what_payloads_begin_with() {
    let guide = include_str!("../../../../docs/java-classes.md");
    let table =
        guide.split_once("| the payload begins with | codec |").unwrap().1.split("\n3. ").next().unwrap();
    let lines = table.lines().filter_map(|line| line.trim().strip_prefix("| ")?.split_once(" | "));
    let code = |text: &'static str| text.split('`').skip(1).step_by(2);
    let lines: Vec<(Vec<_>, _)> =
        lines.map(|(begins, codec)| (code(begins).collect(), code(codec).next().unwrap())).collect();
    let (mut shown, mut wrong) = (vec![0; lines.len()], Vec::new());
    for (_, row) in all_rows() {
        let Err(error) = Codec::<Never>::decode(&MsgPack, &row.payload);
        let error = error.to_string();
        let Some((_, codec)) = error.split_once("this looks like ") else { continue };
        let codec = codec.split('`').nth(1).unwrap();
        let found = lines.iter().position(|(texts, _)| texts.iter().any(|text| begins(&row.payload, text)));
        match found {
            Some(line) if lines[line].1 == codec => shown[line] += 1,
            other => wrong.push(format!("{codec}, not {other:?}: {}", row.payload.escape_ascii())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The last one is for what no first bytes show.
    let [shown @ .., 0] = &shown[..] else { panic!("{shown:?}") };
    assert!(shown.iter().all(|count| *count > 0), "{shown:?}");
}

/// A type that no payload is of.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
enum Never {}
