//! How much memory a payload behind a compression takes. Each is decoded by a process of its own, since what
//! is freed may still be counted.

#[path = "codecs/hostile.rs"]
#[allow(dead_code, reason = "the other tests of payloads that Redisson did not write use the rest")]
mod hostile;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use hostile::{changed, fuzz};
use redelay_compat_values::vectors::rows;
use redisson_codec::classes::Classes;
use redisson_codec::java::Value;
use redisson_codec::{
    Bytes, CborJackson, Codec, CodecError, Json, JsonJackson, Kryo5, Lz4V2, MsgPack, MsgPackJackson,
};
use redisson_codec::{ZStd, detect};
use serde::{Deserialize, Serialize};

const LIMIT: usize = 8 << 20;

const CASE: &str = "REDELAY_MEMORY_CASE";

/// What the process takes, or has taken at most, where Linux says so.
fn memory(line: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|found| found.strip_prefix(line))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? << 10)
}

/// Decodes a payload, or has it refused, within the memory that is allowed.
fn decode<T: Debug, C: Codec<T>>(codec: C, payload: &[u8]) {
    let before = memory("VmRSS:").unwrap_or_default();
    let read = Lz4V2(codec).with_limit(LIMIT).decode(payload).map(drop);
    let most = memory("VmHWM:").unwrap_or_default().saturating_sub(before) as f64 / LIMIT as f64;
    println!("{most:.1} times the limit: {read:?}");
    assert!(most <= 8.0, "{most:.1} times the limit");
    if let Err(error) = read {
        let error = error.to_string();
        assert!(error.contains("too much memory"), "{error}");
        assert!(error.contains(" offset ") || error.contains(" column "), "{error}");
    }
}

/// Does everything that `detect` does with a payload, within the memory that its documentation names: what
/// the payload decompresses to, its values, twice that while a list grows, and the text that is printed.
fn detect_all(payload: &[u8]) {
    let before = memory("VmRSS:").unwrap_or_default();
    let mut texts = 0;
    for candidate in detect::candidates(payload) {
        texts = texts.max(candidate.format.to_json(payload).map_or(0, |text| text.capacity()));
        _ = candidate.format.describe(payload);
    }
    let most = memory("VmHWM:").unwrap_or_default().saturating_sub(before);
    let values = (256 * payload.len()).max(64 << 20);
    println!("{:.1} times the limit: {} bytes, {texts} of text", most as f64 / values as f64, payload.len());
    assert!(most <= (64 << 20) + 2 * values + 2 * texts, "{most} bytes");
}

/// Reads a class file within the memory that the documentation of `classes` names.
fn class_file(bytes: &[u8]) {
    let before = memory("VmRSS:").unwrap_or_default();
    let read = Classes::new().add_class_file(bytes);
    let most = memory("VmHWM:").unwrap_or_default().saturating_sub(before);
    println!("{:.1} times the limit of a class file: {read:?}", most as f64 / (8 << 20) as f64);
    assert!(read.is_ok() && most <= 8 << 20, "{most} bytes");
}

/// Adds classes until their memory is at its limit.
fn until_it_is_full(mut add: impl FnMut(&mut Classes, usize) -> Result<(), CodecError>) {
    const MOST: usize = 256 << 20;
    let before = memory("VmRSS:").unwrap_or_default();
    let mut classes = Classes::new();
    let refused = (0..1000).find_map(|number| add(&mut classes, number).err());
    let error = refused.expect("there is a limit").to_string();
    assert!(error.contains("the classes take more than 256 MiB of memory"), "{error}");
    let most = memory("VmHWM:").unwrap_or_default().saturating_sub(before);
    println!("{:.1} times the limit of all classes: {error}", most as f64 / MOST as f64);
    assert!(most <= 2 * MOST, "{most} bytes");
}

/// The same in a process of its own.
fn in_a_process(kind: &str, payload: &[u8]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "one_payload", "--nocapture"]).env(CASE, kind);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let most = said.lines().find(|line| line.contains("times the limit")).unwrap_or_default();
    println!("{kind}, {} bytes: {most}", payload.len());
    assert!(output.status.success(), "{kind}: {said}");
}

/// What Redisson wrote, changed in several places, behind a compression.
fn made_up<C: Codec<Value> + Copy>(codec: C, file: &str) {
    let payloads: Vec<_> = rows(file).into_iter().map(|row| row.payload).collect();
    let before = memory("VmRSS:").unwrap_or_default();
    let (count, mut random) = fuzz(25_000);
    let codec = Lz4V2(codec).with_limit(LIMIT);
    for _ in 0..count {
        let payload = Lz4V2(Bytes).encode(&changed(&payloads, &[0, 1, 0x7f, 0x80, 0xdd, 0xff], &mut random));
        _ = codec.decode(&payload.unwrap());
    }
    let most = memory("VmHWM:").unwrap_or_default().saturating_sub(before) as f64 / LIMIT as f64;
    println!("{most:.1} times the limit: {count} payloads");
    assert!(most <= 8.0, "{most:.1} times the limit");
}

macro_rules! large {
    ($($field:ident)*) => {
        /// 512 bytes of fields. A null takes one byte in Kryo, and none in JSON.
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        #[serde(rename = "final com.acme.Large")]
        struct Large {
            $($field: Option<i64>,)*
        }
    };
}

large! { a b c d e f g h i j k l m n o p q r s t u v w x y z aa bb cc dd ee ff }

type Decode = fn(&[u8]);

/// What a payload is decoded as.
fn kinds(each: &mut dyn FnMut(&str, Decode)) {
    each("a class file", class_file);
    each("class files", |file| {
        until_it_is_full(|classes, number| {
            let mut file = file.to_vec();
            file[13..17].copy_from_slice(format!("A{number:03}").as_bytes());
            classes.add_class_file(&file).map(drop)
        });
    });
    each("a text", |text| {
        let text = str::from_utf8(text).unwrap();
        until_it_is_full(|classes, number| classes.add_text(&text.replace("A000", &format!("A{number:03}"))));
    });
    each("JSON as a Value", |payload| decode::<Value, _>(JsonJackson, payload));
    each("JSON as a map", |payload| decode::<BTreeMap<String, i32>, _>(JsonJackson, payload));
    each("JSON as integers", |payload| decode::<Vec<i32>, _>(JsonJackson, payload));
    each("JSON as longs", |payload| decode::<Vec<Option<i64>>, _>(JsonJackson, payload));
    each("JSON as characters", |payload| decode::<Vec<char>, _>(JsonJackson, payload));
    each("JSON as texts", |payload| decode::<Vec<String>, _>(JsonJackson, payload));
    each("CBOR as a Value", |payload| decode::<Value, _>(CborJackson, payload));
    each("CBOR as integers", |payload| decode::<Vec<i32>, _>(CborJackson, payload));
    each("MessagePack as a Value", |payload| decode::<Value, _>(MsgPackJackson, payload));
    each("Kryo as a Value", |payload| decode::<Value, _>(Kryo5, payload));
    each("JSON as short lists", |payload| decode::<Vec<Vec<Large>>, _>(JsonJackson, payload));
    each("Kryo as short lists", |payload| decode::<Vec<Vec<Large>>, _>(Kryo5, payload));
    each("JSON as large values", |payload| decode::<BTreeMap<String, Large>, _>(JsonJackson, payload));
    each("Kryo as large values", |payload| decode::<BTreeMap<i32, Large>, _>(Kryo5, payload));
    each("Kryo as booleans", |payload| decode::<Vec<bool>, _>(Kryo5, payload));
    each("JSON without classes as a Value", |payload| decode::<Value, _>(Json, payload));
    each("MessagePack without classes as a Value", |payload| decode::<Value, _>(MsgPack, payload));
    each("detect", detect_all);
    each("made-up Kryo", |_| made_up(Kryo5, "kryo5"));
    each("made-up JSON", |_| made_up(JsonJackson, "json-jackson"));
    each("made-up CBOR", |_| made_up(CborJackson, "cbor-jackson"));
    each("made-up MessagePack", |_| made_up(MsgPackJackson, "msgpack-jackson"));
    each("Kryo as texts", |payload| decode::<Vec<String>, _>(Kryo5, payload));
    each("Java's serialization as a Value", |payload| decode::<Value, _>(Kryo5, payload));
    each("Java's serialization as texts", |payload| decode::<Vec<Option<String>>, _>(Kryo5, payload));
}

/// As much of a repeated piece as a part of the limit allows.
fn filled(front: &[u8], piece: &[u8], back: &[u8], part: usize) -> Vec<u8> {
    let times = (LIMIT / part - front.len() - back.len() - piece.len()) / piece.len();
    let content = [front, &piece.repeat(times), back].concat();
    Lz4V2(Bytes).encode(&content).unwrap()
}

/// With less in the payload more of it is done before it is refused.
const PARTS: [usize; 3] = [1, 4, 12];

#[test]
fn a_compressed_payload_takes_eight_times_the_limit_at_most() {
    if std::env::var_os(CASE).is_none() && memory("VmHWM:").is_some() {
        all(&mut in_a_process);
    }
}

#[test]
fn made_up_payloads_take_eight_times_the_limit_at_most() {
    if std::env::var_os(CASE).is_none() && memory("VmHWM:").is_some() {
        for kind in ["made-up Kryo", "made-up JSON", "made-up CBOR", "made-up MessagePack"] {
            in_a_process(kind, b"");
        }
    }
}

/// Payloads of which a byte is a value of many, as they are and behind a compression.
#[test]
fn detection_takes_what_it_says_at_most() {
    if std::env::var_os(CASE).is_some() || memory("VmHWM:").is_none() {
        return;
    }
    const LENGTH: usize = (1 << 20) - 16;
    let announced = |head: u8, count: usize| [&[head][..], &(count as u32).to_be_bytes()].concat();
    let empty = Lz4V2(Bytes).decode(&kryo(10, 3, &[0x81])).unwrap();
    for content in [
        [&b"["[..], &b"0,".repeat(LENGTH / 2), b"0]"].concat(),
        [&b"["[..], &b"{},".repeat(LENGTH / 3), b"0]"].concat(),
        [&b"["[..], &b"[[0]],".repeat(LENGTH / 6), b"0]"].concat(),
        [&b"["[..], &b"[\"[B\",\"\"],".repeat(LENGTH / 10), b"0]"].concat(),
        [&b"\x9f"[..], &vec![0x80; LENGTH], b"\xff"].concat(),
        [announced(0xdd, LENGTH), vec![0x90; LENGTH]].concat(),
        [announced(0xdf, LENGTH / 2), vec![0x80; LENGTH]].concat(),
        [announced(0xdd, LENGTH / 2), b"\x91\xc0".repeat(LENGTH / 2)].concat(),
        vec![b't'; LENGTH],
        empty,
        [
            &b"\xac\xed\x00\x05ur\x00\x13[Ljava.lang.Object;\0\0\0\0\0\0\0\0\x02\x00\x00xp"[..],
            &(LENGTH as u32).to_be_bytes(),
            &vec![b'p'; LENGTH],
        ]
        .concat(),
    ] {
        in_a_process("detect", &Lz4V2(Bytes).encode(&content).unwrap());
        in_a_process("detect", &ZStd(Bytes).encode(&content).unwrap());
        in_a_process("detect", &content);
    }
}

/// Types of which a byte is a type argument, in as many fields as are read.
fn large_class(argument: &[u8]) -> Vec<u8> {
    let text = |text: &[u8]| [&[1][..], &(text.len() as u16).to_be_bytes(), text].concat();
    let kind = [&b"LA<"[..], &argument.repeat(15_000 / argument.len()), b">;"].concat();
    let pool = [text(b"A000"), vec![7, 0, 1], text(&kind), text(b"LA;"), text(b"Signature")].concat();
    let field = [0, 0, 0, 1, 0, 4, 0, 1, 0, 5, 0, 0, 0, 2, 0, 3];
    let head = [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61, 0, 6];
    let class = [0, 0, 0, 2, 0, 0, 0, 0, 0, 4];
    [&head[..], &pool, &class, &field.repeat(4), &[0; 4]].concat()
}

#[test]
fn class_files_take_what_is_said_at_most() {
    if std::env::var_os(CASE).is_some() || memory("VmHWM:").is_none() {
        return;
    }
    for argument in [&b"*"[..], b"TT;", b"LA;", b"[LA;"] {
        in_a_process("a class file", &large_class(argument));
    }
    in_a_process("class files", &large_class(b"*"));
    // Each of the fields has the whole type.
    let text = format!("class A000 {{ B<{}C> {}a; }}", "C, ".repeat(1 << 10), "a, ".repeat(1 << 14));
    in_a_process("a text", text.as_bytes());
}

/// The process for one payload: decodes what is on its input.
#[test]
fn one_payload() {
    let Ok(wanted) = std::env::var(CASE) else { return };
    let mut payload = Vec::new();
    std::io::stdin().read_to_end(&mut payload).unwrap();
    let mut done = false;
    kinds(&mut |name, decode| {
        if name == wanted {
            decode(&payload);
            done = true;
        }
    });
    assert!(done, "{wanted}");
}

fn all(check: &mut dyn FnMut(&str, &[u8])) {
    let pieces = [
        "0,",
        "\"a\",",
        "null,",
        "{},",
        "1.5,",
        "{\"a\":0},",
        "{\"@class\":\"java.util.HashMap\"},",
        "[[[[0]]]],",
        "12345678901234567890,",
        "[\"a.b\",[]],",
        "[\"[B\",\"\"],",
    ];
    for part in PARTS {
        for piece in pieces {
            let payload = filled(b"[", piece.as_bytes(), b"0]", part);
            check("JSON as a Value", &payload);
            if part > 1 {
                check("JSON without classes as a Value", &payload);
            }
        }
        let properties = (0..1000).map(|number| format!("\"{number}\":0,")).collect::<String>();
        let payload = filled(b"{", properties.as_bytes(), b"\"x\":0}", part);
        check("JSON as a Value", &payload);
        check("JSON as a map", &payload);
        let payload = filled(b"[", b"0,", b"0]", part);
        check("JSON as integers", &payload);
        check("JSON as longs", &payload);
        check("JSON as texts", &filled(b"[", b"\"a\",", b"\"\"]", part));
        let short = format!("[{}{{}}],", "{},".repeat(62));
        check("JSON as short lists", &filled(b"[", short.as_bytes(), b"[]]", part));
        let compressed = |payload: Vec<u8>| Lz4V2(Bytes).encode(&payload).unwrap();
        let short = vec![vec![Large::default(); 63]; LIMIT / part / 2100];
        check("Kryo as short lists", &compressed(Kryo5.encode(&short).unwrap()));
        let values = (0..LIMIT / part / 13).map(|key| format!("\"{key}\":{{}}")).collect::<Vec<_>>();
        check("JSON as large values", &compressed(format!("{{{}}}", values.join(",")).into_bytes()));
        let values: BTreeMap<_, _> =
            (0..(LIMIT / part / 42) as i32).map(|key| (key, Large::default())).collect();
        check("Kryo as large values", &compressed(Kryo5.encode(&values).unwrap()));
        check("JSON as a Value", &filled(b"[\"[C\",\"", b"a", b"\"]", part));
        check("JSON as characters", &filled(b"\"", b"a", b"\"", part));
        for (class, element) in [
            (&b"[Ljava.util.KeyValueHolder\xbb"[..], &b"\x01\x00\x00"[..]),
            (b"[Ljava.time.Year\xbb", b"\x01\x00"),
            (b"[[\xc9", b"\x01"),
        ] {
            check("Kryo as a Value", &kryo_array(part, class, element));
        }
        let payload = filled(b"\x9f", b"\x00", b"\xff", part);
        check("CBOR as a Value", &payload);
        check("CBOR as integers", &payload);
        let elements = (LIMIT / part - 6) as u32;
        let payload = filled(&[&[0xdd][..], &elements.to_be_bytes()].concat(), b"\x00", b"", part);
        check("MessagePack as a Value", &payload);
        check("MessagePack without classes as a Value", &payload);
        let (booleans, texts, longer) =
            (kryo(part, 5, &[1]), kryo(part, 3, &[0x81]), kryo(part, 3, b"a\xe1"));
        check("Kryo as a Value", &booleans);
        check("Kryo as booleans", &booleans);
        for texts in [texts, longer] {
            check("Kryo as a Value", &texts);
            check("Kryo as texts", &texts);
        }
        // A null, a text, that of before, an integer, an object without fields, and what it may write.
        for element in [
            &b"p"[..],
            b"t\x00\x00",
            b"q\x00\x7e\x00\x07",
            b"sq\x00\x7e\x00\x08\0\0\0\x02",
            b"sq\x00\x7e\x00\x0ax",
            b"sq\x00\x7e\x00\x0aw\x00w\x00w\x00x",
        ] {
            check("Java's serialization as a Value", &serialized(part, element));
        }
        check("Java's serialization as texts", &serialized(part, b"t\x00\x00"));
    }
}

fn push_varint(payload: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        payload.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    payload.push(number as u8);
}

/// An array of this class of equal elements.
fn kryo_array(part: usize, class: &[u8], element: &[u8]) -> Vec<u8> {
    let count = (LIMIT / part - 100) / element.len();
    let mut payload = [b"\x01\x00", class].concat();
    push_varint(&mut payload, count + 1);
    payload.extend(element.repeat(count));
    Lz4V2(Bytes).encode(&payload).unwrap()
}

/// What Java's own serialization writes of an unmodifiable list around an array of these elements. Its class
/// is number 3, that of the array 5, and a short text 6.
fn serialized(part: usize, element: &[u8]) -> Vec<u8> {
    let count = (LIMIT / part - 400) / element.len();
    let mut payload = b"\x01\x00java.util.Collections$UnmodifiableLis\xf4\xac\xed\x00\x05".to_vec();
    payload.extend(
        b"sr\x00&java.util.Collections$UnmodifiableList\0\0\0\0\0\0\0\0\x02\x00\x01L\x00\x01ct\x00\x01Lxp",
    );
    payload.extend(
        b"sr\x00\x1ajava.util.Arrays$ArrayList\0\0\0\0\0\0\0\0\x02\x00\x01L\x00\x01aq\x00\x7e\x00\x01xp",
    );
    payload.extend(b"ur\x00\x13[Ljava.lang.Object;\0\0\0\0\0\0\0\0\x02\x00\x00xp");
    payload.extend((count as u32 + 3).to_be_bytes());
    payload.extend(b"t\x00\x01x");
    payload.extend(b"sr\x00\x11java.lang.Integer\0\0\0\0\0\0\0\0\x02\x00\x01I\x00\x05valuexp\0\0\0\x01");
    payload.extend(b"sr\x00\x0acom.acme.A\0\0\0\0\0\0\0\0\x03\x00\x00xpx");
    payload.extend(element.repeat(count));
    Lz4V2(Bytes).encode(&payload).unwrap()
}

/// A list of this class of elements, each of them the same.
fn kryo(part: usize, class: u8, element: &[u8]) -> Vec<u8> {
    let count = (LIMIT / part - 100) / element.len();
    let announced = count + 1;
    let mut payload = b"\x01\x00java.util.ArrayLis\xf4".to_vec();
    payload.push(0xc0 | (announced & 0x3f) as u8);
    push_varint(&mut payload, announced >> 6);
    payload.extend([class, 0]);
    payload.extend(element.repeat(count));
    Lz4V2(Bytes).encode(&payload).unwrap()
}
